//! The exact number of bytes a message takes on the wire, frame length and header included: what links are charged with.
//!
//! Every message here is of a flexible version (KIP-482): lengths of arrays and strings are varints of length + 1, every
//! structure ends with a section of tagged fields, and a tagged field is written only when it is not the default.
//!
//! Messages name partitions by index, so some of what is on the wire is not in them. For that the sizes assume:
//! * names of [`TOPIC_NAME_LEN`] bytes where an API goes by topic name (ListOffsets, OffsetForLeaderEpoch, …); most hot APIs
//!   go by topic id and need no assumption. Other names have fixed lengths too, see the constants;
//! * produce and fetch: the entries spread evenly over `topic_groups` topics. This is exact while no topic has more than
//!   126 entries in one message, and beyond that unless the topics differ a lot; it is a matter of one byte per topic;
//! * everything else that names partitions: one topic per entry. Exact for topics of one partition, an upper bound otherwise.
//!   These messages are rare, and counting runs would cost every sender a field.

use crate::ids::{BrokerId, LeaderEpoch, Offset};
use crate::record::varint::unsigned_len;
use crate::wire::messages::{
    AbortedTransaction, AlterPartitionRequest, AlterPartitionResponse, Body, BrokerRegistrationRequest, ConfigEntry,
    ConfigResource, CreateTopicsRequest, FetchPart, FetchPartAnswer, FetchRequest, FetchResponse,
    FetchSnapshotResponse, FoundCoordinator, LeaderHint, Message, MetadataResponse, NamedResult, NewTopic,
    ProduceRequest, ProduceResponse, RaftFetchResponse, TopicMetadata,
};
use bytes::Bytes;
use smallvec::SmallVec;
use std::sync::Arc;

#[path = "size_mirrors.rs"]
mod mirrors;
#[path = "size_quorum.rs"]
mod quorum;
#[path = "size_transactions.rs"]
mod transactions;

// ------------------------------------------------------------------------------------------------------- what is assumed

/// Length of the client id in every request header.
pub const CLIENT_ID_LEN: usize = 9;
/// Length of a topic's name where the message holds only an index.
pub const TOPIC_NAME_LEN: usize = 16;
/// Length of a host name; messages hold a node id.
pub const HOST_LEN: usize = 10;
/// Length of a group's name where the message does not hold it.
pub const GROUP_LEN: usize = 16;
/// Length of a cluster id where the message does not hold it: a UUID in URL-safe base 64.
pub const CLUSTER_ID_LEN: usize = 22;
/// The metadata topic.
pub const METADATA_TOPIC: &str = "__cluster_metadata";
/// The one listener that a broker registers.
pub const LISTENER: &str = "PLAINTEXT";
/// The features that a broker registers.
pub const FEATURES: [&str; 2] = ["metadata.version", "mirror.version"];

// --------------------------------------------------------------------------------------------------------------- versions

/// Key and version of an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Api {
    /// Its number.
    pub key: i16,
    /// The version that is sent here.
    pub version: i16,
}

/// Which API and version a message is sent as; requests and their answers agree.
#[must_use]
pub fn api(body: &Body) -> Api {
    use Body as B;
    let (key, version) = match body {
        // By topic id since 13.
        B::ProduceRequest(_) | B::ProduceResponse(_) => (0, 13),
        // 19 adds the mirror's epoch as a tagged field to stock 17 (spec 8.12).
        B::FetchRequest(_) | B::FetchResponse(_) => (1, 19),
        // 18 adds the high watermark (KIP-1166).
        B::RaftFetchRequest(_) | B::RaftFetchResponse(_) => (1, 18),
        B::ListOffsetsRequest(_) | B::ListOffsetsResponse(_) => (2, 10),
        B::MetadataRequest(_) | B::MetadataResponse(_) => (3, 13),
        B::OffsetCommitRequest(_) | B::OffsetCommitResponse(_) => (8, 9),
        B::OffsetFetchRequest(_) | B::OffsetFetchResponse(_) => (9, 9),
        B::FindCoordinatorRequest(_) | B::FindCoordinatorResponse(_) => (10, 4),
        B::CreateTopicsRequest(r) => (19, if wants_mirror_id(r) { 8 } else { 7 }),
        B::CreateTopicsResponse(_) => (19, 7),
        B::DeleteTopicsRequest(_) | B::DeleteTopicsResponse(_) => (20, 6),
        B::DeleteRecordsRequest(_) | B::DeleteRecordsResponse(_) => (21, 2),
        B::InitProducerIdRequest(_) | B::InitProducerIdResponse(_) => (22, 4),
        B::OffsetForLeaderEpochRequest(_) | B::OffsetForLeaderEpochResponse(_) => (23, 4),
        // What producers send; later versions are between brokers.
        B::AddPartitionsToTxnRequest(_) | B::AddPartitionsToTxnResponse(_) => (24, 3),
        B::EndTxnRequest(_) | B::EndTxnResponse(_) => (26, 5),
        B::WriteTxnMarkersRequest(r) => (27, if transactions::names_versions(r) { 2 } else { 1 }),
        B::WriteTxnMarkersResponse(_) => (27, 1),
        B::CreatePartitionsRequest(_) | B::CreatePartitionsResponse(_) => (37, 3),
        B::ElectLeadersRequest(_) | B::ElectLeadersResponse(_) => (43, 2),
        B::IncrementalAlterConfigsRequest(_) | B::IncrementalAlterConfigsResponse(_) => (44, 1),
        B::AlterPartitionRequest(_) | B::AlterPartitionResponse(_) => (56, 3),
        B::VoteRequest(_) | B::VoteResponse(_) => (52, 2),
        B::BeginQuorumEpochRequest(_) | B::BeginQuorumEpochResponse(_) => (53, 1),
        B::EndQuorumEpochRequest(_) | B::EndQuorumEpochResponse(_) => (54, 1),
        B::FetchSnapshotRequest(_) | B::FetchSnapshotResponse(_) => (59, 1),
        B::BrokerRegistrationRequest(_) | B::BrokerRegistrationResponse(_) => (62, 4),
        B::BrokerHeartbeatRequest(_) | B::BrokerHeartbeatResponse(_) => (63, 1),
        B::AllocateProducerIdsRequest(_) | B::AllocateProducerIdsResponse(_) => (67, 0),
        B::CreateClusterMirrorRequest(_) | B::CreateClusterMirrorResponse(_) => (94, 0),
        B::StartMirrorTopicsRequest(_) | B::StartMirrorTopicsResponse(_) => (95, 0),
        B::StopMirrorTopicsRequest(_) | B::StopMirrorTopicsResponse(_) => (96, 0),
        B::ListClusterMirrorsRequest(_) | B::ListClusterMirrorsResponse(_) => (98, 0),
        B::DescribeClusterMirrorsRequest(_) | B::DescribeClusterMirrorsResponse(_) => (99, 0),
        B::ReadMirrorStatesRequest(_) | B::ReadMirrorStatesResponse(_) => (100, 0),
        B::WriteMirrorStatesRequest(_) | B::WriteMirrorStatesResponse(_) => (101, 0),
        B::PauseMirrorTopicsRequest(_) | B::PauseMirrorTopicsResponse(_) => (102, 0),
        B::ResumeMirrorTopicsRequest(_) | B::ResumeMirrorTopicsResponse(_) => (103, 0),
        B::DeleteClusterMirrorRequest(_) | B::DeleteClusterMirrorResponse(_) => (104, 0),
        B::BumpLeaderEpochsRequest(_) | B::BumpLeaderEpochsResponse(_) => (105, 0),
        B::ReadMirrorOffsetsRequest(_) | B::ReadMirrorOffsetsResponse(_) => (106, 0),
        B::RecoverMirrorTopicsRequest(_) | B::RecoverMirrorTopicsResponse(_) => (107, 0),
    };
    Api { key, version }
}

// ------------------------------------------------------------------------------------------------------------ field sizes

const BOOL: usize = 1;
const I8: usize = 1;
const I16: usize = 2;
const U16: usize = 2;
const I32: usize = 4;
const I64: usize = 8;
const UUID: usize = 16;
/// An empty section of tagged fields, at the end of every structure.
const TAGS: usize = 1;
/// A null array or string, and an empty one.
const NULL: usize = 1;
/// `ThrottleTimeMs`.
const THROTTLE: usize = I32;
/// `ErrorCode`.
const ERROR: usize = I16;
/// Frame length, then request header v2: key, version, correlation id, client id (not compact in any version), tags.
const REQUEST_HEADER: usize = I32 + I16 + I16 + I32 + I16 + CLIENT_ID_LEN + TAGS;
/// Frame length, then response header v1: correlation id, tags.
const RESPONSE_HEADER: usize = I32 + I32 + TAGS;

/// The length before the elements of an array.
const fn array(len: usize) -> usize {
    // Longer arrays do not fit a frame; the varint stops growing at 5 bytes anyway.
    unsigned_len(if len >= u32::MAX as usize { u32::MAX } else { len as u32 + 1 })
}

/// A compact string, or bytes.
const fn string(len: usize) -> usize {
    array(len) + len
}

/// A string or null.
fn nullable(text: Option<&str>) -> usize {
    text.map_or(NULL, |text| string(text.len()))
}

/// An array of 32-bit numbers.
const fn numbers(len: usize) -> usize {
    array(len) + len * I32
}

/// A tagged field of `size` bytes: its number (below 128 always), its size, itself.
const fn tagged(size: usize) -> usize {
    1 + unsigned_len(size as u32) + size
}

/// A tagged field that is there if `present`.
const fn tagged_if(present: bool, size: usize) -> usize {
    if present {
        tagged(size)
    } else {
        0
    }
}

/// Two levels, topics and their partitions, for `entries` entries in `groups` topics: everything but the entries.
/// Each topic costs `topic` bytes (its name or id) beside its array's length and its tags.
fn topics(entries: usize, groups: u32, topic: usize) -> usize {
    let groups = (groups as usize).clamp(usize::from(entries > 0), entries);
    if groups == 0 {
        return array(0);
    }
    let (share, larger) = (entries / groups, entries % groups);
    array(groups) + groups * (topic + TAGS) + larger * array(share + 1) + (groups - larger) * array(share)
}

/// As [`topics`], one topic per entry, by name.
fn named_topics(entries: usize) -> usize {
    topics(entries, entries as u32, string(TOPIC_NAME_LEN))
}

fn sum<T>(items: &[T], size: impl Fn(&T) -> usize) -> usize {
    items.iter().map(size).sum()
}

/// An array of structures.
fn array_of<T>(items: &[T], size: impl Fn(&T) -> usize) -> usize {
    array(items.len()) + sum(items, size)
}

fn bytes_in(pieces: &[Bytes]) -> usize {
    sum(pieces, Bytes::len)
}

// ---------------------------------------------------------------------------------------------------------------- messages

impl Message {
    /// Bytes on the wire, frame length and header included.
    #[must_use]
    pub fn encoded_size(&self) -> u32 {
        let header = if self.body.is_request() { REQUEST_HEADER } else { RESPONSE_HEADER };
        u32::try_from(header + body_size(&self.body)).unwrap_or(u32::MAX)
    }
}

fn body_size(body: &Body) -> usize {
    use Body as B;
    match body {
        B::ProduceRequest(r) => produce_request(r),
        B::ProduceResponse(r) => produce_response(r),
        B::FetchRequest(r) => fetch_request(r),
        B::FetchResponse(r) => fetch_response(r),
        // Replica, isolation, (index, leader epoch, timestamp)*, timeout.
        B::ListOffsetsRequest(r) => by_name(r.parts.len(), I32 + I32 + I64) + I32 + I8 + I32 + TAGS,
        // (Index, error, timestamp, offset, leader epoch)*.
        B::ListOffsetsResponse(r) => THROTTLE + by_name(r.parts.len(), I32 + ERROR + I64 + I64 + I32) + TAGS,
        // Replica, (index, current epoch, epoch)*.
        B::OffsetForLeaderEpochRequest(r) => I32 + by_name(r.parts.len(), I32 + I32 + I32) + TAGS,
        // (Error, index, epoch, end offset)*.
        B::OffsetForLeaderEpochResponse(r) => THROTTLE + by_name(r.parts.len(), ERROR + I32 + I32 + I64) + TAGS,
        // (Index, offset)*, timeout.
        B::DeleteRecordsRequest(r) => by_name(r.parts.len(), I32 + I64) + I32 + TAGS,
        // (Index, low watermark, error)*.
        B::DeleteRecordsResponse(r) => THROTTLE + by_name(r.parts.len(), I32 + I64 + ERROR) + TAGS,
        B::MetadataRequest(r) => metadata_request(r.topics.as_deref()),
        B::MetadataResponse(r) => metadata_response(r),
        // Transactional id, timeout, id, epoch.
        B::InitProducerIdRequest(r) => nullable(r.transactional_id.as_deref()) + I32 + I64 + I16 + TAGS,
        B::InitProducerIdResponse(_) => THROTTLE + ERROR + I64 + I16 + TAGS,
        B::BrokerRegistrationRequest(r) => broker_registration(r),
        B::BrokerRegistrationResponse(_) => THROTTLE + ERROR + I64 + TAGS,
        // Broker, its epoch, metadata offset, fence, shut down; no offline directories.
        B::BrokerHeartbeatRequest(_) => I32 + I64 + I64 + BOOL + BOOL + TAGS,
        // Caught up, fenced, shut down.
        B::BrokerHeartbeatResponse(_) => THROTTLE + ERROR + BOOL + BOOL + BOOL + TAGS,
        B::AlterPartitionRequest(r) => alter_partition_request(r),
        B::AlterPartitionResponse(r) => alter_partition_response(r),
        B::AllocateProducerIdsRequest(_) => I32 + I64 + TAGS,
        B::AllocateProducerIdsResponse(_) => THROTTLE + ERROR + I64 + I32 + TAGS,
        B::CreateTopicsRequest(r) => create_topics_request(r),
        B::CreateTopicsResponse(r) => THROTTLE + array_of(&r.topics, created_topic) + TAGS,
        // (Name, zero id)*, timeout.
        B::DeleteTopicsRequest(r) => array_of(&r.topics, |name| string(name.len()) + UUID + TAGS) + I32 + TAGS,
        B::DeleteTopicsResponse(r) => THROTTLE + array_of(&r.topics, |topic| named_result(topic) + UUID) + TAGS,
        // (Name, count, null assignments)*, timeout, validate only.
        B::CreatePartitionsRequest(r) => {
            array_of(&r.topics, |(name, _)| string(name.len()) + I32 + NULL + TAGS) + I32 + BOOL + TAGS
        }
        B::CreatePartitionsResponse(r) => THROTTLE + array_of(&r.topics, named_result) + TAGS,
        // (Type, name, entries)*, validate only.
        B::IncrementalAlterConfigsRequest(r) => array_of(&r.resources, resource_change) + BOOL + TAGS,
        B::IncrementalAlterConfigsResponse(r) => {
            THROTTLE + array_of(&r.resources, |resource| named_result(resource) + I8) + TAGS
        }
        // Type, partitions (null: all), timeout.
        B::ElectLeadersRequest(r) => {
            let parts = if r.parts.is_empty() { NULL } else { named_topics(r.parts.len()) + r.parts.len() * I32 };
            I8 + parts + I32 + TAGS
        }
        // (Index, error, null message)*.
        B::ElectLeadersResponse(r) => THROTTLE + ERROR + by_name(r.parts.len(), I32 + ERROR + NULL) + TAGS,
        // Group, generation, empty member, null instance, (index, offset, epoch, null metadata)*.
        B::OffsetCommitRequest(r) => {
            string(r.group.len()) + I32 + NULL + NULL + by_name(r.parts.len(), I32 + I64 + I32 + NULL) + TAGS
        }
        B::OffsetCommitResponse(r) => THROTTLE + by_name(r.parts.len(), I32 + ERROR) + TAGS,
        // One group: name, null member, epoch, topics; stable only.
        B::OffsetFetchRequest(r) => {
            let topics = named_topics(r.parts.len()) + r.parts.len() * I32;
            array(1) + string(r.group.len()) + NULL + I32 + topics + TAGS + BOOL + TAGS
        }
        // One group: name, (index, offset, epoch, null metadata, error)*, error.
        B::OffsetFetchResponse(r) => {
            let topics = by_name(r.parts.len(), I32 + I64 + I32 + NULL + ERROR);
            THROTTLE + array(1) + string(GROUP_LEN) + topics + ERROR + TAGS + TAGS
        }
        body => quorum::body_size(body)
            .or_else(|| transactions::body_size(body))
            .unwrap_or_else(|| mirrors::body_size(body)),
    }
}

/// Entries of a fixed size, one topic each, by name.
fn by_name(entries: usize, entry: usize) -> usize {
    named_topics(entries) + entries * (entry + TAGS)
}

// ------------------------------------------------------------------------------------------------------- produce and fetch

fn produce_request(r: &ProduceRequest) -> usize {
    // Transactional id, acks, timeout.
    let parts = sum(&r.parts, |part| I32 + string(part.batches.len()) + TAGS);
    nullable(r.transactional_id.as_deref()) + I16 + I32 + topics(r.parts.len(), r.topic_groups, UUID) + parts + TAGS
}

fn produce_response(r: &ProduceResponse) -> usize {
    // Index, error, base offset, append time, log start, no record errors, null message.
    const PART: usize = I32 + ERROR + I64 + I64 + I64 + NULL + NULL + TAGS;
    let hints = sum(&r.parts, |part| part.current_leader.map_or(0, leader_hint));
    let endpoints = endpoints(r.parts.iter().filter_map(|part| part.current_leader));
    topics(r.parts.len(), r.topic_groups, UUID) + r.parts.len() * PART + hints + THROTTLE + TAGS + endpoints
}

/// `CurrentLeader`, a tagged field: leader and epoch.
fn leader_hint(hint: LeaderHint) -> usize {
    let default = hint.leader == BrokerId::NONE && hint.epoch == LeaderEpoch::NONE;
    tagged_if(!default, I32 + I32 + TAGS)
}

/// `NodeEndpoints`, a tagged field: id, host, port, null rack of each leader that is hinted at, once.
fn endpoints(hints: impl Iterator<Item = LeaderHint>) -> usize {
    let mut known = SmallVec::<[BrokerId; 8]>::new();
    for hint in hints {
        if hint.node.is_some() && !known.contains(&hint.leader) {
            known.push(hint.leader);
        }
    }
    endpoints_field(known.len())
}

const fn endpoints_field(count: usize) -> usize {
    tagged_if(count > 0, array(count) + count * (I32 + string(HOST_LEN) + I32 + NULL + TAGS))
}

fn fetch_request(r: &FetchRequest) -> usize {
    // Max wait, min bytes, max bytes, isolation, session id, session epoch, empty rack.
    const FIXED: usize = I32 + I32 + I32 + I8 + I32 + I32 + NULL + TAGS;
    let follower = r.replica != BrokerId::NONE || r.broker_epoch.0 != -1;
    let forgotten = topics(r.forgotten.len(), r.forgotten.len() as u32, UUID) + r.forgotten.len() * I32;
    let parts = topics(r.parts.len(), r.topic_groups, UUID) + sum(&r.parts, fetch_part);
    FIXED + tagged_if(follower, REPLICA_STATE) + parts + forgotten
}

/// `ReplicaState`: id and epoch of a follower.
const REPLICA_STATE: usize = I32 + I64 + TAGS;

/// Partition, leader epoch, offset, last fetched epoch, log start, max bytes.
const FETCH_PART: usize = I32 + I32 + I64 + I32 + I64 + I32 + TAGS;

fn fetch_part(part: &FetchPart) -> usize {
    FETCH_PART + tagged_if(part.mirror_leader_epoch != LeaderEpoch::NONE, I32)
}

/// Index, error, high watermark, last stable offset, log start, preferred replica.
const FETCH_ANSWER: usize = I32 + ERROR + I64 + I64 + I64 + I32 + TAGS;
/// `DivergingEpoch`: epoch and end offset.
const DIVERGING: usize = I32 + I64 + TAGS;
/// `SnapshotId`: end offset and epoch.
const SNAPSHOT_ID: usize = I64 + I32 + TAGS;

fn fetch_response(r: &FetchResponse) -> usize {
    let endpoints = endpoints(r.parts.iter().filter_map(|part| part.current_leader));
    let parts = sum(&r.parts, |part| fetch_part_answer(part, &r.batches));
    THROTTLE + ERROR + I32 + topics(r.parts.len(), r.topic_groups, UUID) + parts + TAGS + endpoints
}

fn fetch_part_answer(part: &FetchPartAnswer, batches: &[Bytes]) -> usize {
    const ABORTED: usize = I64 + I64 + TAGS;
    let first = part.first_batch as usize;
    let records = batches.get(first..first.saturating_add(part.batch_count as usize)).map_or(0, bytes_in);
    let aborted = |list: &Vec<AbortedTransaction>| array(list.len()) + list.len() * ABORTED;
    FETCH_ANSWER
        + string(records)
        + part.aborted.as_deref().map_or(NULL, aborted)
        + part.diverging.map_or(0, |end| diverging(end.epoch, end.end))
        + part.current_leader.map_or(0, leader_hint)
        + tagged_if(part.mirror_leader_epoch != LeaderEpoch::NONE, I32)
}

fn diverging(epoch: LeaderEpoch, end: Offset) -> usize {
    tagged_if(epoch != LeaderEpoch::NONE || end != Offset::UNKNOWN, DIVERGING)
}

/// One topic with one partition, by id or name.
const fn single(topic: usize) -> usize {
    array(1) + topic + array(1) + TAGS
}

// ---------------------------------------------------------------------------------------- metadata, brokers, controllers

fn metadata_request(topics: Option<&[Arc<str>]>) -> usize {
    // Zero id and name of each; auto creation, topic operations.
    let topics = topics.map_or(NULL, |names| array_of(names, |name| UUID + string(name.len()) + TAGS));
    topics + BOOL + BOOL + TAGS
}

fn metadata_response(r: &MetadataResponse) -> usize {
    // Id, host, port, null rack.
    const BROKER: usize = I32 + string(HOST_LEN) + I32 + NULL + TAGS;
    let brokers = array(r.brokers.len()) + r.brokers.len() * BROKER;
    // Controller id, error (13).
    THROTTLE + brokers + string(r.cluster_id.len()) + I32 + array_of(&r.topics, topic_metadata) + ERROR + TAGS
}

fn topic_metadata(topic: &TopicMetadata) -> usize {
    // Error, index, leader, leader epoch, replicas, ISR, no offline replicas.
    let partitions = array_of(&topic.partitions, |part| {
        ERROR + I32 + I32 + I32 + numbers(part.replicas.len()) + numbers(part.isr.len()) + numbers(0) + TAGS
    });
    // Error, name, id, internal, operations.
    ERROR + string(topic.name.len()) + UUID + BOOL + partitions + I32 + TAGS
}

fn broker_registration(r: &BrokerRegistrationRequest) -> usize {
    // Name, host, port, security protocol.
    const LISTENERS: usize = array(1) + string(LISTENER.len()) + string(HOST_LEN) + U16 + I16 + TAGS;
    // Name, least and greatest version.
    let features = array_of(&FEATURES, |name| string(name.len()) + I16 + I16 + TAGS);
    // Null rack, not migrating, one directory, previous epoch.
    let rest = NULL + BOOL + array(1) + UUID + I64 + TAGS;
    I32 + string(r.cluster_id.len()) + UUID + LISTENERS + features + rest
}

fn alter_partition_request(r: &AlterPartitionRequest) -> usize {
    // Index, leader epoch, members with their epochs, recovery state, partition epoch.
    let parts = sum(&r.parts, |part| {
        let members = array(part.isr.len()) + part.isr.len() * (I32 + I64 + TAGS);
        I32 + I32 + members + I8 + I32 + TAGS
    });
    I32 + I64 + topics(r.parts.len(), r.parts.len() as u32, UUID) + parts + TAGS
}

fn alter_partition_response(r: &AlterPartitionResponse) -> usize {
    // Index, error, leader, leader epoch, members, recovery state, partition epoch.
    let parts = sum(&r.parts, |part| I32 + ERROR + I32 + I32 + numbers(part.isr.len()) + I8 + I32 + TAGS);
    THROTTLE + ERROR + topics(r.parts.len(), r.parts.len() as u32, UUID) + parts + TAGS
}

// ------------------------------------------------------------------------------------------------------ admin and mirrors

fn wants_mirror_id(r: &CreateTopicsRequest) -> bool {
    r.topics.iter().any(|topic| topic.mirror_id.is_some())
}

fn create_topics_request(r: &CreateTopicsRequest) -> usize {
    let mirrored = wants_mirror_id(r);
    // Timeout, validate only.
    array_of(&r.topics, |topic| new_topic(topic, mirrored)) + I32 + BOOL + TAGS
}

fn new_topic(topic: &NewTopic, mirrored: bool) -> usize {
    let assignments = array_of(&topic.assignments, |brokers| I32 + numbers(brokers.len()) + TAGS);
    // A nullable structure: a mark, then the id and its tags (spec 8.12).
    let mirror_info = match topic.mirror_id {
        Some(_) => I8 + UUID + TAGS,
        None => usize::from(mirrored) * I8,
    };
    // Partitions, replication factor.
    string(topic.name.len()) + I32 + I16 + assignments + config_pairs(&topic.configs) + mirror_info + TAGS
}

fn config_pairs(configs: &[(Arc<str>, Arc<str>)]) -> usize {
    array_of(configs, |(name, value)| string(name.len()) + string(value.len()) + TAGS)
}

fn created_topic(topic: &NamedResult) -> usize {
    // Id, partitions, replication factor, null configs.
    named_result(topic) + UUID + I32 + I16 + NULL
}

/// Name, error, message, tags.
fn named_result(result: &NamedResult) -> usize {
    string(result.name.len()) + ERROR + nullable(result.message.as_deref()) + TAGS
}

fn resource_change((resource, entries): &(ConfigResource, Vec<ConfigEntry>)) -> usize {
    // Name, operation, value.
    let entries = array_of(entries, |(name, value)| string(name.len()) + I8 + nullable(value.as_deref()) + TAGS);
    I8 + string(resource_name_len(resource)) + entries + TAGS
}

/// Brokers go by their id in decimal; all brokers by the empty name.
fn resource_name_len(resource: &ConfigResource) -> usize {
    match resource {
        ConfigResource::Topic(name) | ConfigResource::ClusterMirror(name) => name.len(),
        ConfigResource::Broker(None) => 0,
        ConfigResource::Broker(Some(id)) => {
            usize::from(id.0 < 0) + id.0.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1
        }
    }
}

#[cfg(test)]
#[path = "size_tests.rs"]
mod tests;
