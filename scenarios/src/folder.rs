//! What a run leaves on disk: `runs/<folder>/<scenario>/<seed>/` with `plan.toml`, `summary.json`, `report.html`, and
//! `runs/latest` beside it.

use crate::format::{Diagnostics, Fault, Problem};
use crate::plan::Plan;
use fs4::{FileExt, TryLockError};
use mirrorlab_reports::load;
use mirrorlab_reports::record::{Build, Record};
use std::fs::{self, File};
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

/// Where the run of a plan goes by default that comes of this file: a scenario, or the plan itself.
#[must_use]
pub fn home_of(file: &Path, plan: &Plan) -> PathBuf {
    if file.file_name().is_some_and(|name| name == PLAN) {
        home_of_plan(file, plan)
    } else {
        home(file, &plan.plan.scenario, plan.seed)
    }
}

/// Where the runs of a scenario file go by default: below `runs/`, by what the file is called. Two files may be called alike
/// (`one/same/t.toml`, `two/same/t.toml`): who lies below this folder is called by its whole path here, and who would take
/// the place of another file by a hash of its own place.
fn home(file: &Path, scenario: &str, seed: u64) -> PathBuf {
    let plain = folder_of(None, scenario, seed);
    let (Ok(own), Ok(here)) = (file.canonicalize(), Path::new(".").canonicalize()) else { return plain };
    let apart = || folder_of(None, &format!("{scenario}-{}", mark(&own)), seed);
    let Ok(inside) = own.strip_prefix(&here) else {
        // A file of another place: the name may be that of one here, or of one that was run before.
        let here = format!("{scenario}.toml");
        let mut rivals = [Path::new(SCENARIOS).join(&here), here.into()].into_iter().chain(made_of(&plain));
        let is_taken = rivals.any(|rival| rival.canonicalize().is_ok_and(|rival| rival != own));
        return if is_taken { apart() } else { plain };
    };
    let name = inside.with_extension("");
    match name.strip_prefix(SCENARIOS) {
        Err(_) if Path::new(SCENARIOS).join(inside).exists() => apart(),
        within => folder_of(None, &within.unwrap_or(&name).to_string_lossy(), seed),
    }
}

/// The folder of scenario files.
const SCENARIOS: &str = "scenarios";

/// Of which scenario file a folder holds a run, if it says.
fn made_of(folder: &Path) -> Option<PathBuf> {
    let file = PathBuf::from(load::record(folder).ok()?.scenario);
    (file.file_name()? != PLAN).then_some(file)
}

/// Where the run of a plan goes that is named by its file: its own run folder, or that of a run of the same plan; never that of
/// another one.
fn home_of_plan(file: &Path, plan: &Plan) -> PathBuf {
    let (scenario, seed) = (&plan.plan.scenario, plan.seed);
    let plain = folder_of(None, scenario, seed);
    if is_free(&plain) || has_plan_of(&plain, file) {
        return plain;
    }
    let own = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    folder_of(None, &format!("{scenario}-{}", mark(&own)), seed)
}

fn is_free(folder: &Path) -> bool {
    [PLAN, load::SUMMARY].iter().all(|name| !folder.join(name).exists())
}

/// Whether a folder holds a run of the plan in a file.
#[must_use]
pub fn has_plan_of(folder: &Path, file: &Path) -> bool {
    let text = |path: &Path| fs::read(path).ok();
    text(file).is_some_and(|own| text(&folder.join(PLAN)).is_some_and(|there| there == own))
}

/// Whether a file lies within a folder.
#[must_use]
pub fn is_inside(folder: &Path, file: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    file.canonicalize().is_ok_and(|file| file.starts_with(folder))
}

/// A few letters that stand for a place.
pub(crate) fn mark(path: &Path) -> String {
    format!("{:08x}", xxhash_rust::xxh3::xxh3_64(path.as_os_str().as_encoded_bytes()) >> 32)
}

/// The plan in a run folder.
const PLAN: &str = "plan.toml";

/// A run folder that this process alone writes to, for as long as this lives.
#[derive(Debug)]
pub struct Held {
    _folder: Option<File>,
}

impl Held {
    /// Makes a folder for a run and holds it. A process that has ended holds nothing; nobody waits.
    ///
    /// # Errors
    /// Another process that writes to it; the folder of a sweep or a hunt; what the file system refuses.
    pub fn take(folder: &Path) -> Result<Self, Diagnostics> {
        make(folder)?;
        // The folder itself is locked, so that no file is left that could be stale. Not every system lets one do that.
        let open = File::open(folder).ok();
        if open.as_ref().is_some_and(|open| matches!(FileExt::try_lock(open), Err(TryLockError::WouldBlock))) {
            let problem = Problem::new(Fault::Command, "busy", "another run writes to this folder");
            let problem = problem.help("wait for its end, or name another folder with --out");
            return Err(Diagnostics::one(&folder.display().to_string(), problem));
        }
        let held = Self { _folder: open };
        match crate::sweep::resume::kind(folder) {
            Some(kind) => Err(holds(folder, &format!("a {kind}"))),
            None if is_foreign(folder) => Err(holds(folder, "something else")),
            None => Ok(held),
        }
    }
}

/// Whether a folder has a summary or a page that nobody here left there.
pub(crate) fn is_foreign(folder: &Path) -> bool {
    let left = [load::SUMMARY, "report.html"].iter().any(|name| folder.join(name).exists());
    let begins = |bytes: Vec<u8>| bytes.starts_with(crate::plan::BEGIN.as_bytes());
    left && load::record(folder).is_err() && !fs::read(folder.join(PLAN)).is_ok_and(begins)
}

/// That a folder is of something else.
pub(crate) fn holds(folder: &Path, what: &str) -> Diagnostics {
    let message = format!("this folder holds the record of {what}, which would be overwritten");
    let problem = Problem::new(Fault::Command, "conflict", message).help("name another folder with --out");
    Diagnostics::one(&folder.display().to_string(), problem)
}

/// Whether a folder holds a run, or the rows of a matrix.
#[must_use]
pub fn is_run(folder: &Path) -> bool {
    folder.join(PLAN).is_file() || load::record(folder).is_ok()
}

/// Takes away what an earlier run left in a folder: it is of another history. What was made of its plan, smaller plans and such
/// with a node away, goes as well unless the plan `stays` the same.
pub fn clear(folder: &Path, stays: bool) {
    let is_matrix = load::record(folder).is_ok_and(|record| !record.rows.is_empty());
    for left in ["trace.ndjson", "report.html", load::SUMMARY] {
        let _ = fs::remove_file(folder.join(left));
    }
    if stays {
        return;
    }
    let _ = fs::remove_file(folder.join(PLAN));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let Some(name) = name.to_str().filter(|_| entry.file_type().is_ok_and(|kind| kind.is_dir())) else { continue };
        // Only what carries the mark of a run: who else keeps something here keeps it.
        let is_ours = path.join(PLAN).is_file() || path.join("tries.ndjson").is_file();
        let is_row = is_matrix && name.contains('_');
        if is_ours && (name == SHRUNK || name.starts_with("absence-") || is_row) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Where a run's smaller plan goes, in its folder.
pub const SHRUNK: &str = "shrunk";

/// That a file is part of a record, if it is: a page or a table in its place would destroy that.
///
/// # Errors
/// It is one.
pub fn is_no_record(file: &Path) -> Result<(), Diagnostics> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_one = name == load::SUMMARY || name.ends_with(".toml") || name.ends_with(".ndjson");
    if !is_one || !file.is_file() {
        return Ok(());
    }
    let problem = Problem::new(Fault::Command, "conflict", "this file is one that mirrorlab reads; it stays as it is");
    Err(Diagnostics::one(&file.display().to_string(), problem.help("name another file")))
}

/// Writes the plan of a run that is about to begin. What an earlier run left there is of another plan, and goes.
///
/// # Errors
/// What the file system refuses, with the path.
pub fn write_plan(folder: &Path, plan: &Plan) -> Result<(), Diagnostics> {
    make(folder)?;
    put(&folder.join(PLAN), &plan.to_toml()?)?;
    for left in [load::SUMMARY, "report.html"] {
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
    put(&folder.join(load::SUMMARY), &summary)?;
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
    fn a_folder_is_held_by_one_and_a_run_takes_its_old_record_away_whole() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("run");
        let held = Held::take(&own).unwrap();
        let told = Held::take(&own).unwrap_err().to_string();
        assert!(told.contains("another run writes to this folder"), "{told}");
        drop(held);
        let _held = Held::take(&own).unwrap();
        let write = |name: &str| {
            let path = own.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        };
        let record =
            ["plan.toml", "summary.json", "report.html", "trace.ndjson", "shrunk/plan.toml", "absence-0/plan.toml"];
        let others = ["notes.txt", "mine/plan.toml", "shrunk.old/tries.ndjson"];
        record.into_iter().chain(others).for_each(write);
        clear(&own, true);
        assert!(
            own.join("shrunk/plan.toml").exists()
                && own.join("plan.toml").exists()
                && !own.join("trace.ndjson").exists()
        );
        clear(&own, false);
        let left = |name: &&str| own.join(name).exists();
        assert_eq!((record.iter().filter(|n| left(n)).count(), others.iter().filter(|n| left(n)).count()), (0, 3));
    }

    #[test]
    fn the_folder_of_a_sweep_is_no_place_for_a_run_and_a_record_none_for_a_page() {
        let folder = tempfile::tempdir().unwrap();
        for (file, kind) in [("results-1of1.ndjson", "a sweep"), ("hunt-1of2.ndjson", "a hunt")] {
            let own = folder.path().join(kind);
            fs::create_dir_all(&own).unwrap();
            fs::write(own.join(file), "").unwrap();
            let told = Held::take(&own).unwrap_err().to_string();
            assert!(told.contains(&format!("holds the record of {kind}")), "{told}");
            assert!(is_no_record(&own.join(file)).is_err() && is_no_record(&own.join("page.html")).is_ok());
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
