//! The world: one queue of events ordered by (time, sequence), and everything that events happen to.
//!
//! [`World::step`] takes the next event, hands it to one node through its door, and turns what the node asks for into later
//! events by way of the network, disk and clock models. What happened stands in [`World::trace`] until the next step. The
//! world knows no scenario: scripts are events with a number that it hands back ([`Happened::Script`]).

use crate::clock::Clock;
use crate::disk::{DiskView, NodeDisk, Store};
use crate::net::{NetEvent, NetOut, Network, NodeSpec, Topology};
use crate::node::{Condition, LastStop, Node, Process, Program};
use crate::queue::EventQueue;
use crate::rng::{join, Concern, Seed};
use crate::trace_hash::TraceHash;
use mirrorlab_model::guards::Guards;
use mirrorlab_model::ids::{Nanos, NodeId};
use mirrorlab_model::ports::{first_conn, Cx, Effect, Entropy, ExitReason, Input, Lane, Outbox, Timer};
use mirrorlab_model::trace::TraceEvent;
use std::sync::Arc;

/// Something that is due.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// The network wants to go on.
    Net(NetEvent),
    /// A lane may run one task.
    Run { node: NodeId, incarnation: u32, lane: Lane },
    /// A timer, by the node's monotonic reading.
    Timer { node: NodeId, incarnation: u32, timer: Timer, at: Nanos },
    /// A flush ends.
    Flushed { node: NodeId, incarnation: u32, ticket: crate::disk::Ticket },
    /// A process starts.
    Boot { node: NodeId },
    /// A step of a script.
    Script(u32),
}

/// What a step was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// The world went on.
    Event,
    /// A script's step is due: its owner acts.
    Script(u32),
    /// A process ended by itself.
    Exited(NodeId, ExitReason),
    /// Nothing is due any more.
    Nothing,
}

/// Steps allowed at one instant before the world counts as stuck (L19).
pub const STEPS_PER_INSTANT_MAX: u32 = 1_000_000;

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events handled.
    pub events: u64,
    /// Requests and responses delivered.
    pub messages: u64,
    /// Batches, or runs of them, appended to a replica.
    pub appends: u64,
    /// Trace events.
    pub traced: u64,
}

/// All nodes, the network between them, and what is due.
#[derive(Clone, Debug)]
pub struct World {
    seed: Seed,
    now: Nanos,
    queue: EventQueue<Event>,
    nodes: Vec<Node>,
    net: Network,
    store: Store,
    hash: TraceHash,
    counts: Counts,
    at_this_instant: u32,
    last_acting: Option<(NodeId, Lane)>,
    out: Outbox,
    net_out: NetOut,
    trace: Vec<TraceEvent>,
    cut_next_task: Option<(NodeId, u32)>,
}
