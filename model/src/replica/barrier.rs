//! The replica barrier of a mirror leader (spec 3.7): after a cut, wait until no relevant replica is longer than the leader.
//!
//! A follower counts only with a position from a fetch in the present leader epoch (decision 31): before, nothing is known of
//! it, and silence is not agreement.

use crate::guards::{alignment, prototype as quirk, replication as guard};
use crate::ids::{LeaderEpoch, Nanos, Now, Offset, PartitionIx};
use crate::log::{AbortedRange, Lowered};
use crate::ports::{Cx, DiskError};
use crate::replica::fetch_session::SessionSlot;
use crate::replica::partition::{mutant, Replicas, NONE};
use crate::states::LastPosition;
use crate::trace::{CutCause, Trace};
use crate::wire::errors::ErrorCode;

/// What a leader's barrier waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Barrier {
    /// Nothing.
    #[default]
    None,
    /// The maximal ISR and whoever is about to join it.
    InSync,
    /// Every replica, and all of them in the ISR (unclean support on).
    All,
}

impl Replicas {
    /// Starts a barrier at a leader. True if it is reached at once; else [`Self::take_converged`] names the partition when it
    /// is. It ends without news when the leader epoch does, and there is none at a broker that does not lead.
    pub fn start_barrier(&mut self, now: Now, partition: PartitionIx, all_replicas: bool, cx: &mut Cx) -> bool {
        let Some(slot) = self.slot(partition) else { return false };
        let Some(lead) = self.lead(slot) else { return false };
        self.leaders[lead].barrier = if all_replicas { Barrier::All } else { Barrier::InSync };
        self.check_barrier(slot, now.mono, cx);
        if self.leaders[lead].barrier != Barrier::None {
            if cx.guards.admits(alignment::BarrierIsKept, false) {
                self.leaders[lead].barrier = Barrier::None; // the mutant looks once
            }
            return false;
        }
        self.converged.pop();
        true
    }

    /// Gives a barrier up.
    pub fn cancel_barrier(&mut self, partition: PartitionIx) {
        if let Some(lead) = self.slot(partition).and_then(|slot| self.lead(slot)) {
            self.leaders[lead].barrier = Barrier::None;
        }
    }

    /// The partitions whose barrier was reached since the last call.
    pub fn take_converged(&mut self) -> Vec<PartitionIx> {
        std::mem::take(&mut self.converged)
    }

    pub(crate) fn check_barrier(&mut self, slot: usize, now: Nanos, cx: &mut Cx) {
        let Some(lead) = self.lead(slot) else { return };
        let leader = &self.leaders[lead];
        if leader.barrier == Barrier::None || self.is_marking(slot) {
            return;
        }
        let Some(end) = self.logs[slot].as_ref().map(|log| log.end()) else { return };
        let all = leader.barrier == Barrier::All;
        if leader.isr.count_ones() < self.min_isr(self.hot[slot].topic, leader.replicas.len())
            || (all && leader.isr.count_ones() as usize != leader.replicas.len())
        {
            return;
        }
        let maximal = leader.maximal_isr();
        for follower in &leader.followers {
            let relevant = all
                || maximal & leader.bit(follower.broker) != 0
                || (self.caught_up(follower, end, now) && self.eligible(follower));
            if !relevant {
                continue;
            }
            let known = follower.position != Offset::UNKNOWN || cx.guards.quirk(quirk::BarrierCountsUnknown);
            if !cx.guards.admits(guard::BarrierNeedsPosition, known) || follower.position > end {
                return;
            }
        }
        self.converged.push(self.hot[slot].partition);
        self.leaders[lead].barrier = Barrier::None;
    }

    /// Cuts a mirror leader's log, to the batch border at or below `to`. Positions above the cut are forgotten: what those
    /// followers hold there is unknown until they fetched again.
    ///
    /// # Errors
    /// The disk's.
    pub fn truncate_mirror_leader(
        &mut self,
        now: Now,
        partition: PartitionIx,
        to: Offset,
        cause: CutCause,
        cx: &mut Cx,
    ) -> Result<(), DiskError> {
        let Some(slot) = self.slot(partition) else { return Ok(()) };
        if self.cut(slot, to, cause, now, cx)? {
            self.leader_was_cut(slot, cx);
        }
        Ok(())
    }

    /// Cuts a mirror leader's log to where mirroring ended: where the position's epoch ends in this log, or at its offset,
    /// whichever is lower (spec 3.6, 3.7). Both are needed: an epoch that this log knows may have grown here afterwards, and
    /// what lies below the offset may have been replaced by an unclean election. An epoch that it does not know at all leaves
    /// nothing.
    ///
    /// # Errors
    /// The disk's.
    pub fn align_mirror_leader(
        &mut self,
        now: Now,
        partition: PartitionIx,
        position: LastPosition,
        cx: &mut Cx,
    ) -> Result<(), DiskError> {
        let Some(log) = self.log(partition) else { return Ok(()) };
        let by_epoch = log.end_offset_for(position.epoch).end;
        let mut by_epoch = if by_epoch < Offset::ZERO { log.start() } else { by_epoch };
        let mut to = log.end();
        if by_epoch < position.offset.min(to) && cx.guards.quirk(quirk::FailbackByOffsetOnly) {
            by_epoch = to;
        }
        if !cx.guards.admits(alignment::PositionEpochCuts, to <= by_epoch) {
            to = by_epoch;
        }
        if !cx.guards.admits(alignment::PositionOffsetCuts, to <= position.offset) {
            to = position.offset;
        }
        if to >= log.end() {
            return Ok(());
        }
        // 1. A failed-over topic is compacted: local records take mirrored ones of their keys away, on some replica if not on this
        // one. 2. It becomes a copy again, and the local records are cut. 3. The keys have no value here any more, and the source
        // does not send it again. So what may have been compacted with records that go is copied anew.
        if !cx.guards.admits(alignment::CompactedIsCopiedAnew, !self.may_have_superseded(partition, to, cx)?) {
            return self.discard_mirror_log(now, partition, cx);
        }
        // 1. A stop aborts what is open. 2. The records of that transaction are aborted ones: compaction takes them. 3. The copy goes
        // on, and the stop's marker is cut. 4. The source commits the transaction, and does not send its records again.
        if !cx.guards.admits(alignment::AbortedHereIsCopiedAnew, !self.may_have_aborted(partition, to)) {
            return self.discard_mirror_log(now, partition, cx);
        }
        self.truncate_mirror_leader(now, partition, to, CutCause::Alignment, cx)
    }

    /// Whether a compacted log has records from `from` on.
    fn may_have_superseded(&self, partition: PartitionIx, from: Offset, cx: &Cx) -> Result<bool, DiskError> {
        let (Some(slot), Some(log)) = (self.slot(partition), self.log(partition)) else { return Ok(false) };
        if !self.topic(self.hot[slot].topic).is_some_and(|topic| topic.log.compact) {
            return Ok(false);
        }
        let mut found = false;
        let read = log.for_each_batch(&*cx.disk, from, |batch| found |= !batch.is_control());
        read.map(|()| found).map_err(|_| DiskError::Io)
    }

    /// Whether a marker from `from` on aborts records below it in a compacted log.
    fn may_have_aborted(&self, partition: PartitionIx, from: Offset) -> bool {
        let (Some(slot), Some(log)) = (self.slot(partition), self.log(partition)) else { return false };
        let reaches = |range: &AbortedRange| range.first < from && from <= range.last;
        self.topic(self.hot[slot].topic).is_some_and(|topic| topic.log.compact)
            && log.producers().aborted().iter().any(reaches)
    }

    /// Empties the log of a leader that is about to mirror and has nothing in common with its source that is known: the copy
    /// begins at 0.
    ///
    /// # Errors
    /// The disk's.
    pub fn discard_mirror_log(&mut self, now: Now, partition: PartitionIx, cx: &mut Cx) -> Result<(), DiskError> {
        let Some(log) = self.log(partition) else { return Ok(()) };
        if log.start() > Offset::ZERO {
            return self.restart_mirror_leader(partition, Offset::ZERO, CutCause::Alignment, cx);
        }
        if log.end() == Offset::ZERO && log.latest_epoch() == LeaderEpoch::NONE {
            return Ok(());
        }
        self.truncate_mirror_leader(now, partition, Offset::ZERO, CutCause::Alignment, cx)
    }

    /// Empties a mirror leader's log and lets it begin at `at` (the source's log start passed everything held here).
    ///
    /// # Errors
    /// The disk's.
    pub fn restart_mirror_leader_at(
        &mut self,
        _now: Now,
        partition: PartitionIx,
        at: Offset,
        cx: &mut Cx,
    ) -> Result<(), DiskError> {
        self.restart_mirror_leader(partition, at, CutCause::OutOfRange, cx)
    }

    fn restart_mirror_leader(
        &mut self,
        partition: PartitionIx,
        at: Offset,
        cause: CutCause,
        cx: &mut Cx,
    ) -> Result<(), DiskError> {
        let Some(slot) = self.slot(partition) else { return Ok(()) };
        self.restart_at(slot, at, cause, cx)?;
        self.leader_was_cut(slot, cx);
        Ok(())
    }

    fn leader_was_cut(&mut self, slot: usize, cx: &mut Cx) {
        let Some(lead) = self.lead(slot) else { return };
        // Offsets that were cut are filled again, with other records: the watermark would pass them for nobody's good.
        if !cx.guards.admits(guard::CutFailsWaits, self.leaders[lead].waits.0 == NONE) {
            self.fail_waits(lead, ErrorCode::NotLeaderOrFollower);
        }
        let end = self.logs[slot].as_ref().map_or(Offset::ZERO, |log| log.end());
        let leader = &mut self.leaders[lead];
        // 1. A leader's epoch starts at 2. 2. It cuts its log to 0, and appends one record. 3. A follower that has it all is at 1: it
        // must not wait for 2, nor a client for an end that is past it.
        if leader.epoch_start > end && !cx.guards.admits(guard::CutLowersEpochStart, false) {
            leader.epoch_start = end;
        }
        for follower in &mut leader.followers {
            if follower.position > end && !mutant(cx.guards, guard::BarrierNeedsPosition, true) {
                follower.position = Offset::UNKNOWN;
                follower.end_at_fetch = end;
            }
        }
        for watcher in &leader.watchers {
            self.sessions.touch(*watcher, SessionSlot::URGENT | SessionSlot::NEWS, 0);
        }
    }

    /// Cuts a log to `to` and tells the trace.
    pub(crate) fn cut(
        &mut self,
        slot: usize,
        to: Offset,
        cause: CutCause,
        _now: Now,
        cx: &mut Cx,
    ) -> Result<bool, DiskError> {
        let partition = self.hot[slot].partition;
        let Some(log) = self.logs[slot].as_mut() else { return Ok(false) };
        let (from, hw) = (log.end(), log.high_watermark());
        let cut = match log.truncate_to(cx.disk, cx.guards, to) {
            Ok(cut) => cut,
            Err(error) => return Err(self.cut_failed(error, cx)),
        };
        if cut {
            let (end, now_hw) = (log.end(), log.high_watermark());
            cx.trace(Trace::Truncated { partition, from, to: end, cause });
            if now_hw != hw {
                self.watermark_moved(slot, hw, now_hw, cx);
            }
            self.note_lowered(slot);
            self.mark_log_dirty(slot);
        }
        Ok(cut)
    }

    /// Empties a log and lets it begin at `at`.
    pub(crate) fn restart_at(
        &mut self,
        slot: usize,
        at: Offset,
        cause: CutCause,
        cx: &mut Cx,
    ) -> Result<(), DiskError> {
        let partition = self.hot[slot].partition;
        let Some(log) = self.logs[slot].as_mut() else { return Ok(()) };
        let (from, hw) = (log.end(), log.high_watermark());
        if let Err(error) = log.truncate_fully_and_start_at(cx.disk, cx.guards, at) {
            return Err(self.cut_failed(error, cx));
        }
        // The watermark must not stay below the new start (R19).
        let now_hw = log.high_watermark();
        cx.trace(Trace::Truncated { partition, from, to: at.min(from), cause });
        cx.trace(Trace::LogStartMoved { partition, to: at });
        if now_hw != hw {
            self.watermark_moved(slot, hw, now_hw, cx);
        }
        self.note_lowered(slot);
        self.mark_log_dirty(slot);
        // Behind a gap the recovery point is below the start: who asks for flush.messages waits for a flush, and no append may come.
        self.note_flush_due(slot);
        Ok(())
    }

    /// A cut failed, perhaps half way: the log is offline, and its end is not what it was. 1. A leader answers by what it has left. 2. Its
    /// followers cut what was committed.
    fn cut_failed(&mut self, error: DiskError, cx: &mut Cx) -> DiskError {
        if !cx.guards.admits(guard::FailedCutEndsBroker, false) {
            self.disk_failed = true;
        }
        error
    }

    fn note_lowered(&mut self, slot: usize) {
        if self.logs[slot].as_ref().is_some_and(|log| log.lowered().is_some()) {
            self.lowered.push(slot as u32);
        }
    }

    /// The replicas whose recovery point, start, clean point or watermark fell in a cut since the last call.
    pub fn take_lowered(&mut self) -> Vec<(PartitionIx, Lowered)> {
        let mut slots = std::mem::take(&mut self.lowered);
        slots.sort_unstable();
        slots.dedup();
        let of = |slot: u32| {
            let log = self.logs[slot as usize].as_ref()?;
            Some((self.hot[slot as usize].partition, log.points()?))
        };
        slots.into_iter().filter_map(of).collect()
    }

    /// A checkpoint that was written in this generation of the log is durable.
    pub fn on_point_durable(&mut self, partition: PartitionIx, generation: u32) {
        if let Some(log) = self.slot(partition).and_then(|slot| self.logs[slot].as_mut()) {
            log.on_point_durable(generation);
        }
    }
}
