//! A mirror's life to be played: what `__mirror_state` commits of it, and what its brokers do.

use super::fake::{batch, controller, led_by_broker_1, node, FakeReplica, Play, P};
use super::mirrors::{copy, sight};
use super::{committed, NOTHING};
use crate::checks::ghost::PartitionGhost;
use crate::checks::sight::MirrorSight;
use bytes::Bytes;
use mirrorlab_model::coordinator::routing::STATE_TOPIC;
use mirrorlab_model::ids::*;
use mirrorlab_model::log::EpochEntry;
use mirrorlab_model::metadata::records::Record;
use mirrorlab_model::mirror::records::{MirrorRecord, StateKey};
use mirrorlab_model::record::control::mirror_pid_reset;
use mirrorlab_model::record::{stamp, BatchBuilder, BatchMeta, BatchView};
use mirrorlab_model::states::{DesiredState, LastPosition, MirrorState, StateRecord};
use mirrorlab_model::trace::{CutCause, Origin, Trace};
use MirrorState as M;

/// The partition of `__mirror_state`, in either cluster: on broker 1 alone.
pub(super) const HOME: PartitionIx = PartitionIx(9);
/// The source's epoch, and the mirror's.
pub(super) const THEIRS: i32 = 1;
pub(super) const OURS: i32 = 4;

pub(super) fn key(cluster: u8) -> StateKey {
    let mirror = ["back", "m"][usize::from(cluster)];
    StateKey { mirror: mirror.into(), topic: TopicId(5), number: 0 }
}

pub(super) fn record(cluster: u8, state: M, leader_epoch: i32, state_epoch: i32) -> MirrorRecord {
    let leader_epoch = LeaderEpoch(leader_epoch);
    MirrorRecord::State(key(cluster), Some(StateRecord { state, leader_epoch, state_epoch, ..StateRecord::default() }))
}

pub(super) fn position(cluster: u8, at: Option<(i32, i64)>) -> MirrorRecord {
    let position = at.map(|(epoch, offset)| LastPosition { epoch: LeaderEpoch(epoch), offset: Offset(offset) });
    MirrorRecord::Position(key(cluster), position, None)
}

/// A mirror partition in west over east's `0..8` of epoch 1, of which nothing was ever committed.
pub(super) struct Lived {
    pub(super) play: Play,
    pub(super) number: i32,
    pub(super) state: M,
}

impl Lived {
    pub(super) fn new() -> Self {
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
    pub(super) fn copying() -> Self {
        let mut lived = Self::new();
        assert_eq!(lived.enter(M::LogAlignment), NOTHING);
        assert_eq!(lived.enter(M::Mirroring), NOTHING);
        lived.fetch();
        copy(&mut lived.play, &batch(0, THEIRS, 5), 0, 5);
        lived
    }

    /// The same, stopped, with a local batch behind the reset.
    pub(super) fn stopped() -> Self {
        let mut lived = Self::copying();
        lived.stop();
        lived
    }

    pub(super) fn stop(&mut self) {
        self.begin_stop();
        assert_eq!(self.commit(1, &[position(1, Some((THEIRS, 5)))]), NOTHING);
        assert_eq!(self.local(&reset(5)), NOTHING);
        assert_eq!(self.enter(M::Stopped), NOTHING);
        assert_eq!(self.local(&batch(6, OURS, 2)), NOTHING);
    }

    /// Stopped, and to be mirrored again: an alignment is under way that has to cut `5..8`.
    pub(super) fn aligning() -> Self {
        let mut lived = Self::stopped();
        lived.align();
        lived
    }

    pub(super) fn align(&mut self) {
        self.order(DesiredState::Mirroring);
        assert_eq!(self.enter(M::LogAlignment), NOTHING);
    }

    /// Broker 2 of west leads in the next epoch, and broker 1 does not know that, nor do these.
    pub(super) fn depose(&mut self, others: &[i32]) {
        let epoch = self.play.replica(1, 1).epoch;
        self.play.change(1, 2, epoch.0 + 1, 0b111, 0);
        assert_eq!(self.play.lead(1, 2, epoch.0 + 1), NOTHING);
        self.play.replica(1, 1).leads = true;
        for broker in others.iter().chain(&[1]) {
            self.play.replica(1, *broker).epoch = epoch;
        }
    }

    /// What is remembered of west's partition.
    pub(super) fn ghost(&mut self) -> &mut PartitionGhost {
        self.play.core.ghost.clusters[1].partition(P)
    }

    /// No answer of before is on its way any more.
    pub(super) fn wait(&mut self) {
        self.play.world.step += 40_000_000;
    }

    pub(super) fn begin_stop(&mut self) {
        self.order(DesiredState::Stopped);
        let source = node(0, 1);
        assert_eq!(self.enter(M::Stopping), NOTHING);
        assert_eq!(self.play.at(node(1, 1), Trace::MirrorFetcherRemoved { partition: P, source }), NOTHING);
    }

    pub(super) fn keep_states(&mut self, cluster: u8) {
        let play = &mut self.play;
        play.record(cluster, &Record::Topic { topic: TopicIx(9), id: TopicId(9), name: STATE_TOPIC.into() });
        let state = led_by_broker_1(1);
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
    pub(super) fn order(&mut self, desired: DesiredState) {
        let (topic, mirror) = (TopicIx(0), Some(MirrorIx(0)));
        self.play.record(1, &Record::MirrorTopicStateChange { topic, mirror, desired });
        assert_eq!(self.play.at(controller(1), Trace::MirrorOrdered { topic, desired, again: false }), NOTHING);
    }

    /// Records are committed in a cluster's `__mirror_state`.
    pub(super) fn commit(&mut self, cluster: u8, records: &[MirrorRecord]) -> Vec<String> {
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
    pub(super) fn enter(&mut self, to: M) -> Vec<String> {
        self.number += 1;
        let mut records = vec![record(1, to, OURS, self.number)];
        if (self.state, to) == (M::LogAlignment, M::Mirroring) {
            records.push(position(1, None));
        }
        let mut broken = self.commit(1, &records);
        broken.extend(self.act(to));
        broken
    }

    pub(super) fn act(&mut self, to: M) -> Vec<String> {
        let from = std::mem::replace(&mut self.state, to);
        self.play.world.mirrors.insert((node(1, 1), P), MirrorSight { state_epoch: self.number, ..sight(to) });
        let mirror = MirrorIx(0);
        self.play.at(node(1, 1), Trace::MirrorStateChanged { partition: P, mirror, from, to, attempt: 0 })
    }

    pub(super) fn fetch(&mut self) {
        let (source, offset, epoch) = (node(0, 1), self.play.replica(1, 1).end, LeaderEpoch(THEIRS));
        let added = Trace::MirrorFetcherAdded { partition: P, source, offset, epoch };
        assert_eq!(self.play.at(node(1, 1), added), NOTHING);
    }

    /// A local batch, on all of west.
    pub(super) fn local(&mut self, bytes: &Bytes) -> Vec<String> {
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
    pub(super) fn cut(&mut self, to: i64, cause: CutCause) {
        self.play.cut(1, 1, to, cause);
        for broker in 2..=3 {
            self.play.cut(1, broker, to, CutCause::Divergence);
        }
    }
}

pub(super) fn placed(bytes: &Bytes, base: i64, epoch: i32) -> Bytes {
    let mut bytes = bytes.to_vec();
    stamp(&mut bytes, Offset(base), LeaderEpoch(epoch));
    bytes.into()
}

pub(super) fn reset(base: i64) -> Bytes {
    placed(&mirror_pid_reset(Some("east"), 0), base, OURS)
}

/// Whether a check is among those that found something.
pub(super) fn names(broken: &[String], id: &str) -> bool {
    broken.iter().any(|b| b == id)
}

pub(super) fn only(broken: &[String], id: &str) -> bool {
    !broken.is_empty() && broken.iter().all(|b| b == id)
}
