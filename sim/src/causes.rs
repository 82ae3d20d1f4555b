//! What led to what: for each event the one in whose handling it was scheduled, for each message the event that sent it.
//!
//! Kept only when asked for, and nothing depends on it: the history is the same. Events are numbered as the world counts them,
//! from 1; 0 stands for what happened before the first.

use mirrorlab_model::ids::{ConnId, Nanos, NodeId};
use mirrorlab_model::trace::TraceEvent;
use mirrorlab_model::wire::messages::Message;
use std::collections::BTreeMap;

/// What an event was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The network went on; what arrived stands among the deliveries.
    Net,
    /// A lane ran a task.
    Run(NodeId),
    /// A timer fired.
    Timer(NodeId),
    /// A flush ended.
    Flushed(NodeId),
    /// A process started.
    Boot(NodeId),
    /// A kernel wrote back.
    WriteBack(NodeId),
    /// A script's turn: a fault, an order, a look.
    Script,
}

impl What {
    /// Whose it was, if it was one node's.
    #[must_use]
    pub const fn node(self) -> Option<NodeId> {
        match self {
            Self::Net | Self::Script => None,
            Self::Run(node) | Self::Timer(node) | Self::Flushed(node) | Self::Boot(node) | Self::WriteBack(node) => {
                Some(node)
            }
        }
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// When.
    pub at: Nanos,
    /// What.
    pub what: What,
    /// The event that scheduled it.
    pub cause: u64,
}

/// A message that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The event that it arrived with.
    pub step: u64,
    /// Where.
    pub to: NodeId,
    /// Where from; `None` if it was sent before anything was noted.
    pub from: Option<NodeId>,
    /// The event that sent it.
    pub sent: u64,
    /// The name of what it asks or answers.
    pub name: &'static str,
}

/// A message by its connection, its number there, and whether it asks.
type MessageKey = (ConnId, u32, bool);

/// The record of causes.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    /// Events that were scheduled before anything was noted.
    before: u64,
    /// The event that scheduled each, by sequence.
    scheduled_by: Vec<u32>,
    noted: Vec<Noted>,
    sent: BTreeMap<MessageKey, (u32, NodeId)>,
    deliveries: Vec<Delivery>,
    traced: Vec<(u64, TraceEvent)>,
}

impl Causes {
    pub(crate) fn new(before: u64) -> Self {
        Self { before, ..Self::default() }
    }

    pub(crate) fn scheduled(&mut self, step: u64) {
        self.scheduled_by.push(step as u32);
    }

    pub(crate) fn begins(&mut self, at: Nanos, sequence: u64, what: What) {
        let by = sequence.checked_sub(self.before).and_then(|n| self.scheduled_by.get(n as usize));
        self.noted.push(Noted { at, what, cause: by.copied().map_or(0, u64::from) });
    }

    pub(crate) fn sent(&mut self, step: u64, from: NodeId, conn: ConnId, message: &Message) {
        self.sent.insert((conn, message.correlation, message.body.is_request()), (step as u32, from));
    }

    /// A copy that a fault made is found by the same key: nothing is taken out.
    pub(crate) fn delivered(&mut self, step: u64, to: NodeId, conn: ConnId, message: &Message) {
        let sent = self.sent.get(&(conn, message.correlation, message.body.is_request())).copied();
        let (sent, from) = sent.map_or((0, None), |(step, from)| (u64::from(step), Some(from)));
        self.deliveries.push(Delivery { step, to, from, sent, name: message.body.name() });
    }

    pub(crate) fn traced(&mut self, step: u64, events: &[TraceEvent]) {
        self.traced.extend(events.iter().map(|event| (step, *event)));
    }

    /// An event by its number. The record must have begun with the world.
    #[must_use]
    pub fn event(&self, step: u64) -> Option<&Noted> {
        self.noted.get(usize::try_from(step.checked_sub(1)?).ok()?)
    }

    /// How many events were noted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.noted.len()
    }

    /// Whether none was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.noted.is_empty()
    }

    /// What arrived with an event.
    #[must_use]
    pub fn deliveries(&self, step: u64) -> &[Delivery] {
        let from = self.deliveries.partition_point(|d| d.step < step);
        let to = self.deliveries.partition_point(|d| d.step <= step);
        &self.deliveries[from..to]
    }

    /// Every trace event with the number of its event, in order.
    #[must_use]
    pub fn trace(&self) -> &[(u64, TraceEvent)] {
        &self.traced
    }

    /// The last event of each node (by id) that can have had to do with an event: what went before at its own node, and what
    /// led to a message that had arrived by then, and so on back. 0 for a node that had nothing to do with it. An event of no
    /// node in particular, a script's look, has all that went before it in its past.
    #[must_use]
    pub fn past(&self, step: u64, nodes: usize) -> Vec<u64> {
        let mut past = vec![0; nodes];
        let raise = |past: &mut Vec<u64>, node: NodeId, to: u64| {
            if let Some(at) = past.get_mut(usize::from(node.0)) {
                *at = (*at).max(to);
            }
        };
        let own = self.event(step).and_then(|noted| noted.what.node());
        let arrived = self.deliveries(step);
        match own {
            Some(node) => raise(&mut past, node, step),
            None if arrived.is_empty() => past.fill(step),
            None => arrived.iter().for_each(|d| raise(&mut past, d.to, step)),
        }
        let last = self.deliveries.partition_point(|d| d.step <= step);
        for delivery in self.deliveries[..last].iter().rev() {
            let reaches = past.get(usize::from(delivery.to.0)).is_some_and(|at| *at >= delivery.step);
            if let (true, Some(from)) = (reaches, delivery.from) {
                raise(&mut past, from, delivery.sent);
            }
        }
        past
    }
}

#[cfg(test)]
#[path = "causes_tests.rs"]
mod tests;
