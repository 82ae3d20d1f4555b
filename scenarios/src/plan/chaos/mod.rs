//! Expands `[chaos]` into steps of a timeline.
//!
//! Strike n owns the n-th slot of time and draws its instant, kind, target and length by its own number, so no strike depends
//! on another. Budgets only take strikes away: one that would exceed them is dropped, never drawn again. What a strike does
//! stands in `processes.rs`, `traffic.rs`, `storage.rs`, `elections.rs` and `operators.rs`; all its steps are over when it is.

mod budget;
mod elections;
mod operators;
mod processes;
mod storage;
mod targets;
mod traffic;

use super::draw::{below, between, pick};
use crate::format::action::{Action, NodeRef, Step, Trigger, ANY_ANSWER};
use crate::format::chaos::{Chaos, ChaosKind, Mode, Strike};
use crate::format::types::{Stage, Topic};
use crate::format::Vocabulary;
use crate::units::Time;
use budget::Budget;
use targets::Targets;

/// How long before the end of the safety phase the last order is given at the latest, in nanoseconds.
const ORDER_BEFORE_END: u64 = 100_000_000;

/// A broker, or a controller (true), by cluster and number; number 0 stands for some broker that is known later.
type Node = (String, u32, bool);

/// One step of a strike.
struct Move {
    /// Since the strike's instant.
    after: Time,
    action: Action,
    /// An order that is given once, however it is answered.
    once: bool,
}

impl Move {
    fn at(after: Time, action: Action) -> Self {
        Self { after, action, once: false }
    }
    fn now(action: Action) -> Self {
        Self::at(Time(0), action)
    }
    /// An order that may be refused: it is not repeated.
    fn once(after: Time, action: Action) -> Self {
        Self { after, action, once: true }
    }
}

/// A strike before the budget has its say.
struct Drawn {
    kind: ChaosKind,
    length: Time,
    /// Whom it hits, for the budget.
    hits: Vec<Node>,
    moves: Vec<Move>,
}

/// What a strike draws from: its number and what there is.
struct Draw<'a> {
    kind: ChaosKind,
    strike: Strike,
    targets: &'a Targets,
    stage: &'a Stage,
    seed: u64,
    n: u64,
    length: Time,
    at: Time,
}

impl Draw<'_> {
    fn below(&self, concern: &str, bound: u64) -> u64 {
        below(self.seed, concern, self.n, bound)
    }
    fn between(&self, concern: &str, min: Time, max: Time) -> Time {
        between(self.seed, concern, self.n, min, max)
    }
    fn pick<'t, T>(&self, concern: &str, things: &'t [T]) -> Option<&'t T> {
        pick(self.seed, concern, self.n, things)
    }
    /// One time in so many.
    fn one_in(&self, concern: &str, many: u64) -> bool {
        self.below(concern, many) == 0
    }
    fn lasting(&self) -> Option<Time> {
        Some(self.length)
    }
    /// A part of its length, in percent.
    fn part(&self, percent: u64) -> Time {
        Time(self.length.0 / 100 * percent)
    }
    fn broker(&self) -> Option<(String, u32)> {
        self.pick("chaos.broker", &self.targets.brokers).cloned()
    }
    fn node(&self) -> Option<NodeRef> {
        self.broker().map(|(cluster, n)| NodeRef::Broker(cluster, n))
    }
    fn controller(&self) -> Option<(String, u32)> {
        self.pick("chaos.controller", &self.targets.controllers).cloned()
    }
    fn voter(&self) -> Option<NodeRef> {
        self.controller().map(|(cluster, n)| NodeRef::Controller(cluster, n))
    }
    fn link(&self) -> Option<&(String, [String; 2])> {
        self.pick("chaos.link", &self.targets.links)
    }
    fn mirror(&self) -> Option<String> {
        self.pick("chaos.mirror", &self.targets.mirrors).cloned()
    }
    /// A topic, one of its names, and one of its partitions.
    fn partition(&self) -> Option<(&Topic, String, u32)> {
        let topic = self.stage.topics.get(self.pick("chaos.topic", &self.targets.topics)?)?;
        let partition = u32::try_from(self.below("chaos.partition", u64::from(topic.partitions))).ok()?;
        Some((topic, self.member(topic), partition))
    }
    fn member(&self, topic: &Topic) -> String {
        let member = self.below("chaos.member", u64::from(topic.topics()));
        if topic.count.is_some() {
            format!("{}-{member}", topic.name)
        } else {
            topic.name.clone()
        }
    }
    fn inside_task(&self) -> bool {
        self.below("chaos.inside", 1_000_000_000) < u64::from(self.strike.inside_task.0)
    }
    /// Whom its kind hits.
    fn hits(&self, moves: &[Move]) -> Vec<Node> {
        if self.kind.hits_controller() {
            return self.controller().map(|(cluster, n)| (cluster, n, true)).into_iter().collect();
        }
        let broker = |node: &NodeRef| match node {
            NodeRef::Broker(cluster, n) => Some((cluster.clone(), *n, false)),
            NodeRef::Brokers(cluster) => Some((cluster.clone(), 0, false)),
            NodeRef::Coordinator(mirror) => Some((self.stage.mirrors.get(mirror)?.on.clone(), 0, false)),
            _ => None,
        };
        let mut hits: Vec<Node> = moves.iter().filter_map(|m| broker(m.action.struck()?)).collect();
        hits.dedup();
        if self.kind == ChaosKind::RollingRestart {
            // One after the other: no two are down at once.
            hits.truncate(1);
        }
        hits
    }

    fn moves(&self) -> Option<Vec<Move>> {
        processes::moves(self)
            .or_else(|| traffic::moves(self))
            .or_else(|| elections::moves(self))
            .or_else(|| storage::moves(self))
            .or_else(|| operators::moves(self))
    }
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
        let length = between(seed, "chaos.length", n, strike.min, strike.max);
        let draw = Draw { kind, strike, targets: &targets, stage, seed, n, length, at };
        // Nothing, if there is nothing of that kind to strike at.
        let Some(moves) = draw.moves() else { continue };
        let drawn = Drawn { kind, length, hits: draw.hits(&moves), moves };
        if at >= chaos.stop || !budget.admits(chaos, stage, &drawn, at) {
            continue;
        }
        budget.take(&drawn, at);
        steps.extend(drawn.moves.into_iter().map(|m| step(chaos, stage, at, m)));
    }
    steps
}

fn step(chaos: &Chaos, stage: &Stage, at: Time, one: Move) -> Step {
    // An order that takes another one back comes within the safety phase: after it nothing is ordered any more.
    let last = Time(stage.phases.safety.0.saturating_sub(ORDER_BEFORE_END)).max(at);
    let trigger = Trigger::At { at: at.plus(one.after).min(last), every: None, times: None };
    Step {
        name: None,
        trigger,
        permanent: false,
        within_tolerance: chaos.mode == Some(Mode::WithinTolerance) && one.action.leans_on_others(),
        expect_error: one.once.then(|| ANY_ANSWER.to_owned()),
        operator: 1,
        action: one.action,
    }
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
