//! Cutting a log at its beginning: retention by time and size, DeleteRecords, following a leader's log start.

use crate::guards::{log as guard, Guards};
use crate::ids::{Now, Offset};
use crate::log::log::Log;
use crate::log::policy::LogPolicy;
use crate::log::segment::Segment;
use crate::ports::{Disk, DiskError, FileName};

impl Log {
    /// Raises the log start, into the middle of a batch if need be; never above the high watermark, never down. No file is
    /// removed before the next [`Self::apply_retention`]. Returns whether it rose.
    pub fn maybe_raise_log_start(&mut self, guards: &mut Guards, to: Offset) -> bool {
        if to <= self.start || !guards.admits(guard::LogStartWithinHighWatermark, to <= self.high_watermark) {
            return false;
        }
        self.raise_start(to);
        true
    }

    /// DeleteRecords: raises the log start to `upto` (−1: to the high watermark) and returns the log start.
    ///
    /// # Errors
    /// The high watermark, if `upto` is above it or makes no sense.
    pub fn delete_records(&mut self, guards: &mut Guards, upto: Offset) -> Result<Offset, Offset> {
        let upto = if upto == Offset::UNKNOWN { self.high_watermark } else { upto };
        if upto.0 < 0 || upto > self.high_watermark {
            return Err(self.high_watermark);
        }
        self.maybe_raise_log_start(guards, upto);
        Ok(self.start)
    }

    fn raise_start(&mut self, to: Offset) {
        self.start = to;
        // Only with guards off is anything of this needed.
        self.end = self.end.max(to);
        self.high_watermark = self.high_watermark.max(to);
        self.flags.epochs |= self.epochs.truncate_from_start(to);
        self.producers.on_log_start(to);
    }

    /// Removes the oldest segments that lie below the log start, are too old, or are too much; only what is below the high
    /// watermark. If the last segment goes too, an empty one takes its place. Returns the log start if it rose.
    ///
    /// # Errors
    /// The disk's; the log is offline then.
    pub fn apply_retention(
        &mut self,
        disk: &mut dyn Disk,
        guards: &mut Guards,
        policy: &LogPolicy,
        now: Now,
    ) -> Result<Option<Offset>, DiskError> {
        let before = self.start;
        self.drop_segments(disk, guards, policy, now).inspect_err(|_| self.flags.offline = true)?;
        Ok((self.start > before).then_some(self.start))
    }

    fn drop_segments(
        &mut self,
        disk: &mut dyn Disk,
        guards: &mut Guards,
        policy: &LogPolicy,
        now: Now,
    ) -> Result<(), DiskError> {
        let mut total = self.size_bytes();
        loop {
            let (oldest, last) = (self.segment(0), self.segment_count() == 1);
            if last && oldest.size == 0 {
                return Ok(());
            }
            let upper = if last { self.end } else { self.segment(1).base };
            if !due(oldest, upper, self.start, total, policy, now) {
                return Ok(());
            }
            if !guards.admits(guard::RetentionBelowHighWatermark, upper <= self.high_watermark) {
                return Ok(());
            }
            if last {
                self.roll(disk)?;
            }
            total -= u64::from(self.drop_oldest(disk)?);
            let first = self.segment(0).base;
            if first > self.start {
                self.raise_start(first);
            }
        }
    }

    fn drop_oldest(&mut self, disk: &mut dyn Disk) -> Result<u32, DiskError> {
        let Some(closed) = self.closed.as_mut().filter(|closed| !closed.is_empty()) else { return Ok(0) };
        let gone = closed.remove(0);
        if closed.is_empty() {
            self.closed = None;
        }
        disk.remove(self.dir, FileName::Segment(gone.base.0))?;
        if self.flags.producers {
            match self.remove_snapshot(disk, FileName::ProducerSnapshot(gone.base.0)) {
                Ok(()) | Err(DiskError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        self.flags.names = true;
        Ok(gone.size)
    }
}

fn due(segment: &Segment, upper: Offset, start: Offset, total: u64, policy: &LogPolicy, now: Now) -> bool {
    let below_start = upper <= start;
    let too_old = policy.retention_ms >= 0 && now.wall_ms - segment.max_timestamp > policy.retention_ms;
    let too_much = u64::try_from(policy.retention_bytes)
        .is_ok_and(|limit| total.saturating_sub(limit) >= u64::from(segment.size) && total > limit);
    below_start || (policy.delete && (too_old || too_much))
}
