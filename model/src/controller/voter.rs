//! What a voter promised, what it waits for, and what may come after what (KIP-595, KIP-996).

use crate::controller::term::Term;
use crate::ids::{LeaderEpoch, MetadataOffset, NodeId};
use std::collections::BTreeSet;

/// What a voter must never forget: `quorum-state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Elected {
    /// The latest epoch it knows of.
    pub epoch: LeaderEpoch,
    /// Who leads in it, if known.
    pub leader: Option<NodeId>,
    /// Whom it voted for in it.
    pub voted: Option<NodeId>,
}

/// The end of a log: epoch of its last record, and offset after it. Ordered as votes compare logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogEnd {
    /// Epoch of the last record.
    pub epoch: LeaderEpoch,
    /// Offset after it.
    pub end: MetadataOffset,
}

/// Who answered in a round of votes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ballot {
    pub(super) granted: BTreeSet<NodeId>,
    pub(super) refused: BTreeSet<NodeId>,
}

/// What a voter waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// No leader is known: for an announcement, a request for its vote, or its own turn.
    Unattached,
    /// It lost its leader: for a majority that would vote for it. The epoch stays.
    Prospective(Ballot),
    /// For a majority of votes in its own epoch.
    Candidate(Ballot),
    /// For records of its leader.
    Follower {
        /// Whether the leader answered a fetch in this epoch.
        heard: bool,
    },
    /// It led in this epoch and does no more: for a successor.
    Resigned {
        /// Voters that know.
        told: BTreeSet<NodeId>,
        /// Whom it proposes, best first.
        successors: Vec<NodeId>,
    },
    /// For fetches of a majority.
    Leader(Term),
    /// Its disk is not the voter's any more: for records of whoever leads; it has no vote.
    Observer,
}

impl State {
    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unattached => "unattached",
            Self::Prospective(_) => "prospective",
            Self::Candidate(_) => "candidate",
            Self::Follower { .. } => "follower",
            Self::Resigned { .. } => "resigned",
            Self::Leader(_) => "leader",
            Self::Observer => "observer",
        }
    }

    /// Whether this state may come after `before` (KIP-595, KIP-996).
    #[must_use]
    pub const fn can_follow(&self, before: &Self) -> bool {
        match self {
            Self::Unattached => !matches!(before, Self::Observer),
            Self::Prospective(_) => {
                matches!(before, Self::Unattached | Self::Prospective(_) | Self::Candidate(_) | Self::Follower { .. })
            }
            Self::Candidate(_) => matches!(before, Self::Prospective(_)),
            Self::Follower { .. } => !matches!(before, Self::Observer),
            Self::Resigned { .. } => matches!(before, Self::Leader(_)),
            Self::Leader(_) => matches!(before, Self::Candidate(_)),
            Self::Observer => matches!(before, Self::Observer),
        }
    }
}

/// What a voter wants of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Its vote, or the word that it would give it.
    Vote {
        /// Nothing is promised.
        pre_vote: bool,
    },
    /// That it follows.
    Begin,
    /// That it looks for another leader.
    End,
    /// Records.
    Fetch,
}

impl Ballot {
    /// Somebody answered.
    pub(super) fn note(&mut self, from: NodeId, granted: bool) {
        if granted {
            self.granted.insert(from)
        } else {
            self.refused.insert(from)
        };
    }
    /// Whether somebody has not answered.
    pub(super) fn misses(&self, node: NodeId) -> bool {
        !self.granted.contains(&node) && !self.refused.contains(&node)
    }
}
