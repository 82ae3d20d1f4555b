//! Writes to a leader, and the watermark that follows from them.
//!
//! The watermark is the smallest log end over the *maximal* ISR (committed and proposed, KIP-497) and over followers that
//! are about to join; it stands still while the ISR is smaller than `min.insync.replicas` (KIP-966).

use crate::guards::points::Point;
use crate::guards::{mirror, replication as guard, transactions};
use crate::ids::{LeaderEpoch, Nanos, Now, Offset, PartitionIx};
use crate::log::{AppendError, AppendInfo, ProducerRefusal, RaisedMarker};
use crate::ports::Cx;
use crate::record::batch::BatchView;
use crate::replica::fetch_session::SessionSlot;
use crate::replica::partition::{mutant, Hot, Replicas};
use crate::replica::waits::{Ticket, WaitDone};
use crate::trace::{Origin, Trace};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{LeaderHint, ProducePartAnswer};
use bytes::{Bytes, BytesMut};

/// Why a write at a leader did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// This broker does not lead the partition.
    NotLeader,
    /// Too few replicas are in sync.
    NotEnoughReplicas,
    /// The log refused.
    Log(AppendError),
}

impl WriteError {
    /// What a client is told.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::NotLeader => ErrorCode::NotLeaderOrFollower,
            Self::NotEnoughReplicas => ErrorCode::NotEnoughReplicas,
            Self::Log(error) => error.code(),
        }
    }
}

impl From<AppendError> for WriteError {
    fn from(error: AppendError) -> Self {
        Self::Log(error)
    }
}

/// What became of one part of a produce request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Produced {
    /// The answer as it stands now.
    pub answer: ProducePartAnswer,
    /// The answer waits for replicas: a [`WaitDone`] with the ticket will come.
    pub waits: bool,
}

impl Replicas {
    /// Who leads, for answers that refuse.
    #[must_use]
    pub fn leader_hint(&self, partition: PartitionIx) -> Option<LeaderHint> {
        let hot = &self.hot[self.slot(partition)?];
        Some(LeaderHint { leader: hot.leader, epoch: hot.leader_epoch, node: None })
    }

    fn refuse(&self, partition: PartitionIx, error: ErrorCode) -> Produced {
        let current_leader = if error == ErrorCode::NotLeaderOrFollower { self.leader_hint(partition) } else { None };
        let log_start = self.log(partition).map_or(Offset::UNKNOWN, |log| log.start());
        let answer = ProducePartAnswer { partition, error, base: Offset::UNKNOWN, log_start, current_leader };
        Produced { answer, waits: false }
    }

    /// Makes room for so many bytes of batches that one request brings: they are copied once, into one piece of memory.
    pub fn reserve(&mut self, bytes: usize) {
        self.arena = BytesMut::with_capacity(bytes);
    }

    /// Appends a producer's batches. With `acks` −1 the answer waits for the watermark under `ticket`; the size of the ISR is
    /// checked before anything is written.
    pub fn produce(
        &mut self,
        partition: PartitionIx,
        batches: &Bytes,
        acks: i16,
        ticket: Ticket,
        now: Now,
        cx: &mut Cx,
    ) -> Produced {
        self.produce_as(Origin::Client, partition, batches, acks, ticket, now, cx)
    }

    /// Appends a transaction's marker; the answer waits for all in-sync replicas. `raised`: its epoch is above that of the
    /// transaction's records (transaction version 2).
    pub fn write_marker(
        &mut self,
        partition: PartitionIx,
        marker: &Bytes,
        raised: bool,
        ticket: Ticket,
        now: Now,
        cx: &mut Cx,
    ) -> Produced {
        match self.judge_marker(partition, marker, raised, cx) {
            Ok(RaisedMarker::New) => self.produce_as(Origin::Coordinator, partition, marker, -1, ticket, now, cx),
            Ok(RaisedMarker::Written) => self.answer_for_all(Origin::Coordinator, partition, None, ticket, cx),
            Err(refusal) => self.refuse(partition, AppendError::from(refusal).code()),
        }
    }

    fn judge_marker(
        &self,
        partition: PartitionIx,
        marker: &Bytes,
        raised: bool,
        cx: &mut Cx,
    ) -> Result<RaisedMarker, ProducerRefusal> {
        let led = self.slot(partition).filter(|slot| raised && self.lead(*slot).is_some());
        match (led.and_then(|slot| self.logs[slot].as_ref()), BatchView::parse(marker)) {
            (Some(log), Ok(batch)) => {
                log.producers().check_raised_marker(batch.producer(), batch.producer_epoch(), cx.guards)
            }
            _ => Ok(RaisedMarker::New),
        }
    }

    #[allow(clippy::too_many_arguments)] // a produce, and whose it is
    fn produce_as(
        &mut self,
        origin: Origin,
        partition: PartitionIx,
        batches: &Bytes,
        acks: i16,
        ticket: Ticket,
        now: Now,
        cx: &mut Cx,
    ) -> Produced {
        let Some(slot) = self.slot(partition) else {
            return self.refuse(partition, ErrorCode::UnknownTopicOrPartition);
        };
        let Some(lead) = self.lead(slot) else {
            return self.refuse(partition, ErrorCode::NotLeaderOrFollower);
        };
        if acks == -1 && !self.has_min_isr(slot, lead, cx) {
            return self.refuse(partition, ErrorCode::NotEnoughReplicas);
        }
        let info = match self.append_local(partition, batches, origin, now, cx) {
            Ok(info) => info,
            Err(error) => return self.refuse(partition, error.code()),
        };
        if acks == -1 {
            return self.answer_for_all(origin, partition, Some(&info), ticket, cx);
        }
        let log_start = self.logs[slot].as_ref().map_or(Offset::UNKNOWN, |log| log.start());
        let answer =
            ProducePartAnswer { partition, error: ErrorCode::None, base: info.base, log_start, current_leader: None };
        Produced { answer, waits: false }
    }

    /// The answer to an append that all in-sync replicas are to have; with `None` to all that the log has.
    fn answer_for_all(
        &mut self,
        origin: Origin,
        partition: PartitionIx,
        info: Option<&AppendInfo>,
        ticket: Ticket,
        cx: &mut Cx,
    ) -> Produced {
        let led = self.slot(partition).and_then(|slot| Some((self.lead(slot)?, self.logs[slot].as_ref()?)));
        let Some((lead, log)) = led else { return self.refuse(partition, ErrorCode::NotLeaderOrFollower) };
        let (base, next) = info.map_or((log.end(), log.end()), |info| (info.base, info.next));
        let reached = log.high_watermark() >= next;
        let log_start = log.start();
        let answer = ProducePartAnswer { partition, error: ErrorCode::None, base, log_start, current_leader: None };
        let waits =
            if origin == Origin::Client { guard::AcksAllWaits } else { transactions::MarkerCommittedBeforeAnswered };
        if cx.guards.admits(waits, reached) {
            return Produced { answer, waits: false };
        }
        self.waits.push(&mut self.leaders[lead].waits, ticket, next);
        Produced { answer, waits: true }
    }

    /// Appends a coordinator's batch where enough replicas are in sync, as a produce with acks −1 that nobody waits for: the
    /// coordinator follows the watermark.
    ///
    /// # Errors
    /// [`WriteError`]; the log is unchanged.
    pub fn append_coordinated(
        &mut self,
        partition: PartitionIx,
        batches: &Bytes,
        now: Now,
        cx: &mut Cx,
    ) -> Result<AppendInfo, WriteError> {
        let (slot, lead) = self.led(partition)?;
        if !self.has_min_isr(slot, lead, cx) {
            return Err(WriteError::NotEnoughReplicas);
        }
        self.append_local(partition, batches, Origin::Coordinator, now, cx)
    }

    fn has_min_isr(&self, slot: usize, lead: usize, cx: &mut Cx) -> bool {
        let leader = &self.leaders[lead];
        let enough = leader.isr.count_ones() >= self.min_isr(self.hot[slot].topic, leader.replicas.len());
        cx.guards.admits(guard::MinIsrBeforeAppend, enough)
    }

    /// Appends batches as leader: offsets and the leader epoch are given here. For producers and coordinators.
    ///
    /// # Errors
    /// [`WriteError`]; the log is unchanged.
    pub fn append_local(
        &mut self,
        partition: PartitionIx,
        batches: &Bytes,
        origin: Origin,
        now: Now,
        cx: &mut Cx,
    ) -> Result<AppendInfo, WriteError> {
        let (slot, lead) = self.led(partition)?;
        let epoch = self.hot[slot].leader_epoch;
        let (Some(log), Some(policy)) =
            (self.logs[slot].as_mut(), self.topics[self.hot[slot].topic.0 as usize].as_ref())
        else {
            return Err(AppendError::Offline.into());
        };
        let from = log.end();
        let (arena, policy) = (&mut self.arena, &policy.log);
        let done = log.append_as_leader(cx.disk, cx.guards, policy, batches, arena, epoch, origin, now);
        let info = done.inspect_err(|error| self.note_failure(slot, error, cx))?;
        if !info.duplicate {
            self.give_up_marking(slot, cx);
            self.appended(slot, origin, epoch, &info, cx);
            self.after_leader_append(slot, lead, from, info.bytes, now.mono, cx);
        }
        Ok(info)
    }

    /// Appends batches of the source cluster as they are (spec 4.4); the local leader epoch bounds theirs (spec 3.2 E2).
    /// What is above is left: see [`AppendInfo::batches`].
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn append_mirrored(
        &mut self,
        now: Now,
        partition: PartitionIx,
        batches: &[Bytes],
        cx: &mut Cx,
    ) -> Result<AppendInfo, WriteError> {
        let (slot, lead) = self.led(partition)?;
        let local = self.hot[slot].leader_epoch;
        // Epochs do not fall along a fetched set, so the last batch has the highest. Who lets it pass there lets it pass here.
        let last = batches.last().and_then(epoch_of).unwrap_or(local);
        let bound = if mutant(cx.guards, mirror::EpochBumpBeforeAppend, last > local) { last } else { local };
        let done = self.append_copied(slot, batches, bound, Origin::Mirror, now, cx);
        let info = done.inspect_err(|error| self.note_failure(slot, error, cx))?;
        if info.batches > 0 {
            self.after_leader_append(slot, lead, info.base, info.bytes, now.mono, cx);
        }
        Ok(info)
    }

    /// Follows the source's log start, as far as the watermark allows.
    pub fn follow_source_log_start(&mut self, now: Now, partition: PartitionIx, to: Offset, cx: &mut Cx) {
        if let Ok((slot, _)) = self.led(partition) {
            self.raise_log_start(slot, to, now, cx);
        }
    }

    fn note_failure(&mut self, slot: usize, error: &AppendError, cx: &mut Cx) {
        let failed = matches!(error, AppendError::Disk(_) | AppendError::Offline);
        if !cx.guards.admits(guard::FailedWriteEndsBroker, !failed) {
            self.take_offline(slot);
        }
    }

    fn led(&self, partition: PartitionIx) -> Result<(usize, usize), WriteError> {
        let slot = self.slot(partition).ok_or(WriteError::NotLeader)?;
        let lead = self.lead(slot).ok_or(WriteError::NotLeader)?;
        Ok((slot, lead))
    }

    /// Appends copied batches (from a leader or a source), run by run of one epoch, so that the trace tells each epoch.
    pub(crate) fn append_copied(
        &mut self,
        slot: usize,
        batches: &[Bytes],
        epoch_bound: LeaderEpoch,
        origin: Origin,
        now: Now,
        cx: &mut Cx,
    ) -> Result<AppendInfo, AppendError> {
        let mut total: Option<AppendInfo> = None;
        let mut rest = batches;
        while !rest.is_empty() {
            let epoch = epoch_of(&rest[0]);
            let run = rest.iter().take_while(|batch| epoch_of(batch) == epoch).count();
            let (head, tail) = rest.split_at(run);
            rest = tail;
            let (Some(log), Some(policy)) =
                (self.logs[slot].as_mut(), self.topics[self.hot[slot].topic.0 as usize].as_ref())
            else {
                return Err(AppendError::Offline);
            };
            let mut append =
                |batches: &[Bytes]| log.append_as_follower(cx.disk, cx.guards, &policy.log, batches, epoch_bound, now);
            let appended = match append(head) {
                // What comes before a damaged batch is as good as ever, and says where the damage is.
                Err(AppendError::Corrupt(error)) => match sound(head) {
                    0 => Err(AppendError::Corrupt(error)),
                    whole => append(&head[..whole]),
                },
                appended => appended,
            };
            let info = match appended {
                Ok(info) => info,
                // What stands, stands: the caller sees how far it went, and meets the error again at the next batch.
                Err(error) => return total.ok_or(error),
            };
            if info.batches > 0 {
                self.appended(slot, origin, epoch.unwrap_or(info.last_epoch), &info, cx);
            }
            let left = (info.batches as usize) < run;
            match &mut total {
                None => total = Some(info),
                Some(sum) => {
                    sum.next = info.next;
                    sum.bytes += info.bytes;
                    sum.batches += info.batches;
                    sum.rolled |= info.rolled;
                    if info.batches > 0 {
                        sum.last_epoch = info.last_epoch;
                    }
                }
            }
            if left {
                break;
            }
        }
        total.ok_or(AppendError::InvalidRecord("no batch at all"))
    }

    fn appended(&mut self, slot: usize, origin: Origin, epoch: LeaderEpoch, info: &AppendInfo, cx: &mut Cx) {
        let hot = &self.hot[slot];
        cx.trace(Trace::Appended {
            partition: hot.partition,
            origin,
            base: info.base,
            next: info.next,
            epoch,
            leader_epoch: hot.leader_epoch,
            bytes: info.bytes,
        });
        if info.rolled {
            cx.trace(Trace::Rolled { partition: hot.partition, base: info.base });
            self.rolled.push(hot.partition);
            self.note_to_clean(slot);
        }
        self.mark_log_dirty(slot);
        self.note_flush_due(slot);
        if cx.guards.points.fires(Point::FlushAtOnce) {
            self.flush_due.push(self.hot[slot].partition);
        }
    }

    /// What an append at a leader sets going: followers fall behind, readers have news, a lone leader commits at once.
    fn after_leader_append(&mut self, slot: usize, lead: usize, from: Offset, bytes: u32, now: Nanos, cx: &mut Cx) {
        let leader = &mut self.leaders[lead];
        for follower in &mut leader.followers {
            if follower.position == from {
                // It had everything when it last fetched, whichever partitions that fetch listed (KIP-227).
                let fetched = self.sessions.fetched_at(follower.session).max(follower.fetched_at);
                follower.caught_up_at = follower.caught_up_at.max(fetched);
                follower.fetched_at = fetched;
                follower.end_at_fetch = from;
            }
        }
        if !leader.followers.is_empty() && !leader.in_behind {
            leader.in_behind = true;
            self.behind.push(lead as u32);
        }
        for watcher in &leader.watchers {
            self.sessions.touch_if(*watcher, true, SessionSlot::DATA, bytes);
        }
        self.advance_watermark(slot, now, cx);
    }

    /// Moves the watermark of a leader as far as the rules allow.
    pub(crate) fn advance_watermark(&mut self, slot: usize, now: Nanos, cx: &mut Cx) {
        let Some(lead) = self.lead(slot) else { return };
        let Some(log) = self.logs[slot].as_ref() else { return };
        let leader = &self.leaders[lead];
        let growing = leader.proposed & !leader.isr != 0;
        let waits_for = if mutant(cx.guards, guard::MaximalIsr, growing) { leader.isr } else { leader.maximal_isr() };
        let end = log.end();
        // A leader's own copy counts as far as its disk, for a topic that sets `flush.messages`.
        let mut target = if self.awaits_flush(slot) { log.recovery_point() } else { end };
        for follower in &leader.followers {
            if follower.position < target
                && (waits_for & leader.bit(follower.broker) != 0
                    || (self.caught_up(follower, end, now) && self.eligible(follower)))
            {
                target = follower.position;
            }
        }
        if target <= log.high_watermark() {
            return;
        }
        let enough = leader.isr.count_ones() >= self.min_isr(self.hot[slot].topic, leader.replicas.len());
        if !cx.guards.admits(guard::WatermarkNeedsMinIsr, enough) {
            return;
        }
        self.set_watermark(slot, target, cx);
        self.finish_waits(slot, lead, enough);
    }

    fn finish_waits(&mut self, slot: usize, lead: usize, enough: bool) {
        let Some(log) = self.logs[slot].as_ref() else { return };
        let error = if enough { ErrorCode::None } else { ErrorCode::NotEnoughReplicasAfterAppend };
        let queue = &mut self.leaders[lead].waits;
        while let Some(ticket) = self.waits.pop(queue, log.high_watermark()) {
            self.done.push(WaitDone { ticket, error });
        }
    }

    /// Ends all waits of a leader with an error.
    pub(crate) fn fail_waits(&mut self, lead: usize, error: ErrorCode) {
        let queue = &mut self.leaders[lead].waits;
        while let Some(ticket) = self.waits.pop(queue, Offset(i64::MAX)) {
            self.done.push(WaitDone { ticket, error });
        }
    }

    /// Sets a watermark, tells the trace, the readers and the watchers.
    pub(crate) fn set_watermark(&mut self, slot: usize, to: Offset, cx: &mut Cx) {
        let Some(log) = self.logs[slot].as_mut() else { return };
        if let Some((from, to)) = log.set_high_watermark(cx.guards, to) {
            self.watermark_moved(slot, from, to, cx);
        }
    }

    /// Notes that a watermark moved, whatever moved it.
    pub(crate) fn watermark_moved(&mut self, slot: usize, from: Offset, to: Offset, cx: &mut Cx) {
        let hot = &mut self.hot[slot];
        let partition = hot.partition;
        let leader = hot.lead;
        cx.trace(Trace::HighWatermarkMoved { partition, from, to, leader: leader != crate::replica::partition::NONE });
        if hot.flags & Hot::HW_DIRTY == 0 {
            hot.flags |= Hot::HW_DIRTY;
            self.hw_dirty.push(slot as u32);
        }
        if hot.flags & (Hot::HW_WATCHED | Hot::HW_NEWS) == Hot::HW_WATCHED {
            hot.flags |= Hot::HW_NEWS;
            self.hw_news.push(partition);
        }
        if let Some(lead) = self.lead(slot) {
            for watcher in &self.leaders[lead].watchers {
                // A follower learns it with its next answer; a consumer has data now.
                self.sessions.touch_if(*watcher, true, SessionSlot::NEWS, 0);
                self.sessions.touch_if(
                    *watcher,
                    false,
                    SessionSlot::NEWS | SessionSlot::DATA,
                    (to.0 - from.0).max(1) as u32,
                );
            }
        }
    }

    /// Asks for (or ends) news of a partition's watermark; see [`Self::take_watermark_news`].
    pub fn watch_watermark(&mut self, partition: PartitionIx, on: bool) {
        if let Some(slot) = self.slot(partition) {
            let flags = &mut self.hot[slot].flags;
            *flags = if on { *flags | Hot::HW_WATCHED } else { *flags & !Hot::HW_WATCHED };
        }
    }

    /// The watched partitions whose watermark moved since the last call.
    pub fn take_watermark_news(&mut self) -> Vec<PartitionIx> {
        let news = std::mem::take(&mut self.hw_news);
        for partition in &news {
            if let Some(slot) = self.slot(*partition) {
                self.hot[slot].flags &= !Hot::HW_NEWS;
            }
        }
        news
    }

    /// The producers whose wait ended, in order.
    pub fn take_done(&mut self, into: &mut Vec<WaitDone>) {
        into.append(&mut self.done);
    }
}

/// How many batches there are before the first one that is damaged.
fn sound(batches: &[Bytes]) -> usize {
    batches.iter().take_while(|bytes| BatchView::is_sound(bytes)).count()
}

/// The epoch in a batch's header, if the bytes are a batch.
pub(crate) fn epoch_of(batch: &Bytes) -> Option<LeaderEpoch> {
    BatchView::parse(batch).ok().map(|view| view.leader_epoch())
}
