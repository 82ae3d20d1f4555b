use super::*;
use crate::guards::log as guard;

#[test]
fn rep_26_high_watermark_arithmetic() {
    let mut rig = Rig::new();
    for base in 0..3 {
        rig.follow(&[at(base, 0, 1)], 0).unwrap();
    }
    assert_eq!(rig.hw(0), None);
    assert_eq!(rig.hw(1), Some((0, 1)));
    assert_eq!(rig.hw(3), Some((1, 3)));
    rig.follow(&[at(3, 0, 1), at(4, 0, 1), at(5, 0, 1)], 0).unwrap();
    assert_eq!(rig.bounds(), (0, 3, 6));
    rig.cut(3);
    assert_eq!(rig.bounds(), (0, 3, 3));
    rig.wipe(4);
    assert_eq!(rig.bounds(), (4, 4, 4));

    let mut rig = Rig::new();
    rig.follow(&[at(0, 0, 100)], 0).unwrap();
    let moved: Vec<_> = [99, 99, 100, 100, 101].into_iter().map(|to| rig.hw(to).is_some()).collect();
    assert_eq!(moved, [true, false, true, false, false]);
    assert_eq!(rig.bounds(), (0, 100, 100));
    assert!(rig.guards.was_hit(guard::HighWatermarkWithinLog));
}

/// Stock `UnifiedLog.truncateTo` cuts the epoch cache at the end too.
#[test]
fn an_epoch_without_a_batch_is_forgotten_where_nothing_else_is_cut() {
    let mut rig = Rig::new();
    rig.follow(&[at(0, 0, 3)], 0).unwrap();
    rig.log.assign_epoch_start(LeaderEpoch(4), Offset(3));
    assert_eq!(rig.log.latest_epoch(), LeaderEpoch(4));
    assert!(!rig.cut(3));
    assert_eq!((rig.log.latest_epoch(), rig.bounds()), (LeaderEpoch(0), (0, 0, 3)));
}

#[test]
fn r19_the_mutant_leaves_the_high_watermark_below_the_start() {
    let mut rig = Rig::new();
    rig.guards.set(guard::HighWatermarkLiftedByReset, false);
    rig.follow(&[at(0, 0, 3)], 0).unwrap();
    rig.hw(3);
    rig.wipe(10);
    assert_eq!(rig.bounds(), (10, 3, 10));
}

#[test]
fn whole_batches_go_and_the_end_is_a_batch_border() {
    let mut rig = Rig::with(tiny());
    for base in [0, 4, 8, 12, 20] {
        rig.follow(&[at(base, base as i32, 4)], 100).unwrap();
    }
    assert!(!rig.cut(24) && !rig.cut(100));
    assert!(rig.cut(22));
    assert_eq!((rig.log.end().0, rig.epochs().len()), (16, 4), "the gap before the cut batch is gone too");
    assert!(!rig.cut(16));
    assert!(rig.cut(9));
    assert_eq!((rig.bounds(), rig.epochs()), ((0, 0, 8), vec![(0, 0), (4, 4)]));
    assert!(rig.cut(0));
    assert_eq!((rig.bounds(), rig.epochs()), ((0, 0, 0), vec![]));
    rig.follow(&[at(0, 9, 1)], 9).unwrap();
    assert_eq!(rig.bounds(), (0, 0, 1));
}

#[test]
fn ret_10_the_epoch_cache_under_retention_and_truncation() {
    let mut rig = Rig::with(LogPolicy { retention_ms: 10, ..tiny() });
    for base in 0..20 {
        let epoch = if base < 7 { 0 } else { i32::from(base >= 10) + 1 };
        rig.follow(&[at(base, epoch, 1)], 2).unwrap();
    }
    assert_eq!(rig.epochs(), [(0, 0), (1, 7), (2, 10)]);
    rig.hw(5);
    assert_eq!(rig.retain(1_000_000), Some(3));
    assert_eq!(rig.epochs(), [(0, 3), (1, 7), (2, 10)]);
    for (to, left) in [(20, 3), (11, 3), (10, 2), (3, 0)] {
        rig.cut(to);
        assert_eq!((rig.log.end().0, rig.epochs().len()), (to, left));
    }
}

#[test]
fn ret_13_full_reset() {
    let mut rig = Rig::with(tiny());
    for n in 0..8 {
        rig.lead(&Make { producer: 9, sequence: n, ..Make::default() }.build(), 0).unwrap();
    }
    assert!(rig.files(is_snapshot) > 0);
    rig.wipe(1);
    assert_eq!((rig.bounds(), rig.epochs()), ((1, 1, 1), vec![]));
    assert!(rig.log.producers().is_empty());
    assert_eq!((rig.files(is_snapshot), rig.log.segment_count()), (0, 1));
    assert_eq!(rig.lead(&Make { producer: 9, sequence: 55, ..Make::default() }.build(), 1).unwrap().base, Offset(1));
}

#[test]
fn ret_08_gaps_and_producer_state() {
    // A log whose compaction kept headers but not records: sequences come from the headers.
    let mut rig = Rig::starting_at(LogPolicy::default(), 23);
    let batch =
        |base, sequence, records| Make { base, epoch: 1, producer: 1, sequence, records, ..Make::default() }.build();
    rig.follow(&[batch(23, 0, 4)], 1).unwrap();
    rig.follow(&[batch(27, 4, 2)], 1).unwrap();
    assert_eq!(rig.last_sequence(1), Some(5));
    rig.cut(27);
    assert_eq!(rig.last_sequence(1), Some(3));
}

#[test]
fn a_cut_rebuilds_producers_from_the_newest_snapshot_below_it() {
    let mut rig = Rig::with(tiny());
    for n in 0..9 {
        rig.lead(&Make { producer: 9, sequence: n, ..Make::default() }.build(), 0).unwrap();
    }
    assert_eq!(rig.files(is_snapshot), 2);
    rig.cut(5);
    assert_eq!((rig.last_sequence(9), rig.files(is_snapshot)), (Some(4), 1));
    assert!(rig.lead(&Make { producer: 9, sequence: 4, ..Make::default() }.build(), 0).unwrap().duplicate);
    rig.lead(&Make { producer: 9, sequence: 5, ..Make::default() }.build(), 0).unwrap();
    let mut mutant = Rig::new();
    mutant.guards.set(guard::ProducersCutWithLog, false);
    mutant.lead(&Make { producer: 9, sequence: 0, ..Make::default() }.build(), 0).unwrap();
    mutant.cut(0);
    let lost = mutant.lead(&Make { producer: 9, sequence: 0, ..Make::default() }.build(), 0).unwrap();
    assert!(lost.duplicate, "acknowledged, and nowhere");
}

// 1. A log is cut below its recovery point. 2. Until a checkpoint that says so is durable, it takes nothing. 3. A checkpoint of
// before a second cut says nothing.
#[test]
fn a_log_that_was_cut_below_its_recovery_point_waits_for_the_checkpoint() {
    let mut rig = Rig::new();
    let cut = |rig: &mut Rig, to| rig.log.truncate_to(&mut rig.disk, &mut rig.guards, Offset(to)).unwrap();
    rig.follow(&[at(0, 1, 10), at(10, 1, 10)], 1).unwrap();
    rig.flush(FlushUpto::End);
    assert_eq!((rig.log.recovery_point(), rig.log.lowered()), (Offset(20), None));
    cut(&mut rig, 15);
    let first = rig.log.lowered().expect("the recovery point fell");
    assert_eq!(rig.follow(&[at(10, 2, 5)], 2).unwrap().batches, 0);
    assert_eq!(rig.lead(&at(0, -1, 1), 3), Err(AppendError::NotYet));
    cut(&mut rig, 3);
    rig.log.on_point_durable(first);
    assert_eq!(rig.follow(&[at(0, 2, 5)], 2).unwrap().batches, 0);
    let second = rig.log.lowered().expect("nothing durable says so");
    rig.log.on_point_durable(second);
    assert_eq!(rig.follow(&[at(0, 2, 5)], 2).unwrap().batches, 1);
    // What was never promised needs no word.
    cut(&mut rig, 2);
    assert_eq!(rig.log.lowered(), None);
}

// Found by seed 670 of swarm/lifecycle. 1. DeleteRecords raises a follower's start. 2. Its leader is aligned, and its log cut below that. 3.
// Its process dies: the checkpoint of starts has it begin above its end, where nobody wrote anything.
#[test]
fn a_log_that_was_cut_below_its_start_waits_for_the_checkpoint_too() {
    let mut rig = Rig::new();
    rig.follow(&[at(0, 1, 10)], 1).unwrap();
    rig.hw(10);
    assert!(rig.log.maybe_raise_log_start(&mut rig.guards, Offset(9)));
    assert_eq!((rig.log.recovery_point(), rig.log.lowered()), (Offset(0), None));
    rig.log.truncate_to(&mut rig.disk, &mut rig.guards, Offset(0)).unwrap();
    let points = rig.log.points().expect("the start fell");
    assert_eq!((points.start, points.recovery_point), (Offset(0), Offset(0)));
    assert_eq!(rig.follow(&[at(0, 2, 5)], 2).unwrap().batches, 0);
    rig.log.on_point_durable(points.generation);
    assert_eq!(rig.follow(&[at(0, 2, 5)], 2).unwrap().batches, 1);
}

// Found by seed 1583 of swarm/lifecycle. 1. An alignment empties a log, and its watermark falls; nothing of it was flushed. 2. It grows
// again, with what nobody committed. 3. Its process dies: the checkpoint of before vouches for that.
#[test]
fn a_watermark_that_fell_with_a_cut_waits_for_the_checkpoint_too() {
    for on in [true, false] {
        let mut rig = Rig::new();
        rig.guards.set(guard::WatermarkCutWithLog, on);
        rig.follow(&[at(0, 1, 10)], 1).unwrap();
        rig.hw(10);
        rig.log.truncate_to(&mut rig.disk, &mut rig.guards, Offset(4)).unwrap();
        assert_eq!((rig.log.high_watermark(), rig.log.recovery_point()), (Offset(0), Offset(0)));
        assert_eq!(rig.log.points().map(|points| points.watermark), on.then_some(Offset(0)));
        assert_eq!(rig.follow(&[at(0, 2, 5)], 2).unwrap().batches, u32::from(!on));
        if let Some(generation) = rig.log.lowered() {
            rig.log.on_point_durable(generation);
            assert_eq!(rig.follow(&[at(0, 2, 5)], 2).unwrap().batches, 1);
        }
        // So it is after power loss, which cuts what the checkpoint counts.
        let from = LoadFrom { hw: Offset(9), ..LoadFrom::default() };
        let (log, _) = Log::load(&mut rig.disk, rig.dir, from, &mut rig.guards, &rig.policy).unwrap();
        assert_eq!((log.high_watermark(), log.lowered().is_some()), (Offset(5), on));
    }
}
