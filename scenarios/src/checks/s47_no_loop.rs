//! S47 No loop. Partitions that copy from one another make no circle. While two mirrors are started at the same moment neither
//! sees the other (decision 26: each looks again when its first batch arrives), so what is asked is: no partition begins to copy
//! from one that was copying from it before the alignment began and still does, and in a settled world there is no circle of any
//! length.

use super::cx::Cx;
use super::ghost::{Ghost, PartitionGhost};
use super::s35_exact_cut::reverse;
use super::sight::Sight;
use mirrorlab_model::ids::PartitionIx;
use mirrorlab_model::states::MirrorState;

/// Whether the source copies from here.
pub(super) fn is_reversed<S: Sight>(cx: &Cx<'_, S>, ghost: &Ghost, source: (u8, PartitionIx)) -> bool {
    reverse(cx, ghost, source).is_some_and(|life| life.last().state == MirrorState::Mirroring)
}

/// The step to MIRRORING, behind an alignment that began when the source copied from here or did not.
pub(super) fn copies<S: Sight>(cx: &mut Cx<'_, S>, ghost: &Ghost, source: (u8, PartitionIx), looped: bool) {
    if looped && is_reversed(cx, ghost, source) {
        let cluster = cx.roster.clusters.get(usize::from(source.0)).map_or("?", |c| &*c.name).to_owned();
        cx.broken("S47", "no copy of a partition that is a copy of this one", format_args!("one of {cluster}'s"));
    }
}

/// A settled world: follows a partition to where it is copied from, as long as that is a copy too.
pub(super) fn quiet<S: Sight>(cx: &mut Cx<'_, S>, ghost: &Ghost) {
    let own = (cx.at.cluster, cx.partition());
    let mut here = own;
    for _ in 0..ghost.clusters.len() {
        let life = |at: (u8, PartitionIx)| {
            ghost.clusters.get(usize::from(at.0))?.partitions.get(at.1 .0 as usize).and_then(PartitionGhost::life)
        };
        if life(here).is_none_or(|life| life.last().state != MirrorState::Mirroring) {
            return;
        }
        let at = super::report::At { cluster: here.0, partition: Some(here.1), ..cx.at };
        let there = Cx { sight: cx.sight, roster: cx.roster, report: &mut *cx.report, at, slot: u16::MAX };
        let Some(next) = super::s30_mirror_equality::source_of(&there) else { return };
        if next == own {
            return cx.broken("S47", "partitions that copy in no circle", "one that comes back here");
        }
        here = next;
    }
}
