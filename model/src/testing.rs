//! A data disk in memory for unit tests of the rooms: page cache above a durable image, both as small as they can be.
//!
//! The simulated disk of `sim` has latency, sharing and fault plans; this one only has what a unit test of a state machine
//! needs: it can crash ([`MemDisk::crash`]), fail the nth call ([`MemDisk::fail`]) and flush ([`MemDisk::flush`]).

use crate::ports::{DirId, DirName, Disk, DiskError, Effect, Entropy, FileId, FileName};
use bytes::Bytes;
use std::cell::Cell;
use std::collections::BTreeMap;

/// The calls that [`MemDisk::fail`] can strike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskCall {
    /// [`Disk::create`].
    Create,
    /// [`Disk::open`].
    Open,
    /// [`Disk::append`]: half of the bytes are written.
    Append,
    /// [`Disk::read`].
    Read,
    /// [`Disk::truncate`].
    Truncate,
    /// [`Disk::rename`].
    Rename,
    /// [`Disk::remove`].
    Remove,
}

/// One armed failure.
#[derive(Clone, Debug)]
struct Fault {
    call: DiskCall,
    left: Cell<u32>,
    error: DiskError,
}

/// A change of a directory that is not durable yet.
#[derive(Clone, Copy, Debug)]
enum DirChange {
    Link(FileName, FileId),
    Unlink(FileName),
    Rename { from: FileName, to: FileName },
}

#[derive(Clone, Debug, Default)]
struct Dir {
    name: Option<DirName>,
    live: BTreeMap<FileName, FileId>,
    durable: BTreeMap<FileName, FileId>,
    pending: Vec<DirChange>,
}

#[derive(Clone, Debug, Default)]
struct File {
    /// Start position and bytes of every append.
    pieces: Vec<(u64, Bytes)>,
    len: u64,
    durable: u64,
}

/// A data disk in memory.
#[derive(Clone, Debug, Default)]
pub struct MemDisk {
    names: BTreeMap<DirName, DirId>,
    dirs: Vec<Dir>,
    files: Vec<File>,
    faults: Vec<Fault>,
}

impl MemDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The `nth` call of this kind from now (1 is the next one) fails with `error`, once.
    pub fn fail(&mut self, call: DiskCall, nth: u32, error: DiskError) {
        self.faults.push(Fault { call, left: Cell::new(nth), error });
    }

    /// No further call fails.
    pub fn heal(&mut self) {
        self.faults.clear();
    }

    /// Makes a file's bytes durable.
    pub fn flush(&mut self, file: FileId) {
        if let Some(file) = self.files.get_mut(file.0 as usize) {
            file.durable = file.len;
        }
    }

    /// Makes a directory's entries durable.
    pub fn flush_dir(&mut self, dir: DirId) {
        if let Some(dir) = self.dirs.get_mut(dir.0 as usize) {
            dir.durable = dir.live.clone();
            dir.pending.clear();
        }
    }

    /// Makes everything durable.
    pub fn flush_all(&mut self) {
        for file in 0..self.files.len() {
            self.flush(FileId(file as u32));
        }
        for dir in 0..self.dirs.len() {
            self.flush_dir(DirId(dir as u32));
        }
    }

    /// Carries out the flushes among these effects at once.
    pub fn obey(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Flush { file, .. } => self.flush(*file),
                Effect::FlushDir { dir, .. } => self.flush_dir(*dir),
                _ => {}
            }
        }
    }

    /// Bytes of a file that would survive a power loss for certain.
    #[must_use]
    pub fn durable_len(&self, file: FileId) -> u64 {
        self.files.get(file.0 as usize).map_or(0, |f| f.durable)
    }

    /// Power loss: of each file some prefix of the unflushed bytes survives, of each directory some prefix of the unflushed
    /// changes. The draws are hashes of `seed`.
    pub fn crash(&mut self, seed: u64) {
        let draw = Entropy(seed);
        for (number, file) in self.files.iter_mut().enumerate() {
            let lost = file.len - file.durable;
            // A third keeps all, a third loses all, a third tears.
            let keep = match draw.below(1, number as u64, 3) {
                0 => 0,
                1 => lost,
                _ => draw.below(2, number as u64, lost + 1),
            };
            let len = file.durable + keep;
            file.cut(len);
            file.durable = len;
        }
        for (number, dir) in self.dirs.iter_mut().enumerate() {
            let keep = draw.below(3, number as u64, dir.pending.len() as u64 + 1) as usize;
            for change in dir.pending.drain(..).take(keep) {
                change.apply(&mut dir.durable);
            }
            dir.live = dir.durable.clone();
        }
        self.faults.clear();
    }

    /// Power loss that takes everything that was not flushed.
    pub fn crash_hard(&mut self) {
        for file in &mut self.files {
            file.cut(file.durable);
        }
        for dir in &mut self.dirs {
            dir.pending.clear();
            dir.live = dir.durable.clone();
        }
        self.faults.clear();
    }

    /// Turns one bit of a file.
    pub fn rot(&mut self, file: FileId, pos: u64) {
        let Some(file) = self.files.get_mut(file.0 as usize) else { return };
        let Some(at) = file.pieces.iter().rposition(|(start, _)| *start <= pos) else { return };
        let (start, piece) = &mut file.pieces[at];
        let mut bytes = piece.to_vec();
        if let Some(byte) = bytes.get_mut((pos - *start) as usize) {
            *byte ^= 1;
            *piece = bytes.into();
        }
    }

    fn strike(&self, call: DiskCall) -> Result<(), DiskError> {
        for fault in self.faults.iter().filter(|f| f.call == call && f.left.get() > 0) {
            fault.left.set(fault.left.get() - 1);
            if fault.left.get() == 0 {
                return Err(fault.error);
            }
        }
        Ok(())
    }

    fn dir(&mut self, dir: DirId) -> Result<&mut Dir, DiskError> {
        self.dirs.get_mut(dir.0 as usize).filter(|d| d.name.is_some()).ok_or(DiskError::NotFound)
    }
}

impl DirChange {
    fn apply(self, names: &mut BTreeMap<FileName, FileId>) {
        match self {
            Self::Link(name, file) => {
                names.insert(name, file);
            }
            Self::Unlink(name) => {
                names.remove(&name);
            }
            Self::Rename { from, to } => {
                if let Some(file) = names.remove(&from) {
                    names.insert(to, file);
                }
            }
        }
    }
}

impl Dir {
    fn change(&mut self, change: DirChange) {
        change.apply(&mut self.live);
        self.pending.push(change);
    }
}

impl File {
    fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            let start = self.len;
            self.len += bytes.len() as u64;
            self.pieces.push((start, bytes));
        }
    }
    fn cut(&mut self, len: u64) {
        while let Some((start, piece)) = self.pieces.last_mut() {
            if *start >= len {
                self.pieces.pop();
            } else {
                piece.truncate((len - *start) as usize);
                break;
            }
        }
        self.len = self.len.min(len);
        self.durable = self.durable.min(len);
    }
}

impl Disk for MemDisk {
    fn open_dir(&mut self, name: DirName, create: bool) -> Result<DirId, DiskError> {
        if let Some(id) = self.names.get(&name) {
            return Ok(*id);
        }
        if !create {
            return Err(DiskError::NotFound);
        }
        let id = DirId(self.dirs.len() as u32);
        self.dirs.push(Dir { name: Some(name), ..Dir::default() });
        self.names.insert(name, id);
        Ok(id)
    }
    fn list_dirs(&self) -> Vec<DirName> {
        self.names.keys().copied().collect()
    }
    fn remove_dir(&mut self, dir: DirId) -> Result<(), DiskError> {
        let gone = std::mem::take(self.dir(dir)?);
        if let Some(name) = gone.name {
            self.names.remove(&name);
        }
        Ok(())
    }
    fn list(&self, dir: DirId) -> Vec<FileName> {
        self.dirs.get(dir.0 as usize).map_or_else(Vec::new, |d| d.live.keys().copied().collect())
    }
    fn create(&mut self, dir: DirId, name: FileName) -> Result<FileId, DiskError> {
        self.strike(DiskCall::Create)?;
        let id = FileId(self.files.len() as u32);
        let dir = self.dir(dir)?;
        if dir.live.contains_key(&name) {
            return Err(DiskError::Exists);
        }
        dir.change(DirChange::Link(name, id));
        self.files.push(File::default());
        Ok(id)
    }
    fn open(&mut self, dir: DirId, name: FileName) -> Result<FileId, DiskError> {
        self.strike(DiskCall::Open)?;
        self.dir(dir)?.live.get(&name).copied().ok_or(DiskError::NotFound)
    }
    fn rename(&mut self, dir: DirId, file: FileId, to: FileName) -> Result<(), DiskError> {
        self.strike(DiskCall::Rename)?;
        let dir = self.dir(dir)?;
        let from = dir.live.iter().find(|(_, f)| **f == file).map(|(n, _)| *n).ok_or(DiskError::NotFound)?;
        dir.change(DirChange::Rename { from, to });
        Ok(())
    }
    fn remove(&mut self, dir: DirId, name: FileName) -> Result<(), DiskError> {
        self.strike(DiskCall::Remove)?;
        let dir = self.dir(dir)?;
        if !dir.live.contains_key(&name) {
            return Err(DiskError::NotFound);
        }
        dir.change(DirChange::Unlink(name));
        Ok(())
    }
    fn len(&self, file: FileId) -> u64 {
        self.files.get(file.0 as usize).map_or(0, |f| f.len)
    }
    fn append(&mut self, file: FileId, bytes: Bytes) -> Result<u64, DiskError> {
        let struck = self.strike(DiskCall::Append);
        let file = self.files.get_mut(file.0 as usize).ok_or(DiskError::NotFound)?;
        let at = file.len;
        if let Err(error) = struck {
            file.push(bytes.slice(..bytes.len() / 2));
            return Err(error);
        }
        file.push(bytes);
        Ok(at)
    }
    fn read(&self, file: FileId, pos: u64, max: u64, out: &mut Vec<Bytes>) -> Result<u64, DiskError> {
        self.strike(DiskCall::Read)?;
        let file = self.files.get(file.0 as usize).ok_or(DiskError::NotFound)?;
        let first = file.pieces.partition_point(|(start, piece)| start + piece.len() as u64 <= pos);
        let mut read = 0;
        for (start, piece) in &file.pieces[first..] {
            let piece = piece.slice(pos.saturating_sub(*start) as usize..);
            let left = max.saturating_sub(read);
            if read > 0 && (piece.len() as u64) > left {
                break;
            }
            read += piece.len() as u64;
            out.push(piece);
        }
        Ok(read)
    }
    fn truncate(&mut self, file: FileId, len: u64) -> Result<(), DiskError> {
        self.strike(DiskCall::Truncate)?;
        self.files.get_mut(file.0 as usize).ok_or(DiskError::NotFound)?.cut(len);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_takes_what_was_not_flushed_and_names_that_were_not() {
        let mut disk = MemDisk::new();
        let dir = disk.open_dir(DirName::Root, true).unwrap();
        let kept = disk.create(dir, FileName::Segment(0)).unwrap();
        disk.append(kept, Bytes::from_static(b"abc")).unwrap();
        disk.flush(kept);
        disk.flush_dir(dir);
        disk.append(kept, Bytes::from_static(b"def")).unwrap();
        let lost = disk.create(dir, FileName::Segment(7)).unwrap();
        disk.flush(lost);
        disk.crash_hard();
        assert_eq!(disk.list(dir), [FileName::Segment(0)]);
        let mut out = Vec::new();
        assert_eq!(disk.read(kept, 1, 100, &mut out), Ok(2));
        assert_eq!(out, [Bytes::from_static(b"bc")]);
    }

    #[test]
    fn a_failed_append_leaves_a_prefix() {
        let mut disk = MemDisk::new();
        let dir = disk.open_dir(DirName::Root, true).unwrap();
        let file = disk.create(dir, FileName::Segment(0)).unwrap();
        disk.fail(DiskCall::Append, 2, DiskError::Full);
        assert_eq!(disk.append(file, Bytes::from_static(b"abcd")), Ok(0));
        assert_eq!(disk.append(file, Bytes::from_static(b"efgh")), Err(DiskError::Full));
        assert_eq!(disk.len(file), 6);
        assert_eq!(disk.append(file, Bytes::from_static(b"ij")), Ok(6));
    }
}
