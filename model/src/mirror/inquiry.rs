//! What the source cluster is asked before a partition is aligned: does it mirror the topic from us, and where did its mirror of
//! our topic end (spec 1.7, 2.5; decisions 6, 26, 34).
//!
//! A round asks every broker that the source lists. First for its mirrors: one that has us as its source and copies the topic
//! makes a loop. Then, mirror by mirror, for the last positions: only a partition's coordinator knows its position, so that a
//! partition has three answers. *Known*: the coordinator told. *None*: every coordinator told that there is none, or no mirror has
//! us as its source. *Unavailable*: somebody who would know did not answer; that is asked again, and never taken for *none*.
//!
//! A circle may be longer than two. Where the source copies a topic from a third cluster, that one is asked for its mirrors too,
//! and so on. Who cannot be reached from here proves nothing: a chain whose far end is dead is a chain.

use crate::guards::{alignment as guard, prototype as quirk, Guards};
use crate::ids::{BrokerId, ConnId, MirrorIx, Nanos, NodeId, Now, PartitionIx, TopicId};
use crate::metadata::configs::parse_nodes;
use crate::mirror::fetcher::{FailCause, Task};
use crate::mirror::link::Link;
use crate::mirror::manager::{ManagerTask, MirrorManager, MirrorTask, LANE_MANAGER};
use crate::mirror::sync::SourceTask;
use crate::ports::Cx;
use crate::states::{LastPosition, MirrorState};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    Body, DescribeClusterMirrorsRequest, DescribeClusterMirrorsResponse, FoundPosition, ListClusterMirrorsRequest,
    ListClusterMirrorsResponse, Message,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Before what was unavailable is asked again.
const AGAIN: Nanos = Nanos::from_secs(1);

/// How long a cluster behind the source may take to tell its mirrors.
const BEHIND: Nanos = Nanos::from_secs(2);

/// A source partition, by the topic's id and its number.
type Key = (TopicId, u32);

/// The questions of one mirror to its source.
#[derive(Clone, Debug, Default)]
pub struct Inquiry {
    waiting: BTreeSet<PartitionIx>,
    not_before: Nanos,
    round: Option<Round>,
}

/// One round of questions to all brokers.
#[derive(Clone, Debug)]
struct Round {
    /// The name of the mirror here.
    name: Arc<str>,
    parts: BTreeMap<Key, PartitionIx>,
    /// Those of [`Self::parts`] whose position matters.
    lookups: Vec<(TopicId, Vec<u32>)>,
    peers: Vec<Peer>,
    /// Mirrors at the source that copy from us: the topics that each copies.
    mirrors: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Topics that come to the source from us through others.
    circles: BTreeSet<Arc<str>>,
    /// The mirrors whose positions are still to be asked for; the first is being asked.
    queue: VecDeque<Arc<str>>,
    /// What coordinators told of partitions, for the mirror that is being asked.
    told: BTreeMap<Key, FoundPosition>,
    found: BTreeMap<Key, Finding>,
    /// The clusters behind the source, by id: which topics of the source come from there, and where their brokers are.
    behind: BTreeMap<Arc<str>, Behind>,
    refused: bool,
    is_listed: bool,
}

/// A cluster that the source copies from, itself or through others.
#[derive(Clone, Debug, Default)]
struct Behind {
    topics: BTreeSet<Arc<str>>,
    nodes: Vec<NodeId>,
    /// For so many topics it was asked.
    asked: usize,
}

/// What is known of a partition so far.
#[derive(Clone, Copy, Debug, Default)]
struct Finding {
    position: Option<LastPosition>,
    is_unavailable: bool,
    is_running: bool,
}

/// One broker of the source, or of a cluster behind it.
#[derive(Clone, Debug)]
struct Peer {
    link: Link,
    awaits: Awaits,
    /// The cluster behind the source that it belongs to; `None`: the source's own.
    behind: Option<Arc<str>>,
}

/// What a broker of the source still owes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    /// The answer to the present question.
    Answer,
    /// The next question.
    Question,
    /// Nothing: it was lost.
    Nothing,
}

/// What came of a round for one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The end of mirroring in the other direction, if it ever was.
    Position(Option<LastPosition>),
    /// Not now: to be asked again.
    Unavailable,
    /// It must not be mirrored now.
    Refused(FailCause),
}

impl Inquiry {
    /// A partition does not wait any more.
    pub(super) fn forget(&mut self, partition: PartitionIx) {
        self.waiting.remove(&partition);
        if let Some(round) = &mut self.round {
            round.parts.retain(|_, p| *p != partition);
        }
    }

    /// Ends the round under way; gives its connections.
    pub(super) fn close(&mut self, cx: &mut Cx<'_>) -> Vec<ConnId> {
        let mut conns = Vec::new();
        for mut peer in self.round.take().map(|round| round.peers).unwrap_or_default() {
            conns.extend(peer.link.close(cx));
        }
        conns
    }

    /// When something is due.
    pub(super) fn next_deadline(&self) -> Option<Nanos> {
        match &self.round {
            Some(round) => round.peers.iter().filter_map(|peer| peer.link.deadline()).min(),
            None if self.waiting.is_empty() => None,
            None => Some(self.not_before),
        }
    }
}

impl Round {
    fn is_over(&self) -> bool {
        self.peers.iter().all(|peer| peer.awaits != Awaits::Answer)
    }

    /// Whether every broker answered every question.
    fn is_complete(&self) -> bool {
        self.own_peers().all(|peer| peer.awaits != Awaits::Nothing)
    }

    fn own_peers(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter().filter(|peer| peer.behind.is_none())
    }

    /// Asks everybody who is left the present question, if the connection stands.
    fn ask(&mut self, now: Now, cluster: &Arc<str>, cx: &mut Cx<'_>) {
        let lookup = self.queue.front().map(|mirror| DescribeClusterMirrorsRequest {
            mirrors: Some(vec![mirror.clone()]),
            states: false,
            offsets: false,
            cluster: Some(cluster.clone()),
            lookups: self.lookups.clone(),
        });
        for peer in self.peers.iter_mut().filter(|peer| peer.awaits == Awaits::Answer && peer.link.is_ready()) {
            let body: Body = match &lookup {
                Some(lookup) if peer.behind.is_none() => lookup.clone().into(),
                _ => ListClusterMirrorsRequest {}.into(),
            };
            peer.link.send(now, body, Nanos::ZERO, cx);
        }
    }

    /// The mirrors of the source, or those of a cluster behind it as far as they bring topics that go on to the source.
    fn on_list(&mut self, answer: &ListClusterMirrorsResponse, behind: Option<&Arc<str>>, cluster: &str) {
        let passed = behind.and_then(|id| self.behind.get(id)).map(|behind| behind.topics.clone());
        for mirror in &answer.mirrors {
            let goes_on = |topic: &&Arc<str>| passed.as_ref().is_none_or(|passed| passed.contains(*topic));
            let topics = mirror.topics.iter().filter(goes_on).cloned();
            if *mirror.source == *cluster {
                match behind {
                    None => self.mirrors.entry(mirror.name.clone()).or_default().extend(topics),
                    Some(_) => self.circles.extend(topics),
                }
                continue;
            }
            let entry = self.behind.entry(mirror.source.clone()).or_default();
            entry.topics.extend(topics);
            if entry.nodes.is_empty() {
                entry.nodes = parse_nodes(&mirror.bootstrap).unwrap_or_default();
            }
        }
    }

    /// The clusters that more topics turned out to come from than they were asked about, with their brokers.
    fn next_behind(&mut self) -> Vec<(Arc<str>, NodeId)> {
        let mut next = Vec::new();
        for (id, behind) in &mut self.behind {
            if behind.asked < behind.topics.len() {
                behind.asked = behind.topics.len();
                next.extend(behind.nodes.iter().map(|node| (id.clone(), *node)));
            }
        }
        next
    }

    fn on_positions(&mut self, answer: &DescribeClusterMirrorsResponse) {
        for told in answer.positions.iter().filter(|told| told.error.is_none()) {
            // Two brokers may think that they coordinate a partition: the later state is the one that counts.
            let before = self.told.entry((told.topic, told.number)).or_insert(*told);
            if told.state_epoch >= before.state_epoch {
                *before = *told;
            }
        }
    }

    /// The present question is answered as far as it will be; true if there is another one.
    fn next_question(&mut self, guards: &mut Guards) -> bool {
        if self.is_listed {
            self.queue.pop_front();
            for (topic, numbers) in &self.lookups {
                for number in numbers {
                    let key = (*topic, *number);
                    let finding = self.found.entry(key).or_default();
                    match self.told.get(&key) {
                        None => finding.is_unavailable = true,
                        Some(told) => {
                            finding.position = finding.position.max(told.position);
                            let over = matches!(told.state, MirrorState::Stopped | MirrorState::Unknown);
                            finding.is_running |= !over;
                        }
                    }
                }
            }
            self.told.clear();
        } else {
            self.is_listed = true;
            if !self.lookups.is_empty() {
                self.queue = self.mirrors.keys().cloned().collect();
                let namesakes = self.queue.iter().all(|name| *name == self.name);
                if !namesakes && guards.admits(guard::PositionOfEveryMirror, false) {
                    self.queue.retain(|name| *name == self.name);
                }
            }
        }
        if self.queue.is_empty() {
            return false;
        }
        for peer in self.peers.iter_mut().filter(|peer| peer.awaits == Awaits::Question && peer.behind.is_none()) {
            peer.awaits = Awaits::Answer;
        }
        true
    }

    /// What the round says of a partition of this topic.
    fn verdict(&self, key: Key, topic: &str, guards: &mut Guards) -> Found {
        if self.own_peers().all(|peer| peer.awaits == Awaits::Nothing) {
            let cause = if self.refused { FailCause::SourceRefuses } else { FailCause::SourceUnreachable };
            return Found::Refused(cause);
        }
        if self.mirrors.values().any(|topics| topics.contains(topic)) {
            return Found::Refused(FailCause::LoopFound);
        }
        if !guards.admits(guard::LongLoopIsRefused, !self.circles.contains(topic)) {
            return Found::Refused(FailCause::LoopFound);
        }
        if self.mirrors.is_empty() {
            // Who did not answer may know of a mirror.
            return if self.is_complete() { Found::Position(None) } else { Found::Unavailable };
        }
        let finding = self.found.get(&key).copied().unwrap_or_default();
        match finding {
            Finding { is_running, .. } if !guards.admits(guard::ReverseHasStopped, !is_running) => {
                Found::Refused(FailCause::ReverseNotStopped)
            }
            Finding { is_unavailable: true, .. } => Found::Unavailable,
            Finding { position, .. } => Found::Position(position),
        }
    }
}

impl MirrorManager {
    /// Has the source asked about a partition: what is found goes to [`Self::on_found`].
    pub(super) fn inquire(&mut self, partition: PartitionIx, cx: &mut Cx<'_>) {
        let Some(mirror) = self.part(partition).map(|part| part.mirror) else { return };
        let Some(source) = self.sources.get_mut(&mirror) else { return };
        source.inquiry.waiting.insert(partition);
        self.tick_soon(cx);
    }

    /// Starts the rounds that are due and ends the waits that took too long.
    pub(super) fn inquire_due(&mut self, now: Now, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let mirrors: Vec<MirrorIx> = self.sources.keys().copied().collect();
        for mirror in mirrors {
            let Some(source) = self.sources.get_mut(&mirror) else { continue };
            let inquiry = &mut source.inquiry;
            match &mut inquiry.round {
                None if inquiry.waiting.is_empty() || inquiry.not_before > now.mono => {}
                None => self.start_round(now, mirror, task, cx),
                Some(round) => {
                    let late = |peer: &&mut Peer| peer.link.deadline().is_some_and(|at| at <= now.mono);
                    let mut closed = Vec::new();
                    for peer in round.peers.iter_mut().filter(late) {
                        closed.extend(peer.link.close(cx));
                        peer.awaits = Awaits::Nothing;
                    }
                    let any = !closed.is_empty();
                    closed.into_iter().for_each(|conn| self.disown(conn));
                    if any {
                        self.go_on_inquiring(now, mirror, task, cx);
                    }
                }
            }
        }
    }

    fn start_round(&mut self, now: Now, mirror: MirrorIx, task: &MirrorTask<'_>, cx: &mut Cx<'_>) {
        let name = task.image.mirror(mirror).map(|entry| entry.name.clone()).unwrap_or_default();
        let Some(source) = self.sources.get_mut(&mirror) else { return };
        let timeout = source.timeout;
        let brokers: Vec<(BrokerId, NodeId)> = source.cluster.live.clone();
        if brokers.is_empty() {
            // A broker that has just started may list nobody. There is nobody to ask, and no answer that would end the round.
            source.inquiry.not_before = now.mono + AGAIN;
            return self.want_refresh(mirror, cx);
        }
        let waiting = std::mem::take(&mut source.inquiry.waiting);
        let mut parts = BTreeMap::new();
        let mut lookups: BTreeMap<TopicId, Vec<u32>> = BTreeMap::new();
        for partition in waiting {
            let Some(part) = self.part(partition) else { continue };
            parts.insert((part.topic_id, part.number), partition);
            if part.state == MirrorState::LogAlignment {
                lookups.entry(part.topic_id).or_default().push(part.number);
            }
        }
        let mut peers = Vec::new();
        for (_, node) in brokers {
            let mut link = Link::new(node, timeout);
            let conn = link.open(now, cx);
            self.own_inquiry(conn, mirror);
            peers.push(Peer { link, awaits: Awaits::Answer, behind: None });
        }
        let round = Round {
            name,
            parts,
            lookups: lookups.into_iter().collect(),
            peers,
            mirrors: BTreeMap::new(),
            circles: BTreeSet::new(),
            behind: BTreeMap::new(),
            queue: VecDeque::new(),
            told: BTreeMap::new(),
            found: BTreeMap::new(),
            refused: false,
            is_listed: false,
        };
        if let Some(source) = self.sources.get_mut(&mirror) {
            source.inquiry.round = Some(round);
        }
    }

    /// Something arrived on a connection of a round.
    pub(super) fn run_inquiry(
        &mut self,
        now: Now,
        mirror: MirrorIx,
        arrived: SourceTask,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        let one_way = task.image.mirror(mirror).is_some_and(|entry| entry.config.allow_one_way);
        let Some(round) = self.sources.get_mut(&mirror).and_then(|source| source.inquiry.round.as_mut()) else {
            return;
        };
        let Some(at) = round.peers.iter().position(|peer| peer.link.conn() == Some(arrived.conn)) else { return };
        let peer = &mut round.peers[at];
        match arrived.task {
            Task::Opened => {
                peer.link.on_opened();
                round.ask(now, task.cluster_id, cx);
                return;
            }
            Task::Closed => {
                peer.link.on_closed();
                peer.awaits = Awaits::Nothing;
            }
            Task::Answer(Message { correlation, body }) => {
                if !peer.link.on_answer(correlation) {
                    return;
                }
                peer.awaits = Awaits::Question;
                let error = match &body {
                    Body::ListClusterMirrorsResponse(answer) => answer.error,
                    Body::DescribeClusterMirrorsResponse(answer) => answer.error,
                    _ => ErrorCode::UnsupportedVersion,
                };
                match body {
                    Body::ListClusterMirrorsResponse(answer) if error.is_none() => {
                        let behind = round.peers[at].behind.clone();
                        round.on_list(&answer, behind.as_ref(), task.cluster_id);
                    }
                    Body::DescribeClusterMirrorsResponse(answer) if error.is_none() => round.on_positions(&answer),
                    // A source that does not know these requests mirrors nothing back: accepted if the operator says so.
                    _ if one_way => {}
                    _ => {
                        round.refused |= round.peers[at].behind.is_none();
                        round.peers[at].awaits = Awaits::Nothing;
                    }
                }
            }
            Task::Kick => return,
        }
        self.go_on_inquiring(now, mirror, task, cx);
    }

    fn go_on_inquiring(&mut self, now: Now, mirror: MirrorIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Some(source) = self.sources.get_mut(&mirror) else { return };
        let Some(round) = source.inquiry.round.as_mut().filter(|round| round.is_over()) else { return };
        let next = round.next_behind();
        if !next.is_empty() {
            let timeout = source.timeout.min(BEHIND);
            let mut opened = Vec::new();
            for (id, node) in next {
                let mut link = Link::new(node, timeout);
                opened.push(link.open(now, cx));
                round.peers.push(Peer { link, awaits: Awaits::Answer, behind: Some(id) });
            }
            return opened.into_iter().for_each(|conn| self.own_inquiry(conn, mirror));
        }
        if round.next_question(cx.guards) {
            // Nobody may be left to ask.
            round.ask(now, task.cluster_id, cx);
            if !round.is_over() {
                return;
            }
            while round.next_question(cx.guards) {}
        }
        let Some(mut round) = source.inquiry.round.take() else { return };
        for peer in &mut round.peers {
            if let Some(conn) = peer.link.close(cx) {
                self.disown(conn);
            }
        }
        for (key, partition) in &round.parts {
            let topic =
                self.part(*partition).and_then(|part| task.image.topic(part.topic)).map(|topic| topic.name.clone());
            let Some(topic) = topic else { continue };
            let mut found = round.verdict(*key, &topic, cx.guards);
            if found == Found::Unavailable && cx.guards.quirk(quirk::SilenceIsNone) {
                found = Found::Position(None);
            }
            let told = found != Found::Unavailable;
            if !cx.guards.admits(guard::SilenceIsNotNone, told) {
                if let Some(source) = self.sources.get_mut(&mirror) {
                    source.inquiry.not_before = now.mono + AGAIN;
                }
                self.inquire(*partition, cx);
                continue;
            }
            if !told {
                found = Found::Position(None); // the mutant takes silence for none
            }
            self.on_found(now, *partition, found, task, cx);
        }
        self.tasks.push_back(ManagerTask::Tick);
        cx.wake(LANE_MANAGER);
    }

    fn own_inquiry(&mut self, conn: ConnId, mirror: MirrorIx) {
        self.own(conn, super::manager::Owner::Inquiry(mirror));
    }
}
