//! One walk over a log for all checks that look at its batches: reading them is most of what a sweep costs.

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::logs;
use super::roster::slot_of;
use super::sight::{LogSight, Sight};
use super::{s01_valid_log, s16_idempotence, s17_producer_table};
use mirrorlab_model::ids::Offset;
use mirrorlab_model::record::BatchView;

/// Walks the log of a partition's leader: S1 and S16 see what was not walked before, S17 sees all.
pub(super) fn leader<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost) {
    let slot = slot_of(g.leader);
    let Some(replica) = cx.replica(slot) else { return };
    let loose = g.loose(slot);
    let walked = g.more.as_ref().map_or(Offset::ZERO, |m| m.walked);
    let mut sequences = s16_idempotence::Walk::of(g, replica.log.start(), replica.log.end());
    walk(cx, slot, (walked, loose), |batch| sequences.see(batch));
    sequences.finish(cx, g, slot);
}

/// Walks a log that was just loaded: its bytes from `start` on, and its producers.
pub(super) fn recovered<S: Sight>(cx: &mut Cx<'_, S>, g: &PartitionGhost, slot: u16, start: Offset) {
    walk(cx, slot, (start, g.loose(slot)), |_| {});
}

/// S1 sees what ends at or above `from`, as does `each`; S17 sees all.
fn walk<S: Sight>(
    cx: &mut Cx<'_, S>,
    slot: u16,
    (from, loose): (Offset, Offset),
    mut each: impl FnMut(&BatchView<'_>),
) {
    let Some(replica) = cx.replica(slot) else { return };
    let log = replica.log;
    // One that is elected and does not know it yet may end below what its predecessor's log was walked up to: that is S3's.
    let from = from.max(log.start()).min(log.end());
    let mut bytes = s01_valid_log::Bytes::from(from);
    let mut fold =
        (!replica.offline && s17_producer_table::Fold::fits(log)).then(|| s17_producer_table::Fold::of(cx, slot));
    logs::for_each(log, if fold.is_some() { log.start() } else { from }, log.end(), |batch| {
        if let Some(fold) = &mut fold {
            fold.see(batch);
        }
        if batch.last_offset() >= from {
            bytes.see(batch);
            each(batch);
        }
        true
    });
    bytes.finish(cx, slot, log.end());
    if let Some(fold) = fold {
        fold.finish(cx, slot, log, loose);
    }
}
