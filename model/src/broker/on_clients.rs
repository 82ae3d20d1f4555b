//! Everything that clients ask besides produce and fetch. What only the controller can do is forwarded to it (KIP-590).

use crate::broker::broker::{Broker, FORWARDS};
use crate::broker::groups::coordinator_of;
use crate::broker::transactions::{end_refused, id_refused};
use crate::ids::{BrokerId, ConnId, LeaderEpoch, Nanos, Now, Offset, ProducerEpoch, ProducerId};
use crate::metadata::image::TopicImage;
use crate::ports::Cx;
use crate::replica::channel::Purpose;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    AllocateProducerIdsRequest, Body, BumpLeaderEpochsResponse, CreateClusterMirrorResponse, CreatePartitionsResponse,
    CreateTopicsResponse, DeleteRecordsRequest, DeleteRecordsResponse, DeleteTopicsResponse, ElectLeadersResponse,
    EndTxnRequest, IncrementalAlterConfigsResponse, InitProducerIdRequest, InitProducerIdResponse, ListOffsetsRequest,
    ListOffsetsResponse, MetadataRequest, MetadataResponse, NamedResult, OffsetCommitRequest, OffsetCommitResponse,
    OffsetFetchRequest, OffsetFetchResponse, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
    PartitionMetadata, TopicMetadata,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Producer ids that the controller gave this broker (KIP-730).
#[derive(Clone, Debug)]
pub struct ProducerIdBlock {
    next: ProducerId,
    end: ProducerId,
    asked: bool,
    waiting: VecDeque<(ConnId, u32, WantsId)>,
}

/// Who waits for a producer id.
#[derive(Clone, Debug)]
pub(crate) enum WantsId {
    /// A producer without transactions.
    Producer,
    /// A transactional id that is to get it.
    Init(Box<InitProducerIdRequest>),
    /// A transaction whose producer goes on with it.
    End(Box<EndTxnRequest>),
}

impl Default for ProducerIdBlock {
    fn default() -> Self {
        Self { next: ProducerId(0), end: ProducerId(0), asked: false, waiting: VecDeque::new() }
    }
}

impl Broker {
    pub(crate) fn on_list_offsets(
        &mut self,
        conn: ConnId,
        correlation: u32,
        request: &ListOffsetsRequest,
        now: Now,
        cx: &mut Cx,
    ) {
        let of = |question| self.replicas.list_offset(request.replica, request.isolation, question, now, cx);
        let parts = request.parts.iter().map(of).collect();
        self.respond(conn, correlation, ListOffsetsResponse { parts }.into(), cx);
    }

    pub(crate) fn on_epochs(
        &mut self,
        conn: ConnId,
        correlation: u32,
        request: &OffsetForLeaderEpochRequest,
        cx: &mut Cx,
    ) {
        let parts = request.parts.iter().map(|question| self.replicas.epoch_end(question)).collect();
        self.respond(conn, correlation, OffsetForLeaderEpochResponse { parts }.into(), cx);
    }

    pub(crate) fn on_metadata_request(
        &mut self,
        conn: ConnId,
        correlation: u32,
        request: &MetadataRequest,
        cx: &mut Cx,
    ) {
        let topics = match &request.topics {
            None => self.image.topics().map(|(_, topic)| self.describe(topic)).collect(),
            Some(names) => names.iter().map(|name| self.describe_named(name)).collect(),
        };
        let brokers = self.image.brokers().filter(|(_, b)| !b.fenced).map(|(id, b)| (id, b.node)).collect();
        let answer = MetadataResponse { cluster_id: self.config.cluster_id.clone(), brokers, topics };
        self.respond(conn, correlation, answer.into(), cx);
    }

    fn describe_named(&self, name: &Arc<str>) -> TopicMetadata {
        match self.image.topic_by_name(name).and_then(|ix| self.image.topic(ix)) {
            Some(topic) => self.describe(topic),
            None => TopicMetadata {
                error: ErrorCode::UnknownTopicOrPartition,
                name: name.clone(),
                id: crate::ids::TopicId::ZERO,
                partitions: Vec::new(),
            },
        }
    }

    fn describe(&self, topic: &TopicImage) -> TopicMetadata {
        let of = |partition: &crate::ids::PartitionIx| {
            let p = self.image.partition(*partition)?;
            Some(PartitionMetadata {
                number: p.number,
                partition: *partition,
                leader: p.state.leader,
                leader_epoch: p.state.leader_epoch,
                replicas: p.state.replicas.clone(),
                isr: p.state.isr.clone(),
            })
        };
        TopicMetadata {
            error: ErrorCode::None,
            name: topic.name.clone(),
            id: topic.id,
            partitions: topic.partitions.iter().filter_map(of).collect(),
        }
    }

    pub(crate) fn on_delete_records(
        &mut self,
        conn: ConnId,
        correlation: u32,
        request: &DeleteRecordsRequest,
        cx: &mut Cx,
    ) {
        let mut parts = Vec::with_capacity(request.parts.len());
        for &(partition, upto) in &request.parts {
            let topic = self.replicas.get(partition).map(|r| r.topic());
            let read_only = topic.is_some_and(|t| self.replicas.topic(t).is_some_and(|t| t.read_only));
            let (error, low) = if read_only {
                (ErrorCode::ReadOnlyTopic, Offset::UNKNOWN)
            } else {
                self.replicas.delete_records(partition, upto, cx)
            };
            parts.push((partition, error, low));
        }
        self.respond(conn, correlation, DeleteRecordsResponse { parts }.into(), cx);
    }

    // ------------------------------------------------------------------------------------------------ producer ids

    pub(crate) fn on_init_producer_id(
        &mut self,
        conn: ConnId,
        correlation: u32,
        request: &InitProducerIdRequest,
        now: Now,
        cx: &mut Cx,
    ) {
        if request.transactional_id.is_some() {
            return self.init_transaction(conn, correlation, request, None, now, cx);
        }
        self.wait_for_producer_id(conn, correlation, WantsId::Producer, now, cx);
    }

    /// Someone waits for the next producer id.
    pub(crate) fn wait_for_producer_id(
        &mut self,
        conn: ConnId,
        correlation: u32,
        wants: WantsId,
        now: Now,
        cx: &mut Cx,
    ) {
        self.ids.waiting.push_back((conn, correlation, wants));
        self.give_producer_ids(now, cx);
    }

    fn give_producer_ids(&mut self, now: Now, cx: &mut Cx) {
        while self.ids.next < self.ids.end {
            let Some((conn, correlation, wants)) = self.ids.waiting.pop_front() else { return };
            let producer = self.ids.next;
            self.ids.next = ProducerId(producer.0 + 1);
            match wants {
                WantsId::Init(request) => {
                    self.init_transaction(conn, correlation, &request, Some(producer), now, cx);
                }
                WantsId::End(request) => self.on_end_txn(conn, correlation, &request, Some(producer), now, cx),
                WantsId::Producer => {
                    let answer = InitProducerIdResponse { error: ErrorCode::None, producer, epoch: ProducerEpoch(0) };
                    self.respond(conn, correlation, answer.into(), cx);
                }
            }
        }
        if self.ids.waiting.is_empty() || self.ids.asked {
            return;
        }
        if self.life.epoch.0 < 0 {
            self.refuse_producer_ids(cx);
            return;
        }
        self.ids.asked = true;
        let request = AllocateProducerIdsRequest { broker: self.config.broker, broker_epoch: self.life.epoch };
        let deadline = Some(now.mono + self.forward_timeout());
        self.channels[FORWARDS].send(request.into(), Purpose::ProducerIds, deadline, now, cx);
    }

    pub(crate) fn on_producer_ids(&mut self, result: Result<Body, Body>, now: Now, cx: &mut Cx) {
        self.ids.asked = false;
        match result {
            Ok(Body::AllocateProducerIdsResponse(answer)) if answer.error.is_none() && answer.count > 0 => {
                self.ids.next = answer.first;
                self.ids.end = ProducerId(answer.first.0 + i64::from(answer.count));
                self.give_producer_ids(now, cx);
            }
            _ => self.refuse_producer_ids(cx),
        }
    }

    fn refuse_producer_ids(&mut self, cx: &mut Cx) {
        while let Some((conn, correlation, wants)) = self.ids.waiting.pop_front() {
            let error = ErrorCode::CoordinatorLoadInProgress;
            let refusal = if matches!(wants, WantsId::End(_)) { end_refused(error) } else { id_refused(error) };
            self.respond(conn, correlation, refusal, cx);
        }
    }

    // ------------------------------------------------------------------------------------------------------ groups

    fn keeps_group(&self, group: &str) -> bool {
        let brokers: Vec<BrokerId> = self.image.brokers().map(|(broker, _)| broker).collect();
        coordinator_of(group, &brokers) == Some(self.config.broker)
    }

    pub(crate) fn on_offset_commit(
        &mut self,
        conn: ConnId,
        correlation: u32,
        request: &OffsetCommitRequest,
        cx: &mut Cx,
    ) {
        let here = self.keeps_group(&request.group);
        let mut parts = Vec::with_capacity(request.parts.len());
        for &(partition, offset, epoch) in &request.parts {
            let error = if !here {
                ErrorCode::NotCoordinator
            } else if self.image.partition(partition).is_none() {
                ErrorCode::UnknownTopicOrPartition
            } else {
                self.groups.commit(&request.group, partition, offset, epoch);
                ErrorCode::None
            };
            parts.push((partition, error));
        }
        self.respond(conn, correlation, OffsetCommitResponse { parts }.into(), cx);
    }

    pub(crate) fn on_offset_fetch(
        &mut self,
        conn: ConnId,
        correlation: u32,
        request: &OffsetFetchRequest,
        cx: &mut Cx,
    ) {
        let here = self.keeps_group(&request.group);
        let of = |partition: &crate::ids::PartitionIx| {
            let (offset, epoch) = if here {
                self.groups.position(&request.group, *partition)
            } else {
                (Offset::UNKNOWN, LeaderEpoch::NONE)
            };
            (*partition, offset, epoch)
        };
        let parts = request.parts.iter().map(of).collect();
        let error = if here { ErrorCode::None } else { ErrorCode::NotCoordinator };
        self.respond(conn, correlation, OffsetFetchResponse { error, parts }.into(), cx);
    }

    // --------------------------------------------------------------------------------------------------- forwarding

    pub(crate) fn forward_timeout(&self) -> Nanos {
        Nanos::from_millis(self.config.configs.request_timeout_ms)
    }

    /// Passes a request on to the active controller; its answer is relayed.
    pub(crate) fn forward(&mut self, conn: ConnId, correlation: u32, mut body: Body, now: Now, cx: &mut Cx) {
        if refusal(&body, ErrorCode::UnsupportedVersion).is_none() {
            // Nothing that a broker or a controller answers a client: end the connection, as for an unknown API.
            self.conns.remove(&conn);
            self.replicas.connection_closed(conn);
            cx.effect(crate::ports::Effect::Close { conn });
            return;
        }
        if let Body::CreatePartitionsRequest(request) = &mut body {
            request.for_mirror = false; // whatever a client says
        }
        let deadline = Some(now.mono + self.forward_timeout());
        self.channels[FORWARDS].send(body, Purpose::Forward { conn, correlation }, deadline, now, cx);
    }

    pub(crate) fn on_forwarded(&mut self, conn: ConnId, correlation: u32, result: Result<Body, Body>, cx: &mut Cx) {
        let body = result.unwrap_or_else(|request| refusal(&request, ErrorCode::RequestTimedOut).unwrap_or(request));
        self.respond(conn, correlation, body, cx);
    }
}

/// The answer that refuses all of a request that brokers forward; `None` for any other.
fn refusal(request: &Body, error: ErrorCode) -> Option<Body> {
    let named = |name: &Arc<str>| NamedResult { name: name.clone(), error, message: None };
    Some(match request {
        Body::CreateTopicsRequest(r) => {
            CreateTopicsResponse { topics: r.topics.iter().map(|t| named(&t.name)).collect() }.into()
        }
        Body::DeleteTopicsRequest(r) => DeleteTopicsResponse { topics: r.topics.iter().map(named).collect() }.into(),
        Body::CreatePartitionsRequest(r) => {
            CreatePartitionsResponse { topics: r.topics.iter().map(|(name, _)| named(name)).collect() }.into()
        }
        Body::IncrementalAlterConfigsRequest(r) => {
            let name = |resource: &crate::wire::messages::ConfigResource| match resource {
                crate::wire::messages::ConfigResource::Topic(name)
                | crate::wire::messages::ConfigResource::ClusterMirror(name) => name.clone(),
                crate::wire::messages::ConfigResource::Broker(id) => id.map_or("".into(), |id| id.to_string().into()),
            };
            let resources = r.resources.iter().map(|(resource, _)| named(&name(resource))).collect();
            IncrementalAlterConfigsResponse { resources }.into()
        }
        Body::ElectLeadersRequest(r) => {
            ElectLeadersResponse { parts: r.parts.iter().map(|p| (*p, error)).collect() }.into()
        }
        Body::CreateClusterMirrorRequest(_) => CreateClusterMirrorResponse { error, message: None }.into(),
        Body::BumpLeaderEpochsRequest(r) => {
            BumpLeaderEpochsResponse { error, parts: r.parts.iter().map(|(p, _)| (*p, error)).collect() }.into()
        }
        _ => return None,
    })
}
