//! A broker's life at the controller: registration, heartbeats, controlled shutdown (KIP-631, 966).

use crate::broker::broker::{Broker, HEARTBEATS, ISR};
use crate::broker::config::BrokerConfig;
use crate::broker::lanes::{kind, timer};
use crate::guards::points::Point;
use crate::guards::replication as guard;
use crate::ids::{BrokerEpoch, Nanos, Now};
use crate::ports::Cx;
use crate::replica::channel::{Outcome, Purpose};
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    AlterPartitionRequest, AlterPartitionResponse, Body, BrokerHeartbeatRequest, BrokerHeartbeatResponse,
    BrokerRegistrationRequest, BrokerRegistrationResponse,
};
use std::collections::VecDeque;

/// Where a broker's life stands; the name says what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Its registration.
    Registering,
    /// Metadata up to its registration.
    CatchingUp,
    /// To be let in.
    Fenced,
    /// Nothing: it serves.
    Running,
    /// Its leaderships to be moved away.
    HandingOver,
    /// The last flushes.
    Flushing,
    /// The end.
    Stopped,
}

/// The state of a broker's life.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    /// Where it stands.
    pub stage: Stage,
    pub(crate) incarnation: u128,
    pub(crate) epoch: BrokerEpoch,
    pub(crate) previous_epoch: BrokerEpoch,
    pub(crate) interval: Nanos,
    pub(crate) heartbeat_due: bool,
    pub(crate) isr_due: bool,
    pub(crate) beating: bool,
    pub(crate) channel_timers: VecDeque<usize>,
}

/// Concern of the draw of an incarnation.
const INCARNATION: u64 = 0x1bc;
/// Wait before ISR proposals that failed are sent again (stock 50 ms).
const ISR_BACKOFF: Nanos = Nanos::from_millis(50);
/// At most so many proposals in one request.
const ISR_LIMIT: usize = 10_000;

impl Lifecycle {
    pub(crate) fn new(config: &BrokerConfig, now: Now, cx: &mut Cx) -> Self {
        // The connection counter survives restarts, so every process start draws another incarnation.
        let high = cx.entropy.draw(INCARNATION, *cx.next_conn);
        let low = cx.entropy.draw(INCARNATION + 1, now.mono.0 ^ now.wall_ms as u64);
        *cx.next_conn += 1;
        Self {
            stage: Stage::Registering,
            incarnation: u128::from(high) << 64 | u128::from(low),
            epoch: BrokerEpoch(-1),
            previous_epoch: BrokerEpoch(-1),
            interval: Nanos::from_millis(config.configs.broker_heartbeat_interval_ms),
            heartbeat_due: false,
            isr_due: false,
            beating: false,
            channel_timers: VecDeque::new(),
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.stage == Stage::Running
    }

    pub(crate) fn is_stopping(&self) -> bool {
        matches!(self.stage, Stage::HandingOver | Stage::Flushing | Stage::Stopped)
    }
}

impl Broker {
    pub(crate) fn register(&mut self, now: Now, cx: &mut Cx) {
        let request = BrokerRegistrationRequest {
            broker: self.config.broker,
            cluster_id: self.config.cluster_id.clone(),
            incarnation: self.life.incarnation,
            node: self.config.node,
            previous_epoch: self.life.previous_epoch,
        };
        self.channels[HEARTBEATS].send(request.into(), Purpose::Registration, None, now, cx);
    }

    /// One task of the controller lane: everything that was filed for it.
    pub(crate) fn run_controller(&mut self, now: Now, cx: &mut Cx) {
        while let Some((at, message)) = self.answers.pop_front() {
            if let Some(outcome) = self.channels[at].message(message, now, cx) {
                self.on_outcome(outcome, now, cx);
            }
        }
        while let Some(at) = self.life.channel_timers.pop_front() {
            for outcome in self.channels[at].fired(now, cx) {
                self.on_outcome(outcome, now, cx);
            }
        }
        if std::mem::take(&mut self.life.heartbeat_due) {
            if self.life.stage == Stage::Registering {
                self.register(now, cx);
            } else {
                self.beat(now, cx);
            }
        }
        // `after` sends what waits for the backoff's end.
        self.life.isr_due = false;
    }

    fn on_outcome(&mut self, outcome: Outcome, now: Now, cx: &mut Cx) {
        match (outcome.purpose, outcome.result) {
            (Purpose::Registration, Ok(Body::BrokerRegistrationResponse(answer))) => {
                self.on_registration(&answer, now, cx);
            }
            (Purpose::Heartbeat, Ok(Body::BrokerHeartbeatResponse(answer))) => self.on_heartbeat(&answer, now, cx),
            (Purpose::Isr(parts), Ok(Body::AlterPartitionResponse(answer))) => self.on_isr(&parts, &answer, now, cx),
            (Purpose::Isr(parts), _) => {
                self.isr_in_flight = false;
                self.replicas.proposals_failed(&parts);
            }
            (Purpose::ProducerIds, result) => self.on_producer_ids(result, now, cx),
            (Purpose::TransactionTopic, _) => self.on_transaction_topic(),
            (Purpose::Forward { conn, correlation }, result) => self.on_forwarded(conn, correlation, result, cx),
            (Purpose::Order(id), result) => self.on_order_decided(id, result, cx),
            (Purpose::Mirror(of), result) => {
                let outcome = Outcome { purpose: Purpose::Mirror(of), result };
                let (mirror, mut task) = self.mirror_room();
                mirror.on_outcome(now, outcome, &mut task, cx);
            }
            _ => {}
        }
    }

    fn on_registration(&mut self, answer: &BrokerRegistrationResponse, now: Now, cx: &mut Cx) {
        // An answer to an earlier process (I17) would have to come over a connection of this one: none does.
        let ours = answer.incarnation == self.life.incarnation;
        if !answer.error.is_none() || !ours {
            // A predecessor's registration may still count as alive: try until its session ends.
            self.beat_again(now, cx);
            return;
        }
        if self.life.stage != Stage::Registering {
            return;
        }
        self.life.epoch = answer.epoch;
        self.life.stage = Stage::CatchingUp;
        let clean = self.life.previous_epoch != BrokerEpoch(-1);
        cx.trace(Trace::Registered { broker: self.config.broker, epoch: answer.epoch.0, clean });
        // What was fetched while there was no registration may be acted on now.
        cx.wake(crate::broker::lanes::METADATA);
        self.beat(now, cx);
    }

    fn beat_again(&self, now: Now, cx: &mut Cx) {
        let share = if cx.guards.points.fires(Point::HeartbeatSoon) { 4 } else { 1 };
        cx.set_timer(timer(kind::HEARTBEAT, 0), now.mono + Nanos(self.life.interval.0 / share));
    }

    /// Sends a heartbeat unless one is under way, and arms the next.
    pub(crate) fn beat(&mut self, now: Now, cx: &mut Cx) {
        if self.life.stage == Stage::Stopped || self.life.stage == Stage::Registering {
            return;
        }
        self.beat_again(now, cx);
        if self.life.beating {
            return;
        }
        self.life.beating = true;
        let request = BrokerHeartbeatRequest {
            broker: self.config.broker,
            epoch: self.life.epoch,
            metadata_offset: self.image.end(),
            want_fence: !cx.guards.admits(guard::FencedWhileCatchingUp, self.life.stage != Stage::CatchingUp),
            want_shutdown: self.life.is_stopping(),
        };
        self.channels[HEARTBEATS].send(request.into(), Purpose::Heartbeat, None, now, cx);
    }

    fn on_heartbeat(&mut self, answer: &BrokerHeartbeatResponse, now: Now, cx: &mut Cx) {
        self.life.beating = false;
        if !answer.error.is_none() {
            return;
        }
        match self.life.stage {
            Stage::Fenced if !answer.fenced => self.life.stage = Stage::Running,
            Stage::Running if answer.fenced => self.life.stage = Stage::Fenced,
            Stage::HandingOver if cx.guards.admits(guard::ShutdownMovesLeaders, answer.may_shutdown) => {
                self.flush_everything(now, cx);
            }
            _ => {}
        }
    }

    /// The image reached the broker's own registration: it may be let in.
    pub(crate) fn caught_up(&mut self, now: Now, cx: &mut Cx) {
        if self.life.stage == Stage::CatchingUp && self.image.end().0 > self.life.epoch.0 {
            self.life.stage = Stage::Fenced;
            self.beat(now, cx);
        }
    }

    /// Begins a controlled shutdown: leaderships are handed over, everything is flushed, the clean marker is written.
    pub fn stop(&mut self, now: Now, cx: &mut Cx) {
        if self.life.is_stopping() {
            return;
        }
        if self.life.epoch == BrokerEpoch(-1) || !self.config.configs.controlled_shutdown_enable {
            self.flush_everything(now, cx);
            return;
        }
        self.life.stage = Stage::HandingOver;
        self.life.beating = false;
        self.beat(now, cx);
    }

    /// Sends ISR proposals: one request in flight per broker.
    pub(crate) fn send_proposals(&mut self, now: Now, cx: &mut Cx) {
        if self.isr_in_flight
            || !self.replicas.has_proposals()
            || now.mono < self.isr_retry_at
            || self.life.epoch == BrokerEpoch(-1)
        {
            return;
        }
        let parts = self.replicas.take_proposals(ISR_LIMIT);
        if parts.is_empty() {
            return;
        }
        let purpose = Purpose::Isr(parts.iter().map(|p| p.partition).collect());
        let request = AlterPartitionRequest { broker: self.config.broker, broker_epoch: self.life.epoch, parts };
        self.isr_in_flight = true;
        self.channels[ISR].send(request.into(), purpose, None, now, cx);
    }

    fn on_isr(&mut self, parts: &[crate::ids::PartitionIx], answer: &AlterPartitionResponse, now: Now, cx: &mut Cx) {
        self.isr_in_flight = false;
        let mut again = false;
        if answer.error.is_none() {
            for verdict in &answer.parts {
                again |= self.replicas.on_isr_verdict(verdict, now, cx);
            }
            // A proposal without a verdict was not decided.
            let mut decided: Vec<_> = answer.parts.iter().map(|v| v.partition).collect();
            decided.sort_unstable();
            for &partition in parts {
                if decided.binary_search(&partition).is_err() {
                    self.replicas.proposals_failed(&[partition]);
                    again = true;
                }
            }
        } else {
            self.replicas.proposals_failed(parts);
            again = true;
        }
        if again || answer.error == ErrorCode::StaleBrokerEpoch {
            self.isr_retry_at = now.mono + ISR_BACKOFF;
            cx.set_timer(timer(kind::ISR_RETRY, 0), self.isr_retry_at);
        }
    }
}
