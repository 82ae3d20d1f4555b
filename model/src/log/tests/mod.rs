//! What the tests of the log room share: a log on a disk in memory, and short ways to make batches.

mod alignment;
mod append;
mod clean;
mod cost;
mod durability;
mod property;
mod read;
mod start;
mod transactions;
mod truncate;

use super::*;
use crate::guards::Guards;
use crate::ids::{LeaderEpoch, Nanos, Now, Offset, ProducerEpoch, ProducerId, TopicId, TopicIx, TopicLife};
use crate::ports::{DirId, DirName, Disk, FileName};
use crate::record::{BatchBuilder, BatchMeta, BatchView};
use crate::testing::MemDisk;
use crate::trace::Origin;
use bytes::{Bytes, BytesMut};

#[derive(Clone)]
pub(super) struct Rig {
    pub disk: MemDisk,
    pub dir: DirId,
    pub log: Log,
    pub guards: Guards,
    pub policy: LogPolicy,
}

/// A batch to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Make {
    pub base: i64,
    pub epoch: i32,
    pub records: i32,
    pub producer: i64,
    pub producer_epoch: i16,
    pub sequence: i32,
    pub transactional: bool,
    pub timestamp: i64,
}

impl Default for Make {
    fn default() -> Self {
        Self {
            base: 0,
            epoch: -1,
            records: 1,
            producer: -1,
            producer_epoch: 0,
            sequence: -1,
            transactional: false,
            timestamp: 1000,
        }
    }
}

impl Make {
    pub fn build(self) -> Bytes {
        let meta = BatchMeta {
            base_offset: Offset(self.base),
            leader_epoch: LeaderEpoch(self.epoch),
            producer: ProducerId(self.producer),
            producer_epoch: ProducerEpoch(if self.producer < 0 { -1 } else { self.producer_epoch }),
            base_sequence: self.sequence,
            transactional: self.transactional,
            base_timestamp: self.timestamp,
            ..BatchMeta::default()
        };
        let mut batch = BatchBuilder::new(meta);
        for n in 0..self.records {
            batch.push(self.timestamp + i64::from(n), None, Some(&[7; 20]));
        }
        batch.finish()
    }
}

/// A batch of another leader's log.
pub(super) fn at(base: i64, epoch: i32, records: i32) -> Bytes {
    Make { base, epoch, records, ..Make::default() }.build()
}

pub(super) fn now(wall_ms: i64) -> Now {
    Now { mono: Nanos::from_millis(wall_ms as u64), wall_ms }
}

impl Rig {
    pub fn new() -> Self {
        Self::with(LogPolicy::default())
    }
    pub fn with(policy: LogPolicy) -> Self {
        Self::starting_at(policy, 0)
    }
    pub fn starting_at(policy: LogPolicy, start: i64) -> Self {
        let mut disk = MemDisk::new();
        let dir = disk
            .open_dir(DirName::Partition { topic: TopicLife { id: TopicId(1), ix: TopicIx(0) }, partition: 0 }, true)
            .unwrap();
        let log = Log::create(&mut disk, dir, Offset(start)).unwrap();
        Self { disk, dir, log, guards: Guards::default(), policy }
    }

    pub fn lead(&mut self, batch: &Bytes, epoch: i32) -> Result<AppendInfo, AppendError> {
        self.lead_as(batch, epoch, Origin::Client)
    }
    pub fn lead_as(&mut self, batch: &Bytes, epoch: i32, origin: Origin) -> Result<AppendInfo, AppendError> {
        let epoch = LeaderEpoch(epoch);
        let mut arena = BytesMut::new();
        let (disk, guards, policy) = (&mut self.disk, &mut self.guards, &self.policy);
        self.log.append_as_leader(disk, guards, policy, batch, &mut arena, epoch, origin, now(1000))
    }
    pub fn follow(&mut self, batches: &[Bytes], bound: i32) -> Result<AppendInfo, AppendError> {
        let bound = LeaderEpoch(bound);
        self.log.append_as_follower(&mut self.disk, &mut self.guards, &self.policy, batches, bound, now(1000))
    }
    pub fn cut(&mut self, to: i64) -> bool {
        let cut = self.log.truncate_to(&mut self.disk, &mut self.guards, Offset(to)).unwrap();
        self.settle();
        cut
    }
    pub fn wipe(&mut self, at: i64) {
        self.log.truncate_fully_and_start_at(&mut self.disk, &mut self.guards, Offset(at)).unwrap();
        self.settle();
    }
    pub fn hw(&mut self, to: i64) -> Option<(i64, i64)> {
        self.log.set_high_watermark(&mut self.guards, Offset(to)).map(|(from, to)| (from.0, to.0))
    }
    pub fn retain(&mut self, wall_ms: i64) -> Option<i64> {
        let moved = self.log.apply_retention(&mut self.disk, &mut self.guards, &self.policy, now(wall_ms));
        moved.unwrap().map(|start| start.0)
    }
    /// Plans a flush, carries it out, reports it.
    pub fn flush(&mut self, upto: FlushUpto) {
        let mut wants = Vec::new();
        let target = self.log.plan_flush(&mut self.disk, &mut self.guards, upto, &mut wants).unwrap();
        self.obey(&wants);
        if let Some(target) = target {
            self.log.on_flushed(&mut self.guards, target);
        }
    }
    pub fn obey(&mut self, wants: &[FlushWant]) {
        for want in wants {
            match want {
                FlushWant::File(file) => self.disk.flush(*file),
                FlushWant::Dir(dir) => self.disk.flush_dir(*dir),
                // Directories of this disk are durable from the beginning.
                FlushWant::Root => {}
            }
        }
    }
    pub fn checkpointed(&self, clean: bool) -> LoadFrom {
        LoadFrom {
            clean,
            recovery_point: self.log.recovery_point(),
            start: self.log.start(),
            hw: self.log.high_watermark(),
            cleaned: self.log.clean_point(),
        }
    }
    pub fn load(&mut self, from: LoadFrom) -> Recovered {
        let (log, recovered) = Log::load(&mut self.disk, self.dir, from, &mut self.guards, &self.policy).unwrap();
        self.log = log;
        self.settle();
        recovered
    }
    /// The checkpoint of recovery points is written and flushed, as the broker does after each cut.
    pub fn settle(&mut self) {
        if let Some(generation) = self.log.lowered() {
            self.log.on_point_durable(generation);
        }
    }
    pub fn stop_clean(&mut self) {
        let mut wants = Vec::new();
        let target = self.log.plan_clean_stop(&mut self.disk, &mut self.guards, &mut wants).unwrap();
        self.obey(&wants);
        self.log.on_flushed(&mut self.guards, target);
    }
    /// All batches from the log start on.
    pub fn batches(&self) -> Vec<Bytes> {
        let mut all = Vec::new();
        let each = |batch: &BatchView<'_>| all.push(Bytes::copy_from_slice(batch.bytes()));
        self.log.for_each_batch(&self.disk, self.log.start(), each).unwrap();
        all
    }
    pub fn epochs(&self) -> Vec<(i32, i64)> {
        self.log.epochs().entries().iter().map(|entry| (entry.epoch.0, entry.start.0)).collect()
    }
    pub fn bounds(&self) -> (i64, i64, i64) {
        (self.log.start().0, self.log.high_watermark().0, self.log.end().0)
    }
    pub fn files(&self, which: fn(&FileName) -> bool) -> usize {
        self.disk.list(self.dir).iter().filter(|name| which(name)).count()
    }
    pub fn last_sequence(&self, producer: i64) -> Option<i32> {
        self.log.producers().get(ProducerId(producer)).map(|entry| entry.last_sequence)
    }
}

pub(super) fn is_snapshot(name: &FileName) -> bool {
    matches!(name, FileName::ProducerSnapshot(_))
}

/// Segments of a few batches, so that everything that rolling brings is met.
pub(super) fn tiny() -> LogPolicy {
    LogPolicy { segment_bytes: 300, index_interval_bytes: 100, ..LogPolicy::default() }
}
