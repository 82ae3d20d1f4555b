//! S2 Log matching. For all partitions and replicas r, s: below both high watermarks and above both starts, bytes are equal.
//! Strong form: where the batches of r and s at an offset have the same epoch, everything before it is equal too.
//!
//! Both forms come down to the first difference d of two logs: d is not below both watermarks, and no epoch has offsets at or
//! above d in both.

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::logs;
use super::sight::{LogSight, ReplicaSight, Sight};
use mirrorlab_model::ids::{LeaderEpoch, Offset};

/// Compares the log of one slot with those of all other members that are up.
pub(super) fn around<S: Sight>(cx: &mut Cx<'_, S>, g: &PartitionGhost, slot: u16) {
    let Some(one) = cx.replica(slot) else { return };
    for (at, m) in g.members.iter().enumerate() {
        // A replica that has not come back into the ISR yet may hold what an ended lineage held, or (after a power loss) what
        // it had cut off, because a cut is no more durable than a write. Its watermark is of the same age.
        let out = g.isr & (1 << (at as u32 & 31)) == 0 && (m.lossy() || g.lineage > 0);
        if m.slot == slot || out {
            continue;
        }
        if let Some(other) = cx.replica(m.slot) {
            pair(cx, m.slot, g.compacted_at(slot).max(g.compacted_at(m.slot)), one, other);
        }
    }
}

fn pair<S: Sight, L: LogSight>(
    cx: &mut Cx<'_, S>,
    slot: u16,
    compacted: Offset,
    one: ReplicaSight<L>,
    other: ReplicaSight<L>,
) {
    let (a, b) = (one.log, other.log);
    if logs::same_storage(a, b) || one.offline || other.offline {
        return;
    }
    let end = a.end().min(b.end());
    // What stands below is S51's.
    let from = a.start().max(b.start()).max(compacted);
    if from >= end {
        return;
    }
    let differs = logs::first_difference(a, b, from);
    if differs >= end {
        return;
    }
    let committed = a.high_watermark().min(b.high_watermark());
    if differs < committed {
        let got = format_args!("they differ from {differs} on");
        return cx.broken_at("S2", slot, format_args!("logs that are equal below both watermarks ({committed})"), got);
    }
    if let Some((epoch, at)) = shared_epoch(a, b, differs, end) {
        let got = format_args!("both have epoch {epoch} at {at}, but they differ from {differs} on");
        cx.broken_at("S2", slot, "logs that are equal below a batch of the same epoch", got);
    }
}

/// An epoch that both logs have at the same offset, at or above `from`.
fn shared_epoch<L: LogSight>(a: L, b: L, from: Offset, end: Offset) -> Option<(LeaderEpoch, Offset)> {
    let of = |log: L, at: Offset| logs::batch_at(&log, at).and_then(epoch_of);
    // Epochs do not fall along a log (S9), so it is enough to look where an epoch begins in either.
    let starts = a.epochs().iter().chain(b.epochs()).map(|e| e.start).filter(|s| *s > from && *s < end);
    std::iter::once(from).chain(starts).find_map(|at| {
        let (x, y) = (of(a, at)?, of(b, at)?);
        (x == y).then_some((x, at))
    })
}

fn epoch_of(bytes: &[u8]) -> Option<LeaderEpoch> {
    mirrorlab_model::record::HeaderView::parse(bytes).ok().map(|h| h.leader_epoch())
}
