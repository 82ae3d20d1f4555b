//! S40 Producer reset. When a partition becomes STOPPED its log ends in a producer reset, behind all abort markers, of an epoch
//! above the mirrored ones, and neither the leader nor any in-sync replica holds a producer of the mirrored part. (S17 sees that
//! no restart brings one back.)

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::logs;
use super::sight::{LogSight, Sight};
use mirrorlab_model::ids::{LeaderEpoch, Offset};
use mirrorlab_model::record::{BatchView, ControlType};

/// STOPPED is committed, and this broker acts on it.
pub(super) fn stopped<S: Sight>(cx: &mut Cx<'_, S>, g: &PartitionGhost) {
    let Some(log) = cx.replica(cx.slot).map(|r| r.log) else { return };
    let mirrored = g.life().and_then(|life| life.position).map_or(LeaderEpoch::NONE, |p| p.epoch);
    let end = log.end();
    let last = (end > log.start()).then(|| logs::batch_at(&log, Offset(end.0 - 1))).flatten();
    let last = last.and_then(|bytes| BatchView::parse(bytes).ok());
    let reset = last.filter(|batch| batch.control_type() == Some(ControlType::MirrorPidReset));
    let Some(epoch) = reset.map(|batch| batch.leader_epoch()) else {
        return cx.broken("S40", "a producer reset at the end of the log of a partition that becomes STOPPED", "none");
    };
    if epoch <= mirrored {
        cx.broken("S40", format_args!("a producer reset above {mirrored}, the last mirrored epoch"), epoch);
    }
    for (_, m) in g.of_mask(g.isr) {
        let slot = m.slot;
        let Some(own) = cx.replica(slot).filter(|own| own.log.end() >= end) else { continue };
        let left = own.log.producers().len();
        if left > 0 {
            cx.broken_at("S40", slot, "no producer of the mirrored part behind the reset", left);
        }
    }
}
