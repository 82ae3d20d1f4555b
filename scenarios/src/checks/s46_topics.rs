//! S46 Topics. A mirror topic has the source topic's id; a deletion at the source deletes nothing here; a source topic that was
//! created again is not appended to the old log; one topic belongs to one mirror. (That it has at least as many partitions comes
//! with the next look at the source's metadata: L14.)

use super::cx::Cx;
use super::sight::Sight;
use mirrorlab_model::ids::{PartitionIx, TopicId};

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
