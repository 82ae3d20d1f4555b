//! One summary of all shards of a sweep: `mirrorlab report FOLDER`.

use super::resume;
use crate::folder;
use crate::format::{Diagnostics, Fault, Problem};
use crate::tell::{complain, tell};
use mirrorlab_reports::sweep::{distinct, html, junit, text, Line, Summary, Totals};
use std::path::{Path, PathBuf};

/// What is wanted of a report.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Where the page goes; else `report.html` in the folder.
    pub html: Option<PathBuf>,
    /// Where JUnit XML goes, if it is wanted.
    pub junit: Option<PathBuf>,
    /// The summary as JSON on standard output, and nothing else.
    pub json: bool,
    /// On standard output failures and the verdict only.
    pub quiet: bool,
}

/// Whether a path is the folder of a sweep.
#[must_use]
pub fn is_sweep(path: &Path) -> bool {
    path.is_dir() && !resume::files::<Line>(path).is_empty()
}

/// Reads the results of all shards, tells the summary and leaves it in the folder.
///
/// # Errors
/// Files that cannot be read, or are of different sweeps; what the file system refuses.
pub fn report(folder: &Path, wanted: &Wanted) -> Result<u8, Diagnostics> {
    if folder::is_run(folder) {
        let message = "this folder holds both a run and a sweep; the report of one would overwrite the other";
        let help = "move results-….ndjson to a folder of their own, and name that";
        let problem = Problem::new(Fault::Command, "conflict", message).help(help);
        return Err(Diagnostics::one(&folder.display().to_string(), problem));
    }
    wanted.html.iter().chain(&wanted.junit).try_for_each(|file| folder::is_no_record(file))?;
    let read = all(folder)?;
    let mut totals = Totals::default();
    read.iter().for_each(|line| totals.add(line));
    if let Some(path) = &wanted.junit {
        let runs = distinct(read.iter().filter_map(Line::run));
        let xml = junit::xml(runs).map_err(|error| unwritable(path, &error))?;
        put(path, &xml)?;
    }
    let summary = leave(folder, &totals, wanted.html.as_deref())?;
    print(&summary, folder, wanted);
    Ok(summary.exit_code())
}

/// Every results file of a folder, of one sweep.
fn all(folder: &Path) -> Result<Vec<Line>, Diagnostics> {
    let all: Vec<Line> = resume::shards(folder)?.into_iter().flatten().collect();
    if all.is_empty() {
        let problem = Problem::new(Fault::Command, "no-run", "there are no results of a sweep here");
        return Err(Diagnostics::one(&folder.display().to_string(), problem));
    }
    Ok(all)
}

/// Writes `summary.json` and the page, and gives the summary.
///
/// # Errors
/// What the file system refuses.
pub fn leave(folder: &Path, totals: &Totals, page: Option<&Path>) -> Result<Summary, Diagnostics> {
    let mut summary = totals.summary();
    let files: Vec<&str> = totals.paths().collect();
    for group in &mut summary.groups {
        let own = run_folder(folder, &files, &group.scenario, group.seed);
        if own.is_dir() {
            group.folder = own.display().to_string();
        }
    }
    folder::put(&folder.join("summary.json"), &serde_json::to_string_pretty(&summary).unwrap_or_default())?;
    let name = folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    put(page.unwrap_or(&folder.join("report.html")), &html::page(&summary, &name))?;
    Ok(summary)
}

/// The folder of a failed run of one of a sweep's files: by what the file is called, and where two of them are called alike by
/// a hash of how each is named.
#[must_use]
pub fn run_folder<F: AsRef<str>>(folder: &Path, files: &[F], scenario: &str, seed: u64) -> PathBuf {
    let name = folder::name_of(Path::new(scenario));
    let mut others = files.iter().map(AsRef::as_ref).filter(|other| *other != scenario);
    let name = match others.any(|other| folder::name_of(Path::new(other)) == name) {
        true => format!("{name}-{}", folder::mark(Path::new(scenario))),
        false => name,
    };
    folder.join(name).join(seed.to_string())
}

/// Tells a summary.
pub fn print(summary: &Summary, folder: &Path, wanted: &Wanted) {
    let folder = folder.display().to_string();
    if wanted.json {
        tell!("{}", serde_json::to_string_pretty(summary).unwrap_or_default());
    } else if wanted.quiet {
        tell!("{}verdict     {}", text::groups(summary), text::verdict(summary));
    } else {
        tell!("{}", text::summary(summary, &folder).trim_end());
    }
    if wanted.json && summary.runs < summary.planned {
        complain(&format_args!("note: {} of {} runs are missing", summary.planned - summary.runs, summary.planned));
    }
}

/// Writes a file that was asked for.
///
/// # Errors
/// What the file system refuses.
pub fn put(path: &Path, text: &str) -> Result<(), Diagnostics> {
    std::fs::write(path, text).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &dyn std::fmt::Display) -> Diagnostics {
    let problem = Problem::new(Fault::Machine, "unwritable", format!("it cannot be written: {error}"));
    Diagnostics::one(&path.display().to_string(), problem)
}
