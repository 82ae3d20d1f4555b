//! `mirrorlab guards` and `mirrorlab checks`: what there is, and what runs have tried of it.

use crate::checks::CHECKS;
use crate::commands::named::unreadable;
use crate::format::{Diagnostics, Fault, Problem};
use crate::tell::{complain, tell};
use mirrorlab_model::guards::{self, Kind};
use mirrorlab_reports::load::{self, LoadError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Lists guards and quirks, or explains one.
///
/// # Errors
/// There is none of that name.
pub fn guards(name: Option<&str>) -> Result<u8, Diagnostics> {
    let kind = |kind: Kind| match kind {
        Kind::Guard => "guard".to_owned(),
        Kind::Quirk(versions) => format!("quirk {versions}"),
    };
    match name {
        None => {
            for row in guards::rows() {
                tell!("{:<42} {:<8} {}", row.name, kind(row.kind), row.says);
            }
        }
        Some(name) => {
            let Some(row) = guards::by_name(name) else {
                return Err(unknown("guard or quirk", name, guards::rows().map(|r| r.name)));
            };
            tell!(
                "{} ({})\n  {}\n  source: {}\n  without it breaks: {}",
                row.name,
                kind(row.kind),
                row.says,
                row.source,
                row.breaks.join(", ")
            );
        }
    }
    Ok(0)
}

/// Which guards had something to refuse in runs that were made, and which are a MISS: a mutant of theirs would have lived.
///
/// # Errors
/// There is no such run.
pub fn coverage(paths: &[PathBuf]) -> Result<u8, Diagnostics> {
    let mut files = Vec::new();
    for path in paths {
        summaries(path, &mut files);
    }
    let mut hit: BTreeMap<String, usize> = BTreeMap::new();
    let (mut runs, mut sweeps) = (0, 0);
    for file in &files {
        let record = match load::record(file) {
            // A sweep's own, which lies beside the folders of its failing seeds.
            Err(LoadError::WrongShape(..)) => {
                sweeps += 1;
                continue;
            }
            other => other.map_err(|error| unreadable(file, &error))?,
        };
        // The runs of a matrix have folders, and summaries, of their own.
        if record.rows.is_empty() {
            runs += 1;
            record.guards.hit.into_iter().for_each(|name| *hit.entry(name).or_default() += 1);
        }
    }
    if runs == 0 {
        let problem = Problem::new(
            Fault::Command,
            "no-run",
            "no summary.json in what --coverage names is a run's, or can be read",
        );
        return Err(Diagnostics::one("command line", problem.help("name run folders: `runs/latest`, or all: `runs`")));
    }
    if sweeps > 0 {
        complain(&format_args!(
            "note: {sweeps} summaries of sweeps are left out; `mirrorlab census` adds up what they say"
        ));
    }
    let (mut misses, mut all) = (0, 0);
    for row in guards::rows().filter(|row| row.kind == Kind::Guard) {
        all += 1;
        match hit.get(row.name) {
            Some(n) => tell!("{:<42} {n} of {runs}", row.name),
            None => {
                misses += 1;
                tell!("{:<42} MISS     {}", row.name, row.says);
            }
        }
    }
    tell!("{} of {all} guards refused something in {runs} runs, {misses} MISS", all - misses);
    Ok(0)
}

/// Every summary.json at or below a path, sorted; links are not followed, so that `latest` counts no run twice.
fn summaries(path: &Path, into: &mut Vec<PathBuf>) {
    if !path.is_dir() || path.join("summary.json").is_file() {
        into.push(if path.is_dir() { path.join("summary.json") } else { path.to_path_buf() });
    }
    let mut entries: Vec<PathBuf> = std::fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path()).collect();
    entries.sort();
    entries.iter().filter(|entry| entry.is_dir() && !entry.is_symlink()).for_each(|entry| summaries(entry, into));
}

/// Lists invariants, or explains one.
///
/// # Errors
/// There is none of that id.
pub fn checks(id: Option<&str>) -> Result<u8, Diagnostics> {
    match id {
        None => CHECKS.iter().for_each(|c| tell!("{:<5} {}", c.id, c.name)),
        Some(id) => {
            let Some(check) = CHECKS.iter().find(|c| c.id.eq_ignore_ascii_case(id)) else {
                return Err(unknown("invariant", id, CHECKS.iter().map(|c| c.id)));
            };
            tell!("{} {}\n  {}", check.id, check.name, check.statement);
        }
    }
    Ok(0)
}

fn unknown<'a>(what: &str, name: &str, valid: impl Iterator<Item = &'a str>) -> Diagnostics {
    let valid: Vec<&str> = valid.collect();
    let problem =
        Problem::new(Fault::Command, "unknown-name", format!("there is no {what} `{}`", crate::units::clip(name, 60)));
    let problem = match crate::nearest::nearest(name, valid.iter().copied()) {
        Some(nearest) => problem.help(format!("did you mean `{nearest}`?")),
        None => problem,
    };
    Diagnostics::one("command line", problem)
}
