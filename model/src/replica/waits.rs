//! Producers that wait for replicas (acks=all): one queue per leader partition, linked through one slab, so that an idle
//! partition has no queue and a busy one allocates nothing.

use crate::ids::Offset;
use crate::replica::partition::NONE;
use crate::wire::errors::ErrorCode;

/// Which part of which pending request waits. The generation tells a request from its successor in the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Place of the request in the broker's list.
    pub request: u32,
    /// Generation of that place.
    pub generation: u32,
    /// Which of the request's parts.
    pub part: u32,
}

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitDone {
    /// Whose.
    pub ticket: Ticket,
    /// How it ended.
    pub error: ErrorCode,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    ticket: Ticket,
    next: u32,
    need: Offset,
}

/// The slab of waits; a queue is the pair (first, last).
#[derive(Clone, Debug, Default)]
pub struct Waits {
    nodes: Vec<Node>,
    free: Vec<u32>,
}

impl Waits {
    /// Appends to a queue.
    pub(crate) fn push(&mut self, queue: &mut (u32, u32), ticket: Ticket, need: Offset) {
        let node = Node { ticket, next: NONE, need };
        let at = if let Some(at) = self.free.pop() {
            self.nodes[at as usize] = node;
            at
        } else {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        };
        if queue.0 == NONE {
            queue.0 = at;
        } else {
            self.nodes[queue.1 as usize].next = at;
        }
        queue.1 = at;
    }

    /// Takes the first wait off a queue, if the watermark `upto` satisfies it.
    pub(crate) fn pop(&mut self, queue: &mut (u32, u32), upto: Offset) -> Option<Ticket> {
        let node = *self.nodes.get(queue.0 as usize)?;
        if node.need > upto {
            return None;
        }
        self.free.push(queue.0);
        queue.0 = node.next;
        Some(node.ticket)
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// Nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
