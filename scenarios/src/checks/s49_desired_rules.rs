//! S49 Desired rules. A partition leaves STOPPED, or PAUSED for MIRRORING, only after a newer order: it does so at most as often as
//! orders to go on were committed. In STOPPED and PAUSED nothing is cut and nothing fetched, a STOPPED partition refuses no writer,
//! and nothing of a topic that is wanted STOPPED is changed for its mirror: no epoch, no partition, no state. What is wanted MIRRORING
//! or PAUSED is not deleted: it has to be stopped first (BAD-14). An order to stop comes before the cut of an alignment (decision 1), and
//! what is ordered once more is no change (decision 2). A mirror's topics are nobody's only when all that was begun is STOPPED.

use super::cx::Cx;
use super::ghost::ClusterGhost;
use super::lives::{Life, Orders};
use super::sight::Sight;
use mirrorlab_model::ids::{LeaderEpoch, TopicIx};
use mirrorlab_model::states::{DesiredState, MirrorState};

/// A state is committed behind another one.
pub(super) fn departed<S: Sight>(
    cx: &mut Cx<'_, S>,
    life: &Life,
    orders: &mut Orders,
    before: MirrorState,
    now: MirrorState,
) {
    // An order that was committed by a controller that had just come back was told by nobody.
    let desired = cx.sight.image(cx.at.cluster).and_then(|image| {
        let topic = image.partition(cx.partition())?.topic;
        Some(image.mirror_of(topic).map_or(DesiredState::Unknown, |m| m.1))
    });
    if let Some(desired) = desired.filter(|desired| *desired != orders.desired) {
        orders.note(desired);
    }
    let (from_stopped, from_paused) = life.departures;
    let (count, may) = match (before, now) {
        (MirrorState::Stopped, MirrorState::LogAlignment) => (from_stopped, orders.starts),
        (MirrorState::Paused, MirrorState::Mirroring) => (from_paused, orders.resumes),
        (MirrorState::Stopped, MirrorState::Failed) if orders.desired == DesiredState::Stopped => {
            return cx.broken("S49", "a partition that stays STOPPED, as it is wanted", "FAILED");
        }
        _ => return,
    };
    if count > may {
        let expected = format_args!("{} until an order to go on; such orders committed: {may}", before.name());
        cx.broken("S49", expected, format_args!("{}; times that it went on: {count}", now.name()));
    }
}

/// The removal of a topic is committed, of which this was wanted.
pub(super) fn removed<S: Sight>(cx: &mut Cx<'_, S>, desired: DesiredState) {
    if matches!(desired, DesiredState::Mirroring | DesiredState::Paused) {
        cx.broken("S49", "a topic that is copied or held stays until it is stopped", "it was deleted");
    }
}

/// A mirror leader of this epoch cuts or fetches.
pub(super) fn acts<S: Sight>(cx: &mut Cx<'_, S>, life: Option<&Life>, epoch: LeaderEpoch, what: &str) {
    let state = life.and_then(|life| life.upto(epoch));
    if let Some(state) = state.filter(|s| matches!(s, MirrorState::Stopped | MirrorState::Paused)) {
        cx.broken("S49", format_args!("nothing cut and nothing fetched in {}", state.name()), what);
    }
}

/// An order is committed although that was wanted already: whoever builds on what is wanted takes it for a change.
pub(super) fn ordered_again<S: Sight>(cx: &mut Cx<'_, S>, desired: DesiredState) {
    cx.broken(
        "S49",
        "nothing committed for an order that changes nothing",
        format_args!("{} once more", desired.name()),
    );
}

/// The end of a mirror is committed, and this topic is nobody's from now on.
pub(super) fn freed<S: Sight>(cx: &mut Cx<'_, S>, c: &ClusterGhost, topic: TopicIx) {
    let Some(image) = cx.sight.image(cx.at.cluster) else { return };
    let Some(partitions) = image.topic(topic).map(|topic| topic.partitions.clone()) else { return };
    for partition in partitions {
        let life = c.partitions.get(partition.0 as usize).and_then(super::ghost::PartitionGhost::life);
        let left =
            life.map(|life| life.last().state).filter(|s| !matches!(s, MirrorState::Stopped | MirrorState::Unknown));
        if let Some(state) = left {
            cx.at.partition = Some(partition);
            cx.broken("S49", "STOPPED, before its mirror is no more", state.name());
        }
    }
}

/// A mirror leader cuts its log in LOG_ALIGNMENT.
pub(super) fn aligns<S: Sight>(cx: &mut Cx<'_, S>) {
    let state = cx.at.node.and_then(|node| cx.sight.mirror(node, cx.partition())).map(|m| m.state);
    if state == Some(MirrorState::LogAlignment) && is_wanted_stopped(cx) {
        cx.broken("S49", "nothing cut by an alignment when a stop is ordered, as its leader knows", "its log was cut");
    }
}

/// A mirror leader begins to copy: as far as it knows, that is what is wanted (decision 33).
pub(super) fn fetches<S: Sight>(cx: &mut Cx<'_, S>) {
    let image = cx.at.node.and_then(|node| cx.sight.broker_image(node));
    let desired = image.and_then(|image| image.mirror_of(image.partition(cx.partition())?.topic)).map(|m| m.1);
    if let Some(desired) = desired.filter(|d| matches!(d, DesiredState::Paused | DesiredState::Stopped)) {
        cx.broken("S49", format_args!("no fetcher where {} is wanted", desired.name()), "one took it up");
    }
}

/// Whether the broker knows of an order that this partition be STOPPED.
fn is_wanted_stopped<S: Sight>(cx: &Cx<'_, S>) -> bool {
    let image = cx.at.node.and_then(|node| cx.sight.broker_image(node));
    let desired = image.and_then(|image| image.mirror_of(image.partition(cx.partition())?.topic)).map(|m| m.1);
    desired == Some(DesiredState::Stopped)
}

/// A writer was told that the partition is read-only.
pub(super) fn refused<S: Sight>(cx: &mut Cx<'_, S>) {
    let state = cx.at.node.and_then(|node| cx.sight.mirror(node, cx.partition())).map(|m| m.state);
    if state == Some(MirrorState::Stopped) && is_wanted_stopped(cx) {
        cx.broken("S49", "a STOPPED partition that takes what its producers send", "read-only");
    }
}

/// More partitions of a topic were asked for, because its source has more.
pub(super) fn grew<S: Sight>(cx: &mut Cx<'_, S>, topic: TopicIx) {
    let image = cx.at.node.and_then(|node| cx.sight.broker_image(node));
    let Some(topic) = image.and_then(|image| image.topic(topic)) else { return };
    if topic.mirror.is_some_and(|(_, desired)| desired == DesiredState::Stopped) {
        let got = format_args!("more partitions of {} were asked for", topic.name).to_string();
        cx.broken("S49", "no change of a topic that is wanted STOPPED by its mirror's sync", got);
    }
}

/// A higher leader epoch was asked for.
pub(super) fn bumped<S: Sight>(cx: &mut Cx<'_, S>, c: &ClusterGhost) {
    let life = c.partitions.get(cx.partition().0 as usize).and_then(super::ghost::PartitionGhost::life);
    if life.is_some_and(|life| life.last().state == MirrorState::Stopped) && is_wanted_stopped(cx) {
        cx.broken("S49", "no leader epoch of a STOPPED partition changed for its mirror", "a bump was asked for");
    }
}
