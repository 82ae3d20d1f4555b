//! Messages of the model in terms of the oracle, and their encoded length. Only what can change a length is carried over:
//! texts, lists, nulls, tagged fields; numbers of fixed size stay at their defaults.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as k;
use kafka_protocol::protocol::{Encodable, HeaderVersion, Message as Versioned, StrBytes};
use mirrorlab_model::wire::messages::{Body, ConfigResource, LeaderHint, Message};
use mirrorlab_model::wire::size::{
    api, Api, CLIENT_ID_LEN, CLUSTER_ID_LEN, FEATURES, GROUP_LEN, HOST_LEN, LISTENER, METADATA_TOPIC, TOPIC_NAME_LEN,
};

/// A non-default uuid.
const SOME_UUID: &str = "00000000-0000-0000-0000-000000000001";

/// Length of the message's frame, length field included, as the oracle encodes it.
pub fn frame_len(message: &Message) -> usize {
    let api = api(&message.body);
    match &message.body {
        Body::ProduceRequest(r) => request(api, &produce::request(r)),
        Body::ProduceResponse(r) => response(api, &produce::response(r)),
        Body::FetchRequest(r) => request(api, &fetch::request(r)),
        Body::FetchResponse(r) => response(api, &fetch::response(r)),
        Body::RaftFetchRequest(r) => request(api, &raft::fetch_request(r)),
        Body::RaftFetchResponse(r) => response(api, &raft::fetch_response(r)),
        Body::FetchSnapshotRequest(r) => request(api, &raft::snapshot_request(r)),
        Body::FetchSnapshotResponse(r) => response(api, &raft::snapshot_response(r)),
        other => rest::frame_len(api, other),
    }
}

/// Versions that only the proposal has differ from the last stock one in fields that are added by hand.
fn stock<M: Versioned>(version: i16) -> i16 {
    version.min(M::VERSIONS.max)
}

fn request<M: Encodable + HeaderVersion + Versioned>(api: Api, body: &M) -> usize {
    let header = k::RequestHeader::default()
        .with_request_api_key(api.key)
        .with_request_api_version(api.version)
        .with_client_id(Some(text(CLIENT_ID_LEN)));
    frame(&header, M::header_version(stock::<M>(api.version)), body, stock::<M>(api.version))
}

fn response<M: Encodable + HeaderVersion + Versioned>(api: Api, body: &M) -> usize {
    let version = stock::<M>(api.version);
    frame(&k::ResponseHeader::default(), M::header_version(version), body, version)
}

fn frame(header: &impl Encodable, header_version: i16, body: &impl Encodable, version: i16) -> usize {
    let mut out = BytesMut::new();
    header.encode(&mut out, header_version).unwrap();
    body.encode(&mut out, version).unwrap();
    let computed = header.compute_size(header_version).unwrap() + body.compute_size(version).unwrap();
    assert_eq!(out.len(), computed, "the oracle agrees with itself");
    size_of::<u32>() + out.len()
}

fn text(len: usize) -> StrBytes {
    StrBytes::from_string("x".repeat(len))
}

fn copy(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn topic(len: usize) -> k::TopicName {
    k::TopicName(text(len))
}

fn named(name: &str) -> k::TopicName {
    k::TopicName(copy(name))
}

fn brokers(len: usize) -> Vec<k::BrokerId> {
    vec![k::BrokerId(1); len]
}

/// Entries dealt evenly to `groups` topics.
fn deal<T: Clone>(entries: &[T], groups: u32) -> Vec<Vec<T>> {
    let mut topics = vec![Vec::new(); groups as usize];
    for (i, entry) in entries.iter().enumerate() {
        topics[i % groups as usize].push(entry.clone());
    }
    topics
}

/// Leaders that are hinted at with an address, each once.
fn hinted(hints: impl Iterator<Item = Option<LeaderHint>>) -> Vec<k::BrokerId> {
    let mut ids: Vec<i32> = hints.flatten().filter(|hint| hint.node.is_some()).map(|hint| hint.leader.0).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().map(k::BrokerId).collect()
}

mod produce {
    use super::*;
    use k::produce_request::{PartitionProduceData, TopicProduceData};
    use k::produce_response::{LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse, TopicProduceResponse};
    use mirrorlab_model::wire::messages as m;

    pub fn request(r: &m::ProduceRequest) -> k::ProduceRequest {
        let part = |part: &m::ProducePart| PartitionProduceData::default().with_records(Some(part.batches.clone()));
        let topics = deal(&r.parts, r.topic_groups)
            .into_iter()
            .map(|parts| TopicProduceData::default().with_partition_data(parts.iter().map(part).collect()));
        k::ProduceRequest::default().with_topic_data(topics.collect())
    }

    pub fn response(r: &m::ProduceResponse) -> k::ProduceResponse {
        let part = |part: &m::ProducePartAnswer| {
            let mut answer = PartitionProduceResponse::default();
            if let Some(hint) = part.current_leader {
                answer.current_leader = LeaderIdAndEpoch::default()
                    .with_leader_id(k::BrokerId(hint.leader.0))
                    .with_leader_epoch(hint.epoch.0);
            }
            answer
        };
        let topics = deal(&r.parts, r.topic_groups)
            .into_iter()
            .map(|parts| TopicProduceResponse::default().with_partition_responses(parts.iter().map(part).collect()));
        let endpoints = hinted(r.parts.iter().map(|part| part.current_leader))
            .into_iter()
            .map(|id| NodeEndpoint::default().with_node_id(id).with_host(text(HOST_LEN)));
        k::ProduceResponse::default().with_responses(topics.collect()).with_node_endpoints(endpoints.collect())
    }
}

mod fetch {
    use super::*;
    use k::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic, ReplicaState};
    use k::fetch_response::{
        AbortedTransaction, EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData,
    };
    use mirrorlab_model::ids::LeaderEpoch;
    use mirrorlab_model::wire::messages as m;

    /// The proposal's fields of Fetch 19 are tagged ones that the oracle does not know.
    fn mirror_epoch(epoch: LeaderEpoch) -> Option<Bytes> {
        (epoch != LeaderEpoch::NONE).then(|| Bytes::copy_from_slice(&epoch.0.to_be_bytes()))
    }

    pub fn request(r: &m::FetchRequest) -> k::FetchRequest {
        let part = |part: &m::FetchPart| {
            let mut fetch = FetchPartition::default();
            fetch.unknown_tagged_fields.extend(mirror_epoch(part.mirror_leader_epoch).map(|field| (2, field)));
            fetch
        };
        let topics = deal(&r.parts, r.topic_groups)
            .into_iter()
            .map(|parts| FetchTopic::default().with_partitions(parts.iter().map(part).collect()));
        let forgotten = r.forgotten.iter().map(|_| ForgottenTopic::default().with_partitions(vec![0]));
        let replica =
            ReplicaState::default().with_replica_id(k::BrokerId(r.replica.0)).with_replica_epoch(r.broker_epoch.0);
        k::FetchRequest::default()
            .with_replica_state(replica)
            .with_topics(topics.collect())
            .with_forgotten_topics_data(forgotten.collect())
    }

    pub fn response(r: &m::FetchResponse) -> k::FetchResponse {
        let part = |part: &m::FetchPartAnswer| {
            let range = part.first_batch as usize..(part.first_batch + part.batch_count) as usize;
            let mut answer = PartitionData::default()
                .with_records(Some(r.batches[range].concat().into()))
                .with_aborted_transactions(
                    part.aborted.as_ref().map(|list| vec![AbortedTransaction::default(); list.len()]),
                );
            if let Some(end) = part.diverging {
                answer.diverging_epoch = EpochEndOffset::default().with_epoch(end.epoch.0).with_end_offset(end.end.0);
            }
            if let Some(hint) = part.current_leader {
                answer.current_leader = LeaderIdAndEpoch::default()
                    .with_leader_id(k::BrokerId(hint.leader.0))
                    .with_leader_epoch(hint.epoch.0);
            }
            answer.unknown_tagged_fields.extend(mirror_epoch(part.mirror_leader_epoch).map(|field| (3, field)));
            answer
        };
        let topics = deal(&r.parts, r.topic_groups)
            .into_iter()
            .map(|parts| FetchableTopicResponse::default().with_partitions(parts.iter().map(part).collect()));
        let endpoints = hinted(r.parts.iter().map(|part| part.current_leader))
            .into_iter()
            .map(|id| NodeEndpoint::default().with_node_id(id).with_host(text(HOST_LEN)));
        k::FetchResponse::default().with_responses(topics.collect()).with_node_endpoints(endpoints.collect())
    }
}

mod raft {
    use super::*;
    use k::{fetch_request as fq, fetch_response as fr, fetch_snapshot_request as sq, fetch_snapshot_response as sr};
    use mirrorlab_model::wire::messages as m;

    pub fn fetch_request(r: &m::RaftFetchRequest) -> k::FetchRequest {
        let partition = fq::FetchPartition::default()
            .with_replica_directory_id(SOME_UUID.parse().unwrap())
            .with_high_watermark(r.high_watermark.0);
        k::FetchRequest::default()
            .with_cluster_id(Some(text(CLUSTER_ID_LEN)))
            // A voter's or observer's id is never −1, which is the default.
            .with_replica_state(fq::ReplicaState::default().with_replica_id(k::BrokerId(r.replica.max(0))))
            .with_topics(vec![fq::FetchTopic::default().with_partitions(vec![partition])])
    }

    pub fn fetch_response(r: &m::RaftFetchResponse) -> k::FetchResponse {
        let mut partition = fr::PartitionData::default().with_records(Some(r.batches.concat().into()));
        if let Some(end) = r.diverging {
            partition.diverging_epoch =
                fr::EpochEndOffset::default().with_epoch(end.epoch.0).with_end_offset(end.end.0);
        }
        if let Some((end, epoch)) = r.snapshot {
            partition.snapshot_id = fr::SnapshotId::default().with_end_offset(end.0).with_epoch(epoch.0);
        }
        partition.current_leader = fr::LeaderIdAndEpoch::default()
            .with_leader_id(k::BrokerId(r.leader.map_or(-1, |node| i32::from(node.0))))
            .with_leader_epoch(r.epoch.0);
        let endpoint = |_| fr::NodeEndpoint::default().with_host(text(HOST_LEN));
        k::FetchResponse::default()
            .with_responses(vec![fr::FetchableTopicResponse::default().with_partitions(vec![partition])])
            .with_node_endpoints(r.leader.map(endpoint).into_iter().collect())
    }

    pub fn snapshot_request(_: &m::FetchSnapshotRequest) -> k::FetchSnapshotRequest {
        let partition = sq::PartitionSnapshot::default().with_replica_directory_id(SOME_UUID.parse().unwrap());
        let topic = sq::TopicSnapshot::default().with_name(named(METADATA_TOPIC)).with_partitions(vec![partition]);
        k::FetchSnapshotRequest::default().with_cluster_id(Some(text(CLUSTER_ID_LEN))).with_topics(vec![topic])
    }

    pub fn snapshot_response(r: &m::FetchSnapshotResponse) -> k::FetchSnapshotResponse {
        let partition = sr::PartitionSnapshot::default()
            .with_unaligned_records(r.bytes.concat().into())
            // The crate's default is leader 0, which it leaves out.
            .with_current_leader(sr::LeaderIdAndEpoch::default().with_leader_id(k::BrokerId(1)).with_leader_epoch(1));
        let topic = sr::TopicSnapshot::default().with_name(named(METADATA_TOPIC)).with_partitions(vec![partition]);
        k::FetchSnapshotResponse::default().with_topics(vec![topic])
    }
}

#[path = "encode_rest.rs"]
mod rest;
