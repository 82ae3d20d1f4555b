//! Guards of LOG_ALIGNMENT: what a partition asks, cuts and awaits before it is mirrored.

registry! { base 448;
    guard SilenceIsNotNone: "That nobody told a last position does not mean that there is none: it is asked again.", "D-6, D-11, decisions 6 and 34", ["S35", "S6"];
    guard LoopIsRefused: "A topic that the source mirrors from this cluster is not mirrored back.", "decision 26, spec 1.7", ["S47"];
    guard LongLoopIsRefused: "Where the source copies a topic from a third cluster, that one's mirrors are asked for too: a circle of any length is refused.", "S47, decision 26", ["S47"];
    guard AlignmentRaisesEpoch: "A leader that cuts local records at alignment first leads in a later epoch than they were written in.", "found by seed 50 of mirror/chaos_with_orders; spec 3.10", ["S9", "S2"];
    guard AlignmentIsMarked: "Each replica notes in which terms it was aligned; one that missed a term cuts to where its leader's log ended then.", "found by hand: two clusters' epochs meet; spec 3.10", ["S2", "S30", "L5"];
    guard CutLastsBeforeItsMark: "The mark of an alignment is written when the cut before it is durable.", "found by thought; spec 3.10", ["S2", "S30"];
    guard MarkEndsWithAlignment: "An alignment that a stop overtakes leaves no mark: what the stop appends would be cut by it.", "found by seed 200 of mirror/chaos_life", ["S4", "S3"];
    guard GivenUpMarkRestores: "A mark that is given up gives its place back to the one that it had replaced.", "found by swarm/coordinator", ["S4", "S3"];
    guard AlignmentRepeatsEpochs: "Alignment asks the source where the last epoch ends until nothing more is to be cut.", "decision 27, worked example C.3", ["S35", "S36"];
    guard PositionEpochCuts: "At failback what lies above the last mirrored epoch is cut, whatever its offsets.", "spec 3.6, worked example C.3", ["S35", "S30"];
    guard CompactedIsCopiedAnew: "A compacted log that gives up local records is copied from its beginning: they may have taken mirrored ones away.", "decision 8, Kafka LogCleaner", ["S30", "S51"];
    guard PositionOffsetCuts: "At failback what lies behind the last mirrored offset is cut, in the same epoch too.", "spec 3.6, worked example C.1", ["S35"];
    guard BarrierAfterMirrorCut: "After a cut the mirror leader waits for its replicas before it copies again.", "M10, spec 3.7", ["S36", "S2"];
    guard BarrierIsKept: "What a leader waits for after a cut is looked at again with every fetch of a replica, not only once.", "M11, decision 12", ["L9"];
    guard PositionOfEveryMirror: "The last position is looked up in every mirror that copied from here, whatever its name.", "C20, spec 3.6", ["S35"];
    guard ReverseHasStopped: "A way back begins only when the way forth is STOPPED: before, where it ends is not fixed.", "C30, spec 2.5", ["S35", "L10", "S47"];
    guard AbortedHereIsCopiedAnew: "A compacted log that gives up the end of a transaction that was aborted here is copied from its beginning: its records may be gone.", "decision 8, Kafka LogCleaner, spec 5.2", ["S51", "S30"];
    guard StopComesBeforeCut: "An alignment cuts nothing once a stop is ordered, be it while LOG_ALIGNMENT was being committed.", "decision 1", ["S49"];
}
