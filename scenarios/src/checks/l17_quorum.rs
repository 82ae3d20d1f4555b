//! L17 Quorum: one controller leads, and every other one that is up follows it in its epoch; none of them goes on looking for a
//! leader while there is one that it can reach. (Changes of the set of voters come with them.)

use super::excuses::Excuse;
use super::liveness::Look;
use super::sight::Sight;

/// What is not so yet.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    for (cluster, c) in look.roster.clusters.iter().enumerate() {
        if c.controllers.len() < 2 {
            continue;
        }
        let seen: Vec<_> = c.controllers.iter().filter_map(|n| Some((*n, look.sight.voter(*n)?))).collect();
        let voters = seen.iter().filter(|(_, v)| !v.is_observer).count();
        if voters * 2 <= c.controllers.len() {
            for node in c.controllers.iter().filter(|n| !look.sight.is_up(**n)) {
                look.excuse("L17", Excuse::NoController, None, Some(*node));
            }
            if c.controllers.iter().all(|n| look.sight.is_up(*n)) {
                look.stall_at("L17", cluster as u8, "a majority of controllers with their own disks", voters);
            }
            continue;
        }
        let leader = seen.iter().filter(|(n, v)| v.follows == Some(*n)).max_by_key(|(_, v)| v.epoch);
        let Some((leader, term)) = leader.copied() else {
            let states: Vec<_> = seen.iter().map(|(_, v)| v.state).collect();
            look.stall_at("L17", cluster as u8, "a controller that leads", states.join(", "));
            continue;
        };
        for (node, voter) in &seen {
            if *node != leader && !look.sight.is_reachable(*node, leader) {
                look.excuse("L17", Excuse::CutOff, None, Some(*node));
            } else if voter.follows != Some(leader) || voter.epoch != term.epoch {
                let expected = format!("follows {} in epoch {}", look.roster.name(leader), term.epoch);
                look.stall("L17", None, Some(*node), expected, format!("{} in epoch {}", voter.state, voter.epoch));
            } else if voter.committed != term.committed {
                let expected = format!("metadata applied up to {}", term.committed);
                look.stall("L17", None, Some(*node), expected, voter.committed);
            }
        }
    }
}
