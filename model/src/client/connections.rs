//! Channels to other processes: connect, back off, count what is in flight, time out. Generic in the token that a request
//! leaves with its owner, so that clients and brokers' own senders share it.
//!
//! Behaviour follows Kafka's NetworkClient: a peer answers in order; the oldest request that times out closes the channel,
//! and everything in flight fails with it, because nobody knows what became of it.

use crate::client::door::{earlier, Backoff};
use crate::ids::{ConnId, Nanos, NodeId, Now};
use crate::ports::{Cx, Effect, Input};
use crate::wire::messages::{Body, Message};
use std::collections::{BTreeMap, VecDeque};

/// Times and limits of channels; names and defaults as in Kafka's client configs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// `reconnect.backoff.ms` and `reconnect.backoff.max.ms`.
    pub backoff: Backoff,
    /// `socket.connection.setup.timeout.ms`.
    pub connect_timeout: Nanos,
    /// `request.timeout.ms`.
    pub request_timeout: Nanos,
    /// `max.in.flight.requests.per.connection`.
    pub max_in_flight: u32,
}

impl Default for ChannelConfig {
    fn default() -> Self {
        Self {
            backoff: Backoff { first: Nanos::from_millis(50), max: Nanos::from_secs(1) },
            connect_timeout: Nanos::from_secs(10),
            request_timeout: Nanos::from_secs(30),
            max_in_flight: 5,
        }
    }
}

/// Where a channel stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelStatus {
    /// Open, and room for another request.
    Ready,
    /// Open, with as many requests in flight as allowed.
    Busy,
    /// The connection is being made.
    Opening,
    /// No connection; none is made before this reading.
    Down(Nanos),
}

/// What became of a channel or a request.
#[derive(Clone, Debug, PartialEq)]
pub enum ChannelEvent<T> {
    /// The channel is open.
    Opened(NodeId),
    /// The channel is gone or could not be made; these requests have no answer, in the order they were sent.
    Lost {
        /// The peer.
        node: NodeId,
        /// What was in flight.
        failed: Vec<T>,
    },
    /// An answer.
    Answer {
        /// The peer.
        node: NodeId,
        /// What the request left.
        token: T,
        /// The answer.
        body: Body,
        /// When the request was sent.
        sent: Nanos,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Down { until: Nanos },
    Opening { conn: ConnId, deadline: Nanos },
    Open { conn: ConnId },
}

#[derive(Clone, Debug, PartialEq)]
struct Flight<T> {
    correlation: u32,
    sent: Nanos,
    deadline: Nanos,
    token: T,
}

#[derive(Clone, Debug, PartialEq)]
struct Peer<T> {
    node: NodeId,
    link: Link,
    failures: u32,
    correlation: u32,
    flights: VecDeque<Flight<T>>,
}

/// Channels of one process, one per peer.
#[derive(Clone, Debug, PartialEq)]
pub struct Channels<T> {
    config: ChannelConfig,
    peers: Vec<Peer<T>>,
    by_node: BTreeMap<NodeId, u32>,
    by_conn: BTreeMap<ConnId, u32>,
    draws: u64,
}

/// The concern of jitter draws ("CHAN").
const JITTER: u64 = 0x4348_414e;

impl<T> Channels<T> {
    /// No channels yet.
    #[must_use]
    pub fn new(config: ChannelConfig) -> Self {
        Self { config, peers: Vec::new(), by_node: BTreeMap::new(), by_conn: BTreeMap::new(), draws: 0 }
    }

    /// Where the channel to `node` stands at `now`, without touching it. An unknown peer is down and may be tried.
    #[must_use]
    pub fn status(&self, node: NodeId) -> ChannelStatus {
        match self.by_node.get(&node) {
            Some(&at) => self.status_of(&self.peers[at as usize]),
            None => ChannelStatus::Down(Nanos::ZERO),
        }
    }

    fn status_of(&self, peer: &Peer<T>) -> ChannelStatus {
        match peer.link {
            Link::Open { .. } if peer.flights.len() < self.config.max_in_flight as usize => ChannelStatus::Ready,
            Link::Open { .. } => ChannelStatus::Busy,
            Link::Opening { .. } => ChannelStatus::Opening,
            Link::Down { until } => ChannelStatus::Down(until),
        }
    }

    /// As [`Self::status`], and a channel that is down and not backing off is opened.
    pub fn ensure(&mut self, now: Now, node: NodeId, cx: &mut Cx) -> ChannelStatus {
        let at = self.peer_at(node);
        let peer = &mut self.peers[at as usize];
        if let Link::Down { until } = peer.link {
            if until <= now.mono {
                let conn = cx.connect(node);
                peer.link = Link::Opening { conn, deadline: now.mono + self.config.connect_timeout };
                self.by_conn.insert(conn, at);
            }
        }
        self.status_of(&self.peers[at as usize])
    }

    fn peer_at(&mut self, node: NodeId) -> u32 {
        if let Some(&at) = self.by_node.get(&node) {
            return at;
        }
        let at = self.peers.len() as u32;
        let link = Link::Down { until: Nanos::ZERO };
        self.peers.push(Peer { node, link, failures: 0, correlation: 0, flights: VecDeque::new() });
        self.by_node.insert(node, at);
        at
    }

    /// Sends a request; its answer or its loss brings the token back. Gives the token back if the channel is not open.
    ///
    /// # Errors
    /// The token, when there is no open channel to `node`.
    pub fn send(&mut self, now: Now, node: NodeId, body: Body, token: T, cx: &mut Cx) -> Result<(), T> {
        let at = self.peer_at(node);
        let peer = &mut self.peers[at as usize];
        let Link::Open { conn } = peer.link else { return Err(token) };
        let correlation = peer.correlation;
        peer.correlation = correlation.wrapping_add(1);
        let deadline = now.mono + self.config.request_timeout;
        peer.flights.push_back(Flight { correlation, sent: now.mono, deadline, token });
        cx.send(conn, Message { correlation, body });
        Ok(())
    }

    /// Sends a request that gets no answer (acks 0). False if the channel is not open.
    pub fn send_unanswered(&mut self, node: NodeId, body: Body, cx: &mut Cx) -> bool {
        let at = self.peer_at(node);
        let peer = &mut self.peers[at as usize];
        let Link::Open { conn } = peer.link else { return false };
        let correlation = peer.correlation;
        peer.correlation = correlation.wrapping_add(1);
        cx.send(conn, Message { correlation, body });
        true
    }

    /// Whether this connection is one of ours.
    #[must_use]
    pub fn owns(&self, conn: ConnId) -> bool {
        self.by_conn.contains_key(&conn)
    }

    /// How many requests to `node` wait for an answer.
    #[must_use]
    pub fn in_flight(&self, node: NodeId) -> usize {
        self.by_node.get(&node).map_or(0, |&at| self.peers[at as usize].flights.len())
    }

    /// How many requests wait for an answer in all.
    #[must_use]
    pub fn total_in_flight(&self) -> usize {
        self.peers.iter().map(|p| p.flights.len()).sum()
    }

    /// The tokens of all requests in flight, by peer in the order first met, oldest first.
    pub fn tokens_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.peers.iter_mut().flat_map(|p| p.flights.iter_mut().map(|f| &mut f.token))
    }

    /// As [`Self::tokens_mut`], read-only.
    pub fn tokens(&self) -> impl Iterator<Item = &T> {
        self.peers.iter().flat_map(|p| p.flights.iter().map(|f| &f.token))
    }

    /// Takes an input of a connection. None for one that is not ours (any more) and for what is no news.
    pub fn on_input(&mut self, now: Now, input: Input, cx: &mut Cx) -> Option<ChannelEvent<T>> {
        match input {
            Input::Opened { conn, .. } => {
                let peer = &mut self.peers[*self.by_conn.get(&conn)? as usize];
                peer.link = Link::Open { conn };
                peer.failures = 0;
                Some(ChannelEvent::Opened(peer.node))
            }
            Input::Closed { conn, .. } => {
                let at = *self.by_conn.get(&conn)?;
                Some(self.lose(at, now, cx))
            }
            Input::Message { conn, message } => self.on_answer(now, conn, message, cx),
            Input::Timer(_) | Input::Flushed { .. } => None,
        }
    }

    fn on_answer(&mut self, now: Now, conn: ConnId, message: Message, cx: &mut Cx) -> Option<ChannelEvent<T>> {
        let at = *self.by_conn.get(&conn)?;
        let peer = &mut self.peers[at as usize];
        let in_order = peer.flights.front().is_some_and(|f| f.correlation == message.correlation);
        if !in_order || message.body.is_request() {
            // Answers come in the order of requests; a peer that breaks this is not understood any more.
            cx.out.effects.push(Effect::Close { conn });
            return Some(self.lose(at, now, cx));
        }
        let flight = peer.flights.pop_front()?;
        Some(ChannelEvent::Answer { node: peer.node, token: flight.token, body: message.body, sent: flight.sent })
    }

    fn lose(&mut self, at: u32, now: Now, cx: &mut Cx) -> ChannelEvent<T> {
        let peer = &mut self.peers[at as usize];
        if let Link::Open { conn } | Link::Opening { conn, .. } = peer.link {
            self.by_conn.remove(&conn);
        }
        let plain = self.config.backoff.after(peer.failures);
        // ±20 % so that clients cut off together do not come back together.
        let swing = plain.0 / 5;
        self.draws += 1;
        let wait = plain.0 - swing + cx.entropy.below(JITTER, self.draws, 2 * swing + 1);
        peer.link = Link::Down { until: now.mono + Nanos(wait) };
        peer.failures = peer.failures.saturating_add(1);
        let failed = peer.flights.drain(..).map(|f| f.token).collect();
        ChannelEvent::Lost { node: peer.node, failed }
    }

    /// Closes the channel to a peer that is of no use any more; what was in flight fails.
    pub fn close(&mut self, now: Now, node: NodeId, cx: &mut Cx) -> Option<ChannelEvent<T>> {
        let at = *self.by_node.get(&node)?;
        match self.peers[at as usize].link {
            Link::Down { .. } => None,
            Link::Opening { conn, .. } | Link::Open { conn } => {
                cx.out.effects.push(Effect::Close { conn });
                Some(self.lose(at, now, cx))
            }
        }
    }

    /// Closes all channels; what was in flight is dropped.
    pub fn close_all(&mut self, now: Now, cx: &mut Cx) {
        let nodes: Vec<NodeId> = self.by_node.keys().copied().collect();
        for node in nodes {
            self.close(now, node, cx);
        }
    }

    /// Closes channels whose connection attempt or oldest request timed out; one loss each.
    pub fn expire(&mut self, now: Now, cx: &mut Cx) -> Vec<ChannelEvent<T>> {
        let mut lost = Vec::new();
        for at in 0..self.peers.len() as u32 {
            let peer = &self.peers[at as usize];
            if Self::deadline_of(peer).is_none_or(|d| d > now.mono) {
                continue;
            }
            if let Link::Open { conn } | Link::Opening { conn, .. } = peer.link {
                cx.out.effects.push(Effect::Close { conn });
            }
            lost.push(self.lose(at, now, cx));
        }
        lost
    }

    fn deadline_of(peer: &Peer<T>) -> Option<Nanos> {
        match peer.link {
            Link::Opening { deadline, .. } => Some(deadline),
            Link::Open { .. } => peer.flights.front().map(|f| f.deadline),
            Link::Down { .. } => None,
        }
    }

    /// When [`Self::expire`] has something to do next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.peers.iter().map(Self::deadline_of).fold(None, earlier)
    }
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
