//! Run folders and sweeps as they are named on the command line, and what to say if they are not there, or not whole.

use crate::format::{Diagnostics, Fault, Problem};
use crate::nearest::nearest;
use mirrorlab_reports::load::LoadError;
use std::path::{Path, PathBuf};

/// What leaves something that could be named.
const HOW: &str =
    "`mirrorlab run FILE` leaves a run folder in `runs/`, `mirrorlab sweep PATH --seeds A..B` one of many runs";

/// Entries of a folder that are listed.
const LISTED: usize = 8;

/// The plan of a run folder, or the file itself.
///
/// # Errors
/// There is none.
pub fn plan_file(path: &Path) -> Result<PathBuf, Diagnostics> {
    if !path.exists() {
        return Err(missing(path));
    }
    let file = if path.is_dir() { path.join("plan.toml") } else { path.to_path_buf() };
    if file.exists() {
        return Ok(file);
    }
    let problem = Problem::new(Fault::Command, "no-run", "this folder holds no plan.toml, so it is not that of a run");
    Err(Diagnostics::one(&path.display().to_string(), problem.help(beside(path, None))))
}

/// Why a record cannot be read, and what to do.
#[must_use]
pub fn unreadable(path: &Path, error: &LoadError) -> Diagnostics {
    match error {
        LoadError::Missing(_) => missing(path),
        LoadError::Empty(_) if !runs_below(path).is_empty() => {
            let runs = runs_below(path);
            let more = if runs.len() > LISTED { ", …" } else { "" };
            let shown: Vec<String> = runs.iter().take(LISTED).map(|run| format!("`{}`", run.display())).collect();
            let message = "this is a folder of runs, and a report is of one";
            let help = format!(
                "name one of {}{more}; `mirrorlab census {}` adds all of them up",
                shown.join(", "),
                path.display()
            );
            Diagnostics::one(&path.display().to_string(), Problem::new(Fault::Command, "no-run", message).help(help))
        }
        LoadError::Empty(_) => {
            let problem = Problem::new(Fault::Command, "no-run", "there is no summary.json in or below this folder");
            Diagnostics::one(&path.display().to_string(), problem.help(beside(path, None)))
        }
        other => {
            let problem = Problem::new(Fault::Command, "unreadable", other.to_string()).help(other.help());
            Diagnostics::one(&path.display().to_string(), problem)
        }
    }
}

/// That there is no such file or folder: the nearest one, or what is there, and how to make one.
#[must_use]
pub fn missing(path: &Path) -> Diagnostics {
    let words: Vec<_> = path.components().collect();
    let there = |n: &usize| *n == 0 || words[..*n].iter().collect::<PathBuf>().exists();
    let known = (0..words.len()).rev().find(there).unwrap_or(0);
    let base: PathBuf = words[..known].iter().collect();
    let rest: PathBuf = words[known..].iter().skip(1).collect();
    let word = words.get(known).map(|word| word.as_os_str().to_string_lossy().into_owned());
    let message = "there is no such file or folder";
    let problem = Problem::new(Fault::Command, "unreadable", message);
    let near = word.and_then(|word| Some(base.join(nearest(&word, entries(&base).iter().map(|e| &**e))?)));
    let help = match near {
        Some(near) => {
            let whole = near.join(&rest);
            let near = if whole.exists() { whole } else { near };
            format!("did you mean `{}`?", near.display())
        }
        None => beside(&base, Some(HOW)),
    };
    Diagnostics::one(&path.display().to_string(), problem.help(help))
}

/// What stands in a folder, and how to make more.
fn beside(folder: &Path, how: Option<&str>) -> String {
    let all = entries(folder);
    let how = how.unwrap_or(HOW);
    if all.is_empty() {
        return how.to_owned();
    }
    let shown: Vec<String> = all.iter().take(LISTED).map(|name| format!("`{}`", folder.join(name).display())).collect();
    let more = all.len().saturating_sub(LISTED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("there are {}{more}; {how}", shown.join(", "))
}

/// Folders below a folder that hold a summary, in order of name: some of them are enough.
fn runs_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left: Vec<(PathBuf, usize)> = vec![(folder.to_path_buf(), 0)];
    while let Some((at, depth)) = left.pop() {
        let is_link = at.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
        if depth > DEPTH_MAX || found.len() > LISTED || is_link && depth > 0 {
            continue;
        }
        if depth > 0 && at.join(mirrorlab_reports::load::SUMMARY).is_file() {
            found.push(at);
            continue;
        }
        left.extend(entries(&at).into_iter().rev().map(|name| (at.join(name), depth + 1)));
    }
    found
}

/// Folders within folders that runs are looked for in.
const DEPTH_MAX: usize = 6;

/// The folders in a folder, in order of name.
fn entries(folder: &Path) -> Vec<String> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}
