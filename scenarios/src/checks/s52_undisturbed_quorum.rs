//! S52 Undisturbed quorum. No voter raises the epoch while a majority of the others hears the leader, or is it: a voter that was cut
//! off, and comes back, deposes nobody (KIP-996).
//!
//! Asked when somebody comes to lead. Voters tell for how long they have heard their leader, and how long ago they first stood for
//! election; what lies close together is not told apart: the word of a voter that had no leader takes its time.

use super::cx::Cx;
use super::sight::Sight;
use mirrorlab_model::ids::{LeaderEpoch, Nanos};

/// For so long before the epoch was raised the others had their leader.
const SETTLED: Nanos = Nanos::from_secs(15);

/// A controller leads in an epoch.
pub(super) fn led<S: Sight>(cx: &mut Cx<'_, S>, epoch: LeaderEpoch) {
    let Some(cluster) = cx.roster.clusters.get(usize::from(cx.at.cluster)) else { return };
    let seen: Vec<_> = cluster.controllers.iter().filter_map(|n| Some((*n, cx.sight.voter(*n)?))).collect();
    for (node, voter) in &seen {
        let Some(stood) = voter.stood else { continue };
        let settled = seen.iter().filter(|(other, v)| {
            other != node && !v.is_observer && v.attached.is_some_and(|attached| attached >= stood + SETTLED)
        });
        let settled = settled.count();
        if settled * 2 > cluster.controllers.len() {
            let name = cx.roster.name(*node);
            let expected =
                format_args!("no epoch raised by {name} while {settled} others have their leader").to_string();
            return cx.broken("S52", expected, format_args!("it was, and epoch {epoch} has a new one"));
        }
    }
}
