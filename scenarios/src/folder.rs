//! What a run leaves on disk: `runs/<scenario>/<seed>/` with `plan.toml`, `summary.json`, `report.html`, and
//! `runs/latest` beside it.

use crate::format::{Diagnostics, Fault, Problem};
use crate::plan::Plan;
use mirrorlab_reports::record::{Build, Record};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where runs are kept unless `--out` says otherwise.
pub const RUNS: &str = "runs";

/// The folder of a run: below `runs/`, by scenario and seed; a matrix row has its own below that.
#[must_use]
pub fn folder_of(out: Option<&Path>, scenario: &str, seed: u64) -> PathBuf {
    match out {
        Some(out) => out.to_path_buf(),
        None => Path::new(RUNS).join(scenario).join(seed.to_string()),
    }
}

/// Writes plan and summary of a run, and its page.
///
/// # Errors
/// What the file system refuses, with the path.
pub fn write(folder: &Path, plan: &Plan, record: &Record) -> Result<(), Diagnostics> {
    make(folder)?;
    put(&folder.join("plan.toml"), &plan.to_toml()?)?;
    write_record(folder, record)
}

/// Writes the summary of a run or of a matrix, and its page.
///
/// # Errors
/// What the file system refuses, with the path.
pub fn write_record(folder: &Path, record: &Record) -> Result<(), Diagnostics> {
    make(folder)?;
    let summary = serde_json::to_string_pretty(record).unwrap_or_default();
    put(&folder.join("summary.json"), &summary)?;
    put(&folder.join("report.html"), &mirrorlab_reports::html::page(record))
}

/// Points `runs/latest` to a folder below `runs/`. Best effort: not every file system has links.
pub fn point_latest(folder: &Path) {
    let latest = Path::new(RUNS).join("latest");
    if let Ok(inside) = folder.strip_prefix(RUNS) {
        let _ = fs::remove_file(&latest);
        #[cfg(unix)]
        let _ = std::os::unix::fs::symlink(inside, &latest);
    }
}

fn make(folder: &Path) -> Result<(), Diagnostics> {
    fs::create_dir_all(folder).map_err(|e| refused(folder, &e))
}

fn put(path: &Path, text: &str) -> Result<(), Diagnostics> {
    fs::write(path, text).map_err(|e| refused(path, &e))
}

fn refused(path: &Path, error: &io::Error) -> Diagnostics {
    let message = format!("the run's record cannot be written to {}: {error}", path.display());
    Diagnostics::one(
        "output",
        Problem::new(Fault::Command, "unwritable", message).help("name another folder with --out"),
    )
}

/// What made this binary.
#[must_use]
pub fn build() -> Build {
    Build {
        commit: option_env!("MIRRORLAB_BUILD_COMMIT").unwrap_or("unknown").to_owned(),
        toolchain: option_env!("MIRRORLAB_BUILD_RUSTC").unwrap_or("unknown").to_owned(),
        lockfile: option_env!("MIRRORLAB_BUILD_LOCK").unwrap_or("unknown").to_owned(),
    }
}

/// Peak resident memory of this process in MB, 0 where the system does not tell.
#[must_use]
pub fn peak_rss_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:"));
    let kb = line.and_then(|l| l.split_whitespace().nth(1)).and_then(|n| n.parse::<f64>().ok());
    kb.unwrap_or(0.0) / 1024.0
}
