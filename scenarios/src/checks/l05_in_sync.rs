//! L5 The ISR is all live replicas; no change of it stays pending.

use super::excuses::Excuse;
use super::liveness::Look;
use super::roster::slot_of;
use super::sight::Sight;

/// What is not so yet.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    look.each_partition(|look, p| {
        let g = p.ghost;
        let Some(node) = look.roster.broker(p.cluster, slot_of(g.leader)) else { return };
        let Some(leader) = look.sight.leader(node, p.ix) else { return };
        if leader.in_flight || leader.isr != leader.proposed {
            let got = format!("ISR {}, proposed {}", g.brokers(leader.isr), g.brokers(leader.proposed));
            look.stall("L5", Some(p), Some(node), "no ISR change pending", got);
        }
        for (at, m) in g.members.iter().enumerate() {
            let broker = look.roster.broker(p.cluster, m.slot);
            if g.isr & (1 << (at as u32 & 31)) != 0 {
                continue;
            }
            if look.is_rotten_at(p, m.end) {
                look.excuse("L5", Excuse::BitRot, Some(p), broker);
            } else if broker.is_some_and(|n| look.sight.is_up(n)) {
                let got = format!("ISR {}; broker {} is at {} of {}", g.brokers(g.isr), m.slot + 1, m.end, g.true_hw);
                look.stall("L5", Some(p), broker, "every live replica in the ISR", got);
            } else {
                look.excuse("L5", Excuse::NodeDown, Some(p), broker);
            }
        }
    });
}
