//! The files of a sweep: read again by a sweep that resumes, added to by one write a line.

use crate::format::{Diagnostics, Fault, Problem};
use fs4::FileExt;
use mirrorlab_reports::record::Verdict;
use mirrorlab_reports::sweep::{Head, Line, Totals};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The beginning and the end of their names.
const NAME: (&str, &str) = ("results-", ".ndjson");

/// A file that this process adds lines to, and nobody else.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    file: File,
}

/// What a sweep finds when it begins.
#[derive(Debug)]
pub struct Opened {
    /// Where its lines go.
    pub results: Results,
    /// What is over already: in this file, and in those of other shards.
    pub totals: Totals,
    /// Why what was there does not count any more.
    pub anew: Option<String>,
    /// Then: its failed runs, which may have left folders.
    pub stale: Vec<(String, u64)>,
}

/// A file as it was read.
#[derive(Debug, Default)]
pub struct Read {
    /// Its lines.
    pub lines: Vec<Line>,
    /// Bytes of whole lines.
    whole: u64,
}

impl Read {
    /// What its first line says.
    #[must_use]
    pub fn head(&self) -> Option<&Head> {
        match self.lines.first() {
            Some(Line::Head(head)) => Some(head),
            _ => None,
        }
    }
}

/// Results files of a folder, in order of name.
#[must_use]
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let is_results = |path: &PathBuf| {
        path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(NAME.0) && n.ends_with(NAME.1))
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(is_results).collect();
    files.sort();
    files
}

/// Reads a file. A last line without its end was cut off when its process was killed: it does not count.
///
/// # Errors
/// A file that cannot be read; a line that is none.
pub fn read(path: &Path) -> Result<Read, Diagnostics> {
    let file = File::open(path).map_err(|error| refused(path, &error))?;
    let mut from = BufReader::new(file);
    let mut read = Read::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let bytes = from.read_until(b'\n', &mut line).map_err(|error| refused(path, &error))?;
        if line.last() != Some(&b'\n') {
            return Ok(read);
        }
        let parsed = serde_json::from_slice(&line).map_err(|error| {
            let message = format!("line {} is not one of a sweep's: {error}", read.lines.len() + 1);
            let help = "another version of mirrorlab may have written it: remove the file, and sweep again";
            let problem = Problem::new(Fault::Command, "unreadable", message).help(help);
            Diagnostics::one(&path.display().to_string(), problem)
        })?;
        read.lines.push(parsed);
        read.whole += bytes as u64;
    }
}

impl Results {
    /// Opens the file of a shard and reads what is there. Results of other files, or of another build, are put aside.
    ///
    /// # Errors
    /// A folder of another sweep; one that another process works in; what the file system refuses.
    pub fn open(folder: &Path, head: &Head) -> Result<Opened, Diagnostics> {
        std::fs::create_dir_all(folder).map_err(|error| refused(folder, &error))?;
        let path = folder.join(format!("{}{}of{}{}", NAME.0, head.shard.0, head.shard.1, NAME.1));
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|error| refused(&path, &error))?;
        if FileExt::try_lock(&file).is_err() {
            let problem = Problem::new(Fault::Command, "busy", "another sweep writes to this file");
            let problem = problem.help("wait for its end, or name another folder with --out");
            return Err(Diagnostics::one(&path.display().to_string(), problem));
        }
        let before = read(&path)?;
        let difference = before.head().and_then(|then| Some((then, head.difference(then)?)));
        if let Some((then, difference)) = &difference {
            if head.has_other_arguments(then) {
                let message = format!("the folder holds another sweep: {difference}");
                let problem = Problem::new(Fault::Command, "conflict", message);
                let problem = problem.help("name another folder with --out, or remove this one");
                return Err(Diagnostics::one(&folder.display().to_string(), problem));
            }
        }
        let anew = difference.map(|(_, difference)| difference);
        let mut results = Self { path, file };
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
        for other in files(folder).into_iter().filter(|other| *other != results.path) {
            let other = read(&other)?;
            if other.head().is_some_and(|of| head.is_same_sweep(of)) {
                other.lines.iter().for_each(|line| totals.add(line));
            }
        }
        if whole == 0 {
            results.add(&Line::Head(head.clone()))?;
            totals.add(&Line::Head(head.clone()));
        } else {
            before.lines.iter().for_each(|line| totals.add(line));
        }
        Ok(Opened { results, totals, anew, stale })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps what was there under another name.
    fn put_aside(&self) -> Result<(), Diagnostics> {
        let aside = self.path.with_extension("ndjson.old");
        std::fs::copy(&self.path, &aside).map(|_| ()).map_err(|error| refused(&aside, &error))
    }

    /// Goes on after so many bytes.
    fn cut(&mut self, whole: u64) -> Result<(), Diagnostics> {
        let done = self.file.set_len(whole).and_then(|()| self.file.seek(SeekFrom::End(0)));
        done.map(|_| ()).map_err(|error| refused(&self.path, &error))
    }

    /// Adds a line, whole or not at all as far as a reader is concerned.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn add(&mut self, line: &Line) -> Result<(), Diagnostics> {
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        self.file.write_all(&text).and_then(|()| self.file.flush()).map_err(|error| refused(&self.path, &error))
    }
}

fn refused(path: &Path, error: &std::io::Error) -> Diagnostics {
    let problem = Problem::new(Fault::Machine, "unusable", format!("it cannot be used: {error}"));
    Diagnostics::one(&path.display().to_string(), problem.help("name another folder with --out"))
}

#[cfg(test)]
#[path = "results_tests.rs"]
mod tests;
