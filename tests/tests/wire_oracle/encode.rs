//! Messages of the model in terms of the oracle, field by field, and the frame that the oracle makes of them.

use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::messages as k;
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Message as Versioned, StrBytes};
use mirrorlab_model::ids::{BrokerId, LeaderEpoch, NodeId, PartitionIx};
use mirrorlab_model::wire::codec::{host, stand_in, Directory, Place, CLIENT_ID, PORT};
use mirrorlab_model::wire::messages::{Body, LeaderHint, Message};
use mirrorlab_model::wire::size::api;
use std::fmt::Debug;
use std::str::FromStr;

/// A structure of the oracle with some fields set.
macro_rules! k {
    ($kind:ty { $($field:ident: $value:expr),* $(,)? }) => {{
        #[allow(unused_mut)]
        let mut it = <$kind>::default();
        $( it.$field = $value; )*
        it
    }};
}

/// What the oracle makes of a message.
pub struct Oracle<'d> {
    pub message: &'d Message,
    pub dir: &'d dyn Directory,
}

/// The message's frame, length field included, as the oracle encodes it.
pub fn frame(message: &Message, dir: &dyn Directory) -> Vec<u8> {
    let oracle = Oracle { message, dir };
    match &message.body {
        Body::ProduceRequest(r) => oracle.request(oracle.produce(r)),
        Body::ProduceResponse(r) => oracle.response(oracle.produced(r)),
        Body::FetchRequest(r) => oracle.request(oracle.fetch(r)),
        Body::FetchResponse(r) => oracle.response(oracle.fetched(r)),
        Body::RaftFetchRequest(r) => oracle.request(oracle.raft_fetch(r)),
        Body::RaftFetchResponse(r) => oracle.response(oracle.raft_fetched(r)),
        Body::FetchSnapshotRequest(r) => oracle.request(oracle.snapshot(r)),
        Body::FetchSnapshotResponse(r) => oracle.response(oracle.snapshot_piece(r)),
        Body::VoteRequest(r) => oracle.request(oracle.vote(r)),
        Body::VoteResponse(r) => oracle.response(oracle.voted(r)),
        Body::BeginQuorumEpochRequest(r) => oracle.request(oracle.begin(r)),
        Body::BeginQuorumEpochResponse(r) => oracle.response(oracle.begun(r)),
        Body::EndQuorumEpochRequest(r) => oracle.request(oracle.end(r)),
        Body::EndQuorumEpochResponse(r) => oracle.response(oracle.ended(r)),
        other => oracle.rest(other),
    }
}

/// Neighbours of one topic, with their numbers in it.
pub struct Group<'m, T> {
    pub place: Place,
    pub entries: Vec<(i32, &'m T)>,
}

impl<T> Group<'_, T> {
    pub fn id<U: FromStr<Err: Debug>>(&self) -> U {
        uuid(self.place.id.0)
    }
    pub fn name(&self) -> k::TopicName {
        k::TopicName(copy(&self.place.name))
    }
    pub fn each<U>(&self, entry: impl Fn(i32, &T) -> U) -> Vec<U> {
        self.entries.iter().map(|(number, of)| entry(*number, of)).collect()
    }
}

impl Oracle<'_> {
    /// Entries by topic.
    pub fn by_topic<'m, T, U>(
        &self,
        entries: &'m [T],
        at: impl Fn(&T) -> PartitionIx,
        topic: impl Fn(&Group<'m, T>) -> U,
    ) -> Vec<U> {
        let mut groups: Vec<Group<'m, T>> = Vec::new();
        for entry in entries {
            let place = self.dir.place(at(entry)).unwrap_or_else(|| stand_in(at(entry)));
            let member = (place.number as i32, entry);
            match groups.last_mut() {
                Some(group) if group.place.id == place.id => group.entries.push(member),
                _ => groups.push(Group { place, entries: vec![member] }),
            }
        }
        groups.iter().map(topic).collect()
    }

    pub fn request<M>(&self, body: M) -> Vec<u8>
    where
        M: Encodable + Decodable + HeaderVersion + Versioned + PartialEq + Debug,
    {
        let api = api(&self.message.body);
        let header = k!(k::RequestHeader {
            request_api_key: api.key,
            request_api_version: api.version,
            correlation_id: self.message.correlation as i32,
            client_id: Some(copy(CLIENT_ID)),
        });
        let version = stock::<M>(api.version);
        framed(&header, M::header_version(version), &body, version)
    }

    pub fn response<M>(&self, body: M) -> Vec<u8>
    where
        M: Encodable + Decodable + HeaderVersion + Versioned + PartialEq + Debug,
    {
        let version = stock::<M>(api(&self.message.body).version);
        let header = k!(k::ResponseHeader { correlation_id: self.message.correlation as i32 });
        framed(&header, M::header_version(version), &body, version)
    }
}

/// Versions that only the proposal has differ from the last stock one in fields that are added by hand.
fn stock<M: Versioned>(version: i16) -> i16 {
    version.min(M::VERSIONS.max)
}

fn framed<M>(header: &impl Encodable, header_version: i16, body: &M, version: i16) -> Vec<u8>
where
    M: Encodable + Decodable + PartialEq + Debug,
{
    let mut out = BytesMut::new();
    header.encode(&mut out, header_version).unwrap();
    let head = out.len();
    body.encode(&mut out, version).unwrap();
    let computed = header.compute_size(header_version).unwrap() + body.compute_size(version).unwrap();
    assert_eq!(out.len(), computed, "the oracle agrees with itself");
    // Equal bytes then mean that the oracle reads ours as what is meant.
    let mut rest = out.clone().freeze();
    rest.advance(head);
    assert_eq!(&M::decode(&mut rest, version).unwrap(), body, "the oracle reads what it wrote");
    let mut frame = (out.len() as u32).to_be_bytes().to_vec();
    frame.extend_from_slice(&out);
    frame
}

// -------------------------------------------------------------------------------------------------------------- small parts

pub fn copy(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}
pub fn opt(text: Option<&str>) -> Option<StrBytes> {
    text.map(copy)
}
pub fn named(name: &str) -> k::TopicName {
    k::TopicName(copy(name))
}
/// The oracle's type of uuids, which it does not export.
pub fn uuid<U: FromStr<Err: Debug>>(id: u128) -> U {
    format!("{id:032x}").parse().unwrap()
}
pub fn broker(id: BrokerId) -> k::BrokerId {
    k::BrokerId(id.0)
}
pub fn brokers(ids: &[BrokerId]) -> Vec<k::BrokerId> {
    ids.iter().copied().map(broker).collect()
}
pub fn address(node: NodeId) -> StrBytes {
    StrBytes::from_string(host(node))
}
fn concat(pieces: &[Bytes]) -> Bytes {
    pieces.concat().into()
}

/// Leaders that are hinted at with an address, in the order of mention.
fn hinted(hints: impl Iterator<Item = Option<LeaderHint>>) -> Vec<(BrokerId, NodeId)> {
    let mut list: Vec<(BrokerId, NodeId)> = Vec::new();
    for hint in hints.flatten() {
        if let Some(node) = hint.node {
            if list.iter().all(|(id, _)| *id != hint.leader) {
                list.push((hint.leader, node));
            }
        }
    }
    list
}

// -------------------------------------------------------------------------------------------------- produce, fetch and raft

use mirrorlab_model::wire::messages as m;

impl Oracle<'_> {
    fn produce(&self, r: &m::ProduceRequest) -> k::ProduceRequest {
        use k::produce_request::{PartitionProduceData as P, TopicProduceData as T};
        let part = |number, part: &m::ProducePart| k!(P { index: number, records: Some(part.batches.clone()) });
        let topics =
            self.by_topic(&r.parts, |p| p.partition, |g| k!(T { topic_id: g.id(), partition_data: g.each(part) }));
        k!(k::ProduceRequest {
            transactional_id: opt(r.transactional_id.as_deref()).map(k::TransactionalId),
            acks: r.acks,
            timeout_ms: r.timeout_ms as i32,
            topic_data: topics
        })
    }

    fn produced(&self, r: &m::ProduceResponse) -> k::ProduceResponse {
        use k::produce_response::{
            LeaderIdAndEpoch as L, NodeEndpoint as N, PartitionProduceResponse as P, TopicProduceResponse as T,
        };
        let part = |number, part: &m::ProducePartAnswer| {
            let leader = part
                .current_leader
                .map_or_else(L::default, |hint| k!(L { leader_id: broker(hint.leader), leader_epoch: hint.epoch.0 }));
            k!(P {
                index: number,
                error_code: part.error as i16,
                base_offset: part.base.0,
                log_start_offset: part.log_start.0,
                current_leader: leader,
            })
        };
        let topics =
            self.by_topic(&r.parts, |p| p.partition, |g| k!(T { topic_id: g.id(), partition_responses: g.each(part) }));
        let endpoints = hinted(r.parts.iter().map(|part| part.current_leader)).into_iter();
        let endpoint = |(id, node)| k!(N { node_id: broker(id), host: address(node), port: PORT.into() });
        k!(k::ProduceResponse { responses: topics, node_endpoints: endpoints.map(endpoint).collect() })
    }

    fn fetch(&self, r: &m::FetchRequest) -> k::FetchRequest {
        use k::fetch_request::{FetchPartition as P, FetchTopic as T, ForgottenTopic as F, ReplicaState as R};
        let part = |number, part: &m::FetchPart| {
            let mut it = k!(P {
                partition: number,
                current_leader_epoch: part.current_leader_epoch.0,
                fetch_offset: part.fetch_offset.0,
                last_fetched_epoch: part.last_fetched_epoch.0,
                log_start_offset: part.log_start.0,
                partition_max_bytes: part.max_bytes as i32,
            });
            it.unknown_tagged_fields.extend(mirror_epoch(part.mirror_leader_epoch).map(|field| (2, field)));
            it
        };
        let topics = self.by_topic(&r.parts, |p| p.partition, |g| k!(T { topic_id: g.id(), partitions: g.each(part) }));
        // By slot, in a topic that is none: the message does not say which partition it was.
        let forgotten = r
            .forgotten
            .iter()
            .map(|slot| k!(F { topic_id: uuid(0x6d69_7272_6f72_736c_u128 << 64), partitions: vec![*slot as i32] }));
        k!(k::FetchRequest {
            replica_state: k!(R { replica_id: broker(r.replica), replica_epoch: r.broker_epoch.0 }),
            max_wait_ms: r.max_wait_ms as i32,
            min_bytes: r.min_bytes as i32,
            max_bytes: r.max_bytes as i32,
            isolation_level: level(r.isolation),
            session_id: r.session_id as i32,
            session_epoch: r.session_epoch,
            topics: topics,
            forgotten_topics_data: forgotten.collect(),
        })
    }

    fn fetched(&self, r: &m::FetchResponse) -> k::FetchResponse {
        use k::fetch_response::{
            AbortedTransaction as A, EpochEndOffset as E, FetchableTopicResponse as T, LeaderIdAndEpoch as L,
            NodeEndpoint as N, PartitionData as P,
        };
        let aborted =
            |a: &m::AbortedTransaction| k!(A { producer_id: k::ProducerId(a.producer.0), first_offset: a.first.0 });
        let part = |number, part: &m::FetchPartAnswer| {
            let range = part.first_batch as usize..(part.first_batch + part.batch_count) as usize;
            let mut it = k!(P {
                partition_index: number,
                error_code: part.error as i16,
                high_watermark: part.high_watermark.0,
                last_stable_offset: part.last_stable.0,
                log_start_offset: part.log_start.0,
                aborted_transactions: part.aborted.as_ref().map(|list| list.iter().map(aborted).collect()),
                records: Some(concat(&r.batches[range])),
            });
            if let Some(end) = part.diverging {
                it.diverging_epoch = k!(E { epoch: end.epoch.0, end_offset: end.end.0 });
            }
            if let Some(hint) = part.current_leader {
                it.current_leader = k!(L { leader_id: broker(hint.leader), leader_epoch: hint.epoch.0 });
            }
            it.unknown_tagged_fields.extend(mirror_epoch(part.mirror_leader_epoch).map(|field| (3, field)));
            it
        };
        let topics = self.by_topic(&r.parts, |p| p.partition, |g| k!(T { topic_id: g.id(), partitions: g.each(part) }));
        let endpoints = hinted(r.parts.iter().map(|part| part.current_leader)).into_iter();
        let endpoint = |(id, node)| k!(N { node_id: broker(id), host: address(node), port: PORT.into() });
        k!(k::FetchResponse {
            error_code: r.error as i16,
            session_id: r.session_id as i32,
            responses: topics,
            node_endpoints: endpoints.map(endpoint).collect(),
        })
    }
}

/// `IsolationLevel`.
pub fn level(isolation: m::Isolation) -> i8 {
    i8::from(isolation == m::Isolation::ReadCommitted)
}

/// The proposal's fields of Fetch 19 are tagged ones that the oracle does not know.
fn mirror_epoch(epoch: LeaderEpoch) -> Option<Bytes> {
    (epoch != LeaderEpoch::NONE).then(|| Bytes::copy_from_slice(&epoch.0.to_be_bytes()))
}

#[path = "encode_raft.rs"]
mod raft;
#[path = "encode_rest.rs"]
mod rest;
