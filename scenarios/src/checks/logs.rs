//! Comparing logs. Prefix sums make any common range of two logs comparable by subtraction, whatever their starts and
//! wherever their segments end; the first difference is found by binary search (design section 2, measured.md 7).

use super::sight::{LogSight, Sum};
use mirrorlab_model::ids::{LeaderEpoch, Offset};
use mirrorlab_model::record::{BatchView, HeaderView};
use mirrorlab_sim::gallop::count_from_end;

/// A batch border: segment, and how many of its batches lie before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Segment.
    pub segment: usize,
    /// Batches before.
    pub at: u32,
}

/// Where a batch begins, as its header says.
fn base_of<L: LogSight>(log: L, segment: usize, at: u32) -> Offset {
    HeaderView::parse(log.batch(segment, at)).map_or(log.base(segment), |h| h.base_offset())
}

/// The first batch that ends above `offset`; the end of the log if there is none. Gallops from the end, where most
/// questions are about.
pub fn locate<L: LogSight>(log: L, offset: Offset) -> Place {
    // Walks begin at the start.
    if offset <= log.base(0) && log.batches(0) > 0 {
        return Place { segment: 0, at: 0 };
    }
    let mut segment = log.segments().saturating_sub(1);
    while segment > 0 && log.base(segment) > offset {
        segment -= 1;
    }
    let count = log.batches(segment);
    // The last batch that begins at or below the offset; then a look whether it ends above it.
    let low = count_from_end(count, |at| base_of(log, segment, at) <= offset);
    // `low` batches begin at or below the offset.
    let ends_above = low > 0 && HeaderView::parse(log.batch(segment, low - 1)).is_ok_and(|h| h.last_offset() >= offset);
    let at = if ends_above { low - 1 } else { low };
    if at == count && segment + 1 < log.segments() {
        return Place { segment: segment + 1, at: 0 };
    }
    Place { segment, at }
}

/// Sum over the batches between two borders.
pub fn sum_between<L: LogSight>(log: L, from: Place, to: Place) -> Sum {
    if from.segment == to.segment {
        return log.sum(from.segment, to.at).wrapping_sub(log.sum(from.segment, from.at));
    }
    let mut sum = log.sum(from.segment, log.batches(from.segment)).wrapping_sub(log.sum(from.segment, from.at));
    for segment in from.segment + 1..to.segment {
        sum = sum.wrapping_add(log.sum(segment, log.batches(segment)));
    }
    sum.wrapping_add(log.sum(to.segment, to.at))
}

/// The sum over `from..to` if both are batch borders of this log, or lie in gaps.
pub fn range_sum<L: LogSight>(log: L, from: Offset, to: Offset) -> Option<Sum> {
    if to <= from {
        return Some(0);
    }
    let (first, last) = (locate(log, from), locate(log, to));
    let border = |place: Place, offset: Offset| batch_base(log, place).is_none_or(|base| base >= offset);
    (border(first, from) && border(last, to)).then(|| sum_between(log, first, last))
}

/// Where the batch at a border begins; `None` at the end of the log.
pub fn batch_base<L: LogSight>(log: L, place: Place) -> Option<Offset> {
    (place.at < log.batches(place.segment)).then(|| base_of(log, place.segment, place.at))
}

/// The batch that holds `offset`, or the next one after it.
pub fn batch_at<L: LogSight>(log: &L, offset: Offset) -> Option<&[u8]> {
    let place = locate(*log, offset);
    (place.at < log.batches(place.segment)).then(|| log.batch(place.segment, place.at))
}

/// The epoch of the last batch before `offset`; −1 if there is none.
pub fn epoch_before<L: LogSight>(log: L, offset: Offset) -> LeaderEpoch {
    let place = locate(log, offset);
    let (segment, at) = match place {
        Place { segment: 0, at: 0 } => return LeaderEpoch::NONE,
        Place { segment, at: 0 } => match log.batches(segment - 1) {
            0 => return LeaderEpoch::NONE,
            n => (segment - 1, n - 1),
        },
        Place { segment, at } => (segment, at - 1),
    };
    HeaderView::parse(log.batch(segment, at)).map_or(LeaderEpoch::NONE, |h| h.leader_epoch())
}

/// Calls `each` with every batch that ends above `from` and begins below `to`, until it says stop.
pub fn for_each<L: LogSight>(log: L, from: Offset, to: Offset, mut each: impl FnMut(&BatchView<'_>) -> bool) {
    if log.segments() == 0 || from >= to {
        return;
    }
    let mut place = locate(log, from);
    while place.segment < log.segments() {
        while place.at < log.batches(place.segment) {
            let bytes = log.batch(place.segment, place.at);
            let Ok(batch) = BatchView::parse(bytes) else { return };
            if batch.base_offset() >= to || !each(&batch) {
                return;
            }
            place.at += 1;
        }
        place = Place { segment: place.segment + 1, at: 0 };
    }
}

/// Two logs known to be equal below the shorter end because they are stored once: same segment base, same lineage, and
/// nothing in front.
pub fn same_storage<L: LogSight>(a: L, b: L) -> bool {
    a.segments() == b.segments() && {
        let last = a.segments().saturating_sub(1);
        last == 0 && a.base(last) == b.base(last) && a.lineage(last).is_some() && a.lineage(last) == b.lineage(last)
    }
}

/// Where a comparison from an offset on begins: a log start may lie inside a batch, which both logs hold whole then.
fn whole<L: LogSight>(a: L, b: L, from: Offset) -> Offset {
    match (batch_base(a, locate(a, from)), batch_base(b, locate(b, from))) {
        (Some(x), Some(y)) if x == y => x.min(from),
        _ => from,
    }
}

/// Whether `b` holds on `from..to` exactly the batches that `a` holds there. Cheap where storage is shared; else two
/// subtractions. Differing borders at the edges count as different.
pub fn equal<L: LogSight>(a: L, b: L, from: Offset, to: Offset) -> bool {
    if to <= from || (same_storage(a, b) && a.end() >= to && b.end() >= to) {
        return true;
    }
    let from = whole(a, b, from);
    a.end() >= to
        && b.end() >= to
        && range_sum(a, from, to).is_some()
        && range_sum(a, from, to) == range_sum(b, from, to)
}

/// The first offset from `from` on at which two logs differ, or where the shorter one ends. Log matching makes "equal up to
/// here" a property of prefixes, so a binary search over batch borders of `a` finds it.
pub fn first_difference<L: LogSight>(a: L, b: L, from: Offset) -> Offset {
    let end = a.end().min(b.end());
    if end <= from || (same_storage(a, b)) {
        return end.max(from);
    }
    let from = whole(a, b, from);
    if range_sum(a, from, end).is_some() && range_sum(a, from, end) == range_sum(b, from, end) {
        return end;
    }
    let equal_to = |to: Offset| match (range_sum(a, from, to), range_sum(b, from, to)) {
        (Some(x), Some(y)) => x == y,
        _ => false,
    };
    let first = locate(a, from);
    let mut segment = first.segment;
    while segment + 1 < a.segments() && a.base(segment + 1) <= end && equal_to(a.base(segment + 1)) {
        segment += 1;
    }
    // Among the borders of this segment, the last one up to which they are equal.
    let (mut low, mut high) = (if segment == first.segment { first.at } else { 0 }, a.batches(segment));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        let border = batch_base(a, Place { segment, at: middle }).unwrap_or(end);
        if equal_to(border) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    batch_base(a, Place { segment, at: low }).unwrap_or(end).clamp(from, end)
}

/// The end of the longest common prefix of two logs above the larger start.
pub fn common_end<L: LogSight>(a: L, b: L) -> Offset {
    first_difference(a, b, a.start().max(b.start()))
}

/// The same of logs of which what lies below `compacted` is not compared: there either may lack what the other has.
pub fn common_end_above<L: LogSight>(a: L, b: L, compacted: Offset) -> Offset {
    let end = a.end().min(b.end());
    if end <= compacted {
        return end;
    }
    first_difference(a, b, a.start().max(b.start()).max(compacted))
}
