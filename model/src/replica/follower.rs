//! What a follower does to its log: append what its leader sent, cut where the leader says that they part.

use crate::guards::{log as log_guard, replication as guard};
use crate::ids::{LeaderEpoch, Now, Offset};
use crate::log::{AppendError, AppendInfo};
use crate::ports::{Cx, DiskError};
use crate::replica::partition::{mutant, Hot, Replicas};
use crate::trace::{CutCause, Origin, Trace};
use crate::wire::messages::EpochEnd;
use bytes::Bytes;

impl Replicas {
    /// Appends what a leader sent, then follows its watermark and log start as far as this log goes. `bound` is the highest
    /// epoch that the batches may have (R14; for followers of a mirror leader spec 3.8).
    #[allow(clippy::too_many_arguments)] // one entry of a fetch answer
    pub(crate) fn follow(
        &mut self,
        slot: usize,
        batches: &[Bytes],
        bound: LeaderEpoch,
        leader_hw: Offset,
        leader_start: Offset,
        now: Now,
        cx: &mut Cx,
    ) -> Result<Option<AppendInfo>, AppendError> {
        let info = if batches.is_empty() {
            None
        } else {
            Some(self.append_copied(slot, batches, bound, Origin::Replication, now, cx)?)
        };
        self.follow_watermark(slot, leader_hw, cx);
        self.raise_log_start(slot, leader_start, now, cx);
        Ok(info)
    }

    /// The leader's watermark, as far as this log goes; it only rises (S7).
    pub(crate) fn follow_watermark(&mut self, slot: usize, leader_hw: Offset, cx: &mut Cx) {
        let Some(log) = self.logs[slot].as_ref() else { return };
        if leader_hw > log.high_watermark() {
            self.set_watermark(slot, leader_hw, cx);
        }
    }

    /// Follows a leader's (or source's) log start, never above the watermark (S21).
    pub(crate) fn raise_log_start(&mut self, slot: usize, to: Offset, _now: Now, cx: &mut Cx) {
        let Some(log) = self.logs[slot].as_mut() else { return };
        // Who lets it pass here lets it pass in the log.
        let above = to > log.high_watermark();
        let to = if mutant(cx.guards, log_guard::LogStartWithinHighWatermark, above) {
            to
        } else {
            to.min(log.high_watermark())
        };
        if to <= log.start() {
            return;
        }
        if log.maybe_raise_log_start(cx.guards, to) {
            let partition = self.hot[slot].partition;
            cx.trace(Trace::LogStartMoved { partition, to });
            self.mark_log_dirty(slot);
            self.log_start_moved(slot);
        }
    }

    /// Cuts as a diverging answer asks: to the smaller of the leader's and the own end of the epoch that the answer names
    /// (stock `getOffsetTruncationState`). Returns the new end.
    pub(crate) fn cut_by_epoch(
        &mut self,
        slot: usize,
        leader: EpochEnd,
        now: Now,
        cx: &mut Cx,
    ) -> Result<Offset, DiskError> {
        let Some(log) = self.logs[slot].as_ref() else { return Err(DiskError::NotFound) };
        let end = log.end();
        let own = if leader.epoch == LeaderEpoch::NONE { None } else { own_end_of(log, leader.epoch) };
        let to = match own {
            _ if leader.end == Offset::UNKNOWN => end,
            Some(own) if !mutant(cx.guards, guard::DivergingEpochNamed, own < leader.end.min(end)) => {
                own.min(leader.end).min(end)
            }
            // Before everything that this log holds, or an answer without an epoch.
            _ => leader.end.min(end),
        };
        // Also at the end: an epoch in which this broker led and wrote nothing may be all that differs.
        self.cut(slot, to, CutCause::Divergence, now, cx)?;
        Ok(self.logs[slot].as_ref().map_or(to, |log| log.end()))
    }

    /// The replica failed: it neither leads nor follows until the broker restarts.
    pub(crate) fn take_offline(&mut self, slot: usize) {
        self.hot[slot].flags |= Hot::OFFLINE;
        self.disk_failed = true;
    }

    /// Whether a log failed. All logs are on one disk: a broker that lost it cannot go on (stock `LogManager` halts when the
    /// last log directory failed), and only by its end do its leaderships go to others.
    #[must_use]
    pub fn disk_failed(&self) -> bool {
        self.disk_failed
    }
}

/// The own end of the largest epoch not above `epoch`; `None` if this log begins later or knows no epochs.
fn own_end_of(log: &crate::log::Log, epoch: LeaderEpoch) -> Option<Offset> {
    let latest = log.latest_epoch();
    if latest == LeaderEpoch::NONE {
        return None;
    }
    if epoch >= latest {
        return Some(log.end());
    }
    let own = log.end_offset_for(epoch);
    (own.epoch != LeaderEpoch::NONE && own.end != Offset::UNKNOWN).then_some(own.end)
}
