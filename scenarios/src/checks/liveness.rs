//! What liveness checks share: a look at the whole world after every fault ended. They are asked again and again in the
//! converge phase; what still fails when its time is over is a stall, unless it has an excuse from the list.

use super::excuses::Excuse;
use super::ghost::{Ghost, PartitionGhost};
use super::member::Member;
use super::report::{place_name, At, Report};
use super::roster::{slot_of, Roster};
use super::sight::{MirrorSight, Sight};
use mirrorlab_model::ids::{Nanos, NodeId, PartitionIx};
use std::fmt::Display;

/// Properties that hold in a cluster without a controller too: what brokers serve, clients get; and time goes on.
const OF_CLIENTS: [&str; 3] = ["L1", "L13", "L19"];

/// A partition under the eye.
#[derive(Clone, Copy)]
pub struct Spot<'a> {
    /// Its cluster.
    pub cluster: u8,
    /// Its index.
    pub ix: PartitionIx,
    /// What is known of it.
    pub ghost: &'a PartitionGhost,
}

/// The world, the ghost, and where findings go.
pub struct Look<'a, S: Sight> {
    /// The world, read-only.
    pub sight: &'a S,
    /// Who is who.
    pub roster: &'a Roster,
    /// What is known.
    pub ghost: &'a Ghost,
    /// Where findings go.
    pub report: &'a mut Report,
    /// It is only asked whether anything is left: one finding is enough.
    pub only_whether: bool,
    /// L1: when the last of what is open has timed out; nothing if none is open, or one has no such time.
    pub decided_at: Option<Nanos>,
    /// L11: when the last of the retries that are awaited is due; nothing if none is, or one is due never.
    pub retry_at: Option<Nanos>,
}

impl<'a, S: Sight> Look<'a, S> {
    /// A look at all of it.
    pub fn new(sight: &'a S, roster: &'a Roster, ghost: &'a Ghost, report: &'a mut Report) -> Self {
        Self { sight, roster, ghost, report, only_whether: false, decided_at: None, retry_at: None }
    }
    fn place(&self, cluster: u8, partition: Option<PartitionIx>, node: Option<NodeId>) -> At {
        At { cluster, partition, node, now: self.sight.now(), step: self.sight.step() }
    }
    fn spot(&self, spot: Option<Spot<'_>>, node: Option<NodeId>) -> At {
        let of_node = node.and_then(|n| self.roster.place(n)).map_or(0, |p| p.cluster);
        self.place(spot.map_or(of_node, |s| s.cluster), spot.map(|s| s.ix), node)
    }
    /// Something is not so yet.
    pub fn stall(
        &mut self,
        id: &'static str,
        spot: Option<Spot<'_>>,
        node: Option<NodeId>,
        expected: impl Display,
        got: impl Display,
    ) {
        let at = self.spot(spot, node);
        self.left(id, at, expected, got);
    }
    fn left(&mut self, id: &'static str, at: At, expected: impl Display, got: impl Display) {
        if !OF_CLIENTS.contains(&id) && self.has_no_controller(at.cluster) {
            let text = place_name(self.sight, self.roster, at);
            return self.report.excuse(id, Excuse::NoController, text);
        }
        self.report.broken(id, at, expected, got);
    }
    /// Whether so few controllers of a cluster are up that none of them can lead.
    #[must_use]
    pub fn has_no_controller(&self, cluster: u8) -> bool {
        let all = &self.roster.clusters[usize::from(cluster)].controllers;
        let up = all.iter().filter(|node| self.sight.is_up(**node)).count();
        up * 2 <= all.len()
    }
    /// Something is not so yet in a whole cluster.
    pub fn stall_at(&mut self, id: &'static str, cluster: u8, expected: impl Display, got: impl Display) {
        let at = self.place(cluster, None, None);
        self.left(id, at, expected, got);
    }
    /// Something need not be so.
    pub fn excuse(&mut self, id: &'static str, excuse: Excuse, spot: Option<Spot<'_>>, node: Option<NodeId>) {
        if self.report.takes_excuses() {
            let text = place_name(self.sight, self.roster, self.spot(spot, node));
            self.report.excuse(id, excuse, text);
        }
    }
    /// A partition that exists.
    #[must_use]
    pub fn at(&self, cluster: u8, ix: PartitionIx) -> Option<Spot<'a>> {
        self.sight.image(cluster)?.partition(ix)?;
        let ghost = self.ghost.clusters.get(usize::from(cluster))?.partitions.get(ix.0 as usize)?;
        Some(Spot { cluster, ix, ghost })
    }
    /// All partitions that exist; as far as needed, where it is only asked whether anything is left.
    pub fn each_partition(&mut self, mut each: impl FnMut(&mut Self, Spot<'a>)) {
        let (sight, ghost) = (self.sight, self.ghost);
        for (cluster, c) in (0u8..).zip(&ghost.clusters) {
            let Some(image) = sight.image(cluster) else { continue };
            for (ix, ghost) in (0u32..).map(PartitionIx).zip(&c.partitions) {
                if image.partition(ix).is_some() {
                    each(self, Spot { cluster, ix, ghost });
                }
                if self.only_whether && !self.report.is_clean() {
                    return;
                }
            }
        }
    }
    /// The mirror at the leader of a partition.
    #[must_use]
    pub fn mirror(&self, spot: Spot<'_>) -> Option<(NodeId, MirrorSight)> {
        if !spot.ghost.mirrored {
            return None;
        }
        let node = self.roster.broker(spot.cluster, slot_of(spot.ghost.leader))?;
        Some((node, self.sight.mirror(node, spot.ix)?))
    }
    /// Whether fewer replicas of a partition are up than it needs to commit.
    #[must_use]
    pub fn too_few(&self, spot: Spot<'_>) -> bool {
        let up = |m: &&Member| self.roster.broker(spot.cluster, m.slot).is_some_and(|n| self.sight.is_up(n));
        (spot.ghost.members.iter().filter(up).count() as u32) < spot.ghost.min_isr
    }
    /// Whether a replica of it is down.
    #[must_use]
    pub fn some_are_down(&self, spot: Spot<'_>) -> bool {
        let down = |m: &Member| self.roster.broker(spot.cluster, m.slot).is_none_or(|n| !self.sight.is_up(n));
        spot.ghost.members.iter().any(down)
    }
    /// Whether nobody leads the partition that this one is mirrored from.
    #[must_use]
    pub fn source_is_down(&mut self, spot: Spot<'_>) -> bool {
        let Some((cluster, there)) = self.source(spot) else { return true };
        let origin = self.at(cluster, there).map(|o| slot_of(o.ghost.leader));
        let node = origin.and_then(|slot| self.roster.broker(cluster, slot));
        node.is_none_or(|node| !self.sight.is_up(node))
    }
    /// Whether a partition's source, or the source of that, answers no question of mirrors, and its own is asked.
    #[must_use]
    pub fn source_refuses(&mut self, spot: Spot<'_>) -> bool {
        let image = self.sight.image(spot.cluster);
        let mirror = image.and_then(|image| image.mirror(image.mirror_of(image.partition(spot.ix)?.topic)?.0));
        if mirror.is_none_or(|mirror| mirror.config.allow_one_way) {
            return false;
        }
        let mut seen = vec![(spot.cluster, spot.ix)];
        while let Some((cluster, ix)) = seen.last().and_then(|(c, ix)| self.at(*c, *ix)).and_then(|at| self.source(at))
        {
            let brokers = &self.roster.clusters[usize::from(cluster)].brokers;
            if brokers.iter().any(|node| self.sight.knows_no_mirrors(*node)) {
                return true;
            }
            if seen.contains(&(cluster, ix)) {
                return false;
            }
            seen.push((cluster, ix));
        }
        false
    }
    /// Whether the source's metadata is there to be seen, and has no such partition.
    #[must_use]
    pub fn lacks_source(&mut self, spot: Spot<'_>) -> bool {
        let image = self.sight.image(spot.cluster);
        let mirror = image.and_then(|image| image.mirror(image.mirror_of(image.partition(spot.ix)?.topic)?.0));
        let source = mirror.and_then(|mirror| self.roster.source_of(spot.cluster, &mirror.name));
        source.is_some_and(|source| self.sight.image(source).is_some()) && self.source(spot).is_none()
    }
    /// Whether a partition of the source belongs to the topic that is copied.
    #[must_use]
    pub fn is_same_topic(&mut self, spot: Spot<'_>, source: (u8, PartitionIx)) -> bool {
        let at = self.spot(Some(spot), None);
        let cx = super::cx::Cx { sight: self.sight, roster: self.roster, report: self.report, at, slot: u16::MAX };
        super::s30_mirror_equality::is_same_topic(&cx, source.0, source.1)
    }
    /// Whether the source's topic is the one that is copied, and not another one under its name; `None` without any.
    #[must_use]
    pub fn has_its_topic(&self, spot: Spot<'_>) -> Option<bool> {
        let image = self.sight.image(spot.cluster)?;
        let topic = image.topic(image.partition(spot.ix)?.topic)?;
        let source = self.roster.source_of(spot.cluster, &image.mirror(topic.mirror?.0)?.name)?;
        let there = self.sight.image(source)?;
        Some(there.topic(there.topic_by_name(&topic.name)?)?.id == topic.id)
    }
    /// Where a partition is mirrored from.
    #[must_use]
    pub fn source(&mut self, spot: Spot<'_>) -> Option<(u8, PartitionIx)> {
        let at = self.spot(Some(spot), None);
        let cx = super::cx::Cx { sight: self.sight, roster: self.roster, report: self.report, at, slot: u16::MAX };
        super::s30_mirror_equality::source_of(&cx)
    }
}
