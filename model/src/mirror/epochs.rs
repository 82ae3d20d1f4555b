//! How the leader epoch of a mirrored partition relates to the source's (spec 3.2, 3.3, 3.5).
//!
//! Three epochs meet when a batch arrives: the batch's own (`BE`, stamped by the source leader that wrote it), the epoch the
//! fetcher asked in (`SE`, what we believe the source partition to be at) and the local partition's (`DE`). Batches are
//! appended with `BE` untouched (E1), so `DE` must not be below it (E2): a consumer here would wait for ever for metadata
//! with an epoch that never comes.

use crate::guards::{mirror as guard, Guards};
use crate::ids::LeaderEpoch;

/// A bump is due when a source epoch comes this close to the local one (`LEADER_EPOCH_BUMP_THRESHOLD`).
pub const BUMP_THRESHOLD: i32 = 3;
/// A bump asks for this much room above the source's epoch (`LEADER_EPOCH_BUMP_INCREMENT`).
pub const BUMP_INCREMENT: i32 = 10;

/// What to do with a fetched batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchVerdict {
    /// Append it.
    Append,
    /// Append it, and ask for a bump meanwhile (proactive).
    AppendAndBump,
    /// Leave it; raise the local epoch first (reactive, EPOCH_FENCING).
    FenceFirst,
    /// Leave it; what we know of the source is stale (KAFKA-18723 family, M08): refresh and try again.
    SourceMetadataStale,
}

/// Judges the last batch of a fetched set. The order is the prototype's: the local epoch first (spec 4.3).
#[must_use]
pub fn judge_batch(batch: LeaderEpoch, asked_in: LeaderEpoch, local: LeaderEpoch, guards: &mut Guards) -> BatchVerdict {
    if !guards.admits(guard::EpochBumpBeforeAppend, batch <= local) {
        return BatchVerdict::FenceFirst;
    }
    if !guards.admits(guard::BatchEpochWithinSourceEpoch, batch <= asked_in) {
        return BatchVerdict::SourceMetadataStale;
    }
    if needs_bump(batch, local) {
        BatchVerdict::AppendAndBump
    } else {
        BatchVerdict::Append
    }
}

/// Whether a source epoch is too close to the local one: `SE > DE − 3`.
#[must_use]
pub fn needs_bump(source: LeaderEpoch, local: LeaderEpoch) -> bool {
    source.0 > local.0.saturating_sub(BUMP_THRESHOLD)
}

/// The minimum to ask the controller for; it sets max(minimum + 1, current), so the epoch becomes source + 11 (decision 29).
#[must_use]
pub fn bump_minimum(source: LeaderEpoch) -> LeaderEpoch {
    LeaderEpoch(source.0.saturating_add(BUMP_INCREMENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Peer case LEAD-04 under decision 29: the wanted minima; the controller's own rule makes 11, none, 19, 20, 41 of them.
    #[test]
    fn lead_04_proactive_bump_targets() {
        let bump = |source, local| {
            needs_bump(LeaderEpoch(source), LeaderEpoch(local)).then(|| bump_minimum(LeaderEpoch(source)).0 + 1)
        };
        assert_eq!(bump(0, 0), Some(11));
        assert_eq!(bump(7, 10), None);
        assert_eq!(bump(8, 10), Some(19));
        assert_eq!(bump(9, 10), Some(20));
        assert_eq!(bump(30, 10), Some(41));
    }

    #[test]
    fn a_batch_above_the_local_epoch_waits_for_the_bump_and_one_above_the_request_for_metadata() {
        let mut guards = Guards::default();
        let mut judge =
            |batch, asked, local| judge_batch(LeaderEpoch(batch), LeaderEpoch(asked), LeaderEpoch(local), &mut guards);
        assert_eq!(judge(5, 5, 4), BatchVerdict::FenceFirst);
        assert_eq!(judge(5, 4, 20), BatchVerdict::SourceMetadataStale);
        assert_eq!(judge(5, 5, 5), BatchVerdict::AppendAndBump);
        assert_eq!(judge(5, 5, 8), BatchVerdict::Append);
    }

    #[test]
    fn near_the_largest_epoch_nothing_overflows() {
        assert_eq!(bump_minimum(LeaderEpoch(i32::MAX)), LeaderEpoch(i32::MAX));
        assert!(needs_bump(LeaderEpoch(0), LeaderEpoch(i32::MIN)));
    }
}
