//! What a mirror fetcher does with what arrives (spec 4.3): the path that every mirrored byte takes.
//!
//! The order of the checks is the prototype's where it matters: the offset first (K14), then the epochs, then the append.

use crate::guards::points::Point;
use crate::guards::{alignment, mirror as guard, prototype as quirk};
use crate::ids::{LeaderEpoch, Nanos, Now, Offset, PartitionIx};
use crate::metadata::image::MetadataImage;
use crate::mirror::epochs::{judge_batch, BatchVerdict};
use crate::mirror::fetcher::{Asked, FailCause, Fetcher, Outcome, Phase, Purpose, Slot, Task};
use crate::mirror::manager::{MirrorManager, MirrorTask, TIMER_MANAGER};
use crate::ports::{Cx, Timer};
use crate::record::batch::BatchView;
use crate::replica::Replicas;
use crate::states::DesiredState;
use crate::trace::{CutCause, Trace};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    Body, EpochEnd, FetchPartAnswer, FetchResponse, ListOffsetsResponse, Message, OffsetForLeaderEpochResponse,
};
use bytes::Bytes;

/// For as long the mutant of M21 holds a partition that it could not append to.
const PARKED: Nanos = Nanos::from_secs(3600);

/// What a partition's processing needs beside its fetcher.
struct Local<'a, 'b> {
    now: Now,
    image: &'a MetadataImage,
    replicas: &'a mut Replicas,
    cx: &'a mut Cx<'b>,
    outcomes: &'a mut Vec<Outcome>,
}

impl MirrorManager {
    /// Runs one task of a fetcher, then asks the source for what is due.
    pub(super) fn run_fetcher(&mut self, now: Now, at: usize, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Some(fetcher) = self.fetchers.get_mut(at) else { return };
        let Some(next) = fetcher.tasks.pop_front() else { return };
        let mut outcomes = std::mem::take(&mut self.outcomes);
        let mut local = Local { now, image: task.image, replicas: task.replicas, cx, outcomes: &mut outcomes };
        fetcher.take_task(next, &mut local);
        for outcome in outcomes.drain(..) {
            self.apply_outcome(now, outcome, task, cx);
        }
        self.outcomes = outcomes;
        let fetcher = &mut self.fetchers[at];
        if fetcher.count > 0 && fetcher.link.is_down() {
            let conn = fetcher.link.open(now, cx);
            self.own_fetcher(conn, at as u32);
        } else if fetcher.count == 0 && fetcher.link.is_ready() {
            if let Some(conn) = fetcher.link.close(cx) {
                fetcher.reset_session();
                self.disown(conn);
            }
        }
        let fetcher = &mut self.fetchers[at];
        fetcher.wake_delayed(now);
        if !fetcher.is_dead {
            fetcher.ask(now, cx);
        }
        if let Some(due) = fetcher.next_deadline() {
            if fetcher.timer_at == Nanos::ZERO || due < fetcher.timer_at {
                fetcher.timer_at = due;
                cx.set_timer(Timer(TIMER_MANAGER.0 + 1 + at as u64), due);
            }
        }
    }
}

impl Fetcher {
    fn take_task(&mut self, task: Task, local: &mut Local<'_, '_>) {
        match task {
            Task::Opened => self.link.on_opened(),
            Task::Closed => {
                self.link.on_closed();
                self.source_lost(local);
            }
            Task::Kick => {
                if self.link.deadline().is_some_and(|at| at <= local.now.mono) {
                    self.ask_for_less(local.cx.guards);
                    self.link.close(local.cx);
                    self.source_lost(local);
                }
            }
            Task::Answer(Message { correlation, body }) => {
                if !self.link.on_answer(correlation) {
                    // A second copy of an answer holds what was asked for before (R16); TCP and the correlation id stand in front
                    // of the slot, so the mutant has to get past them.
                    if let Body::FetchResponse(answer) = body {
                        if local.cx.guards.admits(guard::MirrorAnswerIsCurrent, false) {
                            self.on_fetched(&answer, local);
                        }
                    }
                    return;
                }
                match (std::mem::take(&mut self.asked), body) {
                    (Asked::Fetch, Body::FetchResponse(answer)) => self.on_fetched(&answer, local),
                    (Asked::Epochs, Body::OffsetForLeaderEpochResponse(answer)) => self.on_epochs(&answer, local),
                    (Asked::Offsets, Body::ListOffsetsResponse(answer)) => self.on_offsets(&answer, local),
                    _ => {
                        self.link.close(local.cx);
                        self.source_lost(local);
                    }
                }
            }
        }
    }

    /// The whole request failed: every partition leaves, and is looked up again (spec 4.3, last line).
    fn source_lost(&mut self, local: &mut Local<'_, '_>) {
        self.asked = Asked::Nothing;
        self.reset_session();
        let held: Vec<PartitionIx> = self.partitions().collect();
        local.outcomes.extend(held.into_iter().map(|p| Outcome::Fail(p, FailCause::SourceUnreachable)));
    }

    fn on_fetched(&mut self, answer: &FetchResponse, local: &mut Local<'_, '_>) {
        if !answer.error.is_none() {
            return self.reset_session();
        }
        self.heard_at = local.now.mono;
        self.ask_for_more(local.now);
        if answer.session_id == 0 {
            // The source keeps no session for us (its cache is full): every request has to name everything.
            self.reset_session();
        } else {
            self.session_id = answer.session_id;
            self.session_epoch = if self.session_epoch == i32::MAX { 1 } else { self.session_epoch + 1 };
        }
        for part in &answer.parts {
            let first = part.first_batch as usize;
            let batches = answer.batches.get(first..first + part.batch_count as usize).unwrap_or_default();
            self.on_part(part, batches, local);
        }
    }

    fn on_part(&mut self, answer: &FetchPartAnswer, batches: &[Bytes], local: &mut Local<'_, '_>) {
        let current = self.slot(answer.slot).is_some_and(|slot| {
            slot.source_partition == answer.partition && slot.phase == Phase::Fetching && slot.asked == slot.offset
        });
        // A slot that was let go has no partition to append to, guard or not.
        let Some(slot) = self.slot(answer.slot).copied() else { return };
        if !local.cx.guards.admits(guard::MirrorAnswerIsCurrent, current) {
            return;
        }
        match answer.error {
            ErrorCode::None => {
                let before = local.outcomes.len();
                if let Some(slot) = self.slot_mut(answer.slot) {
                    (slot.source_hw, slot.answered_at, slot.unproven) = (answer.high_watermark, local.now.mono, false);
                }
                match answer.diverging {
                    Some(end) => self.on_diverging(answer.slot, end, local),
                    None => self.append(answer, batches, local),
                }
                // 1. A partition fails because a batch is damaged. 2. It is tried again, the source answers, and that counts as work
                // taken up. 3. The same batch fails it again, for the first time: it never waits longer, nor uses up its budget.
                let failed = local.outcomes[before..].iter().any(|outcome| matches!(outcome, Outcome::Fail(..)));
                if slot.unproven && !failed {
                    local.outcomes.insert(before, Outcome::Proven(slot.partition));
                }
            }
            ErrorCode::OffsetOutOfRange => self.set_phase(answer.slot, Phase::Locating),
            ErrorCode::FencedLeaderEpoch | ErrorCode::NotLeaderOrFollower => self.on_new_leader(answer, local),
            ErrorCode::UnknownLeaderEpoch => self.on_unknown_epoch(answer, local),
            ErrorCode::CorruptMessage => {
                // The source found it out by itself: it cannot tell where a batch begins any more.
                local.cx.trace(Trace::CorruptFound { partition: slot.partition, at: slot.offset });
                local.outcomes.push(Outcome::Fail(slot.partition, FailCause::SourceCorrupt));
            }
            // Unknown topic, another id, storage trouble: the source may come round.
            _ => self.set_phase(answer.slot, self.set_aside(local)),
        }
    }

    fn append(&mut self, answer: &FetchPartAnswer, batches: &[Bytes], local: &mut Local<'_, '_>) {
        let Some(slot) = self.slot(answer.slot).copied() else { return };
        let partition = slot.partition;
        // A partition that this broker leads no more has no fetcher (S10); the metadata task removed it.
        let Some(local_epoch) = local.replicas.leads(partition) else { return };
        if let Some(last) = batches.last().and_then(|b| BatchView::parse(b).ok()) {
            let end = local.replicas.log(partition).map_or(Offset::UNKNOWN, |log| log.end());
            // Its fetcher alone lets this log grow and cuts it, and moves the slot with it (spec 4.1, 4.3).
            if slot.offset != end {
                return local.outcomes.push(Outcome::Fail(partition, FailCause::OffsetMismatch));
            }
            match judge_batch(last.leader_epoch(), slot.epoch, local_epoch, local.cx.guards) {
                BatchVerdict::FenceFirst => return local.outcomes.push(Outcome::Fence(partition, last.leader_epoch())),
                BatchVerdict::SourceMetadataStale => {
                    return local.outcomes.push(Outcome::Fail(partition, FailCause::SourceMetadataStale));
                }
                BatchVerdict::AppendAndBump if !slot.bump_asked => {
                    local.outcomes.push(Outcome::Bump(partition, slot.epoch.max(last.leader_epoch())));
                    if let Some(slot) = self.slot_mut(answer.slot) {
                        slot.bump_asked = true;
                    }
                }
                BatchVerdict::AppendAndBump | BatchVerdict::Append => {}
            }
            match local.replicas.append_mirrored(local.now, partition, batches, local.cx) {
                // A cut of this log is not durable yet.
                Ok(info) if info.batches == 0 => {
                    return self.set_phase(answer.slot, self.set_aside(local));
                }
                Ok(info) => {
                    let source = self.key.source;
                    local.cx.trace(Trace::Mirrored {
                        partition,
                        source,
                        source_partition: slot.source_partition,
                        base: info.base,
                        next: info.next,
                        source_hw: answer.high_watermark,
                        source_epoch: slot.epoch,
                        bytes: info.bytes,
                    });
                    if let Some(slot) = self.slot_mut(answer.slot) {
                        slot.offset = info.next;
                        slot.last_fetched_epoch = info.last_epoch;
                    }
                    self.mark_dirty(answer.slot);
                }
                Err(error) => {
                    let cause = if error.code() == ErrorCode::CorruptMessage {
                        let at = local.replicas.log(partition).map_or(slot.offset, |log| log.end());
                        local.cx.trace(Trace::CorruptFound { partition, at });
                        FailCause::SourceCorrupt
                    } else {
                        FailCause::Storage
                    };
                    let stored = cause == FailCause::Storage;
                    if stored && local.cx.guards.admits(guard::StorageErrorsFail, false) {
                        return self.set_phase(answer.slot, Phase::Delayed(local.now.mono + PARKED));
                        // the mutant
                    }
                    return local.outcomes.push(Outcome::Fail(partition, cause));
                }
            }
        }
        local.replicas.follow_source_log_start(local.now, partition, answer.log_start, local.cx);
    }

    /// Until the end of `fetch.backoff.ms`.
    fn set_aside(&self, local: &mut Local<'_, '_>) -> Phase {
        let short = local.cx.guards.points.fires(Point::MirrorBackoffShort);
        Phase::Delayed(local.now.mono + Nanos(self.limits.backoff.0 / if short { 16 } else { 1 }))
    }

    /// The source refuses: it leads no more, or in a newer epoch (spec 4.3 "new-leader handling").
    fn on_new_leader(&mut self, answer: &FetchPartAnswer, local: &mut Local<'_, '_>) {
        let Some(slot) = self.slot(answer.slot).copied() else { return };
        let backoff = self.set_aside(local);
        let Some(hint) = answer.current_leader.filter(|h| h.epoch >= LeaderEpoch(0)) else {
            return local.outcomes.push(Outcome::Fail(slot.partition, FailCause::SourceLeaderUnknown));
        };
        match hint.node {
            Some(node) if node == self.key.source => {
                if hint.epoch > slot.epoch {
                    // The same broker leads on, in a newer epoch: its log may differ from what it had before.
                    if let Some(slot) = self.slot_mut(answer.slot) {
                        (slot.epoch, slot.unproven) = (hint.epoch, true);
                    }
                    let knows_none = slot.last_fetched_epoch == LeaderEpoch::NONE;
                    let goes_on = knows_none || local.cx.guards.admits(guard::EpochAskedBeforeFetch, false);
                    self.set_phase(answer.slot, if goes_on { Phase::Fetching } else { Phase::Truncating });
                } else {
                    self.set_phase(answer.slot, backoff);
                }
            }
            Some(_) => {
                if local.cx.guards.admits(guard::FetcherFollowsSourceLeader, false) {
                    return self.set_phase(answer.slot, backoff); // the mutant stays and asks again
                }
                local.outcomes.push(Outcome::Moved(slot.partition, hint));
            }
            None => local.outcomes.push(Outcome::Fail(slot.partition, FailCause::SourceLeaderUnknown)),
        }
    }

    /// The source broker lags behind what we know; it will catch up (M06).
    fn on_unknown_epoch(&mut self, answer: &FetchPartAnswer, local: &mut Local<'_, '_>) {
        if local.cx.guards.admits(guard::UnknownLeaderEpochBacksOff, false) {
            if let Some(slot) = self.slot_mut(answer.slot) {
                slot.epoch = LeaderEpoch((slot.epoch.0 - 1).max(0)); // the mutant goes down until the laggard agrees
            }
            return self.set_phase(answer.slot, Phase::Fetching);
        }
        self.set_phase(answer.slot, self.set_aside(local));
    }

    // -------------------------------------------------------------------------------------------------------- divergence

    /// Where our last epochs end at the source. An answer that does not fit the question fails as a whole (REP-22).
    fn on_epochs(&mut self, answer: &OffsetForLeaderEpochResponse, local: &mut Local<'_, '_>) {
        let asked = std::mem::take(&mut self.questions);
        if asked.len() != answer.parts.len() {
            return self.refuse_answer(&asked, local);
        }
        for (at, part) in asked.into_iter().zip(&answer.parts) {
            let Some(slot) = self.slot(at).copied().filter(|s| s.phase == Phase::Truncating) else { continue };
            let refused = part.error == ErrorCode::FencedLeaderEpoch && slot.source_partition == part.partition;
            if refused && local.cx.guards.quirk(quirk::EpochAnswerNeedsOldEpoch) {
                self.set_phase(at, Phase::Truncating);
            } else if !part.error.is_none() || slot.source_partition != part.partition {
                local.outcomes.push(Outcome::Fail(slot.partition, FailCause::SourceMetadataStale));
            } else if part.end.end < Offset::ZERO {
                self.on_epoch_above_source(at, local);
            } else {
                self.on_diverging(at, part.end, local);
            }
        }
    }

    /// Our last epoch is above everything the source knows. The stock rule cuts nothing here (spec 3.9), but a fetch that names
    /// this epoch is answered OFFSET_OUT_OF_RANGE, and so is every one after it. If nothing was written in it (this broker led
    /// before the topic was mirrored), it is forgotten; else the source's log is another one from where it begins (decision
    /// 39).
    fn on_epoch_above_source(&mut self, at: u32, local: &mut Local<'_, '_>) {
        let Some(slot) = self.slot(at).copied() else { return };
        let Some(log) = local.replicas.log(slot.partition) else { return };
        let (start, end) = (log.start(), log.end());
        let from = log.epochs().entries().last().map_or(end, |entry| entry.start.max(start));
        self.cut(at, from, end, local);
    }

    fn refuse_answer(&mut self, asked: &[u32], local: &mut Local<'_, '_>) {
        let failed = asked.iter().filter_map(|at| self.slot(*at)).map(|s| s.partition);
        local.outcomes.extend(failed.map(|p| Outcome::Fail(p, FailCause::SourceMetadataStale)));
    }

    /// Our last epoch ends at `theirs` in the source's log: cut what lies beyond, if that is allowed (decision 39).
    fn on_diverging(&mut self, at: u32, theirs: EpochEnd, local: &mut Local<'_, '_>) {
        let Some(slot) = self.slot(at).copied() else { return };
        let Some(log) = local.replicas.log(slot.partition) else { return };
        let end = log.end();
        let ours = log.end_offset_for(theirs.epoch);
        let to =
            if ours.end < Offset::ZERO || ours.epoch == theirs.epoch { theirs.end.min(end) } else { ours.end.min(end) };
        let to = if ours.epoch == theirs.epoch && ours.end >= Offset::ZERO { to.min(ours.end) } else { to };
        self.cut(at, to, end, local);
    }

    fn cut(&mut self, at: u32, to: Offset, end: Offset, local: &mut Local<'_, '_>) {
        let Some(slot) = self.slot(at).copied() else { return };
        if let Purpose::Align { may_cut } = slot.purpose {
            return self.cut_aligning(at, &slot, to.min(end), may_cut, local);
        }
        if to >= end {
            return self.nothing_to_cut(at, &slot, end, local);
        }
        if local.cx.guards.admits(guard::DivergenceCuts, false) {
            return self.set_phase(at, Phase::Fetching);
        }
        let supported = local.image.topic_config(slot.topic).mirror_support_unclean_leader_election;
        if !local.cx.guards.admits(guard::DivergenceNeedsSupport, supported) {
            return local.outcomes.push(Outcome::Contradicted(slot.partition, to));
        }
        match local.replicas.truncate_mirror_leader(local.now, slot.partition, to, CutCause::MirrorDivergence, local.cx)
        {
            Ok(_) => local.outcomes.push(Outcome::Cut(slot.partition, to)),
            Err(_) => local.outcomes.push(Outcome::Fail(slot.partition, FailCause::Storage)),
        }
    }

    /// The same in LOG_ALIGNMENT: cut, and ask again until nothing is left that the source does not have (decision 27).
    fn cut_aligning(&mut self, at: u32, slot: &Slot, to: Offset, may_cut: bool, local: &mut Local<'_, '_>) {
        let end = local.replicas.log(slot.partition).map_or(to, |log| log.end());
        if to < end && !may_cut {
            return local.outcomes.push(Outcome::Contradicted(slot.partition, to));
        }
        let stops = local.image.mirror_of(slot.topic).is_some_and(|(_, desired)| desired == DesiredState::Stopped);
        if !local.cx.guards.admits(alignment::StopComesBeforeCut, !stops) {
            return self.set_phase(at, Phase::Truncating); // and asks again, until it is taken from here
        }
        let cause = CutCause::Alignment;
        if local.replicas.truncate_mirror_leader(local.now, slot.partition, to, cause, local.cx).is_err() {
            return local.outcomes.push(Outcome::Fail(slot.partition, FailCause::Storage));
        }
        let log = local.replicas.log(slot.partition);
        let (latest, offset) = log.map_or((LeaderEpoch::NONE, to), |log| (log.latest_epoch(), log.end()));
        let agreed = latest == LeaderEpoch::NONE || (latest == slot.last_fetched_epoch && to >= end);
        if !local.cx.guards.admits(alignment::AlignmentRepeatsEpochs, agreed) {
            if let Some(slot) = self.slot_mut(at) {
                (slot.last_fetched_epoch, slot.offset) = (latest, offset);
            }
            return self.set_phase(at, Phase::Truncating);
        }
        local.outcomes.push(Outcome::Aligned(slot.partition));
    }

    /// No batch differs. What may differ is an epoch in which this broker led and wrote nothing: it is forgotten, else every
    /// fetch that names it gets the same answer. If there is none, the source may know more later.
    fn nothing_to_cut(&mut self, at: u32, before: &Slot, end: Offset, local: &mut Local<'_, '_>) {
        let cause = CutCause::MirrorDivergence;
        if local.replicas.truncate_mirror_leader(local.now, before.partition, end, cause, local.cx).is_err() {
            return local.outcomes.push(Outcome::Fail(before.partition, FailCause::Storage));
        }
        let latest = local.replicas.log(before.partition).map_or(LeaderEpoch::NONE, |log| log.latest_epoch());
        if let Some(slot) = self.slot_mut(at) {
            slot.last_fetched_epoch = latest;
        }
        let again = before.phase == Phase::Fetching && before.last_fetched_epoch == latest;
        let phase = if again { self.set_aside(local) } else { Phase::Fetching };
        self.set_phase(at, phase);
    }

    // ------------------------------------------------------------------------------------------------------ out of range

    /// First and last offset of the source's log, after OFFSET_OUT_OF_RANGE (spec 4.6, decisions 39 and 40).
    fn on_offsets(&mut self, answer: &ListOffsetsResponse, local: &mut Local<'_, '_>) {
        let asked = std::mem::take(&mut self.questions);
        if asked.len() * 2 != answer.parts.len() {
            return self.refuse_answer(&asked, local);
        }
        for (at, pair) in asked.into_iter().zip(answer.parts.chunks(2)) {
            let [first, last] = pair else { continue };
            let Some(slot) = self.slot(at).copied().filter(|s| s.phase == Phase::Locating) else { continue };
            if !first.error.is_none() || !last.error.is_none() || first.partition != slot.source_partition {
                local.outcomes.push(Outcome::Fail(slot.partition, FailCause::SourceMetadataStale));
                continue;
            }
            let end = local.replicas.log(slot.partition).map_or(slot.offset, |log| log.end());
            if last.offset < end {
                self.cut(at, last.offset, end, local);
            } else if first.offset > end {
                self.jump_gap(at, end, first.offset, local);
            } else {
                // The offset is in range: it was refused for its epoch, or the log grew meanwhile and may be another one.
                let nothing = slot.last_fetched_epoch == LeaderEpoch::NONE;
                self.set_phase(at, if nothing { Phase::Fetching } else { Phase::Truncating });
            }
        }
    }

    /// The source's retention was faster than the mirror: what lies between is gone, and is said to be (decision 40).
    fn jump_gap(&mut self, at: u32, from: Offset, to: Offset, local: &mut Local<'_, '_>) {
        let Some(slot) = self.slot(at).copied() else { return };
        let partition = slot.partition;
        if local.replicas.restart_mirror_leader_at(local.now, partition, to, local.cx).is_err() {
            return local.outcomes.push(Outcome::Fail(partition, FailCause::Storage));
        }
        if !local.cx.guards.admits(guard::MirrorReportsGap, false) {
            local.cx.trace(Trace::MirrorGap { partition, from, to });
            local.outcomes.push(Outcome::Gap(partition, from, to));
        }
        if let Some(slot) = self.slot_mut(at) {
            slot.offset = to;
            slot.last_fetched_epoch = LeaderEpoch::NONE;
        }
        self.set_phase(at, Phase::Fetching);
    }
}

#[cfg(test)]
#[path = "copy_tests.rs"]
mod tests;
