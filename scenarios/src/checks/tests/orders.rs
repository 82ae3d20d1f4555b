//! Whose a mirrored topic is, where it comes from, what was ordered of it and what is told of it, and what must come about in the end.

use super::fake::{batch, controller, node, FakeReplica, P};
use super::lived::{key, names, record, Lived, OURS, THEIRS};
use super::mirrors::{copy, sight};
use super::NOTHING;
use crate::checks::roster::MirrorPlace;
use crate::checks::sight::MirrorSight;
use mirrorlab_model::ids::*;
use mirrorlab_model::metadata::records::Record;
use mirrorlab_model::mirror::fetcher::FailCause;
use mirrorlab_model::mirror::records::MirrorRecord;
use mirrorlab_model::states::{DesiredState, MirrorState, StateRecord};
use mirrorlab_model::trace::{CutCause, Origin, Trace};
use mirrorlab_model::wire::messages::ConfigResource;
use MirrorState as M;

#[test]
fn s42_sees_steps_for_another_mirror_and_for_none() {
    let mut lived = Lived::copying();
    let (mirror, from, to) = (MirrorIx(3), M::Mirroring, M::Mirroring);
    let changed = Trace::MirrorStateChanged { partition: P, mirror, from, to, attempt: 0 };
    assert_eq!(lived.play.at(node(1, 1), changed), ["S42"]);
    let mut lived = Lived::copying();
    let desired = DesiredState::Unknown;
    lived.play.record(1, &Record::MirrorTopicStateChange { topic: TopicIx(0), mirror: None, desired });
    assert!(lived.play.cut(1, 1, 0, CutCause::Alignment).contains(&"S42".to_owned()));
    let (source, offset, epoch) = (node(0, 1), Offset(0), LeaderEpoch(THEIRS));
    assert_eq!(lived.play.at(node(1, 1), Trace::MirrorFetcherAdded { partition: P, source, offset, epoch }), ["S42"]);
}

/// East mirrors `t` back from west.
fn reverse(lived: &mut Lived) {
    lived.play.core.roster.mirrors.push(MirrorPlace { name: "back".into(), source: 1, destination: 0 });
    lived.play.record(0, &Record::Mirror { mirror: MirrorIx(0), name: "back".into() });
    let (topic, mirror, desired) = (TopicIx(0), Some(MirrorIx(0)), DesiredState::Mirroring);
    lived.play.record(0, &Record::MirrorTopicStateChange { topic, mirror, desired });
    lived.keep_states(0);
    lived.commit(0, &[record(0, M::LogAlignment, 1, 1), record(0, M::Mirroring, 1, 2)]);
}

#[test]
fn s47_sees_a_copy_of_a_copy_of_itself() {
    let mut lived = Lived::new();
    reverse(&mut lived);
    assert_eq!(lived.enter(M::LogAlignment), NOTHING);
    assert_eq!(lived.enter(M::Mirroring), ["S47"]);
    assert!(lived.play.quiet().contains(&"S47".to_owned()));
    // Both at once: neither can see it, and both look again.
    let mut lived = Lived::new();
    assert_eq!(lived.enter(M::LogAlignment), NOTHING);
    reverse(&mut lived);
    assert_eq!(lived.enter(M::Mirroring), NOTHING);
}

#[test]
fn s48_sees_another_source_in_one_session_and_another_id() {
    let mut lived = Lived::copying();
    lived.play.core.ghost.clusters[1].partition(P).more().life.as_mut().expect("a life").source = Some(1);
    lived.play.append(1, 1, Origin::Mirror, &batch(5, THEIRS, 3));
    let (partition, source, source_partition) = (P, node(0, 1), P);
    let (base, next, source_hw, source_epoch) = (Offset(5), Offset(8), Offset(8), LeaderEpoch(THEIRS));
    let bytes = 1;
    let copied = Trace::Mirrored { partition, source, source_partition, base, next, source_hw, source_epoch, bytes };
    assert_eq!(lived.play.at(node(1, 1), copied), ["S48"]);
    let mut lived = Lived::copying();
    let (resource, key) = (ConfigResource::ClusterMirror("m".into()), "source.cluster.id".into());
    lived.play.record(1, &Record::Config { resource, key, value: Some("east-id".into()) });
    lived.play.world.cluster_ids[0] = "east-id".into();
    lived.play.world.mirrors.insert((node(1, 1), P), sight(M::Mirroring));
    assert!(!lived.play.left().contains(&"S48".to_owned()));
    lived.play.world.cluster_ids[0] = "another".into();
    assert!(lived.play.left().contains(&"S48".to_owned()));
}

#[test]
fn s49_sees_who_goes_on_without_an_order() {
    let mut lived = Lived::stopped();
    assert!(lived.enter(M::LogAlignment).contains(&"S49".to_owned()));
    let mut lived = Lived::stopped();
    assert!(lived.enter(M::Failed).contains(&"S49".to_owned()));
    let mut lived = Lived::copying();
    lived.order(DesiredState::Paused);
    lived.enter(M::Pausing);
    lived.enter(M::Paused);
    assert_eq!(lived.enter(M::Mirroring), ["S49"]);
}

#[test]
fn s49_sees_what_is_done_to_a_stopped_partition() {
    let mut lived = Lived::stopped();
    let producer = ProducerId(7);
    assert_eq!(lived.play.at(node(1, 1), Trace::ReadOnlyRefused { partition: P, producer }), ["S49"]);
    assert_eq!(lived.play.at(node(1, 1), Trace::BumpRequested { partition: P, min: LeaderEpoch(9) }), ["S49"]);
    let grew = Trace::MirrorGrew { topic: TopicIx(0), partitions: 4 };
    assert_eq!(lived.play.at(node(1, 2), grew), ["S49"]);
    assert!(lived.play.cut(1, 1, 5, CutCause::MirrorDivergence).contains(&"S49".to_owned()));
    let mut lived = Lived::copying();
    lived.order(DesiredState::Paused);
    let (source, offset, epoch) = (node(0, 1), Offset(5), LeaderEpoch(THEIRS));
    assert_eq!(lived.play.at(node(1, 1), Trace::MirrorFetcherAdded { partition: P, source, offset, epoch }), ["S49"]);
}

/// The order to stop is there, and LOG_ALIGNMENT goes on all the same.
#[test]
fn s49_sees_an_alignment_that_cuts_after_an_order_to_stop() {
    let cut = |desired| {
        let mut lived = Lived::stopped();
        lived.order(DesiredState::Mirroring);
        assert_eq!(lived.enter(M::LogAlignment), NOTHING);
        lived.order(desired);
        lived.play.cut(1, 1, 5, CutCause::Alignment)
    };
    assert!(!cut(DesiredState::Paused).contains(&"S49".to_owned()));
    assert!(cut(DesiredState::Stopped).contains(&"S49".to_owned()));
}

/// Its mirror is deleted in the middle of a stop.
#[test]
fn s49_sees_a_topic_that_is_nobodys_before_it_is_stopped() {
    let freed = |mut lived: Lived| {
        let (topic, desired) = (TopicIx(0), DesiredState::Unknown);
        lived.play.record(1, &Record::MirrorTopicStateChange { topic, mirror: None, desired });
        lived.play.at(controller(1), Trace::MirrorOrdered { topic, desired, again: false })
    };
    assert_eq!(freed(Lived::stopped()), NOTHING);
    assert_eq!(freed(Lived::new()), NOTHING);
    let mut lived = Lived::copying();
    lived.begin_stop();
    assert_eq!(freed(lived), ["S49"]);
}

/// C-6.
#[test]
fn s49_sees_an_order_that_changes_nothing() {
    let ordered = |again| {
        let (topic, desired) = (TopicIx(0), DesiredState::Stopped);
        Lived::stopped().play.at(controller(1), Trace::MirrorOrdered { topic, desired, again })
    };
    assert_eq!(ordered(false), NOTHING);
    assert_eq!(ordered(true), ["S49"]);
}

#[test]
fn s49_sees_a_topic_go_that_is_copied_or_held() {
    let removed = |desired| Lived::copying().play.at(controller(1), Trace::TopicRemoved { topic: TopicIx(0), desired });
    assert_eq!(removed(DesiredState::Mirroring), ["S49"]);
    assert_eq!(removed(DesiredState::Paused), ["S49"]);
    assert_eq!(removed(DesiredState::Stopped), NOTHING);
    assert_eq!(removed(DesiredState::Unknown), NOTHING);
}

#[test]
fn l10_and_l11_see_who_failed_for_good_and_should_not_have() {
    let failed = |message: &str| {
        let mut lived = Lived::copying();
        lived.number += 1;
        let state = StateRecord {
            state: M::Failed,
            leader_epoch: LeaderEpoch(OURS),
            state_epoch: lived.number,
            attempt: -1,
            message: Some(message.into()),
            ..StateRecord::default()
        };
        assert_eq!(lived.commit(1, &[MirrorRecord::State(key(1), Some(state))]), NOTHING);
        lived.act(M::Failed);
        lived
    };
    assert_eq!(failed("diverged").play.left(), NOTHING);
    let deleted = FailCause::SourceTopicDeleted.text();
    assert_eq!(failed(deleted).play.left(), ["L11"]);
    let mut lived = failed(deleted);
    let (topic, desired) = (TopicIx(0), DesiredState::Unknown);
    lived.play.at(controller(0), Trace::TopicRemoved { topic, desired });
    assert_eq!(lived.play.left(), NOTHING, "it was; that it is there again is another story");
    // An operator was told that it is recovered: before it failed, or after that.
    let mut lived = failed("diverged");
    lived.play.world.recovered = Some(Nanos::ZERO);
    assert_eq!(lived.play.left(), NOTHING);
    lived.play.world.recovered = Some(Nanos::from_secs(3600));
    assert_eq!(lived.play.left(), ["L10"]);
}

#[test]
fn s50_sees_a_lag_that_is_told_too_low() {
    let tell = |lag, damaged: bool| {
        let mut lived = Lived::copying();
        let told = MirrorSight { lag: Some(lag), source_hw: Offset(8), state_epoch: 2, ..sight(M::Mirroring) };
        lived.play.world.mirrors.insert((node(1, 1), P), told);
        if damaged {
            for broker in 1..=3 {
                let mut other = batch(0, THEIRS, 5).to_vec();
                other[30] ^= 1;
                lived.play.replica(1, broker).batches[0] = other.into();
            }
        }
        lived.play.quiet()
    };
    let mut lived = Lived::copying();
    let told = MirrorSight { lag: Some(0), state_epoch: 2, ..sight(M::Mirroring) };
    lived.play.world.mirrors.insert((node(1, 1), P), told);
    let (source, offset, epoch) = (node(0, 1), Offset(5), LeaderEpoch(THEIRS));
    assert_eq!(lived.play.at(node(1, 1), Trace::MirrorFetcherAdded { partition: P, source, offset, epoch }), ["S50"]);
    assert_eq!(tell(3, false), NOTHING);
    assert_eq!(tell(2, false), ["S50"]);
    assert!(tell(3, true).contains(&"S50".to_owned()));
}

/// The source's topic is deleted and created again: its epochs begin anew, and what the mirror tells is an answer of the old one.
#[test]
fn s50_compares_no_two_topics_of_one_name() {
    let mut lived = Lived::copying();
    let told = MirrorSight { lag: Some(0), source_hw: Offset(5), state_epoch: 2, ..sight(M::Mirroring) };
    lived.play.world.mirrors.insert((node(1, 1), P), told);
    let state = lived.play.world.images[0].partition(P).expect("a partition").state.clone();
    lived.play.record(0, &Record::RemoveTopic { topic: TopicIx(0) });
    lived.play.record(0, &Record::Topic { topic: TopicIx(1), id: TopicId(6), name: "t".into() });
    let partition = PartitionIx(1);
    lived.play.record(0, &Record::Partition { partition, topic: TopicIx(1), number: 0, state });
    for broker in 1..=3 {
        lived.play.world.replicas.insert((node(0, broker), partition), FakeReplica::default());
    }
    lived.play.core.ghost.clusters[0].partition(partition).leader = BrokerId(1);
    let quiet = |lived: &Lived, settled| {
        let mut core = lived.play.core.clone();
        let found: Vec<String> = core.at_quiet(&lived.play.world, settled).into_iter().map(|v| v.id).collect();
        found
    };
    assert_eq!(quiet(&lived, false), NOTHING);
    assert!(quiet(&lived, true).contains(&"S50".to_owned()));
    assert!(lived.play.left().contains(&"L8".to_owned()));
    lived.play.world.mirrors.insert((node(1, 1), P), MirrorSight { state_epoch: 3, ..sight(M::Failed) });
    assert!(!quiet(&lived, true).contains(&"S50".to_owned()));
    assert!(!lived.play.left().contains(&"L8".to_owned()));
}

#[test]
fn l7_waits_for_markers_and_excuses_what_the_source_owes() {
    let mut lived = Lived::stopped();
    assert_eq!(lived.play.left(), NOTHING);
    lived.play.replica(1, 1).stable = Some(Offset(6));
    assert_eq!(lived.play.left(), ["L7"]);
    let told = lived.play.world.mirrors[&(node(1, 1), P)];
    lived.order(DesiredState::Paused);
    lived.play.world.mirrors.insert((node(1, 1), P), MirrorSight { state: M::Paused, ..told });
    assert_eq!(lived.play.left(), NOTHING);
}

#[test]
fn l9_waits_for_transient_states_unless_the_source_is_dead() {
    for state in [M::LogAlignment, M::EpochFencing, M::UleRecovery, M::Pausing, M::Stopping] {
        let mut lived = Lived::copying();
        lived.play.world.mirrors.insert((node(1, 1), P), MirrorSight { state_epoch: 2, ..sight(state) });
        assert_eq!(lived.play.left(), ["L9"], "{state:?}");
    }
    let mut lived = Lived::copying();
    lived.play.world.mirrors.insert((node(1, 1), P), sight(M::LogAlignment));
    lived.play.world.down.extend((1..=3).map(|broker| node(0, broker)));
    assert!(!lived.play.left().contains(&"L9".to_owned()));
    lived.play.world.mirrors.insert((node(1, 1), P), sight(M::Stopping));
    assert!(lived.play.left().contains(&"L9".to_owned()), "a stop does not need the source");
}

#[test]
fn l10_waits_for_what_was_ordered_and_for_a_stop_that_was_refused() {
    let mut lived = Lived::copying();
    lived.order(DesiredState::Stopped);
    assert_eq!(lived.play.left(), ["L8", "L10"]);
    let mut lived = Lived::copying();
    lived.play.world.mirrors.insert((node(1, 1), P), MirrorSight { retries: true, ..sight(M::Failed) });
    lived.play.world.wanted = Some(DesiredState::Stopped);
    assert!(lived.play.left().contains(&"L10".to_owned()), "FAILED is no excuse for a stop");
    // What waits behind another order was never sent.
    let mut lived = Lived::copying();
    copy(&mut lived.play, &batch(5, THEIRS, 3), 5, 8);
    lived.play.world.wanted = Some(DesiredState::Mirroring);
    lived.play.world.is_behind = true;
    assert_eq!(lived.play.left(), NOTHING);
    assert!(lived.play.core.liveness(&lived.play.world).excuses[0].contains("order waits (operator)"));
    let mut lived = Lived::copying();
    lived.play.world.mirrors.clear();
    assert_eq!(lived.play.left(), ["L10"]);
}

/// Two operators spoke side by side, and nobody can tell who came last: what metadata says counts. One who spoke alone, and was refused,
/// has the last word where it is a stop, whatever else waits behind that.
#[test]
fn l10_goes_by_metadata_where_nobody_had_the_last_word() {
    let left = |ordered, wanted, is_behind, state| {
        let mut lived = Lived::copying();
        copy(&mut lived.play, &batch(5, THEIRS, 3), 5, 8);
        lived.order(ordered);
        (lived.play.world.wanted, lived.play.world.is_behind) = (wanted, is_behind);
        lived.play.world.mirrors.insert((node(1, 1), P), sight(state));
        names(&lived.play.left(), "L10")
    };
    use DesiredState as D;
    assert!(!left(D::Mirroring, None, false, M::Mirroring));
    assert!(left(D::Stopped, None, false, M::Mirroring));
    assert!(left(D::Mirroring, Some(D::Stopped), false, M::Mirroring));
    assert!(left(D::Mirroring, Some(D::Stopped), true, M::Mirroring));
    assert!(!left(D::Stopped, Some(D::Mirroring), false, M::Stopped), "a start may be refused");
    assert!(left(D::Mirroring, None, false, M::Stopped));
}

#[test]
fn l16_names_who_is_stopped_by_a_bad_neighbour() {
    let mut lived = Lived::copying();
    let other = PartitionIx(5);
    let state = lived.play.world.images[1].partition(P).expect("a partition").state.clone();
    for cluster in 0..2 {
        let (topic, state) = (TopicIx(0), state.clone());
        lived.play.record(cluster, &Record::Partition { partition: other, topic, number: 1, state });
    }
    let g = lived.play.core.ghost.clusters[1].partition(P).clone();
    *lived.play.core.ghost.clusters[1].partition(other) = g;
    let g = lived.play.core.ghost.clusters[0].partition(P).clone();
    *lived.play.core.ghost.clusters[0].partition(other) = g;
    lived.play.world.mirrors.insert((node(1, 1), other), sight(M::Failed));
    assert!(!lived.play.left().contains(&"L16".to_owned()));
    let told = MirrorSight { retries: true, ..sight(M::Failed) };
    lived.play.world.mirrors.insert((node(1, 1), P), told);
    assert!(lived.play.left().contains(&"L16".to_owned()));
}
