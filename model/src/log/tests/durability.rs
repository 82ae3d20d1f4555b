use super::*;
use crate::guards::log as guard;

fn fill(rig: &mut Rig, range: std::ops::Range<i32>) {
    for n in range {
        rig.lead(&Make { producer: 9, sequence: n, ..Make::default() }.build(), 0).unwrap();
    }
}

#[test]
fn only_a_finished_flush_raises_the_recovery_point() {
    let mut rig = Rig::with(tiny());
    fill(&mut rig, 0..8);
    let mut wants = Vec::new();
    let target = rig.log.plan_flush(&mut rig.disk, &mut rig.guards, FlushUpto::Rolled, &mut wants).unwrap().unwrap();
    assert_eq!((target.offset, rig.log.recovery_point()), (Offset(6), Offset(0)));
    // Two segments, two snapshots, the epoch file, the root; the directory last.
    assert_eq!(wants.len(), 7);
    assert_eq!(wants.iter().filter(|w| **w == FlushWant::Root).count(), 1);
    assert_eq!(wants.last(), Some(&FlushWant::Dir(rig.dir)));
    let again = rig.log.plan_flush(&mut rig.disk, &mut rig.guards, FlushUpto::End, &mut Vec::new()).unwrap();
    assert_eq!(again, None, "one at a time");
    rig.obey(&wants);
    assert!(rig.log.on_flushed(&mut rig.guards, target));
    assert_eq!(rig.log.recovery_point(), Offset(6));
    rig.flush(FlushUpto::End);
    assert_eq!(rig.log.recovery_point(), Offset(8));
    assert!(!rig.log.has_unflushed());
}

#[test]
fn a_flush_from_before_a_cut_vouches_for_nothing() {
    let mut rig = Rig::new();
    fill(&mut rig, 0..4);
    let mut wants = Vec::new();
    let target = rig.log.plan_flush(&mut rig.disk, &mut rig.guards, FlushUpto::End, &mut wants).unwrap().unwrap();
    rig.cut(2);
    fill(&mut rig, 2..4);
    assert!(!rig.log.on_flushed(&mut rig.guards, target));
    assert_eq!(rig.log.recovery_point(), Offset(0));
    rig.flush(FlushUpto::End);
    assert_eq!(rig.log.recovery_point(), Offset(4));
}

#[test]
fn d01_a_new_segment_needs_its_directory_flushed() {
    for mutant in [false, true] {
        let mut rig = Rig::with(tiny());
        rig.disk.flush_dir(rig.dir);
        rig.guards.set(guard::DirectoryFlushed, !mutant);
        fill(&mut rig, 0..8);
        rig.flush(FlushUpto::End);
        let from = rig.checkpointed(false);
        assert_eq!(from.recovery_point, Offset(8));
        rig.disk.crash_hard();
        rig.load(from);
        assert_eq!(rig.log.end().0, if mutant { 3 } else { 8 });
    }
}

#[test]
fn d03_a_torn_snapshot_is_ignored_and_the_mutants_believe_it() {
    let mut rig = Rig::with(tiny());
    fill(&mut rig, 0..4);
    rig.flush(FlushUpto::End);
    let snapshot = rig.disk.open(rig.dir, FileName::ProducerSnapshot(3)).unwrap();
    assert_eq!(rig.disk.durable_len(snapshot), rig.disk.len(snapshot));
    rig.disk.rot(snapshot, 50); // in the last sequence
    let mut believer = Rig { disk: rig.disk.clone(), log: rig.log.clone(), guards: Guards::default(), ..Rig::new() };
    believer.guards.set(guard::SnapshotChecksumMatches, false);
    believer.guards.set(guard::TailReplayedAfterSnapshot, false);
    let from = rig.checkpointed(false);
    let recovered = rig.load(from);
    assert_eq!((recovered.snapshot, rig.last_sequence(9)), (None, Some(3)));
    assert_eq!(rig.files(is_snapshot), 0);
    believer.load(from);
    assert_ne!(believer.last_sequence(9), Some(3));
}

#[test]
fn t19_the_tail_after_the_snapshot_is_replayed() {
    for mutant in [false, true] {
        let mut rig = Rig::with(tiny());
        rig.guards.set(guard::TailReplayedAfterSnapshot, !mutant);
        fill(&mut rig, 0..5);
        rig.flush(FlushUpto::End);
        let from = rig.checkpointed(false);
        assert_eq!(rig.load(from).snapshot, Some(Offset(3)));
        let retry = rig.lead(&Make { producer: 9, sequence: 4, ..Make::default() }.build(), 0);
        assert_eq!(retry.is_ok_and(|info| info.duplicate), !mutant);
    }
}

#[test]
fn unclean_recovery_cuts_at_the_first_batch_that_does_not_prove_itself() {
    for mutant in [false, true] {
        let mut rig = Rig::with(tiny());
        fill(&mut rig, 0..4);
        rig.flush(FlushUpto::End);
        fill(&mut rig, 4..11);
        rig.guards.set(guard::UncleanRecoveryScans, !mutant);
        let second = rig.log.segments().nth(1).unwrap();
        let (file, size) = (second.file, second.size / 3);
        rig.disk.rot(file, u64::from(size + 70)); // offset 4, above the recovery point
        let from = rig.checkpointed(false);
        assert_eq!(from.recovery_point, Offset(4));
        let recovered = rig.load(from);
        if mutant {
            assert_eq!((recovered.cut, rig.log.end()), (None, Offset(11)));
        } else {
            assert_eq!((recovered.cut, rig.log.end()), (Some(Offset(4)), Offset(4)));
            assert_eq!(rig.log.segment_count(), 2);
            assert_eq!(rig.last_sequence(9), Some(3));
            fill(&mut rig, 4..6);
        }
    }
}

/// The marker says that nothing has to be proven; the last header names an offset that was never written.
#[test]
fn the_last_batch_proves_itself_after_a_clean_stop_too() {
    for mutant in [false, true] {
        let mut rig = Rig::with(tiny());
        fill(&mut rig, 0..8);
        rig.stop_clean();
        let from = rig.checkpointed(true);
        rig.guards.set(guard::LastHeaderProven, !mutant);
        let (file, size) = (rig.log.active.file, rig.log.active.size / 2);
        rig.disk.rot(file, u64::from(size) + 26); // the last offset delta of offset 7
        let recovered = rig.load(from);
        assert_eq!((recovered.damaged, rig.log.end()), (!mutant, Offset(if mutant { 9 } else { 7 })));
        assert_eq!(recovered.cut, (!mutant).then_some(Offset(7)));
    }
}

/// A damaged header in the middle ends the log, and a clean stop does not make that an end of what was written.
#[test]
fn a_damaged_header_is_no_torn_tail() {
    for (clean, pos) in [(true, 26), (false, 26), (true, 11), (false, 11)] {
        let mut rig = Rig::with(tiny());
        fill(&mut rig, 0..8);
        rig.stop_clean();
        let from = rig.checkpointed(clean);
        let second = rig.log.segments().nth(1).unwrap();
        let (file, size) = (second.file, second.size / 3);
        rig.disk.rot(file, u64::from(size) + pos); // offset 4: its last offset delta, its length
        let recovered = rig.load(from);
        assert_eq!((recovered.damaged, recovered.cut), (true, Some(Offset(4))), "{clean} {pos}");
        assert_eq!(rig.log.end(), Offset(4));
        fill(&mut rig, 4..6);
    }
    // What was never durable is a torn tail.
    let mut rig = Rig::with(tiny());
    fill(&mut rig, 0..8);
    let from = rig.checkpointed(false);
    rig.disk.rot(rig.log.active.file, 26);
    let recovered = rig.load(from);
    assert_eq!((recovered.damaged, recovered.cut), (false, Some(Offset(6))));
}

#[test]
fn a_clean_stop_is_trusted_and_loses_nothing() {
    let mut rig = Rig::with(tiny());
    fill(&mut rig, 0..10);
    rig.hw(7);
    rig.log.assign_epoch_start(LeaderEpoch(0), Offset(10));
    rig.stop_clean();
    let (before, from) = (rig.log.clone(), rig.checkpointed(true));
    rig.disk.crash_hard();
    let recovered = rig.load(from);
    assert_eq!(recovered, Recovered { snapshot: Some(Offset(10)), ..Recovered::default() });
    assert_eq!(rig.log.producers(), before.producers());
    assert_eq!((rig.bounds(), rig.epochs()), ((0, 7, 10), vec![(0, 0)]));
    assert_eq!(rig.log.recovery_point(), Offset(10));
    let index = |log: &Log| log.segments().map(|s| (s.base, s.size, s.index_len())).collect::<Vec<_>>();
    assert_eq!(index(&rig.log), index(&before));
}

#[test]
fn r22_a_lost_epoch_file_is_rebuilt_from_the_batches() {
    let mut rig = Rig::new();
    rig.follow(&[at(0, 3, 1), at(1, 5, 1)], 5).unwrap();
    rig.flush(FlushUpto::End);
    rig.disk.remove(rig.dir, FileName::EpochCheckpoint).unwrap();
    let from = rig.checkpointed(false);
    assert!(rig.load(from).epochs_rebuilt);
    assert_eq!(rig.epochs(), [(3, 0), (5, 1)]);
    let from = rig.checkpointed(true);
    rig.load(from);
    assert_eq!(rig.epochs(), [(3, 0), (5, 1)]);
}

#[test]
fn a_segment_that_comes_back_behind_newer_data_is_recognised() {
    let mut rig = Rig::with(tiny());
    for base in 0..6 {
        rig.follow(&[at(base, 1, 1)], 1).unwrap();
    }
    rig.flush(FlushUpto::End);
    rig.cut(2);
    // The removal of segment 3 is not durable; epoch 2 fills up to its base.
    rig.follow(&[at(2, 2, 1)], 2).unwrap();
    let first = rig.log.segments().next().unwrap().file;
    rig.disk.flush(first);
    let from = rig.checkpointed(false);
    rig.disk.crash_hard();
    assert_eq!(rig.files(|name| matches!(name, FileName::Segment(_))), 2);
    rig.load(from);
    assert_eq!((rig.log.end(), rig.epochs()), (Offset(3), vec![(1, 0), (2, 2)]));
}

#[test]
fn a_checkpointed_start_above_what_survived_starts_anew() {
    let mut rig = Rig::new();
    fill(&mut rig, 0..4);
    let from = LoadFrom { start: Offset(20), hw: Offset(30), recovery_point: Offset(25), ..LoadFrom::default() };
    rig.load(from);
    assert_eq!((rig.bounds(), rig.epochs(), rig.log.recovery_point()), ((20, 20, 20), vec![], Offset(20)));
    assert!(rig.log.producers().is_empty());
}

#[test]
fn an_empty_directory_gives_an_empty_log() {
    let mut rig = Rig::new();
    rig.dir = rig
        .disk
        .open_dir(DirName::Partition { topic: TopicLife { id: TopicId(2), ix: TopicIx(0) }, partition: 0 }, true)
        .unwrap();
    rig.load(LoadFrom { start: Offset(4), ..LoadFrom::default() });
    assert_eq!(rig.bounds(), (4, 4, 4));
}

// 1. DeleteRecords moves the start to 3: the epochs below are forgotten, and flushed so. 2. Power loss takes the checkpoint of
// the start. 3. The log begins at 0 again: its table says so, from the batches.
#[test]
fn epochs_of_a_start_that_fell_come_from_the_batches() {
    let mut rig = Rig::new();
    rig.follow(&[at(0, 1, 1), at(1, 2, 1), at(2, 2, 1), at(3, 2, 1), at(4, 5, 1)], 5).unwrap();
    rig.hw(5);
    assert_eq!(rig.log.delete_records(&mut rig.guards, Offset(3)), Ok(Offset(3)));
    assert_eq!(rig.epochs(), [(2, 3), (5, 4)]);
    rig.flush(FlushUpto::End);
    let from = rig.checkpointed(false);
    rig.load(LoadFrom { start: Offset::ZERO, ..from });
    assert_eq!((rig.bounds().0, rig.epochs()), (0, vec![(1, 0), (2, 1), (5, 4)]));
}

// The same with a recovery point that is older than the start: it lies in an epoch, and a later one begins before the start.
// Found by seed 3067 of swarm/disk.
#[test]
fn epochs_of_a_start_that_fell_below_the_recovery_point_too() {
    let mut rig = Rig::new();
    rig.follow(&[at(0, 1, 1), at(1, 1, 1), at(2, 2, 1), at(3, 2, 1), at(4, 2, 1)], 2).unwrap();
    rig.hw(5);
    assert_eq!(rig.log.delete_records(&mut rig.guards, Offset(4)), Ok(Offset(4)));
    assert_eq!(rig.epochs(), [(2, 4)]);
    rig.flush(FlushUpto::End);
    let from = rig.checkpointed(false);
    rig.load(LoadFrom { start: Offset::ZERO, recovery_point: Offset(1), ..from });
    assert_eq!((rig.bounds().0, rig.epochs()), (0, vec![(1, 0), (2, 2)]));
}
