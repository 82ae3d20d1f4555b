//! Who wrote a record, in the first bytes of its value: how clients recognise their own and checkers count losses.
//!
//! 16 bytes, big endian: magic 2, producer number 4, sequence 8, check 2. The rest of the value is filler that follows from
//! the identity, so that a value whose bytes were mixed up is recognised too.

use bytes::Bytes;

/// Bytes of an identity; no value with one is shorter.
pub const IDENTITY_LEN: usize = 16;

const MAGIC: [u8; 2] = [0x4d, 0x4c];

/// One record that a test client wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Identity {
    /// The client's number, unique in a run.
    pub producer: u32,
    /// The client's count of records.
    pub sequence: u64,
}

impl Identity {
    /// Writes identity and filler over all of `out`, which must have [`IDENTITY_LEN`] bytes or more (else it is left alone).
    pub fn write(self, out: &mut [u8]) {
        debug_assert!(out.len() >= IDENTITY_LEN, "no room for an identity");
        let Some((head, filler)) = out.split_first_chunk_mut::<IDENTITY_LEN>() else { return };
        *head = self.head();
        let mut word = self.mixed();
        for chunk in filler.chunks_mut(8) {
            word = word.wrapping_add(FILLER_STEP);
            chunk.copy_from_slice(&word.to_be_bytes()[..chunk.len()]);
        }
    }

    /// The identity at the start of a value; `None` if there is none.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let head = value.first_chunk::<IDENTITY_LEN>()?;
        if head[..2] != MAGIC {
            return None;
        }
        let producer = u32::from_be_bytes(*head[2..].first_chunk()?);
        let sequence = u64::from_be_bytes(*head[6..].first_chunk()?);
        let identity = Self { producer, sequence };
        (identity.head() == *head).then_some(identity)
    }

    /// As [`Self::parse`], and the filler is this identity's to the last byte.
    #[must_use]
    pub fn verify(value: &[u8]) -> Option<Self> {
        let identity = Self::parse(value)?;
        let mut word = identity.mixed();
        let intact = value[IDENTITY_LEN..].chunks(8).all(|chunk| {
            word = word.wrapping_add(FILLER_STEP);
            *chunk == word.to_be_bytes()[..chunk.len()]
        });
        intact.then_some(identity)
    }

    /// A whole value of `len` bytes (at least [`IDENTITY_LEN`]).
    #[must_use]
    pub fn value(self, len: usize) -> Bytes {
        let mut out = vec![0; len.max(IDENTITY_LEN)];
        self.write(&mut out);
        out.into()
    }

    fn head(self) -> [u8; IDENTITY_LEN] {
        let mut head = [0; IDENTITY_LEN];
        head[..2].copy_from_slice(&MAGIC);
        head[2..6].copy_from_slice(&self.producer.to_be_bytes());
        head[6..14].copy_from_slice(&self.sequence.to_be_bytes());
        head[14..].copy_from_slice(&self.mixed().to_be_bytes()[..2]);
        head
    }

    /// 64 bits that depend on every bit of the identity.
    fn mixed(self) -> u64 {
        let x = (self.sequence ^ u64::from(self.producer).rotate_left(40)).wrapping_mul(FILLER_STEP);
        (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
}

/// Odd, so that 2^64 words pass before one repeats (the golden ratio's fraction).
const FILLER_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
