//! A broker's way to the active controller: a queue of requests that are sent to whoever is believed to lead the quorum, and
//! sent again elsewhere when it does not (KIP-590). A broker has several, so that a slow request does not delay heartbeats.

use crate::controller::quorum_link::QuorumLink;
use crate::ids::{ConnId, LeaderEpoch, Nanos, NodeId, Now, PartitionIx};
use crate::ports::{Cx, Timer};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{Body, Message};
use std::collections::VecDeque;

/// What a request was for; returned with its answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    /// The broker's registration.
    Registration,
    /// A heartbeat.
    Heartbeat,
    /// ISR proposals for these partitions.
    Isr(Vec<PartitionIx>),
    /// A block of producer ids.
    ProducerIds,
    /// A client's request; the answer goes there.
    Forward {
        /// The client's connection.
        conn: ConnId,
        /// Its correlation id.
        correlation: u32,
    },
    /// An operator's order of mirrored topics, by the number that the broker keeps it under.
    Order(u32),
    /// The topic of the transaction coordinator.
    TransactionTopic,
    /// The mirror room's; the number is its own.
    Mirror(u64),
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What it was for.
    pub purpose: Purpose,
    /// The answer, or the request itself if its time ran out.
    pub result: Result<Body, Body>,
}

#[derive(Clone, Debug)]
struct Asked {
    body: Body,
    purpose: Purpose,
    /// Given up then; `None`: never.
    deadline: Option<Nanos>,
    correlation: u32,
    sent_at: Nanos,
}

/// One channel.
#[derive(Clone, Debug)]
pub struct ControllerChannel {
    link: QuorumLink,
    /// The latest epoch of a leader that was named.
    epoch: LeaderEpoch,
    queue: VecDeque<Asked>,
    in_flight: VecDeque<Asked>,
    timer: Timer,
    timer_at: Option<Nanos>,
    timeout: Nanos,
}

impl ControllerChannel {
    /// A channel to one of these voters. `timer` is its timer, `timeout` how long an answer may take.
    #[must_use]
    pub fn new(voters: Vec<NodeId>, timer: Timer, timeout: Nanos) -> Self {
        Self {
            link: QuorumLink::new(voters, 0),
            epoch: LeaderEpoch::NONE,
            queue: VecDeque::new(),
            in_flight: VecDeque::new(),
            timer,
            timer_at: None,
            timeout,
        }
    }

    /// Asks the controller. Without `deadline` it is asked until it answers.
    pub fn send(&mut self, body: Body, purpose: Purpose, deadline: Option<Nanos>, now: Now, cx: &mut Cx) {
        self.queue.push_back(Asked { body, purpose, deadline, correlation: 0, sent_at: Nanos::ZERO });
        self.pump(now, cx);
    }

    /// The quorum's leader, as another source knows it. One of a later epoch is asked at once what an earlier one has not
    /// answered: that one may be cut off, and whatever it would do now is not committed.
    pub fn set_leader(&mut self, leader: Option<NodeId>, epoch: LeaderEpoch, now: Now, cx: &mut Cx) {
        if leader.is_none() || self.link.leader() == leader {
            return;
        }
        let newer = epoch > self.epoch;
        self.epoch = self.epoch.max(epoch);
        self.link.set_leader(leader);
        if !self.link.is_to_leader() && (newer || self.in_flight.is_empty()) {
            self.hang_up(now.mono, cx);
            self.link.retry_now(now.mono);
            self.pump(now, cx);
        }
    }

    /// Whether nothing is asked or waited for.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.in_flight.is_empty()
    }

    /// Whether this is its connection.
    #[must_use]
    pub fn owns(&self, conn: ConnId) -> bool {
        self.link.owns(conn)
    }

    /// The connection stands.
    pub fn opened(&mut self, now: Now, cx: &mut Cx) {
        self.link.on_opened();
        self.pump(now, cx);
    }

    /// The connection ended: what was in flight is asked again.
    pub fn closed(&mut self, now: Now, cx: &mut Cx) {
        self.link.on_closed(now.mono);
        self.ask_again();
        self.pump(now, cx);
    }

    /// An answer. `None` if it was not the active controller's: then the request is asked again.
    pub fn message(&mut self, message: Message, now: Now, cx: &mut Cx) -> Option<Outcome> {
        let at = self.in_flight.iter().position(|asked| asked.correlation == message.correlation)?;
        if not_controller(&message.body) {
            self.hang_up(now.mono, cx);
            self.pump(now, cx);
            return None;
        }
        let asked = self.in_flight.remove(at)?;
        self.pump(now, cx);
        Some(Outcome { purpose: asked.purpose, result: Ok(message.body) })
    }

    /// Its timer fired. Returns what was given up.
    pub fn fired(&mut self, now: Now, cx: &mut Cx) -> Vec<Outcome> {
        self.timer_at = None;
        let slow = self.in_flight.front().is_some_and(|asked| now.mono >= asked.sent_at + self.timeout);
        if slow {
            self.hang_up(now.mono, cx);
        }
        let mut given_up = Vec::new();
        let queue = std::mem::take(&mut self.queue);
        for asked in queue {
            if asked.deadline.is_some_and(|deadline| now.mono >= deadline) {
                given_up.push(Outcome { purpose: asked.purpose, result: Err(asked.body) });
            } else {
                self.queue.push_back(asked);
            }
        }
        self.pump(now, cx);
        given_up
    }

    fn hang_up(&mut self, now: Nanos, cx: &mut Cx) {
        self.link.hang_up(now, cx);
        self.ask_again();
    }

    fn ask_again(&mut self) {
        while let Some(asked) = self.in_flight.pop_back() {
            self.queue.push_front(asked);
        }
    }

    fn pump(&mut self, now: Now, cx: &mut Cx) {
        if !self.queue.is_empty() {
            self.link.connect(now, cx);
        }
        if let Some(conn) = self.link.open() {
            while let Some(mut asked) = self.queue.pop_front() {
                asked.correlation = self.link.send(conn, asked.body.clone(), cx);
                asked.sent_at = now.mono;
                self.in_flight.push_back(asked);
            }
        }
        self.arm(cx);
    }

    fn arm(&mut self, cx: &mut Cx) {
        let reconnect = (self.link.is_down() && !self.queue.is_empty()).then_some(self.link.retry_at());
        let answer = self.in_flight.front().map(|asked| asked.sent_at + self.timeout);
        let deadline = self.queue.iter().filter_map(|asked| asked.deadline).min();
        let Some(at) = [reconnect, answer, deadline].into_iter().flatten().min() else { return };
        if self.timer_at.is_none_or(|armed| armed > at) {
            self.timer_at = Some(at);
            cx.set_timer(self.timer, at);
        }
    }
}

/// Whether an answer says that its sender is not the active controller.
#[must_use]
pub fn not_controller(body: &Body) -> bool {
    let of = |error: ErrorCode| error == ErrorCode::NotController;
    let named = |list: &[crate::wire::messages::NamedResult]| list.iter().any(|r| of(r.error));
    match body {
        Body::BrokerRegistrationResponse(r) => of(r.error),
        Body::BrokerHeartbeatResponse(r) => of(r.error),
        Body::AlterPartitionResponse(r) => of(r.error),
        Body::AllocateProducerIdsResponse(r) => of(r.error),
        Body::CreateTopicsResponse(r) => named(&r.topics),
        Body::DeleteTopicsResponse(r) => named(&r.topics),
        Body::CreatePartitionsResponse(r) => named(&r.topics),
        Body::IncrementalAlterConfigsResponse(r) => named(&r.resources),
        Body::ElectLeadersResponse(r) => r.parts.iter().any(|(_, e)| of(*e)),
        Body::CreateClusterMirrorResponse(r) => of(r.error),
        Body::StartMirrorTopicsResponse(r) => of(r.error),
        Body::StopMirrorTopicsResponse(r) => of(r.error),
        Body::PauseMirrorTopicsResponse(r) => of(r.error),
        Body::ResumeMirrorTopicsResponse(r) => of(r.error),
        Body::DeleteClusterMirrorResponse(r) => of(r.error),
        Body::BumpLeaderEpochsResponse(r) => of(r.error),
        _ => false,
    }
}
