//! The running hash over everything that happened: one number per history.
//!
//! Each event of the world and each trace event is folded in with its simulated time and event number. Two runs are the same
//! history if and only if (up to hash collisions) their numbers agree after every event; the first disagreement names the
//! event.

use std::hash::{Hash, Hasher};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A chain of xxh3 hashes.
#[derive(Clone, Debug)]
pub struct TraceHash {
    value: u64,
    /// Empty between calls; kept so that no call has to clear it.
    collector: Collector,
}

impl Default for TraceHash {
    fn default() -> Self {
        Self { value: 0, collector: Collector { buffer: [0; BUFFER], len: 0 } }
    }
}

impl TraceHash {
    /// The present value.
    #[must_use]
    pub const fn value(&self) -> u64 {
        self.value
    }
    /// Folds one thing in.
    pub fn fold<T: Hash>(&mut self, thing: &T) {
        self.fold_all(std::slice::from_ref(thing));
    }
    /// Folds several things in that happened at once, in order. One hash over a buffer full of them is cheaper than a chain
    /// of hashes, each of which waits for the one before.
    pub fn fold_all<T: Hash>(&mut self, things: &[T]) {
        for thing in things {
            thing.hash(&mut self.collector);
            if self.collector.len > BUFFER - THING_MAX {
                self.fold_collected();
            }
        }
        if self.collector.len > 0 {
            self.fold_collected();
        }
    }
    fn fold_collected(&mut self) {
        let collected = &self.collector.buffer[..self.collector.len];
        self.value = xxh3_64_with_seed(collected, self.value);
        self.collector.len = 0;
    }
    /// Folds two words in.
    pub fn fold_words(&mut self, a: u64, b: u64) {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&a.to_le_bytes());
        bytes[8..].copy_from_slice(&b.to_le_bytes());
        self.value = xxh3_64_with_seed(&bytes, self.value);
    }
}

/// What one thing may feed at most, in bytes.
const THING_MAX: usize = 128;
/// What is hashed at once, in bytes.
const BUFFER: usize = 1024;

/// Collects what `derive(Hash)` feeds, little endian and at fixed widths, so that the hash is the same on every machine.
#[derive(Clone, Debug)]
struct Collector {
    buffer: [u8; BUFFER],
    len: usize,
}

impl Collector {
    fn push(&mut self, bytes: &[u8]) {
        let end = (self.len + bytes.len()).min(self.buffer.len());
        let take = end - self.len;
        self.buffer[self.len..end].copy_from_slice(&bytes[..take]);
        self.len = end;
        debug_assert_eq!(take, bytes.len(), "a trace event is larger than the hash's buffer");
    }
}

impl Hasher for Collector {
    fn finish(&self) -> u64 {
        0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.push(bytes);
    }
    fn write_u8(&mut self, n: u8) {
        self.push(&[n]);
    }
    fn write_u16(&mut self, n: u16) {
        self.push(&n.to_le_bytes());
    }
    fn write_u32(&mut self, n: u32) {
        self.push(&n.to_le_bytes());
    }
    fn write_u64(&mut self, n: u64) {
        self.push(&n.to_le_bytes());
    }
    fn write_u128(&mut self, n: u128) {
        self.push(&n.to_le_bytes());
    }
    fn write_usize(&mut self, n: usize) {
        self.push(&(n as u64).to_le_bytes());
    }
    fn write_isize(&mut self, n: isize) {
        self.push(&(n as i64).to_le_bytes());
    }
    fn write_i8(&mut self, n: i8) {
        self.push(&n.to_le_bytes());
    }
    fn write_i16(&mut self, n: i16) {
        self.push(&n.to_le_bytes());
    }
    fn write_i32(&mut self, n: i32) {
        self.push(&n.to_le_bytes());
    }
    fn write_i64(&mut self, n: i64) {
        self.push(&n.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mirrorlab_model::ids::{NodeId, Offset, PartitionIx};
    use mirrorlab_model::trace::{Trace, TraceEvent};

    #[test]
    fn order_and_every_field_count() {
        let event = |offset| TraceEvent {
            node: NodeId(1),
            trace: Trace::LogStartMoved { partition: PartitionIx(2), to: Offset(offset) },
        };
        let hash = |events: &[TraceEvent]| {
            let mut h = TraceHash::default();
            events.iter().for_each(|e| h.fold(e));
            h.value()
        };
        assert_eq!(hash(&[event(1), event(2)]), hash(&[event(1), event(2)]));
        assert_ne!(hash(&[event(1), event(2)]), hash(&[event(2), event(1)]));
        assert_ne!(hash(&[event(1)]), hash(&[event(3)]));
    }

    #[test]
    fn the_value_is_the_same_on_every_machine() {
        let mut h = TraceHash::default();
        h.fold(&TraceEvent {
            node: NodeId(7),
            trace: Trace::LogStartMoved { partition: PartitionIx(3), to: Offset(-1) },
        });
        h.fold_words(1, 2);
        assert_eq!(format!("{:016x}", h.value()), "adf227dad4bf21ea");
    }
}
