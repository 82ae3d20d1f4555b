//! When it was decided: the run is repeated with all draws after an instant from other seeds. Before some instant a few of these
//! runs avoid the violation; from some instant on none does.

use super::seconds;
use crate::plan::Plan;
use crate::shrink::signature::breaks_at_the_end;
use crate::shrink::trial::{run_reseeded, Bounds};
use mirrorlab_model::ids::Nanos;
use mirrorlab_reports::record::Violation;
use mirrorlab_sim::rng::join;

/// Halvings of the time in question.
const HALVINGS: u32 = 12;
/// No closer than that: nanoseconds.
const CLOSE: u64 = 1_000_000;
/// A safety violation may come so much later than in the run itself.
const LATER: u64 = 5_000_000_000;
/// Events of a run that goes another way.
const EVENTS_TIMES: u64 = 4;

/// Between which instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// Reseeded here, some runs avoid it; `None`: not even where the question begins.
    pub avoided_at: Option<Nanos>,
    /// How many of them.
    pub avoided: u32,
    /// Reseeded from here on, none does.
    pub certain_from: Nanos,
    /// Runs at each instant.
    pub reseeds: u32,
    /// What breaks is a matter of the whole run: a liveness property.
    pub is_stall: bool,
}

impl Decided {
    /// Whether an instant lies where it was decided.
    #[must_use]
    pub fn holds(&self, at: Nanos) -> bool {
        self.avoided_at.is_some_and(|from| at >= from && at <= self.certain_from)
    }

    /// In one line.
    #[must_use]
    pub fn text(&self) -> String {
        let k = self.reseeds;
        match self.avoided_at {
            None => format!(
                "decided by the plan: reseeded from {} on, {k} of {k} runs break alike",
                seconds(self.certain_from)
            ),
            Some(at) => format!(
                "decided between {} and {} (*): reseeded at the first, {} of {k} runs avoid it; at the second, none",
                seconds(at),
                seconds(self.certain_from),
                self.avoided
            ),
        }
    }
}

/// Asks, by halving the time from the start of the safety phase to the violation.
pub(super) fn when(plan: &Plan, signature: &str, base: Nanos, violation: &Violation, reseeds: u32) -> Decided {
    let broke = violation.time_ns;
    let is_stall = breaks_at_the_end(&violation.id);
    let until = if is_stall { u64::MAX } else { broke.saturating_mul(5) / 4 + LATER };
    let bounds = Bounds { events: violation.step.saturating_mul(EVENTS_TIMES), until: Nanos(until) };
    let avoided = |at: u64| -> u32 {
        let avoids = |n: &u32| {
            let seed = join(plan.seed, u64::from(*n) + 1);
            run_reseeded(plan, bounds, Some((Nanos(at), seed))).signature.as_deref() != Some(signature)
        };
        (0..reseeds).filter(avoids).count() as u32
    };
    let first = avoided(base.0);
    let mut decided = Decided { avoided_at: None, avoided: 0, certain_from: base, reseeds, is_stall };
    if first == 0 {
        return decided;
    }
    let (mut open, mut closed) = (base.0, broke);
    (decided.avoided_at, decided.avoided) = (Some(base), first);
    for _ in 0..HALVINGS {
        if closed.saturating_sub(open) <= CLOSE {
            break;
        }
        let middle = open + (closed - open) / 2;
        match avoided(middle) {
            0 => closed = middle,
            n => {
                open = middle;
                (decided.avoided_at, decided.avoided) = (Some(Nanos(middle)), n);
            }
        }
    }
    decided.certain_from = Nanos(closed);
    decided
}
