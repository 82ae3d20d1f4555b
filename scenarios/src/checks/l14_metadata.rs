//! L14 Metadata converges: every broker that is up has applied what the controller committed, and a topic that is to be copied has at
//! least as many partitions as its source, once the mirror looked at the source's metadata again. (Configs, ACLs and log starts of
//! mirrors are joined to it when their sync stands.)

use super::excuses::Excuse;
use super::liveness::Look;
use super::sight::Sight;
use mirrorlab_model::ids::TopicIx;
use mirrorlab_model::states::DesiredState;

/// What is not so yet.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    for cluster in 0..look.roster.clusters.len() as u8 {
        let Some(image) = look.sight.image(cluster) else { continue }; // L4
        let expected = (image.end(), image.hash());
        for node in look.roster.clusters[usize::from(cluster)].brokers.iter().copied() {
            if !look.sight.is_up(node) {
                look.excuse("L14", Excuse::NodeDown, None, Some(node));
                continue;
            }
            let own = look.sight.broker_image(node).map(|i| (i.end(), i.hash()));
            if own != Some(expected) {
                let got = match own {
                    Some((end, _)) if end == expected.0 => "as far, and something else".to_owned(),
                    Some((end, _)) => format!("up to {end}"),
                    None => "none".to_owned(),
                };
                look.stall("L14", None, Some(node), format!("metadata applied up to {}", expected.0), got);
            }
        }
        for topic in 0..image.next_topic().0 {
            grown(look, cluster, TopicIx(topic));
        }
    }
}

/// A topic that is to be copied has its source's partitions.
fn grown<S: Sight>(look: &mut Look<'_, S>, cluster: u8, topic: TopicIx) {
    let Some(own) = look.sight.image(cluster).and_then(|image| image.topic(topic)) else { return };
    let Some((mirror, DesiredState::Mirroring)) = own.mirror else { return };
    let mirror = look.sight.image(cluster).and_then(|image| image.mirror(mirror));
    let Some(source) = mirror.and_then(|m| look.roster.source_of(cluster, &m.name)) else { return };
    let Some(there) = look.sight.image(source) else { return };
    let Some(origin) = there.topic_by_name(&own.name).and_then(|t| there.topic(t)) else { return };
    // Another topic of that name is not copied (S46).
    if origin.id != own.id || origin.partitions.len() <= own.partitions.len() {
        return;
    }
    if !look.roster.clusters[usize::from(source)].brokers.iter().any(|node| look.sight.is_up(*node)) {
        let of = look.roster.clusters[usize::from(source)].brokers.first().copied();
        return look.excuse("L14", Excuse::SourceDown, None, of);
    }
    let got = format!("{} of {}", own.partitions.len(), own.name);
    look.stall_at("L14", cluster, format!("{} partitions, like the source", origin.partitions.len()), got);
}
