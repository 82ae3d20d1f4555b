//! L18, absence is harmless: a run in which one node is down at the instant a decision commits ends in the same state as the run
//! without.
//!
//! A run that passes is looked at for its decisions (`decisions`): committed metadata, committed mirror states and positions,
//! orders. For a sample of them the same plan runs again with one step more: a node that availability does not need is killed
//! just before, and starts again a bounded time later. What it ends in is compared with what the run without ended in (`facts`,
//! where it stands what absence may change). Neither knows of the other: each run must also pass all checks on its own, and what
//! breaks only with the absence counts as L18, too.
//!
//! A step of a timeline that waits for a condition may strike in one of two runs only. Such a pair tells nothing, and is counted
//! apart.

mod decisions;
mod facts;

pub use decisions::{Decision, DecisionKind};

use crate::checks::explain;
use crate::format::action::{Action, Step, Trigger};
use crate::format::types::Expect;
use crate::plan::Plan;
use crate::run::{Job, Run};
use crate::units::Time;
use decisions::Sample;
use facts::Facts;
use mirrorlab_model::ids::Nanos;
use mirrorlab_reports::record::{Record, Verdict, Violation};
use mirrorlab_sim::pump::on_fresh_runtime;

/// The property's id.
pub const ID: &str = "L18";

/// Differences of one pair that are told.
const TOLD_MAX: usize = 6;

/// What came of one sample.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The decision.
    pub decision: Decision,
    /// Who was absent.
    pub node: String,
    /// From when on, simulated nanoseconds.
    pub from_ns: u64,
    /// For how long.
    pub lasting: Time,
    /// The plan with the absence: it replays alone.
    pub plan: Plan,
    /// What is to be said of it.
    pub came: Came,
}

/// How a pair of runs compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// They end in the same state.
    Same,
    /// They do not: expected and got, fact by fact.
    Differs(Vec<(String, String)>),
    /// A check broke, with the absence only.
    Broke(String),
    /// Some step struck in one of them only, or the run with the absence was given up.
    Apart(String),
}

/// What came of all samples of a plan.
#[derive(Clone, Debug)]
pub struct Absence {
    /// The run without.
    pub record: Record,
    /// Decisions that there were to choose from.
    pub decisions: usize,
    /// The samples; none if the run without does not pass.
    pub tried: Vec<Tried>,
}

impl Absence {
    /// What is broken, as a run's violations.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        self.tried.iter().filter_map(violation).collect()
    }

    /// The record of the run without, and what absence broke.
    #[must_use]
    pub fn judged(mut self) -> Record {
        let violations = self.violations();
        if let Some(first) = violations.first() {
            self.record.verdict = Verdict::Stall;
            self.record.reason = format!("{}: {}", first.id, first.says);
            self.record.violations = violations;
        }
        self.record.figures.insert("absences_tried".into(), self.tried.len() as f64);
        self.record
    }
}

fn violation(tried: &Tried) -> Option<Violation> {
    let (expected, got) = match &tried.came {
        Came::Same | Came::Apart(_) => return None,
        Came::Differs(facts) => {
            let side = |of: fn(&(String, String)) -> &String| {
                facts.iter().take(TOLD_MAX).map(of).cloned().collect::<Vec<_>>().join("; ")
            };
            (side(|fact| &fact.0), side(|fact| &fact.1))
        }
        Came::Broke(what) => ("a run that passes".to_owned(), what.clone()),
    };
    let decision = &tried.decision;
    Some(Violation {
        id: ID.to_owned(),
        says: explain(ID).map_or("", |info| info.statement).to_owned(),
        at: format!("{} at {}", decision.what, tried.node),
        expected,
        got: format!("{got} (absent from {} ns on, for {})", tried.from_ns, tried.lasting),
        whose: "system".to_owned(),
        time_ns: decision.at.0,
        step: decision.step,
    })
}

/// Runs a job, and again with a node absent for each of so many of its decisions; each for so many events at most.
///
/// # Errors
/// A config entry that the model does not take.
pub fn judge(job: &Job, samples: u32, events_max: u64) -> Result<Absence, crate::lab::BadConfig> {
    let (plan, without) = (&job.plan, run(job.clone(), events_max)?);
    let mut absence = Absence { record: without.record.clone(), decisions: without.decisions.len(), tried: Vec::new() };
    if absence.record.verdict != Verdict::Pass || !plan.stage.expect.violation.is_empty() {
        return Ok(absence);
    }
    for n in 0..u64::from(samples) {
        let Some(sample) = decisions::sample(plan, &without.decisions, &absence.record, without.base, n) else {
            continue;
        };
        let with = with_absence(plan, &sample, without.base);
        let came = compare(&without, &run(Job { path: job.path.clone(), plan: with.clone() }, events_max)?);
        absence.tried.push(Tried {
            decision: sample.decision,
            node: sample.node.to_string(),
            from_ns: sample.from.0,
            lasting: sample.lasting,
            plan: with,
            came,
        });
    }
    Ok(absence)
}

/// What a run left to compare.
struct Ended {
    record: Record,
    facts: Facts,
    decisions: Vec<Decision>,
    base: Nanos,
    /// Steps that did not strike, by what they do.
    missed: Vec<String>,
}

fn run(job: Job, events_max: u64) -> Result<Ended, crate::lab::BadConfig> {
    on_fresh_runtime(job.plan.seed, async move || {
        let mut run = Run::new(job)?;
        run.limit_events(events_max);
        let (record, decisions) = decisions::watch(&mut run);
        let names = run.missed_steps().into_iter().map(|(n, why)| {
            let action = run.plan().stage.timeline[n].action.name();
            format!("{action}: {why}")
        });
        let missed = names.collect();
        Ok(Ended { facts: facts::of(&run, &record), base: run.base(), record, decisions, missed })
    })
}

/// The plan with one step more, at its place in the order of steps.
fn with_absence(plan: &Plan, sample: &Sample, base: Nanos) -> Plan {
    let mut plan = plan.clone();
    let at = Time(sample.from.0.saturating_sub(base.0));
    let node = sample.node.clone();
    let action = Action::Kill { node, restart_after: Some(sample.lasting), inside_task: false };
    let trigger = Trigger::At { at, every: None, times: None };
    let (permanent, within_tolerance) = (false, false);
    let step = Step { name: None, trigger, permanent, expect_error: None, within_tolerance, operator: 1, action };
    let timeline = &mut plan.stage.timeline;
    let later = |step: &Step| matches!(&step.trigger, Trigger::At { at: other, .. } if *other > at);
    let place = timeline.iter().position(later).unwrap_or(timeline.len());
    timeline.insert(place, step);
    // What the file expects is of the run without: figures and counts may be others with an absence.
    plan.stage.expect = Expect::default();
    plan
}

fn compare(without: &Ended, with: &Ended) -> Came {
    if with.record.verdict == Verdict::Unknown {
        return Came::Apart(with.record.reason.clone());
    }
    if with.missed != without.missed {
        let missed = with.missed.iter().chain(&without.missed);
        return Came::Apart(missed.cloned().collect::<Vec<_>>().join("; "));
    }
    if let Some(first) = with.record.violations.first() {
        return Came::Broke(format!("{} in {}: expected {}, got {}", first.id, first.at, first.expected, first.got));
    }
    let differences = without.facts.differences(&with.facts);
    if differences.is_empty() {
        Came::Same
    } else {
        Came::Differs(differences)
    }
}

#[cfg(test)]
#[path = "absence_tests.rs"]
mod tests;
