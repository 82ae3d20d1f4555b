//! The network: sites, links, connections, and what can go wrong between them. A plain data structure that the world drives;
//! cloning it clones the future.
//!
//! Read in this order: `topology` (what there is), `link` (who may send), `flow` (one direction of TCP), `connection` (the
//! slab), `pump` (from a send to the wire), `arrive` (from the wire to a process), `fault` and `lifecycle` (cuts, kills,
//! power losses, pauses).
//!
//! **How the world drives it.** Every call takes the world's time `now`, which never goes back, and a [`NetOut`]. After each
//! call the world moves `out.events` into its queue (in the order given, so that events of one instant keep it) and hands
//! `out.inputs` to the nodes. When an event is due, it calls [`Network::arrive`]. An event that has become void does nothing.
//! A node is deaf until [`Network::node_up`] was called for it.
//!
//! **What is left out.** Acknowledgements take no bandwidth; switches, receiving ports and the sender's port on the way to
//! another site never saturate; links queue without dropping, since windows bound what can queue; retransmissions after
//! a random loss are not charged to the link. A node cannot connect to itself: it is refused.

mod arrive;
mod connection;
mod fault;
mod flow;
mod lifecycle;
mod link;
mod pump;
mod topology;

#[cfg(test)]
mod tests;

pub use fault::{Cut, Degrade, Fault, FaultId, Only, Perturb, Who};
pub use lifecycle::Down;
pub use link::LinkCounters;
pub use topology::{Chance, Jitter, LinkSpec, NodeSpec, Role, SiteIx, Tcp, Topology};

use crate::rng::{join, Concern, Seed};
use connection::{EndState, Slab};
use flow::{Item, Parcel};
use lifecycle::{Host, Node};
use link::Link;
use mirrorlab_model::ids::{ConnId, Nanos, NodeId};
use mirrorlab_model::ports::{CloseReason, Input};
use mirrorlab_model::wire::messages::Message;
use std::collections::BTreeMap;

/// Something that the network wants to be called back for. Small and copyable; void events are harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetEvent {
    /// A connection's slot, or a link.
    slot: u32,
    /// The slot's stamp when the event was made.
    stamp: u32,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// An attempt to connect reaches the host, or ends.
    Syn,
    /// The first message of this direction is due.
    Deliver(u8),
    /// The sender of this direction may go on.
    Pump(u8),
    /// A link may give its next turn.
    Turn,
}

/// What a call leaves for the world. Reuse one; the world drains it after each call.
#[derive(Clone, Debug, Default)]
pub struct NetOut {
    /// Events to come back with, and when.
    pub events: Vec<(Nanos, NetEvent)>,
    /// What reaches processes now.
    pub inputs: Vec<(NodeId, Input)>,
}

/// The state of one connection, for tests and reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ConnView {
    /// Messages on their way or held back, from the opener and from the accepting end.
    pub queued: [u32; 2],
    /// Bytes not acknowledged, likewise.
    pub in_flight: [u32; 2],
    /// Whether the sender waits for a retransmission to come through, likewise.
    pub stalled: [bool; 2],
}

/// What is the same for all connections.
#[derive(Clone, Copy, Debug)]
struct Laws {
    tcp: Tcp,
    seed: Seed,
}

/// The network of a world.
#[derive(Clone, Debug)]
pub struct Network {
    laws: Laws,
    sites: u16,
    inside: Vec<LinkSpec>,
    /// By site pair, then one per node (its port inside its site).
    links: Vec<Link>,
    /// By node id.
    nodes: Vec<Option<Node>>,
    slab: Slab,
    faults: BTreeMap<FaultId, Fault>,
    /// The rules among the faults, so that a send without rules asks nothing.
    rules: Vec<Perturb>,
}

impl Network {
    /// The network of a topology. All nodes are deaf: hosts without a process.
    #[must_use]
    pub fn new(topology: &Topology, seed: u64) -> Self {
        let sites = topology.sites.len() as u16;
        let mut links = Vec::with_capacity(usize::from(sites) * usize::from(sites) + topology.nodes.len());
        for from in (0..sites).map(SiteIx) {
            for to in (0..sites).map(SiteIx) {
                let named = topology.links.get(&(from, to)).copied();
                let spec = if from == to { topology.sites[usize::from(from.0)] } else { named.unwrap_or(topology.wan) };
                links.push(Link::new(from, to, spec));
            }
        }
        let mut network = Self {
            laws: Laws { tcp: topology.tcp, seed: Seed(seed) },
            sites,
            inside: topology.sites.clone(),
            links,
            nodes: Vec::new(),
            slab: Slab::default(),
            faults: BTreeMap::new(),
            rules: Vec::new(),
        };
        for &spec in &topology.nodes {
            network.add_node(spec);
        }
        network
    }

    /// Draws come from this seed from now on.
    pub(crate) fn reseed(&mut self, seed: Seed) {
        self.laws.seed = seed;
    }

    /// Adds a host without a process; does nothing if the id is taken or the site does not exist.
    pub fn add_node(&mut self, spec: NodeSpec) {
        let at = usize::from(spec.node.0);
        if self.nodes.len() <= at {
            self.nodes.resize_with(at + 1, || None);
        }
        if self.nodes[at].is_some() || spec.site.0 >= self.sites {
            return;
        }
        let port = self.links.len() as u32;
        self.links.push(Link::new(spec.site, spec.site, self.inside[usize::from(spec.site.0)]));
        self.nodes[at] = Some(Node { spec, host: Host::Vacant, incarnation: 0, port, conns: Vec::new() });
        self.reshape_links();
    }

    /// `Effect::Connect`: opens a connection. Answered by `Input::Opened` at both ends, or `Input::Closed` at the opener.
    pub fn connect(&mut self, now: Nanos, conn: ConnId, from: NodeId, to: NodeId, out: &mut NetOut) {
        let (Some(sender), Some(receiver)) = (self.node(from), self.node(to)) else {
            return out.inputs.push((from, Input::Closed { conn, why: CloseReason::Refused }));
        };
        if sender.host != Host::Up {
            return; // no process that could have asked
        }
        if from == to {
            return out.inputs.push((from, Input::Closed { conn, why: CloseReason::Refused }));
        }
        let links = [self.link_between(sender, receiver), self.link_between(receiver, sender)];
        let Some(slot) = self.slab.allot(conn, from, to, now) else {
            debug_assert!(false, "{conn:?} is in use");
            return;
        };
        for (end, node) in [from, to].into_iter().enumerate() {
            let Some(Some(node)) = self.nodes.get_mut(usize::from(node.0)) else { continue };
            self.slab.conns[slot as usize].ends[end].place = node.conns.len() as u32;
            node.conns.push(slot);
        }
        let state = &mut self.slab.conns[slot as usize];
        for (direction, &link) in links.iter().enumerate() {
            let window = self.links[link as usize].spec.window.unwrap_or(self.laws.tcp.window);
            state.flows[direction].renew(join(conn.0, direction as u64), link, window, &self.laws.tcp);
        }
        state.flows[0].gated = true;
        state.flows[0]
            .push(Item { parcel: Parcel::Opened, due: Nanos::ZERO, bytes: 0 }, &mut self.links[links[0] as usize]);
        self.refresh(slot);
        self.attempt(now, slot, out);
    }

    /// `Effect::Send`: sends a message of `bytes` encoded bytes. Returns whether the connection took it; one that is gone
    /// drops it in silence, as the port says.
    pub fn send(
        &mut self,
        now: Nanos,
        conn: ConnId,
        from: NodeId,
        bytes: u32,
        message: Message,
        out: &mut NetOut,
    ) -> bool {
        let Some(slot) = self.slab.slot(conn) else { return false };
        let state = &mut self.slab.conns[slot as usize];
        let direction = usize::from(state.ends[0].node != from);
        let flow = &mut state.flows[direction];
        if !state.ends[direction].state.is_known() || state.ends[direction].node != from || flow.ended {
            return false;
        }
        let link = &mut self.links[flow.link as usize];
        if self.rules.is_empty() {
            flow.push(Item { parcel: Parcel::Message(message), due: Nanos::ZERO, bytes }, link);
        } else {
            let ends = [state.ends[direction].node, state.ends[1 - direction].node];
            let (extra, copy) = self.perturbed(slot, direction, ends, &message);
            let flow = &mut self.slab.conns[slot as usize].flows[direction];
            let link = &mut self.links[flow.link as usize];
            let second = copy.then(|| message.clone());
            flow.push(Item { parcel: Parcel::Message(message), due: extra, bytes }, link);
            if let Some(message) = second {
                flow.push(Item { parcel: Parcel::Message(message), due: Nanos::ZERO, bytes }, link);
            }
        }
        self.pump(now, slot, direction, out);
        true
    }

    /// What the rules do to a message: added delay, and whether it comes twice.
    fn perturbed(&self, slot: u32, direction: usize, ends: [NodeId; 2], message: &Message) -> (Nanos, bool) {
        let (Some(from), Some(to)) = (self.node(ends[0]), self.node(ends[1])) else { return (Nanos::ZERO, false) };
        let matching = self.rules.iter().find(|rule| {
            rule.from.holds(&from.spec)
                && rule.to.holds(&to.spec)
                && rule.body.as_deref().is_none_or(|name| name == message.body.name())
        });
        let flow = &self.slab.conns[slot as usize].flows[direction];
        // The place in the stream of messages names the draw: burst ordinals would move with the bandwidth.
        let ordinal = u64::from(message.correlation) << 1 | u64::from(message.body.is_request());
        match matching {
            Some(rule) if rule.chance.hits(self.laws.seed.draw(Concern::NetFault, flow.key, ordinal)) => {
                (rule.extra, rule.duplicate)
            }
            _ => (Nanos::ZERO, false),
        }
    }

    /// `Effect::Close`: closes in order. What was sent before arrives before the end; what the other end sends meets a reset.
    pub fn close(&mut self, now: Nanos, conn: ConnId, from: NodeId, out: &mut NetOut) {
        let Some(slot) = self.slab.slot(conn) else { return };
        let state = &mut self.slab.conns[slot as usize];
        let end = usize::from(state.ends[0].node != from);
        if state.ends[end].node != from || !state.ends[end].state.is_known() {
            return;
        }
        let aborted = state.ends[end].state == EndState::Opening;
        state.ends[end].state = EndState::Closed;
        if aborted || state.ends[1 - end].state == EndState::Closed {
            return self.release(slot);
        }
        let flow = &mut state.flows[end];
        if !flow.ended {
            flow.ended = true;
            let item = Item { parcel: Parcel::Fin, due: Nanos::ZERO, bytes: 0 };
            flow.push(item, &mut self.links[flow.link as usize]);
        }
        self.pump(now, slot, end, out);
    }

    /// An event is due.
    pub fn arrive(&mut self, now: Nanos, event: NetEvent, out: &mut NetOut) {
        if event.what == What::Turn {
            return self.give_turns(now, event.slot, out);
        }
        let Some(conn) = self.slab.conns.get_mut(event.slot as usize) else { return };
        if !conn.live || conn.stamp != event.stamp {
            return;
        }
        match event.what {
            What::Deliver(direction) => {
                let direction = usize::from(direction & 1);
                let flow = &mut conn.flows[direction];
                if flow.deliver_at == now {
                    flow.deliver_at = flow::NEVER;
                    self.deliver(now, event.slot, direction, out);
                }
            }
            What::Pump(direction) => {
                let direction = usize::from(direction & 1);
                let flow = &mut conn.flows[direction];
                if flow.pump_at == now {
                    flow.pump_at = flow::NEVER;
                    self.go_on(now, event.slot, direction, out);
                }
            }
            What::Syn => self.syn(now, event.slot, out),
            What::Turn => {}
        }
    }

    /// Sets how many bytes the connection may have in flight towards `to` (its receive buffer), at least one segment.
    /// Call it right after [`Network::connect`], or at any time.
    pub fn set_window(&mut self, conn: ConnId, to: NodeId, bytes: u32) {
        let Some(slot) = self.slab.slot(conn) else { return };
        let state = &mut self.slab.conns[slot as usize];
        let direction = usize::from(state.ends[0].node == to);
        let flow = &mut state.flows[direction];
        flow.window = bytes.max(link::SEGMENT);
        let initial = self.laws.tcp.initial_segments.max(1).saturating_mul(link::SEGMENT);
        flow.congestion = flow.congestion.max(initial).min(flow.window);
    }

    /// What the link from one site to another has carried; for the inside of a site, the sum over its nodes.
    #[must_use]
    pub fn counters(&self, from: SiteIx, to: SiteIx) -> LinkCounters {
        let mut sum = LinkCounters::default();
        for link in self.links.iter().filter(|link| link.from == from && link.to == to) {
            sum.messages += link.counters.messages;
            sum.bytes += link.counters.bytes;
            sum.drops += link.counters.drops;
            sum.queue_peak = sum.queue_peak.max(link.counters.queue_peak);
            sum.busy = sum.busy + link.counters.busy;
        }
        sum
    }

    /// Whether nothing is on its way: no message, no attempt to connect, no end of a connection.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.slab.conns.iter().all(|conn| !conn.live || conn.flows.iter().all(|flow| flow.queue.is_empty()))
    }

    /// How many connections stand, half-open ones and attempts included.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.slab.live()
    }

    /// The node that accepted a connection, while it stands.
    #[must_use]
    pub fn acceptor(&self, conn: ConnId) -> Option<NodeId> {
        Some(self.slab.conns[self.slab.slot(conn)? as usize].ends[1].node)
    }

    /// A look at one connection.
    #[must_use]
    pub fn view(&self, conn: ConnId) -> Option<ConnView> {
        let state = &self.slab.conns[self.slab.slot(conn)? as usize];
        Some(ConnView {
            queued: [0, 1].map(|direction: usize| state.flows[direction].queue.len() as u32),
            in_flight: [0, 1].map(|direction: usize| state.flows[direction].in_flight),
            stalled: [0, 1].map(|direction: usize| state.flows[direction].retry > 0),
        })
    }

    /// Whether a message between these nodes is bound to be lost now, by a cut.
    #[must_use]
    pub fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        match (self.node(from), self.node(to)) {
            (Some(from), Some(to)) => self.cut_between(&from.spec, &to.spec),
            _ => false,
        }
    }

    fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(usize::from(id.0))?.as_ref()
    }

    fn link_between(&self, from: &Node, to: &Node) -> u32 {
        if from.spec.site == to.spec.site {
            from.port
        } else {
            u32::from(from.spec.site.0) * u32::from(self.sites) + u32::from(to.spec.site.0)
        }
    }
}
