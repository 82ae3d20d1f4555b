//! One try of a candidate: a run within bounds, on a thread and in a runtime of its own, and what came of it.

use super::signature::{breaks_at_the_end, signature};
use crate::plan::Plan;
use crate::run::{Job, Run};
use crate::tell::last_words;
use mirrorlab_model::ids::Nanos;
use mirrorlab_reports::record::Verdict;
use mirrorlab_sim::pump::on_fresh_runtime;
use serde::{Deserialize, Serialize};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// How far a run may go. A candidate that cannot fail in time any more is given up, and one that does not end ends here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Events.
    pub events: u64,
    /// Simulated time.
    pub until: Nanos,
}

impl Bounds {
    /// None.
    pub const NONE: Self = Self { events: u64::MAX, until: Nanos(u64::MAX) };
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// The signature of what broke first; `None`: nothing did within the bounds.
    pub signature: Option<String>,
    /// The invariant.
    pub id: String,
    /// Where.
    pub at: String,
    /// What should have been.
    pub expected: String,
    /// What was.
    pub got: String,
    /// When it broke, simulated nanoseconds.
    pub broke_ns: u64,
    /// When the safety phase began.
    pub base_ns: u64,
    /// When it ended, or would have.
    pub heal_ns: u64,
    /// Events.
    pub events: u64,
    /// Simulated nanoseconds.
    pub simulated_ns: u64,
    /// Records that producers were told to have written.
    pub records: u64,
    /// The trace hash.
    pub hash: String,
    /// The bounds ended it.
    pub bounded: bool,
}

impl Outcome {
    /// Whether it broke within the safety phase: what the plan says of later times did not matter.
    #[must_use]
    pub fn broke_in_safety(&self) -> bool {
        self.signature.is_some() && self.broke_ns > 0 && self.broke_ns < self.heal_ns
    }

    /// Whether there was an end to count events at: a run that ended the program has none.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.events > 0
    }

    /// Whether what broke is a liveness property: it breaks when the time of the last phase is over.
    #[must_use]
    pub fn is_stall(&self) -> bool {
        breaks_at_the_end(&self.id)
    }
}

/// Runs a plan within bounds. A config that the model does not take is a run in which nothing breaks; a run that ends the
/// program has a signature of its own.
#[must_use]
pub fn run(plan: &Plan, bounds: Bounds) -> Outcome {
    run_reseeded(plan, bounds, None)
}

/// The same, with all draws after an instant from another seed.
#[must_use]
pub fn run_reseeded(plan: &Plan, bounds: Bounds, other: Option<(Nanos, u64)>) -> Outcome {
    let job = Job { path: String::new(), plan: plan.clone() };
    let seed = plan.seed;
    let done = catch_unwind(AssertUnwindSafe(|| on_fresh_runtime(seed, async move || within(job, bounds, other))));
    done.unwrap_or_else(|panic| {
        let text = last_words(&*panic).unwrap_or("unknown");
        let signature = format!("panic {}", super::signature::kind_of(text));
        Outcome { signature: Some(signature), id: "panic".to_owned(), got: text.to_owned(), ..Outcome::default() }
    })
}

fn within(job: Job, bounds: Bounds, other: Option<(Nanos, u64)>) -> Outcome {
    let Ok(mut run) = Run::new(job) else { return Outcome::default() };
    if let Some((at, seed)) = other {
        if !run.go_to(at) {
            return Outcome::default();
        }
        run.reseed(seed);
    }
    let record = run.to_end_within(bounds.events, bounds.until);
    let mut outcome = Outcome {
        base_ns: run.base().0,
        heal_ns: run.safety_end().0,
        events: run.lab().world.counts().events,
        simulated_ns: run.lab().world.now().0,
        hash: format!("{:016x}", run.trace_hash()),
        ..Outcome::default()
    };
    outcome.bounded = record.is_none();
    let Some(record) = record else { return outcome };
    outcome.records = record.figures.get("acked_records").map_or(0, |n| *n as u64);
    // Whatever the plan expects: what broke, broke.
    if let Some(first) = record.violations.first().filter(|_| record.verdict != Verdict::Diverged) {
        outcome.signature = Some(signature(first));
        outcome.id.clone_from(&first.id);
        outcome.at.clone_from(&first.at);
        outcome.expected.clone_from(&first.expected);
        outcome.got.clone_from(&first.got);
        outcome.broke_ns = first.time_ns;
    }
    outcome
}
