//! What a broker does for its logs from time to time: checkpoints of what changed, flushes, retention, DeleteRecords.

use crate::ids::{Now, Offset, PartitionIx};
use crate::log::{FlushTarget, FlushUpto, FlushWant};
use crate::ports::Cx;
use crate::replica::fetch_session::SessionSlot;
use crate::replica::partition::{Hot, Replicas};
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;

impl Replicas {
    /// The replicas whose watermark changed since the last call.
    pub fn take_dirty_watermarks(&mut self) -> Vec<(PartitionIx, Offset)> {
        let dirty = std::mem::take(&mut self.hw_dirty);
        let mut changed = Vec::with_capacity(dirty.len());
        for slot in dirty {
            let hot = &mut self.hot[slot as usize];
            if hot.flags & Hot::HW_DIRTY == 0 {
                continue;
            }
            hot.flags &= !Hot::HW_DIRTY;
            if let Some(log) = self.logs[slot as usize].as_ref() {
                changed.push((hot.partition, log.high_watermark()));
            }
        }
        changed
    }

    /// The replicas whose log changed since the last call: recovery point and log start.
    pub fn take_dirty_logs(&mut self) -> Vec<(PartitionIx, Offset, Offset)> {
        let dirty = std::mem::take(&mut self.log_dirty);
        let mut changed = Vec::with_capacity(dirty.len());
        for slot in dirty {
            let hot = &mut self.hot[slot as usize];
            if hot.flags & Hot::LOG_DIRTY == 0 {
                continue;
            }
            hot.flags &= !Hot::LOG_DIRTY;
            if let Some(log) = self.logs[slot as usize].as_ref() {
                changed.push((hot.partition, log.recovery_point(), log.start()));
            }
        }
        changed
    }

    /// The partitions that closed a segment since the last call.
    pub fn take_rolled(&mut self) -> Vec<PartitionIx> {
        std::mem::take(&mut self.rolled)
    }

    /// Says what to flush of a log; `None` if there is nothing to do.
    pub fn plan_flush(
        &mut self,
        partition: PartitionIx,
        upto: FlushUpto,
        wants: &mut Vec<FlushWant>,
        cx: &mut Cx,
    ) -> Option<FlushTarget> {
        let slot = self.slot(partition)?;
        let log = self.logs[slot].as_mut()?;
        let planned = log.plan_flush(cx.disk, cx.guards, upto, wants);
        planned.inspect_err(|_| self.take_offline(slot)).ok().flatten()
    }

    /// Says what to flush of a log before the clean-shutdown marker.
    pub fn plan_clean_stop(
        &mut self,
        partition: PartitionIx,
        wants: &mut Vec<FlushWant>,
        cx: &mut Cx,
    ) -> Option<FlushTarget> {
        let slot = self.slot(partition)?;
        let log = self.logs[slot].as_mut()?;
        let planned = log.plan_clean_stop(cx.disk, cx.guards, wants);
        planned.inspect_err(|_| self.take_offline(slot)).ok()
    }

    /// A flush that a plan asked for ended.
    pub fn flushed(&mut self, partition: PartitionIx, target: FlushTarget, ok: bool, cx: &mut Cx) {
        let Some(slot) = self.slot(partition) else { return };
        let Some(log) = self.logs[slot].as_mut() else { return };
        if !ok {
            log.set_offline();
            self.take_offline(slot);
        } else if log.on_flushed(cx.guards, target) {
            self.mark_log_dirty(slot);
        }
    }

    /// One round of retention over all logs.
    pub fn apply_retention(&mut self, now: Now, cx: &mut Cx) {
        for slot in 0..self.hot.len() {
            let topic = self.hot[slot].topic;
            let (Some(log), Some(policy)) =
                (self.logs[slot].as_mut(), self.topics.get(topic.0 as usize).and_then(Option::as_ref))
            else {
                continue;
            };
            match log.apply_retention(cx.disk, cx.guards, &policy.log, now) {
                Ok(Some(to)) => self.log_start_rose(slot, to, cx),
                Ok(None) => {}
                Err(_) => self.take_offline(slot),
            }
        }
    }

    /// Forgets producers that were silent for longer than their topic's policy says.
    pub fn expire_producers(&mut self, now: Now) {
        for slot in 0..self.hot.len() {
            let topic = self.hot[slot].topic;
            if let (Some(log), Some(policy)) =
                (self.logs[slot].as_mut(), self.topics.get(topic.0 as usize).and_then(Option::as_ref))
            {
                log.expire_producers(now.wall_ms, policy.log.producer_expiration_ms);
            }
        }
    }

    /// DeleteRecords at a leader: the log start afterwards. Followers learn it with their next fetch.
    pub fn delete_records(&mut self, partition: PartitionIx, upto: Offset, cx: &mut Cx) -> (ErrorCode, Offset) {
        let slot = match self.asked(partition, crate::ids::LeaderEpoch::NONE) {
            Ok(slot) => slot,
            Err(error) => return (error, Offset::UNKNOWN),
        };
        let Some(log) = self.logs[slot].as_mut() else { return (ErrorCode::KafkaStorageError, Offset::UNKNOWN) };
        let before = log.start();
        match log.delete_records(cx.guards, upto) {
            Ok(start) => {
                if start != before {
                    self.log_start_rose(slot, start, cx);
                }
                (ErrorCode::None, start)
            }
            Err(_) => (ErrorCode::OffsetOutOfRange, Offset::UNKNOWN),
        }
    }

    fn log_start_rose(&mut self, slot: usize, to: Offset, cx: &mut Cx) {
        cx.trace(Trace::LogStartMoved { partition: self.hot[slot].partition, to });
        self.mark_log_dirty(slot);
        self.log_start_moved(slot);
    }

    /// Readers learn of a new log start with their next answer.
    pub(crate) fn log_start_moved(&mut self, slot: usize) {
        let Some(lead) = self.lead(slot) else { return };
        for watcher in &self.leaders[lead].watchers {
            self.sessions.touch(*watcher, SessionSlot::NEWS, 0);
        }
    }

    /// All hosted partitions, in order of slot.
    pub fn partitions(&self) -> impl Iterator<Item = PartitionIx> + '_ {
        self.iter().map(|replica| replica.partition())
    }
}
