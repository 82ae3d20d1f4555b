//! Distributions of measured values, for the percentiles of a record.
//!
//! Three significant digits, so that a lag of 1,000,000 records costs no more memory than one of 1,000. Nothing here fails:
//! a value above the range counts as the largest, because a measurement must not end a run.

use crate::record::Percentiles;
use hdrhistogram::Histogram;

/// Digits kept of every value.
const DIGITS: u8 = 3;

/// Largest value kept apart: an hour in nanoseconds fits, and so does any lag in records.
const HIGHEST: u64 = 1 << 53;

/// A distribution of non-negative whole values: records of lag, nanoseconds of latency.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// `None` only if the library refuses its constant arguments; then nothing is counted.
    histogram: Option<Histogram<u64>>,
    /// The largest value as it came: a histogram only knows it to three digits.
    max: u64,
}

impl Distribution {
    /// An empty distribution.
    #[must_use]
    pub fn new() -> Self {
        // Grows with the values: a full range would cost 350 KB, in every copy of a world.
        let histogram = Histogram::new(DIGITS).ok();
        debug_assert!(histogram.is_some(), "constant arguments of the histogram");
        Self { histogram, max: 0 }
    }

    /// Counts one value; above 2^53 it counts as 2^53.
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Counts `value` as often as `count` says.
    pub fn record_n(&mut self, value: u64, count: u64) {
        if count == 0 {
            return;
        }
        let value = value.min(HIGHEST);
        self.max = self.max.max(value);
        if let Some(histogram) = &mut self.histogram {
            let counted = histogram.record_n(value, count);
            debug_assert!(counted.is_ok(), "the histogram grows");
        }
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.max = self.max.max(other.max);
        if let (Some(mine), Some(theirs)) = (&mut self.histogram, &other.histogram) {
            // A histogram that grows cannot refuse.
            let added = mine.add(theirs);
            debug_assert!(added.is_ok(), "the histogram grows");
        }
    }

    /// How many values were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, Histogram::len)
    }

    /// True if nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The value below or at which `quantile` (0 to 1) of the values lie; 0 of an empty distribution.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> u64 {
        match &self.histogram {
            Some(histogram) if !histogram.is_empty() => histogram.value_at_quantile(quantile).min(self.max),
            _ => 0,
        }
    }

    /// The largest value, exactly; 0 of an empty distribution.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Count, median, 99th percentile and maximum. All zero if nothing was counted.
    #[must_use]
    pub fn percentiles(&self) -> Percentiles {
        Percentiles {
            count: self.count(),
            p50: self.quantile(0.5) as f64,
            p99: self.quantile(0.99) as f64,
            max: self.max() as f64,
        }
    }
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
#[path = "distribution_tests.rs"]
mod tests;
