//! One segment file with its sparse offset index, and the walk over the batches of a file.
//!
//! The index lives in memory only and is rebuilt at load: it is a fold of the file, so there is nothing to trust.

use crate::ids::Offset;
use crate::log::Overflow;
use crate::ports::{Disk, DiskError, FileId};
use crate::record::{BatchError, BatchView, HeaderView};
use bytes::{Bytes, BytesMut};

/// Where a batch begins: offset relative to the segment's base, position in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IndexEntry {
    offset: u32,
    pos: u32,
}

/// One file of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// No batch in it ends below this; also the file's name.
    pub base: Offset,
    /// Largest timestamp of the first batch, milliseconds; −1 while empty. Rolling by time counts from it.
    pub first_timestamp: i64,
    /// Largest timestamp of all batches, milliseconds; −1 while empty.
    pub max_timestamp: i64,
    index: Overflow<IndexEntry>,
    /// The file.
    pub file: FileId,
    /// Bytes of whole batches in it.
    pub size: u32,
    since_index: u32,
}

/// The numbers of a segment that an append changes, to undo a failed one.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentMark {
    first_timestamp: i64,
    max_timestamp: i64,
    pub(super) size: u32,
    since_index: u32,
}

impl Segment {
    /// An empty segment over an empty file.
    #[must_use]
    pub fn new(base: Offset, file: FileId) -> Self {
        Self { base, first_timestamp: -1, max_timestamp: -1, index: None, file, size: 0, since_index: 0 }
    }

    /// Takes note of a batch that was written at the end.
    #[inline]
    pub(super) fn note(&mut self, batch: &HeaderView<'_>, interval: u32) {
        // An entry goes before the batch that finds more than an interval behind it, like Kafka's; the first batch of a
        // file needs none, position 0 is implied.
        if self.since_index > interval {
            let offset = (batch.base_offset().0 - self.base.0).clamp(0, i64::from(u32::MAX)) as u32;
            self.index.get_or_insert_default().push(IndexEntry { offset, pos: self.size });
            self.since_index = 0;
        }
        let timestamp = batch.max_timestamp();
        if self.size == 0 {
            self.first_timestamp = timestamp;
        }
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.size += batch.size() as u32;
        self.since_index += batch.size() as u32;
    }

    pub(super) fn mark(&self) -> SegmentMark {
        SegmentMark {
            first_timestamp: self.first_timestamp,
            max_timestamp: self.max_timestamp,
            size: self.size,
            since_index: self.since_index,
        }
    }

    /// Forgets what came after the mark.
    pub(super) fn undo(&mut self, mark: SegmentMark) {
        self.first_timestamp = mark.first_timestamp;
        self.max_timestamp = mark.max_timestamp;
        self.size = mark.size;
        self.since_index = mark.since_index;
        self.trim_index();
    }

    /// Forgets batches from `size` on. The largest timestamp stays: too large only delays retention, like in Kafka before
    /// it reads the time index again.
    pub(super) fn cut(&mut self, size: u32) {
        self.size = self.size.min(size);
        self.trim_index();
        let last = self.index.as_ref().and_then(|index| index.last()).map_or(0, |entry| entry.pos);
        self.since_index = self.size - last;
        if self.size == 0 {
            self.first_timestamp = -1;
            self.max_timestamp = -1;
        }
    }

    fn trim_index(&mut self) {
        let size = self.size;
        if let Some(index) = &mut self.index {
            while index.last().is_some_and(|entry| entry.pos >= size) {
                index.pop();
            }
            if index.is_empty() {
                self.index = None;
            }
        }
    }

    /// A position at or before the first batch that ends at or after `offset`.
    #[must_use]
    pub fn floor(&self, offset: Offset) -> u32 {
        let Some(index) = &self.index else { return 0 };
        let at = index.partition_point(|entry| self.base.plus(i64::from(entry.offset)) <= offset);
        at.checked_sub(1).map_or(0, |at| index[at].pos)
    }

    /// A position at or after the end of all batches that begin below `offset`, as far as the index knows.
    #[must_use]
    pub fn ceiling(&self, offset: Offset) -> u32 {
        let Some(index) = &self.index else { return self.size };
        let below = |entry: &IndexEntry| self.base.plus(i64::from(entry.offset)) < offset;
        if index.last().is_some_and(below) {
            return self.size;
        }
        let at = index.partition_point(below);
        index.get(at).map_or(self.size, |entry| entry.pos)
    }

    /// How many index entries there are.
    #[must_use]
    pub fn index_len(&self) -> usize {
        self.index.as_ref().map_or(0, |index| index.len())
    }
}

/// How much a walk reads at once.
const WALK_CHUNK: u64 = 256 * 1024;

/// What a walk finds next.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A batch.
    Batch(Bytes),
    /// The end, at a batch border.
    End,
    /// At the walk's position there is no whole batch.
    Bad(BatchError),
}

/// Walks the batches of a file from a batch border on, whatever pieces the disk gives.
#[derive(Debug)]
pub(super) struct Walk {
    file: FileId,
    pos: u64,
    end: u64,
    pieces: Vec<Bytes>,
    next: usize,
    rest: Bytes,
}

impl Walk {
    /// From `pos` to `end`.
    pub(super) fn new(file: FileId, pos: u32, end: u64) -> Self {
        Self { file, pos: u64::from(pos), end, pieces: Vec::new(), next: 0, rest: Bytes::new() }
    }

    /// Where the next batch begins.
    pub(super) fn pos(&self) -> u32 {
        self.pos as u32
    }

    /// The next batch.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn step(&mut self, disk: &dyn Disk) -> Result<Step, DiskError> {
        if self.pos >= self.end {
            return Ok(Step::End);
        }
        if self.rest.is_empty() && !self.refill(disk)? {
            return Ok(Step::Bad(BatchError::Truncated { need: 1, have: 0 }));
        }
        match BatchView::parse(&self.rest).map(|batch| batch.size()) {
            Ok(size) => {
                let batch = self.rest.split_to(size);
                Ok(self.found(batch))
            }
            Err(BatchError::Truncated { need, .. }) => self.join(disk, need),
            Err(error) => Ok(Step::Bad(error)),
        }
    }

    fn found(&mut self, batch: Bytes) -> Step {
        self.pos += batch.len() as u64;
        Step::Batch(batch)
    }

    fn refill(&mut self, disk: &dyn Disk) -> Result<bool, DiskError> {
        if self.next == self.pieces.len() {
            self.pieces.clear();
            self.next = 0;
            disk.read(self.file, self.pos, (self.end - self.pos).min(WALK_CHUNK), &mut self.pieces)?;
        }
        let Some(piece) = self.pieces.get(self.next) else { return Ok(false) };
        self.next += 1;
        self.rest = piece.clone();
        Ok(!self.rest.is_empty())
    }

    /// A batch that lies in several pieces is copied together: it was not written by one append of ours.
    fn join(&mut self, disk: &dyn Disk, need: usize) -> Result<Step, DiskError> {
        let (mut need, mut joined) = (need, BytesMut::new());
        self.pieces.clear();
        self.next = 0;
        self.rest = Bytes::new();
        loop {
            if self.pos + need as u64 > self.end {
                return Ok(Step::Bad(BatchError::Truncated { need, have: (self.end - self.pos) as usize }));
            }
            while joined.len() < need {
                let mut pieces = Vec::new();
                let at = self.pos + joined.len() as u64;
                if disk.read(self.file, at, (need - joined.len()) as u64, &mut pieces)? == 0 {
                    return Ok(Step::Bad(BatchError::Truncated { need, have: joined.len() }));
                }
                pieces.iter().for_each(|piece| joined.extend_from_slice(piece));
            }
            match BatchView::parse(&joined).map(|batch| batch.size()) {
                Ok(size) => {
                    let batch = joined.freeze().slice(..size);
                    return Ok(self.found(batch));
                }
                Err(BatchError::Truncated { need: more, .. }) if more > need => need = more,
                Err(error) => return Ok(Step::Bad(error)),
            }
        }
    }
}
