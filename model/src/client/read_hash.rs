//! The hash in a consumer's read event. A checker computes it again from the leader's log and compares (S8).
//!
//! It is over every byte of the batches of the range, offsets and leader epochs in their headers included, batch by batch
//! in order of offset. A batch that the range begins or ends in the middle of counts whole. Not cryptographic.

use crate::record::BatchView;

/// Odd constants with mixed bits (digits of π's fraction), one per lane.
const LANES: [u64; 4] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345, 0xa409_3822_299f_31d1, 0x082e_fa98_ec4e_6c89];

/// The running hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadHash(u64);

impl Default for ReadHash {
    fn default() -> Self {
        Self(LANES[0])
    }
}

impl ReadHash {
    /// Takes in one whole batch.
    pub fn batch(&mut self, batch: &BatchView) {
        self.bytes(batch.bytes());
    }
    /// Takes in the bytes of one whole batch. Four lanes of eight bytes, so that a batch costs less than its CRC.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let mut lanes = LANES;
        let mut blocks = bytes.chunks_exact(32);
        for block in &mut blocks {
            for (lane, word) in lanes.iter_mut().zip(block.chunks_exact(8)) {
                *lane = step(*lane, word_of(word));
            }
        }
        for (lane, word) in lanes.iter_mut().zip(blocks.remainder().chunks(8)) {
            *lane = step(*lane, word_of(word));
        }
        let mut all = self.0 ^ (bytes.len() as u64);
        for lane in lanes {
            all = step(all, lane);
        }
        self.0 = all;
    }
    /// The hash of what was taken in.
    #[must_use]
    pub fn finish(self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// Folds the 128-bit product, so that high bits come down too.
#[inline]
fn step(state: u64, word: u64) -> u64 {
    let wide = u128::from(state ^ word) * u128::from(LANES[1] ^ 0x9e37_79b9_7f4a_7c15);
    (wide as u64) ^ ((wide >> 64) as u64) ^ word.rotate_left(23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_and_the_order_count() {
        let bytes: Vec<u8> = (0..100).collect();
        let hash = |b: &[u8]| {
            let mut h = ReadHash::default();
            h.bytes(b);
            h.finish()
        };
        let whole = hash(&bytes);
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_ne!(hash(&other), whole, "byte {at}");
        }
        let (mut ab, mut ba) = (ReadHash::default(), ReadHash::default());
        ab.bytes(b"a");
        ab.bytes(b"b");
        ba.bytes(b"b");
        ba.bytes(b"a");
        assert_ne!(ab.finish(), ba.finish());
    }
}
