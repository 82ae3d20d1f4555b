//! LOG_ALIGNMENT: a partition that is about to be mirrored drops what its source does not have (spec 2.5, 3.6, 3.7; decisions 6,
//! 8, 26, 27, 31, 39).
//!
//! Several things are awaited, one after the other, and a new leader begins again with the first: the source's leader; where
//! mirroring between the two clusters ended last, in either direction; a leader epoch of its own; the source's word that the epochs in what is left end
//! where its own end; and the replicas. Whatever is cut is cut before the replicas are waited for, so that nothing is cut in
//! MIRRORING that an operator ordered away.

use crate::guards::{alignment as guard, prototype as quirk};
use crate::ids::{LeaderEpoch, Now, PartitionIx};
use crate::mirror::fetcher::{FailCause, Purpose};
use crate::mirror::inquiry::Found;
use crate::mirror::manager::{MirrorManager, MirrorTask};
use crate::mirror::transitions::replicas_are_there;
use crate::ports::Cx;
use crate::states::{LastPosition, MirrorState};

/// What an alignment awaits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AlignStep {
    /// The source's leader.
    #[default]
    Leader,
    /// Where mirroring ended last.
    Position,
    /// A leader epoch above that of everything that is to be cut.
    Term,
    /// The ends of the source's epochs.
    Epochs,
    /// The replicas.
    Replicas,
}

impl AlignStep {
    /// What a wait that took too long is blamed on.
    pub(super) const fn overdue(self) -> FailCause {
        match self {
            Self::Leader => FailCause::SourceLeaderUnknown,
            Self::Position => FailCause::PositionUnavailable,
            Self::Term => FailCause::BumpTimedOut,
            Self::Epochs => FailCause::SourceUnreachable,
            Self::Replicas => FailCause::ReplicasBehind,
        }
    }
}

impl MirrorManager {
    fn align_step(&mut self, now: Now, partition: PartitionIx, step: AlignStep, cx: &mut Cx<'_>) {
        self.clear_timers(partition, cx);
        if let Some(part) = self.part_mut(partition) {
            part.align = step;
        }
        match step {
            AlignStep::Replicas => self.wait_for_replicas(now, partition, cx),
            _ => self.wait(now, partition),
        }
    }

    /// What an alignment that takes too long is blamed on: if the source's leader is not known, on why.
    pub(super) fn overdue_alignment(&self, partition: PartitionIx, step: AlignStep) -> FailCause {
        let why = self
            .part(partition)
            .filter(|_| step == AlignStep::Leader)
            .and_then(|part| self.sources.get(&part.mirror)?.cluster.leader(part.topic_id, part.number).err());
        why.map_or(step.overdue(), FailCause::from)
    }

    /// LOG_ALIGNMENT is committed, or the source's leader became known.
    pub(super) fn align(&mut self, now: Now, partition: PartitionIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Some(part) = self.part(partition) else { return };
        if self.left_waiting.contains(&partition) && cx.guards.quirk(quirk::BarrierSurvivesLeadership) {
            self.left_waiting.remove(&partition);
            return self.enter(now, partition, MirrorState::Mirroring, task, cx);
        }
        let (topic, number, mirror) = (part.topic_id, part.number, part.mirror);
        self.align_step(now, partition, AlignStep::Leader, cx);
        let Some(source) = self.sources.get_mut(&mirror) else { return };
        if source.cluster.leader(topic, number).is_err() {
            source.awaiting.insert(partition);
            return self.want_refresh(mirror, cx);
        }
        self.align_step(now, partition, AlignStep::Position, cx);
        self.inquire(partition, cx);
    }

    /// What the source's brokers said of a partition. One that is mirrored already only asks whether there is a loop.
    pub(super) fn on_found(
        &mut self,
        now: Now,
        partition: PartitionIx,
        found: Found,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        let Some(part) = self.part(partition) else { return };
        // An order to stop, or a state that is on its way, is older news than this answer and counts first (decisions 1 and 33).
        let begins = matches!(part.state, MirrorState::LogAlignment | MirrorState::Mirroring);
        if part.change.is_some() || !begins {
            return;
        }
        if !cx.guards.admits(guard::StopComesBeforeCut, !self.is_to_stop(partition, task)) {
            return;
        }
        let awaited = part.state == MirrorState::LogAlignment && part.align == AlignStep::Position;
        match found {
            Found::Refused(FailCause::LoopFound) if cx.guards.admits(guard::LoopIsRefused, false) => {}
            Found::Refused(cause) if awaited || cause == FailCause::LoopFound => {
                return self.fail(now, partition, cause, task, cx);
            }
            _ => {}
        }
        let reverse = if let Found::Position(position) = found { position } else { None };
        if awaited {
            self.cut_to_position(now, partition, reverse, task, cx);
        }
    }

    /// The end of the last session in this direction stands in the own record, that of the other direction in the source's. The
    /// later one counts: both logs were the same up to there. Without any the two logs have nothing in common that is known.
    fn cut_to_position(
        &mut self,
        now: Now,
        partition: PartitionIx,
        reverse: Option<LastPosition>,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        let Some(part) = self.part(partition) else { return };
        // A session that was stopped before it copied ended nowhere.
        let known = |position: Option<LastPosition>| position.filter(|p| *p != LastPosition::NOTHING);
        let own = known(part.record.as_ref().and_then(|record| record.position));
        let position = own.max(known(reverse));
        // The own log is the one that gives way when it comes back to a former copy; when it goes on where it was, the source must
        // still have what it had (decision 39).
        let flag = task.image.topic_config(part.topic).mirror_support_unclean_leader_election;
        if self.must_lead_anew(now, partition, position, task, cx) {
            return;
        }
        let may_cut = position != own || flag || self.source_wins(partition);
        let done = match position {
            Some(position) => task.replicas.align_mirror_leader(now, partition, position, cx),
            None => task.replicas.discard_mirror_log(now, partition, cx),
        };
        if done.is_err() {
            return self.fail(now, partition, FailCause::Storage, task, cx);
        }
        let empty = task.replicas.log(partition).is_none_or(|log| log.latest_epoch() == LeaderEpoch::NONE);
        if empty {
            return self.await_replicas(now, partition, task, cx);
        }
        self.align_step(now, partition, AlignStep::Epochs, cx);
        self.stop_fetching(partition, cx);
        self.start_slot(now, partition, Purpose::Align { may_cut }, task, cx);
    }

    /// An epoch names one history. Local records of this leader's epoch are about to go, and the next local ones, after the next
    /// stop, would be written in it again if nothing raised it meanwhile: a replica that slept, or that lost the cut with its
    /// power, could not tell the ones from the others. So the epoch is raised before the cut; the new term begins again.
    fn must_lead_anew(
        &mut self,
        now: Now,
        partition: PartitionIx,
        position: Option<LastPosition>,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) -> bool {
        let (Some(part), Some(log)) = (self.part(partition), task.replicas.log(partition)) else { return false };
        let cuts = log.end() > log.start() && position.is_none_or(|position| log.end() > position.offset);
        let (latest, epoch) = (log.latest_epoch().max(log.aligned()), part.leader_epoch);
        if cx.guards.admits(guard::AlignmentRaisesEpoch, !cuts || epoch > latest) {
            return false;
        }
        self.align_step(now, partition, AlignStep::Term, cx);
        self.want_epoch_above(partition, latest, cx);
        true
    }

    /// Nothing is left that the source does not have.
    pub(super) fn await_replicas(
        &mut self,
        now: Now,
        partition: PartitionIx,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        let Some(part) = self.part(partition).filter(|part| part.state == MirrorState::LogAlignment) else { return };
        let all = task.image.topic_config(part.topic).mirror_support_unclean_leader_election;
        self.stop_fetching(partition, cx);
        self.align_step(now, partition, AlignStep::Replicas, cx);
        if let Some(part) = self.part_mut(partition) {
            part.is_young = true;
        }
        task.replicas.mark_alignment(now, partition, cx);
        if replicas_are_there(now, partition, all, task, cx) {
            self.enter(now, partition, MirrorState::Mirroring, task, cx);
        }
    }
}

#[cfg(test)]
#[path = "align_tests.rs"]
mod tests;
