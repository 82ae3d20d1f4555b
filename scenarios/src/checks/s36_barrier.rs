//! S36 Barrier. Before anything is copied after a cut at x, every member of the maximal ISR equals the leader below x and ends at
//! or below x: a follower that still holds what was cut would have it taken for the mirror's.

use super::cx::Cx;
use super::ghost::{Lead, PartitionGhost};
use super::logs;
use super::sight::{LogSight, Sight};
use mirrorlab_model::ids::Offset;

/// Copying begins, or goes on, behind a cut at `cut`.
pub(super) fn passed<S: Sight>(cx: &mut Cx<'_, S>, g: &PartitionGhost, cut: Offset) {
    let Some(leader) = cx.replica(cx.slot) else { return };
    let Lead { slot, isr, proposed, .. } = g.lead;
    if slot != cx.slot {
        return; // deposed: nobody follows it
    }
    for (_, m) in g.of_mask(isr | proposed) {
        // One that stopped uncleanly may have come back with what was cut: it has to be taken into the ISR again.
        if m.slot == cx.slot || m.doubtful() || m.lossy() {
            continue;
        }
        let Some(own) = cx.replica(m.slot) else { continue };
        if own.offline {
            continue;
        }
        let (end, slot) = (own.log.end(), m.slot);
        // One that begins behind the cut, as its leader does since its source had nothing else, has to be equal from there on.
        if end > cut && own.log.start().min(leader.log.start()) <= cut {
            let expected = format_args!("a log that ends at or below {cut}, where its leader was cut");
            cx.broken_at("S36", slot, expected, end);
        } else if !logs::equal(leader.log, own.log, own.log.start().max(leader.log.start()).max(g.compacted()), end) {
            cx.broken_at("S36", slot, format_args!("its leader's batches below {end}"), "others");
        }
    }
}
