//! L7 With no transaction open at a client, the last stable offset reaches the watermark. A mirror waits for the marker of its
//! source as long as it follows it; a stopped one has nothing to wait for.

use super::excuses::Excuse;
use super::liveness::Look;
use super::roster::slot_of;
use super::sight::{LogSight, Sight};
use mirrorlab_model::states::MirrorState;

/// What is not so yet.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    let busy = look
        .roster
        .producers
        .iter()
        .any(|(n, node)| look.sight.is_up(*node) && look.sight.producer(*n).is_some_and(|p| !p.idle));
    look.each_partition(|look, p| {
        let Some(node) = look.roster.broker(p.cluster, slot_of(p.ghost.leader)) else { return };
        let Some(replica) = look.sight.replica(node, p.ix) else { return };
        let (stable, hw) = (replica.log.last_stable(), replica.log.high_watermark());
        if stable >= hw {
            return;
        }
        let follows = look.mirror(p).is_some_and(|(_, m)| m.state != MirrorState::Stopped);
        if busy || follows {
            look.excuse("L7", Excuse::OpenTransaction, Some(p), Some(node));
        } else {
            look.stall("L7", Some(p), Some(node), format!("a last stable offset at the watermark, {hw}"), stable);
        }
    });
}
