//! One partition of `__transaction_state` in memory: transactional ids, changed by replay only; and what a request comes to,
//! judged over the latest state (Kafka's TransactionCoordinator and TransactionMetadata, transaction versions 0 and 1).
//!
//! A plan changes nothing. Its record is appended and replayed, its answer waits until that is committed.

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

/// An InitProducerId: `expected` is the id and epoch that the producer had, `fresh` a producer id that nobody has.
///
/// # Errors
/// PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
pub fn plan_init(
    now: Option<&TxnValue>,
    timeout_ms: u32,
    expected: Option<(ProducerId, ProducerEpoch)>,
    fresh: Option<ProducerId>,
    wall_ms: i64,
    guards: &mut Guards,
) -> Result<Init, ErrorCode> {
    let blank = TxnValue {
        producer: ProducerId::NONE,
        epoch: NO_EPOCH,
        last_epoch: NO_EPOCH,
        timeout_ms,
        state: TxnState::Empty,
        members: Vec::new(),
        updated: wall_ms,
        started: -1,
    };
    let Some(known) = now else {
        let Some(producer) = fresh else { return Ok(Init::NeedsId) };
        return Ok(Init::Granted(TxnValue { producer, epoch: ProducerEpoch(0), ..blank }));
    };
    let ours = expected.is_none_or(|(producer, _)| producer == known.producer);
    if !guards.admits(guard::RequestOfPresentProducer, ours) {
        return Err(ErrorCode::ProducerFenced);
    }
    let open = known.state == TxnState::Ongoing;
    if !guards.admits(guard::InitEndsOpenTransaction, !open) {
        return Ok(Init::Abort(plan_fence(known, wall_ms)));
    }
    if known.state.decision().is_some() {
        return Err(ErrorCode::ConcurrentTransactions);
    }
    let next = TxnValue { producer: known.producer, started: known.started, ..blank };
    match expected {
        Some((_, epoch)) if epoch != known.epoch && epoch == known.last_epoch => {
            Ok(Init::Again(known.producer, known.epoch))
        }
        Some((_, epoch)) if !guards.admits(guard::RequestOfPresentProducer, epoch == known.epoch) => {
            Err(ErrorCode::ProducerFenced)
        }
        _ if is_exhausted(known.epoch) => Ok(match fresh {
            None => Init::NeedsId,
            Some(producer) => Init::Granted(TxnValue { producer, epoch: ProducerEpoch(0), ..next }),
        }),
        _ => {
            let last_epoch = if expected.is_some() { known.epoch } else { NO_EPOCH };
            Ok(Init::Granted(TxnValue { epoch: ProducerEpoch(known.epoch.0 + 1), last_epoch, ..next }))
        }
    }
}

/// The coordinator aborts an open transaction by itself: the epoch that its markers carry is above the producer's, so that
/// nothing of it can be written behind them.
fn plan_fence(known: &TxnValue, wall_ms: i64) -> TxnValue {
    TxnValue {
        epoch: ProducerEpoch(known.epoch.0.saturating_add(1)),
        last_epoch: NO_EPOCH,
        state: TxnState::PrepareAbort,
        updated: wall_ms,
        ..known.clone()
    }
}

/// The abort of a transaction that is open for longer than its timeout; `None` if it is not.
pub fn plan_timeout(known: &TxnValue, wall_ms: i64, guards: &mut Guards) -> Option<TxnValue> {
    let late = known.state == TxnState::Ongoing && known.started + i64::from(known.timeout_ms) < wall_ms;
    if !late || guards.admits(guard::TransactionsTimeOut, false) {
        return None;
    }
    let fenced = plan_fence(known, wall_ms);
    if guards.admits(guard::OwnAbortFencesProducer, false) {
        return Some(TxnValue { epoch: known.epoch, ..fenced });
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
    Ok(Some(TxnValue { state: TxnState::Ongoing, members: all, updated: wall_ms, started, ..known.clone() }))
}

/// A producer ends its transaction; `Ok(None)`: it ended so already.
///
/// # Errors
/// INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE.
pub fn plan_end(
    now: Option<&TxnValue>,
    (producer, epoch): (ProducerId, ProducerEpoch),
    commit: bool,
    wall_ms: i64,
    guards: &mut Guards,
) -> Result<Option<TxnValue>, ErrorCode> {
    let known = check_producer(now, producer, epoch, guards)?;
    match (known.state, commit) {
        (TxnState::Ongoing, _) => {
            let state = if commit { TxnState::PrepareCommit } else { TxnState::PrepareAbort };
            Ok(Some(TxnValue { state, updated: wall_ms, ..known.clone() }))
        }
        (TxnState::CompleteCommit, true) | (TxnState::CompleteAbort, false) => Ok(None),
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
    Some(TxnValue { state, members: Vec::new(), updated: wall_ms, ..known.clone() })
}

#[cfg(test)]
#[path = "txn_plan_tests.rs"]
mod tests;
