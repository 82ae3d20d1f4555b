//! S32 Read-only. From the start of mirroring until STOPPED is committed no producer's batch is appended to a mirrored partition,
//! and from then until the next start no mirrored one is. Markers and producer resets are appended in STOPPING, and in STOPPED
//! like in any partition. What is committed is read from `__mirror_state`; what a leader may act on is what leaders up to its own
//! epoch wrote: one that was deposed and does not know it may append by what it was told, and none of that is ever committed. Client
//! answer and effect agree.

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::sight::Sight;
use mirrorlab_model::ids::LeaderEpoch;
use mirrorlab_model::states::{DesiredState, MirrorState};
use mirrorlab_model::trace::Origin;

/// A leader of a partition that has to do with a mirror appended, in its leader epoch `local`.
pub(super) fn appended<S: Sight>(cx: &mut Cx<'_, S>, g: &PartitionGhost, origin: Origin, local: LeaderEpoch) {
    use MirrorState as M;
    let Some(image) = cx.at.node.and_then(|n| cx.sight.broker_image(n)) else { return };
    let Some(partition) = image.partition(cx.partition()) else { return };
    let desired = image.mirror_of(partition.topic).map(|m| m.1);
    let told = cx.at.node.and_then(|node| cx.sight.mirror(node, cx.partition())).map_or(0, |mirror| mirror.state_epoch);
    let committed = g.life().and_then(|life| life.told(local, told));
    let ordered = desired.map_or("nothing", DesiredState::name);
    let got = |state: M| format!("one was appended; state {}, ordered {ordered}", state.name());
    match origin {
        Origin::Client => {
            if !matches!(desired, None | Some(DesiredState::Stopped)) {
                let expected = "no producer's batch in a partition that is mirrored";
                cx.broken("S32", expected, format_args!("one was appended; ordered is {ordered}"));
            } else if let Some(state) = committed.filter(|state| desired.is_some() && *state != M::Stopped) {
                cx.broken("S32", "no producer's batch before STOPPED is committed", got(state));
            }
        }
        Origin::Mirror => {
            let told = g.more.as_ref().map(|m| m.mirror).filter(|(who, _)| Some(*who) == cx.at.node);
            let believed = told.map_or(M::Unknown, |told| told.1);
            let state = committed.unwrap_or(believed);
            // A change from MIRRORING may be committed and not told yet. What follows it was asked for without a fetcher.
            let may = !matches!(state, M::Unknown | M::LogAlignment | M::Paused | M::Stopped);
            if desired.is_none() || (committed.is_some() && !may) || believed == M::Stopped {
                let got = got(if believed == M::Stopped { believed } else { state });
                cx.broken("S32", "no mirrored batch in a partition that is stopped or not mirrored", got);
            }
        }
        Origin::Coordinator => {
            if let Some(state) = committed.filter(|s| desired.is_some() && !matches!(s, M::Stopping | M::Stopped)) {
                cx.broken("S32", "no local control batch in a partition that is mirrored", got(state));
            }
        }
        Origin::Replication => {}
    }
}
