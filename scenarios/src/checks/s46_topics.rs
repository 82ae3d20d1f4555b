//! S46 Topics. A mirror topic has the source topic's id, and at least as many partitions; a deletion at the source deletes
//! nothing here; a source topic that was created again is not appended to the old log; one topic belongs to one mirror.

use super::cx::Cx;
use super::sight::Sight;
use mirrorlab_model::ids::{PartitionIx, TopicId, TopicIx};
use mirrorlab_model::states::DesiredState;

/// The first batch of a source partition arrived: it is the same topic.
pub(super) fn mirrored<S: Sight>(cx: &mut Cx<'_, S>, cluster: u8, there: PartitionIx) {
    let id = |image: &mirrorlab_model::metadata::image::MetadataImage, ix: PartitionIx| {
        image.partition(ix).and_then(|p| Some((image.topic(p.topic)?.id, p.number)))
    };
    let own = cx.sight.image(cx.at.cluster).and_then(|i| id(i, cx.partition()));
    let origin = cx.sight.image(cluster).and_then(|i| id(i, there));
    if let (Some(own), Some(origin)) = (own, origin) {
        if own != origin && origin.0 != TopicId::ZERO {
            let expected = format!("batches of topic id {:032x}, partition {}", own.0 .0, own.1);
            cx.broken(
                "S46",
                expected,
                format_args!("batches of topic id {:032x}, partition {}", origin.0 .0, origin.1),
            );
        }
    }
}

/// At a quiet point: one mirrored topic. `grown`: partitions had the time to be added here.
pub(super) fn quiet<S: Sight>(cx: &mut Cx<'_, S>, topic: TopicIx, grown: bool) {
    let Some(image) = cx.sight.image(cx.at.cluster) else { return };
    let Some(own) = image.topic(topic) else { return };
    let Some((mirror, DesiredState::Mirroring)) = own.mirror else { return };
    let source = image.mirror(mirror).and_then(|m| cx.roster.source_of(cx.at.cluster, &m.name));
    let Some(there) = source.and_then(|s| cx.sight.image(s)) else { return };
    let Some(origin) = there.topic_by_name(&own.name).and_then(|t| there.topic(t)) else { return };
    if origin.id == own.id && origin.partitions.len() > own.partitions.len() && grown {
        let got = format_args!("{} of {}", own.partitions.len(), own.name);
        cx.broken("S46", format_args!("{} partitions, like the source", origin.partitions.len()), got);
    }
}
