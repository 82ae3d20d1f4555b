//! Requests and responses, as values. Names and fields follow Kafka's schemas; what differs is said at the field.
//!
//! Three things keep the hot ones cheap: partitions go by [`PartitionIx`] of the *serving* cluster (a codec turns it into
//! topic id and number, which the metadata image maps both ways); fetch sessions name their partitions by a `slot` that the
//! fetching side chose; a fetch answer is two flat arrays, entries and batches.

use crate::ids::{
    BrokerEpoch, BrokerId, LeaderEpoch, MetadataOffset, NodeId, Offset, PartitionEpoch, PartitionIx, ProducerEpoch,
    ProducerId, TopicId,
};
use crate::wire::errors::ErrorCode;
use bytes::Bytes;
use std::sync::Arc;

pub use crate::wire::mirrors::*;
pub use crate::wire::quorum::*;
pub use crate::wire::transactions::*;

/// A request or response on a connection; the response carries the request's correlation id.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Chosen by the requester, unique per connection.
    pub correlation: u32,
    /// What is asked or answered.
    pub body: Body,
}

macro_rules! bodies {
    ($( $(#[$doc:meta])* $name:ident, $answer:ident );* $(;)?) => {
        /// Everything that is ever sent.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)] // each variant holds the type of its name
        pub enum Body { $( $(#[$doc])* $name(Box<$name>), $answer(Box<$answer>) ),* }
        $(
            impl From<$name> for Body { fn from(value: $name) -> Self { Self::$name(Box::new(value)) } }
            impl From<$answer> for Body { fn from(value: $answer) -> Self { Self::$answer(Box::new(value)) } }
        )*
        impl Body {
            /// All names, in the order of this file.
            pub const NAMES: &'static [&'static str] = &[ $( stringify!($name), stringify!($answer) ),* ];
            /// The type's name, for logs.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $( Self::$name(_) => stringify!($name), Self::$answer(_) => stringify!($answer) ),* }
            }
            /// Whether it asks (true) or answers (false).
            #[must_use]
            pub const fn is_request(&self) -> bool {
                match self { $( Self::$name(_) => true, Self::$answer(_) => false ),* }
            }
        }
    };
}

bodies! {
    /// API 0.
    ProduceRequest, ProduceResponse;
    /// API 1.
    FetchRequest, FetchResponse;
    /// API 2.
    ListOffsetsRequest, ListOffsetsResponse;
    /// API 3.
    MetadataRequest, MetadataResponse;
    /// API 23.
    OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse;
    /// API 22.
    InitProducerIdRequest, InitProducerIdResponse;
    /// API 1 on the metadata log (KIP-595).
    RaftFetchRequest, RaftFetchResponse;
    /// API 52 (KIP-595, 996).
    VoteRequest, VoteResponse;
    /// API 53 (KIP-595).
    BeginQuorumEpochRequest, BeginQuorumEpochResponse;
    /// API 54 (KIP-595).
    EndQuorumEpochRequest, EndQuorumEpochResponse;
    /// API 59 (KIP-630).
    FetchSnapshotRequest, FetchSnapshotResponse;
    /// API 62 (KIP-631).
    BrokerRegistrationRequest, BrokerRegistrationResponse;
    /// API 63 (KIP-631).
    BrokerHeartbeatRequest, BrokerHeartbeatResponse;
    /// API 56 (KIP-497).
    AlterPartitionRequest, AlterPartitionResponse;
    /// API 67 (KIP-730).
    AllocateProducerIdsRequest, AllocateProducerIdsResponse;
    /// API 19, v8 with the mirror's topic id.
    CreateTopicsRequest, CreateTopicsResponse;
    /// API 20.
    DeleteTopicsRequest, DeleteTopicsResponse;
    /// API 37.
    CreatePartitionsRequest, CreatePartitionsResponse;
    /// API 44.
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse;
    /// API 43.
    ElectLeadersRequest, ElectLeadersResponse;
    /// API 21.
    DeleteRecordsRequest, DeleteRecordsResponse;
    /// API 8, for a consumer without group membership.
    OffsetCommitRequest, OffsetCommitResponse;
    /// API 9.
    OffsetFetchRequest, OffsetFetchResponse;
    /// API 10.
    FindCoordinatorRequest, FindCoordinatorResponse;
    /// API 24.
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse;
    /// API 26.
    EndTxnRequest, EndTxnResponse;
    /// API 27.
    WriteTxnMarkersRequest, WriteTxnMarkersResponse;
    /// API 94 (KIP-1279, provisional).
    CreateClusterMirrorRequest, CreateClusterMirrorResponse;
    /// API 95 (KIP-1279, provisional).
    StartMirrorTopicsRequest, StartMirrorTopicsResponse;
    /// API 96 (KIP-1279, provisional, like all that follow).
    StopMirrorTopicsRequest, StopMirrorTopicsResponse;
    /// API 98.
    ListClusterMirrorsRequest, ListClusterMirrorsResponse;
    /// API 99.
    DescribeClusterMirrorsRequest, DescribeClusterMirrorsResponse;
    /// API 100.
    ReadMirrorStatesRequest, ReadMirrorStatesResponse;
    /// API 101.
    WriteMirrorStatesRequest, WriteMirrorStatesResponse;
    /// API 102.
    PauseMirrorTopicsRequest, PauseMirrorTopicsResponse;
    /// API 103.
    ResumeMirrorTopicsRequest, ResumeMirrorTopicsResponse;
    /// API 104.
    DeleteClusterMirrorRequest, DeleteClusterMirrorResponse;
    /// API 105.
    BumpLeaderEpochsRequest, BumpLeaderEpochsResponse;
    /// API 106.
    ReadMirrorOffsetsRequest, ReadMirrorOffsetsResponse;
    /// API 107.
    RecoverMirrorTopicsRequest, RecoverMirrorTopicsResponse;
}

// ------------------------------------------------------------------------------------------------------ produce and fetch

/// Append batches.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ProduceRequest {
    /// Of a transactional producer.
    pub transactional_id: Option<Arc<str>>,
    /// 0: no answer. 1: the leader's append. −1: all in-sync replicas.
    pub acks: i16,
    /// How long the leader may wait for replicas.
    pub timeout_ms: u32,
    /// How many topics the partitions belong to, counted as runs: for the encoded size.
    pub topic_groups: u32,
    /// The batches, at most one entry per partition.
    pub parts: Vec<ProducePart>,
}

/// One partition's batches.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ProducePart {
    /// Where to.
    pub partition: PartitionIx,
    /// One or more v2 batches, back to back.
    pub batches: Bytes,
}

/// Answer to [`ProduceRequest`]; none is sent for acks 0.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ProduceResponse {
    /// As in the request.
    pub topic_groups: u32,
    /// One per partition asked.
    pub parts: Vec<ProducePartAnswer>,
}

/// One partition's verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ProducePartAnswer {
    /// Which.
    pub partition: PartitionIx,
    /// Verdict.
    pub error: ErrorCode,
    /// Offset of the first record, or −1.
    pub base: Offset,
    /// Log start.
    pub log_start: Offset,
    /// With a leadership error: who leads, as far as this broker knows.
    pub current_leader: Option<LeaderHint>,
}

/// Who leads, in an answer that refuses (KIP-951; KIP-595 style in fetch answers).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LeaderHint {
    /// The leader, or none.
    pub leader: BrokerId,
    /// Its epoch.
    pub epoch: LeaderEpoch,
    /// Its address (Fetch 16 and Produce 10 up), if known.
    pub node: Option<NodeId>,
}

/// What a reader may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Isolation {
    /// Up to the high watermark.
    #[default]
    ReadUncommitted,
    /// Up to the last stable offset, without aborted transactions.
    ReadCommitted,
}

/// Read batches. A follower (`replica >= 0`) reads up to the log end, others up to what `isolation` allows. The mirror
/// fetcher is a consumer to its source (spec 4.1).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FetchRequest {
    /// The follower's id, −1 for consumers and mirrors.
    pub replica: BrokerId,
    /// The follower's broker epoch (KIP-903), −1 otherwise.
    pub broker_epoch: BrokerEpoch,
    /// How long an answer without data may wait.
    pub max_wait_ms: u32,
    /// Answer at once when so much is there.
    pub min_bytes: u32,
    /// Limit of the answer; the first batch is sent whatever its size.
    pub max_bytes: u32,
    /// What may be seen.
    pub isolation: Isolation,
    /// 0 with epoch 0: open a session, all partitions listed. Else the session's id.
    pub session_id: u32,
    /// 0: full fetch. −1: full fetch, close the session. Else the next epoch of the session (KIP-227).
    pub session_epoch: i32,
    /// Topics of `parts`, counted as runs.
    pub topic_groups: u32,
    /// Partitions that are new in the session or whose position changed.
    pub parts: Vec<FetchPart>,
    /// Slots that leave the session.
    pub forgotten: Vec<u32>,
}

/// One partition's position in a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FetchPart {
    /// Names the partition within the session; chosen by the fetching side, small and dense.
    pub slot: u32,
    /// Which partition, in the serving cluster's numbering.
    pub partition: PartitionIx,
    /// Next offset wanted.
    pub fetch_offset: Offset,
    /// Leader epoch the fetcher believes in, −1 for none (KIP-320).
    pub current_leader_epoch: LeaderEpoch,
    /// Epoch of the last record the fetcher holds, −1 for none (KIP-595 truncation on fetch).
    pub last_fetched_epoch: LeaderEpoch,
    /// A follower's log start.
    pub log_start: Offset,
    /// Limit for this partition.
    pub max_bytes: u32,
    /// Fetch 19 (spec 3.8): the follower of a mirror leader tells the highest source epoch it knows, −1 otherwise.
    pub mirror_leader_epoch: LeaderEpoch,
    /// The newest term in which the follower's log was aligned with a mirror's source, −1 for none (a field of our own).
    pub aligned: LeaderEpoch,
}

/// Where an epoch ends in the answering log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EpochEnd {
    /// The largest epoch not above the one asked about, −1 for undefined.
    pub epoch: LeaderEpoch,
    /// The first offset after it, −1 for undefined.
    pub end: Offset,
}

/// Answer to [`FetchRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FetchResponse {
    /// Verdict on the session.
    pub error: ErrorCode,
    /// The session; 0 if none was opened.
    pub session_id: u32,
    /// Topics of `parts`, counted as runs.
    pub topic_groups: u32,
    /// Partitions with news: data, watermarks, errors.
    pub parts: Vec<FetchPartAnswer>,
    /// The batches of all entries, in order; an entry names its range.
    pub batches: Vec<Bytes>,
}

/// One partition's news.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FetchPartAnswer {
    /// The slot of the request.
    pub slot: u32,
    /// Which partition.
    pub partition: PartitionIx,
    /// Verdict.
    pub error: ErrorCode,
    /// The leader's high watermark.
    pub high_watermark: Offset,
    /// The leader's last stable offset.
    pub last_stable: Offset,
    /// The leader's log start.
    pub log_start: Offset,
    /// The follower's log diverges: its last fetched epoch ends here in the leader's log.
    pub diverging: Option<EpochEnd>,
    /// `diverging` speaks of [`FetchPart::aligned`]: the leader was aligned in this term, and its log ended there then; the
    /// follower missed that (a field of our own).
    pub misaligned: bool,
    /// With a leadership error: who leads.
    pub current_leader: Option<LeaderHint>,
    /// Fetch 19: the highest epoch in a mirror leader's log, −1 otherwise.
    pub mirror_leader_epoch: LeaderEpoch,
    /// First of this entry's batches in [`FetchResponse::batches`].
    pub first_batch: u32,
    /// How many batches are this entry's.
    pub batch_count: u32,
    /// For `ReadCommitted`: aborted transactions that overlap the batches.
    pub aborted: Option<Box<Vec<AbortedTransaction>>>,
}

/// A transaction whose records a reader skips.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AbortedTransaction {
    /// Whose.
    pub producer: ProducerId,
    /// Its first offset.
    pub first: Offset,
}

/// Where do these epochs end (KIP-101, 279)?
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetForLeaderEpochRequest {
    /// The follower's id; −1 a consumer; −2 a mirror (spec 3.9).
    pub replica: BrokerId,
    /// The questions.
    pub parts: Vec<EpochQuestion>,
}

/// One partition's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EpochQuestion {
    /// Which.
    pub partition: PartitionIx,
    /// The epoch the asker believes in, −1 for none.
    pub current_leader_epoch: LeaderEpoch,
    /// The epoch asked about.
    pub epoch: LeaderEpoch,
}

/// Answer to [`OffsetForLeaderEpochRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetForLeaderEpochResponse {
    /// One per question.
    pub parts: Vec<EpochAnswer>,
}

/// One partition's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EpochAnswer {
    /// Which.
    pub partition: PartitionIx,
    /// Verdict.
    pub error: ErrorCode,
    /// The epoch the end stands for, and the end.
    pub end: EpochEnd,
}

/// Ask for offsets by time.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListOffsetsRequest {
    /// −1 for clients.
    pub replica: BrokerId,
    /// What may be seen.
    pub isolation: Isolation,
    /// The questions.
    pub parts: Vec<OffsetQuestion>,
}

/// One partition's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OffsetQuestion {
    /// Which.
    pub partition: PartitionIx,
    /// The epoch the asker believes in, −1 for none.
    pub current_leader_epoch: LeaderEpoch,
    /// Milliseconds, or [`LATEST`] or [`EARLIEST`].
    pub timestamp: i64,
}

/// The end of the partition.
pub const LATEST: i64 = -1;
/// The log start.
pub const EARLIEST: i64 = -2;

/// Answer to [`ListOffsetsRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListOffsetsResponse {
    /// One per question.
    pub parts: Vec<OffsetAnswer>,
}

/// One partition's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OffsetAnswer {
    /// Which.
    pub partition: PartitionIx,
    /// Verdict.
    pub error: ErrorCode,
    /// The record's timestamp, or −1.
    pub timestamp: i64,
    /// The offset, or −1.
    pub offset: Offset,
    /// The leader epoch at that offset, −1 if unknown.
    pub leader_epoch: LeaderEpoch,
}

/// Delete all records below these offsets.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeleteRecordsRequest {
    /// Partition and new log start (−1: the high watermark).
    pub parts: Vec<(PartitionIx, Offset)>,
}

/// Answer to [`DeleteRecordsRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeleteRecordsResponse {
    /// Partition, verdict, low watermark.
    pub parts: Vec<(PartitionIx, ErrorCode, Offset)>,
}

// -------------------------------------------------------------------------------------------------------------- metadata

/// Ask for brokers and topics.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct MetadataRequest {
    /// None: all topics.
    pub topics: Option<Vec<Arc<str>>>,
}

/// Answer to [`MetadataRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct MetadataResponse {
    /// The cluster's id.
    pub cluster_id: Arc<str>,
    /// Live brokers and their addresses.
    pub brokers: Vec<(BrokerId, NodeId)>,
    /// The topics asked for, by name.
    pub topics: Vec<TopicMetadata>,
}

/// One topic.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopicMetadata {
    /// Verdict.
    pub error: ErrorCode,
    /// Name.
    pub name: Arc<str>,
    /// Id.
    pub id: TopicId,
    /// Partitions by number.
    pub partitions: Vec<PartitionMetadata>,
}

/// One partition.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PartitionMetadata {
    /// Number within the topic.
    pub number: u32,
    /// Index within the cluster (derived by a codec).
    pub partition: PartitionIx,
    /// Leader or none.
    pub leader: BrokerId,
    /// Leader epoch.
    pub leader_epoch: LeaderEpoch,
    /// Replicas, preferred first.
    pub replicas: smallvec::SmallVec<[BrokerId; 4]>,
    /// In-sync replicas.
    pub isr: smallvec::SmallVec<[BrokerId; 4]>,
}

/// Observers and voters fetch the metadata log (KIP-595).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct RaftFetchRequest {
    /// Who fetches: the node id (broker or controller id within the cluster).
    pub replica: i32,
    /// The directory of its metadata log: a voter with another disk is no voter (KIP-853).
    pub directory: u128,
    /// Leader epoch the fetcher knows, −1 for none.
    pub current_epoch: LeaderEpoch,
    /// Next offset wanted.
    pub fetch_offset: MetadataOffset,
    /// Epoch of the last record held.
    pub last_fetched_epoch: LeaderEpoch,
    /// The high watermark the fetcher knows: an answer waits no longer than until there is news (KIP-1166).
    pub high_watermark: MetadataOffset,
    /// How long an answer without news may wait.
    pub max_wait_ms: u32,
    /// Limit of the answer.
    pub max_bytes: u32,
}

/// Answer to [`RaftFetchRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct RaftFetchResponse {
    /// Verdict.
    pub error: ErrorCode,
    /// The quorum's leader, as far as known, and its address.
    pub leader: Option<NodeId>,
    /// The quorum's epoch.
    pub epoch: LeaderEpoch,
    /// Committed up to here (exclusive).
    pub high_watermark: MetadataOffset,
    /// The fetcher's log diverges here.
    pub diverging: Option<EpochEnd>,
    /// The offset wanted is below the log: load this snapshot (end offset, epoch) first.
    pub snapshot: Option<(MetadataOffset, LeaderEpoch)>,
    /// Batches of the metadata log.
    pub batches: Vec<Bytes>,
}

/// Read a piece of a metadata snapshot.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FetchSnapshotRequest {
    /// Who.
    pub replica: i32,
    /// Which.
    pub snapshot: (MetadataOffset, LeaderEpoch),
    /// From which byte.
    pub position: u64,
    /// Limit.
    pub max_bytes: u32,
}

/// Answer to [`FetchSnapshotRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FetchSnapshotResponse {
    /// Verdict.
    pub error: ErrorCode,
    /// Total length.
    pub size: u64,
    /// From which byte.
    pub position: u64,
    /// The piece.
    pub bytes: Vec<Bytes>,
}

// ---------------------------------------------------------------------------------------------- broker life and controller

/// A broker reports for duty (KIP-631, 966).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BrokerRegistrationRequest {
    /// Its id.
    pub broker: BrokerId,
    /// The cluster it was formatted for.
    pub cluster_id: Arc<str>,
    /// New with every process start.
    pub incarnation: u128,
    /// Its address.
    pub node: NodeId,
    /// The broker epoch found in the clean-shutdown marker, −1 if the last stop was not clean.
    pub previous_epoch: BrokerEpoch,
}

/// Answer to [`BrokerRegistrationRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BrokerRegistrationResponse {
    /// Verdict.
    pub error: ErrorCode,
    /// The registration this answers (I17: a late answer to an earlier incarnation is not ours).
    pub incarnation: u128,
    /// The epoch given.
    pub epoch: BrokerEpoch,
}

/// A broker is alive.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BrokerHeartbeatRequest {
    /// Its id.
    pub broker: BrokerId,
    /// Its epoch.
    pub epoch: BrokerEpoch,
    /// How far it applied the metadata log.
    pub metadata_offset: MetadataOffset,
    /// It wants to stay fenced.
    pub want_fence: bool,
    /// It wants to shut down: move its leaderships away.
    pub want_shutdown: bool,
}

/// Answer to [`BrokerHeartbeatRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BrokerHeartbeatResponse {
    /// Verdict.
    pub error: ErrorCode,
    /// Fenced now.
    pub fenced: bool,
    /// Nothing is led by it any more: it may stop.
    pub may_shutdown: bool,
}

/// A leader asks for another ISR (KIP-497, 841, 903).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AlterPartitionRequest {
    /// The leader.
    pub broker: BrokerId,
    /// Its epoch.
    pub broker_epoch: BrokerEpoch,
    /// The proposals.
    pub parts: Vec<IsrProposal>,
}

/// One proposal.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct IsrProposal {
    /// Which.
    pub partition: PartitionIx,
    /// The leader epoch it was made in.
    pub leader_epoch: LeaderEpoch,
    /// The partition epoch it builds on.
    pub partition_epoch: PartitionEpoch,
    /// The wanted ISR with the broker epochs that the leader saw in fetches (−1 for the leader itself).
    pub isr: smallvec::SmallVec<[(BrokerId, BrokerEpoch); 4]>,
    /// The leader finished recovery after an unclean election.
    pub recovered: bool,
}

/// Answer to [`AlterPartitionRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AlterPartitionResponse {
    /// Verdict on the request.
    pub error: ErrorCode,
    /// One per proposal.
    pub parts: Vec<IsrVerdict>,
}

/// The partition as the controller sees it after a proposal.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct IsrVerdict {
    /// Which.
    pub partition: PartitionIx,
    /// Verdict.
    pub error: ErrorCode,
    /// Leader.
    pub leader: BrokerId,
    /// Its epoch.
    pub leader_epoch: LeaderEpoch,
    /// The committed ISR.
    pub isr: smallvec::SmallVec<[BrokerId; 4]>,
    /// Its partition epoch.
    pub partition_epoch: PartitionEpoch,
}

/// A broker wants a block of producer ids.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AllocateProducerIdsRequest {
    /// The broker.
    pub broker: BrokerId,
    /// Its epoch.
    pub broker_epoch: BrokerEpoch,
}

/// Answer to [`AllocateProducerIdsRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AllocateProducerIdsResponse {
    /// Verdict.
    pub error: ErrorCode,
    /// First id.
    pub first: ProducerId,
    /// How many.
    pub count: u32,
}

/// A producer wants an id.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct InitProducerIdRequest {
    /// None: idempotent only.
    pub transactional_id: Option<Arc<str>>,
    /// How long a transaction may stay open (`transaction.timeout.ms`); without a transactional id nobody looks at it.
    pub timeout_ms: u32,
    /// The id it had, to raise its epoch (KIP-360), or −1.
    pub producer: ProducerId,
    /// The epoch it had, or −1.
    pub epoch: ProducerEpoch,
}

/// Answer to [`InitProducerIdRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct InitProducerIdResponse {
    /// Verdict.
    pub error: ErrorCode,
    /// The id.
    pub producer: ProducerId,
    /// Its epoch.
    pub epoch: ProducerEpoch,
}

// ----------------------------------------------------------------------------------------------------------------- admin

/// One config entry; `None` removes it.
pub type ConfigEntry = (Arc<str>, Option<Arc<str>>);

/// Create topics.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CreateTopicsRequest {
    /// What to create.
    pub topics: Vec<NewTopic>,
}

/// One new topic.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct NewTopic {
    /// Name.
    pub name: Arc<str>,
    /// v8: take this id (a mirror topic's source id) and demand that all replicas are alive.
    pub mirror_id: Option<TopicId>,
    /// How many partitions.
    pub partitions: u32,
    /// How many replicas; −1: the cluster's default.
    pub replication_factor: i16,
    /// Replicas by partition; empty: the controller places them.
    pub assignments: Vec<Vec<BrokerId>>,
    /// Topic configs.
    pub configs: Vec<(Arc<str>, Arc<str>)>,
}

/// A verdict on something that has a name.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct NamedResult {
    /// Name.
    pub name: Arc<str>,
    /// Verdict.
    pub error: ErrorCode,
    /// Why, for people.
    pub message: Option<Arc<str>>,
}

/// Answer to [`CreateTopicsRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CreateTopicsResponse {
    /// One per topic.
    pub topics: Vec<NamedResult>,
}

/// Delete topics by name.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeleteTopicsRequest {
    /// Names.
    pub topics: Vec<Arc<str>>,
}

/// Answer to [`DeleteTopicsRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeleteTopicsResponse {
    /// One per topic.
    pub topics: Vec<NamedResult>,
}

/// Raise partition counts.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CreatePartitionsRequest {
    /// Topic and new total.
    pub topics: Vec<(Arc<str>, u32)>,
    /// A mirror follows its source, which has grown (a field of our own): brokers say so of what they ask themselves, and of nothing
    /// that a client asks.
    pub for_mirror: bool,
}

/// Answer to [`CreatePartitionsRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CreatePartitionsResponse {
    /// One per topic.
    pub topics: Vec<NamedResult>,
}

/// What a config belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConfigResource {
    /// A topic, by name.
    Topic(Arc<str>),
    /// A broker, or all of them.
    Broker(Option<BrokerId>),
    /// A mirror, by name (resource type 64, provisional).
    ClusterMirror(Arc<str>),
}

/// Set and remove config entries.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct IncrementalAlterConfigsRequest {
    /// Resource and entries.
    pub resources: Vec<(ConfigResource, Vec<ConfigEntry>)>,
}

/// Answer to [`IncrementalAlterConfigsRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct IncrementalAlterConfigsResponse {
    /// One per resource.
    pub resources: Vec<NamedResult>,
}

/// Ask for elections.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ElectLeadersRequest {
    /// True: unclean, false: preferred.
    pub unclean: bool,
    /// Which partitions; empty: all.
    pub parts: Vec<PartitionIx>,
}

/// Answer to [`ElectLeadersRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ElectLeadersResponse {
    /// Partition and verdict.
    pub parts: Vec<(PartitionIx, ErrorCode)>,
}

/// Commit positions of a group that has no members (standalone consumers; membership comes with the group coordinator).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetCommitRequest {
    /// Group.
    pub group: Arc<str>,
    /// Partition, offset, leader epoch of the last record consumed.
    pub parts: Vec<(PartitionIx, Offset, LeaderEpoch)>,
}

/// Answer to [`OffsetCommitRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetCommitResponse {
    /// Partition and verdict.
    pub parts: Vec<(PartitionIx, ErrorCode)>,
}

/// Ask for committed positions.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetFetchRequest {
    /// Group.
    pub group: Arc<str>,
    /// Which.
    pub parts: Vec<PartitionIx>,
}

/// Answer to [`OffsetFetchRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OffsetFetchResponse {
    /// Verdict.
    pub error: ErrorCode,
    /// Partition, offset (−1: none), epoch.
    pub parts: Vec<(PartitionIx, Offset, LeaderEpoch)>,
}
