//! What a run leaves on disk: `runs/<folder>/<scenario>/<seed>/` with `plan.toml`, `summary.json`, `report.html`, and
//! `runs/latest` beside it.

use crate::format::{Diagnostics, Fault, Problem};
use crate::plan::Plan;
use mirrorlab_reports::record::{Build, Record};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Where runs are kept unless `--out` says otherwise.
pub const RUNS: &str = "runs";

/// The link to the last run.
const LATEST: &str = "latest";

/// What a scenario file is called: `lifecycle/failback` for `scenarios/lifecycle/failback.toml`, wherever it is called from, so
/// that files of one name in two folders are told apart. Outside of a folder `scenarios` the file's own folder is named.
#[must_use]
pub fn name_of(file: &Path) -> String {
    let mut words = words(&file.with_extension(""));
    let within = words.iter().rposition(|word| word == "scenarios").map(|at| at + 1).filter(|at| *at < words.len());
    words.drain(..within.unwrap_or(words.len().saturating_sub(2)));
    if words.is_empty() {
        "scenario".to_owned()
    } else {
        words.join("/")
    }
}

/// The plain names of a path: what leads up, or to the root, is left out.
fn words(path: &Path) -> Vec<String> {
    let plain = |c: Component<'_>| match c {
        Component::Normal(word) => Some(word.to_string_lossy().into_owned()),
        _ => None,
    };
    path.components().filter_map(plain).collect()
}

/// The folder of a run: below `runs/`, by scenario and seed; a matrix row has its own below that. A plan may name its scenario
/// as it likes: the folder stays below `runs/`, and out of the way of the link to the last run.
#[must_use]
pub fn folder_of(out: Option<&Path>, scenario: &str, seed: u64) -> PathBuf {
    if let Some(out) = out {
        return out.to_path_buf();
    }
    let mut words = words(Path::new(scenario));
    match words.first_mut() {
        None => words.push("scenario".to_owned()),
        Some(first) if first.eq_ignore_ascii_case(LATEST) => first.push_str(".toml"),
        Some(_) => {}
    }
    words.into_iter().fold(PathBuf::from(RUNS), |folder, word| folder.join(word)).join(seed.to_string())
}

/// Writes the plan of a run that is about to begin. What an earlier run left there is of another plan, and goes.
///
/// # Errors
/// What the file system refuses, with the path.
pub fn write_plan(folder: &Path, plan: &Plan) -> Result<(), Diagnostics> {
    make(folder)?;
    put(&folder.join("plan.toml"), &plan.to_toml()?)?;
    for left in ["summary.json", "report.html"] {
        let _ = fs::remove_file(folder.join(left));
    }
    Ok(())
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
    let latest = Path::new(RUNS).join(LATEST);
    // `replay runs/latest` names a folder by the very link.
    let (Ok(folder), Ok(runs)) = (folder.canonicalize(), Path::new(RUNS).canonicalize()) else { return };
    if let Some(inside) = folder.strip_prefix(runs).ok().filter(|inside| !inside.as_os_str().is_empty()) {
        let _ = fs::remove_file(&latest);
        #[cfg(unix)]
        let _ = std::os::unix::fs::symlink(inside, &latest);
    }
}

fn make(folder: &Path) -> Result<(), Diagnostics> {
    fs::create_dir_all(folder).map_err(|e| refused(folder, &e))
}

/// Writes a file that is there whole or not at all, whatever kills this process.
pub(crate) fn put(path: &Path, text: &str) -> Result<(), Diagnostics> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    fs::write(&new, text).and_then(|()| fs::rename(&new, path)).map_err(|e| refused(path, &e))
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
    status_mb("VmHWM:")
}

/// Resident memory of this process in MB, 0 where the system does not tell.
#[must_use]
pub fn rss_mb() -> f64 {
    status_mb("VmRSS:")
}

fn status_mb(name: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with(name));
    let kb = line.and_then(|l| l.split_whitespace().nth(1)).and_then(|n| n.parse::<f64>().ok());
    kb.unwrap_or(0.0) / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_by_folder_and_name() {
        for (file, name) in [
            ("scenarios/tour.toml", "tour"),
            ("scenarios/lifecycle/failback.toml", "lifecycle/failback"),
            ("./scenarios/mirror/failback.toml", "mirror/failback"),
            ("/home/me/lab/scenarios/mirror/chaos_small.toml", "mirror/chaos_small"),
            ("replication/short.toml", "replication/short"),
            ("short.toml", "short"),
            ("../mine/short.toml", "mine/short"),
            ("/tmp/deep/below/short.toml", "below/short"),
            ("scenarios/v1.2.toml", "v1.2"),
        ] {
            assert_eq!(name_of(Path::new(file)), name, "{file}");
        }
    }

    #[test]
    fn a_run_folder_stays_below_runs_and_is_never_the_link() {
        for (scenario, folder) in [
            ("tour", "runs/tour/7"),
            ("lifecycle/failback", "runs/lifecycle/failback/7"),
            ("latest", "runs/latest.toml/7"),
            ("Latest/short", "runs/Latest.toml/short/7"),
            ("../../etc", "runs/etc/7"),
            ("/etc", "runs/etc/7"),
            ("", "runs/scenario/7"),
        ] {
            assert_eq!(folder_of(None, scenario, 7), Path::new(folder), "{scenario}");
        }
        assert_eq!(folder_of(Some(Path::new("here")), "latest", 7), Path::new("here"));
    }
}
