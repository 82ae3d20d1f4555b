//! What a crash leaves. A killed process loses nothing that it wrote; a power loss loses what was not flushed, or part of it.
//!
//! Every file and directory loses on its own, by a draw of its own: all, nothing, up to a border between appends, within an
//! append, or worse: the length is there and the bytes are not (size written before data), or a page in the middle is
//! missing while later ones are there (pages are written in any order).

use super::node::{NodeDisk, DIRTY, LINKED};
use super::store::Store;
use super::tree::ROOT_DIR;
use crate::rng::{Concern, Stream};

/// What becomes of what was not flushed, as weights of a draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrashRules {
    /// All unflushed bytes are lost.
    pub lost: u32,
    /// All are there.
    pub kept: u32,
    /// Cut between two appends.
    pub border: u32,
    /// Cut within an append.
    pub torn: u32,
    /// Cut somewhere, and the last piece has zeros or noise instead of bytes.
    pub garbage: u32,
    /// All are there but one append, which is zeros.
    pub hole: u32,
    /// The length is there, and the last piece has noise instead of bytes.
    pub spoilt: u32,
    /// Probability that a truncation that was not flushed is undone.
    pub truncation_undone: f64,
    /// Weights of a directory: no unflushed change is there, all are, some first ones are.
    pub names: [u32; 3],
}

impl Default for CrashRules {
    fn default() -> Self {
        Self {
            lost: 6,
            kept: 4,
            border: 4,
            torn: 4,
            garbage: 1,
            hole: 1,
            spoilt: 0,
            truncation_undone: 0.5,
            names: [2, 1, 1],
        }
    }
}

impl CrashRules {
    /// Nothing unflushed survives.
    #[must_use]
    pub fn strict() -> Self {
        let none = Self { lost: 1, kept: 0, border: 0, torn: 0, garbage: 0, hole: 0, ..Self::default() };
        Self { truncation_undone: 1.0, names: [1, 0, 0], ..none }
    }
    /// Every file that was written to ends within an append, or with noise.
    #[must_use]
    pub fn torn_tails() -> Self {
        Self { lost: 0, kept: 0, border: 0, torn: 3, garbage: 1, hole: 0, ..Self::default() }
    }
    /// Every file that was written to is as long as it was, and ends with noise.
    #[must_use]
    pub fn spoilt_tails() -> Self {
        Self { lost: 0, kept: 0, border: 0, torn: 0, garbage: 0, hole: 0, spoilt: 1, ..Self::default() }
    }
    /// Directories are as they were flushed last; what files hold is there.
    #[must_use]
    pub fn names_lost() -> Self {
        let kept = Self { lost: 0, kept: 1, border: 0, torn: 0, garbage: 0, hole: 0, ..Self::default() };
        Self { truncation_undone: 0.0, names: [1, 0, 0], ..kept }
    }
}

/// What a power loss did, in counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerLoss {
    /// Files that have another content than before, or none.
    pub files: u32,
    /// Bytes that were there and are not, or are others.
    pub bytes: u64,
    /// Truncations that were undone.
    pub truncations_undone: u32,
    /// Directories that lost changes of names.
    pub dirs: u32,
}

impl NodeDisk {
    /// The process is gone; the page cache stays. Flushes in flight are told to nobody and promise nothing.
    pub fn kill(&mut self, store: &mut Store) {
        self.drop_flushes(store);
    }

    /// The power is gone. What stays is durable.
    pub fn power_loss(&mut self, store: &mut Store, rules: &CrashRules) -> PowerLoss {
        self.drop_flushes(store);
        self.crashes += 1;
        let mut loss = PowerLoss::default();
        self.lose_dirs(store, rules, &mut loss);
        for dir in std::mem::take(&mut self.dirty_dirs) {
            self.tree.dirs[dir as usize].listed = false;
            self.lose_names(store, dir, rules, &mut loss);
        }
        let mut files = std::mem::take(&mut self.dirty);
        files.extend(self.extras.keys());
        files.sort_unstable();
        files.dedup();
        for file in files {
            self.lose_bytes(store, file, rules, &mut loss);
        }
        self.used = self.files.iter().filter(|(_, f)| f.flags & LINKED != 0).map(|(_, f)| f.image.len).sum();
        loss
    }

    fn changes_kept(draw: &mut Stream, rules: &CrashRules, changes: usize) -> usize {
        match draw.weighted(&rules.names) {
            Some(1) => changes,
            Some(2) => draw.between(0, changes as u64) as usize,
            _ => 0,
        }
    }

    /// Directories made or removed: the first ones of these changes are there.
    fn lose_dirs(&mut self, store: &mut Store, rules: &CrashRules, loss: &mut PowerLoss) {
        let changes = std::mem::take(&mut self.tree.changes);
        // Another stream than that of the names in the root itself.
        let mut draw = self.seed.stream(Concern::DiskCrash, u64::from(self.node.0), self.crashes);
        let kept = Self::changes_kept(&mut draw, rules, changes.len());
        for change in changes[kept..].iter().rev() {
            loss.dirs += 1;
            if change.made {
                self.tree.unlink(change.dir);
                self.destroy_dir(store, change.dir);
            } else {
                self.tree.link(change.dir);
            }
        }
        for change in changes[..kept].iter().filter(|c| !c.made) {
            self.destroy_dir(store, change.dir);
        }
    }

    /// Names in a directory: the first ones of its changes are there.
    fn lose_names(&mut self, store: &mut Store, dir: u32, rules: &CrashRules, loss: &mut PowerLoss) {
        self.tree.dirs[dir as usize].write_down();
        let changes = self.tree.dirs[dir as usize].unflushed.as_ref().map_or(0, |u| u.changes.len());
        if changes == 0 {
            return;
        }
        let mut draw = self.dir_stream(Concern::DiskCrash, dir, self.crashes);
        let kept = Self::changes_kept(&mut draw, rules, changes);
        loss.dirs += u32::from(kept < changes);
        let mut known = self.tree.dirs[dir as usize].fall_back(kept);
        known.sort_unstable();
        known.dedup();
        for file in known {
            let named = self.tree.dirs[dir as usize].entries.has_file(file);
            if let Some(f) = self.files.get_mut(file) {
                f.flags = if named { f.flags | LINKED } else { f.flags & !LINKED };
            }
            if !named {
                self.free(store, file);
            }
        }
    }

    fn lose_bytes(&mut self, store: &mut Store, file: u32, rules: &CrashRules, loss: &mut PowerLoss) {
        let mut draw = self.file_stream(Concern::DiskCrash, file, self.crashes);
        let Some(f) = self.files.get_mut(file) else { return };
        f.flags &= !DIRTY;
        let mut extra = self.extras.remove(&file).unwrap_or_default();
        let mut image = f.image;
        let mut lost = 0;
        let undo = extra.undo.take();
        match undo {
            Some(undo) if draw.chance(rules.truncation_undone) => {
                loss.truncations_undone += 1;
                lost += image.len - f.durable;
                store.release(&mut image);
                image = undo;
            }
            undo => {
                if let Some(mut undo) = undo {
                    store.release(&mut undo);
                }
                lost += lose_tail(store, &mut image, f.durable, rules, &mut draw);
                lost += extra.spoil(store, &mut image);
            }
        }
        loss.files += u32::from(lost > 0 || image != f.image);
        loss.bytes += lost;
        f.image = image;
        f.durable = image.len;
    }
}

/// Loses what is beyond `durable`, or part of it; returns how many bytes.
fn lose_tail(
    store: &mut Store,
    image: &mut super::store::Image,
    durable: u64,
    rules: &CrashRules,
    draw: &mut Stream,
) -> u64 {
    let len = image.len;
    if durable >= len {
        return 0;
    }
    let first = store.ends_by(image, durable);
    let CrashRules { lost, kept, border, torn, garbage, hole, spoilt, .. } = *rules;
    let mut broken = 0;
    match draw.weighted(&[lost, kept, border, torn, garbage, hole, spoilt]) {
        Some(1) => {}
        Some(2) => {
            let appends = draw.between(u64::from(first), u64::from(image.appends)) as u32;
            let cut = store.end(image, appends).max(durable);
            store.cut(image, cut);
        }
        Some(3) => store.cut(image, draw.between(durable, len)),
        Some(4) => {
            store.cut(image, draw.between(durable + 1, len));
            let last = store.end(image, image.appends - 1).max(durable);
            let from = draw.between(last, image.len - 1);
            let mut noise = draw.chance(0.5).then_some(*draw);
            broken = image.len - from;
            store.rewrite(image, from, u64::MAX, |bytes| match &mut noise {
                Some(noise) => rand::RngCore::fill_bytes(noise, bytes),
                None => bytes.fill(0),
            });
        }
        Some(5) => {
            let at = draw.between(u64::from(first), u64::from(image.appends) - 1) as u32;
            let (from, to) = (store.end(image, at).max(durable), store.end(image, at + 1));
            broken = to - from;
            store.rewrite(image, from, to, |bytes| bytes.fill(0));
        }
        Some(6) => {
            let last = store.end(image, image.appends - 1).max(durable);
            let from = draw.between(last, len - 1);
            broken = len - from;
            let mut noise = *draw;
            store.rewrite(image, from, u64::MAX, |bytes| rand::RngCore::fill_bytes(&mut noise, bytes));
        }
        _ => store.cut(image, durable),
    }
    len - image.len + broken
}

/// The root's own names are changed like those of any directory; only its directories are special.
const _: () = assert!(ROOT_DIR == 0);
