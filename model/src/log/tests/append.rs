use super::*;
use crate::guards::log as guard;
use crate::log::producer_state::ProducerRefusal;
use crate::ports::DiskError;
use crate::record::control::{end_txn_marker, mirror_pid_reset};
use crate::testing::DiskCall;
use crate::wire::errors::ErrorCode;

fn idempotent(sequence: i32, records: i32) -> Bytes {
    Make { producer: 9, sequence, records, ..Make::default() }.build()
}

#[test]
fn a_leader_stamps_offsets_and_epoch_into_one_copy() {
    let mut rig = Rig::new();
    let two = [at(0, -1, 3), at(0, -1, 2)].concat().into();
    let info = rig.lead_as(&two, 5, Origin::Coordinator).unwrap();
    assert_eq!((info.base, info.next, info.batches), (Offset(0), Offset(5), 2));
    let stored = rig.batches();
    let offsets: Vec<_> = stored.iter().map(|b| BatchView::parse(b).unwrap()).map(|b| b.base_offset().0).collect();
    assert_eq!(offsets, [0, 3]);
    assert!(stored.iter().all(|b| BatchView::parse(b).unwrap().crc_valid()));
    assert_eq!(rig.epochs(), [(5, 0)]);
}

#[test]
fn what_a_leader_refuses() {
    let mut rig = Rig::with(LogPolicy { max_message_bytes: 200, ..LogPolicy::default() });
    let mut torn = at(0, -1, 1).to_vec();
    *torn.last_mut().unwrap() ^= 1;
    let code = |result: Result<AppendInfo, AppendError>| result.unwrap_err().code();
    assert_eq!(code(rig.lead(&torn.into(), 0)), ErrorCode::CorruptMessage);
    assert_eq!(code(rig.lead(&at(0, -1, 1).slice(..50), 0)), ErrorCode::CorruptMessage);
    assert_eq!(code(rig.lead(&at(0, -1, 20), 0)), ErrorCode::MessageTooLarge);
    let marker = end_txn_marker(true, ProducerId(9), ProducerEpoch(0), 0, 0);
    assert_eq!(code(rig.lead(&marker, 0)), ErrorCode::InvalidRecord);
    let unnumbered = Make { producer: 9, sequence: -1, ..Make::default() }.build();
    assert_eq!(code(rig.lead(&unnumbered, 0)), ErrorCode::InvalidRecord);
    assert_eq!(rig.bounds(), (0, 0, 0));
    assert!(!rig.log.is_offline());
}

#[test]
fn rep_19_only_batches_up_to_the_leader_epoch_are_taken() {
    let mut rig = Rig::new();
    let info = rig.follow(&[at(0, 3, 1), at(1, 4, 1), at(2, 5, 1)], 4).unwrap();
    assert_eq!((info.batches, info.next, info.last_epoch), (2, Offset(2), LeaderEpoch(4)));
    assert_eq!((rig.log.end(), rig.log.latest_epoch()), (Offset(2), LeaderEpoch(4)));
    // One answer with ten records of epoch e and ten of e + 1; in one piece, as a socket would give them.
    let answer: Bytes = [at(2, 4, 10), at(12, 5, 10)].concat().into();
    let info = rig.follow(&[answer], 4).unwrap();
    assert_eq!((info.base, info.next), (Offset(2), Offset(12)));
    assert_eq!(rig.log.latest_epoch(), LeaderEpoch(4));
    assert!(rig.guards.was_hit(guard::BatchEpochBounded));
    // All left: nothing happened.
    let info = rig.follow(&[at(12, 5, 1)], 4).unwrap();
    assert_eq!((info.batches, info.next, rig.log.end()), (0, Offset(12), Offset(12)));
    // The mutant takes them.
    rig.guards.set(guard::BatchEpochBounded, false);
    assert_eq!(rig.follow(&[at(12, 5, 1)], 4).unwrap().batches, 1);
}

#[test]
fn rep_24_what_a_follower_append_refuses() {
    let mut rig = Rig::new();
    rig.follow(&[at(0, 0, 5)], 0).unwrap();
    let before = (rig.log.clone(), rig.batches());
    let decreasing = rig.follow(&[at(5, 0, 3), at(6, 0, 1)], 0).unwrap_err();
    assert_eq!(decreasing, AppendError::OutOfOrderOffsets { expected: Offset(8), got: Offset(6) });
    let below = rig.follow(&[at(3, 0, 4)], 0).unwrap_err();
    assert_eq!(below, AppendError::BelowLogEnd { first: Offset(3), last: Offset(6), end: Offset(5) });
    let mut rotten = at(6, 0, 1).to_vec();
    *rotten.last_mut().unwrap() ^= 1;
    let corrupt = rig.follow(&[at(5, 0, 1), rotten.into()], 0).unwrap_err();
    assert_eq!(corrupt.code(), ErrorCode::CorruptMessage);
    assert_eq!((rig.log.clone(), rig.batches()), before);

    let mut empty = Rig::starting_at(LogPolicy::default(), 7);
    let below = empty.follow(&[at(4, 0, 1)], 0).unwrap_err();
    assert_eq!(below, AppendError::BelowLogEnd { first: Offset(4), last: Offset(4), end: Offset(7) });
    assert_eq!(empty.bounds(), (7, 7, 7));
}

#[test]
fn rep_25_what_a_follower_append_must_accept() {
    let mut rig = Rig::with(LogPolicy { max_message_bytes: 100, ..LogPolicy::default() });
    rig.follow(&[at(0, 0, 20)], 0).unwrap();
    assert_eq!(rig.log.end(), Offset(20), "larger than a leader would take");
    // Duplicate sequences, a gap to 3, an unknown producer: the leader decided long ago.
    let repeated = |base| Make { base, epoch: 0, producer: 9, sequence: 0, ..Make::default() }.build();
    let mut rig = Rig::new();
    for base in 0..4 {
        rig.follow(&[repeated(base)], 0).unwrap();
    }
    assert_eq!(rig.log.end(), Offset(4));
    rig.follow(&[Make { base: 4, epoch: 0, producer: 9, sequence: 3, ..Make::default() }.build()], 0).unwrap();
    rig.follow(&[Make { base: 5, epoch: 0, producer: 77, sequence: 100, ..Make::default() }.build()], 0).unwrap();
    assert_eq!((rig.last_sequence(9), rig.last_sequence(77)), (Some(3), Some(100)));
    assert_eq!(rig.log.end(), Offset(6));
}

#[test]
fn a_follower_keeps_gaps_and_shares_the_bytes() {
    let mut rig = Rig::new();
    let batch = at(10, 1, 2);
    let info = rig.follow(std::slice::from_ref(&batch), 1).unwrap();
    assert_eq!((info.base, info.next), (Offset(10), Offset(12)));
    let (mut out, mut hint) = (Vec::new(), ReadHint::NONE);
    rig.log.read(&rig.disk, Offset(0), Offset(12), 1000, true, &mut hint, &mut out).unwrap();
    assert_eq!(out[0].as_ptr(), batch.as_ptr());
}

#[test]
fn d12_a_log_start_inside_a_batch_is_followed() {
    // The leader's log start is 5, in the middle of 0..10; it can only send the whole batch.
    let mut rig = Rig::starting_at(LogPolicy::default(), 5);
    let info = rig.follow(&[at(0, 2, 10), at(10, 2, 1)], 2).unwrap();
    assert_eq!((info.base, info.next), (Offset(0), Offset(11)));
    assert_eq!(rig.bounds(), (5, 5, 11));
    assert_eq!(rig.epochs(), [(2, 5)]);
    let from = rig.checkpointed(false);
    rig.load(from);
    assert_eq!((rig.bounds(), rig.epochs()), ((5, 5, 11), vec![(2, 5)]));
    // Cut inside that batch: nothing readable is left, and the same batch fits again.
    assert!(rig.cut(7));
    assert_eq!(rig.bounds(), (5, 5, 5));
    rig.follow(&[at(0, 2, 10)], 2).unwrap();
    assert_eq!(rig.bounds(), (5, 5, 10));
}

#[test]
fn a_repeated_batch_is_answered_with_its_old_offsets() {
    let mut rig = Rig::new();
    for n in 0..7 {
        assert_eq!(rig.lead(&idempotent(2 * n, 2), 0).unwrap().base, Offset(i64::from(2 * n)));
    }
    for n in 2..7 {
        let info = rig.lead(&idempotent(2 * n, 2), 0).unwrap();
        assert_eq!((info.duplicate, info.base.0, info.next.0), (true, i64::from(2 * n), i64::from(2 * n + 2)));
    }
    assert_eq!(rig.lead(&idempotent(2, 2), 0).unwrap_err().code(), ErrorCode::OutOfOrderSequenceNumber);
    assert_eq!(rig.log.end(), Offset(14));
    rig.guards.set(guard::DuplicateRecognised, false);
    assert_eq!(rig.lead(&idempotent(12, 2), 0).unwrap().base, Offset(14), "the mutant appends it twice");
}

#[test]
fn t14_the_sequence_wraps() {
    let mut rig = Rig::new();
    rig.lead(&idempotent(i32::MAX - 2, 2), 0).unwrap();
    rig.lead(&idempotent(i32::MAX, 1), 0).unwrap();
    assert_eq!(rig.lead(&idempotent(0, 3), 0).unwrap().base, Offset(3));
    // A batch that wraps inside is one batch.
    let mut rig = Rig::new();
    rig.lead(&idempotent(i32::MAX - 1, 4), 0).unwrap();
    assert!(rig.lead(&idempotent(i32::MAX - 1, 4), 0).unwrap().duplicate);
    assert_eq!(rig.lead(&idempotent(2, 1), 0).unwrap().base, Offset(4));
}

#[test]
fn sequences_and_epochs_of_a_producer() {
    let mut rig = Rig::new();
    rig.lead(&idempotent(0, 2), 0).unwrap();
    let gap = rig.lead(&idempotent(3, 1), 0).unwrap_err();
    assert_eq!(gap, AppendError::Producer(ProducerRefusal::OutOfOrderSequence { expected: 2, got: 3 }));
    let raised = |sequence| Make { producer: 9, producer_epoch: 1, sequence, ..Make::default() }.build();
    assert!(rig.lead(&raised(2), 0).is_err(), "a new epoch begins at 0");
    rig.lead(&raised(0), 0).unwrap();
    let fenced = rig.lead(&idempotent(2, 1), 0).unwrap_err();
    assert_eq!(fenced.code(), ErrorCode::InvalidProducerEpoch);
    assert_eq!(rig.log.end(), Offset(3));
}

#[test]
fn transactions_hold_the_last_stable_offset_until_their_marker_is_replicated() {
    let mut rig = Rig::new();
    let transactional = |producer, sequence| Make { producer, sequence, transactional: true, ..Make::default() };
    let marker = |commit, producer| end_txn_marker(commit, ProducerId(producer), ProducerEpoch(0), 3, 0);
    rig.lead(&at(0, -1, 1), 0).unwrap();
    rig.lead(&transactional(1, 0).build(), 0).unwrap();
    rig.lead(&transactional(2, 0).build(), 0).unwrap();
    rig.hw(3);
    assert_eq!(rig.log.last_stable(), Offset(1));
    let open: Vec<_> = rig.log.producers().open_transactions().map(|t| (t.producer.0, t.first.0)).collect();
    assert_eq!(open, [(1, 1), (2, 2)]);
    let outside = Make { producer: 1, sequence: 1, ..Make::default() }.build();
    assert_eq!(rig.lead(&outside, 0).unwrap_err().code(), ErrorCode::InvalidTxnState);
    rig.lead_as(&marker(false, 1), 0, Origin::Coordinator).unwrap();
    assert_eq!(rig.log.last_stable(), Offset(1), "the marker is not below the high watermark yet");
    rig.hw(4);
    assert_eq!(rig.log.last_stable(), Offset(2));
    rig.lead_as(&marker(true, 2), 0, Origin::Coordinator).unwrap();
    rig.hw(5);
    assert_eq!(rig.log.last_stable(), Offset(5));
    let mut aborted = Vec::new();
    rig.log.aborted_between(Offset(0), Offset(5), &mut aborted);
    assert_eq!(aborted.iter().map(|a| (a.producer.0, a.first.0, a.last.0)).collect::<Vec<_>>(), [(1, 1, 3)]);
    let stale = end_txn_marker(true, ProducerId(2), ProducerEpoch(0), 2, 0);
    let refused = rig.lead_as(&stale, 0, Origin::Coordinator).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::TransactionCoordinatorFenced);
}

#[test]
fn m34_a_pid_reset_forgets_producers_on_append_and_on_load() {
    let run = |mutant: bool| {
        let mut rig = Rig::new();
        rig.guards.set(guard::PidResetAppliedOnLoad, !mutant);
        rig.follow(&[Make { base: 0, epoch: 3, producer: 9, sequence: 40, ..Make::default() }.build()], 3).unwrap();
        rig.lead_as(&mirror_pid_reset(Some("east"), 0), 5, Origin::Coordinator).unwrap();
        assert!(rig.log.producers().is_empty());
        let from = rig.checkpointed(false);
        rig.load(from);
        rig.lead(&idempotent(0, 1), 5).map(|info| info.base.0)
    };
    assert_eq!(run(false), Ok(2));
    assert!(run(true).is_err(), "the restarted replica still knows the source's producer");
}

#[test]
fn d07_d09_a_failed_append_is_taken_back_and_the_log_is_offline() {
    for strike in [DiskCall::Append, DiskCall::Create] {
        let mut rig = Rig::with(tiny());
        rig.follow(&[at(0, 0, 1)], 0).unwrap();
        let before = (rig.batches(), rig.bounds(), rig.epochs());
        let nth = if strike == DiskCall::Append { 3 } else { 1 };
        rig.disk.fail(strike, nth, DiskError::Io);
        let many: Vec<_> = (1..6).map(|base| at(base, 1, 1)).collect();
        assert_eq!(rig.follow(&many, 1), Err(AppendError::Disk(DiskError::Io)));
        assert_eq!((rig.batches(), rig.bounds(), rig.epochs()), before);
        assert_eq!(rig.files(|name| matches!(name, FileName::Segment(_))), 1);
        assert_eq!(rig.follow(&many, 1), Err(AppendError::Offline));
        let from = rig.checkpointed(false);
        rig.load(from);
        assert_eq!((rig.batches(), rig.bounds(), rig.epochs()), before);
        rig.follow(&many, 1).unwrap();
        assert_eq!(rig.log.end(), Offset(6));
    }
}

#[test]
fn d07_d09_the_mutants_write_behind_a_torn_batch() {
    let mut rig = Rig::new();
    rig.guards.set(guard::OfflineIsSticky, false);
    rig.guards.set(guard::PartialAppendCutBack, false);
    rig.follow(&[at(0, 0, 1)], 0).unwrap();
    rig.disk.fail(DiskCall::Append, 1, DiskError::Full);
    rig.follow(&[at(1, 0, 1)], 0).unwrap_err();
    rig.follow(&[at(1, 0, 1)], 0).unwrap();
    rig.guards = Guards::default();
    let from = rig.checkpointed(false);
    let recovered = rig.load(from);
    assert_eq!((recovered.cut, rig.log.end()), (Some(Offset(1)), Offset(1)), "an appended batch is gone");
}

#[test]
fn rolling_by_size_and_by_time() {
    let mut rig = Rig::with(tiny());
    for _ in 0..9 {
        rig.lead(&at(0, -1, 1), 0).unwrap();
    }
    let bases: Vec<_> = rig.log.segments().map(|s| s.base.0).collect();
    assert_eq!(bases, [0, 3, 6]);
    let mut rig = Rig::with(LogPolicy { segment_ms: 50, ..LogPolicy::default() });
    for timestamp in [1000, 1050, 1051] {
        rig.lead(&Make { timestamp, ..Make::default() }.build(), 0).unwrap();
    }
    assert_eq!(rig.log.segments().map(|s| s.base.0).collect::<Vec<_>>(), [0, 2]);
}

// 1. One answer brings three batches of a producer. 2. The first fills the segment; the next one is closed with a snapshot.
// 3. Power is lost after the flush: the table is that snapshot and what is behind it.
#[test]
fn a_snapshot_in_the_middle_of_an_append_knows_what_was_appended_before_it() {
    let make =
        |n: i64| Make { base: n * 3, epoch: 1, records: 3, producer: 9, sequence: n as i32 * 3, ..Make::default() };
    let all: Vec<Bytes> = (0..4).map(|n| make(n).build()).collect();
    let segment_bytes = 2 * all[0].len() as u32 + 1;
    let mut rig = Rig::with(LogPolicy { segment_bytes, ..LogPolicy::default() });
    rig.follow(&all[..1], 1).unwrap();
    rig.follow(&all[1..], 1).unwrap();
    assert_eq!(rig.log.segments().map(|s| s.base.0).collect::<Vec<_>>(), [0, 6]);
    let before = rig.log.producers().clone();
    rig.flush(FlushUpto::End);
    rig.load(rig.checkpointed(false));
    assert_eq!(rig.log.producers(), &before);
    assert_eq!(rig.last_sequence(9), Some(11));
    // With the snapshot alone: what it says is what stood below it.
    rig.cut(6);
    assert_eq!(rig.last_sequence(9), Some(5));
}
