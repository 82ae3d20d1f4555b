//! An operator's hand: carries out admin commands one by one, looks up what they need, repeats what may be repeated until a
//! deadline, and keeps a log of outcomes. "Done" here is "accepted by the cluster": whoever needs the effect waits for the
//! state (decision 41).

use crate::client::cluster::{Cluster, ClusterConfig, ClusterEvent};
use crate::client::commands::{judge, Command, ItemResult, Need, Target};
use crate::client::connections::ChannelStatus;
use crate::client::door::{earlier, Door};
use crate::client::mirror_orders::{Report, Survey};
use crate::guards::client as guard;
use crate::ids::{BrokerId, Nanos, NodeId, Now};
use crate::ports::{Cx, Input, Lane};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{Body, ListClusterMirrorsRequest, ListedMirror};
use std::collections::VecDeque;

/// An admin client; names and defaults as in Kafka's admin configs.
#[derive(Clone, Debug, PartialEq)]
pub struct AdminConfig {
    /// The cluster and its times.
    pub cluster: ClusterConfig,
    /// `retry.backoff.ms`.
    pub retry_backoff: Nanos,
    /// Orders from the start on.
    pub orders: Vec<Order>,
}

impl AdminConfig {
    /// Kafka's defaults, no orders.
    #[must_use]
    pub fn new(bootstrap: Vec<NodeId>) -> Self {
        Self {
            cluster: ClusterConfig::new(bootstrap, Some(Vec::new())),
            retry_backoff: Nanos::from_millis(100),
            orders: Vec::new(),
        }
    }
}

/// A command with how long it may take.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// Chosen by who orders; comes back in the outcome.
    pub id: u32,
    /// What.
    pub command: Command,
    /// `default.api.timeout.ms`: given up so long after it was begun.
    pub timeout: Nanos,
    /// Repeat it on any refusal, not only on those that Kafka's client repeats: an operator's script that insists (L10).
    pub insist: bool,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Accepted, every item of it.
    Accepted,
    /// Refused, or items of it were; the first error.
    Refused(ErrorCode),
    /// The deadline passed; the last sending may or may not have been carried out.
    Undecided,
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The order's id.
    pub id: u32,
    /// The command's name.
    pub command: &'static str,
    /// When it was begun.
    pub begun: Nanos,
    /// When it ended.
    pub ended: Nanos,
    /// How often it was sent.
    pub attempts: u32,
    /// How it ended.
    pub verdict: Verdict,
    /// What was answered last, item by item; items already there after a lost answer count as accepted.
    pub items: Vec<ItemResult>,
    /// What a question was answered.
    pub report: Option<Report>,
}

#[derive(Clone, Debug, PartialEq)]
enum Phase {
    /// Looks up what the command needs.
    Resolving,
    /// Has requests to send, one after the other.
    Sending(VecDeque<(Target, Body)>),
    /// Awaits the answer to one.
    Awaiting(VecDeque<(Target, Body)>),
    /// Rests before the next attempt.
    Resting(Nanos),
}

#[derive(Clone, Debug, PartialEq)]
struct Running {
    order: Order,
    begun: Nanos,
    deadline: Nanos,
    attempts: u32,
    /// An earlier sending had no answer, or one that leaves it open.
    uncertain: bool,
    /// A request of this attempt is out: its token. Answers to earlier ones are ignored.
    ticket: u32,
    items: Vec<ItemResult>,
    /// The cluster's mirrors, once the command needed them.
    listed: Option<Vec<ListedMirror>>,
    /// The request that is out asks for them.
    is_listing: bool,
    /// What brokers said so far, of a question to all of them.
    survey: Survey,
    /// The broker of the request that is out.
    asked: Option<BrokerId>,
    report: Option<Report>,
    phase: Phase,
}

/// The process.
#[derive(Clone, Debug, PartialEq)]
pub struct Admin {
    config: AdminConfig,
    own: Cluster<u32>,
    source: Option<Cluster<u32>>,
    door: Door,
    queue: VecDeque<Order>,
    running: Option<Running>,
    tickets: u32,
    outcomes: Vec<Outcome>,
}

impl Admin {
    /// Starts the process.
    pub fn boot(config: AdminConfig, _now: Now, cx: &mut Cx) -> Self {
        let mut admin = Self {
            own: Cluster::new(config.cluster.clone(), cx),
            source: None,
            door: Door::default(),
            queue: config.orders.iter().cloned().collect(),
            running: None,
            tickets: 0,
            outcomes: Vec::new(),
            config,
        };
        admin.door.wake(cx);
        admin
    }

    /// Gives another order, behind those that wait.
    pub fn submit(&mut self, order: Order, cx: &mut Cx) {
        self.queue.push_back(order);
        self.door.wake(cx);
    }

    /// Files an input.
    pub fn accept(&mut self, _now: Now, input: Input, cx: &mut Cx) {
        self.door.accept(input, cx);
    }

    /// One poll.
    pub fn run(&mut self, now: Now, _lane: Lane, cx: &mut Cx) {
        let mut events = self.door.poll(|input| {
            let source = self.source.as_mut().filter(|s| is_of(s, &input));
            source.unwrap_or(&mut self.own).on_input(now, input, cx)
        });
        self.own.poll(now, cx, &mut events);
        if let Some(source) = &mut self.source {
            source.poll(now, cx, &mut events);
        }
        for event in events {
            self.on_event(now, event);
        }
        self.work(now, cx);
        let idle = self.is_idle();
        self.own.set_quiet(idle);
        self.own.ask(now, cx);
        if let Some(source) = &mut self.source {
            source.set_quiet(idle);
            source.ask(now, cx);
        }
        self.arm(now, cx);
    }

    fn on_event(&mut self, now: Now, event: ClusterEvent<u32>) {
        match event {
            ClusterEvent::Opened(_) | ClusterEvent::Metadata { .. } => {}
            ClusterEvent::Lost { failed, .. } => {
                for ticket in failed {
                    self.on_silence(now, ticket);
                }
            }
            ClusterEvent::Answer { token, body, .. } => self.on_answer(now, token, body),
        }
    }

    // ------------------------------------------------------------------------------------------------------- progress

    fn work(&mut self, now: Now, cx: &mut Cx) {
        loop {
            if self.running.is_none() && !self.begin(now, cx) {
                return;
            }
            let Some(running) = &mut self.running else { return };
            if now.mono >= running.deadline {
                let sent = running.uncertain || matches!(running.phase, Phase::Awaiting(_));
                let refused = running.items.iter().find(|i| !i.error.is_none()).map(|i| i.error);
                let verdict = match refused {
                    _ if sent => Verdict::Undecided,
                    Some(error) => Verdict::Refused(error),
                    None => Verdict::Refused(ErrorCode::RequestTimedOut),
                };
                self.end(now, verdict);
                continue;
            }
            if !self.step(now, cx) {
                return;
            }
        }
    }

    /// Takes up the next order.
    fn begin(&mut self, now: Now, cx: &mut Cx) -> bool {
        let Some(order) = self.queue.pop_front() else { return false };
        self.running = Some(Running {
            begun: now.mono,
            deadline: now.mono + order.timeout,
            order,
            attempts: 0,
            uncertain: false,
            ticket: 0,
            items: Vec::new(),
            listed: None,
            is_listing: false,
            survey: Survey::default(),
            asked: None,
            report: None,
            phase: Phase::Resolving,
        });
        self.look_up(now, cx);
        true
    }

    /// Asks for what the command needs, afresh.
    fn look_up(&mut self, now: Now, cx: &mut Cx) {
        let Some(running) = &self.running else { return };
        match running.need(cx) {
            Need::Nothing | Need::Mirrors => self.leave_source(now, cx),
            Need::Own(topics) => {
                self.own.set_topics(topics);
                self.leave_source(now, cx);
            }
            Need::Source(nodes, topics) => {
                let config = ClusterConfig { bootstrap: nodes, topics, ..self.config.cluster.clone() };
                match &mut self.source {
                    Some(source) if source.config().bootstrap == config.bootstrap => source.set_topics(config.topics),
                    _ => {
                        self.leave_source(now, cx);
                        self.source = Some(Cluster::new(config, cx));
                    }
                }
            }
        }
    }

    fn leave_source(&mut self, now: Now, cx: &mut Cx) {
        if let Some(mut source) = self.source.take() {
            source.close(now, cx);
        }
    }

    /// One step; false if something has to happen first.
    fn step(&mut self, now: Now, cx: &mut Cx) -> bool {
        let Some(running) = &mut self.running else { return false };
        match &mut running.phase {
            Phase::Resting(until) if *until > now.mono => false,
            Phase::Resting(_) => {
                running.phase = Phase::Resolving;
                self.look_up(now, cx);
                true
            }
            Phase::Resolving => self.resolve(now, cx),
            Phase::Awaiting(_) => false,
            Phase::Sending(_) => self.send(now, cx),
        }
    }

    fn resolve(&mut self, now: Now, cx: &mut Cx) -> bool {
        let Some(running) = &mut self.running else { return false };
        let ready = match running.need(cx) {
            Need::Nothing => true,
            Need::Mirrors => {
                running.is_listing = true;
                running.phase = Phase::Sending([(Target::Any, ListClusterMirrorsRequest {}.into())].into());
                return true;
            }
            Need::Own(_) => self.own.is_fresh(),
            Need::Source(..) => self.source.as_ref().is_some_and(Cluster::is_fresh),
        };
        if !ready {
            return false;
        }
        let source = self.source.as_ref().map(|s| &s.view);
        match running.order.command.requests(&self.own.view, source, running.listed.as_deref()) {
            Ok(requests) => {
                running.items.clear();
                running.survey = Survey::default();
                running.phase = Phase::Sending(requests.into());
            }
            Err(items) => self.refused(now, ErrorCode::None, items),
        }
        true
    }

    fn send(&mut self, now: Now, cx: &mut Cx) -> bool {
        let Some(running) = &mut self.running else { return false };
        let Phase::Sending(rest) = &mut running.phase else { return false };
        let Some((target, body)) = rest.front() else {
            self.all_sent(now);
            return true;
        };
        if let (Target::Broker(broker), true) = (target, running.order.command.is_survey()) {
            // A broker that cannot be reached is noted; the others are asked all the same.
            let gone = self.own.node(*broker).is_none_or(|node| {
                let status = self.own.channels.ensure(now, node, cx);
                matches!(status, ChannelStatus::Down(until) if until > now.mono)
            });
            if gone {
                running.survey.miss(*broker);
                rest.pop_front();
                return true;
            }
        }
        let node = match target {
            Target::Any => self.own.any_ready(now, cx),
            Target::Broker(broker) => self
                .own
                .node(*broker)
                .filter(|&node| matches!(self.own.channels.ensure(now, node, cx), ChannelStatus::Ready)),
        };
        let Some(node) = node else { return false };
        self.tickets = self.tickets.wrapping_add(1);
        if self.own.send(now, node, body.clone(), self.tickets, cx) {
            running.ticket = self.tickets;
            running.attempts += 1;
            running.asked = if let Target::Broker(broker) = target { Some(*broker) } else { None };
            let mut rest = std::mem::take(rest);
            rest.pop_front();
            running.phase = Phase::Awaiting(rest);
        }
        false
    }

    fn on_silence(&mut self, now: Now, ticket: u32) {
        let backoff = self.config.retry_backoff;
        if let Some(running) = self.running.as_mut().filter(|r| r.ticket == ticket) {
            let Phase::Awaiting(rest) = &mut running.phase else { return };
            if let (true, Some(broker)) = (running.order.command.is_survey(), running.asked) {
                running.survey.miss(broker);
                running.phase = Phase::Sending(std::mem::take(rest));
                return;
            }
            running.uncertain |= !running.is_listing;
            running.is_listing = false;
            running.phase = Phase::Resting(now.mono + backoff);
        }
    }

    fn on_answer(&mut self, now: Now, ticket: u32, body: Body) {
        let body = match self.on_report(ticket, body) {
            Some(body) => body,
            None => return,
        };
        let judged = judge(body, &self.own.view);
        let Some(running) = self.running.as_mut().filter(|r| r.ticket == ticket) else { return };
        let Phase::Awaiting(rest) = &mut running.phase else { return };
        let Some((error, mut items)) = judged else { return self.on_silence(now, ticket) };
        if running.uncertain {
            for item in &mut items {
                if running.order.command.is_echo(item.error) {
                    item.error = ErrorCode::None;
                }
            }
        }
        let error = if running.uncertain && running.order.command.is_echo(error) { ErrorCode::None } else { error };
        if error.is_none() && items.iter().all(|i| i.error.is_none()) {
            running.items.append(&mut items);
            running.phase = Phase::Sending(std::mem::take(rest));
            return;
        }
        self.refused(now, error, items);
    }

    /// An answer that tells instead of judging; gives back any other.
    fn on_report(&mut self, ticket: u32, body: Body) -> Option<Body> {
        let Some(running) = self.running.as_mut().filter(|r| r.ticket == ticket) else { return Some(body) };
        let Phase::Awaiting(rest) = &mut running.phase else { return Some(body) };
        match body {
            Body::ListClusterMirrorsResponse(answer) if running.is_listing => {
                running.is_listing = false;
                running.listed = Some(answer.mirrors);
                // What else is needed is looked up now.
                running.phase = Phase::Resting(Nanos::ZERO);
            }
            Body::ListClusterMirrorsResponse(answer) => {
                running.report = Some(Report::Mirrors(answer.mirrors));
                running.phase = Phase::Sending(std::mem::take(rest));
            }
            Body::DescribeClusterMirrorsResponse(answer) if answer.error.is_none() => {
                running.survey.add(answer.mirrors);
                running.phase = Phase::Sending(std::mem::take(rest));
            }
            other => return Some(other),
        }
        None
    }

    /// Everything was sent and answered.
    fn all_sent(&mut self, now: Now) {
        let Some(running) = &mut self.running else { return };
        let mut verdict = Verdict::Accepted;
        if running.order.command.is_survey() {
            let (report, items) = std::mem::take(&mut running.survey).end();
            if let Some(item) = items.first() {
                verdict = Verdict::Refused(item.error);
            }
            (running.report, running.items) = (Some(report), items);
        }
        self.end(now, verdict);
    }

    /// An answer, or the look-up, refused something: again later, or the end.
    fn refused(&mut self, now: Now, whole: ErrorCode, items: Vec<ItemResult>) {
        let backoff = self.config.retry_backoff;
        let Some(running) = &mut self.running else { return };
        running.items.extend(items);
        let errors = || running.items.iter().map(|i| i.error).chain([whole]).filter(|e| !e.is_none());
        let again = errors().all(|e| running.order.insist || is_repeated(e));
        running.uncertain |= errors().any(|e| e == ErrorCode::RequestTimedOut);
        let first = errors().next().unwrap_or(ErrorCode::UnknownServerError);
        if again {
            running.listed = None; // it may have been another one that was answered from
            self.own.turn();
            running.phase = Phase::Resting(now.mono + backoff);
        } else {
            self.end(now, Verdict::Refused(first));
        }
    }

    fn end(&mut self, now: Now, verdict: Verdict) {
        if let Some(running) = self.running.take() {
            self.outcomes.push(Outcome {
                id: running.order.id,
                command: running.order.command.name(),
                begun: running.begun,
                ended: now.mono,
                attempts: running.attempts,
                verdict,
                items: running.items,
                report: running.report,
            });
        }
    }

    fn arm(&mut self, now: Now, cx: &mut Cx) {
        let Some(running) = &self.running else { return };
        let mut at = Some(running.deadline);
        match running.phase {
            Phase::Resting(until) => at = earlier(at, Some(until)),
            Phase::Sending(_) => at = earlier(at, Some(self.own.channel_wait(now))),
            Phase::Resolving | Phase::Awaiting(_) => {}
        }
        at = earlier(at, self.own.next_wakeup(now));
        if let Some(source) = &self.source {
            at = earlier(at, source.next_wakeup(now));
        }
        self.door.want(at, now, cx);
    }

    // ------------------------------------------------------------------------------------------------------ read-only

    /// What became of the orders, in the order they ended.
    #[must_use]
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }
    /// The outcome of an order, once it ended; the latest if an id came twice.
    #[must_use]
    pub fn outcome(&self, id: u32) -> Option<&Outcome> {
        self.outcomes.iter().rev().find(|o| o.id == id)
    }
    /// Whether an order waits behind others: nothing of it was sent. Ids are taken to ascend.
    #[must_use]
    pub fn waits(&self, id: u32) -> bool {
        self.queue.binary_search_by_key(&id, |order| order.id).is_ok()
    }
    /// When an order was taken up, by the process's clock; `None` while it waits.
    #[must_use]
    pub fn begun(&self, id: u32) -> Option<Nanos> {
        let running = self.running.as_ref().filter(|running| running.order.id == id).map(|running| running.begun);
        running.or_else(|| self.outcome(id).map(|outcome| outcome.begun))
    }
    /// How often an order was sent so far: who is refused may say it again.
    #[must_use]
    pub fn attempts(&self, id: u32) -> u32 {
        let running = self.running.as_ref().filter(|running| running.order.id == id).map(|running| running.attempts);
        running.or_else(|| self.outcome(id).map(|outcome| outcome.attempts)).unwrap_or(0)
    }
    /// Whether no order waits or runs: no timer is armed any more.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.running.is_none() && self.queue.is_empty()
    }
}

impl Running {
    /// What the command needs to know, with what is listed.
    fn need(&self, cx: &mut Cx) -> Need {
        let all_topics = match &self.order.command {
            Command::Mirror(_) => cx.guards.quirk(guard::PatternsMeetAllTopics),
            _ => false,
        };
        self.order.command.need(self.listed.as_deref(), all_topics)
    }
}

fn is_of(cluster: &Cluster<u32>, input: &Input) -> bool {
    match input {
        Input::Opened { conn, .. } | Input::Closed { conn, .. } | Input::Message { conn, .. } => cluster.owns(*conn),
        Input::Timer(_) | Input::Flushed { .. } => false,
    }
}

/// Refusals that Kafka's admin client repeats by itself: the place was wrong or the time, not the order.
fn is_repeated(error: ErrorCode) -> bool {
    matches!(
        error,
        ErrorCode::NotController
            | ErrorCode::RequestTimedOut
            | ErrorCode::CoordinatorLoadInProgress
            | ErrorCode::CoordinatorNotAvailable
            | ErrorCode::NotCoordinator
            | ErrorCode::LeaderNotAvailable
            | ErrorCode::NotLeaderOrFollower
            | ErrorCode::NotEnoughReplicas
            | ErrorCode::KafkaStorageError
    )
}

#[cfg(test)]
#[path = "admin_tests.rs"]
mod tests;
