//! What a checker may see: trace events, and read-only the state of any node and disk. Never the guard registry.
//!
//! The checks are written against this trait and not against the world, so that each can be shown a small hand-made world
//! in which something is broken on purpose.

use mirrorlab_model::ids::{
    BrokerEpoch, BrokerId, LeaderEpoch, MirrorIx, Nanos, NodeId, Offset, PartitionEpoch, PartitionIx,
};
use mirrorlab_model::log::{EpochEntry, ProducerStates};
use mirrorlab_model::metadata::image::MetadataImage;
use mirrorlab_model::mirror::records::StateKey;
use mirrorlab_model::ports::Lane;
use mirrorlab_model::states::{DesiredState, MirrorState, StateRecord};
use mirrorlab_model::trace::TraceEvent;
use smallvec::SmallVec;
use std::sync::Arc;

/// A sum of hashes of batches, modulo 2^128: equal sums over equally many batches mean equal content.
pub type Sum = u128;

/// One replica's log with its batches on disk. Every batch is one append of a segment file.
pub trait LogSight: Copy {
    /// Names where a segment is stored.
    type Lineage: PartialEq;

    /// First offset that may be read.
    fn start(self) -> Offset;
    /// The offset after the last record.
    fn end(self) -> Offset;
    /// The high watermark as this replica knows it.
    fn high_watermark(self) -> Offset;
    /// The last stable offset.
    fn last_stable(self) -> Offset;
    /// Below this a power loss takes nothing.
    fn recovery_point(self) -> Offset;
    /// The table of leader epochs.
    fn epochs(&self) -> &[EpochEntry];
    /// The producer table.
    fn producers(&self) -> &ProducerStates;
    /// How many segments there are; the last one is appended to.
    fn segments(self) -> usize;
    /// Base offset of a segment.
    fn base(self, segment: usize) -> Offset;
    /// How many batches a segment holds.
    fn batches(self, segment: usize) -> u32;
    /// The bytes of a batch.
    fn batch(&self, segment: usize, at: u32) -> &[u8];
    /// The sum over the first `batches` batches of a segment.
    fn sum(self, segment: usize, batches: u32) -> Sum;
    /// Where a segment is stored. Of two in the same place, the shorter one is a prefix of the longer one.
    fn lineage(self, segment: usize) -> Option<Self::Lineage>;
}

/// What a leader believes of its followers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderSight {
    /// The replica list that masks refer to.
    pub replicas: SmallVec<[BrokerId; 4]>,
    /// Committed ISR, a bit per position in `replicas`.
    pub isr: u32,
    /// Proposed ISR.
    pub proposed: u32,
    /// A proposal is not answered.
    pub in_flight: bool,
}

/// One replica.
#[derive(Clone, Copy, Debug)]
pub struct ReplicaSight<L> {
    /// Its log.
    pub log: L,
    /// Whether it leads, as it believes.
    pub leads: bool,
    /// The leader epoch it lives in.
    pub leader_epoch: LeaderEpoch,
    /// The partition epoch it knows.
    pub partition_epoch: PartitionEpoch,
    /// Its log failed.
    pub offline: bool,
}

/// A batch that rotted on a replica's disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RotSight {
    /// Its first offset, as it was written.
    pub from: Offset,
    /// After its last one.
    pub to: Offset,
    /// Who reads from below here may meet it: what tells how long it is has rotted as well, and with that where the next one begins.
    pub holds: Offset,
}

/// A mirrored partition at its leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MirrorSight {
    /// Its mirror.
    pub mirror: MirrorIx,
    /// What it does.
    pub state: MirrorState,
    /// Its number among the committed states, as the coordinator told; −1 while nothing was told.
    pub state_epoch: i32,
    /// A fetcher holds it.
    pub fetching: bool,
    /// The source leader's epoch in which the source last answered its fetcher; −1: not yet.
    pub source_epoch: LeaderEpoch,
    /// What it waits for has an end, whatever comes.
    pub bounded: bool,
    /// FAILED: it is to be tried again without an operator.
    pub retries: bool,
    /// FAILED: when.
    pub retry_at: Option<Nanos>,
    /// What an operator would be told: records that the source has and the mirror has not; `None`: unknown.
    pub lag: Option<i64>,
    /// The source's watermark that the lag is computed from; −1: none.
    pub source_hw: Offset,
}

/// A producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerSight {
    /// Records taken and not decided.
    pub open: u64,
    /// Nothing more will come.
    pub idle: bool,
    /// When whatever is open has timed out, if that is still to come.
    pub decided_by: Option<Nanos>,
}

/// A consumer's position in one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionSight {
    /// Which partition.
    pub partition: PartitionIx,
    /// Next offset to read; −1 before it is known.
    pub offset: Offset,
    /// It was given up for want of a reset policy.
    pub given_up: bool,
    /// It reads up to the last stable offset only.
    pub read_committed: bool,
}

/// A controller as a voter of its quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoterSight {
    /// Its epoch.
    pub epoch: LeaderEpoch,
    /// Whom it follows, itself if it leads; `None`: it looks for a leader, or waits for one.
    pub follows: Option<NodeId>,
    /// It has no vote: its disk was replaced.
    pub is_observer: bool,
    /// What it waits for, for people.
    pub state: &'static str,
    /// It applied everything below.
    pub committed: i64,
    /// For how long it has heard its leader, or led, if nothing but another's epoch took it from there.
    pub attached: Option<Nanos>,
    /// How long ago it first raised the epoch since it last heard a leader, or led.
    pub stood: Option<Nanos>,
}

/// A world, read-only.
pub trait Sight {
    /// A log of it.
    type Log<'s>: LogSight
    where
        Self: 's;

    /// Simulated time.
    fn now(&self) -> Nanos;
    /// Number of the present event.
    fn step(&self) -> u64;
    /// What the last step traced.
    fn trace(&self) -> &[TraceEvent];
    /// Whether a node's process runs and is not paused.
    fn is_up(&self, node: NodeId) -> bool;
    /// The metadata that a cluster's controller committed, while one is up.
    fn image(&self, cluster: u8) -> Option<&MetadataImage>;
    /// The metadata that a broker applied.
    fn broker_image(&self, node: NodeId) -> Option<&MetadataImage>;
    /// Whether nothing is in the way between two nodes, either way.
    fn is_reachable(&self, from: NodeId, to: NodeId) -> bool;
    /// A controller that runs, as a voter.
    fn voter(&self, node: NodeId) -> Option<VoterSight>;
    /// The metadata log of a controller that runs.
    fn metadata_log(&self, node: NodeId) -> Option<Self::Log<'_>>;
    /// A broker that is up is of a release that answers no question of mirrors.
    fn knows_no_mirrors(&self, node: NodeId) -> bool;
    /// A broker's registration as it knows it.
    fn broker_epoch(&self, node: NodeId) -> Option<BrokerEpoch>;
    /// A replica in a running broker.
    fn replica(&self, node: NodeId, partition: PartitionIx) -> Option<ReplicaSight<Self::Log<'_>>>;
    /// What rotted of a replica's log and stands there still; of a broker that is down as well. Its log is
    /// shown as it was written.
    fn rotten(&self, node: NodeId, partition: PartitionIx) -> Vec<RotSight>;
    /// What a running broker believes as leader.
    fn leader(&self, node: NodeId, partition: PartitionIx) -> Option<LeaderSight>;
    /// All partitions that a running broker hosts.
    fn hosted(&self, node: NodeId) -> Vec<PartitionIx>;
    /// A mirrored partition at the broker that leads it.
    fn mirror(&self, node: NodeId, partition: PartitionIx) -> Option<MirrorSight>;
    /// The states that a broker serves as coordinator of a partition of `__mirror_state`.
    fn states(&self, node: NodeId, partition: PartitionIx) -> Option<Vec<(StateKey, StateRecord)>>;
    /// The id of a running broker's cluster.
    fn cluster_id(&self, node: NodeId) -> Option<Arc<str>>;
    /// What an operator wanted last of a topic of a mirror, of what was sent, however that was answered; and whether another order
    /// waits behind earlier ones.
    fn wanted(&self, cluster: u8, mirror: &str, topic: &str) -> (Option<DesiredState>, bool);
    /// How often an operator ordered that what failed of a topic of a mirror go on.
    fn recoveries(&self, cluster: u8, mirror: &str, topic: &str) -> usize;
    /// When the last of these orders was sent that was answered as done.
    fn recovered(&self, cluster: u8, mirror: &str, topic: &str) -> Option<Nanos>;
    /// A producer by number.
    fn producer(&self, number: u32) -> Option<ProducerSight>;
    /// A consumer's positions by number.
    fn positions(&self, number: u32) -> Option<Vec<PositionSight>>;
    /// Who keeps simulated time from going on.
    fn stuck(&self) -> Option<(NodeId, Lane)>;
}
