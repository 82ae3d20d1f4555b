//! Flushes, checkpoints and periodic chores of a broker, and the end of a controlled shutdown.

use crate::broker::broker::Broker;
use crate::broker::lanes::{kind, timer, Chore};
use crate::broker::lifecycle::Stage;
use crate::guards::points::Point;
use crate::guards::{log as log_guard, replication as guard};
use crate::ids::{BrokerEpoch, Nanos, Now, Offset, PartitionIx};
use crate::log::checkpoint::{encode_clean_shutdown, write_small, Checkpoint, PartitionKey};
use crate::log::{FlushTarget, FlushUpto, FlushWant, Lowered};
use crate::ports::{Cx, DirId, DiskError, Effect, ExitReason, FileId, FileName, FlushToken};
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};

/// Times beyond this many milliseconds, 35 years, are never.
const MS_MAX: i64 = 1 << 40;

/// What a group of flushes is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// A log becomes durable up to a target.
    Log(PartitionIx, FlushTarget),
    /// The same, as part of a controlled shutdown.
    LastFlush(PartitionIx, FlushTarget),
    /// The clean-shutdown marker: then the process ends.
    Marker,
    /// The removal of the marker of the stop before: then the broker registers.
    MarkerGone,
    /// The checkpoint of recovery points that fell in cuts.
    Cuts,
    /// What the cleaner wrote.
    Clean(PartitionIx),
    /// A log's directory, after a swap: it is clean up to here.
    Swapped(PartitionIx, Offset),
}

/// A group of flushes under way.
#[derive(Clone, Copy, Debug)]
struct Running {
    job: Job,
    left: u32,
    ok: bool,
}

/// The flushes under way, and the checkpoint files.
#[derive(Clone, Debug, Default)]
pub struct Flushes {
    next: u64,
    jobs: BTreeMap<u64, Running>,
    tokens: BTreeMap<FlushToken, u64>,
    /// By job: logs that were cut, and the generation in which.
    cuts: BTreeMap<u64, Vec<(PartitionKey, u32)>>,
    pub(crate) ended: VecDeque<(FlushToken, Result<(), DiskError>)>,
    pub(crate) root: Option<DirId>,
    pub(crate) watermarks: Option<Checkpoint>,
    pub(crate) recovery_points: Option<Checkpoint>,
    pub(crate) log_starts: Option<Checkpoint>,
    pub(crate) clean_points: Option<Checkpoint>,
}

impl Flushes {
    pub(crate) fn owns(&self, token: FlushToken) -> bool {
        // Zero: nobody waits for it.
        token.0 == 0 || self.tokens.contains_key(&token)
    }

    pub(crate) fn start(&mut self, job: Job, wants: &[FlushWant], cx: &mut Cx) -> u64 {
        let root = self.root;
        self.next += 1;
        let id = self.next;
        self.jobs.insert(id, Running { job, left: wants.len() as u32, ok: true });
        for want in wants {
            self.next += 1;
            let token = FlushToken(self.next);
            self.tokens.insert(token, id);
            cx.effect(match *want {
                FlushWant::File(file) => Effect::Flush { file, token },
                FlushWant::Dir(dir) => Effect::FlushDir { dir, token },
                // Without a root nothing was loaded, and there is no log that could want this.
                FlushWant::Root => Effect::FlushDir { dir: root.unwrap_or(DirId(0)), token },
            });
        }
        id
    }

    /// The job that this was the last flush of, and whether all went well.
    fn end(&mut self, token: FlushToken, result: Result<(), DiskError>) -> Option<(u64, Job, bool)> {
        let id = self.tokens.remove(&token)?;
        let running = self.jobs.get_mut(&id)?;
        running.left = running.left.saturating_sub(1);
        running.ok &= result.is_ok();
        if running.left > 0 {
            return None;
        }
        self.jobs.remove(&id).map(|r| (id, r.job, r.ok))
    }

    /// The marker of the stop before may still be there after a power loss.
    pub(crate) fn marker_may_stand(&self) -> bool {
        self.jobs.values().any(|r| r.job == Job::MarkerGone)
    }

    fn last_flushes(&self) -> bool {
        self.jobs.values().any(|r| matches!(r.job, Job::LastFlush(..)))
    }
}

impl Broker {
    pub(crate) fn start_chores(&mut self, now: Now, cx: &mut Cx) {
        for chore in Chore::ALL {
            self.arm_chore(chore, now, cx);
        }
    }

    fn arm_chore(&self, chore: Chore, now: Now, cx: &mut Cx) {
        let c = &self.config.configs;
        if chore == Chore::Flush && c.log_flush_scheduler_interval_ms == i64::MAX {
            return; // the default: never
        }
        let ms = match chore {
            Chore::Flush => c.log_flush_scheduler_interval_ms.clamp(1, MS_MAX) as u64,
            Chore::Isr => c.replica_lag_time_max_ms / 2,
            Chore::Watermarks => c.replica_high_watermark_checkpoint_interval_ms,
            Chore::RecoveryPoints => c.log_flush_offset_checkpoint_interval_ms,
            Chore::Retention => c.log_retention_check_interval_ms,
            Chore::Clean => c.log_cleaner_backoff_ms,
            // Stock `producer.id.expiration.check.interval.ms`.
            Chore::Producers => 600_000,
        };
        let interval = Nanos::from_millis(ms.max(1)).0;
        let points = &mut cx.guards.points;
        let wait = if points.fires(Point::ChoreSoon) {
            interval / 8
        } else if points.fires(Point::ChoreLate) {
            interval + interval / 2
        } else {
            interval
        };
        cx.set_timer(timer(kind::CHORE, chore as u64), now.mono + Nanos(wait.max(1)));
    }

    /// One task of the chores lane: finished flushes, else one chore.
    pub(crate) fn run_chores(&mut self, now: Now, cx: &mut Cx) {
        while let Some((token, result)) = self.flushes.ended.pop_front() {
            if let Some((id, job, ok)) = self.flushes.end(token, result) {
                self.flushed(id, job, ok, now, cx);
            }
        }
        let Some(chore) = self.chores.pop_front() else { return };
        match chore {
            Chore::Isr => self.replicas.check_isr(now, cx),
            Chore::Flush => self.replicas.find_old_unflushed(now.mono),
            Chore::Watermarks => self.checkpoint_watermarks(cx),
            Chore::RecoveryPoints => self.checkpoint_logs(cx),
            Chore::Retention => self.replicas.apply_retention(now, cx),
            Chore::Producers => self.replicas.expire_producers(now),
            Chore::Clean => self.clean_logs(now, cx),
        }
        self.arm_chore(chore, now, cx);
    }

    /// After a roll: what was closed becomes durable, as in Kafka. And all of a log whose topic's `flush.messages` or
    /// `flush.ms` says so.
    pub(crate) fn flush_due(&mut self, now: Now, cx: &mut Cx) {
        if cx.guards.points.fires(Point::CheckpointAtOnce) {
            self.checkpoint_watermarks(cx);
        }
        if self.replicas.rolled.is_empty() && self.replicas.flush_due.is_empty() {
            return;
        }
        for partition in self.replicas.take_flush_due() {
            self.flush_log(partition, FlushUpto::End, now, cx);
        }
        for partition in self.replicas.take_rolled() {
            self.flush_log(partition, FlushUpto::Rolled, now, cx);
        }
    }

    fn flush_log(&mut self, partition: PartitionIx, upto: FlushUpto, now: Now, cx: &mut Cx) {
        let mut wants = Vec::new();
        if let Some(target) = self.replicas.plan_flush(partition, upto, &mut wants, cx) {
            self.flush(Job::Log(partition, target), &wants, now, cx);
        }
    }

    fn flush(&mut self, job: Job, wants: &[FlushWant], now: Now, cx: &mut Cx) {
        if wants.is_empty() {
            if let Job::Log(partition, target) | Job::LastFlush(partition, target) = job {
                self.replicas.flushed(partition, target, true, now.mono, cx);
            }
            return;
        }
        self.flushes.start(job, wants, cx);
    }

    fn flushed(&mut self, id: u64, job: Job, ok: bool, now: Now, cx: &mut Cx) {
        match job {
            Job::Cuts => self.cuts_are_durable(id, ok, cx),
            Job::Clean(partition) => self.swap_cleaned(partition, ok, cx),
            Job::Swapped(partition, upto) if ok => self.checkpoint_cleaned(partition, upto, cx),
            Job::Swapped(..) => cx.effect(Effect::Exit(ExitReason::DiskFailed)),
            Job::Log(partition, target) => self.replicas.flushed(partition, target, ok, now.mono, cx),
            Job::LastFlush(partition, target) => {
                self.replicas.flushed(partition, target, ok, now.mono, cx);
                if !ok {
                    cx.effect(Effect::Exit(ExitReason::DiskFailed));
                } else if !self.flushes.last_flushes() {
                    self.write_marker(now, cx);
                }
            }
            Job::MarkerGone if !ok => cx.effect(Effect::Exit(ExitReason::DiskFailed)),
            Job::MarkerGone if self.life.stage == Stage::Registering => self.register(now, cx),
            Job::MarkerGone => {}
            Job::Marker => {
                self.life.stage = Stage::Stopped;
                cx.effect(Effect::Exit(ExitReason::Shutdown));
            }
        }
    }

    // ---------------------------------------------------------------------------------------------------- checkpoints

    pub(crate) fn key(&self, partition: PartitionIx) -> Option<PartitionKey> {
        let p = self.image.partition(partition)?;
        Some((self.image.life(p.topic)?, p.number))
    }

    fn checkpoint_watermarks(&mut self, cx: &mut Cx) {
        let changed = self.replicas.take_dirty_watermarks();
        if changed.is_empty() {
            return;
        }
        let keyed: Vec<_> = changed.iter().filter_map(|(ix, hw)| Some((self.key(*ix)?, *hw))).collect();
        if let Some(written) = self.write_watermarks(&keyed, cx) {
            self.flush_checkpoint(written, cx);
        }
    }

    /// Writes high watermarks that moved.
    fn write_watermarks(&mut self, keyed: &[(PartitionKey, Offset)], cx: &mut Cx) -> Option<Result<FileId, DiskError>> {
        let mut file = self.flushes.watermarks.take()?;
        let written = if file.wants_rewrite(self.replicas.len()) {
            file.rewrite(cx.disk, self.all_offsets(|log| log.high_watermark()))
        } else {
            file.update(cx.disk, keyed.iter().copied())
        };
        self.flushes.watermarks = Some(file);
        Some(written)
    }

    fn checkpoint_logs(&mut self, cx: &mut Cx) {
        let changed = self.replicas.take_dirty_logs();
        if changed.is_empty() {
            return;
        }
        let keyed: Vec<(PartitionKey, Offset, Offset)> =
            changed.iter().filter_map(|(ix, point, start)| self.key(*ix).map(|key| (key, *point, *start))).collect();
        for written in self.write_points(&keyed, cx) {
            self.flush_checkpoint(written, cx);
        }
    }

    /// Writes recovery points and log starts that changed into their files.
    fn write_points(
        &mut self,
        keyed: &[(PartitionKey, Offset, Offset)],
        cx: &mut Cx,
    ) -> SmallVec<[Result<FileId, DiskError>; 2]> {
        let mut files = SmallVec::new();
        if let Some(mut file) = self.flushes.recovery_points.take() {
            files.push(if file.wants_rewrite(self.replicas.len()) {
                file.rewrite(cx.disk, self.all_offsets(|log| log.recovery_point()))
            } else {
                file.update(cx.disk, keyed.iter().map(|(key, point, _)| (*key, *point)))
            });
            self.flushes.recovery_points = Some(file);
        }
        if let Some(mut file) = self.flushes.log_starts.take() {
            files.push(if file.wants_rewrite(self.replicas.len()) {
                file.rewrite(cx.disk, self.all_offsets(|log| log.start()))
            } else {
                file.update(cx.disk, keyed.iter().map(|(key, _, start)| (*key, *start)))
            });
            self.flushes.log_starts = Some(file);
        }
        files
    }

    /// What a task ends with that cut logs below their recovery points: one write of the checkpoint for all of them. A log whose
    /// start or watermark fell with the cut has that written too: a start above its end would empty it at the next boot.
    pub(crate) fn checkpoint_cuts(&mut self, cx: &mut Cx) {
        if self.replicas.lowered.is_empty() {
            return;
        }
        let cut = self.replicas.take_lowered();
        if cx.guards.admits(log_guard::RecoveryPointDurableBeforeGrowth, false) {
            return; // the mutant: the next periodic checkpoint will say it
        }
        let keyed = cut.iter().filter_map(|(ix, points)| self.key(*ix).map(|key| (key, *points)));
        self.write_cuts(keyed.collect(), cx);
    }

    /// Writes what fell with a cut; when that is durable, the logs may grow again.
    pub(crate) fn write_cuts(&mut self, cut: Vec<(PartitionKey, Lowered)>, cx: &mut Cx) {
        if cut.is_empty() {
            return;
        }
        let keyed: Vec<_> = cut.iter().map(|(key, p)| (*key, p.recovery_point, p.start)).collect();
        let clean: Vec<_> = cut.iter().filter_map(|(key, p)| Some((*key, p.clean?))).collect();
        let watermarks: Vec<_> = cut.iter().map(|(key, p)| (*key, p.watermark)).collect();
        let mut files = self.write_points(&keyed, cx);
        if !cx.guards.admits(log_guard::WatermarkCutWithLog, false) {
            files.extend(self.write_watermarks(&watermarks, cx));
        }
        if !clean.is_empty() && !cx.guards.admits(log_guard::CleanPointCutWithLog, false) {
            files.extend(self.write_clean_points(&clean, cx));
        }
        let mut wants = vec![FlushWant::Root];
        for written in files {
            let Ok(file) = written else { return cx.effect(Effect::Exit(ExitReason::DiskFailed)) };
            wants.push(FlushWant::File(file));
        }
        let id = self.flushes.start(Job::Cuts, &wants, cx);
        self.flushes.cuts.insert(id, cut.into_iter().map(|(key, points)| (key, points.generation)).collect());
    }

    /// Writes up to where logs are clean.
    pub(crate) fn write_clean_points(
        &mut self,
        keyed: &[(PartitionKey, Offset)],
        cx: &mut Cx,
    ) -> Option<Result<FileId, DiskError>> {
        let mut file = self.flushes.clean_points.take()?;
        let written = if file.wants_rewrite(self.replicas.len()) {
            let hosted = self.replicas.iter().filter_map(|r| Some((self.key(r.partition())?, r.log.clean_point()?)));
            let found = self.found.iter().filter_map(|(key, log)| Some((*key, log.clean_point()?)));
            let others: Vec<_> = hosted.chain(found).filter(|(key, _)| keyed.iter().all(|k| k.0 != *key)).collect();
            file.rewrite(cx.disk, others.into_iter().chain(keyed.iter().copied()))
        } else {
            file.update(cx.disk, keyed.iter().copied())
        };
        self.flushes.clean_points = Some(file);
        Some(written)
    }

    fn cuts_are_durable(&mut self, id: u64, ok: bool, cx: &mut Cx) {
        let cuts = self.flushes.cuts.remove(&id).unwrap_or_default();
        if !ok {
            return cx.effect(Effect::Exit(ExitReason::DiskFailed));
        }
        for (key, generation) in cuts {
            if let Some(log) = self.found.get_mut(&key) {
                log.on_point_durable(generation);
            } else if let Some(ix) = self.image.partition_of(key.0.ix, key.1) {
                self.replicas.on_point_durable(ix, generation);
            }
        }
    }

    /// One offset of every log: hosted ones and those that nobody claimed yet (D11).
    fn all_offsets<'a>(
        &'a self,
        of: impl Fn(&crate::log::Log) -> Offset + Copy + 'a,
    ) -> impl Iterator<Item = (PartitionKey, Offset)> + 'a {
        let hosted = self.replicas.iter().filter_map(move |r| self.key(r.partition()).map(|key| (key, of(r.log))));
        hosted.chain(self.found.iter().map(move |(key, log)| (*key, of(log))))
    }

    /// Nobody waits for a checkpoint's flush: an older one only means more to look at after a crash.
    pub(crate) fn flush_checkpoint(&self, written: Result<FileId, DiskError>, cx: &mut Cx) {
        match written {
            Ok(file) => {
                cx.effect(Effect::Flush { file, token: FlushToken(0) });
                if let Some(dir) = self.flushes.root {
                    cx.effect(Effect::FlushDir { dir, token: FlushToken(0) });
                }
            }
            Err(_) => cx.effect(Effect::Exit(ExitReason::DiskFailed)),
        }
    }

    // ------------------------------------------------------------------------------------------------------- shutdown

    /// No more requests, no more fetches: every log is flushed, then the marker is written.
    pub(crate) fn flush_everything(&mut self, now: Now, cx: &mut Cx) {
        self.life.stage = Stage::Flushing;
        for conn in std::mem::take(&mut self.conns).into_keys() {
            self.replicas.connection_closed(conn);
            cx.effect(Effect::Close { conn });
        }
        let partitions: Vec<PartitionIx> = self.replicas.partitions().collect();
        for partition in partitions {
            let mut wants = Vec::new();
            if let Some(target) = self.replicas.plan_clean_stop(partition, &mut wants, cx) {
                self.flush(Job::LastFlush(partition, target), &wants, now, cx);
            }
        }
        let flushed = !self.flushes.last_flushes();
        if cx.guards.admits(guard::ShutdownFlushesFirst, flushed) {
            self.write_marker(now, cx);
        }
    }

    /// The checkpoints and the clean-shutdown marker with the broker epoch (KIP-966). A replica that is offline was not
    /// flushed: then there is no marker.
    fn write_marker(&mut self, _now: Now, cx: &mut Cx) {
        let Some(root) = self.flushes.root else { return };
        let mut wants = Vec::new();
        let files = [
            (self.flushes.watermarks.take(), 0),
            (self.flushes.recovery_points.take(), 1),
            (self.flushes.log_starts.take(), 2),
        ];
        for (file, which) in files {
            let Some(mut file) = file else { continue };
            let written = file.rewrite(
                cx.disk,
                self.all_offsets(move |log| match which {
                    0 => log.high_watermark(),
                    1 => log.recovery_point(),
                    _ => log.start(),
                }),
            );
            let Ok(file) = written else { return cx.effect(Effect::Exit(ExitReason::DiskFailed)) };
            wants.push(FlushWant::File(file));
        }
        let whole = !self.replicas.iter().any(|r| r.offline());
        if whole && self.life.epoch != BrokerEpoch(-1) {
            match write_small(cx.disk, root, FileName::CleanShutdown, encode_clean_shutdown(self.life.epoch)) {
                Ok(file) => wants.push(FlushWant::File(file)),
                Err(_) => return cx.effect(Effect::Exit(ExitReason::DiskFailed)),
            }
        }
        wants.push(FlushWant::Dir(root));
        self.flushes.start(Job::Marker, &wants, cx);
    }
}
