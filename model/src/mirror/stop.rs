//! STOPPING: how a mirrored partition becomes writable (spec 1.6, 5.2, 5.3, decisions 7, 11, 13).
//!
//! Each step is done when it is committed, and each can be taken up by another leader from what is on disk and in
//! `__mirror_state`: the position is read back if this session has one, markers are written for what is open now, the reset is
//! not repeated if the log ends in one. Who comes to lead a STOPPED partition looks whether its log still holds them. Nothing here
//! asks the source.

use crate::guards::{mirror as guard, prototype as quirk};
use crate::ids::{LeaderEpoch, Now, Offset, PartitionIx};
use crate::log::Log;
use crate::mirror::fetcher::FailCause;
use crate::mirror::manager::{MirrorManager, MirrorTask, Part};
use crate::mirror::persist::Change;
use crate::ports::{Cx, Disk};
use crate::record::control::{end_txn_marker, mirror_pid_reset};
use crate::record::{BatchView, ControlType};
use crate::states::{LastPosition, MirrorState};
use crate::trace::{CutCause, Origin, Trace};

/// What a stop awaits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StopStep {
    /// Nothing yet.
    #[default]
    Begins,
    /// The last mirrored position, to be committed.
    Position,
    /// A leader epoch above everything that was mirrored: from there on, what is local can be told from what is not.
    Epoch,
    /// Abort markers for the transactions that are open, up to this offset.
    Markers(Offset),
    /// The record that makes replicas forget the source's producers, up to this offset.
    Reset(Offset),
}

impl MirrorManager {
    /// STOPPING is committed: no batch is copied from now on.
    pub(super) fn begin_stopping(
        &mut self,
        now: Now,
        partition: PartitionIx,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        let held = self.is_fetching(partition);
        if !cx.guards.admits(guard::StopEndsFetching, !held) {
            self.stop_fetching(partition, cx);
        }
        self.cut_what_is_open(now, partition, task, cx);
        if let Some(part) = self.part_mut(partition) {
            part.source_hw = Offset::UNKNOWN;
        }
        task.replicas.watch_watermark(partition, true);
        self.stopping.insert(partition);
        self.wait(now, partition);
        self.go_on_stopping(now, partition, task, cx);
    }

    /// STOPPED is committed, or the partition left this broker.
    pub(super) fn end_stopping(&mut self, partition: PartitionIx, task: &mut MirrorTask<'_>) {
        self.stopping.remove(&partition);
        task.replicas.watch_watermark(partition, false);
        if let Some(part) = self.part_mut(partition) {
            part.stop = StopStep::Begins;
        }
    }

    /// Goes as far as what is awaited is there.
    pub(super) fn go_on_stopping(
        &mut self,
        now: Now,
        partition: PartitionIx,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        while let Some(part) = self.part(partition).filter(|part| part.state == MirrorState::Stopping) {
            let Some(record) = &part.record else { return };
            let Some(log) = task.replicas.log(partition) else { return };
            let (watermark, epoch, position) = (log.high_watermark(), part.leader_epoch, record.position);
            let again = part.stop == StopStep::Begins && position.is_some_and(|p| p != LastPosition::NOTHING);
            let position = position.filter(|_| !(again && cx.guards.quirk(quirk::StopRecomputesPosition)));
            let next = match (part.stop, position) {
                (StopStep::Begins, None) => {
                    let end = log.end();
                    // An epoch in which nothing was written is not one that was mirrored (D-4b). Of a log whose records are all
                    // removed the last epoch begins where it ends.
                    let emptied = end > Offset::ZERO && log.start() == end;
                    let counts = emptied && !cx.guards.admits(guard::StopKnowsEmptiedEpoch, false);
                    let written = log.epochs().entries().iter().rev().find(|entry| counts || entry.start < end);
                    let mut epoch = written.map_or(LeaderEpoch::NONE, |entry| entry.epoch);
                    if epoch != log.latest_epoch() && cx.guards.quirk(quirk::StopCountsOwnEpoch) {
                        epoch = log.latest_epoch();
                    }
                    let position = LastPosition { epoch, offset: end };
                    if cx.guards.quirk(quirk::StopDoesNotAwaitPosition) {
                        self.tell_position(now, partition, position, task, cx);
                        self.want_epoch_above(partition, position.epoch, cx);
                        StopStep::Epoch
                    } else {
                        let change = Change { position: Some(position), ..Change::to(MirrorState::Unknown) };
                        self.change(now, partition, change, task, cx);
                        StopStep::Position
                    }
                }
                (StopStep::Begins | StopStep::Position, Some(position)) => {
                    if epoch <= position.epoch {
                        self.want_epoch_above(partition, position.epoch, cx);
                    }
                    StopStep::Epoch
                }
                (StopStep::Position, None) => {
                    if !cx.guards.admits(guard::StopNotesPositionFirst, false) {
                        return;
                    }
                    StopStep::Epoch // the mutant goes on
                }
                (StopStep::Epoch, _) if self.bump_company(partition, task, cx) => return,
                (StopStep::Epoch, position) if is_above(epoch, position, cx) => {
                    match self.abort_open(now, partition, task, cx) {
                        Ok(upto) => StopStep::Markers(upto),
                        Err(cause) => return self.fail(now, partition, cause, task, cx),
                    }
                }
                (StopStep::Markers(upto), position) if is_replicated(upto, watermark, cx) => {
                    let position = position.unwrap_or(LastPosition::NOTHING);
                    match self.reset_producers(now, partition, position, task, cx) {
                        Ok(upto) => StopStep::Reset(upto),
                        Err(cause) => return self.fail(now, partition, cause, task, cx),
                    }
                }
                (StopStep::Reset(upto), _) if is_replicated(upto, watermark, cx) => {
                    return self.enter(now, partition, MirrorState::Stopped, task, cx);
                }
                _ => return,
            };
            if let Some(part) = self.part_mut(partition) {
                part.stop = next;
            }
        }
    }

    pub(super) fn want_epoch_above(&mut self, partition: PartitionIx, min: LeaderEpoch, cx: &mut Cx<'_>) {
        if let Some(part) = self.part_mut(partition) {
            part.bump_min = Some(min);
            self.bumps.push((partition, min));
            cx.trace(Trace::BumpRequested { partition, min });
        }
    }

    /// One ABORT marker for each transaction that is open; gives the log end after them.
    fn abort_open(
        &mut self,
        now: Now,
        partition: PartitionIx,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<Offset, FailCause> {
        let log = task.replicas.log(partition).ok_or(FailCause::Storage)?;
        let mut open: Vec<_> = log.producers().open_transactions().collect();
        if open.is_empty() {
            self.speak_for_others(partition, cx);
        }
        let refused = !open.is_empty() && task.replicas.is_under_min_isr(partition);
        if refused && cx.guards.quirk(quirk::MarkerErrorsIgnored) {
            open.clear(); // NOT_ENOUGH_REPLICAS for each of them, and on it goes
        }
        for transaction in open {
            if cx.guards.admits(guard::StopAbortsOpenTransactions, false) {
                continue;
            }
            let coordinator_epoch = transaction.coordinator_epoch.max(0);
            let (producer, epoch) = (transaction.producer, transaction.epoch);
            let marker = end_txn_marker(false, producer, epoch, coordinator_epoch, now.wall_ms);
            let done = task.replicas.append_local(partition, &marker, Origin::Coordinator, now, cx);
            if done.is_err() && !cx.guards.quirk(quirk::MarkerErrorsIgnored) {
                return Err(FailCause::Storage);
            }
        }
        task.replicas.log(partition).map(|log| log.end()).ok_or(FailCause::Storage)
    }

    /// The producer reset, unless the log ends in one that is above the position; gives the log end after it.
    fn reset_producers(
        &mut self,
        now: Now,
        partition: PartitionIx,
        position: LastPosition,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<Offset, FailCause> {
        let log = task.replicas.log(partition).ok_or(FailCause::Storage)?;
        let end = log.end();
        let mut is_reset = false;
        // A log whose records are all removed ends where it starts, with no batch before.
        if end > position.offset && end > log.start() {
            let last = log.batch_at(cx.disk, Offset(end.0 - 1)).map_err(|_| FailCause::Storage)?;
            let last = last.as_ref().and_then(|bytes| BatchView::parse(bytes).ok());
            is_reset = last.is_some_and(|batch| batch.control_type() == Some(ControlType::MirrorPidReset));
        }
        if cx.guards.admits(guard::StopResetsProducers, is_reset) {
            return Ok(end);
        }
        let mirror = self.part(partition).and_then(|part| task.image.mirror(part.mirror));
        let source = mirror.map(|mirror| mirror.config.source_cluster_id.clone());
        let reset = mirror_pid_reset(source.as_deref(), now.wall_ms);
        let done = task.replicas.append_local(partition, &reset, Origin::Coordinator, now, cx);
        done.map(|info| info.next).map_err(|_| FailCause::Storage)
    }
}

/// After STOPPED.
impl MirrorManager {
    /// STOPPED is committed, and what closed the log is not in it: replicas without power, or an unclean election, lost what was
    /// committed there. Markers and the reset are repeated (decision 13), ahead of whatever a client writes: nobody was let in
    /// before this, and who holds a client's batch holds what lies below it.
    pub(super) fn close_again(&mut self, now: Now, partition: PartitionIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let position = self.part(partition).and_then(|part| part.record.as_ref()?.position);
        let (Some(position), Some(log)) = (position, task.replicas.log(partition)) else { return };
        let closed = is_closed(log, position, cx.disk);
        if cx.guards.admits(guard::LostResetIsRepeated, closed) || cx.guards.quirk(quirk::MarkerErrorsIgnored) {
            return;
        }
        // Where its disk refuses, it does not lead for long: the next one looks again.
        if self.abort_open(now, partition, task, cx).is_ok() {
            let _ = self.reset_producers(now, partition, position, task, cx);
        }
    }
}

/// Whether something local lies behind what was mirrored, or what is left of it, that is no marker: a reset, as no stop leaves
/// anything else there. What is local is above the last mirrored epoch, wherever it begins.
fn is_closed(log: &Log, position: LastPosition, disk: &dyn Disk) -> bool {
    if log.start() > position.offset {
        return true; // that was removed since
    }
    let local = log.epochs().entries().iter().find(|entry| entry.epoch > position.epoch);
    let mut at = local.map_or(log.end(), |entry| entry.start);
    while at < log.end() {
        let Ok(Some(bytes)) = log.batch_at(disk, at) else { return true };
        match BatchView::parse(&bytes) {
            Ok(batch) if matches!(batch.control_type(), Some(ControlType::Abort | ControlType::Commit)) => {
                at = batch.next_offset();
            }
            _ => return true,
        }
    }
    false
}

/// What mutants do where it takes more than a condition.
impl MirrorManager {
    /// M33: what stands behind the last stable offset is cut, in place of abort markers.
    fn cut_what_is_open(&mut self, now: Now, partition: PartitionIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let begins = self.part(partition).is_some_and(|part| part.stop == StopStep::Begins);
        let Some(log) = task.replicas.log(partition).filter(|_| begins) else { return };
        let stable = log.last_stable();
        let open = log.producers().open_transactions().next().is_some();
        if open && cx.guards.admits(guard::StopKeepsRecords, false) {
            let _ = task.replicas.truncate_mirror_leader(now, partition, stable, CutCause::Alignment, cx);
        }
    }

    /// M32: a partition without open transactions has the markers of all others counted as written.
    fn speak_for_others(&mut self, partition: PartitionIx, cx: &mut Cx<'_>) {
        let waits = |part: &Part| matches!(part.stop, StopStep::Position | StopStep::Epoch);
        let others = self.stopping.iter().filter(|p| **p != partition && self.part(**p).is_some_and(waits));
        let others: Vec<PartitionIx> = others.copied().collect();
        if others.is_empty() || !cx.guards.admits(guard::StopsAreSeparate, false) {
            return;
        }
        for other in others {
            if let Some(part) = self.part_mut(other) {
                part.stop = StopStep::Markers(Offset::ZERO);
            }
        }
    }
}

/// From this leader epoch on, what is local can be told from what was mirrored.
fn is_above(epoch: LeaderEpoch, position: Option<LastPosition>, cx: &mut Cx<'_>) -> bool {
    cx.guards.admits(guard::StopBumpsBeforeMarkers, position.is_none_or(|p| epoch > p.epoch))
}

/// Every in-sync replica has what a step appended.
fn is_replicated(upto: Offset, watermark: Offset, cx: &mut Cx<'_>) -> bool {
    cx.guards.admits(guard::StopAwaitsReplicas, watermark >= upto)
}

#[cfg(test)]
#[path = "stop_tests.rs"]
mod tests;
