//! Guards of the client room.
registry! { base 192;
    guard ConsumerValidatesEpoch: "A consumer checks its position against the leader's epochs after a leader change.", "G03, KIP-320", ["S8"];
    guard ProducerResetsAllSequences: "After an epoch bump every partition starts again at sequence 0, not only those with batches in flight.", "T11, KAFKA-12152", ["L1"];
    guard ProducerSequenceWraps: "The sequence after 2^31-1 is 0.", "T14, KAFKA-5283", ["L1", "S16"];
    guard MetadataEpochMonotone: "A client's view of a partition never goes back to an older leader epoch.", "KIP-320, G01", ["S8", "L13"];
    guard ProducerKeepsOrder: "A retried batch goes out only when no earlier batch of its partition is in flight.", "KIP-98, KAFKA-5494", ["S16", "L1"];
    quirk "J" PatternsMeetAllTopics: "The tool matches the patterns of a stop, pause or resume against all topics of the cluster, not the mirror's own.", "E-16, K18", ["L10"];
    guard RetryKeepsSequence: "A retried batch carries the sequence it was first sent with.", "KIP-98, T19", ["S16"];
}
