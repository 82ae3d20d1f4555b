//! Marks: things that a run must have reached to have proved anything. Counted from trace events.

use mirrorlab_model::ids::{BrokerId, NodeId, PartitionIx};
use mirrorlab_model::states::MirrorState;
use mirrorlab_model::trace::{CutCause, ElectionKind, Origin, Trace, TraceEvent, TxnOutcome};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

macro_rules! marks {
    ($( $name:ident $text:literal $says:literal; )*) => {
        /// A mark, by its place in [`Mark::ALL`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Mark { $( #[doc = $says] $name ),* }
        impl Mark {
            /// Name and meaning of all marks.
            pub const ALL: &'static [(Self, &'static str, &'static str)] = &[ $( (Self::$name, $text, $says) ),* ];
        }
    };
}

marks! {
    Acked "acked" "a produce was acknowledged";
    Read "read" "a consumer was handed records";
    Mirrored "mirrored" "batches were mirrored";
    Elected "elected" "a leader was elected";
    UncleanElection "unclean-election" "a leader was elected outside the in-sync replicas";
    EligibleElection "eligible-election" "a leader was elected from the eligible leader replicas";
    PreferredElection "preferred-election" "the preferred replica took over";
    BecameLeader "became-leader" "a broker became leader";
    BecameFollower "became-follower" "a broker became follower";
    Fenced "fenced" "a broker was fenced";
    IsrShrunk "isr-shrunk" "an ISR shrank";
    IsrGrew "isr-grew" "an ISR grew";
    Diverged "diverged" "a fetch was answered with a diverging epoch";
    Truncated "truncated" "a log was cut";
    Aligned "aligned" "an alignment cut what the source does not have";
    MirrorTruncated "mirror-truncated" "a mirror leader's log was cut";
    Recovered "recovered-unclean" "a log was recovered after an unclean stop";
    CorruptFound "corrupt-found" "a batch whose CRC does not match was found, and not taken";
    Rolled "rolled" "a segment was rolled";
    Cleaned "cleaned" "a log was compacted";
    LogStartMoved "log-start-moved" "a log start rose";
    EpochBumped "epoch-bump" "a mirror asked for a higher leader epoch";
    EpochFencing "epoch-fencing" "a partition entered EPOCH_FENCING";
    UleRecovery "ule-recovery" "a partition entered ULE_RECOVERY";
    MirrorFailed "mirror-failed" "a partition entered FAILED";
    MirrorRestarted "mirror-recovered" "a partition went from FAILED back to MIRRORING";
    MirrorMoved "mirror-moved" "a fetcher took a partition up again, from another source broker or at another leader";
    MirrorGap "mirror-gap" "the source's retention was faster than the mirror";
    ReadOnly "read-only" "a client's write to a mirrored topic was refused";
    PositionReset "position-reset" "a consumer's position jumped";
    Nacked "nacked" "a produce was refused";
    Undecided "undecided" "a produce ended undecided";
    TxnCommitted "transaction-committed" "a producer was told that its transaction is committed";
    TxnAborted "transaction-aborted" "a producer was told that its transaction is aborted";
    TxnUnknown "transaction-unknown" "a producer was fenced, or gave up asking, within a transaction";
    TxnTimedOut "transaction-timed-out" "a coordinator aborted a transaction that was open for too long";
    ControllerElected "controller-elected" "a controller was elected by its quorum";
    ControllerResigned "controller-resigned" "a controller that led a quorum leads it no more, and lives";
    MetadataCut "metadata-cut" "a voter cut its metadata log back to its leader's";
    MetadataFollowed "metadata-followed" "a voter applied what its leader committed";
    SnapshotFetched "snapshot-fetched" "a voter's metadata log gave way to a snapshot of its leader's";
}

impl Mark {
    /// The mark of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, text, _)| *text == name).map(|(mark, ..)| *mark)
    }
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// How often each mark was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks {
    counts: [u64; Mark::ALL.len()],
    /// Brokers in service, by the controller that says so: every broker is registered fenced, which is no fencing.
    in_service: BTreeSet<(NodeId, BrokerId)>,
    /// How many are in sync, by the controller that says so: what the first word of another one changes is not known.
    in_sync: BTreeMap<(NodeId, PartitionIx), u32>,
}

impl Default for Marks {
    fn default() -> Self {
        Self { counts: [0; Mark::ALL.len()], in_service: BTreeSet::new(), in_sync: BTreeMap::new() }
    }
}

impl Marks {
    /// How often a mark was reached.
    #[must_use]
    pub fn count(&self, mark: Mark) -> u64 {
        self.counts[mark as usize]
    }
    /// Counts one.
    pub fn reach(&mut self, mark: Mark) {
        self.counts[mark as usize] += 1;
    }
    /// All that were reached, by name.
    pub fn reached(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Mark::ALL.iter().map(|(mark, name, _)| (*name, self.count(*mark))).filter(|(_, n)| *n > 0)
    }
    /// Counts what a trace event reaches.
    pub fn on_trace(&mut self, event: &TraceEvent) {
        let mark = match &event.trace {
            Trace::Acked { .. } => Mark::Acked,
            Trace::Read { .. } => Mark::Read,
            Trace::Mirrored { .. } => Mark::Mirrored,
            Trace::Elected { kind, .. } => {
                match kind {
                    ElectionKind::Unclean => self.reach(Mark::UncleanElection),
                    ElectionKind::Eligible => self.reach(Mark::EligibleElection),
                    ElectionKind::Preferred => self.reach(Mark::PreferredElection),
                    ElectionKind::Clean => {}
                }
                Mark::Elected
            }
            Trace::BecameLeader { .. } => Mark::BecameLeader,
            Trace::BecameFollower { .. } => Mark::BecameFollower,
            Trace::BrokerFenced { broker, fenced: false } => {
                self.in_service.insert((event.node, *broker));
                return;
            }
            Trace::BrokerFenced { broker, fenced: true } => {
                if !self.in_service.remove(&(event.node, *broker)) {
                    return;
                }
                Mark::Fenced
            }
            Trace::PartitionChanged { partition, isr, .. } => {
                let now = isr.count_ones();
                match self.in_sync.insert((event.node, *partition), now).map(|before| now.cmp(&before)) {
                    Some(Ordering::Less) => Mark::IsrShrunk,
                    Some(Ordering::Greater) => Mark::IsrGrew,
                    _ => return,
                }
            }
            Trace::Diverged { .. } => Mark::Diverged,
            Trace::Truncated { cause: CutCause::MirrorDivergence, .. } => Mark::MirrorTruncated,
            Trace::Truncated { cause: CutCause::Alignment, .. } => {
                self.reach(Mark::MirrorTruncated);
                Mark::Aligned
            }
            Trace::Truncated { .. } => Mark::Truncated,
            Trace::CorruptFound { .. } => Mark::CorruptFound,
            Trace::LogRecovered { clean: false, .. } => Mark::Recovered,
            Trace::Rolled { .. } => Mark::Rolled,
            Trace::Cleaned { .. } => Mark::Cleaned,
            Trace::LogStartMoved { .. } => Mark::LogStartMoved,
            Trace::BumpRequested { .. } => Mark::EpochBumped,
            Trace::MirrorStateChanged { from, to, .. } => match (from, to) {
                (_, MirrorState::EpochFencing) => Mark::EpochFencing,
                (_, MirrorState::UleRecovery) => Mark::UleRecovery,
                (_, MirrorState::Failed) => Mark::MirrorFailed,
                (MirrorState::Failed, MirrorState::Mirroring) => Mark::MirrorRestarted,
                _ => return,
            },
            Trace::MirrorFetcherAdded { offset, .. } if offset.0 > 0 => Mark::MirrorMoved,
            Trace::MirrorGap { .. } => Mark::MirrorGap,
            Trace::ReadOnlyRefused { .. } => Mark::ReadOnly,
            Trace::PositionReset { .. } => Mark::PositionReset,
            Trace::Nacked { .. } => Mark::Nacked,
            Trace::Undecided { .. } => Mark::Undecided,
            Trace::TxnEnded { outcome, .. } => match outcome {
                TxnOutcome::Committed => Mark::TxnCommitted,
                TxnOutcome::Aborted => Mark::TxnAborted,
                TxnOutcome::Unknown => Mark::TxnUnknown,
            },
            Trace::TxnTimedOut { .. } => Mark::TxnTimedOut,
            Trace::QuorumLed { .. } => Mark::ControllerElected,
            Trace::QuorumLost { .. } => Mark::ControllerResigned,
            Trace::MetadataTruncated { .. } => Mark::MetadataCut,
            Trace::MetadataReplicated { .. } => Mark::MetadataFollowed,
            Trace::SnapshotInstalled { .. } => Mark::SnapshotFetched,
            Trace::Appended {
                origin: Origin::Client | Origin::Replication | Origin::Mirror | Origin::Coordinator,
                ..
            } => return,
            _ => return,
        };
        self.reach(mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mirrorlab_model::ids::{LeaderEpoch, PartitionEpoch};

    #[test]
    fn an_isr_that_changes_is_counted_from_the_second_word_of_its_controller_on() {
        let mut marks = Marks::default();
        let mut told = |node: u16, isr: u32| {
            let trace = Trace::PartitionChanged {
                partition: PartitionIx(3),
                leader: BrokerId(1),
                epoch: LeaderEpoch(0),
                partition_epoch: PartitionEpoch(0),
                isr,
                elr: 0,
            };
            marks.on_trace(&TraceEvent { node: NodeId(node), trace });
            (marks.count(Mark::IsrShrunk), marks.count(Mark::IsrGrew))
        };
        assert_eq!([told(1, 0b111), told(1, 0b101), told(1, 0b011), told(1, 0b111)], [(0, 0), (1, 0), (1, 0), (1, 1)]);
        assert_eq!([told(2, 0b001), told(2, 0b101)], [(1, 1), (1, 2)]);
    }

    #[test]
    fn every_mark_is_found_by_its_name() {
        for (mark, name, _) in Mark::ALL {
            assert_eq!(Mark::named(name), Some(*mark));
            assert_eq!(mark.name(), *name);
        }
    }
}
