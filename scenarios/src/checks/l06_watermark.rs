//! L6 The watermark reaches the log end.

use super::excuses::Excuse;
use super::liveness::Look;
use super::member::Member;
use super::roster::slot_of;
use super::sight::{LogSight, Sight};

/// What is not so yet.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    look.each_partition(|look, p| {
        let g = p.ghost;
        let Some(node) = look.roster.broker(p.cluster, slot_of(g.leader)) else { return };
        let Some(replica) = look.sight.replica(node, p.ix) else { return };
        let (hw, end) = (replica.log.high_watermark(), replica.log.end());
        if hw == end {
            return;
        }
        let up = |m: &&Member| look.roster.broker(p.cluster, m.slot).is_some_and(|n| look.sight.is_up(n));
        let live = g.members.iter().filter(up).count() as u32;
        if live < g.min_isr {
            look.excuse("L6", Excuse::TooFewReplicas, Some(p), Some(node));
        } else if look.rot_holds_a_follower(p) {
            look.excuse("L6", Excuse::BitRot, Some(p), Some(node));
        } else {
            look.stall("L6", Some(p), Some(node), format!("a watermark at the log end, {end}"), hw);
        }
    });
}
