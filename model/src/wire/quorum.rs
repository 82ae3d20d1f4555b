//! Messages with which the voters of the metadata quorum find a leader (KIP-595, 853, 996). How they copy its log is the fetch
//! of the metadata log and of its snapshots.
//!
//! Kafka's schemas have these per topic and partition; there is one partition, and its verdict stands for the whole.

use crate::ids::{LeaderEpoch, MetadataOffset, NodeId};
use crate::wire::errors::ErrorCode;

/// A voter wants to lead, or to know whether it could.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct VoteRequest {
    /// Who is asked.
    pub voter: NodeId,
    /// The directory that it is thought to have.
    pub voter_directory: u128,
    /// Who asks.
    pub candidate: NodeId,
    /// Its directory.
    pub candidate_directory: u128,
    /// The epoch it would lead in; of a pre-vote, the epoch it is in.
    pub epoch: LeaderEpoch,
    /// Epoch of the last record of its log.
    pub last_epoch: LeaderEpoch,
    /// End of its log.
    pub end: MetadataOffset,
    /// Nothing is promised by an answer (KIP-996).
    pub pre_vote: bool,
}

/// Answer to [`VoteRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct VoteResponse {
    /// Verdict.
    pub error: ErrorCode,
    /// Who leads in `epoch`, as far as known.
    pub leader: Option<NodeId>,
    /// The voter's epoch.
    pub epoch: LeaderEpoch,
    /// Whether it votes for the candidate.
    pub granted: bool,
}

/// A leader tells a voter that it leads.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BeginQuorumEpochRequest {
    /// Who is told.
    pub voter: NodeId,
    /// The directory that it is thought to have.
    pub voter_directory: u128,
    /// Who leads.
    pub leader: NodeId,
    /// In which epoch.
    pub epoch: LeaderEpoch,
}

/// Answer to [`BeginQuorumEpochRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BeginQuorumEpochResponse {
    /// Verdict.
    pub error: ErrorCode,
    /// Who leads in `epoch`, as far as known.
    pub leader: Option<NodeId>,
    /// The voter's epoch.
    pub epoch: LeaderEpoch,
}

/// A leader that resigns tells the voters, so that they need not find out.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct EndQuorumEpochRequest {
    /// Who resigns.
    pub leader: NodeId,
    /// In which epoch.
    pub epoch: LeaderEpoch,
    /// Voters and their directories, those with the longest logs first: the first one stands at once, the others later.
    pub successors: Vec<(NodeId, u128)>,
}

/// Answer to [`EndQuorumEpochRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct EndQuorumEpochResponse {
    /// Verdict.
    pub error: ErrorCode,
    /// Who leads in `epoch`, as far as known.
    pub leader: Option<NodeId>,
    /// The voter's epoch.
    pub epoch: LeaderEpoch,
}
