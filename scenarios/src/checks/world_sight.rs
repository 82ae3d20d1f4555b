//! A simulated world as checks see it.

use super::sight::{
    LeaderSight, LogSight, MirrorSight, PositionSight, ProducerSight, ReplicaSight, RotSight, Sight, Sum, VoterSight,
};
use crate::setup::Setup;
use mirrorlab_model::client::consumer::Awaits;
use mirrorlab_model::controller::quorum::State;
use mirrorlab_model::ids::{BrokerEpoch, Nanos, NodeId, Now, Offset, PartitionIx};
use mirrorlab_model::log::{EpochEntry, Log, ProducerStates};
use mirrorlab_model::metadata::image::MetadataImage;
use mirrorlab_model::mirror::records::StateKey;
use mirrorlab_model::ports::{DirName, FileId, FileName, Lane};
use mirrorlab_model::record::HeaderView;
use mirrorlab_model::replica::Role;
use mirrorlab_model::states::{DesiredState, MirrorState, StateRecord};
use mirrorlab_model::trace::TraceEvent;
use mirrorlab_model::wire::messages::Isolation;
use mirrorlab_sim::disk::{LineageId, Look};
use mirrorlab_sim::node::{Condition, Program};
use mirrorlab_sim::world::World;
use std::sync::Arc;

/// A world and its names.
#[derive(Clone, Copy, Debug)]
pub struct WorldSight<'w> {
    /// The world.
    pub world: &'w World,
    /// Who is who in it.
    pub setup: &'w Setup,
}

/// A log in memory, and its node's disk. What rotted there is shown as it was written: no check has to know of it, and what
/// it was taken for elsewhere is what they find.
#[derive(Clone, Copy, Debug)]
pub struct WorldLog<'w> {
    log: &'w Log,
    disk: Look<'w>,
}

impl WorldLog<'_> {
    fn file(&self, segment: usize) -> Option<FileId> {
        // Nearly every look is at the segment that is written.
        let last = segment + 1 == self.log.segment_count();
        let mut segments = self.log.segments();
        if last { segments.next_back() } else { segments.nth(segment) }.map(|s| s.file)
    }

    /// Appends that are the beginning of a batch and no more, ascending. Who believes a length that rotted, and is too great, cuts
    /// into the batch behind it; what is left of that is a part of the rotten one from then on.
    fn remnants(&self, file: FileId) -> Vec<u32> {
        if self.disk.is_sound(file) {
            return Vec::new();
        }
        let is_whole = |bytes: &[u8]| HeaderView::parse(bytes).is_ok_and(|h| h.size() <= bytes.len());
        (0..self.disk.appends(file)).filter(|at| !is_whole(self.disk.sound_bytes(file, *at))).collect()
    }
}

/// The number of an append, counted without those in between that are remnants.
fn behind(remnants: &[u32], at: u32) -> u32 {
    remnants.iter().fold(at, |at, remnant| if *remnant <= at { at + 1 } else { at })
}

impl LogSight for WorldLog<'_> {
    type Lineage = LineageId;

    fn start(self) -> Offset {
        self.log.start()
    }
    fn end(self) -> Offset {
        self.log.end()
    }
    fn high_watermark(self) -> Offset {
        self.log.high_watermark()
    }
    fn last_stable(self) -> Offset {
        self.log.last_stable()
    }
    fn recovery_point(self) -> Offset {
        self.log.recovery_point()
    }
    fn epochs(&self) -> &[EpochEntry] {
        self.log.epochs().entries()
    }
    fn producers(&self) -> &ProducerStates {
        self.log.producers()
    }
    fn segments(self) -> usize {
        self.log.segment_count()
    }
    fn base(self, segment: usize) -> Offset {
        self.log.segments().nth(segment).map_or(self.log.end(), |s| s.base)
    }
    fn batches(self, segment: usize) -> u32 {
        self.file(segment).map_or(0, |f| self.disk.appends(f) - self.remnants(f).len() as u32)
    }
    fn batch(&self, segment: usize, at: u32) -> &[u8] {
        self.file(segment).map_or(&[], |f| self.disk.sound_bytes(f, behind(&self.remnants(f), at)))
    }
    fn sum(self, segment: usize, batches: u32) -> Sum {
        let Some(f) = self.file(segment) else { return 0 };
        let remnants = self.remnants(f);
        let upto = behind(&remnants, batches).min(self.disk.appends(f));
        let without = |sum: Sum, at: &u32| {
            let own = self.disk.sum(f, at + 1).wrapping_sub(self.disk.sum(f, *at));
            sum.wrapping_sub(own)
        };
        remnants.iter().filter(|at| **at < upto).fold(self.disk.sound_sum(f, upto), without)
    }
    fn lineage(self, segment: usize) -> Option<LineageId> {
        self.disk.lineage(self.file(segment).filter(|f| self.disk.is_sound(*f))?)
    }
}

impl WorldSight<'_> {
    fn clock(&self, node: NodeId) -> Now {
        self.world.node(node).clock.now(self.world.now())
    }
    fn up(&self, node: NodeId) -> Option<&mirrorlab_sim::node::Node> {
        Some(self.world.node(node)).filter(|n| n.condition == Condition::Up)
    }
}

/// The batches of a directory's segments that rotted.
fn rotten(disk: Look<'_>, dir: DirName) -> Vec<RotSight> {
    let files = disk.dir(dir).into_iter().flat_map(|dir| disk.files(dir));
    let segments: Vec<(i64, FileId)> = files
        .filter_map(|(name, file)| if let FileName::Segment(base) = name { Some((base, file)) } else { None })
        .collect();
    let mut found = Vec::new();
    for (at, (_, file)) in segments.iter().enumerate().filter(|(_, (_, file))| !disk.is_sound(*file)) {
        let next = segments.get(at + 1).map_or(i64::MAX, |(base, _)| *base);
        for (piece, was) in disk.rotten(*file) {
            let Ok(sound) = HeaderView::parse(was) else { continue };
            let (from, to) = (sound.base_offset(), sound.next_offset());
            let place = |h: &HeaderView<'_>| (h.size(), h.base_offset(), h.last_offset());
            let framed = HeaderView::parse(disk.bytes(*file, piece)).is_ok_and(|is| place(&is) == place(&sound));
            found.push(RotSight { from, to, holds: if framed { to } else { Offset(next) } });
        }
    }
    found
}

impl Sight for WorldSight<'_> {
    type Log<'s>
        = WorldLog<'s>
    where
        Self: 's;

    fn now(&self) -> Nanos {
        self.world.now()
    }
    fn step(&self) -> u64 {
        self.world.counts().events
    }
    fn trace(&self) -> &[TraceEvent] {
        self.world.trace()
    }
    fn is_up(&self, node: NodeId) -> bool {
        self.world.node(node).condition == Condition::Up
    }
    fn image(&self, cluster: u8) -> Option<&MetadataImage> {
        self.setup.image(self.world, cluster)
    }
    fn broker_image(&self, node: NodeId) -> Option<&MetadataImage> {
        self.world.node(node).broker().map(|b| &b.image)
    }
    fn is_reachable(&self, from: NodeId, to: NodeId) -> bool {
        let net = self.world.net();
        !net.is_cut(from, to) && !net.is_cut(to, from)
    }
    fn voter(&self, node: NodeId) -> Option<VoterSight> {
        let controller = self.world.node(node).controller()?;
        let quorum = controller.quorum();
        let follows = match quorum.state() {
            State::Follower { .. } | State::Leader(_) | State::Observer => quorum.leader(),
            _ => None,
        };
        Some(VoterSight {
            epoch: quorum.epoch(),
            follows,
            is_observer: *quorum.state() == State::Observer,
            state: quorum.state().name(),
            committed: controller.committed_image().end().0,
            attached: quorum.attached().map(|at| self.clock(node).mono.since(at)),
            stood: quorum.stood().map(|at| self.clock(node).mono.since(at)),
        })
    }
    fn metadata_log(&self, node: NodeId) -> Option<WorldLog<'_>> {
        let node = self.world.node(node);
        let log = node.controller()?.log()?;
        Some(WorldLog { log, disk: node.disk.look(self.world.store()) })
    }
    fn knows_no_mirrors(&self, node: NodeId) -> bool {
        self.world.node(node).broker().is_some_and(|broker| !broker.has_mirrors())
    }
    fn broker_epoch(&self, node: NodeId) -> Option<BrokerEpoch> {
        self.world.node(node).broker().map(|b| b.epoch())
    }
    fn replica(&self, node: NodeId, partition: PartitionIx) -> Option<ReplicaSight<WorldLog<'_>>> {
        let node = self.world.node(node);
        let replica = node.broker()?.replicas.get(partition)?;
        let log = WorldLog { log: replica.log, disk: node.disk.look(self.world.store()) };
        Some(ReplicaSight {
            log,
            leads: replica.role() == Role::Leader,
            leader_epoch: replica.leader_epoch(),
            partition_epoch: replica.partition_epoch(),
            offline: replica.offline() || replica.log.is_offline(),
        })
    }
    fn rotten(&self, node: NodeId, partition: PartitionIx) -> Vec<RotSight> {
        let node = self.world.node(node);
        if node.disk.look(self.world.store()).never_rotted() {
            return Vec::new();
        }
        let image = node.cluster.and_then(|cluster| self.image(cluster));
        let found = image.and_then(|image| {
            let of = image.partition(partition)?;
            Some(DirName::Partition { topic: image.life(of.topic)?, partition: of.number })
        });
        found.map_or_else(Vec::new, |dir| rotten(node.disk.look(self.world.store()), dir))
    }
    fn leader(&self, node: NodeId, partition: PartitionIx) -> Option<LeaderSight> {
        let leader = self.world.node(node).broker()?.replicas.get(partition)?.leader?;
        let replicas = leader.replicas.iter().copied().collect();
        Some(LeaderSight { replicas, isr: leader.isr, proposed: leader.proposed, in_flight: leader.in_flight })
    }
    fn hosted(&self, node: NodeId) -> Vec<PartitionIx> {
        self.world.node(node).broker().map_or_else(Vec::new, |b| b.replicas.iter().map(|r| r.partition()).collect())
    }
    fn mirror(&self, node: NodeId, partition: PartitionIx) -> Option<MirrorSight> {
        let manager = &self.world.node(node).broker()?.mirror;
        let part = manager.part(partition)?;
        let failed = part.state == MirrorState::Failed;
        let broker = self.world.node(node).broker()?;
        // The manager counts by its node's clock.
        let wait = part.retry_at().map(|at| at.since(self.clock(node).mono));
        Some(MirrorSight {
            mirror: part.mirror,
            state: part.state,
            state_epoch: part.record.as_ref().map_or(-1, |record| record.state_epoch),
            fetching: manager.is_fetching(partition),
            source_epoch: manager.proven_source_epoch(partition),
            bounded: part.waits_until().is_some(),
            retries: failed && part.attempt >= 0,
            retry_at: wait.filter(|_| failed).map(|wait| self.now() + wait),
            lag: manager.lag(part, &broker.replicas),
            source_hw: manager.source_high_watermark(partition).map_or(Offset::UNKNOWN, |told| told.0),
        })
    }
    fn states(&self, node: NodeId, partition: PartitionIx) -> Option<Vec<(StateKey, StateRecord)>> {
        let table = self.world.node(node).broker()?.mirror.coordinator.committed(partition)?;
        Some(table.iter().cloned().collect())
    }
    fn cluster_id(&self, node: NodeId) -> Option<Arc<str>> {
        let node = self.world.node(node);
        let of_broker = node.broker().map(|broker| broker.cluster_id().clone());
        of_broker.or_else(|| Some(node.controller()?.config().cluster_id.clone()))
    }
    fn recoveries(&self, cluster: u8, mirror: &str, topic: &str) -> usize {
        self.setup.recoveries(self.world, cluster, mirror, topic)
    }
    fn recovered(&self, cluster: u8, mirror: &str, topic: &str) -> Option<Nanos> {
        self.setup.recovered(self.world, cluster, mirror, topic)
    }
    fn wanted(&self, cluster: u8, mirror: &str, topic: &str) -> (Option<DesiredState>, bool) {
        self.setup.wanted(self.world, cluster, mirror, topic)
    }
    fn producer(&self, number: u32) -> Option<ProducerSight> {
        let node = self.setup.producers.iter().find(|c| c.number == number)?.node;
        let producer = self.up(node)?.producer()?;
        let now = self.clock(node);
        let left = producer.decided_by().map(|at| at.since(now.mono)).filter(|left| *left > Nanos::ZERO);
        let decided_by = left.map(|left| self.now() + left);
        Some(ProducerSight { open: producer.open_records(), idle: producer.is_idle(now), decided_by })
    }
    fn positions(&self, number: u32) -> Option<Vec<PositionSight>> {
        let node = self.setup.consumers.iter().find(|c| c.number == number)?.node;
        let up = self.up(node)?;
        let consumer = up.consumer().filter(|c| !c.is_stopped(self.clock(node)))?;
        let Program::Consumer(config) = &up.program else { return None };
        let read_committed = config.isolation == Isolation::ReadCommitted;
        let of = |p: &mirrorlab_model::client::consumer::Position| PositionSight {
            partition: p.partition,
            offset: p.offset,
            given_up: p.awaits == Awaits::Nothing,
            read_committed,
        };
        Some(consumer.positions().iter().map(of).collect())
    }
    fn stuck(&self) -> Option<(NodeId, Lane)> {
        self.world.stuck()
    }
}
