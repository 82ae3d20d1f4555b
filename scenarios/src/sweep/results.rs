//! What a sweep finds when it begins: nothing, itself half done, or what does not count any more.

use super::lines::{self, Lines, Read};
use crate::format::{Diagnostics, Fault, Problem};
use mirrorlab_reports::record::Verdict;
use mirrorlab_reports::sweep::{Head, Line, Totals};
use std::path::{Path, PathBuf};

/// What the files of sweeps are called.
const KIND: &str = "results";

/// What is there.
#[derive(Debug)]
pub struct Opened {
    /// Where its lines go.
    pub results: Lines,
    /// What is over already: in this file, and in those of other shards.
    pub totals: Totals,
    /// Why what was there does not count any more.
    pub anew: Option<String>,
    /// Then: its failed runs, which may have left folders.
    pub stale: Vec<(String, u64)>,
}

/// Results files of a folder, in order of name.
#[must_use]
pub fn files(folder: &Path) -> Vec<PathBuf> {
    lines::files(folder, KIND)
}

/// What the first line of a file says.
#[must_use]
pub fn head(read: &Read<Line>) -> Option<&Head> {
    match read.lines.first() {
        Some(Line::Head(head)) => Some(head),
        _ => None,
    }
}

/// Why what another head begins cannot be gone on with; `None`: it can.
///
/// # Errors
/// A folder of something else.
pub(crate) fn difference(folder: &Path, head: &Head, then: Option<&Head>) -> Result<Option<String>, Diagnostics> {
    let Some((then, difference)) = then.and_then(|then| Some((then, head.difference(then)?))) else { return Ok(None) };
    if head.has_other_arguments(then) {
        let message = format!("the folder holds another sweep: {difference}");
        let problem = Problem::new(Fault::Command, "conflict", message);
        let problem = problem.help("name another folder with --out, or remove this one");
        return Err(Diagnostics::one(&folder.display().to_string(), problem));
    }
    Ok(Some(difference))
}

/// Opens the file of a shard and reads what is there. Results of files that were edited since, or of another build, are put
/// aside.
///
/// # Errors
/// A folder of another sweep; one that another process works in; what the file system refuses.
pub fn open(folder: &Path, head: &Head) -> Result<Opened, Diagnostics> {
    let mut results = Lines::open(folder, &lines::name(KIND, head.shard))?;
    let before: Read<Line> = lines::read(results.path())?;
    let anew = difference(folder, head, self::head(&before))?;
    let mut totals = Totals::default();
    let mut whole = before.whole;
    let mut stale = Vec::new();
    if anew.is_some() {
        let failed = before.lines.iter().filter_map(Line::run).filter(|run| run.verdict != Verdict::Pass);
        stale.extend(failed.map(|run| (run.scenario.clone(), run.seed)));
        results.put_aside()?;
        whole = 0;
    }
    results.cut(whole)?;
    // Others first: what this process adds is timed as its own.
    for other in files(folder).into_iter().filter(|other| other != results.path()) {
        let other = lines::read(&other)?;
        if self::head(&other).is_some_and(|of| head.is_same_sweep(of)) {
            other.lines.iter().for_each(|line| totals.add(line));
        }
    }
    if whole == 0 {
        let first = Line::Head(head.clone());
        results.add(&first)?;
        totals.add(&first);
    } else {
        before.lines.iter().for_each(|line| totals.add(line));
    }
    Ok(Opened { results, totals, anew, stale })
}

#[cfg(test)]
#[path = "results_tests.rs"]
mod tests;
