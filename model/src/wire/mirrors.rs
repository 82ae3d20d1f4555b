//! Requests and responses of cluster mirroring (KIP-1279, spec 8). Keys are provisional; the versions here are all 0.

use crate::ids::{LeaderEpoch, MetadataOffset, Offset, PartitionIx, TopicId};
use crate::states::{LastPosition, MirrorState, StateRecord};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::NamedResult;
use std::sync::Arc;

// ------------------------------------------------------------------------------------------------------------- by operators

/// Create a mirror (spec 8.2).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CreateClusterMirrorRequest {
    /// Name.
    pub mirror: Arc<str>,
    /// `bootstrap.servers` (node ids, comma separated), `source.cluster.id`, and more.
    pub configs: Vec<(Arc<str>, Arc<str>)>,
}

/// Answer to [`CreateClusterMirrorRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CreateClusterMirrorResponse {
    /// Verdict.
    pub error: ErrorCode,
    /// Why.
    pub message: Option<Arc<str>>,
}

/// Start topics of a mirror (spec 8.3).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct StartMirrorTopicsRequest {
    /// Mirror.
    pub mirror: Arc<str>,
    /// Source topic id, name, partition count.
    pub topics: Vec<(TopicId, Arc<str>, u32)>,
    /// Patterns to merge into `topics.include`.
    pub include: Vec<Arc<str>>,
    /// Patterns to merge into `topics.exclude`.
    pub exclude: Vec<Arc<str>>,
    /// The metadata offset of the check of states, −1 for none (optimistic check).
    pub state_offset: MetadataOffset,
}

/// Answer to [`StartMirrorTopicsRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct StartMirrorTopicsResponse {
    /// Verdict on the request.
    pub error: ErrorCode,
    /// One per topic.
    pub topics: Vec<NamedResult>,
}

/// Stop topics: they become writable here (spec 8.4).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct StopMirrorTopicsRequest {
    /// Mirror.
    pub mirror: Arc<str>,
    /// Topics by name.
    pub topics: Vec<Arc<str>>,
    /// Patterns: taken out of `topics.include` where they stand there, else added to `topics.exclude`.
    pub patterns: Vec<Arc<str>>,
    /// The metadata offset of the check of states, −1 for none (optimistic check).
    pub state_offset: MetadataOffset,
}

/// Answer to [`StopMirrorTopicsRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct StopMirrorTopicsResponse {
    /// Verdict on the request.
    pub error: ErrorCode,
    /// One per topic.
    pub topics: Vec<NamedResult>,
}

/// Pause topics (spec 8.5).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PauseMirrorTopicsRequest {
    /// Mirror.
    pub mirror: Arc<str>,
    /// Topics by name.
    pub topics: Vec<Arc<str>>,
    /// The metadata offset of the check of states, −1 for none.
    pub state_offset: MetadataOffset,
}

/// Answer to [`PauseMirrorTopicsRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PauseMirrorTopicsResponse {
    /// Verdict on the request.
    pub error: ErrorCode,
    /// One per topic.
    pub topics: Vec<NamedResult>,
}

/// Resume paused topics (spec 8.5).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ResumeMirrorTopicsRequest {
    /// Mirror.
    pub mirror: Arc<str>,
    /// Topics by name.
    pub topics: Vec<Arc<str>>,
    /// The metadata offset of the check of states, −1 for none.
    pub state_offset: MetadataOffset,
}

/// Answer to [`ResumeMirrorTopicsRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ResumeMirrorTopicsResponse {
    /// Verdict on the request.
    pub error: ErrorCode,
    /// One per topic.
    pub topics: Vec<NamedResult>,
}

/// Delete a mirror whose topics are all STOPPED (spec 8.6).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeleteClusterMirrorRequest {
    /// Mirror.
    pub mirror: Arc<str>,
    /// The metadata offset of the check of states, −1 for none.
    pub state_offset: MetadataOffset,
}

/// Answer to [`DeleteClusterMirrorRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeleteClusterMirrorResponse {
    /// Verdict.
    pub error: ErrorCode,
    /// Why.
    pub message: Option<Arc<str>>,
}

/// Lead FAILED topics back to what they did before (spec 8.14).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct RecoverMirrorTopicsRequest {
    /// Mirror.
    pub mirror: Arc<str>,
    /// Topics by name; none: all of the mirror, stopped ones too.
    pub topics: Vec<Arc<str>>,
    /// From a broker that an operator asked: the partitions that the receiver leads. From an operator: none, all partitions
    /// are meant, whoever leads them.
    pub parts: Vec<PartitionIx>,
    /// Of a diverged partition, the source's side wins: what differs here is cut (decision 39).
    pub keep_source: bool,
}

/// Answer to [`RecoverMirrorTopicsRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct RecoverMirrorTopicsResponse {
    /// Verdict on the request.
    pub error: ErrorCode,
    /// One per topic.
    pub topics: Vec<NamedResult>,
}

/// Which mirrors there are (spec 8.7). Other clusters ask too: the loop check does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ListClusterMirrorsRequest {}

/// Answer to [`ListClusterMirrorsRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListClusterMirrorsResponse {
    /// Verdict.
    pub error: ErrorCode,
    /// One per mirror.
    pub mirrors: Vec<ListedMirror>,
}

/// One mirror in a list.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListedMirror {
    /// Name.
    pub name: Arc<str>,
    /// Its `bootstrap.servers`.
    pub bootstrap: Arc<str>,
    /// Its `source.cluster.id`.
    pub source: Arc<str>,
    /// Topics whose desired state is MIRRORING.
    pub mirroring: u32,
    /// Topics whose desired state is MIRRORING or PAUSED.
    pub topics: Vec<Arc<str>>,
}

/// What a broker knows of mirrors: states, offsets, and last mirrored positions (spec 8.8). Every broker is asked; the asker
/// merges.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeClusterMirrorsRequest {
    /// Which, by name; `None`: all.
    pub mirrors: Option<Vec<Arc<str>>>,
    /// With the states of partitions.
    pub states: bool,
    /// With offsets at source and destination.
    pub offsets: bool,
    /// With [`Self::lookups`]: which of [`Self::mirrors`] count, namely those with this source.
    pub cluster: Option<Arc<str>>,
    /// The partitions whose last mirrored position is wanted, by topic id and number: a failback asks (spec 1.7).
    pub lookups: Vec<(TopicId, Vec<u32>)>,
}

/// Answer to [`DescribeClusterMirrorsRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeClusterMirrorsResponse {
    /// Verdict.
    pub error: ErrorCode,
    /// One per mirror.
    pub mirrors: Vec<DescribedMirror>,
    /// One per partition looked up and mirror that has it.
    pub positions: Vec<FoundPosition>,
}

/// One mirror, as far as the answering broker knows.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribedMirror {
    /// Name.
    pub name: Arc<str>,
    /// Verdict.
    pub error: ErrorCode,
    /// Its `bootstrap.servers`.
    pub bootstrap: Arc<str>,
    /// Its `source.cluster.id`.
    pub source: Arc<str>,
    /// Partitions that this broker leads or coordinates.
    pub parts: Vec<DescribedPart>,
}

/// One mirrored partition.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribedPart {
    /// Topic.
    pub topic: Arc<str>,
    /// Number.
    pub number: u32,
    /// The committed state, if this broker coordinates it; else as its leader knows it.
    pub state: MirrorState,
    /// Retries so far; −1: none will come.
    pub attempt: i16,
    /// Why it failed.
    pub message: Option<Arc<str>>,
    /// Its last mirrored position, if one was recorded.
    pub position: Option<LastPosition>,
    /// The source's high watermark as last told, −1: unknown (decision 19).
    pub source_offset: Offset,
    /// The local high watermark, −1: unknown.
    pub destination_offset: Offset,
    /// Which write of the state this is: of two brokers' words on a partition the higher one is the later.
    pub state_epoch: i32,
    /// How long ago the source answered last, in milliseconds; `None`: it has not, or the answering broker does not lead.
    pub source_age_ms: Option<u32>,
}

/// What a broker can say of a last mirrored position. Three answers that must not be mixed up (decision 6): unavailable
/// (`error`), none (`position` is `None`), known. A partition that a broker does not coordinate has no entry in its answer, and
/// silence is "unavailable" too (decision 34). A mirror that has nothing of a partition answers "none", with state UNKNOWN. Where
/// two brokers claim a partition, the higher state epoch counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FoundPosition {
    /// Topic.
    pub topic: TopicId,
    /// Number.
    pub number: u32,
    /// COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE: not known now.
    pub error: ErrorCode,
    /// The committed state of the mirrored partition.
    pub state: MirrorState,
    /// The position.
    pub position: Option<LastPosition>,
    /// Which write of the state this is.
    pub state_epoch: i32,
}

/// Offsets of mirrored partitions at their leader (spec 8.13).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReadMirrorOffsetsRequest {
    /// Mirror.
    pub mirror: Arc<str>,
    /// Which.
    pub parts: Vec<PartitionIx>,
}

/// Answer to [`ReadMirrorOffsetsRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReadMirrorOffsetsResponse {
    /// Verdict.
    pub error: ErrorCode,
    /// Partition, source offset, destination offset (−1: unknown), verdict.
    pub parts: Vec<(PartitionIx, Offset, Offset, ErrorCode)>,
}

// ---------------------------------------------------------------------------------------------------------- among brokers

/// Ask a coordinator for committed states (spec 8.9).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReadMirrorStatesRequest {
    /// Mirror.
    pub mirror: Arc<str>,
    /// Which.
    pub parts: Vec<PartitionIx>,
}

/// Answer to [`ReadMirrorStatesRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReadMirrorStatesResponse {
    /// Verdict on the request.
    pub error: ErrorCode,
    /// Partition, verdict, and the committed record (the default one where there is none).
    pub parts: Vec<(PartitionIx, ErrorCode, StateRecord)>,
}

/// Have a coordinator commit states (spec 8.10, 7.5).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct WriteMirrorStatesRequest {
    /// Mirror.
    pub mirror: Arc<str>,
    /// One per partition.
    pub parts: Vec<StateWrite>,
}

/// One partition's new state.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StateWrite {
    /// Which.
    pub partition: PartitionIx,
    /// The new state; UNKNOWN: only the position is written.
    pub state: MirrorState,
    /// The leader epoch under which the change began (decision 32).
    pub leader_epoch: LeaderEpoch,
    /// The state epoch that the writer knows; −1: whatever it is.
    pub state_epoch: i32,
    /// The last mirrored position, if it is to be recorded.
    pub position: Option<LastPosition>,
    /// Why it failed.
    pub message: Option<Arc<str>>,
    /// Retries so far; −1: as the coordinator counts.
    pub attempt: i32,
    /// FAILED for good.
    pub for_good: bool,
}

/// Answer to [`WriteMirrorStatesRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct WriteMirrorStatesResponse {
    /// Verdict on the request.
    pub error: ErrorCode,
    /// Partition, verdict, and the state epoch now.
    pub parts: Vec<(PartitionIx, ErrorCode, i32)>,
}

/// Raise leader epochs above a minimum (spec 8.11, 3.4).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BumpLeaderEpochsRequest {
    /// Partition and minimum; the epoch becomes max(minimum + 1, current).
    pub parts: Vec<(PartitionIx, LeaderEpoch)>,
}

/// Answer to [`BumpLeaderEpochsRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BumpLeaderEpochsResponse {
    /// Verdict on the request.
    pub error: ErrorCode,
    /// Partition and verdict.
    pub parts: Vec<(PartitionIx, ErrorCode)>,
}
