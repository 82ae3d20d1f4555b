//! The log cleaner's work on one log: what may be cleaned, the new files, the swap, and what a boot does about a swap that a
//! crash cut short.
//!
//! ```text
//! plan    .cleaned files are written from whole closed segments, a group of them into one        (Cleaner.doClean)
//!         ... they are flushed ...
//! swap    .cleaned -> .swap, the old segments go, .swap -> .log                                  (UnifiedLog.replaceSegments)
//!         ... the directory is flushed ...
//! then    cleaner-offset-checkpoint
//! ```
//! A crash before the first rename leaves old segments and rubbish; after it, the new file is whole, and the boot goes on
//! where the swap ended. A cut of the log in between gives the cleaning up.

use crate::guards::points::Point;
use crate::guards::{log as guard, Guards};
use crate::ids::{Now, Offset};
use crate::log::compact::{emptied, Left, Sieve};
use crate::log::log::{FlushWant, Log};
use crate::log::policy::LogPolicy;
use crate::log::segment::{Segment, Step, Walk};
use crate::ports::{DirId, Disk, DiskError, FileId, FileName};
use crate::record::{BatchView, HeaderView};
use bytes::Bytes;

/// What the cleaner knows of a log that was ever cleaned, or is just being cleaned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cleaner {
    /// Below this no key has two records.
    cleaned: Offset,
    pass: Option<Pass>,
}

/// A cleaning whose files are being flushed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pass {
    from: Offset,
    upto: Offset,
    at_ms: i64,
    groups: Vec<Group>,
}

/// Segments that become one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    old: Vec<(Offset, FileId)>,
    new: Segment,
}

/// What of a log could be cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dirty {
    /// Where the part begins that was never cleaned.
    pub from: Offset,
    /// Where the part ends that may be cleaned: a border of segments.
    pub upto: Offset,
    /// Bytes between them.
    pub bytes: u64,
    /// Their share of all that would be walked, in millionths.
    pub share_ppm: u32,
    /// Worth the work (`min.cleanable.dirty.ratio`), or overdue (`max.compaction.lag.ms`).
    pub due: bool,
    /// Closed segments above `upto` wait for a watermark, a transaction's end, a flush, or their age.
    pub waits: bool,
}

/// Why a log is not cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanError {
    /// The disk's; the log is offline then.
    Disk(DiskError),
    /// The batch at this offset is damaged. The log is left as it is: Kafka calls it uncleanable (KIP-346).
    Damaged(Offset),
}

impl From<DiskError> for CleanError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

/// What a cleaning did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleaned {
    /// Where the part began that had not been cleaned before.
    pub from: Offset,
    /// Up to where the log is clean now.
    pub upto: Offset,
    /// The wall clock that it went by, in milliseconds.
    pub at_ms: i64,
}

impl Log {
    /// Below this no key has two records.
    #[must_use]
    pub fn cleaned_to(&self) -> Offset {
        self.cleaner.as_ref().map_or(Offset::ZERO, |cleaner| cleaner.cleaned)
    }

    /// The same, if the log was ever cleaned.
    #[must_use]
    pub fn clean_point(&self) -> Option<Offset> {
        self.cleaner.as_ref().map(|cleaner| cleaner.cleaned)
    }

    /// What the cleaner's checkpoint says of a log that was just loaded.
    pub(super) fn set_cleaned(&mut self, to: Offset) {
        self.flags.lowered |= to > self.end;
        self.cleaner.get_or_insert_default().cleaned = to.min(self.end);
    }

    /// Whether files of a cleaning are being flushed.
    #[must_use]
    pub fn is_being_cleaned(&self) -> bool {
        self.cleaner.as_ref().is_some_and(|cleaner| cleaner.pass.is_some())
    }

    /// What could be cleaned: whole closed segments below the high watermark, the last stable offset and the recovery point,
    /// and older than `min.compaction.lag.ms`.
    pub fn dirty(&self, guards: &mut Guards, policy: &LogPolicy, now: Now) -> Dirty {
        let from = self.cleaned_to().max(self.start);
        // What is not flushed is cleaned later: recovery tells epochs from batches there.
        let mut bound = self.recovery_point;
        // 1. A follower's segment is closed above its watermark. 2. A newer value in it removes the committed older one. 3. The
        // newer one is cut (D10).
        if !guards.admits(guard::CleansBelowHighWatermark, bound <= self.high_watermark) {
            bound = self.high_watermark;
        }
        let stable = self.producers.first_unstable().unwrap_or(Offset(i64::MAX));
        if !guards.admits(guard::CleansBelowStableOffset, bound <= stable) {
            bound = stable;
        }
        let (mut upto, mut clean, mut dirty, mut overdue) = (self.start, 0, 0, false);
        let count = self.cleanable_segments(guards, bound);
        for at in 0..count {
            let (segment, end) = (self.segment(at), self.segment_end(at));
            let size = u64::from(segment.size);
            if end <= from {
                (upto, clean) = (end, clean + size);
                continue;
            }
            let young = now.wall_ms.saturating_sub(segment.max_timestamp) < policy.min_compaction_lag_ms;
            if end > bound || (young && policy.min_compaction_lag_ms > 0) {
                break;
            }
            let age = now.wall_ms.saturating_sub(segment.first_timestamp);
            overdue |= segment.size > 0 && age > policy.max_compaction_lag_ms;
            (upto, dirty) = (end, dirty + size);
        }
        let share_ppm = (u128::from(dirty) * 1_000_000 / u128::from((clean + dirty).max(1))) as u32;
        let due = dirty > 0 && (overdue || share_ppm > policy.dirty_ratio_ppm || guards.points.fires(Point::CleanAll));
        let waits = upto < self.active.base;
        Dirty { from, upto: upto.max(from), bytes: dirty, share_ppm, due, waits }
    }

    /// How many segments may be looked at: the closed ones.
    fn cleanable_segments(&self, guards: &mut Guards, bound: Offset) -> usize {
        let closed = self.closed_segments().len();
        // The mutant takes the one that is appended to as well.
        let whole = self.active.size > 0 && self.end <= bound;
        closed + usize::from(whole && guards.admits(guard::ActiveSegmentIsNotCleaned, false))
    }

    fn segment_end(&self, at: usize) -> Offset {
        if at < self.closed_segments().len() {
            self.segment(at + 1).base
        } else {
            self.end
        }
    }

    /// Writes what is to take the place of the segments up to `dirty.upto`, and says what to flush before [`Self::swap`].
    /// `false`: there is nothing to swap, the log is as clean as it gets.
    ///
    /// # Errors
    /// See [`CleanError`].
    pub fn plan_cleaning(
        &mut self,
        disk: &mut dyn Disk,
        guards: &mut Guards,
        policy: &LogPolicy,
        dirty: &Dirty,
        now: Now,
        wants: &mut Vec<FlushWant>,
    ) -> Result<bool, CleanError> {
        let groups = self.write_groups(disk, guards, policy, dirty, now);
        let groups = groups.inspect_err(|error| self.flags.offline |= matches!(error, CleanError::Disk(_)))?;
        if guards.admits(guard::CleanedIsFlushedBeforeSwap, groups.is_empty()) {
            // Nothing to flush, or the mutant, which swaps at once.
        } else {
            wants.extend(groups.iter().map(|group| FlushWant::File(group.new.file)));
        }
        let changes = !groups.is_empty();
        let cleaner = self.cleaner.get_or_insert_default();
        if changes {
            cleaner.pass = Some(Pass { from: dirty.from, upto: dirty.upto, at_ms: now.wall_ms, groups });
        } else {
            cleaner.cleaned = dirty.upto;
        }
        Ok(changes)
    }

    fn write_groups(
        &self,
        disk: &mut dyn Disk,
        guards: &mut Guards,
        policy: &LogPolicy,
        dirty: &Dirty,
        now: Now,
    ) -> Result<Vec<Group>, CleanError> {
        let count = (0..self.segment_count()).take_while(|at| self.segment_end(*at) <= dirty.upto).count();
        let mut sieve = Sieve::new(&self.producers, policy, now.wall_ms);
        for at in (0..count).filter(|at| self.segment_end(*at) > dirty.from) {
            for bytes in self.batches_of(disk, at, guards)? {
                if let Ok(batch) = BatchView::parse(&bytes) {
                    sieve.learn(&bytes, &batch, guards);
                }
            }
        }
        let (mut groups, mut at) = (Vec::new(), 0);
        while at < count {
            let end = self.group_end(at, count, policy);
            groups.extend(self.write_group(disk, guards, policy, &mut sieve, at..end)?);
            at = end;
        }
        Ok(groups)
    }

    fn batches_of(&self, disk: &dyn Disk, at: usize, guards: &mut Guards) -> Result<Vec<Bytes>, CleanError> {
        let (segment, mut next) = (self.segment(at), self.segment(at).base);
        let (mut batches, mut walk) = (Vec::new(), Walk::new(segment.file, 0, u64::from(segment.size)));
        loop {
            match walk.step(disk)? {
                Step::Batch(bytes) => {
                    // 1. A byte of a batch rots. 2. The cleaner drops one of its records and writes the rest anew, under a CRC of
                    // its own. 3. From now on everybody takes the rotten byte for what was written.
                    let sound = BatchView::parse(&bytes).is_ok_and(|batch| {
                        next = batch.next_offset();
                        batch.crc_valid()
                    });
                    if !guards.admits(guard::CrcCheckedOnCleaning, sound) {
                        return Err(CleanError::Damaged(HeaderView::parse(&bytes).map_or(next, |h| h.base_offset())));
                    }
                    batches.push(bytes);
                }
                Step::End => return Ok(batches),
                Step::Bad(_) => return Err(CleanError::Damaged(next)),
            }
        }
    }

    /// Segments from `at` on that fit into one, by size and by the offsets that an index can tell apart.
    fn group_end(&self, at: usize, count: usize, policy: &LogPolicy) -> usize {
        let (base, mut size) = (self.segment(at).base, 0);
        let mut end = at;
        while end < count {
            size += u64::from(self.segment(end).size);
            let span = self.segment_end(end).0 - base.0;
            if end > at && (size > u64::from(policy.segment_bytes) || span > i64::from(i32::MAX)) {
                break;
            }
            end += 1;
        }
        end
    }

    /// One new file for some segments; `None` if it would be the same as the only one.
    fn write_group(
        &self,
        disk: &mut dyn Disk,
        guards: &mut Guards,
        policy: &LogPolicy,
        sieve: &mut Sieve<'_>,
        range: std::ops::Range<usize>,
    ) -> Result<Option<Group>, CleanError> {
        let (base, single) = (self.segment(range.start).base, range.len() == 1);
        let mut batches = Vec::new();
        for at in range.clone() {
            batches.extend(self.batches_of(disk, at, guards)?);
        }
        let (mut kept, mut changed) = (Vec::with_capacity(batches.len()), false);
        for (n, bytes) in batches.iter().enumerate() {
            let Ok(batch) = BatchView::parse(bytes) else { return Err(DiskError::Io.into()) };
            let left = match sieve.judge(&batch, guards) {
                Left::All => Some(bytes.clone()),
                Left::Some(rest) => Some(rest),
                Left::Nothing => {
                    // Recovery tells a lost file from a gap by this: a segment begins where the one before it ends.
                    let last = n + 1 == batches.len();
                    let keep = last && !guards.admits(guard::KeepsLastBatchOfSegment, false);
                    let keep = sieve.holds_producer(&batch, guards) || keep;
                    let whole = batch.record_count() == 0;
                    keep.then(|| if whole { bytes.clone() } else { emptied(&batch).unwrap_or_else(|| bytes.clone()) })
                }
            };
            changed |= left.as_ref() != Some(bytes);
            kept.extend(left);
        }
        if single && !changed {
            return Ok(None);
        }
        let new = write_segment(disk, self.dir, base, kept, policy.index_interval_bytes)?;
        let old = range.map(|at| (self.segment(at).base, self.segment(at).file)).collect();
        Ok(Some(Group { old, new }))
    }

    /// The new files are durable: puts them in place of the old segments. `None`: the log was cut, or retention took the
    /// segments meanwhile, and the cleaning is given up. When the directory is flushed, the checkpoint may say so.
    ///
    /// # Errors
    /// The disk's; the log is offline then.
    pub fn swap(&mut self, disk: &mut dyn Disk) -> Result<Option<Cleaned>, DiskError> {
        let Some(pass) = self.cleaner.as_mut().and_then(|cleaner| cleaner.pass.take()) else { return Ok(None) };
        let mut whole = true;
        for group in pass.groups {
            let at = self.segments().position(|s| Some(s.file) == group.old.first().map(|old| old.1));
            let same = at.filter(|at| {
                self.segments().skip(*at).map(|s| s.file).take(group.old.len()).eq(group.old.iter().map(|o| o.1))
            });
            let Some(at) = same else {
                whole = false;
                disk.remove(self.dir, FileName::Cleaned(group.new.base.0))
                    .inspect_err(|_| self.flags.offline = true)?;
                continue;
            };
            self.swap_group(disk, group, at).inspect_err(|_| self.flags.offline = true)?;
        }
        if !whole {
            return Ok(None);
        }
        self.cleaner.get_or_insert_default().cleaned = pass.upto;
        Ok(Some(Cleaned { from: pass.from, upto: pass.upto, at_ms: pass.at_ms }))
    }

    fn swap_group(&mut self, disk: &mut dyn Disk, group: Group, at: usize) -> Result<(), DiskError> {
        let Group { old, new } = group;
        disk.rename(self.dir, new.file, FileName::Swap(new.base.0))?;
        for (base, _) in old.iter().rev() {
            disk.remove(self.dir, FileName::Segment(base.0))?;
        }
        disk.rename(self.dir, new.file, FileName::Segment(new.base.0))?;
        for (base, _) in &old[1..] {
            if self.flags.producers {
                match self.remove_snapshot(disk, FileName::ProducerSnapshot(base.0)) {
                    Ok(()) | Err(DiskError::NotFound) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let closed = self.closed.get_or_insert_default();
        if at + old.len() > closed.len() {
            closed.truncate(at);
            self.active = new;
        } else {
            closed.splice(at..at + old.len(), [new]);
        }
        if closed.is_empty() {
            self.closed = None;
        }
        self.flags.names = true;
        Ok(())
    }

    /// Gives up a cleaning under way, and what is known to be clean from `to` on: the log is about to be cut there.
    pub(super) fn uncleaned_from(
        &mut self,
        disk: &mut dyn Disk,
        guards: &mut Guards,
        to: Offset,
    ) -> Result<(), DiskError> {
        let Some(cleaner) = &mut self.cleaner else { return Ok(()) };
        if let Some(pass) = cleaner.pass.take() {
            for group in pass.groups {
                disk.remove(self.dir, FileName::Cleaned(group.new.base.0))?;
            }
        }
        // 1. A log is clean up to 80. 2. It is cut to 50, and a value and its tombstone come below 80. 3. Taken for clean, the value
        // stays; the tombstone goes when its time is over; the value is back.
        if !guards.admits(guard::CleanPointCutWithLog, cleaner.cleaned <= to) {
            cleaner.cleaned = to;
            // Its checkpoint stands above it, whatever the recovery point says: at the next boot the new batches would be clean.
            self.flags.lowered = true;
        }
        Ok(())
    }
}

fn write_segment(
    disk: &mut dyn Disk,
    dir: DirId,
    base: Offset,
    batches: Vec<Bytes>,
    interval: u32,
) -> Result<Segment, DiskError> {
    let name = FileName::Cleaned(base.0);
    let file = match disk.create(dir, name) {
        Err(DiskError::Exists) => {
            disk.remove(dir, name)?;
            disk.create(dir, name)?
        }
        other => other?,
    };
    let mut segment = Segment::new(base, file);
    for batch in batches {
        let header = HeaderView::parse(&batch).map_err(|_| DiskError::Io)?;
        segment.note(&header, interval);
        disk.append(file, batch.clone())?;
    }
    Ok(segment)
}

/// What a boot does before it looks at the segments: a cleaning that did not come to its swap is forgotten, a swap that began
/// is ended. Gives the files as they are then.
pub(super) fn settle_cleaning(
    disk: &mut dyn Disk,
    dir: DirId,
    files: Vec<FileName>,
    guards: &mut Guards,
) -> Result<Vec<FileName>, DiskError> {
    if !files.iter().any(|name| matches!(name, FileName::Cleaned(_) | FileName::Swap(_))) {
        return Ok(files);
    }
    for name in &files {
        match *name {
            FileName::Cleaned(_) => disk.remove(dir, *name)?,
            // The mutant takes it for rubbish too.
            FileName::Swap(_) if guards.admits(guard::SwapIsEndedAtBoot, false) => disk.remove(dir, *name)?,
            FileName::Swap(base) => end_swap(disk, dir, &files, base)?,
            _ => {}
        }
    }
    Ok(disk.list(dir))
}

fn end_swap(disk: &mut dyn Disk, dir: DirId, files: &[FileName], base: i64) -> Result<(), DiskError> {
    let file = disk.open(dir, FileName::Swap(base))?;
    let (mut end, mut walk) = (base + 1, Walk::new(file, 0, disk.len(file)));
    while let Step::Batch(bytes) = walk.step(disk)? {
        let Ok(header) = HeaderView::parse(&bytes) else { break };
        end = header.next_offset().0;
    }
    for name in files.iter().rev() {
        let gone = match *name {
            FileName::Segment(at) => base <= at && at < end,
            FileName::ProducerSnapshot(at) => base < at && at < end,
            _ => false,
        };
        if gone {
            disk.remove(dir, *name)?;
        }
    }
    disk.rename(dir, file, FileName::Segment(base))
}
