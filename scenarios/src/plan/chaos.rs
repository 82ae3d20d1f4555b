//! Expands `[chaos]` into steps of a timeline.
//!
//! Strike n owns the n-th slot of time and draws its instant, kind, target and length by its own number, so no strike depends
//! on another. Budgets only take strikes away: one that would exceed them is dropped, never drawn again.

use super::draw::{below, between, draw, pick};
use crate::format::action::{Action, DiskCall, Elect, NodeRef, Place, Step, Trigger};
use crate::format::chaos::{Chaos, ChaosKind, Strike};
use crate::format::types::Stage;
use crate::format::Vocabulary;
use crate::units::{Chance, SignedTime, Time};
use std::collections::BTreeMap;

/// How long before the end of the safety phase the last order is given at the latest, in nanoseconds.
const ORDER_BEFORE_END: u64 = 100_000_000;

/// What strikes can hit.
struct Targets {
    brokers: Vec<(String, u32)>,
    /// Of quorums of three and more.
    controllers: Vec<(String, u32)>,
    links: Vec<(String, [String; 2])>,
    topics: Vec<String>,
    clients: Vec<String>,
    mirrors: Vec<String>,
    lanes: Vec<String>,
}

impl Targets {
    fn of(chaos: &Chaos, stage: &Stage, vocabulary: &Vocabulary) -> Self {
        let on = |cluster: &String| chaos.on.is_empty() || chaos.on.contains(cluster);
        let brokers = stage.clusters.iter().filter(|(name, _)| on(name));
        let mirrors = stage.mirrors.iter().filter(|(_, m)| on(&m.on) && !m.later);
        let quorums = stage.clusters.iter().filter(|(name, c)| on(name) && c.controllers > 2);
        Self {
            controllers: quorums.flat_map(|(name, c)| (1..=c.controllers).map(move |n| (name.clone(), n))).collect(),
            brokers: brokers.flat_map(|(name, c)| (1..=c.brokers).map(move |n| (name.clone(), n))).collect(),
            links: stage.links.iter().map(|(name, l)| (name.clone(), l.between.clone())).collect(),
            topics: stage.topics.iter().filter(|(_, t)| on(&t.on)).map(|(table, _)| table.clone()).collect(),
            clients: stage.producers.keys().chain(stage.consumers.keys()).cloned().collect(),
            mirrors: mirrors.map(|(name, _)| name.clone()).collect(),
            // Strikes hit brokers, which have no controller lane.
            lanes: vocabulary.lanes.iter().filter(|lane| *lane != "controller").map(|lane| lane.to_string()).collect(),
        }
    }
}

/// Strikes under way, to keep within budgets.
#[derive(Default)]
struct Budget {
    /// Until when each strike lasts.
    active: Vec<Time>,
    /// Which broker, or controller, is out of service until when.
    down: Vec<(Node, Time)>,
    used: BTreeMap<ChaosKind, u32>,
}

impl Budget {
    fn admits(&mut self, chaos: &Chaos, stage: &Stage, strike: &Drawn, at: Time) -> bool {
        self.active.retain(|until| *until > at);
        self.down.retain(|(_, until)| *until > at);
        let used = self.used.get(&strike.kind).copied().unwrap_or(0);
        let limit = chaos.strikes.get(&strike.kind).and_then(|s| s.count);
        if limit.is_some_and(|limit| used >= limit) || self.active.len() >= chaos.max_at_once as usize {
            return false;
        }
        if let Some(broker) = strike.broker.as_ref() {
            if self.down.iter().any(|(down, _)| down == broker) {
                return false;
            }
            let alike = |(node, _): &&(Node, Time)| (&node.0, node.2) == (&broker.0, broker.2);
            let limit = if broker.2 {
                stage.clusters.get(&broker.0).map_or(0, |c| (c.controllers - 1) / 2)
            } else {
                chaos.max_down
            };
            if strike.kind.takes_down() && self.down.iter().filter(alike).count() >= limit as usize {
                return false;
            }
        }
        true
    }

    fn take(&mut self, strike: &Drawn, at: Time) {
        let until = at.plus(strike.length);
        self.active.push(until);
        *self.used.entry(strike.kind).or_default() += 1;
        if let Some(broker) = strike.broker.clone().filter(|_| strike.kind.takes_down()) {
            self.down.push((broker, until));
        }
    }
}

/// A broker, or a controller (true), by cluster and number.
type Node = (String, u32, bool);

/// A strike before the budget has its say.
struct Drawn {
    kind: ChaosKind,
    length: Time,
    broker: Option<Node>,
    /// With their distance from the strike's instant.
    actions: Vec<(Time, Action)>,
}

/// The steps of a run, in order of time.
pub(super) fn strikes(chaos: &Chaos, stage: &Stage, vocabulary: &Vocabulary, seed: u64) -> Vec<Step> {
    let targets = Targets::of(chaos, stage, vocabulary);
    let weights: Vec<(ChaosKind, Strike)> = chaos.strikes.iter().map(|(kind, strike)| (*kind, *strike)).collect();
    let total: u64 = weights.iter().map(|(_, s)| u64::from(s.weight)).sum();
    let mut budget = Budget::default();
    let mut steps = Vec::new();
    for n in 0.. {
        let slot = chaos.start.0.saturating_add(chaos.every.0.saturating_mul(n));
        if total == 0 || slot >= chaos.stop.0 {
            break;
        }
        let at = Time(slot.saturating_add(below(seed, "chaos.instant", n, chaos.every.0)));
        let Some((kind, strike)) = kind_of(&weights, below(seed, "chaos.kind", n, total)) else { break };
        let Some(drawn) = drawn(kind, strike, &targets, stage, seed, n) else { continue };
        if at >= chaos.stop || !budget.admits(chaos, stage, &drawn, at) {
            continue;
        }
        budget.take(&drawn, at);
        for (later, action) in drawn.actions {
            // An order that takes another one back comes within the safety phase: after it nothing is ordered any more.
            let last = Time(stage.phases.safety.0.saturating_sub(ORDER_BEFORE_END)).max(at);
            let trigger = Trigger::At { at: at.plus(later).min(last), every: None, times: None };
            steps.push(Step { name: None, trigger, permanent: false, expect_error: None, action });
        }
    }
    steps
}

fn kind_of(weights: &[(ChaosKind, Strike)], mut at: u64) -> Option<(ChaosKind, Strike)> {
    for (kind, strike) in weights {
        let weight = u64::from(strike.weight);
        if at < weight {
            return Some((*kind, *strike));
        }
        at -= weight;
    }
    None
}

/// Draws target and length; nothing if there is no target of that kind.
fn drawn(kind: ChaosKind, strike: Strike, targets: &Targets, stage: &Stage, seed: u64, n: u64) -> Option<Drawn> {
    let length = between(seed, "chaos.length", n, strike.min, strike.max);
    let lasting = Some(length);
    let broker = pick(seed, "chaos.broker", n, &targets.brokers).cloned();
    let node = || broker.clone().map(|(cluster, n)| NodeRef::Broker(cluster, n));
    let controller = pick(seed, "chaos.controller", n, &targets.controllers).cloned();
    let voter = || controller.clone().map(|(cluster, n)| NodeRef::Controller(cluster, n));
    let link = || pick(seed, "chaos.link", n, &targets.links);
    let once = |action| vec![(Time(0), action)];
    let extra = || Time(between(seed, "chaos.extra", n, Time::millis(1), Time::secs(1)).0);
    let inside_task = below(seed, "chaos.inside", n, 1_000_000_000) < u64::from(strike.inside_task.0);
    let actions = match kind {
        ChaosKind::Crash => once(Action::Kill { node: node()?, restart_after: lasting, inside_task }),
        ChaosKind::PowerLoss => once(Action::PowerLoss { node: node()?, restart_after: lasting, inside_task }),
        ChaosKind::ControllerCrash => once(Action::Kill { node: voter()?, restart_after: lasting, inside_task: false }),
        ChaosKind::ControllerPowerLoss => {
            once(Action::PowerLoss { node: voter()?, restart_after: lasting, inside_task: false })
        }
        ChaosKind::ControllerPause => once(Action::Pause { node: voter()?, lasting }),
        ChaosKind::ControllerPartition => {
            once(Action::Partition { between: None, node: Some(voter()?), role: None, one_way: false, lasting })
        }
        ChaosKind::Shutdown => once(Action::Shutdown { node: node()?, restart_after: lasting }),
        ChaosKind::Pause => once(Action::Pause { node: node()?, lasting }),
        ChaosKind::Partition | ChaosKind::OneWay => {
            let one_way = kind == ChaosKind::OneWay;
            once(Action::Partition { between: None, node: Some(node()?), role: None, one_way, lasting })
        }
        ChaosKind::LinkDown => {
            let (_, [a, b]) = link().filter(|(_, [a, b])| a != b)?;
            let between = Some([Place::Site(a.clone()), Place::Site(b.clone())]);
            once(Action::Partition { between, node: None, role: None, one_way: false, lasting })
        }
        ChaosKind::LatencySpike => {
            let (name, _) = link()?;
            let base = stage.links.get(name)?.both.latency;
            once(Action::Latency {
                link: name.clone(),
                latency: base.plus(extra()),
                jitter: None,
                toward: None,
                lasting,
            })
        }
        ChaosKind::Loss => {
            let loss = Chance(u32::try_from(below(seed, "chaos.loss", n, 100_000_000)).unwrap_or(0) + 1);
            once(Action::Loss { link: link()?.0.clone(), loss, toward: None, lasting })
        }
        ChaosKind::Reset => {
            let silent = below(seed, "chaos.silent", n, 4) == 0;
            once(Action::ResetConnections { link: Some(link()?.0.clone()), node: None, silent })
        }
        ChaosKind::Election => once(election(targets, stage, seed, n)?),
        ChaosKind::DiskStall => once(Action::DiskStall { node: node()?, call: DiskCall::Any, lasting }),
        ChaosKind::DiskFull => once(Action::DiskFull { node: node()?, lasting }),
        ChaosKind::ClockJump => {
            let size = between(seed, "chaos.jump", n, Time::millis(10), Time::secs(60)).0;
            let size = i64::try_from(size).unwrap_or(i64::MAX);
            let by = SignedTime(if draw(seed, "chaos.sign", n) & 1 == 0 { size } else { -size });
            once(Action::ClockJump { node: node()?, by })
        }
        ChaosKind::SlowLane => {
            let lane = pick(seed, "chaos.lane", n, &targets.lanes)?.clone();
            once(Action::SlowLane { node: node()?, lane, by: extra(), lasting })
        }
        ChaosKind::DelayMetadata => once(Action::DelayMetadata { node: node()?, by: extra(), lasting }),
        ChaosKind::ClientPause => {
            let client = pick(seed, "chaos.client", n, &targets.clients)?.clone();
            once(Action::Pause { node: NodeRef::Client(client), lasting })
        }
        ChaosKind::MirrorPause | ChaosKind::MirrorStop => {
            let mirror = pick(seed, "chaos.mirror", n, &targets.mirrors)?.clone();
            let (mirror2, topics) = (mirror.clone(), Vec::new);
            if kind == ChaosKind::MirrorPause {
                let resume = Action::ResumeMirror { mirror: mirror2, topics: topics() };
                vec![(Time(0), Action::PauseMirror { mirror, topics: topics() }), (length, resume)]
            } else {
                let start = Action::StartMirror { mirror: mirror2, topics: topics() };
                vec![(Time(0), Action::StopMirror { mirror, topics: topics() }), (length, start)]
            }
        }
    };
    // Only strikes at a broker count against its cluster's budget.
    let broker = broker.filter(|_| !matches!(kind, ChaosKind::ClientPause) && hits_broker(&actions));
    let (hit, is_controller) = if kind.hits_controller() { (controller, true) } else { (broker, false) };
    let broker = hit.map(|(cluster, n)| (cluster, n, is_controller));
    Some(Drawn { kind, length, broker, actions })
}

fn hits_broker(actions: &[(Time, Action)]) -> bool {
    actions.iter().any(|(_, action)| {
        matches!(
            action,
            Action::Kill { .. }
                | Action::PowerLoss { .. }
                | Action::Shutdown { .. }
                | Action::Pause { .. }
                | Action::Partition { node: Some(_), .. }
                | Action::DiskStall { .. }
                | Action::DiskFull { .. }
                | Action::ClockJump { .. }
                | Action::SlowLane { .. }
                | Action::DelayMetadata { .. }
        )
    })
}

fn election(targets: &Targets, stage: &Stage, seed: u64, n: u64) -> Option<Action> {
    let topic = stage.topics.get(pick(seed, "chaos.topic", n, &targets.topics)?)?;
    let member = below(seed, "chaos.member", n, u64::from(topic.topics()));
    let name = if topic.count.is_some() { format!("{}-{member}", topic.name) } else { topic.name.clone() };
    let partition = u32::try_from(below(seed, "chaos.partition", n, u64::from(topic.partitions))).ok()?;
    let pick = u32::try_from(below(seed, "chaos.replica", n, u64::from(topic.rf))).ok()?;
    Some(Action::Elect { on: topic.on.clone(), topic: name, partition: Some(partition), elect: Elect::Pick(pick) })
}
