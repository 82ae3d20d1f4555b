//! Guards and quirks whose absence no world of this simulation can show, and why. The hunt prints the reason beside a miss; what
//! is not listed here and not found is a hole in the checks or in the worlds.
//!
//! What is decided by another rule in every world carries no weight, and has no row at all. These conditions stand in the code as they
//! do in Kafka or in the proposal, and had a row before it was clear what carries the weight in their place:
//! - After sequence 2^31-1 comes 0 at the broker too (T14): a producer that is refused for a gap begins again at 0 under a higher epoch
//!   (KIP-360), one round trip later. The producer's own rule has a row, `ProducerSequenceWraps`.
//! - A question about an undefined epoch has an undefined end (R22): nobody asks, for who knows no epoch has read nothing.
//! - A registration answer counts only for the process that asked (I17): it comes over a connection of that process.
//! - A mirror appends what it fetched from the log's end only (spec 4.1): its fetcher alone changes that log, and moves with it; an
//!   answer to something else is not taken (`MirrorAnswerIsCurrent`).
//! - The wait for a bump ends above the minimum (C12): who goes on too early is sent back before it appends
//!   (`EpochBumpBeforeAppend`). What C12 is about has a row, `BumpAboveMinimum`.

use super::{client, log, quorum, replication, GuardId};

/// Why on and off look the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Another rule, which is no switch, makes both the same in every world.
    Equivalent,
    /// The simulation has no step in which they differ.
    Granularity,
}

impl Why {
    /// One word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Equivalent => "equivalent",
            Self::Granularity => "granularity",
        }
    }
}

/// A row that nothing can show.
#[derive(Clone, Copy, Debug)]
pub struct Unseen {
    /// The guard or quirk.
    pub id: GuardId,
    /// The kind of reason.
    pub why: Why,
    /// The reason, in one or two sentences.
    pub says: &'static str,
}

/// All of them, in order of bit. One that is masked by another guard is not here: its file switches both off.
pub const UNSEEN: &[Unseen] = &[
    Unseen {
        id: log::BatchEpochBounded,
        why: Why::Granularity,
        says: "A leader compares the epoch of a fetch and reads its log in one task: nothing is cut and filled again between (KAFKA-18723). What a mirror leader's follower leaves for its bound comes again, unchanged.",
    },
    Unseen {
        id: replication::ShutdownMovesLeaders,
        why: Why::Equivalent,
        says: "The controller moves the leaderships in the moment in which it hears of the wish; who does not wait for its word is gone some milliseconds earlier.",
    },
    Unseen {
        id: client::PatternsMeetAllTopics,
        why: Why::Equivalent,
        says: "The controller has a verdict for each topic: what is none of the mirror's is refused, and the others are done. The tool \
               tells of a refusal that nobody asked for, and its exit code is 1.",
    },
    Unseen {
        id: quorum::SnapshotBeforeLog,
        why: Why::Equivalent,
        says: "A voter that needs a snapshot is behind what the others committed without it, and they hold what it \
               loses; and the first flush of its new log makes the name of the snapshot durable too.",
    },
];

/// Why a guard or quirk cannot be seen.
#[must_use]
pub fn of(id: GuardId) -> Option<&'static Unseen> {
    UNSEEN.iter().find(|unseen| unseen.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_once_in_order_and_with_a_reason() {
        assert!(UNSEEN.windows(2).all(|two| two[0].id < two[1].id));
        assert!(UNSEEN.iter().all(|unseen| unseen.says.len() > 40 && unseen.says.ends_with('.')));
        assert!(UNSEEN.iter().all(|unseen| of(unseen.id).is_some()));
    }
}
