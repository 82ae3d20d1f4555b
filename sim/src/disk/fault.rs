//! Faults that strike while a node runs: calls that fail, an empty disk. (Stalls: `flush`; full: capacity; bits that rot: `rot`.)

use super::node::{DiskModel, NodeDisk};
use super::store::Store;
use crate::rng::{join, Concern};
use mirrorlab_model::ports::{DiskError, FileId};
use std::cell::Cell;

/// Kinds of calls, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ops(u8);

impl Ops {
    /// `read`.
    pub const READ: Self = Self(1);
    /// `append` and `truncate`.
    pub const WRITE: Self = Self(2);
    /// `open_dir`, `remove_dir`, `create`, `open`, `rename`, `remove`.
    pub const NAMES: Self = Self(4);
    /// Flushes of files and directories.
    pub const FLUSH: Self = Self(8);
    /// All of them.
    pub const ALL: Self = Self(15);

    /// Both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Lets calls fail with `DiskError::Io`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorRule {
    /// Which calls.
    pub ops: Ops,
    /// On this file only.
    pub file: Option<FileId>,
    /// With this probability, drawn per call.
    pub chance: f64,
    /// So many failures, then no more.
    pub count: Option<u64>,
}

impl ErrorRule {
    /// The next `count` calls of these kinds fail.
    #[must_use]
    pub const fn next(ops: Ops, count: u64) -> Self {
        Self { ops, file: None, chance: 1.0, count: Some(count) }
    }
    /// Every call of these kinds on this file fails until the rule is lifted.
    #[must_use]
    pub const fn on_file(ops: Ops, file: FileId) -> Self {
        Self { ops, file: Some(file), chance: 1.0, count: None }
    }
    /// Calls of these kinds fail with this probability until the rule is lifted.
    #[must_use]
    pub const fn sometimes(ops: Ops, chance: f64) -> Self {
        Self { ops, file: None, chance, count: None }
    }
}

/// Names a rule of one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleId(u32);

/// A rule with what it has done. Counted in cells because reads count too, and a read is a call on a shared disk.
#[derive(Clone, Debug)]
struct Active {
    id: u32,
    rule: ErrorRule,
    asked: Cell<u64>,
    failed: Cell<u64>,
}

/// The rules of one disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    rules: Vec<Active>,
    next: u32,
}

impl Faults {
    #[inline]
    pub(crate) fn armed(&self) -> bool {
        !self.rules.is_empty()
    }
}

impl NodeDisk {
    /// Lets calls fail from now on.
    pub fn add_error(&mut self, rule: ErrorRule) -> RuleId {
        let id = self.faults.next;
        self.faults.next += 1;
        self.faults.rules.push(Active { id, rule, asked: Cell::new(0), failed: Cell::new(0) });
        RuleId(id)
    }

    /// Lifts a rule; returns how many calls it let fail.
    pub fn lift_error(&mut self, id: RuleId) -> u64 {
        let Some(at) = self.faults.rules.iter().position(|r| r.id == id.0) else { return 0 };
        self.faults.rules.remove(at).failed.get()
    }

    /// Whether anything is wrong with it that a fault began: errors, a stall, no room, another speed than a disk has.
    #[must_use]
    pub fn is_troubled(&self) -> bool {
        self.faults.armed() || self.stalled() || self.capacity != u64::MAX || self.model != DiskModel::default()
    }

    /// Lifts all rules.
    pub fn lift_errors(&mut self) {
        self.faults.rules.clear();
    }

    #[inline]
    pub(crate) fn may_fail(&self, op: Ops, file: Option<FileId>) -> Result<(), DiskError> {
        if self.faults.armed() && self.fails(op, file) {
            Err(DiskError::Io)
        } else {
            Ok(())
        }
    }

    #[cold]
    fn fails(&self, op: Ops, file: Option<FileId>) -> bool {
        self.faults.rules.iter().any(|active| {
            let rule = &active.rule;
            let meant = rule.ops.meets(op)
                && (rule.file.is_none() || rule.file == file)
                && rule.count.is_none_or(|count| active.failed.get() < count);
            if !meant {
                return false;
            }
            let asked = active.asked.replace(active.asked.get() + 1);
            let stream = join(u64::from(self.node.0), u64::from(active.id));
            let fails = self.seed.stream(Concern::DiskError, stream, asked).chance(rule.chance);
            active.failed.set(active.failed.get() + u64::from(fails));
            fails
        })
    }

    /// The disk is replaced by an empty one. Ids go on, so that nothing old is taken for something new.
    pub fn wipe(&mut self, store: &mut Store) {
        self.end_journal(store, usize::MAX);
        self.drop_flushes(store);
        let all: Vec<u32> = self.files.iter().map(|(id, _)| id).collect();
        for file in all {
            self.free(store, file);
        }
        self.tree.clear();
        self.dirty.clear();
        self.dirty_dirs.clear();
        self.used = 0;
    }

    /// What a call costs that moves `bytes` between process and page cache.
    #[must_use]
    pub(crate) fn call_cost(model: &DiskModel, bytes: u64) -> u64 {
        model.call.0 + DiskModel::transfer(bytes, model.cache_ps_per_byte).0
    }
}
