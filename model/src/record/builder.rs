//! Writing record batches: straight into one buffer, several batches after each other if wanted, no allocation per record.

use crate::ids::{LeaderEpoch, Offset, ProducerEpoch, ProducerId};
use crate::record::batch::{
    Compression, AT_ATTRIBUTES, AT_LEADER_EPOCH, CONTROL, HEADER_LEN, LENGTH_END, MAGIC, TRANSACTIONAL,
};
use crate::record::identity::Identity;
use crate::record::varint::{put_varint, put_varlong, varint_len, varlong_len};
use bytes::{BufMut, Bytes, BytesMut};

/// What a batch's header says before there are records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchMeta {
    /// Offset of the first record; 0 in a produce request.
    pub base_offset: Offset,
    /// Leader epoch; −1 in a produce request.
    pub leader_epoch: LeaderEpoch,
    /// Producer, −1 for none.
    pub producer: ProducerId,
    /// Its epoch, −1 for none.
    pub producer_epoch: ProducerEpoch,
    /// Sequence of the first record, −1 for none.
    pub base_sequence: i32,
    /// Part of a transaction.
    pub transactional: bool,
    /// Holds control records.
    pub control: bool,
    /// What timestamps count from; Kafka's clients take the first record's. Milliseconds.
    pub base_timestamp: i64,
}

impl Default for BatchMeta {
    fn default() -> Self {
        Self {
            base_offset: Offset::ZERO,
            leader_epoch: LeaderEpoch::NONE,
            producer: ProducerId::NONE,
            producer_epoch: ProducerEpoch(-1),
            base_sequence: -1,
            transactional: false,
            control: false,
            base_timestamp: 0,
        }
    }
}

/// What a batch's header says of its records.
#[derive(Clone, Copy, Debug)]
struct Contents {
    compression: Compression,
    last_delta: i32,
    count: i32,
    max_timestamp: i64,
    /// Bits that no field above stands for.
    attributes: u16,
}

/// Builds one batch after another into one buffer.
#[derive(Debug)]
pub struct BatchBuilder {
    arena: BytesMut,
    /// Where the open batch begins.
    start: usize,
    meta: BatchMeta,
    count: i32,
    next_delta: i32,
    max_timestamp: i64,
}

impl BatchBuilder {
    /// Opens a batch in a buffer of its own.
    #[must_use]
    pub fn new(meta: BatchMeta) -> Self {
        Self::with_capacity(meta, 0)
    }
    /// As [`Self::new`], with room for `capacity` bytes in all.
    #[must_use]
    pub fn with_capacity(meta: BatchMeta, capacity: usize) -> Self {
        Self::continuing(BytesMut::with_capacity(capacity.max(HEADER_LEN)), meta)
    }
    /// Opens a batch after what `arena` holds.
    #[must_use]
    pub fn continuing(mut arena: BytesMut, meta: BatchMeta) -> Self {
        let start = arena.len();
        arena.put_bytes(0, HEADER_LEN);
        Self { arena, start, meta, count: 0, next_delta: 0, max_timestamp: meta.base_timestamp }
    }
    /// Closes the batch and opens the next one behind it.
    #[must_use]
    pub fn next(self, meta: BatchMeta) -> Self {
        Self::continuing(self.into_arena(), meta)
    }

    /// Appends a record.
    pub fn push(&mut self, timestamp: i64, key: Option<&[u8]>, value: Option<&[u8]>) {
        self.push_with_headers(timestamp, key, value, &[]);
    }

    /// Appends a record with headers.
    pub fn push_with_headers(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) {
        let headers_len = varint_len(headers.len() as i32)
            + headers
                .iter()
                .map(|(key, value)| nullable_len(Some(key.len())) + nullable_len(value.map(<[u8]>::len)))
                .sum::<usize>();
        self.begin_record(timestamp, key, value.map(<[u8]>::len), headers_len);
        if let Some(value) = value {
            self.arena.put_slice(value);
        }
        put_varint(&mut self.arena, headers.len() as i32);
        for (key, value) in headers {
            put_nullable(&mut self.arena, Some(key));
            put_nullable(&mut self.arena, *value);
        }
    }

    /// Appends a record whose value of `len` bytes carries an identity (see [`Identity::write`]), written in place.
    pub fn push_identity(&mut self, timestamp: i64, key: Option<&[u8]>, identity: Identity, len: usize) {
        let len = len.max(crate::record::identity::IDENTITY_LEN);
        self.begin_record(timestamp, key, Some(len), 1);
        let at = self.arena.len();
        self.arena.put_bytes(0, len);
        identity.write(&mut self.arena[at..]);
        self.arena.put_u8(0);
    }

    /// Leaves out `offsets` offsets, as compaction does.
    pub fn skip(&mut self, offsets: i32) {
        self.next_delta = self.next_delta.saturating_add(offsets.max(0));
    }

    /// Writes a record up to the length of its value, and counts it.
    fn begin_record(&mut self, timestamp: i64, key: Option<&[u8]>, value_len: Option<usize>, headers_len: usize) {
        let timestamp_delta = timestamp.wrapping_sub(self.meta.base_timestamp);
        let delta = self.next_delta;
        let body = 1
            + varlong_len(timestamp_delta)
            + varint_len(delta)
            + nullable_len(key.map(<[u8]>::len))
            + nullable_len(value_len)
            + headers_len;
        self.arena.reserve(varint_len(body as i32) + body);
        put_varint(&mut self.arena, body as i32);
        self.arena.put_u8(0);
        put_varlong(&mut self.arena, timestamp_delta);
        put_varint(&mut self.arena, delta);
        put_nullable(&mut self.arena, key);
        put_varint(&mut self.arena, value_len.map_or(-1, |len| len as i32));
        self.max_timestamp = if self.count == 0 { timestamp } else { self.max_timestamp.max(timestamp) };
        self.count += 1;
        self.next_delta += 1;
    }

    /// How many records the open batch has.
    #[must_use]
    pub fn count(&self) -> i32 {
        self.count
    }
    /// Bytes of the open batch so far.
    #[must_use]
    pub fn size(&self) -> usize {
        self.arena.len() - self.start
    }
    /// Bytes of all batches so far.
    #[must_use]
    pub fn arena_len(&self) -> usize {
        self.arena.len()
    }

    /// Closes the batch; gives the bytes of all batches, back to back. A batch without records is a legal one of one offset.
    #[must_use]
    pub fn finish(self) -> Bytes {
        self.into_arena().freeze()
    }
    /// Closes the batch; gives the buffer back to write on in.
    #[must_use]
    pub fn into_arena(self) -> BytesMut {
        let contents = self.contents();
        self.sealed(contents)
    }
    /// Closes a batch that is what another one left: with that one's last offset and further attribute bits, and its largest
    /// timestamp where the records do not tell it.
    pub(super) fn finish_like(self, last_delta: i32, attributes: u16, max_timestamp: Option<i64>) -> Bytes {
        let own = self.contents();
        let max_timestamp = max_timestamp.unwrap_or(own.max_timestamp);
        self.sealed(Contents { last_delta, attributes, max_timestamp, ..own }).freeze()
    }
    fn contents(&self) -> Contents {
        Contents {
            compression: Compression::None,
            last_delta: (self.next_delta - 1).max(0),
            count: self.count,
            max_timestamp: self.max_timestamp,
            attributes: 0,
        }
    }
    fn sealed(mut self, contents: Contents) -> BytesMut {
        seal(&mut self.arena[self.start..], &self.meta, contents);
        self.arena
    }
}

/// A batch around records that are already encoded, compressed or not: what a producer with a codec sends.
#[must_use]
pub fn raw_batch(meta: BatchMeta, compression: Compression, count: i32, max_timestamp: i64, payload: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(HEADER_LEN + payload.len());
    out.put_bytes(0, HEADER_LEN);
    out.put_slice(payload);
    let contents = Contents { compression, last_delta: (count - 1).max(0), count, max_timestamp, attributes: 0 };
    seal(&mut out, &meta, contents);
    out.freeze()
}

/// Writes the header of the batch that `batch` is, CRC last.
fn seal(batch: &mut [u8], meta: &BatchMeta, contents: Contents) {
    let length = (batch.len() - LENGTH_END) as i32;
    let mut attributes = contents.compression as u16 | contents.attributes;
    if meta.transactional {
        attributes |= TRANSACTIONAL;
    }
    if meta.control {
        attributes |= CONTROL;
    }
    let mut tail = &mut batch[AT_ATTRIBUTES..];
    tail.put_u16(attributes);
    tail.put_i32(contents.last_delta);
    tail.put_i64(meta.base_timestamp);
    tail.put_i64(contents.max_timestamp);
    tail.put_i64(meta.producer.0);
    tail.put_i16(meta.producer_epoch.0);
    tail.put_i32(meta.base_sequence);
    tail.put_i32(contents.count);
    let crc = crc32c::crc32c(&batch[AT_ATTRIBUTES..]);
    let mut head = &mut batch[..AT_ATTRIBUTES];
    head.put_i64(meta.base_offset.0);
    head.put_i32(length);
    head.put_i32(meta.leader_epoch.0);
    head.put_u8(MAGIC);
    head.put_u32(crc);
}

/// Writes base offset and leader epoch into a batch: what a leader does on append. The CRC does not cover them.
pub fn stamp(batch: &mut [u8], base: Offset, epoch: LeaderEpoch) {
    debug_assert!(batch.len() >= HEADER_LEN, "stamped {} bytes, not a batch", batch.len());
    if batch.len() >= HEADER_LEN {
        batch[..8].copy_from_slice(&base.0.to_be_bytes());
        batch[AT_LEADER_EPOCH..AT_LEADER_EPOCH + 4].copy_from_slice(&epoch.0.to_be_bytes());
    }
}

fn nullable_len(len: Option<usize>) -> usize {
    len.map_or(1, |len| varint_len(len as i32) + len)
}

fn put_nullable(out: &mut BytesMut, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            put_varint(out, bytes.len() as i32);
            out.put_slice(bytes);
        }
        None => put_varint(out, -1),
    }
}
