//! S33 Fence at stop. After a fetcher let a partition go (stop, pause, a new leader here or at the source), no batch of it is
//! appended any more; and none at all after a stop had noted where mirroring ended, by its leader or a later one.

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::sight::Sight;
use mirrorlab_model::ids::{LeaderEpoch, NodeId};
use mirrorlab_model::states::MirrorState;

/// A batch from `source` was appended here.
pub(super) fn mirrored<S: Sight>(cx: &mut Cx<'_, S>, g: &PartitionGhost, source: NodeId) {
    let node = cx.at.node.unwrap_or_default();
    let held = g.more.as_ref().is_some_and(|m| m.fetchers.contains(&(node, source)));
    if !held {
        let now = g.more.as_ref().and_then(|m| m.fetchers.iter().find(|f| f.0 == node)).map(|f| f.1);
        let got = match now {
            Some(other) => format!("one from {}; the fetcher is at {}", cx.roster.name(source), cx.roster.name(other)),
            None => format!("one from {}; its fetcher let the partition go", cx.roster.name(source)),
        };
        cx.broken("S33", "batches of the present fetcher only", got);
    }
}

/// A leader appended a mirrored batch in its leader epoch `local`.
pub(super) fn appended<S: Sight>(cx: &mut Cx<'_, S>, g: &PartitionGhost, local: LeaderEpoch) {
    let Some(life) = g.life() else { return };
    let ends = matches!(life.upto(local), Some(MirrorState::Stopping | MirrorState::Stopped));
    // Who was deposed before, and does not know it, copies on; none of that is ever committed.
    let knows = local >= life.last().leader_epoch.max(life.position_in);
    if let Some(position) = life.position.filter(|_| ends && knows) {
        let expected = format_args!("no mirrored batch behind the noted end at {}", position.offset);
        cx.broken("S33", expected, "one was appended");
    }
}
