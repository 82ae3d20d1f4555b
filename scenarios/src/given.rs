//! What operators ordered by steps of the timeline, and what they were answered: for the record, and for steps that say what the
//! answer has to be. Accepted is not done (decision 41): whether it came about is what states and conditions tell.

use crate::format::action::{Action, ANY_ANSWER};
use crate::format::types::Stage;
use crate::lab::Lab;
use mirrorlab_model::admin::command::Call;
use mirrorlab_model::admin::render::{render, Printed};
use mirrorlab_model::client::admin::{Outcome, Verdict};
use mirrorlab_model::ids::Nanos;
use mirrorlab_model::metadata::configs::BrokerConfig;
use mirrorlab_reports::record::{Expectation, OrderTold};

/// One step's orders.
#[derive(Clone, Debug)]
struct Entry {
    step: u32,
    at: Nanos,
    orders: Vec<u32>,
    call: Option<Result<Call, String>>,
}

/// All of them, in the order in which they were given.
#[derive(Clone, Debug, Default)]
pub struct Given {
    entries: Vec<Entry>,
}

impl Given {
    /// A step struck; these are the orders that it gave.
    pub fn note(&mut self, step: u32, at: Nanos, orders: &[u32], call: Option<Result<Call, String>>) {
        if !orders.is_empty() || call.is_some() {
            self.entries.push(Entry { step, at, orders: orders.to_vec(), call });
        }
    }

    /// What became of them.
    #[must_use]
    pub fn told(&self, stage: &Stage, lab: &Lab) -> Vec<OrderTold> {
        self.entries.iter().filter_map(|entry| told(entry, stage, lab)).collect()
    }

    /// Adds what steps say of the answers to their orders.
    pub fn expectations(&self, stage: &Stage, lab: &Lab, out: &mut Vec<Expectation>) {
        for entry in &self.entries {
            let Some(step) = stage.timeline.get(entry.step as usize) else { continue };
            let what = |of: &str| format!("{of} of step {} ({})", entry.step + 1, step.action.name());
            let mut expect = |of: &str, expected: String, got: String| {
                out.push(Expectation { what: what(of), met: expected == got, expected, got });
            };
            if let Some(expected) = step.expect_error.as_ref().filter(|expected| *expected != ANY_ANSWER) {
                let got = answered(entry, lab);
                expect("answer", expected.clone(), got);
            }
            let Action::Cli { expect_exit, expect_output, expect_stderr, .. } = &step.action else { continue };
            let printed = printed(entry, stage, lab).unwrap_or_else(|| Printed { exit: -1, ..Printed::default() });
            if let Some(exit) = expect_exit {
                expect("exit code", exit.to_string(), printed.exit.to_string());
            }
            if let Some(text) = expect_output {
                expect("output", text.trim_end().to_owned(), printed.out.trim_end().to_owned());
            }
            if let Some(text) = expect_stderr {
                expect("standard error", text.trim_end().to_owned(), printed.err.trim_end().to_owned());
            }
        }
    }
}

impl Given {
    /// The first answer that a step does not expect, in a run that ended before its time: what was not answered yet says nothing.
    #[must_use]
    pub fn wrong_answer(&self, stage: &Stage, lab: &Lab) -> Option<Expectation> {
        let is_open = |entry: &Entry| entry.orders.last().is_some_and(|id| lab.outcome(*id).is_none());
        let entries = self.entries.iter().filter(|entry| !is_open(entry)).cloned().collect();
        let mut all = Vec::new();
        Self { entries }.expectations(stage, lab, &mut all);
        all.into_iter().find(|expectation| !expectation.met)
    }
}

/// The answer to a step's last order, or why there is none.
fn answered(entry: &Entry, lab: &Lab) -> String {
    let Some(id) = entry.orders.last() else { return "no answer".to_owned() };
    match lab.outcome(*id) {
        Some(outcome) => answer(outcome),
        None if lab.waits(*id) => "not sent: it waits behind an earlier order".to_owned(),
        None => "no answer".to_owned(),
    }
}

fn answer(outcome: &Outcome) -> String {
    match outcome.verdict {
        Verdict::Accepted => "NONE".to_owned(),
        Verdict::Refused(error) => error.name(),
        Verdict::Undecided => "no answer".to_owned(),
    }
}

fn printed(entry: &Entry, stage: &Stage, lab: &Lab) -> Option<Printed> {
    match entry.call.as_ref()? {
        Ok(call) => Some(render(call, lab.outcome(*entry.orders.last()?)?, attempts_max(entry, stage))),
        Err(message) => Some(Printed::usage(message)),
    }
}

/// The brokers' `mirror.failed.retry.max.attempts`, as the tool would read it.
fn attempts_max(entry: &Entry, stage: &Stage) -> Option<u32> {
    let Action::Cli { on, .. } = &stage.timeline.get(entry.step as usize)?.action else { return None };
    let mut config = BrokerConfig::default();
    if let Some(text) = stage.clusters.get(on)?.config.get("mirror.failed.retry.max.attempts") {
        config.set("mirror.failed.retry.max.attempts", text).ok()?;
    }
    Some(config.mirror_failed_retry_max_attempts)
}

fn told(entry: &Entry, stage: &Stage, lab: &Lab) -> Option<OrderTold> {
    let step = stage.timeline.get(entry.step as usize)?;
    let outcome = entry.orders.last().and_then(|id| lab.outcome(*id));
    let printed = printed(entry, stage, lab);
    let refusals = outcome.map(|o| {
        let refused = o.items.iter().filter(|item| !item.error.is_none());
        let line = |item: &mirrorlab_model::client::commands::ItemResult| {
            let why = item.message.as_deref().map_or(String::new(), |why| format!(" ({why})"));
            let place = if item.name.is_empty() { String::new() } else { format!("{}: ", item.name) };
            format!("{place}{}{why}", item.error.name())
        };
        refused.map(line).collect()
    });
    Some(OrderTold {
        step: entry.step + 1,
        order: step.action.name().to_owned(),
        from_ns: entry.at.0,
        to_ns: outcome.map(|o| o.ended.0),
        attempts: outcome.map_or(0, |o| o.attempts),
        answer: if matches!(entry.call, Some(Err(_))) { "not sent".to_owned() } else { answered(entry, lab) },
        refusals: refusals.unwrap_or_default(),
        args: if let Action::Cli { args, .. } = &step.action { Some(args.clone()) } else { None },
        exit: printed.as_ref().map(|p| p.exit),
        output: printed.as_ref().map(|p| p.out.clone()).unwrap_or_default(),
        stderr: printed.map(|p| p.err).unwrap_or_default(),
    })
}
