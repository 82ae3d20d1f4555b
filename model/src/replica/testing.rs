//! Brokers' replica rooms side by side, with a wire that the test holds: for tests of leader and followers together.

use crate::guards::Guards;
use crate::ids::{
    BrokerEpoch, BrokerId, ConnId, LeaderEpoch, Nanos, NodeId, Now, Offset, PartitionEpoch, PartitionIx, TopicId,
    TopicIx,
};
use crate::log::{FlushUpto, LogPolicy};
use crate::metadata::records::PartitionState;
use crate::ports::{Cx, Effect, Entropy, Lane, Outbox};
use crate::record::{BatchBuilder, BatchMeta, BatchView};
use crate::replica::append::Produced;
use crate::replica::fetch_serve::Fetched;
use crate::replica::replica_fetcher::{FetchSlot, FetcherConfig, ReplicaFetchers};
use crate::replica::waits::{Ticket, WaitDone};
use crate::replica::{BrokerView, PartitionSpec, Replicas, TopicPolicy};
use crate::testing::MemDisk;
use crate::trace::Trace;
use crate::wire::messages::{Body, FetchRequest, FetchResponse, Isolation, ListOffsetsResponse, Message};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;

/// The one partition of most tests.
pub const P0: PartitionIx = PartitionIx(0);

/// One broker's replica room.
pub struct Node {
    pub id: BrokerId,
    pub disk: MemDisk,
    pub guards: Guards,
    pub out: Outbox,
    pub next_conn: u64,
    pub replicas: Replicas,
    pub fetchers: ReplicaFetchers,
    pub broker_epoch: BrokerEpoch,
    pub trace: Vec<Trace>,
}

/// A message on its way.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub from: usize,
    pub to: usize,
    pub conn: ConnId,
    pub message: Message,
}

/// All brokers, and what is on the wire.
pub struct Rig {
    pub nodes: Vec<Node>,
    pub now: Now,
    pub wire: VecDeque<Delivery>,
    pub parked: Vec<(usize, u32, usize, ConnId, u32)>,
    pub done: Vec<WaitDone>,
    conns: Vec<(ConnId, usize, usize)>,
    policy: TopicPolicy,
}

impl Replicas {
    /// What fell with a cut is checkpointed at once.
    pub fn settle_lowered(&mut self) {
        for (partition, points) in self.take_lowered() {
            self.on_point_durable(partition, points.generation);
        }
    }
}

impl Node {
    /// Calls with a context over this node's parts; trace events are kept.
    pub fn with<R>(&mut self, call: impl FnOnce(&mut Replicas, &mut ReplicaFetchers, &mut Cx) -> R) -> R {
        let mut cx = Cx {
            node: NodeId(self.id.0 as u16),
            disk: &mut self.disk,
            guards: &mut self.guards,
            out: &mut self.out,
            entropy: Entropy(1),
            next_conn: &mut self.next_conn,
        };
        let result = call(&mut self.replicas, &mut self.fetchers, &mut cx);
        self.replicas.settle_lowered();
        self.trace.extend(self.out.trace.drain(..).map(|event| event.trace));
        result
    }

    pub fn log(&self) -> &crate::log::Log {
        self.replicas.log(P0).unwrap()
    }

    pub fn end(&self) -> i64 {
        self.log().end().0
    }

    pub fn hw(&self) -> i64 {
        self.log().high_watermark().0
    }

    pub fn isr(&self) -> u32 {
        self.replicas.get(P0).unwrap().leader.unwrap().isr
    }

    pub fn epochs(&self) -> Vec<(i32, i64)> {
        self.log().epochs().entries().iter().map(|e| (e.epoch.0, e.start.0)).collect()
    }

    pub fn slot(&self) -> &FetchSlot {
        self.fetchers.slot_of(&self.replicas, P0).unwrap()
    }

    /// All bytes of the log.
    pub fn bytes(&self) -> Vec<Bytes> {
        let mut all = Vec::new();
        let log = self.log();
        log.for_each_batch(&self.disk, log.start(), |batch| all.push(Bytes::copy_from_slice(batch.bytes()))).unwrap();
        all
    }

    pub fn cuts(&self) -> Vec<(i64, i64)> {
        let of = |t: &Trace| match t {
            Trace::Truncated { from, to, .. } => Some((from.0, to.0)),
            _ => None,
        };
        self.trace.iter().filter_map(of).collect()
    }
}

/// One batch of `count` records; `tag` makes its bytes differ.
pub fn batch(count: usize, tag: u8) -> Bytes {
    let mut builder = BatchBuilder::new(BatchMeta { base_timestamp: 1000, ..BatchMeta::default() });
    for _ in 0..count {
        builder.push(1000, None, Some(&[tag; 10]));
    }
    builder.finish()
}

/// The same as a log has it.
pub fn batch_at(base: i64, count: usize, epoch: i32, tag: u8) -> Bytes {
    let mut builder = BatchBuilder::new(BatchMeta {
        base_offset: Offset(base),
        leader_epoch: LeaderEpoch(epoch),
        base_timestamp: 1000,
        ..BatchMeta::default()
    });
    for _ in 0..count {
        builder.push(1000, None, Some(&[tag; 10]));
    }
    builder.finish()
}

/// A registration of the one partition: leader, leader epoch, partition epoch, replicas, ISR.
pub fn state(leader: i32, epoch: i32, partition_epoch: i32, replicas: &[i32], isr: &[i32]) -> PartitionState {
    let list = |ids: &[i32]| ids.iter().map(|id| BrokerId(*id)).collect();
    PartitionState {
        replicas: list(replicas),
        isr: list(isr),
        elr: list(&[]),
        last_known_elr: list(&[]),
        leader: BrokerId(leader),
        leader_epoch: LeaderEpoch(epoch),
        partition_epoch: PartitionEpoch(partition_epoch),
        recovering: false,
    }
}

impl Rig {
    /// So many brokers, numbered from 0, all live, over a topic with this `min.insync.replicas`.
    pub fn new(count: usize, min_isr: u32) -> Self {
        let views: Vec<BrokerView> = (0..count)
            .map(|id| BrokerView {
                broker: BrokerId(id as i32),
                epoch: BrokerEpoch(100 + id as i64),
                fenced: false,
                shutting_down: false,
            })
            .collect();
        let policy = TopicPolicy { log: LogPolicy::default(), min_isr, mirrored: false, read_only: false };
        let node = |id: usize| {
            let broker = BrokerId(id as i32);
            let mut replicas = Replicas::new(broker, Nanos::from_secs(30));
            replicas.set_brokers(views.clone());
            replicas.set_topic(TopicIx(0), Some(Arc::new(policy.clone())));
            Node {
                id: broker,
                disk: MemDisk::new(),
                guards: Guards::default(),
                out: Outbox::default(),
                next_conn: (id as u64) << 40 | 1,
                replicas,
                fetchers: ReplicaFetchers::new(broker, FetcherConfig::default()),
                broker_epoch: BrokerEpoch(100 + id as i64),
                trace: Vec::new(),
            }
        };
        Self {
            nodes: (0..count).map(node).collect(),
            now: Now { mono: Nanos::from_secs(1000), wall_ms: 1_000_000 },
            wire: VecDeque::new(),
            parked: Vec::new(),
            done: Vec::new(),
            conns: Vec::new(),
            policy,
        }
    }

    /// Switches a guard at all brokers.
    pub fn guard(&mut self, id: crate::guards::GuardId, on: bool) {
        for node in &mut self.nodes {
            node.guards.set(id, on);
        }
    }

    /// Changes the topic's policy at all brokers.
    pub fn policy(&mut self, change: impl Fn(&mut TopicPolicy)) {
        change(&mut self.policy);
        for node in &mut self.nodes {
            node.replicas.set_topic(TopicIx(0), Some(Arc::new(self.policy.clone())));
        }
    }

    /// Lets metadata reach these brokers.
    pub fn metadata(&mut self, to: &[usize], state: &PartitionState) {
        self.metadata_of(P0, to, state);
    }

    pub fn metadata_of(&mut self, partition: PartitionIx, to: &[usize], state: &PartitionState) {
        let now = self.now;
        for &at in to {
            let spec = PartitionSpec { partition, topic: TopicIx(0), topic_id: TopicId(7), number: partition.0, state };
            self.nodes[at].with(|replicas, fetchers, cx| {
                replicas.apply(&spec, None, now, cx).unwrap();
                let changes = replicas.take_fetch_changes();
                fetchers.apply(&changes, replicas, &|b| Some(NodeId(b.0 as u16)), now, cx);
            });
            self.effects(at);
        }
    }

    pub fn produce(&mut self, at: usize, count: usize, tag: u8, acks: i16) -> Produced {
        let now = self.now;
        let ticket = Ticket { request: 0, generation: 0, part: 0 };
        let batch = batch(count, tag);
        let produced = self.nodes[at].with(|replicas, _, cx| replicas.produce(P0, &batch, acks, ticket, now, cx));
        self.settle_leader(at);
        produced
    }

    /// All flushes that a broker wants now are done at once.
    pub fn flush(&mut self, at: usize) {
        let now = self.now;
        self.nodes[at].with(|replicas, _, cx| {
            for partition in replicas.take_flush_due() {
                if let Some(target) = replicas.plan_flush(partition, FlushUpto::End, &mut Vec::new(), cx) {
                    replicas.flushed(partition, target, true, now.mono, cx);
                }
            }
        });
    }

    /// Puts bytes into a broker's log as a follower would, with no bound.
    pub fn plant(&mut self, at: usize, batches: &[Bytes]) {
        let now = self.now;
        self.nodes[at].with(|replicas, _, cx| {
            let slot = replicas.slot(P0).unwrap();
            let bound = LeaderEpoch(i32::MAX);
            replicas.append_copied(slot, batches, bound, crate::trace::Origin::Replication, now, cx).unwrap()
        });
    }

    /// A broker's fetchers fall silent for ever, and what is on the wire for it is lost.
    pub fn silence(&mut self, at: usize) {
        self.nodes[at].fetchers = ReplicaFetchers::new(self.nodes[at].id, FetcherConfig::default());
        self.wire.retain(|d| d.to != at && d.from != at);
    }

    /// Turns effects into deliveries and runs of lanes.
    pub fn effects(&mut self, at: usize) {
        let now = self.now;
        loop {
            let effects = std::mem::take(&mut self.nodes[at].out.effects);
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                match effect {
                    Effect::Connect { conn, to } => {
                        self.conns.push((conn, at, usize::from(to.0)));
                        self.nodes[at].with(|_, fetchers, cx| fetchers.opened(conn, cx));
                    }
                    Effect::Send { conn, message } => {
                        let (_, _, to) = *self.conns.iter().find(|(c, ..)| *c == conn).unwrap();
                        self.wire.push_back(Delivery { from: at, to, conn, message });
                    }
                    Effect::Wake(lane) => self.run_lane(at, lane, now),
                    _ => {}
                }
            }
        }
    }

    fn run_lane(&mut self, at: usize, lane: Lane, now: Now) {
        let epoch = self.nodes[at].broker_epoch;
        self.nodes[at].with(|replicas, fetchers, cx| {
            if let Some(index) = fetchers.owns_lane(lane) {
                fetchers.run(index, epoch, replicas, now, cx);
            }
        });
    }

    /// Answers of parked fetches that became possible, and ended waits.
    pub fn settle_leader(&mut self, at: usize) {
        let now = self.now;
        let mut ready = Vec::new();
        self.nodes[at].replicas.take_ready(&mut ready);
        for session in ready {
            if let Some((parked, answer)) = self.nodes[at].with(|replicas, _, cx| replicas.resume(session, now, cx)) {
                self.answer(at, session, parked.conn, parked.correlation, answer);
            }
        }
        let node = &mut self.nodes[at];
        node.replicas.take_done(&mut self.done);
    }

    fn answer(&mut self, at: usize, session: u32, conn: ConnId, correlation: u32, answer: FetchResponse) {
        self.parked.retain(|(leader, s, ..)| *leader != at || *s != session);
        let (_, to, _) = *self.conns.iter().find(|(c, ..)| *c == conn).unwrap();
        self.wire.push_back(Delivery { from: at, to, conn, message: Message { correlation, body: answer.into() } });
    }

    /// Delivers the message at the head of the wire. False if there is none.
    pub fn step(&mut self) -> bool {
        let Some(delivery) = self.wire.pop_front() else { return false };
        self.deliver(delivery);
        true
    }

    pub fn deliver(&mut self, delivery: Delivery) {
        let Delivery { from, to, conn, message } = delivery;
        let now = self.now;
        match &message.body {
            Body::FetchRequest(request) => {
                let fetched =
                    self.nodes[to].with(|replicas, _, cx| replicas.fetch(conn, message.correlation, request, now, cx));
                match fetched {
                    Fetched::Answer(answer) => {
                        let body = Body::FetchResponse(answer);
                        let message = Message { correlation: message.correlation, body };
                        self.wire.push_back(Delivery { from: to, to: from, conn, message });
                    }
                    Fetched::Parked { session, .. } => self.parked.push((to, session, from, conn, message.correlation)),
                }
                self.settle_leader(to);
            }
            Body::ListOffsetsRequest(request) => {
                let parts = self.nodes[to].with(|replicas, _, cx| {
                    let of = |q| replicas.list_offset(request.replica, request.isolation, q, now, cx);
                    request.parts.iter().map(of).collect()
                });
                let message = Message { correlation: message.correlation, body: ListOffsetsResponse { parts }.into() };
                self.wire.push_back(Delivery { from: to, to: from, conn, message });
            }
            _ => {
                self.nodes[to].with(|_, fetchers, cx| fetchers.message(conn, message, cx));
                self.effects(to);
            }
        }
    }

    /// Delivers until nothing moves.
    pub fn settle(&mut self) {
        let mut steps = 0;
        while self.step() {
            steps += 1;
            assert!(steps < 10_000, "the wire never empties");
        }
    }

    /// Lets time pass; parked fetches and backoffs that are due end.
    pub fn advance(&mut self, ms: u64) {
        self.now.mono = self.now.mono + Nanos::from_millis(ms);
        self.now.wall_ms += ms as i64;
        let now = self.now;
        for (leader, session, _, _, _) in self.parked.clone() {
            let resumed = self.nodes[leader].with(|replicas, _, cx| replicas.resume(session, now, cx));
            if let Some((parked, answer)) = resumed {
                self.answer(leader, session, parked.conn, parked.correlation, answer);
            }
        }
        for at in 0..self.nodes.len() {
            for index in 0..self.nodes[at].fetchers.fetchers().len() {
                self.nodes[at].with(|_, fetchers, cx| fetchers.timer(index, cx));
                self.effects(at);
            }
        }
        self.settle();
    }

    /// Takes and settles all ISR proposals of a leader as a willing controller would; returns the new mask.
    pub fn commit_isr(&mut self, at: usize, partition_epoch: i32) -> u32 {
        let now = self.now;
        let proposals = self.nodes[at].replicas.take_proposals(100);
        for proposal in proposals {
            let verdict = crate::wire::messages::IsrVerdict {
                partition: proposal.partition,
                error: crate::wire::errors::ErrorCode::None,
                leader: BrokerId(at as i32),
                leader_epoch: proposal.leader_epoch,
                isr: proposal.isr.iter().map(|(b, _)| *b).collect(),
                partition_epoch: PartitionEpoch(partition_epoch),
            };
            self.nodes[at].with(|replicas, _, cx| replicas.on_isr_verdict(&verdict, now, cx));
        }
        self.settle_leader(at);
        self.nodes[at].isr()
    }

    /// A consumer's fetch without a session.
    pub fn consume(&mut self, at: usize, from: i64, epoch: i32) -> FetchResponse {
        let request = FetchRequest {
            replica: BrokerId::NONE,
            broker_epoch: BrokerEpoch(-1),
            max_wait_ms: 0,
            min_bytes: 1,
            max_bytes: 1 << 20,
            isolation: Isolation::ReadUncommitted,
            session_id: 0,
            session_epoch: -1,
            topic_groups: 1,
            parts: vec![crate::wire::messages::FetchPart {
                slot: 0,
                partition: P0,
                fetch_offset: Offset(from),
                current_leader_epoch: LeaderEpoch(epoch),
                last_fetched_epoch: LeaderEpoch::NONE,
                log_start: Offset::UNKNOWN,
                max_bytes: 1 << 20,
                mirror_leader_epoch: LeaderEpoch::NONE,
                aligned: LeaderEpoch::NONE,
            }],
            forgotten: Vec::new(),
        };
        let now = self.now;
        match self.nodes[at].with(|replicas, _, cx| replicas.fetch(ConnId(9), 1, &request, now, cx)) {
            Fetched::Answer(answer) => *answer,
            Fetched::Parked { .. } => panic!("a fetch without wait was parked"),
        }
    }
}

/// The epochs of these batches.
pub fn epochs_of(batches: &[Bytes]) -> Vec<i32> {
    batches.iter().map(|b| BatchView::parse(b).unwrap().leader_epoch().0).collect()
}
