//! Sets of offsets and chains of sums: what the ghost remembers of a partition without keeping its records.

use super::logs;
use super::sight::{LogSight, Sum};
use mirrorlab_model::ids::Offset;
use smallvec::SmallVec;

/// A set of offsets as merged ranges. One range, the common case, needs no allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// The range that grows.
    last: (i64, i64),
    /// Those before it, ascending, apart.
    #[allow(clippy::box_collection)] // three words less in every partition that has none
    before: Option<Box<Vec<(i64, i64)>>>,
}

impl Ranges {
    /// Adds `from..to`.
    #[inline]
    pub fn add(&mut self, from: Offset, to: Offset) {
        let (from, to) = (from.0, to.0);
        if from >= to {
            return;
        }
        if self.last.1 == from && self.last.0 < self.last.1 {
            self.last.1 = to;
        } else {
            self.add_slow(from, to);
        }
    }

    #[cold]
    fn add_slow(&mut self, from: i64, to: i64) {
        if self.last.0 == self.last.1 {
            self.last = (from, to);
            return;
        }
        if from >= self.last.0 && to <= self.last.1 {
            return;
        }
        let mut all = self.before.take().map_or_else(Vec::new, |b| *b);
        all.push(self.last);
        let at = all.partition_point(|r| r.1 < from);
        let mut merged = (from, to);
        let mut upto = at;
        while upto < all.len() && all[upto].0 <= merged.1 {
            merged = (merged.0.min(all[upto].0), merged.1.max(all[upto].1));
            upto += 1;
        }
        all.splice(at..upto, [merged]);
        self.set(all);
    }

    fn set(&mut self, mut all: Vec<(i64, i64)>) {
        self.last = all.pop().unwrap_or_default();
        self.before = (!all.is_empty()).then(|| Box::new(all));
    }

    /// The ranges, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (Offset, Offset)> + '_ {
        let before = self.before.as_deref().map_or(&[][..], |b| b.as_slice());
        let last = (self.last.0 < self.last.1).then_some(self.last);
        before.iter().copied().chain(last).map(|(a, b)| (Offset(a), Offset(b)))
    }
    /// After the highest offset; zero if there is none.
    #[must_use]
    pub fn end(&self) -> Offset {
        Offset(self.last.1)
    }
    /// How many offsets there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.iter().map(|(a, b)| (b.0 - a.0) as u64).sum()
    }
    /// Takes out everything from `from` on; returns how many offsets that were.
    pub fn cut(&mut self, from: Offset) -> u64 {
        if self.end() <= from {
            return 0;
        }
        let mut gone = 0;
        let mut all = Vec::new();
        for (a, b) in self.iter() {
            let keep = b.0.min(from.0);
            if keep > a.0 {
                all.push((a.0, keep));
            }
            gone += (b.0 - a.0.max(keep)).max(0) as u64;
        }
        self.set(all);
        gone
    }
    /// Whether any offset of `from..to` is in it.
    #[must_use]
    pub fn touches(&self, from: Offset, to: Offset) -> bool {
        self.iter().any(|(a, b)| a < to && from < b)
    }
}

/// Anchors kept of a chain.
const ANCHORS_MAX: usize = 16;

/// Prefix sums of the committed log at a few offsets. They outlive every replica, so a new leader can be compared with what
/// was committed even when all who held it are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// Where it begins, and further points; the sums count from the beginning. Ascending.
    anchors: SmallVec<[(Offset, Sum); 1]>,
    /// How far it reaches.
    pub end: Offset,
    sum: Sum,
}

impl Chain {
    /// Follows a log that holds what is committed, up to `to` (a batch border).
    pub fn extend<L: LogSight>(&mut self, log: L, to: Offset) {
        if to <= self.end || log.end() < to {
            return;
        }
        if log.start() > self.end {
            // What lay between was removed before anybody looked: the chain begins anew.
            *self = Self { anchors: SmallVec::new(), end: log.start(), sum: 0 };
        }
        let Some(more) = logs::range_sum(log, self.end, to) else { return };
        if self.anchors.len() >= ANCHORS_MAX {
            let mut at = 0;
            self.anchors.retain(|_| {
                at += 1;
                at % 2 == 1
            });
        }
        self.anchors.push((self.end, self.sum));
        self.sum = self.sum.wrapping_add(more);
        self.end = to;
    }

    /// Whether a log holds what the chain saw, as far as both reach: `Ok`, or up to where they are equal for certain.
    ///
    /// # Errors
    /// The last anchor up to which they are equal.
    pub fn compare<L: LogSight>(&self, log: L) -> Result<(), Offset> {
        let points = || self.anchors.iter().copied().chain([(self.end, self.sum)]);
        let Some((first, base)) = points().find(|(at, _)| *at >= log.start()) else { return Ok(()) };
        let equal =
            |at: Offset, sum: Sum| at <= log.end() && logs::range_sum(log, first, at) == Some(sum.wrapping_sub(base));
        if equal(self.end, self.sum) {
            return Ok(());
        }
        let good = points().filter(|(at, sum)| *at >= first && equal(*at, *sum)).map(|p| p.0).next_back();
        Err(good.unwrap_or(first))
    }

    /// Forgets what lies below `from`: compaction takes parts of it, here earlier and there later.
    pub fn begin_above(&mut self, from: Offset) {
        if self.anchors.first().is_none_or(|first| first.0 >= from) {
            return;
        }
        self.anchors.retain(|(at, _)| *at >= from);
        if self.anchors.is_empty() {
            *self = Self { anchors: SmallVec::new(), end: from, sum: 0 };
        }
    }

    /// Forgets what lies above `to`; the chain ends at an anchor then, and is extended again when looked at.
    pub fn cut(&mut self, to: Offset) {
        if self.end <= to {
            return;
        }
        while let Some((at, sum)) = self.anchors.pop() {
            if at <= to {
                self.end = at;
                self.sum = sum;
                return;
            }
        }
        *self = Self { anchors: SmallVec::new(), end: to, sum: 0 };
    }
}
