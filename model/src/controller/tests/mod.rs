//! A controller on a disk in memory, with its world reduced to: every wake runs at once, every flush succeeds when told.

mod boot;
mod brokers;
mod elections;
mod histories;
mod isr;
mod mirror_creation;
mod mirrors;
mod observers;
mod quorum;
mod topics;

use crate::controller::{Controller, ControllerConfig};
use crate::guards::Guards;
use crate::ids::{
    BrokerEpoch, BrokerId, ConnId, LeaderEpoch, MetadataOffset, Nanos, NodeId, Now, PartitionEpoch, PartitionIx,
};
use crate::metadata::records::{Brokers, PartitionState};
use crate::ports::{Cx, DiskError, Effect, Entropy, Input, Outbox, Timer};
use crate::testing::MemDisk;
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::*;
use std::sync::Arc;

const CONN: ConnId = ConnId(1);

pub(super) struct Rig {
    pub controller: Controller,
    pub disk: MemDisk,
    pub guards: Guards,
    pub now: Now,
    pub sent: Vec<(ConnId, Message)>,
    pub traces: Vec<Trace>,
    pub timers: Vec<(Timer, Nanos)>,
    pub exits: Vec<Effect>,
    /// Flush effects that are not answered yet.
    pub flushes: Vec<Effect>,
    /// Whether flushes are answered by `settle`.
    pub auto_flush: bool,
    correlation: u32,
}

pub(super) fn config() -> ControllerConfig {
    let mut config = ControllerConfig::alone("east", NodeId(100));
    config.broker.default_replication_factor = 3;
    config
}

fn with_cx<T>(disk: &mut MemDisk, guards: &mut Guards, out: &mut Outbox, call: impl FnOnce(&mut Cx<'_>) -> T) -> T {
    let mut next_conn = crate::ports::first_conn(NodeId(100));
    call(&mut Cx { node: NodeId(100), disk, guards, out, entropy: Entropy(7), next_conn: &mut next_conn })
}

impl Rig {
    pub fn new(config: ControllerConfig) -> Self {
        Self::on(config, MemDisk::new(), Guards::default(), Now::default())
    }
    /// Boots on a disk and lets the new leader settle.
    pub fn on(config: ControllerConfig, disk: MemDisk, guards: Guards, now: Now) -> Self {
        let mut rig = Self::booted(config, disk, guards, now);
        rig.settle();
        rig
    }
    /// Boots and answers nothing yet.
    pub fn booted(config: ControllerConfig, mut disk: MemDisk, mut guards: Guards, now: Now) -> Self {
        let mut out = Outbox::default();
        let controller = with_cx(&mut disk, &mut guards, &mut out, |cx| Controller::boot(config, now, cx));
        let mut rig = Self {
            controller,
            disk,
            guards,
            now,
            sent: Vec::new(),
            traces: Vec::new(),
            timers: Vec::new(),
            exits: Vec::new(),
            flushes: Vec::new(),
            auto_flush: true,
            correlation: 0,
        };
        rig.take(out);
        rig.accept(Input::Opened { conn: CONN, peer: NodeId(1), inbound: true });
        rig
    }

    pub fn accept(&mut self, input: Input) {
        let mut out = Outbox::default();
        let (controller, now) = (&mut self.controller, self.now);
        with_cx(&mut self.disk, &mut self.guards, &mut out, |cx| controller.accept(now, input, cx));
        self.take(out);
    }

    fn take(&mut self, out: Outbox) {
        self.traces.extend(out.trace.into_iter().map(|e| e.trace));
        for effect in out.effects {
            match effect {
                Effect::Wake(lane) => {
                    let mut out = Outbox::default();
                    let (controller, now) = (&mut self.controller, self.now);
                    with_cx(&mut self.disk, &mut self.guards, &mut out, |cx| controller.run(now, lane, cx));
                    self.take(out);
                }
                Effect::Send { conn, message } => self.sent.push((conn, message)),
                Effect::SetTimer { timer, at } => self.timers.push((timer, at)),
                Effect::Flush { .. } | Effect::FlushDir { .. } => self.flushes.push(effect),
                other => self.exits.push(other),
            }
        }
    }

    /// Answers the oldest flush.
    pub fn flush_one(&mut self, result: Result<(), DiskError>) {
        let effect = self.flushes.remove(0);
        if result.is_ok() {
            self.disk.obey(std::slice::from_ref(&effect));
        }
        if let Effect::Flush { token, .. } | Effect::FlushDir { token, .. } = effect {
            self.accept(Input::Flushed { token, result });
        }
    }
    pub fn settle(&mut self) {
        while self.auto_flush && !self.flushes.is_empty() {
            self.flush_one(Ok(()));
        }
    }

    /// Moves time and fires what is due.
    pub fn pass(&mut self, ms: u64) {
        self.now.mono = self.now.mono + Nanos::from_millis(ms);
        self.now.wall_ms += ms as i64;
        loop {
            let now = self.now.mono;
            let Some(at) = self.timers.iter().position(|(_, due)| *due <= now) else { break };
            let (timer, _) = self.timers.remove(at);
            self.accept(Input::Timer(timer));
            self.settle();
        }
    }

    pub fn send(&mut self, conn: ConnId, body: impl Into<Body>) -> u32 {
        self.correlation += 1;
        let message = Message { correlation: self.correlation, body: body.into() };
        self.accept(Input::Message { conn, message });
        self.correlation
    }
    /// Asks, and gives the answer.
    pub fn ask(&mut self, body: impl Into<Body>) -> Body {
        let correlation = self.send(CONN, body);
        self.settle();
        let at = self.sent.iter().position(|(_, m)| m.correlation == correlation);
        let at = at.unwrap_or_else(|| panic!("no answer to {correlation}"));
        self.sent.remove(at).1.body
    }

    // -- what a test wants

    pub fn register_as(&mut self, broker: i32, incarnation: u128, previous: i64) -> BrokerRegistrationResponse {
        let request = BrokerRegistrationRequest {
            broker: BrokerId(broker),
            cluster_id: "east".into(),
            incarnation,
            node: NodeId(broker as u16),
            previous_epoch: BrokerEpoch(previous),
        };
        let Body::BrokerRegistrationResponse(answer) = self.ask(request) else { panic!() };
        *answer
    }
    pub fn beat(&mut self, broker: i32, want_fence: bool, want_shutdown: bool) -> BrokerHeartbeatResponse {
        let end = self.controller.committed_image().end();
        self.beat_at(broker, end.0, want_fence, want_shutdown)
    }
    pub fn beat_at(&mut self, broker: i32, end: i64, want_fence: bool, want_shutdown: bool) -> BrokerHeartbeatResponse {
        let request = BrokerHeartbeatRequest {
            broker: BrokerId(broker),
            epoch: self.epoch_of(broker),
            metadata_offset: MetadataOffset(end),
            want_fence,
            want_shutdown,
        };
        let Body::BrokerHeartbeatResponse(answer) = self.ask(request) else { panic!() };
        *answer
    }
    pub fn epoch_of(&self, broker: i32) -> BrokerEpoch {
        self.controller.image().broker(BrokerId(broker)).unwrap().epoch
    }
    /// Registers and lets in.
    pub fn bring_up(&mut self, brokers: &[i32]) {
        for &broker in brokers {
            assert_eq!(self.register_as(broker, broker as u128, -1).error, ErrorCode::None);
            assert!(!self.beat(broker, false, false).fenced);
        }
    }
    pub fn fence(&mut self, brokers: &[i32]) {
        for &broker in brokers {
            assert!(self.beat(broker, true, false).fenced);
        }
    }
    pub fn topic(&mut self, name: &str, replicas: &[&[i32]], configs: &[(&str, &str)]) -> Vec<PartitionIx> {
        let new = NewTopic {
            name: name.into(),
            assignments: replicas.iter().map(|r| r.iter().map(|b| BrokerId(*b)).collect()).collect(),
            configs: configs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
            ..NewTopic::default()
        };
        let Body::CreateTopicsResponse(answer) = self.ask(CreateTopicsRequest { topics: vec![new] }) else { panic!() };
        assert_eq!(answer.topics[0].error, ErrorCode::None, "{answer:?}");
        let image = self.controller.image();
        image.topic(image.topic_by_name(name).unwrap()).unwrap().partitions.clone()
    }
    pub fn state(&self, partition: PartitionIx) -> PartitionState {
        self.controller.image().partition(partition).unwrap().state.clone()
    }
    /// Leader, leader epoch, ISR, ELR.
    pub fn short(&self, partition: PartitionIx) -> (i32, i32, Vec<i32>, Vec<i32>) {
        let state = self.state(partition);
        let ids = |list: &Brokers| list.iter().map(|b| b.0).collect();
        (state.leader.0, state.leader_epoch.0, ids(&state.isr), ids(&state.elr))
    }
    pub fn propose(&mut self, partition: PartitionIx, isr: &[i32]) -> IsrVerdict {
        let state = self.state(partition);
        let isr = isr.iter().map(|b| (BrokerId(*b), self.epoch_of(*b))).collect();
        self.propose_as(state.leader.0, partition, state.leader_epoch.0, state.partition_epoch.0, isr, false)
    }
    pub fn propose_as(
        &mut self,
        leader: i32,
        partition: PartitionIx,
        leader_epoch: i32,
        partition_epoch: i32,
        isr: Vec<(BrokerId, BrokerEpoch)>,
        recovered: bool,
    ) -> IsrVerdict {
        let proposal = IsrProposal {
            partition,
            leader_epoch: LeaderEpoch(leader_epoch),
            partition_epoch: PartitionEpoch(partition_epoch),
            isr: isr.into_iter().collect(),
            recovered,
        };
        let broker_epoch = self.epoch_of(leader);
        let request = AlterPartitionRequest { broker: BrokerId(leader), broker_epoch, parts: vec![proposal] };
        let Body::AlterPartitionResponse(answer) = self.ask(request) else { panic!() };
        assert_eq!(answer.error, ErrorCode::None);
        answer.parts[0].clone()
    }
    pub fn set_config(&mut self, resource: ConfigResource, key: &str, value: Option<&str>) -> NamedResult {
        let entries = vec![(Arc::from(key), value.map(Arc::from))];
        let request = IncrementalAlterConfigsRequest { resources: vec![(resource, entries)] };
        let Body::IncrementalAlterConfigsResponse(answer) = self.ask(request) else { panic!() };
        answer.resources[0].clone()
    }
    pub fn end(&self) -> i64 {
        self.controller.image().end().0
    }
}

fn without_elr() -> ControllerConfig {
    let mut config = config();
    config.broker.eligible_leader_replicas_enable = false;
    config
}

impl Rig {
    /// Appends a record as an operation that is not here yet would.
    fn plan_for_test(&mut self, record: crate::metadata::records::Record) {
        let mut out = Outbox::default();
        let (controller, now) = (&mut self.controller, self.now);
        with_cx(&mut self.disk, &mut self.guards, &mut out, |cx| controller.append_for_test(record, now, cx));
        self.take(out);
        self.settle();
    }

    fn move_leaders(&mut self, moves: &[(PartitionIx, BrokerId)]) {
        let mut out = Outbox::default();
        let (controller, now) = (&mut self.controller, self.now);
        with_cx(&mut self.disk, &mut self.guards, &mut out, |cx| controller.move_leaders(moves, now, cx));
        self.take(out);
        self.settle();
    }
}
