//! S3 Leader completeness. If the controller's leader is up and knows that it leads in that epoch, its log end is not below
//! the true high watermark, and it holds every record that was acknowledged with acks=all, at the acknowledged offset.
//! Excused by unclean elections (the exact loss is reported), and by `min.insync.replicas` or more lossy crashes at a time.

use super::cx::Cx;
use super::excuses::Excuse;
use super::ghost::PartitionGhost;
use super::s04_candidate_completeness;
use super::sight::{LogSight, Sight};
use mirrorlab_model::ids::{LeaderEpoch, Offset};

/// This broker became leader. Whatever is excused begins a new lineage here.
pub(super) fn became_leader<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, epoch: LeaderEpoch) {
    let stale = epoch < g.leader_epoch || super::roster::slot_of(g.leader) != cx.slot;
    let Some(at) = g.position(cx.slot) else { return };
    if stale || !g.members[at].known() {
        return;
    }
    let Some(kept) = kept(cx, g, at) else {
        // Nothing is missing: whatever was to be excused is over, and so are this replica's own losses.
        if g.unclean <= epoch {
            g.unclean = LeaderEpoch::NONE;
        }
        g.members[at].absolve();
        return;
    };
    if kept == g.members[at].end && g.members[at].aligned_early() && s04_candidate_completeness::aligns(g) {
        // The cut was ordered; a leader that was deposed and did not know it carried it out first, and this one followed.
        g.cut(kept, Excuse::OrderedCut, cx.at.now, cx.at.step);
        g.members[at].absolve();
        return;
    }
    let true_hw = g.true_hw;
    let lost = g.acked.iter().filter(|r| r.1 > kept).map(|r| r.1 .0 - r.0.max(kept).0).sum::<i64>();
    match g.excuse() {
        Some(excuse) => {
            let text = format!("{lost} acknowledged records of {kept}..{true_hw} in {}", place(cx));
            cx.report.excuse("S3", excuse, text);
            g.cut(kept, excuse, cx.at.now, cx.at.step);
        }
        None => {
            let got = format_args!(
                "its log has what was committed up to {kept} only; {lost} acknowledged records are not in it"
            );
            cx.broken("S3", format_args!("a leader of epoch {epoch} that holds everything below {true_hw}"), got);
            // The run goes on from here as if it had been excused, for a caller who wants to see more.
            g.cut(kept, Excuse::LossyCrashes, cx.at.now, cx.at.step);
        }
    }
    g.unclean = LeaderEpoch::NONE;
    g.members[at].absolve();
}

/// Up to where a member's log holds what was committed; `None` if it holds all of it.
fn kept<S: Sight>(cx: &Cx<'_, S>, g: &PartitionGhost, at: usize) -> Option<Offset> {
    let member = &g.members[at];
    let by_length = g.lacks(member.end).then_some(member.end);
    let Some(more) = &g.more else { return by_length };
    let Some(replica) = cx.replica(member.slot) else { return by_length };
    if replica.log.end() < more.chain.end {
        // Short of what is gone below the log start lacks nothing (a mirror whose source's retention was faster). Too short: the
        // common part is asked for up to its end.
        let end = replica.log.end();
        let mut chain = more.chain.clone();
        chain.cut(end);
        return g.lacks(end).then(|| chain.compare(replica.log).err().unwrap_or(end));
    }
    more.chain.compare(replica.log).err().or(by_length)
}

fn place<S: Sight>(cx: &Cx<'_, S>) -> String {
    super::report::place_name(cx.sight, cx.roster, cx.at)
}
