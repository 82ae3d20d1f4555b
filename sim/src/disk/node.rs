//! One node's disk: files, their names, and the calls of `ports::Disk` on them.

use super::fault::{Faults, Ops};
use super::flush::Flushes;
use super::journal::Journal;
use super::rot::Rotten;
use super::store::{Image, Store};
use super::tree::{Change, Entry, Key, Tree, TreeChange, ROOT_DIR};
use crate::rng::{join, Concern, Seed, Stream};
use bytes::Bytes;
use mirrorlab_model::ids::{Nanos, NodeId};
use mirrorlab_model::ports::{DirId, DirName, DiskError, FileId, FileName};
use std::collections::BTreeMap;

/// What a disk costs and how fast it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskModel {
    /// Every call: the way into the kernel and back.
    pub call: Nanos,
    /// A call that changes names, on top.
    pub names: Nanos,
    /// Copying to and from the page cache, picoseconds per byte.
    pub cache_ps_per_byte: u64,
    /// Reading from the device, picoseconds per byte.
    pub read_ps_per_byte: u64,
    /// Writing to the device, picoseconds per byte: what a flush takes on top of its latency.
    pub write_ps_per_byte: u64,
    /// Bytes at the end of each file that are still in the page cache; older ones are read from the device.
    pub cached_tail: u64,
    /// The least latency of a flush.
    pub flush_latency: Nanos,
    /// The greatest latency of a flush; the law between has a heavy tail.
    pub flush_latency_max: Nanos,
}

impl Default for DiskModel {
    /// A data-centre NVMe drive: 2 GB/s written, 3 GB/s read, 100 µs to flush, now and then 20 ms.
    fn default() -> Self {
        Self {
            call: Nanos(600),
            names: Nanos::from_micros(8),
            cache_ps_per_byte: Self::ps_per_byte(8_000_000_000),
            read_ps_per_byte: Self::ps_per_byte(3_000_000_000),
            write_ps_per_byte: Self::ps_per_byte(2_000_000_000),
            cached_tail: 256 << 20,
            flush_latency: Nanos::from_micros(100),
            flush_latency_max: Nanos::from_millis(20),
        }
    }
}

impl DiskModel {
    /// Picoseconds per byte at a rate in bytes per second.
    #[must_use]
    pub const fn ps_per_byte(bytes_per_s: u64) -> u64 {
        match 1_000_000_000_000_u64.checked_div(bytes_per_s) {
            Some(ps) => ps,
            None => u64::MAX,
        }
    }

    /// What moving `bytes` takes.
    #[must_use]
    pub const fn transfer(bytes: u64, ps_per_byte: u64) -> Nanos {
        Nanos(bytes.saturating_mul(ps_per_byte) / 1_000)
    }
}

/// In use.
pub(crate) const LIVE: u8 = 1;
/// Has a name that processes see.
pub(crate) const LINKED: u8 = 2;
/// Content goes into lineages from the first append on.
pub(crate) const PAGED: u8 = 4;
/// Stands in the list of files written since the last write-back.
pub(crate) const DIRTY: u8 = 8;

/// A file: what processes read, and how much of it is surely on the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    pub(crate) image: Image,
    /// The first so many bytes are durable; what a failed flush lost among them is in [`Extra::lost`].
    pub(crate) durable: u64,
    pub(crate) dir: u32,
    pub(crate) flags: u8,
}

impl File {
    const DEAD: Self = Self { image: Image::NONE, durable: 0, dir: 0, flags: 0 };
}

/// What few files have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    /// The durable content before a truncation that is not durable.
    pub(crate) undo: Option<Image>,
    /// Ranges that a failed flush left in the page cache only, marked clean: no later flush writes them.
    pub(crate) lost: Vec<(u64, u64)>,
}

impl Extra {
    pub(crate) fn is_empty(&self) -> bool {
        self.undo.is_none() && self.lost.is_empty()
    }
    /// Makes of what the page cache holds what the device holds.
    pub(crate) fn spoil(&self, store: &mut Store, image: &mut Image) -> u64 {
        let mut lost = 0;
        for (from, to) in &self.lost {
            lost += to.min(&image.len).saturating_sub(*from);
            store.rewrite(image, *from, *to, |bytes| bytes.fill(0));
        }
        lost
    }
}

const PAGE: usize = 64;

#[derive(Clone, Debug)]
struct Page {
    live: u32,
    files: [File; PAGE],
}

/// Files by id. Ids are never reused, so pages whose files are all gone are given back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    pages: Vec<Option<Box<Page>>>,
    next: u32,
}

impl Files {
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&File> {
        let page = self.pages.get(id as usize / PAGE)?.as_ref()?;
        Some(&page.files[id as usize % PAGE]).filter(|f| f.flags & LIVE != 0)
    }
    #[inline]
    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut File> {
        let page = self.pages.get_mut(id as usize / PAGE)?.as_mut()?;
        Some(&mut page.files[id as usize % PAGE]).filter(|f| f.flags & LIVE != 0)
    }
    fn add(&mut self, file: File) -> u32 {
        let id = self.next;
        self.next += 1;
        if id as usize / PAGE >= self.pages.len() {
            self.pages.push(None);
        }
        let page =
            self.pages[id as usize / PAGE].get_or_insert_with(|| Box::new(Page { live: 0, files: [File::DEAD; PAGE] }));
        page.live += 1;
        page.files[id as usize % PAGE] = file;
        id
    }
    fn remove(&mut self, id: u32) -> Option<File> {
        let slot = self.pages.get_mut(id as usize / PAGE)?;
        let page = slot.as_mut()?;
        let file = std::mem::replace(&mut page.files[id as usize % PAGE], File::DEAD);
        if file.flags & LIVE == 0 {
            return None;
        }
        page.live -= 1;
        // The newest page is still being filled.
        if page.live == 0 && self.next as usize / PAGE > id as usize / PAGE {
            *slot = None;
        }
        Some(file)
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &File)> + '_ {
        self.pages.iter().enumerate().filter_map(|(n, page)| Some((n, page.as_ref()?))).flat_map(|(n, page)| {
            page.files
                .iter()
                .enumerate()
                .map(move |(i, f)| ((n * PAGE + i) as u32, f))
                .filter(|(_, f)| f.flags & LIVE != 0)
        })
    }
    fn heap_bytes(&self) -> usize {
        self.pages.capacity() * 8 + self.pages.iter().flatten().count() * size_of::<Page>()
    }
}

/// The disk of one node. Its content is in the world's [`Store`], which every call is handed: always the same one.
///
/// `Clone` is meant for a world that clones its store as well.
#[derive(Clone, Debug)]
pub struct NodeDisk {
    pub(crate) node: NodeId,
    pub(crate) seed: Seed,
    pub(crate) model: DiskModel,
    pub(crate) files: Files,
    pub(crate) tree: Tree,
    pub(crate) extras: BTreeMap<u32, Extra>,
    pub(crate) used: u64,
    pub(crate) capacity: u64,
    /// Files and directories changed since the last write-back.
    pub(crate) dirty: Vec<u32>,
    pub(crate) dirty_dirs: Vec<u32>,
    /// Counts changes of names, so that a flush knows which it covers.
    pub(crate) changes: u64,
    pub(crate) flushes: Flushes,
    pub(crate) faults: Faults,
    pub(crate) rotten: Rotten,
    pub(crate) crashes: u64,
    pub(crate) journal: Option<Box<Journal>>,
}

impl NodeDisk {
    /// An empty disk.
    #[must_use]
    pub fn new(node: NodeId, seed: Seed, model: DiskModel) -> Self {
        Self {
            node,
            seed,
            model,
            files: Files::default(),
            tree: Tree::new(),
            extras: BTreeMap::new(),
            used: 0,
            capacity: u64::MAX,
            dirty: Vec::new(),
            dirty_dirs: Vec::new(),
            changes: 0,
            flushes: Flushes::default(),
            faults: Faults::default(),
            rotten: Rotten::default(),
            crashes: 0,
            journal: None,
        }
    }

    /// Costs and speeds.
    #[must_use]
    pub const fn model(&self) -> &DiskModel {
        &self.model
    }

    /// Changes costs and speeds from the next call on.
    pub fn set_model(&mut self, model: DiskModel) {
        self.model = model;
    }

    /// Bytes in files.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// Room for bytes in files; less than is used now is allowed, and then nothing can be written. `u64::MAX`: no bound.
    pub fn set_capacity(&mut self, bytes: u64) {
        self.capacity = bytes;
    }

    pub(crate) fn open_dir(&mut self, name: DirName, create: bool) -> Result<DirId, DiskError> {
        self.may_fail(Ops::NAMES, None)?;
        match self.tree.find(name) {
            Some(dir) => Ok(DirId(dir)),
            None if !create => Err(DiskError::NotFound),
            None if self.used >= self.capacity => Err(DiskError::Full),
            None => {
                self.journal_op();
                let dir = self.tree.make(name);
                self.change_tree(dir, true);
                Ok(DirId(dir))
            }
        }
    }

    fn change_tree(&mut self, dir: u32, made: bool) {
        let at = self.next_change();
        self.tree.changes.push(TreeChange { at, dir, made });
        if let Some(journal) = &mut self.journal {
            journal.tree(dir, made);
        }
    }

    pub(crate) fn next_change(&mut self) -> u64 {
        self.changes += 1;
        self.changes
    }

    pub(crate) fn remove_dir(&mut self, store: &mut Store, dir: DirId) -> Result<(), DiskError> {
        self.may_fail(Ops::NAMES, None)?;
        if dir.0 == ROOT_DIR {
            return Err(DiskError::Io);
        }
        let entries: Vec<Entry> = self.tree.get(dir).ok_or(DiskError::NotFound)?.entries.iter().collect();
        self.journal_op();
        for entry in entries {
            self.change_names(store, dir.0, Some(entry.key), None);
        }
        self.tree.unlink(dir.0);
        self.change_tree(dir.0, false);
        Ok(())
    }

    pub(crate) fn create(&mut self, store: &mut Store, dir: DirId, name: FileName) -> Result<FileId, DiskError> {
        self.may_fail(Ops::NAMES, None)?;
        let key = Key::of(name);
        let d = self.tree.get(dir).ok_or(DiskError::NotFound)?;
        if d.entries.get(key).is_some() {
            return Err(DiskError::Exists);
        }
        if self.used >= self.capacity {
            return Err(DiskError::Full);
        }
        self.journal_op();
        let paged = if matches!(name, FileName::Segment(_)) { PAGED } else { 0 };
        let file = self.files.add(File { image: Image::NONE, durable: 0, dir: dir.0, flags: LIVE | paged });
        self.change_names(store, dir.0, None, Some(Entry { key, file }));
        Ok(FileId(file))
    }

    pub(crate) fn open(&self, dir: DirId, name: FileName) -> Result<FileId, DiskError> {
        self.may_fail(Ops::NAMES, None)?;
        let d = self.tree.get(dir).ok_or(DiskError::NotFound)?;
        d.entries.get(Key::of(name)).map(FileId).ok_or(DiskError::NotFound)
    }

    pub(crate) fn rename(
        &mut self,
        store: &mut Store,
        dir: DirId,
        file: FileId,
        to: FileName,
    ) -> Result<(), DiskError> {
        self.may_fail(Ops::NAMES, Some(file))?;
        let from = self.tree.get(dir).and_then(|d| d.entries.key_of(file.0)).ok_or(DiskError::NotFound)?;
        let key = Key::of(to);
        if from != key {
            self.journal_op();
            self.change_names(store, dir.0, Some(from), Some(Entry { key, file: file.0 }));
        }
        Ok(())
    }

    pub(crate) fn remove(&mut self, store: &mut Store, dir: DirId, name: FileName) -> Result<(), DiskError> {
        self.may_fail(Ops::NAMES, None)?;
        let key = Key::of(name);
        self.tree.get(dir).and_then(|d| d.entries.get(key)).ok_or(DiskError::NotFound)?;
        self.journal_op();
        self.change_names(store, dir.0, Some(key), None);
        Ok(())
    }

    /// One change of a directory, with what it means for the files whose names come and go.
    fn change_names(&mut self, store: &mut Store, dir: u32, gone: Option<Key>, came: Option<Entry>) {
        self.journal_dir(dir);
        let at = self.next_change();
        let d = &mut self.tree.dirs[dir as usize];
        let losers = [gone.and_then(|key| d.entries.get(key)), came.and_then(|entry| d.entries.get(entry.key))];
        let orphans = d.change(Change { at, gone, came });
        if !d.listed {
            d.listed = true;
            self.dirty_dirs.push(dir);
        }
        for file in losers.into_iter().flatten().filter(|file| Some(*file) != came.map(|e| e.file)) {
            self.journal_file(store, file);
            if let Some(f) = self.files.get_mut(file) {
                f.flags &= !LINKED;
                self.used -= f.image.len;
            }
        }
        if let Some(f) = came.and_then(|entry| self.files.get_mut(entry.file)) {
            f.flags |= LINKED;
        }
        self.free_unknown(store, dir, orphans);
    }

    /// Frees those of the files that have no name any more, nor could get one back by a power loss.
    pub(crate) fn free_unknown(&mut self, store: &mut Store, dir: u32, files: Vec<u32>) {
        for file in files {
            if !self.tree.dirs[dir as usize].knows(file) {
                self.free(store, file);
            }
        }
    }

    /// Ends a file. While a journal is kept, that waits for the journal's end.
    pub(crate) fn free(&mut self, store: &mut Store, file: u32) {
        if let Some(journal) = &mut self.journal {
            return journal.orphan(file);
        }
        if let Some(mut f) = self.files.remove(file) {
            store.release(&mut f.image);
        }
        self.rotten.forget(file);
        self.drop_extra(store, file);
    }

    pub(crate) fn drop_extra(&mut self, store: &mut Store, file: u32) {
        if let Some(mut undo) = self.extras.remove(&file).and_then(|extra| extra.undo) {
            store.release(&mut undo);
        }
    }

    pub(crate) fn linked(&self, file: FileId) -> Option<&File> {
        self.files.get(file.0).filter(|f| f.flags & LINKED != 0)
    }

    #[inline]
    pub(crate) fn append(&mut self, store: &mut Store, file: FileId, bytes: Bytes) -> Result<u64, DiskError> {
        if self.faults.armed() || self.used.saturating_add(bytes.len() as u64) > self.capacity || self.journal.is_some()
        {
            self.append_slowly(store, file, bytes)
        } else {
            self.append_now(store, file, bytes)
        }
    }

    fn append_now(&mut self, store: &mut Store, file: FileId, bytes: Bytes) -> Result<u64, DiskError> {
        let f = self.files.get_mut(file.0).filter(|f| f.flags & LINKED != 0).ok_or(DiskError::NotFound)?;
        let at = f.image.len;
        self.used += bytes.len() as u64;
        store.extend(&mut f.image, bytes, f.flags & PAGED != 0);
        if f.flags & DIRTY == 0 {
            f.flags |= DIRTY;
            self.dirty.push(file.0);
        }
        Ok(at)
    }

    #[cold]
    fn append_slowly(&mut self, store: &mut Store, file: FileId, bytes: Bytes) -> Result<u64, DiskError> {
        let len = self.linked(file).ok_or(DiskError::NotFound)?.image.len;
        self.journal_op();
        self.journal_file(store, file.0);
        let room = self.capacity.saturating_sub(self.used);
        let (error, could) = if self.may_fail(Ops::WRITE, Some(file)).is_err() {
            (DiskError::Io, room.min(bytes.len() as u64))
        } else if bytes.len() as u64 > room {
            (DiskError::Full, room)
        } else {
            return self.append_now(store, file, bytes);
        };
        // Half of the failing writes leave a front of the bytes behind.
        let mut draw = self.file_stream(Concern::DiskError, file.0, len);
        if could > 0 && draw.chance(0.5) {
            let written = draw.between(0, could.min(bytes.len() as u64)) as usize;
            self.append_now(store, file, bytes.slice(..written))?;
        }
        Err(error)
    }

    pub(crate) fn truncate(&mut self, store: &mut Store, file: FileId, len: u64) -> Result<(), DiskError> {
        self.may_fail(Ops::WRITE, Some(file))?;
        let f = *self.linked(file).ok_or(DiskError::NotFound)?;
        if len >= f.image.len {
            return Ok(());
        }
        self.journal_op();
        self.journal_file(store, file.0);
        if len < f.durable {
            let extra = self.extras.entry(file.0).or_default();
            if extra.undo.is_none() {
                let mut undo = store.dup(f.image);
                store.cut(&mut undo, f.durable);
                extra.spoil(store, &mut undo);
                extra.undo = Some(undo);
            }
        }
        if let Some(extra) = self.extras.get_mut(&file.0) {
            extra.lost.retain_mut(|range| {
                range.1 = range.1.min(len);
                range.0 < range.1
            });
        }
        self.flushes.truncated(file.0, len);
        self.used -= f.image.len - len;
        if let Some(f) = self.files.get_mut(file.0) {
            store.cut(&mut f.image, len);
            f.durable = f.durable.min(len);
            if f.flags & DIRTY == 0 {
                f.flags |= DIRTY;
                self.dirty.push(file.0);
            }
        }
        Ok(())
    }

    pub(crate) fn read(
        &self,
        store: &Store,
        file: FileId,
        pos: u64,
        max: u64,
        out: &mut Vec<Bytes>,
    ) -> Result<u64, DiskError> {
        if self.faults.armed() {
            self.may_fail(Ops::READ, Some(file))?;
        }
        let f = self.linked(file).ok_or(DiskError::NotFound)?;
        Ok(store.read(&f.image, pos, max, out))
    }

    /// The draws about one file, named by the file's place rather than its id: other files do not move it.
    pub(crate) fn file_stream(&self, concern: Concern, file: u32, ordinal: u64) -> Stream {
        let dir = self.files.get(file).map_or(0, |f| f.dir);
        let key = self.tree.dirs.get(dir as usize).and_then(|d| d.entries.key_of(file));
        let name = key.map_or(u64::from(file), Key::number);
        self.seed.stream(concern, join(join(u64::from(self.node.0), self.tree.number(dir)), name), ordinal)
    }

    /// The draws about one directory.
    pub(crate) fn dir_stream(&self, concern: Concern, dir: u32, ordinal: u64) -> Stream {
        self.seed.stream(concern, join(u64::from(self.node.0), self.tree.number(dir)), ordinal)
    }

    /// Bytes of memory that the disk's bookkeeping takes, without the store.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.files.heap_bytes()
            + self.tree.heap_bytes()
            + self.extras.len() * 64
            + (self.dirty.capacity() + self.dirty_dirs.capacity()) * 4
    }
}
