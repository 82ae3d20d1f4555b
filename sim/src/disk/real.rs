//! The same port over a real directory, for a host that is no simulation. It passes the contract tests of the simulated disk.
//!
//! Borders between appends are remembered while a file is open. Of a log segment found on the disk they are read from the
//! headers of its record batches (offset, then length); anything else found there reads as one piece.

use bytes::Bytes;
use mirrorlab_model::ids::{TopicId, TopicIx, TopicLife};
use mirrorlab_model::ports::{DirId, DirName, Disk, DiskError, FileId, FileName};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

#[derive(Debug)]
struct Open {
    dir: DirId,
    name: FileName,
    file: fs::File,
    /// Where each append ends.
    ends: Vec<u64>,
}

/// A data disk in a directory of the machine.
#[derive(Debug)]
pub struct RealDisk {
    root: PathBuf,
    dirs: Vec<Option<DirName>>,
    files: Vec<Option<Open>>,
    ids: BTreeMap<(DirId, FileName), FileId>,
}

fn told(error: &io::Error) -> DiskError {
    match error.kind() {
        io::ErrorKind::NotFound => DiskError::NotFound,
        io::ErrorKind::AlreadyExists => DiskError::Exists,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DiskError::Full,
        _ => DiskError::Io,
    }
}

fn dir_text(name: DirName) -> Option<String> {
    match name {
        DirName::Root => None,
        DirName::Metadata => Some("__cluster_metadata-0".to_owned()),
        DirName::Partition { topic, partition } => Some(format!("{:032x}-{}-{partition}", topic.id.0, topic.ix.0)),
    }
}

fn dir_name(text: &str) -> Option<DirName> {
    if text == "__cluster_metadata-0" {
        return Some(DirName::Metadata);
    }
    let (topic, partition) = text.rsplit_once('-')?;
    let (id, ix) = topic.split_once('-')?;
    let topic = TopicLife { id: TopicId(u128::from_str_radix(id, 16).ok()?), ix: TopicIx(ix.parse().ok()?) };
    Some(DirName::Partition { topic, partition: partition.parse().ok()? })
}

fn file_text(name: FileName) -> String {
    match name {
        FileName::Segment(at) => format!("{at:020}.log"),
        FileName::ProducerSnapshot(at) => format!("{at:020}.snapshot"),
        FileName::MetadataSnapshot(at) => format!("{at:020}.checkpoint"),
        FileName::EpochCheckpoint => "leader-epoch-checkpoint".to_owned(),
        FileName::HighWatermarks => "replication-offset-checkpoint".to_owned(),
        FileName::RecoveryPoints => "recovery-point-offset-checkpoint".to_owned(),
        FileName::LogStarts => "log-start-offset-checkpoint".to_owned(),
        FileName::CleanShutdown => ".kafka_cleanshutdown".to_owned(),
        FileName::MetaProperties => "meta.properties".to_owned(),
        FileName::QuorumState => "quorum-state".to_owned(),
        FileName::Alignments => "alignment-checkpoint".to_owned(),
        FileName::Temp(of) => format!("{of}.tmp"),
        FileName::Cleaned(at) => format!("{at:020}.log.cleaned"),
        FileName::Swap(at) => format!("{at:020}.log.swap"),
        FileName::CleanerOffsets => "cleaner-offset-checkpoint".to_owned(),
    }
}

fn file_name(text: &str) -> Option<FileName> {
    Some(match text {
        "leader-epoch-checkpoint" => FileName::EpochCheckpoint,
        "replication-offset-checkpoint" => FileName::HighWatermarks,
        "recovery-point-offset-checkpoint" => FileName::RecoveryPoints,
        "log-start-offset-checkpoint" => FileName::LogStarts,
        ".kafka_cleanshutdown" => FileName::CleanShutdown,
        "meta.properties" => FileName::MetaProperties,
        "quorum-state" => FileName::QuorumState,
        "alignment-checkpoint" => FileName::Alignments,
        "cleaner-offset-checkpoint" => FileName::CleanerOffsets,
        _ => {
            let (number, kind) = text.rsplit_once('.')?;
            match kind {
                "log" => FileName::Segment(number.parse().ok()?),
                "snapshot" => FileName::ProducerSnapshot(number.parse().ok()?),
                "checkpoint" => FileName::MetadataSnapshot(number.parse().ok()?),
                "tmp" => FileName::Temp(number.parse().ok()?),
                "cleaned" => FileName::Cleaned(number.strip_suffix(".log")?.parse().ok()?),
                "swap" => FileName::Swap(number.strip_suffix(".log")?.parse().ok()?),
                _ => return None,
            }
        }
    })
}

impl RealDisk {
    /// A disk in this directory, which is made if it is not there.
    ///
    /// # Errors
    /// What the machine says.
    pub fn open(root: &Path) -> Result<Self, DiskError> {
        fs::create_dir_all(root).map_err(|e| told(&e))?;
        Ok(Self { root: root.to_owned(), dirs: vec![Some(DirName::Root)], files: Vec::new(), ids: BTreeMap::new() })
    }

    /// Makes a file's bytes durable.
    ///
    /// # Errors
    /// What the machine says; the bytes may or may not be durable then.
    pub fn flush(&self, file: FileId) -> Result<(), DiskError> {
        self.get(file)?.file.sync_all().map_err(|e| told(&e))
    }

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// What the machine says.
    pub fn flush_dir(&self, dir: DirId) -> Result<(), DiskError> {
        fs::File::open(self.dir_path(dir)?).and_then(|d| d.sync_all()).map_err(|e| told(&e))
    }

    fn dir_path(&self, dir: DirId) -> Result<PathBuf, DiskError> {
        let name = self.dirs.get(dir.0 as usize).copied().flatten().ok_or(DiskError::NotFound)?;
        Ok(dir_text(name).map_or_else(|| self.root.clone(), |text| self.root.join(text)))
    }

    fn path(&self, dir: DirId, name: FileName) -> Result<PathBuf, DiskError> {
        Ok(self.dir_path(dir)?.join(file_text(name)))
    }

    fn get(&self, file: FileId) -> Result<&Open, DiskError> {
        self.files.get(file.0 as usize).and_then(Option::as_ref).ok_or(DiskError::NotFound)
    }

    fn get_mut(&mut self, file: FileId) -> Result<&mut Open, DiskError> {
        self.files.get_mut(file.0 as usize).and_then(Option::as_mut).ok_or(DiskError::NotFound)
    }

    fn keep(&mut self, open: Open) -> FileId {
        let id = FileId(self.files.len() as u32);
        self.ids.insert((open.dir, open.name), id);
        self.files.push(Some(open));
        id
    }

    fn forget(&mut self, dir: DirId, name: FileName) {
        if let Some(id) = self.ids.remove(&(dir, name)) {
            self.files[id.0 as usize] = None;
        }
    }
}

/// Borders of the record batches of a segment; what is no batch, and any other file, is one piece.
fn borders(file: &mut fs::File, name: FileName) -> io::Result<Vec<u64>> {
    let len = file.metadata()?.len();
    let mut ends = Vec::new();
    let mut pos = 0;
    while matches!(name, FileName::Segment(_)) && pos + 12 <= len {
        let mut header = [0; 12];
        file.seek(SeekFrom::Start(pos))?;
        file.read_exact(&mut header)?;
        let [.., a, b, c, d] = header;
        let Ok(size) = u64::try_from(i32::from_be_bytes([a, b, c, d])) else { break };
        if size == 0 || pos + 12 + size > len {
            break;
        }
        pos += 12 + size;
        ends.push(pos);
    }
    if pos < len {
        ends.push(len);
    }
    Ok(ends)
}

impl Disk for RealDisk {
    fn open_dir(&mut self, name: DirName, create: bool) -> Result<DirId, DiskError> {
        if let Some(known) = self.dirs.iter().position(|d| *d == Some(name)) {
            return Ok(DirId(known as u32));
        }
        let path = dir_text(name).map_or_else(|| self.root.clone(), |text| self.root.join(text));
        if !path.is_dir() {
            if !create {
                return Err(DiskError::NotFound);
            }
            fs::create_dir(&path).map_err(|e| told(&e))?;
        }
        self.dirs.push(Some(name));
        Ok(DirId(self.dirs.len() as u32 - 1))
    }

    fn list_dirs(&self) -> Vec<DirName> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut names: Vec<DirName> = entries
            .filter(|e| e.path().is_dir())
            .filter_map(|e| dir_name(e.file_name().to_str()?))
            .chain([DirName::Root])
            .collect();
        names.sort_unstable();
        names
    }

    fn remove_dir(&mut self, dir: DirId) -> Result<(), DiskError> {
        if dir.0 == 0 {
            return Err(DiskError::Io);
        }
        fs::remove_dir_all(self.dir_path(dir)?).map_err(|e| told(&e))?;
        self.dirs[dir.0 as usize] = None;
        let inside: Vec<_> = self.ids.range((dir, FileName::Segment(i64::MIN))..).map(|(k, _)| *k).collect();
        for (of, name) in inside.into_iter().take_while(|(of, _)| *of == dir) {
            self.forget(of, name);
        }
        Ok(())
    }

    fn list(&self, dir: DirId) -> Vec<FileName> {
        let Ok(path) = self.dir_path(dir) else { return Vec::new() };
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut names: Vec<FileName> =
            entries.filter(|e| e.path().is_file()).filter_map(|e| file_name(e.file_name().to_str()?)).collect();
        names.sort_unstable();
        names
    }

    fn create(&mut self, dir: DirId, name: FileName) -> Result<FileId, DiskError> {
        let path = self.path(dir, name)?;
        let file = fs::OpenOptions::new().read(true).write(true).create_new(true).open(path).map_err(|e| told(&e))?;
        Ok(self.keep(Open { dir, name, file, ends: Vec::new() }))
    }

    fn open(&mut self, dir: DirId, name: FileName) -> Result<FileId, DiskError> {
        let path = self.path(dir, name)?;
        if let Some(id) = self.ids.get(&(dir, name)) {
            return Ok(*id);
        }
        let mut file = fs::OpenOptions::new().read(true).write(true).open(path).map_err(|e| told(&e))?;
        let ends = borders(&mut file, name).map_err(|e| told(&e))?;
        Ok(self.keep(Open { dir, name, file, ends }))
    }

    fn rename(&mut self, dir: DirId, file: FileId, to: FileName) -> Result<(), DiskError> {
        let open = self.get(file)?;
        let from = open.name;
        if open.dir != dir {
            return Err(DiskError::NotFound);
        }
        if from == to {
            return Ok(());
        }
        fs::rename(self.path(dir, from)?, self.path(dir, to)?).map_err(|e| told(&e))?;
        self.forget(dir, to);
        self.ids.remove(&(dir, from));
        self.ids.insert((dir, to), file);
        self.get_mut(file)?.name = to;
        Ok(())
    }

    fn remove(&mut self, dir: DirId, name: FileName) -> Result<(), DiskError> {
        fs::remove_file(self.path(dir, name)?).map_err(|e| told(&e))?;
        self.forget(dir, name);
        Ok(())
    }

    fn len(&self, file: FileId) -> u64 {
        self.get(file).ok().and_then(|open| open.ends.last().copied()).unwrap_or(0)
    }

    fn append(&mut self, file: FileId, bytes: Bytes) -> Result<u64, DiskError> {
        let at = self.len(file);
        let open = self.get_mut(file)?;
        if bytes.is_empty() {
            return Ok(at);
        }
        let written = open.file.seek(SeekFrom::Start(at)).and_then(|_| open.file.write_all(&bytes));
        // After an error a prefix may be there.
        let end = match written {
            Ok(()) => at + bytes.len() as u64,
            Err(_) => open.file.metadata().map_or(at, |m| m.len()),
        };
        if end > at {
            open.ends.push(end);
        }
        written.map(|()| at).map_err(|e| told(&e))
    }

    fn read(&self, file: FileId, pos: u64, max: u64, out: &mut Vec<Bytes>) -> Result<u64, DiskError> {
        let open = self.get(file)?;
        let mut at = pos;
        for end in &open.ends[open.ends.partition_point(|end| *end <= pos)..] {
            if at > pos && end - pos > max {
                break;
            }
            let mut piece = vec![0; (end - at) as usize];
            let mut handle = &open.file;
            handle.seek(SeekFrom::Start(at)).and_then(|_| handle.read_exact(&mut piece)).map_err(|e| told(&e))?;
            out.push(piece.into());
            at = *end;
        }
        Ok(at - pos)
    }

    fn truncate(&mut self, file: FileId, len: u64) -> Result<(), DiskError> {
        if len >= self.len(file) {
            return self.get(file).map(|_| ());
        }
        let open = self.get_mut(file)?;
        open.file.set_len(len).map_err(|e| told(&e))?;
        let whole = open.ends.partition_point(|end| *end <= len);
        open.ends.truncate(whole);
        if len > open.ends.last().copied().unwrap_or(0) {
            open.ends.push(len);
        }
        Ok(())
    }
}
