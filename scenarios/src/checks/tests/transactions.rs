//! Checks of transactions: producer 1, producer id 7, in the one partition of east.

use super::fake::{controller, node, Play, CLIENT, P};
use super::NOTHING;
use bytes::Bytes;
use mirrorlab_model::client::read_hash::ReadHash;
use mirrorlab_model::ids::*;
use mirrorlab_model::record::control::end_txn_marker;
use mirrorlab_model::record::{stamp, BatchBuilder, BatchMeta, Identity};
use mirrorlab_model::trace::{Trace, TxnOutcome};

pub(super) const PRODUCER: ProducerId = ProducerId(7);

/// Records `first..` of the producer at offset `base`, in a transaction.
pub(super) fn data(base: i64, first: u64, count: u64) -> Bytes {
    let mut builder = BatchBuilder::new(BatchMeta {
        base_offset: Offset(base),
        leader_epoch: LeaderEpoch(1),
        producer: PRODUCER,
        producer_epoch: ProducerEpoch(0),
        base_sequence: first as i32,
        transactional: true,
        ..BatchMeta::default()
    });
    for n in first..first + count {
        builder.push_identity(0, Some(&n.to_be_bytes()), Identity { producer: 1, sequence: n }, 32);
    }
    builder.finish()
}

pub(super) fn marker(base: i64, commit: bool) -> Bytes {
    let mut bytes = end_txn_marker(commit, PRODUCER, ProducerEpoch(0), 0, 0).to_vec();
    stamp(&mut bytes, Offset(base), LeaderEpoch(1));
    bytes.into()
}

pub(super) fn begin(play: &mut Play, first: u64) {
    assert_eq!(play.at(CLIENT, Trace::TxnBegun { producer: 1, first }), NOTHING);
}
pub(super) fn decide(play: &mut Play, commit: bool) {
    let (epoch, coordinator_epoch) = (ProducerEpoch(0), LeaderEpoch(0));
    let decided = Trace::TxnDecided { producer: PRODUCER, epoch, coordinator_epoch, commit };
    assert_eq!(play.at(node(0, 2), decided), NOTHING);
}
pub(super) fn told(play: &mut Play, first: u64, next: u64, outcome: TxnOutcome) -> Vec<String> {
    play.at(CLIENT, Trace::TxnEnded { producer: 1, first, next, outcome })
}
pub(super) fn read(play: &mut Play, batches: &[Bytes], base: i64, next: i64) -> Vec<String> {
    let mut hash = ReadHash::default();
    batches.iter().for_each(|bytes| hash.bytes(bytes));
    let (base, next) = (Offset(base), Offset(next));
    play.at(CLIENT, Trace::Read { partition: P, consumer: 1, base, next, hash: hash.finish() })
}

/// Records 0 to 2 committed at 0..3 with their marker at 3, records 3 to 4 aborted at 4..6 with theirs at 6.
pub(super) fn history() -> Play {
    let mut play = Play::new(2);
    play.core.roster.read_committed.insert(1);
    begin(&mut play, 0);
    play.commit(0, 1, &data(0, 0, 3));
    decide(&mut play, true);
    play.commit(0, 1, &marker(3, true));
    assert_eq!(told(&mut play, 0, 3, TxnOutcome::Committed), NOTHING);
    begin(&mut play, 3);
    play.commit(0, 1, &data(4, 3, 2));
    decide(&mut play, false);
    play.commit(0, 1, &marker(6, false));
    assert_eq!(told(&mut play, 3, 5, TxnOutcome::Aborted), NOTHING);
    play
}

#[test]
fn transactions_that_end_as_told_break_nothing() {
    let mut play = history();
    let reset = Trace::PositionReset { partition: P, consumer: 1, from: Offset(-1), to: Offset(0) };
    assert_eq!(play.at(CLIENT, reset), NOTHING);
    assert_eq!(read(&mut play, &[data(0, 0, 3)], 0, 3), NOTHING);
    begin(&mut play, 5);
    play.commit(0, 1, &data(7, 5, 1));
    decide(&mut play, true);
    play.commit(0, 1, &marker(8, true));
    assert_eq!(read(&mut play, &[data(7, 5, 1)], 7, 8), NOTHING, "the aborted one before it is left out");
    assert_eq!((play.quiet(), play.end(), play.left()), (vec![], vec![], vec![]));
}

#[test]
fn s18_sees_another_end_in_another_partition_and_another_than_the_producer_was_told() {
    let mut play = history();
    play.core.ghost.said.logged.insert((0, (1, 0)), false);
    assert_eq!(play.quiet(), ["S18"]);
    let mut play = history();
    assert_eq!(play.quiet(), NOTHING);
    assert_eq!(told(&mut play, 3, 5, TxnOutcome::Committed), ["S18"]);
    assert_eq!(told(&mut play, 3, 5, TxnOutcome::Unknown), NOTHING);
}

#[test]
fn s19_sees_aborted_and_undecided_records_handed_over_and_committed_ones_left_out() {
    let mut play = history();
    assert_eq!(read(&mut play, &[data(4, 3, 2)], 4, 6), ["S19"]);
    let mut play = history();
    begin(&mut play, 5);
    play.commit(0, 1, &data(7, 5, 1));
    assert_eq!(read(&mut play, &[data(7, 5, 1)], 7, 8), ["S19"], "it is open");
    let mut play = history();
    let reset = Trace::PositionReset { partition: P, consumer: 1, from: Offset(-1), to: Offset(0) };
    play.at(CLIENT, reset);
    begin(&mut play, 5);
    play.commit(0, 1, &data(7, 5, 1));
    decide(&mut play, true);
    play.commit(0, 1, &marker(8, true));
    assert_eq!(read(&mut play, &[data(7, 5, 1)], 7, 8), ["S19"], "0 to 3 was left out");
}

#[test]
fn s19_sees_a_stable_offset_that_is_not_the_first_open_transactions() {
    let mut play = history();
    begin(&mut play, 5);
    play.commit(0, 1, &data(7, 5, 1));
    assert!(play.quiet().contains(&"S19".to_owned()));
    for broker in 1..=3 {
        play.replica(0, broker).stable = Some(Offset(7));
    }
    assert_eq!(play.quiet(), NOTHING);
    play.replica(0, 2).stable = Some(Offset(5));
    assert_eq!(play.quiet(), ["S19"]);
}

#[test]
fn s20_sees_a_missing_marker_a_batch_behind_its_marker_and_a_marker_without_a_decision() {
    let mut play = history();
    begin(&mut play, 5);
    play.commit(0, 1, &data(7, 5, 1));
    begin(&mut play, 6);
    play.commit(0, 1, &data(8, 6, 1));
    for broker in 1..=3 {
        play.replica(0, broker).stable = Some(Offset(7));
    }
    assert_eq!(play.quiet(), ["S20"]);

    let mut play = history();
    play.commit(0, 1, &data(7, 5, 1)); // no new transaction was begun: it belongs to the aborted one
    for broker in 1..=3 {
        play.replica(0, broker).stable = Some(Offset(7));
    }
    assert_eq!(play.quiet(), ["S20"]);

    let mut play = Play::new(2);
    begin(&mut play, 0);
    play.commit(0, 1, &data(0, 0, 3));
    decide(&mut play, false);
    play.commit(0, 1, &marker(3, true));
    assert_eq!(play.quiet(), ["S20"]);
}

#[test]
fn l7_sees_a_stable_offset_that_stays_behind() {
    let mut play = history();
    begin(&mut play, 5);
    play.commit(0, 1, &data(7, 5, 1));
    for broker in 1..=3 {
        play.replica(0, broker).stable = Some(Offset(7));
    }
    assert!(play.left().contains(&"L7".to_owned()));
    assert_eq!(play.at(controller(0), Trace::BrokerFenced { broker: BrokerId(3), fenced: false }), NOTHING);
}
