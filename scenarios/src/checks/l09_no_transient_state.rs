//! L9 No mirrored partition stays in a state that awaits something: LOG_ALIGNMENT, EPOCH_FENCING, ULE_RECOVERY, PAUSING, STOPPING.
//! All but the last two need the source. A wait for replicas that are down is none of its own making, if it has an end.

use super::excuses::Excuse;
use super::liveness::Look;
use super::sight::Sight;
use mirrorlab_model::states::MirrorState;

/// What is not so yet.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    look.each_partition(|look, p| {
        let Some((node, mirror)) = look.mirror(p) else { return };
        let asks = match mirror.state {
            MirrorState::LogAlignment | MirrorState::EpochFencing => true,
            MirrorState::UleRecovery | MirrorState::Pausing | MirrorState::Stopping => false,
            _ => return,
        };
        if asks && look.source_is_down(p) {
            look.excuse("L9", Excuse::SourceDown, Some(p), Some(node));
        } else if mirror.bounded && mirror.state != MirrorState::Stopping && look.some_are_down(p) {
            // It waits for all replicas, tells that it failed when it waited long enough, and begins again.
            look.excuse("L9", Excuse::NodeDown, Some(p), Some(node));
        } else if look.too_few(p) {
            look.excuse("L9", Excuse::TooFewReplicas, Some(p), Some(node));
        } else if look.rot_holds_a_follower(p) {
            look.excuse("L9", Excuse::BitRot, Some(p), Some(node));
        } else {
            look.stall("L9", Some(p), Some(node), "a state that awaits nothing", mirror.state.name());
        }
    });
}
