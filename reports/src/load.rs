//! Reads records back from run folders, and joins several into one for one page.

use crate::census;
use crate::record::{Record, Row, Verdict};
use crate::rows;
use serde_json::error::Category;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the record in a run folder.
pub const SUMMARY: &str = "summary.json";

/// Folders below the one that was named, at most: `runs/<folder>/<scenario>/<seed>/`.
const DEPTH_MAX: usize = 8;

/// Why no record could be read.
#[derive(Debug)]
pub enum LoadError {
    /// There is no such file or folder.
    Missing(PathBuf),
    /// A folder without any `summary.json` in or below it.
    Empty(PathBuf),
    /// The system refused to read it.
    Unreadable(PathBuf, io::Error),
    /// JSON that ends in the middle.
    CutOff(PathBuf, serde_json::Error),
    /// Not JSON at all.
    NotJson(PathBuf, serde_json::Error),
    /// JSON, but not a run's record.
    WrongShape(PathBuf, serde_json::Error, &'static str),
}

impl LoadError {
    /// Why a text is not JSON.
    #[must_use]
    pub fn not_json(path: &Path, error: serde_json::Error) -> Self {
        match error.classify() {
            Category::Eof => Self::CutOff(path.to_owned(), error),
            _ => Self::NotJson(path.to_owned(), error),
        }
    }

    /// What the reader can do about it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Missing(_) => {
                "name a run folder (`runs/latest`, `runs/<folder>/<scenario>/<seed>`) or its `summary.json`"
            }
            Self::Empty(_) => {
                "run a scenario first: `mirrorlab run SCENARIO` leaves a run folder with a `summary.json`"
            }
            Self::Unreadable(..) => "look at the permissions of the file",
            Self::CutOff(..) => {
                "what wrote it was killed, or its disk is full: run it again, with `mirrorlab replay` and its folder"
            }
            Self::NotJson(..) => "the file is something else: name a run folder, or its `summary.json`",
            Self::WrongShape(_, _, help) => help,
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(f, "{} does not exist", path.display()),
            Self::Empty(path) => write!(f, "{} holds no {SUMMARY}", path.display()),
            Self::Unreadable(path, error) => write!(f, "{} cannot be read: {error}", path.display()),
            Self::CutOff(path, error) => write!(f, "{} is cut off: {error}", path.display()),
            Self::NotJson(path, error) => write!(f, "{} is not JSON: {error}", path.display()),
            Self::WrongShape(path, error, _) => write!(f, "{} is not the record of a run: {error}", path.display()),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Missing(_) | Self::Empty(_) => None,
            Self::Unreadable(_, error) => Some(error),
            Self::CutOff(_, error) | Self::NotJson(_, error) | Self::WrongShape(_, error, _) => Some(error),
        }
    }
}

/// The record of a run folder, or of the `summary.json` itself.
///
/// # Errors
/// If it is not there, or is not a record.
pub fn record(path: &Path) -> Result<Record, LoadError> {
    let meta = fs::metadata(path).map_err(|e| refused(path, e))?;
    if !meta.is_dir() {
        return read(path);
    }
    let summary = path.join(SUMMARY);
    if summary.is_file() {
        read(&summary)
    } else {
        Err(LoadError::Empty(path.to_owned()))
    }
}

/// The records of a run folder, or else of all run folders below a folder, in the order of their paths. Links (`latest`) are
/// not followed, so no run counts twice.
///
/// # Errors
/// If there is none, or one of them is not a record.
pub fn records(path: &Path) -> Result<Vec<Record>, LoadError> {
    match record(path) {
        Err(LoadError::Empty(_)) => {}
        // A sweep leaves its own summary beside the folders of its failing seeds.
        Err(LoadError::WrongShape(..)) if path.is_dir() => {}
        other => return other.map(|r| vec![r]),
    }
    let mut found = Vec::new();
    find(path, DEPTH_MAX, &mut found)?;
    if found.is_empty() {
        return record(path).map(|r| vec![r]);
    }
    found.iter().map(|p| read(p)).collect()
}

/// Every `summary.json` in a folder below `folder`, sorted by path.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), LoadError> {
    let mut below = Vec::new();
    for entry in fs::read_dir(folder).map_err(|e| refused(folder, e))? {
        let entry = entry.map_err(|e| refused(folder, e))?;
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            below.push(entry.path());
        }
    }
    below.sort();
    for folder in below {
        let summary = folder.join(SUMMARY);
        if summary.is_file() {
            found.push(summary);
        } else if depth > 0 {
            find(&folder, depth - 1, found)?;
        }
    }
    Ok(())
}

fn refused(path: &Path, error: io::Error) -> LoadError {
    match error.kind() {
        io::ErrorKind::NotFound => LoadError::Missing(path.to_owned()),
        _ => LoadError::Unreadable(path.to_owned(), error),
    }
}

fn read(path: &Path) -> Result<Record, LoadError> {
    let bytes = fs::read(path).map_err(|e| refused(path, e))?;
    parse(path, &bytes)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Record, LoadError> {
    serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        Category::Data => LoadError::WrongShape(path.to_owned(), error, guess(bytes)),
        _ => LoadError::not_json(path, error),
    })
}

/// What a JSON file of another shape probably is.
fn guess(bytes: &[u8]) -> &'static str {
    let has = |key: &str| serde_json::from_slice::<serde_json::Value>(bytes).is_ok_and(|v| v.get(key).is_some());
    if has("groups") {
        "this looks like the summary of a sweep: name the folder of one of its seeds"
    } else if has("trace_hash") && has("scenario") {
        "another version of mirrorlab wrote it: run the scenario again"
    } else {
        "name the `summary.json` of a run folder"
    }
}

/// Joins records into one with a row for each, for one page or one table. Rows of a matrix stay rows. `None` without records;
/// a single record stays as it is.
#[must_use]
pub fn merge(mut records: Vec<Record>) -> Option<Record> {
    if records.len() < 2 {
        return records.pop();
    }
    let rows: Vec<Row> = records.into_iter().flat_map(rows_of).collect();
    let failed = rows.iter().filter(|r| r.record.verdict != Verdict::Pass).count();
    let first = &rows.first()?.record;
    let same = |get: fn(&Record) -> &String| {
        let value = get(first);
        rows.iter().all(|r| get(&r.record) == value).then(|| value.clone())
    };
    let (scenario, title) = (same(|r| &r.scenario), same(|r| &r.title));
    let sum = |get: fn(&Record) -> f64| rows.iter().map(|r| get(&r.record)).sum();
    let total = |get: fn(&Record) -> u64| rows.iter().fold(0_u64, |all, r| all.saturating_add(get(&r.record)));
    let mut census = BTreeMap::new();
    rows.iter().for_each(|row| census::add(&mut census, &row.record.census));
    Some(Record {
        census,
        scenario: scenario.unwrap_or_else(|| "several scenarios".to_owned()),
        title: title.unwrap_or_else(|| format!("{} runs", rows.len())),
        seed: first.seed,
        profile: same(|r| &r.profile).unwrap_or_else(|| "several".to_owned()),
        resolved: same(|r| &r.resolved).unwrap_or_else(|| format!("{} runs side by side", rows.len())),
        verdict: rows::worst(rows.iter().map(|r| r.record.verdict)),
        reason: format!("{failed} of {} runs did not pass", rows.len()),
        events: total(|r| r.events),
        messages: total(|r| r.messages),
        appends: total(|r| r.appends),
        simulated_s: sum(|r| r.simulated_s),
        wall_s: sum(|r| r.wall_s),
        peak_rss_mb: rows.iter().map(|r| r.record.peak_rss_mb).fold(0.0, f64::max),
        build: if rows.iter().all(|r| r.record.build == first.build) {
            first.build.clone()
        } else {
            Default::default()
        },
        violations: Vec::new(),
        excuses: Vec::new(),
        expectations: Vec::new(),
        marks: BTreeMap::new(),
        guards: Default::default(),
        trace_hash: String::new(),
        figures: BTreeMap::new(),
        failovers: Vec::new(),
        lag: Default::default(),
        curves: Vec::new(),
        bands: Vec::new(),
        orders: Vec::new(),
        story: Vec::new(),
        story_omitted: 0,
        repro: String::new(),
        rows,
    })
}

/// The rows that one record becomes: what tells them apart is scenario, seed and profile, and the keys of its own matrix.
fn rows_of(record: Record) -> Vec<Row> {
    let named = |r: &Record| {
        let set = [("scenario", r.scenario.clone()), ("seed", r.seed.to_string()), ("profile", r.profile.clone())];
        set.map(|(key, value)| (key.to_owned(), value))
    };
    if record.rows.is_empty() {
        return vec![Row { set: named(&record).into(), record }];
    }
    let rows = record.rows.into_iter();
    rows.map(|mut row| {
        row.set.extend(named(&row.record));
        row
    })
    .collect()
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
