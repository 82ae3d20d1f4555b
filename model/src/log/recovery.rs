//! Loading a log from disk. After a clean stop the files are trusted; after any other, everything above the recovery point is
//! proven batch by batch, and the log is cut where the proof fails.

use crate::guards::{log as guard, Guards};
use crate::ids::Offset;
use crate::log::clean::settle_cleaning;
use crate::log::epoch_cache::{EpochCache, EpochEntry};
use crate::log::log::{Flags, Log};
use crate::log::policy::LogPolicy;
use crate::log::segment::{Segment, Step, Walk};
use crate::log::snapshot::{decode_epochs, read_file};
use crate::ports::{DirId, Disk, DiskError, FileName};
use crate::record::{BatchView, HeaderView};
use bytes::Bytes;

/// What the broker's own files say about a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadFrom {
    /// Whether the clean-shutdown marker was there.
    pub clean: bool,
    /// The checkpointed recovery point.
    pub recovery_point: Offset,
    /// The checkpointed log start.
    pub start: Offset,
    /// The checkpointed high watermark.
    pub hw: Offset,
    /// Up to where the cleaner's checkpoint says that it is compacted, if it says anything.
    pub cleaned: Option<Offset>,
}

impl Default for LoadFrom {
    /// No file says anything, and the stop was not clean.
    fn default() -> Self {
        Self { clean: false, recovery_point: Offset::ZERO, start: Offset::ZERO, hw: Offset::ZERO, cleaned: None }
    }
}

/// What loading found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Where the log was cut, if it was.
    pub cut: Option<Offset>,
    /// It was cut below what was durable: that is no end of an unfinished write, something stored is damaged or gone.
    pub damaged: bool,
    /// Bytes that were cut off, whole lost segments included.
    pub cut_bytes: u64,
    /// Batches whose CRC was checked.
    pub scanned: u32,
    /// Offset of the producer snapshot that was used.
    pub snapshot: Option<Offset>,
    /// Whether the epoch cache came from the batches alone.
    pub epochs_rebuilt: bool,
}

/// What the scan of the segments collects.
struct Scan {
    segments: Vec<Segment>,
    end: Offset,
    /// Epochs of all batches.
    all: EpochCache,
    /// Epochs of batches that end above the recovery point, and where the first of those begins.
    tail: EpochCache,
    tail_start: Option<Offset>,
    /// Offsets without a batch among them: what stood there was compacted away.
    gaps: Vec<(Offset, Offset)>,
    /// It is compacted up to here.
    cleaned: Offset,
    producers: bool,
    /// CRCs are checked from here on.
    proof_from: Offset,
    recovered: Recovered,
}

impl Log {
    /// Loads the log of a directory; creates an empty one at `from.start` if there is none.
    ///
    /// # Errors
    /// The disk's: the log cannot be used.
    pub fn load(
        disk: &mut dyn Disk,
        dir: DirId,
        from: LoadFrom,
        guards: &mut Guards,
        policy: &LogPolicy,
    ) -> Result<(Self, Recovered), DiskError> {
        // After an unclean stop the guard refuses to trust the files; off, it trusts them all the same.
        let from = LoadFrom { start: from.start.max(Offset::ZERO), ..from };
        let trust = guards.admits(guard::UncleanRecoveryScans, from.clean);
        let found = disk.list(dir);
        let files = settle_cleaning(disk, dir, found, guards)?;
        for name in files.iter().filter(|name| matches!(name, FileName::Temp(_))) {
            disk.remove(dir, *name)?;
        }
        let mut scan = Scan::new(if trust { Offset(i64::MAX) } else { from.recovery_point });
        scan.cleaned = from.cleaned.unwrap_or_default();
        scan.run(disk, dir, &files, guards, policy)?;
        let sure = scan.proof_from.max(from.start);
        scan.recovered.damaged = scan.recovered.cut.is_some_and(|cut| cut < sure);
        let (active, closed) = scan.settle(disk, dir, from.start)?;
        let first = closed.first().unwrap_or(&active).base;
        let start = from.start.max(first);
        let mut log = Self::over(dir, active, start);
        log.closed = (!closed.is_empty()).then(|| Box::new(closed));
        log.end = scan.end.max(start);
        log.high_watermark = from.hw.max(log.start);
        if log.high_watermark > log.end {
            log.lower_watermark(guards, log.end);
        }
        log.recovery_point = if trust { log.end } else { from.recovery_point.max(Offset::ZERO) };
        log.lower_recovery_point(log.end);
        log.flags = Flags { names: !from.clean, home: !from.clean, producers: scan.producers, ..log.flags };
        if let Some(cleaned) = from.cleaned {
            log.set_cleaned(cleaned);
        }
        log.load_epochs(disk, &files, &mut scan, trust, guards)?;
        log.load_alignments(disk, &files)?;
        if log.flags.producers {
            let limit = if trust { log.end } else { log.recovery_point };
            scan.recovered.snapshot = log.reload_producers(disk, guards, limit)?;
        }
        Ok((log, scan.recovered))
    }

    fn load_epochs(
        &mut self,
        disk: &mut dyn Disk,
        files: &[FileName],
        scan: &mut Scan,
        trust: bool,
        guards: &mut Guards,
    ) -> Result<(), DiskError> {
        let mut stored = None;
        if files.contains(&FileName::EpochCheckpoint) {
            let file = disk.open(self.dir, FileName::EpochCheckpoint)?;
            stored = decode_epochs(&read_file(disk, file)?)
                .filter(|stored| guards.admits(guard::SnapshotChecksumMatches, stored.intact))
                .map(|stored| stored.contents);
        }
        self.epochs = match &stored {
            None => {
                scan.recovered.epochs_rebuilt = true;
                std::mem::take(&mut scan.all)
            }
            Some(stored) if trust => stored.clone(),
            Some(stored) => {
                // 1. DeleteRecords moves the start to 101: the file forgets what was below, and is flushed with the log. 2. Power
                // loss takes the checkpoint of the start: the log begins at 0 again. 3. Only the batches know their epochs there.
                let mut epochs = std::mem::take(&mut scan.all);
                // The batches above the recovery point are told anew below: an epoch begins no later than where that begins.
                let tail = scan.tail_start.unwrap_or(self.end);
                epochs.truncate_from_end(stored.entries().first().map_or(self.end, |first| first.start).min(tail));
                // The file is as old as the last flush: above the recovery point it may tell of batches that were cut since.
                let sure = scan.tail_start.map_or(self.recovery_point, |tail| tail.min(self.recovery_point));
                let known = stored.entries().iter().filter(|entry| entry.start < sure);
                for entry in known.chain(&merged(stored, scan, sure)) {
                    epochs.assign(entry.epoch, entry.start);
                }
                epochs
            }
        };
        self.epochs.truncate_from_start(self.start);
        self.epochs.truncate_from_end(self.end);
        self.flags.epochs =
            stored.as_ref() != Some(&self.epochs) && !(stored.is_none() && self.epochs.entries().is_empty());
        Ok(())
    }
}

/// The epochs of the batches above the recovery point, and those that the file says begin from `sure` on where compaction left no
/// batch to begin with: only it can know them. What it says against a later batch gives way to that.
fn merged(stored: &EpochCache, scan: &Scan, sure: Offset) -> Vec<EpochEntry> {
    let mut entries = scan.tail.entries().to_vec();
    if !scan.gaps.is_empty() {
        let lost = |e: &&EpochEntry| scan.gaps.iter().any(|(from, to)| *from.max(&sure) <= e.start && e.start <= *to);
        entries.extend(stored.entries().iter().filter(lost));
        entries.sort_unstable_by_key(|e| (e.start, e.epoch));
    }
    entries
}

impl Scan {
    fn new(proof_from: Offset) -> Self {
        Self {
            segments: Vec::new(),
            end: Offset::ZERO,
            all: EpochCache::default(),
            tail: EpochCache::default(),
            tail_start: None,
            gaps: Vec::new(),
            cleaned: Offset::ZERO,
            producers: false,
            proof_from,
            recovered: Recovered::default(),
        }
    }

    fn run(
        &mut self,
        disk: &mut dyn Disk,
        dir: DirId,
        files: &[FileName],
        guards: &mut Guards,
        policy: &LogPolicy,
    ) -> Result<(), DiskError> {
        self.producers = files.iter().any(|name| matches!(name, FileName::ProducerSnapshot(_)));
        let mut lost = Vec::new();
        let segments: Vec<Offset> = files
            .iter()
            .filter_map(|name| if let FileName::Segment(base) = name { Some(Offset(*base)) } else { None })
            .collect();
        for (at, base) in segments.iter().copied().enumerate() {
            // A name that a crash took leaves a gap between files, which no roll makes.
            let follows = self.segments.is_empty() || base == self.end;
            if self.recovered.cut.is_some() || !guards.admits(guard::SegmentsContiguous, follows) {
                self.recovered.cut.get_or_insert(self.end);
                lost.push(base);
                continue;
            }
            self.scan_segment(disk, dir, (base, segments.get(at + 1).copied()), guards, policy)?;
        }
        // Newest first: a crash in between leaves a prefix.
        for base in lost.into_iter().rev() {
            let file = disk.open(dir, FileName::Segment(base.0))?;
            self.recovered.cut_bytes += disk.len(file);
            disk.remove(dir, FileName::Segment(base.0))?;
        }
        Ok(())
    }

    fn scan_segment(
        &mut self,
        disk: &mut dyn Disk,
        dir: DirId,
        (base, next): (Offset, Option<Offset>),
        guards: &mut Guards,
        policy: &LogPolicy,
    ) -> Result<(), DiskError> {
        let file = disk.open(dir, FileName::Segment(base.0))?;
        let len = disk.len(file).min(u64::from(u32::MAX));
        let mut segment = Segment::new(base, file);
        self.end = self.end.max(base);
        let mut walk = Walk::new(file, 0, len);
        let mut last: Option<Bytes> = None;
        while let Step::Batch(bytes) = walk.step(&*disk)? {
            let Ok(batch) = BatchView::parse(&bytes) else { break };
            // Compaction leaves gaps; and so does a header that names another last offset than was written.
            let gap = batch.base_offset() > self.end && self.end >= self.cleaned;
            if !self.admits(&batch, guards) || (gap && last.as_deref().is_some_and(|last| !BatchView::is_sound(last))) {
                break;
            }
            segment.note(&batch, policy.index_interval_bytes);
            self.note(&batch);
            last = Some(bytes.clone());
        }
        // 1. A broker stops in order. 2. The last batch rots: it names a last offset that was never written. 3. The marker says that
        // nothing has to be proven; the log ends at that offset, and acknowledges it to its leader.
        let whole = u64::from(segment.size) == disk.len(file) && next == Some(self.end);
        let last = last.filter(|_| !whole);
        if let Some(last) = last.filter(|last| !guards.admits(guard::LastHeaderProven, BatchView::is_sound(last))) {
            self.take_back(&mut segment, &last);
        }
        if u64::from(segment.size) < disk.len(file) {
            self.recovered.cut = Some(self.end);
            self.recovered.cut_bytes += disk.len(file) - u64::from(segment.size);
            disk.truncate(file, u64::from(segment.size))?;
        }
        self.segments.push(segment);
        Ok(())
    }

    /// The last batch of a segment is none.
    fn take_back(&mut self, segment: &mut Segment, last: &[u8]) {
        segment.cut(segment.size - last.len() as u32);
        self.end = HeaderView::parse(last).map_or(segment.base, |header| header.base_offset());
        self.all.truncate_from_end(self.end);
        self.tail.truncate_from_end(self.end);
    }

    fn admits(&mut self, batch: &BatchView<'_>, guards: &mut Guards) -> bool {
        if batch.base_offset() < self.end {
            return false;
        }
        if batch.last_offset() < self.proof_from {
            return true;
        }
        self.recovered.scanned += 1;
        // 1. The log is cut; the removal of a segment's name is not durable. 2. A newer leader's data fill the file before it,
        // by chance up to its base. 3. Power fails; the segment is back, contiguous, with its valid CRCs.
        guards.admits(guard::CrcCheckedOnRecovery, batch.crc_valid())
            && guards.admits(guard::EpochsRiseOnRecovery, batch.leader_epoch() >= self.all.latest())
    }

    fn note(&mut self, batch: &BatchView<'_>) {
        let (epoch, base) = (batch.leader_epoch(), batch.base_offset());
        self.all.assign(epoch, base);
        if batch.last_offset() >= self.proof_from {
            if base > self.end && base <= self.cleaned {
                self.gaps.push((self.end, base));
            }
            self.tail_start.get_or_insert(base);
            self.tail.assign(epoch, base);
        }
        self.producers |= batch.producer().0 >= 0 || batch.is_control();
        self.end = batch.next_offset();
    }

    /// The segments of the log: at least one, none wholly useless because the log start is above the end.
    fn settle(&mut self, disk: &mut dyn Disk, dir: DirId, start: Offset) -> Result<(Segment, Vec<Segment>), DiskError> {
        let mut segments = std::mem::take(&mut self.segments);
        let holds = segments.iter().any(|segment| segment.size > 0);
        if holds && self.end < start {
            // The log start was checkpointed, the records below it were lost: Kafka starts anew there too.
            for segment in segments.drain(..).rev() {
                disk.remove(dir, FileName::Segment(segment.base.0))?;
            }
            self.all.clear();
            self.tail.clear();
        }
        match segments.pop() {
            Some(active) => Ok((active, segments)),
            None => {
                self.end = start;
                let file = disk.create(dir, FileName::Segment(start.0))?;
                Ok((Segment::new(start, file), segments))
            }
        }
    }
}
