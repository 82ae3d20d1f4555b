//! L7 With no open transaction at the client, the last stable offset reaches the watermark. What a producer leaves open when
//! it dies, its coordinator aborts. A mirror waits for the marker of its source as long as it follows it; a stopped one has nothing
//! to wait for.

use super::excuses::Excuse;
use super::ghost::ClusterGhost;
use super::liveness::Look;
use super::roster::slot_of;
use super::sight::{LogSight, Sight};
use mirrorlab_model::states::MirrorState;

/// Why the cluster lost what was committed, if it ever did.
fn first_cut(c: &ClusterGhost) -> Option<Excuse> {
    c.partitions.iter().filter_map(|g| g.more.as_ref()?.cuts.first()).map(|cut| cut.excuse).next()
}

/// What is not so yet.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    look.each_partition(|look, p| {
        let Some(node) = look.roster.broker(p.cluster, slot_of(p.ghost.leader)) else { return };
        let Some(replica) = look.sight.replica(node, p.ix) else { return };
        let (stable, hw) = (replica.log.last_stable(), replica.log.high_watermark());
        if stable >= hw {
            return;
        }
        let follows = look.mirror(p).is_some_and(|(_, m)| m.state != MirrorState::Stopped);
        if follows {
            // The source's transaction: it is asked there.
            look.excuse("L7", Excuse::OpenTransaction, Some(p), Some(node));
        } else if let Some(cut) = look.ghost.clusters.get(usize::from(p.cluster)).and_then(first_cut) {
            // Markers are among what was lost, or the decisions that would have led to some.
            look.excuse("L7", cut, Some(p), Some(node));
        } else {
            look.stall("L7", Some(p), Some(node), format!("a last stable offset at the watermark, {hw}"), stable);
        }
    });
}
