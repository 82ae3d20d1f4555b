//! What a log knows of its producers (KIP-98): the last five batches of each, open transactions, aborted ones.
//!
//! The table is a fold of the log (S17): every replica that has the same batches has the same table, and a restart or a
//! truncation rebuilds it. One producer is kept inline, because that is what most partitions have; the rest, and all that
//! only transactions need, is in a box.

use crate::guards::{log as guard, transactions, Guards};
use crate::ids::{Offset, ProducerEpoch, ProducerId};
use crate::record::batch::increment_sequence;
use crate::record::{BatchView, ControlRecord, ControlType};
use std::collections::BTreeMap;

/// How many batches of a producer are remembered: as many as an idempotent producer may have in flight.
pub const REMEMBERED_BATCHES: usize = 5;

/// One producer.
///
/// The batches are kept as one last sequence and offset and five short deltas. That needs sequences without gaps; a
/// follower or a forgotten producer may show one, and then only the newest batch is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerEntry {
    /// The id, −1 for an empty slot.
    pub producer: ProducerId,
    /// Largest timestamp of its newest batch or marker, milliseconds.
    pub last_timestamp: i64,
    /// First offset of its open transaction, −1 for none.
    pub txn_first: Offset,
    /// Last offset of its newest batch, −1 for none.
    pub last_offset: Offset,
    /// Last sequence of its newest batch, −1 for none.
    pub last_sequence: i32,
    /// Epoch of the coordinator that wrote its newest marker, −1 for none.
    pub coordinator_epoch: i32,
    /// Records of the remembered batches, newest first.
    counts: [u32; REMEMBERED_BATCHES],
    /// Last offset of the newest batch minus that of the 2nd to 5th newest.
    back: [u32; REMEMBERED_BATCHES - 1],
    /// Its epoch, −1 for none.
    pub epoch: ProducerEpoch,
    batches: u8,
}

impl ProducerEntry {
    pub(super) const EMPTY: Self = Self {
        producer: ProducerId::NONE,
        last_timestamp: -1,
        txn_first: Offset::UNKNOWN,
        last_offset: Offset::UNKNOWN,
        last_sequence: -1,
        coordinator_epoch: -1,
        counts: [0; REMEMBERED_BATCHES],
        back: [0; REMEMBERED_BATCHES - 1],
        epoch: ProducerEpoch(-1),
        batches: 0,
    };

    /// The remembered batches, newest first.
    pub fn batches(&self) -> impl Iterator<Item = RememberedBatch> + '_ {
        let mut last_sequence = self.last_sequence;
        (0..usize::from(self.batches)).map(move |at| {
            let back = at.checked_sub(1).map_or(0, |at| self.back[at]);
            let last_offset = Offset(self.last_offset.0 - i64::from(back));
            let behind = self.counts[at] as i32 - 1;
            let batch = RememberedBatch {
                base_sequence: decrement_sequence(last_sequence, behind),
                last_sequence,
                base: Offset(last_offset.0 - i64::from(behind)),
                last: last_offset,
            };
            last_sequence = decrement_sequence(batch.base_sequence, 1);
            batch
        })
    }

    fn set_epoch(&mut self, epoch: ProducerEpoch) {
        if self.epoch != epoch {
            *self = Self {
                epoch,
                last_offset: Offset::UNKNOWN,
                last_sequence: -1,
                batches: 0,
                counts: [0; REMEMBERED_BATCHES],
                back: [0; REMEMBERED_BATCHES - 1],
                ..*self
            };
        }
    }

    fn push(&mut self, base_sequence: i32, last_sequence: i32, last: Offset, count: u32) {
        let distance = u32::try_from(last.0 - self.last_offset.0);
        let follows = self.batches > 0 && base_sequence == increment_sequence(self.last_sequence, 1);
        self.counts.copy_within(0..REMEMBERED_BATCHES - 1, 1);
        self.back.copy_within(0..REMEMBERED_BATCHES - 2, 1);
        let keep = match distance {
            Ok(distance) if follows => {
                // Offsets so far apart that a delta does not fit are forgotten.
                self.back[0] = distance;
                let mut keep = 1;
                while keep < usize::from(self.batches).min(REMEMBERED_BATCHES - 1) {
                    let Some(back) = self.back[keep].checked_add(distance) else { break };
                    self.back[keep] = back;
                    keep += 1;
                }
                keep
            }
            _ => 0,
        };
        self.counts[0] = count;
        self.counts[keep + 1..].fill(0);
        self.back[keep..].fill(0);
        self.batches = keep as u8 + 1;
        self.last_offset = last;
        self.last_sequence = last_sequence;
    }

    pub(super) fn raw(&self) -> ([u32; REMEMBERED_BATCHES], [u32; REMEMBERED_BATCHES - 1], u8) {
        (self.counts, self.back, self.batches)
    }
    pub(super) fn set_raw(&mut self, counts: [u32; REMEMBERED_BATCHES], back: [u32; REMEMBERED_BATCHES - 1], n: u8) {
        self.counts = counts;
        self.back = back;
        self.batches = n.min(REMEMBERED_BATCHES as u8);
    }
}

/// A batch that a producer may send again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RememberedBatch {
    /// First sequence.
    pub base_sequence: i32,
    /// Last sequence.
    pub last_sequence: i32,
    /// First offset.
    pub base: Offset,
    /// Last offset.
    pub last: Offset,
}

const fn decrement_sequence(sequence: i32, by: i32) -> i32 {
    sequence.wrapping_sub(by) & i32::MAX
}

/// A transaction that has no marker yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenTransaction {
    /// Whose.
    pub producer: ProducerId,
    /// Its epoch, −1 if the producer was forgotten meanwhile.
    pub epoch: ProducerEpoch,
    /// Epoch of the coordinator that wrote its last marker, −1 if unknown.
    pub coordinator_epoch: i32,
    /// Its first offset.
    pub first: Offset,
}

/// An aborted transaction: one row of Kafka's transaction index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortedRange {
    /// Whose.
    pub producer: ProducerId,
    /// Its first offset.
    pub first: Offset,
    /// The marker's offset.
    pub last: Offset,
    /// The last stable offset after the marker.
    pub last_stable: Offset,
}

/// What transactions and further producers need.
#[derive(Clone, Debug, Default)]
struct More {
    rest: BTreeMap<ProducerId, ProducerEntry>,
    /// Open transactions by first offset.
    open: BTreeMap<Offset, ProducerId>,
    /// First and marker offset of transactions whose marker is not below the high watermark yet, by first offset.
    unreplicated: BTreeMap<Offset, Offset>,
    /// By marker offset.
    aborted: Vec<AbortedRange>,
}

/// Why a batch is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProducerRefusal {
    /// Sequence gap, or a repetition older than what is remembered.
    OutOfOrderSequence {
        /// The sequence that would fit.
        expected: i32,
        /// The batch's.
        got: i32,
    },
    /// A newer epoch of this producer is known.
    InvalidEpoch {
        /// The known epoch.
        known: ProducerEpoch,
        /// The batch's.
        got: ProducerEpoch,
    },
    /// A newer transaction coordinator wrote here.
    CoordinatorFenced {
        /// The known epoch.
        known: i32,
        /// The marker's.
        got: i32,
    },
    /// A batch outside the producer's open transaction.
    TransactionOpen,
}

/// What to do with a batch of an idempotent producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Append it.
    Append,
    /// It is in the log already.
    Duplicate(RememberedBatch),
}

/// What a marker of transaction version 2 is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaisedMarker {
    /// Append it.
    New,
    /// It stands in the log already.
    Written,
}

/// All producers of one log.
#[derive(Clone, Debug)]
pub struct ProducerStates {
    one: ProducerEntry,
    more: Option<Box<More>>,
}

impl Default for ProducerStates {
    fn default() -> Self {
        Self { one: ProducerEntry::EMPTY, more: None }
    }
}

impl PartialEq for ProducerStates {
    /// Equal contents; which producer is inline does not matter.
    fn eq(&self, other: &Self) -> bool {
        self.entries().eq(other.entries())
            && self.open().eq(other.open())
            && self.unreplicated().eq(other.unreplicated())
            && self.aborted() == other.aborted()
    }
}
impl Eq for ProducerStates {}

impl ProducerStates {
    /// One producer.
    #[must_use]
    #[inline]
    pub fn get(&self, producer: ProducerId) -> Option<&ProducerEntry> {
        if self.one.producer == producer && producer != ProducerId::NONE {
            return Some(&self.one);
        }
        self.more.as_ref()?.rest.get(&producer)
    }
    /// All producers by id.
    pub fn entries(&self) -> impl Iterator<Item = &ProducerEntry> {
        let one = Some(&self.one).filter(|one| one.producer != ProducerId::NONE);
        let rest = self.more.as_ref().map(|more| &more.rest);
        let split = self.one.producer;
        let below = rest.into_iter().flat_map(move |rest| rest.range(..split)).map(|(_, entry)| entry);
        let above = rest.into_iter().flat_map(move |rest| rest.range(split..)).map(|(_, entry)| entry);
        below.chain(one).chain(above)
    }
    /// How many producers are known.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.one.producer != ProducerId::NONE) + self.more.as_ref().map_or(0, |more| more.rest.len())
    }
    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Open transactions by first offset: what a stopping mirror writes abort markers for (spec 5.2).
    pub fn open_transactions(&self) -> impl Iterator<Item = OpenTransaction> + '_ {
        self.open().map(|(first, producer)| {
            let entry = self.get(producer);
            OpenTransaction {
                producer,
                epoch: entry.map_or(ProducerEpoch(-1), |entry| entry.epoch),
                coordinator_epoch: entry.map_or(-1, |entry| entry.coordinator_epoch),
                first,
            }
        })
    }
    pub(super) fn open(&self) -> impl Iterator<Item = (Offset, ProducerId)> + '_ {
        self.more.iter().flat_map(|more| more.open.iter().map(|(first, producer)| (*first, *producer)))
    }
    pub(super) fn unreplicated(&self) -> impl Iterator<Item = (Offset, Offset)> + '_ {
        self.more.iter().flat_map(|more| more.unreplicated.iter().map(|(first, last)| (*first, *last)))
    }
    /// Aborted transactions by marker offset.
    #[must_use]
    pub fn aborted(&self) -> &[AbortedRange] {
        self.more.as_ref().map_or(&[], |more| &more.aborted)
    }
    /// First offset of a transaction that is open, or whose marker is not below the high watermark (KIP-98).
    #[must_use]
    #[inline]
    pub fn first_unstable(&self) -> Option<Offset> {
        let more = self.more.as_ref()?;
        let open = more.open.keys().next();
        let unreplicated = more.unreplicated.keys().next();
        open.into_iter().chain(unreplicated).min().copied()
    }

    // -- plan: may this batch be appended?

    /// Judges a batch that a leader is asked to append.
    ///
    /// # Errors
    /// The refusal; nothing changed.
    #[inline]
    pub fn check(&self, batch: &BatchView<'_>, client: bool, guards: &mut Guards) -> Result<Verdict, ProducerRefusal> {
        let producer = batch.producer();
        if producer.0 < 0 {
            return Ok(Verdict::Append);
        }
        let Some(entry) = self.get(producer) else { return Ok(Verdict::Append) };
        if client {
            if let Some(known) = entry.repeats(batch) {
                if !guards.admits(guard::DuplicateRecognised, false) {
                    return Ok(Verdict::Duplicate(known));
                }
                return Ok(Verdict::Append);
            }
        }
        let epoch = batch.producer_epoch();
        if !guards.admits(guard::ProducerEpochFenced, epoch >= entry.epoch) {
            return Err(ProducerRefusal::InvalidEpoch { known: entry.epoch, got: epoch });
        }
        if batch.is_control() {
            return entry.check_marker(batch, guards);
        }
        if client {
            entry.check_sequence(batch, guards)?;
        }
        if entry.txn_first != Offset::UNKNOWN && !batch.is_transactional() {
            return Err(ProducerRefusal::TransactionOpen);
        }
        Ok(Verdict::Append)
    }

    /// Judges the marker that ends a transaction of transaction version 2, whose epoch is one above its records' (KIP-890).
    /// What a leader is told of version 1, and what a mirror writes by itself, [`check`](Self::check) judges alone.
    ///
    /// # Errors
    /// The refusal: the producer is further than the transaction that this is the marker of.
    pub fn check_raised_marker(
        &self,
        producer: ProducerId,
        got: ProducerEpoch,
        guards: &mut Guards,
    ) -> Result<RaisedMarker, ProducerRefusal> {
        let Some(entry) = self.get(producer).filter(|entry| got <= entry.epoch) else {
            return Ok(RaisedMarker::New);
        };
        // 1. A marker is written, its answer is lost. 2. It is sent again. 3. Refused, its transaction would never be over
        // (KAFKA-19999): nothing is open under this epoch, so that it can only be the same one.
        let is_written = got == entry.epoch && entry.txn_first == Offset::UNKNOWN;
        if is_written && !guards.admits(transactions::RepeatedMarkerIsDone, false) {
            return Ok(RaisedMarker::Written);
        }
        if guards.admits(transactions::MarkerAboveProducer, false) {
            return Ok(RaisedMarker::New);
        }
        Err(ProducerRefusal::InvalidEpoch { known: entry.epoch, got })
    }

    // -- replay: what an appended batch changes

    /// Takes note of a batch that is in the log. Returns whether it touched the table. `reset` tells whether a PID reset
    /// is obeyed here.
    #[inline]
    pub fn apply(&mut self, batch: &BatchView<'_>, reset: impl FnOnce() -> bool) -> bool {
        let producer = batch.producer();
        if batch.is_control() {
            return self.apply_control(batch, producer, reset);
        }
        if producer.0 < 0 {
            return false;
        }
        let entry = self.entry(producer);
        entry.set_epoch(batch.producer_epoch());
        let count = batch.last_offset_delta() as u32 + 1;
        entry.push(batch.base_sequence(), batch.last_sequence(), batch.last_offset(), count);
        entry.last_timestamp = batch.max_timestamp();
        if batch.is_transactional() && entry.txn_first == Offset::UNKNOWN {
            let first = batch.base_offset();
            entry.txn_first = first;
            self.more().open.insert(first, producer);
        }
        true
    }

    fn apply_control(&mut self, batch: &BatchView<'_>, producer: ProducerId, reset: impl FnOnce() -> bool) -> bool {
        match batch.control_type() {
            Some(ControlType::MirrorPidReset) => {
                if reset() {
                    self.forget_all();
                }
                true
            }
            Some(ControlType::Abort | ControlType::Commit) if producer.0 >= 0 => {
                self.apply_marker(batch, producer);
                true
            }
            _ => false,
        }
    }

    fn apply_marker(&mut self, batch: &BatchView<'_>, producer: ProducerId) {
        // A marker that nobody can read ends nothing; its writer's CRC was good, so it is of a later version.
        let Ok(ControlRecord::EndTxn { commit, coordinator_epoch }) = ControlRecord::parse(batch) else { return };
        let last = batch.last_offset();
        let entry = self.entry(producer);
        entry.set_epoch(batch.producer_epoch());
        entry.coordinator_epoch = coordinator_epoch;
        entry.last_timestamp = batch.max_timestamp();
        let first = std::mem::replace(&mut entry.txn_first, Offset::UNKNOWN);
        let Some(more) = self.more.as_mut() else { return };
        // After a PID reset the entry is gone but the transaction still pins the stable offset (spec 5.3): find it by name.
        let first = if first == Offset::UNKNOWN {
            more.open.iter().find(|(_, open)| **open == producer).map(|(first, _)| *first)
        } else {
            Some(first)
        };
        let Some(first) = first else { return };
        more.open.remove(&first);
        more.unreplicated.insert(first, last);
        if !commit {
            let last_stable = more.open.keys().next().copied().unwrap_or(last.plus(1));
            more.aborted.push(AbortedRange { producer, first, last, last_stable });
        }
    }

    /// A PID reset: no producer is known any more. Open transactions stay open (spec 5.3).
    fn forget_all(&mut self) {
        self.one = ProducerEntry::EMPTY;
        if let Some(more) = &mut self.more {
            more.rest.clear();
        }
        self.tidy();
    }

    /// The high watermark moved: transactions that ended below it are settled.
    #[inline]
    pub fn on_high_watermark(&mut self, high_watermark: Offset) {
        let Some(more) = &mut self.more else { return };
        more.unreplicated.retain(|_, last| *last >= high_watermark);
        self.tidy();
    }

    /// The log start moved: what ended below it is settled and needed by no reader.
    pub fn on_log_start(&mut self, start: Offset) {
        let Some(more) = &mut self.more else { return };
        more.unreplicated.retain(|_, last| *last >= start);
        more.aborted.retain(|range| range.last >= start);
        self.tidy();
    }

    /// Forgets producers without an open transaction that wrote nothing for `after_ms`. Returns how many.
    pub fn expire(&mut self, now_ms: i64, after_ms: i64) -> usize {
        let expired = |entry: &ProducerEntry| {
            entry.txn_first == Offset::UNKNOWN && now_ms.saturating_sub(entry.last_timestamp) >= after_ms
        };
        let before = self.len();
        if expired(&self.one) {
            self.one = ProducerEntry::EMPTY;
        }
        if let Some(more) = &mut self.more {
            more.rest.retain(|_, entry| !expired(entry));
        }
        self.tidy();
        before - self.len()
    }

    fn tidy(&mut self) {
        let empty = |more: &More| {
            more.rest.is_empty() && more.open.is_empty() && more.unreplicated.is_empty() && more.aborted.is_empty()
        };
        if self.more.as_deref().is_some_and(empty) {
            self.more = None;
        }
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    fn entry(&mut self, producer: ProducerId) -> &mut ProducerEntry {
        if self.one.producer == producer {
            return &mut self.one;
        }
        let known = self.more.as_ref().is_some_and(|more| more.rest.contains_key(&producer));
        if !known && self.one.producer == ProducerId::NONE {
            self.one.producer = producer;
            return &mut self.one;
        }
        self.more().rest.entry(producer).or_insert(ProducerEntry { producer, ..ProducerEntry::EMPTY })
    }

    // -- snapshots

    pub(super) fn restore_entry(&mut self, entry: ProducerEntry) {
        *self.entry(entry.producer) = entry;
    }
    pub(super) fn restore_open(&mut self, first: Offset, producer: ProducerId) {
        self.more().open.insert(first, producer);
    }
    pub(super) fn restore_unreplicated(&mut self, first: Offset, last: Offset) {
        self.more().unreplicated.insert(first, last);
    }
    pub(super) fn restore_aborted(&mut self, range: AbortedRange) {
        self.more().aborted.push(range);
    }
}

impl ProducerEntry {
    /// The remembered batch that this one repeats.
    fn repeats(&self, batch: &BatchView<'_>) -> Option<RememberedBatch> {
        if batch.producer_epoch() != self.epoch || batch.is_control() {
            return None;
        }
        let (base, last) = (batch.base_sequence(), batch.last_sequence());
        self.batches().find(|known| known.base_sequence == base && known.last_sequence == last)
    }

    fn check_sequence(&self, batch: &BatchView<'_>, guards: &mut Guards) -> Result<(), ProducerRefusal> {
        let got = batch.base_sequence();
        let expected = if batch.producer_epoch() != self.epoch || self.batches == 0 {
            0
        } else {
            // After 2^31-1 comes 0 (T14).
            increment_sequence(self.last_sequence, 1)
        };
        if guards.admits(guard::SequencesConsecutive, got == expected) {
            Ok(())
        } else {
            Err(ProducerRefusal::OutOfOrderSequence { expected, got })
        }
    }

    fn check_marker(&self, batch: &BatchView<'_>, guards: &mut Guards) -> Result<Verdict, ProducerRefusal> {
        let Ok(ControlRecord::EndTxn { coordinator_epoch: got, .. }) = ControlRecord::parse(batch) else {
            return Ok(Verdict::Append);
        };
        if guards.admits(guard::CoordinatorEpochFenced, got >= self.coordinator_epoch) {
            Ok(Verdict::Append)
        } else {
            Err(ProducerRefusal::CoordinatorFenced { known: self.coordinator_epoch, got })
        }
    }
}

#[cfg(test)]
#[path = "producer_state_tests.rs"]
mod tests;
