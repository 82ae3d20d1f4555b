//! S5 Quorum superset. For a leader in the current epoch: without a pending proposal its maximal ISR is its ISR; if that is
//! large enough it contains the controller's ISR and ELR; the watermark moves only if |ISR| >= min.insync.replicas and the
//! *real* log of every member of the maximal ISR (not the remembered position) covers it.

use super::cx::Cx;
use super::ghost::{PartitionGhost, Stop};
use super::sight::Sight;
use mirrorlab_model::ids::{BrokerId, Offset, PartitionEpoch};

/// A leader moved its watermark to `to`. True if the rule allows it.
#[inline]
pub(super) fn watermark<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, own: usize, to: Offset) -> bool {
    // A leader that was deposed goes by what it was told in its own term. Where an order that it has not heard of cut that since, it is
    // not committed any more, whoever still holds it.
    if g.lead.slot != cx.slot && g.was_cut(to, cx.at.now) {
        return false;
    }
    let (mask, isr) = if g.lead.slot == cx.slot { (g.lead.isr | g.lead.proposed, g.lead.isr) } else { believed(cx) };
    let own_epoch = g.members[own].epoch;
    let mut bits = mask;
    while bits != 0 {
        let at = bits.trailing_zeros() as usize;
        bits &= bits - 1;
        let Some(m) = g.members.get(at) else { break };
        if m.end >= to && m.epoch == own_epoch {
            continue;
        }
        if !judge(cx, g, at, own, to) {
            return false;
        }
    }
    isr.count_ones() >= g.min_isr || enough(cx, g, isr, to)
}

/// What a leader that is not the ghost's says itself: one that was deposed and does not know.
#[cold]
fn believed<S: Sight>(cx: &Cx<'_, S>) -> (u32, u32) {
    let node = cx.at.node.unwrap_or_default();
    cx.sight.leader(node, cx.partition()).map_or((0, u32::MAX), |l| (l.isr | l.proposed, l.isr))
}

#[cold]
fn judge<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, at: usize, own: usize, to: Offset) -> bool {
    let m = g.members[at];
    if m.lossy() || !m.known() || cx.holds(g, at, own, to) {
        // A member that lost power took its records with it without its leader's knowledge: S3 and S4 count that.
        return true;
    }
    // A proposal that was refused ends without an event: the leader itself is asked before it is blamed.
    if let Some(leader) = cx.at.node.and_then(|n| cx.sight.leader(n, cx.partition())).filter(|_| g.lead.slot == cx.slot)
    {
        (g.lead.isr, g.lead.proposed) = (leader.isr, leader.proposed);
        if (leader.isr | leader.proposed) & (1 << (at as u32 & 31)) == 0 {
            return true;
        }
    }
    let expected = format_args!("a watermark that every member of the maximal ISR covers; {to} needs it up to there");
    let got = format_args!("broker {} holds it up to {} (epoch {})", m.slot + 1, m.end, m.epoch);
    cx.broken("S5", expected, got);
    false
}

#[cold]
fn enough<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, isr: u32, to: Offset) -> bool {
    // The setting may have changed since it was looked at.
    super::ghost::seat(g, cx.sight, cx.at.cluster, cx.at.node, cx.partition());
    if isr.count_ones() >= g.min_isr {
        return true;
    }
    let expected = format_args!("no watermark moves while |ISR| < {}", g.min_isr);
    cx.broken("S5", expected, format_args!("it moved to {to} with an ISR of {}", isr.count_ones()));
    false
}

/// A leader learnt a follower's position: not beyond that follower's real log.
#[inline]
pub(super) fn position<S: Sight>(
    cx: &mut Cx<'_, S>,
    g: &PartitionGhost,
    follower: BrokerId,
    position: Offset,
    stop: Option<Stop>,
) {
    let slot = super::roster::slot_of(follower);
    let Some(m) = g.position(slot).map(|at| g.members[at]) else { return };
    if position > m.end
        && m.known()
        && !m.lossy()
        && !matches!(stop, Some(Stop::Lossy | Stop::Failed | Stop::Wiped | Stop::Restored))
    {
        beyond(cx, slot, m.end, position);
    }
}

#[cold]
fn beyond<S: Sight>(cx: &mut Cx<'_, S>, slot: u16, end: Offset, position: Offset) {
    // A follower that went on to a newer epoch may have cut its log since it asked; it is believed in its old epoch only.
    let own = cx.replica(cx.slot).map(|r| r.leader_epoch);
    if own.is_some() && cx.replica(slot).map(|r| r.leader_epoch) == own {
        let got = format_args!("its log ends at {end}");
        cx.broken("S5", format_args!("a position of follower {} within its log: {position}", slot + 1), got);
    }
}

/// A leader learnt its committed ISR.
pub(super) fn committed<S: Sight>(cx: &mut Cx<'_, S>, g: &PartitionGhost, isr: u32, epoch: PartitionEpoch) {
    if epoch == g.partition_epoch && isr != g.isr {
        let own = g.brokers(g.isr);
        let expected = format_args!("the ISR {own} that the controller committed in partition epoch {epoch}");
        cx.broken("S5", expected, g.brokers(isr));
    }
}
