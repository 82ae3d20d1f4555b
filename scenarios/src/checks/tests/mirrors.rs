//! Checks of mirroring, west from east.

use super::fake::{batch, node, Play, P};
use super::{committed, NOTHING};
use crate::checks::sight::MirrorSight;
use mirrorlab_model::ids::*;
use mirrorlab_model::metadata::records::Record;
use mirrorlab_model::states::{DesiredState, MirrorState};
use mirrorlab_model::trace::{CutCause, Origin, Trace};
use mirrorlab_model::wire::messages::ConfigResource;

/// East has `0..8` of epoch 1; west mirrors it and is about to copy from east's broker 1.
pub(super) fn mirroring() -> Play {
    let mut play = committed(2);
    play.mirror();
    play.change(1, 1, 4, 0b111, 0);
    play.lead(1, 1, 4);
    let state = |from, to| Trace::MirrorStateChanged { partition: P, mirror: MirrorIx(0), from, to, attempt: 0 };
    play.at(node(1, 1), state(MirrorState::Unknown, MirrorState::Mirroring));
    let (source, offset, epoch) = (node(0, 1), Offset(0), LeaderEpoch(1));
    assert_eq!(play.at(node(1, 1), Trace::MirrorFetcherAdded { partition: P, source, offset, epoch }), NOTHING);
    play.world.mirrors.insert((node(1, 1), P), sight(MirrorState::Mirroring));
    play
}

/// A mirror in a state, heard by the source in its present epoch.
pub(super) fn sight(state: MirrorState) -> MirrorSight {
    let fetching = state == MirrorState::Mirroring;
    MirrorSight {
        mirror: MirrorIx(0),
        state,
        state_epoch: -1,
        fetching,
        source_epoch: LeaderEpoch(1),
        bounded: true,
        retries: false,
        retry_at: None,
        lag: None,
        source_hw: Offset::UNKNOWN,
    }
}

pub(super) fn copied(source: NodeId, base: i64, next: i64, source_hw: i64) -> Trace {
    Trace::Mirrored {
        partition: P,
        source,
        source_partition: P,
        base: Offset(base),
        next: Offset(next),
        source_hw: Offset(source_hw),
        source_epoch: LeaderEpoch(1),
        bytes: 1,
    }
}

/// All of west copies a batch.
pub(super) fn copy(play: &mut Play, bytes: &bytes::Bytes, base: i64, next: i64) {
    assert_eq!(play.append(1, 1, Origin::Mirror, bytes), NOTHING);
    assert_eq!(play.at(node(1, 1), copied(node(0, 1), base, next, 8)), NOTHING);
    for broker in 2..=3 {
        assert_eq!(play.append(1, broker, Origin::Replication, bytes), NOTHING);
    }
    for broker in 1..=3 {
        assert_eq!(play.watermark(1, broker, next), NOTHING);
    }
}

#[test]
fn a_mirror_that_copies_breaks_nothing() {
    let mut play = mirroring();
    copy(&mut play, &batch(0, 1, 5), 0, 5);
    copy(&mut play, &batch(5, 1, 3), 5, 8);
    assert_eq!(play.quiet(), NOTHING);
    assert_eq!(play.end(), NOTHING);
}

#[test]
fn s30_sees_bytes_that_are_not_the_sources() {
    let mut play = mirroring();
    play.append(1, 1, Origin::Mirror, &batch(0, 0, 5)); // the source has epoch 1 there
    assert_eq!(play.at(node(1, 1), copied(node(0, 1), 0, 5, 8)), ["S30"]);
    let mut play = mirroring();
    copy(&mut play, &batch(0, 1, 5), 0, 5);
    let mut other = batch(0, 1, 5).to_vec();
    other[30] ^= 1;
    for broker in 1..=3 {
        play.replica(1, broker).batches[0] = other.clone().into();
    }
    assert!(play.quiet().contains(&"S30".to_owned()));
}

#[test]
fn s31_sees_batches_from_above_the_watermark_and_from_elsewhere() {
    let mut play = mirroring();
    play.append(1, 1, Origin::Mirror, &batch(0, 1, 5));
    assert_eq!(play.at(node(1, 1), copied(node(0, 1), 0, 5, 4)), ["S31"]);
    assert_eq!(play.at(node(1, 1), copied(node(0, 1), 0, 5, 9)), ["S31"]); // that watermark is a lie
    assert!(play.at(node(1, 1), copied(node(1, 2), 0, 5, 8)).contains(&"S31".to_owned()));
}

#[test]
fn s32_sees_writers_of_a_mirrored_partition_and_copies_into_a_stopped_one() {
    let mut play = mirroring();
    assert_eq!(play.append(1, 1, Origin::Client, &batch(0, 4, 5)), ["S32"]);
    let mut play = mirroring();
    let desired = DesiredState::Stopped;
    play.record(1, &Record::MirrorTopicStateChange { topic: TopicIx(0), mirror: Some(MirrorIx(0)), desired });
    assert_eq!(play.append(1, 1, Origin::Client, &batch(0, 4, 5)), NOTHING);
    let (from, to) = (MirrorState::Stopping, MirrorState::Stopped);
    play.at(node(1, 1), Trace::MirrorStateChanged { partition: P, mirror: MirrorIx(0), from, to, attempt: 0 });
    assert_eq!(play.append(1, 1, Origin::Mirror, &batch(5, 4, 3)), ["S32"]);
}

#[test]
fn s33_sees_an_append_of_a_fetcher_that_let_go() {
    let mut play = mirroring();
    assert_eq!(play.at(node(1, 1), Trace::MirrorFetcherRemoved { partition: P, source: node(0, 1) }), NOTHING);
    play.append(1, 1, Origin::Mirror, &batch(0, 1, 5));
    assert_eq!(play.at(node(1, 1), copied(node(0, 1), 0, 5, 8)), ["S33"]);
}

#[test]
fn s10_sees_two_fetchers_in_one_epoch() {
    let mut play = mirroring();
    play.replica(1, 2).leads = true;
    let added =
        Trace::MirrorFetcherAdded { partition: P, source: node(0, 1), offset: Offset(0), epoch: LeaderEpoch(1) };
    assert_eq!(play.at(node(1, 2), added), ["S10"]);
}

#[test]
fn s34_sees_batches_above_the_local_epoch_and_local_ones_below_the_mirrored() {
    let mut play = mirroring();
    assert_eq!(play.append(1, 1, Origin::Mirror, &batch(0, 5, 5)), ["S34"]);
    let mut play = mirroring();
    copy(&mut play, &batch(0, 1, 5), 0, 5);
    let desired = DesiredState::Stopped;
    play.record(1, &Record::MirrorTopicStateChange { topic: TopicIx(0), mirror: Some(MirrorIx(0)), desired });
    assert_eq!(play.append(1, 1, Origin::Client, &batch(5, 1, 1)), ["S34"]);
    // Not of one that another has replaced: what it appends is nobody's.
    let mut play = mirroring();
    copy(&mut play, &batch(0, 1, 5), 0, 5);
    play.record(1, &Record::MirrorTopicStateChange { topic: TopicIx(0), mirror: Some(MirrorIx(0)), desired });
    play.change(1, 2, 9, 0b011, 0);
    assert!(!play.append(1, 1, Origin::Client, &batch(5, 1, 1)).contains(&"S34".to_owned()));
}

#[test]
fn s31_sees_a_fetch_in_an_epoch_that_was_left() {
    let asked_in = |told: i32, asked: i32| {
        let mut play = mirroring();
        let (source, offset, epoch) = (node(0, 1), Offset(0), LeaderEpoch(told));
        assert_eq!(play.at(node(1, 1), Trace::MirrorFetcherAdded { partition: P, source, offset, epoch }), NOTHING);
        play.append(1, 1, Origin::Mirror, &batch(0, 1, 5));
        let mut trace = copied(node(0, 1), 0, 5, 8);
        if let Trace::Mirrored { source_epoch, .. } = &mut trace {
            *source_epoch = LeaderEpoch(asked);
        }
        play.at(node(1, 1), trace)
    };
    assert_eq!(asked_in(3, 3), NOTHING);
    assert_eq!(asked_in(3, 4), NOTHING, "the source told a newer one meanwhile");
    assert_eq!(asked_in(3, 2), ["S31"]);
}

#[test]
fn s31_sees_batches_of_a_later_epoch_than_they_were_asked_for_in() {
    let asked_in = |asked: i32| {
        let mut play = mirroring();
        play.append(1, 1, Origin::Mirror, &batch(0, 1, 5));
        let mut trace = copied(node(0, 1), 0, 5, 8);
        if let Trace::Mirrored { source_epoch, .. } = &mut trace {
            *source_epoch = LeaderEpoch(asked);
        }
        let more = play.core.ghost.clusters[1].partition(P).more();
        more.source_epoch = LeaderEpoch(asked);
        play.at(node(1, 1), trace)
    };
    assert_eq!(asked_in(1), NOTHING);
    assert_eq!(asked_in(0), ["S31"]);
}

#[test]
fn s30_sees_a_gap_that_nobody_tells() {
    let jump = |told: bool| {
        let mut play = mirroring();
        copy(&mut play, &batch(0, 1, 5), 0, 5);
        let (partition, from, to) = (P, Offset(5), Offset(7));
        let moved = Trace::LogStartMoved { partition, to };
        let gap = Trace::MirrorGap { partition, from, to };
        let events = if told { vec![moved, gap] } else { vec![moved] };
        play.replica(1, 1).start = to;
        play.step(node(1, 1), &events)
    };
    assert!(!jump(true).contains(&"S30".to_owned()));
    assert!(jump(false).contains(&"S30".to_owned()));
}

#[test]
fn s6_sees_a_cut_that_follows_a_source_without_leave() {
    let diverged = |supported: bool, recoveries: usize| {
        let mut play = mirroring();
        copy(&mut play, &batch(0, 1, 5), 0, 5);
        play.world.recoveries = recoveries;
        if supported {
            let (resource, value) = (ConfigResource::Topic("t".into()), Some("true".into()));
            let key = "mirror.support.unclean.leader.election".into();
            play.record(1, &Record::Config { resource, key, value });
        }
        play.cut(1, 1, 3, CutCause::MirrorDivergence).contains(&"S6".to_owned())
    };
    assert!(diverged(false, 0));
    assert!(!diverged(true, 0));
    assert!(!diverged(false, 1));
}

#[test]
fn s46_sees_another_topic_of_the_same_name() {
    let mut play = mirroring();
    play.record(0, &Record::RemoveTopic { topic: TopicIx(0) });
    play.record(0, &Record::Topic { topic: TopicIx(1), id: TopicId(6), name: "t".into() });
    let image = &play.world.images[1];
    let state = image.partition(P).expect("a partition").state.clone();
    play.record(0, &Record::Partition { partition: PartitionIx(1), topic: TopicIx(1), number: 0, state });
    play.append(1, 1, Origin::Mirror, &batch(0, 1, 5));
    let mut trace = copied(node(0, 1), 0, 5, 8);
    if let Trace::Mirrored { source_partition, .. } = &mut trace {
        *source_partition = PartitionIx(1);
    }
    assert!(play.at(node(1, 1), trace).contains(&"S46".to_owned()));
}

#[test]
fn s6_sees_a_cut_of_acknowledged_records_that_nobody_ordered() {
    let diverged = |ordered: bool| {
        let mut play = committed(2);
        play.acked(5, 3);
        if ordered {
            let (mirror, name) = (MirrorIx(0), "back".into());
            play.record(0, &Record::Mirror { mirror, name });
            let desired = DesiredState::Mirroring;
            play.record(0, &Record::MirrorTopicStateChange { topic: TopicIx(0), mirror: Some(mirror), desired });
        }
        let (from, to) = (MirrorState::Unknown, MirrorState::LogAlignment);
        play.at(node(0, 1), Trace::MirrorStateChanged { partition: P, mirror: MirrorIx(0), from, to, attempt: 0 });
        play.cut(0, 1, 5, CutCause::Alignment)
    };
    assert_eq!(diverged(true), NOTHING);
    assert_eq!(diverged(false), ["S42", "S6"]);
}
