//! Transactions at a broker: as coordinator of transactional ids, and as leader of the partitions that get the markers.

use crate::broker::broker::{Broker, FORWARDS};
use crate::broker::groups::coordinator_of;
use crate::broker::joins::Join;
use crate::broker::lanes::{kind, timer, TRANSACTIONS};
use crate::broker::markers::JobId;
use crate::broker::on_clients::WantsId;
use crate::broker::on_data::refused;
use crate::broker::pending::Goal;
use crate::broker::transactions::{Transactions, TxnTask};
use crate::coordinator::routing::TRANSACTION_TOPIC;
use crate::coordinator::txn_plan::ENDS_RAISE_EPOCH;
use crate::coordinator::txn_records::Member;
use crate::guards::transactions as guard;
use crate::ids::{BrokerId, ConnId, Nanos, Now, PartitionIx, ProducerId};
use crate::metadata::delta::MetadataDelta;
use crate::mirror::Gate;
use crate::ports::{Cx, Input};
use crate::record::control::end_txn_marker;
use crate::replica::append::Produced;
use crate::replica::channel::Purpose;
use crate::replica::waits::Ticket;
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, CoordinatorKind, CreateTopicsRequest, EndTxnRequest,
    FindCoordinatorRequest, FindCoordinatorResponse, FoundCoordinator, InitProducerIdRequest, NewTopic,
    ProduceResponse, TxnMarker, TxnMarkerAnswer, WriteTxnMarkersRequest, WriteTxnMarkersResponse,
};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// A partition that is to join a transaction: its name there, or why it may not.
pub(crate) type Joins = (PartitionIx, Result<Member, ErrorCode>);

/// What a broker keeps of transactions beside the coordinator itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct TxnDoor {
    inbox: VecDeque<Input>,
    timer_at: Option<Nanos>,
    /// The controller was asked for the topic.
    topic_asked: bool,
    /// Partitions that are to join a transaction, with their states.
    pub(crate) joins: VecDeque<(ConnId, u32, Join)>,
    /// Partitions of topics that left their mirrors, known to be STOPPED for as long as nobody wishes otherwise.
    pub(crate) left: BTreeSet<PartitionIx>,
}

impl Broker {
    // ------------------------------------------------------------------------------------------------- finding a coordinator

    pub(crate) fn on_find_coordinator(
        &mut self,
        conn: ConnId,
        correlation: u32,
        request: &FindCoordinatorRequest,
        now: Now,
        cx: &mut Cx,
    ) {
        let coordinators = request.keys.iter().map(|key| self.find_coordinator(request.kind, key, now, cx)).collect();
        self.respond(conn, correlation, FindCoordinatorResponse { coordinators }.into(), cx);
    }

    fn find_coordinator(&mut self, of: CoordinatorKind, key: &Arc<str>, now: Now, cx: &mut Cx) -> FoundCoordinator {
        let broker = match of {
            CoordinatorKind::Group => {
                let brokers: Vec<BrokerId> = self.image.brokers().map(|(broker, _)| broker).collect();
                coordinator_of(key, &brokers)
            }
            CoordinatorKind::Transaction => match Transactions::home(key, &self.image) {
                Some(home) => self.image.partition(home).map(|p| p.state.leader),
                None => {
                    self.want_transaction_topic(now, cx);
                    None
                }
            },
        };
        let node = broker.and_then(|broker| self.image.broker_node(broker));
        let error = if node.is_some() { ErrorCode::None } else { ErrorCode::CoordinatorNotAvailable };
        let broker = broker.filter(|_| node.is_some()).unwrap_or(BrokerId::NONE);
        FoundCoordinator { key: key.clone(), error, broker, node }
    }

    /// The topic is created when somebody first looks for a coordinator, as Kafka does it.
    fn want_transaction_topic(&mut self, now: Now, cx: &mut Cx) {
        if std::mem::replace(&mut self.txn_door.topic_asked, true) {
            return;
        }
        let c = &self.config.configs;
        let (min_isr, segment) =
            (c.transaction_state_log_min_isr.to_string(), c.transaction_state_log_segment_bytes.to_string());
        let configs = [
            ("cleanup.policy", "compact"),
            ("compression.type", "uncompressed"),
            ("min.insync.replicas", min_isr.as_str()),
            ("segment.bytes", segment.as_str()),
            ("unclean.leader.election.enable", "false"),
        ];
        let topic = NewTopic {
            name: TRANSACTION_TOPIC.into(),
            partitions: c.transaction_state_log_num_partitions,
            replication_factor: i16::try_from(c.transaction_state_log_replication_factor).unwrap_or(i16::MAX),
            configs: configs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
            ..NewTopic::default()
        };
        let deadline = Some(now.mono + Nanos::from_millis(c.request_timeout_ms));
        let request = CreateTopicsRequest { topics: vec![topic] };
        self.channels[FORWARDS].send(request.into(), Purpose::TransactionTopic, deadline, now, cx);
    }

    /// The controller created the topic, or somebody else had it created, or it could not: whoever looks again finds out.
    pub(crate) fn on_transaction_topic(&mut self) {
        self.txn_door.topic_asked = false;
    }

    // --------------------------------------------------------------------------------------------------------- coordinator

    /// Gives a transactional id its producer id and epoch. `fresh` is a producer id that nobody has, if one is at hand.
    pub(crate) fn init_transaction(
        &mut self,
        conn: ConnId,
        correlation: u32,
        request: &InitProducerIdRequest,
        fresh: Option<ProducerId>,
        now: Now,
        cx: &mut Cx,
    ) {
        let Self { txns, image, replicas, .. } = self;
        let mut task = TxnTask { image, replicas };
        if txns.init((conn, correlation), request, fresh, now, &mut task, cx) {
            self.wait_for_producer_id(conn, correlation, WantsId::Init(Box::new(request.clone())), now, cx);
        }
    }

    pub(crate) fn on_add_partitions(
        &mut self,
        conn: ConnId,
        correlation: u32,
        request: &AddPartitionsToTxnRequest,
        now: Now,
        cx: &mut Cx,
    ) {
        let judged = self.judge_joins(request, cx);
        let unknown = self.states_to_read(&judged);
        if unknown.is_empty() {
            self.join(conn, correlation, request, judged, now, cx);
        } else {
            self.read_before_join(conn, correlation, request, unknown, now, cx);
        }
    }

    /// Has partitions join a transaction, if all of them may.
    pub(crate) fn join(
        &mut self,
        conn: ConnId,
        correlation: u32,
        request: &AddPartitionsToTxnRequest,
        judged: Vec<Joins>,
        now: Now,
        cx: &mut Cx,
    ) {
        if judged.iter().any(|(_, member)| member.is_err()) {
            // All or nothing, as in Kafka.
            let verdict = |(partition, member): &Joins| {
                (*partition, member.as_ref().err().copied().unwrap_or(ErrorCode::OperationNotAttempted))
            };
            let answer = AddPartitionsToTxnResponse { parts: judged.iter().map(verdict).collect() };
            return self.respond(conn, correlation, answer.into(), cx);
        }
        let members: Vec<Member> = judged.into_iter().filter_map(|(_, member)| member.ok()).collect();
        let Self { txns, image, replicas, .. } = self;
        txns.add((conn, correlation), request, &members, now, &mut TxnTask { image, replicas }, cx);
    }

    /// What metadata says of each partition that is to join.
    pub(crate) fn judge_joins(&self, request: &AddPartitionsToTxnRequest, cx: &mut Cx) -> Vec<Joins> {
        request.parts.iter().map(|partition| (*partition, self.may_join(*partition, cx))).collect()
    }

    fn may_join(&self, partition: PartitionIx, cx: &mut Cx) -> Result<Member, ErrorCode> {
        let found = self.image.partition(partition).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        let topic = self.image.topic(found.topic).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        let mirror = self.image.mirror_of(found.topic);
        let read_only = mirror.is_some_and(|(_, desired)| desired != crate::states::DesiredState::Stopped);
        if !cx.guards.admits(guard::MirrorRefusesTransactions, !read_only) {
            return Err(ErrorCode::ReadOnlyTopic);
        }
        Ok((topic.name.clone(), found.number))
    }

    /// Ends a transaction. `fresh` is a producer id that nobody has, if one is at hand.
    pub(crate) fn on_end_txn(
        &mut self,
        conn: ConnId,
        correlation: u32,
        request: &EndTxnRequest,
        fresh: Option<ProducerId>,
        now: Now,
        cx: &mut Cx,
    ) {
        let Self { txns, image, replicas, .. } = self;
        if txns.end((conn, correlation), request, fresh, now, &mut TxnTask { image, replicas }, cx) {
            self.wait_for_producer_id(conn, correlation, WantsId::End(Box::new(request.clone())), now, cx);
        }
    }

    /// Follows the leaderships of `__transaction_state` in a delta that the replicas applied.
    pub(crate) fn publish_transactions(&mut self, delta: &MetadataDelta, now: Now, cx: &mut Cx) {
        if !self.txn_door.left.is_empty() {
            self.forget_left(delta);
        }
        let Some(topic) = self.image.topic_by_name(TRANSACTION_TOPIC) else { return };
        for partition in delta.partitions.iter() {
            let is_ours = self.image.partition(*partition).is_some_and(|p| p.topic == topic);
            if is_ours && self.txns.look_at(*partition, &self.replicas, now, cx.guards) {
                cx.wake(TRANSACTIONS);
            }
        }
    }

    pub(crate) fn file_txn_input(&mut self, input: Input, cx: &mut Cx) {
        self.txn_door.inbox.push_back(input);
        cx.wake(TRANSACTIONS);
    }

    pub(crate) fn txn_timer(&mut self, cx: &mut Cx) {
        self.txn_door.timer_at = None;
        cx.wake(TRANSACTIONS);
    }

    /// One task of the transactions lane: what arrived, one shard to be read, what is overdue.
    pub(crate) fn run_transactions(&mut self, now: Now, cx: &mut Cx) {
        while let Some(input) = self.txn_door.inbox.pop_front() {
            self.txns.markers.arrived(input, now, cx);
        }
        while let Some((conn, correlation, join)) = self.txn_door.joins.pop_front() {
            self.conclude_join(conn, correlation, join, now, cx);
        }
        let Self { txns, image, replicas, .. } = self;
        let mut task = TxnTask { image, replicas };
        txns.load_next(&mut task, cx);
        txns.scan(now, &mut task, cx);
        self.arm_transactions(cx);
    }

    /// What became possible for transactions by what the last task did; true if anything came of it.
    pub(crate) fn go_on_with_transactions(&mut self, now: Now, cx: &mut Cx) -> bool {
        if self.txns.is_idle() {
            return false;
        }
        let Self { txns, image, replicas, .. } = self;
        let mut task = TxnTask { image, replicas };
        let mut moved = txns.commit(&task, cx);
        txns.markers.go_on(task.image, now, cx);
        for job in txns.markers.take_done() {
            moved = true;
            txns.complete(job, now, &mut task, cx);
        }
        for (job, partition, member) in self.txns.markers.take_own() {
            moved = true;
            self.write_own_marker(job, partition, member, now, cx);
        }
        for (conn, correlation, body) in self.txns.take_answers() {
            self.respond(conn, correlation, body, cx);
        }
        self.arm_transactions(cx);
        moved
    }

    fn arm_transactions(&mut self, cx: &mut Cx) {
        let Some(at) = self.txns.next_deadline() else { return };
        if self.txn_door.timer_at.is_none_or(|armed| at < armed) {
            self.txn_door.timer_at = Some(at);
            cx.set_timer(timer(kind::TRANSACTIONS, 0), at);
        }
    }

    // -------------------------------------------------------------------------------------------------- leader of partitions

    pub(crate) fn on_write_markers(
        &mut self,
        conn: ConnId,
        correlation: u32,
        request: &WriteTxnMarkersRequest,
        now: Now,
        cx: &mut Cx,
    ) {
        let ticket = self.pending.ticket();
        let (mut answer, mut waiting) = (ProduceResponse::default(), Vec::new());
        for marker in &request.markers {
            for partition in &marker.parts {
                let part = answer.parts.len() as u32;
                let produced = self.write_txn_marker(marker, *partition, Ticket { part, ..ticket }, now, cx);
                answer.parts.push(produced.answer);
                waiting.push(produced.waits);
            }
        }
        let goal = Goal::Markers(request.markers.iter().map(|m| (m.producer, m.parts.len() as u32)).collect());
        if waiting.contains(&true) {
            self.wait_for_replicas(conn, correlation, goal, waiting, answer, now, cx);
        } else {
            self.respond(conn, correlation, markers_answer(&goal, &answer).into(), cx);
        }
    }

    fn write_own_marker(&mut self, job: JobId, partition: PartitionIx, member: Member, now: Now, cx: &mut Cx) {
        let Some(found) = self.txns.markers.job(job) else { return };
        let marker = TxnMarker {
            producer: found.producer,
            epoch: found.epoch,
            commit: found.commit,
            coordinator_epoch: found.coordinator_epoch,
            version: found.version,
            parts: Vec::new(),
        };
        let produced = self.write_txn_marker(&marker, partition, self.pending.ticket(), now, cx);
        if produced.waits {
            let answer = ProduceResponse { topic_groups: 1, parts: vec![produced.answer] };
            self.wait_for_replicas(NOBODY, 0, Goal::Own(job, member), vec![true], answer, now, cx);
        } else {
            self.txns.markers.written(job, &member, produced.answer.error, now, cx);
        }
    }

    fn write_txn_marker(
        &mut self,
        marker: &TxnMarker,
        partition: PartitionIx,
        ticket: Ticket,
        now: Now,
        cx: &mut Cx,
    ) -> Produced {
        let topic = self.replicas.get(partition).map(|r| r.topic());
        let read_only = topic.is_some_and(|t| self.replicas.topic(t).is_some_and(|t| t.read_only));
        if !cx.guards.admits(guard::MirrorRefusesTransactions, !read_only) {
            // What was open here was cut or is ended by the source: a marker of ours would be a branch in the log.
            cx.trace(Trace::ReadOnlyRefused { partition, producer: marker.producer });
            return refused(partition, ErrorCode::ReadOnlyTopic);
        }
        if !read_only && self.gate(partition, cx) != Gate::Open {
            // It is being stopped: the marker waits until the position and the reset are in the log (decision 9).
            return refused(partition, ErrorCode::CoordinatorLoadInProgress);
        }
        let TxnMarker { producer, epoch, commit, coordinator_epoch, version, .. } = *marker;
        let raised = i16::from(version) >= ENDS_RAISE_EPOCH;
        let bytes = end_txn_marker(commit, producer, epoch, coordinator_epoch, now.wall_ms);
        self.replicas.write_marker(partition, &bytes, raised, ticket, now, cx)
    }
}

/// The connection of those who wait without one.
const NOBODY: ConnId = ConnId(u64::MAX);

/// What the coordinator is told of its markers.
pub(crate) fn markers_answer(goal: &Goal, answer: &ProduceResponse) -> WriteTxnMarkersResponse {
    let Goal::Markers(markers) = goal else { return WriteTxnMarkersResponse::default() };
    let mut parts = answer.parts.iter();
    let of = |(producer, count): &(ProducerId, u32)| TxnMarkerAnswer {
        producer: *producer,
        parts: parts.by_ref().take(*count as usize).map(|part| (part.partition, part.error)).collect(),
    };
    WriteTxnMarkersResponse { markers: markers.iter().map(of).collect() }
}
