//! S6 No global loss. Every acknowledged record (acks=all) that was not removed by retention, DeleteRecords or an ordered cut
//! is held by some replica. On a mirror: what was acknowledged after a failover is not cut unless a failback was ordered, and what was
//! mirrored is not cut because the source has something else, unless the topic follows unclean elections or an operator recovered
//! it (decision 39).

use super::cx::Cx;
use super::excuses::Excuse;
use super::ghost::PartitionGhost;
use super::report::place_name;
use super::sight::{LogSight, Sight};
use mirrorlab_model::ids::Offset;
use mirrorlab_model::states::{DesiredState, MirrorState};
use mirrorlab_model::trace::CutCause;

/// At the end: somebody holds it all.
pub(super) fn at_end<S: Sight>(cx: &mut Cx<'_, S>, g: &PartitionGhost) {
    let end = g.acked.end();
    if end == Offset::ZERO {
        return;
    }
    let held = g.members.iter().filter_map(|m| cx.replica(m.slot)).any(|replica| {
        replica.log.end() >= end && g.more.as_ref().is_none_or(|more| more.chain.compare(replica.log).is_ok())
    });
    let somebody_is_down = g.members.iter().any(|m| cx.replica(m.slot).is_none());
    if !held && !somebody_is_down {
        if let Some(excuse) = g.excuse() {
            return cx.report.excuse("S6", excuse, place_name(cx.sight, cx.roster, cx.at));
        }
        let best = g.members.iter().map(|m| m.end).max().unwrap_or_default();
        let got = format_args!("the longest log ends at {best}, or differs from what was committed");
        cx.broken("S6", format_args!("some replica that holds all acknowledged records, up to {end}"), got);
    }
}

/// A mirror leader cut records that its source does not have: somebody allowed that.
pub(super) fn diverged<S: Sight>(cx: &mut Cx<'_, S>, from: Offset, to: Offset) {
    let image = cx.at.node.and_then(|node| cx.sight.broker_image(node));
    let Some((image, topic)) = image.and_then(|image| Some((image, image.partition(cx.partition())?.topic))) else {
        return;
    };
    let Some(name) = image.topic(topic).map(|t| t.name.clone()) else { return };
    let Some(mirror) = image.mirror_of(topic).and_then(|(mirror, _)| image.mirror(mirror)) else { return };
    let supported = image.topic_config(topic).mirror_support_unclean_leader_election;
    if to < from && !supported && cx.sight.recoveries(cx.at.cluster, &mirror.name, &name) == 0 {
        let expected = "a log that is kept where the source contradicts it: unclean elections are not followed here";
        cx.broken("S6", expected, format_args!("{to}..{from} was cut, and no operator recovered it"));
    }
}

/// A mirror leader cut its log below what was committed there. Begins a new lineage.
pub(super) fn mirror_cut<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, to: Offset, cause: CutCause) {
    let acked = g.acked.iter().filter(|r| r.1 > to).map(|r| r.1 .0 - r.0.max(to).0).sum::<i64>();
    let excuse = if cause == CutCause::MirrorDivergence && acked == 0 { Excuse::SourceCut } else { Excuse::OrderedCut };
    if acked > 0 {
        let node = cx.at.node.unwrap_or_default();
        let desired = cx
            .sight
            .broker_image(node)
            .and_then(|image| image.partition(cx.partition()).and_then(|p| image.mirror_of(p.topic)).map(|m| m.1));
        // An operator who orders mirroring of a partition that has records of its own orders their cut, and may order something
        // else before it is done: an alignment that is committed was ordered (S49).
        let aligns = g.life().and_then(|life| life.upto(g.lead.epoch)) == Some(MirrorState::LogAlignment);
        if !aligns && !matches!(desired, Some(DesiredState::Mirroring | DesiredState::Paused)) {
            let expected = format_args!("acknowledged records that stay: {acked} lie above {to}");
            cx.broken(
                "S6",
                expected,
                format_args!("cut ({}); nobody ordered this partition to be mirrored", cause.name()),
            );
        }
    }
    let from = g.true_hw;
    if to < from {
        let text =
            format!("{acked} acknowledged records of {to}..{from} in {}", place_name(cx.sight, cx.roster, cx.at));
        cx.report.excuse("S6", excuse, text);
    }
    g.cut(to, excuse, cx.at.now, cx.at.step);
}
