//! A hand-made world of two clusters: logs are lists of batches, everything can be damaged.

use crate::checks::roster::{ClusterPlace, MirrorPlace, Part, Place, Roster};
use crate::checks::sight::{
    LeaderSight, LogSight, MirrorSight, PositionSight, ProducerSight, ReplicaSight, RotSight, Sight, Sum, VoterSight,
};
use crate::checks::{Core, Options};
use bytes::Bytes;
use mirrorlab_model::ids::*;
use mirrorlab_model::log::{EpochEntry, ProducerStates};
use mirrorlab_model::metadata::delta::MetadataDelta;
use mirrorlab_model::metadata::image::MetadataImage;
use mirrorlab_model::metadata::records::{PartitionState, Record};
use mirrorlab_model::mirror::records::StateKey;
use mirrorlab_model::ports::Lane;
use mirrorlab_model::record::{BatchBuilder, BatchMeta, BatchView, HeaderView, Identity};
use mirrorlab_model::states::{DesiredState, StateRecord};
use mirrorlab_model::trace::{Origin, Trace, TraceEvent};
use mirrorlab_model::wire::messages::ConfigResource;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;

/// Partition 0 of topic `t`, in either cluster.
pub const P: PartitionIx = PartitionIx(0);
/// The client.
pub const CLIENT: NodeId = NodeId(20);

/// The node of broker 1 to 3 of a cluster.
pub fn node(cluster: u8, broker: i32) -> NodeId {
    NodeId(u16::from(cluster) * 10 + broker as u16 - 1)
}

/// The controller of a cluster.
pub fn controller(cluster: u8) -> NodeId {
    NodeId(u16::from(cluster) * 10 + 9)
}

#[derive(Clone, Debug, Default)]
pub struct FakeReplica {
    pub batches: Vec<Bytes>,
    pub start: Offset,
    pub end: Offset,
    pub hw: Offset,
    pub epochs: Vec<EpochEntry>,
    pub producers: ProducerStates,
    pub leads: bool,
    pub epoch: LeaderEpoch,
    pub partition_epoch: PartitionEpoch,
    pub isr: u32,
    pub proposed: u32,
    pub in_flight: bool,
    /// The last stable offset; the watermark, if nothing is said.
    pub stable: Option<Offset>,
}

#[derive(Clone, Copy, Debug)]
pub struct FakeLog<'a>(&'a FakeReplica);

impl LogSight for FakeLog<'_> {
    type Lineage = ();
    fn start(self) -> Offset {
        self.0.start
    }
    fn end(self) -> Offset {
        self.0.end
    }
    fn high_watermark(self) -> Offset {
        self.0.hw
    }
    fn last_stable(self) -> Offset {
        self.0.stable.unwrap_or(self.0.hw)
    }
    fn recovery_point(self) -> Offset {
        self.0.hw
    }
    fn epochs(&self) -> &[EpochEntry] {
        &self.0.epochs
    }
    fn producers(&self) -> &ProducerStates {
        &self.0.producers
    }
    fn segments(self) -> usize {
        1
    }
    fn base(self, _: usize) -> Offset {
        Offset::ZERO
    }
    fn batches(self, _: usize) -> u32 {
        self.0.batches.len() as u32
    }
    fn batch(&self, _: usize, at: u32) -> &[u8] {
        &self.0.batches[at as usize]
    }
    fn sum(self, _: usize, batches: u32) -> Sum {
        self.0.batches[..batches as usize].iter().fold(0, |sum: Sum, b| sum.wrapping_add(xxh3_128(b)))
    }
    fn lineage(self, _: usize) -> Option<()> {
        None
    }
}

#[derive(Clone, Debug, Default)]
pub struct Fake {
    pub step: u64,
    pub trace: Vec<TraceEvent>,
    pub images: [MetadataImage; 2],
    /// Metadata that a broker applied, where it is not the controller's.
    pub applied: BTreeMap<NodeId, MetadataImage>,
    pub replicas: BTreeMap<(NodeId, PartitionIx), FakeReplica>,
    pub rotten: BTreeMap<(NodeId, PartitionIx), Vec<RotSight>>,
    pub down: BTreeSet<NodeId>,
    pub mirrors: BTreeMap<(NodeId, PartitionIx), MirrorSight>,
    /// States that a coordinator serves.
    pub served: BTreeMap<(NodeId, PartitionIx), Vec<(StateKey, StateRecord)>>,
    pub cluster_ids: [Arc<str>; 2],
    /// Who was formatted for another cluster.
    pub strangers: BTreeMap<NodeId, Arc<str>>,
    pub wanted: Option<DesiredState>,
    /// An order waits behind earlier ones.
    pub is_behind: bool,
    pub recoveries: usize,
    pub recovered: Option<Nanos>,
    pub producer: Option<ProducerSight>,
    pub positions: Option<Vec<PositionSight>>,
    pub stuck: Option<(NodeId, Lane)>,
    /// Nodes that nobody reaches.
    pub cut: BTreeSet<NodeId>,
    /// Brokers of a release that knows no mirrors.
    pub old: BTreeSet<NodeId>,
    pub voters: BTreeMap<NodeId, VoterSight>,
    /// Metadata logs of controllers.
    pub metadata: BTreeMap<NodeId, FakeReplica>,
}

impl Sight for Fake {
    type Log<'s> = FakeLog<'s>;

    fn now(&self) -> Nanos {
        Nanos(self.step * 1_000)
    }
    fn step(&self) -> u64 {
        self.step
    }
    fn trace(&self) -> &[TraceEvent] {
        &self.trace
    }
    fn is_up(&self, node: NodeId) -> bool {
        !self.down.contains(&node)
    }
    fn image(&self, cluster: u8) -> Option<&MetadataImage> {
        self.images.get(usize::from(cluster)).filter(|_| self.is_up(controller(cluster)))
    }
    fn broker_image(&self, node: NodeId) -> Option<&MetadataImage> {
        self.applied.get(&node).or_else(|| self.images.get(usize::from(node.0 / 10)))
    }
    fn is_reachable(&self, from: NodeId, to: NodeId) -> bool {
        !self.cut.contains(&from) && !self.cut.contains(&to)
    }
    fn voter(&self, node: NodeId) -> Option<VoterSight> {
        self.voters.get(&node).copied().filter(|_| self.is_up(node))
    }
    fn metadata_log(&self, node: NodeId) -> Option<FakeLog<'_>> {
        self.metadata.get(&node).filter(|_| self.is_up(node)).map(FakeLog)
    }
    fn knows_no_mirrors(&self, node: NodeId) -> bool {
        self.old.contains(&node)
    }
    fn broker_epoch(&self, node: NodeId) -> Option<BrokerEpoch> {
        Some(BrokerEpoch(i64::from(node.0 % 10) + 1))
    }
    fn replica(&self, node: NodeId, partition: PartitionIx) -> Option<ReplicaSight<FakeLog<'_>>> {
        let r = self.replicas.get(&(node, partition)).filter(|_| self.is_up(node))?;
        Some(ReplicaSight {
            log: FakeLog(r),
            leads: r.leads,
            leader_epoch: r.epoch,
            partition_epoch: r.partition_epoch,
            offline: false,
        })
    }
    fn rotten(&self, node: NodeId, partition: PartitionIx) -> Vec<RotSight> {
        self.rotten.get(&(node, partition)).cloned().unwrap_or_default()
    }
    fn leader(&self, node: NodeId, partition: PartitionIx) -> Option<LeaderSight> {
        let r = self.replicas.get(&(node, partition)).filter(|r| r.leads && self.is_up(node))?;
        let replicas = (1..=3).map(BrokerId).collect();
        Some(LeaderSight { replicas, isr: r.isr, proposed: r.proposed, in_flight: r.in_flight })
    }
    fn hosted(&self, node: NodeId) -> Vec<PartitionIx> {
        self.replicas.keys().filter(|k| k.0 == node).map(|k| k.1).collect()
    }
    fn mirror(&self, node: NodeId, partition: PartitionIx) -> Option<MirrorSight> {
        self.mirrors.get(&(node, partition)).copied()
    }
    fn states(&self, node: NodeId, partition: PartitionIx) -> Option<Vec<(StateKey, StateRecord)>> {
        self.served.get(&(node, partition)).cloned()
    }
    fn cluster_id(&self, node: NodeId) -> Option<Arc<str>> {
        self.strangers.get(&node).or_else(|| self.cluster_ids.get(usize::from(node.0 / 10))).cloned()
    }
    fn recoveries(&self, _: u8, _: &str, _: &str) -> usize {
        self.recoveries
    }
    fn recovered(&self, _: u8, _: &str, _: &str) -> Option<Nanos> {
        self.recovered
    }
    fn wanted(&self, _: u8, _: &str, _: &str) -> (Option<DesiredState>, bool) {
        (self.wanted, self.is_behind)
    }
    fn producer(&self, _: u32) -> Option<ProducerSight> {
        self.producer
    }
    fn positions(&self, _: u32) -> Option<Vec<PositionSight>> {
        self.positions.clone()
    }
    fn stuck(&self) -> Option<(NodeId, Lane)> {
        self.stuck
    }
}

/// A voter that follows in epoch 1.
pub fn voter(follows: Option<NodeId>) -> VoterSight {
    VoterSight {
        epoch: LeaderEpoch(1),
        follows,
        is_observer: false,
        state: "follower",
        committed: 8,
        attached: None,
        stood: None,
    }
}

/// One batch of records of producer 1, whose identities and sequences are the offsets.
pub fn batch(base: i64, epoch: i32, count: i64) -> Bytes {
    let meta = BatchMeta {
        base_offset: Offset(base),
        leader_epoch: LeaderEpoch(epoch),
        producer: ProducerId(7),
        producer_epoch: ProducerEpoch(0),
        base_sequence: base as i32,
        ..BatchMeta::default()
    };
    let mut builder = BatchBuilder::new(meta);
    for n in 0..count {
        builder.push_identity(0, None, Identity { producer: 1, sequence: (base + n) as u64 }, 32);
    }
    builder.finish()
}

/// A world, and the checks that watch it.
pub struct Play {
    pub world: Fake,
    pub core: Core,
}

/// A partition on so many brokers, from 1 on, as it is created: the first leads, in epoch 1.
pub fn led_by_broker_1(brokers: i32) -> PartitionState {
    let all = || (1..=brokers).map(BrokerId).collect();
    PartitionState {
        replicas: all(),
        isr: all(),
        elr: [].into_iter().collect(),
        last_known_elr: [].into_iter().collect(),
        leader: BrokerId(1),
        leader_epoch: LeaderEpoch(1),
        partition_epoch: PartitionEpoch(0),
        recovering: false,
    }
}

impl Play {
    /// Two clusters of three brokers, topic `t` with one partition in each, broker 1 leads in epoch 1.
    pub fn new(min_isr: u32) -> Self {
        let mut roster = Roster::default();
        for cluster in 0..2 {
            let name = ["east", "west"][usize::from(cluster)];
            let brokers: Vec<NodeId> = (1..=3).map(|b| node(cluster, b)).collect();
            for (slot, n) in brokers.iter().enumerate() {
                roster.seat(
                    *n,
                    &format!("{name}/broker-{}", slot + 1),
                    Place { cluster, part: Part::Broker(slot as u16) },
                );
            }
            roster.seat(
                controller(cluster),
                &format!("{name}/controller-1"),
                Place { cluster, part: Part::Controller },
            );
            let controllers = vec![controller(cluster)];
            roster.clusters.push(ClusterPlace { name: name.into(), brokers, controllers });
        }
        roster.seat(CLIENT, "shop", Place { cluster: 0, part: Part::Client });
        roster.mirrors.push(MirrorPlace { name: "m".into(), source: 0, destination: 1 });
        roster.producers.push((1, CLIENT));
        roster.consumers.push((1, CLIENT));
        let mut play = Self { world: Fake::default(), core: Core::new(roster, Options::default()) };
        for cluster in 0..2 {
            play.create(cluster, min_isr);
        }
        play
    }

    fn create(&mut self, cluster: u8, min_isr: u32) {
        for broker in 1..=3 {
            let (broker, node, epoch) = (BrokerId(broker), node(cluster, broker), BrokerEpoch(i64::from(broker)));
            self.record(cluster, &Record::RegisterBroker { broker, node, incarnation: 0, epoch });
            self.record(cluster, &Record::BrokerChange { broker, epoch, fenced: false, shutting_down: false });
        }
        self.record(cluster, &Record::Topic { topic: TopicIx(0), id: TopicId(5), name: "t".into() });
        let state = led_by_broker_1(3);
        self.record(cluster, &Record::Partition { partition: P, topic: TopicIx(0), number: 0, state });
        let resource = ConfigResource::Topic("t".into());
        let value = Some(min_isr.to_string().as_str().into());
        self.record(cluster, &Record::Config { resource, key: "min.insync.replicas".into(), value });
        for broker in 1..=3 {
            self.world.replicas.insert((node(cluster, broker), P), FakeReplica::default());
        }
        self.change(cluster, 1, 1, 0b111, 0);
        self.lead(cluster, 1, 1);
    }

    /// A record of a cluster's metadata log.
    pub fn record(&mut self, cluster: u8, record: &Record) {
        let image = &mut self.world.images[usize::from(cluster)];
        let end = image.end().0;
        image.apply(end, record, &mut MetadataDelta::default());
    }

    /// Mirrors topic `t` of west from east.
    pub fn mirror(&mut self) {
        self.record(1, &Record::Mirror { mirror: MirrorIx(0), name: "m".into() });
        let desired = DesiredState::Mirroring;
        self.record(1, &Record::MirrorTopicStateChange { topic: TopicIx(0), mirror: Some(MirrorIx(0)), desired });
    }

    pub fn replica(&mut self, cluster: u8, broker: i32) -> &mut FakeReplica {
        self.world.replicas.get_mut(&(node(cluster, broker), P)).expect("a replica")
    }

    /// Something happens at a broker; what that breaks.
    pub fn at(&mut self, node: NodeId, trace: Trace) -> Vec<String> {
        self.step(node, &[trace])
    }

    /// Several things happen there in one step; what they break.
    pub fn step(&mut self, node: NodeId, traces: &[Trace]) -> Vec<String> {
        self.world.step += 1;
        self.world.trace = traces.iter().map(|trace| TraceEvent { node, trace: *trace }).collect();
        self.core.on_step(&self.world).iter().map(|v| v.id.clone()).collect()
    }

    /// The controller commits a change of the partition.
    pub fn change(&mut self, cluster: u8, leader: i32, epoch: i32, isr: u32, elr: u32) -> Vec<String> {
        let partition_epoch =
            PartitionEpoch(self.core.ghost.clusters[usize::from(cluster)].partition(P).partition_epoch.0 + 1);
        let (leader, epoch) = (BrokerId(leader), LeaderEpoch(epoch));
        self.at(controller(cluster), Trace::PartitionChanged { partition: P, leader, epoch, partition_epoch, isr, elr })
    }

    /// A broker becomes leader.
    pub fn lead(&mut self, cluster: u8, broker: i32, epoch: i32) -> Vec<String> {
        let isr = self.core.ghost.clusters[usize::from(cluster)].partition(P).isr;
        for other in 1..=3 {
            let r = self.replica(cluster, other);
            r.leads = other == broker;
            r.epoch = LeaderEpoch(epoch);
            (r.isr, r.proposed) = (isr, isr);
        }
        let epoch_start = self.replica(cluster, broker).end;
        let (epoch, partition_epoch) = (LeaderEpoch(epoch), PartitionEpoch(0));
        self.at(node(cluster, broker), Trace::BecameLeader { partition: P, epoch, partition_epoch, epoch_start })
    }

    /// A batch goes into a log as it should.
    pub fn store(&mut self, cluster: u8, broker: i32, bytes: &Bytes) {
        let view = BatchView::parse(bytes).expect("a batch");
        let r = self.replica(cluster, broker);
        if r.epochs.last().is_none_or(|e| e.epoch < view.leader_epoch()) {
            r.epochs.push(EpochEntry { epoch: view.leader_epoch(), start: view.base_offset() });
        }
        r.producers.apply(&view, || true);
        r.batches.push(bytes.clone());
        r.end = view.next_offset();
    }

    /// A broker appends a batch.
    pub fn append(&mut self, cluster: u8, broker: i32, origin: Origin, bytes: &Bytes) -> Vec<String> {
        self.store(cluster, broker, bytes);
        self.appended(cluster, broker, origin, bytes)
    }

    /// A broker says that it appended a batch.
    pub fn appended(&mut self, cluster: u8, broker: i32, origin: Origin, bytes: &Bytes) -> Vec<String> {
        let header = HeaderView::parse(bytes).expect("a batch");
        let leader_epoch = self.replica(cluster, broker).epoch;
        let trace = Trace::Appended {
            partition: P,
            origin,
            base: header.base_offset(),
            next: header.next_offset(),
            epoch: header.leader_epoch(),
            leader_epoch,
            bytes: bytes.len() as u32,
        };
        self.at(node(cluster, broker), trace)
    }

    /// A watermark moves.
    pub fn watermark(&mut self, cluster: u8, broker: i32, to: i64) -> Vec<String> {
        let r = self.replica(cluster, broker);
        let (from, to, leader) = (r.hw, Offset(to), r.leads);
        r.hw = to;
        self.at(node(cluster, broker), Trace::HighWatermarkMoved { partition: P, from, to, leader })
    }

    /// The leader appends, all follow, all know: nothing is broken.
    pub fn commit(&mut self, cluster: u8, leader: i32, bytes: &Bytes) {
        let mut broken = self.append(cluster, leader, Origin::Client, bytes);
        let end = HeaderView::parse(bytes).expect("a batch").next_offset().0;
        for broker in (1..=3).filter(|b| *b != leader) {
            broken.extend(self.append(cluster, broker, Origin::Replication, bytes));
        }
        broken.extend(self.watermark(cluster, leader, end));
        for broker in (1..=3).filter(|b| *b != leader) {
            broken.extend(self.watermark(cluster, broker, end));
        }
        assert_eq!(broken, Vec::<String>::new());
    }

    /// A log is cut, and says so.
    pub fn cut(&mut self, cluster: u8, broker: i32, to: i64, cause: mirrorlab_model::trace::CutCause) -> Vec<String> {
        let from = self.replica(cluster, broker).end;
        self.shorten(cluster, broker, to);
        self.at(node(cluster, broker), Trace::Truncated { partition: P, from, to: Offset(to), cause })
    }

    /// A log is cut silently.
    pub fn shorten(&mut self, cluster: u8, broker: i32, to: i64) {
        let r = self.replica(cluster, broker);
        r.batches.retain(|b| HeaderView::parse(b).is_ok_and(|h| h.base_offset().0 < to));
        r.end = Offset(to);
        r.hw = r.hw.min(r.end);
        r.epochs.retain(|e| e.start.0 < to);
        let mut producers = ProducerStates::default();
        for b in &r.batches {
            producers.apply(&BatchView::parse(b).expect("a batch"), || true);
        }
        r.producers = producers;
    }

    /// What a quiet point finds.
    pub fn quiet(&mut self) -> Vec<String> {
        self.core.at_quiet(&self.world, true).into_iter().map(|v| v.id).collect()
    }

    /// What the end finds.
    pub fn end(&mut self) -> Vec<String> {
        self.core.at_end(&self.world).into_iter().map(|v| v.id).collect()
    }

    /// What liveness finds.
    pub fn left(&mut self) -> Vec<String> {
        let left: Vec<String> = self.core.liveness(&self.world).violations.into_iter().map(|v| v.id).collect();
        // Asked twice: what held back is asked first then.
        for _ in 0..2 {
            assert_eq!(self.core.is_held_back(&self.world), !left.is_empty(), "{left:?}");
        }
        left
    }

    /// When the last retry that liveness waits for is due.
    pub fn retry_at(&mut self) -> Option<Nanos> {
        self.core.liveness(&self.world).retry_at
    }

    pub fn acked(&mut self, base: i64, count: u32) -> Vec<String> {
        let (producer, first, base) = (1, base as u64, Offset(base));
        self.at(CLIENT, Trace::Acked { partition: P, producer, first, count, base, acks: -1 })
    }
}
