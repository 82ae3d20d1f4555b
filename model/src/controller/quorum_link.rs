//! A connection to whoever is believed to lead the quorum: that voter, or the voters in turn while nobody is known to. A broker's
//! metadata observer, its channels of requests, and the voters among themselves reconnect by the same rule.

use crate::ids::{ConnId, Nanos, NodeId, Now};
use crate::ports::{Cx, Effect};
use crate::wire::messages::{Body, Message};

/// Wait before another attempt (`retry.backoff.ms`).
const BACKOFF: Nanos = Nanos::from_millis(100);

/// One connection, to one voter at a time.
#[derive(Clone, Debug)]
pub struct QuorumLink {
    voters: Vec<NodeId>,
    next_voter: usize,
    leader: Option<NodeId>,
    to: NodeId,
    conn: Option<ConnId>,
    open: bool,
    correlation: u32,
    retry_at: Nanos,
}

impl QuorumLink {
    /// No connection yet. Without a known leader the voters are tried in turn from the `first`-th on.
    #[must_use]
    pub fn new(voters: Vec<NodeId>, first: usize) -> Self {
        Self {
            to: voters.first().copied().unwrap_or_default(),
            voters,
            next_voter: first,
            leader: None,
            conn: None,
            open: false,
            correlation: 0,
            retry_at: Nanos::ZERO,
        }
    }

    /// Who is believed to lead.
    #[must_use]
    pub fn leader(&self) -> Option<NodeId> {
        self.leader
    }

    /// Another source knows who leads. The connection stays as it is.
    pub fn set_leader(&mut self, leader: Option<NodeId>) {
        self.leader = leader;
    }

    /// Whether the connection is, or would be, to who is believed to lead.
    #[must_use]
    pub fn is_to_leader(&self) -> bool {
        self.leader == Some(self.to)
    }

    /// Whether this is its connection.
    #[must_use]
    pub fn owns(&self, conn: ConnId) -> bool {
        self.conn == Some(conn)
    }

    /// Whether no connection stands or is being made.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.conn.is_none()
    }

    /// Not before this reading is a connection made, or a pause after an error over.
    #[must_use]
    pub fn retry_at(&self) -> Nanos {
        self.retry_at
    }

    /// The next attempt comes after the backoff.
    pub fn back_off(&mut self, now: Nanos) {
        self.retry_at = now + BACKOFF;
    }

    /// The next attempt may come now.
    pub fn retry_now(&mut self, now: Nanos) {
        self.retry_at = now;
    }

    /// The connection stands.
    pub fn on_opened(&mut self) {
        self.open = true;
    }

    /// The connection ended. Who was at its other end is not believed to lead any more.
    pub fn on_closed(&mut self, now: Nanos) {
        self.conn = None;
        if self.is_to_leader() {
            self.leader = None;
        }
        self.open = false;
        self.back_off(now);
    }

    /// Ends the connection, with the same effect as if it had ended.
    pub fn hang_up(&mut self, now: Nanos, cx: &mut Cx) {
        if let Some(conn) = self.conn {
            cx.effect(Effect::Close { conn });
        }
        self.on_closed(now);
    }

    /// Makes a connection if there is none and the backoff is over.
    pub fn connect(&mut self, now: Now, cx: &mut Cx) {
        if self.conn.is_some() || now.mono < self.retry_at || self.voters.is_empty() {
            return;
        }
        self.to = self.leader.unwrap_or_else(|| {
            self.next_voter += 1;
            self.voters[(self.next_voter - 1) % self.voters.len()]
        });
        self.conn = Some(cx.connect(self.to));
    }

    /// The connection to send on, while it stands.
    #[must_use]
    pub fn open(&self) -> Option<ConnId> {
        self.conn.filter(|_| self.open)
    }

    /// Sends a request on [`Self::open`]'s connection; returns its correlation id.
    pub fn send(&mut self, conn: ConnId, body: Body, cx: &mut Cx) -> u32 {
        self.correlation = self.correlation.wrapping_add(1);
        cx.send(conn, Message { correlation: self.correlation, body });
        self.correlation
    }
}
