//! How far a mirrored partition's chain has come, for whoever looks on from outside: what met which step is counted by it.

use crate::mirror::align::AlignStep;
use crate::mirror::manager::Part;
use crate::mirror::stop::StopStep;
use crate::states::MirrorState;

/// A step of a stop or of an alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// An alignment awaits the source's leader.
    AlignLeader,
    /// An alignment awaits where mirroring ended last.
    AlignPosition,
    /// An alignment awaits a leader epoch of its own.
    AlignTerm,
    /// An alignment awaits the ends of the source's epochs.
    AlignEpochs,
    /// An alignment awaits the replicas.
    AlignReplicas,
    /// A stop begins.
    StopBegins,
    /// A stop awaits its last mirrored position.
    StopPosition,
    /// A stop awaits a higher leader epoch.
    StopEpoch,
    /// A stop awaits its abort markers.
    StopMarkers,
    /// A stop awaits its reset of producers.
    StopReset,
}

impl Step {
    /// All steps, those of alignments first.
    pub const ALL: [Self; 10] = [
        Self::AlignLeader,
        Self::AlignPosition,
        Self::AlignTerm,
        Self::AlignEpochs,
        Self::AlignReplicas,
        Self::StopBegins,
        Self::StopPosition,
        Self::StopEpoch,
        Self::StopMarkers,
        Self::StopReset,
    ];

    /// The name in counts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AlignLeader => "leader",
            Self::AlignPosition | Self::StopPosition => "position",
            Self::AlignTerm => "term",
            Self::AlignEpochs => "epochs",
            Self::AlignReplicas => "replicas",
            Self::StopBegins => "begins",
            Self::StopEpoch => "epoch",
            Self::StopMarkers => "markers",
            Self::StopReset => "reset",
        }
    }

    /// The state that it is a step of.
    #[must_use]
    pub const fn state(self) -> MirrorState {
        match self {
            Self::AlignLeader | Self::AlignPosition | Self::AlignTerm | Self::AlignEpochs | Self::AlignReplicas => {
                MirrorState::LogAlignment
            }
            _ => MirrorState::Stopping,
        }
    }
}

impl Part {
    /// The step of its stop or alignment; `None` in any other state.
    #[must_use]
    pub const fn step(&self) -> Option<Step> {
        match self.state {
            MirrorState::LogAlignment => Some(match self.align {
                AlignStep::Leader => Step::AlignLeader,
                AlignStep::Position => Step::AlignPosition,
                AlignStep::Term => Step::AlignTerm,
                AlignStep::Epochs => Step::AlignEpochs,
                AlignStep::Replicas => Step::AlignReplicas,
            }),
            MirrorState::Stopping => Some(match self.stop {
                StopStep::Begins => Step::StopBegins,
                StopStep::Position => Step::StopPosition,
                StopStep::Epoch => Step::StopEpoch,
                StopStep::Markers(_) => Step::StopMarkers,
                StopStep::Reset(_) => Step::StopReset,
            }),
            _ => None,
        }
    }
}
