//! Why a run broke: the causal past of its first violation, on one screen; and how early another throw of the dice still avoids
//! it.
//!
//! The past of an event is what went before at its own node, what led to the messages that had arrived there, and so on back
//! (Lamport 1978). All of it is far too much: `place` says what the violation is about, `lines` keeps what touches that, folds
//! what is alike, and cuts what weighs least. `decided` asks the other question: the run is repeated with all draws after an
//! instant from other seeds; from some instant on nothing avoids the violation any more.

mod decided;
mod lines;
mod place;
mod words;

pub use decided::Decided;

use crate::plan::Plan;
use crate::run::{Job, Run};
use crate::shrink::signature::signature;
use lines::Line;
use mirrorlab_model::ids::Nanos;
use mirrorlab_reports::record::Violation;
use mirrorlab_sim::pump::on_fresh_runtime;
use std::fmt::Write as _;

/// Lines of the printed form, at most: one screen.
pub const SCREEN: usize = 40;
/// Of these, lines of the past.
const PAST_MAX: usize = 30;
/// Widest line.
const WIDTH: usize = 140;

/// The answer.
#[derive(Clone, Debug)]
pub struct Why {
    /// What broke first.
    pub violation: Violation,
    /// How many broke with it.
    pub others: usize,
    /// What is switched: `guard X off`, `quirk Y on`.
    pub switched: Vec<String>,
    /// When the safety phase began: steps of the plan count from there.
    pub base: Nanos,
    lines: Vec<Line>,
    left_out: usize,
    /// When it was decided, if that was asked.
    pub decided: Option<Decided>,
}

/// Runs a plan and tells why it broke; with `reseeds` runs at each instant, when that was decided. `None`: nothing breaks.
///
/// # Errors
/// A config entry that the model does not take.
pub fn why(plan: &Plan, reseeds: u32) -> Result<Option<Why>, crate::lab::BadConfig> {
    let job = Job { path: String::new(), plan: plan.clone() };
    let off = plan.stage.guards_off.iter().map(|name| format!("guard {name} off"));
    let switched = off.chain(plan.stage.quirks.iter().map(|name| format!("quirk {name} on"))).collect();
    let Some(mut why) = on_fresh_runtime(plan.seed, async move || look_back(job))? else { return Ok(None) };
    why.switched = switched;
    if reseeds > 0 {
        why.decided = Some(decided::when(plan, &signature(&why.violation), why.base, &why.violation, reseeds));
    }
    Ok(Some(why))
}

fn look_back(job: Job) -> Result<Option<Why>, crate::lab::BadConfig> {
    let mut run = Run::new(job)?;
    run.note_causes();
    let record = run.to_end_within(u64::MAX, Nanos(u64::MAX));
    let Some(record) = record.filter(|record| !record.violations.is_empty()) else { return Ok(None) };
    let violation = record.violations[0].clone();
    let (lines, left_out) = lines::of(&run, &record, &violation, PAST_MAX);
    let (others, switched) = (record.violations.len() - 1, Vec::new());
    Ok(Some(Why { others, switched, violation, base: run.base(), lines, left_out, decided: None }))
}

impl Why {
    /// The printed form: at most [`SCREEN`] lines.
    #[must_use]
    pub fn text(&self) -> String {
        let violation = &self.violation;
        let mut out = String::new();
        let others = if self.others > 0 { format!(" (and {} more places)", self.others) } else { String::new() };
        let _ = writeln!(out, "{} in {}{others}: {}", violation.id, violation.at, violation.says);
        let _ = writeln!(out, "  expected  {}", violation.expected);
        let _ = writeln!(out, "  got       {}", violation.got);
        if !self.switched.is_empty() {
            let _ = writeln!(out, "  with      {}", self.switched.join(", "));
        }
        let _ = writeln!(out, "  instants of the plan's steps count from {}", seconds(self.base));
        if self.left_out > 0 {
            let _ = writeln!(out, "… {} more of its past", self.left_out);
        }
        let place = self.lines.iter().map(|line| line.node.chars().count()).max().unwrap_or(0);
        for line in &self.lines {
            let in_window = self.decided.as_ref().is_some_and(|d| d.holds(line.at));
            let mark = if in_window { '*' } else { ' ' };
            let times = if line.count > 1 { format!(" x {}", line.count) } else { String::new() };
            let via = if line.via.is_empty() { String::new() } else { format!("  <- {}", line.via) };
            let text = line.text();
            let _ = writeln!(
                out,
                "{mark}{:>12} #{:<8} {:<place$}  {text}{times}{via}",
                seconds(line.at),
                line.step,
                line.node
            );
        }
        let at = Nanos(violation.time_ns);
        let _ = writeln!(out, ">{:>12} #{:<8} {} breaks", seconds(at), violation.step, violation.id);
        if let Some(decided) = &self.decided {
            let _ = writeln!(out, "{}", decided.text());
        }
        out.lines().map(|line| clipped(line) + "\n").collect()
    }
}

/// One line of the screen.
fn clipped(line: &str) -> String {
    if line.chars().count() <= WIDTH {
        return line.to_owned();
    }
    line.chars().take(WIDTH - 1).chain(['…']).collect()
}

/// Simulated time with microseconds.
fn seconds(at: Nanos) -> String {
    format!("{}.{:06} s", at.0 / 1_000_000_000, at.0 / 1_000 % 1_000_000)
}

#[cfg(test)]
#[path = "why_tests.rs"]
mod tests;
