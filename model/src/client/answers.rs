//! What a consumer makes of answers, and of silence: records, positions, truncations, errors.

use crate::client::consumer::{Asked, Awaits, Consumer, Reset};
use crate::client::delivery::deliver;
use crate::client::sessions::NO_PLACE;
use crate::client::verdicts::is_about_leadership;
use crate::guards::transactions;
use crate::ids::{BrokerId, LeaderEpoch, Now, Offset};
use crate::ports::Cx;
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    Body, EpochAnswer, FetchPartAnswer, FetchResponse, Isolation, LeaderHint, ListOffsetsResponse, OffsetAnswer,
    OffsetFetchResponse, OffsetForLeaderEpochResponse, LATEST,
};

impl Consumer {
    pub(super) fn on_answer(&mut self, now: Now, asked: Asked, body: Body, cx: &mut Cx) {
        match (asked, body) {
            (Asked::Fetch { broker }, Body::FetchResponse(answer)) => self.on_fetched(now, broker, *answer, cx),
            (Asked::Validate { broker, parts }, Body::OffsetForLeaderEpochResponse(answer)) => {
                self.peers.entry(broker).or_default().validating = false;
                self.on_validated(now, &parts, &answer, cx);
            }
            (Asked::Reset { broker, parts }, Body::ListOffsetsResponse(answer)) => {
                self.peers.entry(broker).or_default().resetting = false;
                self.on_reset(now, &parts, &answer, cx);
            }
            (Asked::Ends { broker, parts }, Body::ListOffsetsResponse(answer)) => {
                self.peers.entry(broker).or_default().listing = false;
                self.on_ends(&parts, &answer, cx);
            }
            (Asked::Commit { parts }, Body::OffsetCommitResponse(answer)) => {
                let good = answer.parts.iter().filter(|p| p.1.is_none()).count();
                self.counts.commits += good as u64;
                let bad = |s: &&u32| {
                    let partition = self.slots[**s as usize].partition;
                    !answer.parts.iter().any(|p| p.0 == partition && p.1.is_none())
                };
                let again: Vec<u32> =
                    if good == parts.len() { Vec::new() } else { parts.iter().filter(bad).copied().collect() };
                if !again.is_empty() {
                    self.turn_coordinator(now);
                }
                self.commit_ended(&again);
            }
            (Asked::Committed { parts }, Body::OffsetFetchResponse(answer)) => {
                self.on_committed(now, parts, &answer, cx);
            }
            (asked, _) => self.on_silence(now, asked),
        }
    }

    /// No answer came: everything is asked again.
    pub(super) fn on_silence(&mut self, now: Now, asked: Asked) {
        match asked {
            Asked::Fetch { broker } => {
                let peer = self.peers.entry(broker).or_default();
                peer.fetching = false;
                peer.session.restart();
            }
            Asked::Validate { broker, parts } => {
                self.peers.entry(broker).or_default().validating = false;
                self.file_again(parts.iter().map(|p| p.0), now);
            }
            Asked::Reset { broker, parts } => {
                self.peers.entry(broker).or_default().resetting = false;
                self.file_again(parts.iter().map(|p| p.0), now);
            }
            Asked::Ends { broker, .. } => self.peers.entry(broker).or_default().listing = false,
            Asked::Commit { parts } => {
                self.turn_coordinator(now);
                self.commit_ended(&parts);
            }
            Asked::Committed { parts } => {
                self.resuming = false;
                self.to_resume.extend(parts);
                self.turn_coordinator(now);
            }
        }
    }

    fn file_again(&mut self, slots: impl Iterator<Item = u32>, now: Now) {
        for slot in slots {
            self.delay(slot, now);
        }
    }

    // ---------------------------------------------------------------------------------------------------------- fetch

    fn on_fetched(&mut self, now: Now, broker: BrokerId, answer: FetchResponse, cx: &mut Cx) {
        let peer = self.peers.entry(broker).or_default();
        peer.fetching = false;
        match answer.error {
            ErrorCode::None => peer.session.answered(answer.session_id),
            error => {
                self.counts.session_errors += 1;
                match error {
                    ErrorCode::FetchSessionIdNotFound => peer.session.unknown(),
                    ErrorCode::InvalidFetchSessionEpoch => peer.session.restart(),
                    _ => {
                        peer.session.restart();
                        peer.not_before = now.mono + self.config.retry_backoff;
                    }
                }
                return;
            }
        }
        for part in &answer.parts {
            let Some(slot) = self.peers.get(&broker).and_then(|p| p.session.slot(part.slot)) else { continue };
            let s = &self.slots[slot as usize];
            // A place that was given to another partition meanwhile, or a position that moved: not this one's answer.
            if s.partition != part.partition || s.awaits != Awaits::Records || s.place != part.slot {
                continue;
            }
            if s.asked != s.offset {
                continue;
            }
            match part.error {
                ErrorCode::None => self.on_records(now, broker, slot, part, &answer, cx),
                ErrorCode::OffsetOutOfRange => self.reset(slot),
                error => self.on_error(now, slot, error, part.current_leader, cx),
            }
        }
    }

    fn on_records(
        &mut self,
        now: Now,
        broker: BrokerId,
        slot: u32,
        part: &FetchPartAnswer,
        answer: &FetchResponse,
        cx: &mut Cx,
    ) {
        let isolation = self.config.isolation;
        let s = &mut self.slots[slot as usize];
        s.end = if isolation == Isolation::ReadCommitted { part.last_stable } else { part.high_watermark };
        let from = part.first_batch as usize;
        let batches = answer.batches.get(from..from.saturating_add(part.batch_count as usize)).unwrap_or_default();
        if batches.is_empty() {
            return;
        }
        let mut aborted = part.aborted.as_deref().map_or(&[][..], Vec::as_slice);
        if cx.guards.admits(transactions::AbortedSkipped, aborted.is_empty()) {
            aborted = &[];
        }
        let delivered = deliver(batches, s.offset, isolation, aborted);
        for range in &delivered.ranges {
            cx.trace(Trace::Read {
                partition: s.partition,
                consumer: self.config.number,
                base: range.base,
                next: range.next,
                hash: range.hash,
            });
        }
        let partition = s.partition;
        self.counts.read += delivered.records;
        self.counts.bytes += delivered.bytes;
        let advanced = delivered.next > s.offset;
        if advanced {
            (s.offset, s.last_epoch) = (delivered.next, delivered.epoch);
            self.moved(slot);
        }
        if delivered.corrupt || !advanced {
            if delivered.corrupt {
                self.counts.corrupt += 1;
                cx.trace(Trace::CorruptFound { partition, at: delivered.next });
            }
            self.delay(slot, now);
            return;
        }
        let place = self.slots[slot as usize].place;
        if let Some(peer) = self.peers.get_mut(&broker).filter(|_| place != NO_PLACE) {
            peer.session.touch(place);
        }
    }

    fn on_error(&mut self, now: Now, slot: u32, error: ErrorCode, hint: Option<LeaderHint>, cx: &mut Cx) {
        let (partition, at) = (self.slots[slot as usize].partition, self.slots[slot as usize].offset);
        if error == ErrorCode::CorruptMessage {
            // The broker cannot tell any more where its batches begin.
            self.counts.corrupt += 1;
            cx.trace(Trace::CorruptFound { partition, at });
        }
        let mut changed = Vec::new();
        // UNKNOWN_LEADER_EPOCH: the broker is behind, not we.
        if is_about_leadership(error) && error != ErrorCode::UnknownLeaderEpoch {
            self.cluster.refused(partition, hint, cx, &mut changed);
        }
        if changed.is_empty() {
            self.delay(slot, now);
        } else {
            self.leaders_changed(&changed, cx);
        }
    }

    // ------------------------------------------------------------------------------------------------------ positions

    /// The position is of no use: the reset policy decides.
    fn reset(&mut self, slot: u32) {
        self.unplace(slot);
        let awaits = self.reset_state();
        self.slots[slot as usize].awaits = awaits;
        self.place(slot);
    }

    fn on_validated(
        &mut self,
        now: Now,
        parts: &[(u32, LeaderEpoch, Offset)],
        answer: &OffsetForLeaderEpochResponse,
        cx: &mut Cx,
    ) {
        for (at, &(slot, epoch, offset)) in parts.iter().enumerate() {
            let s = &self.slots[slot as usize];
            if s.awaits != Awaits::Validation || (s.leader_epoch, s.offset) != (epoch, offset) || s.is_delayed() {
                continue; // asked in an older leadership; the question was filed again when that ended
            }
            let same = |a: &&EpochAnswer| a.partition == s.partition;
            match answer.parts.get(at).filter(same).or_else(|| answer.parts.iter().find(same)) {
                Some(a) if a.error.is_none() => self.on_epoch_end(slot, a, cx),
                other => {
                    let error = other.map_or(ErrorCode::UnknownServerError, |a| a.error);
                    self.on_error(now, slot, error, None, cx);
                }
            }
        }
    }

    /// KIP-320: the last epoch's end in the leader's log tells whether the position is still on the log.
    fn on_epoch_end(&mut self, slot: u32, answer: &EpochAnswer, cx: &mut Cx) {
        let end = answer.end;
        let s = &mut self.slots[slot as usize];
        if end.end.0 < 0 || end.epoch == LeaderEpoch::NONE {
            // The leader knows nothing of that epoch or any before it.
            self.counts.truncations += 1;
            self.reset(slot);
            return;
        }
        if end.end >= s.offset {
            s.awaits = Awaits::Records;
            self.place(slot);
            return;
        }
        self.counts.truncations += 1;
        if self.config.reset == Reset::None {
            s.awaits = Awaits::Nothing;
            return;
        }
        let (partition, from) = (s.partition, s.offset);
        (s.offset, s.last_epoch, s.awaits) = (end.end, end.epoch, Awaits::Records);
        cx.trace(Trace::PositionReset { partition, consumer: self.config.number, from, to: end.end });
        self.moved(slot);
        self.place(slot);
    }

    fn on_reset(&mut self, now: Now, parts: &[(u32, LeaderEpoch, i64)], answer: &ListOffsetsResponse, cx: &mut Cx) {
        for (at, &(slot, epoch, timestamp)) in parts.iter().enumerate() {
            let s = &mut self.slots[slot as usize];
            if s.awaits != Awaits::Reset(timestamp) || s.leader_epoch != epoch || s.is_delayed() {
                continue;
            }
            let same = |a: &&OffsetAnswer| a.partition == s.partition;
            let found = answer.parts.get(at).filter(same).or_else(|| answer.parts.iter().find(same)).copied();
            let Some(a) = found.filter(|a| a.error.is_none() && a.offset.0 >= 0) else {
                let error = found.map_or(ErrorCode::UnknownServerError, |a| a.error);
                self.on_error(now, slot, error, None, cx);
                continue;
            };
            let (partition, from, consumer) = (s.partition, s.offset, self.config.number);
            (s.offset, s.last_epoch, s.awaits) = (a.offset, a.leader_epoch, Awaits::Records);
            if timestamp == LATEST {
                cx.trace(Trace::ToldEnd { partition, client: consumer, end: a.offset });
            }
            cx.trace(Trace::PositionReset { partition, consumer, from, to: a.offset });
            self.counts.resets += 1;
            self.moved(slot);
            self.place(slot);
        }
    }

    /// Tells the ends that were asked for in the present leadership; an older leader's late word is no answer any more.
    fn on_ends(&mut self, parts: &[(u32, LeaderEpoch)], answer: &ListOffsetsResponse, cx: &mut Cx) {
        for (at, &(slot, epoch)) in parts.iter().enumerate() {
            let s = &self.slots[slot as usize];
            let same = |a: &&OffsetAnswer| a.partition == s.partition;
            let Some(a) = answer.parts.get(at).filter(same).copied() else { continue };
            if a.error.is_none() && a.offset.0 >= 0 && s.leader_epoch == epoch {
                let (partition, client) = (s.partition, self.config.number);
                cx.trace(Trace::ToldEnd { partition, client, end: a.offset });
            } else if is_about_leadership(a.error) {
                let partition = s.partition;
                self.cluster.want_refresh_of(partition);
            }
        }
    }

    fn on_committed(&mut self, now: Now, parts: Vec<u32>, answer: &OffsetFetchResponse, cx: &mut Cx) {
        if !answer.error.is_none() {
            self.on_silence(now, Asked::Committed { parts });
            return;
        }
        self.resuming = false;
        for (at, slot) in parts.into_iter().enumerate() {
            let partition = self.slots[slot as usize].partition;
            let same = |p: &&(crate::ids::PartitionIx, Offset, LeaderEpoch)| p.0 == partition;
            match answer.parts.get(at).filter(same).or_else(|| answer.parts.iter().find(same)) {
                Some(&(_, offset, epoch)) if offset.0 >= 0 => self.start_from(slot, offset, epoch, cx),
                _ => self.reset(slot),
            }
        }
    }
}
