//! What happens next: events ordered by (time, sequence).
//!
//! A binary heap of 16-byte keys, payloads in a slab: sifting moves keys only, however large an event is, and a queue that
//! peaks at tens of events fits two cache lines. The sequence makes the order total: of two events at one instant the one
//! that was pushed first comes first.

use mirrorlab_model::ids::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bits of a key that name the payload's slot; the sequence has the other 40 (10^12 events).
const SLOT_BITS: u32 = 24;
const SLOT_MASK: u64 = (1 << SLOT_BITS) - 1;

/// Time in the high 64 bits, then sequence, then slot: one comparison orders two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u128);

/// A queue of timed events.
#[derive(Clone, Debug)]
pub struct EventQueue<T> {
    heap: BinaryHeap<Reverse<Key>>,
    slots: Vec<Option<T>>,
    free: Vec<u32>,
    pushed: u64,
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> EventQueue<T> {
    /// An empty queue.
    #[must_use]
    pub const fn new() -> Self {
        Self { heap: BinaryHeap::new(), slots: Vec::new(), free: Vec::new(), pushed: 0 }
    }

    /// Adds an event; returns its sequence number. Events at one time come out in the order they were pushed.
    ///
    /// # Panics
    /// With more than 2^24 events waiting, or after 2^40 events: limits of the simulator, far beyond what memory and
    /// patience allow.
    #[inline]
    pub fn push(&mut self, at: Nanos, event: T) -> u64 {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(event);
                u64::from(slot)
            }
            None => {
                self.slots.push(Some(event));
                self.slots.len() as u64 - 1
            }
        };
        let sequence = self.pushed;
        assert!(slot <= SLOT_MASK && sequence < 1 << (64 - SLOT_BITS), "event queue: too many events");
        self.pushed += 1;
        self.heap.push(Reverse(Key((u128::from(at.0) << 64) | u128::from((sequence << SLOT_BITS) | slot))));
        sequence
    }

    /// Takes the earliest event: its time, its sequence number, itself.
    #[inline]
    pub fn pop(&mut self) -> Option<(Nanos, u64, T)> {
        let Reverse(Key(key)) = self.heap.pop()?;
        let low = key as u64;
        let slot = (low & SLOT_MASK) as u32;
        let event = self.slots[slot as usize].take()?;
        self.free.push(slot);
        Some((Nanos((key >> 64) as u64), low >> SLOT_BITS, event))
    }

    /// Takes the earliest event if it is due by `until` (inclusive).
    #[inline]
    pub fn pop_until(&mut self, until: Nanos) -> Option<(Nanos, u64, T)> {
        if self.peek_time()? > until {
            return None;
        }
        self.pop()
    }

    /// When the earliest event is due.
    #[inline]
    #[must_use]
    pub fn peek_time(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse(Key(key))| Nanos((*key >> 64) as u64))
    }

    /// The earliest event, left where it is.
    #[must_use]
    pub fn peek(&self) -> Option<(Nanos, &T)> {
        let Reverse(Key(key)) = self.heap.peek()?;
        let event = self.slots[(*key as u64 & SLOT_MASK) as usize].as_ref()?;
        Some((Nanos((*key >> 64) as u64), event))
    }

    /// How many events wait.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// True if nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// How many events were ever pushed.
    #[must_use]
    pub const fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Drops every waiting event. Sequence numbers go on.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.slots.clear();
        self.free.clear();
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
