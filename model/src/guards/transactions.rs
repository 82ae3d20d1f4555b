//! Guards of transactions: the coordinator, the markers, the producer and the reader.
registry! { base 320;
    guard RequestOfPresentProducer: "A coordinator obeys only the producer that has the transactional id's present producer id and epoch.", "KIP-98", ["S18", "S20"];
    guard InitEndsOpenTransaction: "A producer that takes over a transactional id waits until the open transaction is aborted.", "KIP-98", ["S20", "S18", "L7"];
    guard OneTransactionAtATime: "No partition joins while the markers of the transaction before are on their way.", "KIP-98", ["S20", "S18"];
    guard TransactionsTimeOut: "A transaction that stays open for longer than its timeout is aborted.", "KIP-98", ["L7"];
    guard OwnAbortFencesProducer: "A transaction that the coordinator aborts by itself ends under an epoch above its producer's.", "T01, KIP-98", ["S20", "L7", "S18"];
    guard CompletionOfThisTransaction: "A transaction is over when all its own markers were answered for, and only once.", "T04, KAFKA-9777", ["S18", "S20"];
    guard MarkersAfterDecision: "Markers go out when the decision is committed in the coordinator's log, not before.", "KIP-98", ["S20", "S18"];
    guard PreparedTakenUp: "A new coordinator sends the markers of the decisions that it finds in its log.", "KIP-98", ["L7"];
    guard MarkersRetried: "A marker that was not written is sent again, to whoever leads the partition then.", "KIP-98", ["L7", "S18"];
    guard MarkerCommittedBeforeAnswered: "A marker is answered for when all in-sync replicas have it.", "KIP-98", ["S18", "S20", "L7"];
    guard ReadCommittedBelowStable: "A read-committed fetch ends at the last stable offset.", "KIP-98", ["S19"];
    guard AbortedSkipped: "A read-committed consumer leaves out what the answer lists as aborted.", "KIP-98", ["S19"];
    guard ProduceAfterAdd: "A producer writes to a partition only when the coordinator has it in the transaction.", "KIP-98", ["S18", "L7", "S20"];
    guard EndAfterRecords: "A producer ends its transaction when all its records are decided.", "KIP-98", ["S20", "S18", "L7"];
    guard MirrorRefusesTransactions: "Partitions of a mirrored topic join no transaction.", "spec 5.1", ["S32"];
}
