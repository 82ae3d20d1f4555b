//! S12 Membership. ISR and ELR are disjoint subsets of the replicas; no fenced member enters the ISR; the ELR is empty when
//! the ISR is large enough; the leader is in the ISR, or there is none; the ISR does not grow while recovery is open. A broker
//! registers where it was formatted for, and is let in when it knows of its registration.

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::sight::Sight;
use mirrorlab_model::ids::BrokerId;

/// What the controller made of a partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub leader: BrokerId,
    /// The leader epoch is the one before: no election, which may put another ISR in the place of the old one.
    pub same_term: bool,
    pub isr: u32,
    pub elr: u32,
}

/// The controller committed a change; `fenced` tells of a slot whether it is fenced.
pub(super) fn changed<S: Sight>(
    cx: &mut Cx<'_, S>,
    g: &PartitionGhost,
    new: Change,
    before: u32,
    fenced: impl Fn(u16) -> bool,
) {
    let Change { leader, isr, elr, .. } = new;
    let all = if g.members.len() >= 32 { u32::MAX } else { (1 << g.members.len()) - 1 };
    if g.members.is_empty() {
        return;
    }
    if (isr | elr) & !all != 0 || isr & elr != 0 {
        let got = format_args!("ISR {}, ELR {}, replicas {}", g.brokers(isr), g.brokers(elr), g.brokers(all));
        cx.broken("S12", "ISR and ELR: disjoint subsets of the replicas", got);
    }
    if elr != 0 && isr.count_ones() >= g.min_isr {
        let expected = format_args!("no ELR while |ISR| >= {}", g.min_isr);
        cx.broken("S12", expected, format_args!("ISR {}, ELR {}", g.brokers(isr), g.brokers(elr)));
    }
    if leader != BrokerId::NONE {
        let bit = g.position(super::roster::slot_of(leader)).map_or(0, |at| 1 << (at as u32 & 31));
        if isr & bit == 0 {
            let got = format_args!("leader broker {leader}, ISR {}", g.brokers(isr));
            cx.broken("S12", "a leader that is in the ISR", got);
        }
    }
    let grown = isr & !before;
    if let Some((_, m)) = g.of_mask(grown).find(|(_, m)| fenced(m.slot)) {
        cx.broken("S12", "no fenced broker enters the ISR", format_args!("broker {} does", m.slot + 1));
    }
    let recovering =
        cx.sight.image(cx.at.cluster).and_then(|i| i.partition(cx.partition())).is_some_and(|p| p.state.recovering);
    if recovering && new.same_term && grown != 0 && before != 0 {
        let got = format_args!("ISR {} became {}", g.brokers(before), g.brokers(isr));
        cx.broken("S12", "an ISR that does not grow while recovery is open", got);
    }
}

/// A broker got its registration.
pub(super) fn registered<S: Sight>(cx: &mut Cx<'_, S>) {
    let Some(own) = cx.at.node.and_then(|node| cx.sight.cluster_id(node)) else { return };
    let controllers = cx.roster.clusters.get(usize::from(cx.at.cluster)).map_or(&[][..], |c| &c.controllers);
    let Some(theirs) = controllers.iter().find_map(|node| cx.sight.cluster_id(*node)) else { return };
    if own != theirs {
        cx.broken(
            "S12",
            format_args!("brokers that were formatted for cluster {theirs}"),
            format_args!("one for {own}"),
        );
    }
}

/// The controller let a broker in.
pub(super) fn let_in<S: Sight>(cx: &mut Cx<'_, S>, broker: BrokerId) {
    let brokers = cx.roster.clusters.get(usize::from(cx.at.cluster)).map_or(&[][..], |c| &c.brokers);
    let Some(node) = brokers.get(usize::from(super::roster::slot_of(broker))).copied() else { return };
    let registered = |image: &mirrorlab_model::metadata::image::MetadataImage| image.broker(broker).map(|b| b.epoch);
    let Some(epoch) = cx.sight.image(cx.at.cluster).and_then(registered) else { return };
    // One that was started again since is another process.
    let known = cx.sight.broker_image(node).map(registered);
    if cx.sight.broker_epoch(node) == Some(epoch) && known.is_some_and(|known| known != Some(epoch)) {
        let expected = format_args!("broker {broker} fenced until it knows its registration in epoch {epoch}");
        let known = known.flatten().map_or_else(|| "none".to_owned(), |known| format!("that in epoch {known}"));
        cx.broken("S12", expected, format_args!("let in; it knows {known}"));
    }
}
