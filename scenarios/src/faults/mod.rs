//! Carries out the steps of a timeline: strikes faults, remembers how each ends, and gives operators their orders.

pub mod calm;
mod elections;
mod network;
mod operators;
mod processes;
mod storage;
mod tolerance;
mod words;

use crate::conditions::Eye;
use crate::format::action::{Action, NodeRef, Step};
use crate::format::types::Stage;
use crate::lab::{Lab, Manner};
use mirrorlab_model::admin::command::Call;
use mirrorlab_model::broker::lanes;
use mirrorlab_model::ids::{Nanos, NodeId};
use mirrorlab_model::ports::{Input, Lane};
use mirrorlab_sim::disk::{DiskCopy, DiskModel};
use mirrorlab_sim::net::FaultId;
use mirrorlab_sim::node::{Condition, LastStop};
use std::collections::{BTreeMap, BTreeSet};
use tolerance::Tolerance;
use words::target_text;

/// How a fault ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Undo {
    /// Start the process again.
    Start(NodeId),
    /// Let it go on.
    Resume(NodeId),
    /// Lift a fault of the network.
    Net(FaultId),
    /// Give the disk room again.
    Room(NodeId),
    /// Lift errors of a disk.
    Errors(NodeId),
    /// Let the disk's flushes go on.
    Flushes(NodeId),
    /// Give the disk its speed back.
    Speed(NodeId),
    /// Let the clock keep time again.
    Drift(NodeId),
    /// Let a cluster tell the truth.
    Foreign(u32),
    /// Let a lane have its speed back.
    Lane(NodeId, Lane, Nanos),
}

/// What a step did.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// How what it struck ends.
    pub undo: Vec<Undo>,
    /// The orders it gave; the step is over when they are answered.
    pub orders: Vec<u32>,
    /// In words, for the story; empty if nothing was there to strike.
    pub text: String,
    /// A call of the operators' tool, or why it ended before anything was sent.
    pub call: Option<Result<Call, String>>,
}

/// Lanes by the names that `slow-lane` steps use.
pub const LANES: &[(&str, Lane)] = &[
    ("metadata", lanes::METADATA),
    ("controller", lanes::CONTROLLER),
    ("chores", lanes::CHORES),
    ("requests", Lane(lanes::REQUESTS)),
    ("replica-fetcher", Lane(lanes::FETCHERS)),
    ("mirror", Lane(lanes::MIRROR)),
    ("mirror-fetcher", Lane(lanes::MIRROR + 1)),
];

/// Strikes faults and gives orders; counts network faults.
#[derive(Clone, Debug, Default)]
pub struct Striker {
    net_faults: u32,
    tolerance: Tolerance,
    /// Disks of clusters as they were when a step said so.
    copies: BTreeMap<NodeId, DiskCopy>,
    /// Bits that were to flip, so far.
    rots: u64,
    /// Steps that were left out, because replicas could not have made good what they take.
    pub left_out: u64,
    /// How orders are given.
    pub manner: Manner,
}

impl Striker {
    /// Why a step is left out: what it asks for is more than replicas can stand.
    pub fn refusal(&mut self, lab: &Lab, step: &Step, over: &BTreeSet<String>) -> Option<Done> {
        let node = step.action.struck().filter(|_| step.within_tolerance)?;
        let struck = nodes(lab, node, over);
        let why = self.tolerance.admits(lab, &struck, &step.action).err()?;
        self.left_out += 1;
        let text = format!("{}{} is left out: {why}", step.action.name(), target_text(&step.action));
        Some(Done { text, ..Done::default() })
    }

    /// Carries out one action.
    pub fn strike(&mut self, lab: &mut Lab, stage: &Stage, action: &Action, over: &BTreeSet<String>) -> Done {
        let mut done = Done { text: format!("{}{}", action.name(), target_text(action)), ..Done::default() };
        if action.leans_on_others() {
            let struck = action.struck().map_or_else(Vec::new, |node| nodes(lab, node, over));
            self.tolerance.note(lab, &struck, action);
        }
        let _ = self.strike_process(lab, action, over, &mut done)
            || self.strike_network(lab, stage, action, over, &mut done)
            || self.strike_disk(lab, action, over, &mut done)
            || self.operate(lab, stage, action, over, &mut done);
        done
    }
}

/// Ends a fault.
pub fn undo(lab: &mut Lab, undo: &Undo) {
    let now = lab.world.now();
    match undo {
        Undo::Start(node) => {
            lab.world.spare(*node);
            lab.world.start(*node);
        }
        Undo::Resume(node) => lab.world.resume(*node),
        Undo::Net(id) => lab.world.net_mut().clear_fault(now, *id),
        Undo::Room(node) => {
            lab.world.node_mut(*node).disk.set_capacity(u64::MAX);
            start_again(lab, *node);
        }
        Undo::Errors(node) => {
            lab.world.node_mut(*node).disk.lift_errors();
            start_again(lab, *node);
        }
        Undo::Flushes(node) => lab.world.release_disk(*node),
        Undo::Speed(node) => lab.world.node_mut(*node).disk.set_model(DiskModel::default()),
        Undo::Foreign(id) => lab.world.foreign_mut().lift(*id),
        Undo::Lane(node, lane, extra) => lab.world.quicken_lane(*node, *lane, *extra),
        Undo::Drift(node) => lab.world.node_mut(*node).clock.set_drift(now, 0),
    }
}

/// A process that ended because its disk failed is started when the disk works again.
fn start_again(lab: &mut Lab, node: NodeId) {
    let n = lab.world.node(node);
    if n.condition == Condition::Down && n.last_stop == LastStop::DiskFailed {
        lab.world.start(node);
    }
}

/// Asks a broker for a controlled shutdown, and a controller to resign; clients are killed.
pub fn stop(lab: &mut Lab, node: NodeId) {
    let stopped = lab.world.node(node);
    if stopped.broker().is_some() {
        lab.world.stop(node, Input::Timer(lanes::STOP));
    } else if stopped.controller().is_some() {
        lab.world.stop(node, Input::Timer(mirrorlab_model::controller::shutdown::STOP));
    } else {
        lab.world.kill(node);
    }
}

fn nodes(lab: &Lab, node: &NodeRef, over: &BTreeSet<String>) -> Vec<NodeId> {
    Eye { world: &lab.world, setup: &lab.setup, done: over }.nodes(node)
}
