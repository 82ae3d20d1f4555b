//! L4 Every partition with an eligible replica has a live leader that knows it; a quorum leader exists.

use super::excuses::Excuse;
use super::liveness::Look;
use super::member::Member;
use super::roster::slot_of;
use super::sight::Sight;
use mirrorlab_model::ids::BrokerId;

/// What is not so yet.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    for cluster in 0..look.roster.clusters.len() as u8 {
        if look.sight.image(cluster).is_none() {
            look.stall_at("L4", cluster, "a controller that is up", "none");
        }
    }
    look.each_partition(|look, p| {
        let g = p.ghost;
        let node = look.roster.broker(p.cluster, slot_of(g.leader));
        let leads =
            node.and_then(|n| look.sight.replica(n, p.ix)).is_some_and(|r| r.leads && r.leader_epoch == g.leader_epoch);
        if leads {
            return;
        }
        let up = |m: &Member| look.roster.broker(p.cluster, m.slot).is_some_and(|n| look.sight.is_up(n));
        let eligible = g.of_mask(g.isr | g.elr).any(|(_, m)| up(m));
        if eligible {
            let leader = if g.leader == BrokerId::NONE { "none".to_owned() } else { format!("broker {}", g.leader) };
            let got = format!("{leader} in epoch {}", g.leader_epoch);
            look.stall("L4", Some(p), node, "a leader that is up and knows it", got);
        } else {
            look.excuse("L4", Excuse::NoEligibleReplica, Some(p), None);
        }
    });
}
