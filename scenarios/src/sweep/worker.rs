//! A worker: this program, started again, that runs one task after the other.
//!
//! Tasks come as JSON lines on standard input, answers go as JSON lines to standard output. Every run has a thread and a madsim
//! runtime of its own and takes its world with it when it ends. A run that panics takes the worker along, after a line that says
//! why: whoever asked starts another one.

use crate::format::{self, Diagnostics, Fault, Problem, Scenario};
use crate::plan::{Overrides, Plan};
use crate::tell::last_words;
use crate::{absence, again, cli, folder, shrink};
use mirrorlab_reports::sweep::Finished;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

/// What to run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// The scenario file.
    pub file: String,
    /// What it is known by (`super::hash`), of a file that was read before: it must still be that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The seed.
    pub seed: u64,
    /// What is switched over the file.
    pub overrides: Overrides,
    /// Events after which a run is given up.
    pub events_max: u64,
    /// Decisions of a run that passes that have to bear a node's absence (L18).
    #[serde(default)]
    pub absence: u32,
    /// Tries that making the failing plan smaller may take; 0: it is run as it is.
    #[serde(default)]
    pub shrink: u64,
    /// The run folder to leave, if one is wanted; of a plan made smaller, that plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
}

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "lowercase")]
pub enum Answer {
    /// It ran to its end.
    Run(Box<Finished>),
    /// The smallest plan that fails alike was looked for.
    Shrunk {
        /// Steps of the plan, and of the smallest.
        steps: Option<(u64, u64)>,
    },
    /// The file, with this seed, makes no plan.
    Refused {
        /// Why, as a user reads it.
        text: String,
    },
    /// It panicked: the worker ends.
    Panicked {
        /// What the panic said, and where.
        text: String,
    },
}

/// Answers tasks until there are no more.
///
/// # Errors
/// A line that is no task.
pub fn main() -> Result<u8, Diagnostics> {
    std::panic::set_hook(Box::new(|panic| {
        let said = last_words(panic.payload());
        let place = panic.location().map_or_else(String::new, |l| format!(" at {}:{}", l.file(), l.line()));
        answer(&Answer::Panicked { text: format!("{}{place}", said.unwrap_or("a panic without words")) });
    }));
    let mut known = BTreeMap::new();
    for line in std::io::stdin().lock().lines() {
        // Whoever asks is gone: nobody wants an answer.
        let Ok(line) = line else { break };
        let task: Task = serde_json::from_str(&line).map_err(|error| {
            let message = format!("this is no task: {error}");
            Diagnostics::one("standard input", Problem::new(Fault::Command, "bad-value", message))
        })?;
        let done = match answer_to(&task, &mut known) {
            Ok(answer) => answer,
            Err(diagnostics) => Answer::Refused { text: diagnostics.to_string() },
        };
        if !answer(&done) {
            break;
        }
    }
    Ok(0)
}

fn answer(answer: &Answer) -> bool {
    let line = serde_json::to_string(answer).unwrap_or_default();
    let mut out = std::io::stdout();
    writeln!(out, "{line}").and_then(|()| out.flush()).is_ok()
}

fn answer_to(task: &Task, known: &mut BTreeMap<String, Scenario>) -> Result<Answer, Diagnostics> {
    if !known.contains_key(&task.file) {
        known.insert(task.file.clone(), load(task)?);
    }
    let plans = Plan::resolve_all(&known[&task.file], Some(task.seed), &task.overrides)?;
    if task.shrink > 0 {
        return Ok(Answer::Shrunk { steps: smaller(task, &plans)? });
    }
    perform(task, plans).map(|finished| Answer::Run(Box::new(finished)))
}

/// Reads the file of a task. One that was edited since all this began is refused: no summary could tell its histories from those
/// that were run before.
fn load(task: &Task) -> Result<Scenario, Diagnostics> {
    let text = format::read_text(Path::new(&task.file))?;
    if task.hash.as_ref().is_some_and(|hash| *hash != super::hash(&text)) {
        let problem = Problem::new(Fault::File, "changed", "the file was changed while it was being run");
        let help =
            "runs of two files would stand in one summary: start again, and all begins anew with the file as it is";
        return Err(Diagnostics::one(&task.file, problem.help(help)));
    }
    Scenario::parse(&task.file, &text)
}

/// Makes the first plan smaller; its steps before and after, `None` if nothing breaks in it.
fn smaller(task: &Task, plans: &[(String, Plan)]) -> Result<Option<(u64, u64)>, Diagnostics> {
    let Some((_, plan)) = plans.first() else { return Ok(None) };
    let Ok(shrunk) = shrink::shrink(plan, shrink::Budget { tries: task.shrink, ..Default::default() }) else {
        return Ok(None);
    };
    if let Some(folder) = &task.folder {
        folder::write_plan(folder, &shrunk.plan)?;
    }
    Ok(Some((shrunk.before.steps, shrunk.after.steps)))
}

fn perform(task: &Task, plans: Vec<(String, Plan)>) -> Result<Finished, Diagnostics> {
    let repro = again::run(&task.file, task.seed, &task.overrides);
    let mut record = match &task.folder {
        Some(folder) => cli::leave(&task.file, plans, folder, false, &repro)?,
        None => cli::joined(cli::each(&task.file, plans, task.events_max, task.absence)?, &repro),
    };
    if record.violations.first().is_some_and(|first| first.id == absence::ID) {
        record.repro = again::absence(&task.file, task.seed, task.absence, &task.overrides);
    }
    let mut finished = Finished::of(&record, folder::rss_mb());
    if !record.rows.is_empty() {
        // One history of several.
        let hashes: Vec<&str> = record.rows.iter().map(|row| row.record.trace_hash.as_str()).collect();
        finished.trace_hash = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(hashes.concat().as_bytes()));
    }
    Ok(finished)
}
