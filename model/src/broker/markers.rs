//! Decisions on their way to the logs: one marker per partition of a transaction, sent to whoever leads the partition, and
//! sent again until it is written (Kafka's TransactionMarkerChannelManager).
//!
//! One request is under way per broker; what comes meanwhile goes together. Partitions that this broker leads are handed to
//! it ([`Markers::take_own`]) and answered for in the same way.

use crate::coordinator::txn_plan::ENDS_RAISE_EPOCH;
use crate::coordinator::txn_records::{Member, TxnValue};
use crate::guards::{prototype as quirk, transactions as guard};
use crate::ids::{BrokerId, ConnId, Nanos, NodeId, Now, PartitionIx, ProducerEpoch, ProducerId};
use crate::metadata::image::MetadataImage;
use crate::mirror::link::Link;
use crate::ports::{Cx, Input};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{Body, TxnMarker, WriteTxnMarkersRequest, WriteTxnMarkersResponse};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names the markers of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobId(pub u64);

/// The markers of one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The partition of `__transaction_state` that it belongs to.
    pub home: PartitionIx,
    /// The transactional id.
    pub id: Arc<str>,
    /// Its producer id.
    pub producer: ProducerId,
    /// The epoch that its markers carry.
    pub epoch: ProducerEpoch,
    /// Committed or aborted.
    pub commit: bool,
    /// The leader epoch of its coordinator.
    pub coordinator_epoch: i32,
    /// The transaction version as markers name it: 2 and more, else 0.
    pub version: i8,
    left: Vec<Member>,
}

/// One marker.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Marker {
    job: JobId,
    member: Member,
}

/// Another broker that leads partitions.
#[derive(Clone, Debug)]
struct Peer {
    link: Link,
    waiting: Vec<Marker>,
    /// What the request under way asks, with the partitions as they are numbered in it.
    asked: Vec<(Marker, PartitionIx)>,
}

/// All markers on their way from this broker.
#[derive(Clone, Debug)]
pub struct Markers {
    me: BrokerId,
    timeout: Nanos,
    jobs: BTreeMap<JobId, Job>,
    next_job: u64,
    /// To be placed with a leader.
    unplaced: Vec<Marker>,
    /// The same, not before this reading.
    retry: Vec<Marker>,
    retry_at: Option<Nanos>,
    peers: BTreeMap<BrokerId, Peer>,
    by_conn: BTreeMap<ConnId, BrokerId>,
    own: Vec<(JobId, PartitionIx, Member)>,
    done: Vec<Job>,
    /// Done, and could not be noted: again at the next retry.
    unnoted: Vec<Job>,
}

/// Wait before markers that were not written are sent again.
const RETRY_BACKOFF: Nanos = Nanos::from_millis(100);
/// Markers of one request.
const MARKERS_MAX: usize = 10_000;

impl Markers {
    /// Nothing is on its way. `timeout` is the longest wait for an answer.
    #[must_use]
    pub fn new(me: BrokerId, timeout: Nanos) -> Self {
        Self {
            me,
            timeout,
            jobs: BTreeMap::new(),
            next_job: 0,
            unplaced: Vec::new(),
            retry: Vec::new(),
            retry_at: None,
            peers: BTreeMap::new(),
            by_conn: BTreeMap::new(),
            own: Vec::new(),
            done: Vec::new(),
            unnoted: Vec::new(),
        }
    }

    /// Whether nothing is on its way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty() && self.done.is_empty() && self.unnoted.is_empty()
    }

    /// Sends the markers of a decided transaction.
    pub fn begin(&mut self, home: PartitionIx, id: Arc<str>, value: &TxnValue, commit: bool, coordinator_epoch: i32) {
        let TxnValue { producer, epoch, members, .. } = value;
        let version = if value.version >= ENDS_RAISE_EPOCH { value.version as i8 } else { 0 };
        let (producer, epoch, left) = (*producer, *epoch, members.clone());
        let job = Job { home, id, producer, epoch, commit, coordinator_epoch, version, left };
        if members.is_empty() {
            return self.done.push(job);
        }
        let number = JobId(self.next_job);
        self.next_job += 1;
        self.jobs.insert(number, job);
        self.unplaced.extend(members.iter().map(|member| Marker { job: number, member: member.clone() }));
    }

    /// Whether any of them are of transactions that a partition of `__transaction_state` has.
    #[must_use]
    pub fn has_any_of(&self, home: PartitionIx) -> bool {
        self.jobs.values().chain(&self.done).chain(&self.unnoted).any(|job| job.home == home)
    }

    /// This broker does not coordinate there any more: its markers are the next coordinator's business.
    pub fn resign(&mut self, home: PartitionIx) {
        self.jobs.retain(|_, job| job.home != home);
        self.done.retain(|job| job.home != home);
        self.unnoted.retain(|job| job.home != home);
        let jobs = &self.jobs;
        self.unplaced.retain(|marker| jobs.contains_key(&marker.job));
        self.retry.retain(|marker| jobs.contains_key(&marker.job));
        for peer in self.peers.values_mut() {
            peer.waiting.retain(|marker| jobs.contains_key(&marker.job));
        }
    }

    /// The transactions whose partitions all answered.
    pub fn take_done(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.done)
    }

    /// That a transaction is over could not be noted: it is told again.
    pub fn note_again(&mut self, job: Job, now: Now) {
        self.unnoted.push(job);
        self.retry_at.get_or_insert(now.mono + RETRY_BACKOFF);
    }

    /// Markers for partitions that this broker leads; each is answered for by [`Self::written`].
    pub fn take_own(&mut self) -> Vec<(JobId, PartitionIx, Member)> {
        std::mem::take(&mut self.own)
    }

    /// What a marker says, while its transaction is wanted.
    #[must_use]
    pub fn job(&self, job: JobId) -> Option<&Job> {
        self.jobs.get(&job)
    }

    /// What became of one marker.
    pub fn written(&mut self, job: JobId, member: &Member, error: ErrorCode, now: Now, cx: &mut Cx<'_>) {
        let Some(found) = self.jobs.get_mut(&job) else { return };
        match error {
            ErrorCode::ReadOnlyTopic if cx.guards.quirk(quirk::MarkersMeetTheGate) => return,
            // A partition that follows a source gets its end from there.
            ErrorCode::None | ErrorCode::ReadOnlyTopic => {}
            // The producer is past this transaction there. If this broker coordinates still, it lost what it had decided
            // before (all replicas of its log lost power), and a transaction that is never over would help nobody.
            ErrorCode::InvalidProducerEpoch if !cx.guards.admits(guard::PastMarkerIsOver, false) => {}
            // A newer coordinator was there: it finishes what is to be finished.
            ErrorCode::InvalidProducerEpoch | ErrorCode::TransactionCoordinatorFenced => {
                self.jobs.remove(&job);
                return;
            }
            _ => return self.again(vec![Marker { job, member: member.clone() }], now, cx),
        }
        found.left.retain(|left| left != member);
        if found.left.is_empty() {
            self.done.extend(self.jobs.remove(&job));
        }
    }

    // --------------------------------------------------------------------------------------------------------- connections

    /// Whether a connection is one of these.
    #[must_use]
    pub fn owns(&self, conn: ConnId) -> bool {
        self.by_conn.contains_key(&conn)
    }

    /// Something arrived on a connection.
    pub fn arrived(&mut self, input: Input, now: Now, cx: &mut Cx<'_>) {
        let (Input::Opened { conn, .. } | Input::Closed { conn, .. } | Input::Message { conn, .. }) = &input else {
            return;
        };
        let Some(&broker) = self.by_conn.get(conn) else { return };
        let Some(peer) = self.peers.get_mut(&broker) else { return };
        match input {
            Input::Opened { .. } => peer.link.on_opened(),
            Input::Closed { conn, .. } => {
                peer.link.on_closed();
                self.by_conn.remove(&conn);
                self.lost(broker, now, cx);
            }
            Input::Message { message, .. } if peer.link.on_answer(message.correlation) => {
                let asked = std::mem::take(&mut peer.asked);
                match message.body {
                    Body::WriteTxnMarkersResponse(answer) => self.on_answer(asked, &answer, now, cx),
                    _ => self.again(asked.into_iter().map(|(marker, _)| marker).collect(), now, cx),
                }
            }
            _ => {}
        }
    }

    /// Markers that were not written, or of which nobody knows: after a while the same again.
    fn again(&mut self, markers: Vec<Marker>, now: Now, cx: &mut Cx<'_>) {
        if !cx.guards.admits(guard::MarkersRetried, markers.is_empty()) {
            self.retry.extend(markers);
            self.retry_at.get_or_insert(now.mono + RETRY_BACKOFF);
            return;
        }
        for marker in markers {
            self.written(marker.job, &marker.member, ErrorCode::None, now, cx);
        }
    }

    /// What was under way there may have been written, or not: a second marker of a transaction does no harm.
    fn lost(&mut self, broker: BrokerId, now: Now, cx: &mut Cx<'_>) {
        let Some(peer) = self.peers.get_mut(&broker) else { return };
        let mut all: Vec<Marker> = std::mem::take(&mut peer.asked).into_iter().map(|(marker, _)| marker).collect();
        all.append(&mut peer.waiting);
        self.again(all, now, cx);
    }

    fn on_answer(
        &mut self,
        asked: Vec<(Marker, PartitionIx)>,
        answer: &WriteTxnMarkersResponse,
        now: Now,
        cx: &mut Cx<'_>,
    ) {
        let mut verdicts: BTreeMap<(ProducerId, PartitionIx), ErrorCode> = BTreeMap::new();
        for marker in &answer.markers {
            verdicts.extend(marker.parts.iter().map(|(partition, error)| ((marker.producer, *partition), *error)));
        }
        for (marker, partition) in asked {
            let Some(producer) = self.jobs.get(&marker.job).map(|job| job.producer) else { continue };
            // Silence is no success.
            let error = verdicts.get(&(producer, partition)).copied().unwrap_or(ErrorCode::UnknownServerError);
            self.written(marker.job, &marker.member, error, now, cx);
        }
    }

    /// Places markers with leaders, gives up what waits for too long, opens connections, sends.
    pub fn go_on(&mut self, image: &MetadataImage, now: Now, cx: &mut Cx<'_>) {
        if self.retry_at.is_some_and(|at| at <= now.mono) {
            self.retry_at = None;
            self.unplaced.append(&mut self.retry);
            self.done.append(&mut self.unnoted);
        }
        for marker in std::mem::take(&mut self.unplaced) {
            self.place(marker, image, now, cx);
        }
        let late = |peer: &Peer| peer.link.deadline().is_some_and(|at| at <= now.mono);
        let overdue: Vec<BrokerId> = self.peers.iter().filter(|(_, p)| late(p)).map(|(b, _)| *b).collect();
        for broker in overdue {
            if let Some(peer) = self.peers.get_mut(&broker) {
                if let Some(conn) = peer.link.conn() {
                    self.by_conn.remove(&conn);
                }
                peer.link.close(cx);
            }
            self.lost(broker, now, cx);
        }
        let Self { peers, by_conn, jobs, .. } = self;
        for (broker, peer) in peers {
            if peer.waiting.is_empty() {
                continue;
            }
            if peer.link.is_down() {
                by_conn.insert(peer.link.open(now, cx), *broker);
            } else if peer.link.is_ready() {
                send(peer, jobs, image, now, cx);
            }
        }
    }

    fn place(&mut self, marker: Marker, image: &MetadataImage, now: Now, cx: &mut Cx<'_>) {
        let Some(partition) = partition_of(&marker.member, image) else {
            // Its topic is gone, and nobody reads there.
            return self.written(marker.job, &marker.member, ErrorCode::None, now, cx);
        };
        let leader = image.partition(partition).map_or(BrokerId::NONE, |p| p.state.leader);
        if leader == self.me {
            return self.own.push((marker.job, partition, marker.member));
        }
        let Some(node) = image.broker_node(leader) else { return self.again(vec![marker], now, cx) };
        self.file(leader, node, marker);
    }

    fn file(&mut self, leader: BrokerId, node: NodeId, marker: Marker) {
        let timeout = self.timeout;
        let fresh = || Peer { link: Link::new(node, timeout), waiting: Vec::new(), asked: Vec::new() };
        let peer = self.peers.entry(leader).or_insert_with(fresh);
        if peer.link.is_down() {
            peer.link.to = node;
        }
        peer.waiting.push(marker);
    }

    /// When something has waited for long enough.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.peers.values().filter_map(|peer| peer.link.deadline()).chain(self.retry_at).min()
    }
}

fn partition_of((topic, number): &Member, image: &MetadataImage) -> Option<PartitionIx> {
    image.topic(image.topic_by_name(topic)?)?.partitions.get(*number as usize).copied()
}

/// Sends what waits, one entry per transaction.
fn send(peer: &mut Peer, jobs: &BTreeMap<JobId, Job>, image: &MetadataImage, now: Now, cx: &mut Cx<'_>) {
    let count = peer.waiting.len().min(MARKERS_MAX);
    let mut batch: Vec<Marker> = peer.waiting.drain(..count).collect();
    batch.sort_by_key(|marker| marker.job);
    let mut markers: Vec<TxnMarker> = Vec::new();
    let mut last = None;
    for marker in batch {
        let Some(job) = jobs.get(&marker.job) else { continue };
        // A topic that is deleted meanwhile is seen when its marker is placed again.
        let Some(partition) = partition_of(&marker.member, image) else {
            peer.asked.push((marker, PartitionIx(u32::MAX)));
            continue;
        };
        if last != Some(marker.job) {
            last = Some(marker.job);
            markers.push(TxnMarker {
                producer: job.producer,
                epoch: job.epoch,
                commit: job.commit,
                coordinator_epoch: job.coordinator_epoch,
                version: job.version,
                parts: Vec::new(),
            });
        }
        if let Some(entry) = markers.last_mut() {
            entry.parts.push(partition);
        }
        peer.asked.push((marker, partition));
    }
    if !markers.is_empty() || !peer.asked.is_empty() {
        peer.link.send(now, WriteTxnMarkersRequest { markers }.into(), Nanos::ZERO, cx);
    }
}
