//! L2 Every acknowledged value reaches every replica.

use super::excuses::Excuse;
use super::liveness::Look;
use super::sight::Sight;

/// What is not so yet.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    look.each_partition(|look, p| {
        let (g, end) = (p.ghost, p.ghost.acked.end());
        for m in &g.members {
            if m.end >= end || g.floor >= end {
                continue;
            }
            let node = look.roster.broker(p.cluster, m.slot);
            if look.is_rotten_at(p, m.end) {
                look.excuse("L2", Excuse::BitRot, Some(p), node);
            } else if node.is_some_and(|n| look.sight.is_up(n)) {
                look.stall(
                    "L2",
                    Some(p),
                    node,
                    format!("acknowledged records up to {end}"),
                    format!("log end {}", m.end),
                );
            } else {
                look.excuse("L2", Excuse::NodeDown, Some(p), node);
            }
        }
    });
}
