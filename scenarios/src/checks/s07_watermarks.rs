//! S7 Watermarks. What is committed never falls within a lineage; a leader's watermark never falls within its epoch; on every
//! replica the watermark is not above the log end, and the last stable offset not above the watermark.

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::sight::{LogSight, Sight};
use mirrorlab_model::ids::Offset;

/// A watermark moved.
#[inline]
pub(super) fn moved<S: Sight>(
    cx: &mut Cx<'_, S>,
    g: &PartitionGhost,
    own: usize,
    from: Offset,
    to: Offset,
    leader: bool,
) {
    let m = &g.members[own];
    if to > m.end && m.known() {
        cx.broken("S7", format_args!("a watermark within the log, which ends at {}", m.end), to);
    }
    // Who was deposed and does not know it yet may still carry out the cut that its alignment asks for.
    if leader && to < from && g.cut_step != cx.at.step && g.lead.slot == cx.slot {
        cx.broken("S7", format_args!("a leader's watermark that does not fall below {from}"), to);
    }
}

/// What a replica says of itself.
pub(super) fn replica<S: Sight>(cx: &mut Cx<'_, S>, slot: u16) {
    let Some(replica) = cx.replica(slot).filter(|r| !r.offline) else { return };
    let log = replica.log;
    let (start, stable, hw, end) = (log.start(), log.last_stable(), log.high_watermark(), log.end());
    if !(stable <= hw && hw <= end && start <= end) {
        let got = format_args!("start {start}, stable {stable}, watermark {hw}, end {end}");
        cx.broken_at("S7", slot, "last stable <= watermark <= end", got);
    }
}
