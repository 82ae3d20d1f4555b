//! One connection to a source broker with one request in flight (spec 4.1: max in flight 1), its time-out and reconnects.

use crate::ids::{ConnId, Nanos, NodeId, Now};
use crate::ports::Cx;
use crate::wire::messages::{Body, Message};

/// What the connection is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Wait {
    /// Nothing: no connection.
    #[default]
    Nothing,
    /// The connection, until a deadline.
    Open(Nanos),
    /// The next request.
    Request,
    /// The answer to this request, until a deadline.
    Answer(u32, Nanos),
}

/// A connection to one node. Not thread-like: its owner tells it what arrived and asks what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The other end.
    pub to: NodeId,
    conn: Option<ConnId>,
    wait: Wait,
    correlation: u32,
    timeout: Nanos,
}

impl Link {
    /// A link that is not open yet; every wait ends after `timeout`.
    #[must_use]
    pub fn new(to: NodeId, timeout: Nanos) -> Self {
        Self { to, conn: None, wait: Wait::Nothing, correlation: 0, timeout }
    }
    /// The waits that begin from now on end after this time.
    pub fn set_timeout(&mut self, timeout: Nanos) {
        self.timeout = timeout;
    }
    /// The connection's id while there is one.
    #[must_use]
    pub fn conn(&self) -> Option<ConnId> {
        self.conn
    }
    /// A request may be sent now.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.wait == Wait::Request
    }
    /// No connection stands or is being made.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.wait == Wait::Nothing
    }
    /// A request is out.
    #[must_use]
    pub fn is_waiting_for_answer(&self) -> bool {
        matches!(self.wait, Wait::Answer(..))
    }
    /// When the present wait is over, if there is one.
    #[must_use]
    pub fn deadline(&self) -> Option<Nanos> {
        match self.wait {
            Wait::Open(at) | Wait::Answer(_, at) => Some(at),
            Wait::Nothing | Wait::Request => None,
        }
    }
    /// Opens the connection.
    pub fn open(&mut self, now: Now, cx: &mut Cx<'_>) -> ConnId {
        let conn = cx.connect(self.to);
        self.conn = Some(conn);
        self.wait = Wait::Open(now.mono + self.timeout);
        conn
    }
    /// The connection stands.
    pub fn on_opened(&mut self) {
        if matches!(self.wait, Wait::Open(_)) {
            self.wait = Wait::Request;
        }
    }
    /// The connection ended: whatever was asked will not be answered.
    pub fn on_closed(&mut self) {
        self.conn = None;
        self.wait = Wait::Nothing;
    }
    /// Sends a request; only when [`Self::is_ready`].
    pub fn send(&mut self, now: Now, body: Body, extra_wait: Nanos, cx: &mut Cx<'_>) {
        let (Some(conn), Wait::Request) = (self.conn, self.wait) else { return };
        self.correlation = self.correlation.wrapping_add(1);
        self.wait = Wait::Answer(self.correlation, now.mono + self.timeout + extra_wait);
        cx.send(conn, Message { correlation: self.correlation, body });
    }
    /// An answer arrived; true if it is the one awaited.
    pub fn on_answer(&mut self, correlation: u32) -> bool {
        let awaited = matches!(self.wait, Wait::Answer(c, _) if c == correlation);
        if awaited {
            self.wait = Wait::Request;
        }
        awaited
    }
    /// Gives up on the present wait and closes the connection, which is nobody's from now on.
    pub fn close(&mut self, cx: &mut Cx<'_>) -> Option<ConnId> {
        self.wait = Wait::Nothing;
        let conn = self.conn.take()?;
        cx.effect(crate::ports::Effect::Close { conn });
        Some(conn)
    }
}
