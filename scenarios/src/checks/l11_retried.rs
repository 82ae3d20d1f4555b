//! L11 A retryable failure of a mirrored partition whose cause ended returns to its former work.

use super::excuses::Excuse;
use super::liveness::Look;
use super::sight::Sight;
use mirrorlab_model::states::MirrorState;

/// What is not so yet.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    look.each_partition(|look, p| {
        let Some((node, mirror)) = look.mirror(p) else { return };
        if mirror.state != MirrorState::Failed {
            return;
        }
        if mirror.retries {
            look.stall(
                "L11",
                Some(p),
                Some(node),
                "back at work after a failure whose cause ended",
                "FAILED, to be retried",
            );
        } else {
            look.excuse("L11", Excuse::FailedForGood, Some(p), Some(node));
        }
    });
}
