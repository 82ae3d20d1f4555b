//! The files that a broker keeps beside all its logs: offsets per partition, and the clean-shutdown marker.
//!
//! A checkpoint over 100,000 partitions is not written anew for each one that changed: changed entries are appended as a
//! block with its own checksum, the last word on a partition wins, a torn block ends the file. Now and then
//! ([`Checkpoint::wants_rewrite`]) the whole is written under a temporary name and renamed. When to write, and what to flush
//! before relying on it, is the broker's policy.

use crate::ids::{BrokerEpoch, Offset, TopicId, TopicIx, TopicLife};
use crate::log::snapshot::{read_file, replace_file, seal, unseal};
use crate::ports::{DirId, Disk, DiskError, FileId, FileName};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::collections::BTreeMap;

/// A partition by what its directory is named after.
pub type PartitionKey = (TopicLife, u32);

/// Version, CRC32C, count.
const BLOCK_HEADER: usize = 10;
const BLOCK_VERSION: u16 = 1;
const ENTRY: usize = 32;
/// Entries for which room is made at once, at most.
const ROOM_MAX: usize = 1 << 20;
/// Files shorter than this are never worth a rewrite.
const SMALL: u32 = 1000;

/// One of the per-broker offset files: [`FileName::HighWatermarks`], [`FileName::RecoveryPoints`], [`FileName::LogStarts`],
/// [`FileName::CleanerOffsets`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    dir: DirId,
    name: FileName,
    file: Option<FileId>,
    entries: u32,
}

impl Checkpoint {
    /// Opens a checkpoint and reads what it says. A missing file says nothing; a torn block and all after it are ignored, so
    /// the next write has to be a [`Self::rewrite`] (which [`Self::wants_rewrite`] then asks for).
    ///
    /// # Errors
    /// The disk's.
    pub fn load(
        disk: &mut dyn Disk,
        dir: DirId,
        name: FileName,
    ) -> Result<(Self, BTreeMap<PartitionKey, Offset>), DiskError> {
        let mut checkpoint = Self { dir, name, file: None, entries: 0 };
        let file = match disk.open(dir, name) {
            Err(DiskError::NotFound) => return Ok((checkpoint, BTreeMap::new())),
            other => other?,
        };
        let bytes = read_file(disk, file)?;
        let (offsets, whole, entries) = decode_offsets(&bytes);
        checkpoint.entries = entries;
        checkpoint.file = whole.then_some(file);
        Ok((checkpoint, offsets))
    }

    /// Writes all entries, under a temporary name first. Entries of partitions that the broker has on disk but could not
    /// open belong in it too (KAFKA-1647, catalogue D11). Returns what to flush, with the directory after it.
    ///
    /// # Errors
    /// The disk's; the old file stands.
    pub fn rewrite(
        &mut self,
        disk: &mut dyn Disk,
        entries: impl IntoIterator<Item = (PartitionKey, Offset)>,
    ) -> Result<FileId, DiskError> {
        let (bytes, count) = encode_offsets(entries);
        // 128 and up: no other temporary file of a broker has these tags.
        let tag = match self.name {
            FileName::HighWatermarks => 128,
            FileName::RecoveryPoints => 129,
            FileName::CleanerOffsets => 132,
            _ => 130,
        };
        let file = replace_file(disk, self.dir, self.name, tag, bytes)?;
        self.file = Some(file);
        self.entries = count;
        Ok(file)
    }

    /// Adds the entries that changed. Returns what to flush.
    ///
    /// # Errors
    /// The disk's; the next write is a rewrite then.
    pub fn update(
        &mut self,
        disk: &mut dyn Disk,
        changed: impl IntoIterator<Item = (PartitionKey, Offset)>,
    ) -> Result<FileId, DiskError> {
        let Some(file) = self.file else { return self.rewrite(disk, changed) };
        let (bytes, count) = encode_offsets(changed);
        if count > 0 {
            disk.append(file, bytes).inspect_err(|_| self.file = None)?;
            self.entries = self.entries.saturating_add(count);
        }
        Ok(file)
    }

    /// Whether the file is missing, torn, or mostly old words; `live` is how many partitions there are.
    #[must_use]
    pub fn wants_rewrite(&self, live: usize) -> bool {
        self.file.is_none() || (self.entries > SMALL && self.entries as usize > live.saturating_mul(2))
    }
}

/// One block of entries, and how many there are.
#[must_use]
pub fn encode_offsets(entries: impl IntoIterator<Item = (PartitionKey, Offset)>) -> (Bytes, u32) {
    // Exactly as large as it gets: these bytes stay in a file, and doubling would leave up to half of them empty.
    let entries = entries.into_iter();
    let room = entries.size_hint().1.unwrap_or(0).min(ROOM_MAX);
    let mut out = BytesMut::with_capacity(BLOCK_HEADER + ENTRY * room);
    out.put_bytes(0, BLOCK_HEADER);
    let mut count = 0u32;
    for ((topic, partition), offset) in entries {
        out.put_u128(topic.id.0);
        out.put_u32(topic.ix.0);
        out.put_u32(partition);
        out.put_i64(offset.0);
        count += 1;
    }
    out[6..BLOCK_HEADER].copy_from_slice(&count.to_be_bytes());
    let crc = crc32c::crc32c(&out[6..]);
    out[..2].copy_from_slice(&BLOCK_VERSION.to_be_bytes());
    out[2..6].copy_from_slice(&crc.to_be_bytes());
    (out.freeze(), count)
}

/// What the blocks say, whether all of them are whole, and how many entries they have.
#[must_use]
pub fn decode_offsets(mut bytes: &[u8]) -> (BTreeMap<PartitionKey, Offset>, bool, u32) {
    let (mut offsets, mut entries) = (BTreeMap::new(), 0);
    while !bytes.is_empty() {
        let Some((mut block, rest)) = take_block(bytes) else { return (offsets, false, entries) };
        bytes = rest;
        while block.len() >= ENTRY {
            let topic = TopicLife { id: TopicId(block.get_u128()), ix: TopicIx(block.get_u32()) };
            offsets.insert((topic, block.get_u32()), Offset(block.get_i64()));
            entries += 1;
        }
    }
    (offsets, true, entries)
}

fn take_block(mut bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let version = bytes.try_get_u16().ok()?;
    let crc = bytes.try_get_u32().ok()?;
    let sealed = bytes;
    let count = bytes.try_get_u32().ok()? as usize;
    let len = count.checked_mul(ENTRY)?;
    let block = bytes.get(..len)?;
    let intact = version == BLOCK_VERSION && crc == crc32c::crc32c(sealed.get(..4 + len)?);
    intact.then_some((block, &bytes[len..]))
}

/// The clean-shutdown marker's contents: the broker epoch under which the stop was orderly (KIP-966).
#[must_use]
pub fn encode_clean_shutdown(epoch: BrokerEpoch) -> Bytes {
    seal(|out| out.put_i64(epoch.0))
}

/// Reads a clean-shutdown marker; `None` if it is torn: then the stop was not clean.
#[must_use]
pub fn decode_clean_shutdown(bytes: &[u8]) -> Option<BrokerEpoch> {
    let (mut body, intact) = unseal(bytes)?;
    intact.then_some(())?;
    body.try_get_i64().ok().map(BrokerEpoch)
}

/// Writes a small file whole, under a temporary name first; for the files whose contents are encoded here. Returns what to
/// flush, with the directory after it.
///
/// # Errors
/// The disk's; the old file stands.
pub fn write_small(disk: &mut dyn Disk, dir: DirId, name: FileName, bytes: Bytes) -> Result<FileId, DiskError> {
    replace_file(disk, dir, name, 131, bytes)
}

/// Reads a small file; `None` if it is not there.
///
/// # Errors
/// The disk's.
pub fn read_small(disk: &mut dyn Disk, dir: DirId, name: FileName) -> Result<Option<Bytes>, DiskError> {
    match disk.open(dir, name) {
        Err(DiskError::NotFound) => Ok(None),
        other => read_file(disk, other?).map(Some),
    }
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
