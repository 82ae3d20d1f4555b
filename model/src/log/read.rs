//! Reading: by offset for fetches, by time for look-ups.

use crate::ids::Offset;
use crate::log::log::Log;
use crate::log::segment::{Segment, Step, Walk};
use crate::ports::{Disk, DiskError};
use crate::record::{BatchError, BatchView, HeaderView};
use crate::wire::errors::ErrorCode;
use bytes::Bytes;

/// Where the last read ended, so that the next one need not search. Belongs to a fetch session; a hint that does not fit
/// the log any more is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadHint {
    file: u32,
    pos: u32,
    generation: u32,
}

impl ReadHint {
    /// No hint.
    pub const NONE: Self = Self { file: u32::MAX, pos: 0, generation: u32::MAX };
}

impl Default for ReadHint {
    fn default() -> Self {
        Self::NONE
    }
}

/// Why a read gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The offset is not in the log.
    OutOfRange {
        /// Log start.
        start: Offset,
        /// Log end.
        end: Offset,
    },
    /// The file does not hold what was written.
    Corrupt(BatchError),
    /// The disk.
    Disk(DiskError),
    /// The log is offline.
    Offline,
}

impl ReadError {
    /// What a client is told.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::OutOfRange { .. } => ErrorCode::OffsetOutOfRange,
            Self::Corrupt(_) => ErrorCode::CorruptMessage,
            Self::Disk(_) | Self::Offline => ErrorCode::KafkaStorageError,
        }
    }
}

impl From<DiskError> for ReadError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

/// What a look at some pieces gave.
struct Trimmed {
    /// Bytes kept.
    bytes: u32,
    /// Position of the first batch kept.
    at: u32,
    /// There may be more behind: nothing was kept, and no limit was met.
    go_on: bool,
}

/// What a read is asked for.
#[derive(Clone, Copy)]
struct Wanted {
    from: Offset,
    upto: Offset,
    max_bytes: u32,
    min_one: bool,
    /// The log ends here; what claims to reach further is damaged.
    end: Offset,
}

impl Log {
    /// Reads whole batches from the one that holds `from` on, as long as they end at or below `upto` and `max_bytes` is not
    /// passed; with `min_one` the first is read whatever its size. One read ends at the end of a segment. `out` is extended
    /// by one element per batch; the return value is their bytes.
    ///
    /// The batch that holds `from` may begin below it: readers skip records.
    ///
    /// # Errors
    /// See [`ReadError`].
    #[allow(clippy::too_many_arguments)]
    pub fn read(
        &self,
        disk: &dyn Disk,
        from: Offset,
        upto: Offset,
        max_bytes: u32,
        min_one: bool,
        hint: &mut ReadHint,
        out: &mut Vec<Bytes>,
    ) -> Result<u32, ReadError> {
        if self.flags.offline {
            return Err(ReadError::Offline);
        }
        if from < self.start || from > self.end {
            return Err(ReadError::OutOfRange { start: self.start, end: self.end });
        }
        let wanted = Wanted { from, upto: upto.min(self.end), max_bytes, min_one, end: self.end };
        if from >= wanted.upto || (max_bytes == 0 && !min_one) {
            return Ok(0);
        }
        for at in self.segment_of(from)..self.segment_count() {
            let segment = self.segment(at);
            if segment.base >= wanted.upto {
                break;
            }
            if let Some(trimmed) = self.read_segment(disk, segment, wanted, *hint, out)? {
                if trimmed.bytes > 0 {
                    let pos = trimmed.at + trimmed.bytes;
                    *hint = ReadHint { file: segment.file.0, pos, generation: self.generation };
                }
                return Ok(trimmed.bytes);
            }
        }
        Ok(0)
    }

    /// Reads within one segment. `None`: it holds nothing from `from` on.
    fn read_segment(
        &self,
        disk: &dyn Disk,
        segment: &Segment,
        wanted: Wanted,
        hint: ReadHint,
        out: &mut Vec<Bytes>,
    ) -> Result<Option<Trimmed>, ReadError> {
        let fits = hint.file == segment.file.0 && hint.generation == self.generation && hint.pos < segment.size;
        if fits && wanted.from > segment.base {
            // A border between batches for certain; whether it is this offset's, the first header tells.
            let first = out.len();
            let trimmed = read_at(disk, segment, hint.pos, wanted, true, out)?;
            if !trimmed.go_on {
                return Ok(Some(trimmed));
            }
            out.truncate(first);
        }
        let mut pos = segment.floor(wanted.from);
        while pos < segment.size {
            let trimmed = read_at(disk, segment, pos, wanted, false, out)?;
            if !trimmed.go_on {
                return Ok(Some(trimmed));
            }
            if trimmed.at <= pos {
                return Err(ReadError::Corrupt(BatchError::Truncated {
                    need: segment.size as usize,
                    have: pos as usize,
                }));
            }
            pos = trimmed.at;
        }
        Ok(None)
    }

    /// The first record with a timestamp not below `timestamp` (milliseconds), below `upto`: its offset and timestamp. For a
    /// compressed batch, offset and largest timestamp of the batch.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn offset_for_timestamp(
        &self,
        disk: &dyn Disk,
        timestamp: i64,
        upto: Offset,
    ) -> Result<Option<(Offset, i64)>, ReadError> {
        for segment in self.segments().filter(|segment| segment.max_timestamp >= timestamp) {
            let mut walk = Walk::new(segment.file, 0, u64::from(segment.size));
            while let Step::Batch(bytes) = walk.step(disk)? {
                let batch = BatchView::parse(&bytes).map_err(ReadError::Corrupt)?;
                if batch.base_offset() >= upto {
                    return Ok(None);
                }
                if batch.last_offset() < self.start || batch.max_timestamp() < timestamp {
                    continue;
                }
                let found = first_at_or_after(&batch, timestamp, self.start);
                if let Some(found) = found.filter(|(offset, _)| *offset < upto) {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    /// The batch that holds `offset`, or the first one after it.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn batch_at(&self, disk: &dyn Disk, offset: Offset) -> Result<Option<Bytes>, ReadError> {
        let (mut out, mut hint) = (Vec::new(), ReadHint::NONE);
        self.read(disk, offset, self.end, 0, true, &mut hint, &mut out)?;
        Ok(out.into_iter().next())
    }

    /// Calls `each` with every batch from the one that holds `from` on, in order: for replay of a coordinator's or the
    /// controller's log at load, and for checkers.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn for_each_batch(
        &self,
        disk: &dyn Disk,
        from: Offset,
        mut each: impl FnMut(&BatchView<'_>),
    ) -> Result<(), ReadError> {
        for at in self.segment_of(from)..self.segment_count() {
            let segment = self.segment(at);
            let mut walk = Walk::new(segment.file, segment.floor(from), u64::from(segment.size));
            loop {
                match walk.step(disk)? {
                    Step::Batch(bytes) => {
                        let batch = BatchView::parse(&bytes).map_err(ReadError::Corrupt)?;
                        if batch.last_offset() >= from {
                            each(&batch);
                        }
                    }
                    Step::End => break,
                    Step::Bad(error) => return Err(ReadError::Corrupt(error)),
                }
            }
        }
        Ok(())
    }
}

fn first_at_or_after(batch: &BatchView<'_>, timestamp: i64, start: Offset) -> Option<(Offset, i64)> {
    for record in batch.records() {
        match record {
            Ok(record) if record.timestamp >= timestamp && record.offset >= start => {
                return Some((record.offset, record.timestamp));
            }
            Ok(_) => {}
            Err(_) => return Some((batch.base_offset().max(start), batch.max_timestamp())),
        }
    }
    None
}

/// How much a search looks at in one go: an index interval.
const SEARCH_BYTES: u32 = 4096;

/// Reads pieces from `pos` and keeps of them what is wanted. With `exact`, nothing is kept unless a batch begins at `pos`
/// that begins with, or holds, the wanted offset.
fn read_at(
    disk: &dyn Disk,
    segment: &Segment,
    pos: u32,
    wanted: Wanted,
    exact: bool,
    out: &mut Vec<Bytes>,
) -> Result<Trimmed, ReadError> {
    let first = out.len();
    // A reader that is far behind the limit must not drag in what lies above it.
    let ceiling = segment.ceiling(wanted.upto).max(pos + 1);
    let max = if exact { wanted.max_bytes } else { wanted.max_bytes.max(SEARCH_BYTES) };
    disk.read(segment.file, u64::from(pos), u64::from(max.min(ceiling - pos).max(1)), out)?;
    let (mut skip, mut keep) = (0, first);
    let mut trimmed = Trimmed { bytes: 0, at: pos, go_on: true };
    while let Some(piece) = out.get(keep) {
        let whole = HeaderView::parse(piece).ok().filter(|header| header.size() == piece.len());
        let Some(header) = whole else {
            // What the disk cut at the limit is left; what is not one batch per piece is read the slow way.
            if exact || (keep > first && keep + 1 == out.len()) {
                break;
            }
            return read_pieces(disk, segment, trimmed.at, wanted, first, out);
        };
        let size = piece.len() as u32;
        if trimmed.bytes == 0 {
            let holds = header.base_offset() <= wanted.from && header.last_offset() >= wanted.from;
            if exact && !holds {
                break;
            }
            if header.last_offset() < wanted.from {
                skip += 1;
                keep += 1;
                trimmed.at += size;
                continue;
            }
        }
        if trimmed.bytes == 0 && header.next_offset() > wanted.end {
            let damage = beyond(&header, wanted.end);
            out.truncate(first);
            return Err(damage);
        }
        if !fits(&header, &wanted, trimmed.bytes) {
            trimmed.go_on = false;
            break;
        }
        trimmed.go_on = false;
        trimmed.bytes += size;
        keep += 1;
    }
    out.truncate(keep);
    if skip > 0 {
        out.drain(first..first + skip);
    }
    Ok(trimmed)
}

/// A header rots on the leader's disk: it claims a last offset that was never written. A reader asks for that batch; it does not
/// end below the log's end, so that nothing is served, as if there were nothing, and the reader waits for ever.
fn beyond(header: &HeaderView<'_>, end: Offset) -> ReadError {
    let (need, have) = (header.next_offset().0, end.0);
    ReadError::Corrupt(BatchError::Truncated { need: need.max(0) as usize, have: have.max(0) as usize })
}

fn fits(header: &HeaderView<'_>, wanted: &Wanted, bytes: u32) -> bool {
    let small = u64::from(bytes) + header.size() as u64 <= u64::from(wanted.max_bytes);
    header.next_offset() <= wanted.upto && (small || (bytes == 0 && wanted.min_one))
}

/// The slow way, for files whose pieces are not batches: after a torn write was cut off, or written by another hand.
fn read_pieces(
    disk: &dyn Disk,
    segment: &Segment,
    pos: u32,
    wanted: Wanted,
    first: usize,
    out: &mut Vec<Bytes>,
) -> Result<Trimmed, ReadError> {
    out.truncate(first);
    let mut trimmed = Trimmed { bytes: 0, at: pos, go_on: true };
    let mut walk = Walk::new(segment.file, pos, u64::from(segment.size));
    loop {
        match walk.step(disk)? {
            Step::Batch(batch) => {
                let header = HeaderView::parse(&batch).map_err(ReadError::Corrupt)?;
                if trimmed.bytes == 0 && header.last_offset() < wanted.from {
                    trimmed.at = walk.pos();
                    continue;
                }
                if trimmed.bytes == 0 && header.next_offset() > wanted.end {
                    return Err(beyond(&header, wanted.end));
                }
                trimmed.go_on = false;
                if !fits(&header, &wanted, trimmed.bytes) {
                    return Ok(trimmed);
                }
                trimmed.bytes += batch.len() as u32;
                out.push(batch);
            }
            Step::End => return Ok(trimmed),
            Step::Bad(_) if trimmed.bytes > 0 => return Ok(trimmed),
            Step::Bad(error) => return Err(ReadError::Corrupt(error)),
        }
    }
}
