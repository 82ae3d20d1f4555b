//! Batches of the metadata log: written by the controller, applied by everybody.

use crate::ids::{LeaderEpoch, Offset};
use crate::metadata::delta::MetadataDelta;
use crate::metadata::encoding::DecodeError;
use crate::metadata::image::MetadataImage;
use crate::record::{BatchBuilder, BatchError, BatchMeta, BatchView};
use bytes::Bytes;
use std::fmt;

/// Records of one batch at most: an operation's records beyond it go into further batches.
pub const MAX_RECORDS_PER_BATCH: usize = 10_000;

/// Why a batch of the metadata log was not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// The batch is malformed.
    Batch(BatchError),
    /// A record has no value.
    NoValue,
    /// A record is none that we know.
    Record(DecodeError),
    /// The batch does not begin where the image ends.
    Gap,
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Batch(error) => write!(f, "metadata batch: {error}"),
            Self::NoValue => f.write_str("metadata record without a value"),
            Self::Record(error) => write!(f, "metadata record: {error}"),
            Self::Gap => f.write_str("metadata batch does not begin where the image ends"),
        }
    }
}
impl std::error::Error for ReplayError {}

/// Packs encoded records into batches, back to back, with offsets from `base` on.
#[must_use]
pub fn pack<'a>(
    base: i64,
    epoch: LeaderEpoch,
    timestamp: i64,
    records: impl ExactSizeIterator<Item = &'a [u8]>,
) -> Bytes {
    let meta = |at: usize| BatchMeta {
        base_offset: Offset(base + at as i64),
        leader_epoch: epoch,
        base_timestamp: timestamp,
        ..BatchMeta::default()
    };
    let mut builder = BatchBuilder::with_capacity(meta(0), 64 * records.len());
    for (at, value) in records.enumerate() {
        if at > 0 && at % MAX_RECORDS_PER_BATCH == 0 {
            builder = builder.next(meta(at));
        }
        builder.push(timestamp, None, Some(value));
    }
    builder.finish()
}

/// Calls `each` with offset and bytes of every metadata record of a batch; control batches have none.
///
/// # Errors
/// The first thing that is malformed; records before it were seen.
pub fn for_each_record(
    batch: &BatchView<'_>,
    mut each: impl FnMut(i64, &[u8]) -> Result<(), ReplayError>,
) -> Result<(), ReplayError> {
    if batch.is_control() {
        return Ok(());
    }
    for record in batch.records() {
        let record = record.map_err(ReplayError::Batch)?;
        each(record.offset.0, record.value.ok_or(ReplayError::NoValue)?)?;
    }
    Ok(())
}

impl MetadataImage {
    /// Applies one batch that begins at [`end`](Self::end). A batch that lies below it altogether is skipped.
    ///
    /// # Errors
    /// A gap, or something malformed; records before that were applied.
    pub fn apply_batch(&mut self, batch: &BatchView<'_>, delta: &mut MetadataDelta) -> Result<(), ReplayError> {
        if batch.next_offset().0 <= self.end.0 {
            return Ok(());
        }
        if batch.base_offset().0 != self.end.0 {
            return Err(ReplayError::Gap);
        }
        for_each_record(batch, |offset, bytes| self.apply_bytes(offset, bytes, delta).map_err(ReplayError::Record))?;
        self.end.0 = batch.next_offset().0;
        Ok(())
    }

    /// Loads a whole snapshot, as a file holds it or a peer sent it, that ends at `end`.
    ///
    /// # Errors
    /// Anything malformed, a wrong checksum, or a missing end.
    pub fn load_snapshot(bytes: &[u8], end: i64) -> Result<(Self, LeaderEpoch), ReplayError> {
        let (mut image, mut delta) = (Self::default(), MetadataDelta::default());
        let (mut epoch, mut whole) = (LeaderEpoch::NONE, false);
        for view in crate::record::views(bytes) {
            let batch = view.map_err(ReplayError::Batch)?;
            batch.check_crc().map_err(ReplayError::Batch)?;
            epoch = batch.leader_epoch();
            whole = batch.control_type() == Some(crate::record::ControlType::SnapshotFooter);
            for_each_record(&batch, |_, bytes| {
                let record = crate::metadata::records::Record::decode(bytes).map_err(ReplayError::Record)?;
                image.apply(0, &record, &mut delta);
                Ok(())
            })?;
        }
        if !whole {
            return Err(ReplayError::NoValue);
        }
        image.set_end(crate::ids::MetadataOffset(end));
        Ok((image, epoch))
    }

    /// The bytes of a snapshot of this image: its records in batches, and a footer that tells a whole one from a torn one.
    #[must_use]
    pub fn to_snapshot(&self, timestamp: i64) -> Bytes {
        let mut records = Vec::new();
        self.for_each_snapshot_record(|record| {
            let mut bytes = Vec::with_capacity(64);
            record.encode(&mut bytes);
            records.push(bytes);
        });
        let body = pack(0, self.epoch(), timestamp, records.iter().map(Vec::as_slice));
        let meta = BatchMeta {
            base_offset: Offset(records.len() as i64),
            leader_epoch: self.epoch(),
            base_timestamp: timestamp,
            ..BatchMeta::default()
        };
        let footer = crate::record::control::control_batch(meta, crate::record::ControlType::SnapshotFooter, &[0, 0]);
        [body, footer].concat().into()
    }
}
