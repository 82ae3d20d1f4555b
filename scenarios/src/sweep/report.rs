//! One summary of all shards of a sweep: `mirrorlab report FOLDER`.

use super::resume;
use crate::folder;
use crate::format::{Diagnostics, Fault, Problem};
use crate::tell::{complain, tell};
use mirrorlab_reports::sweep::{html, junit, text, Finished, Line, Summary, Totals};
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
    let read = all(folder)?;
    let mut totals = Totals::default();
    read.iter().for_each(|line| totals.add(line));
    if let Some(path) = &wanted.junit {
        let runs: Vec<&Finished> = read.iter().filter_map(Line::run).collect();
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
    for group in &mut summary.groups {
        let own = run_folder(folder, &group.scenario, group.seed);
        if own.is_dir() {
            group.folder = own.display().to_string();
        }
    }
    folder::put(&folder.join("summary.json"), &serde_json::to_string_pretty(&summary).unwrap_or_default())?;
    let name = folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    put(page.unwrap_or(&folder.join("report.html")), &html::page(&summary, &name))?;
    Ok(summary)
}

/// The folder of a failed run.
#[must_use]
pub fn run_folder(folder: &Path, scenario: &str, seed: u64) -> PathBuf {
    folder.join(folder::name_of(Path::new(scenario))).join(seed.to_string())
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
