//! The way from a mirror leader to the coordinators of its partitions: this broker's own shards, or other brokers.
//!
//! One request is under way per broker; what comes meanwhile waits and goes together. Every read and write is answered exactly
//! once, by what the coordinator said or by why it could not be asked; whether to ask again is the asker's business.

use crate::ids::{BrokerId, ConnId, Nanos, NodeId, Now, PartitionIx};
use crate::metadata::image::MetadataImage;
use crate::mirror::coordinator::{Asker, Coordinator, Written};
use crate::mirror::link::Link;
use crate::mirror::records::StateKey;
use crate::ports::Cx;
use crate::states::StateRecord;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    Body, Message, ReadMirrorStatesRequest, ReadMirrorStatesResponse, StateWrite, WriteMirrorStatesRequest,
    WriteMirrorStatesResponse,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a coordinator said, or why it did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateAnswer {
    /// To a read: the committed record, the default one where there is none.
    Read(PartitionIx, Result<StateRecord, ErrorCode>),
    /// To a write: the state epoch now.
    Written(StateWrite, Result<i32, ErrorCode>),
}

/// Something to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ask {
    Read(PartitionIx),
    Write(StateWrite),
}

impl Ask {
    fn fail(self, error: ErrorCode) -> StateAnswer {
        match self {
            Self::Read(partition) => StateAnswer::Read(partition, Err(error)),
            Self::Write(write) => StateAnswer::Written(write, Err(error)),
        }
    }
    fn is_read(&self) -> bool {
        matches!(self, Self::Read(_))
    }
}

/// Another broker that coordinates.
#[derive(Clone, Debug)]
struct Peer {
    link: Link,
    waiting: Vec<(Arc<str>, Ask)>,
    /// What the request under way asks.
    asked: Vec<Ask>,
}

/// What arrived on a connection to a peer.
#[derive(Clone, Debug, PartialEq)]
pub enum PeerTask {
    /// It stands.
    Opened,
    /// It ended.
    Closed,
    /// An answer.
    Answer(Message),
}

/// The client of the mirror state coordinators.
#[derive(Clone, Debug)]
pub struct StateClient {
    me: BrokerId,
    timeout: Nanos,
    peers: BTreeMap<BrokerId, Peer>,
    by_conn: BTreeMap<ConnId, BrokerId>,
    answers: Vec<StateAnswer>,
}

/// Entries of one request.
const ENTRIES_MAX: usize = 10_000;

impl StateClient {
    /// `timeout` is `mirror.coordinator.write.timeout.ms`: the longest wait for an answer.
    #[must_use]
    pub fn new(me: BrokerId, timeout: Nanos) -> Self {
        Self { me, timeout, peers: BTreeMap::new(), by_conn: BTreeMap::new(), answers: Vec::new() }
    }

    /// Asks for the committed state of a partition.
    pub fn read(
        &mut self,
        partition: PartitionIx,
        key: &StateKey,
        own: &Coordinator,
        image: &MetadataImage,
        cx: &mut Cx<'_>,
    ) {
        match self.leader(key, own, image) {
            Err(error) => self.answers.push(StateAnswer::Read(partition, Err(error))),
            Ok((leader, _)) if leader == self.me => {
                let result = own.read_settled(key, image).map(Option::unwrap_or_default);
                self.answers.push(StateAnswer::Read(partition, result));
            }
            Ok((leader, node)) => self.file(leader, node, &key.mirror, Ask::Read(partition), cx),
        }
    }

    /// Asks for a state to be committed.
    pub fn write(
        &mut self,
        now: Now,
        key: StateKey,
        write: StateWrite,
        own: &mut Coordinator,
        image: &MetadataImage,
        cx: &mut Cx<'_>,
    ) {
        match self.leader(&key, own, image) {
            Err(error) => self.answers.push(StateAnswer::Written(write, Err(error))),
            Ok((leader, _)) if leader == self.me => own.write(Asker::Own, key, write, image, now),
            Ok((leader, node)) => self.file(leader, node, &key.mirror, Ask::Write(write), cx),
        }
    }

    fn leader(
        &self,
        key: &StateKey,
        own: &Coordinator,
        image: &MetadataImage,
    ) -> Result<(BrokerId, NodeId), ErrorCode> {
        let home = own.home(key, image).ok_or(ErrorCode::CoordinatorNotAvailable)?;
        let leader = image.partition(home).map(|p| p.state.leader).ok_or(ErrorCode::CoordinatorNotAvailable)?;
        let node = image.broker_node(leader).ok_or(ErrorCode::CoordinatorNotAvailable)?;
        Ok((leader, node))
    }

    fn file(&mut self, leader: BrokerId, node: NodeId, mirror: &Arc<str>, ask: Ask, _cx: &mut Cx<'_>) {
        let timeout = self.timeout;
        let fresh = || Peer { link: Link::new(node, timeout), waiting: Vec::new(), asked: Vec::new() };
        let peer = self.peers.entry(leader).or_insert_with(fresh);
        if peer.link.is_down() {
            peer.link.to = node;
        }
        peer.waiting.push((mirror.clone(), ask));
    }

    // --------------------------------------------------------------------------------------------------------- connections

    /// Whether a connection is one of these.
    #[must_use]
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
                self.by_conn.remove(&conn);
                self.lost(broker);
            }
            PeerTask::Answer(Message { correlation, body }) => {
                if !peer.link.on_answer(correlation) {
                    return;
                }
                let asked = std::mem::take(&mut peer.asked);
                match body {
                    Body::ReadMirrorStatesResponse(answer) => self.on_read(asked, *answer),
                    Body::WriteMirrorStatesResponse(answer) => self.on_written(asked, *answer),
                    _ => self.fail_all(asked, ErrorCode::UnknownServerError),
                }
            }
        }
    }

    /// Whoever waits on a connection that is gone hears so: what was asked may have been done, or not.
    fn lost(&mut self, broker: BrokerId) {
        let Some(peer) = self.peers.get_mut(&broker) else { return };
        let asked = std::mem::take(&mut peer.asked);
        let waiting = std::mem::take(&mut peer.waiting);
        self.fail_all(asked, ErrorCode::RequestTimedOut);
        self.fail_all(waiting.into_iter().map(|(_, ask)| ask).collect(), ErrorCode::CoordinatorNotAvailable);
    }

    fn fail_all(&mut self, asked: Vec<Ask>, error: ErrorCode) {
        self.answers.extend(asked.into_iter().map(|ask| ask.fail(error)));
    }

    /// An entry that the answer leaves out was not answered, and an answer without entries answers nothing (decision 32).
    fn on_read(&mut self, asked: Vec<Ask>, answer: ReadMirrorStatesResponse) {
        let mut found: BTreeMap<PartitionIx, Result<StateRecord, ErrorCode>> = BTreeMap::new();
        for (partition, error, record) in answer.parts {
            found.insert(partition, if error.is_none() { Ok(record) } else { Err(error) });
        }
        let silence = if answer.error.is_none() { ErrorCode::UnknownServerError } else { answer.error };
        for ask in asked {
            match ask {
                Ask::Read(partition) => {
                    let result = found.remove(&partition).unwrap_or(Err(silence));
                    self.answers.push(StateAnswer::Read(partition, result));
                }
                other => self.answers.push(other.fail(silence)),
            }
        }
    }

    fn on_written(&mut self, asked: Vec<Ask>, answer: WriteMirrorStatesResponse) {
        let silence = if answer.error.is_none() { ErrorCode::UnknownServerError } else { answer.error };
        // Answers come in the order of the entries: one partition may stand there twice.
        let mut parts = answer.parts.into_iter().peekable();
        for ask in asked {
            match ask {
                Ask::Write(write) => {
                    let mine = parts.next_if(|(partition, ..)| *partition == write.partition);
                    let result = match mine {
                        Some((_, error, epoch)) if error.is_none() => Ok(epoch),
                        Some((_, error, _)) => Err(error),
                        None => Err(silence),
                    };
                    self.answers.push(StateAnswer::Written(write, result));
                }
                other => self.answers.push(other.fail(silence)),
            }
        }
    }

    /// Gives up what waits for too long, opens connections that are needed, sends what waits.
    pub fn go_on(&mut self, now: Now, cx: &mut Cx<'_>) {
        let late = |peer: &Peer| peer.link.deadline().is_some_and(|at| at <= now.mono);
        let overdue: Vec<BrokerId> = self.peers.iter().filter(|(_, p)| late(p)).map(|(b, _)| *b).collect();
        for broker in overdue {
            if let Some(peer) = self.peers.get_mut(&broker) {
                if let Some(conn) = peer.link.close(cx) {
                    self.by_conn.remove(&conn);
                }
            }
            self.lost(broker);
        }
        for (broker, peer) in &mut self.peers {
            if peer.waiting.is_empty() {
                continue;
            }
            if peer.link.is_down() {
                let conn = peer.link.open(now, cx);
                self.by_conn.insert(conn, *broker);
            } else if peer.link.is_ready() {
                send(peer, now, cx);
            }
        }
    }

    /// When something has waited too long.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.peers.values().filter_map(|peer| peer.link.deadline()).min()
    }

    /// What was answered; the writes that ended in this broker's own shards with it.
    pub fn take_answers(&mut self, own: &mut Coordinator) -> Vec<StateAnswer> {
        let mut answers = std::mem::take(&mut self.answers);
        answers.extend(
            own.take_written().into_iter().map(|Written { write, result }| StateAnswer::Written(write, result)),
        );
        answers
    }
}

/// Sends the front of what waits: as much as is of one kind and one mirror.
fn send(peer: &mut Peer, now: Now, cx: &mut Cx<'_>) {
    let Some((mirror, first)) = peer.waiting.first().cloned() else { return };
    let alike = |(m, ask): &(Arc<str>, Ask)| *m == mirror && ask.is_read() == first.is_read();
    let count = peer.waiting.iter().take(ENTRIES_MAX).take_while(|entry| alike(entry)).count();
    let asked: Vec<Ask> = peer.waiting.drain(..count).map(|(_, ask)| ask).collect();
    let body: Body = if first.is_read() {
        let parts = asked.iter().filter_map(|ask| if let Ask::Read(p) = ask { Some(*p) } else { None }).collect();
        ReadMirrorStatesRequest { mirror, parts }.into()
    } else {
        let write = |ask: &Ask| if let Ask::Write(w) = ask { Some(w.clone()) } else { None };
        WriteMirrorStatesRequest { mirror, parts: asked.iter().filter_map(write).collect() }.into()
    };
    peer.asked = asked;
    peer.link.send(now, body, Nanos::ZERO, cx);
}

#[cfg(test)]
#[path = "state_client_tests.rs"]
mod tests;
