//! What a replica fetcher does with answers (stock `AbstractFetcherThread`, spec 3.8, 3.9).

use crate::guards::points::Point;
use crate::guards::replication as guard;
use crate::ids::{LeaderEpoch, Nanos, Now, Offset};
use crate::log::AppendError;
use crate::ports::Cx;
use crate::replica::partition::{mutant, Replicas, NONE};
use crate::replica::replica_fetcher::{FetchState, Fetcher, FetcherConfig, FLUSH_LOOK};
use crate::trace::{CutCause, Trace};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{Body, FetchPartAnswer, FetchResponse, ListOffsetsResponse, Message};

impl Fetcher {
    pub(crate) fn take_answer(
        &mut self,
        message: Message,
        config: &FetcherConfig,
        replicas: &mut Replicas,
        now: Now,
        cx: &mut Cx,
    ) {
        // A second copy of an answer holds what an earlier position asked for (R16); TCP and the correlation id stand in front
        // of the offset, so the mutant has to get past them.
        let asked = self.in_flight.is_some_and(|f| f.correlation == message.correlation);
        let fetched = matches!(message.body, Body::FetchResponse(_));
        let taken = asked || (fetched && mutant(cx.guards, guard::FetchOffsetMatches, true));
        if !taken {
            return;
        }
        if asked {
            self.in_flight = None;
        }
        match message.body {
            Body::FetchResponse(answer) => self.fetched(&answer, config, replicas, now, cx),
            Body::ListOffsetsResponse(answer) => self.offsets(&answer, config, replicas, now, cx),
            _ => {}
        }
    }

    fn fetched(
        &mut self,
        answer: &FetchResponse,
        config: &FetcherConfig,
        replicas: &mut Replicas,
        now: Now,
        cx: &mut Cx,
    ) {
        if !answer.error.is_none() {
            self.end_session();
            return;
        }
        if self.session_epoch == 0 {
            self.session_id = answer.session_id;
        }
        self.session_epoch = match (self.session_id, self.session_epoch) {
            (0, _) => 0,
            (_, i32::MAX) => 1,
            (_, epoch) => epoch + 1,
        };
        for part in &answer.parts {
            self.take_part(part, answer, config, replicas, now, cx);
        }
    }

    fn take_part(
        &mut self,
        part: &FetchPartAnswer,
        answer: &FetchResponse,
        config: &FetcherConfig,
        replicas: &mut Replicas,
        now: Now,
        cx: &mut Cx,
    ) {
        let Some(slot) = self.slots.get(part.slot as usize).copied() else { return };
        if slot.partition != part.partition || slot.state != FetchState::Fetching {
            return;
        }
        if !cx.guards.admits(guard::FetchEpochMatches, slot.sent_epoch == slot.leader_epoch)
            || !cx.guards.admits(guard::FetchOffsetMatches, slot.sent_offset == slot.fetch_offset)
        {
            return;
        }
        let Some(at) = replicas.slot(slot.partition) else { return };
        let until = now.mono + backoff(config, cx);
        match part.error {
            ErrorCode::None if part.misaligned => self.misaligned(at, part, replicas, now, cx),
            ErrorCode::None if part.diverging.is_some() => self.diverged(at, part, until, replicas, now, cx),
            ErrorCode::None => self.append(at, part, answer, until, replicas, now, cx),
            ErrorCode::OffsetOutOfRange => {
                self.slots[part.slot as usize].state = FetchState::OutOfRange;
                self.forgotten.push(part.slot);
                self.out_of_range.push(part.slot);
            }
            // The leader is ahead: metadata is on its way here, and starts the partition anew.
            ErrorCode::FencedLeaderEpoch => self.fail(part.slot),
            // Everything else may heal: the leader is behind, or moved.
            error => {
                if error == ErrorCode::CorruptMessage {
                    // The leader cannot tell any more where its batches begin.
                    cx.trace(Trace::CorruptFound { partition: slot.partition, at: slot.fetch_offset });
                }
                self.delay(part.slot, until);
            }
        }
    }

    fn fail(&mut self, slot_no: u32) {
        self.slots[slot_no as usize].state = FetchState::Failed;
        self.forgotten.push(slot_no);
    }

    /// Cuts, and fetches on from the cut. Nothing else of the answer is taken (R12).
    fn diverged(
        &mut self,
        at: usize,
        part: &FetchPartAnswer,
        until: Nanos,
        replicas: &mut Replicas,
        now: Now,
        cx: &mut Cx,
    ) {
        let Some(end) = part.diverging else { return };
        if mutant(cx.guards, guard::WatermarkAfterCut, part.high_watermark != Offset::UNKNOWN) {
            replicas.follow_watermark(at, part.high_watermark, cx);
        }
        let stand = |slot: &crate::replica::replica_fetcher::FetchSlot| (slot.fetch_offset, slot.last_fetched_epoch);
        let before = stand(&self.slots[part.slot as usize]);
        match replicas.cut_by_epoch(at, end, now, cx) {
            Ok(to) => {
                self.restart_slot(part.slot, at, to, replicas);
                if stand(&self.slots[part.slot as usize]) == before {
                    // Asked to cut and nothing to cut: the leader may know more later.
                    self.delay(part.slot, until);
                }
            }
            Err(_) => {
                replicas.take_offline(at);
                self.fail(part.slot);
            }
        }
    }

    /// Cuts what an alignment that this replica missed did away with, and fetches on once the cut is durable and noted.
    fn misaligned(&mut self, at: usize, part: &FetchPartAnswer, replicas: &mut Replicas, now: Now, cx: &mut Cx) {
        let Some(end) = part.diverging else { return };
        match replicas.follow_alignment(at, end, now, cx) {
            Ok(to) => {
                self.restart_slot(part.slot, at, to, replicas);
                self.delay(part.slot, now.mono + FLUSH_LOOK);
            }
            Err(_) => {
                replicas.take_offline(at);
                self.fail(part.slot);
            }
        }
    }

    fn restart_slot(&mut self, slot_no: u32, at: usize, to: Offset, replicas: &Replicas) {
        let latest = replicas.logs[at].as_ref().map_or(LeaderEpoch::NONE, |log| log.latest_epoch());
        let slot = &mut self.slots[slot_no as usize];
        slot.fetch_offset = to;
        slot.last_fetched_epoch = latest;
        slot.state = FetchState::Fetching;
        self.change(slot_no);
    }

    #[allow(clippy::too_many_arguments)] // the inside of one loop
    fn append(
        &mut self,
        at: usize,
        part: &FetchPartAnswer,
        answer: &FetchResponse,
        until: Nanos,
        replicas: &mut Replicas,
        now: Now,
        cx: &mut Cx,
    ) {
        let first = part.first_batch as usize;
        let Some(batches) = answer.batches.get(first..first + part.batch_count as usize) else {
            return self.delay(part.slot, until);
        };
        let slot = self.slots[part.slot as usize];
        // The highest epoch that batches may have.
        let bound = if slot.mirror_epoch == LeaderEpoch::NONE { slot.leader_epoch } else { slot.mirror_epoch };
        match replicas.follow(at, batches, bound, part.high_watermark, part.log_start, now, cx) {
            Ok(info) => {
                let slot = &mut self.slots[part.slot as usize];
                let mut changed = false;
                if let Some(info) = info.filter(|info| info.batches > 0) {
                    slot.fetch_offset = info.next;
                    slot.last_fetched_epoch = info.last_epoch;
                    changed = true;
                } else if mutant(cx.guards, guard::LastFetchedEpochKept, slot.last_fetched_epoch != LeaderEpoch::NONE) {
                    slot.last_fetched_epoch = LeaderEpoch::NONE;
                    changed = true;
                }
                let mirrored = slot.mirror_epoch != LeaderEpoch::NONE;
                let higher = mirrored && part.mirror_leader_epoch > slot.mirror_epoch;
                if higher && !mutant(cx.guards, guard::MirrorEpochBound, true) {
                    // After the append: batches above the old bound come again with the next answer (spec 3.8).
                    slot.mirror_epoch = part.mirror_leader_epoch;
                    changed = true;
                }
                if changed {
                    self.change(part.slot);
                }
                if replicas.awaits_flush(at) {
                    // The next fetch tells the leader how far this replica is: as far as its disk, for such a topic.
                    self.delay(part.slot, now.mono + FLUSH_LOOK);
                }
            }
            Err(AppendError::Disk(_) | AppendError::Offline) => {
                replicas.take_offline(at);
                self.fail(part.slot);
            }
            Err(error) => {
                if error.code() == ErrorCode::CorruptMessage {
                    let at = replicas.logs[at].as_ref().map_or(slot.fetch_offset, |log| log.end());
                    cx.trace(Trace::CorruptFound { partition: slot.partition, at });
                }
                self.delay(part.slot, until);
            }
        }
    }

    /// The leader's end and start, after out-of-range answers (stock `fetchOffsetAndTruncate`).
    fn offsets(
        &mut self,
        answer: &ListOffsetsResponse,
        config: &FetcherConfig,
        replicas: &mut Replicas,
        now: Now,
        cx: &mut Cx,
    ) {
        let asked = std::mem::take(&mut self.asked);
        let until = now.mono + backoff(config, cx);
        for (at, slot_no) in asked.into_iter().enumerate() {
            let slot = self.slots[slot_no as usize];
            if slot.state != FetchState::OutOfRange
                || !cx.guards.admits(guard::FetchEpochMatches, slot.sent_epoch == slot.leader_epoch)
            {
                continue;
            }
            let (Some(latest), Some(earliest)) = (answer.parts.get(at * 2), answer.parts.get(at * 2 + 1)) else {
                self.delay(slot_no, until);
                continue;
            };
            let Some(replica) = replicas.slot(slot.partition) else { continue };
            if !latest.error.is_none() || !earliest.error.is_none() || latest.partition != slot.partition {
                self.delay(slot_no, until);
                continue;
            }
            self.back_in_range(slot_no, replica, latest.offset, earliest.offset, until, replicas, now, cx);
        }
    }

    #[allow(clippy::too_many_arguments)] // the inside of one loop
    fn back_in_range(
        &mut self,
        slot_no: u32,
        at: usize,
        leader_end: Offset,
        leader_start: Offset,
        until: Nanos,
        replicas: &mut Replicas,
        now: Now,
        cx: &mut Cx,
    ) {
        let Some((end, knows)) =
            replicas.logs[at].as_ref().map(|log| (log.end(), log.latest_epoch() != LeaderEpoch::NONE))
        else {
            return;
        };
        let done = if leader_end < end {
            replicas.cut(at, leader_end, CutCause::OutOfRange, now, cx).map(|_| true)
        } else if leader_start > end || leader_start == end && knows {
            // Nothing here is in the leader's log. What this one ended with may be of an epoch that the leader never had.
            replicas.restart_at(at, leader_start, CutCause::OutOfRange, cx).map(|()| true)
        } else {
            Ok(false)
        };
        match done {
            Ok(moved) => {
                let end = replicas.logs[at].as_ref().map_or(end, |log| log.end());
                self.restart_slot(slot_no, at, end, replicas);
                if !moved {
                    self.delay(slot_no, until);
                }
            }
            Err(_) => {
                replicas.take_offline(at);
                self.fail(slot_no);
            }
        }
    }

    /// Logs that know no epoch are cut to their watermark before the first fetch (stock `truncateToHighWatermark`).
    pub(crate) fn truncate_to_watermark(&mut self, replicas: &mut Replicas, now: Now, cx: &mut Cx) {
        for slot_no in std::mem::take(&mut self.truncating) {
            let slot = self.slots[slot_no as usize];
            if slot.state != FetchState::Truncating {
                continue;
            }
            let Some(at) = replicas.slot(slot.partition) else { continue };
            if replicas.hot[at].fetch_slot == NONE {
                continue;
            }
            match replicas.cut(at, slot.fetch_offset, CutCause::Divergence, now, cx) {
                Ok(_) => self.restart_slot(slot_no, at, slot.fetch_offset, replicas),
                Err(_) => {
                    replicas.take_offline(at);
                    self.fail(slot_no);
                }
            }
        }
    }
}

/// `replica.fetch.backoff.ms`.
fn backoff(config: &FetcherConfig, cx: &mut Cx) -> Nanos {
    let short = cx.guards.points.fires(Point::ReplicaBackoffShort);
    Nanos(config.backoff.0 / if short { 16 } else { 1 })
}
