//! S41 No open transaction at opening. When a partition becomes STOPPED, every transaction that was open when its stop began
//! ends in a marker, and every in-sync replica has that on disk. A stop in LOG_ALIGNMENT copied nothing: its leader may have what the
//! alignment cut elsewhere, be it the end of the stop before, and repeats that if it is lost (decision 13); what this stop writes
//! itself has to be there.

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::lives::Life;
use super::logs;
use super::sight::{LogSight, Sight};
use mirrorlab_model::ids::{Offset, ProducerId};
use mirrorlab_model::record::ControlType;
use mirrorlab_model::states::MirrorState;

/// A stop begins here, or is taken up here: what is open.
pub(super) fn begins<S: Sight>(cx: &Cx<'_, S>, life: &mut Life) {
    let Some(log) = cx.replica(cx.slot).map(|r| r.log) else { return };
    life.stopped_at = log.end();
    for open in log.producers().open_transactions() {
        let entry = (open.first, open.producer);
        if !life.open.contains(&entry) {
            life.open.push(entry);
        }
    }
}

/// STOPPED is committed, and this broker acts on it.
pub(super) fn stopped<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost) {
    let Some(life) = g.more.as_mut().and_then(|m| m.life.as_mut()) else { return };
    let position = life.position.map_or(Offset::ZERO, |p| p.offset);
    let open = std::mem::take(&mut life.open);
    let (copied, began_at) = (life.stopped_in != MirrorState::LogAlignment, life.stopped_at);
    let Some(log) = cx.replica(cx.slot).map(|r| r.log) else { return };
    // What another leader had and this one had not is not there to be ended.
    let mut left: Vec<(Offset, ProducerId)> =
        open.into_iter().filter(|(first, _)| *first >= log.start() && *first < position).collect();
    if let Some(from) = left.iter().map(|open| open.0).min() {
        logs::for_each(log, from, log.end(), |batch| {
            if matches!(batch.control_type(), Some(ControlType::Abort | ControlType::Commit)) {
                left.retain(|(first, producer)| *producer != batch.producer() || batch.base_offset() < *first);
            }
            !left.is_empty()
        });
    }
    if let Some((first, producer)) = left.first() {
        let got = format_args!("none for producer {}, open from {first} on", producer.0);
        cx.broken("S41", "a marker for every transaction that was open", got.to_string());
    }
    let end = log.end();
    for (_, m) in g.of_mask(g.isr).filter(|_| copied || end > began_at) {
        if m.doubtful() || m.lossy() {
            continue;
        }
        let slot = m.slot;
        if let Some(short) = cx.replica(slot).map(|own| own.log.end()).filter(|own| *own < end) {
            cx.broken_at("S41", slot, format_args!("the markers of a stop, up to {end}"), short);
        }
    }
}
