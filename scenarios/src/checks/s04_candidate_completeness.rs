//! S4 Candidate completeness. Every member of ISR and ELR that is up has a log end not below the true high watermark, and a
//! log equal to the leader's below it. Same excuses as S3. An alignment was ordered to cut what was committed: while it is under way, a
//! leader that was deposed and does not know it may carry it out before its successor does, and who follows it still does so too.

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::report::place_name;
use super::sight::Sight;
use mirrorlab_model::ids::Offset;
use mirrorlab_model::states::MirrorState;
use mirrorlab_model::trace::CutCause;

/// All candidates of a partition, compared with its leader.
pub(super) fn candidates<S: Sight>(cx: &mut Cx<'_, S>, g: &PartitionGhost) {
    let of = g.position(super::roster::slot_of(g.leader));
    for (m, member) in g.of_mask(g.isr | g.elr) {
        // One that lost power is S14's: it must not be in either set once the controller knows.
        if member.lossy() || !member.known() || !cx.node_of(member.slot).is_some_and(|n| cx.sight.is_up(n)) {
            continue;
        }
        let short = g.lacks(member.end);
        if short && member.aligned_early() && aligns(g) {
            continue;
        }
        let alike =
            |of: usize| member.end < g.true_hw || g.members[of].end < g.true_hw || cx.holds(g, m, of, g.true_hw);
        if !short && of.is_none_or(alike) {
            continue;
        }
        let slot = member.slot;
        if let Some(excuse) = g.excuse() {
            let text = place_name(cx.sight, cx.roster, cx.at.with_node(cx.node_of(slot)));
            cx.report.excuse("S4", excuse, text);
            continue;
        }
        let what = if short { "its log ends before that" } else { "its log differs from the leader's below that" };
        let got = format_args!("{what}: end {}, last epoch {}", member.end, member.epoch);
        cx.broken_at("S4", slot, format_args!("a candidate that holds everything below {}", g.true_hw), got);
    }
}

/// Up to where a replica holds what an alignment cut at its leader, and knows that it was committed: that comes back with the next
/// one, who was not told, and is cut again.
pub(super) fn comes_back(g: &PartitionGhost, slot: u16) -> Offset {
    let member = g.position(slot).filter(|_| aligns(g)).and_then(|at| g.members.get(at));
    member.map_or(Offset::ZERO, |member| member.hw.min(member.end).min(g.once_committed(true)))
}

/// What is to be cut is committed no more, whoever cuts it first.
pub(super) fn aligns(g: &PartitionGhost) -> bool {
    g.life().is_some_and(|life| match life.last().state {
        MirrorState::Failed => life.previous == MirrorState::LogAlignment,
        state => state == MirrorState::LogAlignment,
    })
}

/// A follower cut its log to `to`, or a leader that does not know of its end.
#[inline]
pub(super) fn truncated<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, m: usize, to: Offset, cause: CutCause) {
    let member = &g.members[m];
    if !g.lacks(to) || member.lossy() || g.excuse().is_some() {
        return;
    }
    // Who has heard of the present leader follows that, which has cut nothing yet.
    let has_not_heard = || cx.replica(cx.slot).is_some_and(|own| own.leader_epoch < g.leader_epoch);
    let aligned = || g.members.iter().any(|m| m.aligned_early() && m.end <= to);
    let follows = || cause == CutCause::Divergence && aligned() && has_not_heard();
    let early = aligns(g) && (cause == CutCause::Alignment || follows());
    g.members[m].set_aligned_early(early);
    let candidate = (g.isr | g.elr) & (1 << (m as u32 & 31)) != 0;
    if candidate && !early {
        let expected = format_args!("no candidate cuts below what is committed ({})", g.true_hw);
        cx.broken("S4", expected, format_args!("it was cut to {to} ({})", cause.name()));
    }
}
