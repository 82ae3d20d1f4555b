//! From state to state: which state is wanted, what belongs to one that is committed, and what follows when a fetcher reports or
//! a wait is over (spec 2.3, 2.5, 2.6, decisions 1, 12, 21, 28, 33).

use crate::guards::points::Point;
use crate::guards::{alignment, mirror as guard, prototype as quirk};
use crate::ids::{Now, PartitionIx};
use crate::mirror::epochs::needs_bump;
use crate::mirror::fetcher::{FailCause, Outcome};
use crate::mirror::manager::{MirrorManager, MirrorTask, WAIT_MAX};
use crate::mirror::persist::Change;
use crate::mirror::stop::StopStep;
use crate::ports::Cx;
use crate::states::{DesiredState, LastPosition, MirrorState};

impl MirrorManager {
    fn desired(&self, partition: PartitionIx, task: &MirrorTask<'_>) -> DesiredState {
        let topic = self.part(partition).map(|part| part.topic);
        topic.and_then(|topic| task.image.mirror_of(topic)).map_or(DesiredState::Unknown, |(_, desired)| desired)
    }

    /// An order to stop was given.
    pub(super) fn is_to_stop(&self, partition: PartitionIx, task: &MirrorTask<'_>) -> bool {
        self.desired(partition, task) == DesiredState::Stopped
    }

    /// Something else than copying is wanted.
    fn wish_differs(&self, partition: PartitionIx, task: &MirrorTask<'_>) -> bool {
        matches!(self.desired(partition, task), DesiredState::Paused | DesiredState::Stopped)
    }

    /// Compares what is wanted with what is committed, and goes on from there: a new leader, or another wish. Desired STOPPED
    /// outranks everything (decision 1).
    pub(super) fn evaluate(&mut self, now: Now, partition: PartitionIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        if !self.follow_wish(now, partition, task, cx) {
            self.entered(now, partition, task, cx);
        }
    }

    /// Asks for the next state if what is wanted is not on its way; true if it did.
    pub(super) fn follow_wish(
        &mut self,
        now: Now,
        partition: PartitionIx,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) -> bool {
        use {DesiredState as D, MirrorState as S};
        let Some(part) = self.part(partition).filter(|part| part.record.is_some()) else { return true };
        let to = match (self.desired(partition, task), part.state) {
            (D::Stopped, S::Stopped | S::Stopping) => return false,
            (D::Stopped, S::Failed) if cx.guards.quirk(quirk::FailedOutranksStop) => return false,
            (D::Stopped, S::Unknown) if cx.guards.admits(guard::UnknownFollowsWish, false) => S::LogAlignment,
            (D::Stopped, _) => S::Stopping,
            (_, S::Failed) | (D::Unknown, _) => return false,
            (D::Paused | D::Mirroring, S::Unknown | S::Stopped) => S::LogAlignment,
            // A pause waits for MIRRORING (decision 28).
            (D::Paused, S::Mirroring) => S::Pausing,
            (D::Paused, S::LogAlignment | S::EpochFencing | S::UleRecovery)
                if cx.guards.quirk(quirk::RefusedRequestStaysPending) =>
            {
                S::Pausing
            }
            (D::Mirroring, S::Paused) => S::Mirroring,
            _ => return false,
        };
        if (part.state, to) == (S::LogAlignment, S::Stopping) {
            self.stop_fetching(partition, cx); // it asks for no epochs any more
        }
        self.enter(now, partition, to, task, cx);
        true
    }

    /// Has a state committed; what belongs to it follows. One that is committed already begins anew.
    pub(super) fn enter(
        &mut self,
        now: Now,
        partition: PartitionIx,
        to: MirrorState,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        let Some(part) = self.part(partition).filter(|part| part.record.is_some()) else { return };
        if part.state == to && part.change.is_none() {
            return self.entered(now, partition, task, cx);
        }
        let begins = part.state == MirrorState::LogAlignment && to == MirrorState::Mirroring;
        let position = if begins {
            // A session has no last position before it ends (decision 7).
            Some(LastPosition::CLEAR)
        } else if to == MirrorState::Stopping && part.never_mirrored() {
            Some(LastPosition::NOTHING)
        } else {
            None
        };
        self.change(now, partition, Change { position, ..Change::to(to) }, task, cx);
    }

    /// A state is committed, or was when this broker came to lead: does what belongs to it (spec 2.5).
    pub(super) fn entered(&mut self, now: Now, partition: PartitionIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        self.clear_timers(partition, cx);
        let Some(state) = self.part(partition).map(|part| part.state) else { return };
        match state {
            MirrorState::Unknown => {}
            MirrorState::LogAlignment => {
                // It may have been ordered meanwhile, when STOPPED was the state that was known.
                let cuts = self.is_to_stop(partition, task) && cx.guards.admits(alignment::StopComesBeforeCut, false);
                if cuts || !self.follow_wish(now, partition, task, cx) {
                    self.align(now, partition, task, cx);
                }
            }
            MirrorState::Mirroring => {
                let ignores = self.wish_differs(partition, task) && cx.guards.quirk(quirk::RetryIgnoresDesired);
                if ignores || !self.follow_wish(now, partition, task, cx) {
                    self.start_fetching(now, partition, task, cx);
                }
            }
            MirrorState::EpochFencing => self.fence(now, partition, task, cx),
            MirrorState::UleRecovery => {
                if replicas_are_there(now, partition, true, task, cx) {
                    self.enter(now, partition, MirrorState::Mirroring, task, cx);
                } else {
                    self.wait_for_replicas(now, partition, cx);
                }
            }
            MirrorState::Pausing => {
                self.stop_fetching(partition, cx);
                self.enter(now, partition, MirrorState::Paused, task, cx);
            }
            MirrorState::Paused => {
                self.stop_fetching(partition, cx);
                self.follow_wish(now, partition, task, cx);
            }
            MirrorState::Stopping => self.begin_stopping(now, partition, task, cx),
            MirrorState::Stopped => {
                self.end_stopping(partition, task);
                if !self.follow_wish(now, partition, task, cx) {
                    self.close_again(now, partition, task, cx);
                }
            }
            MirrorState::Failed => self.await_retry(now, partition, cx),
        }
    }

    /// EPOCH_FENCING awaits a leader epoch above the source's.
    fn fence(&mut self, now: Now, partition: PartitionIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Some(part) = self.part(partition) else { return };
        // One that was asked for before may not be enough for the batch that has to wait.
        if part.bump_min.is_none_or(|min| part.ahead.is_some_and(|ahead| ahead > min)) {
            let (local, topic, number) = (part.leader_epoch, part.topic_id, part.number);
            let known = self.sources.get(&part.mirror).and_then(|s| s.cluster.epoch(topic, number));
            match part.ahead.max(known) {
                Some(theirs) if needs_bump(theirs, local) => self.want_bump(partition, theirs, cx),
                _ => return self.enter(now, partition, MirrorState::Mirroring, task, cx),
            }
        }
        self.wait(now, partition);
    }

    /// FAILED, with a retry unless it cannot help (spec 2.6).
    pub(super) fn fail(
        &mut self,
        now: Now,
        partition: PartitionIx,
        cause: FailCause,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        self.stop_fetching(partition, cx);
        self.clear_timers(partition, cx);
        let most = self.settings.retry.max_attempts;
        let Some(part) = self.part_mut(partition) else { return };
        if part.state == MirrorState::Stopping && cx.guards.quirk(quirk::FailedStopIsOnlyLogged) {
            self.stopping.remove(&partition);
            return;
        }
        // What it awaited may have come about and never be told: the answer to a write that another one overtook is not looked at.
        if !cx.guards.admits(guard::FailedStopBeginsAnew, part.stop == StopStep::Begins) {
            part.stop = StopStep::Begins;
        }
        let mirror = part.mirror;
        part.cause = Some(cause);
        let attempt = part.attempt.max(0).saturating_add(1).min(most);
        let for_good = !cause.is_retryable();
        let change = Change {
            to: MirrorState::Failed,
            message: Some(cause.text().into()),
            for_good,
            attempt: i32::from(attempt),
            position: None,
        };
        self.change(now, partition, change, task, cx);
        self.want_refresh(mirror, cx);
    }

    fn await_retry(&mut self, now: Now, partition: PartitionIx, cx: &mut Cx<'_>) {
        self.stop_fetching(partition, cx);
        self.draws += 1;
        let draw = self.draws << 32 | u64::from(partition.0);
        let retry = self.settings.retry;
        let share = if cx.guards.points.fires(Point::MirrorRetrySoon) { 10 } else { 1 };
        let Some(part) = self.part_mut(partition) else { return };
        let missed = matches!(part.cause, Some(FailCause::SourceLeaderUnknown | FailCause::SourcePartitionMissing));
        if missed && cx.guards.admits(guard::MissedPartitionIsRetried, false) {
            return; // the mutant waits for metadata of its own cluster
        }
        part.retry_at = retry.delay(part.attempt, cx.entropy, draw).map(|d| now.mono + crate::ids::Nanos(d.0 / share));
        if let Some(at) = part.retry_at {
            self.waits.insert((at, partition));
        }
    }

    /// The retry of a FAILED partition: back to what it did, or to the start if that is not known (spec 2.6). The desired state
    /// comes first (decision 33).
    pub(super) fn retry(&mut self, now: Now, partition: PartitionIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let ignores = self.wish_differs(partition, task) && cx.guards.quirk(quirk::RetryIgnoresDesired);
        if !ignores && self.follow_wish(now, partition, task, cx) {
            return;
        }
        let Some(part) = self.part(partition).filter(|part| part.state == MirrorState::Failed) else { return };
        let (topic, number, mirror, previous) = (part.topic_id, part.number, part.mirror, part.previous);
        let local = matches!(previous, MirrorState::Pausing | MirrorState::UleRecovery);
        let Some(source) = self.sources.get_mut(&mirror) else { return };
        if !local && source.cluster.leader(topic, number).is_err() {
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
            MirrorState::LogAlignment if cx.guards.admits(guard::RetryAlignsAgain, false) => MirrorState::Mirroring,
            MirrorState::Unknown | MirrorState::LogAlignment | MirrorState::Failed => {
                if cx.guards.admits(guard::RetryIsReachable, false) {
                    MirrorState::Unknown
                } else {
                    MirrorState::LogAlignment
                }
            }
            MirrorState::EpochFencing | MirrorState::UleRecovery | MirrorState::Pausing => part.previous,
            _ => MirrorState::Mirroring,
        };
        if to == MirrorState::EpochFencing {
            part.bump_min = None; // whatever was asked for failed
        }
        self.enter(now, partition, to, task, cx);
    }

    pub(super) fn wait(&mut self, now: Now, partition: PartitionIx) {
        let until = now.mono + WAIT_MAX;
        if let Some(part) = self.part_mut(partition) {
            part.wait_until = Some(until);
            self.waits.insert((until, partition));
        }
    }

    pub(super) fn wait_for_replicas(&mut self, now: Now, partition: PartitionIx, cx: &mut Cx<'_>) {
        if !cx.guards.quirk(quirk::BarrierHasNoEnd) {
            self.wait(now, partition);
        }
    }

    /// Timers die with the state that set them (decision 21).
    pub(super) fn clear_timers(&mut self, partition: PartitionIx, cx: &mut Cx<'_>) {
        let Some(part) = self.part_mut(partition) else { return };
        let survives = part.retry_at.is_some() && cx.guards.quirk(quirk::RetryTimerSurvives);
        if survives {
            if let Some(at) = part.wait_until.take() {
                self.waits.remove(&(at, partition));
            }
        } else {
            self.drop_timers(partition);
        }
    }

    /// The partition leaves this broker, and nothing of it survives.
    pub(super) fn drop_timers(&mut self, partition: PartitionIx) {
        let Some(part) = self.part_mut(partition) else { return };
        for at in [part.wait_until.take(), part.retry_at.take()].into_iter().flatten() {
            self.waits.remove(&(at, partition));
        }
    }

    /// What the fetcher saw, turned into states.
    pub(super) fn apply_outcome(&mut self, now: Now, outcome: Outcome, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        match outcome {
            Outcome::Proven(partition) => {
                self.source_wins.remove(&partition);
                let Some(part) = self.part_mut(partition) else { return };
                part.cause = None;
                let first = std::mem::replace(&mut part.is_young, false);
                if part.attempt > 0 {
                    // What failed before works: the next failure counts from one (decision 25: written on change only).
                    let change = Change { attempt: 0, ..Change::to(MirrorState::Mirroring) };
                    part.attempt = 0;
                    self.change(now, partition, change, task, cx);
                }
                if first {
                    // The other side may have started at the same moment: neither saw a loop, both make one (decision 26).
                    self.inquire(partition, cx);
                }
            }
            Outcome::Bump(partition, epoch) => self.want_bump(partition, epoch, cx),
            Outcome::Fence(partition, epoch) => {
                self.stop_fetching(partition, cx);
                if let Some(part) = self.part_mut(partition) {
                    part.ahead = Some(epoch);
                }
                self.enter(now, partition, MirrorState::EpochFencing, task, cx);
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
                match self.part(partition).map(|part| part.state) {
                    Some(MirrorState::LogAlignment) => self.align(now, partition, task, cx),
                    _ => self.enter(now, partition, MirrorState::Mirroring, task, cx),
                }
            }
            Outcome::Cut(partition, _) => {
                self.stop_fetching(partition, cx);
                self.enter(now, partition, MirrorState::UleRecovery, task, cx);
            }
            Outcome::Aligned(partition) => self.await_replicas(now, partition, task, cx),
            Outcome::Gap(partition, from, to) => {
                if let Some(part) = self.part_mut(partition) {
                    part.gaps.push((from, to));
                }
            }
            Outcome::Contradicted(partition, at) => {
                if self.cut_for_source(now, partition, at, task, cx) {
                    return;
                }
                if let Some(part) = self.part_mut(partition) {
                    part.diverged_at = Some(at);
                }
                self.fail(now, partition, FailCause::Diverged, task, cx);
            }
        }
    }
}

/// After a cut no replica that counts is longer than its leader: at once, or to be waited for (M10).
pub(super) fn replicas_are_there(
    now: Now,
    partition: PartitionIx,
    all: bool,
    task: &mut MirrorTask<'_>,
    cx: &mut Cx<'_>,
) -> bool {
    let there = task.replicas.start_barrier(now, partition, all, cx);
    cx.guards.admits(alignment::BarrierAfterMirrorCut, there)
}
