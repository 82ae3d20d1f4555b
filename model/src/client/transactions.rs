//! A producer that writes in transactions (KIP-98): finds its coordinator, gets its producer id there, has partitions
//! added before it writes to them, and ends each transaction when all its records are decided. The rules are those of
//! Kafka's TransactionManager, but that partitions are added by request in version 2 (KIP-890) too.
//!
//! One request to the coordinator is under way at a time. An error is one of three: *retriable* (the same again, perhaps
//! to another coordinator), *abortable* (this transaction ends with an abort, the next one may do better), *fatal* (a
//! newer producer has the transactional id: nothing is sent any more).

use crate::client::connections::ChannelStatus;
use crate::client::door::earlier;
use crate::client::idempotence::IdState;
use crate::client::producer::{Asked, Producer};
use crate::guards::transactions as guard;
use crate::ids::{BrokerId, Nanos, NodeId, Now, PartitionIx, ProducerEpoch, ProducerId};
use crate::ports::Cx;
use crate::trace::{Trace, TxnOutcome};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, Body, CoordinatorKind, EndTxnRequest, EndTxnResponse,
    FindCoordinatorRequest, FindCoordinatorResponse, InitProducerIdRequest, InitProducerIdResponse,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How a producer writes in transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionConfig {
    /// `transactional.id`.
    pub id: Arc<str>,
    /// `transaction.timeout.ms`.
    pub timeout: Nanos,
    /// A transaction ends with so many records.
    pub records: u64,
    /// It ends after so long, if it has fewer records then. Without this, it ends when there is nothing more to come.
    pub duration: Option<Nanos>,
    /// So many of a billion are aborted.
    pub abort_ppb: u32,
}

/// What was asked of the coordinator.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TxnAsked {
    /// Who it is.
    Coordinator,
    /// A producer id.
    Init,
    /// That partitions join; their slots.
    Add(Vec<u32>),
    /// The end: committed or not.
    End(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No transaction.
    Idle,
    /// Records are taken.
    Open,
    /// No more are; it ends when all are decided.
    Ending,
}

/// Where a producer's transactions stand.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Transactional {
    config: TransactionConfig,
    coordinator: Option<NodeId>,
    asked: bool,
    not_before: Nanos,
    /// When the coordinator may be tried again.
    wait: Option<Nanos>,
    phase: Phase,
    /// Transactions begun.
    number: u64,
    first: u64,
    taken: u64,
    begun_at: Nanos,
    /// Slots that the coordinator has in the transaction.
    added: BTreeSet<u32>,
    /// Slots that it is to have.
    wanted: BTreeSet<u32>,
    /// It can only be aborted, for this reason.
    failed: Option<ErrorCode>,
    /// Its producer epoch is of no use after it.
    needs_bump: bool,
}

/// The concern of the draw which transactions are aborted ("TXNS").
const ABORT: u64 = 0x5458_4e53;
/// Wait before partitions are added again while the transaction before is being completed (Kafka's
/// `ADD_PARTITIONS_RETRY_BACKOFF_MS`).
const COMPLETING_BACKOFF: Nanos = Nanos::from_millis(20);

impl Transactional {
    pub(super) fn new(config: TransactionConfig) -> Self {
        Self {
            config,
            coordinator: None,
            asked: false,
            not_before: Nanos::ZERO,
            wait: None,
            phase: Phase::Idle,
            number: 0,
            first: 0,
            taken: 0,
            begun_at: Nanos::ZERO,
            added: BTreeSet::new(),
            wanted: BTreeSet::new(),
            failed: None,
            needs_bump: false,
        }
    }
    /// The transactional id.
    pub(super) fn id(&self) -> &Arc<str> {
        &self.config.id
    }
    /// No transaction is open.
    pub(super) fn is_idle(&self) -> bool {
        self.phase == Phase::Idle
    }
    /// The transaction can only be aborted: nothing of it is sent any more.
    pub(super) fn is_failed(&self) -> bool {
        self.failed.is_some()
    }
    /// So many records more may be taken now.
    pub(super) fn room(&self, ids: IdState) -> u64 {
        match self.phase {
            _ if self.is_failed() => 0,
            // A transaction begins when its producer has an id, and the coordinator no other business with it.
            Phase::Idle if ids == IdState::Known && !self.needs_bump => self.config.records,
            Phase::Open => self.config.records - self.taken,
            Phase::Idle | Phase::Ending => 0,
        }
    }
    /// Whether a slot may be written to; if not, it is asked for.
    pub(super) fn may_write(&mut self, slot: u32, cx: &mut Cx) -> bool {
        let added = self.added.contains(&slot);
        if !cx.guards.admits(guard::ProduceAfterAdd, added) {
            self.wanted.insert(slot);
            return false;
        }
        true
    }
}

/// What an error of the coordinator means.
enum Meaning {
    Good,
    /// The same again.
    Retry,
    /// The same again, to whoever is coordinator now.
    Elsewhere,
    Abort,
    /// As before, and the producer epoch is worn.
    AbortAndBump,
    Fatal,
}

fn meaning(error: ErrorCode) -> Meaning {
    use ErrorCode as E;
    match error {
        E::None => Meaning::Good,
        E::NotCoordinator | E::CoordinatorNotAvailable => Meaning::Elsewhere,
        E::InvalidProducerIdMapping | E::UnknownProducerId => Meaning::AbortAndBump,
        E::ProducerFenced
        | E::InvalidProducerEpoch
        | E::InvalidTxnState
        | E::InvalidTransactionTimeout
        | E::TransactionalIdAuthorizationFailed
        | E::ClusterAuthorizationFailed
        | E::UnsupportedVersion
        | E::InvalidRequest => Meaning::Fatal,
        error if error.is_retriable() || error == E::UnknownServerError => Meaning::Retry,
        _ => Meaning::Abort,
    }
}

impl Producer {
    // ------------------------------------------------------------------------------------------------ records come and go

    /// Records are about to be taken: a transaction begins if none is open.
    pub(super) fn begin_transaction(&mut self, count: u64, now: Now, cx: &mut Cx) {
        let first = self.next_identity();
        let producer = self.config.number;
        let Some(txn) = &mut self.txn else { return };
        if txn.phase == Phase::Idle {
            txn.number += 1;
            (txn.phase, txn.first, txn.taken, txn.begun_at) = (Phase::Open, first, 0, now.mono);
            cx.trace(Trace::TxnBegun { producer, first });
        }
        txn.taken += count;
    }

    /// The open transaction can only be aborted. `bump`: its sequences have a hole now. Without transactions: false.
    pub(super) fn fail_transaction(&mut self, error: ErrorCode, bump: bool, cx: &mut Cx) -> bool {
        let Some(txn) = &mut self.txn else { return false };
        txn.needs_bump |= bump;
        if txn.failed.is_none() && txn.phase != Phase::Idle {
            txn.failed = Some(error);
            txn.phase = Phase::Ending;
            txn.wanted.clear();
            self.drop_waiting(cx);
        }
        true
    }

    /// A newer producer has the transactional id, or this one's requests are not understood.
    fn fail_for_good(&mut self, error: ErrorCode, cx: &mut Cx) {
        let open = self.txn.as_ref().is_some_and(|txn| txn.phase != Phase::Idle);
        if let Some(txn) = &mut self.txn {
            txn.failed = Some(error);
            txn.wanted.clear();
        }
        self.refuse_all(error, cx);
        if open {
            self.transaction_ended(TxnOutcome::Unknown, cx);
        }
    }

    fn transaction_ended(&mut self, outcome: TxnOutcome, cx: &mut Cx) {
        let next = self.next_identity();
        let producer = self.config.number;
        let Some(txn) = &mut self.txn else { return };
        match outcome {
            TxnOutcome::Committed => self.counts.committed += 1,
            TxnOutcome::Aborted => self.counts.aborted += 1,
            TxnOutcome::Unknown => {}
        }
        cx.trace(Trace::TxnEnded { producer, first: txn.first, next, outcome });
        txn.phase = Phase::Idle;
        txn.failed = None;
        txn.added.clear();
        txn.wanted.clear();
    }

    // ------------------------------------------------------------------------------------------------------------- asking

    /// Looks whether the transaction is to end, and asks the coordinator for what comes next: the last of a run's sendings.
    pub(super) fn transact(&mut self, now: Now, cx: &mut Cx) {
        let over = self.generator_is_over(now);
        let undecided = self.open_records() > 0;
        let Some(txn) = &mut self.txn else { return };
        txn.wait = None;
        if matches!(self.ids.state, IdState::Refused(_)) {
            if txn.phase != Phase::Idle && !undecided {
                self.transaction_ended(TxnOutcome::Unknown, cx);
            }
            return;
        }
        if txn.phase == Phase::Open {
            let full = txn.taken >= txn.config.records;
            let late = txn.config.duration.map_or(over, |duration| txn.begun_at + duration <= now.mono);
            if full || late {
                txn.phase = Phase::Ending;
            }
        }
        if txn.asked {
            return;
        }
        if txn.not_before > now.mono {
            txn.wait = Some(txn.not_before);
            return;
        }
        let decided = txn.wanted.is_empty() && !undecided;
        if txn.phase == Phase::Ending && cx.guards.admits(guard::EndAfterRecords, decided) {
            return self.end_transaction(now, cx);
        }
        if self.ids.state == IdState::Known && txn.needs_bump && txn.phase == Phase::Idle {
            self.ids.state = IdState::Wanted(now.mono);
        }
        if let IdState::Wanted(at) = self.ids.state {
            if at > now.mono {
                txn.wait = Some(at);
                return;
            }
            let (producer, epoch) = (self.ids.producer, self.ids.epoch);
            let request = InitProducerIdRequest {
                transactional_id: Some(txn.config.id.clone()),
                timeout_ms: u32::try_from(txn.config.timeout.as_millis()).unwrap_or(u32::MAX),
                producer,
                epoch: if producer == ProducerId::NONE { ProducerEpoch(-1) } else { epoch },
            };
            if self.ask_coordinator(request.into(), TxnAsked::Init, now, cx) {
                self.ids.state = IdState::Asked;
            }
        } else if !txn.wanted.is_empty() {
            let slots: Vec<u32> = txn.wanted.iter().copied().collect();
            let request = AddPartitionsToTxnRequest {
                transactional_id: txn.config.id.clone(),
                producer: self.ids.producer,
                epoch: self.ids.epoch,
                parts: slots.iter().map(|slot| self.held.slots[*slot as usize].partition).collect(),
            };
            self.ask_coordinator(request.into(), TxnAsked::Add(slots), now, cx);
        }
    }

    /// All records of the transaction are decided, and no more will come.
    fn end_transaction(&mut self, now: Now, cx: &mut Cx) {
        let Some(txn) = &self.txn else { return };
        let drawn = cx.entropy.below(ABORT, txn.number, 1_000_000_000) < u64::from(txn.config.abort_ppb);
        if txn.added.is_empty() {
            // The coordinator never heard of it.
            return self.transaction_ended(TxnOutcome::Aborted, cx);
        }
        let commit = !drawn && !txn.is_failed();
        let request = EndTxnRequest {
            transactional_id: txn.config.id.clone(),
            producer: self.ids.producer,
            epoch: self.ids.epoch,
            commit,
        };
        self.ask_coordinator(request.into(), TxnAsked::End(commit), now, cx);
    }

    /// Sends a request to the coordinator; looks for it first if it is not known. True if the request is under way.
    fn ask_coordinator(&mut self, body: Body, asked: TxnAsked, now: Now, cx: &mut Cx) -> bool {
        let Some(txn) = &mut self.txn else { return false };
        let Some(node) = txn.coordinator else {
            let request =
                FindCoordinatorRequest { kind: CoordinatorKind::Transaction, keys: vec![txn.config.id.clone()] };
            let node = self.cluster.any_ready(now, cx);
            let sent = node.is_some_and(|node| {
                self.cluster.send(now, node, request.into(), Asked::Transaction(TxnAsked::Coordinator), cx)
            });
            txn.asked = sent;
            if !sent {
                txn.wait = Some(self.cluster.channel_wait(now));
            }
            return false;
        };
        match self.cluster.channels.ensure(now, node, cx) {
            ChannelStatus::Ready => {}
            ChannelStatus::Down(until) => {
                txn.wait = Some(until);
                return false;
            }
            ChannelStatus::Busy | ChannelStatus::Opening => return false,
        }
        txn.asked = self.cluster.send(now, node, body, Asked::Transaction(asked), cx);
        txn.asked
    }

    /// When a transaction has something to do by itself.
    pub(super) fn transaction_wakeup(&self, now: Now) -> Option<Nanos> {
        let txn = self.txn.as_ref()?;
        let end = match txn.config.duration {
            Some(duration) => Some(txn.begun_at + duration),
            // What is not full then never will be.
            None => self.config.load.stop.filter(|stop| *stop > now.mono),
        };
        earlier(end.filter(|_| txn.phase == Phase::Open), txn.wait)
    }

    // ------------------------------------------------------------------------------------------------------------ answers

    /// A connection is gone: the coordinator behind it may be another one now.
    pub(super) fn coordinator_lost(&mut self, node: NodeId, now: Now) {
        let backoff = self.config.retry_backoff;
        if let Some(txn) = self.txn.as_mut().filter(|txn| txn.coordinator == Some(node)) {
            txn.coordinator = None;
            txn.not_before = now.mono + backoff;
        }
    }

    /// No answer: the request may have been obeyed, and is asked again.
    pub(super) fn on_transaction_silence(&mut self, now: Now, asked: &TxnAsked) {
        if *asked == TxnAsked::Init {
            self.ids.state = IdState::Wanted(now.mono);
        }
        self.retry_transaction(now, self.config.retry_backoff, true);
    }

    fn retry_transaction(&mut self, now: Now, wait: Nanos, elsewhere: bool) {
        let Some(txn) = &mut self.txn else { return };
        txn.asked = false;
        txn.not_before = now.mono + wait;
        if elsewhere {
            txn.coordinator = None;
        }
    }

    pub(super) fn on_transaction_answer(&mut self, now: Now, asked: TxnAsked, body: Body, cx: &mut Cx) {
        if let Some(txn) = &mut self.txn {
            txn.asked = false;
        }
        match (asked, body) {
            (TxnAsked::Coordinator, Body::FindCoordinatorResponse(answer)) => self.on_coordinator(now, &answer, cx),
            (TxnAsked::Init, Body::InitProducerIdResponse(answer)) => self.on_transaction_id(now, &answer, cx),
            (TxnAsked::Add(slots), Body::AddPartitionsToTxnResponse(answer)) => self.on_added(now, &slots, &answer, cx),
            (TxnAsked::End(commit), Body::EndTxnResponse(answer)) => self.on_ended(now, commit, &answer, cx),
            (asked, _) => self.on_transaction_silence(now, &asked),
        }
    }

    fn on_coordinator(&mut self, now: Now, answer: &FindCoordinatorResponse, cx: &mut Cx) {
        let backoff = self.config.retry_backoff;
        let Some(txn) = &mut self.txn else { return };
        let found = answer.coordinators.iter().find(|found| found.key == txn.config.id);
        let error = found.map_or(ErrorCode::UnknownServerError, |found| found.error);
        match (meaning(error), found.and_then(|found| found.node)) {
            (Meaning::Good, Some(node)) => {
                debug_assert!(found.is_some_and(|found| found.broker != BrokerId::NONE), "an address without a broker");
                txn.coordinator = Some(node);
            }
            (Meaning::Fatal, _) => self.fail_for_good(error, cx),
            _ => self.retry_transaction(now, backoff, true),
        }
    }

    fn on_transaction_id(&mut self, now: Now, answer: &InitProducerIdResponse, cx: &mut Cx) {
        self.ids.state = IdState::Wanted(now.mono);
        let backoff = self.config.retry_backoff;
        match meaning(answer.error) {
            Meaning::Good => self.goes_on_as(answer.producer, answer.epoch),
            Meaning::Elsewhere => self.retry_transaction(now, backoff, true),
            Meaning::Retry | Meaning::Abort | Meaning::AbortAndBump => self.retry_transaction(now, backoff, false),
            Meaning::Fatal => self.fail_for_good(answer.error, cx),
        }
    }

    /// The next transaction is written under this id and epoch. Nothing is open: every partition begins at 0 with its next
    /// batch.
    fn goes_on_as(&mut self, producer: ProducerId, epoch: ProducerEpoch) {
        self.ids.granted(producer, epoch);
        self.ids.unresolved.clear();
        self.ids.bumps.clear();
        if let Some(txn) = &mut self.txn {
            txn.needs_bump = false;
        }
    }

    fn on_added(&mut self, now: Now, slots: &[u32], answer: &AddPartitionsToTxnResponse, cx: &mut Cx) {
        let verdict = |partition: PartitionIx| {
            let found = answer.parts.iter().find(|part| part.0 == partition);
            found.map_or(ErrorCode::UnknownServerError, |part| part.1)
        };
        let mut again = None;
        for &slot in slots {
            let partition = self.held.slots[slot as usize].partition;
            let error = verdict(partition);
            let Some(txn) = &mut self.txn else { return };
            match meaning(error) {
                Meaning::Good => {
                    txn.added.insert(slot);
                    txn.wanted.remove(&slot);
                    self.held.enqueue(slot, &self.cluster.view);
                }
                Meaning::Elsewhere => again = Some((self.config.retry_backoff, true)),
                Meaning::Retry => {
                    let completing = error == ErrorCode::ConcurrentTransactions && txn.added.is_empty();
                    let wait = if completing { COMPLETING_BACKOFF } else { self.config.retry_backoff };
                    again = again.or(Some((wait, false)));
                    if error == ErrorCode::UnknownTopicOrPartition {
                        self.cluster.want_refresh_of(partition);
                    }
                }
                Meaning::Abort => {
                    // The next transaction may meet the same refusal.
                    txn.not_before = now.mono + self.config.retry_backoff;
                    txn.wanted.remove(&slot);
                    self.fail_transaction(error, false, cx);
                }
                Meaning::AbortAndBump => {
                    txn.wanted.remove(&slot);
                    self.fail_transaction(error, true, cx);
                }
                Meaning::Fatal => return self.fail_for_good(error, cx),
            }
        }
        if let Some((wait, elsewhere)) = again {
            self.retry_transaction(now, wait, elsewhere);
        }
    }

    fn on_ended(&mut self, now: Now, commit: bool, answer: &EndTxnResponse, cx: &mut Cx) {
        let (backoff, error) = (self.config.retry_backoff, answer.error);
        match meaning(error) {
            Meaning::Good => {
                if answer.producer != ProducerId::NONE {
                    self.goes_on_as(answer.producer, answer.epoch);
                }
                let outcome = if commit { TxnOutcome::Committed } else { TxnOutcome::Aborted };
                self.transaction_ended(outcome, cx);
            }
            Meaning::Elsewhere => self.retry_transaction(now, backoff, true),
            Meaning::Retry => self.retry_transaction(now, backoff, false),
            // The coordinator knows another producer id, or none: it will never say what became of this one's.
            Meaning::Abort | Meaning::AbortAndBump => {
                if let Some(txn) = &mut self.txn {
                    txn.needs_bump = true;
                }
                self.transaction_ended(TxnOutcome::Unknown, cx);
            }
            Meaning::Fatal => self.fail_for_good(error, cx),
        }
    }
}

#[cfg(test)]
#[path = "transactions_tests.rs"]
mod tests;
