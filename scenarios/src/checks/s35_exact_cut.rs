//! S35 Exact cut at failback. At the step LOG_ALIGNMENT -> MIRRORING the mirror leader's log is a prefix of the source leader's,
//! by offset, epoch and bytes. If the end of a last session between the two was known, in either direction, it is not shorter
//! than what the two had in common when the alignment began (up to the
//! later of the two ends that are known: a mirror that was deleted may have copied more); if there was none, it is empty. (A session that was stopped before it
//! copied ended nowhere; and what another mirror of the same source copied is no session of this one. A compacted log that has more
//! than the two have in common may be copied anew: what it has more may have taken away what it had.)

use super::cx::Cx;
use super::ghost::{Ghost, PartitionGhost};
use super::lives::{Aligning, Life};
use super::logs;
use super::roster::slot_of;
use super::s30_mirror_equality::{is_same_topic, source_of};
use super::sight::{LogSight, ReplicaSight, Sight};
use mirrorlab_model::ids::{Offset, PartitionIx};
use mirrorlab_model::metadata::configs::CleanupPolicy;
use mirrorlab_model::record::ControlType;
use mirrorlab_model::states::MirrorState;

/// The source partition and its leader's replica.
type Origin<'a, S> = (u8, PartitionIx, ReplicaSight<<S as Sight>::Log<'a>>);

fn origin<'a, S: Sight>(cx: &Cx<'a, S>, ghost: &Ghost) -> Option<Origin<'a, S>> {
    // A topic that took the name since has nothing to do with what is copied: S46 sees who copies it.
    let (cluster, there) = source_of(cx).filter(|(cluster, there)| is_same_topic(cx, *cluster, *there))?;
    let g = ghost.clusters.get(usize::from(cluster))?.partitions.get(there.0 as usize)?;
    let node = cx.roster.broker(cluster, slot_of(g.leader))?;
    Some((cluster, there, cx.sight.replica(node, there)?))
}

fn at(ghost: &Ghost, (cluster, there): (u8, PartitionIx)) -> Option<&PartitionGhost> {
    ghost.clusters.get(usize::from(cluster))?.partitions.get(there.0 as usize)
}

/// Up to where either of the two was compacted.
fn compacted<S: Sight>(cx: &Cx<'_, S>, ghost: &Ghost, source: (u8, PartitionIx)) -> Offset {
    let of = |at_place| at(ghost, at_place).map_or(Offset::ZERO, PartitionGhost::compacted);
    of(source).max(of((cx.at.cluster, cx.partition())))
}

/// The life of the source partition as a mirror of this one, if it is one.
pub(super) fn reverse<'g, S: Sight>(cx: &Cx<'_, S>, ghost: &'g Ghost, source: (u8, PartitionIx)) -> Option<&'g Life> {
    let life = at(ghost, source)?.life()?;
    (cx.roster.source_of(source.0, &life.mirror) == Some(cx.at.cluster)).then_some(life)
}

/// A partition begins to align: what is known now.
pub(super) fn begins<S: Sight>(cx: &Cx<'_, S>, ghost: &Ghost) -> Option<Aligning> {
    let (cluster, there, source) = origin(cx, ghost)?;
    let own = cx.replica(cx.slot)?.log;
    let other = reverse(cx, ghost, (cluster, there));
    let reverse = other.is_some_and(Life::ended_somewhere);
    let reverse_stops = other.and_then(stops);
    let lineage = at(ghost, (cluster, there))?.lineage;
    let here = at(ghost, (cx.at.cluster, cx.partition()))?.life()?;
    let start = own.start().max(source.log.start());
    // Nothing can be said of what the source does not hold any more, nor where compaction has left too little to compare.
    let compacted = compacted(cx, ghost, (cluster, there));
    // A log that starts behind the other's end has nothing in common with it.
    let apart = own.start() > source.log.end();
    let common = if start > own.start() || apart || is_copied_anew(cx, ghost, own, source.log, compacted) {
        Offset::ZERO
    } else {
        let common = logs::common_end_above(own, source.log, compacted);
        // Logs that agree on nothing that both hold have nothing in common.
        if common > compacted.max(start) {
            common
        } else {
            Offset::ZERO
        }
    };
    // What is known of either direction's last session. Where one ended is known no more once its mirror is deleted; then what is local
    // since the other's is cut (decision 8), though it may have been copied.
    let end = |life: &Life| life.position.map(|position| position.offset);
    let ended = here.position_before.then(|| end(here)).flatten().max(other.filter(|_| reverse).and_then(end));
    Some(Aligning {
        common: common.min(own.high_watermark()).min(ended.unwrap_or(common)),
        own: here.position_before,
        reverse,
        lineage,
        reverse_stops,
    })
}

/// Whether a log may give up all that the two have in common: it is compacted, and what it has beyond may have taken away some of
/// that, or an end of its own that of a transaction which the source ends otherwise.
fn is_copied_anew<'a, S: Sight>(
    cx: &Cx<'_, S>,
    ghost: &Ghost,
    own: S::Log<'a>,
    source: S::Log<'a>,
    compacted: Offset,
) -> bool {
    let image = cx.at.node.and_then(|node| cx.sight.broker_image(node));
    let policy =
        image.and_then(|image| Some(image.topic_config(image.partition(cx.partition())?.topic).cleanup_policy));
    let compacts = at(ghost, (cx.at.cluster, cx.partition())).is_some_and(|g| g.compacts)
        || policy.is_some_and(|policy| policy != CleanupPolicy::Delete);
    let mut more = false;
    if compacts {
        logs::for_each(own, logs::common_end_above(own, source, compacted), own.end(), |batch| {
            more |= !batch.is_control() || batch.control_type() == Some(ControlType::Abort);
            !more
        });
    }
    more
}

/// The number of the state in which it is on its way to STOPPED.
fn stops(life: &Life) -> Option<i32> {
    Some(life.last()).filter(|last| last.state == MirrorState::Stopping).map(|last| last.state_epoch)
}

/// The step to MIRRORING.
pub(super) fn aligned<S: Sight>(cx: &mut Cx<'_, S>, ghost: &Ghost) {
    let Some((cluster, there, source)) = origin(cx, ghost) else { return };
    let Some(own) = cx.replica(cx.slot).map(|r| r.log) else { return };
    let Some(g) = at(ghost, (cluster, there)) else { return };
    let Some(life) = at(ghost, (cx.at.cluster, cx.partition())).and_then(PartitionGhost::life) else { return };
    // A source that loses what it had told is not one that anybody can be aligned to.
    if g.excuse().is_some() || life.aligning.is_some_and(|a| a.lineage != g.lineage) {
        return;
    }
    let from = own.start().max(source.log.start());
    let common = logs::common_end_above(own, source.log, compacted(cx, ghost, (cluster, there)));
    if own.end() > common && own.end() > from {
        let got = format_args!("it ends at {}, and differs from {common} on", own.end());
        cx.broken("S35", "a log that is a prefix of the source leader's", got);
    }
    let Some(aligning) = life.aligning else { return };
    let still = reverse(cx, ghost, (cluster, there)).and_then(stops);
    if still.is_some() && still == aligning.reverse_stops {
        cx.broken("S35", "the other direction STOPPED: before, where it ends is not fixed", "STOPPING");
    }
    let now = reverse(cx, ghost, (cluster, there)).is_some_and(Life::ended_somewhere);
    let known = aligning.own || (aligning.reverse && now);
    if known && own.end() < aligning.common {
        let expected = format_args!("all that both had in common, up to {}", aligning.common);
        cx.broken("S35", expected, format_args!("a log that ends at {}", own.end()));
    }
    if !known && !aligning.reverse && !now && own.end() > own.start() {
        let got = format_args!("one of {}..{}", own.start(), own.end());
        cx.broken("S35", "an empty log: the end of no session between the two is known", got);
    }
}
