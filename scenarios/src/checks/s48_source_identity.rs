//! S48 Source identity. Between two starts everything comes from one cluster, and in the end from the one whose id was recorded when
//! the mirror was created. (A source that changes its id is left after two looks at it, decision 4.)

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::liveness::Look;
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

/// What is copied from another one, and not left yet.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    look.each_partition(|look, p| {
        let Some((node, _)) = look.mirror(p).filter(|(_, mirror)| mirror.state == MirrorState::Mirroring) else {
            return;
        };
        let Some((source, _)) = look.source(p) else { return };
        let nodes = look.roster.clusters.get(usize::from(source)).map_or(&[][..], |c| &c.brokers);
        let Some(now) = nodes.iter().find_map(|node| look.sight.cluster_id(*node)) else { return };
        let recorded = look.sight.image(p.cluster).and_then(|image| {
            let (mirror, _) = image.mirror_of(image.partition(p.ix)?.topic)?;
            Some(&*image.mirror(mirror)?.config.source_cluster_id)
        });
        if let Some(recorded) = recorded.filter(|id| !id.is_empty() && *id != &*now) {
            let expected = format!("a source with the recorded id {recorded}");
            look.stall("S48", Some(p), Some(node), expected, format_args!("{now}, copied from"));
        }
    });
}
