//! A file of lines that one process adds to: read again by one that resumes, whatever killed the one before.

use crate::format::{Diagnostics, Fault, Problem};
use fs4::{FileExt, TryLockError};
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file that this process adds lines to, and nobody else.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    file: File,
}

/// A file as it was read.
#[derive(Debug)]
pub struct Read<L> {
    /// Its lines.
    pub lines: Vec<L>,
    /// Bytes of whole lines.
    pub whole: u64,
}

/// The name of a shard's file.
#[must_use]
pub fn name(kind: &str, (index, of): (u32, u32)) -> String {
    format!("{kind}-{index}of{of}.ndjson")
}

/// Files of all shards in a folder, in order of name.
#[must_use]
pub fn files(folder: &Path, kind: &str) -> Vec<PathBuf> {
    let is_one = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let middle = name.and_then(|name| name.strip_prefix(kind)?.strip_prefix('-')?.strip_suffix(".ndjson"));
        middle.is_some_and(|middle| middle.contains("of"))
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(is_one).collect();
    files.sort();
    files
}

/// Reads a file. A last line without its end was cut off when its process was killed: it does not count.
///
/// # Errors
/// A file that cannot be read; a line that is none.
pub fn read<L: DeserializeOwned>(path: &Path) -> Result<Read<L>, Diagnostics> {
    let file = File::open(path).map_err(|error| refused(path, &error))?;
    let mut from = BufReader::new(file);
    let mut read = Read { lines: Vec::new(), whole: 0 };
    let mut line = Vec::new();
    loop {
        line.clear();
        let bytes = from.read_until(b'\n', &mut line).map_err(|error| refused(path, &error))?;
        if line.last() != Some(&b'\n') {
            return Ok(read);
        }
        let parsed = serde_json::from_slice(&line).map_err(|error| {
            let message = format!("line {} is not one of a sweep's: {error}", read.lines.len() + 1);
            let help = "another version of mirrorlab may have written it: remove the file, and begin again";
            let problem = Problem::new(Fault::Command, "unreadable", message).help(help);
            Diagnostics::one(&path.display().to_string(), problem)
        })?;
        read.lines.push(parsed);
        read.whole += bytes as u64;
    }
}

impl Lines {
    /// Opens a file for this process alone, and makes it if there is none.
    ///
    /// # Errors
    /// Another process that writes to it; what the file system refuses.
    pub fn open(folder: &Path, name: &str) -> Result<Self, Diagnostics> {
        std::fs::create_dir_all(folder).map_err(|error| refused(folder, &error))?;
        let path = folder.join(name);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|error| refused(&path, &error))?;
        // Not every file system has locks.
        if matches!(FileExt::try_lock(&file), Err(TryLockError::WouldBlock)) {
            let problem = Problem::new(Fault::Command, "busy", "another sweep writes to this file");
            let problem = problem.help("wait for its end, or name another folder with --out");
            return Err(Diagnostics::one(&path.display().to_string(), problem));
        }
        Ok(Self { path, file })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps what is there under another name.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn put_aside(&self) -> Result<(), Diagnostics> {
        let aside = self.path.with_extension("ndjson.old");
        std::fs::copy(&self.path, &aside).map(|_| ()).map_err(|error| refused(&aside, &error))
    }

    /// Goes on after so many bytes.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn cut(&mut self, whole: u64) -> Result<(), Diagnostics> {
        let done = self.file.set_len(whole).and_then(|()| self.file.seek(SeekFrom::End(0)));
        done.map(|_| ()).map_err(|error| refused(&self.path, &error))
    }

    /// Adds a line, whole or not at all as far as a reader is concerned.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn add(&mut self, line: &impl Serialize) -> Result<(), Diagnostics> {
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        self.file.write_all(&text).and_then(|()| self.file.flush()).map_err(|error| refused(&self.path, &error))
    }
}

fn refused(path: &Path, error: &std::io::Error) -> Diagnostics {
    let problem = Problem::new(Fault::Machine, "unusable", format!("it cannot be used: {error}"));
    Diagnostics::one(&path.display().to_string(), problem.help("name another folder with --out"))
}
