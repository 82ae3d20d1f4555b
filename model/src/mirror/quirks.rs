//! What the prototype does at the edges of the life cycle, where it takes more than a condition to do it (decisions, spec 12, 17):
//! each function is one quirk's behaviour and does nothing while the quirk is off.

use crate::guards::prototype as quirk;
use crate::ids::{LeaderEpoch, Now, PartitionIx};
use crate::mirror::fetcher::Phase;
use crate::mirror::manager::{MirrorManager, MirrorTask};
use crate::mirror::stop::StopStep;
use crate::ports::Cx;
use crate::states::{LastPosition, MirrorState, StateRecord};
use crate::wire::messages::StateWrite;

impl MirrorManager {
    /// D-22, K9, K22: the stop of a leader that was deposed while it waited for its bump goes on as if that had come. Its markers
    /// and its reset are refused, which it ignores; STOPPED is committed, under the leader epoch that the image tells.
    pub(super) fn stop_on(&mut self, now: Now, partition: PartitionIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Some(part) = self.part(partition) else { return };
        let waits = part.state == MirrorState::Stopping && part.stop == StopStep::Epoch;
        let Some(entry) = task.image.partition(partition).filter(|_| waits) else { return };
        let named = cx.guards.quirk(quirk::WriteNamesImageEpoch);
        let leader_epoch = if named { entry.state.leader_epoch } else { part.leader_epoch };
        if cx.guards.quirk(quirk::DeposedLeaderStopsOn) {
            let write = StateWrite {
                partition,
                state: MirrorState::Stopped,
                leader_epoch,
                state_epoch: -1,
                attempt: -1,
                ..StateWrite::default()
            };
            self.send_write(now, write, task, cx);
        }
    }

    /// D-24: the last position is sent, and whether it is committed is nobody's concern.
    pub(super) fn tell_position(
        &mut self,
        now: Now,
        partition: PartitionIx,
        position: LastPosition,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        let Some(part) = self.part(partition) else { return };
        let write = StateWrite {
            partition,
            state: MirrorState::Unknown,
            leader_epoch: part.leader_epoch,
            state_epoch: -1,
            attempt: -1,
            position: Some(position),
            ..StateWrite::default()
        };
        self.send_write(now, write, task, cx);
    }

    fn send_write(&mut self, now: Now, write: StateWrite, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        if let Some(key) = self.key_of(write.partition, task.image) {
            self.states.write(now, key, write, &mut self.coordinator, task.image, cx);
            self.tick_soon(cx);
        }
    }

    /// D-5: this broker lost a partition of the state topic, and forgets what it knew of all states. D-48: a fetcher that compares
    /// epochs at that moment finds no leader, and dies.
    pub(super) fn forget_states(&mut self, cx: &mut Cx<'_>) {
        if cx.guards.quirk(quirk::ResignationForgetsStates) {
            for at in 0..self.parts.len() {
                let Some(part) = self.parts[at].as_mut().filter(|part| part.state == MirrorState::Stopped) else {
                    continue;
                };
                part.record = None;
            }
        }
        if cx.guards.quirk(quirk::FetcherDiesWithoutLeader) {
            for fetcher in &mut self.fetchers {
                fetcher.is_dead |= fetcher.slots.iter().any(|slot| slot.phase == Phase::Truncating);
            }
        }
    }

    /// D-7: the entry of an error has partition 0 and state 0, and is taken for an answer.
    pub(super) fn misread(&mut self, now: Now, partition: PartitionIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Some(part) = self.part(partition).filter(|part| part.record.is_none()) else { return };
        let first = task.image.topic(part.topic).and_then(|topic| topic.partitions.first().copied());
        let Some(first) = first.filter(|_| cx.guards.quirk(quirk::ErrorReadsAsAlignment)) else { return };
        if let Some(part) = self.part_mut(first).filter(|part| part.record.is_none()) {
            part.take(StateRecord { state: MirrorState::LogAlignment, state_epoch: -1, ..StateRecord::default() });
            self.evaluate(now, first, task, cx);
        }
    }

    /// D-26: a retry strikes though the failure is over; what it wants is done if the table allows it.
    pub(super) fn resume_anyway(
        &mut self,
        now: Now,
        partition: PartitionIx,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        if let Some(part) = self.part_mut(partition) {
            part.retry_at = None;
        }
        self.enter(now, partition, MirrorState::Mirroring, task, cx);
    }

    /// D-42: true while some bump of the same request is not done.
    pub(super) fn bump_company(&mut self, partition: PartitionIx, task: &MirrorTask<'_>, cx: &mut Cx<'_>) -> bool {
        let Some(company) = self.company.iter().find(|group| group.iter().any(|(p, _)| *p == partition)) else {
            return false;
        };
        let waits = |(p, min): &(PartitionIx, LeaderEpoch)| {
            task.image.partition(*p).is_none_or(|entry| entry.state.leader_epoch <= *min)
        };
        company.iter().any(waits) && cx.guards.quirk(quirk::BumpWaitsForCompany)
    }
}

#[cfg(test)]
#[path = "quirks_tests.rs"]
mod tests;
