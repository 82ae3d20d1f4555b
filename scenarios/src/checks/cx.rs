//! What every check is handed, and the two questions that several of them ask.

use super::ghost::PartitionGhost;
use super::logs;
use super::report::{At, Report};
use super::roster::Roster;
use super::sight::{LogSight, ReplicaSight, Sight};
use mirrorlab_model::ids::{NodeId, Offset, PartitionIx};

/// The world, the cast, where this is, and where findings go.
pub struct Cx<'a, S: Sight> {
    /// The world, read-only.
    pub sight: &'a S,
    /// Who is who.
    pub roster: &'a Roster,
    /// Where findings go.
    pub report: &'a mut Report,
    /// Where and when this is.
    pub at: At,
    /// The slot of the node, if it is a broker; else `u16::MAX`.
    pub slot: u16,
}

impl<'a, S: Sight> Cx<'a, S> {
    /// The partition that this is about.
    #[must_use]
    pub fn partition(&self) -> PartitionIx {
        self.at.partition.unwrap_or_default()
    }
    /// The node of a slot in this cluster.
    #[must_use]
    pub fn node_of(&self, slot: u16) -> Option<NodeId> {
        self.roster.broker(self.at.cluster, slot)
    }
    /// The replica of a slot, if its broker runs.
    #[must_use]
    pub fn replica(&self, slot: u16) -> Option<ReplicaSight<S::Log<'a>>> {
        self.sight.replica(self.node_of(slot)?, self.partition())
    }
    /// A property does not hold here.
    #[cold]
    pub fn broken(&mut self, id: &'static str, expected: impl std::fmt::Display, got: impl std::fmt::Display) {
        self.report.broken(id, self.at, expected, got);
    }
    /// A property does not hold at another broker of this partition.
    #[cold]
    pub fn broken_at(
        &mut self,
        id: &'static str,
        slot: u16,
        expected: impl std::fmt::Display,
        got: impl std::fmt::Display,
    ) {
        let at = self.at.with_node(self.node_of(slot));
        self.report.broken(id, at, expected, got);
    }

    /// Whether member `m` really holds what member `of` holds below `upto`. Equal last epochs and enough length answer it
    /// (log matching); else the logs are compared. A log that cannot be looked at is given the benefit of the doubt.
    #[must_use]
    pub fn holds(&self, g: &PartitionGhost, m: usize, of: usize, upto: Offset) -> bool {
        let (member, owner) = (&g.members[m], &g.members[of]);
        if m == of {
            return member.end >= upto;
        }
        member.end >= upto
            && (member.epoch == owner.epoch || self.holds_slow(member.slot, owner.slot, g.compacted(), upto))
    }

    #[cold]
    fn holds_slow(&self, m: u16, of: u16, compacted: Offset, upto: Offset) -> bool {
        let (Some(a), Some(b)) = (self.replica(of), self.replica(m)) else { return true };
        let from = a.log.start().max(b.log.start()).max(compacted);
        logs::equal(a.log, b.log, from, upto)
    }
}
