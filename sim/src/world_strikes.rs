//! Strikes of the world that are more than the end of a process: crashes within a start, chosen losses, lanes that are slow for
//! a while, disks that are set back.

use super::World;
use crate::disk::{CrashRules, DiskCopy};
use crate::foreign::Foreign;
use crate::node::{LastStop, Process, Program, SlowLane};
use mirrorlab_model::ids::{ConnId, Nanos, NodeId, Now};
use mirrorlab_model::ports::{Cx, Lane};
use mirrorlab_model::wire::messages::Body;

impl World {
    /// Takes the power away; what was not flushed is subject to these rules.
    pub fn power_loss_by(&mut self, node: NodeId, rules: &CrashRules) {
        self.bring_down_by(node, LastStop::PowerLoss, rules);
    }

    /// Brings a process down now and starts it again at once; that start ends inside itself: its disk calls and effects form one
    /// ordered journal, which is cut after a drawn entry.
    pub fn crash_at_start(&mut self, node: NodeId, how: LastStop) {
        self.bring_down(node, how);
        self.nodes[usize::from(node.0)].doom_at_start = Some(how);
        self.start(node);
    }

    /// Clusters whose answers to others are wrong now and then.
    pub fn foreign_mut(&mut self) -> &mut Foreign {
        &mut self.foreign
    }

    /// The same, to be looked at.
    #[must_use]
    pub fn foreign(&self) -> &Foreign {
        &self.foreign
    }

    /// An answer that reaches a broker of another cluster may be another one.
    #[cold]
    pub(super) fn pass_foreign(&mut self, conn: ConnId, to: NodeId, body: &mut Body) {
        let cluster = |node: NodeId| self.nodes[usize::from(node.0)].cluster;
        let Some(from) = self.net.acceptor(conn) else { return };
        if let (Some(here), Some(there)) = (cluster(from), cluster(to)) {
            if here != there {
                self.foreign.pass(self.seed, here, from, to, body);
            }
        }
    }

    /// A start that is cut; one that writes nothing ends right after it.
    pub(super) fn start_in_vain(
        &mut self,
        node: NodeId,
        how: LastStop,
        boot: impl FnOnce(&mut Option<Process>, &Program, Now, &mut Cx<'_>),
    ) {
        self.run_doomed(node, None, how, boot);
        if self.nodes[usize::from(node.0)].process.is_some() {
            self.bring_down(node, how);
        }
    }

    /// Makes one lane of a node slow: every wake takes `extra` longer, until an instant.
    pub fn slow_lane(&mut self, node: NodeId, lane: Lane, extra: Nanos, until: Nanos) {
        self.nodes[usize::from(node.0)].slow.push(SlowLane { lane, extra, until });
    }

    /// Ends what [`World::slow_lane`] began with the same lane and delay.
    pub fn quicken_lane(&mut self, node: NodeId, lane: Lane, extra: Nanos) {
        self.nodes[usize::from(node.0)].slow.retain(|slow| (slow.lane, slow.extra) != (lane, extra));
    }

    /// No point of perturbation fires any more, at any node.
    pub fn disarm_points(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.guards.points.disarm());
    }

    /// The lanes of a node that are slow now.
    pub fn slow_lanes(&self, node: NodeId) -> impl Iterator<Item = &SlowLane> {
        self.nodes[usize::from(node.0)].slow.iter().filter(|slow| slow.until > self.now)
    }

    /// What a node's disk holds, page cache and all.
    pub fn copy_disk(&mut self, node: NodeId) -> DiskCopy {
        self.nodes[usize::from(node.0)].disk.copy(&mut self.store)
    }

    /// Ends a process and sets its disk back to an earlier copy, all of it durable.
    pub fn restore_disk(&mut self, node: NodeId, copy: &DiskCopy) {
        self.bring_down(node, LastStop::Restored);
        self.nodes[usize::from(node.0)].disk.restore(&mut self.store, copy);
    }
}
