//! An operator's word that a failure is over: the mirror leader leads a FAILED partition back to what it did before, with the
//! count of failures at 0 (spec 8.14, decisions 3, 4, 26).
//!
//! It is a transition like any other: committed first, fenced by the leader epoch of this term and the state epoch that is
//! known, acted on afterwards. So nobody has to be told, and nothing is written under an epoch that is not the writer's (D-16).

use crate::ids::{Now, Offset, PartitionIx};
use crate::mirror::fetcher::FailCause;
use crate::mirror::manager::{MirrorManager, MirrorTask};
use crate::mirror::persist::Change;
use crate::ports::Cx;
use crate::states::{DesiredState, MirrorState};
use crate::wire::errors::ErrorCode;

/// How far a recovery has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The partition is not FAILED (any more).
    Done,
    /// It waits for the coordinator.
    Waits,
    /// This broker cannot do it.
    Refused(ErrorCode),
}

impl MirrorManager {
    /// Begins a recovery, or looks how far it has come; to be called again until it is over. A write that was fenced is made
    /// anew on what was read then.
    pub fn recover(
        &mut self,
        now: Now,
        partition: PartitionIx,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) -> Recovery {
        let Some(part) = self.part_mut(partition) else { return Recovery::Refused(ErrorCode::NotLeaderOrFollower) };
        if part.record.is_none() {
            return Recovery::Waits;
        }
        if part.state != MirrorState::Failed {
            return Recovery::Done;
        }
        if part.change.is_some() {
            return Recovery::Waits;
        }
        let stopped = task.image.mirror_of(part.topic).is_some_and(|(_, desired)| desired == DesiredState::Stopped);
        let to = match part.previous {
            _ if stopped => MirrorState::Stopping,
            MirrorState::EpochFencing | MirrorState::UleRecovery | MirrorState::Pausing | MirrorState::Mirroring => {
                part.previous
            }
            MirrorState::Paused => MirrorState::Mirroring,
            _ => MirrorState::LogAlignment,
        };
        part.cause = None;
        part.bump_min = None; // whatever was asked for failed
        self.clear_timers(partition, cx);
        self.change(now, partition, Change { attempt: 0, ..Change::to(to) }, task, cx);
        Recovery::Waits
    }

    /// An operator says that the source's side wins where the logs differ: what differs here may be cut in this term, until the
    /// source has answered well (decision 39).
    pub fn let_source_win(&mut self, partition: PartitionIx) {
        if let Some(epoch) = self.part(partition).map(|part| part.leader_epoch) {
            self.source_wins.insert(partition, epoch);
        }
    }

    /// Whether an operator said so in this term.
    pub(super) fn source_wins(&self, partition: PartitionIx) -> bool {
        let said = self.source_wins.get(&partition).copied();
        said.is_some() && said == self.part(partition).map(|part| part.leader_epoch)
    }

    /// The source contradicts the log from an offset on: cuts there, if an operator said so, and has the replicas follow. The
    /// loss is traced by the cut.
    pub(super) fn cut_for_source(
        &mut self,
        now: Now,
        partition: PartitionIx,
        at: Offset,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) -> bool {
        if !self.source_wins(partition) {
            return false;
        }
        self.stop_fetching(partition, cx);
        if let Some(part) = self.part_mut(partition) {
            part.diverged_at = None;
        }
        let cause = crate::trace::CutCause::MirrorDivergence;
        if task.replicas.truncate_mirror_leader(now, partition, at, cause, cx).is_err() {
            self.fail(now, partition, FailCause::Storage, task, cx);
        } else {
            self.enter(now, partition, MirrorState::UleRecovery, task, cx);
        }
        true
    }
}
