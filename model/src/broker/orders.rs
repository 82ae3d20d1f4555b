//! Orders of operators that reached this broker: the states of the partitions that they are about are read from whoever
//! coordinates them, what does not fit is refused topic by topic, the rest goes to the controller with the offset of the metadata
//! that it was judged by (spec 1.4 to 1.8, 2.10; decisions 1, 2, 32, 34).
//!
//! A partition whose state was not told, for whatever reason, refuses its topic with that reason, which is one to try again for:
//! silence never passes (D-19, K21). A stop alone needs no state, and is judged by no metadata of this broker's (decision 1).

use crate::broker::broker::{Broker, FORWARDS};
use crate::broker::lanes::{kind, timer, ORDERS};
use crate::broker::order_rules::{self as rules, Order, Wish};
use crate::broker::peers::{Heard, Peers};
use crate::guards::mirror as guard;
use crate::ids::{BrokerId, ConnId, MetadataOffset, MirrorIx, Nanos, Now, PartitionIx, TopicIx};
use crate::metadata::patterns::Patterns;
use crate::mirror::records::StateKey;
use crate::mirror::state_client::PeerTask;
use crate::ports::{Cx, Input};
use crate::replica::channel::Purpose;
use crate::states::{DesiredState, MirrorState};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{Body, NamedResult, ReadMirrorStatesRequest};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Partitions of one question to a coordinator.
const ENTRIES_MAX: usize = 10_000;

/// Why a topic, or all of an order, is refused.
pub(crate) type Refusal = (ErrorCode, Arc<str>);

/// What a partition stands for in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The topic that the request names there.
    Named(usize),
    /// The order as a whole: a topic that a pattern or the mirror's name means.
    Whole,
}

/// An order whose states are being read.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    order: Order,
    request: Body,
    names: Vec<Arc<str>>,
    refusals: Vec<Option<Refusal>>,
    whole: Option<Refusal>,
    places: BTreeMap<PartitionIx, Place>,
    offset: MetadataOffset,
}

/// What is being done for a request.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// States are being read.
    Check(Check),
    /// The controller decides; what was refused here stands by.
    Decide(Order, Vec<Arc<str>>, Vec<Option<Refusal>>),
    /// Failed partitions are led back.
    Recover(super::recoveries::Recover),
    /// Partitions are to join a transaction.
    Join(super::joins::Join),
}

/// A request that is not answered yet.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub conn: ConnId,
    pub correlation: u32,
    /// Questions to other brokers that are not answered.
    pub open: u32,
    pub work: Work,
}

/// The requests of operators at this broker.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub peers: Peers,
    pub pending: BTreeMap<u32, Pending>,
    next: u32,
    inbox: VecDeque<(ConnId, PeerTask)>,
    timer_at: Option<Nanos>,
    /// Requests with partitions that this broker recovers itself, and when they are looked at next.
    pub recovering: Vec<u32>,
    look_at: Nanos,
}

/// How often recoveries are looked at: each look costs what is recovered.
const LOOK: Nanos = Nanos::from_millis(5);

impl Orders {
    pub fn new(timeout: Nanos) -> Self {
        Self {
            peers: Peers::new(timeout),
            pending: BTreeMap::new(),
            next: 0,
            inbox: VecDeque::new(),
            timer_at: None,
            recovering: Vec::new(),
            look_at: Nanos::ZERO,
        }
    }

    /// Files an input of one of its connections; gives back any other.
    pub fn accept(&mut self, input: Input, cx: &mut Cx) -> Option<Input> {
        let conn = match &input {
            Input::Opened { conn, .. } | Input::Closed { conn, .. } | Input::Message { conn, .. } => *conn,
            _ => return Some(input),
        };
        if !self.peers.owns(conn) {
            return Some(input);
        }
        let task = match input {
            Input::Opened { .. } => PeerTask::Opened,
            Input::Message { message, .. } => PeerTask::Answer(message),
            _ => PeerTask::Closed,
        };
        self.inbox.push_back((conn, task));
        cx.wake(ORDERS);
        None
    }

    /// The timer fired.
    pub fn fired(&mut self, cx: &mut Cx) {
        self.timer_at = None;
        cx.wake(ORDERS);
    }

    /// Takes a request in.
    pub fn add(&mut self, pending: Pending) -> u32 {
        self.next = self.next.wrapping_add(1);
        self.pending.insert(self.next, pending);
        self.next
    }

    fn arm(&mut self, cx: &mut Cx) {
        let recoveries = (!self.recovering.is_empty()).then_some(self.look_at);
        let Some(at) = recoveries.into_iter().chain(self.peers.next_deadline()).min() else { return };
        if self.timer_at.is_none_or(|armed| at < armed) {
            self.timer_at = Some(at);
            cx.set_timer(timer(kind::ORDERS, 0), at);
        }
    }
}

impl Check {
    fn new(order: Order, request: Body, offset: MetadataOffset) -> Self {
        let names = rules::named(&request);
        let refusals = vec![None; names.len()];
        Self { order, request, names, refusals, whole: None, places: BTreeMap::new(), offset }
    }

    fn refuse(&mut self, place: Place, error: ErrorCode, why: impl FnOnce() -> String) {
        let slot = match place {
            Place::Named(at) => match self.refusals.get_mut(at) {
                Some(slot) => slot,
                None => return,
            },
            Place::Whole => &mut self.whole,
        };
        if slot.is_none() {
            *slot = Some((error, why().into()));
        }
    }

    /// Takes a partition's state, or why it was not told.
    fn hear(
        &mut self,
        partition: PartitionIx,
        told: Result<MirrorState, ErrorCode>,
        name: impl FnOnce() -> String,
        cx: &mut Cx,
    ) {
        let Some(place) = self.places.remove(&partition) else { return };
        match told {
            Ok(state) => {
                let fits = self.order.fits(state, cx.guards);
                if !cx.guards.admits(guard::OrderFitsStates, fits) {
                    let error = ErrorCode::InvalidClusterMirrorStates;
                    self.refuse(place, error, || format!("partition {} is {}", name(), state.name()));
                }
            }
            Err(error) => {
                let passes = cx.guards.quirk(guard::SilencePassesValidation);
                if !passes && !cx.guards.admits(guard::OrderNeedsStates, false) {
                    self.refuse(place, error, || format!("the state of partition {} is not known now", name()));
                }
            }
        }
    }
}

impl Broker {
    // ------------------------------------------------------------------------------------------------------------ reading

    /// Takes up an order.
    pub(crate) fn on_order(&mut self, conn: ConnId, correlation: u32, request: Body, now: Now, cx: &mut Cx) {
        let Some(order) = Order::of(&request) else { return };
        let judged = order.needs_states(cx.guards);
        let offset = if judged { self.image.end() } else { MetadataOffset(-1) };
        let mut check = Check::new(order, request, offset);
        let mirror = self.image.mirror_by_name(&rules::mirror(&check.request)).filter(|_| judged);
        if let Some(mirror) = mirror {
            self.place_named(mirror, &mut check, cx);
            self.place_whole(mirror, &mut check, cx);
        }
        let partitions: Vec<PartitionIx> = check.places.keys().copied().collect();
        let mut questions: BTreeMap<(BrokerId, Arc<str>), Vec<PartitionIx>> = BTreeMap::new();
        for partition in partitions {
            match self.place_of(partition) {
                Ok((leader, key)) if leader == self.config.broker => {
                    let told = self.own_state(&key);
                    check.hear(partition, told, || self.name_of(partition), cx);
                }
                Ok((leader, key)) => questions.entry((leader, key.mirror)).or_default().push(partition),
                Err(error) => check.hear(partition, Err(error), || self.name_of(partition), cx),
            }
        }
        let id = self.orders.add(Pending { conn, correlation, open: 0, work: Work::Check(check) });
        for ((leader, mirror), parts) in questions {
            for chunk in parts.chunks(ENTRIES_MAX) {
                let question = ReadMirrorStatesRequest { mirror: mirror.clone(), parts: chunk.to_vec() };
                self.ask_peer(leader, id, question.into());
            }
        }
        self.go_on(id, now, cx);
    }

    /// The topics that the order names.
    fn place_named(&mut self, mirror: MirrorIx, check: &mut Check, cx: &mut Cx) {
        for at in 0..check.names.len() {
            let name = check.names[at].clone();
            let Some(topic) = self.image.topic_by_name(&name) else { continue };
            // Under whichever mirror it stands: a start may take a stopped topic over from another one.
            let Some((member, desired)) = self.image.mirror_of(topic) else { continue };
            if member == mirror || check.order == Order::Start && desired == DesiredState::Stopped {
                self.place(Place::Named(at), topic, check, cx);
            }
        }
    }

    /// The topics that the order means without naming them.
    fn place_whole(&mut self, mirror: MirrorIx, check: &mut Check, cx: &mut Cx) {
        let patterns = match &check.request {
            Body::DeleteClusterMirrorRequest(_) => None,
            Body::StopMirrorTopicsRequest(r) if !r.patterns.is_empty() => match Patterns::new(r.patterns.clone()) {
                Ok(patterns) => Some(patterns),
                Err(_) => return, // the controller refuses it
            },
            _ => return,
        };
        let Some(image) = self.image.mirror(mirror).cloned() else { return };
        for &topic in &image.topics {
            let Some(name) = self.image.topic(topic).map(|t| t.name.clone()) else { continue };
            if patterns.as_ref().is_none_or(|p| p.matches(&name)) && !check.names.contains(&name) {
                self.place(Place::Whole, topic, check, cx);
            }
        }
    }

    /// Judges a topic by its desired state, and lists its partitions if that does not decide.
    fn place(&mut self, place: Place, topic: TopicIx, check: &mut Check, cx: &mut Cx) {
        let Some((_, desired)) = self.image.mirror_of(topic) else { return };
        let Some(image) = self.image.topic(topic) else { return };
        match check.order.wish(desired, cx.guards) {
            Wish::Already => {}
            Wish::Refused => check.refuse(place, ErrorCode::InvalidClusterMirrorStates, || {
                format!("topic '{}' is to be {}", image.name, wanted(desired))
            }),
            Wish::Change => check.places.extend(image.partitions.iter().map(|p| (*p, place))),
        }
    }

    /// Who coordinates a partition, and its key.
    pub(crate) fn place_of(&self, partition: PartitionIx) -> Result<(BrokerId, StateKey), ErrorCode> {
        let none = ErrorCode::CoordinatorNotAvailable;
        let entry = self.image.partition(partition).ok_or(none)?;
        let (mirror, _) = self.image.mirror_of(entry.topic).ok_or(none)?;
        let topic = self.image.topic(entry.topic).ok_or(none)?.id;
        let mirror = self.image.mirror(mirror).ok_or(none)?.name.clone();
        let key = StateKey { mirror, topic, number: entry.number };
        let home = self.mirror.coordinator.home(&key, &self.image).ok_or(none)?;
        let leader = self.image.partition(home).map(|p| p.state.leader).ok_or(none)?;
        if leader == BrokerId::NONE {
            return Err(none);
        }
        Ok((leader, key))
    }

    /// The state that this broker, as the coordinator, has of a partition.
    pub(crate) fn own_state(&self, key: &StateKey) -> Result<MirrorState, ErrorCode> {
        let record = self.mirror.coordinator.read(key, &self.image)?;
        Ok(record.unwrap_or_default().state)
    }

    pub(crate) fn name_of(&self, partition: PartitionIx) -> String {
        let entry = self.image.partition(partition);
        let topic = entry.and_then(|e| self.image.topic(e.topic));
        match (entry, topic) {
            (Some(entry), Some(topic)) => format!("{}-{}", topic.name, entry.number),
            _ => partition.to_string(),
        }
    }

    /// Asks another broker on behalf of a request.
    pub(crate) fn ask_peer(&mut self, broker: BrokerId, id: u32, question: Body) {
        let Some(pending) = self.orders.pending.get_mut(&id) else { return };
        pending.open += 1;
        let node = self.image.broker_node(broker).unwrap_or_default();
        self.orders.peers.ask(broker, node, id, question);
    }

    // ----------------------------------------------------------------------------------------------------------- going on

    /// One task of the lane of orders: what arrived from other brokers.
    pub(crate) fn run_orders(&mut self) {
        while let Some((conn, task)) = self.orders.inbox.pop_front() {
            self.orders.peers.arrived(conn, task);
        }
    }

    /// At the end of every task: questions go out, answers are taken, recoveries are looked at.
    pub(crate) fn after_orders(&mut self, now: Now, cx: &mut Cx) {
        if self.orders.pending.is_empty() && self.orders.timer_at.is_none() {
            return;
        }
        self.orders.peers.go_on(now, cx);
        for heard in self.orders.peers.take_heard() {
            let id = heard.asker;
            let Some(pending) = self.orders.pending.get_mut(&id) else { continue };
            pending.open = pending.open.saturating_sub(1);
            self.on_heard(id, heard, cx);
            self.go_on(id, now, cx);
        }
        if !self.orders.recovering.is_empty() && now.mono >= self.orders.look_at {
            self.orders.look_at = now.mono + LOOK;
            for id in std::mem::take(&mut self.orders.recovering) {
                self.look_at_recovery(id, now, cx);
            }
        }
        self.orders.arm(cx);
    }

    fn on_heard(&mut self, id: u32, heard: Heard, cx: &mut Cx) {
        let Some(mut pending) = self.orders.pending.remove(&id) else { return };
        match (&mut pending.work, heard) {
            (Work::Check(check), Heard { question: Body::ReadMirrorStatesRequest(asked), answer, .. }) => {
                let (silence, parts) = match answer {
                    Some(Body::ReadMirrorStatesResponse(answer)) if answer.error.is_none() => {
                        (ErrorCode::CoordinatorNotAvailable, answer.parts)
                    }
                    Some(Body::ReadMirrorStatesResponse(answer)) => (answer.error, Vec::new()),
                    _ => (ErrorCode::RequestTimedOut, Vec::new()),
                };
                for (partition, error, record) in parts {
                    let told = if error.is_none() { Ok(record.state) } else { Err(error) };
                    check.hear(partition, told, || self.name_of(partition), cx);
                }
                // What the answer leaves out was not told (decision 32).
                for partition in asked.parts {
                    check.hear(partition, Err(silence), || self.name_of(partition), cx);
                }
            }
            (Work::Join(join), Heard { question: Body::ReadMirrorStatesRequest(_), answer, .. }) => join.hear(answer),
            (Work::Recover(recover), Heard { question: Body::RecoverMirrorTopicsRequest(asked), answer, .. }) => {
                recover.hear(&asked, answer);
            }
            _ => {}
        }
        self.orders.pending.insert(id, pending);
    }

    /// Looks whether a request has all that it waits for.
    pub(crate) fn go_on(&mut self, id: u32, now: Now, cx: &mut Cx) {
        let Some(pending) = self.orders.pending.get(&id).filter(|pending| pending.open == 0) else { return };
        match &pending.work {
            Work::Check(_) => self.conclude(id, now, cx),
            Work::Join(_) => self.end_join(id, cx),
            Work::Recover(recover) if recover.is_over() => self.end_recovery(id, cx),
            Work::Recover(_) | Work::Decide(..) => {}
        }
    }

    /// All states are told: what may be ordered goes to the controller.
    fn conclude(&mut self, id: u32, now: Now, cx: &mut Cx) {
        let Some(Pending { conn, correlation, work: Work::Check(check), .. }) = self.orders.pending.remove(&id) else {
            return;
        };
        let Check { order, request, names, refusals, mut whole, offset, .. } = check;
        let bad = refusals.iter().flatten().next().cloned();
        if bad.is_some() && whole.is_none() && cx.guards.quirk(guard::OneBadTopicRefusesAll) {
            whole = bad;
        }
        if let Some((error, why)) = whole {
            let topics = names.iter().map(|name| NamedResult { name: name.clone(), error, message: None }).collect();
            return self.respond(conn, correlation, rules::answer(order, error, Some(why), topics), cx);
        }
        let refused: Vec<bool> = refusals.iter().map(Option::is_some).collect();
        let Some(body) = rules::forwarded(request, &refused, offset) else {
            let topics = merge(&names, &refusals, ErrorCode::None, Vec::new());
            return self.respond(conn, correlation, rules::answer(order, ErrorCode::None, None, topics), cx);
        };
        let work = Work::Decide(order, names, refusals);
        let id = self.orders.add(Pending { conn, correlation, open: 0, work });
        let deadline = Some(now.mono + self.forward_timeout());
        self.channels[FORWARDS].send(body, Purpose::Order(id), deadline, now, cx);
    }

    /// The controller answered an order, or its time ran out.
    pub(crate) fn on_order_decided(&mut self, id: u32, result: Result<Body, Body>, cx: &mut Cx) {
        let Some(Pending { conn, correlation, work: Work::Decide(order, names, refusals), .. }) =
            self.orders.pending.remove(&id)
        else {
            return;
        };
        let silence = (ErrorCode::RequestTimedOut, None, Vec::new());
        let (error, message, decided) = result.ok().and_then(rules::decided).unwrap_or(silence);
        let topics = merge(&names, &refusals, error, decided);
        self.respond(conn, correlation, rules::answer(order, error, message, topics), cx);
    }
}

const fn wanted(desired: DesiredState) -> &'static str {
    match desired {
        DesiredState::Mirroring => "MIRRORING",
        DesiredState::Paused => "PAUSED",
        DesiredState::Stopped => "STOPPED",
        DesiredState::Unknown => "in no mirror",
    }
}

/// One verdict per topic named, in the order of the names: what was refused here, and what the controller said of the rest.
fn merge(
    names: &[Arc<str>],
    refusals: &[Option<Refusal>],
    error: ErrorCode,
    decided: Vec<NamedResult>,
) -> Vec<NamedResult> {
    let mut decided = decided.into_iter();
    let verdict = |(name, refusal): (&Arc<str>, &Option<Refusal>)| match refusal {
        Some((error, why)) => NamedResult { name: name.clone(), error: *error, message: Some(why.clone()) },
        None => decided.next().unwrap_or_else(|| NamedResult { name: name.clone(), error, message: None }),
    };
    names.iter().zip(refusals).map(verdict).collect()
}
