//! A lineage: appends in order, in chunks, with where each ends and the sum of hashes so far.

use super::store::Sum;
use crate::gallop::count_from_end;
use bytes::Bytes;
use smallvec::SmallVec;
use std::sync::Arc;

/// Appends in a full chunk: what forking a lineage, or appending after a clone of the world, copies at most.
const CHUNK: usize = 256;

/// All but the last are full.
pub(crate) type Chunks = SmallVec<[Arc<Vec<Piece>>; 2]>;

/// One append: its bytes, where it ends, and the sum of hashes up to and with it.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) bytes: Bytes,
    pub(crate) end: u64,
    sum: [u64; 2],
}

impl Piece {
    pub(crate) fn sum(&self) -> Sum {
        Sum::from(self.sum[0]) | Sum::from(self.sum[1]) << 64
    }
    pub(crate) fn start(&self) -> u64 {
        self.end - self.bytes.len() as u64
    }
}

/// A sequence of appends that files share.
#[derive(Clone, Debug)]
pub(crate) struct Lineage {
    pub(crate) chunks: Chunks,
    pub(crate) len: u32,
    /// Images and forks that rest on it.
    pub(crate) refs: u32,
    pub(crate) generation: u32,
    /// The lineage it forked from, and after how many appends; `u32::MAX` for a root.
    pub(crate) parent: u32,
    pub(crate) fork_at: u32,
}

impl Lineage {
    pub(crate) fn piece(&self, i: u32) -> &Piece {
        &self.chunks[i as usize / CHUNK][i as usize % CHUNK]
    }
    pub(crate) fn end(&self, appends: u32) -> u64 {
        if appends == 0 {
            0
        } else {
            self.piece(appends - 1).end
        }
    }
    pub(crate) fn sum(&self, appends: u32) -> Sum {
        if appends == 0 {
            0
        } else {
            self.piece(appends - 1).sum()
        }
    }
    pub(crate) fn push(&mut self, bytes: Bytes, hash: Sum) {
        let end = self.end(self.len) + bytes.len() as u64;
        let sum = self.sum(self.len).wrapping_add(hash);
        if self.len as usize % CHUNK == 0 {
            self.chunks.push(Arc::new(Vec::new()));
        }
        if let Some(last) = self.chunks.last_mut() {
            let last = Arc::make_mut(last);
            if last.len() == last.capacity() {
                // Two, eight, then half again: most lineages are short, there are many, and what outgrows its place
                // leaves a hole.
                let more = match last.len() {
                    0 => 2,
                    1..8 => 8 - last.len(),
                    len => len / 2,
                };
                last.reserve_exact(more.min(CHUNK - last.len()));
            }
            last.push(Piece { bytes, end, sum: [sum as u64, (sum >> 64) as u64] });
        }
        self.len += 1;
    }
    /// How many of the first `n` appends end at or before `pos`. Gallops from the end, where readers are.
    pub(crate) fn ends_by(&self, pos: u64, n: u32) -> u32 {
        count_from_end(n, |at| self.piece(at).end <= pos)
    }

    /// The chunks of a fork after the first `n` appends: full ones shared, the rest copied.
    pub(crate) fn first_chunks(&self, n: u32) -> Chunks {
        let (full, rest) = (n as usize / CHUNK, n as usize % CHUNK);
        let mut chunks: Chunks = self.chunks[..full].iter().cloned().collect();
        if rest > 0 {
            let mut copy = Vec::with_capacity(rest + 1);
            copy.extend_from_slice(&self.chunks[full][..rest]);
            chunks.push(Arc::new(copy));
        }
        chunks
    }

    /// How many first appends lie in chunks that both lineages share. Forking shares a run of first chunks, and nothing
    /// else ever does.
    pub(crate) fn shared_chunks(&self, other: &Self) -> u32 {
        let (mut low, mut high) = (0, self.chunks.len().min(other.chunks.len()));
        while low < high {
            let middle = low + (high - low) / 2;
            if Arc::ptr_eq(&self.chunks[middle], &other.chunks[middle]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low * CHUNK) as u32
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let chunks: usize = self.chunks.iter().map(|c| 40 + c.capacity() * size_of::<Piece>()).sum();
        chunks + if self.chunks.spilled() { self.chunks.capacity() * size_of::<usize>() } else { 0 }
    }
}
