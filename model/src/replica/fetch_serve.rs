//! Answers fetches: checks epochs, tells diverging followers where to cut, takes positions, reads.
//!
//! Order matters: a position is believed only after the divergence check (R11) and only in the present leader epoch (R03).

use crate::guards::points::Point;
use crate::guards::{replication as guard, transactions};
use crate::ids::{ConnId, LeaderEpoch, Nanos, Now, Offset, PartitionIx};
use crate::ports::Cx;
use crate::record::HeaderView;
use crate::replica::fetch_session::{NoRoom, Parked, SessionSlot};
use crate::replica::partition::{mutant, Hot, Replicas, Watcher};
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{AbortedTransaction, EpochEnd, FetchPartAnswer, FetchRequest, FetchResponse, Isolation};

/// What a fetch came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Fetched {
    /// The answer.
    Answer(Box<FetchResponse>),
    /// It waits; the session of this index wants its timer at this time, unless one is armed already.
    Parked {
        /// Index of the session.
        session: u32,
        /// When to look again; `None` if an armed timer serves.
        timer_at: Option<Nanos>,
    },
}

/// What a look at one slot gave.
enum Look {
    /// Nothing that the reader does not know.
    Nothing,
    /// An entry without data that ends no wait.
    News,
    /// An entry with data.
    Data,
    /// An entry that ends the wait: an error or a divergence.
    Verdict,
}

impl Replicas {
    /// A fetch request. Sessions, epochs and answers follow KIP-227.
    pub fn fetch(&mut self, conn: ConnId, correlation: u32, request: &FetchRequest, now: Now, cx: &mut Cx) -> Fetched {
        if request.session_id != 0 && cx.guards.points.fires(Point::FetchSessionEvicted) {
            if let Some(at) = self.sessions.find(request.session_id) {
                self.sessions.close(at);
            }
        }
        let session = match self.session_of(conn, request, now.mono) {
            Ok(session) => session,
            Err(error) => {
                let answer = FetchResponse { error, session_id: request.session_id, ..Default::default() };
                return Fetched::Answer(Box::new(answer));
            }
        };
        for &slot in &request.forgotten {
            self.forget(session, slot);
        }
        for part in &request.parts {
            let slot = self.sessions.list[session].slots.get(part.slot as usize);
            if slot.is_some_and(|s| s.flags & SessionSlot::WATCHING != 0 && s.partition != part.partition) {
                self.forget(session, part.slot);
            }
        }
        self.sessions.take(session, conn, request, now.mono);
        let points = &mut cx.guards.points;
        let parked = Parked {
            conn,
            correlation,
            deadline: now.mono + Nanos::from_millis(u64::from(request.max_wait_ms)),
            min_bytes: if points.fires(Point::FetchWaitsInVain) { u32::MAX } else { request.min_bytes },
            max_bytes: if points.fires(Point::FetchCutShort) { 1 } else { request.max_bytes },
        };
        let asks_at_once = request.max_wait_ms == 0 || request.min_bytes == 0;
        let at_once = asks_at_once || points.fires(Point::FetchAnswersAtOnce);
        match self.serve(session, &parked, at_once, now, cx) {
            Some(answer) => Fetched::Answer(Box::new(answer)),
            None => {
                let state = &mut self.sessions.list[session];
                state.parked = Some(parked);
                state.ready = false;
                let timer_at = if state.timer_at.is_some_and(|at| at <= parked.deadline) {
                    None
                } else {
                    state.timer_at = Some(parked.deadline);
                    Some(parked.deadline)
                };
                Fetched::Parked { session: session as u32, timer_at }
            }
        }
    }

    fn session_of(&mut self, conn: ConnId, request: &FetchRequest, now: Nanos) -> Result<usize, ErrorCode> {
        if request.session_epoch > 0 {
            let session = self.sessions.find(request.session_id).ok_or(ErrorCode::FetchSessionIdNotFound)?;
            let error = self.sessions.check(session, request.session_epoch);
            return if error.is_none() { Ok(session) } else { Err(error) };
        }
        if let Some(old) = self.sessions.find(request.session_id) {
            self.drop_session(old);
        }
        let mut lasting = request.session_epoch == 0;
        if lasting {
            match self.sessions.room(request.replica.0 >= 0, request.parts.len(), now) {
                // One with a request under way ends with the answer to it.
                Ok(Some(gives_way)) if self.sessions.expires_with_answer(gives_way) => {}
                Ok(Some(gives_way)) => self.drop_session(gives_way),
                Ok(None) => {}
                Err(NoRoom) => lasting = false,
            }
        }
        Ok(self.sessions.open(conn, lasting, now))
    }

    /// A parked request may end: there is enough news, or its time is up. `None` if it goes on waiting; then
    /// [`Self::session_timer`] says until when.
    pub fn resume(&mut self, session: u32, now: Now, cx: &mut Cx) -> Option<(Parked, FetchResponse)> {
        let at = session as usize;
        let state = self.sessions.list.get_mut(at)?;
        state.ready = false;
        let parked = state.parked?;
        let answer = self.serve(at, &parked, now.mono >= parked.deadline, now, cx)?;
        self.sessions.list[at].parked = None;
        Some((parked, answer))
    }

    /// The session's timer fired: the next time to arm it for, if a request is parked and not yet due.
    pub fn session_timer(&mut self, session: u32, now: Now) -> Option<Nanos> {
        let state = self.sessions.list.get_mut(session as usize)?;
        state.timer_at = state.parked.map(|p| p.deadline).filter(|at| *at > now.mono);
        state.timer_at
    }

    /// The sessions whose parked request may end now.
    pub fn take_ready(&mut self, into: &mut Vec<u32>) {
        into.append(&mut self.sessions.ready);
    }

    /// Closes the sessions that were used on a connection which ended.
    pub fn connection_closed(&mut self, conn: ConnId) {
        for at in 0..self.sessions.list.len() {
            if self.sessions.list[at].open && self.sessions.list[at].conn == conn {
                self.drop_session(at);
            }
        }
    }

    fn drop_session(&mut self, at: usize) {
        let fetched_at = self.sessions.list[at].fetched_at;
        for slot in 0..self.sessions.list[at].slots.len() {
            let SessionSlot { partition, flags, .. } = self.sessions.list[at].slots[slot];
            if flags & SessionSlot::WATCHING == 0 {
                continue;
            }
            let Some(lead) = self.slot(partition).and_then(|slot| self.lead(slot)) else { continue };
            let slot = self.leaders[lead].slot as usize;
            let end = self.logs[slot].as_ref().map_or(Offset::UNKNOWN, |log| log.end());
            for follower in &mut self.leaders[lead].followers {
                if follower.session == at as u32 && follower.position == end {
                    follower.caught_up_at = follower.caught_up_at.max(fetched_at);
                    follower.fetched_at = follower.fetched_at.max(fetched_at);
                }
                if follower.session == at as u32 {
                    follower.session = crate::replica::partition::NONE;
                }
            }
            self.leaders[lead].watchers.retain(|w| w.session != at as u32);
        }
        self.sessions.close(at);
    }

    fn forget(&mut self, session: usize, slot_no: u32) {
        let Some(slot) = self.sessions.list[session].slots.get_mut(slot_no as usize) else { return };
        let partition = slot.partition;
        let watching = slot.flags & SessionSlot::WATCHING != 0;
        let dirty = slot.flags & SessionSlot::DIRTY;
        *slot = SessionSlot { flags: dirty, ..SessionSlot::vacant() };
        if watching {
            self.unwatch(partition, Watcher { session: session as u32, slot: slot_no });
        }
    }

    fn unwatch(&mut self, partition: PartitionIx, watcher: Watcher) {
        if let Some(lead) = self.slot(partition).and_then(|slot| self.lead(slot)) {
            self.leaders[lead].watchers.retain(|w| *w != watcher);
        }
    }

    /// Looks through the dirty queue. `None`: not enough, everything is left as it was.
    fn serve(&mut self, at: usize, parked: &Parked, at_once: bool, now: Now, cx: &mut Cx) -> Option<FetchResponse> {
        let spare = std::mem::take(&mut self.sessions.spare);
        let mut queue = std::mem::replace(&mut self.sessions.list[at].queue, spare);
        let mut answer = std::mem::take(&mut self.sessions.blank);
        answer.parts.reserve(queue.len());
        let mut bytes = 0;
        let mut verdict = false;
        let mut looked = 0;
        while let Some(&slot_no) = queue.get(looked) {
            if bytes >= parked.max_bytes && bytes > 0 {
                break;
            }
            looked += 1;
            let Some(slot) = self.sessions.list[at].slots.get_mut(slot_no as usize) else { continue };
            slot.flags &= !SessionSlot::DIRTY;
            if slot.flags & SessionSlot::USED == 0 {
                continue;
            }
            match self.look(
                at,
                slot_no,
                parked.max_bytes - bytes.min(parked.max_bytes),
                bytes == 0,
                now,
                cx,
                &mut answer,
            ) {
                (Look::Nothing | Look::News, _) => {}
                (Look::Data, more) => bytes += more,
                (Look::Verdict, _) => verdict = true,
            }
        }
        queue.drain(..looked);
        let done = at_once || verdict || (bytes > 0 && bytes >= parked.min_bytes);
        self.settle(at, queue, &answer, done);
        if !done {
            self.sessions.list[at].announced = bytes;
            answer.parts.clear();
            answer.batches.clear();
            self.sessions.blank = answer;
            return None;
        }
        answer.session_id = self.sessions.list[at].id;
        answer.topic_groups = self.topic_runs(answer.parts.iter().map(|part| part.partition));
        if answer.session_id == 0 {
            self.drop_session(at);
        }
        Some(answer)
    }

    /// Puts back into the queue what the next look has to see again: after an answer, slots with data or errors (their
    /// reader may not move), without one, everything that was found.
    fn settle(&mut self, at: usize, mut rest: std::collections::VecDeque<u32>, answer: &FetchResponse, done: bool) {
        let session = &mut self.sessions.list[at];
        // What was announced during this look, and what was not looked at.
        rest.append(&mut session.queue);
        std::mem::swap(&mut rest, &mut session.queue);
        self.sessions.spare = rest;
        let session = &mut self.sessions.list[at];
        for part in &answer.parts {
            let slot = &mut session.slots[part.slot as usize];
            let again = part.batch_count > 0 || !part.error.is_none() || part.diverging.is_some();
            if done && !again {
                slot.flags &= !SessionSlot::NEWS;
                continue;
            }
            // After an error the partition is told again once it is gone, news or not (stock `maybeUpdateResponseData`).
            let failed = !part.error.is_none();
            slot.flags = if done && !failed { slot.flags & !SessionSlot::NEWS } else { slot.flags | SessionSlot::NEWS };
            if slot.flags & SessionSlot::DIRTY == 0 {
                slot.flags |= SessionSlot::DIRTY;
                session.queue.push_back(part.slot);
            }
        }
    }

    /// Runs of partitions of one topic.
    pub(crate) fn topic_runs(&self, partitions: impl Iterator<Item = PartitionIx>) -> u32 {
        let mut last = None;
        let mut runs = 0;
        for partition in partitions {
            let topic = self.slot(partition).map(|slot| self.hot[slot].topic);
            runs += u32::from(topic.is_none() || topic != last);
            last = topic;
        }
        runs
    }

    /// Looks at one slot and leaves an entry if there is something to tell.
    #[allow(clippy::too_many_arguments)] // the inside of one loop
    fn look(
        &mut self,
        at: usize,
        slot_no: u32,
        budget: u32,
        first: bool,
        now: Now,
        cx: &mut Cx,
        answer: &mut FetchResponse,
    ) -> (Look, u32) {
        let session = &mut self.sessions.list[at];
        let state = session.slots[slot_no as usize];
        let follower = session.is_follower();
        session.slots[slot_no as usize].flags &= !(SessionSlot::DATA | SessionSlot::LISTED | SessionSlot::URGENT);
        let listed = state.flags & SessionSlot::LISTED != 0;
        let (slot, lead) = match self.check_reader(&state, follower, listed, cx) {
            Ok(found) => found,
            Err(error) => return self.refuse_read(slot_no, &state, error, answer),
        };
        self.watch(at, slot_no, lead);
        if follower {
            if let Some(term) = self.missed_alignment(slot, lead, state.aligned) {
                let entry = self.entry(slot, slot_no, &state, answer);
                answer.parts.push(FetchPartAnswer { diverging: Some(term), misaligned: true, ..entry });
                cx.trace(Trace::Diverged { partition: state.partition, epoch: term.epoch, end: term.end });
                return (Look::Verdict, 0);
            }
        }
        let below = follower && self.lies_below(slot, &state);
        let verdict = if below && !mutant(cx.guards, guard::NothingInCommonBeginsAnew, true) {
            Err(None)
        } else {
            self.diverges(slot, &state)
        };
        if follower && listed && mutant(cx.guards, guard::PositionAfterDivergenceCheck, verdict.is_err()) {
            self.take_position(slot, at, state.fetch_offset, now, cx);
        }
        match verdict {
            Ok(()) => {}
            Err(None) => return self.refuse_read(slot_no, &state, ErrorCode::OffsetOutOfRange, answer),
            Err(Some(end)) => {
                let entry = self.entry(slot, slot_no, &state, answer);
                answer.parts.push(FetchPartAnswer { diverging: Some(end), ..entry });
                cx.trace(Trace::Diverged { partition: state.partition, epoch: end.epoch, end: end.end });
                return (Look::Verdict, 0);
            }
        }
        let Some(log) = self.logs[slot].as_ref() else {
            return self.refuse_read(slot_no, &state, ErrorCode::KafkaStorageError, answer);
        };
        let (start, end) = (log.start(), log.end());
        if state.fetch_offset < start || state.fetch_offset > end {
            return self.refuse_read(slot_no, &state, ErrorCode::OffsetOutOfRange, answer);
        }
        if follower && listed {
            self.take_position(slot, at, state.fetch_offset, now, cx);
        }
        self.read(at, slot, slot_no, &state, budget, first, cx, answer)
    }

    /// Epoch, then leadership, on every look (R20): whoever leads no more tells an asker with an older epoch so, and one that
    /// does not know yet that it leads asks for patience (stock `Partition.localLogWithEpochOrThrow`).
    fn check_reader(
        &self,
        state: &SessionSlot,
        follower: bool,
        listed: bool,
        cx: &mut Cx,
    ) -> Result<(usize, usize), ErrorCode> {
        let slot = self.slot(state.partition).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        if self.hot[slot].flags & Hot::OFFLINE != 0 {
            return Err(ErrorCode::KafkaStorageError);
        }
        let error = check_epoch(state.leader_epoch, self.hot[slot].leader_epoch);
        let pass = error.is_none()
            || (!listed && cx.guards.admits(guard::SessionEpochRechecked, false))
            || (listed && follower && cx.guards.admits(guard::FollowerFetchInCurrentEpoch, false));
        if !pass {
            return Err(error);
        }
        Ok((slot, self.lead(slot).ok_or(ErrorCode::NotLeaderOrFollower)?))
    }

    fn watch(&mut self, at: usize, slot_no: u32, lead: usize) {
        let flags = &mut self.sessions.list[at].slots[slot_no as usize].flags;
        if *flags & SessionSlot::WATCHING == 0 {
            *flags |= SessionSlot::WATCHING;
            self.leaders[lead].watchers.push(Watcher { session: at as u32, slot: slot_no });
        }
    }

    /// KIP-595: `Err(Some(end))` where the reader's last epoch ends here if its log is not a prefix of this one, `Err(None)`
    /// if that cannot be told.
    fn diverges(&self, slot: usize, state: &SessionSlot) -> Result<(), Option<EpochEnd>> {
        let Some(log) = self.logs[slot].as_ref() else { return Ok(()) };
        let epoch = state.last_fetched_epoch;
        if epoch == LeaderEpoch::NONE {
            return Ok(());
        }
        let latest = log.latest_epoch();
        if epoch > latest {
            // A plain leader's cache holds its own epoch, so nobody can be ahead of it. A mirror leader that was cut can:
            // its followers still hold the later epoch, and have to be told where this log ends.
            let mirrored = self.topic(self.hot[slot].topic).is_some_and(|t| t.mirrored);
            let end = EpochEnd { epoch: latest, end: log.end() };
            return Err(mirrored.then_some(end));
        }
        let found = log.end_offset_for(epoch);
        if found.end == Offset::UNKNOWN || found.epoch == LeaderEpoch::NONE || state.fetch_offset < log.start() {
            return Err(None);
        }
        if found.epoch < epoch || found.end < state.fetch_offset {
            return Err(Some(found));
        }
        Ok(())
    }

    /// All that a follower holds lies below the start of this log, in which no epoch begins: it cannot be told where they part. (An
    /// alignment cut all that DeleteRecords had left; the follower has what was deleted.)
    fn lies_below(&self, slot: usize, state: &SessionSlot) -> bool {
        let knows = state.last_fetched_epoch != LeaderEpoch::NONE;
        knows
            && self.logs[slot]
                .as_ref()
                .is_some_and(|log| log.latest_epoch() == LeaderEpoch::NONE && state.fetch_offset <= log.start())
    }

    /// A follower's position, after all checks.
    fn take_position(&mut self, slot: usize, session: usize, position: Offset, now: Now, cx: &mut Cx) {
        let Some(lead) = self.lead(slot) else { return };
        let Some(end) = self.logs[slot].as_ref().map(|log| log.end()) else { return };
        let (broker, broker_epoch) = {
            let session = &self.sessions.list[session];
            (session.replica, session.broker_epoch)
        };
        let partition = self.hot[slot].partition;
        let Some(follower) = self.leaders[lead].followers.iter_mut().find(|f| f.broker == broker) else { return };
        if position >= end {
            follower.caught_up_at = follower.caught_up_at.max(now.mono);
        } else if position >= follower.end_at_fetch {
            follower.caught_up_at = follower.caught_up_at.max(follower.fetched_at);
        }
        let moved = follower.position != position;
        follower.position = position;
        follower.broker_epoch = broker_epoch;
        follower.session = session as u32;
        follower.end_at_fetch = end;
        follower.fetched_at = now.mono;
        if moved {
            cx.trace(Trace::FollowerPosition { partition, follower: broker, position });
        }
        self.maybe_expand(slot, broker, cx);
        self.advance_watermark(slot, now.mono, cx);
        self.check_barrier(slot, now.mono, cx);
    }

    fn entry(&self, slot: usize, slot_no: u32, state: &SessionSlot, answer: &FetchResponse) -> FetchPartAnswer {
        let log = self.logs[slot].as_ref();
        let mirror = state.flags & SessionSlot::MIRROR != 0;
        FetchPartAnswer {
            slot: slot_no,
            partition: state.partition,
            error: ErrorCode::None,
            high_watermark: log.map_or(Offset::UNKNOWN, |l| l.high_watermark()),
            last_stable: log.map_or(Offset::UNKNOWN, |l| l.last_stable()),
            log_start: log.map_or(Offset::UNKNOWN, |l| l.start()),
            diverging: None,
            misaligned: false,
            current_leader: None,
            mirror_leader_epoch: log.filter(|_| mirror).map_or(LeaderEpoch::NONE, |l| l.latest_epoch()),
            first_batch: answer.batches.len() as u32,
            batch_count: 0,
            aborted: None,
        }
    }

    fn refuse_read(
        &self,
        slot_no: u32,
        state: &SessionSlot,
        error: ErrorCode,
        answer: &mut FetchResponse,
    ) -> (Look, u32) {
        let hint = matches!(error, ErrorCode::NotLeaderOrFollower | ErrorCode::FencedLeaderEpoch);
        let log = self.log(state.partition);
        answer.parts.push(FetchPartAnswer {
            slot: slot_no,
            partition: state.partition,
            error,
            high_watermark: Offset::UNKNOWN,
            last_stable: Offset::UNKNOWN,
            log_start: log.map_or(Offset::UNKNOWN, |l| l.start()),
            diverging: None,
            misaligned: false,
            current_leader: if hint { self.leader_hint(state.partition) } else { None },
            mirror_leader_epoch: LeaderEpoch::NONE,
            first_batch: answer.batches.len() as u32,
            batch_count: 0,
            aborted: None,
        });
        (Look::Verdict, 0)
    }

    #[allow(clippy::too_many_arguments)] // the inside of one loop
    fn read(
        &mut self,
        at: usize,
        slot: usize,
        slot_no: u32,
        state: &SessionSlot,
        budget: u32,
        first: bool,
        cx: &mut Cx,
        answer: &mut FetchResponse,
    ) -> (Look, u32) {
        let mut entry = self.entry(slot, slot_no, state, answer);
        let session = &mut self.sessions.list[at];
        let Some(log) = self.logs[slot].as_ref() else { return (Look::Nothing, 0) };
        let upto = if session.is_follower() {
            log.end()
        } else {
            let committed = match session.isolation {
                Isolation::ReadUncommitted => log.high_watermark(),
                Isolation::ReadCommitted => {
                    let (stable, hw) = (log.last_stable(), log.high_watermark());
                    let held = stable < hw && state.fetch_offset >= stable;
                    if mutant(cx.guards, transactions::ReadCommittedBelowStable, held) {
                        hw
                    } else {
                        stable
                    }
                }
            };
            if mutant(cx.guards, guard::ReadBelowWatermark, committed < log.end() && state.fetch_offset >= committed) {
                log.end()
            } else {
                committed
            }
        };
        let mut bytes = 0;
        if state.fetch_offset < upto && (budget > 0 || first) {
            let max = session.part_max_bytes.min(budget);
            let hint = &mut session.slots[slot_no as usize].hint;
            match log.read(cx.disk, state.fetch_offset, upto, max, first, hint, &mut answer.batches) {
                Ok(read) => bytes = read,
                Err(error) => {
                    answer.batches.truncate(entry.first_batch as usize);
                    return self.refuse_read(slot_no, state, error.code(), answer);
                }
            }
        }
        entry.batch_count = answer.batches.len() as u32 - entry.first_batch;
        let session = &self.sessions.list[at];
        if session.isolation == Isolation::ReadCommitted && entry.batch_count > 0 {
            let mut aborted = Vec::new();
            let read = answer.batches.last().and_then(|batch| HeaderView::parse(batch).ok());
            let read_to = read.map_or(upto, |last| last.next_offset().min(upto));
            log.aborted_between(state.fetch_offset, read_to, &mut aborted);
            let aborted: Vec<_> =
                aborted.iter().map(|a| AbortedTransaction { producer: a.producer, first: a.first }).collect();
            entry.aborted = (!aborted.is_empty()).then(|| Box::new(aborted));
        }
        if entry.batch_count == 0 && state.fetch_offset < upto {
            // Its first batch is larger than what the answer has room for: it comes first in a next one.
            let session = &mut self.sessions.list[at];
            session.slots[slot_no as usize].flags |= SessionSlot::DIRTY;
            session.queue.push_back(slot_no);
        }
        let session = &self.sessions.list[at];
        let flags = session.slots[slot_no as usize].flags;
        let look = if entry.batch_count > 0 {
            Look::Data
        } else if flags & SessionSlot::NEWS != 0 || session.id == 0 {
            Look::News
        } else {
            Look::Nothing
        };
        if !matches!(look, Look::Nothing) {
            answer.parts.push(entry);
        }
        (look, bytes)
    }
}

/// KIP-320: no epoch, the present one, an older one, a newer one.
pub(crate) fn check_epoch(asked: LeaderEpoch, mine: LeaderEpoch) -> ErrorCode {
    if asked == LeaderEpoch::NONE || asked == mine {
        ErrorCode::None
    } else if asked < mine {
        ErrorCode::FencedLeaderEpoch
    } else {
        ErrorCode::UnknownLeaderEpoch
    }
}
