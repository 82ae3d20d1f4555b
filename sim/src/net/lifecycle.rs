//! Nodes that die, lose power, pause and come back, and faults that begin and end: the calls that touch many connections.
//! Their cost is the node's connections, or all of them for a fault.

use super::connection::EndState;
use super::fault::{Fault, FaultId, Who};
use super::flow::{Acks, Item, Parcel, NEVER};
use super::topology::NodeSpec;
use super::{NetEvent, NetOut, Network, What};
use mirrorlab_model::ids::{Nanos, NodeId};

/// How a node goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Down {
    /// The process dies, or exits; its kernel lives and resets its connections. What had left the host still arrives.
    Killed,
    /// The process ends in order: its kernel sends what is left to send, then an orderly end.
    Exited,
    /// The host loses power: silence. Peers learn nothing before their own time-outs, or by a reset once the host is back
    /// and they send.
    PowerLoss,
    /// The process stops (SIGSTOP, a long pause of its runtime). Its kernel goes on: it acknowledges and keeps what comes,
    /// up to the window, until the process goes on.
    Paused,
    /// The whole host stops (a stalled virtual machine): silence, and all is as it was afterwards.
    Frozen,
}

/// What a host answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Host {
    /// Its process lives.
    Up,
    /// A kernel, but no process.
    Vacant,
    Paused,
    Frozen,
    /// Without power.
    Dark,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub spec: NodeSpec,
    pub host: Host,
    pub incarnation: u32,
    /// Its link inside its site.
    pub port: u32,
    /// Slots of its connections, in no order that means anything, but the same in every run.
    pub conns: Vec<u32>,
}

impl Network {
    /// A node goes down. What its process was told stays told; nothing reaches it from now on.
    pub fn node_down(&mut self, now: Nanos, node: NodeId, how: Down, out: &mut NetOut) {
        let Some(Some(state)) = self.nodes.get_mut(usize::from(node.0)) else { return };
        let before = state.host;
        let after = match how {
            Down::Killed | Down::Exited if matches!(before, Host::Dark) => return, // nothing lives there
            Down::Killed | Down::Exited => Host::Vacant,
            Down::PowerLoss => Host::Dark,
            Down::Paused | Down::Frozen if matches!(before, Host::Vacant | Host::Dark) => return,
            Down::Paused => Host::Paused,
            Down::Frozen => Host::Frozen,
        };
        let mut slots = state.conns.clone();
        slots.sort_unstable_by_key(|&slot| self.slab.conns[slot as usize].id);
        for &slot in &slots {
            for flow in &mut self.slab.conns[slot as usize].flows {
                flow.reclaim(now);
            }
        }
        if let Some(Some(state)) = self.nodes.get_mut(usize::from(node.0)) {
            state.host = after;
        }
        for slot in slots {
            self.refresh(slot);
            match after {
                Host::Vacant => self.orphan(now, slot, node, how, out),
                Host::Dark => self.vanish(now, slot, node, out),
                Host::Paused | Host::Frozen | Host::Up => {}
            }
        }
    }

    /// A process stands at a node: a new one (another incarnation), or the paused one that goes on (the same).
    pub fn node_up(&mut self, now: Nanos, node: NodeId, incarnation: u32, out: &mut NetOut) {
        let Some(Some(state)) = self.nodes.get_mut(usize::from(node.0)) else { return };
        let resumes = state.incarnation == incarnation;
        match state.host {
            Host::Up if resumes => return,
            Host::Up | Host::Paused | Host::Frozen if !resumes => self.node_down(now, node, Down::Killed, out),
            _ => {}
        }
        let Some(Some(state)) = self.nodes.get_mut(usize::from(node.0)) else { return };
        state.host = Host::Up;
        state.incarnation = incarnation;
        let mut slots = state.conns.clone();
        slots.sort_unstable_by_key(|&slot| self.slab.conns[slot as usize].id);
        for slot in slots {
            self.refresh(slot);
            self.resume(now, slot, node, out);
        }
    }

    /// A fault begins (or takes the place of the one with the same id).
    pub fn set_fault(&mut self, now: Nanos, id: FaultId, fault: Fault) {
        self.faults.insert(id, fault);
        self.faults_changed(now);
    }

    /// A fault ends. Senders notice with their next retransmission.
    pub fn clear_fault(&mut self, now: Nanos, id: FaultId) {
        if self.faults.remove(&id).is_some() {
            self.faults_changed(now);
        }
    }

    /// Resets the connections between nodes of `one` and nodes of `other`, as a box between them does: both ends are told at
    /// once. `silent`: nothing passes any more and nobody is told; who sends learns it by a time-out of its own, who only
    /// listens never does. Returns how many.
    pub fn reset(&mut self, now: Nanos, one: Who, other: Who, silent: bool, out: &mut NetOut) -> usize {
        let mut struck: Vec<(u64, u32)> = Vec::new();
        for (slot, conn) in self.slab.conns.iter().enumerate().filter(|(_, conn)| conn.live) {
            let (Some(a), Some(b)) = (self.node(conn.ends[0].node), self.node(conn.ends[1].node)) else { continue };
            let between = one.holds(&a.spec) && other.holds(&b.spec) || one.holds(&b.spec) && other.holds(&a.spec);
            if between {
                struck.push((conn.id.0, slot as u32));
            }
        }
        struck.sort_unstable();
        for (_, slot) in &struck {
            if silent {
                let conn = &mut self.slab.conns[*slot as usize];
                conn.dead = true;
                conn.flows.iter_mut().for_each(|flow| flow.reclaim(now));
                self.refresh(*slot);
            } else {
                self.reset_one(now, *slot, out);
            }
        }
        struck.len()
    }

    fn reset_one(&mut self, now: Nanos, slot: u32, out: &mut NetOut) {
        let stamp = self.slab.conns[slot as usize].stamp;
        let up = |end: &super::connection::End| self.node(end.node).is_some_and(|node| node.host == Host::Up);
        // Who is up is told first: the end of a paused process keeps the news until it goes on.
        let first = usize::from(!up(&self.slab.conns[slot as usize].ends[0]));
        for end in [first, 1 - first] {
            let conn = &self.slab.conns[slot as usize];
            if conn.live && conn.stamp == stamp && conn.ends[end].state.is_known() {
                self.tell_locally(now, slot, 1 - end, Parcel::TimedOut, out);
            }
        }
    }

    /// The faults in force.
    pub fn faults(&self) -> impl Iterator<Item = (FaultId, &Fault)> {
        self.faults.iter().map(|(&id, fault)| (id, fault))
    }

    fn faults_changed(&mut self, now: Nanos) {
        self.rules = self
            .faults
            .values()
            .filter_map(|f| if let Fault::Perturb(r) = f { Some(r.clone()) } else { None })
            .collect();
        self.reshape_links();
        for slot in 0..self.slab.conns.len() {
            let conn = &mut self.slab.conns[slot];
            if conn.live {
                conn.flows[0].reclaim(now);
                conn.flows[1].reclaim(now);
                self.refresh(slot as u32);
            }
        }
    }

    pub(super) fn reshape_links(&mut self) {
        for link in &mut self.links {
            let mut spec = link.base;
            for fault in self.faults.values() {
                match fault {
                    Fault::Degrade(worse) if worse.from == link.from && worse.to == link.to => worse.apply(&mut spec),
                    _ => {}
                }
            }
            if spec != link.spec {
                link.shape(spec);
            }
        }
    }

    pub(super) fn cut_between(&self, from: &NodeSpec, to: &NodeSpec) -> bool {
        self.faults.values().any(|fault| matches!(fault, Fault::Cut(cut) if cut.holds(from, to)))
    }

    /// Works out what faults and hosts mean for a connection.
    pub(super) fn refresh(&mut self, slot: u32) {
        let ends = self.slab.conns[slot as usize].ends;
        let (Some(one), Some(other)) = (self.node(ends[0].node), self.node(ends[1].node)) else { return };
        let cut = [self.cut_between(&one.spec, &other.spec), self.cut_between(&other.spec, &one.spec)];
        let hosts = [one.host, other.host];
        let conn = &mut self.slab.conns[slot as usize];
        let cut = cut.map(|cut| cut || conn.dead);
        for direction in [0, 1] {
            let flow = &mut conn.flows[direction];
            flow.cut = cut[direction];
            flow.silent = matches!(hosts[direction], Host::Frozen | Host::Dark);
            flow.acks = match hosts[1 - direction] {
                Host::Dark | Host::Frozen => Acks::Lost,
                _ if cut[1 - direction] => Acks::Lost,
                Host::Paused => Acks::WindowShut,
                Host::Up | Host::Vacant => Acks::Flow,
            };
        }
    }

    /// The process at one end ended and its kernel lives: the other end is reset behind what has left already, or closed
    /// behind all that was sent.
    fn orphan(&mut self, now: Nanos, slot: u32, node: NodeId, how: Down, out: &mut NetOut) {
        let conn = &mut self.slab.conns[slot as usize];
        let end = usize::from(conn.ends[0].node != node);
        let before = conn.ends[end].state;
        match before {
            EndState::Closed => return, // an orderly close is under way, and the kernel sees to it
            EndState::Idle => return,   // the packet that asks for it has not come in: it will be refused
            EndState::Opening | EndState::SynReceived | EndState::Open => {}
        }
        conn.ends[end].state = EndState::Closed;
        let other = conn.ends[1 - end].state;
        if before == EndState::Opening || other == EndState::Closed {
            return self.release(slot);
        }
        let incoming = &mut conn.flows[1 - end];
        incoming.clear(&mut self.links[incoming.link as usize]);
        let outgoing = &mut conn.flows[end];
        let link = &mut self.links[outgoing.link as usize];
        let parcel = if how == Down::Exited { Parcel::Fin } else { Parcel::Reset };
        if how != Down::Exited {
            outgoing.drop_unsent(link);
        }
        outgoing.gated = false;
        outgoing.ended = true;
        outgoing.push(Item { parcel, due: Nanos::ZERO, bytes: 0 }, link);
        self.pump(now, slot, end, out);
    }

    /// The host at one end lost power: nothing leaves it any more, and nothing tells the other end.
    fn vanish(&mut self, now: Nanos, slot: u32, node: NodeId, out: &mut NetOut) {
        let conn = &mut self.slab.conns[slot as usize];
        let end = usize::from(conn.ends[0].node != node);
        let before = conn.ends[end].state;
        if before == EndState::Idle {
            return;
        }
        conn.ends[end].state = EndState::Closed;
        let outgoing = &mut conn.flows[end];
        let link = &mut self.links[outgoing.link as usize];
        outgoing.drop_unsent(link);
        // A packet that arrives later than one that leaves now could has not left: it waits for a retransmission.
        let latest = now + link.spec.latency + Nanos(link.spec.jitter.most());
        let left = outgoing.queue.iter().take_while(|item| item.due <= latest).count();
        outgoing.queue.truncate(left);
        outgoing.launched = left as u32;
        (outgoing.ended, outgoing.gone) = (true, true);
        // What a paused process had not read is lost with its kernel, which had acknowledged it.
        let incoming = &mut conn.flows[1 - end];
        if incoming.retry == 0 && incoming.deliver_at == NEVER {
            while incoming.launched > 0 && incoming.queue.front().is_some_and(|item| item.due <= now) {
                incoming.queue.pop_front();
                incoming.launched -= 1;
            }
        }
        let goes_on = incoming.has_unsent();
        let other = conn.ends[1 - end].state;
        let never_told = other == EndState::SynReceived && left == 0;
        if before == EndState::Opening || never_told || matches!(other, EndState::Closed | EndState::Idle) {
            self.release(slot);
        } else if goes_on {
            self.arm_pump(now, slot, 1 - end, out); // a window that was shut is now silence
        }
    }

    /// The process or host at one end is there again: what its kernel kept is handed over, and both directions go on.
    fn resume(&mut self, now: Nanos, slot: u32, node: NodeId, out: &mut NetOut) {
        let conn = &mut self.slab.conns[slot as usize];
        let end = usize::from(conn.ends[0].node != node);
        if conn.ends[end].state == EndState::Closed {
            return; // an older incarnation's
        }
        let stamp = conn.stamp;
        let back = self.links[conn.flows[end].link as usize].spec.latency;
        let incoming = &conn.flows[1 - end];
        if incoming.launched > 0 && incoming.retry == 0 && incoming.deliver_at == NEVER {
            if let Some(head) = conn.flows[1 - end].queue.front() {
                let at = head.due.max(now);
                conn.flows[1 - end].deliver_at = at;
                out.events.push((at, NetEvent { slot, stamp, what: What::Deliver((1 - end) as u8) }));
            }
        }
        let conn = &mut self.slab.conns[slot as usize];
        if conn.flows[1 - end].retry == 0 && conn.flows[1 - end].has_unsent() {
            self.arm_pump(now + back, slot, 1 - end, out); // the window opens
        }
        let outgoing = &self.slab.conns[slot as usize].flows[end];
        if outgoing.retry == 0 {
            self.pump(now, slot, end, out);
        } else if outgoing.pump_at == NEVER {
            self.arm_pump(now, slot, end, out); // a thawed kernel finds its timer overdue
        }
    }

    /// Gives a connection up.
    pub(super) fn release(&mut self, slot: u32) {
        let conn = &mut self.slab.conns[slot as usize];
        for flow in &mut conn.flows {
            flow.clear(&mut self.links[flow.link as usize]);
        }
        for end in 0..2 {
            let super::connection::End { node, place, .. } = self.slab.conns[slot as usize].ends[end];
            let Some(Some(node)) = self.nodes.get_mut(usize::from(node.0)) else { continue };
            let list = &mut node.conns;
            list.swap_remove(place as usize);
            if let Some(&moved) = list.get(place as usize) {
                let conn = &mut self.slab.conns[moved as usize];
                let at = usize::from(conn.ends[0].node != node.spec.node);
                conn.ends[at].place = place;
            }
        }
        self.slab.release(slot);
    }
}
