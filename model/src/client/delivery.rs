//! From the batches of a fetch answer to what an application is handed: checked, without control records, without aborted
//! transactions (KIP-98), in maximal contiguous ranges with a hash for the checkers.

use crate::client::read_hash::ReadHash;
use crate::ids::{LeaderEpoch, Offset, ProducerId};
use crate::record::{views, BatchView, ControlType};
use crate::wire::messages::{AbortedTransaction, Isolation};
use bytes::Bytes;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Records handed over: `base..next` without a hole between batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First offset.
    pub base: Offset,
    /// After the last.
    pub next: Offset,
    /// Over the whole batches of the range, see [`ReadHash`].
    pub hash: u64,
}

/// What an answer for one partition comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivered {
    /// Ranges, ascending.
    pub ranges: SmallVec<[Range; 1]>,
    /// Where to read on.
    pub next: Offset,
    /// Epoch of the last batch looked at; −1 if none was.
    pub epoch: LeaderEpoch,
    /// Records handed over.
    pub records: u64,
    /// Bytes looked at.
    pub bytes: u64,
    /// A batch was malformed or its CRC wrong; nothing from it on was taken.
    pub corrupt: bool,
}

/// Goes through the batches from offset `from` on.
#[must_use]
pub fn deliver(batches: &[Bytes], from: Offset, isolation: Isolation, aborted: &[AbortedTransaction]) -> Delivered {
    let mut out = Delivered {
        ranges: SmallVec::new(),
        next: from,
        epoch: LeaderEpoch::NONE,
        records: 0,
        bytes: 0,
        corrupt: false,
    };
    let mut open: Option<(Range, ReadHash)> = None;
    let mut filter = Aborted::new(isolation, aborted);
    for batch in batches.iter().flat_map(|bytes| views(bytes)) {
        let Some(batch) = batch.ok().filter(BatchView::crc_valid) else {
            out.corrupt = true;
            break;
        };
        out.bytes += batch.size() as u64;
        let skipped = filter.skips(&batch);
        if batch.next_offset() <= out.next {
            continue; // a batch that ends below the position: the answer starts at a batch border
        }
        let base = batch.base_offset().max(out.next);
        out.next = batch.next_offset();
        out.epoch = batch.leader_epoch();
        if skipped || batch.record_count() == 0 {
            close(&mut open, &mut out);
            continue;
        }
        out.records += (batch.record_count() as u64).min((out.next.0 - base.0) as u64);
        if open.as_ref().is_some_and(|(range, _)| range.next != base) {
            close(&mut open, &mut out);
        }
        let (range, hash) = open.get_or_insert_with(|| (Range { base, next: base, hash: 0 }, ReadHash::default()));
        hash.batch(&batch);
        range.next = out.next;
    }
    close(&mut open, &mut out);
    out
}

fn close(open: &mut Option<(Range, ReadHash)>, out: &mut Delivered) {
    if let Some((range, hash)) = open.take() {
        out.ranges.push(Range { hash: hash.finish(), ..range });
    }
}

/// Which transactions are aborted as the answer is walked: from their first offset to their abort marker.
struct Aborted {
    on: bool,
    ahead: Vec<AbortedTransaction>,
    producers: BTreeSet<ProducerId>,
}

impl Aborted {
    fn new(isolation: Isolation, aborted: &[AbortedTransaction]) -> Self {
        let on = isolation == Isolation::ReadCommitted;
        let mut ahead = if on { aborted.to_vec() } else { Vec::new() };
        ahead.sort_unstable_by_key(|t| std::cmp::Reverse(t.first));
        Self { on, ahead, producers: BTreeSet::new() }
    }

    /// Whether a batch is not for applications.
    fn skips(&mut self, batch: &BatchView) -> bool {
        if !self.on {
            return batch.is_control();
        }
        while self.ahead.last().is_some_and(|t| t.first <= batch.last_offset()) {
            self.producers.extend(self.ahead.pop().map(|t| t.producer));
        }
        if batch.is_control() {
            if batch.control_type() == Some(ControlType::Abort) {
                self.producers.remove(&batch.producer());
            }
            return true;
        }
        batch.is_transactional() && self.producers.contains(&batch.producer())
    }
}

#[cfg(test)]
#[path = "delivery_tests.rs"]
mod tests;
