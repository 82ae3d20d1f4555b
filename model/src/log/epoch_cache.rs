//! Which leader epoch begins at which offset: Kafka's `LeaderEpochFileCache`, without the file.
//!
//! The table answers "where does epoch e end in this log?" (KIP-101, KIP-279), which is how two logs find the point from
//! which they differ. Both columns rise strictly.

use crate::ids::{LeaderEpoch, Offset};
use crate::wire::messages::EpochEnd;
use smallvec::SmallVec;

/// First offset of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EpochEntry {
    /// The epoch.
    pub epoch: LeaderEpoch,
    /// Where it begins.
    pub start: Offset,
}

/// The answer when nothing is known.
pub const UNDEFINED: EpochEnd = EpochEnd { epoch: LeaderEpoch::NONE, end: Offset::UNKNOWN };

/// Epochs of a log by first offset. Most logs have one.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct EpochCache {
    entries: SmallVec<[EpochEntry; 1]>,
}

impl EpochCache {
    /// All entries in order.
    #[must_use]
    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }
    /// The newest epoch, −1 for none.
    #[must_use]
    #[inline]
    pub fn latest(&self) -> LeaderEpoch {
        self.entries.last().map_or(LeaderEpoch::NONE, |entry| entry.epoch)
    }
    /// The newest epoch below `epoch`, −1 for none.
    #[must_use]
    pub fn previous(&self, epoch: LeaderEpoch) -> LeaderEpoch {
        self.floor_below(epoch).map_or(LeaderEpoch::NONE, |entry| entry.epoch)
    }
    /// The epoch of the record at `offset` (or of the next one there), −1 below the first entry.
    #[must_use]
    pub fn epoch_of(&self, offset: Offset) -> LeaderEpoch {
        let at = self.entries.partition_point(|entry| entry.start <= offset);
        at.checked_sub(1).map_or(LeaderEpoch::NONE, |at| self.entries[at].epoch)
    }

    fn floor_below(&self, epoch: LeaderEpoch) -> Option<&EpochEntry> {
        let at = self.entries.partition_point(|entry| entry.epoch < epoch);
        at.checked_sub(1).map(|at| &self.entries[at])
    }

    /// Records that `epoch` begins at `start`. Entries that do not lie strictly below in both columns are dropped; a later
    /// start of the newest epoch is ignored. Returns whether anything changed. Negative values change nothing.
    #[inline]
    pub fn assign(&mut self, epoch: LeaderEpoch, start: Offset) -> bool {
        if let Some(last) = self.entries.last() {
            if last.epoch == epoch && start >= last.start {
                return false;
            }
        }
        self.assign_new(epoch, start)
    }

    fn assign_new(&mut self, epoch: LeaderEpoch, start: Offset) -> bool {
        if epoch.0 < 0 || start.0 < 0 {
            return false;
        }
        while self.entries.last().is_some_and(|last| last.epoch >= epoch || last.start >= start) {
            self.entries.pop();
        }
        self.entries.push(EpochEntry { epoch, start });
        true
    }

    /// Drops what begins at or after `end`. Returns whether anything changed.
    pub fn truncate_from_end(&mut self, end: Offset) -> bool {
        let keep = self.entries.partition_point(|entry| entry.start < end);
        let changed = keep < self.entries.len();
        self.entries.truncate(keep);
        self.shrink();
        changed
    }

    /// Drops what ends at or below `start`; the epoch that spans it begins there now. Returns whether anything changed.
    pub fn truncate_from_start(&mut self, start: Offset) -> bool {
        let below = self.entries.partition_point(|entry| entry.start <= start);
        if below == 0 {
            return false;
        }
        self.entries.drain(..below - 1);
        let first = &mut self.entries[0];
        let changed = below > 1 || first.start != start;
        first.start = start;
        self.shrink();
        changed
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries = SmallVec::new();
    }

    fn shrink(&mut self) {
        if self.entries.spilled() && self.entries.len() <= 1 {
            self.entries.shrink_to_fit();
        }
    }

    /// Where `epoch` ends in a log that ends at `log_end`: the largest known epoch not above it, and the first offset
    /// after that (`LeaderEpochFileCache.endOffsetFor`, spec 3.7). Undefined for epoch −1 and for one above all known.
    #[must_use]
    pub fn end_offset_for(&self, epoch: LeaderEpoch, log_end: Offset) -> EpochEnd {
        // An undefined question has no answer, even when this log has no epoch either (KAFKA-6857, catalogue R22).
        if epoch == LeaderEpoch::NONE {
            return UNDEFINED;
        }
        if epoch == self.latest() {
            return EpochEnd { epoch, end: log_end };
        }
        let above = self.entries.partition_point(|entry| entry.epoch <= epoch);
        let Some(higher) = self.entries.get(above) else { return UNDEFINED };
        // Below the first known epoch the question's own epoch is named.
        let floor = above.checked_sub(1).map_or(epoch, |at| self.entries[at].epoch);
        EpochEnd { epoch: floor, end: higher.start }
    }
}

#[cfg(test)]
#[path = "epoch_cache_tests.rs"]
mod tests;
