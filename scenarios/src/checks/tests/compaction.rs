//! Compaction that is legal, and compaction that is not.

use super::fake::{node, Play, P};
use super::NOTHING;
use crate::checks::excuses::Excuse;
use crate::checks::ghost::Stop;
use bytes::Bytes;
use mirrorlab_model::ids::*;
use mirrorlab_model::metadata::records::Record;
use mirrorlab_model::record::{rewrite, BatchBuilder, BatchMeta, BatchView, Rewrite};
use mirrorlab_model::trace::{CutCause, Origin, Trace};
use mirrorlab_model::wire::messages::ConfigResource;

pub(super) fn keyed(base: i64, records: &[(&str, Option<&str>)]) -> Bytes {
    keyed_in(1, base, records)
}

fn keyed_in(epoch: i32, base: i64, records: &[(&str, Option<&str>)]) -> Bytes {
    let meta = BatchMeta { base_offset: Offset(base), leader_epoch: LeaderEpoch(epoch), ..BatchMeta::default() };
    let mut builder = BatchBuilder::new(meta);
    for (key, value) in records {
        builder.push(7, Some(key.as_bytes()), value.map(str::as_bytes));
    }
    builder.finish()
}

pub(super) fn without(batch: &Bytes, drop: &[i64]) -> Bytes {
    let drop: Vec<Offset> = drop.iter().copied().map(Offset).collect();
    rewrite(&BatchView::parse(batch).unwrap(), Rewrite { drop: &drop, horizon: None }).unwrap()
}

/// Offsets 0: a, b. 2: a. 3: b is deleted. 4: c.
fn history() -> [Bytes; 4] {
    [
        keyed(0, &[("a", Some("1")), ("b", Some("1"))]),
        keyed(2, &[("a", Some("2"))]),
        keyed(3, &[("b", None)]),
        keyed(4, &[("c", Some("1"))]),
    ]
}

/// The topic of a cluster is compacted from here on.
pub(super) fn compacted(play: &mut Play, cluster: u8) {
    for (key, value) in [("cleanup.policy", "compact"), ("delete.retention.ms", "1000")] {
        let resource = ConfigResource::Topic("t".into());
        play.record(cluster, &Record::Config { resource, key: key.into(), value: Some(value.into()) });
    }
    play.core.ghost.clusters[usize::from(cluster)].partition(P).compacts = true;
}

fn compacted_topic() -> Play {
    let mut play = Play::new(2);
    for cluster in 0..2 {
        compacted(&mut play, cluster);
        play.change(cluster, 1, 1, 0b111, 0);
    }
    for batch in &history() {
        play.commit(0, 1, batch);
    }
    play
}

/// Broker `broker` of east has these batches now, and says that it cleaned up to 4 at this time.
fn cleaned(play: &mut Play, broker: i32, batches: &[Bytes], at_ms: i64) -> Vec<String> {
    play.replica(0, broker).batches = batches.to_vec();
    play.at(node(0, broker), Trace::Cleaned { partition: P, from: Offset(0), to: Offset(4), at_ms })
}

#[test]
fn replicas_may_be_compacted_at_different_times() {
    let mut play = compacted_topic();
    let [_, a, b, c] = history();
    assert_eq!(cleaned(&mut play, 2, &[a.clone(), b.clone(), c.clone()], 500), NOTHING);
    assert_eq!(play.quiet(), NOTHING);
    // After the retention the tombstone may go, on each of them.
    assert_eq!(cleaned(&mut play, 3, &[a.clone(), b, c.clone()], 900), NOTHING);
    assert_eq!(cleaned(&mut play, 2, &[a.clone(), c.clone()], 1_500), NOTHING);
    assert_eq!(play.quiet(), NOTHING);
    assert_eq!(play.end(), NOTHING);
    assert_eq!(play.change(0, 2, 2, 0b111, 0), NOTHING);
    assert_eq!(play.lead(0, 2, 2), NOTHING);
    // What is above the compacted end is compared as before.
    play.replica(0, 3).batches[2] = keyed(4, &[("c", Some("another"))]);
    assert!(play.quiet().contains(&"S2".to_owned()));
}

#[test]
fn what_compaction_must_leave() {
    let [first, a, b, c] = history();
    let other = keyed(2, &[("a", Some("3"))]);
    let cases: [(&str, Vec<Bytes>); 6] = [
        ("the last value of a key is gone", vec![b.clone(), c.clone()]),
        ("another value", vec![other, b.clone(), c.clone()]),
        ("a record at an offset that had none of its key", vec![a.clone(), keyed(3, &[("a", None)]), c.clone()]),
        ("an older value beside the newer one", vec![first.clone(), a.clone(), b.clone(), c.clone()]),
        ("a tombstone went too early", vec![a.clone(), c.clone()]),
        ("the older value stayed, the newer one went", vec![without(&first, &[1]), b, c.clone()]),
    ];
    for (what, batches) in cases {
        let mut play = compacted_topic();
        assert!(cleaned(&mut play, 2, &batches, 500).contains(&"S51".to_owned()), "{what}");
    }
    // Nobody cleans what is not committed.
    let mut play = compacted_topic();
    let above = Trace::Cleaned { partition: P, from: Offset(0), to: Offset(9), at_ms: 500 };
    assert!(play.at(node(0, 1), above).contains(&"S51".to_owned()));
}

#[test]
fn what_was_deleted_stays_deleted() {
    let [first, a, b, c] = history();
    let mut play = compacted_topic();
    assert_eq!(cleaned(&mut play, 2, &[a.clone(), b.clone(), c.clone()], 500), NOTHING);
    let back = [without(&first, &[0]), a.clone(), c.clone()];
    assert!(cleaned(&mut play, 2, &back, 2_000).contains(&"S51".to_owned()));
    // Of a replica that was away while the tombstone went nobody can demand more.
    let mut play = compacted_topic();
    play.shorten(0, 3, 3);
    assert_eq!(cleaned(&mut play, 2, &[a.clone(), b, c.clone()], 500), NOTHING);
    assert_eq!(cleaned(&mut play, 2, &[a.clone(), c.clone()], 2_000), NOTHING);
    let g = play.core.ghost.clusters[0].partition(P);
    g.members[2].set_end(Offset(3));
    g.isr = 0b011;
    assert_eq!(play.append(0, 3, Origin::Replication, &c), NOTHING);
    play.core.ghost.clusters[0].partition(P).isr = 0b111;
    play.replica(0, 3).hw = Offset(5);
    play.replica(0, 3).batches = vec![first, a, c];
    assert_eq!(play.quiet(), NOTHING);
    assert!(
        play.core.excuses().iter().any(|line| line.contains(Excuse::AwayTooLong.name())),
        "{:?}",
        play.core.excuses()
    );
}

#[test]
fn what_was_compacted_is_still_there_after_a_restart() {
    // Who dies in the task that lets its log begin anew has a part left, or nothing.
    for (inside, floor, end, broken) in [
        (true, 0, 5, false),
        (true, 0, 4, false),
        (true, 0, 3, true),
        (true, 9, 3, false),
        (true, 0, 0, false),
        (false, 0, 4, false),
        (false, 9, 3, true),
        (false, 0, 0, true),
    ] {
        let mut play = compacted_topic();
        let [_, a, b, c] = history();
        assert_eq!(cleaned(&mut play, 2, &[a, b, c], 500), NOTHING);
        play.world.down.insert(node(0, 2));
        play.core.on_stop(&play.world, node(0, 2), Stop::Killed, None);
        play.core.ghost.clusters[0].partition(P).floor = Offset(floor);
        if inside {
            play.core.stopped_inside_a_task(node(0, 2));
        }
        play.world.down.clear();
        play.shorten(0, 2, end);
        let back = Trace::LogRecovered { partition: P, start: Offset(0), end: Offset(end), clean: false };
        assert_eq!(play.at(node(0, 2), back).contains(&"S51".to_owned()), broken, "{inside} {floor} {end}");
    }
}

/// Broker 3 compacts away all of epoch 1, and is down while the others are cut to nothing. What it holds when it is back is of the
/// lineage before, and compacted: its epochs need not begin with the batches that they began with.
#[test]
fn what_is_behind_a_cut_was_compacted_before_it() {
    let mut play = Play::new(2);
    compacted(&mut play, 0);
    play.commit(0, 1, &keyed(0, &[("a", Some("1"))]));
    play.change(0, 1, 2, 0b111, 0);
    play.lead(0, 1, 2);
    let later = [keyed_in(2, 1, &[("a", Some("2"))]), keyed_in(2, 2, &[("b", Some("1"))])];
    later.iter().for_each(|batch| play.commit(0, 1, batch));
    play.replica(0, 3).batches = later.to_vec();
    let cleaned = Trace::Cleaned { partition: P, from: Offset(0), to: Offset(2), at_ms: 500 };
    assert_eq!(play.at(node(0, 3), cleaned), NOTHING);
    assert_eq!(play.quiet(), NOTHING);
    play.world.down.insert(node(0, 3));
    play.core.on_stop(&play.world, node(0, 3), Stop::Clean, None);
    let (now, step) = (Nanos(0), play.world.step);
    play.core.ghost.clusters[0].partition(P).cut(Offset(0), Excuse::OrderedCut, now, step);
    play.world.down.clear();
    let back = Trace::LogRecovered { partition: P, start: Offset(0), end: Offset(3), clean: true };
    assert!(!play.at(node(0, 3), back).contains(&"S9".to_owned()));
    // Once it is cut as well, it has no such excuse any more.
    let cut = Trace::Truncated { partition: P, from: Offset(3), to: Offset(0), cause: CutCause::Divergence };
    assert!(play.at(node(0, 3), cut).contains(&"S9".to_owned()));
}
