//! Guards and quirks of the mirror room.
//!
//! What the catalogue of known bugs has about mirroring, and what has no row because its mistake cannot be made here:
//! - M13 (the barrier's result taken for that of the watermark): what converged and whose watermark moved are told in two lists.
//! - M14 (both phases of a latched truncation at once): a barrier has one phase; the cut is done before it begins, and forgets the
//!   positions above it (`BarrierNeedsPosition`).
//! - M17 (fetchers removed by a change of the connection): a change of configuration removes no fetcher.
//! - M19 (a dead fetcher that is used again): a task that dies takes its broker with it; the quirk `FetcherDiesWithoutLeader` is the
//!   nearest thing.
//! - M25 (negative producer ids): no producer id is mapped.
//! - C23 (one record for a whole mirror): a state's key has its topic and its number by its type.
//! - C28 (every node derives the new leader epoch): the record has the epoch (`LeaderChangeRaisesEpoch`).
//!
//! Under another name, or in another room: M26 `StopResetsProducers` and `PidResetAppliedOnAppend`; M27 `StopBumpsBeforeMarkers` and
//! `StopAwaitsReplicas`; M30 `StopNotesPositionFirst`; M31 `MarkerErrorsIgnored`; M34 `PidResetAppliedOnLoad`; C10
//! `RefusedRequestStaysPending`; C12 `BumpAboveMinimum`; C13 `DeposedLeaderStopsOn`; C15 `LostWriteIsForgotten`; C17
//! `FailedOutranksStop`; C22 `SilenceIsNotNone`; C24 `StatesDieWithTheirMirror`; C29 `LoopIsRefused`.
registry! { base 256;
    guard EpochBumpBeforeAppend: "A batch with an epoch above the local leader epoch is not appended before that was raised above it.", "M02, spec 3.3", ["S34", "L13"];
    guard BatchEpochWithinSourceEpoch: "A batch with an epoch above the one the fetch asked in is not appended: what is known of the source is stale.", "M08, spec 3.5, KAFKA-18723", ["S31", "S30"];
    guard UnknownLeaderEpochBacksOff: "UNKNOWN_LEADER_EPOCH from the source is waited out; a lower epoch is never asked in instead.", "M06, spec 4.3", ["S31"];
    guard FetcherFollowsSourceLeader: "A source broker that refuses names the new leader, and the fetcher goes there.", "M07, spec 4.3", ["L8"];
    guard MirrorAnswerIsCurrent: "An answer is used only for the assignment it was asked for: same slot, same offset, still fetching.", "R16 at the mirror, S33", ["S1", "S30", "S33"];
    guard WaitingLeavesSession: "A partition that waits leaves the fetch session: what the source told it meanwhile is told again.", "FetchSessionHandler, KIP-227; found by swarm/elections", ["L8"];
    guard MirrorLeaderOnly: "Only the leader of a mirrored partition runs its fetcher; a new term ends the old fetcher.", "spec 2.7, S10", ["S10", "S33"];
    guard MirrorTopicReadOnly: "Clients cannot write to a mirrored topic.", "spec 4.5", ["S32"];
    guard SourceTopicIdMatches: "A source topic of the same name but another id is not mirrored into the old log.", "spec 1.9, S46", ["S46", "S30"];
    guard SourceClusterIdMatches: "A source whose cluster id is not the mirror's is not mirrored from.", "Y10, decision 4", ["S48", "S31"];
    guard DeletionNeedsProof: "A source topic counts as deleted when two answers in a row, half a refresh interval apart, did not have it.", "decision 4, D-34, peer case META-12", ["L11", "L8", "L10"];
    guard SourceEpochMonotone: "What is known of a source partition's leader never goes back to a lower epoch.", "spec 4.3 (highest epoch kept)", ["S31", "L8"];
    guard EpochAskedBeforeFetch: "Before the first fetch from a new source leader the mirror asks it where its last epoch ends: an old source does not tell.", "decision 38, K13, spec 3.9", ["S30", "S16"];
    guard LateAnswerAsksForLess: "A fetch whose answer did not come whole in time is asked again for less.", "E-15, spec 4.3; found by a random world with a link of 2 s", ["L8", "L11"];
    guard DivergenceNeedsSupport: "A source whose log contradicts ours ends in FAILED unless the topic supports unclean elections.", "decision 39", ["S6", "S50"];
    guard DivergenceCuts: "A mirror log that diverges from the source is cut to the common prefix before it goes on.", "spec 3.9", ["L8", "S50", "S30", "S16"];
    guard MirrorReportsGap: "Records that the source's retention removed before they were mirrored are reported as a gap.", "decision 40", ["S30"];
    guard EveryBumpRemembered: "Each partition has its own pending bump.", "C11", ["L9"];
    guard StateLeaderEpochFenced: "A state written under an older leader epoch than the last one is refused.", "D-22, decision 11", ["S37", "S49"];
    guard StateEpochFenced: "A state that builds on another than the last committed one is refused.", "decision 11, spec 7.5", ["S37", "S49"];
    guard PositionNotedOnce: "A last mirrored position that is noted is not replaced before the next session begins.", "decision 7, D-4", ["S39"];
    guard StateTransitionLegal: "A transition that the table does not have is refused with an error.", "D-8, decision 10, spec 2.2", ["S37"];
    guard StatesDieWithTheirMirror: "States are removed with their mirror or topic.", "D-32, decision 18", ["L10", "S35", "S38"];
    guard StatesOfThisIncarnation: "States of a deleted mirror of the same name are nobody's: a record names the incarnation that it is of.", "decision 18, C-9, C24", ["S37", "S38", "S35", "L9", "L10"];
    guard DeadPartitionsGetNoStates: "A state of a partition whose topic or mirror was deleted while the write waited is not committed.", "found by seed 51 of faults/every_kind; decision 18", ["L9", "S37", "S38", "L10"];
    guard OrderNeedsStates: "An operator's order that depends on states goes to the controller only if the state of every partition it is about was told.", "K21, D-19, decisions 32, 34", ["S49", "S39", "S40"];
    guard OrderFitsStates: "An operator's order is refused for topics with a partition in a state that it does not follow.", "spec 2.10, decision 1", ["S37", "L10", "S39"];
    guard RecoveryIsCommitted: "A recovery is answered when the state that it leads back to is committed.", "spec 8.14, decision 11", ["L10"];
    quirk "JL" SilencePassesValidation: "Partitions whose coordinator says nothing pass the check of an order.", "K21, D-19", ["S49", "S39", "S40"];
    quirk "JL" OrderNeedsExactState: "A stop is taken from MIRRORING and PAUSED only, repeated orders are refused: a FAILED partition cannot be failed over.", "D-1, E-17, spec 2.10", ["L10"];
    quirk "JL" OneBadTopicRefusesAll: "One partition in a wrong state refuses the order for all topics.", "E-5, decision 2", ["L10"];
    guard MissedPartitionIsRetried: "A partition whose source leader was unknown is looked up again until it is known.", "C26", ["L11", "L8", "L9"];
    guard StopNotesPositionFirst: "A stop appends nothing before the last mirrored position is committed.", "D-4, D-24, decision 7", ["S39"];
    guard StopKnowsEmptiedEpoch: "A stop whose copy has no records left notes the epoch that the last of them had, and raises its own above it.", "found by seed 12 of faults/every_kind; decision 7", ["S39", "S34"];
    guard StopBumpsBeforeMarkers: "A stop appends nothing before the leader epoch is above the last mirrored one.", "spec 3.10, 5.2", ["S34", "S40"];
    guard StopAbortsOpenTransactions: "A stop ends every transaction that is open in the mirrored log with a marker.", "D-13, spec 5.2, decision 13", ["S41", "L7"];
    guard StopAwaitsReplicas: "A stop goes on when every in-sync replica has what its last step appended.", "spec 1.6, decision 13", ["S41"];
    guard StopResetsProducers: "A stop makes replicas forget the source's producers before clients may write.", "spec 5.3, decision 13", ["S40", "S16"];
    guard MirroredTopicGrowsWithSource: "Clients cannot add partitions to a topic that is copied or held: the source has none to fill them.", "peer cases PART-02 and PART-03", ["L11"];
    guard StopEndsFetching: "A stop takes the partition from its fetcher before anything else.", "M16, spec 1.6", ["S39", "S33", "S38", "S32", "S49"];
    guard StopKeepsRecords: "A stop cuts nothing: open transactions are ended by markers, and what was read stays.", "M33, spec 5.2", ["S38", "S8", "S7"];
    guard StopsAreSeparate: "A partition's stop goes on by what that partition awaits, whatever others in the same order have done.", "M32", ["S41", "S40", "S39"];
    guard StorageErrorsFail: "A mirrored batch that could not be appended makes the partition FAILED; its fetcher does not keep that to itself.", "M21, spec 2.6", ["L8", "L11"];
    guard GateIsTheLeaders: "Whether a mirrored topic may be written is said by its partition's leader; others say only that they are none.", "decision 9; found by a random world", ["L1"];
    guard GateReadsMembership: "Whether clients may write is read from the metadata as they are, not as they were when this broker came to lead.", "M23, decision 9", ["S32", "L10"];
    guard UnknownFollowsWish: "A partition of which no state is known begins with what is wanted of it; only one that is to be copied is aligned.", "C03, decision 1", ["S49"];
    guard ShardsResignAlone: "A coordinator that loses one partition of the state topic keeps the states of the others.", "C04, spec 7.4", ["S37", "S38", "S49"];
    guard FailedLoadIsRepeated: "A coordinator whose disk did not give its log reads it again; it is not useless until the leadership moves.", "found by swarm/coordinator; decision 12", ["L10", "L9", "L8"];
    guard NewTermReadsState: "Who comes to lead a partition again asks for its state again: others may have led it meanwhile.", "C05, spec 2.4", ["S38", "S37", "S33", "S32"];
    guard RepeatedWriteIsActedOn: "A state that was committed at the second attempt is acted on like any other.", "C07, spec 2.4", ["L9", "L10", "L8"];
    guard RetryIsReachable: "A retry asks for a state that the table lets follow FAILED.", "C09, decision 28, spec 2.6", ["L11", "L8"];
    guard FailureIsNotOvertaken: "A failure that is on its way to be committed gives way to a stop, not to the end of what was given up.", "found by seed 299 of mirror/chaos_inside_a_task; spec 2.6", ["S37"];
    guard RetryAlignsAgain: "What failed before it was aligned is aligned at the retry, not copied.", "C16, spec 2.6", ["S37", "S35", "S36", "S30"];
    guard LostResetIsRepeated: "Who comes to lead a STOPPED partition whose log lost the markers and the reset of its stop writes them again.", "found by seed 20 of lifecycle/crash_at_every_step_of_stop; decision 13", ["S40", "L7"];
    guard StopOutlivesItsTimer: "A stop whose time is over while STOPPED is being written has not failed if that is committed.", "found by seed 153 of swarm/beyond_tolerance; decision 12", ["S49", "L10"];
    guard StatesToldAreThisMirrors: "A state that a coordinator tells of another mirror of the name is asked for again: the coordinator has not heard yet.", "decision 18; found by seed 3034 of swarm/coordinator", ["S38", "S37", "S35"];
    guard StatesOfPresentTerm: "A state that a leader wrote before its term ended is not committed behind the next one's reading.", "found by seed 3019 of swarm/elections; decision 11", ["S38", "S37", "L10"];
    guard FailedStopBeginsAnew: "A stop that failed begins with its position again when it is retried.", "found by seed 115 of mirror/chaos_inside_a_task; decisions 12, 13", ["L10", "L11", "L9"];
    guard StopEndsSessionThatBegan: "A stop that waited behind MIRRORING notes where the log ends, not that nothing was mirrored.", "decision 7, spec 2.6; found by seed 803 of swarm/lifecycle", ["S39"];
    guard StatesOfLaterTermsWait: "What a leader of a later term wrote is not acted on by who leads an earlier one.", "found by seed 1900 of swarm/lifecycle; decision 32", ["S39", "S33"];
    guard StateReadBeforeAct: "Who asks for its state in a new term does nothing for the former one's until it is told.", "C05, spec 2.4; found by seed 20 of swarm/lifecycle", ["S38"];
}
