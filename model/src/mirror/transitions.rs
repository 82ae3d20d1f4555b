//! From state to state: what a mirrored partition does when it enters one, when a fetcher reports, and when a wait is over
//! (spec 2.5, 2.6).

use crate::guards::mirror as guard;
use crate::ids::{LeaderEpoch, Now, PartitionIx};
use crate::mirror::fetcher::{FailCause, Outcome};
use crate::mirror::manager::{MirrorManager, MirrorTask, WAIT_MAX};
use crate::ports::Cx;
use crate::states::MirrorState;
use crate::trace::Trace;

impl MirrorManager {
    /// Takes a state and runs what belongs to it (spec 2.5).
    pub(super) fn enter(
        &mut self,
        now: Now,
        partition: PartitionIx,
        to: MirrorState,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        if !self.change_state(partition, to, cx) {
            return;
        }
        self.clear_timers(partition);
        match to {
            MirrorState::LogAlignment => self.align(now, partition, task, cx),
            MirrorState::Mirroring => self.start_fetching(now, partition, task, cx),
            MirrorState::EpochFencing => self.wait(now, partition),
            MirrorState::UleRecovery => {
                if task.replicas.start_barrier(now, partition, true, cx) {
                    self.enter(now, partition, MirrorState::Mirroring, task, cx);
                } else {
                    self.wait(now, partition);
                }
            }
            _ => {}
        }
    }

    pub(super) fn change_state(&mut self, partition: PartitionIx, to: MirrorState, cx: &mut Cx<'_>) -> bool {
        let Some(part) = self.part_mut(partition) else { return false };
        if !to.can_follow(part.state) {
            return false;
        }
        let from = std::mem::replace(&mut part.state, to);
        if to == MirrorState::Failed && from != MirrorState::Failed {
            part.previous = from;
        }
        let (mirror, attempt) = (part.mirror, part.attempt);
        if from != to || to == MirrorState::Failed {
            cx.trace(Trace::MirrorStateChanged { partition, mirror, from, to, attempt });
        }
        true
    }

    /// LOG_ALIGNMENT: until last mirrored positions exist, all it awaits is to know the source's leader.
    pub(super) fn align(&mut self, now: Now, partition: PartitionIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Some((topic, number, mirror)) = self.part(partition).map(|p| (p.topic_id, p.number, p.mirror)) else {
            return;
        };
        let Some(source) = self.sources.get_mut(&mirror) else { return };
        if source.cluster.leader(topic, number).is_ok() {
            return self.enter(now, partition, MirrorState::Mirroring, task, cx);
        }
        source.awaiting.insert(partition);
        self.want_refresh(mirror, cx);
    }

    /// FAILED, with a retry unless it cannot help (spec 2.6).
    pub(super) fn fail(
        &mut self,
        now: Now,
        partition: PartitionIx,
        cause: FailCause,
        _task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        self.stop_fetching(partition, cx);
        self.clear_timers(partition);
        self.draws += 1;
        let draw = self.draws << 32 | u64::from(partition.0);
        let retry = self.settings.retry;
        let Some(part) = self.part_mut(partition) else { return };
        let mirror = part.mirror;
        part.cause = Some(cause);
        part.attempt =
            if cause.is_retryable() { part.attempt.max(0).saturating_add(1).min(retry.max_attempts) } else { -1 };
        part.retry_at = retry.delay(part.attempt, cx.entropy, draw).map(|d| now.mono + d);
        let retry_at = part.retry_at;
        self.change_state(partition, MirrorState::Failed, cx);
        if let Some(at) = retry_at {
            self.waits.insert((at, partition));
        }
        if cause.is_retryable() && cx.guards.admits(guard::MissedPartitionIsRetried, false) {
            return; // the mutant does not look the source up again
        }
        self.want_refresh(mirror, cx);
    }

    /// The retry of a FAILED partition: back to what it did, or to the start if that is not known (spec 2.6). The desired
    /// state was looked at when the part was kept (decision 33): a part exists only while MIRRORING is wanted.
    pub(super) fn retry(&mut self, now: Now, partition: PartitionIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Some(part) = self.part(partition).filter(|part| part.state == MirrorState::Failed) else { return };
        let (topic, number, mirror) = (part.topic_id, part.number, part.mirror);
        let Some(source) = self.sources.get_mut(&mirror) else { return };
        if source.cluster.leader(topic, number).is_err() {
            // That may be as old as the failure, and the wait after the next one is twice as long: ask first.
            source.awaiting.insert(partition);
            return self.want_refresh(mirror, cx);
        }
        self.resume(now, partition, task, cx);
    }

    /// Back from FAILED.
    pub(super) fn resume(&mut self, now: Now, partition: PartitionIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Some(part) = self.part_mut(partition).filter(|part| part.state == MirrorState::Failed) else { return };
        part.retry_at = None;
        let to = match part.previous {
            MirrorState::Unknown | MirrorState::LogAlignment => MirrorState::LogAlignment,
            MirrorState::EpochFencing if part.bump_min.is_some() => {
                let min = part.bump_min.unwrap_or(LeaderEpoch::NONE);
                self.bumps.push((partition, min));
                cx.trace(Trace::BumpRequested { partition, min });
                MirrorState::EpochFencing
            }
            MirrorState::UleRecovery => MirrorState::UleRecovery,
            _ => MirrorState::Mirroring,
        };
        self.enter(now, partition, to, task, cx);
    }

    pub(super) fn wait(&mut self, now: Now, partition: PartitionIx) {
        let until = now.mono + WAIT_MAX;
        if let Some(part) = self.part_mut(partition) {
            part.wait_until = Some(until);
            self.waits.insert((until, partition));
        }
    }

    /// Timers die with the state that set them (decision 21).
    pub(super) fn clear_timers(&mut self, partition: PartitionIx) {
        let Some(part) = self.part_mut(partition) else { return };
        for at in [part.wait_until.take(), part.retry_at.take()].into_iter().flatten() {
            self.waits.remove(&(at, partition));
        }
    }

    /// What the fetcher saw, turned into states.
    pub(super) fn apply_outcome(&mut self, now: Now, outcome: Outcome, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        match outcome {
            Outcome::Proven(partition) => {
                if let Some(part) = self.part_mut(partition) {
                    (part.attempt, part.cause) = (0, None);
                }
            }
            Outcome::Bump(partition, epoch) => self.want_bump(partition, epoch, cx),
            Outcome::Fence(partition, epoch) => {
                self.stop_fetching(partition, cx);
                self.enter(now, partition, MirrorState::EpochFencing, task, cx);
                self.want_bump(partition, epoch, cx);
            }
            Outcome::Fail(partition, cause) => self.fail(now, partition, cause, task, cx),
            Outcome::Moved(partition, hint) => {
                let Some((topic, number, mirror)) = self.part(partition).map(|p| (p.topic_id, p.number, p.mirror))
                else {
                    return;
                };
                self.stop_fetching(partition, cx);
                if let Some(source) = self.sources.get_mut(&mirror) {
                    source.cluster.on_hint(topic, number, hint);
                }
                self.enter(now, partition, MirrorState::Mirroring, task, cx);
            }
            Outcome::Cut(partition, _) => {
                self.stop_fetching(partition, cx);
                if cx.guards.admits(guard::BarrierAfterMirrorCut, false) {
                    self.enter(now, partition, MirrorState::Mirroring, task, cx);
                } else {
                    self.enter(now, partition, MirrorState::UleRecovery, task, cx);
                }
            }
            Outcome::Gap(partition, from, to) => {
                if let Some(part) = self.part_mut(partition) {
                    part.gaps.push((from, to));
                }
            }
            Outcome::Contradicted(partition, at) => {
                if let Some(part) = self.part_mut(partition) {
                    part.diverged_at = Some(at);
                }
                self.fail(now, partition, FailCause::Diverged, task, cx);
            }
        }
    }
}
