//! The life cycle of a mirror: a whole life is played with what `__mirror_state` commits of it, and damaged where a check has to see it.

use super::fake::{batch, controller, led_by_broker_1, node, FakeReplica, P};
use super::lived::{key, only, placed, position, record, reset, Lived, HOME, OURS, THEIRS};
use super::mirrors::{copy, sight};
use super::NOTHING;
use crate::checks::sight::MirrorSight;
use mirrorlab_model::ids::*;
use mirrorlab_model::metadata::records::Record;
use mirrorlab_model::mirror::records::{MirrorRecord, StateKey};
use mirrorlab_model::record::control::end_txn_marker;
use mirrorlab_model::record::{BatchBuilder, BatchMeta, BatchView};
use mirrorlab_model::states::{DesiredState, LastPosition, MirrorState, Session, StateRecord};
use mirrorlab_model::trace::{CutCause, Origin, Trace};
use MirrorState as M;

#[test]
fn a_whole_life_breaks_nothing() {
    let mut lived = Lived::stopped();
    lived.order(DesiredState::Mirroring);
    assert_eq!(lived.enter(M::LogAlignment), NOTHING);
    lived.cut(5, CutCause::Alignment);
    assert_eq!(lived.enter(M::Mirroring), NOTHING);
    lived.fetch();
    copy(&mut lived.play, &batch(5, THEIRS, 3), 5, 8);
    lived.order(DesiredState::Paused);
    assert_eq!(lived.enter(M::Pausing), NOTHING);
    lived.play.at(node(1, 1), Trace::MirrorFetcherRemoved { partition: P, source: node(0, 1) });
    assert_eq!(lived.enter(M::Paused), NOTHING);
    lived.order(DesiredState::Mirroring);
    assert_eq!(lived.enter(M::Mirroring), NOTHING);
    lived.fetch();
    assert_eq!(lived.play.quiet(), NOTHING);
    assert_eq!(lived.play.left(), NOTHING);
}

#[test]
fn s32_sees_writers_before_stopped_is_committed_and_copies_after_it() {
    let mut lived = Lived::copying();
    lived.begin_stop();
    lived.commit(1, &[position(1, Some((THEIRS, 5)))]);
    // And it lies right behind what was mirrored, without a reset.
    assert_eq!(lived.play.append(1, 1, Origin::Client, &batch(5, OURS, 1)), ["S32", "S40"]);
    let mut lived = Lived::stopped();
    let broken = lived.play.append(1, 1, Origin::Mirror, &batch(8, OURS, 1));
    assert!(broken.contains(&"S32".to_owned()), "{broken:?}");
    let mut lived = Lived::copying();
    let marker = end_txn_marker(false, ProducerId(7), ProducerEpoch(0), 0, 0);
    assert_eq!(lived.play.append(1, 1, Origin::Coordinator, &placed(&marker, 5, OURS)), ["S32"]);
}

#[test]
fn s33_sees_copies_behind_the_end_that_a_stop_noted() {
    let mut lived = Lived::copying();
    lived.begin_stop();
    assert_eq!(lived.play.append(1, 1, Origin::Mirror, &batch(5, THEIRS, 3)), NOTHING, "on its way");
    let mut lived = Lived::copying();
    lived.begin_stop();
    lived.commit(1, &[position(1, Some((THEIRS, 5)))]);
    assert_eq!(lived.play.append(1, 1, Origin::Mirror, &batch(5, THEIRS, 3)), ["S33"]);
}

#[test]
fn s35_sees_what_the_source_does_not_have() {
    let mut lived = Lived::stopped();
    lived.order(DesiredState::Mirroring);
    assert_eq!(lived.enter(M::LogAlignment), NOTHING);
    assert_eq!(lived.enter(M::Mirroring), ["S35"]);
}

/// The topic was deleted at the source, and another one took its name, while an alignment ended. Found by seed 4048 of
/// swarm/default.
#[test]
fn s35_does_not_compare_with_another_topic_of_the_name() {
    let ends = |id: u128| {
        let mut lived = Lived::stopped();
        lived.order(DesiredState::Mirroring);
        assert_eq!(lived.enter(M::LogAlignment), NOTHING);
        lived.cut(5, CutCause::Alignment);
        let (topic, partition, number) = (TopicIx(1), PartitionIx(1), 0);
        lived.play.record(0, &Record::RemoveTopic { topic: TopicIx(0) });
        lived.play.record(0, &Record::Topic { topic, id: TopicId(id), name: "t".into() });
        lived.play.record(0, &Record::Partition { partition, topic, number, state: led_by_broker_1(3) });
        let (leader, epoch, partition_epoch, isr) = (BrokerId(1), LeaderEpoch(1), PartitionEpoch(1), 0b111);
        let changed = Trace::PartitionChanged { partition, leader, epoch, partition_epoch, isr, elr: 0 };
        lived.play.at(controller(0), changed);
        let batches = vec![batch(0, 1, 3)];
        let other = FakeReplica { batches, end: Offset(3), hw: Offset(3), leads: true, ..FakeReplica::default() };
        lived.play.world.replicas.insert((node(0, 1), partition), other);
        let mut broken = lived.enter(M::Mirroring);
        broken.retain(|id| id == "S35");
        broken
    };
    assert_eq!(ends(77), NOTHING);
    // The same id, as if it were the same one.
    assert_eq!(ends(5), ["S35"]);
}

#[test]
fn s35_sees_a_cut_of_what_both_had() {
    let mut lived = Lived::stopped();
    lived.order(DesiredState::Mirroring);
    assert_eq!(lived.enter(M::LogAlignment), NOTHING);
    lived.cut(0, CutCause::Alignment);
    assert_eq!(lived.enter(M::Mirroring), ["S35"]);
}

/// The other direction copied the reset, and was deleted: where it ended is known to nobody. What is local since this one's session
/// goes, and nothing of that session.
#[test]
fn s35_lets_go_what_a_deleted_mirror_had_copied_back() {
    let again = |to: i64| {
        let mut lived = Lived::stopped();
        for broker in 1..=3 {
            lived.play.shorten(0, broker, 5);
            lived.play.store(0, broker, &reset(5));
        }
        lived.order(DesiredState::Mirroring);
        assert_eq!(lived.enter(M::LogAlignment), NOTHING);
        lived.cut(to, CutCause::Alignment);
        lived.enter(M::Mirroring)
    };
    assert_eq!(again(5), NOTHING);
    assert_eq!(again(0), ["S35"]);
}

/// Another mirror of the same source begins, is stopped before it copied, and begins again: where that ended is no end.
#[test]
fn s35_takes_a_session_that_copied_nothing_for_none() {
    let again = |end: (i32, i64), cut: bool| {
        let mut lived = Lived::new();
        assert_eq!(lived.enter(M::LogAlignment), NOTHING);
        lived.order(DesiredState::Stopped);
        for broker in 1..=3 {
            lived.play.store(1, broker, &batch(0, THEIRS, 5));
            lived.play.replica(1, broker).hw = Offset(5);
        }
        lived.number += 1;
        assert_eq!(lived.commit(1, &[record(1, M::Stopping, OURS, lived.number), position(1, Some(end))]), NOTHING);
        lived.state = M::Stopping;
        (1..=3).for_each(|broker| lived.play.store(1, broker, &reset(5)));
        (1..=3).for_each(|broker| lived.play.replica(1, broker).producers = Default::default());
        assert_eq!(lived.enter(M::Stopped), NOTHING);
        lived.order(DesiredState::Mirroring);
        assert_eq!(lived.enter(M::LogAlignment), NOTHING);
        (1..=3).for_each(|broker| lived.play.shorten(1, broker, if cut { 0 } else { 5 }));
        lived.enter(M::Mirroring)
    };
    assert_eq!(again((-1, 0), true), NOTHING);
    assert_eq!(again((-1, 0), false), ["S35"]);
    assert_eq!(again((THEIRS, 5), true), ["S35"]);
    assert_eq!(again((THEIRS, 5), false), NOTHING);
}

#[test]
fn s35_wants_a_copy_from_the_start_where_no_session_ended() {
    let begin = |cut: bool| {
        let mut lived = Lived::new();
        for broker in 1..=3 {
            lived.play.store(1, broker, &batch(0, THEIRS, 5));
        }
        assert_eq!(lived.enter(M::LogAlignment), NOTHING);
        if cut {
            (1..=3).for_each(|broker| lived.play.shorten(1, broker, 0));
        }
        lived.enter(M::Mirroring)
    };
    assert_eq!(begin(true), NOTHING);
    assert_eq!(begin(false), ["S35"]);
}

#[test]
fn s36_sees_a_follower_that_still_holds_what_was_cut() {
    let mut lived = Lived::stopped();
    lived.order(DesiredState::Mirroring);
    lived.enter(M::LogAlignment);
    lived.play.cut(1, 1, 5, CutCause::Alignment);
    assert!(only(&lived.enter(M::Mirroring), "S36"));
    // In MIRRORING, too: the source lost its tail, and nobody waited.
    let mut lived = Lived::copying();
    lived.play.cut(1, 1, 0, CutCause::MirrorDivergence);
    lived.play.append(1, 1, Origin::Mirror, &batch(0, THEIRS, 5));
    let (partition, source, source_partition) = (P, node(0, 1), P);
    let (base, next, source_hw, source_epoch) = (Offset(0), Offset(5), Offset(8), LeaderEpoch(THEIRS));
    let bytes = 1;
    let copied = Trace::Mirrored { partition, source, source_partition, base, next, source_hw, source_epoch, bytes };
    assert!(only(&lived.play.at(node(1, 1), copied), "S36"));
}

#[test]
fn s37_sees_states_out_of_order_and_epochs_that_do_not_grow() {
    let mut lived = Lived::new();
    assert_eq!(lived.commit(1, &[record(1, M::Mirroring, OURS, 1)]), ["S37"]);
    let mut lived = Lived::copying();
    assert_eq!(lived.commit(1, &[record(1, M::Pausing, OURS, 2)]), ["S37"]);
    let mut lived = Lived::copying();
    assert_eq!(lived.commit(1, &[record(1, M::Pausing, OURS - 1, 3)]), ["S37"]);
    let mut lived = Lived::copying();
    assert_eq!(lived.commit(1, &[record(1, M::Pausing, OURS + 1, 3)]), ["S37"]);
}

/// C16.
#[test]
fn s37_sees_who_copies_after_it_failed_in_an_alignment() {
    let goes_on = |to| {
        let mut lived = Lived::new();
        assert_eq!(lived.enter(M::LogAlignment), NOTHING);
        let MirrorRecord::State(key, Some(mut failed)) = record(1, M::Failed, OURS, 2) else { return Vec::new() };
        failed.previous = M::LogAlignment;
        assert_eq!(lived.commit(1, &[MirrorRecord::State(key, Some(failed))]), NOTHING);
        lived.commit(1, &[record(1, to, OURS, 3)])
    };
    assert_eq!(goes_on(M::Mirroring), ["S37"]);
    assert_eq!(goes_on(M::LogAlignment), NOTHING);
}

#[test]
fn s37_sees_a_second_actor_and_a_deposed_one() {
    let act = |leads: bool| {
        let mut lived = Lived::copying();
        lived.play.replica(1, 2).leads = leads;
        lived.commit(1, &[record(1, M::Failed, OURS, 3)]);
        lived.play.world.mirrors.insert((node(1, 2), P), MirrorSight { state_epoch: 3, ..sight(M::Failed) });
        let (mirror, from, to) = (MirrorIx(0), M::Mirroring, M::Failed);
        lived.play.at(node(1, 2), Trace::MirrorStateChanged { partition: P, mirror, from, to, attempt: 0 })
    };
    assert_eq!(act(true), ["S37"]);
    assert_eq!(act(false), ["S37"]);
}

#[test]
fn s37_sees_who_goes_on_after_it_failed_for_good() {
    let go_on = |recoveries, to| {
        let mut lived = Lived::copying();
        let MirrorRecord::State(key, Some(mut failed)) = record(1, M::Failed, OURS, 3) else { return Vec::new() };
        failed.attempt = -1;
        assert_eq!(lived.commit(1, &[MirrorRecord::State(key, Some(failed))]), NOTHING);
        lived.play.world.recoveries = recoveries;
        lived.commit(1, &[record(1, to, OURS, 4)])
    };
    assert_eq!(go_on(0, M::Mirroring), ["S37"]);
    assert_eq!(go_on(1, M::Mirroring), NOTHING);
    assert_eq!(go_on(0, M::Stopping), NOTHING);
}

#[test]
fn a_lost_state_topic_is_judged_no_further() {
    let mut lived = Lived::copying();
    let home = lived.play.core.ghost.clusters[1].partition(HOME);
    home.lineage += 1;
    let (epoch, partition_epoch, epoch_start) = (LeaderEpoch(2), PartitionEpoch(2), Offset::ZERO);
    let led = Trace::BecameLeader { partition: HOME, epoch, partition_epoch, epoch_start };
    lived.play.world.replicas.get_mut(&(node(1, 1), HOME)).expect("a replica").epoch = epoch;
    lived.play.at(node(1, 1), led);
    lived.number = 9;
    assert_eq!(lived.act(M::Failed), NOTHING);
}

#[test]
fn s38_sees_a_state_that_is_acted_on_before_it_is_committed() {
    let mut lived = Lived::copying();
    lived.number += 1;
    assert_eq!(lived.act(M::Failed), ["S38"]);
    let mut lived = Lived::copying();
    assert_eq!(lived.act(M::Failed), ["S38"], "number 2 is another one");
    let mut lived = Lived::new();
    lived.enter(M::LogAlignment);
    let (source, offset, epoch) = (node(0, 1), Offset(0), LeaderEpoch(THEIRS));
    assert_eq!(lived.play.at(node(1, 1), Trace::MirrorFetcherAdded { partition: P, source, offset, epoch }), ["S38"]);
}

/// C05. What was committed before its term a leader has to know; not what was committed at that very moment, or later.
#[test]
fn s38_sees_a_leader_that_goes_by_a_state_from_before_the_last_term() {
    let fetches = |failed_before: bool| {
        let mut lived = Lived::copying();
        if failed_before {
            assert_eq!(lived.commit(1, &[record(1, M::Failed, OURS, 3)]), NOTHING);
        }
        lived.play.change(1, 1, OURS + 1, 0b111, 0);
        lived.play.lead(1, 1, OURS + 1);
        if !failed_before {
            assert_eq!(lived.commit(1, &[record(1, M::Failed, OURS, 3)]), NOTHING);
        }
        let (source, offset, epoch) = (node(0, 1), Offset(5), LeaderEpoch(THEIRS));
        lived.play.at(node(1, 1), Trace::MirrorFetcherAdded { partition: P, source, offset, epoch })
    };
    assert_eq!(fetches(true), ["S38"]);
    assert_eq!(fetches(false), NOTHING);
}

#[test]
fn s38_sees_a_coordinator_that_serves_something_else() {
    let load = |served: Vec<(StateKey, StateRecord)>| {
        let mut lived = Lived::copying();
        lived.play.world.served.insert((node(1, 1), HOME), served);
        let end = lived.play.world.replicas[&(node(1, 1), HOME)].end;
        lived.play.at(node(1, 1), Trace::MirrorStatesLoaded { partition: HOME, end })
    };
    let serve = |state, state_epoch, position| {
        vec![(
            key(1),
            StateRecord { state, state_epoch, position, leader_epoch: LeaderEpoch(OURS), ..StateRecord::default() },
        )]
    };
    assert_eq!(load(serve(M::Mirroring, 2, None)), NOTHING);
    assert_eq!(load(serve(M::LogAlignment, 1, None)), ["S38"]);
    assert_eq!(load(serve(M::Mirroring, 2, Some(LastPosition::NOTHING))), ["S38"]);
    assert_eq!(load(Vec::new()), ["S38"]);
}

/// Two tombstones end a life, in one batch or in two, and begin no new one.
#[test]
fn s38_knows_that_a_deleted_mirror_left_nothing() {
    let load = |removed: &[&[MirrorRecord]]| {
        let mut lived = Lived::stopped();
        for records in removed {
            assert_eq!(lived.commit(1, records), NOTHING);
        }
        lived.play.world.served.insert((node(1, 1), HOME), Vec::new());
        let end = lived.play.world.replicas[&(node(1, 1), HOME)].end;
        lived.play.at(node(1, 1), Trace::MirrorStatesLoaded { partition: HOME, end })
    };
    let (state, position) = (MirrorRecord::State(key(1), None), position(1, None));
    assert_eq!(load(&[]), ["S38"]);
    assert_eq!(load(&[&[state.clone(), position.clone()]]), NOTHING);
    assert_eq!(load(&[std::slice::from_ref(&state), &[position]]), NOTHING);
    assert_eq!(load(&[&[state]]), NOTHING);
}

/// The controller deleted the topic, and the broker has not heard of it yet: its states are committed like any other's.
#[test]
fn s38_reads_the_states_of_a_topic_that_is_deleted_and_not_forgotten() {
    let mut lived = Lived::copying();
    let before = lived.play.world.images[1].clone();
    lived.play.world.applied.insert(node(1, 1), before);
    lived.play.record(1, &Record::RemoveTopic { topic: TopicIx(0) });
    assert_eq!(lived.enter(M::Stopping), NOTHING);
    lived.number += 1;
    assert_eq!(lived.act(M::Failed), ["S38"], "nothing of that is committed");
}

#[test]
fn s39_sees_a_stop_without_a_position_and_one_with_two() {
    let mut lived = Lived::copying();
    lived.begin_stop();
    assert!(lived.enter(M::Stopped).contains(&"S39".to_owned()));
    let mut lived = Lived::copying();
    lived.begin_stop();
    assert_eq!(lived.local(&reset(5)), ["S39"]);
    let mut lived = Lived::copying();
    lived.begin_stop();
    lived.commit(1, &[position(1, Some((THEIRS, 5)))]);
    assert_eq!(lived.commit(1, &[position(1, Some((THEIRS, 6)))]), ["S39"]);
    assert_eq!(lived.commit(1, &[position(1, None)]), ["S39"]);
}

#[test]
fn s39_sees_a_position_that_is_not_where_mirroring_ended() {
    for wrong in [(THEIRS, 4), (THEIRS, 6), (OURS, 5)] {
        let mut lived = Lived::copying();
        lived.begin_stop();
        assert_eq!(lived.commit(1, &[position(1, Some(wrong))]), NOTHING);
        assert_eq!(lived.local(&reset(5)), ["S39"], "{wrong:?}");
    }
}

#[test]
fn s39_asks_for_the_epoch_of_a_copy_that_was_emptied() {
    for (epoch, bytes_are_left, broken) in [(THEIRS, true, false), (THEIRS, false, false), (-1, true, true)] {
        let mut lived = Lived::copying();
        let replica = lived.play.replica(1, 1);
        replica.start = replica.end;
        if !bytes_are_left {
            replica.batches.clear();
        }
        lived.begin_stop();
        lived.commit(1, &[position(1, Some((epoch, 5)))]);
        assert_eq!(lived.local(&reset(5)).contains(&"S39".to_owned()), broken, "{epoch} {bytes_are_left}");
    }
}

/// The copy was deleted, and copied again under its source's id: what its coordinator did not take away yet is of the former one.
#[test]
fn states_of_a_former_copy_are_not_this_ones() {
    let left = |topic| {
        let mut lived = Lived::new();
        let MirrorRecord::State(key, Some(stopped)) = record(1, M::Stopped, 38, 9) else { return Vec::new() };
        let session = Some(Session::of(MirrorIx(0), TopicIx(topic)));
        let mut broken = lived.commit(1, &[MirrorRecord::State(key, Some(StateRecord { session, ..stopped }))]);
        broken.extend(lived.enter(M::LogAlignment));
        broken
    };
    assert_eq!(left(7), NOTHING);
    assert!(left(0).contains(&"S37".to_owned()), "this one's");
}

#[test]
fn s40_sees_a_stop_without_a_reset_and_producers_that_outlive_it() {
    let mut lived = Lived::copying();
    lived.begin_stop();
    lived.commit(1, &[position(1, Some((THEIRS, 5)))]);
    // When it is committed, and when the leader acts on it.
    assert_eq!(lived.enter(M::Stopped), ["S40", "S40"]);
    let mut lived = Lived::copying();
    lived.begin_stop();
    lived.commit(1, &[position(1, Some((THEIRS, 5)))]);
    lived.local(&reset(5));
    let mut producers = mirrorlab_model::log::ProducerStates::default();
    producers.apply(&BatchView::parse(&batch(0, THEIRS, 5)).expect("a batch"), || true);
    lived.play.replica(1, 2).producers = producers;
    assert_eq!(lived.enter(M::Stopped), ["S40"]);
}

/// The reset was committed and lost, with some of what was mirrored: the next leader owes another one.
#[test]
fn s40_sees_who_writes_where_the_reset_was_lost() {
    let writes = |repeated: bool, left: i64| {
        let mut lived = Lived::stopped();
        let mut end = left;
        for broker in 1..=3 {
            lived.play.shorten(1, broker, left);
            lived.play.core.ghost.clusters[1].partition(P).members[broker as usize - 1].end = Offset(left);
        }
        if left == 4 {
            let bytes = batch(0, THEIRS, left);
            (1..=3).for_each(|broker| lived.play.shorten(1, broker, 0));
            (1..=3).for_each(|broker| lived.play.store(1, broker, &bytes));
        }
        lived.play.replica(1, 1).epoch = LeaderEpoch(OURS + 2);
        if repeated {
            lived.play.store(1, 1, &placed(&reset(end), end, OURS + 2));
            end += 1;
            lived.play.core.ghost.clusters[1].partition(P).members[0].end = Offset(end);
        }
        lived.play.append(1, 1, Origin::Client, &batch(end, OURS + 2, 1))
    };
    for left in [5, 4, 0] {
        assert!(writes(false, left).contains(&"S40".to_owned()));
        assert!(!writes(true, left).contains(&"S40".to_owned()));
    }
}

#[test]
fn s41_sees_a_transaction_without_a_marker() {
    let stop = |marked: bool| {
        let mut lived = Lived::copying();
        let meta = BatchMeta {
            base_offset: Offset(5),
            leader_epoch: LeaderEpoch(THEIRS),
            producer: ProducerId(8),
            producer_epoch: ProducerEpoch(0),
            base_sequence: 0,
            transactional: true,
            ..BatchMeta::default()
        };
        let mut open = BatchBuilder::new(meta);
        open.push(0, None, Some(b"?"));
        let open = open.finish();
        for broker in 1..=3 {
            lived.play.store(1, broker, &open);
        }
        assert_eq!(lived.play.appended(1, 1, Origin::Mirror, &open), NOTHING);
        for broker in 2..=3 {
            lived.play.appended(1, broker, Origin::Replication, &open);
        }
        lived.begin_stop();
        lived.commit(1, &[position(1, Some((THEIRS, 6)))]);
        let mut end = 6;
        if marked {
            let marker = end_txn_marker(false, ProducerId(8), ProducerEpoch(0), 0, 0);
            assert_eq!(lived.local(&placed(&marker, end, OURS)), NOTHING);
            end += 1;
        }
        assert_eq!(lived.local(&reset(end)), NOTHING);
        lived.enter(M::Stopped)
    };
    assert_eq!(stop(true), NOTHING);
    assert_eq!(stop(false), ["S41"]);
    let mut lived = Lived::copying();
    lived.begin_stop();
    lived.commit(1, &[position(1, Some((THEIRS, 5)))]);
    lived.local(&reset(5));
    lived.play.shorten(1, 3, 5);
    assert_eq!(lived.enter(M::Stopped), ["S41"]);
}
