//! When a FAILED partition tries again (spec 2.6, K16, worked example C.9).

use crate::ids::Nanos;
use crate::ports::Entropy;

/// How often and how fast a mirror retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Delay unit: attempt n waits about `initial · 2^n`.
    pub initial: Nanos,
    /// The delay before jitter is not above this.
    pub max: Nanos,
    /// The attempt that is not made any more; 0 switches retries off.
    pub max_attempts: i16,
}

/// Concern of the jitter's draws.
const JITTER: u64 = 0x6d69_7272_7265_7472;

impl RetryPolicy {
    /// The wait before retry number `attempt` (from 1): exponential, capped, then ±20 % jitter. `None`: never (−1 means not
    /// retryable, and the budget is `max_attempts − 1` retries).
    #[must_use]
    pub fn delay(&self, attempt: i16, entropy: Entropy, ordinal: u64) -> Option<Nanos> {
        if attempt < 0 || attempt >= self.max_attempts {
            return None;
        }
        let doubled =
            self.initial.0.saturating_mul(1u64.checked_shl(u32::from(attempt.unsigned_abs())).unwrap_or(u64::MAX));
        let capped = doubled.min(self.max.0);
        let jitter = entropy.below(JITTER, ordinal, capped / 5 * 2 + 1);
        Some(Nanos(capped - capped / 5 + jitter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: RetryPolicy =
        RetryPolicy { initial: Nanos::from_secs(1), max: Nanos::from_secs(300), max_attempts: 100 };

    /// Worked example C.9.
    #[test]
    fn c_9_delays_double_up_to_the_cap_within_a_fifth() {
        for (attempt, seconds) in [(1, 2), (2, 4), (3, 8), (8, 256), (9, 300), (60, 300), (99, 300)] {
            for ordinal in 0..200 {
                let delay = DEFAULT.delay(attempt, Entropy(9), ordinal).expect("still retried").as_millis();
                assert!((seconds * 800..=seconds * 1200).contains(&delay), "attempt {attempt}: {delay} ms");
            }
        }
    }

    #[test]
    fn a_hundred_attempts_are_ninety_nine_retries_and_minus_one_is_none() {
        assert!(DEFAULT.delay(99, Entropy(1), 0).is_some());
        assert!(DEFAULT.delay(100, Entropy(1), 0).is_none());
        assert!(DEFAULT.delay(-1, Entropy(1), 0).is_none());
        assert!(RetryPolicy { max_attempts: 0, ..DEFAULT }.delay(0, Entropy(1), 0).is_none());
    }
}
