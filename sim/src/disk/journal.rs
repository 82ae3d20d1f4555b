//! The calls of one task, so that a crash can cut the task after any of them.
//!
//! A task is one event of the simulation, but a crash of its process may strike between two of its disk calls. The world
//! learns what a task does by running it; so the node's disk keeps how to take each call back, and the world decides
//! afterwards how many of them happened. The process, which is gone then, saw all of them succeed.

use super::node::{Extra, File, NodeDisk, LIVE};
use super::store::Store;
use super::tree::{Entries, Unflushed};

#[derive(Clone, Debug)]
enum Undo {
    File { id: u32, file: File, extra: Option<Extra> },
    Dir { dir: u32, entries: Entries, unflushed: Option<Box<Unflushed>>, fresh: bool },
    Tree { dir: u32, made: bool },
}

/// How to take back the calls of a task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    /// Per call: where its undos begin, and the bytes used before it.
    calls: Vec<(usize, u64)>,
    undos: Vec<Undo>,
    orphans: Vec<u32>,
}

impl Journal {
    pub(crate) fn tree(&mut self, dir: u32, made: bool) {
        self.undos.push(Undo::Tree { dir, made });
    }
    pub(crate) fn orphan(&mut self, file: u32) {
        self.orphans.push(file);
    }
}

impl NodeDisk {
    /// From now on calls can be taken back, until [`NodeDisk::end_journal`].
    pub fn begin_journal(&mut self) {
        self.journal = Some(Box::default());
    }

    /// How many calls that change something were made since [`NodeDisk::begin_journal`].
    #[must_use]
    pub fn journaled(&self) -> usize {
        self.journal.as_ref().map_or(0, |j| j.calls.len())
    }

    /// Only the first `kept` calls since [`NodeDisk::begin_journal`] happened.
    pub fn end_journal(&mut self, store: &mut Store, kept: usize) {
        let Some(journal) = self.journal.take() else { return };
        let Journal { mut calls, mut undos, orphans } = *journal;
        if let Some((from, used)) = calls.get(kept).copied() {
            for undo in undos.drain(from..).rev() {
                self.take_back(store, undo);
            }
            self.used = used;
        }
        calls.truncate(kept);
        for undo in undos {
            if let Undo::File { mut file, extra, .. } = undo {
                store.release(&mut file.image);
                if let Some(mut image) = extra.and_then(|e| e.undo) {
                    store.release(&mut image);
                }
            }
        }
        let mut orphans = orphans;
        orphans.sort_unstable();
        orphans.dedup();
        for file in orphans {
            let dir = self.files.get(file).map_or(0, |f| f.dir);
            self.free_unknown(store, dir, vec![file]);
        }
    }

    fn take_back(&mut self, store: &mut Store, undo: Undo) {
        match undo {
            Undo::File { id, file, extra } => {
                self.drop_extra(store, id);
                if let Some(extra) = extra {
                    self.extras.insert(id, extra);
                }
                if let Some(f) = self.files.get_mut(id) {
                    let dirty = f.flags & super::node::DIRTY;
                    store.release(&mut f.image);
                    *f = File { flags: file.flags | dirty, ..file };
                }
            }
            Undo::Dir { dir, entries, unflushed, fresh } => {
                let d = &mut self.tree.dirs[dir as usize];
                let mut known: Vec<u32> = d.entries.iter().map(|e| e.file).collect();
                known.extend(d.unflushed.iter().flat_map(|u| u.files()));
                d.entries = entries;
                d.unflushed = unflushed;
                d.fresh = fresh;
                known.sort_unstable();
                known.dedup();
                self.free_unknown(store, dir, known);
            }
            Undo::Tree { dir, made } => {
                self.tree.changes.pop();
                if made {
                    self.tree.unlink(dir);
                } else {
                    self.tree.link(dir);
                }
            }
        }
    }

    pub(crate) fn journal_op(&mut self) {
        let used = self.used;
        if let Some(journal) = &mut self.journal {
            journal.calls.push((journal.undos.len(), used));
        }
    }

    pub(crate) fn journal_file(&mut self, store: &mut Store, id: u32) {
        let Some(journal) = &mut self.journal else { return };
        let Some(file) = self.files.get(id).copied().filter(|f| f.flags & LIVE != 0) else { return };
        store.dup(file.image);
        let extra = self.extras.get(&id).cloned();
        if let Some(undo) = extra.as_ref().and_then(|e| e.undo) {
            store.dup(undo);
        }
        journal.undos.push(Undo::File { id, file, extra });
    }

    pub(crate) fn journal_dir(&mut self, dir: u32) {
        let Some(journal) = &mut self.journal else { return };
        let d = &self.tree.dirs[dir as usize];
        let (entries, unflushed, fresh) = (d.entries.clone(), d.unflushed.clone(), d.fresh);
        journal.undos.push(Undo::Dir { dir, entries, unflushed, fresh });
    }
}
