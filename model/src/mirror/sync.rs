//! Looking at the source cluster: who leads what, in which epoch, and is it still the same cluster (spec 6.1, 1.1).
//!
//! Every destination broker keeps the leaders its fetchers need; a failure asks for a look at once, and time asks for one
//! each refresh interval.

use crate::guards::points::Point;
use crate::guards::{mirror as guard, prototype as quirk};
use crate::ids::{ConnId, MirrorIx, Nanos, NodeId, Now, PartitionIx, TopicId};
use crate::metadata::configs::MirrorConfig;
use crate::mirror::fetcher::{FailCause, Task};
use crate::mirror::inquiry::Inquiry;
use crate::mirror::link::Link;
use crate::mirror::manager::{MirrorManager, MirrorTask, Part};
use crate::mirror::source::SourceCluster;
use crate::ports::Cx;
use crate::states::{DesiredState, MirrorState};
use crate::wire::messages::{Body, Message, MetadataRequest, MetadataResponse};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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
    pub(super) asked: BTreeSet<PartitionIx>,
    /// The topics that it asks about: those that are wanted, and those of partitions that wait though they are not (a pause that
    /// was ordered in LOG_ALIGNMENT or FAILED waits for MIRRORING, decision 28).
    asking: BTreeMap<Arc<str>, TopicId>,
    pub(super) bootstrap: Vec<NodeId>,
    pub(super) next_bootstrap: usize,
    /// What the source's brokers are asked about their own mirrors.
    pub(super) inquiry: Inquiry,
    /// `request.timeout.ms`.
    pub(super) timeout: Nanos,
    pub(super) expected_id: Arc<str>,
    other_id_seen: u32,
    pub(super) link: Link,
    interval: Nanos,
    pub(super) due: Nanos,
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
            asking: BTreeMap::new(),
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

    /// Ends everything that is under way, for a mirror that is gone.
    fn close(&mut self, cx: &mut Cx<'_>) -> Vec<ConnId> {
        let mut conns = self.inquiry.close(cx);
        conns.extend(self.link.close(cx));
        conns
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
        self.tick_soon(cx);
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
            let due = source.due <= now.mono && !source.link.is_waiting_for_answer();
            if due && source.wanted.is_empty() && source.awaiting.is_empty() && !self.discovers(task.image, mirror) {
                self.postpone(now, mirror);
                continue;
            }
            let Some(source) = self.sources.get_mut(&mirror).filter(|_| due) else { continue };
            if source.link.is_ready() {
                self.look(now, mirror, task, cx);
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

    fn postpone(&mut self, now: Now, mirror: MirrorIx) {
        if let Some(source) = self.sources.get_mut(&mirror) {
            source.due = now.mono + source.interval;
        }
    }

    fn look(&mut self, now: Now, mirror: MirrorIx, task: &MirrorTask<'_>, cx: &mut Cx<'_>) {
        let all = self.discovers(task.image, mirror);
        let Some(source) = self.sources.get(&mirror) else { return };
        let topic = |p: &PartitionIx| self.part(*p).and_then(|part| task.image.topic(part.topic));
        let mut asking = source.wanted.clone();
        asking.extend(source.awaiting.iter().filter_map(topic).map(|topic| (topic.name.clone(), topic.id)));
        let Some(source) = self.sources.get_mut(&mirror) else { return };
        let topics = (!all).then(|| asking.keys().cloned().collect());
        source.asking = asking;
        source.due = now.mono + source.interval;
        if cx.guards.points.fires(Point::SyncSoon) {
            source.due = now.mono + Nanos(source.interval.0 / 8);
        } else if cx.guards.points.fires(Point::SyncLate) {
            source.due = now.mono + source.interval + source.interval;
        }
        source.asked.append(&mut source.awaiting);
        source.link.send(now, MetadataRequest { topics }.into(), Nanos::ZERO, cx);
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
                self.look(now, mirror, task, cx);
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
        if let Some(conn) = source.link.close(cx) {
            self.disown(conn);
        }
        let Some(source) = self.sources.get_mut(&mirror) else { return };
        source.link.on_closed();
        source.next_bootstrap += 1;
        source.due = now.mono + RELOOK;
        let mut waiting = std::mem::take(&mut source.asked);
        waiting.append(&mut source.awaiting);
        for partition in waiting {
            // Who was stopped meanwhile, or failed of something else, waits no more: a silent source is nothing to it.
            let waits = |part: &Part| part.state == MirrorState::LogAlignment || part.is_retrying(now);
            if self.part(partition).is_some_and(waits) {
                self.fail(now, partition, FailCause::SourceUnreachable, task, cx);
            }
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
        source.cluster.on_metadata(answer, &source.asking, cx.guards);
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
                Ok(_) => self.align(now, partition, task, cx),
                Err(_) if late.contains(&partition) => {
                    source.awaiting.insert(partition);
                    self.want_refresh(mirror, cx);
                }
                Err(why) => self.fail(now, partition, why.into(), task, cx),
            }
        }
        self.fail_deleted(now, mirror, task, cx);
        self.periodic_bump(task.image, mirror, cx);
        self.look_after_mirror(now, mirror, answer, task, cx);
    }

    /// Topics that the source does not have any more, by proof: nothing of them goes on, and their data stay (decision 4, spec
    /// 1.9). One of the same name and another id counts as that.
    fn fail_deleted(&mut self, now: Now, mirror: MirrorIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Some(source) = self.sources.get_mut(&mirror) else { return };
        let apart = Nanos(source.interval.0 / 2);
        let deleted = source.cluster.take_deleted(now.mono, apart, cx.guards);
        for id in deleted {
            let Some(topic) = task.image.topic_of(id).and_then(|ix| task.image.topic(ix)) else { continue };
            for partition in &topic.partitions {
                let runs = self.part(*partition).is_some_and(|part| part.attempt >= 0 && part.mirror == mirror);
                let stopped = topic.mirror.is_none_or(|(_, desired)| desired == DesiredState::Stopped);
                if runs && (!stopped || cx.guards.quirk(quirk::StoppedTopicsFailToo)) {
                    self.fail(now, *partition, FailCause::SourceTopicDeleted, task, cx);
                }
            }
        }
    }

    /// Nobody looks at the source of a mirror that is gone.
    pub(super) fn drop_source(&mut self, mirror: MirrorIx, cx: &mut Cx<'_>) {
        if let Some(mut source) = self.sources.remove(&mirror) {
            source.close(cx).into_iter().for_each(|conn| self.disown(conn));
        }
    }

    /// The source is another cluster: nothing of this mirror goes on (decision 4).
    fn fail_all(&mut self, now: Now, mirror: MirrorIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let all = cx.guards.quirk(quirk::StoppedTopicsFailToo);
        let runs = |topic| all || task.image.mirror_of(topic).is_some_and(|(_, d)| d != DesiredState::Stopped);
        let concerned = |p: &&Part| p.mirror == mirror && p.attempt >= 0 && runs(p.topic);
        let partitions: Vec<_> = self.iter().filter(concerned).map(|p| p.partition).collect();
        for partition in partitions {
            self.fail(now, partition, FailCause::SourceClusterChanged, task, cx);
        }
        if let Some(source) = self.sources.get_mut(&mirror) {
            source.due = now.mono + source.interval;
        }
    }
}

#[cfg(test)]
#[path = "sync_tests.rs"]
mod tests;
