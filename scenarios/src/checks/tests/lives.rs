//! The life cycle of a mirror: a whole life is played with what `__mirror_state` commits of it, and damaged where a check has to see it.

use super::fake::{batch, controller, node, FakeReplica, Play, P};
use super::mirrors::{copy, sight};
use super::{committed, NOTHING};
use crate::checks::roster::MirrorPlace;
use crate::checks::sight::MirrorSight;
use bytes::Bytes;
use mirrorlab_model::coordinator::routing::STATE_TOPIC;
use mirrorlab_model::ids::*;
use mirrorlab_model::log::EpochEntry;
use mirrorlab_model::metadata::records::{PartitionState, Record};
use mirrorlab_model::mirror::records::{MirrorRecord, StateKey};
use mirrorlab_model::record::control::{end_txn_marker, mirror_pid_reset};
use mirrorlab_model::record::{stamp, BatchBuilder, BatchMeta, BatchView};
use mirrorlab_model::states::{DesiredState, LastPosition, MirrorState, StateRecord};
use mirrorlab_model::trace::{CutCause, Origin, Trace};
use mirrorlab_model::wire::messages::ConfigResource;
use MirrorState as M;

/// The partition of `__mirror_state`, in either cluster: on broker 1 alone.
const HOME: PartitionIx = PartitionIx(9);
/// The source's epoch, and the mirror's.
const THEIRS: i32 = 1;
const OURS: i32 = 4;

fn key(cluster: u8) -> StateKey {
    let mirror = ["back", "m"][usize::from(cluster)];
    StateKey { mirror: mirror.into(), topic: TopicId(5), number: 0 }
}

fn record(cluster: u8, state: M, leader_epoch: i32, state_epoch: i32) -> MirrorRecord {
    let leader_epoch = LeaderEpoch(leader_epoch);
    MirrorRecord::State(key(cluster), Some(StateRecord { state, leader_epoch, state_epoch, ..StateRecord::default() }))
}

fn position(cluster: u8, at: Option<(i32, i64)>) -> MirrorRecord {
    let position = at.map(|(epoch, offset)| LastPosition { epoch: LeaderEpoch(epoch), offset: Offset(offset) });
    MirrorRecord::Position(key(cluster), position, None)
}

/// A mirror partition in west over east's `0..8` of epoch 1, of which nothing was ever committed.
struct Lived {
    play: Play,
    number: i32,
    state: M,
}

impl Lived {
    fn new() -> Self {
        let mut play = committed(2);
        play.mirror();
        play.change(1, 1, OURS, 0b111, 0);
        play.lead(1, 1, OURS);
        let mut lived = Self { play, number: 0, state: M::Unknown };
        lived.keep_states(1);
        lived.order(DesiredState::Mirroring);
        lived
    }

    /// A life up to MIRRORING, with the source's first batch copied.
    fn copying() -> Self {
        let mut lived = Self::new();
        assert_eq!(lived.enter(M::LogAlignment), NOTHING);
        assert_eq!(lived.enter(M::Mirroring), NOTHING);
        lived.fetch();
        copy(&mut lived.play, &batch(0, THEIRS, 5), 0, 5);
        lived
    }

    /// The same, stopped, with a local batch behind the reset.
    fn stopped() -> Self {
        let mut lived = Self::copying();
        lived.begin_stop();
        assert_eq!(lived.commit(1, &[position(1, Some((THEIRS, 5)))]), NOTHING);
        assert_eq!(lived.local(&reset(5)), NOTHING);
        assert_eq!(lived.enter(M::Stopped), NOTHING);
        assert_eq!(lived.local(&batch(6, OURS, 2)), NOTHING);
        lived
    }

    fn begin_stop(&mut self) {
        self.order(DesiredState::Stopped);
        let source = node(0, 1);
        assert_eq!(self.enter(M::Stopping), NOTHING);
        assert_eq!(self.play.at(node(1, 1), Trace::MirrorFetcherRemoved { partition: P, source }), NOTHING);
    }

    fn keep_states(&mut self, cluster: u8) {
        let play = &mut self.play;
        play.record(cluster, &Record::Topic { topic: TopicIx(9), id: TopicId(9), name: STATE_TOPIC.into() });
        let one = || [BrokerId(1)].into_iter().collect();
        let state = PartitionState {
            replicas: one(),
            isr: one(),
            elr: [].into_iter().collect(),
            last_known_elr: [].into_iter().collect(),
            leader: BrokerId(1),
            leader_epoch: LeaderEpoch(1),
            partition_epoch: PartitionEpoch(0),
            recovering: false,
        };
        play.record(cluster, &Record::Partition { partition: HOME, topic: TopicIx(9), number: 0, state });
        let isr = 1;
        let replica = FakeReplica { leads: true, epoch: LeaderEpoch(1), isr, proposed: isr, ..FakeReplica::default() };
        play.world.replicas.insert((node(cluster, 1), HOME), replica);
        let (epoch, partition_epoch, leader) = (LeaderEpoch(1), PartitionEpoch(1), BrokerId(1));
        let changed = Trace::PartitionChanged { partition: HOME, leader, epoch, partition_epoch, isr, elr: 0 };
        play.at(controller(cluster), changed);
        let epoch_start = Offset::ZERO;
        play.at(node(cluster, 1), Trace::BecameLeader { partition: HOME, epoch, partition_epoch, epoch_start });
    }

    /// The operator's order is committed, and known everywhere.
    fn order(&mut self, desired: DesiredState) {
        let (topic, mirror) = (TopicIx(0), Some(MirrorIx(0)));
        self.play.record(1, &Record::MirrorTopicStateChange { topic, mirror, desired });
        assert_eq!(self.play.at(controller(1), Trace::MirrorOrdered { topic, desired }), NOTHING);
    }

    /// Records are committed in a cluster's `__mirror_state`.
    fn commit(&mut self, cluster: u8, records: &[MirrorRecord]) -> Vec<String> {
        let play = &mut self.play;
        let replica = play.world.replicas.get_mut(&(node(cluster, 1), HOME)).expect("a replica");
        let base = replica.end;
        let meta = BatchMeta { base_offset: base, leader_epoch: LeaderEpoch(1), ..BatchMeta::default() };
        let mut builder = BatchBuilder::new(meta);
        for record in records {
            let (key, value) = record.encode();
            builder.push(0, Some(&key), value.as_deref());
        }
        let bytes = builder.finish();
        let next = BatchView::parse(&bytes).expect("a batch").next_offset();
        replica.batches.push(bytes.clone());
        if replica.epochs.is_empty() {
            replica.epochs.push(EpochEntry { epoch: LeaderEpoch(1), start: base });
        }
        (replica.end, replica.hw) = (next, next);
        let (origin, epoch) = (Origin::Coordinator, LeaderEpoch(1));
        let bytes = bytes.len() as u32;
        let appended = Trace::Appended { partition: HOME, origin, base, next, epoch, leader_epoch: epoch, bytes };
        let moved = Trace::HighWatermarkMoved { partition: HOME, from: base, to: next, leader: true };
        let mut broken = play.at(node(cluster, 1), appended);
        broken.extend(play.at(node(cluster, 1), moved));
        broken
    }

    /// West's mirror leader comes into a state: it is committed, then acted on.
    fn enter(&mut self, to: M) -> Vec<String> {
        self.number += 1;
        let mut records = vec![record(1, to, OURS, self.number)];
        if (self.state, to) == (M::LogAlignment, M::Mirroring) {
            records.push(position(1, None));
        }
        let mut broken = self.commit(1, &records);
        broken.extend(self.act(to));
        broken
    }

    fn act(&mut self, to: M) -> Vec<String> {
        let from = std::mem::replace(&mut self.state, to);
        self.play.world.mirrors.insert((node(1, 1), P), MirrorSight { state_epoch: self.number, ..sight(to) });
        let mirror = MirrorIx(0);
        self.play.at(node(1, 1), Trace::MirrorStateChanged { partition: P, mirror, from, to, attempt: 0 })
    }

    fn fetch(&mut self) {
        let (source, offset, epoch) = (node(0, 1), self.play.replica(1, 1).end, LeaderEpoch(THEIRS));
        let added = Trace::MirrorFetcherAdded { partition: P, source, offset, epoch };
        assert_eq!(self.play.at(node(1, 1), added), NOTHING);
    }

    /// A local batch, on all of west.
    fn local(&mut self, bytes: &Bytes) -> Vec<String> {
        let view = BatchView::parse(bytes).expect("a batch");
        let origin = if view.is_control() { Origin::Coordinator } else { Origin::Client };
        let mut broken = self.play.append(1, 1, origin, bytes);
        for broker in 2..=3 {
            broken.extend(self.play.append(1, broker, Origin::Replication, bytes));
        }
        for broker in 1..=3 {
            broken.extend(self.play.watermark(1, broker, view.next_offset().0));
        }
        broken
    }

    /// All of west is cut, the leader first.
    fn cut(&mut self, to: i64, cause: CutCause) {
        self.play.cut(1, 1, to, cause);
        for broker in 2..=3 {
            self.play.cut(1, broker, to, CutCause::Divergence);
        }
    }
}

fn placed(bytes: &Bytes, base: i64, epoch: i32) -> Bytes {
    let mut bytes = bytes.to_vec();
    stamp(&mut bytes, Offset(base), LeaderEpoch(epoch));
    bytes.into()
}

fn reset(base: i64) -> Bytes {
    placed(&mirror_pid_reset(Some("east"), 0), base, OURS)
}

fn only(broken: &[String], id: &str) -> bool {
    !broken.is_empty() && broken.iter().all(|b| b == id)
}

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

#[test]
fn s35_sees_a_cut_of_what_both_had() {
    let mut lived = Lived::stopped();
    lived.order(DesiredState::Mirroring);
    assert_eq!(lived.enter(M::LogAlignment), NOTHING);
    lived.cut(0, CutCause::Alignment);
    assert_eq!(lived.enter(M::Mirroring), ["S35"]);
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
    assert_eq!(lived.play.quiet(), NOTHING);
    lived.play.world.cluster_ids[0] = "another".into();
    assert_eq!(lived.play.quiet(), ["S48"]);
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
    let mut lived = Lived::copying();
    lived.play.world.mirrors.clear();
    assert_eq!(lived.play.left(), ["L10"]);
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
