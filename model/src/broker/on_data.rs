//! Produce and fetch.

use crate::broker::broker::Broker;
use crate::broker::lanes::{kind, timer};
use crate::broker::on_transactions::markers_answer;
use crate::broker::pending::Goal;
use crate::guards::mirror;
use crate::ids::{ConnId, Nanos, Now, Offset, PartitionIx};
use crate::mirror::Gate;
use crate::ports::Cx;
use crate::replica::append::Produced;
use crate::replica::fetch_serve::Fetched;
use crate::replica::waits::{Ticket, WaitDone};
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    FetchRequest, FetchResponse, ProducePart, ProducePartAnswer, ProduceRequest, ProduceResponse,
};

impl Broker {
    pub(crate) fn on_produce(
        &mut self,
        conn: ConnId,
        correlation: u32,
        request: &ProduceRequest,
        now: Now,
        cx: &mut Cx,
    ) {
        let mut answer =
            ProduceResponse { topic_groups: request.topic_groups, parts: Vec::with_capacity(request.parts.len()) };
        let mut waiting = Vec::new();
        let ticket = self.pending.ticket();
        self.replicas.reserve(request.parts.iter().map(|part| part.batches.len()).sum());
        for (at, part) in request.parts.iter().enumerate() {
            let produced = self.produce_part(request.acks, part, Ticket { part: at as u32, ..ticket }, now, cx);
            answer.parts.push(produced.answer);
            if produced.waits {
                waiting.resize(request.parts.len(), false);
                waiting[at] = true;
            }
        }
        if request.acks == 0 {
            return self.release(conn, cx);
        }
        if waiting.is_empty() {
            return self.respond(conn, correlation, answer.into(), cx);
        }
        let deadline = now.mono + Nanos::from_millis(u64::from(request.timeout_ms));
        self.pending.add(conn, correlation, deadline, waiting, answer, Goal::Produce);
        self.arm_produce_timer(cx);
    }

    /// Keeps markers that wait for replicas, for as long as a broker waits for another one's answer.
    #[allow(clippy::too_many_arguments)] // all that waits
    pub(crate) fn wait_for_replicas(
        &mut self,
        conn: ConnId,
        correlation: u32,
        goal: Goal,
        waiting: Vec<bool>,
        answer: ProduceResponse,
        now: Now,
        cx: &mut Cx,
    ) {
        let deadline = now.mono + Nanos::from_millis(self.config.configs.request_timeout_ms);
        self.pending.add(conn, correlation, deadline, waiting, answer, goal);
        self.arm_produce_timer(cx);
    }

    fn produce_part(&mut self, acks: i16, part: &ProducePart, ticket: Ticket, now: Now, cx: &mut Cx) -> Produced {
        if !matches!(acks, -1..=1) {
            return refused(part.partition, ErrorCode::InvalidRequiredAcks);
        }
        let mirrored = self.replicas.get(part.partition).map(|r| r.topic());
        if mirrored.is_some_and(|topic| self.replicas.topic(topic).is_some_and(|t| t.mirrored)) {
            match self.gate(part.partition, cx) {
                Gate::Open => {}
                Gate::ReadOnly => {
                    let producer = crate::record::BatchView::parse(&part.batches).map(|batch| batch.producer());
                    let producer = producer.unwrap_or(crate::ids::ProducerId::NONE);
                    cx.trace(Trace::ReadOnlyRefused { partition: part.partition, producer });
                    return refused(part.partition, ErrorCode::ReadOnlyTopic);
                }
                Gate::Retry(error) => return refused(part.partition, error),
            }
        }
        let mut produced = self.replicas.produce(part.partition, &part.batches, acks, ticket, now, cx);
        self.complete_hint(&mut produced.answer);
        produced
    }

    /// Whether clients may write to a partition. Who does not lead it keeps nobody out here: the append says who is asked wrongly.
    pub(crate) fn gate(&self, partition: PartitionIx, cx: &mut Cx) -> Gate {
        let leads = self.replicas.leads(partition).is_some();
        if leads || cx.guards.admits(mirror::GateIsTheLeaders, false) {
            self.mirror.gate(partition, &self.image, cx)
        } else {
            Gate::Open
        }
    }

    /// Adds the leader's address (KIP-951).
    fn complete_hint(&self, answer: &mut ProducePartAnswer) {
        if let Some(hint) = answer.current_leader.as_mut() {
            hint.node = self.image.broker_node(hint.leader);
        }
    }

    pub(crate) fn on_fetch(&mut self, conn: ConnId, correlation: u32, request: &FetchRequest, now: Now, cx: &mut Cx) {
        match self.replicas.fetch(conn, correlation, request, now, cx) {
            Fetched::Answer(answer) => self.answer_fetch(conn, correlation, *answer, cx),
            Fetched::Parked { session, timer_at } => {
                if let Some(at) = timer_at {
                    cx.set_timer(timer(kind::SESSION, u64::from(session)), at);
                }
            }
        }
    }

    /// Every answer to a fetch goes out here, at once or after a wait, with the addresses of the leaders that it names:
    /// a mirror has no other way to the new leader than a failure (spec 4.3).
    pub(crate) fn answer_fetch(&mut self, conn: ConnId, correlation: u32, mut answer: FetchResponse, cx: &mut Cx) {
        for hint in answer.parts.iter_mut().filter_map(|part| part.current_leader.as_mut()) {
            hint.node = self.image.broker_node(hint.leader);
        }
        self.respond(conn, correlation, answer.into(), cx);
    }

    /// A session's time is up.
    pub(crate) fn run_session(&mut self, session: u32, now: Now, cx: &mut Cx) {
        if let Some(at) = self.replicas.session_timer(session, now) {
            cx.set_timer(timer(kind::SESSION, u64::from(session)), at);
            return;
        }
        if let Some((parked, answer)) = self.replicas.resume(session, now, cx) {
            self.answer_fetch(parked.conn, parked.correlation, answer, cx);
        }
    }

    /// A part of a waiting produce was decided.
    pub(crate) fn finish_wait(&mut self, done: &WaitDone, now: Now, cx: &mut Cx) {
        let Some(pending) = self.pending.get_mut(&done.ticket) else { return };
        let at = done.ticket.part as usize;
        if !std::mem::take(&mut pending.waiting[at]) {
            return;
        }
        refuse_if(&mut pending.answer.parts[at], done.error);
        pending.left -= 1;
        if pending.left == 0 {
            self.answer_pending(done.ticket.request, now, cx);
        }
    }

    fn answer_pending(&mut self, at: u32, now: Now, cx: &mut Cx) {
        let Some(mut pending) = self.pending.take(at) else { return };
        match &pending.goal {
            Goal::Produce => {}
            goal @ Goal::Markers(_) => {
                let answer = markers_answer(goal, &pending.answer);
                return self.respond(pending.conn, pending.correlation, answer.into(), cx);
            }
            Goal::Own(job, member) => {
                let error = pending.answer.parts.first().map_or(ErrorCode::None, |part| part.error);
                return self.txns.markers.written(*job, member, error, now, cx);
            }
        }
        for part in &mut pending.answer.parts {
            if part.error == ErrorCode::NotLeaderOrFollower {
                part.current_leader = self.replicas.leader_hint(part.partition);
                self.complete_hint(part);
            }
        }
        self.respond(pending.conn, pending.correlation, pending.answer.into(), cx);
    }

    /// Producers whose time is up: what still waits timed out (the records stay in the log).
    pub(crate) fn run_produce_timer(&mut self, now: Now, cx: &mut Cx) {
        self.pending.timer_at = None;
        while let Some((deadline, at)) = self.pending.next_deadline() {
            if deadline > now.mono {
                break;
            }
            self.pending.expire(at);
            self.answer_pending(at, now, cx);
        }
        self.arm_produce_timer(cx);
    }

    /// One timer for all; it fires at or before the first deadline.
    fn arm_produce_timer(&mut self, cx: &mut Cx) {
        let Some((deadline, _)) = self.pending.next_deadline() else { return };
        if self.pending.timer_at.is_none_or(|armed| armed > deadline) {
            self.pending.timer_at = Some(deadline);
            cx.set_timer(timer(kind::PRODUCE, 0), deadline);
        }
    }
}

/// Nothing is appended.
pub(crate) fn refused(partition: PartitionIx, error: ErrorCode) -> Produced {
    let answer =
        ProducePartAnswer { partition, error, base: Offset::UNKNOWN, log_start: Offset::UNKNOWN, current_leader: None };
    Produced { answer, waits: false }
}

/// Turns an answer into a refusal unless there is no error.
pub(crate) fn refuse_if(answer: &mut ProducePartAnswer, error: ErrorCode) {
    if !error.is_none() {
        answer.error = error;
        answer.base = Offset::UNKNOWN;
    }
}
