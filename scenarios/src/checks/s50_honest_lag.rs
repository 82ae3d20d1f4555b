//! S50 Honest lag. A lag that an operator would be told is unknown, or not below what it truly was at the time of the answer that it
//! is computed from: the source's watermark in that answer, minus the end of the longest common prefix of the two logs. Asked at
//! quiet points, of mirrors that heard the source's present leader: a source that was re-created, cut or restored does not read
//! as a lag of 0.

use super::cx::Cx;
use super::ghost::{Ghost, PartitionGhost};
use super::logs;
use super::roster::slot_of;
use super::s30_mirror_equality::{is_same_topic, source_of};
use super::sight::Sight;
use mirrorlab_model::ids::Offset;

/// A mirror begins to copy: what it tells now was told by the source.
pub(super) fn begins<S: Sight>(cx: &mut Cx<'_, S>) {
    let Some(mirror) = cx.at.node.and_then(|node| cx.sight.mirror(node, cx.partition())) else { return };
    if let Some(lag) = mirror.lag.filter(|_| mirror.source_hw < Offset::ZERO) {
        cx.broken("S50", "an unknown lag before the source's first answer", lag);
    }
}

/// A quiet point. `settled`: mirrors had the time to see what became of their sources.
pub(super) fn quiet<S: Sight>(cx: &mut Cx<'_, S>, ghost: &Ghost, g: &PartitionGhost, settled: bool) {
    let Some(node) = cx.node_of(slot_of(g.leader)) else { return };
    let Some(mirror) = cx.sight.mirror(node, cx.partition()) else { return };
    let Some(lag) = mirror.lag else { return };
    let Some((cluster, there)) = source_of(cx) else { return };
    // The answer is of another topic of that name, in epochs of its own. Once that was seen, nothing is told any more.
    if !is_same_topic(cx, cluster, there) {
        if settled {
            cx.broken("S50", "an unknown lag: the source's topic is another one now", lag);
        }
        return;
    }
    let origin = ghost.clusters.get(usize::from(cluster)).and_then(|c| c.partitions.get(there.0 as usize));
    let Some(origin) = origin.filter(|o| mirror.source_epoch >= o.leader_epoch) else { return };
    let source = cx.roster.broker(cluster, slot_of(origin.leader)).and_then(|n| cx.sight.replica(n, there));
    let (Some(source), Some(own)) = (source, cx.replica(slot_of(g.leader))) else { return };
    // Either leader may have kept what it had compacted when an order cut the others' logs.
    let compacted = g.compacted_at(slot_of(g.leader)).max(origin.compacted_at(slot_of(origin.leader)));
    let common = logs::common_end_above(own.log, source.log, compacted);
    let truly = mirror.source_hw.0 - common.0;
    if lag < truly {
        let expected =
            format_args!("a lag of at least {truly}: the source has {}, both have {common}", mirror.source_hw);
        cx.broken("S50", expected, lag);
    }
}
