//! S37 State machine. Every committed change of state is in the table of spec 2.2; its state epoch is above the one before; its
//! writer leads the partition in the leader epoch that it names. In each leader epoch one broker runs what belongs to states. What
//! failed for good goes on only when an operator said so, or to be stopped.

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::lives::Life;
use super::sight::Sight;
use mirrorlab_model::ids::LeaderEpoch;
use mirrorlab_model::states::{MirrorState, StateRecord};

/// A state is committed. `known`: the controller's leader epoch.
pub(super) fn committed<S: Sight>(cx: &mut Cx<'_, S>, life: &Life, record: &StateRecord, known: LeaderEpoch) {
    let before = life.last();
    if !record.state.can_follow(before.state) {
        let expected = format_args!("a state that may follow {}", before.state.name());
        cx.broken("S37", expected, record.state.name());
    }
    let unaligned = before.state == MirrorState::Failed && life.previous == MirrorState::LogAlignment;
    if unaligned && record.state == MirrorState::Mirroring {
        cx.broken("S37", "LOG_ALIGNMENT again: it failed before it was aligned", record.state.name());
    }
    if record.state_epoch <= before.state_epoch {
        cx.broken("S37", format_args!("a state epoch above {}", before.state_epoch), record.state_epoch);
    }
    if record.leader_epoch < before.leader_epoch {
        cx.broken("S37", format_args!("a leader epoch of {} or above", before.leader_epoch), record.leader_epoch);
    }
    if known != LeaderEpoch::NONE && record.leader_epoch > known {
        cx.broken("S37", format_args!("a leader epoch up to {known}, the controller's"), record.leader_epoch);
    }
}

/// It went on after it had failed for good.
pub(super) fn recovered<S: Sight>(cx: &mut Cx<'_, S>, life: &Life) {
    let Some(image) = cx.sight.image(cx.at.cluster) else { return };
    let Some(topic) = image.partition(cx.partition()).and_then(|entry| image.topic(entry.topic)) else { return };
    let ordered = cx.sight.recoveries(cx.at.cluster, &life.mirror, &topic.name);
    if life.recoveries > ordered {
        let expected = format_args!("FAILED for good until an operator recovers it; such orders: {ordered}");
        cx.broken("S37", expected, format_args!("it went on; times that it did: {}", life.recoveries));
    }
}

/// A broker acts on a state that it had committed. `wrote`: it is its own write.
pub(super) fn acts<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, wrote: bool) {
    let (Some(node), Some(replica)) = (cx.at.node, cx.replica(cx.slot)) else { return };
    let epoch = replica.leader_epoch;
    let known = cx.sight.mirror(node, cx.partition()).map(|m| m.state_epoch);
    let Some(life) = g.more.as_mut().and_then(|m| m.life.as_mut()) else { return };
    if !replica.leads {
        return cx.broken("S37", "the partition's leader, and nobody else, to act on its state", "a follower");
    }
    let written = known.and_then(|known| life.numbered(known)).map(|c| c.leader_epoch);
    if let Some(other) = written.filter(|other| wrote && *other > epoch) {
        let expected = format_args!("no state by a leader of epoch {epoch} behind one of epoch {other}");
        return cx.broken("S37", expected, "one was committed");
    }
    let (held, actor) = life.actor;
    if held == epoch && actor != node {
        let expected = format_args!("one actor in epoch {epoch}: {}", cx.roster.name(actor));
        let got = cx.roster.name(node).to_owned();
        return cx.broken("S37", expected.to_string(), got);
    }
    if epoch > held {
        life.actor = (epoch, node);
    }
}
