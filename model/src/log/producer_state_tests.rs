use super::*;
use crate::ids::LeaderEpoch;
use crate::log::snapshot::{decode_producers, encode_producers};
use crate::record::{BatchBuilder, BatchMeta};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::VecDeque;

fn batch(producer: i64, epoch: i16, base: i64, sequence: i32, records: i32) -> Bytes {
    let mut batch = BatchBuilder::new(BatchMeta {
        base_offset: Offset(base),
        leader_epoch: LeaderEpoch(0),
        producer: ProducerId(producer),
        producer_epoch: ProducerEpoch(epoch),
        base_sequence: sequence,
        ..BatchMeta::default()
    });
    for _ in 0..records {
        batch.push(5, None, None);
    }
    batch.finish()
}

/// Kafka's shape of the same memory: a queue of whole rows.
#[derive(Default)]
struct Naive {
    epoch: i16,
    rows: VecDeque<RememberedBatch>,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_short_form_remembers_what_a_queue_of_five_does(
        steps in prop::collection::vec((1..4i32, 0..3i64, 0..12u8), 1..40),
        first in prop_oneof![Just(0), Just(i32::MAX - 7)],
    ) {
        let (mut states, mut naive) = (ProducerStates::default(), Naive::default());
        let (mut sequence, mut offset) = (first, 0);
        for (records, gap, event) in steps {
            if event == 0 {
                naive.epoch += 1;
                naive.rows.clear();
                sequence = 0;
            } else if event == 1 && !naive.rows.is_empty() {
                // A gap in the sequence: only the newest is remembered afterwards.
                sequence = increment_sequence(sequence, 3);
                naive.rows.clear();
            }
            offset += gap;
            let bytes = batch(7, naive.epoch, offset, sequence, records);
            let view = BatchView::parse(&bytes).unwrap();
            states.apply(&view, || true);
            naive.rows.push_front(RememberedBatch {
                base_sequence: view.base_sequence(),
                last_sequence: view.last_sequence(),
                base: view.base_offset(),
                last: view.last_offset(),
            });
            naive.rows.truncate(REMEMBERED_BATCHES);
            let entry = states.get(ProducerId(7)).unwrap();
            prop_assert_eq!(entry.batches().collect::<Vec<_>>(), naive.rows.iter().copied().collect::<Vec<_>>());
            let back = decode_producers(&encode_producers(&states)).unwrap();
            prop_assert!(back.intact && back.contents == states);
            sequence = increment_sequence(sequence, records);
            offset += i64::from(records);
        }
    }
}

#[test]
fn many_producers_are_listed_by_id_whoever_is_inline() {
    let mut states = ProducerStates::default();
    for (at, producer) in [5, 2, 9, 7].into_iter().enumerate() {
        let bytes = batch(producer, 0, at as i64, 0, 1);
        states.apply(&BatchView::parse(&bytes).unwrap(), || true);
    }
    let listed = |states: &ProducerStates| states.entries().map(|entry| entry.producer.0).collect::<Vec<_>>();
    assert_eq!((listed(&states), states.len()), (vec![2, 5, 7, 9], 4));
    let back = decode_producers(&encode_producers(&states)).unwrap().contents;
    assert_eq!((listed(&back), &back), (vec![2, 5, 7, 9], &states));
    assert_eq!(states.expire(1000, 900), 4);
    assert_eq!(states, ProducerStates::default());
}

#[test]
fn offsets_too_far_apart_for_the_short_form_are_forgotten() {
    let mut states = ProducerStates::default();
    for (base, sequence) in [(0, 0), (1, 1), (5_000_000_000, 2), (5_000_000_001, 3)] {
        let bytes = batch(1, 0, base, sequence, 1);
        states.apply(&BatchView::parse(&bytes).unwrap(), || true);
    }
    let remembered: Vec<_> = states.get(ProducerId(1)).unwrap().batches().map(|b| b.base.0).collect();
    assert_eq!(remembered, [5_000_000_001, 5_000_000_000]);
}

#[test]
fn a_torn_snapshot_is_not_one() {
    let mut states = ProducerStates::default();
    states.apply(&BatchView::parse(&batch(1, 0, 0, 0, 1)).unwrap(), || true);
    let whole = encode_producers(&states);
    assert!(decode_producers(&[]).is_none());
    for len in 0..whole.len() {
        assert!(decode_producers(&whole[..len]).is_none_or(|torn| !torn.intact), "{len}");
    }
}
