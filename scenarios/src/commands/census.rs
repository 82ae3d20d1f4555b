//! `mirrorlab census`: what happened in the runs of a sweep, and what never did.

use crate::census::known;
use crate::commands::named;
use crate::format::{Diagnostics, Fault, Problem};
use crate::tell::tell;
use mirrorlab_reports::census::{add, page, runs, text, Counts};
use mirrorlab_reports::load::LoadError;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Folders within folders that are looked into.
const DEPTH_MAX: usize = 8;

/// Adds up the censuses of runs and sweeps and prints them; with `html`, writes the page there.
///
/// # Errors
/// Nothing with a census is there; the page cannot be written.
pub fn census(paths: &[PathBuf], html: Option<&Path>, json: bool) -> Result<u8, Diagnostics> {
    let mut counts = Counts::new();
    for path in paths {
        if !path.exists() {
            return Err(named::missing(path));
        }
        gather(path, DEPTH_MAX, &mut counts)?;
    }
    if runs(&counts) == 0 {
        let message = "no run with a census is there".to_owned();
        let help = "name run folders, folders of them (`runs`), or the folder of a sweep";
        return Err(Diagnostics::one("command line", Problem::new(Fault::Command, "no-run", message).help(help)));
    }
    let known = known();
    if let Some(html) = html {
        crate::folder::is_no_record(html)?;
        std::fs::write(html, page(&counts, &known)).map_err(|e| {
            let message = format!("the page cannot be written to {}: {e}", html.display());
            Diagnostics::one("output", Problem::new(Fault::Command, "unwritable", message))
        })?;
    }
    let shown = if json { serde_json::to_string_pretty(&counts).unwrap_or_default() } else { text(&counts, &known) };
    tell!("{}", shown.trim_end());
    Ok(0)
}

/// A folder that has a sweep's own census is counted by that; else a run by its summary, and folders by what is in them. Links
/// are not followed, so that `latest` counts no run twice.
fn gather(path: &Path, depth: usize, counts: &mut Counts) -> Result<(), Diagnostics> {
    if path.is_file() {
        return read(path, counts);
    }
    for name in ["census.json", "sweep.json", "summary.json"] {
        let file = path.join(name);
        if file.is_file() {
            return read(&file, counts);
        }
    }
    let entries = std::fs::read_dir(path).map_err(|e| unreadable(path, &e.to_string()))?;
    let mut below: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    below.retain(|entry| entry.is_dir() && !entry.is_symlink());
    below.sort();
    if depth > 0 {
        below.iter().try_for_each(|folder| gather(folder, depth - 1, counts))?;
    }
    Ok(())
}

/// One JSON value, or one on each line.
fn read(file: &Path, counts: &mut Counts) -> Result<(), Diagnostics> {
    let text = std::fs::read_to_string(file).map_err(|e| unreadable(file, &e.to_string()))?;
    let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    for value in values {
        let value = value.map_err(|error| named::unreadable(file, &LoadError::not_json(file, error)))?;
        take(&value, counts);
    }
    Ok(())
}

/// The census in a value: the value itself, its `census`, or those of its rows.
fn take(value: &Value, counts: &mut Counts) {
    let rows = value.get("rows").and_then(Value::as_array).filter(|rows| !rows.is_empty());
    if let Some(rows) = rows {
        return rows.iter().for_each(|row| take(row.get("record").unwrap_or(row), counts));
    }
    let own = value.get("census").or_else(|| value.get("runs").is_some_and(Value::is_u64).then_some(value));
    let Some(own) = own.and_then(Value::as_object) else { return };
    // A sweep tells in how many runs, too.
    let count = |n: &Value| n.as_u64().or_else(|| n.get("total")?.as_u64());
    let more: Counts = own.iter().filter_map(|(key, n)| Some((key.clone(), count(n)?))).collect();
    add(counts, &more);
}

fn unreadable(path: &Path, why: &str) -> Diagnostics {
    Diagnostics::one(&path.display().to_string(), Problem::new(Fault::Command, "unreadable", why.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_census_is_found_in_a_record_in_rows_and_alone() {
        let run = serde_json::json!({ "census": { "runs": 1, "fault.kill": 2 } });
        let matrix = serde_json::json!({ "census": { "runs": 9 }, "rows": [{ "record": run }, { "record": run }] });
        let alone = serde_json::json!({ "runs": 3, "fault.kill": 1 });
        let tally = |n: u64| serde_json::json!({ "total": n, "runs": 1 });
        let sweep = serde_json::json!({ "runs": 2, "census": { "runs": tally(2), "fault.kill": tally(4) } });
        let mut counts = Counts::new();
        [run, matrix, alone, sweep].iter().for_each(|value| take(value, &mut counts));
        assert_eq!(counts, Counts::from([("runs".to_owned(), 8), ("fault.kill".to_owned(), 11)]));
    }
}
