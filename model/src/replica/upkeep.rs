//! What a broker does for its logs from time to time: checkpoints of what changed, flushes, retention, DeleteRecords.

use crate::ids::{Nanos, Now, Offset, PartitionIx};
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
        let upto = if self.is_marking(slot) { FlushUpto::Cut } else { upto };
        let log = self.logs[slot].as_mut()?;
        let planned = log.plan_flush(cx.disk, cx.guards, upto, wants);
        let planned = planned.inspect_err(|_| self.take_offline(slot)).ok().flatten()?;
        self.marking_planned(partition);
        Some(planned)
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

    /// The partitions with so many, or so old, unflushed records that a flush is due.
    pub fn take_flush_due(&mut self) -> Vec<PartitionIx> {
        std::mem::take(&mut self.flush_due)
    }

    /// Stock `UnifiedLog.append`: `flush.messages` records that are not durable ask for a flush.
    #[inline]
    pub(crate) fn note_flush_due(&mut self, slot: usize) {
        if self.awaits_flush(slot) {
            self.flush_due.push(self.hot[slot].partition);
        }
    }

    /// Whether a flush of `flush.messages` records is due or under way. Stock's append ends with that flush; here the replica
    /// does not count as having the records before it has ended.
    #[inline]
    pub(crate) fn awaits_flush(&self, slot: usize) -> bool {
        let Some(policy) = self.topics.get(self.hot[slot].topic.0 as usize).and_then(Option::as_ref) else {
            return false;
        };
        let messages = policy.log.flush_messages;
        messages != i64::MAX
            && self.logs[slot].as_ref().is_some_and(|log| log.end().0 - log.recovery_point().0 >= messages)
    }

    /// Stock `LogManager.flushDirtyLogs`: finds the logs whose last flush is longer ago than `flush.ms`.
    pub fn find_old_unflushed(&mut self, now: Nanos) {
        for slot in 0..self.hot.len() {
            let hot = &self.hot[slot];
            let (Some(log), Some(policy)) =
                (self.logs[slot].as_ref(), self.topics.get(hot.topic.0 as usize).and_then(Option::as_ref))
            else {
                continue;
            };
            if policy.log.flush_ms == i64::MAX || !log.has_unflushed() {
                continue;
            }
            let last = *self.flushed_at.entry(slot as u32).or_insert(now);
            if now.since(last) >= Nanos::from_millis(policy.log.flush_ms.clamp(0, 1 << 40) as u64) {
                self.flush_due.push(hot.partition);
            }
        }
    }

    /// A flush that a plan asked for ended.
    pub fn flushed(&mut self, partition: PartitionIx, target: FlushTarget, ok: bool, now: Nanos, cx: &mut Cx) {
        let Some(slot) = self.slot(partition) else { return };
        let Some(log) = self.logs[slot].as_mut() else { return };
        if !ok {
            log.set_offline();
            return self.take_offline(slot);
        }
        let this_lineage = log.is_of_this_lineage(target);
        if log.on_flushed(cx.guards, target) {
            self.mark_log_dirty(slot);
            if let Some(at) = self.flushed_at.get_mut(&(slot as u32)) {
                *at = now;
            }
        }
        self.marking_flushed(slot, this_lineage, now, cx);
        // What came, or was cut, while it was under way may ask for the next.
        self.note_flush_due(slot);
        self.advance_watermark(slot, now, cx);
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
