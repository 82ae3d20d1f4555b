//! What happened, as fixed-size values: the source of the trace hash, of the checkers and of the counts in the summary.
//!
//! An event says where to look; state and bytes say what is there. Time and event number are added by the world.

use crate::ids::{
    BrokerId, LeaderEpoch, MirrorIx, NodeId, Offset, PartitionEpoch, PartitionIx, ProducerEpoch, ProducerId, TopicIx,
};
use crate::states::{DesiredState, MirrorState};

/// Who a batch came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// A producer, through the leader.
    Client,
    /// The leader of the same cluster, through a replica fetcher.
    Replication,
    /// The source cluster, through a mirror fetcher.
    Mirror,
    /// A coordinator: markers, resets, state records.
    Coordinator,
}

/// Why a log was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CutCause {
    /// A follower found its log diverging from its leader's.
    Divergence,
    /// A mirror leader found its log diverging from the source's.
    MirrorDivergence,
    /// The alignment before mirroring.
    Alignment,
    /// The source's (or leader's) log starts above, or ends below, ours.
    OutOfRange,
    /// Recovery after an unclean stop.
    Recovery,
}

impl CutCause {
    /// In a message.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Divergence => "divergence from its leader",
            Self::MirrorDivergence => "divergence from its source",
            Self::Alignment => "alignment",
            Self::OutOfRange => "offset out of range",
            Self::Recovery => "recovery",
        }
    }
}

/// Why the controller chose a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ElectionKind {
    /// From the in-sync replicas.
    Clean,
    /// From the eligible leader replicas (KIP-966).
    Eligible,
    /// The preferred replica took over.
    Preferred,
    /// Outside both sets: data may be lost.
    Unclean,
}

impl ElectionKind {
    /// In a message.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Eligible => "from the ELR",
            Self::Preferred => "preferred",
            Self::Unclean => "unclean",
        }
    }
}

/// How a transaction ended, as its producer was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TxnOutcome {
    /// Committed.
    Committed,
    /// Aborted.
    Aborted,
    /// It was fenced, or stopped asking: a coordinator decides without it.
    Unknown,
}

impl TxnOutcome {
    /// In a message.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Aborted => "aborted",
            Self::Unknown => "unknown",
        }
    }
}

/// One thing that happened at one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceEvent {
    /// Where.
    pub node: NodeId,
    /// What.
    pub trace: Trace,
}

/// What happened. Partitions are indices of the node's own cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the fields are named after what they are; each variant says what happened
pub enum Trace {
    // -- logs
    /// A batch (or several of one epoch and origin, back to back) was appended; `base..next` are its offsets.
    Appended {
        partition: PartitionIx,
        origin: Origin,
        base: Offset,
        next: Offset,
        epoch: LeaderEpoch,
        leader_epoch: LeaderEpoch,
        bytes: u32,
    },
    /// A log was cut to `to`; it ended at `from`.
    Truncated { partition: PartitionIx, from: Offset, to: Offset, cause: CutCause },
    /// The log start rose.
    LogStartMoved { partition: PartitionIx, to: Offset },
    /// The high watermark of a replica changed. `leader` tells whose.
    HighWatermarkMoved { partition: PartitionIx, from: Offset, to: Offset, leader: bool },
    /// A replica's log was loaded at boot: what it holds, and whether the last stop was clean.
    LogRecovered { partition: PartitionIx, start: Offset, end: Offset, clean: bool },
    /// A log is about to be compacted up to `to`, by this wall clock: whatever a crash leaves of it from now on may be.
    CleaningBegun { partition: PartitionIx, to: Offset, at_ms: i64 },
    /// A log was compacted: there was nothing clean from `from` on, now it is clean up to `to`; by this wall clock.
    Cleaned { partition: PartitionIx, from: Offset, to: Offset, at_ms: i64 },
    /// A segment was closed and a new one opened at `base`.
    Rolled { partition: PartitionIx, base: Offset },
    // -- roles
    /// This broker leads now.
    BecameLeader { partition: PartitionIx, epoch: LeaderEpoch, partition_epoch: PartitionEpoch, epoch_start: Offset },
    /// This broker follows now.
    BecameFollower { partition: PartitionIx, epoch: LeaderEpoch, leader: BrokerId },
    /// The replica was removed here.
    ReplicaRemoved { partition: PartitionIx },
    /// The leader asked for another ISR (a bit per position in the replica list).
    IsrProposed { partition: PartitionIx, isr: u32, partition_epoch: PartitionEpoch },
    /// The leader learnt its committed ISR.
    IsrCommitted { partition: PartitionIx, isr: u32, partition_epoch: PartitionEpoch },
    // -- replication
    /// A follower's position became known to the leader.
    FollowerPosition { partition: PartitionIx, follower: BrokerId, position: Offset },
    /// A fetch of a follower or mirror was answered "diverging".
    Diverged { partition: PartitionIx, epoch: LeaderEpoch, end: Offset },
    // -- clients
    /// A producer sent records; `seq` numbers its records.
    Sent { partition: PartitionIx, producer: u32, first: u64, count: u32 },
    /// A produce was acknowledged with its offset.
    Acked { partition: PartitionIx, producer: u32, first: u64, count: u32, base: Offset, acks: i16 },
    /// A produce was refused for good (nothing was written by it).
    Nacked { partition: PartitionIx, producer: u32, first: u64, count: u32, error: i16 },
    /// A produce ended undecided: it may or may not be in the log.
    Undecided { partition: PartitionIx, producer: u32, first: u64, count: u32 },
    /// A consumer was handed records `base..next`; `hash` is over their bytes.
    Read { partition: PartitionIx, consumer: u32, base: Offset, next: Offset, hash: u64 },
    /// A client was told the end of a partition.
    ToldEnd { partition: PartitionIx, client: u32, end: Offset },
    /// A consumer's position jumped by its reset policy, or by a detected truncation.
    PositionReset { partition: PartitionIx, consumer: u32, from: Offset, to: Offset },
    // -- broker life
    /// A broker got its registration.
    Registered { broker: BrokerId, epoch: i64, clean: bool },
    /// A broker applied the metadata log up to here (exclusive).
    MetadataApplied { end: i64, hash: u64 },
    // -- controller
    /// The controller appended metadata records up to here (exclusive).
    MetadataCommitted { end: i64, hash: u64 },
    /// The controller changed a partition.
    PartitionChanged {
        partition: PartitionIx,
        leader: BrokerId,
        epoch: LeaderEpoch,
        partition_epoch: PartitionEpoch,
        isr: u32,
        elr: u32,
    },
    /// The controller elected a leader.
    Elected { partition: PartitionIx, leader: BrokerId, epoch: LeaderEpoch, kind: ElectionKind },
    /// The controller fenced a broker, or let it in again.
    BrokerFenced { broker: BrokerId, fenced: bool },
    /// An order about a mirror's topic was committed; UNKNOWN: it belongs to no mirror any more. `again`: that was wanted already.
    MirrorOrdered { topic: TopicIx, desired: DesiredState, again: bool },
    /// The removal of a topic was committed; `desired` is what was wanted of it until then, UNKNOWN if it belonged to no mirror.
    TopicRemoved { topic: TopicIx, desired: DesiredState },
    // -- mirroring
    /// A partition's mirror state changed at its leader.
    MirrorStateChanged { partition: PartitionIx, mirror: MirrorIx, from: MirrorState, to: MirrorState, attempt: i16 },
    /// A mirrored partition's state is committed in `__mirror_state`.
    MirrorStateCommitted { partition: PartitionIx, state: MirrorState, leader_epoch: LeaderEpoch, state_epoch: i32 },
    /// A last mirrored position is committed there; −1, −1: there is none any more.
    MirrorPositionCommitted { partition: PartitionIx, epoch: LeaderEpoch, offset: Offset },
    /// A state was removed there, with its mirror or topic.
    MirrorStateRemoved { partition: PartitionIx },
    /// A coordinator read its partition of `__mirror_state` up to here, all of that is committed, and it serves from now on.
    MirrorStatesLoaded { partition: PartitionIx, end: Offset },
    /// A mirror fetcher took up a partition from this source broker, at this offset and source epoch.
    MirrorFetcherAdded { partition: PartitionIx, source: NodeId, offset: Offset, epoch: LeaderEpoch },
    /// A mirror fetcher let a partition go.
    MirrorFetcherRemoved { partition: PartitionIx, source: NodeId },
    /// A mirrored batch was appended; where it came from, and the epoch of the source in which it was asked for.
    Mirrored {
        partition: PartitionIx,
        source: NodeId,
        source_partition: PartitionIx,
        base: Offset,
        next: Offset,
        source_hw: Offset,
        source_epoch: LeaderEpoch,
        bytes: u32,
    },
    /// The mirror leader asked the controller for an epoch above `min`.
    BumpRequested { partition: PartitionIx, min: LeaderEpoch },
    /// A mirror's coordinator asked for more partitions of a topic: so many as the source has.
    MirrorGrew { topic: TopicIx, partitions: u32 },
    /// Records that the source's retention removed before they were mirrored: `from..to` (decision 40).
    MirrorGap { partition: PartitionIx, from: Offset, to: Offset },
    /// What this mirror leader would tell an operator: lag in records, −1 for unknown.
    MirrorLag { partition: PartitionIx, lag: i64, source_hw: Offset },
    /// A client's batch was refused because the topic is read-only.
    ReadOnlyRefused { partition: PartitionIx, producer: ProducerId },
    // -- transactions
    /// A producer began a transaction; its records count from `first` on.
    TxnBegun { producer: u32, first: u64 },
    /// A producer knows how its transaction of the records `first..next` ended, or gives up to know it.
    TxnEnded { producer: u32, first: u64, next: u64, outcome: TxnOutcome },
    /// A coordinator's decision is committed in its log.
    TxnDecided { producer: ProducerId, epoch: ProducerEpoch, coordinator_epoch: LeaderEpoch, commit: bool },
    /// That all markers of a decision are written is committed there.
    TxnCompleted { producer: ProducerId, epoch: ProducerEpoch, commit: bool },
    /// A coordinator aborts a transaction that was open for too long, under this epoch.
    TxnTimedOut { producer: ProducerId, epoch: ProducerEpoch },
    // -- quorum of controllers
    /// A controller leads the quorum in this epoch: that is on its disk, and nothing is written yet.
    QuorumLed { epoch: LeaderEpoch },
    /// It leads no more; the epoch it is in now.
    QuorumLost { epoch: LeaderEpoch },
    /// A voter's vote left for the candidate.
    VoteGranted { epoch: LeaderEpoch, candidate: NodeId },
    /// A voter applied what its leader calls committed, up to here (exclusive).
    MetadataReplicated { end: i64, hash: u64 },
    /// A voter's log gave way to a snapshot of its leader's that ends here.
    SnapshotInstalled { end: i64 },
    /// A voter cuts its log, which parts from its leader's; it applied everything below `committed`.
    MetadataTruncated { to: i64, committed: i64 },
    // -- damage
    /// Bytes that should be a batch at this offset are none, or its CRC does not match: whoever tells this took nothing from there
    /// on. It may be another replica's, or the source's, that is damaged.
    CorruptFound { partition: PartitionIx, at: Offset },
}
