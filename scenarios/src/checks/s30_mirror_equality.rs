//! S30 Mirror equality. Instant form: each mirrored batch equals, in offset, epoch and bytes, a batch that was in the log of a
//! source leader. Quiet form: with the source stable, heard in its present epoch, and no lag, every in-sync replica of the mirror equals the source leader
//! from its start up to the watermark; offsets are never shifted. What the source had removed before it was copied is told as a gap
//! (decision 40).

use super::cx::Cx;
use super::ghost::{Ghost, PartitionGhost};
use super::logs;
use super::roster::slot_of;
use super::s51_legal_compaction;
use super::sight::{LogSight, MirrorSight, Sight};
use mirrorlab_model::ids::{NodeId, Offset, PartitionIx};
use mirrorlab_model::states::{DesiredState, MirrorState};
use mirrorlab_model::trace::Trace;

/// `base..next` was copied from a source broker.
pub(super) fn mirrored<S: Sight>(
    cx: &mut Cx<'_, S>,
    (source, there): (NodeId, PartitionIx),
    from: &PartitionGhost,
    base: Offset,
    next: Offset,
) {
    let compacted = from.compacted();
    if base < compacted {
        s51_legal_compaction::mirrored(cx, from, base, next.min(compacted));
    }
    let base = base.max(compacted);
    let (Some(own), Some(origin)) = (cx.replica(cx.slot), cx.sight.replica(source, there)) else { return };
    // Gone from the source since it answered (retention, or a cut): the quiet form sees what became of it.
    if origin.log.start() > base || origin.log.end() < next {
        return;
    }
    if !logs::equal(origin.log, own.log, base, next) {
        let from = logs::first_difference(origin.log, own.log, base);
        let got = format_args!("they differ from {from} on");
        cx.broken("S30", format_args!("the source's batches at {base}..{next}"), got);
    }
}

/// A mirror leader's log begins anew behind its end.
pub(super) fn jumped<S: Sight>(cx: &mut Cx<'_, S>, from: Offset, to: Offset) {
    let at = cx.partition();
    let told =
        |trace: &Trace| matches!(*trace, Trace::MirrorGap { partition, to: upto, .. } if partition == at && upto == to);
    if !cx.sight.trace().iter().any(|event| told(&event.trace)) {
        cx.broken("S30", format_args!("a gap that is told: {from}..{to} was never copied"), "nothing was");
    }
}

/// Where a mirrored partition comes from, by topic and number in both clusters' metadata.
pub(super) fn source_of<S: Sight>(cx: &Cx<'_, S>) -> Option<(u8, PartitionIx)> {
    let image = cx.sight.image(cx.at.cluster)?;
    let partition = image.partition(cx.partition())?;
    let topic = image.topic(partition.topic)?;
    let (mirror, _) = topic.mirror?;
    let source = cx.roster.source_of(cx.at.cluster, &image.mirror(mirror)?.name)?;
    let there = cx.sight.image(source)?;
    let ix = there.partition_of(there.topic_by_name(&topic.name)?, partition.number)?;
    Some((source, ix))
}

/// Whether a partition of the source belongs to the topic that is copied here, and not to another one of its name.
pub(super) fn is_same_topic<S: Sight>(cx: &Cx<'_, S>, source: u8, there: PartitionIx) -> bool {
    let id = |cluster: u8, ix: PartitionIx| {
        let image = cx.sight.image(cluster)?;
        Some(image.topic(image.partition(ix)?.topic)?.id)
    };
    let (own, origin) = (id(cx.at.cluster, cx.partition()), id(source, there));
    own.is_none() || origin.is_none() || own == origin
}

/// At a quiet point: the whole common range.
pub(super) fn quiet<S: Sight>(cx: &mut Cx<'_, S>, ghost: &Ghost, g: &PartitionGhost) {
    let Some((cluster, there)) = source_of(cx) else { return };
    let image = cx.sight.image(cx.at.cluster);
    let desired = image.and_then(|i| i.mirror_of(i.partition(cx.partition())?.topic)).map(|m| m.1);
    let leader = slot_of(g.leader);
    let Some(node) = cx.node_of(leader) else { return };
    let Some(origin) = ghost.clusters.get(usize::from(cluster)).and_then(|c| c.partitions.get(there.0 as usize)) else {
        return;
    };
    let heard = |m: MirrorSight| m.fetching && m.source_epoch >= origin.leader_epoch;
    let steady = cx.sight.mirror(node, cx.partition()).is_some_and(|m| m.state == MirrorState::Mirroring && heard(m));
    if desired != Some(DesiredState::Mirroring) || !steady {
        return;
    }
    let Some(source) = cx.roster.broker(cluster, slot_of(origin.leader)).and_then(|n| cx.sight.replica(n, there))
    else {
        return;
    };
    for (_, m) in g.of_mask(g.isr) {
        let Some(own) = cx.replica(m.slot) else { continue };
        let compacted = g.compacted().max(origin.compacted());
        s51_legal_compaction::same_table(cx, origin, g, (source.log, own.log), m.slot);
        let from = own.log.start().max(source.log.start()).max(compacted);
        let to = own.log.high_watermark().min(source.log.high_watermark());
        if from < to && !logs::equal(source.log, own.log, from, to) {
            let at = logs::first_difference(source.log, own.log, from);
            let slot = m.slot;
            cx.broken_at(
                "S30",
                slot,
                format_args!("the source's batches on {from}..{to}"),
                format_args!("they differ from {at} on"),
            );
        }
    }
}
