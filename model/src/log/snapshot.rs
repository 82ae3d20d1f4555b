//! The two files beside a replica's segments: producer snapshots and the leader epoch checkpoint, as bytes.
//!
//! Both carry a checksum: what a power loss tore is recognised, ignored and rebuilt from the log. Layout, big endian:
//! version 2, CRC32C 4 (of everything after it), then the fields.

use crate::ids::{LeaderEpoch, Offset, ProducerEpoch, ProducerId};
use crate::log::epoch_cache::{EpochCache, EpochEntry};
use crate::log::producer_state::{AbortedRange, ProducerEntry, ProducerStates, REMEMBERED_BATCHES};
use crate::ports::{DirId, Disk, DiskError, FileId, FileName};
use bytes::{Buf, BufMut, Bytes, BytesMut};

const VERSION: u16 = 1;
const BODY: usize = 6;

/// What a file's bytes turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checked<T> {
    /// The contents.
    pub contents: T,
    /// Whether the checksum matched.
    pub intact: bool,
}

/// Puts version and checksum before a body.
pub(super) fn seal(body: impl FnOnce(&mut BytesMut)) -> Bytes {
    let mut out = BytesMut::with_capacity(128);
    out.put_u16(VERSION);
    out.put_u32(0);
    body(&mut out);
    let crc = crc32c::crc32c(&out[BODY..]);
    out[2..BODY].copy_from_slice(&crc.to_be_bytes());
    out.freeze()
}

/// The body behind version and checksum, and whether the checksum matches; `None` if there is no such thing.
pub(super) fn unseal(mut bytes: &[u8]) -> Option<(&[u8], bool)> {
    let version = bytes.try_get_u16().ok()?;
    let crc = bytes.try_get_u32().ok()?;
    (version == VERSION).then_some((bytes, crc == crc32c::crc32c(bytes)))
}

/// Reads a whole small file.
///
/// # Errors
/// The disk's.
pub(super) fn read_file(disk: &dyn Disk, file: FileId) -> Result<Bytes, DiskError> {
    let (len, mut pos, mut pieces) = (disk.len(file), 0, Vec::new());
    while pos < len {
        match disk.read(file, pos, len - pos, &mut pieces)? {
            0 => break,
            read => pos += read,
        }
    }
    Ok(if pieces.len() == 1 { pieces.swap_remove(0) } else { pieces.concat().into() })
}

/// Writes a small file under a temporary name and renames it: a process kill leaves the old or the new one, whole. A power
/// loss does so only after a flush of the returned file and of the directory.
///
/// # Errors
/// The disk's.
pub(super) fn replace_file(
    disk: &mut dyn Disk,
    dir: DirId,
    name: FileName,
    tag: u8,
    bytes: Bytes,
) -> Result<FileId, DiskError> {
    let temp = FileName::Temp(tag);
    let file = match disk.create(dir, temp) {
        Err(DiskError::Exists) => {
            disk.remove(dir, temp)?;
            disk.create(dir, temp)?
        }
        other => other?,
    };
    disk.append(file, bytes)?;
    disk.rename(dir, file, name)?;
    Ok(file)
}

/// The epoch checkpoint's contents.
#[must_use]
pub fn encode_epochs(cache: &EpochCache) -> Bytes {
    seal(|out| {
        out.put_u32(cache.entries().len() as u32);
        for entry in cache.entries() {
            out.put_i32(entry.epoch.0);
            out.put_i64(entry.start.0);
        }
    })
}

/// Reads an epoch checkpoint; `None` if it is torn or not one.
pub(super) fn decode_epochs(bytes: &[u8]) -> Option<Checked<EpochCache>> {
    let (mut body, intact) = unseal(bytes)?;
    let mut cache = EpochCache::default();
    for _ in 0..body.try_get_u32().ok()? {
        let entry =
            EpochEntry { epoch: LeaderEpoch(body.try_get_i32().ok()?), start: Offset(body.try_get_i64().ok()?) };
        cache.assign(entry.epoch, entry.start);
    }
    Some(Checked { contents: cache, intact })
}

/// A producer snapshot's contents.
#[must_use]
pub fn encode_producers(states: &ProducerStates) -> Bytes {
    seal(|out| {
        out.put_u32(states.len() as u32);
        states.entries().for_each(|entry| put_entry(out, entry));
        out.put_u32(states.open().count() as u32);
        for (first, producer) in states.open() {
            out.put_i64(first.0);
            out.put_i64(producer.0);
        }
        out.put_u32(states.unreplicated().count() as u32);
        for (first, last) in states.unreplicated() {
            out.put_i64(first.0);
            out.put_i64(last.0);
        }
        out.put_u32(states.aborted().len() as u32);
        for range in states.aborted() {
            out.put_i64(range.producer.0);
            out.put_i64(range.first.0);
            out.put_i64(range.last.0);
            out.put_i64(range.last_stable.0);
        }
    })
}

/// Reads a producer snapshot; `None` if it is torn or not one.
pub(super) fn decode_producers(bytes: &[u8]) -> Option<Checked<ProducerStates>> {
    let (mut body, intact) = unseal(bytes)?;
    let mut states = ProducerStates::default();
    for _ in 0..body.try_get_u32().ok()? {
        states.restore_entry(take_entry(&mut body)?);
    }
    for _ in 0..body.try_get_u32().ok()? {
        let (first, producer) = (take_offset(&mut body)?, ProducerId(body.try_get_i64().ok()?));
        states.restore_open(first, producer);
    }
    for _ in 0..body.try_get_u32().ok()? {
        let (first, last) = (take_offset(&mut body)?, take_offset(&mut body)?);
        states.restore_unreplicated(first, last);
    }
    for _ in 0..body.try_get_u32().ok()? {
        states.restore_aborted(AbortedRange {
            producer: ProducerId(body.try_get_i64().ok()?),
            first: take_offset(&mut body)?,
            last: take_offset(&mut body)?,
            last_stable: take_offset(&mut body)?,
        });
    }
    Some(Checked { contents: states, intact })
}

fn take_offset(body: &mut &[u8]) -> Option<Offset> {
    body.try_get_i64().ok().map(Offset)
}

fn put_entry(out: &mut BytesMut, entry: &ProducerEntry) {
    out.put_i64(entry.producer.0);
    out.put_i16(entry.epoch.0);
    out.put_i32(entry.coordinator_epoch);
    out.put_i64(entry.last_timestamp);
    out.put_i64(entry.txn_first.0);
    out.put_i64(entry.last_offset.0);
    out.put_i32(entry.last_sequence);
    let (counts, back, batches) = entry.raw();
    out.put_u8(batches);
    counts.iter().chain(&back).for_each(|number| out.put_u32(*number));
}

fn take_entry(body: &mut &[u8]) -> Option<ProducerEntry> {
    let mut entry = ProducerEntry::EMPTY;
    entry.producer = ProducerId(body.try_get_i64().ok()?);
    entry.epoch = ProducerEpoch(body.try_get_i16().ok()?);
    entry.coordinator_epoch = body.try_get_i32().ok()?;
    entry.last_timestamp = body.try_get_i64().ok()?;
    entry.txn_first = take_offset(body)?;
    entry.last_offset = take_offset(body)?;
    entry.last_sequence = body.try_get_i32().ok()?;
    let batches = body.try_get_u8().ok()?;
    let mut numbers = [0u32; 2 * REMEMBERED_BATCHES - 1];
    for number in &mut numbers {
        *number = body.try_get_u32().ok()?;
    }
    let (counts, back) = numbers.split_at(REMEMBERED_BATCHES);
    entry.set_raw(counts.try_into().ok()?, back.try_into().ok()?, batches);
    Some(entry)
}
