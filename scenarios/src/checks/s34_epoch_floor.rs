//! S34 Epoch floor. When a batch of source epoch e is appended, the partition's leader epoch at the destination is at least e.
//! After a stop every local batch has an epoch above the last mirrored one.

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::sight::Sight;
use mirrorlab_model::ids::LeaderEpoch;
use mirrorlab_model::trace::Origin;

/// A leader of a partition that has to do with a mirror appended.
pub(super) fn appended<S: Sight>(
    cx: &mut Cx<'_, S>,
    g: &PartitionGhost,
    origin: Origin,
    epoch: LeaderEpoch,
    local: LeaderEpoch,
) {
    let last = g.more.as_ref().map_or(LeaderEpoch::NONE, |m| m.mirrored_epoch);
    match origin {
        Origin::Mirror if epoch > local => {
            cx.broken("S34", format_args!("no batch of an epoch above {local}, the leader epoch here"), epoch);
        }
        // Who was deposed and does not know it yet may still append what nobody will ever acknowledge (S11).
        Origin::Client | Origin::Coordinator if epoch <= last && local >= g.leader_epoch => {
            cx.broken("S34", format_args!("local batches above {last}, the last mirrored epoch"), epoch);
        }
        _ => {}
    }
}
