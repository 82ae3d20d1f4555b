//! Guards and quirks whose absence no world of this simulation can show, and why. The hunt prints the reason beside a miss; what
//! is not listed here and not found is a hole in the checks or in the worlds.

use super::{controller, log, mirror, quorum, replication, transactions, GuardId};

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
        id: log::SequenceWraps,
        why: Why::Equivalent,
        says: "A producer whose batch is refused for its sequence begins again at 0 under a higher epoch: one round trip is all that it costs.",
    },
    Unseen {
        id: log::OffsetsMonotone,
        why: Why::Granularity,
        says: "Batches of an answer are slices of one log, in its order, and no fault here exchanges messages' bytes.",
    },
    Unseen {
        id: log::BatchEpochBounded,
        why: Why::Granularity,
        says: "A leader compares the epoch of a fetch and reads its log in one task: nothing is cut and filled again between (KAFKA-18723). What a mirror leader's follower leaves for its bound comes again, unchanged.",
    },
    Unseen {
        id: log::OfflineIsSticky,
        why: Why::Granularity,
        says: "The process of a broker ends with the task in which a write failed, as all logs are on one disk: nothing is appended after it.",
    },
    Unseen {
        id: log::PartialAppendCutBack,
        why: Why::Equivalent,
        says: "The process of a broker ends with the task in which a write failed, and recovery cuts what is torn; whole batches that stay were told to nobody.",
    },
    Unseen {
        id: log::HighWatermarkWithinLog,
        why: Why::Equivalent,
        says: "Who sets a watermark has bounded it already: a leader by its end and the watermark before, a follower by its end.",
    },
    Unseen {
        id: log::LogStartWithinHighWatermark,
        why: Why::Equivalent,
        says: "Who raises a log start has bounded it already: DeleteRecords refuses more than the watermark, a follower takes the smaller of the two.",
    },
    Unseen {
        id: replication::LastFetchedEpochKept,
        why: Why::Equivalent,
        says: "Within a leader epoch only a mirror leader cuts its log, and it goes on only when every replica has followed (BarrierAfterMirrorCut): by its end if not by its epoch.",
    },
    Unseen {
        id: replication::UndefinedEpochAnswer,
        why: Why::Equivalent,
        says: "Nobody asks: a reader that knows no epoch has read nothing, and begins to fetch.",
    },
    Unseen {
        id: replication::OlderMetadataIgnored,
        why: Why::Equivalent,
        says: "A broker applies one image, which only goes on. Older than what an answer about the ISR told is at most the same leader and epoch, and then a second look at the partition epoch keeps the ISR.",
    },
    Unseen {
        id: replication::StaleIsrAnswerIgnored,
        why: Why::Equivalent,
        says: "A broker has one such request under way, and metadata of a newer epoch takes back that it was sent: what answers the one before answers nothing.",
    },
    Unseen {
        id: replication::RegistrationOfThisIncarnation,
        why: Why::Equivalent,
        says: "An answer comes over a connection of the process that asked, and names its request.",
    },
    Unseen {
        id: replication::ShutdownMovesLeaders,
        why: Why::Equivalent,
        says: "The controller moves the leaderships in the moment in which it hears of the wish; who does not wait for its word is gone some milliseconds earlier.",
    },
    Unseen {
        id: controller::RegistrationClusterIdMatches,
        why: Why::Granularity,
        says: "All processes of a cluster are given one cluster id by the scenario, and take another one together: \
               there is no broker that was formatted for another cluster.",
    },
    Unseen {
        id: controller::UnfenceNeedsCatchUp,
        why: Why::Equivalent,
        says: "A broker asks to stay fenced until it has caught up, and acts on no metadata before its own \
               registration: the controller's rule is the second one of two.",
    },
    Unseen {
        id: controller::StartNeedsFreshStates,
        why: Why::Granularity,
        says: "It takes two operators: one whose order is on its way, and another one who starts and stops the topic \
               meanwhile. A cluster has one here, and it gives one order after the other.",
    },
    Unseen {
        id: controller::ExcludedStoppedAgain,
        why: Why::Granularity,
        says: "It costs another order that is on its way at that moment one refusal; a cluster has one operator here, \
               who gives one order after the other and repeats what is refused.",
    },
    Unseen {
        id: mirror::MirrorOffsetMatchesLog,
        why: Why::Equivalent,
        says: "The log of a mirror leader grows and is cut by its fetcher alone, in the task that moves the fetcher's \
               offset; whoever else changes it has taken the partition from the fetcher before.",
    },
    Unseen {
        id: mirror::MirrorAnswerIsCurrent,
        why: Why::Equivalent,
        says: "A fetcher has one request under way, and gives a slot again only when the next request has told the \
               source to forget it; an answer on a closed connection is dropped.",
    },
    Unseen {
        id: mirror::BumpWaitsForImage,
        why: Why::Equivalent,
        says: "Who goes on too early asks for the same batch again, and is sent back before it is appended \
               (EpochBumpBeforeAppend).",
    },
    Unseen {
        id: mirror::StorageErrorsFail,
        why: Why::Equivalent,
        says: "A broker has one log directory: when an append fails it ends at once, and another one leads and copies.",
    },
    Unseen {
        id: transactions::CompletionOfThisTransaction,
        why: Why::Equivalent,
        says:
            "The markers of a transaction are dropped when their coordinator resigns, and no other transaction of the \
               same id is decided while they are on their way (OneTransactionAtATime).",
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
