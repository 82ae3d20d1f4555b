//! Draws without state, for jitter, backoffs and points of perturbation: nothing here remembers how many were made.

/// Draws without state: a hash of the run's seed, the node, a concern and an ordinal that the caller counts. Two draws
/// with the same coordinates are equal; adding a draw somewhere leaves all others alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entropy(pub u64);

impl Entropy {
    /// A 64-bit draw.
    #[must_use]
    pub fn draw(self, concern: u64, ordinal: u64) -> u64 {
        // SplitMix64's finaliser, twice keyed; public domain constants (Steele, Lea, Flood 2014).
        let mut x = self.0 ^ concern.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ ordinal.wrapping_mul(0xd1b5_4a32_d192_ed03);
        for _ in 0..2 {
            x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            x ^= x >> 31;
        }
        x
    }
    /// A draw in `0..below` (0 if `below` is 0).
    #[must_use]
    pub fn below(self, concern: u64, ordinal: u64, below: u64) -> u64 {
        ((u128::from(self.draw(concern, ordinal)) * u128::from(below)) >> 64) as u64
    }
}
