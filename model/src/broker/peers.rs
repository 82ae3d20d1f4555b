//! Questions to other brokers of this cluster, on behalf of work that waits here.
//!
//! One question is under way per broker; later ones wait behind it. Every question is answered exactly once: by what the broker
//! said, or by silence.

use crate::ids::{BrokerId, ConnId, Nanos, NodeId, Now};
use crate::mirror::link::Link;
use crate::mirror::state_client::PeerTask;
use crate::ports::Cx;
use crate::wire::messages::{Body, Message};
use std::collections::{BTreeMap, VecDeque};

/// A question that ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Heard {
    /// Whose work it is for.
    pub asker: u32,
    /// What was asked.
    pub question: Body,
    /// What was answered; `None`: nothing, the question may or may not have arrived.
    pub answer: Option<Body>,
}

#[derive(Clone, Debug)]
struct Peer {
    link: Link,
    asked: Option<(u32, Body)>,
    waiting: VecDeque<(u32, Body)>,
}

/// The brokers that are asked.
#[derive(Clone, Debug)]
pub(crate) struct Peers {
    timeout: Nanos,
    peers: BTreeMap<BrokerId, Peer>,
    by_conn: BTreeMap<ConnId, BrokerId>,
    heard: Vec<Heard>,
}

impl Peers {
    /// Nobody yet; `timeout` is the longest wait for a connection, and for an answer.
    pub fn new(timeout: Nanos) -> Self {
        Self { timeout, peers: BTreeMap::new(), by_conn: BTreeMap::new(), heard: Vec::new() }
    }

    /// Asks a broker at an address.
    pub fn ask(&mut self, broker: BrokerId, node: NodeId, asker: u32, question: Body) {
        let timeout = self.timeout;
        let fresh = || Peer { link: Link::new(node, timeout), asked: None, waiting: VecDeque::new() };
        let peer = self.peers.entry(broker).or_insert_with(fresh);
        if peer.link.is_down() {
            peer.link.to = node;
        }
        peer.waiting.push_back((asker, question));
    }

    /// Whether a connection is one of these.
    pub fn owns(&self, conn: ConnId) -> bool {
        self.by_conn.contains_key(&conn)
    }

    /// Something arrived on a connection.
    pub fn arrived(&mut self, conn: ConnId, task: PeerTask) {
        let Some(&broker) = self.by_conn.get(&conn) else { return };
        let Some(peer) = self.peers.get_mut(&broker).filter(|peer| peer.link.conn() == Some(conn)) else { return };
        match task {
            PeerTask::Opened => peer.link.on_opened(),
            PeerTask::Closed => {
                peer.link.on_closed();
                self.lost(broker, conn);
            }
            PeerTask::Answer(Message { correlation, body }) => {
                if peer.link.on_answer(correlation) {
                    if let Some((asker, question)) = peer.asked.take() {
                        self.heard.push(Heard { asker, question, answer: Some(body) });
                    }
                }
            }
        }
    }

    /// A connection is gone: whoever waits hears so.
    fn lost(&mut self, broker: BrokerId, conn: ConnId) {
        self.by_conn.remove(&conn);
        let Some(peer) = self.peers.get_mut(&broker) else { return };
        let silent = peer.asked.take().into_iter().chain(std::mem::take(&mut peer.waiting));
        self.heard.extend(silent.map(|(asker, question)| Heard { asker, question, answer: None }));
    }

    /// Gives up what waits for too long, opens connections that are needed, sends what waits.
    pub fn go_on(&mut self, now: Now, cx: &mut Cx<'_>) {
        let late = |peer: &Peer| peer.link.deadline().is_some_and(|at| at <= now.mono);
        let overdue: Vec<BrokerId> = self.peers.iter().filter(|(_, p)| late(p)).map(|(b, _)| *b).collect();
        for broker in overdue {
            let Some(peer) = self.peers.get_mut(&broker) else { continue };
            let conn = peer.link.conn();
            peer.link.close(cx);
            if let Some(conn) = conn {
                self.lost(broker, conn);
            }
        }
        for (broker, peer) in &mut self.peers {
            if peer.waiting.is_empty() {
                continue;
            }
            if peer.link.is_down() {
                let conn = peer.link.open(now, cx);
                self.by_conn.insert(conn, *broker);
            } else if peer.link.is_ready() {
                if let Some((asker, question)) = peer.waiting.pop_front() {
                    peer.link.send(now, question.clone(), Nanos::ZERO, cx);
                    peer.asked = Some((asker, question));
                }
            }
        }
    }

    /// When something has waited too long.
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.peers.values().filter_map(|peer| peer.link.deadline()).min()
    }

    /// The questions that ended.
    pub fn take_heard(&mut self) -> Vec<Heard> {
        std::mem::take(&mut self.heard)
    }
}
