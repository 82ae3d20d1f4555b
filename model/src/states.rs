//! The states of a mirrored partition, the desired states of a topic, and which change may follow which (spec 2.1, 2.2,
//! decision 28).

use crate::ids::{LeaderEpoch, MirrorIx, Offset, TopicIx};
use std::fmt;
use std::sync::Arc;

/// What a mirrored partition is doing; persisted per partition in `__mirror_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum MirrorState {
    /// Awaits: the last mirrored position, the cut, the replicas.
    LogAlignment,
    /// Awaits: a leader epoch above the source's.
    EpochFencing,
    /// Awaits: replicas, after a cut that an unclean election at the source made necessary.
    UleRecovery,
    /// Steady state: the fetcher copies.
    Mirroring,
    /// Awaits: the fetcher's end.
    Pausing,
    /// Paused by the operator.
    Paused,
    /// Awaits: position, bump, markers, reset.
    Stopping,
    /// Writable.
    Stopped,
    /// Awaits: the retry, or an operator.
    Failed,
    /// No record, or not loaded.
    #[default]
    Unknown,
}

impl MirrorState {
    /// All states.
    pub const ALL: [Self; 10] = [
        Self::LogAlignment,
        Self::EpochFencing,
        Self::UleRecovery,
        Self::Mirroring,
        Self::Pausing,
        Self::Paused,
        Self::Stopping,
        Self::Stopped,
        Self::Failed,
        Self::Unknown,
    ];

    /// The name in files, tables and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LogAlignment => "LOG_ALIGNMENT",
            Self::EpochFencing => "EPOCH_FENCING",
            Self::UleRecovery => "ULE_RECOVERY",
            Self::Mirroring => "MIRRORING",
            Self::Pausing => "PAUSING",
            Self::Paused => "PAUSED",
            Self::Stopping => "STOPPING",
            Self::Stopped => "STOPPED",
            Self::Failed => "FAILED",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// The state of that name; older names are accepted (decisions, Names).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "LOG_TRUNCATION" {
            return Some(Self::LogAlignment);
        }
        Self::ALL.into_iter().find(|s| s.name() == name)
    }

    /// The code in `__mirror_state` records (latest numbering).
    #[must_use]
    pub const fn code(self) -> i8 {
        match self {
            Self::LogAlignment => 0,
            Self::EpochFencing => 1,
            Self::UleRecovery => 2,
            Self::Mirroring => 3,
            Self::Pausing => 4,
            Self::Paused => 5,
            Self::Stopping => 6,
            Self::Stopped => 7,
            Self::Failed => 8,
            Self::Unknown => -1,
        }
    }

    /// The state of a code.
    #[must_use]
    pub fn from_code(code: i8) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.code() == code)
    }

    /// Whether `self` may follow `before`. Spec 2.2 (latest) with decision 28's additions: FAILED may return to
    /// EPOCH_FENCING, ULE_RECOVERY and PAUSING, and UNKNOWN may go to STOPPING. Equal states always may.
    #[must_use]
    pub const fn can_follow(self, before: Self) -> bool {
        use MirrorState as S;
        if self as u8 == before as u8 {
            return true;
        }
        match self {
            S::LogAlignment => matches!(before, S::Unknown | S::Stopped | S::Failed),
            S::EpochFencing | S::UleRecovery | S::Pausing => matches!(before, S::Mirroring | S::Failed),
            S::Mirroring => {
                matches!(before, S::LogAlignment | S::EpochFencing | S::UleRecovery | S::Paused | S::Failed)
            }
            S::Paused => matches!(before, S::Pausing),
            S::Stopping => !matches!(before, S::Stopped),
            S::Stopped => matches!(before, S::Stopping),
            S::Failed => true,
            S::Unknown => false,
        }
    }
}

/// Where mirroring ended: the line that a failback cuts at (spec 3.6). Both are needed: offsets alone cannot see that an
/// unclean election replaced what lies below, epochs alone keep what the source appended in the same epoch afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LastPosition {
    /// The newest epoch in the mirrored log (−1: it was empty).
    pub epoch: LeaderEpoch,
    /// The end of the mirrored log.
    pub offset: Offset,
}

impl LastPosition {
    /// Nothing was mirrored: the logs have nothing in common that is known.
    pub const NOTHING: Self = Self { epoch: LeaderEpoch(-1), offset: Offset(0) };
    /// In a write: no position from now on. A new session has none before it ends.
    pub const CLEAR: Self = Self { epoch: LeaderEpoch(-1), offset: Offset(-1) };
}

/// What `__mirror_state` holds of one mirrored partition (spec 7.3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StateRecord {
    /// The state.
    pub state: MirrorState,
    /// The leader epoch of its writer, −1 before the first write.
    pub leader_epoch: LeaderEpoch,
    /// Counts the writes.
    pub state_epoch: i32,
    /// FAILED: the state before.
    pub previous: MirrorState,
    /// FAILED: how often in a row; −1: for good.
    pub attempt: i16,
    /// FAILED: why.
    pub message: Option<Arc<str>>,
    /// Where the last mirroring session ended.
    pub position: Option<LastPosition>,
    /// The incarnation of mirror and topic that it is of; `None` in records of before.
    pub session: Option<Session>,
}

/// Which mirror of a name, and which topic of an id, a state is of. Names come again, and so do the ids of copied topics, which are
/// their sources'; indices do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Session(pub u32);

impl Session {
    /// Of a mirror and a topic: two sessions of one key differ while there were fewer than 2^21 topics and 2^11 mirrors.
    #[must_use]
    pub fn of(mirror: MirrorIx, topic: TopicIx) -> Self {
        Self(mirror.0.rotate_right(11) ^ topic.0)
    }
}

impl StateRecord {
    /// Whether it is of this incarnation, or may be: orphan state of a deleted mirror of the same name is not, nor is that
    /// of a deleted topic of the same id (decision 18).
    #[must_use]
    pub fn is_of(&self, session: Option<Session>) -> bool {
        self.session.is_none() || session.is_none() || self.session == session
    }
}

impl Default for StateRecord {
    /// Nothing was ever written.
    fn default() -> Self {
        Self {
            state: MirrorState::Unknown,
            leader_epoch: LeaderEpoch::NONE,
            state_epoch: 0,
            previous: MirrorState::Unknown,
            attempt: 0,
            message: None,
            position: None,
            session: None,
        }
    }
}

impl fmt::Display for LastPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NOTHING => f.write_str("nothing mirrored"),
            Self { epoch: LeaderEpoch::NONE, offset } => write!(f, "no epoch, offset {offset}"),
            Self { epoch, offset } => write!(f, "epoch {epoch}, offset {offset}"),
        }
    }
}

/// What the operator wants of a topic; in the metadata log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum DesiredState {
    /// Copy.
    Mirroring,
    /// Hold.
    Paused,
    /// Writable here.
    Stopped,
    /// Nothing was ever ordered.
    #[default]
    Unknown,
}

impl DesiredState {
    /// The name in messages: that of the state which it leads to.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mirroring => "MIRRORING",
            Self::Paused => "PAUSED",
            Self::Stopped => "STOPPED",
            Self::Unknown => "UNKNOWN",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_are_unique_and_round_trip() {
        for state in MirrorState::ALL {
            assert_eq!(MirrorState::from_name(state.name()), Some(state));
        }
        let mut codes: Vec<_> = MirrorState::ALL.iter().map(|s| s.code()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), MirrorState::ALL.len());
    }

    #[test]
    fn a_stopped_partition_opens_only_after_stopping_and_leaves_only_by_alignment() {
        for before in MirrorState::ALL {
            let may = MirrorState::Stopped.can_follow(before);
            assert_eq!(may, matches!(before, MirrorState::Stopping | MirrorState::Stopped), "{before:?}");
        }
        for after in MirrorState::ALL {
            let may = after.can_follow(MirrorState::Stopped);
            let legal = matches!(after, MirrorState::LogAlignment | MirrorState::Stopped | MirrorState::Failed);
            assert_eq!(may, legal, "{after:?}");
        }
    }

    /// PAU-02. All 81 pairs, under decision 28: FAILED leads back to what it came from, UNKNOWN to STOPPING.
    #[test]
    fn pau_02_legal_transitions() {
        use MirrorState as S;
        let table: [(S, &[S]); 9] = [
            (S::LogAlignment, &[S::Unknown, S::Stopped, S::Failed]),
            (S::EpochFencing, &[S::Mirroring, S::Failed]),
            (S::UleRecovery, &[S::Mirroring, S::Failed]),
            (S::Mirroring, &[S::LogAlignment, S::EpochFencing, S::UleRecovery, S::Paused, S::Failed]),
            (S::Pausing, &[S::Mirroring, S::Failed]),
            (S::Paused, &[S::Pausing]),
            (
                S::Stopping,
                &[
                    S::LogAlignment,
                    S::EpochFencing,
                    S::UleRecovery,
                    S::Mirroring,
                    S::Pausing,
                    S::Paused,
                    S::Failed,
                    S::Unknown,
                ],
            ),
            (S::Stopped, &[S::Stopping]),
            (S::Failed, &S::ALL),
        ];
        let mut pairs = 0;
        for (to, from) in table {
            for before in S::ALL {
                pairs += 1;
                let legal = before == to || from.contains(&before);
                assert_eq!(to.can_follow(before), legal, "{} after {}", to.name(), before.name());
            }
        }
        assert_eq!(pairs, 9 * S::ALL.len());
        assert!(S::ALL.iter().all(|before| S::Unknown.can_follow(*before) == (*before == S::Unknown)), "never written");
    }
}
