//! A histogram of durations as plain counters, exact in its buckets, so that runs can be added up and compared.

use crate::ids::Nanos;

/// Sub-buckets per power of two: values are told apart to 1/16.
const SUB: u64 = 16;
/// Buckets: 0..=31 µs one each, then 16 per power of two up to 2^36 µs (19 hours), the last for all above.
const BUCKETS: usize = 32 + (36 - 5) * 16;

/// Counts by duration. Bucket `b` holds, in microseconds rounded down: `b` itself for `b < 32`; else values `v` with
/// `lower(b) <= v < lower(b + 1)`, where `lower(b) = (16 + b % 16) << (b / 16 - 1)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    counts: Vec<u64>,
    count: u64,
    max_us: u64,
}

impl Latency {
    /// Adds `times` durations of the same length.
    pub fn add(&mut self, duration: Nanos, times: u64) {
        let us = duration.0 / 1_000;
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS];
        }
        self.counts[Self::bucket(us)] += times;
        self.count += times;
        self.max_us = self.max_us.max(us);
    }
    /// The bucket of a duration in microseconds.
    #[must_use]
    pub fn bucket(us: u64) -> usize {
        if us < 2 * SUB {
            return us as usize;
        }
        let shift = u64::from(59 - us.leading_zeros()); // the four bits below the highest stay
        ((shift + 1) * SUB + ((us >> shift) - SUB)).min(BUCKETS as u64 - 1) as usize
    }
    /// The least duration of a bucket, in microseconds.
    #[must_use]
    pub fn lower(bucket: usize) -> u64 {
        let b = bucket as u64;
        if b < 2 * SUB {
            return b;
        }
        (SUB + b % SUB) << (b / SUB - 1)
    }
    /// Counters by bucket; empty before the first duration.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }
    /// How many durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }
    /// The longest, in microseconds.
    #[must_use]
    pub fn max_us(&self) -> u64 {
        self.max_us
    }
    /// The lower bound of the bucket in which the `millionths`-quantile lies, in microseconds; 0 without durations.
    #[must_use]
    pub fn quantile_us(&self, millionths: u32) -> u64 {
        let rank = (u128::from(self.count) * u128::from(millionths)).div_ceil(1_000_000).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += u128::from(*count);
            if seen >= rank {
                return Self::lower(bucket);
            }
        }
        0
    }
    /// Adds another histogram's counts.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS];
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.max_us = self.max_us.max(other.max_us);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_lies_between_its_buckets_bounds() {
        for us in (0..5_000).chain([1 << 20, (1 << 20) - 1, 123_456_789]) {
            let b = Latency::bucket(us);
            assert!(Latency::lower(b) <= us && us < Latency::lower(b + 1), "{us} in bucket {b}");
        }
        assert_eq!(Latency::bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_those_of_the_counts() {
        let mut l = Latency::default();
        l.add(Nanos::from_micros(10), 99);
        l.add(Nanos::from_millis(5), 1);
        assert_eq!((l.quantile_us(500_000), l.quantile_us(990_000)), (10, 10));
        assert_eq!(l.quantile_us(1_000_000), Latency::lower(Latency::bucket(5_000)));
        assert_eq!((l.count(), l.max_us()), (100, 5_000));
    }
}
