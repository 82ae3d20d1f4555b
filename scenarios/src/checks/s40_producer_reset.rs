//! S40 Producer reset. When a partition becomes STOPPED its log ends in a producer reset, behind all abort markers, of an epoch
//! above the mirrored ones, and neither the leader nor any in-sync replica holds a producer of the mirrored part. (S17 sees that
//! no restart brings one back.)

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::lives::Life;
use super::logs;
use super::sight::{LogSight, Sight};
use mirrorlab_model::ids::{LeaderEpoch, Offset};
use mirrorlab_model::record::{BatchView, ControlType};
use mirrorlab_model::states::MirrorState;

/// A producer's batch was appended at `base`: behind what was mirrored, or what is left of it, lies a reset, or something behind a
/// reset.
pub(super) fn local<S: Sight>(cx: &mut Cx<'_, S>, g: &PartitionGhost, base: Offset) {
    let Some(position) = g.life().and_then(|life| life.position) else { return };
    if position.offset == Offset::ZERO || base > position.offset {
        return;
    }
    let before = cx.replica(cx.slot).map(|own| logs::epoch_before(own.log, base));
    if before.is_some_and(|before| before <= position.epoch) {
        cx.broken("S40", "a producer reset between the last mirrored batch and a producer's", "none");
    }
}

/// A state is committed, whoever wrote it: STOPPED behind the reset only.
pub(super) fn committed<S: Sight>(cx: &mut Cx<'_, S>, life: &Life, leader: u16, state: MirrorState) {
    let opens = state == MirrorState::Stopped && life.last().state != MirrorState::Stopped;
    let Some(log) = cx.replica(leader).filter(|own| opens && own.leads).map(|own| own.log) else { return };
    if !ends_in_reset(&log) {
        cx.broken_at("S40", leader, "STOPPED committed behind a producer reset at the end of the log", "none");
    }
}

fn ends_in_reset<L: LogSight>(log: &L) -> bool {
    let last = (log.end() > log.start()).then(|| logs::batch_at(log, Offset(log.end().0 - 1))).flatten();
    let last = last.and_then(|bytes| BatchView::parse(bytes).ok());
    last.is_some_and(|batch| batch.control_type() == Some(ControlType::MirrorPidReset))
}

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
