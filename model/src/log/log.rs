//! One replica's log: its fields, its watermarks, and what must be flushed before it may be trusted.

use crate::guards::{log as guard, Guards};
use crate::ids::{LeaderEpoch, Offset};
use crate::log::clean::Cleaner;
use crate::log::epoch_cache::EpochCache;
use crate::log::producer_state::{AbortedRange, ProducerStates};
use crate::log::segment::{Segment, SegmentMark};
use crate::log::snapshot::{encode_epochs, encode_producers, replace_file};
use crate::log::Overflow;
use crate::ports::{DirId, Disk, DiskError, FileId, FileName};
use crate::wire::messages::EpochEnd;

/// `.tmp` tag of the epoch checkpoint.
const TEMP_EPOCHS: u8 = 1;
/// `.tmp` tag of a producer snapshot.
const TEMP_PRODUCERS: u8 = 2;

/// One replica's log.
///
/// Plain data of a fixed size in the common case (one segment, one epoch, one producer); see the test
/// `a_log_of_the_common_kind_is_small`. All offsets obey `start <= high watermark <= end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    pub(super) producers: ProducerStates,
    pub(super) active: Segment,
    /// Closed segments, oldest first.
    pub(super) closed: Overflow<Segment>,
    pub(super) epochs: EpochCache,
    pub(super) start: Offset,
    pub(super) end: Offset,
    pub(super) high_watermark: Offset,
    pub(super) recovery_point: Offset,
    /// The terms in which it was aligned with a mirror's source; nothing for nearly all.
    pub(super) alignments: Option<Box<EpochCache>>,
    /// Only of a compacted log.
    pub(super) cleaner: Option<Box<Cleaner>>,
    /// Small files that were written and not flushed.
    pub(super) unflushed: Overflow<FileId>,
    pub(super) dir: DirId,
    /// Counts truncations: a position or flush of an older generation says nothing about this log.
    pub(super) generation: u32,
    pub(super) flags: Flags,
}

/// One bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Flags {
    /// A write failed.
    pub offline: bool,
    /// The directory has names that are not durable.
    pub names: bool,
    /// The directory's own name may not be durable: no flush of the root is known to have covered it.
    pub home: bool,
    /// The epoch cache is not in its file.
    pub epochs: bool,
    /// A flush was asked for and did not end.
    pub flushing: bool,
    /// The producer table was ever touched: a cut has to rebuild it.
    pub producers: bool,
    /// What a checkpoint vouches for fell (recovery point, start, clean point, watermark), and the one that says so may not be durable.
    pub lowered: bool,
}

/// What the broker flushes with its own tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushWant {
    /// A file's bytes.
    File(FileId),
    /// A directory's entries.
    Dir(DirId),
    /// The entries of the root directory: the log's directory is among them.
    Root,
}

/// Up to where a flush makes the log durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushUpto {
    /// The end of the newest closed segment: what Kafka flushes after a roll.
    Rolled,
    /// The log end.
    End,
    /// The log end, whatever is known to be durable: a cut has to last, too.
    Cut,
}

/// What a finished flush has made durable; given by [`Log::plan_flush`], returned in [`Log::on_flushed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushTarget {
    /// The recovery point after it.
    pub offset: Offset,
    generation: u32,
}

/// What the checkpoints say of a log that was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lowered {
    /// Its recovery point.
    pub recovery_point: Offset,
    /// Its start.
    pub start: Offset,
    /// Up to where it is clean, if it was ever cleaned.
    pub clean: Option<Offset>,
    /// Its high watermark.
    pub watermark: Offset,
    /// For [`Log::on_point_durable`].
    pub generation: u32,
}

/// What undoes a failed append.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    closed: usize,
    segment: SegmentMark,
    end: Offset,
}

impl Log {
    /// A new, empty log that starts at `start`.
    ///
    /// # Errors
    /// The disk's; `Exists` if the directory holds such a log.
    pub fn create(disk: &mut dyn Disk, dir: DirId, start: Offset) -> Result<Self, DiskError> {
        let file = disk.create(dir, FileName::Segment(start.0))?;
        Ok(Self::over(dir, Segment::new(start, file), start))
    }

    pub(super) fn over(dir: DirId, active: Segment, start: Offset) -> Self {
        Self {
            producers: ProducerStates::default(),
            active,
            closed: None,
            epochs: EpochCache::default(),
            start,
            end: start,
            high_watermark: start,
            recovery_point: start,
            alignments: None,
            cleaner: None,
            unflushed: None,
            dir,
            generation: 0,
            flags: Flags { names: true, home: true, ..Flags::default() },
        }
    }

    // -- what it holds

    /// First offset that may be read.
    #[must_use]
    #[inline]
    pub fn start(&self) -> Offset {
        self.start
    }
    /// The offset after the last record.
    #[must_use]
    #[inline]
    pub fn end(&self) -> Offset {
        self.end
    }
    /// The high watermark, as far as this replica knows.
    #[must_use]
    #[inline]
    pub fn high_watermark(&self) -> Offset {
        self.high_watermark
    }
    /// What a read-committed reader may see: up to here, exclusive (KIP-98).
    #[must_use]
    #[inline]
    pub fn last_stable(&self) -> Offset {
        match self.producers.first_unstable() {
            None => self.high_watermark,
            Some(first) => self.high_watermark.min(first.max(self.start)),
        }
    }
    /// Below this a power loss takes nothing.
    #[must_use]
    pub fn recovery_point(&self) -> Offset {
        self.recovery_point
    }
    /// Lowers the recovery point with the log's end. The checkpoint stands above it until the broker has written it anew.
    pub(super) fn lower_recovery_point(&mut self, to: Offset) {
        self.flags.lowered |= to < self.recovery_point;
        self.recovery_point = self.recovery_point.min(to);
    }
    /// Lowers the high watermark with the log's end. 1. It falls, and the log grows again, with what nobody committed. 2. The process
    /// dies. 3. The checkpoint of before is at hand: all of that counts as committed, and is compacted.
    pub(super) fn lower_watermark(&mut self, guards: &mut Guards, to: Offset) {
        self.flags.lowered |= !guards.admits(guard::WatermarkCutWithLog, to >= self.high_watermark);
        self.high_watermark = to;
    }
    /// Whether recovery point, start, clean point or watermark fell and no durable checkpoint is known to say so: the generation that
    /// [`Self::on_point_durable`] wants back, once it does.
    #[must_use]
    pub fn lowered(&self) -> Option<u32> {
        self.flags.lowered.then_some(self.generation)
    }
    /// What has to be checkpointed before a log that was cut may grow again.
    #[must_use]
    pub fn points(&self) -> Option<Lowered> {
        let (recovery_point, start, clean, watermark) =
            (self.recovery_point, self.start, self.clean_point(), self.high_watermark);
        self.lowered().map(|generation| Lowered { recovery_point, start, clean, watermark, generation })
    }
    /// The checkpoint that was written in this generation is durable. One of an older generation says nothing: the log was cut
    /// again since.
    pub fn on_point_durable(&mut self, generation: u32) {
        self.flags.lowered &= generation != self.generation;
    }
    /// Whether the log may be appended to. 1. A log is cut below its recovery point. 2. Newer batches fill it, unflushed. 3. Power
    /// loss: the old checkpoint vouches for what was torn, and nobody checks its CRCs. (Kafka's `LogManager.truncateTo` ends with
    /// the checkpoint, so nothing can come between.)
    pub(super) fn admits_growth(&self, guards: &mut Guards) -> bool {
        guards.admits(guard::RecoveryPointDurableBeforeGrowth, !self.flags.lowered)
    }
    /// Whether it holds no batch.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.closed.is_none() && self.active.size == 0
    }
    /// Bytes of all segments.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.segments().map(|segment| u64::from(segment.size)).sum()
    }
    /// Segments, oldest first; the last one is appended to.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &Segment> {
        self.closed_segments().iter().chain(std::iter::once(&self.active))
    }
    /// How many segments there are.
    #[must_use]
    pub fn segment_count(&self) -> usize {
        self.closed_segments().len() + 1
    }
    pub(super) fn closed_segments(&self) -> &[Segment] {
        self.closed.as_ref().map_or(&[], |closed| closed)
    }
    pub(super) fn segment(&self, at: usize) -> &Segment {
        self.closed_segments().get(at).unwrap_or(&self.active)
    }
    /// The segment that may hold `offset`.
    #[inline]
    pub(super) fn segment_of(&self, offset: Offset) -> usize {
        if offset >= self.active.base {
            return self.closed_segments().len();
        }
        self.closed_segments().partition_point(|segment| segment.base <= offset).saturating_sub(1)
    }
    /// The directory.
    #[must_use]
    pub fn dir(&self) -> DirId {
        self.dir
    }

    // -- tables

    /// Leader epochs.
    #[must_use]
    pub fn epochs(&self) -> &EpochCache {
        &self.epochs
    }
    /// The newest leader epoch, −1 for none.
    #[must_use]
    #[inline]
    pub fn latest_epoch(&self) -> LeaderEpoch {
        self.epochs.latest()
    }
    /// Where an epoch ends here; peer case LEAD-13.
    #[must_use]
    pub fn end_offset_for(&self, epoch: LeaderEpoch) -> EpochEnd {
        self.epochs.end_offset_for(epoch, self.end)
    }
    /// The epoch of the record at `offset`, −1 if unknown.
    #[must_use]
    pub fn epoch_of(&self, offset: Offset) -> LeaderEpoch {
        self.epochs.epoch_of(offset)
    }
    /// A new leader records where its epoch begins, before it appends anything (KAFKA-7415, catalogue R09; not for a mirror
    /// leader, spec E3). Peer case LEAD-14.
    pub fn assign_epoch_start(&mut self, epoch: LeaderEpoch, offset: Offset) -> bool {
        let changed = self.epochs.assign(epoch, offset);
        self.flags.epochs |= changed;
        changed
    }
    /// Producers.
    #[must_use]
    pub fn producers(&self) -> &ProducerStates {
        &self.producers
    }
    /// Aborted transactions that a reader of `from..upto` has to know, appended to `out`.
    pub fn aborted_between(&self, from: Offset, upto: Offset, out: &mut Vec<AbortedRange>) {
        let aborted = self.producers.aborted();
        let first = aborted.partition_point(|range| range.last < from);
        for range in &aborted[first..] {
            if range.first < upto {
                out.push(*range);
            }
            if range.last_stable >= upto {
                break;
            }
        }
    }
    /// Forgets producers that were silent for too long; returns how many. Called seldom, by the broker's own clock.
    pub fn expire_producers(&mut self, now_ms: i64, after_ms: i64) -> usize {
        self.producers.expire(now_ms, after_ms)
    }

    // -- high watermark

    /// Sets the high watermark, bounded by start and end. Returns from and to if it changed. A leader calls this only with
    /// larger values; a follower takes what its leader says (REP-26).
    #[inline]
    pub fn set_high_watermark(&mut self, guards: &mut Guards, to: Offset) -> Option<(Offset, Offset)> {
        let within = to >= self.start && to <= self.end;
        let to = if guards.admits(guard::HighWatermarkWithinLog, within) { to } else { to.clamp(self.start, self.end) };
        let from = self.high_watermark;
        if from == to {
            return None;
        }
        self.high_watermark = to;
        self.producers.on_high_watermark(to);
        Some((from, to))
    }

    // -- failure

    /// Whether a write failed: nothing is appended or read until the log is loaded again.
    #[must_use]
    pub fn is_offline(&self) -> bool {
        self.flags.offline
    }
    /// Takes the log offline: after a failed flush, or with its whole disk.
    pub fn set_offline(&mut self) {
        self.flags.offline = true;
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { closed: self.closed_segments().len(), segment: self.active.mark(), end: self.end }
    }

    /// Takes back everything since the mark, on disk too as far as the disk lets us.
    pub(super) fn undo(&mut self, disk: &mut dyn Disk, guards: &mut Guards, mark: Mark) {
        let mut clean = true;
        while self.closed_segments().len() > mark.closed {
            clean &= disk.remove(self.dir, FileName::Segment(self.active.base.0)).is_ok();
            let Some(closed) = self.closed.as_mut().and_then(|closed| closed.pop()) else { break };
            self.active = closed;
        }
        if self.closed.as_ref().is_some_and(|closed| closed.is_empty()) {
            self.closed = None;
        }
        self.active.undo(mark.segment);
        self.end = mark.end;
        let written = disk.len(self.active.file);
        // Whatever cannot be cut off now is cut off by recovery; until then the log is offline.
        if !guards.admits(guard::PartialAppendCutBack, clean && written == u64::from(mark.segment.size)) {
            let _ = disk.truncate(self.active.file, u64::from(mark.segment.size));
        }
    }

    // -- segments

    /// Closes the active segment and opens the next one at the log end, with a producer snapshot at that offset.
    ///
    /// Segments are contiguous: a new one begins where the last one ends, even if the next batch begins later. So recovery
    /// can tell a missing file from a gap.
    pub(super) fn roll(&mut self, disk: &mut dyn Disk) -> Result<(), DiskError> {
        self.write_producer_snapshot(disk)?;
        let file = disk.create(self.dir, FileName::Segment(self.end.0))?;
        let closed = std::mem::replace(&mut self.active, Segment::new(self.end, file));
        self.closed.get_or_insert_default().push(closed);
        self.flags.names = true;
        Ok(())
    }

    pub(super) fn write_producer_snapshot(&mut self, disk: &mut dyn Disk) -> Result<(), DiskError> {
        if !self.flags.producers {
            return Ok(());
        }
        let name = FileName::ProducerSnapshot(self.end.0);
        let file = replace_file(disk, self.dir, name, TEMP_PRODUCERS, encode_producers(&self.producers))?;
        self.unflushed.get_or_insert_default().push(file);
        self.flags.names = true;
        Ok(())
    }

    fn write_epochs(&mut self, disk: &mut dyn Disk) -> Result<(), DiskError> {
        if self.flags.epochs {
            let bytes = encode_epochs(&self.epochs);
            let file = replace_file(disk, self.dir, FileName::EpochCheckpoint, TEMP_EPOCHS, bytes)?;
            self.unflushed.get_or_insert_default().push(file);
            self.flags.epochs = false;
            self.flags.names = true;
        }
        Ok(())
    }

    // -- durability

    /// Whether the log has bytes that a power loss may take.
    #[must_use]
    pub fn has_unflushed(&self) -> bool {
        self.recovery_point < self.end
    }

    /// Says what has to be flushed so that the log is durable up to there; `wants` is extended. When all of it ended well,
    /// the broker calls [`Self::on_flushed`]; when any of it failed, [`Self::set_offline`]. `None`: nothing to do, or a
    /// flush is under way (one at a time, so that a later one cannot vouch for what an earlier one still carries).
    ///
    /// The epoch checkpoint is written here when it changed: it is trusted only below the recovery point, so it need not be
    /// written more often.
    ///
    /// # Errors
    /// The disk's; the log is offline then.
    pub fn plan_flush(
        &mut self,
        disk: &mut dyn Disk,
        guards: &mut Guards,
        upto: FlushUpto,
        wants: &mut Vec<FlushWant>,
    ) -> Result<Option<FlushTarget>, DiskError> {
        let offset = match upto {
            FlushUpto::Rolled => self.active.base,
            FlushUpto::End | FlushUpto::Cut => self.end,
        };
        let cut = upto == FlushUpto::Cut;
        if self.flags.flushing || self.flags.offline || (offset <= self.recovery_point && !cut) {
            return Ok(None);
        }
        let planned = self.plan(disk, guards, offset, wants).inspect_err(|_| self.set_offline())?;
        let mut want = |want| {
            if cut && !wants.contains(&want) {
                wants.push(want);
            }
        };
        want(FlushWant::File(self.active.file));
        want(FlushWant::Dir(self.dir));
        Ok(Some(planned))
    }

    /// An orderly stop: writes epochs and a producer snapshot at the log end, and says what to flush before the clean-shutdown
    /// marker may be written.
    ///
    /// # Errors
    /// The disk's; the log is offline then.
    pub fn plan_clean_stop(
        &mut self,
        disk: &mut dyn Disk,
        guards: &mut Guards,
        wants: &mut Vec<FlushWant>,
    ) -> Result<FlushTarget, DiskError> {
        let snapshot = if self.is_empty() { Ok(()) } else { self.write_producer_snapshot(disk) };
        let planned = snapshot.and_then(|()| self.plan(disk, guards, self.end, wants));
        planned.inspect_err(|_| self.set_offline())
    }

    fn plan(
        &mut self,
        disk: &mut dyn Disk,
        guards: &mut Guards,
        offset: Offset,
        wants: &mut Vec<FlushWant>,
    ) -> Result<FlushTarget, DiskError> {
        self.write_epochs(disk)?;
        let count = self.segment_count();
        for at in self.segment_of(self.recovery_point)..count {
            let segment = self.segment(at);
            if segment.base >= offset {
                break;
            }
            let newest = at + 1 == count || self.segment(at + 1).base >= offset;
            if newest || !guards.admits(guard::RolledSegmentsFlushed, false) {
                wants.push(FlushWant::File(segment.file));
            }
        }
        let small = self.unflushed.take();
        if !guards.admits(guard::ProducerSnapshotFlushed, small.is_none()) {
            wants.extend(small.iter().flat_map(|files| files.iter()).map(|file| FlushWant::File(*file)));
        }
        // 1. A log is created, written and flushed. 2. Power loss. 3. Its directory has no name: all of it is gone.
        if !guards.admits(guard::DirectoryFlushed, !self.flags.home) {
            wants.push(FlushWant::Root);
        }
        if !guards.admits(guard::DirectoryFlushed, !self.flags.names) {
            wants.push(FlushWant::Dir(self.dir));
        }
        self.flags.home = false;
        self.flags.names = false;
        self.flags.flushing = true;
        Ok(FlushTarget { offset, generation: self.generation })
    }

    /// Whether nothing was cut since this plan was made.
    #[must_use]
    pub fn is_of_this_lineage(&self, target: FlushTarget) -> bool {
        target.generation == self.generation
    }

    /// Everything that a plan asked for is durable. Returns whether the recovery point rose.
    pub fn on_flushed(&mut self, guards: &mut Guards, target: FlushTarget) -> bool {
        self.flags.flushing = false;
        // 1. Flush of offsets up to 100 is asked for. 2. The log is cut to 50 and filled to 100 again. 3. The flush ends: it
        // carried the old bytes.
        if !guards.admits(guard::FlushOfThisLineage, target.generation == self.generation) {
            return false;
        }
        let to = target.offset.min(self.end);
        let rises = to > self.recovery_point;
        if rises {
            self.recovery_point = to;
        }
        rises
    }
}
