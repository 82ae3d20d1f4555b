//! Looking at the source cluster: who leads what, in which epoch, and is it still the same cluster (spec 6.1, 1.1).
//!
//! Every destination broker keeps the leaders its fetchers need; a failure asks for a look at once, and time asks for one
//! each refresh interval. Only the mirror-level coordinator (the leader of the `__mirror_state` partition that the mirror's
//! name hashes to) also raises epochs that came close (the periodic bump of spec 3.3).

use crate::coordinator::routing::{state_partition, STATE_TOPIC};
use crate::guards::mirror as guard;
use crate::ids::{ConnId, MirrorIx, Nanos, NodeId, Now, PartitionIx, TopicId};
use crate::metadata::configs::MirrorConfig;
use crate::metadata::image::MetadataImage;
use crate::mirror::epochs::needs_bump;
use crate::mirror::fetcher::{FailCause, Task};
use crate::mirror::inquiry::Inquiry;
use crate::mirror::link::Link;
use crate::mirror::manager::{ManagerTask, MirrorManager, MirrorTask, LANE_MANAGER};
use crate::mirror::source::SourceCluster;
use crate::ports::Cx;
use crate::replica::channel::Purpose;
use crate::states::{DesiredState, MirrorState};
use crate::wire::messages::{Body, CreatePartitionsRequest, Message, MetadataRequest, MetadataResponse};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How long the controller may take to let topics grow (spec 1.10).
const GROWTH_WAIT: Nanos = Nanos::from_secs(3);
/// How long to wait before a look that found nothing is repeated.
const RELOOK: Nanos = Nanos::from_secs(1);
/// Observations in a row before a changed cluster id counts (decision 4).
const PROOF: u32 = 2;

/// One mirror's view of its source, and the connection it looks through.
#[derive(Clone, Debug)]
pub struct Source {
    /// What is known.
    pub cluster: SourceCluster,
    /// Topics to look up: name and the id it must have.
    pub wanted: BTreeMap<Arc<str>, TopicId>,
    /// Partitions that cannot start before the answer to the next question.
    pub awaiting: BTreeSet<PartitionIx>,
    /// Partitions that the question under way asks about.
    asked: BTreeSet<PartitionIx>,
    bootstrap: Vec<NodeId>,
    next_bootstrap: usize,
    /// What the source's brokers are asked about their own mirrors.
    pub(super) inquiry: Inquiry,
    /// `request.timeout.ms`.
    pub(super) timeout: Nanos,
    expected_id: Arc<str>,
    other_id_seen: u32,
    link: Link,
    interval: Nanos,
    due: Nanos,
}

/// What arrived on a source's metadata connection.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceTask {
    /// The connection.
    pub conn: ConnId,
    /// What.
    pub task: Task,
}

impl Source {
    /// A source that was never looked at: the first look is due now.
    #[must_use]
    pub fn new(config: &MirrorConfig, nodes: &[NodeId], interval: Nanos, now: Now) -> Self {
        let timeout = Nanos::from_millis(config.request_timeout_ms);
        Self {
            cluster: SourceCluster::default(),
            wanted: BTreeMap::new(),
            awaiting: BTreeSet::new(),
            asked: BTreeSet::new(),
            bootstrap: nodes.to_vec(),
            next_bootstrap: 0,
            inquiry: Inquiry::default(),
            timeout,
            expected_id: config.source_cluster_id.clone(),
            other_id_seen: 0,
            link: Link::new(nodes.first().copied().unwrap_or_default(), timeout),
            interval,
            due: now.mono,
        }
    }

    /// A topic is gone here: it is not looked up any more, unless another one has its name.
    pub(super) fn drop_topic(&mut self, name: &Arc<str>, id: TopicId) {
        if self.wanted.get(name) == Some(&id) {
            self.wanted.remove(name);
        }
    }

    /// A partition does not wait for an answer any more.
    pub(super) fn stop_awaiting(&mut self, partition: PartitionIx) {
        self.awaiting.remove(&partition);
        self.asked.remove(&partition);
    }

    /// When the next look, or the end of a wait, is due.
    #[must_use]
    pub fn next_deadline(&self) -> Nanos {
        self.link.deadline().map_or(self.due, |wait| if self.link.is_down() { self.due } else { wait })
    }
}

impl MirrorManager {
    /// Asks for a look at the source now.
    pub(super) fn want_refresh(&mut self, mirror: MirrorIx, cx: &mut Cx<'_>) {
        let Some(source) = self.sources.get_mut(&mirror) else { return };
        source.due = Nanos::ZERO;
        if self.tasks.back() != Some(&ManagerTask::Tick) {
            self.tasks.push_back(ManagerTask::Tick);
            cx.wake(LANE_MANAGER);
        }
    }

    /// Starts the looks that are due and ends the waits that took too long.
    pub(super) fn sync_sources(&mut self, now: Now, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let mirrors: Vec<MirrorIx> = self.sources.keys().copied().collect();
        for mirror in mirrors {
            let Some(source) = self.sources.get_mut(&mirror) else { continue };
            if source.link.deadline().is_some_and(|at| at <= now.mono) {
                self.source_failed(now, mirror, task, cx);
                continue;
            }
            if source.due > now.mono || source.link.is_waiting_for_answer() || source.wanted.is_empty() {
                if source.wanted.is_empty() {
                    source.due = now.mono + source.interval;
                }
                continue;
            }
            if source.link.is_ready() {
                self.look(now, mirror, cx);
            } else if source.link.is_down() {
                let Some(to) = source.bootstrap.get(source.next_bootstrap % source.bootstrap.len().max(1)) else {
                    continue;
                };
                source.link.to = *to;
                let conn = source.link.open(now, cx);
                self.own_source(conn, mirror);
            }
        }
    }

    fn look(&mut self, now: Now, mirror: MirrorIx, cx: &mut Cx<'_>) {
        let Some(source) = self.sources.get_mut(&mirror) else { return };
        let topics = source.wanted.keys().cloned().collect();
        source.due = now.mono + source.interval;
        source.asked.append(&mut source.awaiting);
        source.link.send(now, MetadataRequest { topics: Some(topics) }.into(), Nanos::ZERO, cx);
    }

    pub(super) fn run_source(
        &mut self,
        now: Now,
        mirror: MirrorIx,
        arrived: SourceTask,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        let Some(source) = self.sources.get_mut(&mirror) else { return };
        if source.link.conn() != Some(arrived.conn) {
            return;
        }
        match arrived.task {
            Task::Opened => {
                source.link.on_opened();
                self.look(now, mirror, cx);
            }
            Task::Closed => {
                source.link.on_closed();
                self.source_failed(now, mirror, task, cx);
            }
            Task::Answer(Message { correlation, body: Body::MetadataResponse(answer) }) => {
                if source.link.on_answer(correlation) {
                    self.on_source_metadata(now, mirror, &answer, task, cx);
                }
            }
            Task::Answer(_) | Task::Kick => {}
        }
    }

    /// The look failed: the next one goes to another broker; who waited for it retries like after any failure.
    fn source_failed(&mut self, now: Now, mirror: MirrorIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Some(source) = self.sources.get_mut(&mirror) else { return };
        if let Some(conn) = source.link.conn() {
            source.link.close(cx);
            self.disown(conn);
        }
        let Some(source) = self.sources.get_mut(&mirror) else { return };
        source.link.on_closed();
        source.next_bootstrap += 1;
        source.due = now.mono + RELOOK;
        let mut waiting = std::mem::take(&mut source.asked);
        waiting.append(&mut source.awaiting);
        for partition in waiting {
            self.fail(now, partition, FailCause::SourceUnreachable, task, cx);
        }
        // The failures asked for a look at once; one a second is enough.
        if let Some(source) = self.sources.get_mut(&mirror) {
            source.due = now.mono + RELOOK;
        }
    }

    fn on_source_metadata(
        &mut self,
        now: Now,
        mirror: MirrorIx,
        answer: &MetadataResponse,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        let Some(source) = self.sources.get_mut(&mirror) else { return };
        let same = source.expected_id.is_empty() || answer.cluster_id == source.expected_id;
        if !cx.guards.admits(guard::SourceClusterIdMatches, same) {
            source.other_id_seen += 1;
            source.due = now.mono + RELOOK;
            if source.other_id_seen >= PROOF {
                self.fail_all(now, mirror, task, cx);
            }
            return;
        }
        source.other_id_seen = 0;
        source.cluster.on_metadata(answer, &source.wanted, cx.guards);
        let mut waiting = std::mem::take(&mut source.asked);
        // Who began to wait after the question was asked takes what the answer has, and else waits for the next one: its
        // topic may not have been in the question.
        let late = std::mem::take(&mut source.awaiting);
        waiting.extend(&late);
        for partition in waiting {
            let Some(part) = self.part(partition) else { continue };
            let (topic, number, retries) = (part.topic_id, part.number, part.is_retrying(now));
            if part.state != MirrorState::LogAlignment && !retries {
                continue;
            }
            let Some(source) = self.sources.get_mut(&mirror) else { continue };
            match source.cluster.leader(topic, number) {
                Ok(_) if retries => self.resume(now, partition, task, cx),
                Ok(_) => self.align(now, partition, cx),
                Err(_) if late.contains(&partition) => {
                    source.awaiting.insert(partition);
                    self.want_refresh(mirror, cx);
                }
                Err(why) => self.fail(now, partition, why.into(), task, cx),
            }
        }
        if self.is_mirror_coordinator(task.image, mirror) {
            self.periodic_bump(task.image, mirror, cx);
            self.grow_topics(now, mirror, task, cx);
        }
    }

    /// The source is another cluster: nothing of this mirror goes on (decision 4).
    fn fail_all(&mut self, now: Now, mirror: MirrorIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let partitions: Vec<_> =
            self.iter().filter(|p| p.mirror == mirror && p.attempt >= 0).map(|p| p.partition).collect();
        for partition in partitions {
            self.fail(now, partition, FailCause::SourceClusterChanged, task, cx);
        }
        if let Some(source) = self.sources.get_mut(&mirror) {
            source.due = now.mono + source.interval;
        }
    }

    /// Whether this broker does the jobs of the mirror as a whole.
    fn is_mirror_coordinator(&self, image: &MetadataImage, mirror: MirrorIx) -> bool {
        let (Some(entry), Some(topic)) = (image.mirror(mirror), image.topic_by_name(STATE_TOPIC)) else { return false };
        let Some(topic) = image.topic(topic) else { return false };
        let at = state_partition(&entry.name, topic.partitions.len() as u32);
        let partition = topic.partitions.get(at as usize).and_then(|ix| image.partition(*ix));
        partition.is_some_and(|p| p.state.leader == self.me)
    }

    /// Topics that grew at the source grow here (spec 1.10), those that are wanted STOPPED excepted (decision 5). The answer is
    /// not waited for: what was not done is asked for again at the next look.
    fn grow_topics(&mut self, now: Now, mirror: MirrorIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Some(source) = self.sources.get(&mirror) else { return };
        let mut grown = Vec::new();
        for (name, id) in &source.wanted {
            let Some(topic) = task.image.topic_by_name(name) else { continue };
            let wanted = task.image.mirror_of(topic);
            let copied = matches!(wanted, Some((m, DesiredState::Mirroring | DesiredState::Paused)) if m == mirror);
            let here = task.image.topic(topic).filter(|t| t.id == *id && copied).map(|t| t.partitions.len());
            let there = source.cluster.partition_count(*id);
            if here.is_some_and(|here| here < there) {
                grown.push((name.clone(), there as u32));
            }
        }
        if !grown.is_empty() {
            self.requests += 1;
            let purpose = Purpose::Mirror(self.requests);
            let body = CreatePartitionsRequest { topics: grown };
            task.controller.send(body.into(), purpose, Some(now.mono + GROWTH_WAIT), now, cx);
        }
    }

    /// Raises every leader epoch that the source came close to, whoever leads the partition here (spec 3.3; K10: only what
    /// is wanted MIRRORING).
    fn periodic_bump(&mut self, image: &MetadataImage, mirror: MirrorIx, cx: &mut Cx<'_>) {
        let Some(source) = self.sources.get(&mirror) else { return };
        let mut close = Vec::new();
        for (name, id) in &source.wanted {
            let Some(topic) = image.topic_by_name(name) else { continue };
            if image.mirror_of(topic) != Some((mirror, DesiredState::Mirroring)) {
                continue;
            }
            let Some(entry) = image.topic(topic) else { continue };
            for (number, partition) in entry.partitions.iter().enumerate() {
                let (Some(theirs), Some(ours)) =
                    (source.cluster.epoch(*id, number as u32), image.partition(*partition))
                else {
                    continue;
                };
                if needs_bump(theirs, ours.state.leader_epoch) {
                    close.push((*partition, theirs));
                }
            }
        }
        for (partition, epoch) in close {
            self.want_bump_anywhere(partition, epoch, cx);
        }
    }
}

#[cfg(test)]
#[path = "sync_tests.rs"]
mod tests;
