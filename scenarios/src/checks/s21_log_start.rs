//! S21 Log start. The log start never falls (but for a wiped disk, or a log that an alignment emptied to copy it anew), is not above
//! the watermark, and rises only by retention on committed records, DeleteRecords, or by following a leader or source that did so.

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::member::Member;
use super::sight::Sight;
use mirrorlab_model::ids::Offset;

/// A log start rose to `to`.
pub(super) fn moved<S: Sight>(cx: &mut Cx<'_, S>, g: &PartitionGhost, m: Member, to: Offset) {
    // A log that was just cut to its new start is empty: it begins anew.
    if to < m.start && m.end > to {
        cx.broken("S21", format_args!("a log start that does not fall below {}", m.start), to);
    }
    // A log that begins anew above its end follows a leader or source whose log starts there: nothing was removed here.
    let removes = to <= m.end && m.known();
    if removes && to > m.hw.max(g.true_hw) {
        let expected = format_args!("a log start within what is committed ({})", g.true_hw);
        cx.broken("S21", expected, to);
    }
}
