//! S22 Visible ends. What a client is told as the end of a partition never falls. Excused by unclean elections and ordered
//! cuts: a new lineage begins with them.

use super::cx::Cx;
use super::ghost::ClusterGhost;
use super::sight::Sight;
use mirrorlab_model::ids::Offset;

/// A client was told an end.
pub(super) fn told<S: Sight>(cx: &mut Cx<'_, S>, c: &mut ClusterGhost, client: u32, end: Offset) {
    let ix = cx.partition();
    let g = c.partition(ix);
    let (lineage, committed, floor, was_cut) = (g.lineage, g.true_hw, g.floor, g.was_cut(end, cx.at.now));
    let before = c.told_ends.get(&(client, ix)).map(|(lineage, _)| *lineage);
    // More than there is of this lineage is an answer of the one before, that comes late; or of a leader that was elected meanwhile, and
    // has not carried out the same cut yet.
    if (was_cut || before.is_some_and(|before| before != lineage)) && end > committed {
        return;
    }
    let known = c.told_ends.insert((client, ix), (lineage, end));
    // Short of what is gone below the log start lacks nothing: a mirror leader passed a gap that its source told of, and the next one
    // has not yet.
    if let Some((_, before)) = known.filter(|(l, before)| *l == lineage && *before > end && *before > floor) {
        c.told_ends.insert((client, ix), (lineage, before));
        cx.broken("S22", format_args!("an end not below {before}, which client {client} was told before"), end);
    }
}
