//! Write, then act (spec 2.4): a partition's next state goes to its coordinator, and what belongs to the state is done when it is
//! committed there. What a broker knows of a partition that it came to lead is what the coordinator tells, nothing else.

use crate::guards::{mirror as guard, prototype as quirk};
use crate::ids::{ConnId, LeaderEpoch, Nanos, Now, PartitionIx};
use crate::metadata::image::MetadataImage;
use crate::mirror::manager::{ManagerTask, MirrorManager, MirrorTask, LANE_MANAGER};
use crate::mirror::records::StateKey;
use crate::mirror::state_client::StateAnswer;
use crate::ports::Cx;
use crate::states::{LastPosition, MirrorState, Session, StateRecord};
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    Body, ReadMirrorStatesRequest, ReadMirrorStatesResponse, StateWrite, WriteMirrorStatesRequest,
};
use std::sync::Arc;

/// Before a coordinator that could not be asked is asked again.
const AGAIN: Nanos = Nanos::from_secs(1);

/// A state to be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The next state; UNKNOWN: only the position.
    pub(super) to: MirrorState,
    /// FAILED: why.
    pub(super) message: Option<Arc<str>>,
    /// FAILED for good.
    pub(super) for_good: bool,
    /// Failures in a row; −1: as the coordinator counts.
    pub(super) attempt: i32,
    /// The last mirrored position, if it is to be recorded or cleared.
    pub(super) position: Option<LastPosition>,
}

impl Change {
    /// To a state, and nothing else.
    pub(super) fn to(to: MirrorState) -> Self {
        Self { to, message: None, for_good: false, attempt: -1, position: None }
    }
}

impl MirrorManager {
    pub(super) fn key_of(&self, partition: PartitionIx, image: &MetadataImage) -> Option<StateKey> {
        let part = self.part(partition)?;
        Some(StateKey { mirror: image.mirror(part.mirror)?.name.clone(), topic: part.topic_id, number: part.number })
    }

    /// Asks what is committed of a partition; its evaluation follows.
    pub(super) fn ask_state(&mut self, partition: PartitionIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Some(key) = self.key_of(partition, task.image) else { return };
        self.states.read(partition, &key, &self.coordinator, task.image, cx);
        self.tick_soon(cx);
    }

    /// Has a change committed. One is under way per partition; a later one takes the place of an earlier one that was not yet
    /// answered, and is judged by what became of it.
    pub(super) fn change(
        &mut self,
        now: Now,
        partition: PartitionIx,
        change: Change,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        let Some(part) = self.part_mut(partition) else { return };
        if part.record.is_none() || part.change.as_ref() == Some(&change) {
            return;
        }
        if change.to != MirrorState::Unknown && !change.to.can_follow(part.state) {
            if cx.guards.quirk(quirk::RefusedRequestStaysPending) {
                part.refused = Some(change.to);
            }
            return;
        }
        // What was given up may come about all the same while the failure is on its way: it is begun again by the retry, if there is
        // one. Only a stop goes before, and the position that it notes.
        let may_pass = matches!(change.to, MirrorState::Failed | MirrorState::Stopping | MirrorState::Unknown);
        let fails = part.change.as_ref().is_some_and(|under_way| under_way.to == MirrorState::Failed);
        if !cx.guards.admits(guard::FailureIsNotOvertaken, may_pass || !fails) {
            return;
        }
        if part.refused == Some(change.to) {
            return; // with its quirk: taken for a repetition of what is under way
        }
        let busy = part.change.replace(change).is_some();
        if !busy {
            self.write_change(now, partition, task, cx);
        }
    }

    fn write_change(&mut self, now: Now, partition: PartitionIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Some(key) = self.key_of(partition, task.image) else { return };
        let Some(part) = self.part_mut(partition) else { return };
        let (Some(record), Some(change)) = (&part.record, part.change.clone()) else { return };
        let mut epoch = part.leader_epoch;
        let guessed = record.state_epoch == 0 && cx.guards.quirk(quirk::IllegalTransitionPasses);
        let known = if guessed { -1 } else { record.state_epoch };
        if let Some(newer) = task.image.partition(partition).map(|p| p.state.leader_epoch).filter(|e| *e > epoch) {
            if cx.guards.quirk(quirk::WriteNamesImageEpoch) {
                epoch = newer;
            }
        }
        let write = StateWrite {
            partition,
            state: change.to,
            leader_epoch: epoch,
            state_epoch: known,
            position: change.position,
            message: change.message,
            attempt: change.attempt,
            for_good: change.for_good,
        };
        part.writing = Some(change.to);
        self.states.write(now, key, write, &mut self.coordinator, task.image, cx);
        self.tick_soon(cx);
    }

    /// Takes what coordinators answered.
    pub(super) fn take_state_answers(&mut self, now: Now, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        for answer in self.states.take_answers(&mut self.coordinator) {
            match answer {
                StateAnswer::Read(partition, Ok(record)) => self.on_record(now, partition, record, task, cx),
                StateAnswer::Read(partition, Err(_)) => {
                    self.misread(now, partition, task, cx);
                    self.ask_again(now, partition);
                }
                StateAnswer::Written(write, result) => self.on_written(now, write, result, task, cx),
            }
        }
    }

    fn on_record(
        &mut self,
        now: Now,
        partition: PartitionIx,
        record: StateRecord,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        let Some(part) = self.part_mut(partition).filter(|part| part.record.is_none()) else { return };
        // 1. A mirror is deleted, and made again under its name. 2. Its leader hears of both; the coordinator of neither, and tells what
        // it has of the former one. 3. The leader goes on from there, and what it writes is swept away with the former one.
        let other = record.session.is_some_and(|session| session != Session::of(part.mirror, part.topic));
        if !cx.guards.admits(guard::StatesToldAreThisMirrors, !other) {
            return self.ask_again(now, partition);
        }
        // 1. Metadata is late at a broker that led for a moment. 2. Its successor leads, is to stop, and notes the position. 3. The broker
        // hears that it leads, asks, and goes on with that stop: its marker takes the place of what was mirrored since.
        let later = record.leader_epoch > part.leader_epoch;
        if !cx.guards.admits(guard::StatesOfLaterTermsWait, !later) {
            return self.ask_again(now, partition);
        }
        let for_good = record.state == MirrorState::Failed && record.attempt < 0;
        let revived = for_good && cx.guards.quirk(quirk::ForGoodIsRetried);
        part.take(StateRecord { attempt: if revived { 0 } else { record.attempt }, ..record });
        self.evaluate(now, partition, task, cx);
    }

    fn on_written(
        &mut self,
        now: Now,
        write: StateWrite,
        result: Result<i32, ErrorCode>,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        let partition = write.partition;
        let Some(part) = self.part_mut(partition) else { return };
        // An answer to a write of an earlier term says nothing of this one (decision 32).
        if part.leader_epoch != write.leader_epoch || part.writing != Some(write.state) {
            return;
        }
        part.writing = None;
        match result {
            Ok(epoch) => self.on_committed(now, &write, epoch, task, cx),
            Err(ErrorCode::FencedLeaderEpoch | ErrorCode::FencedStateEpoch | ErrorCode::InvalidClusterMirrorStates) => {
                // Somebody else wrote: look again, and begin from there.
                (part.record, part.change) = (None, None);
                self.ask_state(partition, task, cx);
            }
            Err(_) if cx.guards.quirk(quirk::LostWriteIsForgotten) => {}
            Err(_) => self.ask_again(now, partition),
        }
    }

    fn on_committed(&mut self, now: Now, write: &StateWrite, epoch: i32, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let partition = write.partition;
        let Some(part) = self.part_mut(partition) else { return };
        let (from, mirror) = (part.state, part.mirror);
        let repeated = std::mem::take(&mut part.is_repeated);
        part.commit(write, epoch);
        let (to, attempt, never_mirrored) = (part.state, part.attempt, part.never_mirrored());
        // A change that came meanwhile is judged by the new state.
        let later = part.change.take().filter(|change| change.to != write.state || change.position != write.position);
        // 1. A stop is in its last step, and STOPPED is being written. 2. The time is over that the stop had. 3. STOPPED is committed:
        // what took too long has come about, and is no failure any more.
        let overtaken = to == MirrorState::Stopped && later.as_ref().is_some_and(|l| l.to == MirrorState::Failed);
        let later = later.filter(|_| cx.guards.admits(guard::StopOutlivesItsTimer, !overtaken));
        if write.state != MirrorState::Unknown && (from != to || to == MirrorState::Failed) {
            cx.trace(Trace::MirrorStateChanged { partition, mirror, from, to, attempt });
        }
        if repeated && cx.guards.admits(guard::RepeatedWriteIsActedOn, false) {
            return; // the mutant repeats the write, not the action
        }
        match later {
            Some(mut later) if later.to == MirrorState::Unknown || later.to.can_follow(to) => {
                // 1. A stop is ordered while MIRRORING is being written; it is to note that nothing was mirrored. 2. MIRRORING is
                // committed. 3. What the log shares with the source is not local.
                let stale = later.position == Some(LastPosition::NOTHING) && !never_mirrored;
                if !cx.guards.admits(guard::StopEndsSessionThatBegan, !stale) {
                    later.position = None;
                }
                self.change(now, partition, later, task, cx);
            }
            _ => self.entered(now, partition, task, cx),
        }
    }

    fn ask_again(&mut self, now: Now, partition: PartitionIx) {
        let at = now.mono + AGAIN;
        if let Some(part) = self.part_mut(partition) {
            if let Some(before) = part.ask_at.replace(at) {
                self.asks.remove(&(before, partition));
            }
            self.asks.insert((at, partition));
        }
    }

    /// Asks the coordinators again that could not answer, when it is time.
    pub(super) fn ask_due(&mut self, now: Now, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        while let Some(&(at, partition)) = self.asks.first() {
            if at > now.mono {
                break;
            }
            self.asks.pop_first();
            let Some(part) = self.part_mut(partition) else { continue };
            part.ask_at = None;
            if part.record.is_none() {
                self.ask_state(partition, task, cx);
            } else if part.writing.is_none() && part.change.is_some() {
                part.is_repeated = true;
                self.write_change(now, partition, task, cx);
            }
        }
    }

    /// Whoever waits to ask again, asks now.
    pub(super) fn ask_now(&mut self, now: Now, cx: &mut Cx<'_>) {
        let waiting: Vec<PartitionIx> =
            std::mem::take(&mut self.asks).into_iter().map(|(_, partition)| partition).collect();
        for partition in waiting {
            if let Some(part) = self.part_mut(partition) {
                part.ask_at = Some(now.mono);
                self.asks.insert((now.mono, partition));
            }
        }
        if !self.asks.is_empty() {
            self.tick_soon(cx);
        }
    }

    pub(super) fn tick_soon(&mut self, cx: &mut Cx<'_>) {
        if self.tasks.back() != Some(&ManagerTask::Tick) {
            self.tasks.push_back(ManagerTask::Tick);
            cx.wake(LANE_MANAGER);
        }
    }

    // ---------------------------------------------------------------------------------------------- as coordinator, for others

    pub(super) fn on_read_states(
        &mut self,
        (conn, correlation): (ConnId, u32),
        request: &ReadMirrorStatesRequest,
        task: &MirrorTask<'_>,
    ) {
        let read = |partition: &PartitionIx| {
            let found = key_in(&request.mirror, *partition, task.image)
                .ok_or(ErrorCode::UnknownTopicOrPartition)
                .and_then(|key| self.coordinator.read_settled(&key, task.image));
            match found {
                Ok(record) => (*partition, ErrorCode::None, record.unwrap_or_default()),
                Err(error) => (*partition, error, StateRecord::default()),
            }
        };
        let parts = request.parts.iter().map(read).collect();
        let answer = ReadMirrorStatesResponse { error: ErrorCode::None, parts };
        self.answers.push((conn, correlation, answer.into()));
    }

    pub(super) fn on_write_states(
        &mut self,
        from: (ConnId, u32),
        request: &WriteMirrorStatesRequest,
        now: Now,
        task: &MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        let writes =
            request.parts.iter().map(|write| (key_in(&request.mirror, write.partition, task.image), write.clone()));
        self.coordinator.request(from, writes.collect(), task.image, now);
        self.tick_soon(cx);
    }

    /// Answers for other brokers' requests.
    pub fn take_answers(&mut self) -> Vec<(ConnId, u32, Body)> {
        let written = self.coordinator.take_answers().into_iter().map(|(conn, c, answer)| (conn, c, answer.into()));
        let mut answers = std::mem::take(&mut self.answers);
        answers.extend(written);
        answers
    }
}

/// The key of a partition under a mirror's name.
fn key_in(mirror: &Arc<str>, partition: PartitionIx, image: &MetadataImage) -> Option<StateKey> {
    let entry = image.partition(partition)?;
    let topic = image.topic(entry.topic)?.id;
    Some(StateKey { mirror: mirror.clone(), topic, number: entry.number })
}

impl super::manager::Part {
    /// Takes over what is committed.
    pub(super) fn take(&mut self, record: StateRecord) {
        (self.state, self.previous, self.attempt) = (record.state, record.previous, record.attempt);
        self.record = Some(record);
    }

    /// What was written is committed.
    fn commit(&mut self, write: &StateWrite, epoch: i32) {
        let before = self.record.take().unwrap_or_default();
        let mut record = StateRecord { state_epoch: epoch, ..before };
        if let Some(position) = write.position {
            record.position = Some(position).filter(|p| *p != LastPosition::CLEAR);
        }
        if write.state != MirrorState::Unknown {
            let failed = write.state == MirrorState::Failed;
            record.previous = match (failed, record.state) {
                (true, MirrorState::Failed) => record.previous,
                (true, before) => before,
                (false, _) => MirrorState::Unknown,
            };
            record.attempt = match write.state {
                MirrorState::Failed if write.for_good => -1,
                MirrorState::Paused | MirrorState::Stopped => 0,
                _ => i16::try_from(write.attempt).ok().filter(|n| *n >= 0).unwrap_or(record.attempt.max(0)),
            };
            record.state = write.state;
            record.leader_epoch = LeaderEpoch(write.leader_epoch.0.max(record.leader_epoch.0));
            record.message = write.message.clone().filter(|_| failed);
        }
        self.take(record);
    }
}
