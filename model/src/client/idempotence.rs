//! Producer id, epoch and sequences of an idempotent producer (KIP-98, KIP-360).
//!
//! Every pair (producer id, epoch) is one *generation* of sequences. A bump begins the next generation: the partitions that
//! asked for it rewrite what they have in flight from sequence 0, every other partition starts at 0 with its next new
//! batch, after its older ones are through.

use crate::guards::{client, Guards};
use crate::ids::{Nanos, ProducerEpoch, ProducerId};
use crate::record::batch::increment_sequence;
use crate::wire::errors::ErrorCode;
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet};

/// Where the producer id stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdState {
    /// Not idempotent: batches carry no id.
    Off,
    /// An id is to be asked for, not before this reading.
    Wanted(Nanos),
    /// Asked; the answer is awaited.
    Asked,
    /// There is one.
    Known,
    /// Refused for good: nothing is sent any more.
    Refused(ErrorCode),
}

/// The producer's identity at the brokers, and which partitions have trouble with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Idempotence {
    /// Where the id stands.
    pub state: IdState,
    /// The id.
    pub producer: ProducerId,
    /// Its epoch.
    pub epoch: ProducerEpoch,
    /// Counts (id, epoch) pairs.
    pub generation: u32,
    /// Slots that asked for the next bump, to be rewritten from sequence 0.
    pub bumps: BTreeSet<u32>,
    /// Slots with a batch that ended undecided, and the sequence after it: whether the broker has it decides what follows.
    pub unresolved: BTreeMap<u32, i32>,
}

impl Idempotence {
    /// An identity to be asked for, or none at all.
    #[must_use]
    pub fn new(on: bool) -> Self {
        let state = if on { IdState::Wanted(Nanos::ZERO) } else { IdState::Off };
        Self {
            state,
            producer: ProducerId::NONE,
            epoch: ProducerEpoch(-1),
            generation: 0,
            bumps: BTreeSet::new(),
            unresolved: BTreeMap::new(),
        }
    }
    /// Whether batches carry an id.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.state != IdState::Off
    }
    /// Whether batches may be built and sent.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self.state, IdState::Off | IdState::Known)
    }
    /// Takes the id that a broker gave.
    pub fn granted(&mut self, producer: ProducerId, epoch: ProducerEpoch) {
        if self.producer != ProducerId::NONE {
            self.generation += 1;
        }
        (self.producer, self.epoch) = (producer, epoch);
        self.state = IdState::Known;
    }
    /// Raises the epoch, here alone: a broker takes a higher epoch of the same id with sequence 0 (KIP-360). At the last
    /// epoch a new id is asked for instead; false then: the rewriting waits for it.
    pub fn bump(&mut self, now: Nanos) -> bool {
        if self.epoch.0 == i16::MAX {
            self.state = IdState::Wanted(now);
            return false;
        }
        self.epoch.0 += 1;
        self.generation += 1;
        true
    }
}

/// The sequence `count` after `sequence`. After 2^31−1 comes 0 (T14); with the guard off the sum runs into negative numbers.
#[must_use]
pub fn advance(sequence: i32, count: u32, guards: &mut Guards) -> i32 {
    let fits = i64::from(sequence) + i64::from(count) <= i64::from(i32::MAX);
    if guards.admits(client::ProducerSequenceWraps, fits) {
        return sequence.wrapping_add(count as i32);
    }
    increment_sequence(sequence, count as i32)
}

/// A copy of a batch under another identity: header fields of the producer, and the CRC over them.
#[must_use]
pub fn restamp(batch: &Bytes, producer: ProducerId, epoch: ProducerEpoch, sequence: i32) -> Bytes {
    // Offsets in the v2 header (KIP-98): CRC 17..21, covered from 21 on; producer id 43, epoch 51, base sequence 53..57.
    let mut bytes = BytesMut::from(&batch[..]);
    if bytes.len() >= crate::record::HEADER_LEN {
        bytes[43..51].copy_from_slice(&producer.0.to_be_bytes());
        bytes[51..53].copy_from_slice(&epoch.0.to_be_bytes());
        bytes[53..57].copy_from_slice(&sequence.to_be_bytes());
        let crc = crc32c::crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    }
    bytes.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{BatchBuilder, BatchMeta, BatchView};

    #[test]
    fn the_sequence_after_the_last_is_0_and_without_the_guard_it_is_not() {
        let mut guards = Guards::default();
        assert_eq!(advance(5, 3, &mut guards), 8);
        assert_eq!(advance(i32::MAX - 1, 1, &mut guards), i32::MAX);
        assert!(!guards.was_hit(client::ProducerSequenceWraps));
        assert_eq!(advance(i32::MAX - 1, 2, &mut guards), 0);
        assert_eq!(advance(i32::MAX, 3, &mut guards), 2);
        assert!(guards.was_hit(client::ProducerSequenceWraps));
        guards.set(client::ProducerSequenceWraps, false);
        assert!(advance(i32::MAX, 3, &mut guards) < 0);
    }

    #[test]
    fn a_restamped_batch_is_valid_and_differs_in_its_producer_only() {
        let mut builder = BatchBuilder::new(BatchMeta { producer: ProducerId(7), ..BatchMeta::default() });
        builder.push(1, None, Some(b"value"));
        let old = builder.finish();
        let new = restamp(&old, ProducerId(8), ProducerEpoch(3), 11);
        let (a, b) = (BatchView::parse(&old).unwrap(), BatchView::parse(&new).unwrap());
        assert!(b.crc_valid());
        assert_eq!((b.producer(), b.producer_epoch(), b.base_sequence()), (ProducerId(8), ProducerEpoch(3), 11));
        assert_eq!(a.payload(), b.payload());
    }

    #[test]
    fn the_last_epoch_asks_for_a_new_id() {
        let mut ids = Idempotence::new(true);
        ids.granted(ProducerId(1), ProducerEpoch(i16::MAX));
        assert!(!ids.bump(Nanos(9)));
        assert_eq!(ids.state, IdState::Wanted(Nanos(9)));
        ids.granted(ProducerId(2), ProducerEpoch(0));
        assert_eq!((ids.generation, ids.is_ready()), (1, true));
    }
}
