//! The search: the smallest case so far, and candidates that are tried against it.

use super::case;
use super::memory::Memory;
use super::passes::quirks_on;
use super::trial::{self, Bounds, Outcome};
use super::{Budget, Measure};
use crate::format::types::Topic;
use crate::format::{Profile, Vocabulary};
use crate::plan::Plan;
use mirrorlab_model::ids::Nanos;
use std::collections::BTreeSet;
use std::sync::Arc;
use toml::{Table, Value};

/// A candidate may take so many times the events of the original.
const EVENTS_TIMES: u64 = 3;
/// And so many more: a small case has its boot, too.
const EVENTS_MORE: u64 = 50_000;
/// A safety violation may come so much later than the original's, in simulated nanoseconds.
const LATER: u64 = 5_000_000_000;

/// Nobody knows how far a run came that ended the program.
const EVENTS_OF_PANIC: u64 = 20_000_000;

/// Other seeds that a candidate with fewer things is tried under.
const SEEDS: i64 = 4;

/// What is asked of a case with every guard on and every quirk off. Without a control the search would end at a smaller case of
/// another failure, one that does not need what is switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    /// Nothing: the protocol as it should be is what fails.
    Nothing,
    /// That it does not fail in the same way.
    Differs,
    /// A stall has to be the mutant's: that it converges in the time that it leaves.
    Converges,
}

/// The state of a search.
pub(super) struct Search<'m> {
    /// The smallest case so far.
    pub best: Table,
    /// Its plan.
    pub plan: Plan,
    /// What its run came to.
    pub outcome: Outcome,
    /// What every case has to come to.
    pub target: String,
    /// Runs so far, remembered ones too: so that the same input gives the same result.
    pub tries: u64,
    /// Events of these runs.
    pub events: u64,
    /// What a case must not come to without what is switched.
    pub control: Control,
    /// How long the original's last phase was, once it is shorter: who is only late in the shorter one does not stall.
    pub whole_wait: Option<Value>,
    budget: Budget,
    vocabulary: Arc<Vocabulary>,
    bounds: Bounds,
    seen: BTreeSet<u64>,
    memory: &'m mut dyn Memory,
}

impl<'m> Search<'m> {
    /// A search that begins with a plan that fails; `None` if it has no text.
    pub fn new(plan: &Plan, original: &Outcome, budget: Budget, memory: &'m mut dyn Memory) -> Option<Self> {
        let mut best = case::of_plan(plan)?;
        // What is expected beside the invariants has no part in what breaks first.
        best.remove("expect");
        let vocabulary = Arc::new(Vocabulary::standard());
        let plan = case::plan(&best, &vocabulary)?;
        let late = if original.is_stall() { u64::MAX } else { original.broke_ns * 5 / 4 + LATER };
        let bounds = match original.ended() {
            true => Bounds { events: original.events * EVENTS_TIMES + EVENTS_MORE, until: Nanos(late) },
            false => Bounds { events: EVENTS_OF_PANIC, ..Bounds::NONE },
        };
        let target = original.signature.clone()?;
        let seen = BTreeSet::new();
        let control = if is_mutant(&plan) { Control::Differs } else { Control::Nothing };
        Some(Self {
            best,
            plan,
            outcome: original.clone(),
            target,
            tries: 0,
            events: 0,
            control,
            whole_wait: None,
            budget,
            vocabulary,
            bounds,
            seen,
            memory,
        })
    }

    /// Whether the budget is spent.
    pub fn is_spent(&self) -> bool {
        self.tries >= self.budget.tries || self.events >= self.budget.events
    }

    /// Tries a candidate: true if it fails in the same way, and is the smallest case from now on.
    pub fn attempt(&mut self, candidate: Table) -> bool {
        self.attempt_if(candidate, |_, _| true)
    }

    /// The same, if the candidate's outcome compares so with that of the smallest case.
    pub fn attempt_if(&mut self, candidate: Table, is_less: impl FnOnce(&Outcome, &Outcome) -> bool) -> bool {
        if self.is_spent() || candidate == self.best {
            return false;
        }
        let text = case::text(&candidate);
        let key = xxhash_rust::xxh3::xxh3_64(text.as_bytes());
        if !self.seen.insert(key) {
            return false;
        }
        let Some(plan) = case::plan(&candidate, &self.vocabulary) else { return false };
        if plan == self.plan {
            // It says the same in fewer words.
            self.best = candidate;
            return true;
        }
        // It would be another failure, or a larger world.
        let is_another = self.control != Control::Nothing && !is_mutant(&plan);
        if is_another || World::of(&plan).is_larger(&World::of(&self.plan)) {
            return false;
        }
        let outcome = self.outcome_of(key, &plan);
        if outcome.signature.as_ref() != Some(&self.target) || !is_less(&outcome, &self.outcome) {
            return false;
        }
        if !self.is_of_the_mutant(&plan) || !self.stalls_for_good(&candidate) {
            return false;
        }
        self.memory.better(&plan, &outcome, self.tries);
        (self.best, self.plan, self.outcome) = (candidate, plan, outcome);
        true
    }

    /// Runs a case, unless it is known what that comes to.
    fn outcome_of(&mut self, key: u64, plan: &Plan) -> Outcome {
        self.tries += 1;
        let outcome = match self.memory.recall(key) {
            Some(outcome) => outcome,
            None => {
                let outcome = trial::run(plan, self.bounds);
                self.memory.note(key, &outcome);
                outcome
            }
        };
        self.events += outcome.events;
        outcome
    }

    /// Whether a case that stalls within a shorter last phase still does when it has as long as the original had.
    fn stalls_for_good(&mut self, candidate: &Table) -> bool {
        let Some(wait) = self.whole_wait.clone() else { return true };
        let mut longer = candidate.clone();
        case::set_phase(&mut longer, "converge", wait);
        let Some(plan) = case::plan(&longer, &self.vocabulary) else { return false };
        let key = xxhash_rust::xxh3::xxh3_64(case::text(&longer).as_bytes());
        self.outcome_of(key, &plan).signature.as_ref() == Some(&self.target)
    }

    /// Whether a case that fails needs for it what is switched.
    fn is_of_the_mutant(&mut self, plan: &Plan) -> bool {
        match self.control {
            Control::Nothing => true,
            Control::Differs => !self.fails_without_mutant(plan),
            Control::Converges => {
                let outcome = self.without_mutant(plan);
                outcome.signature.is_none() && !outcome.bounded
            }
        }
    }

    /// Whether a case fails in the same way with all guards on and all quirks off.
    pub fn fails_without_mutant(&mut self, plan: &Plan) -> bool {
        self.without_mutant(plan).signature.as_ref() == Some(&self.target)
    }

    fn without_mutant(&mut self, plan: &Plan) -> Outcome {
        let mut plan = plan.clone();
        plan.profile = Profile::Corrected;
        (plan.stage.guards_off, plan.stage.quirks) = (Vec::new(), Vec::new());
        let Ok(text) = plan.to_toml() else { return Outcome::default() };
        self.outcome_of(xxhash_rust::xxh3::xxh3_64(text.as_bytes()), &plan)
    }

    /// Tries a candidate, then the same under a few other seeds: with fewer nodes every draw falls elsewhere.
    pub fn attempt_under_seeds(&mut self, candidate: Table) -> bool {
        if self.attempt(candidate.clone()) {
            return true;
        }
        (0..SEEDS).any(|seed| {
            let mut candidate = candidate.clone();
            candidate.insert("seed".to_owned(), Value::Integer(seed));
            self.attempt(candidate)
        })
    }

    /// Tries what a change makes of the smallest case.
    pub fn attempt_edit(&mut self, edit: impl FnOnce(&mut Table)) -> bool {
        let mut candidate = self.best.clone();
        edit(&mut candidate);
        self.attempt(candidate)
    }

    /// Keeps a smallest part of a list (ddmin: Zeller, Hildebrandt 2002): first nothing of it, then halves, quarters and so
    /// on are taken away. `build` makes the case that keeps these items. Later items go first: less depends on them.
    pub fn keep_fewest(&mut self, count: usize, build: impl Fn(&Table, &[usize]) -> Table) {
        let base = self.best.clone();
        let mut kept: Vec<usize> = (0..count).collect();
        if kept.is_empty() || self.attempt(build(&base, &[])) {
            return;
        }
        let mut size = kept.len().div_ceil(2);
        loop {
            let mut end = kept.len();
            let mut fewer = false;
            while end > 0 && kept.len() > 1 {
                let from = end.saturating_sub(size);
                let rest: Vec<usize> = kept[..from].iter().chain(&kept[end..]).copied().collect();
                if self.attempt(build(&base, &rest)) {
                    kept = rest;
                    fewer = true;
                }
                end = from;
            }
            if self.is_spent() || size == 1 && !fewer {
                return;
            }
            size = size.div_ceil(2).min(kept.len().div_ceil(2)).max(1);
        }
    }
}

/// Whether a plan switches a guard off or a quirk on.
pub(super) fn is_mutant(plan: &Plan) -> bool {
    !plan.stage.guards_off.is_empty() || !quirks_on(plan).is_empty()
}

/// How large the world of a plan is, before anything happens in it. What a file leaves out may stand for more than what it said.
#[derive(Clone, Copy, Debug)]
struct World([u64; 4]);

impl World {
    fn of(plan: &Plan) -> Self {
        let Measure { nodes, clients, partitions, .. } = Measure::of(plan, &Outcome::default());
        let copies = |t: &Topic| u64::from(t.topics()) * u64::from(t.partitions) * u64::from(t.rf);
        Self([nodes, clients, partitions, plan.stage.topics.values().map(copies).sum()])
    }

    fn is_larger(&self, than: &Self) -> bool {
        self.0.iter().zip(&than.0).any(|(own, other)| own > other)
    }
}
