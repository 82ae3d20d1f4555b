//! S32 Read-only. Between the start of mirroring, as the leader knows it, and the order to stop, no batch of a producer or of
//! this cluster's transaction coordinator is appended to a mirrored partition; in STOPPED no mirrored batch is. Client answer and effect agree.

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::sight::Sight;
use mirrorlab_model::states::{DesiredState, MirrorState};
use mirrorlab_model::trace::Origin;

/// A leader of a partition that has to do with a mirror appended.
pub(super) fn appended<S: Sight>(cx: &mut Cx<'_, S>, g: &PartitionGhost, origin: Origin) {
    let Some(image) = cx.at.node.and_then(|n| cx.sight.broker_image(n)) else { return };
    let Some(partition) = image.partition(cx.partition()) else { return };
    let desired = image.mirror_of(partition.topic).map(|m| m.1);
    match origin {
        // A coordinator of this cluster has no business here but in the stop chain, which begins with the order.
        Origin::Client | Origin::Coordinator => {
            if !matches!(desired, None | Some(DesiredState::Stopped)) {
                let expected = "no producer's or coordinator's batch in a partition that is mirrored";
                cx.broken("S32", expected, format_args!("one was appended; ordered is {desired:?}"));
            }
        }
        Origin::Mirror => {
            let state = g.more.as_ref().map_or(MirrorState::Unknown, |m| m.mirror);
            if desired.is_none() || state == MirrorState::Stopped {
                let got = format_args!("one was appended; state {}, ordered {desired:?}", state.name());
                cx.broken("S32", "no mirrored batch in a partition that is stopped or not mirrored", got);
            }
        }
        Origin::Replication => {}
    }
}
