//! `mirrorlab check`: what is wrong with scenario files; and which files a path stands for.

use crate::format::{Diagnostics, Fault, Problem, Scenario};
use crate::plan::{Overrides, Plan};
use crate::tell::{complain, tell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Usage errors end with this code.
const USAGE: u8 = 2;

/// Reads scenario files and says what is wrong with each.
///
/// # Errors
/// There is no file.
pub fn check(paths: &[PathBuf]) -> Result<u8, Diagnostics> {
    let mut files = Vec::new();
    for path in paths {
        collect(path, &mut files);
    }
    let mut bad = 0;
    for file in &files {
        let problem = Scenario::load(file).and_then(|s| resolves(&s)).err();
        match problem {
            None => tell!("{}: ok", file.display()),
            Some(diagnostics) => {
                bad += 1;
                complain(&diagnostics);
            }
        }
    }
    if files.is_empty() {
        let message = "no scenario file was found".to_owned();
        return Err(Diagnostics::one("command line", Problem::new(Fault::Command, "no-files", message)));
    }
    Ok(if bad == 0 { 0 } else { USAGE })
}

/// Whether a scenario can be resolved; one that draws, whatever some seeds draw.
fn resolves(scenario: &Scenario) -> Result<(), Diagnostics> {
    let seeds = if scenario.draw.is_empty() { 1 } else { SEEDS_CHECKED };
    let first = scenario.seed.unwrap_or(0);
    (first..first.saturating_add(seeds))
        .try_for_each(|seed| Plan::resolve_all(scenario, Some(seed), &Overrides::default()).map(|_| ()))
}

/// Seeds whose draws `check` looks at.
const SEEDS_CHECKED: u64 = 50;

/// Scenario files of a folder, in order of name; a file stands for itself.
pub fn collect(path: &Path, into: &mut Vec<PathBuf>) {
    collect_within(path, into, &mut BTreeSet::new());
}

/// The same, with the folders that were looked into: a link may lead back to one.
fn collect_within(path: &Path, into: &mut Vec<PathBuf>, seen: &mut BTreeSet<PathBuf>) {
    if !path.is_dir() {
        return into.push(path.to_path_buf());
    }
    if !path.canonicalize().is_ok_and(|own| seen.insert(own)) {
        return;
    }
    let mut inside: Vec<PathBuf> = std::fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path()).collect();
    inside.sort();
    for entry in inside {
        let name = entry.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with('.') {
            continue;
        }
        if entry.is_dir() {
            // What is compiled, and what it is compiled from, holds no scenarios.
            if name != "src" && !entry.join("CACHEDIR.TAG").exists() {
                collect_within(&entry, into, seen);
            }
        } else if entry.extension().is_some_and(|e| e == "toml") && name != "Cargo.toml" {
            into.push(entry);
        }
    }
}
