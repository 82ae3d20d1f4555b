//! S14 Unclean exclusion. After a lossy stop a replica is neither leader nor in ISR or ELR until a fetch in its present broker
//! epoch reached its leader's watermark and epoch start.

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::sight::Sight;

/// The ISR grew from `before` to `after`: who enters it holds what is committed.
pub(super) fn entered<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, before: u32, after: u32) {
    let leader = g.position(super::roster::slot_of(g.leader));
    let grown = after & !before;
    for at in 0..g.members.len() {
        // A leader that enters by its election is S3's: what it lacks needs the excuse that its own stop gives.
        if grown & (1 << (at as u32 & 31)) == 0 || Some(at) == leader {
            continue;
        }
        let m = g.members[at];
        let lacks = m.known() && g.lacks(m.end);
        if lacks && g.excuse().is_none() {
            let expected = format_args!("an ISR member that reached what is committed ({})", g.true_hw);
            cx.broken_at("S14", m.slot, expected, format_args!("it enters with its log end at {}", m.end));
        } else if !lacks {
            // Who lacks it has lost it since its leader asked for it: it is out again once it registers.
            g.members[at].absolve();
        }
    }
}

/// A broker came back after an unclean stop, and is registered: the controller has put it out of both sets. A lone ISR
/// member without eligible leader replicas stays, because nobody else could ever lead (the rule before KIP-966).
pub(super) fn registered<S: Sight>(cx: &mut Cx<'_, S>, g: &PartitionGhost) {
    // Nobody asks a controller about the topic of a partition that is no more.
    if cx.sight.image(cx.at.cluster).is_some_and(|image| image.partition(cx.partition()).is_none()) {
        return;
    }
    let Some(at) = g.position(cx.slot).filter(|at| g.members[*at].lossy()) else { return };
    let bit = 1 << (at as u32 & 31);
    let others = (g.isr | g.elr) & !bit != 0;
    if (g.isr & bit != 0 && others) || g.elr & bit != 0 {
        let got = format_args!("broker {} in ISR {} or ELR {}", cx.slot + 1, g.brokers(g.isr), g.brokers(g.elr));
        cx.broken("S14", "a broker outside of ISR and ELR after a lossy stop", got);
    }
}
