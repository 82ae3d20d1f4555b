//! Batches without some of their records.

use super::*;
use crate::ids::{LeaderEpoch, ProducerEpoch, ProducerId};

fn batch() -> Bytes {
    let meta = BatchMeta {
        base_offset: Offset(100),
        leader_epoch: LeaderEpoch(7),
        producer: ProducerId(5),
        producer_epoch: ProducerEpoch(2),
        base_sequence: 40,
        transactional: true,
        base_timestamp: 1_000,
        ..BatchMeta::default()
    };
    let mut out = BatchBuilder::new(meta);
    for n in 0..5i64 {
        let value = [n as u8; 9];
        out.push_with_headers(1_000 + n, Some(&[n as u8 % 2]), (n != 3).then_some(&value[..]), &[(b"h", Some(b"v"))]);
    }
    out.finish()
}

#[test]
fn what_stays_is_as_it_was() {
    let bytes = batch();
    let before = BatchView::parse(&bytes).unwrap();
    let drop = [Offset(100), Offset(102), Offset(104)];
    for horizon in [None, Some(5_000_000)] {
        let left = rewrite(&before, Rewrite { drop: &drop, horizon }).unwrap();
        let after = BatchView::parse(&left).unwrap();
        assert!(after.crc_valid());
        assert_eq!(
            (after.base_offset(), after.last_offset(), after.leader_epoch()),
            (Offset(100), Offset(104), LeaderEpoch(7))
        );
        assert_eq!((after.producer(), after.producer_epoch()), (ProducerId(5), ProducerEpoch(2)));
        assert_eq!((after.base_sequence(), after.last_sequence(), after.record_count()), (40, 44, 2));
        assert!(after.is_transactional() && !after.is_control());
        assert_eq!(after.has_delete_horizon(), horizon.is_some());
        assert_eq!(after.base_timestamp(), horizon.unwrap_or(1_000));
        assert_eq!(after.max_timestamp(), 1_003);
        let kept: Vec<_> = after.records().map(Result::unwrap).collect();
        let want: Vec<_> = before.records().map(Result::unwrap).filter(|r| [101, 103].contains(&r.offset.0)).collect();
        for (kept, want) in kept.iter().zip(&want) {
            assert_eq!(
                (kept.offset, kept.timestamp, kept.key, kept.value),
                (want.offset, want.timestamp, want.key, want.value)
            );
            assert!(kept.headers.eq(want.headers));
        }
        assert_eq!(kept.len(), want.len());
        // A horizon once set stays when more goes.
        let again = rewrite(&after, Rewrite { drop: &[Offset(101)], horizon: None }).unwrap();
        let again = BatchView::parse(&again).unwrap();
        assert_eq!((again.has_delete_horizon(), again.base_timestamp()), (horizon.is_some(), after.base_timestamp()));
    }
}

#[test]
fn a_batch_without_records_keeps_its_place() {
    let bytes = batch();
    let before = BatchView::parse(&bytes).unwrap();
    let all: Vec<Offset> = (100..105).map(Offset).collect();
    let left = rewrite(&before, Rewrite { drop: &all, horizon: None }).unwrap();
    let after = BatchView::parse(&left).unwrap();
    assert!(after.crc_valid());
    assert_eq!((after.record_count(), after.size()), (0, 61));
    assert_eq!((after.base_offset(), after.next_offset(), after.last_sequence()), (Offset(100), Offset(105), 44));
    assert_eq!(after.max_timestamp(), before.max_timestamp());
}
