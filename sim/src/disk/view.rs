//! A node's disk as its process sees it: `ports::Disk`, with the time that the calls take.

use super::node::{DiskModel, NodeDisk};
use super::store::Store;
use bytes::Bytes;
use mirrorlab_model::ids::Nanos;
use mirrorlab_model::ports::{DirId, DirName, Disk, DiskError, FileId, FileName};
use std::cell::Cell;

/// The disk of one node for the length of one task. Made by [`NodeDisk::view`].
#[derive(Debug)]
pub struct DiskView<'a> {
    node: &'a mut NodeDisk,
    store: &'a mut Store,
    /// Counted in a cell because reads cost too, and are calls on a shared disk.
    spent: Cell<u64>,
}

impl NodeDisk {
    /// The disk as a process sees it.
    pub fn view<'a>(&'a mut self, store: &'a mut Store) -> DiskView<'a> {
        DiskView { node: self, store, spent: Cell::new(0) }
    }
}

impl DiskView<'_> {
    /// The time that the calls so far took; the world charges it to the lane.
    #[must_use]
    pub fn spent(&self) -> Nanos {
        Nanos(self.spent.get())
    }

    fn charge(&self, ns: u64) {
        self.spent.set(self.spent.get().saturating_add(ns));
    }

    fn charge_names(&self) {
        self.charge(self.node.model.call.0 + self.node.model.names.0);
    }
}

impl Disk for DiskView<'_> {
    fn calls(&self) -> u32 {
        self.node.journaled() as u32
    }

    fn open_dir(&mut self, name: DirName, create: bool) -> Result<DirId, DiskError> {
        self.charge_names();
        self.node.open_dir(name, create)
    }

    fn list_dirs(&self) -> Vec<DirName> {
        let names = self.node.tree.list();
        self.charge(self.node.model.call.0 * (names.len() as u64 / 32 + 1));
        names
    }

    fn remove_dir(&mut self, dir: DirId) -> Result<(), DiskError> {
        self.charge_names();
        self.node.remove_dir(self.store, dir)
    }

    fn list(&self, dir: DirId) -> Vec<FileName> {
        let names: Vec<FileName> =
            self.node.tree.get(dir).map(|d| d.entries.iter().map(|e| e.key.name()).collect()).unwrap_or_default();
        self.charge(self.node.model.call.0 * (names.len() as u64 / 32 + 1));
        names
    }

    fn create(&mut self, dir: DirId, name: FileName) -> Result<FileId, DiskError> {
        self.charge_names();
        self.node.create(self.store, dir, name)
    }

    fn open(&mut self, dir: DirId, name: FileName) -> Result<FileId, DiskError> {
        self.charge_names();
        self.node.open(dir, name)
    }

    fn rename(&mut self, dir: DirId, file: FileId, to: FileName) -> Result<(), DiskError> {
        self.charge_names();
        self.node.rename(self.store, dir, file, to)
    }

    fn remove(&mut self, dir: DirId, name: FileName) -> Result<(), DiskError> {
        self.charge_names();
        self.node.remove(self.store, dir, name)
    }

    fn len(&self, file: FileId) -> u64 {
        self.node.linked(file).map_or(0, |f| f.image.len)
    }

    fn append(&mut self, file: FileId, bytes: Bytes) -> Result<u64, DiskError> {
        self.charge(NodeDisk::call_cost(&self.node.model, bytes.len() as u64));
        self.node.append(self.store, file, bytes)
    }

    fn read(&self, file: FileId, pos: u64, max: u64, out: &mut Vec<Bytes>) -> Result<u64, DiskError> {
        let read = self.node.read(self.store, file, pos, max, out)?;
        let model = &self.node.model;
        self.charge(NodeDisk::call_cost(model, read));
        if self.len(file) - pos.min(self.len(file)) > model.cached_tail {
            self.charge(DiskModel::transfer(read, model.read_ps_per_byte).0);
        }
        Ok(read)
    }

    fn truncate(&mut self, file: FileId, len: u64) -> Result<(), DiskError> {
        self.charge_names();
        self.node.truncate(self.store, file, len)
    }
}
