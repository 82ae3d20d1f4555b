//! The table of all checks: what each demands, where that comes from, what it listens to, when it is asked, and what trips it.

/// Kinds of trace events that checks subscribe to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // named after the trace events
pub enum Kind {
    Appended,
    Truncated,
    LogStartMoved,
    CleaningBegun,
    Cleaned,
    HighWatermarkMoved,
    LogRecovered,
    BecameLeader,
    IsrProposed,
    IsrCommitted,
    FollowerPosition,
    Acked,
    Nacked,
    Read,
    ToldEnd,
    Registered,
    MetadataApplied,
    MetadataCommitted,
    PartitionChanged,
    Elected,
    BrokerFenced,
    MirrorOrdered,
    TopicRemoved,
    MirrorStateChanged,
    MirrorStatesLoaded,
    MirrorFetcherAdded,
    MirrorFetcherRemoved,
    Mirrored,
    BumpRequested,
    MirrorGrew,
    ReadOnlyRefused,
    PositionReset,
    TxnEnded,
    TxnDecided,
    QuorumLed,
    VoteGranted,
    MetadataReplicated,
    MetadataTruncated,
    CorruptFound,
    /// A process ended by itself.
    Exited,
}

/// When a check is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// With each event of its kinds.
    Event,
    /// At elections, restarts and cuts, for the partitions they touch.
    Election,
    /// At quiet points and at the end, for all partitions.
    Quiet,
    /// At the end.
    Final,
    /// In the converge phase, until it holds.
    Liveness,
}

/// One check.
#[derive(Clone, Copy, Debug)]
pub struct CheckInfo {
    /// Its id in the catalogue of invariants.
    pub id: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What it demands, in a sentence.
    pub statement: &'static str,
    /// Where that comes from.
    pub sources: &'static str,
    /// What it listens to.
    pub kinds: &'static [Kind],
    /// When it is asked.
    pub phases: &'static [Phase],
    /// What trips it: guards that are switched off, or damage done to a world.
    pub trips: &'static str,
}

use Kind as K;
use Phase as P;

macro_rules! checks {
    ($( $id:literal $name:literal $says:literal, $sources:literal, [$($kind:ident)*], [$($phase:ident)+], $trips:literal; )*) => {
        /// All checks, safety first.
        pub static CHECKS: &[CheckInfo] = &[ $( CheckInfo {
            id: $id, name: $name, statement: $says, sources: $sources,
            kinds: &[$(K::$kind),*], phases: &[$(P::$phase),+], trips: $trips,
        } ),* ];
    };
}

checks! {
    "S0" "own assertions" "No process stops on a broken assertion of its own.", "design section 2, verdicts",
        [Exited], [Event], "any Effect::Exit(Broken)";
    "S1" "valid log" "Batches of a log are contiguous or gap where the source's do, do not overlap, and have valid CRCs.", "catalogue S1",
        [Appended], [Event Quiet], "FetchOffsetMatches and AppendStartsAtEnd off; a batch left out or damaged on disk";
    "S2" "log matching" "Two replicas are equal below both watermarks, and below any batch of the same epoch.", "catalogue S2; TLA+ LogMatching",
        [BecameLeader LogRecovered], [Election Quiet], "ReconcileByEpoch, DivergenceCuts, BarrierAfterMirrorCut off; a batch exchanged on one replica";
    "S3" "leader completeness" "A leader holds everything committed, and every record acknowledged with acks=all.", "catalogue S3; TLA+ LeaderCompleteness",
        [BecameLeader], [Election], "ReconcileByEpoch, WatermarkNeedsMinIsr, MaximalIsr off; ISR growth without a check of positions";
    "S4" "candidate completeness" "Every ISR and ELR member that is up holds everything committed.", "catalogue S4; TLA+ LeaderCandidateCompleteness, StrongIsr",
        [BecameLeader Truncated], [Event Election Quiet], "ReconcileByEpoch (a follower cuts to its watermark), IsrGrowthNeedsPosition off";
    "S5" "quorum superset" "A watermark moves only over what every maximal-ISR member really holds, with an ISR that is large enough.", "catalogue S5; KIP-497, KIP-966; TLA+ ReplicationQuorumSuperset",
        [HighWatermarkMoved FollowerPosition IsrProposed IsrCommitted], [Event], "MaximalIsr, PositionsResetInNewEpoch, WatermarkNeedsMinIsr off";
    "S6" "no global loss" "Every acknowledged record is on some replica, unless an ordered cut, retention or an excuse took it.", "catalogue S6; TLA+ NoCommittedRecordLostGlobally",
        [Truncated], [Event Final], "DivergenceNeedsSupport off; all replicas cut";
    "S7" "watermarks" "A leader's watermark never falls within its epoch, and no watermark is above its log end.", "catalogue S7",
        [HighWatermarkMoved], [Event Quiet], "HighWatermarkWithinLog off";
    "S8" "repeatable read" "What a consumer read is what the leader has there, now and later.", "catalogue S8; TLA+ ConsistentRead",
        [Read], [Event], "a fetch served above the watermark; a batch exchanged under a reader";
    "S9" "epochs in the log" "Epochs of a log never fall, and the epoch table is the one its batches give.", "catalogue S9; KIP-101",
        [Appended], [Event Election Quiet], "MirrorLeaderKeepsSourceEpochs, EpochStartAssigned off; an entry left after a cut";
    "S10" "one writer per epoch" "In each leader epoch one broker writes, the one that the controller named; one mirror fetcher runs, at the leader.", "catalogue S10",
        [Appended BecameLeader MirrorFetcherAdded], [Event], "MirrorLeaderOnly off; two elections in one epoch";
    "S11" "no acknowledged zombie write" "acks=all acknowledges only what is committed.", "catalogue S11",
        [Acked], [Event], "AcksAllWaits, DeposedLeaderRefuses off";
    "S12" "membership" "ISR and ELR are disjoint sets of replicas, with the leader in the ISR and no fenced newcomer; brokers of this cluster are let in, once they know of their registration.", "catalogue S12; KIP-78, KIP-631, KIP-841, KIP-903, KIP-966",
        [PartitionChanged BrokerFenced Registered], [Event], "the controller's guards of registrations and AlterPartition off";
    "S13" "metadata" "What a broker or voter applied is a prefix of what was committed; a majority has that, nobody cuts it, and one controller leads per epoch.", "catalogue S13; TLA+ MetadataLogMatching, ElectionSafety, LeaderCompleteness; KIP-595",
        [MetadataApplied MetadataCommitted MetadataReplicated MetadataTruncated QuorumLed VoteGranted], [Event], "an observer that skips or repeats a record; the quorum's guards of votes and commits off";
    "S14" "unclean exclusion" "After a lossy stop a replica is in no candidate set until it caught up.", "catalogue S14; KIP-966",
        [PartitionChanged Registered], [Event], "CleanShutdownChecked off; ISR growth without a check of positions";
    "S15" "recovery" "A restarted log is a prefix of what it was, at least what was durable; a killed process loses nothing.", "catalogue S15",
        [LogRecovered], [Event], "recovery that cuts too much, or trusts a stale clean marker";
    "S16" "idempotence" "Sequences of a producer are consecutive, and its records in order, each once; the record at an acknowledged offset is the acknowledged one.", "catalogue S16; KIP-98, KIP-360",
        [Acked Nacked], [Event Quiet], "SequenceChecked off; a write that is swallowed";
    "S17" "producer table" "The producer table is the fold of the log after every restart and cut.", "catalogue S17",
        [LogRecovered Truncated], [Election Quiet], "PidResetAppliedOnLoad, PidResetAppliedOnAppend off; a snapshot that outlives a cut";
    "S18" "transaction atomicity" "All partitions of a transaction end with the decision that its producer was told; records stay in their transaction.", "catalogue S18; KIP-98",
        [Read TxnEnded], [Event Quiet], "MarkersAfterDecision off; a marker exchanged in one partition";
    "S19" "stable offset" "The last stable offset is the first open transaction's; a read-committed reader gets exactly what is committed below it.", "catalogue S19; KIP-98",
        [Read PositionReset], [Event Quiet], "ReadCommittedBelowStable, AbortedSkipped off";
    "S20" "markers" "One marker follows the batches of a transaction, caused by a decision on it, and no batch of it follows.", "catalogue S20; KIP-98, KIP-890",
        [Read TxnDecided], [Event Quiet], "EndAfterRecords, OwnAbortFencesProducer, InitEndsOpenTransaction off";
    "S21" "log start" "A log start never falls and stays within what is committed.", "catalogue S21; KAFKA-14190 family",
        [LogStartMoved], [Event], "a log start above the watermark";
    "S22" "visible ends" "The end that a client is told never falls.", "catalogue S22; KIP-207",
        [ToldEnd], [Event], "ListOffsets that answers before the epoch's first commit";
    "S30" "mirror equality" "Mirrored batches equal the source's in offset, epoch and bytes; what was gone before it was copied is told.", "catalogue S30; KIP-1279; decision 40",
        [Mirrored LogStartMoved], [Event Quiet], "DivergenceCuts, MirrorReportsGap off";
    "S31" "origin" "Mirrored batches come from the configured source, from below its watermark, and are of the epoch that they were asked for in, or of an earlier one.", "catalogue S31; M06, M08",
        [Appended Mirrored], [Event], "UnknownLeaderEpochBacksOff, SourceEpochMonotone, BatchEpochWithinSourceEpoch off";
    "S32" "read-only" "No producer's batch enters a mirrored partition before STOPPED is committed, no mirrored batch a stopped one.", "catalogue S32",
        [Appended], [Event], "MirrorTopicReadOnly off";
    "S33" "fence at stop" "A fetcher that let a partition go appends no more, and nobody does behind the end that a stop noted.", "catalogue S33",
        [Appended Mirrored MirrorFetcherAdded MirrorFetcherRemoved], [Event], "MirrorLeaderOnly, StopEndsFetching off";
    "S34" "epoch floor" "The leader epoch here is never below a mirrored batch's, and local batches are above the mirrored ones.", "catalogue S34; spec 3.3",
        [Appended], [Event], "EpochBumpBeforeAppend off";
    "S35" "exact cut" "A log that is about to be mirrored into is what both logs have in common, all of it; nothing, if no end of a session is known.", "catalogue S35; spec 3.6, 3.7; decisions 6, 8, 27",
        [MirrorStateChanged], [Event], "SilenceIsNotNone, PositionEpochCuts, PositionOffsetCuts, AlignmentRepeatsEpochs off";
    "S36" "barrier" "Nothing is copied behind a cut before the maximal ISR follows it.", "catalogue S36; spec 3.7; decision 31",
        [MirrorStateChanged Mirrored Truncated], [Event], "BarrierAfterMirrorCut, BarrierNeedsPosition off";
    "S37" "state machine" "Committed states follow one another as the table says, with growing epochs, written and acted on by one leader per epoch.", "catalogue S37; spec 2.2; decisions 10, 11, 28",
        [HighWatermarkMoved MirrorStateChanged MirrorFetcherAdded], [Event], "StateTransitionLegal, StateEpochFenced, StateLeaderEpochFenced off";
    "S38" "durable states" "What a broker does for a state it does after that was committed; a coordinator serves what the committed log comes to.", "catalogue S38; spec 2.4, 7.5; decision 32",
        [HighWatermarkMoved MirrorStateChanged MirrorFetcherAdded MirrorStatesLoaded Truncated], [Event], "a state that is acted on before it is committed; a load that skips records";
    "S39" "position" "The last mirrored position is noted once per stop, before anything local, and says where mirroring ended.", "catalogue S39; D-4, D-24; decision 7",
        [HighWatermarkMoved Appended], [Event], "StopNotesPositionFirst off; a position that counts local records";
    "S40" "producer reset" "A partition that becomes STOPPED ends in a producer reset above the mirrored epochs, and knows no mirrored producer.", "catalogue S40; spec 5.3; decision 13",
        [MirrorStateChanged Appended], [Event], "StopResetsBeforeStopped, StopBumpsBeforeMarkers off";
    "S41" "no open transaction" "A partition that becomes STOPPED has a marker for each transaction that was open, on all in-sync replicas.", "catalogue S41; spec 5.2; decision 13",
        [MirrorStateChanged BecameLeader], [Event], "StopMarksBeforeReset off; a marker that is not replicated";
    "S42" "isolation" "Steps of a mirror concern its own topics only.", "catalogue S42",
        [MirrorStateChanged MirrorFetcherAdded Mirrored Truncated], [Event], "a fetcher of another mirror's source; a cut of a topic without mirror";
    "S46" "topics" "A mirror topic has its source's id.", "catalogue S46; spec 1.9",
        [Mirrored], [Event], "SourceTopicIdMatches off";
    "S47" "no loop" "Partitions that copy from one another make no circle.", "catalogue S47; spec 1.7; decision 26",
        [MirrorStateChanged], [Event Quiet], "LoopIsRefused off";
    "S48" "source identity" "A session copies from one cluster, of the recorded id.", "catalogue S48; Y10; decision 4",
        [Mirrored], [Event Quiet], "SourceClusterIdMatches off";
    "S49" "desired rules" "STOPPED and PAUSED are left only after a newer order; nothing is cut, fetched, bumped or refused in the meantime, and what is copied or held is not deleted.", "catalogue S49; decisions 3, 4, 5; BAD-14",
        [HighWatermarkMoved MirrorOrdered TopicRemoved MirrorFetcherAdded Truncated BumpRequested MirrorGrew ReadOnlyRefused], [Event], "a sync that touches what is stopped (D-2, D-3)";
    "S50" "honest lag" "A lag that is told is not below what it truly was.", "catalogue S50; decisions 19, 39; E-1, E-2",
        [MirrorFetcherAdded], [Event Quiet], "DivergenceNeedsSupport off with a source that lost records";
    "S51" "legal compaction" "Compaction leaves the last record of each key as it was, tombstones for their retention, and brings nothing back.", "KIP-534; Kafka LogCleaner; D10, T09",
        [CleaningBegun Cleaned BecameLeader], [Event Election Quiet], "KeepsLastOfKey, KeepsTombstonesForRetention, CleansBelowHighWatermark off; a record exchanged in a compacted part";
    "S52" "undisturbed quorum" "No voter raises the epoch while a majority of the others has its leader.", "KIP-996",
        [QuorumLed], [Event], "PreVoteFirst off and a voter that was cut off";
    "L1" "decided" "Every sent value ends acknowledged, refused or undecided.", "catalogue L1", [], [Liveness], "a producer that forgets a batch; AcksAllWaits without an end";
    "L2" "everywhere" "Every acknowledged value reaches every replica.", "catalogue L2", [], [Liveness], "a follower that stops fetching";
    "L3" "registered" "Every broker that is up gets registered and unfenced.", "catalogue L3", [], [Liveness], "heartbeats that are not answered";
    "L4" "leaders" "Every partition with an eligible replica has a live leader that knows it.", "catalogue L4", [], [Liveness], "an election that is forgotten";
    "L5" "in sync" "The ISR is all live replicas, and no change of it stays pending.", "catalogue L5", [], [Liveness], "IsrAnswerClearsFlight off";
    "L6" "watermark" "The watermark reaches the log end.", "catalogue L6", [], [Liveness], "a watermark that is not looked at after an ISR change";
    "L7" "stable" "With no open transaction at a client, the last stable offset reaches the watermark.", "catalogue L7", [], [Liveness], "ProduceAfterAdd, TransactionsTimeOut, PreparedTakenUp, MarkersRetried off; a stop without abort markers";
    "L8" "mirrored" "With the source idle the mirror has everything.", "catalogue L8", [], [Liveness], "UnknownLeaderEpochBacksOff, FetcherFollowsSourceLeader, MissedPartitionIsRetried off";
    "L9" "no transient state" "No mirrored partition stays in a state that awaits something.", "catalogue L9; decision 12", [], [Liveness], "EveryBumpRemembered off; a wait without an end";
    "L10" "desired" "The actual state reaches the desired one, the last stop included, whatever it was answered.", "catalogue L10; D-1; decision 1", [], [Liveness], "OrderNeedsExactState on; DeletionNeedsProof off";
    "L11" "retried" "A retryable failure of a mirror returns to work.", "catalogue L11", [], [Liveness], "EveryBumpRemembered off; a retry timer that is lost";
    "L13" "consumers" "Every consumer reads everything before it.", "catalogue L13", [], [Liveness], "a redirect loop; a session error without end";
    "L14" "metadata" "Every broker applies all committed metadata; a mirror topic has its source's partitions.", "catalogue L14, S46; spec 6.3", [], [Liveness], "an observer that stops asking; a sync that sees no growth";
    "L16" "bad neighbours" "A partition that is bad for good does not stop others of its mirror.", "catalogue L16; decision 2", [], [Liveness], "OneBadTopicRefusesAll on; a request that fails as a whole";
    "L17" "quorum" "Every controller that is up follows the one that leads, or leads.", "catalogue L17; KIP-595, KIP-996; TLA+ NotStuckInProspective, EventuallyLeaderElected", [], [Liveness], "ProspectiveLearnsLeader, ResignWithoutMajority off";
    "L18" "absence" "Absence is harmless: a run in which one node is down when a decision commits ends in the same state as the run without.", "catalogue L18; decision 41", [], [Final], "PreparedTakenUp, WholeDelta off in runs that pass otherwise (`mirrorlab absence`)";
    "L19" "time" "No node runs without end at one instant.", "catalogue L19", [], [Liveness], "a lane that wakes itself";
}

/// One check by id.
#[must_use]
pub fn explain(id: &str) -> Option<&'static CheckInfo> {
    CHECKS.iter().find(|c| c.id == id)
}
