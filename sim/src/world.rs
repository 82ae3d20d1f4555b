//! The world: one queue of events ordered by (time, sequence), and everything that events happen to.
//!
//! [`World::step`] takes the next event, hands it to one node through its door, and turns what the node asks for into later
//! events by way of the network, disk and clock models. What happened stands in [`World::trace`] until the next step. The
//! world knows no scenario: scripts are events with a number that it hands back ([`Happened::Script`]).

use crate::causes::{Causes, What};
use crate::clock::Clock;
use crate::disk::{CrashRules, DiskModel, FlushEnd, FlushStart, NodeDisk, Store, Ticket};
use crate::foreign::Foreign;
use crate::net::{NetEvent, NetOut, Network, NodeSpec, Topology, Who};
use crate::node::{Condition, LastStop, Node, Process, Program};
use crate::queue::EventQueue;
use crate::rng::{join, Concern, Seed};
use crate::trace_hash::TraceHash;
use crate::wire::WireCheck;
use mirrorlab_model::guards::Guards;
use mirrorlab_model::ids::{Nanos, NodeId, Now};
use mirrorlab_model::ports::{first_conn, Cx, DirName, Effect, Entropy, ExitReason, Input, Lane, Outbox, Timer};
use mirrorlab_model::trace::{Trace, TraceEvent};
use std::sync::Arc;

#[path = "world_strikes.rs"]
mod strikes;

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
    Flushed { node: NodeId, incarnation: u32, ticket: Ticket },
    /// A process starts, unless the node was told something else since.
    Boot { node: NodeId, incarnation: u32 },
    /// The kernel writes back what is dirty.
    WriteBack { node: NodeId },
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
    /// Processes that ended, for whatever reason.
    pub stops: u64,
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
    /// Processes that asked to end.
    exits: Vec<(NodeId, ExitReason)>,
    /// Whether messages go through their bytes.
    wire: Option<WireCheck>,
    /// What led to what, if anybody asked for it.
    causes: Option<Box<Causes>>,
    /// Clusters whose answers to others are wrong now and then.
    foreign: Foreign,
}

impl World {
    // ------------------------------------------------------------------------------------------------------- looking in

    /// The present simulated time.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }
    /// The seed.
    #[must_use]
    pub fn seed(&self) -> Seed {
        self.seed
    }
    /// When the next event is due.
    #[must_use]
    pub fn next_time(&self) -> Option<Nanos> {
        self.queue.peek_time()
    }
    /// What the last step traced, in order.
    #[must_use]
    pub fn trace(&self) -> &[TraceEvent] {
        &self.trace
    }
    /// The running hash over everything that happened.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.hash.value()
    }
    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }
    /// How many messages came back from their bytes as they were; none if nothing asked for it.
    #[must_use]
    pub fn wire_checked(&self) -> u64 {
        self.wire.map_or(0, |wire| wire.passed())
    }
    /// All nodes by id.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }
    /// One node.
    #[must_use]
    pub fn node(&self, node: NodeId) -> &Node {
        &self.nodes[usize::from(node.0)]
    }
    /// The node of that name.
    #[must_use]
    pub fn node_named(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|n| &*n.name == name).map(|at| NodeId(at as u16))
    }
    /// What led to what, if it was noted.
    #[must_use]
    pub fn causes(&self) -> Option<&Causes> {
        self.causes.as_deref()
    }
    /// The network.
    #[must_use]
    pub fn net(&self) -> &Network {
        &self.net
    }
    /// The arena that all disks share; with a node's disk it tells what is on it.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }
}

/// How often a kernel writes dirty pages back (Linux: 30 s).
const WRITE_BACK_EVERY: Nanos = Nanos::from_secs(30);
/// A process is up this long after it was started, at least.
const BOOT_MIN: Nanos = Nanos::from_millis(50);

impl World {
    // --------------------------------------------------------------------------------------------------------- building

    /// A world without nodes.
    #[must_use]
    pub fn new(topology: &Topology, seed: u64) -> Self {
        Self {
            seed: Seed(seed),
            now: Nanos::ZERO,
            queue: EventQueue::default(),
            nodes: Vec::new(),
            net: Network::new(topology, seed),
            store: Store::new(),
            hash: TraceHash::default(),
            counts: Counts::default(),
            at_this_instant: 0,
            last_acting: None,
            out: Outbox::default(),
            net_out: NetOut::default(),
            trace: Vec::new(),
            exits: Vec::new(),
            wire: None,
            foreign: Foreign::default(),
            causes: None,
        }
    }

    /// Notes from now on what led to what. The history stays the same.
    pub fn note_causes(&mut self) {
        self.causes = Some(Box::new(Causes::new(self.queue.pushed())));
    }

    /// Lets every draw from now on come from another seed: what was drawn before stays. For questions only: what would have
    /// happened otherwise?
    pub fn reseed(&mut self, seed: u64) {
        self.seed = Seed(seed);
        self.net.reseed(self.seed);
        for (at, node) in self.nodes.iter_mut().enumerate() {
            node.disk.seed = self.seed;
            node.entropy = Entropy(self.seed.of_process(NodeId(at as u16)));
            node.guards.points.set_key(self.seed.draw(Concern::Perturb, at as u64, 0));
        }
    }

    fn push(&mut self, at: Nanos, event: Event) {
        self.queue.push(at, event);
        if let Some(causes) = &mut self.causes {
            causes.scheduled(self.counts.events);
        }
    }

    /// Sends the messages of half of all connections through their bytes from now on. The history stays the same.
    pub fn check_wire(&mut self) {
        self.wire = Some(WireCheck::new(self.seed));
    }

    /// The id that the next node gets.
    #[must_use]
    pub fn next_node(&self) -> NodeId {
        NodeId(self.nodes.len() as u16)
    }

    /// Adds a node that is down. Its place in the network is `spec`, whose node id must be [`World::next_node`].
    pub fn add_node(
        &mut self,
        name: &str,
        cluster: Option<u8>,
        spec: NodeSpec,
        program: Program,
        mut guards: Guards,
    ) -> NodeId {
        let id = self.next_node();
        guards.points.set_key(self.seed.draw(Concern::Perturb, u64::from(id.0), 0));
        debug_assert_eq!(spec.node, id);
        self.net.add_node(spec);
        self.nodes.push(Node {
            name: Arc::from(name),
            cluster,
            program,
            process: None,
            condition: Condition::Down,
            incarnation: 0,
            last_stop: LastStop::Never,
            cut_inside: false,
            doom: None,
            doom_at_start: None,
            stopping: false,
            start_after: false,
            disk: NodeDisk::new(id, self.seed, DiskModel::default()),
            clock: Clock::default(),
            guards,
            entropy: Entropy(self.seed.of_process(id)),
            next_conn: first_conn(id),
            wakes: 0,
            busy: Vec::new(),
            slow: Vec::new(),
            held: Vec::new(),
        });
        self.push(self.now + WRITE_BACK_EVERY, Event::WriteBack { node: id });
        id
    }

    /// A node that may be changed between steps: its clock, its disk's faults, its program.
    pub fn node_mut(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[usize::from(node.0)]
    }

    /// The network, for faults.
    pub fn net_mut(&mut self) -> &mut Network {
        &mut self.net
    }

    /// Asks to be told [`Happened::Script`] with this number at an instant (not before now).
    pub fn schedule_script(&mut self, at: Nanos, number: u32) {
        self.push(at.max(self.now), Event::Script(number));
    }

    // -------------------------------------------------------------------------------------------------------- life-cycle

    /// Starts the process of a node that is down; it is up after a short drawn time.
    pub fn start(&mut self, node: NodeId) {
        let n = &mut self.nodes[usize::from(node.0)];
        if n.condition != Condition::Down {
            n.start_after = n.stopping;
            return;
        }
        n.incarnation += 1;
        let incarnation = n.incarnation;
        let draw = self.seed.draw(Concern::Boot, u64::from(node.0), u64::from(incarnation));
        let at = self.now + BOOT_MIN + Nanos::from_micros(draw % 50_000);
        self.push(at, Event::Boot { node, incarnation });
    }

    /// Asks a process to end in order, by the signal that it knows for that.
    pub fn stop(&mut self, node: NodeId, signal: Input) {
        let n = &mut self.nodes[usize::from(node.0)];
        n.stopping = n.condition != Condition::Down;
        self.signal(node, signal);
    }

    /// Ends a process at once; the page cache stays.
    pub fn kill(&mut self, node: NodeId) {
        self.bring_down(node, LastStop::Killed);
    }

    /// Takes the power away: what was not flushed is subject to the disk's rules.
    pub fn power_loss(&mut self, node: NodeId) {
        self.bring_down(node, LastStop::PowerLoss);
    }

    /// Lets the process end inside the next of its tasks that writes to the disk: that task's disk calls and effects form one
    /// ordered journal, and the crash cuts it after a drawn entry. Nothing happens to a node that is not up.
    pub fn crash_inside_a_task(&mut self, node: NodeId, how: LastStop) {
        let n = &mut self.nodes[usize::from(node.0)];
        if n.condition == Condition::Up {
            n.doom = Some(how);
        }
    }

    /// Calls off what [`World::crash_inside_a_task`] or [`World::crash_at_start`] asked for and has not come yet.
    pub fn spare(&mut self, node: NodeId) {
        let n = &mut self.nodes[usize::from(node.0)];
        (n.doom, n.doom_at_start) = (None, None);
    }

    /// Ends a process and replaces its disk by an empty one.
    pub fn wipe(&mut self, node: NodeId) {
        self.bring_down(node, LastStop::Wiped);
    }

    /// Stops a process as a signal would; [`World::resume`] lets it go on.
    pub fn pause(&mut self, node: NodeId) {
        let n = &mut self.nodes[usize::from(node.0)];
        if n.condition == Condition::Up {
            n.condition = Condition::Paused;
            self.net.node_down(self.now, node, crate::net::Down::Paused, &mut self.net_out);
            self.drain_net();
        }
    }

    /// Lets a paused process go on: it sees at once what waited for it.
    pub fn resume(&mut self, node: NodeId) {
        let n = &mut self.nodes[usize::from(node.0)];
        if n.condition != Condition::Paused {
            return;
        }
        n.condition = Condition::Up;
        let incarnation = n.incarnation;
        for event in std::mem::take(&mut n.held) {
            self.push(self.now, event);
        }
        self.net.node_up(self.now, node, incarnation, &mut self.net_out);
        self.drain_net();
    }

    fn bring_down(&mut self, node: NodeId, how: LastStop) {
        self.bring_down_by(node, how, &CrashRules::default());
    }

    fn bring_down_by(&mut self, node: NodeId, how: LastStop, rules: &CrashRules) {
        let n = &mut self.nodes[usize::from(node.0)];
        if n.condition == Condition::Down && !matches!(how, LastStop::Wiped | LastStop::Restored) {
            // A start that was under way is called off. A machine loses power whether its process runs or not; who was killed
            // there has lost what the page cache had kept, and who stopped in order had flushed it all, or is to blame.
            n.incarnation += 1;
            if how == LastStop::PowerLoss {
                n.disk.power_loss(&mut self.store, rules);
                if n.last_stop == LastStop::Killed {
                    n.last_stop = how;
                    self.counts.stops += 1;
                }
            }
            return;
        }
        n.process = None;
        n.condition = Condition::Down;
        n.incarnation += 1;
        n.last_stop = how;
        n.cut_inside = false;
        n.doom = None;
        (n.stopping, n.start_after) = (false, false);
        self.counts.stops += 1;
        n.held.clear();
        n.busy.clear();
        let down = match how {
            LastStop::PowerLoss => {
                n.disk.power_loss(&mut self.store, rules);
                crate::net::Down::PowerLoss
            }
            LastStop::Clean => {
                n.disk.kill(&mut self.store);
                crate::net::Down::Exited
            }
            LastStop::Wiped | LastStop::Restored => {
                n.disk.kill(&mut self.store);
                n.disk.wipe(&mut self.store);
                crate::net::Down::PowerLoss
            }
            _ => {
                n.disk.kill(&mut self.store);
                crate::net::Down::Killed
            }
        };
        self.net.node_down(self.now, node, down, &mut self.net_out);
        self.drain_net();
    }

    /// Resets the connections between two sets of nodes; `silent`: they die without a word. Returns how many.
    pub fn reset_connections(&mut self, one: Who, other: Who, silent: bool) -> usize {
        let many = self.net.reset(self.now, one, other, silent, &mut self.net_out);
        self.drain_net();
        many
    }

    /// Flips a bit somewhere in what is durable of a directory's segments on a node's disk; false if nothing is.
    pub fn rot(&mut self, node: NodeId, dir: DirName, ordinal: u64) -> bool {
        self.nodes[usize::from(node.0)].disk.rot_somewhere(&mut self.store, Some(dir), ordinal).is_some()
    }

    /// Hands a process an input from outside of its connections: a signal.
    pub fn signal(&mut self, node: NodeId, input: Input) {
        self.deliver(node, input);
    }

    /// Lets a stalled disk go on.
    pub fn release_disk(&mut self, node: NodeId) {
        let n = &mut self.nodes[usize::from(node.0)];
        let incarnation = n.incarnation;
        for (ticket, at) in n.disk.release(self.now) {
            self.push(at, Event::Flushed { node, incarnation, ticket });
        }
    }

    /// Calls a running process from outside of its door, as an operator's signal or a client's script does; what it asks for
    /// is taken up as usual.
    pub fn call(&mut self, node: NodeId, what: impl FnOnce(&mut Process, Now, &mut Cx<'_>)) {
        self.run_task(node, None, what);
    }

    // -------------------------------------------------------------------------------------------------------------- time

    /// Takes the next event. What happened stands in [`World::trace`] until the next call.
    pub fn step(&mut self) -> Happened {
        self.trace.clear();
        let Some((at, sequence, event)) = self.queue.pop() else { return Happened::Nothing };
        if at > self.now {
            self.now = at;
            self.at_this_instant = 0;
        }
        self.at_this_instant += 1;
        self.counts.events += 1;
        self.hash.fold_words(at.0, event.kind());
        if let Some(causes) = &mut self.causes {
            causes.begins(self.now, sequence, event.note());
        }
        match event {
            Event::Net(event) => {
                self.net.arrive(self.now, event, &mut self.net_out);
                self.drain_net();
            }
            Event::Run { node, incarnation, lane } => {
                if self.may_run(node, incarnation, || Event::Run { node, incarnation, lane }) {
                    return self.run_lane(node, lane);
                }
            }
            Event::Timer { node, incarnation, timer, at } => {
                if self.may_run(node, incarnation, || Event::Timer { node, incarnation, timer, at }) {
                    self.fire(node, incarnation, timer, at);
                }
            }
            Event::Flushed { node, incarnation, ticket } => {
                if self.may_run(node, incarnation, || Event::Flushed { node, incarnation, ticket }) {
                    let end = self.nodes[usize::from(node.0)].disk.complete_flush(&mut self.store, ticket);
                    if let FlushEnd::Done { token, result } = end {
                        self.deliver(node, Input::Flushed { token, result });
                    }
                }
            }
            Event::Boot { node, incarnation } => self.boot(node, incarnation),
            Event::WriteBack { node } => {
                let n = &mut self.nodes[usize::from(node.0)];
                n.disk.write_back(&mut self.store);
                self.push(self.now + WRITE_BACK_EVERY, Event::WriteBack { node });
            }
            Event::Script(number) => return Happened::Script(number),
        }
        self.take_exit()
    }

    /// True while too many steps were taken at one instant, and who took the last one (L19).
    #[must_use]
    pub fn stuck(&self) -> Option<(NodeId, Lane)> {
        (self.at_this_instant > STEPS_PER_INSTANT_MAX).then_some(self.last_acting).flatten()
    }

    /// Whether an event still concerns a node's present life; one for a paused process waits for it.
    fn may_run(&mut self, node: NodeId, incarnation: u32, event: impl FnOnce() -> Event) -> bool {
        let n = &mut self.nodes[usize::from(node.0)];
        if n.incarnation != incarnation {
            return false;
        }
        if n.condition == Condition::Paused {
            n.held.push(event());
        }
        n.condition == Condition::Up
    }

    fn boot(&mut self, node: NodeId, incarnation: u32) {
        let n = &mut self.nodes[usize::from(node.0)];
        if n.incarnation != incarnation || n.condition != Condition::Down {
            return;
        }
        n.condition = Condition::Up;
        let doom = n.doom_at_start.take();
        self.net.node_up(self.now, node, incarnation, &mut self.net_out);
        let boot = |slot: &mut Option<Process>, program: &Program, now: Now, cx: &mut Cx<'_>| {
            *slot = Some(Process::boot(program, now, cx));
        };
        match doom {
            None => self.with_node(node, None, boot),
            Some(how) => self.start_in_vain(node, how, boot),
        }
        self.drain_net();
    }

    fn fire(&mut self, node: NodeId, incarnation: u32, timer: Timer, at: Nanos) {
        let clock = self.nodes[usize::from(node.0)].clock;
        if clock.mono(self.now) < at {
            // The clock was slowed since the timer was set.
            let due = clock.world_at(at);
            self.push(due, Event::Timer { node, incarnation, timer, at });
        } else {
            self.deliver(node, Input::Timer(timer));
        }
    }

    /// Hands an input to a process.
    fn deliver(&mut self, node: NodeId, input: Input) {
        self.run_task(node, None, |process, now, cx| process.accept(now, input, cx));
    }

    fn run_lane(&mut self, node: NodeId, lane: Lane) -> Happened {
        self.last_acting = Some((node, lane));
        if let Some(how) = self.nodes[usize::from(node.0)].doom {
            return self.run_doomed(node, Some(lane), how, |slot, _, now, cx| {
                if let Some(process) = slot {
                    process.run(now, lane, cx);
                }
            });
        }
        self.run_task(node, Some(lane), |process, now, cx| process.run(now, lane, cx));
        self.take_exit()
    }

    /// Runs a task, and if it wrote to the disk lets the process end inside it: after a drawn entry of its journal of disk
    /// calls and effects. What the task did later did not happen, and was not seen by anybody.
    fn run_doomed(
        &mut self,
        node: NodeId,
        lane: Option<Lane>,
        how: LastStop,
        task: impl FnOnce(&mut Option<Process>, &Program, Now, &mut Cx<'_>),
    ) -> Happened {
        self.nodes[usize::from(node.0)].disk.begin_journal();
        self.out.order = Some(Box::default());
        self.act(node, lane, task);
        let mut order = self.out.order.take().unwrap_or_default();
        let n = &mut self.nodes[usize::from(node.0)];
        let calls = n.disk.journaled();
        order.place_effects(calls as u32, self.out.effects.len());
        if calls == 0 {
            n.disk.end_journal(&mut self.store, usize::MAX);
            self.absorb(node);
            self.drain_net();
            return self.take_exit();
        }
        let entries = (calls + self.out.effects.len()) as u64;
        let draw = self.seed.draw(Concern::DiskCut, u64::from(node.0), u64::from(n.incarnation));
        let cut = 1 + draw % entries;
        let before = |stands: &[u32]| stands.partition_point(|stands| u64::from(*stands) < cut);
        let effects = before(&order.effects);
        n.disk.end_journal(&mut self.store, cut as usize - effects);
        self.out.effects.truncate(effects);
        // What was traced between this entry and the next had happened.
        let seen = order.trace.partition_point(|stands| u64::from(*stands) <= cut);
        self.out.trace.truncate(seen);
        self.absorb(node);
        self.drain_net();
        self.exits.retain(|(who, _)| *who != node);
        self.bring_down(node, how);
        self.nodes[usize::from(node.0)].cut_inside = true;
        Happened::Event
    }

    fn run_task(&mut self, node: NodeId, lane: Option<Lane>, task: impl FnOnce(&mut Process, Now, &mut Cx<'_>)) {
        self.with_process(node, lane, task);
        self.drain_net();
    }

    fn with_process(&mut self, node: NodeId, lane: Option<Lane>, task: impl FnOnce(&mut Process, Now, &mut Cx<'_>)) {
        self.with_node(node, lane, |slot, _, now, cx| {
            if let Some(process) = slot {
                task(process, now, cx);
            }
        });
    }

    /// Lets something be done with a node's process, disk, guards and outbox, and takes up what it asked for.
    fn with_node(
        &mut self,
        node: NodeId,
        lane: Option<Lane>,
        task: impl FnOnce(&mut Option<Process>, &Program, Now, &mut Cx<'_>),
    ) {
        self.act(node, lane, task);
        self.absorb(node);
    }

    /// Lets something be done with a node's process, disk, guards and outbox.
    fn act(
        &mut self,
        node: NodeId,
        lane: Option<Lane>,
        task: impl FnOnce(&mut Option<Process>, &Program, Now, &mut Cx<'_>),
    ) {
        let n = &mut self.nodes[usize::from(node.0)];
        let now = n.clock.now(self.now);
        let mut view = n.disk.view(&mut self.store);
        let mut cx = Cx {
            node,
            disk: &mut view,
            guards: &mut n.guards,
            out: &mut self.out,
            entropy: n.entropy,
            next_conn: &mut n.next_conn,
        };
        task(&mut n.process, &n.program, now, &mut cx);
        let spent = view.spent();
        if let (Some(lane), true) = (lane, spent > Nanos::ZERO) {
            n.occupy(lane, self.now + spent, self.now);
        }
    }

    // ----------------------------------------------------------------------------------------------------------- effects

    /// Turns what a process asked for into later events, in the order asked.
    fn absorb(&mut self, node: NodeId) {
        self.counts.traced += self.out.trace.len() as u64;
        let mut applied = false;
        for event in &self.out.trace {
            match event.trace {
                Trace::Appended { .. } => self.counts.appends += 1,
                Trace::MetadataApplied { .. } => applied = true,
                _ => {}
            }
        }
        if applied {
            self.share_image(node);
        }
        self.hash.fold_all(&self.out.trace);
        if let Some(causes) = &mut self.causes {
            causes.traced(self.counts.events, &self.out.trace);
        }
        if self.trace.is_empty() {
            std::mem::swap(&mut self.trace, &mut self.out.trace);
        } else {
            self.trace.append(&mut self.out.trace);
        }
        let mut effects = std::mem::take(&mut self.out.effects);
        for effect in effects.drain(..) {
            self.take_effect(node, effect);
        }
        self.out.effects = effects;
    }

    /// Metadata of a hundred thousand partitions is kept once per version, not once per broker (one version, one image): a broker
    /// whose image came to the version of a sibling's shares its parts. No process can tell.
    fn share_image(&mut self, node: NodeId) {
        let (before, rest) = self.nodes.split_at_mut(usize::from(node.0));
        let Some((own, after)) = rest.split_first_mut() else { return };
        let cluster = own.cluster;
        let Some(Process::Broker(broker)) = &mut own.process else { return };
        let siblings = before.iter().chain(&*after).filter(|n| n.cluster == cluster).filter_map(|n| n.broker());
        if let Some(sibling) = { siblings }.find(|s| s.image.version() == broker.image.version()) {
            broker.image.share_with(&sibling.image);
        }
    }

    fn take_effect(&mut self, node: NodeId, effect: Effect) {
        match effect {
            Effect::Connect { conn, to } => self.net.connect(self.now, conn, node, to, &mut self.net_out),
            Effect::Send { conn, message } => {
                let bytes = message.encoded_size();
                if let Some(causes) = &mut self.causes {
                    causes.sent(self.counts.events, node, conn, &message);
                }
                self.net.send(self.now, conn, node, bytes, message, &mut self.net_out);
            }
            Effect::Close { conn } => self.net.close(self.now, conn, node, &mut self.net_out),
            Effect::SetTimer { timer, at } => {
                let n = &self.nodes[usize::from(node.0)];
                let due = n.clock.world_at(at).max(self.now);
                let incarnation = n.incarnation;
                self.push(due, Event::Timer { node, incarnation, timer, at });
            }
            Effect::Wake(lane) => {
                let at = self.wake_time(node, lane);
                let incarnation = self.nodes[usize::from(node.0)].incarnation;
                self.push(at, Event::Run { node, incarnation, lane });
            }
            Effect::Flush { file, token } => {
                let n = &mut self.nodes[usize::from(node.0)];
                let start = n.disk.begin_flush(&mut self.store, file, token, self.now);
                self.await_flush(node, start);
            }
            Effect::FlushDir { dir, token } => {
                let n = &mut self.nodes[usize::from(node.0)];
                let start = n.disk.begin_flush_dir(dir, token, self.now);
                self.await_flush(node, start);
            }
            Effect::Exit(reason) => {
                self.exits.push((node, reason));
            }
        }
    }

    fn await_flush(&mut self, node: NodeId, start: FlushStart) {
        if let Some(at) = start.at {
            let incarnation = self.nodes[usize::from(node.0)].incarnation;
            self.push(at, Event::Flushed { node, incarnation, ticket: start.ticket });
        }
    }

    /// When a woken lane runs: after a drawn delay with a heavy tail, which is what orders lanes (measured: without it two
    /// lanes are never runnable together), and not while it is busy with disk work.
    fn wake_time(&mut self, node: NodeId, lane: Lane) -> Nanos {
        let n = &mut self.nodes[usize::from(node.0)];
        n.wakes += 1;
        let draw = self.seed.draw(Concern::Lane, join(u64::from(node.0), u64::from(lane.0)), n.wakes);
        let delay = match draw & 0xffff {
            0 => 1_000_000 + (draw >> 16) % 9_000_000,
            1..=64 => 100_000 + (draw >> 16) % 900_000,
            _ => 2_000 + (draw >> 16) % 18_000,
        };
        let extra = n.extra_delay(lane, self.now);
        let free = n.busy.iter().find(|(l, _)| *l == lane).map_or(Nanos::ZERO, |(_, at)| *at);
        (self.now + Nanos(delay) + extra).max(free)
    }

    /// Takes over what the network left: events for the queue, inputs for nodes.
    fn drain_net(&mut self) {
        while !self.net_out.events.is_empty() || !self.net_out.inputs.is_empty() {
            let mut events = std::mem::take(&mut self.net_out.events);
            for (at, event) in events.drain(..) {
                self.push(at, Event::Net(event));
            }
            self.net_out.events = events;
            let mut inputs = std::mem::take(&mut self.net_out.inputs);
            for (node, mut input) in inputs.drain(..) {
                if let Input::Message { conn, message } = &mut input {
                    self.counts.messages += 1;
                    if let Some(causes) = &mut self.causes {
                        causes.delivered(self.counts.events, node, *conn, message);
                    }
                    if !self.foreign.is_idle() && !message.body.is_request() {
                        self.pass_foreign(*conn, node, &mut message.body);
                    }
                    if let Some(wire) = self.wire.as_mut().filter(|wire| wire.takes(*conn)) {
                        let serving = self.net.acceptor(*conn).map(|node| &self.nodes[usize::from(node.0)]);
                        *message = wire.pass(message, serving);
                    }
                }
                self.with_process(node, None, |process, now, cx| process.accept(now, input, cx));
            }
            if self.net_out.inputs.is_empty() {
                self.net_out.inputs = inputs;
            }
        }
    }

    /// A process that asked to end, ends.
    fn take_exit(&mut self) -> Happened {
        let Some((node, reason)) = self.exits.pop() else { return Happened::Event };
        let how = match reason {
            ExitReason::Shutdown => LastStop::Clean,
            ExitReason::Broken(what) => LastStop::Broken(what),
            ExitReason::DiskFailed => LastStop::DiskFailed,
        };
        let again = self.nodes[usize::from(node.0)].start_after;
        self.bring_down(node, how);
        if again {
            self.start(node);
        }
        Happened::Exited(node, reason)
    }
}

impl Event {
    /// What it is, for the record of causes.
    fn note(&self) -> What {
        match self {
            Self::Net(_) => What::Net,
            Self::Run { node, .. } => What::Run(*node),
            Self::Timer { node, .. } => What::Timer(*node),
            Self::Flushed { node, .. } => What::Flushed(*node),
            Self::Boot { node, .. } => What::Boot(*node),
            Self::WriteBack { node } => What::WriteBack(*node),
            Self::Script(_) => What::Script,
        }
    }
    /// A number for the hash: kind and node.
    fn kind(&self) -> u64 {
        match self {
            Self::Net(_) => 1 << 32,
            Self::Run { node, lane, .. } => 2 << 32 | u64::from(node.0) << 16 | u64::from(lane.0),
            Self::Timer { node, timer, .. } => 3 << 32 ^ u64::from(node.0) << 16 ^ timer.0,
            Self::Flushed { node, .. } => 4 << 32 | u64::from(node.0),
            Self::Boot { node, .. } => 5 << 32 | u64::from(node.0),
            Self::WriteBack { node } => 6 << 32 | u64::from(node.0),
            Self::Script(number) => 7 << 32 | u64::from(*number),
        }
    }
}
