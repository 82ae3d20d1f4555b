//! Guards of transactions: the coordinator, the markers, the producer and the reader.
registry! { base 320;
    guard RequestOfPresentProducer: "A coordinator obeys only the producer that has the transactional id's present producer id and epoch.", "KIP-98", ["S20", "S18", "S16"];
    guard InitEndsOpenTransaction: "A producer that takes over a transactional id waits until the open transaction is aborted.", "KIP-98", ["S20", "S18", "L7"];
    guard OneTransactionAtATime: "No partition joins while the markers of the transaction before are on their way.", "KIP-98", ["S20", "S18"];
    guard TransactionsTimeOut: "A transaction that stays open for longer than its timeout is aborted.", "KIP-98", ["L7"];
    guard OwnAbortFencesProducer: "A transaction that the coordinator aborts by itself ends under an epoch above its producer's.", "T01, KIP-98", ["S20", "L7", "S18"];
    guard CompletionOfThisTransaction: "A transaction is over when all its own markers were answered for, and only once.", "T04, KAFKA-9777", ["L7", "S18", "S20"];
    guard MarkersAfterDecision: "Markers go out when the decision is committed in the coordinator's log, not before.", "KIP-98", ["S20", "S18"];
    guard PreparedTakenUp: "A new coordinator sends the markers of the decisions that it finds in its log.", "KIP-98", ["L7", "L1"];
    guard MarkersRetried: "A marker that was not written is sent again, to whoever leads the partition then.", "KIP-98", ["L7", "S18", "S20"];
    guard MarkerCommittedBeforeAnswered: "A marker is answered for when all in-sync replicas have it.", "KIP-98", ["S18", "S20", "L7"];
    guard ReadCommittedBelowStable: "A read-committed fetch ends at the last stable offset.", "KIP-98", ["S19"];
    guard AbortedSkipped: "A read-committed consumer leaves out what the answer lists as aborted.", "KIP-98", ["S19"];
    guard ProduceAfterAdd: "A producer writes to a partition only when the coordinator has it in the transaction.", "KIP-98", ["S18", "L7", "S20"];
    guard EndAfterRecords: "A producer ends its transaction when all its records are decided.", "KIP-98", ["S20", "L1", "S18", "L7"];
    guard EndRaisesEpoch: "The end of a transaction raises its producer's epoch: what comes late of it names an epoch that is over.", "KIP-890", ["S20", "S18"];
    guard RepeatedEndSameDecision: "A repeated end is answered as done only if the transaction ended so.", "KIP-890, KAFKA-20785", ["S18"];
    guard LastEpochChangesProducerId: "A producer that would come to the last epoch goes on with a new producer id.", "KIP-890, KIP-360", ["S16", "L1", "L7"];
    guard MarkerAboveProducer: "A marker of transaction version 2 is above its producer's last epoch, or it is another transaction's.", "KIP-890, KIP-1228", ["S20", "S18"];
    guard RepeatedMarkerIsDone: "A marker of transaction version 2 that stands in the log already is answered as written.", "KAFKA-19999", ["L1"];
    guard PastMarkerIsOver: "A marker that its partition's producer is past counts as written: a coordinator that lost its decision does not wait for ever.", "KIP-890, found by transactions/chaos_small", ["L1"];
    guard MirrorRefusesTransactions: "Partitions of a mirrored topic join no transaction.", "spec 5.1", ["S32"];
    guard MarkersEndWithTerm: "Markers on their way end with their coordinator's term: the next one sends its own.", "KIP-98, T04", ["L7", "S18", "S20"];
}
