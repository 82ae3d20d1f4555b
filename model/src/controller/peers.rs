//! A voter's connections to the others: one each, with one request under way.

use crate::controller::quorum::Ask;
use crate::controller::quorum_link::QuorumLink;
use crate::controller::store::SnapshotId;
use crate::ids::{ConnId, LeaderEpoch, Nanos, NodeId, Now};
use crate::ports::Cx;
use crate::wire::messages::{Body, Message};
use std::collections::BTreeMap;

/// A request that is not answered yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// In which epoch of ours it was sent.
    pub epoch: LeaderEpoch,
    /// What for.
    pub ask: Ask,
    /// A piece of this snapshot is asked for instead of records.
    pub snapshot: Option<SnapshotId>,
    correlation: u32,
    deadline: Nanos,
}

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Question {
    /// What for.
    pub ask: Ask,
    /// A piece of this snapshot is asked for instead of records.
    pub snapshot: Option<SnapshotId>,
    /// The request.
    pub body: Body,
}

#[derive(Clone, Debug)]
struct Peer {
    link: QuorumLink,
    asked: Option<Asked>,
}

/// All other voters.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    by_node: BTreeMap<NodeId, Peer>,
    timeout: Nanos,
}

impl Peers {
    /// To these; an answer may take so long.
    #[must_use]
    pub fn new(others: &[NodeId], timeout: Nanos) -> Self {
        let peer = |node: &NodeId| (*node, Peer { link: QuorumLink::new(vec![*node], 0), asked: None });
        Self { by_node: others.iter().map(peer).collect(), timeout }
    }

    fn by_conn(&mut self, conn: ConnId) -> Option<(NodeId, &mut Peer)> {
        self.by_node.iter_mut().find(|(_, peer)| peer.link.owns(conn)).map(|(node, peer)| (*node, peer))
    }
    /// A connection stands. False if it is none of these.
    pub fn opened(&mut self, conn: ConnId) -> bool {
        let Some((_, peer)) = self.by_conn(conn) else { return false };
        peer.link.on_opened();
        true
    }
    /// A connection ended. False if it is none of these.
    pub fn closed(&mut self, conn: ConnId, now: Nanos) -> bool {
        let Some((_, peer)) = self.by_conn(conn) else { return false };
        peer.link.on_closed(now);
        peer.asked = None;
        true
    }
    /// An answer: whose, and to what.
    pub fn answered(&mut self, conn: ConnId, message: &Message) -> Option<(NodeId, Asked)> {
        let (node, peer) = self.by_conn(conn)?;
        let asked = peer.asked.take_if(|asked| asked.correlation == message.correlation)?;
        Some((node, asked))
    }
    /// Not before a while is this one asked again.
    pub fn back_off(&mut self, node: NodeId, now: Nanos) {
        if let Some(peer) = self.by_node.get_mut(&node) {
            peer.link.back_off(now);
        }
    }

    /// Gives up what was asked and took too long, or is not wanted any more: another request could not go out before.
    pub fn give_up(&mut self, now: Nanos, wanted: impl Fn(NodeId, &Asked) -> bool, cx: &mut Cx<'_>) {
        for (node, peer) in &mut self.by_node {
            let Some(asked) = &peer.asked else { continue };
            let unwanted = asked.ask == Ask::Fetch && !wanted(*node, asked);
            if now >= asked.deadline || unwanted {
                peer.link.hang_up(now, cx);
                peer.asked = None;
                if unwanted {
                    peer.link.retry_now(now);
                }
            }
        }
    }

    /// Whether a request can go to this one now; connects if need be.
    pub fn is_free(&mut self, node: NodeId, now: Now, cx: &mut Cx<'_>) -> bool {
        let Some(peer) = self.by_node.get_mut(&node) else { return false };
        peer.link.connect(now, cx);
        peer.asked.is_none() && peer.link.open().is_some() && now.mono >= peer.link.retry_at()
    }

    /// Sends a request to one that is free; `epoch` is ours.
    pub fn ask(&mut self, node: NodeId, epoch: LeaderEpoch, question: Question, now: Nanos, cx: &mut Cx<'_>) {
        let deadline = now + self.timeout;
        let Some(peer) = self.by_node.get_mut(&node) else { return };
        let Some(conn) = peer.link.open() else { return };
        let correlation = peer.link.send(conn, question.body, cx);
        let Question { ask, snapshot, .. } = question;
        peer.asked = Some(Asked { epoch, ask, snapshot, correlation, deadline });
    }

    /// When something is due: an answer that takes too long, or another attempt at one that is wanted.
    #[must_use]
    pub fn next_due(&self, wanted: impl Fn(NodeId) -> bool, now: Nanos) -> Option<Nanos> {
        let due = |(node, peer): (&NodeId, &Peer)| match &peer.asked {
            Some(asked) => Some(asked.deadline),
            None => Some(peer.link.retry_at()).filter(|at| *at > now && wanted(*node)),
        };
        self.by_node.iter().filter_map(due).min()
    }
}
