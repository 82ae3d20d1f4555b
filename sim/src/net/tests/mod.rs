//! Tests of the network, each a small world: what is asked of it, and what reaches whom when.

mod faults;
mod flows;
mod golden;
mod life;
mod properties;

use super::*;
use mirrorlab_model::wire::messages::{FetchResponse, ProduceRequest};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(super) const A: NodeId = NodeId(1);
pub(super) const B: NodeId = NodeId(2);
pub(super) const C: NodeId = NodeId(3);
pub(super) const WEST: SiteIx = SiteIx(0);
pub(super) const EAST: SiteIx = SiteIx(1);

/// What reached a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Got {
    Opened(bool),
    Closed(CloseReason),
    Message(u32),
}

/// A world with nothing but a network.
#[derive(Clone)]
pub(super) struct Rig {
    pub net: Network,
    pub now: Nanos,
    pub log: Vec<(Nanos, NodeId, ConnId, Got)>,
    out: NetOut,
    heap: BinaryHeap<Reverse<(Nanos, u64, usize)>>,
    events: Vec<NetEvent>,
    conns: u64,
}

impl Rig {
    pub fn new(topology: &Topology, seed: u64) -> Self {
        let mut rig = Self {
            net: Network::new(topology, seed),
            now: Nanos::ZERO,
            log: Vec::new(),
            out: NetOut::default(),
            heap: BinaryHeap::new(),
            events: Vec::new(),
            conns: 0,
        };
        for spec in &topology.nodes {
            rig.up(spec.node, 1);
        }
        rig
    }
    /// A in the west, B and C in the east; 40 ms and 1 Gbit/s between, no jitter.
    pub fn wan() -> Self {
        Self::new(&wan(LinkSpec::WAN), 7)
    }
    fn drain(&mut self) {
        for (at, event) in self.out.events.drain(..) {
            assert!(at >= self.now, "an event in the past");
            self.heap.push(Reverse((at, self.events.len() as u64, self.events.len())));
            self.events.push(event);
        }
        for (node, input) in self.out.inputs.drain(..) {
            let (conn, got) = match input {
                Input::Opened { conn, inbound, .. } => (conn, Got::Opened(inbound)),
                Input::Closed { conn, why } => (conn, Got::Closed(why)),
                Input::Message { conn, message } => (conn, Got::Message(message.correlation)),
                Input::Timer(_) | Input::Flushed { .. } => unreachable!("not the network's"),
            };
            self.log.push((self.now, node, conn, got));
        }
    }
    pub fn reset(&mut self, one: Who, other: Who, silent: bool) -> usize {
        let many = self.net.reset(self.now, one, other, silent, &mut self.out);
        self.drain();
        many
    }
    pub fn connect(&mut self, from: NodeId, to: NodeId) -> ConnId {
        let conn = ConnId((u64::from(from.0) << 40) | self.conns);
        self.conns += 1;
        self.net.connect(self.now, conn, from, to, &mut self.out);
        self.drain();
        conn
    }
    /// A connection that stands, and an empty log.
    pub fn connected(&mut self, from: NodeId, to: NodeId) -> ConnId {
        let conn = self.connect(from, to);
        self.pass(Nanos::from_secs(1));
        assert_eq!(self.log.iter().filter(|row| matches!(row.3, Got::Opened(_))).count(), 2);
        self.log.clear();
        conn
    }
    pub fn send(&mut self, conn: ConnId, from: NodeId, bytes: u32, number: u32) -> bool {
        let sent = self.net.send(self.now, conn, from, bytes, message(number), &mut self.out);
        self.drain();
        sent
    }
    pub fn close(&mut self, conn: ConnId, from: NodeId) {
        self.net.close(self.now, conn, from, &mut self.out);
        self.drain();
    }
    pub fn down(&mut self, node: NodeId, how: Down) {
        self.net.node_down(self.now, node, how, &mut self.out);
        self.drain();
    }
    pub fn up(&mut self, node: NodeId, incarnation: u32) {
        self.net.node_up(self.now, node, incarnation, &mut self.out);
        self.drain();
    }
    pub fn fault(&mut self, id: u32, fault: Fault) {
        self.net.set_fault(self.now, FaultId(id), fault);
    }
    pub fn heal(&mut self, id: u32) {
        self.net.clear_fault(self.now, FaultId(id));
    }
    pub fn pass(&mut self, time: Nanos) {
        self.until(self.now + time);
    }
    pub fn until(&mut self, end: Nanos) {
        while let Some(&Reverse((at, _, event))) = self.heap.peek() {
            if at > end {
                break;
            }
            self.heap.pop();
            self.now = at;
            assert!(self.events.len() < 3_000_000, "the network does not come to rest: {:?}", self.events.last());
            self.net.arrive(at, self.events[event], &mut self.out);
            self.drain();
        }
        self.now = end;
    }
    /// What a node got, and when in microseconds.
    pub fn got(&self, node: NodeId) -> Vec<(u64, Got)> {
        self.log.iter().filter(|row| row.1 == node).map(|row| (row.0 .0 / 1_000, row.3)).collect()
    }
    pub fn numbers(&self, node: NodeId) -> Vec<u32> {
        let number = |row: &(Nanos, NodeId, ConnId, Got)| match row.3 {
            Got::Message(number) if row.1 == node => Some(number),
            _ => None,
        };
        self.log.iter().filter_map(number).collect()
    }
    pub fn pending(&self) -> usize {
        self.heap.len()
    }
}

pub(super) fn wan(link: LinkSpec) -> Topology {
    let mut topology = Topology::new(2);
    topology.link(WEST, EAST, link);
    topology.node(A, WEST, Role::Broker, 0);
    topology.node(B, EAST, Role::Broker, 1);
    topology.node(C, EAST, Role::Controller, 1);
    topology
}

/// Even numbers ask, odd ones answer.
pub(super) fn message(number: u32) -> Message {
    let body = if number % 2 == 0 { ProduceRequest::default().into() } else { FetchResponse::default().into() };
    Message { correlation: number, body }
}

pub(super) const fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}
