//! An operator's hand: carries out admin commands one by one, looks up what they need, repeats what may be repeated until a
//! deadline, and keeps a log of outcomes. "Done" here is "accepted by the cluster": whoever needs the effect waits for the
//! state (decision 41).

use crate::client::cluster::{Cluster, ClusterConfig, ClusterEvent};
use crate::client::commands::{judge, Command, ItemResult, Need, Target};
use crate::client::connections::ChannelStatus;
use crate::client::door::{earlier, Door};
use crate::ids::{Nanos, NodeId, Now};
use crate::ports::{Cx, Input, Lane};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::Body;
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
            phase: Phase::Resolving,
        });
        self.look_up(now, cx);
        true
    }

    /// Asks for what the command needs, afresh.
    fn look_up(&mut self, now: Now, cx: &mut Cx) {
        let Some(running) = &self.running else { return };
        match running.order.command.need() {
            Need::Nothing => self.leave_source(now, cx),
            Need::Own(topics) => {
                self.own.set_topics(topics);
                self.leave_source(now, cx);
            }
            Need::Source(nodes, topics) => {
                let config = ClusterConfig { bootstrap: nodes, topics: Some(topics), ..self.config.cluster.clone() };
                match &mut self.source {
                    Some(source) if source.config().bootstrap == config.bootstrap => {
                        source.set_topics(config.topics.unwrap_or_default())
                    }
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
            Phase::Resolving => self.resolve(now),
            Phase::Awaiting(_) => false,
            Phase::Sending(_) => self.send(now, cx),
        }
    }

    fn resolve(&mut self, now: Now) -> bool {
        let Some(running) = &mut self.running else { return false };
        let ready = match running.order.command.need() {
            Need::Nothing => true,
            Need::Own(_) => self.own.is_fresh(),
            Need::Source(..) => self.source.as_ref().is_some_and(Cluster::is_fresh),
        };
        if !ready {
            return false;
        }
        let source = self.source.as_ref().map(|s| &s.view);
        match running.order.command.requests(&self.own.view, source) {
            Ok(requests) => {
                running.items.clear();
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
            self.end(now, Verdict::Accepted);
            return true;
        };
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
            let mut rest = std::mem::take(rest);
            rest.pop_front();
            running.phase = Phase::Awaiting(rest);
        }
        false
    }

    fn on_silence(&mut self, now: Now, ticket: u32) {
        let backoff = self.config.retry_backoff;
        if let Some(running) = self.running.as_mut().filter(|r| r.ticket == ticket) {
            if matches!(running.phase, Phase::Awaiting(_)) {
                running.uncertain = true;
                running.phase = Phase::Resting(now.mono + backoff);
            }
        }
    }

    fn on_answer(&mut self, now: Now, ticket: u32, body: Body) {
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
    /// Whether no order waits or runs: no timer is armed any more.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.running.is_none() && self.queue.is_empty()
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
