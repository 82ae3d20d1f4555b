//! Reading record batches in place: a view is a checked slice, an accessor is one load from the header.
//!
//! Layout of a v2 batch (big endian): base offset 8, length 4 (of what follows it), partition leader epoch 4, magic 1,
//! CRC32C 4 (over everything from the attributes on, so offset and epoch may be restamped), attributes 2, last offset
//! delta 4, base timestamp 8, max timestamp 8, producer id 8, producer epoch 2, base sequence 4, record count 4, records.

use crate::ids::{LeaderEpoch, Offset, ProducerEpoch, ProducerId};
use crate::record::control::ControlType;
use crate::record::varint::{take_varint, take_varlong};
use bytes::Bytes;

pub use crate::record::builder::{raw_batch, stamp, BatchBuilder, BatchMeta};

/// Bytes of a batch before its first record.
pub const HEADER_LEN: usize = 61;
/// Bytes up to and including the length field; the length counts what comes after them.
pub const LENGTH_END: usize = 12;
/// The only message format there is.
pub const MAGIC: u8 = 2;

pub(crate) const AT_LENGTH: usize = 8;
pub(crate) const AT_LEADER_EPOCH: usize = 12;
pub(crate) const AT_MAGIC: usize = 16;
pub(crate) const AT_CRC: usize = 17;
pub(crate) const AT_ATTRIBUTES: usize = 21;
const AT_LAST_DELTA: usize = 23;
const AT_BASE_TIMESTAMP: usize = 27;
const AT_MAX_TIMESTAMP: usize = 35;
const AT_PRODUCER: usize = 43;
const AT_PRODUCER_EPOCH: usize = 51;
const AT_BASE_SEQUENCE: usize = 53;
const AT_COUNT: usize = 57;

pub(crate) const CODEC_MASK: u16 = 0x07;
pub(crate) const LOG_APPEND_TIME: u16 = 0x08;
pub(crate) const TRANSACTIONAL: u16 = 0x10;
pub(crate) const CONTROL: u16 = 0x20;
pub(crate) const DELETE_HORIZON: u16 = 0x40;

/// A record of nothing: length, attributes, two deltas, null key, null value, no headers; one byte each.
const MIN_RECORD_LEN: usize = 7;

/// What is wrong with bytes that should be a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchError {
    /// The bytes end before the batch does: a torn tail, or an answer that was cut at its limit.
    Truncated {
        /// Bytes that the batch needs, as far as that can be seen.
        need: usize,
        /// Bytes that are there.
        have: usize,
    },
    /// The length field is less than a header.
    Length(i32),
    /// Not message format 2.
    Magic(u8),
    /// A compression codec that does not exist.
    Codec(u8),
    /// Base offset and last offset delta are not offsets.
    Offsets {
        /// Base offset.
        base: i64,
        /// Last offset delta.
        last_delta: i32,
    },
    /// The record count fits neither the offsets nor the size.
    Count(i32),
    /// The CRC does not match.
    Crc {
        /// In the header.
        stored: u32,
        /// Of the bytes.
        computed: u32,
    },
    /// The records are compressed; nobody here reads them.
    Compressed(Compression),
    /// A record, or a control key, is malformed.
    Record,
}

impl std::fmt::Display for BatchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Truncated { need, have } => write!(f, "batch of {need} bytes, only {have} there"),
            Self::Length(length) => write!(f, "batch length {length} is less than a header"),
            Self::Magic(magic) => write!(f, "message format {magic}, expected 2"),
            Self::Codec(codec) => write!(f, "compression codec {codec} does not exist"),
            Self::Offsets { base, last_delta } => write!(f, "base offset {base} with last offset delta {last_delta}"),
            Self::Count(count) => write!(f, "record count {count} does not fit the batch"),
            Self::Crc { stored, computed } => write!(f, "CRC is {stored:#010x}, the bytes give {computed:#010x}"),
            Self::Compressed(codec) => write!(f, "records are compressed ({codec:?})"),
            Self::Record => f.write_str("malformed record"),
        }
    }
}
impl std::error::Error for BatchError {}

/// Compression of a batch's records. Brokers here pass compressed batches through unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Compression {
    /// Not compressed.
    #[default]
    None = 0,
    /// gzip.
    Gzip = 1,
    /// snappy.
    Snappy = 2,
    /// lz4.
    Lz4 = 3,
    /// zstd.
    Zstd = 4,
}

impl Compression {
    /// The codec of the low three attribute bits.
    #[must_use]
    pub const fn from_attributes(attributes: u16) -> Option<Self> {
        match attributes & CODEC_MASK {
            0 => Some(Self::None),
            1 => Some(Self::Gzip),
            2 => Some(Self::Snappy),
            3 => Some(Self::Lz4),
            4 => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// A batch's header, wherever the rest is: what an index needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderView<'a> {
    head: &'a [u8; HEADER_LEN],
}

/// The bytes of exactly one batch, checked for shape (not for its CRC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchView<'a> {
    header: HeaderView<'a>,
    bytes: &'a [u8],
}

impl<'a> HeaderView<'a> {
    /// Looks at the header at the start of `bytes`, of which only the header has to be there.
    ///
    /// # Errors
    /// Everything of [`BatchError`] that a header can show.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BatchError> {
        let Some(head) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(BatchError::Truncated { need: HEADER_LEN, have: bytes.len() });
        };
        let view = Self { head };
        let length = i32::from_be_bytes(view.field(AT_LENGTH));
        if length < (HEADER_LEN - LENGTH_END) as i32 {
            return Err(BatchError::Length(length));
        }
        if head[AT_MAGIC] != MAGIC {
            return Err(BatchError::Magic(head[AT_MAGIC]));
        }
        let Some(codec) = Compression::from_attributes(view.attributes()) else {
            return Err(BatchError::Codec((view.attributes() & CODEC_MASK) as u8));
        };
        let (base, last_delta) = (view.base_offset().0, view.last_offset_delta());
        if base < 0 || last_delta < 0 || base >= i64::MAX - i64::from(last_delta) {
            return Err(BatchError::Offsets { base, last_delta });
        }
        let count = view.record_count();
        // Compaction leaves fewer records than offsets, down to none; never more.
        let room = (view.size() - HEADER_LEN) / MIN_RECORD_LEN;
        let fits = codec != Compression::None || count as usize <= room;
        if count < 0 || i64::from(count) > i64::from(last_delta) + 1 || !fits {
            return Err(BatchError::Count(count));
        }
        Ok(view)
    }

    fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        // Positions are the constants above, all within the header; the fallback is never taken.
        self.head[at..].first_chunk().copied().unwrap_or([0; N])
    }

    /// Size of the whole batch in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        LENGTH_END + i32::from_be_bytes(self.field(AT_LENGTH)) as usize
    }
    /// Offset of the first record (of the first there ever was, if it was compacted away).
    #[must_use]
    pub fn base_offset(&self) -> Offset {
        Offset(i64::from_be_bytes(self.field(0)))
    }
    /// Last offset minus base offset.
    #[must_use]
    pub fn last_offset_delta(&self) -> i32 {
        i32::from_be_bytes(self.field(AT_LAST_DELTA))
    }
    /// Offset of the last record (of the last there ever was, if it was compacted away).
    #[must_use]
    pub fn last_offset(&self) -> Offset {
        Offset(self.base_offset().0 + i64::from(self.last_offset_delta()))
    }
    /// The offset after the batch.
    #[must_use]
    pub fn next_offset(&self) -> Offset {
        Offset(self.last_offset().0 + 1)
    }
    /// Epoch of the leader that appended the batch; −1 in a produce request.
    #[must_use]
    pub fn leader_epoch(&self) -> LeaderEpoch {
        LeaderEpoch(i32::from_be_bytes(self.field(AT_LEADER_EPOCH)))
    }
    /// The CRC32C that the header states.
    #[must_use]
    pub fn crc(&self) -> u32 {
        u32::from_be_bytes(self.field(AT_CRC))
    }
    /// The attribute bits.
    #[must_use]
    pub fn attributes(&self) -> u16 {
        u16::from_be_bytes(self.field(AT_ATTRIBUTES))
    }
    /// The codec of the records.
    #[must_use]
    pub fn compression(&self) -> Compression {
        Compression::from_attributes(self.attributes()).unwrap_or_default()
    }
    /// Whether the batch belongs to a transaction; true for its markers too.
    #[must_use]
    pub fn is_transactional(&self) -> bool {
        self.attributes() & TRANSACTIONAL != 0
    }
    /// Whether the batch holds control records.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.attributes() & CONTROL != 0
    }
    /// Whether all records carry the time of the append (`max_timestamp`), not the producer's.
    #[must_use]
    pub fn is_log_append_time(&self) -> bool {
        self.attributes() & LOG_APPEND_TIME != 0
    }
    /// Whether the base timestamp is the time at which tombstones may go (KIP-534).
    #[must_use]
    pub fn has_delete_horizon(&self) -> bool {
        self.attributes() & DELETE_HORIZON != 0
    }
    /// The producer, −1 for none.
    #[must_use]
    pub fn producer(&self) -> ProducerId {
        ProducerId(i64::from_be_bytes(self.field(AT_PRODUCER)))
    }
    /// The producer's epoch, −1 for none.
    #[must_use]
    pub fn producer_epoch(&self) -> ProducerEpoch {
        ProducerEpoch(i16::from_be_bytes(self.field(AT_PRODUCER_EPOCH)))
    }
    /// Sequence number of the first record, −1 for none.
    #[must_use]
    pub fn base_sequence(&self) -> i32 {
        i32::from_be_bytes(self.field(AT_BASE_SEQUENCE))
    }
    /// Sequence number of the last record, −1 for none.
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        match self.base_sequence() {
            none if none < 0 => none,
            base => increment_sequence(base, self.last_offset_delta()),
        }
    }
    /// How many records are in it.
    #[must_use]
    pub fn record_count(&self) -> i32 {
        i32::from_be_bytes(self.field(AT_COUNT))
    }
    /// What the records' timestamps count from, in milliseconds.
    #[must_use]
    pub fn base_timestamp(&self) -> i64 {
        i64::from_be_bytes(self.field(AT_BASE_TIMESTAMP))
    }
    /// The largest timestamp, in milliseconds.
    #[must_use]
    pub fn max_timestamp(&self) -> i64 {
        i64::from_be_bytes(self.field(AT_MAX_TIMESTAMP))
    }
}

impl<'a> std::ops::Deref for BatchView<'a> {
    type Target = HeaderView<'a>;
    fn deref(&self) -> &HeaderView<'a> {
        &self.header
    }
}

impl<'a> BatchView<'a> {
    /// Looks at the first batch in `bytes`; what follows it is not part of the view.
    ///
    /// # Errors
    /// The shape is wrong, or the batch is not all there. The CRC is not checked.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BatchError> {
        let header = HeaderView::parse(bytes)?;
        let size = header.size();
        match bytes.get(..size) {
            Some(bytes) => Ok(Self { header, bytes }),
            None => Err(BatchError::Truncated { need: size, have: bytes.len() }),
        }
    }

    /// Whether there is a batch in `bytes`, and its CRC matches.
    #[must_use]
    pub fn is_sound(bytes: &'a [u8]) -> bool {
        Self::parse(bytes).is_ok_and(|batch| batch.crc_valid())
    }

    /// The batch.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
    /// What follows the header: the records, or their compressed form.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER_LEN..]
    }
    /// The CRC32C that the bytes have.
    #[must_use]
    pub fn computed_crc(&self) -> u32 {
        crc32c::crc32c(&self.bytes[AT_ATTRIBUTES..])
    }
    /// Whether stated and real CRC agree.
    #[must_use]
    pub fn crc_valid(&self) -> bool {
        self.crc() == self.computed_crc()
    }
    /// As [`Self::crc_valid`], with the two values.
    ///
    /// # Errors
    /// [`BatchError::Crc`].
    pub fn check_crc(&self) -> Result<(), BatchError> {
        let (stored, computed) = (self.crc(), self.computed_crc());
        if stored == computed {
            Ok(())
        } else {
            Err(BatchError::Crc { stored, computed })
        }
    }
    /// The records in order. An error is the last item.
    #[must_use]
    pub fn records(&self) -> Records<'a> {
        Records { batch: *self, rest: self.payload(), left: self.record_count(), done: false }
    }
    /// What a control batch says, by its first record; `None` for data. A key that nobody can read is `Unknown`.
    #[must_use]
    pub fn control_type(&self) -> Option<ControlType> {
        if !self.is_control() {
            return None;
        }
        let key = self.records().next().and_then(Result::ok).and_then(|record| record.key);
        Some(key.and_then(ControlType::from_key).unwrap_or(ControlType::Unknown))
    }
}

/// `base + by`, in the circle of sequence numbers 0..=2^31−1. `by` must not be negative.
#[must_use]
pub const fn increment_sequence(base: i32, by: i32) -> i32 {
    // As in Kafka's DefaultRecordBatch: after i32::MAX comes 0.
    (base.wrapping_add(by)) & i32::MAX
}

/// One record; borrowed from its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordView<'a> {
    /// Its offset.
    pub offset: Offset,
    /// Its time in milliseconds.
    pub timestamp: i64,
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its value; `None` is a tombstone.
    pub value: Option<&'a [u8]>,
    /// Its headers.
    pub headers: Headers<'a>,
}

/// Headers of a record, in order. They were walked once when the record was read, so nothing can fail here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'a> {
    left: u32,
    rest: &'a [u8],
}

impl Headers<'_> {
    /// How many are left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.left as usize
    }
    /// Whether none is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl<'a> Iterator for Headers<'a> {
    /// Key (text by convention) and value.
    type Item = (&'a [u8], Option<&'a [u8]>);
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let key = take_nullable(&mut self.rest)??;
        let value = take_nullable(&mut self.rest)?;
        Some((key, value))
    }
}

/// Iterator over a batch's records; see [`BatchView::records`].
#[derive(Clone, Debug)]
pub struct Records<'a> {
    batch: BatchView<'a>,
    rest: &'a [u8],
    left: i32,
    done: bool,
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordView<'a>, BatchError>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let codec = self.batch.compression();
        let item = if codec != Compression::None {
            Err(BatchError::Compressed(codec))
        } else if self.left > 0 {
            self.left -= 1;
            take_record(&self.batch, &mut self.rest).ok_or(BatchError::Record)
        } else if self.rest.is_empty() {
            self.done = true;
            return None;
        } else {
            // More bytes than the count says.
            Err(BatchError::Record)
        };
        self.done = item.is_err();
        Some(item)
    }
}

fn take_record<'a>(batch: &BatchView<'a>, rest: &mut &'a [u8]) -> Option<RecordView<'a>> {
    let length = usize::try_from(take_varint(rest)?).ok()?;
    let (mut body, after) = rest.split_at_checked(length)?;
    *rest = after;
    // Record attributes: unused so far, and ignored like Kafka does.
    body = body.get(1..)?;
    let timestamp_delta = take_varlong(&mut body)?;
    let offset_delta = take_varint(&mut body)?;
    if !(0..=batch.last_offset_delta()).contains(&offset_delta) {
        return None;
    }
    let key = take_nullable(&mut body)?;
    let value = take_nullable(&mut body)?;
    let count = u32::try_from(take_varint(&mut body)?).ok()?;
    let headers = Headers { left: count, rest: body };
    for _ in 0..count {
        take_nullable(&mut body)??;
        take_nullable(&mut body)?;
    }
    let timestamp = if batch.is_log_append_time() {
        batch.max_timestamp()
    } else {
        batch.base_timestamp().wrapping_add(timestamp_delta)
    };
    let offset = batch.base_offset().plus(i64::from(offset_delta));
    body.is_empty().then_some(RecordView { offset, timestamp, key, value, headers })
}

/// Length and bytes; −1 stands for null. The outer `None` is malformed.
fn take_nullable<'a>(bytes: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let length = take_varint(bytes)?;
    if length == -1 {
        return Some(None);
    }
    let (taken, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(Some(taken))
}

/// Cuts `bytes` into its batches without copying. A partial or malformed batch is the last item, as an error.
#[must_use]
pub fn split(bytes: &Bytes) -> Split {
    Split { rest: bytes.clone() }
}

/// Iterator of [`split`].
#[derive(Clone, Debug)]
pub struct Split {
    rest: Bytes,
}

impl Iterator for Split {
    type Item = Result<Bytes, BatchError>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match BatchView::parse(&self.rest).map(|batch| batch.size()) {
            Ok(size) => Some(Ok(self.rest.split_to(size))),
            Err(error) => {
                self.rest = Bytes::new();
                Some(Err(error))
            }
        }
    }
}

/// Views of the batches in `bytes`, without touching a reference count. An error is the last item.
#[must_use]
pub fn views(bytes: &[u8]) -> Views<'_> {
    Views { rest: bytes }
}

/// Iterator of [`views`].
#[derive(Clone, Debug)]
pub struct Views<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Views<'a> {
    type Item = Result<BatchView<'a>, BatchError>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let item = BatchView::parse(self.rest);
        self.rest = match &item {
            Ok(batch) => &self.rest[batch.size()..],
            Err(_) => &[],
        };
        Some(item)
    }
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
