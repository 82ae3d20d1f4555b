//! What compaction keeps of the batches of a log: Kafka's rules (`Cleaner.cleanInto`, `checkBatchRetention`, KIP-534) over
//! batches in memory. Reading, writing and swapping files is [`super::clean`]'s.
//!
//! Offsets, leader epochs and bytes of the records that stay do not change, nor do the first and last offset of a batch that
//! stays. The whole dirty part goes into the map of newest offsets, however large: there is no dedupe buffer to run full.

use crate::guards::{log as guard, Guards};
use crate::ids::{Offset, ProducerId};
use crate::log::policy::LogPolicy;
use crate::log::producer_state::ProducerStates;
use crate::record::{rewrite, BatchView, Compression, ControlType, Rewrite};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// What is left of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// All of it.
    All,
    /// This.
    Some(Bytes),
    /// No record; the batch may have to stay as an empty one.
    Nothing,
}

/// One run over a log, from its first batch on.
pub(super) struct Sieve<'a> {
    producers: &'a ProducerStates,
    /// By key: its newest offset in the dirty part.
    newest: BTreeMap<Bytes, Offset>,
    /// First and marker offset of aborted transactions, by producer.
    aborted: BTreeMap<ProducerId, Vec<(Offset, Offset)>>,
    /// Producers of whom transactional batches were met, and no marker behind them.
    open: BTreeSet<ProducerId>,
    now_ms: i64,
    delete_retention_ms: i64,
}

impl<'a> Sieve<'a> {
    /// Knows the log's producers and its aborted transactions.
    pub(super) fn new(producers: &'a ProducerStates, policy: &LogPolicy, now_ms: i64) -> Self {
        let mut aborted: BTreeMap<ProducerId, Vec<(Offset, Offset)>> = BTreeMap::new();
        for range in producers.aborted() {
            aborted.entry(range.producer).or_default().push((range.first, range.last));
        }
        Self {
            producers,
            newest: BTreeMap::new(),
            aborted,
            open: BTreeSet::new(),
            now_ms,
            delete_retention_ms: policy.delete_retention_ms,
        }
    }

    /// A batch of the dirty part: what it says of its keys supersedes what is older.
    pub(super) fn learn(&mut self, bytes: &Bytes, batch: &BatchView<'_>, guards: &mut Guards) {
        if batch.is_control() || !guards.admits(guard::AbortedSupersedesNothing, !self.is_aborted(batch)) {
            return;
        }
        for record in batch.records().flatten() {
            if let Some(key) = record.key {
                self.newest.insert(bytes.slice_ref(key), record.offset);
            }
        }
    }

    fn is_aborted(&self, batch: &BatchView<'_>) -> bool {
        let base = batch.base_offset();
        batch.is_transactional()
            && !batch.is_control()
            && self.aborted.get(&batch.producer()).is_some_and(|all| all.iter().any(|r| r.0 <= base && base <= r.1))
    }

    /// What is left of the next batch.
    pub(super) fn judge(&mut self, batch: &BatchView<'_>, guards: &mut Guards) -> Left {
        if batch.record_count() == 0 {
            if batch.is_transactional() && !batch.is_control() {
                self.open.insert(batch.producer());
            }
            return Left::Nothing;
        }
        if batch.is_control() {
            return self.judge_control(batch, guards);
        }
        let aborted = self.is_aborted(batch);
        if batch.is_transactional() {
            self.open.insert(batch.producer());
        }
        if batch.compression() != Compression::None {
            return Left::All; // nobody here reads it
        }
        if aborted {
            return Left::Nothing;
        }
        self.judge_data(batch, guards)
    }

    /// A marker stays as long as a batch of its transaction was there when the cleaning began, and then for the tombstones'
    /// retention: a reader who has seen the transaction's beginning has to learn its end. Other control records stay for ever.
    fn judge_control(&mut self, batch: &BatchView<'_>, guards: &mut Guards) -> Left {
        if !matches!(batch.control_type(), Some(ControlType::Abort | ControlType::Commit)) {
            return Left::All;
        }
        let data = self.open.remove(&batch.producer());
        if data {
            // The mutant treats it like a record whose key was written again (T09).
            return if guards.admits(guard::MarkerOutlivesItsData, false) { Left::Nothing } else { Left::All };
        }
        match self.horizon(batch) {
            None => self.with_horizon(batch, &[]),
            Some(horizon) if horizon > self.now_ms => Left::All,
            Some(_) => Left::Nothing,
        }
    }

    fn judge_data(&self, batch: &BatchView<'_>, guards: &mut Guards) -> Left {
        let over = self.horizon(batch).is_some_and(|horizon| horizon <= self.now_ms);
        let (mut drop, mut tombstones, mut count) = (Vec::new(), false, 0);
        for record in batch.records() {
            let Ok(record) = record else { return Left::All };
            count += 1;
            let later = match record.key {
                // Kafka's cleaner drops what has no key; nobody may write it while the topic is compacted.
                None => true,
                Some(key) => {
                    let later = self.newest.get(key).is_some_and(|at| *at > record.offset);
                    guards.admits(guard::KeepsLastOfKey, later)
                }
            };
            let tombstone = record.value.is_none();
            if later || (tombstone && guards.admits(guard::KeepsTombstonesForRetention, over)) {
                drop.push(record.offset);
            } else {
                tombstones |= tombstone;
            }
        }
        if drop.len() == count {
            return Left::Nothing;
        }
        if tombstones && self.horizon(batch).is_none() {
            return self.with_horizon(batch, &drop);
        }
        if drop.is_empty() {
            return Left::All;
        }
        some(rewrite(batch, Rewrite { drop: &drop, horizon: None }))
    }

    /// When what is marked for removal in a batch may go (KIP-534).
    fn horizon(&self, batch: &BatchView<'_>) -> Option<i64> {
        batch.has_delete_horizon().then(|| batch.base_timestamp())
    }

    fn with_horizon(&self, batch: &BatchView<'_>, drop: &[Offset]) -> Left {
        let horizon = self.now_ms.saturating_add(self.delete_retention_ms);
        some(rewrite(batch, Rewrite { drop, horizon: Some(horizon) }))
    }

    /// Whether a batch without records has to stay: the last one of a producer that the log knows, with whose sequence the
    /// next has to go on after any restart.
    pub(super) fn holds_producer(&self, batch: &BatchView<'_>, guards: &mut Guards) -> bool {
        let last = self.producers.get(batch.producer()).is_some_and(|entry| {
            if entry.last_offset == Offset::UNKNOWN {
                batch.is_control() && batch.producer_epoch() == entry.epoch
            } else {
                batch.last_offset() == entry.last_offset
            }
        });
        last && !guards.admits(guard::KeepsLastBatchOfProducer, false)
    }
}

fn some(batch: Option<Bytes>) -> Left {
    // What cannot be read is not touched.
    batch.map_or(Left::All, Left::Some)
}

/// A batch without its records.
pub(super) fn emptied(batch: &BatchView<'_>) -> Option<Bytes> {
    let all: Vec<Offset> = batch.records().flatten().map(|record| record.offset).collect();
    rewrite(batch, Rewrite { drop: &all, horizon: None })
}
