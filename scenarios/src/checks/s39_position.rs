//! S39 Position. The last mirrored position is set once per stop, before any local batch, and says where mirroring ended: the
//! end of the mirrored part of the log, and the epoch of its last batch; or a place before, if a leader that was deposed without
//! knowing it copied on and came to lead again. It is committed before STOPPED, and cleared only when the next session begins to
//! copy.

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::lives::Life;
use super::logs;
use super::sight::{LogSight, Sight};
use mirrorlab_model::ids::{LeaderEpoch, Offset};
use mirrorlab_model::states::{LastPosition, MirrorState};

/// A position is committed, or cleared.
pub(super) fn committed<S: Sight>(cx: &mut Cx<'_, S>, life: &Life, position: Option<LastPosition>) {
    match (life.position, position) {
        (Some(before), Some(now)) if before != now => {
            cx.broken("S39", format_args!("one position per stop: {before}"), now);
        }
        (Some(before), None) if life.last().state != MirrorState::Mirroring && belongs(cx, life) => {
            let expected = format_args!("the position {before} until the next session copies");
            cx.broken("S39", expected.to_string(), format_args!("cleared in {}", life.last().state.name()));
        }
        _ => {}
    }
}

fn belongs<S: Sight>(cx: &Cx<'_, S>, life: &Life) -> bool {
    let mirror = cx.sight.image(cx.at.cluster).and_then(|image| {
        let (mirror, _) = image.mirror_of(image.partition(cx.partition())?.topic)?;
        Some(image.mirror(mirror)?.name.clone())
    });
    mirror.is_some_and(|mirror| mirror == life.mirror)
}

/// A state is committed.
pub(super) fn state_committed<S: Sight>(cx: &mut Cx<'_, S>, life: &Life, state: MirrorState) {
    if state == MirrorState::Stopped && life.position.is_none() {
        cx.broken("S39", "a last mirrored position that is committed before STOPPED", "none");
    }
}

/// A leader appended a mirrored batch in its leader epoch `local`.
pub(super) fn copied<S: Sight>(cx: &Cx<'_, S>, g: &mut PartitionGhost, local: LeaderEpoch) {
    let Some(life) = g.more.as_mut().and_then(|m| m.life.as_mut()) else { return };
    if life.position.is_some() && local < life.last().leader_epoch {
        life.copied_late = cx.slot;
    }
}

/// A local batch is appended at the leader: by a producer, or by a stop.
pub(super) fn local<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, base: Offset, local: LeaderEpoch) {
    let slot = cx.slot;
    let Some(life) = g.more.as_mut().and_then(|m| m.life.as_mut()) else { return };
    if life.upto(local) != Some(MirrorState::Stopping) {
        return; // S32
    }
    let Some(position) = life.position else {
        return cx.broken("S39", "no local batch before the last mirrored position is committed", base);
    };
    let (fresh, same) = (std::mem::take(&mut life.is_fresh), life.position_by == slot);
    if !fresh {
        return;
    }
    let Some(log) = cx.replica(slot).map(|r| r.log) else { return };
    let last = logs::epoch_before(log, base);
    let found = LastPosition { epoch: last, offset: base };
    // Another leader may lack what the one that noted the position had not replicated yet. One that had not heard of its end copied
    // on, and leads again: the position is where the two sides part, or before it. Of a log that had no records left the bytes may
    // tell less than its epochs did.
    let late = life.copied_late == slot && base > position.offset && last < local;
    let holds = match same {
        true if base == log.start() => position.offset == base && position.epoch >= last,
        true => position == found,
        false => late || (base <= position.offset && last <= position.epoch),
    };
    if !holds {
        cx.broken("S39", format_args!("the position where mirroring ended: {found}"), position);
    }
}
