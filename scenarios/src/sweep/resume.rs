//! Files whose first line says what they are of: a sweep's results and a hunt's are gone on with, put aside, and joined with
//! those of other shards, in the same way.

use super::lines::{self, Lines, Read};
use crate::folder;
use crate::format::{Diagnostics, Fault, Problem};
use mirrorlab_reports::{hunt, sweep, sweep::Head};
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A line of such a file.
pub trait Headed: Serialize + DeserializeOwned {
    /// What its files are called.
    const KIND: &'static str;
    /// What they are of.
    const OF: &'static str;
    /// A first line.
    fn of(head: Head) -> Self;
    /// What a first line says.
    fn head(&self) -> Option<&Head>;
}

impl Headed for sweep::Line {
    const KIND: &'static str = "results";
    const OF: &'static str = "sweep";
    fn of(head: Head) -> Self {
        Self::Head(head)
    }
    fn head(&self) -> Option<&Head> {
        if let Self::Head(head) = self {
            Some(head)
        } else {
            None
        }
    }
}

impl Headed for hunt::Line {
    const KIND: &'static str = "hunt";
    const OF: &'static str = "hunt";
    fn of(head: Head) -> Self {
        Self::Head(head)
    }
    fn head(&self) -> Option<&Head> {
        if let Self::Head(head) = self {
            Some(head)
        } else {
            None
        }
    }
}

/// A shard's file, open to be gone on with.
#[derive(Debug)]
pub struct Resumed<L> {
    /// Where lines go.
    pub out: Lines,
    /// What stands there already: one line at least.
    pub lines: Vec<L>,
    /// Why what was there does not count any more, and what that was.
    pub anew: Option<(String, Vec<L>)>,
}

/// What a folder holds the lines of, if it does.
#[must_use]
pub fn kind(folder: &Path) -> Option<&'static str> {
    fn of<L: Headed>(folder: &Path) -> Option<&'static str> {
        (!files::<L>(folder).is_empty()).then_some(L::OF)
    }
    of::<sweep::Line>(folder).or_else(|| of::<hunt::Line>(folder))
}

/// That a folder may hold lines of this kind: it holds no run and nothing of the other kind.
fn is_fit<L: Headed>(folder: &Path) -> Result<(), Diagnostics> {
    if folder::is_run(folder) {
        return Err(folder::holds(folder, "a run"));
    }
    match kind(folder) {
        Some(other) if other != L::OF => Err(folder::holds(folder, &format!("a {other}"))),
        None if folder::is_foreign(folder) => Err(folder::holds(folder, "something else")),
        _ => Ok(()),
    }
}

/// Opens the file of a shard and reads what is there. What files said that were edited since, or another build, is put aside.
///
/// # Errors
/// A folder of something else; one that another process works in; what the file system refuses.
pub fn resume<L: Headed>(folder: &Path, head: &Head) -> Result<Resumed<L>, Diagnostics> {
    is_fit::<L>(folder)?;
    let mut out = Lines::open(folder, &lines::name(L::KIND, head.shard))?;
    let Read { mut lines, mut whole } = lines::read::<L>(out.path())?;
    let mut anew = None;
    if let Some(why) = difference::<L>(folder, head, lines.first().and_then(L::head))? {
        out.put_aside()?;
        anew = Some((why, std::mem::take(&mut lines)));
        whole = 0;
    }
    out.cut(whole)?;
    if lines.is_empty() {
        let first = L::of(head.clone());
        out.add(&first)?;
        lines.push(first);
    }
    Ok(Resumed { out, lines, anew })
}

/// Why what another head begins cannot be gone on with; `None`: it can.
fn difference<L: Headed>(folder: &Path, head: &Head, then: Option<&Head>) -> Result<Option<String>, Diagnostics> {
    let Some((then, difference)) = then.and_then(|then| Some((then, head.difference(then)?))) else { return Ok(None) };
    if head.has_other_arguments(then) {
        let message = format!("the folder holds another {}: {difference}", L::OF);
        let help = "name another folder with --out, or remove this one";
        return Err(conflict(folder, message, help));
    }
    Ok(Some(difference))
}

/// Files of all shards in a folder, in order of name.
#[must_use]
pub fn files<L: Headed>(folder: &Path) -> Vec<PathBuf> {
    lines::files(folder, L::KIND)
}

/// What the files of all shards in a folder say, each from its head on.
///
/// # Errors
/// Files that cannot be read, or are not of one and the same.
pub fn shards<L: Headed>(folder: &Path) -> Result<Vec<Vec<L>>, Diagnostics> {
    let mut all: Vec<(PathBuf, Vec<L>)> = Vec::new();
    for path in files::<L>(folder) {
        let lines = lines::read::<L>(&path)?.lines;
        let Some(head) = lines.first().and_then(L::head) else { continue };
        let before = all.first().and_then(|(first, lines)| Some((first, lines.first().and_then(L::head)?)));
        if let Some((first, before)) = before.filter(|(_, before)| !before.is_same_sweep(head)) {
            let difference = head.difference(before).unwrap_or_default();
            let (first, second) = (first.display(), path.display());
            let message = format!("{first} and {second} are of two {}s: {difference}", L::OF);
            return Err(conflict(folder, message, "remove the older one, or run its shard again"));
        }
        all.push((path, lines));
    }
    Ok(all.into_iter().map(|(_, lines)| lines).collect())
}

fn conflict(folder: &Path, message: String, help: &str) -> Diagnostics {
    Diagnostics::one(&folder.display().to_string(), Problem::new(Fault::Command, "conflict", message).help(help))
}
