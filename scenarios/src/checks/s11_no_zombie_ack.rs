//! S11 No acknowledged zombie write. An acknowledgement of acks=all is given only for records below the true high watermark of
//! the present lineage: a deposed leader never gives one.

use super::cx::Cx;
use super::excuses::Excuse;
use super::ghost::PartitionGhost;
use super::member::Member;
use super::report::place_name;
use super::sight::Sight;
use mirrorlab_model::ids::Offset;

/// A producer was told that its records are at `base..next`.
pub(super) fn acked<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, base: Offset, next: Offset) {
    if next <= g.true_hw {
        g.acked.add(base, next);
        return;
    }
    if g.was_cut(next, cx.at.now) {
        // The answer was on its way when the lineage ended: these records are among its losses.
        let excuse = g.more().cuts.iter().rev().find(|c| c.to < next).map_or(Excuse::LossyCrashes, |c| c.excuse);
        cx.report.excuse("S11", excuse, place_name(cx.sight, cx.roster, cx.at));
        return;
    }
    // A lineage ended, and a replica that still had more was elected: its own watermark says so, and all in-sync replicas follow.
    let follows = |m: &Member| m.end >= next && (m.slot != g.lead.slot || m.hw >= next);
    if next <= g.once_committed(false) && g.isr != 0 && g.of_mask(g.isr).all(|(_, m)| follows(m)) {
        return;
    }
    let expected = format_args!("an acknowledgement of what is committed, which is below {}", g.true_hw);
    cx.broken("S11", expected, format_args!("{base}..{next} was acknowledged"));
}
