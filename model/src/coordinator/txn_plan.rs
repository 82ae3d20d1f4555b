//! One partition of `__transaction_state` in memory: transactional ids, changed by replay only; and what a request comes to,
//! judged over the latest state (Kafka's TransactionCoordinator and TransactionMetadata, transaction versions 1 and 2).
//!
//! A plan changes nothing. Its record is appended and replayed, its answer waits until that is committed.
//!
//! Version 2 (KIP-890) answers a story that version 1 cannot:
//! 1. A producer sends the end of a transaction; the connection is lost, the request is on its way still.
//! 2. It asks again on another connection, its transaction ends, it begins the next one.
//! 3. The first request arrives: same producer id, same epoch, and a transaction is open. It is ended in the middle.
//!
//! With version 2 every end raises the producer's epoch, so that the first request names an epoch that is over.

use crate::coordinator::engine::Machine;
use crate::coordinator::txn_records::{Member, TxnRecord, TxnState, TxnValue};
use crate::guards::{transactions as guard, Guards};
use crate::ids::{ProducerEpoch, ProducerId};
use crate::metadata::chunks::ChunkMap;
use crate::wire::errors::ErrorCode;
use std::sync::Arc;

/// The transactional ids of a shard.
pub type Table = ChunkMap<Arc<str>, TxnValue>;

/// The state of a shard.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Txns {
    table: Table,
}

impl Txns {
    /// One transactional id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&TxnValue> {
        self.table.get(id)
    }
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &(Arc<str>, TxnValue)> {
        self.table.iter()
    }
}

impl Machine for Txns {
    type Record = TxnRecord;
    type Stable = Table;

    fn replay(&mut self, offset: i64, record: &TxnRecord) {
        Self::replay_stable(&mut self.table, offset, record);
    }
    fn stable(&self) -> &Table {
        &self.table
    }
    fn replay_stable(table: &mut Table, _offset: i64, record: &TxnRecord) {
        match &record.value {
            Some(value) => table.insert(record.id.clone(), value.clone()),
            None => {
                table.remove(&*record.id);
            }
        }
    }
    fn restore(&mut self, stable: &Table) {
        self.table = stable.clone();
    }
}

/// The transaction version from which on the end of a transaction raises its producer's epoch.
pub const ENDS_RAISE_EPOCH: i16 = 2;

const NO_EPOCH: ProducerEpoch = ProducerEpoch(-1);

/// No further bump: the epoch after this one is only ever taken to fence (Kafka's `isProducerEpochExhausted`).
fn is_exhausted(epoch: ProducerEpoch) -> bool {
    epoch.0 >= i16::MAX - 1
}

/// What an InitProducerId comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Init {
    /// This state, and its producer id and epoch for the answer.
    Granted(TxnValue),
    /// A repeated request: the answer it had.
    Again(ProducerId, ProducerEpoch),
    /// A new producer id is needed first.
    NeedsId,
    /// An open transaction is aborted first, and its producer fenced; the asker comes again.
    Abort(TxnValue),
}

/// An InitProducerId: `expected` is the id and epoch that the producer had, `fresh` a producer id that nobody has, `version`
/// the cluster's transaction version.
///
/// # Errors
/// PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
pub fn plan_init(
    now: Option<&TxnValue>,
    timeout_ms: u32,
    expected: Option<(ProducerId, ProducerEpoch)>,
    fresh: Option<ProducerId>,
    version: i16,
    wall_ms: i64,
    guards: &mut Guards,
) -> Result<Init, ErrorCode> {
    let blank = TxnValue {
        producer: ProducerId::NONE,
        previous: ProducerId::NONE,
        next: ProducerId::NONE,
        epoch: NO_EPOCH,
        last_epoch: NO_EPOCH,
        timeout_ms,
        state: TxnState::Empty,
        members: Vec::new(),
        updated: wall_ms,
        started: -1,
        version: 0,
    };
    let Some(known) = now else {
        let Some(producer) = fresh else { return Ok(Init::NeedsId) };
        return Ok(Init::Granted(TxnValue { producer, epoch: ProducerEpoch(0), ..blank }));
    };
    // The answer that told of a new producer id may have been lost: the old one asks, at its last epoch.
    let was_ours = |(producer, epoch)| producer == known.previous && is_exhausted(epoch);
    let ours = expected.is_none_or(|of| of.0 == known.producer || was_ours(of));
    if !guards.admits(guard::RequestOfPresentProducer, ours) {
        return Err(ErrorCode::ProducerFenced);
    }
    let open = known.state == TxnState::Ongoing;
    if !guards.admits(guard::InitEndsOpenTransaction, !open) {
        return Ok(Init::Abort(plan_fence(known, version, wall_ms)));
    }
    if known.state.decision().is_some() {
        return Err(ErrorCode::ConcurrentTransactions);
    }
    let next = TxnValue { producer: known.producer, started: known.started, version: known.version, ..blank };
    match expected {
        Some((_, epoch)) if epoch != known.epoch && epoch == known.last_epoch && known.epoch.0 < i16::MAX => {
            Ok(Init::Again(known.producer, known.epoch))
        }
        Some((_, epoch))
            if !guards.admits(guard::RequestOfPresentProducer, epoch == known.epoch || epoch == known.last_epoch) =>
        {
            Err(ErrorCode::ProducerFenced)
        }
        _ if is_exhausted(known.epoch) => Ok(match fresh {
            None => Init::NeedsId,
            Some(producer) => Init::Granted(TxnValue {
                producer,
                previous: known.producer,
                epoch: ProducerEpoch(0),
                last_epoch: expected.map_or(NO_EPOCH, |(_, epoch)| epoch),
                ..next
            }),
        }),
        _ => {
            let last_epoch = if expected.is_some() { known.epoch } else { NO_EPOCH };
            Ok(Init::Granted(TxnValue { epoch: ProducerEpoch(known.epoch.0 + 1), last_epoch, ..next }))
        }
    }
}

/// The coordinator aborts an open transaction by itself: the epoch that its markers carry is above the producer's, so that
/// nothing of it can be written behind them. Once, not twice, in version 2 (KAFKA-19367).
fn plan_fence(known: &TxnValue, version: i16, wall_ms: i64) -> TxnValue {
    TxnValue {
        epoch: ProducerEpoch(known.epoch.0.saturating_add(1)),
        last_epoch: if version >= ENDS_RAISE_EPOCH { known.epoch } else { NO_EPOCH },
        state: TxnState::PrepareAbort,
        updated: wall_ms,
        version,
        ..known.clone()
    }
}

/// The abort of a transaction that is open for longer than its timeout; `None` if it is not.
pub fn plan_timeout(known: &TxnValue, version: i16, wall_ms: i64, guards: &mut Guards) -> Option<TxnValue> {
    let late = known.state == TxnState::Ongoing && known.started + i64::from(known.timeout_ms) < wall_ms;
    if !late || guards.admits(guard::TransactionsTimeOut, false) {
        return None;
    }
    let fenced = plan_fence(known, version, wall_ms);
    if guards.admits(guard::OwnAbortFencesProducer, false) {
        return Some(TxnValue { epoch: known.epoch, version: version.min(ENDS_RAISE_EPOCH - 1), ..fenced });
    }
    Some(fenced)
}

/// Whether a request's producer is the one of its transactional id.
fn check_producer<'v>(
    now: Option<&'v TxnValue>,
    producer: ProducerId,
    epoch: ProducerEpoch,
    guards: &mut Guards,
) -> Result<&'v TxnValue, ErrorCode> {
    let known = now.filter(|known| known.producer == producer).ok_or(ErrorCode::InvalidProducerIdMapping)?;
    if guards.admits(guard::RequestOfPresentProducer, epoch == known.epoch) {
        Ok(known)
    } else {
        Err(ErrorCode::ProducerFenced)
    }
}

/// Partitions join a transaction; `Ok(None)`: they are in it already.
///
/// # Errors
/// INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
pub fn plan_add(
    now: Option<&TxnValue>,
    (producer, epoch): (ProducerId, ProducerEpoch),
    members: &[Member],
    wall_ms: i64,
    guards: &mut Guards,
) -> Result<Option<TxnValue>, ErrorCode> {
    let known = check_producer(now, producer, epoch, guards)?;
    if !guards.admits(guard::OneTransactionAtATime, known.state.decision().is_none()) {
        return Err(ErrorCode::ConcurrentTransactions);
    }
    let open = known.state == TxnState::Ongoing;
    if open && members.iter().all(|member| known.members.binary_search(member).is_ok()) {
        return Ok(None);
    }
    let mut all = if open { known.members.clone() } else { Vec::new() };
    all.extend_from_slice(members);
    all.sort_unstable();
    all.dedup();
    let started = if open { known.started } else { wall_ms };
    let previous = ProducerId::NONE;
    Ok(Some(TxnValue { state: TxnState::Ongoing, previous, members: all, updated: wall_ms, started, ..known.clone() }))
}

/// What an EndTxn comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// This decision; the producer goes on with [`goes_on_with`] it.
    Decided(TxnValue),
    /// It ended so already: the same answer again.
    Again(ProducerId, ProducerEpoch),
    /// The producer id is worn: a new one is needed first.
    NeedsId,
}

/// The producer id and epoch of the transaction after a decided one; none told in version 1, where they stay.
#[must_use]
pub fn goes_on_with(decided: &TxnValue) -> (ProducerId, ProducerEpoch) {
    if decided.version < ENDS_RAISE_EPOCH {
        (ProducerId::NONE, NO_EPOCH)
    } else if decided.next == ProducerId::NONE {
        (decided.producer, decided.epoch)
    } else {
        (decided.next, ProducerEpoch(0))
    }
}

/// A producer ends its transaction, in a cluster of this transaction version. `fresh` is a producer id that nobody has.
///
/// # Errors
/// INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE.
pub fn plan_end(
    now: Option<&TxnValue>,
    of: (ProducerId, ProducerEpoch),
    commit: bool,
    fresh: Option<ProducerId>,
    version: i16,
    wall_ms: i64,
    guards: &mut Guards,
) -> Result<End, ErrorCode> {
    if version < ENDS_RAISE_EPOCH || guards.admits(guard::EndRaisesEpoch, false) {
        return plan_end_in_place(now, of, commit, wall_ms, guards);
    }
    use TxnState as S;
    let known = now.ok_or(ErrorCode::InvalidProducerIdMapping)?;
    let is_repeated = judge_end(known, of, guards)?;
    match (known.state, commit) {
        (S::Ongoing, _) => decide(known, commit, fresh, version, wall_ms, guards),
        // The producer may have asked for partitions and never heard of them: it makes sure that nothing is open.
        (S::Empty | S::CompleteCommit | S::CompleteAbort, false) if !is_repeated => {
            decide(known, false, fresh, version, wall_ms, guards)
        }
        (S::CompleteCommit, true) | (S::CompleteAbort, false) if is_repeated => again(known),
        (S::PrepareCommit, true) | (S::PrepareAbort, false) => Err(ErrorCode::ConcurrentTransactions),
        // The coordinator aborted it meanwhile; only its producer is told so, no other decision can have been (KAFKA-20785).
        (S::CompleteAbort, true) if is_repeated => {
            if guards.admits(guard::RepeatedEndSameDecision, false) {
                return again(known);
            }
            Err(ErrorCode::ProducerFenced)
        }
        _ => Err(ErrorCode::InvalidTxnState),
    }
}

/// The answer to a repeated end. The last epoch of all is never given away: it fences.
fn again(known: &TxnValue) -> Result<End, ErrorCode> {
    if known.epoch.0 == i16::MAX {
        return Err(ErrorCode::ProducerFenced);
    }
    Ok(End::Again(known.producer, known.epoch))
}

/// Version 2: whether an end is of the present producer (false), or the repeated one of the transaction before (true).
fn judge_end(
    known: &TxnValue,
    (producer, epoch): (ProducerId, ProducerEpoch),
    guards: &mut Guards,
) -> Result<bool, ErrorCode> {
    use TxnState as S;
    // The end changed the producer id, under its last epoch.
    let changed_id = producer == known.previous && is_exhausted(epoch) && known.epoch.0 == 0;
    if producer != known.producer && !changed_id {
        return Err(ErrorCode::InvalidProducerIdMapping);
    }
    let is_repeated = changed_id || epoch.0.checked_add(1) == Some(known.epoch.0);
    let is_present = !changed_id && epoch == known.epoch;
    let fits = match known.state {
        S::Empty | S::Ongoing => is_present,
        S::PrepareCommit | S::PrepareAbort => is_repeated,
        S::CompleteCommit | S::CompleteAbort => is_present || is_repeated,
    };
    if guards.admits(guard::RequestOfPresentProducer, fits) {
        Ok(is_repeated)
    } else {
        Err(ErrorCode::ProducerFenced)
    }
}

/// Version 2: the decision, and the epoch that its markers carry, which is the producer's from now on. The last epoch is
/// kept for fencing; a producer that would come to it goes on with a new producer id.
fn decide(
    known: &TxnValue,
    commit: bool,
    fresh: Option<ProducerId>,
    version: i16,
    wall_ms: i64,
    guards: &mut Guards,
) -> Result<End, ErrorCode> {
    let open = known.state == TxnState::Ongoing;
    let fits = !is_exhausted(known.epoch);
    let next = match fresh {
        _ if guards.admits(guard::LastEpochChangesProducerId, fits) => ProducerId::NONE,
        Some(producer) => producer,
        None => return Ok(End::NeedsId),
    };
    Ok(End::Decided(TxnValue {
        state: if commit { TxnState::PrepareCommit } else { TxnState::PrepareAbort },
        previous: ProducerId::NONE,
        next,
        epoch: ProducerEpoch(known.epoch.0.saturating_add(1)),
        last_epoch: known.epoch,
        updated: wall_ms,
        started: if open { known.started } else { wall_ms },
        version,
        ..known.clone()
    }))
}

/// Version 1: the markers carry the producer's own epoch, and it keeps it.
fn plan_end_in_place(
    now: Option<&TxnValue>,
    (producer, epoch): (ProducerId, ProducerEpoch),
    commit: bool,
    wall_ms: i64,
    guards: &mut Guards,
) -> Result<End, ErrorCode> {
    let known = check_producer(now, producer, epoch, guards)?;
    match (known.state, commit) {
        (TxnState::Ongoing, _) => {
            let state = if commit { TxnState::PrepareCommit } else { TxnState::PrepareAbort };
            let version = ENDS_RAISE_EPOCH - 1;
            Ok(End::Decided(TxnValue { state, updated: wall_ms, version, ..known.clone() }))
        }
        (TxnState::CompleteCommit, true) | (TxnState::CompleteAbort, false) => {
            Ok(End::Again(ProducerId::NONE, NO_EPOCH))
        }
        (TxnState::PrepareCommit, true) | (TxnState::PrepareAbort, false) => Err(ErrorCode::ConcurrentTransactions),
        _ => Err(ErrorCode::InvalidTxnState),
    }
}

/// Every partition answered for its marker: the transaction is over, if it is still the one that the markers were of.
pub fn plan_complete(
    now: Option<&TxnValue>,
    (producer, epoch): (ProducerId, ProducerEpoch),
    commit: bool,
    wall_ms: i64,
    guards: &mut Guards,
) -> Option<TxnValue> {
    let known = now?;
    let same = (known.producer, known.epoch) == (producer, epoch) && known.state.decision() == Some(commit);
    if !guards.admits(guard::CompletionOfThisTransaction, same) {
        return None;
    }
    let state = if commit { TxnState::CompleteCommit } else { TxnState::CompleteAbort };
    let over = TxnValue { state, members: Vec::new(), updated: wall_ms, ..known.clone() };
    if known.next == ProducerId::NONE {
        return Some(over);
    }
    let (previous, next) = (known.producer, ProducerId::NONE);
    Some(TxnValue { producer: known.next, previous, next, epoch: ProducerEpoch(0), ..over })
}

#[cfg(test)]
#[path = "txn_plan_tests.rs"]
mod tests;
