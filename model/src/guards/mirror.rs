//! Guards and quirks of the mirror room.
registry! { base 256;
    guard EpochBumpBeforeAppend: "A batch with an epoch above the local leader epoch is not appended before that was raised above it.", "M02, spec 3.3", ["S34", "L13"];
    guard BatchEpochWithinSourceEpoch: "A batch with an epoch above the one the fetch asked in is not appended: what is known of the source is stale.", "M08, spec 3.5, KAFKA-18723", ["S30", "S31"];
    guard UnknownLeaderEpochBacksOff: "UNKNOWN_LEADER_EPOCH from the source is waited out; a lower epoch is never asked in instead.", "M06, spec 4.3", ["S31"];
    guard FetcherFollowsSourceLeader: "A source broker that refuses names the new leader, and the fetcher goes there.", "M07, spec 4.3", ["L8"];
    guard MirrorOffsetMatchesLog: "A fetched batch is appended only if the fetch asked from the log's end.", "spec 4.1, 4.3", ["S1", "S30"];
    guard MirrorAnswerIsCurrent: "An answer is used only for the assignment it was asked for: same slot, same offset, still fetching.", "R16 at the mirror, S33", ["S33", "S30"];
    guard MirrorLeaderOnly: "Only the leader of a mirrored partition runs its fetcher; a new term ends the old fetcher.", "spec 2.7, S10", ["S10", "S33"];
    guard MirrorTopicReadOnly: "Clients cannot write to a mirrored topic.", "spec 4.5", ["S32"];
    guard SourceTopicIdMatches: "A source topic of the same name but another id is not mirrored into the old log.", "spec 1.9, S46", ["S46", "S30"];
    guard SourceClusterIdMatches: "A source whose cluster id is not the mirror's is not mirrored from.", "Y10, decision 4", ["S48", "S31"];
    guard SourceEpochMonotone: "What is known of a source partition's leader never goes back to a lower epoch.", "spec 4.3 (highest epoch kept)", ["L8"];
    guard DivergenceNeedsSupport: "A source whose log contradicts ours ends in FAILED unless the topic supports unclean elections.", "decision 39", ["S6", "S50"];
    guard DivergenceCuts: "A mirror log that diverges from the source is cut to the common prefix before it goes on.", "spec 3.9", ["S30"];
    guard BarrierAfterMirrorCut: "After a cut the mirror leader waits for its replicas before it copies again.", "M10, spec 3.7", ["S36", "S2"];
    guard MirrorReportsGap: "Records that the source's retention removed before they were mirrored are reported as a gap.", "decision 40", ["S1"];
    guard BumpWaitsForImage: "A wait for a bump ends only when the leader epoch in the image is above the minimum.", "C12, spec 3.3", ["S34"];
    guard EveryBumpRemembered: "Each partition has its own pending bump.", "C11", ["L9"];
    guard StateLeaderEpochFenced: "A state written under an older leader epoch than the last one is refused.", "D-22, decision 11", ["S47", "S41"];
    guard StateEpochFenced: "A state that builds on another than the last committed one is refused.", "decision 11, spec 7.5", ["S47"];
    guard StateTransitionLegal: "A transition that the table does not have is refused with an error.", "D-8, decision 10, spec 2.2", ["S47"];
    guard StatesDieWithTheirMirror: "States are removed with their mirror or topic.", "D-32, decision 18", ["S49"];
    guard MissedPartitionIsRetried: "A partition whose source leader was unknown is looked up again until it is known.", "C26", ["L8", "L9"];
}
