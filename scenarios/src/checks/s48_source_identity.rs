//! S48 Source identity. Between two starts everything comes from one cluster, and in a settled world from the one whose id was
//! recorded when the mirror was created. (A source that changes its id is left after two looks at it, decision 4.)

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::s30_mirror_equality::source_of;
use super::sight::Sight;
use mirrorlab_model::states::MirrorState;

/// A batch of this cluster was copied.
pub(super) fn mirrored<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, cluster: u8) {
    let Some(life) = g.more.as_mut().and_then(|m| m.life.as_mut()) else { return };
    if let Some(before) = life.source.replace(cluster).filter(|before| *before != cluster) {
        let name = |c: u8| cx.roster.clusters.get(usize::from(c)).map_or("?", |c| &*c.name).to_owned();
        let (expected, got) = (name(before), name(cluster));
        cx.broken("S48", format_args!("batches of cluster {expected}, as before in this session"), got);
    }
}

/// A settled world.
pub(super) fn quiet<S: Sight>(cx: &mut Cx<'_, S>, g: &PartitionGhost) {
    if g.life().is_none_or(|life| life.last().state != MirrorState::Mirroring) {
        return;
    }
    let recorded = cx.sight.image(cx.at.cluster).and_then(|image| {
        let (mirror, _) = image.mirror_of(image.partition(cx.partition())?.topic)?;
        Some(image.mirror(mirror)?.config.source_cluster_id.clone())
    });
    let Some(recorded) = recorded.filter(|id| !id.is_empty()) else { return };
    let Some((cluster, _)) = source_of(cx) else { return };
    let nodes = cx.roster.clusters.get(usize::from(cluster)).map_or(&[][..], |c| &c.brokers);
    let Some(now) = nodes.iter().find_map(|node| cx.sight.cluster_id(*node)) else { return };
    if now != recorded {
        cx.broken("S48", format_args!("a source with the recorded id {recorded}"), format_args!("{now}, copied from"));
    }
}
