//! Makes a failing plan smaller: a smaller case counts only if it fails with the same signature (`signature.rs`), in no larger a
//! world, and for the same reason: where guards are off or quirks on, not without that. The result is replayed twice before it is
//! reported.
//!
//! Read in this order: `trial` (one run within bounds), `case` (what is taken away), `search` (the smallest case so far; ddmin),
//! `passes` and `times` (what is tried, in which order), `memory` (what an interrupted search leaves), `found` (the scenario
//! file that comes of it).
//!
//! The search is deterministic: the same plan and the same number of tries give the same result, whatever was remembered.

mod case;
pub mod found;
pub mod memory;
mod passes;
mod search;
pub mod signature;
mod times;
pub mod trial;

use crate::plan::Plan;
use memory::{Forgetful, Memory};
use search::Search;
use serde::Serialize;
use trial::{Bounds, Outcome};

/// Rounds over all passes at most: each makes room for the ones before it.
const ROUNDS_MAX: usize = 4;

/// How much a search may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Runs of candidates.
    pub tries: u64,
    /// Events of all of them: what time it takes, on any machine.
    pub events: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { tries: 1_500, events: 150_000_000 }
    }
}

/// How large a plan and its run are.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize)]
pub struct Measure {
    /// Steps of the timeline.
    pub steps: u64,
    /// Brokers and controllers.
    pub nodes: u64,
    /// Producers and consumers.
    pub clients: u64,
    /// Partitions of the plan's topics.
    pub partitions: u64,
    /// Records that were acknowledged.
    pub records: u64,
    /// Simulated seconds.
    pub simulated_s: f64,
    /// Events.
    pub events: u64,
}

impl Measure {
    fn of(plan: &Plan, outcome: &Outcome) -> Self {
        let stage = &plan.stage;
        let clients = stage.producers.values().map(|p| p.count).chain(stage.consumers.values().map(|c| c.count));
        Self {
            steps: stage.timeline.len() as u64,
            nodes: stage.clusters.values().map(|c| u64::from(c.brokers) + u64::from(c.controllers)).sum(),
            clients: clients.map(u64::from).sum(),
            partitions: stage.topics.values().map(|t| u64::from(t.topics()) * u64::from(t.partitions)).sum(),
            records: outcome.records,
            simulated_s: outcome.simulated_ns as f64 / 1e9,
            events: outcome.events,
        }
    }
}

/// A plan that was made smaller.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The smallest plan that fails in the same way.
    pub plan: Plan,
    /// What its run comes to.
    pub outcome: Outcome,
    /// The tree that it was read from, in as few words as it takes: what the scenario file is written from.
    case: toml::Table,
    /// The plan that it was made from.
    pub before: Measure,
    /// The smallest one.
    pub after: Measure,
    /// Candidates that were run.
    pub tries: u64,
    /// True: the tries were spent before nothing more could be taken away.
    pub spent: bool,
    /// True: guards were off or quirks on, and the first plan fails in the same way without that. It is a failure of the protocol
    /// as it should be, or of a checker, and the smallest plan switches nothing.
    pub finding: bool,
}

/// Why nothing was made smaller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The plan's run breaks nothing.
    Passes,
    /// Two runs of the smallest plan gave two histories: their trace hashes.
    Diverged(String, String),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Passes => f.write_str("nothing breaks in this run: there is nothing to make smaller"),
            Self::Diverged(one, two) => write!(f, "the same plan gave two histories, {one} and {two}"),
        }
    }
}

/// Makes a failing plan smaller.
///
/// # Errors
/// See [`Refused`].
pub fn shrink(plan: &Plan, budget: Budget) -> Result<Shrunk, Refused> {
    shrink_with(plan, budget, &mut Forgetful)
}

/// The same, with a memory of candidates that were run before.
///
/// # Errors
/// See [`Refused`].
pub fn shrink_with(plan: &Plan, budget: Budget, memory: &mut dyn Memory) -> Result<Shrunk, Refused> {
    let original = trial::run(plan, Bounds::NONE);
    let before = Measure::of(plan, &original);
    let mut search = Search::new(plan, &original, budget, memory).ok_or(Refused::Passes)?;
    let finding = passes::without_switches(&mut search);
    times::less_to_wait(&mut search);
    for _ in 0..ROUNDS_MAX {
        let begun = search.best.clone();
        times::cut_the_end(&mut search);
        passes::fewer_steps(&mut search);
        passes::fewer_things(&mut search);
        passes::smaller_numbers(&mut search);
        times::cut_the_end(&mut search);
        times::shorter_pauses(&mut search);
        times::shorter_faults(&mut search);
        times::less_traffic(&mut search);
        passes::fewer_switches(&mut search);
        passes::fewer_words(&mut search);
        times::cut_the_end(&mut search);
        if search.best == begun || search.is_spent() {
            break;
        }
    }
    let spent = search.is_spent();
    times::rounder_times(&mut search);
    let (plan, case, tries) = (search.plan.clone(), search.best.clone(), search.tries);
    let runs = [1, 2].map(|_| trial::run(&plan, Bounds::NONE));
    if runs[0] != runs[1] || runs[0].signature.as_ref() != Some(&search.target) {
        return Err(Refused::Diverged(runs[0].hash.clone(), runs[1].hash.clone()));
    }
    let [outcome, _] = runs;
    let after = Measure::of(&plan, &outcome);
    Ok(Shrunk { plan, outcome, case, before, after, tries, spent, finding })
}

#[cfg(test)]
#[path = "shrink_tests.rs"]
mod tests;
