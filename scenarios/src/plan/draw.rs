//! Draws for the planner: a value is hash(seed, concern, ordinal) and nothing else, so that no draw depends on how many were
//! made before it.

use crate::units::Time;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// 64 random bits for the `ordinal`-th decision of a concern.
#[must_use]
pub fn draw(seed: u64, concern: &str, ordinal: u64) -> u64 {
    // splitmix64's finaliser, over a stream of its own for each concern.
    let mut x = xxh3_64_with_seed(concern.as_bytes(), seed).wrapping_add(ordinal.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A whole number below `bound`; 0 if that is 0.
#[must_use]
pub fn below(seed: u64, concern: &str, ordinal: u64, bound: u64) -> u64 {
    let product = u128::from(draw(seed, concern, ordinal)) * u128::from(bound);
    u64::try_from(product >> 64).unwrap_or(0)
}

/// A duration from `min` to `max`, both included.
#[must_use]
pub fn between(seed: u64, concern: &str, ordinal: u64, min: Time, max: Time) -> Time {
    let width = max.0.saturating_sub(min.0).saturating_add(1);
    Time(min.0.saturating_add(below(seed, concern, ordinal, width)))
}

/// One of some things.
#[must_use]
pub fn pick<'a, T>(seed: u64, concern: &str, ordinal: u64, things: &'a [T]) -> Option<&'a T> {
    let at = below(seed, concern, ordinal, things.len() as u64);
    usize::try_from(at).ok().and_then(|at| things.get(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_depend_on_all_three_and_stay_in_bounds() {
        assert_eq!(draw(1, "a", 0), draw(1, "a", 0));
        assert_ne!(draw(1, "a", 0), draw(2, "a", 0));
        assert_ne!(draw(1, "a", 0), draw(1, "b", 0));
        assert_ne!(draw(1, "a", 0), draw(1, "a", 1));
        let mut seen = [false; 10];
        for n in 0..1_000 {
            seen[usize::try_from(below(7, "c", n, 10)).unwrap()] = true;
            let time = between(7, "t", n, Time(5), Time(6));
            assert!(time == Time(5) || time == Time(6));
        }
        assert!(seen.iter().all(|s| *s));
        assert_eq!(pick::<u8>(1, "a", 0, &[]), None);
    }
}
