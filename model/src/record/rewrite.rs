//! A batch without some of its records: what the log cleaner writes. Offsets, epochs and what stays are as before.

use crate::ids::Offset;
use crate::record::batch::{BatchView, CODEC_MASK, DELETE_HORIZON, LOG_APPEND_TIME};
use crate::record::builder::{BatchBuilder, BatchMeta};
use bytes::Bytes;
use smallvec::SmallVec;

/// Name and value.
type Header<'a> = (&'a [u8], Option<&'a [u8]>);

/// What to do to a batch.
#[derive(Clone, Copy, Debug)]
pub struct Rewrite<'a> {
    /// Offsets of the records that go, ascending.
    pub drop: &'a [Offset],
    /// When tombstones and markers of this batch may go: written into the base timestamp, as KIP-534 has it. Milliseconds.
    pub horizon: Option<i64>,
}

/// The batch without some records: base offset, last offset delta, leader epoch, producer, sequence, timestamps of records and
/// attributes stay, the CRC is new. A batch without records keeps its largest timestamp. `None` if its records cannot be read.
#[must_use]
pub fn rewrite(batch: &BatchView<'_>, how: Rewrite<'_>) -> Option<Bytes> {
    let meta = BatchMeta {
        base_offset: batch.base_offset(),
        leader_epoch: batch.leader_epoch(),
        producer: batch.producer(),
        producer_epoch: batch.producer_epoch(),
        base_sequence: batch.base_sequence(),
        transactional: batch.is_transactional(),
        control: batch.is_control(),
        base_timestamp: how.horizon.unwrap_or(batch.base_timestamp()),
    };
    let mut out = BatchBuilder::with_capacity(meta, batch.size());
    let mut next = batch.base_offset();
    for record in batch.records() {
        let record = record.ok()?;
        if how.drop.binary_search(&record.offset).is_ok() {
            continue;
        }
        out.skip((record.offset.0 - next.0) as i32);
        next = record.offset.plus(1);
        let headers: SmallVec<[Header<'_>; 4]> = record.headers.collect();
        out.push_with_headers(record.timestamp, record.key, record.value, &headers);
    }
    let kept = batch.attributes() & (LOG_APPEND_TIME | DELETE_HORIZON | CODEC_MASK);
    let attributes = if how.horizon.is_some() { kept | DELETE_HORIZON } else { kept };
    let fixed = out.count() == 0 || batch.is_log_append_time();
    Some(out.finish_like(batch.last_offset_delta(), attributes, fixed.then(|| batch.max_timestamp())))
}

#[cfg(test)]
#[path = "rewrite_tests.rs"]
mod tests;
