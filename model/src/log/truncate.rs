//! Cutting a log at its end. Everything that is a fold of the log is cut with it, in the same step.

use crate::guards::{log as guard, Guards};
use crate::ids::Offset;
use crate::log::log::Log;
use crate::log::producer_state::ProducerStates;
use crate::log::segment::{Segment, Step, Walk};
use crate::log::snapshot::{decode_producers, read_file};
use crate::ports::{Disk, DiskError, FileName};
use crate::record::{BatchView, HeaderView};

/// Where a cut falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    /// Which segment stays as the last one.
    segment: usize,
    /// Its length after the cut.
    pos: u32,
    /// The end of the last batch kept.
    end: Offset,
}

impl Log {
    /// Removes all batches that end at or above `to`: whole batches, so the log may end below `to` (ask [`Log::end`]). At or
    /// above the end only epochs without a batch are forgotten; below the start it is [`Self::truncate_fully_and_start_at`]. Returns whether anything
    /// was cut. The high watermark and the recovery point fall with the end.
    ///
    /// # Errors
    /// The disk's; the log is offline then.
    pub fn truncate_to(&mut self, disk: &mut dyn Disk, guards: &mut Guards, to: Offset) -> Result<bool, DiskError> {
        if to >= self.end {
            self.forget_empty_epochs(guards);
            return Ok(false);
        }
        if to < self.start {
            self.truncate_fully_and_start_at(disk, guards, to)?;
            return Ok(true);
        }
        self.cut_at(disk, guards, to).inspect_err(|_| self.flags.offline = true)?;
        Ok(true)
    }

    /// Drops the epoch of a leadership that wrote nothing. A leader that never heard of that epoch answers every fetch that
    /// names it with "diverging", and there is no batch to cut (stock `UnifiedLog.truncateTo` cuts the cache in any case).
    fn forget_empty_epochs(&mut self, guards: &mut Guards) {
        let last_start = self.epochs.entries().last().map_or(Offset::UNKNOWN, |entry| entry.start);
        if !guards.admits(guard::EpochsCutWithLog, last_start < self.end) {
            self.flags.epochs |= self.epochs.truncate_from_end(self.end);
        }
    }

    fn cut_at(&mut self, disk: &mut dyn Disk, guards: &mut Guards, to: Offset) -> Result<(), DiskError> {
        let cut = self.find_cut(disk, to)?;
        if cut.end <= self.start && (cut.pos > 0 || cut.segment > 0) {
            // What would be left lies below the log start: nobody can read it.
            return self.reset(disk, guards, self.start);
        }
        self.uncleaned_from(disk, guards, cut.end)?;
        // Newest first: a crash in between leaves a prefix.
        while self.segment_count() > cut.segment + 1 {
            disk.remove(self.dir, FileName::Segment(self.active.base.0))?;
            let Some(closed) = self.closed.as_mut().and_then(|closed| closed.pop()) else { break };
            self.active = closed;
        }
        if self.closed.as_ref().is_some_and(|closed| closed.is_empty()) {
            self.closed = None;
        }
        disk.truncate(self.active.file, u64::from(cut.pos))?;
        self.active.cut(cut.pos);
        self.end = cut.end.max(self.start);
        self.generation += 1;
        self.tables_follow_cut(disk, guards)
    }

    fn tables_follow_cut(&mut self, disk: &mut dyn Disk, guards: &mut Guards) -> Result<(), DiskError> {
        let end = self.end;
        if !guards.admits(guard::HighWatermarkFollowsCut, self.high_watermark <= end) {
            self.lower_watermark(guards, end);
        }
        if !guards.admits(guard::RecoveryPointCutWithLog, self.recovery_point <= end) {
            self.lower_recovery_point(end);
        }
        self.forget_empty_epochs(guards);
        if !guards.admits(guard::ProducersCutWithLog, !self.flags.producers) {
            self.reload_producers(disk, guards, end)?;
        }
        Ok(())
    }

    /// Finds the first batch that ends at or above `to`.
    fn find_cut(&self, disk: &dyn Disk, to: Offset) -> Result<Cut, DiskError> {
        let at = self.segment_of(to);
        let segment = self.segment(at);
        let cut = |pos, end| Cut { segment: at, pos, end };
        let (mut pos, mut end) = (segment.floor(to), None);
        loop {
            let mut walk = Walk::new(segment.file, pos, u64::from(segment.size));
            let first_at = pos;
            let first_cut = loop {
                let before = walk.pos();
                match walk.step(disk)? {
                    Step::Batch(bytes) => {
                        let Ok(header) = HeaderView::parse(&bytes) else { break (before, to) };
                        if header.last_offset() >= to {
                            break (before, header.base_offset());
                        }
                        end = Some(header.next_offset());
                    }
                    Step::End | Step::Bad(_) => break (before, to),
                }
            };
            match end {
                Some(end) => return Ok(cut(first_cut.0, end)),
                None if first_at == 0 => return Ok(cut(first_cut.0, segment.base)),
                // The index led to the very batch that goes: look for the one before it, whose end is the new end.
                None => {
                    let earlier = segment.floor(Offset(first_cut.1 .0 - 1));
                    pos = if earlier < first_at { earlier } else { 0 };
                }
            }
        }
    }

    /// Drops everything and starts anew at `at`: the log of a replica that shares nothing with its leader, or that lies
    /// wholly below its leader's start. The high watermark becomes `at` (KAFKA-9491).
    ///
    /// # Errors
    /// The disk's; the log is offline then.
    pub fn truncate_fully_and_start_at(
        &mut self,
        disk: &mut dyn Disk,
        guards: &mut Guards,
        at: Offset,
    ) -> Result<(), DiskError> {
        self.reset(disk, guards, at).inspect_err(|_| self.flags.offline = true)
    }

    fn reset(&mut self, disk: &mut dyn Disk, guards: &mut Guards, at: Offset) -> Result<(), DiskError> {
        let at = at.max(Offset::ZERO);
        self.uncleaned_from(disk, guards, at)?;
        for segment in self.segments().rev() {
            disk.remove(self.dir, FileName::Segment(segment.base.0))?;
        }
        self.closed = None;
        let file = disk.create(self.dir, FileName::Segment(at.0))?;
        self.active = Segment::new(at, file);
        // The checkpoint of log starts stands above the end then: at the next boot the log would begin there.
        self.flags.lowered |= at < self.start;
        (self.start, self.end) = (at, at);
        if !guards.admits(guard::HighWatermarkLiftedByReset, self.high_watermark == at) {
            self.lower_watermark(guards, at);
        }
        self.lower_recovery_point(at);
        self.generation += 1;
        self.flags.names = true;
        if !guards.admits(guard::EpochsCutWithLog, self.epochs.entries().is_empty()) {
            self.epochs.clear();
            self.flags.epochs = true;
        }
        if !guards.admits(guard::ProducersCutWithLog, !self.flags.producers) {
            self.producers = ProducerStates::default();
        }
        self.remove_snapshots(disk, |_| true)
    }

    pub(super) fn remove_snapshots(
        &mut self,
        disk: &mut dyn Disk,
        which: impl Fn(Offset) -> bool,
    ) -> Result<(), DiskError> {
        // Only a log that ever had producers has snapshots.
        if !self.flags.producers {
            return Ok(());
        }
        for name in disk.list(self.dir) {
            if matches!(name, FileName::ProducerSnapshot(at) if which(Offset(at))) {
                self.remove_snapshot(disk, name)?;
            }
        }
        Ok(())
    }

    /// Removes a snapshot file; nobody has to flush it any more.
    pub(super) fn remove_snapshot(&mut self, disk: &mut dyn Disk, name: FileName) -> Result<(), DiskError> {
        if let Some(unflushed) = &mut self.unflushed {
            let file = disk.open(self.dir, name)?;
            unflushed.retain(|waiting| *waiting != file);
            if unflushed.is_empty() {
                self.unflushed = None;
            }
        }
        disk.remove(self.dir, name)
    }

    /// Makes the producer table the fold of the log again: the newest intact snapshot at or below `limit`, and the batches
    /// after it. Snapshots above `limit` are removed, torn ones too. Returns the offset of the snapshot used.
    pub(super) fn reload_producers(
        &mut self,
        disk: &mut dyn Disk,
        guards: &mut Guards,
        limit: Offset,
    ) -> Result<Option<Offset>, DiskError> {
        let (mut states, mut used) = (ProducerStates::default(), None);
        for name in disk.list(self.dir).into_iter().rev() {
            let FileName::ProducerSnapshot(at) = name else { continue };
            let at = Offset(at);
            let low = at <= self.end && guards.admits(guard::SnapshotsAboveRecoveryPointDropped, at <= limit);
            if low && used.is_some() {
                break;
            }
            if low {
                let file = disk.open(self.dir, name)?;
                let read = read_file(disk, file)?;
                if let Some(snapshot) = decode_producers(&read) {
                    if guards.admits(guard::SnapshotChecksumMatches, snapshot.intact) {
                        (states, used) = (snapshot.contents, Some(at));
                        continue;
                    }
                }
            }
            self.remove_snapshot(disk, name)?;
        }
        self.producers = states;
        let from = used.unwrap_or(self.start).max(self.start);
        if !guards.admits(guard::TailReplayedAfterSnapshot, used.is_some() && from == self.end) {
            self.replay_producers(disk, guards, from)?;
        }
        self.producers.on_high_watermark(self.high_watermark);
        self.producers.on_log_start(self.start);
        Ok(used)
    }

    fn replay_producers(&mut self, disk: &dyn Disk, guards: &mut Guards, from: Offset) -> Result<(), DiskError> {
        for at in self.segment_of(from)..self.segment_count() {
            let segment = self.segment(at);
            let mut walk = Walk::new(segment.file, segment.floor(from), u64::from(segment.size));
            while let Step::Batch(bytes) = walk.step(disk)? {
                let Ok(batch) = BatchView::parse(&bytes) else { break };
                // Below the recovery point nobody looked at a CRC. What rotted there says nothing of any producer.
                if batch.last_offset() >= from && guards.admits(guard::DamageTeachesNothing, batch.crc_valid()) {
                    self.producers.apply(&batch, || !guards.admits(guard::PidResetAppliedOnLoad, false));
                }
            }
        }
        Ok(())
    }
}
