//! Names: directories, their entries, and which of both are durable.
//!
//! A new name survives a power loss only after a flush of the directory that holds it, and so does the absence of an old one.
//! What a directory went through since its last flush is kept as a journal in order: a power loss keeps a prefix of it, as
//! journaling file systems do, and different directories lose independently. Names of directories are entries of the root.

use super::push_tight;
use mirrorlab_model::ids::TopicLife;
use mirrorlab_model::ports::{DirId, DirName, FileId, FileName};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Changes kept per directory before the oldest are taken for durable: the kernel writes back in the end.
const JOURNAL_MAX: usize = 256;

/// A file name in 12 bytes, in the order of [`FileName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    tag: u8,
    high: i32,
    low: u32,
}

impl Key {
    pub(crate) fn of(name: FileName) -> Self {
        let (tag, number) = match name {
            FileName::Segment(at) => (0, at),
            FileName::ProducerSnapshot(at) => (1, at),
            FileName::MetadataSnapshot(at) => (2, at),
            FileName::EpochCheckpoint => (3, 0),
            FileName::HighWatermarks => (4, 0),
            FileName::RecoveryPoints => (5, 0),
            FileName::LogStarts => (6, 0),
            FileName::CleanShutdown => (7, 0),
            FileName::MetaProperties => (8, 0),
            FileName::QuorumState => (10, 0),
            FileName::Alignments => (11, 0),
            FileName::Temp(of) => (12, i64::from(of)),
            FileName::Cleaned(at) => (13, at),
            FileName::Swap(at) => (14, at),
            FileName::CleanerOffsets => (15, 0),
        };
        Self { tag, high: (number >> 32) as i32, low: number as u32 }
    }

    pub(crate) fn name(self) -> FileName {
        let number = i64::from(self.high) << 32 | i64::from(self.low);
        match self.tag {
            0 => FileName::Segment(number),
            1 => FileName::ProducerSnapshot(number),
            2 => FileName::MetadataSnapshot(number),
            3 => FileName::EpochCheckpoint,
            4 => FileName::HighWatermarks,
            5 => FileName::RecoveryPoints,
            6 => FileName::LogStarts,
            7 => FileName::CleanShutdown,
            8 => FileName::MetaProperties,
            10 => FileName::QuorumState,
            11 => FileName::Alignments,
            13 => FileName::Cleaned(number),
            14 => FileName::Swap(number),
            15 => FileName::CleanerOffsets,
            _ => FileName::Temp(number as u8),
        }
    }

    /// Names the file among those of its directory, for streams of draws.
    pub(crate) fn number(self) -> u64 {
        (u64::from(self.tag) << 56) ^ (i64::from(self.high) << 32 | i64::from(self.low)) as u64
    }
}

/// A name and the file that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) file: u32,
}

/// Entries in order of name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entries(SmallVec<[Entry; 2]>);

impl Entries {
    pub(crate) fn get(&self, key: Key) -> Option<u32> {
        self.0.binary_search_by_key(&key, |e| e.key).ok().map(|i| self.0[i].file)
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        self.0.iter().copied()
    }
    pub(crate) fn has_file(&self, file: u32) -> bool {
        self.0.iter().any(|e| e.file == file)
    }
    pub(crate) fn key_of(&self, file: u32) -> Option<Key> {
        self.0.iter().find(|e| e.file == file).map(|e| e.key)
    }
    fn put(&mut self, entry: Entry) {
        match self.0.binary_search_by_key(&entry.key, |e| e.key) {
            Ok(i) => self.0[i] = entry,
            Err(i) => {
                if self.0.len() == self.0.capacity() {
                    self.0.reserve_exact(self.0.len() / 2 + 1);
                }
                self.0.insert(i, entry);
            }
        }
    }
    fn remove(&mut self, key: Key) {
        if let Ok(i) = self.0.binary_search_by_key(&key, |e| e.key) {
            self.0.remove(i);
        }
    }
    fn heap_bytes(&self) -> usize {
        if self.0.spilled() {
            self.0.capacity() * size_of::<Entry>()
        } else {
            0
        }
    }
}

/// One change of a directory: a name goes, a name comes, or both at once (rename).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) at: u64,
    pub(crate) gone: Option<Key>,
    pub(crate) came: Option<Entry>,
}

impl Change {
    /// Applies it, and notes the files that may have no name after it.
    fn commit(&self, entries: &mut Entries, orphans: &mut Vec<u32>) {
        orphans.extend(self.gone.and_then(|key| entries.get(key)));
        orphans.extend(self.came.and_then(|entry| entries.get(entry.key)));
        orphans.extend(self.came.map(|entry| entry.file));
        self.apply(entries);
    }

    fn apply(&self, entries: &mut Entries) {
        if let Some(key) = self.gone {
            entries.remove(key);
        }
        if let Some(entry) = self.came {
            entries.put(entry);
        }
    }
}

/// What a directory holds durably, and what it went through since.
#[derive(Clone, Debug)]
pub(crate) struct Unflushed {
    pub(crate) durable: Entries,
    pub(crate) changes: Vec<Change>,
}

/// A directory: its name, packed; entries as processes see them; what is not durable yet.
#[derive(Clone, Debug)]
pub(crate) struct Dir {
    /// Index into [`Tree::topics`], or one of the two markers below.
    topic: u32,
    partition: u32,
    pub(crate) entries: Entries,
    pub(crate) unflushed: Option<Box<Unflushed>>,
    /// Processes see it.
    pub(crate) linked: bool,
    /// It stands in the node's list of directories that were changed since the last write-back.
    pub(crate) listed: bool,
    /// Made since the last flush, and files were created in it, nothing else: then nothing in it is durable, and its history
    /// is its entries in order of file id. A hundred thousand new partitions need no journal each.
    pub(crate) fresh: bool,
}

const ROOT: u32 = u32::MAX;
const METADATA: u32 = u32::MAX - 1;

impl Dir {
    /// Makes a change. Returns files that may have lost their last name by it, also as far as a power loss goes.
    pub(crate) fn change(&mut self, change: Change) -> Vec<u32> {
        if self.fresh && change.gone.is_none() {
            change.apply(&mut self.entries);
            return Vec::new();
        }
        self.write_down();
        let durable = &self.entries;
        let unflushed =
            self.unflushed.get_or_insert_with(|| Box::new(Unflushed { durable: durable.clone(), changes: Vec::new() }));
        push_tight(&mut unflushed.changes, change);
        let mut orphans = Vec::new();
        if unflushed.changes.len() > JOURNAL_MAX {
            for old in unflushed.changes.drain(..JOURNAL_MAX / 2) {
                old.commit(&mut unflushed.durable, &mut orphans);
            }
        }
        change.apply(&mut self.entries);
        orphans
    }

    /// A number that depends on this directory only, for streams of draws.
    pub(crate) fn moment(&self) -> u64 {
        let changes = self.unflushed.as_ref().map_or(0, |u| u.changes.len());
        crate::rng::join(self.entries.0.len() as u64, changes as u64)
    }

    /// A fresh directory gets the journal that it was spared.
    pub(crate) fn write_down(&mut self) {
        if !std::mem::take(&mut self.fresh) || self.entries.0.is_empty() {
            return;
        }
        let mut created: Vec<Entry> = self.entries.iter().collect();
        created.sort_unstable_by_key(|e| e.file);
        let changes = created.into_iter().map(|e| Change { at: 0, gone: None, came: Some(e) }).collect();
        self.unflushed = Some(Box::new(Unflushed { durable: Entries::default(), changes }));
    }

    /// Changes before `upto` are durable now. Returns files that may have no name any more.
    pub(crate) fn commit(&mut self, upto: u64) -> Vec<u32> {
        self.fresh = false;
        let Some(unflushed) = self.unflushed.as_mut() else { return Vec::new() };
        let mut orphans = Vec::new();
        let many = unflushed.changes.partition_point(|c| c.at < upto);
        for change in unflushed.changes.drain(..many) {
            change.commit(&mut unflushed.durable, &mut orphans);
        }
        if unflushed.changes.is_empty() {
            self.unflushed = None;
        }
        orphans
    }

    /// Power loss after the first `kept` unflushed changes reached the device. Returns the files known before.
    pub(crate) fn fall_back(&mut self, kept: usize) -> Vec<u32> {
        let Some(mut unflushed) = self.unflushed.take() else { return Vec::new() };
        let mut known = unflushed.files();
        known.extend(self.entries.iter().map(|e| e.file));
        for change in unflushed.changes.iter().take(kept) {
            change.apply(&mut unflushed.durable);
        }
        self.entries = unflushed.durable;
        known
    }

    /// True if the file has, had durably, or may have after a power loss, a name here.
    pub(crate) fn knows(&self, file: u32) -> bool {
        self.entries.has_file(file)
            || self.unflushed.as_ref().is_some_and(|u| {
                u.durable.has_file(file) || u.changes.iter().any(|c| c.came.is_some_and(|e| e.file == file))
            })
    }
}

impl Unflushed {
    pub(crate) fn files(&self) -> Vec<u32> {
        self.durable.iter().chain(self.changes.iter().filter_map(|c| c.came)).map(|e| e.file).collect()
    }
}

/// A directory was made or removed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreeChange {
    pub(crate) at: u64,
    pub(crate) dir: u32,
    pub(crate) made: bool,
}

#[derive(Clone, Debug)]
struct TopicDirs {
    life: TopicLife,
    /// Partition number and directory, in order.
    dirs: SmallVec<[(u32, u32); 2]>,
}

/// All directories of a disk.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) dirs: Vec<Dir>,
    topics: Vec<TopicDirs>,
    by_topic: BTreeMap<TopicLife, u32>,
    metadata: Option<u32>,
    /// Directories made and removed since the last flush of the root.
    pub(crate) changes: Vec<TreeChange>,
}

/// The root is there from the beginning.
pub(crate) const ROOT_DIR: u32 = 0;

impl Tree {
    pub(crate) fn new() -> Self {
        let root = Dir {
            topic: ROOT,
            partition: 0,
            entries: Entries::default(),
            unflushed: None,
            linked: true,
            listed: false,
            fresh: false,
        };
        Self { dirs: vec![root], topics: Vec::new(), by_topic: BTreeMap::new(), metadata: None, changes: Vec::new() }
    }

    /// Nothing is there any more. Directory ids go on.
    pub(crate) fn clear(&mut self) {
        for dir in &mut self.dirs {
            dir.entries = Entries::default();
            dir.unflushed = None;
            dir.linked = dir.topic == ROOT;
            dir.listed = false;
            dir.fresh = false;
        }
        for topic in &mut self.topics {
            topic.dirs.clear();
        }
        self.metadata = None;
        self.changes.clear();
    }

    pub(crate) fn get(&self, dir: DirId) -> Option<&Dir> {
        self.dirs.get(dir.0 as usize).filter(|d| d.linked)
    }

    pub(crate) fn find(&self, name: DirName) -> Option<u32> {
        match name {
            DirName::Root => Some(ROOT_DIR),
            DirName::Metadata => self.metadata,
            DirName::Partition { topic, partition } => {
                let dirs = &self.topics[*self.by_topic.get(&topic)? as usize].dirs;
                dirs.binary_search_by_key(&partition, |d| d.0).ok().map(|i| dirs[i].1)
            }
        }
    }

    pub(crate) fn name(&self, dir: u32) -> DirName {
        let dir = &self.dirs[dir as usize];
        match dir.topic {
            ROOT => DirName::Root,
            METADATA => DirName::Metadata,
            topic => DirName::Partition { topic: self.topics[topic as usize].life, partition: dir.partition },
        }
    }

    /// Names of all linked directories, in order.
    pub(crate) fn list(&self) -> Vec<DirName> {
        let partitions = self.by_topic.iter().flat_map(|(id, topic)| {
            self.topics[*topic as usize].dirs.iter().map(|d| DirName::Partition { topic: *id, partition: d.0 })
        });
        let metadata = self.metadata.map(|_| DirName::Metadata);
        std::iter::once(DirName::Root).chain(partitions).chain(metadata).collect()
    }

    /// Makes a new directory; the caller records the change.
    pub(crate) fn make(&mut self, name: DirName) -> u32 {
        let (topic, partition) = match name {
            DirName::Root => return ROOT_DIR,
            DirName::Metadata => (METADATA, 0),
            DirName::Partition { topic, partition } => {
                let topics = &mut self.topics;
                let index = *self.by_topic.entry(topic).or_insert_with(|| {
                    topics.push(TopicDirs { life: topic, dirs: SmallVec::new() });
                    topics.len() as u32 - 1
                });
                (index, partition)
            }
        };
        let dir = Dir {
            topic,
            partition,
            entries: Entries::default(),
            unflushed: None,
            linked: false,
            listed: false,
            fresh: true,
        };
        push_tight(&mut self.dirs, dir);
        let dir = self.dirs.len() as u32 - 1;
        self.link(dir);
        dir
    }

    /// Makes a directory visible under its name.
    pub(crate) fn link(&mut self, dir: u32) {
        let d = &mut self.dirs[dir as usize];
        d.linked = true;
        match d.topic {
            ROOT => {}
            METADATA => self.metadata = Some(dir),
            topic => {
                let dirs = &mut self.topics[topic as usize].dirs;
                match dirs.binary_search_by_key(&d.partition, |e| e.0) {
                    Ok(i) => dirs[i].1 = dir,
                    Err(i) => {
                        if dirs.len() == dirs.capacity() {
                            dirs.reserve_exact(dirs.len() / 8 + 2);
                        }
                        dirs.insert(i, (d.partition, dir));
                    }
                }
            }
        }
    }

    /// Takes a directory's name away.
    pub(crate) fn unlink(&mut self, dir: u32) {
        let d = &mut self.dirs[dir as usize];
        d.linked = false;
        match d.topic {
            ROOT => {}
            METADATA => self.metadata = self.metadata.filter(|m| *m != dir),
            topic => self.topics[topic as usize].dirs.retain(|e| e.1 != dir),
        }
    }

    /// Names the directory for streams of draws.
    pub(crate) fn number(&self, dir: u32) -> u64 {
        match self.name(dir) {
            DirName::Root => 1,
            DirName::Metadata => 2,
            DirName::Partition { topic, partition } => {
                // Lives of one id draw alike, which does no harm.
                crate::rng::join((topic.id.0 as u64) ^ (topic.id.0 >> 64) as u64, u64::from(partition))
            }
        }
    }

    /// The name of a file in its directory, and the directory.
    pub(crate) fn name_of(&self, dir: u32, file: FileId) -> Option<(DirName, FileName)> {
        let key = self.dirs.get(dir as usize)?.entries.key_of(file.0)?;
        Some((self.name(dir), key.name()))
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let dirs: usize = self
            .dirs
            .iter()
            .map(|d| {
                d.entries.heap_bytes()
                    + d.unflushed.as_ref().map_or(0, |u| {
                        size_of::<Unflushed>() + u.durable.heap_bytes() + u.changes.capacity() * size_of::<Change>()
                    })
            })
            .sum();
        let topics: usize = self.topics.iter().map(|t| if t.dirs.spilled() { t.dirs.capacity() * 8 } else { 0 }).sum();
        dirs + topics
            + self.dirs.capacity() * size_of::<Dir>()
            + self.topics.capacity() * size_of::<TopicDirs>()
            + self.by_topic.len() * 32
            + self.changes.capacity() * size_of::<TreeChange>()
    }
}
