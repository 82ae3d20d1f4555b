//! The closed list of excuses: what may explain a loss or a property that does not hold, and whose it is. A checker that
//! cannot name one of these reports a violation.

/// Whose a verdict, an excuse or a loss is (design, verdicts).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Whose {
    /// The protocol under test.
    System,
    /// A client of it.
    Client,
    /// Who operates it: an order, a setting.
    Operator,
    /// Power, disks, networks beyond what was promised.
    Environment,
}

impl Whose {
    /// One word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Client => "client",
            Self::Operator => "operator",
            Self::Environment => "environment",
        }
    }
}

/// An excuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Excuse {
    /// The topic allows unclean elections, and there was one.
    UncleanElection,
    /// At least `min.insync.replicas` replicas of the partition lost power or disk at a time.
    LossyCrashes,
    /// At least `min.insync.replicas` replicas stopped uncleanly at a time: the controller cannot tell who of them lost
    /// something, and took the last known leader (KIP-966).
    UncleanStops,
    /// The operator ordered the partition to follow a source that lacks these records.
    OrderedCut,
    /// The source lost what it had acknowledged, and the mirror followed it.
    SourceCut,
    /// Nobody who may lead is up.
    NoEligibleReplica,
    /// Fewer live replicas than `min.insync.replicas`.
    TooFewReplicas,
    /// The node is down for good.
    NodeDown,
    /// The network between two nodes is down for good.
    CutOff,
    /// The source cluster cannot be reached, for good.
    SourceDown,
    /// So few controllers are up that none of them can lead.
    NoController,
    /// The source's release knows nothing of mirrors, and nobody said that one way is enough (`allow.one.way`).
    SourceRefuses,
    /// The operator's last order waits behind one that is repeated: it was never sent.
    OrderWaits,
    /// The mirror is in FAILED until an operator recovers it.
    FailedForGood,
    /// A consumer without a reset policy gave a partition up.
    NoResetPolicy,
    /// A transaction is open: the stable offset waits for its end.
    OpenTransaction,
    /// More partitions were added to the copy than its source has.
    NoSourcePartition,
    /// A replica, or a mirror, was away for longer than `delete.retention.ms`: tombstones went before it saw them, and it keeps
    /// what they deleted; so did markers of transactions, and it ends those with the next ones. Kafka's own limit of compacted
    /// topics.
    AwayTooLong,
    /// Bits that a disk had stored flipped: what stood there can be read from no replica that has it so, and a log that was cut
    /// there when it was loaded ends there.
    BitRot,
    /// The disks of a cluster were set back to an older copy of themselves: what was written since is not there.
    OlderCopy,
}

impl Excuse {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::UncleanElection,
        Self::LossyCrashes,
        Self::UncleanStops,
        Self::OrderedCut,
        Self::SourceCut,
        Self::NoEligibleReplica,
        Self::TooFewReplicas,
        Self::NodeDown,
        Self::CutOff,
        Self::SourceDown,
        Self::NoController,
        Self::SourceRefuses,
        Self::OrderWaits,
        Self::FailedForGood,
        Self::NoResetPolicy,
        Self::OpenTransaction,
        Self::NoSourcePartition,
        Self::AwayTooLong,
        Self::BitRot,
        Self::OlderCopy,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UncleanElection => "unclean election",
            Self::LossyCrashes => "lossy crashes",
            Self::UncleanStops => "unclean stops",
            Self::OrderedCut => "ordered cut",
            Self::SourceCut => "source cut",
            Self::NoEligibleReplica => "no eligible replica",
            Self::TooFewReplicas => "too few replicas",
            Self::NodeDown => "node down",
            Self::CutOff => "cut off",
            Self::SourceDown => "source down",
            Self::NoController => "no controller",
            Self::SourceRefuses => "the source refuses",
            Self::OrderWaits => "order waits",
            Self::FailedForGood => "failed for good",
            Self::NoResetPolicy => "no reset policy",
            Self::OpenTransaction => "open transaction",
            Self::NoSourcePartition => "no such partition at the source",
            Self::AwayTooLong => "away for longer than delete.retention.ms",
            Self::BitRot => "bit rot",
            Self::OlderCopy => "older copy",
        }
    }

    /// What it says.
    #[must_use]
    pub const fn says(self) -> &'static str {
        match self {
            Self::UncleanElection => "The topic allows unclean elections, and there was one.",
            Self::LossyCrashes => "At least min.insync.replicas replicas of the partition lost power or disk at a time.",
            Self::UncleanStops => "At least min.insync.replicas replicas stopped uncleanly at a time (KIP-966).",
            Self::OrderedCut => "The operator ordered the partition to follow a source that lacks these records.",
            Self::SourceCut => "The source lost what it had acknowledged, and the mirror followed it.",
            Self::NoEligibleReplica => "Nobody who may lead is up.",
            Self::TooFewReplicas => "Fewer live replicas than min.insync.replicas.",
            Self::NodeDown => "The node is down for good.",
            Self::CutOff => "The network between two nodes is down for good.",
            Self::SourceDown => "The source cluster cannot be reached, for good.",
            Self::NoController => "So few controllers are up, for good, that none of them can lead.",
            Self::SourceRefuses => "The source's release knows nothing of mirrors, and allow.one.way is not set.",
            Self::OrderWaits => "The operator's last order waits behind one that is repeated: it was never sent.",
            Self::FailedForGood => "The mirror is in FAILED until an operator recovers it.",
            Self::NoResetPolicy => "A consumer without a reset policy gave a partition up.",
            Self::OpenTransaction => "A transaction is open: the stable offset waits for its end.",
            Self::NoSourcePartition => "More partitions were added to the copy than its source has.",
            Self::AwayTooLong => {
                "A replica, or a mirror, was away for longer than delete.retention.ms: tombstones and markers of transactions went \
                 before it saw them. Kafka's own limit of compacted topics."
            }
            Self::BitRot => {
                "Bits that a disk had stored flipped: that was found, and what stood there, or behind it in a log that had to be \
                 cut there, is lost at that replica."
            }
            Self::OlderCopy => {
                "The disks of min.insync.replicas or more replicas were set back to an older copy: what was written since is lost."
            }
        }
    }

    /// Whose it is.
    #[must_use]
    pub const fn whose(self) -> Whose {
        match self {
            Self::LossyCrashes
            | Self::UncleanStops
            | Self::NoEligibleReplica
            | Self::TooFewReplicas
            | Self::NodeDown
            | Self::CutOff
            | Self::NoController
            | Self::SourceDown
            | Self::BitRot => Whose::Environment,
            // An unclean election is a setting that prefers service to data.
            Self::UncleanElection
            | Self::OrderedCut
            | Self::SourceRefuses
            | Self::OrderWaits
            | Self::FailedForGood
            | Self::OlderCopy
            | Self::NoSourcePartition => Whose::Operator,
            Self::SourceCut | Self::AwayTooLong => Whose::Environment,
            Self::NoResetPolicy | Self::OpenTransaction => Whose::Client,
        }
    }
}

/// The list for people: a line for each, and one for what it says.
#[must_use]
pub fn lines() -> Vec<String> {
    Excuse::ALL.iter().map(|e| format!("{} ({})\n  {}", e.name(), e.whose().name(), e.says())).collect()
}

/// An excuse that was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excused {
    /// The property that would have failed.
    pub id: &'static str,
    /// Why it does not count.
    pub excuse: Excuse,
    /// Where, and what.
    pub text: String,
}
