//! Log compaction: what stays, what goes and when, and what a crash at any step of a swap leaves.

use super::*;
use crate::guards::log as guard;
use crate::log::clean::{CleanError, Dirty};
use crate::ports::DiskError;
use crate::record::control::end_txn_marker;
use crate::record::ControlType;
use crate::testing::DiskCall;
use std::collections::BTreeMap;

fn policy() -> LogPolicy {
    LogPolicy {
        compact: true,
        delete: false,
        dirty_ratio_ppm: 0,
        segment_bytes: 300,
        delete_retention_ms: 1_000,
        ..LogPolicy::default()
    }
}

/// A batch with these keys and values (`None`: a tombstone).
fn keyed(records: &[(&str, Option<&str>)], producer: i64, sequence: i32, transactional: bool) -> Bytes {
    let meta = BatchMeta {
        producer: ProducerId(producer),
        producer_epoch: ProducerEpoch(if producer < 0 { -1 } else { 0 }),
        base_sequence: sequence,
        transactional,
        base_timestamp: 1_000,
        ..BatchMeta::default()
    };
    let mut batch = BatchBuilder::new(meta);
    for (key, value) in records {
        batch.push(1_000, Some(key.as_bytes()), value.map(str::as_bytes));
    }
    batch.finish()
}

impl Rig {
    fn put(&mut self, key: &str, value: Option<&str>) {
        self.lead(&keyed(&[(key, value)], -1, -1, false), 1).unwrap();
    }
    fn commit_all(&mut self) {
        self.hw(self.log.end().0);
        self.flush(FlushUpto::Rolled);
    }
    /// Closes the active segment and commits everything before it.
    fn close(&mut self) {
        self.log.roll(&mut self.disk).unwrap();
        self.commit_all();
    }
    fn dirty_at(&mut self, wall_ms: i64) -> Dirty {
        self.log.dirty(&mut self.guards, &self.policy, now(wall_ms))
    }
    fn plan(&mut self, wall_ms: i64) -> bool {
        let dirty = self.dirty_at(wall_ms);
        let mut wants = Vec::new();
        let (disk, guards, policy) = (&mut self.disk, &mut self.guards, &self.policy);
        let planned = self.log.plan_cleaning(disk, guards, policy, &dirty, now(wall_ms), &mut wants).unwrap();
        self.obey(&wants);
        planned
    }
    fn clean(&mut self, wall_ms: i64) {
        if self.plan(wall_ms) {
            self.log.swap(&mut self.disk).unwrap().expect("nothing came in between");
        }
    }
    /// Offset, key and value of all records.
    fn records(&self) -> Vec<(i64, String, Option<String>)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let mut all = Vec::new();
        let each = |batch: &BatchView<'_>| {
            assert!(batch.crc_valid());
            for record in batch.records().map(Result::unwrap).filter(|_| !batch.is_control()) {
                all.push((record.offset.0, text(record.key.unwrap()), record.value.map(text)));
            }
        };
        self.log.for_each_batch(&self.disk, self.log.start(), each).unwrap();
        all
    }
    /// What a table folded from the log holds.
    fn fold(&self) -> BTreeMap<String, String> {
        let mut table = BTreeMap::new();
        for (_, key, value) in self.records() {
            match value {
                Some(value) => table.insert(key, value),
                None => table.remove(&key),
            };
        }
        table
    }
}

fn filled() -> Rig {
    let mut rig = Rig::with(policy());
    for n in 0..30 {
        rig.put(["a", "b", "c"][n % 3], Some(&format!("value {n}")));
    }
    rig.commit_all();
    rig
}

#[test]
fn the_last_value_of_each_key_stays_where_it_was() {
    let mut rig = filled();
    let (fold, end, epochs, before) = (rig.fold(), rig.log.end(), rig.epochs(), rig.records());
    let dirty = rig.dirty_at(2_000);
    assert_eq!((dirty.from, dirty.upto, dirty.share_ppm, dirty.due), (Offset(0), rig.log.active.base, 1_000_000, true));
    rig.clean(2_000);
    assert_eq!((rig.fold(), rig.log.end(), rig.epochs()), (fold, end, epochs));
    assert_eq!(rig.log.cleaned_to(), dirty.upto);
    let after = rig.records();
    // Three below the active segment, which is left alone.
    assert_eq!(after.iter().filter(|r| r.0 < dirty.upto.0).count(), 3);
    assert_eq!(after.iter().filter(|r| r.0 >= dirty.upto.0).count() as i64, end.0 - dirty.upto.0);
    assert!(after.iter().all(|r| before.contains(r)));
    // A read from a gap gives what is next; one from behind the end of a compacted segment goes on.
    let (mut hint, mut out) = (ReadHint::NONE, Vec::new());
    let bytes = rig.log.read(&rig.disk, Offset(0), end, 1, true, &mut hint, &mut out).unwrap();
    assert!(bytes > 0 && BatchView::parse(&out[0]).unwrap().next_offset() > Offset(0));
    // Nothing new, nothing to do.
    let again = rig.dirty_at(3_000);
    assert_eq!((again.bytes, again.due), (0, false));
}

#[test]
fn what_is_not_committed_decided_closed_flushed_or_old_enough_is_left() {
    let mut rig = filled();
    let active = rig.log.active.base;
    rig.hw(10);
    assert!(rig.dirty_at(2_000).upto <= Offset(10) && rig.dirty_at(2_000).waits);
    rig.hw(30);
    assert_eq!(rig.dirty_at(2_000).upto, active);
    rig.policy.min_compaction_lag_ms = 5_000;
    assert_eq!((rig.dirty_at(2_000).due, rig.dirty_at(2_000).waits), (false, true));
    assert!(rig.dirty_at(7_000).due);
    rig.policy = LogPolicy { dirty_ratio_ppm: 999_999, ..policy() };
    rig.clean(2_000);
    rig.put("a", Some("one more"));
    rig.close();
    assert!(!rig.dirty_at(2_000).due);
    rig.policy.max_compaction_lag_ms = 500;
    assert!(rig.dirty_at(2_000).due);
    // An open transaction pins the stable offset.
    let mut rig = filled();
    rig.lead(&keyed(&[("a", Some("open"))], 7, 0, true), 1).unwrap();
    let open = Offset(rig.log.end().0 - 1);
    rig.put("a", Some("later"));
    rig.close();
    rig.put("b", Some("x"));
    rig.close();
    assert!(rig.dirty_at(2_000).upto <= open);
}

#[test]
fn a_tombstone_goes_when_its_time_is_over() {
    let mut rig = Rig::with(policy());
    rig.put("a", Some("1"));
    rig.put("a", None);
    rig.put("b", Some("2"));
    rig.close();
    rig.clean(2_000);
    assert_eq!(rig.records().iter().map(|r| r.0).collect::<Vec<_>>(), [1, 2]);
    for (wall, left) in [(2_999, vec![1, 2, 3]), (3_000, vec![2, 4])] {
        rig.put("c", Some("3"));
        rig.close();
        rig.clean(wall);
        assert_eq!(rig.records().iter().map(|r| r.0).collect::<Vec<_>>(), left, "at {wall}");
    }
}

#[test]
fn aborted_records_go_and_supersede_nothing_and_markers_outlive_them() {
    let mut rig = Rig::with(policy());
    rig.put("a", Some("committed"));
    rig.lead(&keyed(&[("a", Some("aborted"))], 7, 0, true), 1).unwrap();
    let end = |rig: &mut Rig, commit| {
        let bytes = end_txn_marker(commit, ProducerId(7), ProducerEpoch(0), 3, 1_000);
        rig.lead_as(&bytes, 1, Origin::Coordinator).unwrap();
    };
    end(&mut rig, false);
    rig.lead(&keyed(&[("b", Some("in a transaction"))], 7, 1, true), 1).unwrap();
    end(&mut rig, true);
    rig.close();
    let markers = |rig: &Rig| {
        let mut all = Vec::new();
        let each = |b: &BatchView<'_>| {
            if matches!(b.control_type(), Some(ControlType::Abort | ControlType::Commit)) {
                all.push(b.base_offset().0);
            }
        };
        rig.log.for_each_batch(&rig.disk, Offset::ZERO, each).unwrap();
        all
    };
    rig.clean(2_000);
    let texts = |rig: &Rig| rig.records().into_iter().map(|r| r.2.unwrap()).collect::<Vec<_>>();
    assert_eq!(texts(&rig), ["committed", "in a transaction"]);
    assert_eq!(markers(&rig), [2, 4]);
    // The aborted data is gone: its marker gets a time limit, and goes; the other one has its record.
    for (wall, left) in [(3_000, vec![2, 4]), (4_000, vec![4])] {
        rig.put("z", Some("z"));
        rig.close();
        rig.clean(wall);
        assert_eq!(markers(&rig), left, "at {wall}");
    }
    let before = rig.log.producers().clone();
    rig.load(LoadFrom { hw: rig.log.end(), recovery_point: Offset::ZERO, ..LoadFrom::default() });
    assert_eq!(
        rig.log.producers().get(ProducerId(7)).unwrap().last_sequence,
        before.get(ProducerId(7)).unwrap().last_sequence
    );
    assert_eq!(rig.log.last_stable(), rig.log.high_watermark());
}

#[test]
fn the_last_batch_of_a_producer_stays_empty() {
    let mut rig = Rig::with(policy());
    for n in 0..4 {
        rig.lead(&keyed(&[("k", Some("of a producer"))], 9, n, false), 1).unwrap();
    }
    rig.put("k", Some("newest"));
    rig.close();
    rig.clean(2_000);
    assert_eq!(rig.records(), [(4, "k".to_owned(), Some("newest".to_owned()))]);
    rig.load(LoadFrom { hw: rig.log.end(), ..LoadFrom::default() });
    assert_eq!(rig.last_sequence(9), Some(3));
    assert!(rig.lead(&keyed(&[("k", Some("next"))], 9, 4, false), 1).is_ok());
}

/// What rotted is not written anew under a good CRC: the log stays as it is, and is used on.
#[test]
fn a_damaged_batch_is_not_cleaned() {
    for mutant in [false, true] {
        let mut rig = filled();
        rig.guards.set(guard::CrcCheckedOnCleaning, !mutant);
        let segment = rig.log.segments().next().unwrap();
        let (file, last) = (segment.file, segment.size - 2);
        let size = rig.log.active.base;
        rig.disk.rot(file, u64::from(last)); // a byte of a value
        let dirty = rig.dirty_at(2_000);
        let (disk, guards, policy) = (&mut rig.disk, &mut rig.guards, &rig.policy);
        let planned = rig.log.plan_cleaning(disk, guards, policy, &dirty, now(2_000), &mut Vec::new());
        if mutant {
            assert_eq!(planned, Ok(true));
        } else {
            let Err(CleanError::Damaged(at)) = planned else { panic!("{planned:?}") };
            assert!(at < size && !rig.log.is_offline() && !rig.log.is_being_cleaned());
            rig.put("d", Some("goes on"));
        }
    }
}

/// A crash before or after any disk call of plan and swap: the log comes back whole, with the same table.
#[test]
fn a_crash_at_any_step_of_a_cleaning_loses_nothing() {
    let whole = filled();
    let (fold, end) = (whole.fold(), whole.log.end());
    let mut cut_short = 0;
    for call in [DiskCall::Create, DiskCall::Append, DiskCall::Rename, DiskCall::Remove] {
        for nth in 1..40 {
            let mut rig = whole.clone();
            rig.disk.fail(call, nth, DiskError::Io);
            let dirty = rig.dirty_at(2_000);
            let mut wants = Vec::new();
            let (disk, guards, policy) = (&mut rig.disk, &mut rig.guards, &rig.policy);
            let planned = rig.log.plan_cleaning(disk, guards, policy, &dirty, now(2_000), &mut wants);
            if planned.is_ok() {
                rig.obey(&wants);
                cut_short += i32::from(rig.log.swap(&mut rig.disk).is_err());
            }
            rig.disk.heal();
            rig.load(LoadFrom { hw: end, recovery_point: whole.log.recovery_point(), ..LoadFrom::default() });
            assert_eq!((rig.fold(), rig.log.end()), (fold.clone(), end), "{call:?} {nth}");
            assert_eq!(rig.files(|name| matches!(name, FileName::Cleaned(_) | FileName::Swap(_))), 0);
            rig.clean(2_000);
            assert_eq!(rig.fold(), fold, "{call:?} {nth}");
        }
    }
    assert!(cut_short > 2, "{cut_short}");
}

#[test]
fn a_cut_gives_a_cleaning_up_and_takes_what_was_clean_with_it() {
    let mut rig = filled();
    rig.clean(2_000);
    assert!(rig.log.cleaned_to() > Offset(20));
    rig.put("a", Some("x"));
    rig.close();
    assert!(rig.plan(2_000) && rig.log.is_being_cleaned());
    rig.cut(20);
    assert!(rig.log.cleaned_to() <= Offset(20) && !rig.log.is_being_cleaned());
    assert_eq!(rig.files(|name| matches!(name, FileName::Cleaned(_))), 0);
    assert_eq!(rig.log.swap(&mut rig.disk), Ok(None));
    // Retention that takes a segment of a cleaning gives it up too.
    let mut rig = filled();
    assert!(rig.plan(2_000));
    rig.log.maybe_raise_log_start(&mut rig.guards, Offset(10));
    rig.retain(2_000);
    assert_eq!(rig.log.swap(&mut rig.disk), Ok(None));
    assert_eq!(rig.files(|name| matches!(name, FileName::Cleaned(_))), 0);
}

// Found by seed 190 of swarm/lifecycle. 1. A log is clean up to 25. 2. Power loss leaves an old checkpoint of recovery points. 3. It is cut
// to 0, which lies not below that, and new records come. 4. At the next boot the checkpoint of the cleaner takes them for clean.
#[test]
fn what_was_clean_is_taken_back_in_the_checkpoint_whatever_the_recovery_point() {
    let mut rig = filled();
    rig.clean(2_000);
    let cleaned = rig.log.clean_point();
    assert!(cleaned > Some(Offset(20)));
    rig.load(LoadFrom { hw: rig.log.end(), cleaned, ..LoadFrom::default() });
    rig.log.truncate_to(&mut rig.disk, &mut rig.guards, Offset(0)).unwrap();
    let points = rig.log.points().expect("the checkpoint of the cleaner is to be written");
    assert_eq!((points.clean, rig.log.end()), (Some(Offset(0)), Offset(0)));
}

// 1. An epoch begins with a record that is compacted away. 2. Power loss, with an old recovery point: epochs come from the
// batches. 3. Where the epoch began only the file knows; told a later start, a diverging follower would keep what it has.
#[test]
fn an_epoch_whose_first_records_are_gone_still_begins_where_it_began() {
    let mut rig = Rig::with(policy());
    rig.put("a", Some("1"));
    for n in 0..3 {
        rig.lead(&keyed(&[("b", Some(&format!("{n}")))], -1, -1, false), 4).unwrap();
    }
    rig.lead(&keyed(&[("c", Some("x"))], -1, -1, false), 6).unwrap();
    rig.lead(&keyed(&[("c", Some("y"))], -1, -1, false), 9).unwrap();
    rig.close();
    let epochs = rig.epochs();
    assert_eq!(epochs, [(1, 0), (4, 1), (6, 4), (9, 5)]);
    rig.clean(2_000);
    assert_eq!(rig.records().iter().map(|r| r.0).collect::<Vec<_>>(), [0, 3, 5]);
    let cleaned = rig.log.clean_point();
    rig.load(LoadFrom { hw: rig.log.end(), cleaned, ..LoadFrom::default() });
    assert_eq!(rig.epochs(), epochs);
}

// Found by seed 3097 of swarm/lifecycle. 1. As above; then DeleteRecords moves the start into an epoch: the file says that it begins
// there. 2. Power loss takes the checkpoint of the start. 3. Where nothing is left around the start, the file's word is no beginning.
#[test]
fn an_epoch_that_a_former_start_lay_in_begins_where_it_began() {
    let mut rig = Rig::with(policy());
    rig.put("a", Some("1"));
    for (key, epoch) in [("d", 4), ("b", 4), ("b", 4), ("c", 6), ("c", 9), ("b", 9)] {
        rig.lead(&keyed(&[(key, Some("x"))], -1, -1, false), epoch).unwrap();
    }
    rig.close();
    let epochs = rig.epochs();
    assert_eq!(epochs, [(1, 0), (4, 1), (6, 4), (9, 5)]);
    rig.clean(2_000);
    assert_eq!(rig.records().iter().map(|r| r.0).collect::<Vec<_>>(), [0, 1, 5, 6]);
    assert_eq!(rig.log.delete_records(&mut rig.guards, Offset(3)), Ok(Offset(3)));
    rig.flush(FlushUpto::End);
    let (hw, cleaned) = (rig.log.end(), rig.log.clean_point());
    rig.load(LoadFrom { hw, cleaned, recovery_point: Offset(5), ..LoadFrom::default() });
    assert_eq!((rig.bounds().0, rig.epochs()), (0, epochs));
}
