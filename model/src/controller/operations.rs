//! What the active controller is asked, and what it does by itself from time to time: each is a plan of records that is
//! appended and answered when it is committed.

use crate::controller::brokers;
use crate::controller::controller::{Answer, Controller, BALANCE_TIMER, SESSION_TIMER};
use crate::controller::plan::Plan;
use crate::controller::sessions::Sessions;
use crate::controller::{alter_configs, elections, isr, mirror_orders, mirrors, topics};
use crate::guards::controller as guard;
use crate::ids::{BrokerId, ConnId, Nanos, Now, PartitionIx, ProducerId};
use crate::metadata::records::Record;
use crate::ports::{Cx, ExitReason};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{AllocateProducerIdsRequest, AllocateProducerIdsResponse, Body};

impl Controller {
    /// An operator moves leaderships: to brokers in service that are in sync. Others are left out.
    pub fn move_leaders(&mut self, moves: &[(PartitionIx, BrokerId)], now: Now, cx: &mut Cx<'_>) {
        let mut plan = Plan::new(self.engine.latest(), &self.config, cx.guards, cx.entropy, self.engine.end());
        for (partition, to) in moves {
            elections::move_leader(&mut plan, *partition, *to);
        }
        let entries = plan.entries;
        let _ = self.append(entries, now, cx);
    }

    pub(super) fn on_operation(&mut self, conn: ConnId, correlation: u32, request: Body, now: Now, cx: &mut Cx<'_>) {
        let mut plan = Plan::new(self.engine.latest(), &self.config, cx.guards, cx.entropy, self.engine.end());
        let Some(response) = plan_operation(&mut plan, &mut self.sessions, now, &request) else {
            return self.refuse(conn, correlation, &request, ErrorCode::InvalidRequest, cx);
        };
        if let Some(why) = plan.broken {
            return self.die(ExitReason::Broken(why), cx);
        }
        let entries = plan.entries;
        let registered = match &response {
            // A repeated request is answered again and changes nothing.
            Body::BrokerRegistrationResponse(_) if !entries.is_empty() => registered_broker(&request),
            _ => None,
        };
        if self.append(entries, now, cx).is_err() {
            return self.refuse(conn, correlation, &request, ErrorCode::KafkaStorageError, cx);
        }
        if let Some(broker) = registered {
            self.sessions.touch(broker, now.mono, false, -1, None);
        }
        self.arm_sessions(cx);
        let committed = !self.has_uncommitted();
        if cx.guards.admits(guard::CommittedBeforeAnswered, committed) {
            self.send(conn, correlation, response, cx);
        } else if let Some(answer) = self.engine.wait(Answer { conn, correlation, request, response }) {
            self.send(answer.conn, answer.correlation, answer.response, cx);
        }
    }

    pub(super) fn arm_balance(&mut self, now: Nanos, cx: &mut Cx<'_>) {
        let interval = Nanos::from_secs(self.config.broker.leader_imbalance_check_interval_seconds);
        self.balance_at = now + interval;
        cx.set_timer(BALANCE_TIMER, self.balance_at);
    }

    /// One timer for all sessions: it fires when the oldest one could be over.
    pub(super) fn arm_sessions(&mut self, cx: &mut Cx<'_>) {
        if let (None, Some(at)) = (self.session_timer, self.sessions.next_expiry()) {
            self.session_timer = Some(at);
            cx.set_timer(SESSION_TIMER, at);
        }
    }

    pub(super) fn on_session_timer(&mut self, now: Now, cx: &mut Cx<'_>) {
        self.session_timer = None;
        if !self.is_active() {
            return;
        }
        while let Some(broker) = self.sessions.expired(now.mono) {
            let mut plan = Plan::new(self.engine.latest(), &self.config, cx.guards, cx.entropy, self.engine.end());
            brokers::fence(&mut plan, broker);
            let entries = plan.entries;
            self.sessions.fenced(broker);
            if self.append(entries, now, cx).is_err() {
                break;
            }
        }
        self.arm_sessions(cx);
    }

    pub(super) fn on_balance_timer(&mut self, now: Now, cx: &mut Cx<'_>) {
        // One that an earlier term armed is not this term's.
        if !self.is_active() || now.mono < self.balance_at {
            return;
        }
        let mut more = false;
        if self.config.broker.auto_leader_rebalance_enable {
            let mut plan = Plan::new(self.engine.latest(), &self.config, cx.guards, cx.entropy, self.engine.end());
            more = elections::balance(&mut plan);
            let entries = plan.entries;
            more &= self.append(entries, now, cx).is_ok();
        }
        if more {
            self.balance_at = now.mono;
            cx.set_timer(BALANCE_TIMER, now.mono);
        } else {
            self.arm_balance(now.mono, cx);
        }
    }
}

fn registered_broker(request: &Body) -> Option<BrokerId> {
    match request {
        Body::BrokerRegistrationRequest(r) => Some(r.broker),
        _ => None,
    }
}

fn plan_operation(plan: &mut Plan<'_>, sessions: &mut Sessions, now: Now, request: &Body) -> Option<Body> {
    Some(match request {
        Body::BrokerHeartbeatRequest(r) => brokers::heartbeat(plan, sessions, now.mono, r).into(),
        Body::BrokerRegistrationRequest(r) => brokers::register(plan, sessions, now.mono, r).into(),
        Body::AlterPartitionRequest(r) => isr::alter_partition(plan, r).into(),
        Body::AllocateProducerIdsRequest(r) => allocate_producer_ids(plan, r).into(),
        Body::CreateTopicsRequest(r) => topics::create_topics(plan, r).into(),
        Body::DeleteTopicsRequest(r) => topics::delete_topics(plan, r).into(),
        Body::CreatePartitionsRequest(r) => topics::create_partitions(plan, r).into(),
        Body::IncrementalAlterConfigsRequest(r) => alter_configs::alter_configs(plan, r).into(),
        Body::ElectLeadersRequest(r) => elections::elect_leaders(plan, r).into(),
        Body::CreateClusterMirrorRequest(r) => mirrors::create_mirror(plan, r).into(),
        Body::StartMirrorTopicsRequest(r) => mirrors::start_topics(plan, r).into(),
        Body::StopMirrorTopicsRequest(r) => mirror_orders::stop_topics(plan, r).into(),
        Body::PauseMirrorTopicsRequest(r) => mirror_orders::pause_topics(plan, r).into(),
        Body::ResumeMirrorTopicsRequest(r) => mirror_orders::resume_topics(plan, r).into(),
        Body::DeleteClusterMirrorRequest(r) => mirror_orders::delete_mirror(plan, r).into(),
        Body::BumpLeaderEpochsRequest(r) => mirrors::bump_epochs(plan, r).into(),
        _ => return None,
    })
}

/// A block of producer ids that nobody was given before (KIP-730).
fn allocate_producer_ids(plan: &mut Plan<'_>, request: &AllocateProducerIdsRequest) -> AllocateProducerIdsResponse {
    let refuse = |error| AllocateProducerIdsResponse { error, first: ProducerId::NONE, count: 0 };
    let Some(known) = plan.image().broker(request.broker) else { return refuse(ErrorCode::BrokerIdNotRegistered) };
    let fresh = known.epoch == request.broker_epoch;
    if !plan.guards.admits(guard::StaleBrokerEpochRefused, fresh) {
        return refuse(ErrorCode::StaleBrokerEpoch);
    }
    let first = plan.image().next_producer().max(plan.config.first_producer);
    let count = plan.config.producer_block;
    let Some(next) = first.0.checked_add(i64::from(count)) else { return refuse(ErrorCode::UnknownServerError) };
    plan.push(Record::ProducerIds { broker: request.broker, next: ProducerId(next) });
    AllocateProducerIdsResponse { error: ErrorCode::None, first, count }
}
