//! Connections in a slab: two ends, two flows, and which slot an id has.
//!
//! Events carry the slot and a stamp that changes when the slot is given away, so that the way from an event to its
//! connection is one index. The way from a [`ConnId`] is one look-up in a map that is never iterated.

use super::flow::Flow;
use mirrorlab_model::ids::{ConnId, Nanos, NodeId};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What the process at one end knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndState {
    /// The accepting end before a packet came in.
    Idle,
    /// The opener waits for an answer.
    Opening,
    /// The accepting kernel answered; its process knows nothing yet.
    SynReceived,
    /// The process was told that it is open.
    Open,
    /// Closed by the process, or told closed, or gone with the process.
    Closed,
}

impl EndState {
    /// Whether the process must be told of the connection's end.
    pub const fn is_known(self) -> bool {
        matches!(self, Self::Opening | Self::Open)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub node: NodeId,
    pub state: EndState,
    /// Place in the node's list of connections.
    pub place: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Conn {
    pub id: ConnId,
    pub stamp: u32,
    pub live: bool,
    /// Packets pass no more, whatever the links do: neither end is told.
    pub dead: bool,
    /// Attempts of the handshake that failed.
    pub attempts: u8,
    pub began: Nanos,
    /// The opener, then the accepting end.
    pub ends: [End; 2],
    /// From the opener, then from the accepting end.
    pub flows: [Flow; 2],
}

/// A multiplicative hash of one number (Knuth): deterministic, and enough for ids that count up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// All connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Slab {
    pub conns: Vec<Conn>,
    free: Vec<u32>,
    index: HashMap<ConnId, u32, BuildHasherDefault<IdHasher>>,
}

impl Slab {
    pub fn slot(&self, id: ConnId) -> Option<u32> {
        self.index.get(&id).copied()
    }

    pub fn live(&self) -> usize {
        self.index.len()
    }

    /// A slot for a new connection, its ends not yet known to their nodes. None if the id is in use.
    pub fn allot(&mut self, id: ConnId, from: NodeId, to: NodeId, now: Nanos) -> Option<u32> {
        if self.index.contains_key(&id) {
            return None;
        }
        let ends =
            [End { node: from, state: EndState::Opening, place: 0 }, End { node: to, state: EndState::Idle, place: 0 }];
        let slot = if let Some(slot) = self.free.pop() {
            let conn = &mut self.conns[slot as usize];
            (conn.id, conn.live, conn.dead, conn.attempts, conn.began, conn.ends) = (id, true, false, 0, now, ends);
            slot
        } else {
            let flows = [Flow::new(), Flow::new()];
            self.conns.push(Conn { id, stamp: 0, live: true, dead: false, attempts: 0, began: now, ends, flows });
            (self.conns.len() - 1) as u32
        };
        self.index.insert(id, slot);
        Some(slot)
    }

    /// Gives a slot away; its flows must be clear.
    pub fn release(&mut self, slot: u32) {
        let conn = &mut self.conns[slot as usize];
        conn.live = false;
        conn.stamp = conn.stamp.wrapping_add(1);
        self.index.remove(&conn.id);
        self.free.push(slot);
    }
}
