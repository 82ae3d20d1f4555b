//! Requests and responses of transactions (KIP-98): who coordinates, what a transaction takes in, how it ends.

use crate::ids::{BrokerId, NodeId, PartitionIx, ProducerEpoch, ProducerId};
use crate::wire::errors::ErrorCode;
use std::sync::Arc;

/// What is coordinated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum CoordinatorKind {
    /// A consumer group.
    #[default]
    Group,
    /// A transactional id.
    Transaction,
}

/// Who coordinates these?
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FindCoordinatorRequest {
    /// What the keys are.
    pub kind: CoordinatorKind,
    /// Groups or transactional ids.
    pub keys: Vec<Arc<str>>,
}

/// Answer to [`FindCoordinatorRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FindCoordinatorResponse {
    /// One per key.
    pub coordinators: Vec<FoundCoordinator>,
}

/// One key's coordinator.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FoundCoordinator {
    /// The key.
    pub key: Arc<str>,
    /// Verdict.
    pub error: ErrorCode,
    /// The broker, or none.
    pub broker: BrokerId,
    /// Its address, with a broker.
    pub node: Option<NodeId>,
}

/// A transaction takes in these partitions (version 3, what producers send).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AddPartitionsToTxnRequest {
    /// Whose.
    pub transactional_id: Arc<str>,
    /// The producer id that the coordinator gave.
    pub producer: ProducerId,
    /// Its epoch.
    pub epoch: ProducerEpoch,
    /// Which.
    pub parts: Vec<PartitionIx>,
}

/// Answer to [`AddPartitionsToTxnRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AddPartitionsToTxnResponse {
    /// Partition and verdict.
    pub parts: Vec<(PartitionIx, ErrorCode)>,
}

/// A transaction ends.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct EndTxnRequest {
    /// Whose.
    pub transactional_id: Arc<str>,
    /// The producer id.
    pub producer: ProducerId,
    /// Its epoch.
    pub epoch: ProducerEpoch,
    /// Committed or aborted.
    pub commit: bool,
}

/// Answer to [`EndTxnRequest`] (version 5): the decision is made, its markers follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndTxnResponse {
    /// Verdict.
    pub error: ErrorCode,
    /// The producer id that the next transaction is written with, −1 if the producer's own (transaction version 1).
    pub producer: ProducerId,
    /// Its epoch, −1 with it.
    pub epoch: ProducerEpoch,
}

impl Default for EndTxnResponse {
    fn default() -> Self {
        Self { error: ErrorCode::None, producer: ProducerId::NONE, epoch: ProducerEpoch(-1) }
    }
}

/// A coordinator has markers written by partition leaders (version 1; 2 if one of them names its transaction version, KIP-1228).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WriteTxnMarkersRequest {
    /// One per transaction.
    pub markers: Vec<TxnMarker>,
}

/// How one transaction ended.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TxnMarker {
    /// Its producer.
    pub producer: ProducerId,
    /// The epoch of its producer; above that of its records if it was fenced.
    pub epoch: ProducerEpoch,
    /// Committed or aborted.
    pub commit: bool,
    /// The leader epoch in which the coordinator leads its partition of `__transaction_state`.
    pub coordinator_epoch: i32,
    /// The transaction version if it is 2 or more, else 0: whether the epoch is above that of the records.
    pub version: i8,
    /// Where.
    pub parts: Vec<PartitionIx>,
}

/// Answer to [`WriteTxnMarkersRequest`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WriteTxnMarkersResponse {
    /// One per marker.
    pub markers: Vec<TxnMarkerAnswer>,
}

/// One transaction's verdicts.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TxnMarkerAnswer {
    /// Its producer.
    pub producer: ProducerId,
    /// Partition and verdict.
    pub parts: Vec<(PartitionIx, ErrorCode)>,
}
