//! What a sweep finds when it begins: nothing, itself half done, or what does not count any more.

use super::lines::{self, Lines};
use super::resume::{self, Headed, Resumed};
use crate::format::Diagnostics;
use mirrorlab_reports::record::Verdict;
use mirrorlab_reports::sweep::{Head, Line, Totals};
use std::path::Path;

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

/// Opens the file of a shard and reads what is there, and what other shards left.
///
/// # Errors
/// As [`resume::resume`].
pub fn open(folder: &Path, head: &Head) -> Result<Opened, Diagnostics> {
    let Resumed { out: results, lines, anew } = resume::resume::<Line>(folder, head)?;
    let (anew, before) = anew.map_or_else(Default::default, |(why, before)| (Some(why), before));
    let failed = before.iter().filter_map(Line::run).filter(|run| run.verdict != Verdict::Pass);
    let stale = failed.map(|run| (run.scenario.clone(), run.seed)).collect();
    let mut totals = Totals::default();
    // Others first: what this process adds is timed as its own.
    for other in resume::files::<Line>(folder).into_iter().filter(|other| other != results.path()) {
        let other = lines::read::<Line>(&other)?.lines;
        if other.first().and_then(Line::head).is_some_and(|of| head.is_same_sweep(of)) {
            other.iter().for_each(|line| totals.add(line));
        }
    }
    lines.iter().for_each(|line| totals.add(line));
    Ok(Opened { results, totals, anew, stale })
}

#[cfg(test)]
#[path = "results_tests.rs"]
mod tests;
