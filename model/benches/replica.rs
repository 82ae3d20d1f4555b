//! What the replica room's hot paths cost: an append as leader, the same batch as follower, and a fetch of a session that has
//! news of a few of many partitions.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

use bytes::{Bytes, BytesMut};
use criterion::{criterion_group, criterion_main, BatchSize, BenchmarkId, Criterion, Throughput};
use mirrorlab_model::guards::Guards;
use mirrorlab_model::ids::{
    BrokerEpoch, BrokerId, ConnId, LeaderEpoch, Nanos, NodeId, Now, Offset, PartitionEpoch, PartitionIx, TopicId,
    TopicIx, TopicLife,
};
use mirrorlab_model::log::{Log, LogPolicy};
use mirrorlab_model::metadata::records::PartitionState;
use mirrorlab_model::ports::{Cx, DirName, Disk, Entropy, Outbox};
use mirrorlab_model::record::{BatchBuilder, BatchMeta};
use mirrorlab_model::replica::fetch_serve::Fetched;
use mirrorlab_model::replica::{BrokerView, PartitionSpec, Replicas, TopicPolicy};
use mirrorlab_model::testing::MemDisk;
use mirrorlab_model::trace::Origin;
use mirrorlab_model::wire::messages::{FetchPart, FetchRequest, Isolation};
use std::hint::black_box;
use std::sync::Arc;

const NOW: Now = Now { mono: Nanos(1_000_000_000), wall_ms: 1_000 };
const LEADER: BrokerId = BrokerId(1);
const FOLLOWER: BrokerId = BrokerId(2);

/// A batch of one record of 100 bytes.
fn batch() -> Bytes {
    let mut builder = BatchBuilder::new(BatchMeta { base_timestamp: 1_000, ..BatchMeta::default() });
    builder.push(1_000, None, Some(&[7; 100]));
    builder.finish()
}

fn empty_log() -> (MemDisk, Log) {
    let mut disk = MemDisk::new();
    let dir =
        disk.open_dir(DirName::Partition { topic: TopicLife { id: TopicId(1), ix: TopicIx(0) }, partition: 0 }, true);
    let log = dir.and_then(|dir| Log::create(&mut disk, dir, Offset::ZERO));
    (disk, log.unwrap_or_else(|e| panic!("a new log: {e}")))
}

fn appends(c: &mut Criterion) {
    const APPENDS: u64 = 1_000;
    let mut group = c.benchmark_group("append");
    group.throughput(Throughput::Elements(APPENDS)).sample_size(20);
    let (policy, batch) = (LogPolicy::default(), batch());
    let mut guards = Guards::default();
    group.bench_function("as leader", |b| {
        b.iter_batched_ref(
            empty_log,
            |(disk, log)| {
                for _ in 0..APPENDS {
                    let epoch = LeaderEpoch(1);
                    let arena = &mut BytesMut::new();
                    let done =
                        log.append_as_leader(disk, &mut guards, &policy, &batch, arena, epoch, Origin::Client, NOW);
                    let _ = black_box(done);
                }
            },
            BatchSize::LargeInput,
        );
    });
    let (mut disk, mut log) = empty_log();
    let mut led = Vec::new();
    for _ in 0..APPENDS {
        let arena = &mut BytesMut::new();
        let _ =
            log.append_as_leader(&mut disk, &mut guards, &policy, &batch, arena, LeaderEpoch(1), Origin::Client, NOW);
    }
    let _ = log.for_each_batch(&disk, Offset::ZERO, |batch| led.push(Bytes::copy_from_slice(batch.bytes())));
    group.bench_function("as follower", |b| {
        b.iter_batched_ref(
            empty_log,
            |(disk, log)| {
                for batch in &led {
                    let batches = std::slice::from_ref(batch);
                    let done = log.append_as_follower(disk, &mut guards, &policy, batches, LeaderEpoch(1), NOW);
                    let _ = black_box(done);
                }
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

/// A leader of many partitions, with a follower's session over all of them.
struct Served {
    replicas: Replicas,
    disk: MemDisk,
    guards: Guards,
    out: Outbox,
    session: u32,
    epoch: i32,
}

impl Served {
    fn new(partitions: u32) -> Self {
        let mut replicas = Replicas::new(LEADER, Nanos::from_secs(30));
        let view = |broker| BrokerView { broker, epoch: BrokerEpoch(1), fenced: false, shutting_down: false };
        replicas.set_brokers(vec![view(LEADER), view(FOLLOWER)]);
        let policy = TopicPolicy { log: LogPolicy::default(), min_isr: 1, mirrored: false, read_only: false };
        replicas.set_topic(TopicIx(0), Some(Arc::new(policy)));
        let mut served = Self {
            replicas,
            disk: MemDisk::new(),
            guards: Guards::default(),
            out: Outbox::default(),
            session: 0,
            epoch: 0,
        };
        let state = PartitionState {
            replicas: [LEADER, FOLLOWER].into_iter().collect(),
            isr: [LEADER, FOLLOWER].into_iter().collect(),
            elr: Default::default(),
            last_known_elr: Default::default(),
            leader: LEADER,
            leader_epoch: LeaderEpoch(0),
            partition_epoch: PartitionEpoch(0),
            recovering: false,
        };
        served.with(|replicas, cx| {
            for number in 0..partitions {
                let (partition, topic, topic_id) = (PartitionIx(number), TopicIx(0), TopicId(1));
                let spec = PartitionSpec { partition, topic, topic_id, number, state: &state };
                let _ = replicas.apply(&spec, None, NOW, cx);
            }
        });
        served.fetch((0..partitions).map(|p| (p, 0)).collect());
        served
    }

    fn with<T>(&mut self, call: impl FnOnce(&mut Replicas, &mut Cx<'_>) -> T) -> T {
        self.out.effects.clear();
        self.out.trace.clear();
        let mut next_conn = 1;
        let mut cx = Cx {
            node: NodeId(1),
            disk: &mut self.disk,
            guards: &mut self.guards,
            out: &mut self.out,
            entropy: Entropy(1),
            next_conn: &mut next_conn,
        };
        call(&mut self.replicas, &mut cx)
    }

    /// Fetches with these positions as news; how many partitions the answer has.
    fn fetch(&mut self, positions: Vec<(u32, i64)>) -> usize {
        let part = |(p, offset)| FetchPart {
            slot: p,
            partition: PartitionIx(p),
            fetch_offset: Offset(offset),
            current_leader_epoch: LeaderEpoch(0),
            last_fetched_epoch: LeaderEpoch::NONE,
            log_start: Offset::UNKNOWN,
            max_bytes: 1 << 20,
            mirror_leader_epoch: LeaderEpoch::NONE,
            aligned: LeaderEpoch::NONE,
        };
        let request = FetchRequest {
            replica: FOLLOWER,
            broker_epoch: BrokerEpoch(1),
            max_wait_ms: 0,
            min_bytes: 1,
            max_bytes: 10 << 20,
            isolation: Isolation::ReadUncommitted,
            session_id: self.session,
            session_epoch: self.epoch,
            topic_groups: 1,
            parts: positions.into_iter().map(part).collect(),
            forgotten: Vec::new(),
        };
        let Fetched::Answer(answer) = self.with(|replicas, cx| replicas.fetch(ConnId(1), 1, &request, NOW, cx)) else {
            return 0;
        };
        self.session = answer.session_id;
        self.epoch += 1;
        answer.parts.len()
    }
}

fn fetches(c: &mut Criterion) {
    /// Partitions with news per fetch.
    const NEWS: u32 = 10;
    let mut group = c.benchmark_group("produce to ten partitions and fetch them");
    group.throughput(Throughput::Elements(u64::from(NEWS))).sample_size(20);
    let batch = batch();
    for partitions in [10, 10_000] {
        let mut served = Served::new(partitions);
        let mut end = 0;
        group.bench_function(BenchmarkId::new("partitions in the session", partitions), |b| {
            b.iter(|| {
                served.with(|replicas, cx| {
                    for p in 0..NEWS {
                        let _ = replicas.append_local(PartitionIx(p), &batch, Origin::Client, NOW, cx);
                    }
                });
                let positions = if end == 0 { Vec::new() } else { (0..NEWS).map(|p| (p, end)).collect() };
                end += 1;
                black_box(served.fetch(positions))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, appends, fetches);
criterion_main!(benches);
