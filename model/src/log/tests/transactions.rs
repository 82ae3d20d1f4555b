//! Transactions in one log: peer cases TXN-03, 05, 06, 07, 08 and 16 (Kafka's UnifiedLogTest and ProducerStateManagerTest).

use super::*;
use crate::log::read::ReadHint;
use crate::log::RaisedMarker;
use crate::record::control::end_txn_marker;
use crate::record::stamp;
use crate::wire::errors::ErrorCode;

/// A batch of a transaction, where it stands in another log.
fn txn(producer: i64, base: i64, sequence: i32, records: i32) -> Bytes {
    Make { base, epoch: 0, records, producer, sequence, transactional: true, ..Make::default() }.build()
}

fn marker(commit: bool, producer: i64, producer_epoch: i16, coordinator_epoch: i32) -> Bytes {
    end_txn_marker(commit, ProducerId(producer), ProducerEpoch(producer_epoch), coordinator_epoch, 0)
}

fn marker_at(base: i64, commit: bool, producer: i64) -> Bytes {
    let mut bytes = marker(commit, producer, 0, 0).to_vec();
    stamp(&mut bytes, Offset(base), LeaderEpoch(0));
    bytes.into()
}

fn aborted(rig: &Rig) -> Vec<(i64, i64, i64, i64)> {
    rig.log.producers().aborted().iter().map(|a| (a.producer.0, a.first.0, a.last.0, a.last_stable.0)).collect()
}

fn code<T>(result: Result<T, AppendError>) -> ErrorCode {
    result.map_or_else(|error| error.code(), |_| ErrorCode::None)
}

#[test]
fn txn_03_aborted_index_through_replication() {
    let mut rig = Rig::new();
    let batches = [
        txn(1, 0, 0, 5),
        at(5, 0, 3),
        txn(2, 8, 0, 2),
        txn(1, 10, 5, 4),
        txn(3, 14, 0, 3),
        at(17, 0, 2),
        txn(1, 19, 9, 10),
        marker_at(29, false, 1),
        txn(2, 30, 2, 6),
        txn(4, 36, 0, 3),
        at(39, 0, 10),
        txn(3, 49, 3, 9),
        marker_at(58, true, 3),
        txn(4, 59, 3, 8),
        txn(2, 67, 8, 7),
        marker_at(74, false, 2),
        at(75, 0, 10),
        txn(4, 85, 11, 4),
        marker_at(89, true, 4),
    ];
    rig.follow(&batches, 0).unwrap();
    assert_eq!(aborted(&rig), [(1, 0, 29, 8), (2, 8, 74, 36)]);
    let mut unstable = |hw| {
        rig.hw(hw);
        rig.log.producers().first_unstable().map(|offset| offset.0)
    };
    assert_eq!((unstable(30), unstable(75), unstable(90)), (Some(8), Some(36), None));
}

#[test]
fn txn_05_abort_across_segments() {
    let mut rig = Rig::with(LogPolicy { segment_bytes: 200, ..LogPolicy::default() });
    let data = |sequence| Make { records: 3, producer: 9, sequence, transactional: true, ..Make::default() }.build();
    rig.lead(&data(0), 0).unwrap();
    rig.lead(&data(3), 0).unwrap();
    rig.lead_as(&marker(false, 9, 0, 0), 0, Origin::Coordinator).unwrap();
    let bases: Vec<i64> = rig.log.segments().map(|segment| segment.base.0).collect();
    assert_eq!(bases[..2], [0, 3]);
    rig.hw(7);
    assert_eq!((rig.log.producers().first_unstable(), rig.log.last_stable()), (None, Offset(7)));
    let (mut out, mut listed, mut hint) = (Vec::new(), Vec::new(), ReadHint::NONE);
    rig.log.read(&rig.disk, Offset(0), rig.log.last_stable(), 10_000, true, &mut hint, &mut out).unwrap();
    rig.log.aborted_between(Offset(0), Offset(3), &mut listed);
    assert_eq!((out.len(), listed.len(), listed[0].first), (1, 1, Offset(0)));
}

#[test]
fn txn_06_end_markers_and_fencing() {
    let mut rig = Rig::new();
    let data = Make { producer: 9, producer_epoch: 5, sequence: 0, transactional: true, ..Make::default() }.build();
    rig.lead(&data, 0).unwrap();
    let mut end = |epoch, coordinator| code(rig.lead_as(&marker(false, 9, epoch, coordinator), 0, Origin::Coordinator));
    assert_eq!(end(4, 2), ErrorCode::InvalidProducerEpoch);
    assert_eq!(end(5, 2), ErrorCode::None);
    assert_eq!(end(5, 1), ErrorCode::TransactionCoordinatorFenced, "an empty transaction of an older coordinator");
    assert_eq!(end(6, 2), ErrorCode::None);
    let entry = *rig.log.producers().get(ProducerId(9)).unwrap();
    assert_eq!((entry.epoch.0, entry.coordinator_epoch, entry.txn_first), (6, 2, Offset::UNKNOWN));
    let stale = Make { producer: 9, producer_epoch: 5, sequence: 1, transactional: true, ..Make::default() }.build();
    assert_eq!(code(rig.lead(&stale, 0)), ErrorCode::InvalidProducerEpoch);
    // What a source wrote is its own business.
    let end = rig.log.end().0;
    let copied = Make {
        base: end,
        epoch: 0,
        producer: 9,
        producer_epoch: 4,
        sequence: 7,
        transactional: true,
        ..Make::default()
    };
    let mut old = marker(true, 9, 4, 0).to_vec();
    stamp(&mut old, Offset(end + 1), LeaderEpoch(0));
    rig.follow(&[copied.build(), old.into()], 0).unwrap();
    assert_eq!(rig.log.end(), Offset(end + 2));
}

/// A coordinator that was deposed ends a transaction that is open: the marker of its older epoch is refused, and the transaction
/// stays open until the present one ends it.
#[test]
fn txn_06_a_zombie_coordinator_ends_no_open_transaction() {
    let mut rig = Rig::new();
    let data =
        |sequence| Make { producer: 9, producer_epoch: 5, sequence, transactional: true, ..Make::default() }.build();
    rig.lead(&data(0), 0).unwrap();
    rig.lead_as(&marker(true, 9, 5, 2), 0, Origin::Coordinator).unwrap();
    rig.lead(&data(1), 0).unwrap();
    let open = Offset(rig.log.end().0 - 1);
    let before = rig.log.end();
    let mut end = |commit, coordinator| code(rig.lead_as(&marker(commit, 9, 5, coordinator), 0, Origin::Coordinator));
    assert_eq!(end(true, 1), ErrorCode::TransactionCoordinatorFenced);
    assert_eq!(end(false, 1), ErrorCode::TransactionCoordinatorFenced);
    let entry = *rig.log.producers().get(ProducerId(9)).unwrap();
    assert_eq!((rig.log.end(), entry.txn_first, entry.coordinator_epoch), (before, open, 2), "nothing happened");
    assert_eq!(code(rig.lead_as(&marker(false, 9, 5, 3), 0, Origin::Coordinator)), ErrorCode::None);
    let entry = *rig.log.producers().get(ProducerId(9)).unwrap();
    assert_eq!((entry.txn_first, entry.coordinator_epoch), (Offset::UNKNOWN, 3));
}

/// The rows of transaction version 2: a marker is one above its records, or it is not theirs (KIP-890). One that stands in the
/// log already is known again (KAFKA-19999); only a leader judges so, a replica takes what its leader took.
#[test]
fn txn_06_end_markers_of_version_2() {
    let mut rig = Rig::new();
    let data = |epoch, sequence| {
        Make { producer: 9, producer_epoch: epoch, sequence, transactional: true, ..Make::default() }.build()
    };
    rig.lead(&data(5, 0), 0).unwrap();
    let judge = |rig: &Rig, epoch| {
        let mut guards = Guards::default();
        let judged = rig.log.producers().check_raised_marker(ProducerId(9), ProducerEpoch(epoch), &mut guards);
        judged.map_err(|refusal| AppendError::from(refusal).code())
    };
    let refused = Err(ErrorCode::InvalidProducerEpoch);
    assert_eq!((judge(&rig, 4), judge(&rig, 5)), (refused, refused));
    assert_eq!(judge(&rig, 6), Ok(RaisedMarker::New));
    rig.lead_as(&marker(true, 9, 6, 1), 0, Origin::Coordinator).unwrap();
    assert_eq!(rig.log.producers().get(ProducerId(9)).unwrap().epoch, ProducerEpoch(6), "it is the current one now");
    assert_eq!((judge(&rig, 5), judge(&rig, 6)), (refused, Ok(RaisedMarker::Written)), "sent again");
    // The next transaction has begun under epoch 6: a marker of 6 is late, and not its own.
    rig.lead(&data(6, 0), 0).unwrap();
    assert_eq!((judge(&rig, 6), judge(&rig, 7)), (refused, Ok(RaisedMarker::New)));
    assert_eq!(code(rig.lead(&data(5, 1), 0)), ErrorCode::InvalidProducerEpoch, "late records of the one before");
    // A producer that nobody knows here any more.
    let unknown = rig.log.producers().check_raised_marker(ProducerId(8), ProducerEpoch(3), &mut Guards::default());
    assert_eq!(unknown, Ok(RaisedMarker::New));
    // What a source wrote under version 1 is its own business.
    let mut copied = marker(true, 9, 6, 0).to_vec();
    stamp(&mut copied, rig.log.end(), LeaderEpoch(0));
    rig.follow(&[copied.into()], 0).unwrap();
}

#[test]
fn txn_07_marker_without_producer_state() {
    let mut rig = Rig::new();
    assert_eq!(code(rig.lead_as(&marker(false, 9, 5, 1), 0, Origin::Coordinator)), ErrorCode::None);
    let mut client =
        |sequence| code(rig.lead(&Make { producer: 9, producer_epoch: 5, sequence, ..Make::default() }.build(), 0));
    assert_eq!(client(17), ErrorCode::OutOfOrderSequenceNumber);
    assert_eq!(client(0), ErrorCode::None);
}

#[test]
fn txn_08_sequence_rules() {
    let make = |epoch, sequence| Make { producer: 9, producer_epoch: epoch, sequence, ..Make::default() };
    let mut rig = Rig::new();
    let mut client = |make: Make| code(rig.lead(&make.build(), 0));
    assert_eq!(client(make(1, 0)), ErrorCode::None);
    assert_eq!(client(make(1, 2)), ErrorCode::OutOfOrderSequenceNumber, "a gap");
    assert_eq!(client(make(1, 0)), ErrorCode::None, "a duplicate is answered");
    assert_eq!(client(make(0, 1)), ErrorCode::InvalidProducerEpoch);
    assert_eq!(client(make(2, 1)), ErrorCode::OutOfOrderSequenceNumber, "a new epoch begins at 0");
    assert_eq!(client(make(2, 0)), ErrorCode::None);
    assert_eq!(rig.log.end(), Offset(2), "the duplicate was not appended");

    let mut rig = Rig::new();
    let open = Make { transactional: true, ..make(1, 0) };
    rig.lead(&open.build(), 0).unwrap();
    assert_eq!(code(rig.lead(&make(1, 1).build(), 0)), ErrorCode::InvalidTxnState, "outside its open transaction");
    rig.lead_as(&marker(false, 9, 2, 0), 0, Origin::Coordinator).unwrap();
    assert_eq!(code(rig.lead(&make(2, 1).build(), 0)), ErrorCode::OutOfOrderSequenceNumber, "after a marker's bump");
    assert_eq!(code(rig.lead(&make(2, 0).build(), 0)), ErrorCode::None);

    let mut rig = Rig::new();
    let copied = |base, sequence, records| Make { base, epoch: 0, records, ..make(0, sequence) }.build();
    rig.follow(&[copied(0, i32::MAX - 1, 2)], 0).unwrap();
    let next = Make { epoch: -1, ..make(0, 0) }.build();
    assert_eq!(code(rig.lead(&next, 0)), ErrorCode::None, "the sequence wraps");
    rig.follow(&[copied(3, 3, 1)], 0).expect("a replica takes a gap");
    rig.follow(&[Make { base: 4, epoch: 0, producer: 10, sequence: 40, ..Make::default() }.build()], 0)
        .expect("and a producer that it does not know");
}

#[test]
fn txn_16_empty_transactions() {
    let mut rig = Rig::new();
    let data = |sequence| Make { producer: 9, sequence, transactional: true, ..Make::default() }.build();
    for commit in [true, false] {
        rig.lead_as(&marker(commit, 9, 0, 0), 0, Origin::Coordinator).unwrap();
    }
    rig.lead(&data(0), 0).unwrap();
    rig.hw(3);
    assert_eq!(rig.log.last_stable(), Offset(2));
    for commit in [false, false, true] {
        rig.lead_as(&marker(commit, 9, 0, 0), 0, Origin::Coordinator).unwrap();
    }
    rig.lead(&data(1), 0).unwrap();
    rig.lead_as(&marker(true, 9, 0, 0), 0, Origin::Coordinator).unwrap();
    rig.hw(8);
    assert_eq!((rig.log.last_stable(), aborted(&rig)), (Offset(8), vec![(9, 2, 3, 4)]));
}
