//! Batches in, ranges out.

use super::*;
use crate::ids::ProducerEpoch;
use crate::record::control::end_txn_marker;
use crate::record::{stamp, BatchBuilder, BatchMeta};
use bytes::BytesMut;

fn placed(batch: &Bytes, base: i64, epoch: i32) -> Bytes {
    let mut bytes = BytesMut::from(&batch[..]);
    stamp(&mut bytes, Offset(base), LeaderEpoch(epoch));
    bytes.freeze()
}

fn batch(base: i64, count: u32, epoch: i32, transaction: Option<i64>) -> Bytes {
    let producer = ProducerId(transaction.unwrap_or(-1));
    let meta = BatchMeta { producer, transactional: transaction.is_some(), ..BatchMeta::default() };
    let mut builder = BatchBuilder::new(meta);
    for n in 0..count {
        builder.push(0, None, Some(&n.to_be_bytes()));
    }
    placed(&builder.finish(), base, epoch)
}

fn marker(base: i64, commit: bool, producer: i64) -> Bytes {
    placed(&end_txn_marker(commit, ProducerId(producer), ProducerEpoch(0), 0, 0), base, 1)
}

fn spans(d: &Delivered) -> Vec<(i64, i64)> {
    d.ranges.iter().map(|r| (r.base.0, r.next.0)).collect()
}

#[test]
fn contiguous_batches_are_one_range_and_a_gap_begins_another() {
    let bytes = [batch(0, 3, 1, None), batch(3, 2, 1, None), batch(9, 1, 2, None)];
    let d = deliver(&bytes, Offset(0), Isolation::ReadUncommitted, &[]);
    assert_eq!(spans(&d), [(0, 5), (9, 10)]);
    assert_eq!((d.next, d.epoch, d.records, d.corrupt), (Offset(10), LeaderEpoch(2), 6, false));
}

#[test]
fn reading_begins_in_the_middle_of_a_batch_and_the_hash_is_over_the_whole_batch() {
    let bytes = [batch(0, 5, 1, None)];
    let whole = deliver(&bytes, Offset(0), Isolation::ReadUncommitted, &[]);
    let half = deliver(&bytes, Offset(2), Isolation::ReadUncommitted, &[]);
    assert_eq!(spans(&half), [(2, 5)]);
    assert_eq!((half.records, half.ranges[0].hash), (3, whole.ranges[0].hash));
}

#[test]
fn a_wrong_crc_ends_the_delivery_before_the_batch() {
    let mut bad = BytesMut::from(&batch(2, 1, 1, None)[..]);
    let last = bad.len() - 1;
    bad[last] ^= 1;
    let d = deliver(&[batch(0, 2, 1, None), bad.freeze()], Offset(0), Isolation::ReadUncommitted, &[]);
    assert_eq!((spans(&d), d.next, d.corrupt), (vec![(0, 2)], Offset(2), true));
}

#[test]
fn read_committed_leaves_out_aborted_records_and_the_position_passes_them() {
    let bytes = [
        batch(0, 2, 1, Some(7)),
        batch(2, 2, 1, Some(8)),
        marker(4, false, 7),
        batch(5, 1, 1, Some(7)),
        marker(6, true, 7),
        marker(7, true, 8),
    ];
    let aborted = [AbortedTransaction { producer: ProducerId(7), first: Offset(0) }];
    let d = deliver(&bytes, Offset(0), Isolation::ReadCommitted, &aborted);
    assert_eq!((spans(&d), d.next), (vec![(2, 4), (5, 6)], Offset(8)));
    let all = deliver(&bytes, Offset(0), Isolation::ReadUncommitted, &[]);
    assert_eq!(spans(&all), [(0, 4), (5, 6)]);
}
