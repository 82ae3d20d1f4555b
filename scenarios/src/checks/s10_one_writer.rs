//! S10 One writer per epoch. In each leader epoch of a partition at most one broker appends as leader, and it is the one that
//! the controller named. Of a mirrored partition at most one broker runs a fetcher that can append, and it leads.

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::sight::Sight;
use mirrorlab_model::ids::LeaderEpoch;

/// A broker appended as leader, or took up leadership.
#[inline]
pub(super) fn writes<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, epoch: LeaderEpoch) {
    if g.writer == (epoch, cx.slot) {
        return;
    }
    new_writer(cx, g, epoch);
}

#[cold]
fn new_writer<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, epoch: LeaderEpoch) {
    if let Err(other) = g.note_writer(epoch, cx.slot) {
        let got = format_args!("broker {} writes in it, after broker {}", cx.slot + 1, other + 1);
        let at = cx.at;
        cx.report.broken("S10", at, format_args!("one writer in epoch {epoch}"), got);
        return;
    }
    let leader = super::roster::slot_of(g.leader);
    if epoch == g.leader_epoch && leader != cx.slot {
        let expected = format_args!("the writer of epoch {epoch} that the controller named: broker {}", g.leader);
        cx.broken("S10", expected, format_args!("broker {}", cx.slot + 1));
    }
}

/// A fetcher took up a mirrored partition here.
pub(super) fn fetches<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost) {
    let node = cx.at.node.unwrap_or_default();
    let epoch = |n| cx.sight.replica(n, cx.partition()).map(|r| (r.leads, r.leader_epoch));
    let own = epoch(node);
    if own.is_some_and(|(leads, _)| !leads) {
        return cx.broken("S10", "a mirror fetcher at the leader only", "a fetcher at a broker that does not lead");
    }
    // A deposed leader fetches on until it hears of it: two fetchers are wrong within one leader epoch.
    let rival = g.more().fetchers.iter().map(|f| f.0).find(|n| *n != node && own.is_some() && epoch(*n) == own);
    if let Some(rival) = rival {
        let got = format_args!("{} fetches it in the same leader epoch", cx.roster.name(rival).to_owned());
        cx.broken("S10", "one mirror fetcher per partition", got);
    }
}
