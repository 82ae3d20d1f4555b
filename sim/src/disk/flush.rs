//! Flushes: a flush makes durable what was there when it was asked for, and ends later.
//!
//! The world asks ([`NodeDisk::begin_flush`]), is told when the flush ends, and says so then ([`NodeDisk::complete_flush`]).
//! The device works on one flush at a time. A stalled device ends none until it is released. A failed flush follows what
//! Linux does (fsync errors are reported once): pages that could not be written are marked clean, so they read well, are
//! never written again, and the next flush succeeds.

use super::fault::Ops;
use super::node::{DiskModel, NodeDisk};
use super::store::{Image, Store};
use super::tree::ROOT_DIR;
use crate::rng::Concern;
use mirrorlab_model::ids::Nanos;
use mirrorlab_model::ports::{DirId, DiskError, FileId, FlushToken};
use std::collections::BTreeMap;

/// Names a flush of one disk; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A flush that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushStart {
    /// For [`NodeDisk::complete_flush`].
    pub ticket: Ticket,
    /// When it ends; `None` while the device is stalled: [`NodeDisk::release`] will tell.
    pub at: Option<Nanos>,
}

/// What became of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushEnd {
    /// It ended; the process is to be told.
    Done {
        /// The token it was asked with.
        token: FlushToken,
        /// How.
        result: Result<(), DiskError>,
    },
    /// The device is stalled: [`NodeDisk::release`] will tell a new time.
    Parked,
    /// No such flush: a crash came between. Nothing to do.
    Unknown,
}

#[derive(Clone, Debug)]
enum Target {
    File {
        id: u32,
        /// Content when the flush was asked for.
        image: Image,
        /// The least length since.
        low: u64,
        /// A later flush, or write-back, has ended already: nothing to add.
        overtaken: bool,
    },
    Dir {
        dir: u32,
        /// Covers changes of names before this one.
        upto: u64,
    },
    Gone,
}

#[derive(Clone, Debug)]
struct Pending {
    token: FlushToken,
    target: Target,
    latency: Nanos,
    bytes: u64,
    parked: bool,
}

/// The flushes of one disk that have not ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flushes {
    pending: BTreeMap<Ticket, Pending>,
    next: u64,
    device_free: Nanos,
    stalled: bool,
}

impl Flushes {
    /// A file was cut.
    pub(crate) fn truncated(&mut self, file: u32, len: u64) {
        for pending in self.pending.values_mut() {
            if let Target::File { id, low, .. } = &mut pending.target {
                if *id == file {
                    *low = (*low).min(len);
                }
            }
        }
    }

    /// Flushes of a file that were begun before `ticket` have nothing to add any more.
    fn overtake(&mut self, file: u32, ticket: Ticket) {
        for (_, pending) in self.pending.range_mut(..ticket) {
            if let Target::File { id, overtaken, .. } = &mut pending.target {
                *overtaken |= *id == file;
            }
        }
    }

    fn schedule(&mut self, ticket: Ticket, model: &DiskModel, now: Nanos) -> Option<Nanos> {
        let stalled = self.stalled;
        let pending = self.pending.get_mut(&ticket)?;
        pending.parked = stalled;
        if stalled {
            return None;
        }
        self.device_free = self.device_free.max(now) + DiskModel::transfer(pending.bytes, model.write_ps_per_byte);
        Some(self.device_free + pending.latency)
    }

    /// What flushes of one file have seen.
    pub(crate) fn images_of(&mut self, file: u32) -> impl Iterator<Item = &mut Image> + '_ {
        self.pending.values_mut().filter_map(move |p| match &mut p.target {
            Target::File { id, image, .. } if *id == file => Some(image),
            _ => None,
        })
    }

    pub(crate) fn images(&self) -> impl Iterator<Item = Image> + '_ {
        self.pending.values().filter_map(|p| match p.target {
            Target::File { image, .. } => Some(image),
            _ => None,
        })
    }
}

impl NodeDisk {
    /// A process asks to flush a file.
    pub fn begin_flush(&mut self, store: &mut Store, file: FileId, token: FlushToken, now: Nanos) -> FlushStart {
        let Some(f) = self.linked(file).copied() else { return self.begin(Target::Gone, token, 0, Nanos(0), now) };
        let target = Target::File { id: file.0, image: store.dup(f.image), low: f.image.len, overtaken: false };
        let mut draw = self.file_stream(Concern::DiskFlush, file.0, f.image.len);
        let latency = draw.heavy_tailed(self.model.flush_latency, 1.5, self.model.flush_latency_max);
        self.begin(target, token, f.image.len - f.durable, latency, now)
    }

    /// A process asks to flush a directory: the names in it; for the root, also the names of all directories.
    pub fn begin_flush_dir(&mut self, dir: DirId, token: FlushToken, now: Nanos) -> FlushStart {
        if self.tree.get(dir).is_none() {
            return self.begin(Target::Gone, token, 0, Nanos(0), now);
        }
        let d = &mut self.tree.dirs[dir.0 as usize];
        d.write_down();
        let moment = d.moment();
        let upto = self.changes + 1;
        let mut draw = self.dir_stream(Concern::DiskFlush, dir.0, moment);
        let latency = draw.heavy_tailed(self.model.flush_latency, 1.5, self.model.flush_latency_max);
        self.begin(Target::Dir { dir: dir.0, upto }, token, 0, latency, now)
    }

    fn begin(&mut self, target: Target, token: FlushToken, bytes: u64, latency: Nanos, now: Nanos) -> FlushStart {
        let ticket = Ticket(self.flushes.next);
        self.flushes.next += 1;
        self.flushes.pending.insert(ticket, Pending { token, target, latency, bytes, parked: false });
        FlushStart { ticket, at: self.flushes.schedule(ticket, &self.model, now) }
    }

    /// The time of a flush has come.
    pub fn complete_flush(&mut self, store: &mut Store, ticket: Ticket) -> FlushEnd {
        if self.flushes.stalled {
            return match self.flushes.pending.get_mut(&ticket) {
                Some(pending) => {
                    pending.parked = true;
                    FlushEnd::Parked
                }
                None => FlushEnd::Unknown,
            };
        }
        let Some(Pending { token, target, .. }) = self.flushes.pending.remove(&ticket) else {
            return FlushEnd::Unknown;
        };
        let result = match target {
            Target::Gone => Err(DiskError::NotFound),
            Target::Dir { dir, upto } => match self.may_fail(Ops::FLUSH, None) {
                Ok(()) => {
                    self.commit_dir(store, dir, upto);
                    Ok(())
                }
                error => error,
            },
            Target::File { id, mut image, low, overtaken } => {
                let result = self.may_fail(Ops::FLUSH, Some(FileId(id)));
                if overtaken || self.files.get(id).is_none() {
                    store.release(&mut image);
                } else {
                    self.flushed(store, id, image, low, result.is_err(), ticket);
                }
                result
            }
        };
        FlushEnd::Done { token, result }
    }

    fn flushed(&mut self, store: &mut Store, id: u32, mut image: Image, low: u64, failed: bool, ticket: Ticket) {
        self.flushes.overtake(id, ticket);
        let mut draw = self.file_stream(Concern::DiskError, id, image.len);
        let Some(f) = self.files.get_mut(id) else { return store.release(&mut image) };
        let before = f.durable;
        let still = low.min(image.len);
        f.durable = before.max(still);
        let extra = self.extras.entry(id).or_default();
        if failed {
            store.release(&mut image);
            // A third of the failures lose nothing, a third everything, a third a tail.
            let from = match draw.below(3) {
                0 => still,
                1 => before,
                _ => draw.between(before, still),
            };
            if from < still {
                extra.lost.push((from, still));
            }
        } else if low < image.len {
            // Cut since: what was flushed is what a power loss may bring back.
            extra.spoil(store, &mut image);
            if let Some(mut older) = extra.undo.replace(image) {
                store.release(&mut older);
            }
        } else {
            store.release(&mut image);
            if let Some(mut undo) = extra.undo.take() {
                store.release(&mut undo);
            }
        }
        if extra.is_empty() {
            self.extras.remove(&id);
        }
    }

    /// Names of a directory are durable as far as changes before `upto` go; the root's flush covers directories as well.
    pub(crate) fn commit_dir(&mut self, store: &mut Store, dir: u32, upto: u64) {
        let orphans = self.tree.dirs[dir as usize].commit(upto);
        self.free_unknown(store, dir, orphans);
        if dir != ROOT_DIR {
            return;
        }
        let many = self.tree.changes.partition_point(|c| c.at < upto);
        let changes: Vec<_> = self.tree.changes.drain(..many).collect();
        for change in changes.into_iter().filter(|c| !c.made) {
            self.destroy_dir(store, change.dir);
        }
    }

    /// A directory is gone for good, and what was in it.
    pub(crate) fn destroy_dir(&mut self, store: &mut Store, dir: u32) {
        let d = &mut self.tree.dirs[dir as usize];
        let mut known: Vec<u32> = d.entries.iter().map(|e| e.file).collect();
        known.extend(d.unflushed.take().iter().flat_map(|u| u.files()));
        d.entries = Default::default();
        for file in known {
            self.free(store, file);
        }
    }

    /// The kernel writes back all that is dirty, as it does every half minute. Costs what changed since the last time.
    pub fn write_back(&mut self, store: &mut Store) {
        for file in std::mem::take(&mut self.dirty) {
            self.flushes.overtake(file, Ticket(u64::MAX));
            let Some(f) = self.files.get_mut(file) else { continue };
            f.flags &= !super::node::DIRTY;
            f.durable = f.image.len;
            let Some(extra) = self.extras.get_mut(&file) else { continue };
            if let Some(mut undo) = extra.undo.take() {
                store.release(&mut undo);
            }
            if extra.is_empty() {
                self.extras.remove(&file);
            }
        }
        for dir in std::mem::take(&mut self.dirty_dirs) {
            self.tree.dirs[dir as usize].listed = false;
            self.commit_dir(store, dir, u64::MAX);
        }
        self.commit_dir(store, ROOT_DIR, u64::MAX);
    }

    /// From now on no flush ends.
    pub fn stall(&mut self) {
        self.flushes.stalled = true;
    }

    /// True between [`NodeDisk::stall`] and [`NodeDisk::release`].
    #[must_use]
    pub const fn stalled(&self) -> bool {
        self.flushes.stalled
    }

    /// The stall is over: the flushes that waited, and when each ends. Others end when they were to.
    pub fn release(&mut self, now: Nanos) -> Vec<(Ticket, Nanos)> {
        self.flushes.stalled = false;
        let parked: Vec<Ticket> =
            self.flushes.pending.iter().filter(|(_, p)| p.parked).map(|(ticket, _)| *ticket).collect();
        parked
            .into_iter()
            .filter_map(|ticket| Some((ticket, self.flushes.schedule(ticket, &self.model, now)?)))
            .collect()
    }

    /// Forgets all flushes: whoever asked is gone.
    pub(crate) fn drop_flushes(&mut self, store: &mut Store) {
        for (_, pending) in std::mem::take(&mut self.flushes.pending) {
            if let Target::File { mut image, .. } = pending.target {
                store.release(&mut image);
            }
        }
        self.flushes.device_free = Nanos::ZERO;
    }
}
