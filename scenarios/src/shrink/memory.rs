//! What a search leaves while it goes on: the best case so far, and what every candidate came to. One that is interrupted and
//! begun again goes the same way, without running again what was run.

use super::trial::Outcome;
use crate::format::{Diagnostics, Fault, Problem};
use crate::plan::Plan;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// Where a search keeps what it learns.
pub trait Memory {
    /// What a candidate came to, if that is known.
    fn recall(&mut self, key: u64) -> Option<Outcome>;
    /// A candidate was run.
    fn note(&mut self, key: u64, outcome: &Outcome);
    /// A smaller case was found.
    fn better(&mut self, plan: &Plan, outcome: &Outcome, tries: u64);
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forgetful;

impl Memory for Forgetful {
    fn recall(&mut self, _: u64) -> Option<Outcome> {
        None
    }
    fn note(&mut self, _: u64, _: &Outcome) {}
    fn better(&mut self, _: &Plan, _: &Outcome, _: u64) {}
}

/// The first line of the file: what the outcomes belong to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    /// A hash of the plan that is made smaller.
    plan: String,
    /// What made the binary, and a hash of it.
    binary: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    key: String,
    outcome: Outcome,
}

/// Keeps it in a folder: `plan.toml` is the best case so far, `tries.ndjson` has a line for each candidate.
#[derive(Debug)]
pub struct OnDisk {
    folder: PathBuf,
    out: File,
    known: BTreeMap<u64, Outcome>,
    progress: Option<indicatif::ProgressBar>,
}

const TRIES: &str = "tries.ndjson";

impl OnDisk {
    /// Opens the memory of a search for a plan; what another plan or another binary left is dropped.
    ///
    /// # Errors
    /// What the file system refuses, with the path.
    pub fn open(folder: &Path, plan: &str, progress: Option<indicatif::ProgressBar>) -> Result<Self, Diagnostics> {
        let file = folder.join(TRIES);
        let refused = |e: std::io::Error| unwritable(&file, &e);
        std::fs::create_dir_all(folder).map_err(refused)?;
        let head = Head { plan: format!("{:016x}", xxhash_rust::xxh3::xxh3_64(plan.as_bytes())), binary: binary() };
        let known = read(&file, &head);
        let mut out = if known.is_some() { OpenOptions::new().append(true).open(&file) } else { File::create(&file) }
            .map_err(refused)?;
        // A line that was cut off is ended, so that the next one stands alone.
        let begins = known.as_ref().map_or_else(|| serde_json::to_string(&head).unwrap_or_default(), |_| String::new());
        writeln!(out, "{begins}").map_err(refused)?;
        Ok(Self { folder: folder.to_owned(), out, known: known.unwrap_or_default(), progress })
    }

    /// How many outcomes an earlier search left.
    #[must_use]
    pub fn known(&self) -> usize {
        self.known.len()
    }
}

impl Memory for OnDisk {
    fn recall(&mut self, key: u64) -> Option<Outcome> {
        let known = self.known.get(&key).cloned();
        if let (Some(progress), Some(_)) = (&self.progress, &known) {
            progress.inc(1);
        }
        known
    }
    fn note(&mut self, key: u64, outcome: &Outcome) {
        let line = Line { key: format!("{key:016x}"), outcome: outcome.clone() };
        // A full disk costs the memory, not the search.
        let _ = writeln!(self.out, "{}", serde_json::to_string(&line).unwrap_or_default());
        if let Some(progress) = &self.progress {
            progress.inc(1);
        }
    }
    fn better(&mut self, plan: &Plan, outcome: &Outcome, _: u64) {
        if let Some(progress) = &self.progress {
            progress.set_message(format!("{} steps, {} events", plan.stage.timeline.len(), outcome.events));
        }
        // Replaced as a whole: who interrupts finds the one before or the one after.
        let Ok(text) = plan.to_toml() else { return };
        let (new, file) = (self.folder.join("plan.toml.new"), self.folder.join("plan.toml"));
        let _ = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &file));
    }
}

/// The outcomes in a file whose first line is `head`; a last line that was cut off is dropped.
fn read(file: &Path, head: &Head) -> Option<BTreeMap<u64, Outcome>> {
    let mut lines = BufReader::new(File::open(file).ok()?).lines();
    let first: Head = serde_json::from_str(&lines.next()?.ok()?).ok()?;
    if first != *head {
        return None;
    }
    let mut known = BTreeMap::new();
    for line in lines.map_while(Result::ok) {
        let Ok(line) = serde_json::from_str::<Line>(&line) else { continue };
        if let Ok(key) = u64::from_str_radix(&line.key, 16) {
            known.insert(key, line.outcome);
        }
    }
    Some(known)
}

/// A commit says nothing of changes on top of it: the binary itself does.
fn binary() -> String {
    let bytes = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
    format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&bytes))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Diagnostics {
    let message = format!("{} cannot be written: {error}", path.display());
    Diagnostics::one(
        "output",
        Problem::new(Fault::Command, "unwritable", message).help("name another folder with --out"),
    )
}
