//! What a producer makes of answers, and of silence: acknowledged, refused, to be sent again, undecided; and when the
//! producer epoch has to be raised (KIP-360). The rules are those of Kafka's Sender and TransactionManager for a producer
//! without transactions.

use crate::client::accumulator::Batch;
use crate::client::door::Backoff;
use crate::client::idempotence::{advance, IdState};
use crate::client::producer::{Asked, Producer};
use crate::ids::{Nanos, Now, Offset};
use crate::ports::Cx;
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{Body, InitProducerIdResponse, LeaderHint, ProducePartAnswer, ProduceResponse};

impl Producer {
    pub(super) fn on_answer(&mut self, now: Now, asked: Asked, body: Body, cx: &mut Cx) {
        match (asked, body) {
            (Asked::Produce { batches, .. }, Body::ProduceResponse(answer)) => {
                self.on_produced(now, batches, *answer, cx);
            }
            (Asked::InitProducerId, Body::InitProducerIdResponse(answer)) => self.on_id(now, *answer, cx),
            (Asked::Transaction(asked), body) => self.on_transaction_answer(now, asked, body, cx),
            // An answer of the wrong kind tells nothing.
            (asked, _) => self.on_silence(now, asked, cx),
        }
    }

    /// The connection ended before the answer came: a batch may or may not be in the log.
    pub(super) fn on_silence(&mut self, now: Now, asked: Asked, cx: &mut Cx) {
        match asked {
            Asked::Produce { batches, .. } => {
                for mut batch in batches {
                    self.held.land(batch.slot, batch.ordinal);
                    batch.uncertain = true;
                    self.again(now, batch, self.config.retry_backoff, cx);
                }
            }
            Asked::InitProducerId => self.ids.state = IdState::Wanted(now.mono + self.config.retry_backoff),
            Asked::Transaction(asked) => self.on_transaction_silence(now, &asked),
        }
    }

    fn on_id(&mut self, now: Now, answer: InitProducerIdResponse, cx: &mut Cx) {
        if answer.error.is_none() {
            self.ids.granted(answer.producer, answer.epoch);
            self.rewrite_bumped(cx);
            return;
        }
        let wait = now.mono + self.config.retry_backoff;
        match answer.error {
            ErrorCode::ClusterAuthorizationFailed | ErrorCode::UnsupportedVersion => self.refuse_all(answer.error, cx),
            _ => self.ids.state = IdState::Wanted(wait),
        }
    }

    pub(super) fn refuse_all(&mut self, error: ErrorCode, cx: &mut Cx) {
        self.ids.state = IdState::Refused(error);
        self.drop_waiting(cx);
    }

    fn on_produced(&mut self, now: Now, batches: Vec<Batch>, answer: ProduceResponse, cx: &mut Cx) {
        for (at, batch) in batches.into_iter().enumerate() {
            self.held.land(batch.slot, batch.ordinal);
            let same = |p: &&ProducePartAnswer| p.partition == batch.partition;
            // Answers keep the order of the request; one that does not is searched.
            let part = answer.parts.get(at).filter(same).or_else(|| answer.parts.iter().find(same)).copied();
            let part = part.unwrap_or(ProducePartAnswer {
                partition: batch.partition,
                error: ErrorCode::UnknownServerError,
                base: Offset::UNKNOWN,
                log_start: Offset::UNKNOWN,
                current_leader: None,
            });
            self.on_verdict(now, batch, part, cx);
        }
    }

    fn on_verdict(&mut self, now: Now, mut batch: Batch, part: ProducePartAnswer, cx: &mut Cx) {
        if batch.decided {
            self.ended(batch.slot, cx);
            return;
        }
        match part.error {
            ErrorCode::None => self.ack(now, &batch, part.base, cx),
            ErrorCode::DuplicateSequenceNumber => self.ack(now, &batch, Offset::UNKNOWN, cx),
            // A newer coordinator's marker, or a newer producer, took this epoch: in a transaction the abort tells which.
            ErrorCode::InvalidProducerEpoch | ErrorCode::UnknownProducerId if self.txn.is_some() => {
                self.tell_refused(&batch, part.error, cx);
                self.fail_transaction(part.error, true, cx);
            }
            ErrorCode::UnknownProducerId if self.ids.is_on() => {
                // A batch that was rewritten since it was sent just goes again.
                if batch.stamped == batch.generation {
                    self.ask_for_bump(batch.slot, cx);
                }
                self.again(now, batch, self.config.retry_backoff, cx);
            }
            ErrorCode::OutOfOrderSequenceNumber if self.ids.is_on() => {
                self.on_out_of_order(&batch, cx);
                self.again(now, batch, self.config.retry_backoff, cx);
            }
            error if error.is_retriable() || error == ErrorCode::UnknownServerError => {
                batch.uncertain |= !was_surely_not_appended(error);
                let moved = is_about_leadership(error) && self.refused(&batch, part.current_leader, cx);
                let wait = if moved { Nanos::ZERO } else { self.config.retry_backoff };
                self.again(now, batch, wait, cx);
            }
            error => self.refused_for_good(&batch, error, cx),
        }
    }

    /// A leader does not lead: true if it told who does.
    fn refused(&mut self, batch: &Batch, hint: Option<LeaderHint>, cx: &mut Cx) -> bool {
        let mut changed = Vec::new();
        self.cluster.refused(batch.partition, hint, cx, &mut changed);
        self.leaders_changed(&changed);
        !changed.is_empty()
    }

    /// A gap before this batch. If an earlier batch is still open, that one has to come first and this one just waits; else
    /// the broker lost what it acknowledged (or an undecided batch never arrived), and only a new epoch helps.
    fn on_out_of_order(&mut self, batch: &Batch, cx: &mut Cx) {
        let unresolved = self.ids.unresolved.get(&batch.slot).copied();
        let slot = &self.held.slots[batch.slot as usize];
        let reset = batch.stamped != batch.generation;
        let is_next = slot.generation == batch.generation && slot.acked_next == batch.base_sequence;
        match unresolved {
            None if reset || !is_next => {}
            Some(sequence) if sequence != batch.base_sequence => {}
            _ => self.ask_for_bump(batch.slot, cx),
        }
    }

    pub(super) fn ack(&mut self, now: Now, batch: &Batch, base: Offset, cx: &mut Cx) {
        let slot = &mut self.held.slots[batch.slot as usize];
        if self.ids.is_on() && slot.generation == batch.generation && batch.stamped == batch.generation {
            slot.acked_next = advance(batch.base_sequence, batch.count, cx.guards);
        }
        self.counts.acked += u64::from(batch.count);
        self.latency.add(now.mono.since(batch.created), u64::from(batch.count));
        cx.trace(Trace::Acked {
            partition: batch.partition,
            producer: self.config.number,
            first: batch.first,
            count: batch.count,
            base,
            acks: self.config.acks,
        });
        self.held.close(batch.count);
        self.ended(batch.slot, cx);
    }

    /// Sends a batch that landed again after `wait` (doubled with every attempt), unless its time is over.
    fn again(&mut self, now: Now, mut batch: Batch, wait: Nanos, cx: &mut Cx) {
        if batch.decided {
            self.ended(batch.slot, cx);
            return;
        }
        let refused = matches!(self.ids.state, IdState::Refused(_));
        let aborting = self.txn.as_ref().is_some_and(|txn| txn.is_failed());
        if refused || aborting || now.mono.since(batch.created) >= self.config.delivery_timeout {
            self.give_up(&batch, cx);
            return;
        }
        if wait.0 > 0 {
            let step = batch.attempts.saturating_sub(1);
            let waits = Backoff { first: wait, max: self.config.retry_backoff_max };
            batch.not_before = now.mono + waits.after(step);
        }
        let slot = batch.slot;
        self.held.retry(batch, &self.cluster.view);
        self.ended(slot, cx);
    }

    /// The delivery timeout of a batch that was sent is over.
    pub(super) fn give_up(&mut self, batch: &Batch, cx: &mut Cx) {
        if self.fail_transaction(ErrorCode::RequestTimedOut, true, cx) {
            return self.tell_refused(batch, ErrorCode::RequestTimedOut, cx);
        }
        if self.ids.is_on() {
            let after = advance(batch.base_sequence, batch.count, cx.guards);
            self.ids.unresolved.insert(batch.slot, after);
        }
        self.tell_refused(batch, ErrorCode::RequestTimedOut, cx);
    }

    fn refused_for_good(&mut self, batch: &Batch, error: ErrorCode, cx: &mut Cx) {
        // The sequences behind it do not fit any more (KIP-360: idempotent producers bump instead of renumbering).
        if self.ids.is_on() {
            self.ask_for_bump(batch.slot, cx);
        }
        self.tell_refused(batch, error, cx);
        if matches!(error, ErrorCode::ProducerFenced | ErrorCode::ClusterAuthorizationFailed) {
            self.refuse_all(error, cx);
        }
    }

    /// Tells the end of a batch: a refusal decides it only if no earlier sending may have arrived.
    fn tell_refused(&mut self, batch: &Batch, error: ErrorCode, cx: &mut Cx) {
        let (partition, first, count) = (batch.partition, batch.first, batch.count);
        let producer = self.config.number;
        if batch.uncertain {
            self.counts.undecided += u64::from(count);
            cx.trace(Trace::Undecided { partition, producer, first, count });
        } else {
            self.counts.nacked += u64::from(count);
            cx.trace(Trace::Nacked { partition, producer, first, count, error: error as i16 });
        }
        self.held.close(count);
        self.ended(batch.slot, cx);
    }

    /// A batch of a slot ended or landed: what it blocked may go on, and an open question may have its answer.
    fn ended(&mut self, slot: u32, cx: &mut Cx) {
        let s = &self.held.slots[slot as usize];
        if !s.has_open_batches() && self.ids.unresolved.contains_key(&slot) {
            if s.acked_next == s.next_sequence {
                self.ids.unresolved.remove(&slot);
            } else {
                self.ask_for_bump(slot, cx);
            }
        }
        self.held.enqueue(slot, &self.cluster.view);
    }

    /// Sequences from 0 on for a slot: under the next epoch, which in a transaction comes after its abort.
    fn ask_for_bump(&mut self, slot: u32, cx: &mut Cx) {
        if !self.fail_transaction(ErrorCode::OutOfOrderSequenceNumber, true, cx) {
            self.ids.bumps.insert(slot);
        }
    }

    /// Raises the epoch once for all slots that asked for it in this poll.
    pub(super) fn bump_if_asked(&mut self, now: Now, cx: &mut Cx) {
        if self.ids.bumps.is_empty() || self.ids.state != IdState::Known {
            return;
        }
        self.counts.bumps += 1;
        if self.ids.bump(now.mono) {
            self.rewrite_bumped(cx);
        }
    }

    /// The open batches of the slots that asked for the bump get sequences from 0 on, in their order.
    fn rewrite_bumped(&mut self, cx: &mut Cx) {
        for slot in std::mem::take(&mut self.ids.bumps) {
            self.ids.unresolved.remove(&slot);
            self.rewrite(slot, cx);
            self.held.enqueue(slot, &self.cluster.view);
        }
    }

    fn rewrite(&mut self, slot: u32, cx: &mut Cx) {
        let mut open: Vec<&mut Batch> = Vec::new();
        for token in self.cluster.own_tokens_mut() {
            if let Asked::Produce { batches, .. } = token {
                open.extend(batches.iter_mut().filter(|b| b.slot == slot && !b.decided));
            }
        }
        open.extend(self.held.retries_of_mut(slot));
        open.sort_unstable_by_key(|b| b.ordinal);
        let mut next = 0;
        for batch in open {
            batch.renumber(next, &self.ids);
            next = advance(next, batch.count, cx.guards);
        }
        let s = &mut self.held.slots[slot as usize];
        (s.next_sequence, s.acked_next, s.generation) = (next, 0, self.ids.generation);
    }
}

/// Errors that a broker finds before it appends. All others may come after (a leader that resigns while replicas are
/// awaited answers NOT_LEADER_OR_FOLLOWER for what is in its log).
fn was_surely_not_appended(error: ErrorCode) -> bool {
    matches!(error, ErrorCode::NotEnoughReplicas | ErrorCode::CorruptMessage)
}

/// Errors after which the leader is looked for.
pub(super) fn is_about_leadership(error: ErrorCode) -> bool {
    matches!(
        error,
        ErrorCode::NotLeaderOrFollower
            | ErrorCode::LeaderNotAvailable
            | ErrorCode::UnknownTopicOrPartition
            | ErrorCode::UnknownTopicId
            | ErrorCode::InconsistentTopicId
            | ErrorCode::FencedLeaderEpoch
            | ErrorCode::UnknownLeaderEpoch
            | ErrorCode::KafkaStorageError
            | ErrorCode::OffsetNotAvailable
    )
}
