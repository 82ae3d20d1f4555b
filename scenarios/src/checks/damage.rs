//! Damage that disks do: bits that flip, and older copies that are put back. The world tells the ghost what it did, so that what
//! follows from it can be told from what a system did wrong.
//!
//! Rotten logs are looked at as they were written (`world_sight`), so each check goes on as if nothing had happened: rotten bytes
//! that a reader, a follower or a mirror took for good ones are found by whoever compares (S1, S2, S8, S30). What is excused is what
//! follows from refusing them: a log that ends right before them when it was loaded (S15, and S3 if enough replicas lost
//! something), and whoever does not get past them (L2, L5, L6, L8, L11, L13).

use super::core::Core;
use super::cx::Cx;
use super::excuses::Excuse;
use super::ghost::{Copied, PartitionGhost, Rot};
use super::liveness::{Look, Spot};
use super::report::place_name;
use super::roster::{slot_of, Part, Place};
use super::sight::{LogSight, RotSight, Sight};
use mirrorlab_model::ids::{NodeId, Offset, PartitionIx};

impl Core {
    /// Bits of what a node's disk holds flipped: which batches that were.
    pub fn rotted<S: Sight>(&mut self, sight: &S, node: NodeId) {
        let Some(Place { cluster, part: Part::Broker(slot) }) = self.roster.place(node) else { return };
        let Some(c) = self.ghost.clusters.get_mut(usize::from(cluster)) else { return };
        for (ix, g) in c.partitions.iter_mut().enumerate() {
            for RotSight { from, to, holds } in sight.rotten(node, PartitionIx(ix as u32)) {
                let known = |r: &Rot| (r.slot, r.from, r.gone) == (slot, from, false);
                let rotten = &mut g.more().rotten;
                if !rotten.iter().any(known) {
                    rotten.push(Rot { slot, from, to, holds, found: false, gone: false });
                }
            }
        }
    }

    /// A copy of a node's disk was made, whatever runs there.
    pub fn copied<S: Sight>(&mut self, sight: &S, node: NodeId) {
        let Some(Place { cluster, part: Part::Broker(slot) }) = self.roster.place(node) else { return };
        let Some(c) = self.ghost.clusters.get_mut(usize::from(cluster)) else { return };
        c.copies.retain(|(of, _), _| *of != slot);
        for (ix, g) in c.partitions.iter().enumerate() {
            let Some(member) = g.members.iter().find(|m| m.slot == slot) else { continue };
            let ix = PartitionIx(ix as u32);
            // What a broker that is down finds on its disk is known when it looks.
            let log = sight.replica(node, ix).filter(|replica| !replica.offline).map(|replica| replica.log.end());
            let rotten = g.more.as_ref().map_or(&[][..], |more| &more.rotten);
            let rotten = rotten.iter().filter(|rot| rot.slot == slot && !rot.gone).copied().collect();
            c.copies.insert((slot, ix), Copied { member: *member, whole: log == Some(member.end), rotten });
        }
    }
}

/// A disk was put back: what had rotted when it was copied is there again, and nothing else that rotted there.
pub(super) fn is_put_back(g: &mut PartitionGhost, slot: u16, copy: Option<&Copied>) {
    let again = copy.map_or(&[][..], |copy| &copy.rotten);
    if again.is_empty() && g.more.is_none() {
        return;
    }
    let rotten = &mut g.more().rotten;
    for rot in rotten.iter_mut().filter(|rot| rot.slot == slot) {
        rot.gone = true;
    }
    rotten.extend(again.iter().map(|rot| Rot { gone: false, ..*rot }));
}

/// A replica's log ends at `end` now. Whether that is right before a batch that rotted there; what is above is there no more.
pub(super) fn is_cut(g: &mut PartitionGhost, slot: u16, end: Offset) -> bool {
    let Some(more) = g.more.as_mut() else { return false };
    let mut cut = false;
    for rot in more.rotten.iter_mut().filter(|r| r.slot == slot && !r.gone && r.from >= end) {
        rot.gone = true;
        rot.found |= rot.from == end;
        cut |= rot.from == end;
    }
    cut
}

/// Somebody refused what should be a batch at this offset.
pub(super) fn found(g: &mut PartitionGhost, at: Offset) {
    let rotten = g.more.as_mut().map_or(&mut [][..], |more| &mut more.rotten);
    for rot in rotten.iter_mut().filter(|r| r.from <= at && at < r.holds) {
        rot.found = true;
    }
}

/// Whether whoever reads a replica's log from here on meets a rotten batch at once.
pub(super) fn stands_before<S: Sight>(sight: &S, node: NodeId, partition: PartitionIx, at: Offset) -> bool {
    sight.rotten(node, partition).iter().any(|rot| rot.from <= at && at < rot.holds)
}

impl<'a, S: Sight> Look<'a, S> {
    /// Whether a reader of a partition's leader does not get past this offset, because the leader's log rotted there.
    #[must_use]
    pub fn is_rotten_at(&self, spot: Spot<'_>, at: Offset) -> bool {
        let leader = self.roster.broker(spot.cluster, slot_of(spot.ghost.leader));
        leader.is_some_and(|node| stands_before(self.sight, node, spot.ix, at))
    }
    /// Whether a follower of a partition does not get past what rotted at its leader.
    #[must_use]
    pub fn rot_holds_a_follower(&self, spot: Spot<'_>) -> bool {
        let leader = slot_of(spot.ghost.leader);
        spot.ghost.members.iter().any(|m| m.slot != leader && self.is_rotten_at(spot, m.end))
    }
    /// Whether a mirrored partition does not get past what rotted at its source's leader, or its own replicas past what rotted
    /// at theirs.
    #[must_use]
    pub fn rot_holds_a_mirror(&mut self, spot: Spot<'_>) -> bool {
        let own = self.roster.broker(spot.cluster, slot_of(spot.ghost.leader));
        let end = own.and_then(|node| self.sight.replica(node, spot.ix)).map(|replica| replica.log.end());
        let source = self.source(spot).and_then(|(cluster, there)| self.at(cluster, there));
        let held = source.zip(end).is_some_and(|(source, end)| self.is_rotten_at(source, end));
        // A source whose watermark stands told a higher one before, when another one led.
        let stands = source.is_some_and(|source| self.rot_holds_a_follower(source));
        held || stands || self.rot_holds_a_follower(spot)
    }
}

/// At the end: acknowledged records that no replica has but as rot.
pub(super) fn at_end<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost) {
    let Some(more) = g.more.as_ref().filter(|more| !more.rotten.is_empty()) else { return };
    let nodes = || g.members.iter().filter_map(|m| cx.node_of(m.slot));
    let lost = |rot: &&Rot| {
        let lacks = |node: NodeId| {
            let replica = cx.sight.replica(node, cx.partition());
            stands_before(cx.sight, node, cx.partition(), rot.from)
                || replica.is_some_and(|replica| replica.log.end() <= rot.from || replica.log.start() > rot.from)
        };
        !rot.gone && nodes().all(lacks)
    };
    let mut batches: Vec<(Offset, Offset)> = more.rotten.iter().filter(lost).map(|r| (r.from, r.to)).collect();
    batches.sort_unstable();
    batches.dedup();
    let acked = |(from, to): &(Offset, Offset)| -> i64 {
        g.acked.iter().map(|(a, b)| (b.0.min(to.0) - a.0.max(from.0)).max(0)).sum()
    };
    let records: i64 = batches.iter().map(acked).sum();
    if records > 0 {
        let text = format!("{records} acknowledged records that rotted in {}", place_name(cx.sight, cx.roster, cx.at));
        cx.report.excuse("S6", Excuse::BitRot, text);
        g.more().rotten_away = records as u64;
    }
}
