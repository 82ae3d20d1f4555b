//! The observer of the metadata log (KIP-595), and what a new image sets going.
//!
//! This broker keeps no copy of the metadata log on its disk: after a restart it fetches the log, or the newest snapshot,
//! from the quorum again. Only committed records are applied. One task takes a whole answer to its end: image, replicas,
//! fetchers, then mirrors (spec 1.1).

use crate::broker::broker::Broker;
use crate::broker::lanes::{kind, timer};
use crate::controller::quorum_link::QuorumLink;
use crate::guards::{quorum, replication as guard, Guards};
use crate::ids::{BrokerId, ConnId, LeaderEpoch, MetadataOffset, Nanos, NodeId, Now, PartitionIx, TopicIx};
use crate::log::checkpoint::PartitionKey;
use crate::log::{Log, LogPolicy};
use crate::metadata::configs::CleanupPolicy;
use crate::metadata::delta::MetadataDelta;
use crate::metadata::image::MetadataImage;
use crate::metadata::records::Record;
use crate::ports::{Cx, Effect, ExitReason};
use crate::record::{split, BatchView};
use crate::replica::{BrokerView, PartitionSpec, TopicPolicy};
use crate::states::DesiredState;
use crate::trace::Trace;
use crate::wire::codec::voter_directory;
use crate::wire::messages::{
    Body, FetchSnapshotRequest, FetchSnapshotResponse, Message, RaftFetchRequest, RaftFetchResponse,
};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;

/// A snapshot that is being downloaded.
#[derive(Clone, Debug)]
struct Download {
    id: (MetadataOffset, LeaderEpoch),
    bytes: Vec<u8>,
}

/// The observer's side of the metadata quorum.
#[derive(Clone, Debug)]
pub struct Observer {
    me: BrokerId,
    link: QuorumLink,
    in_flight: Option<(u32, Nanos)>,
    timer_at: Option<Nanos>,
    pub(crate) timer_due: bool,
    pub(crate) inbox: VecDeque<Message>,
    epoch: LeaderEpoch,
    /// End of what was fetched, and the epoch of the last batch of it.
    position: (MetadataOffset, LeaderEpoch),
    high_watermark: MetadataOffset,
    /// Fetched batches that are not applied, with their end.
    waiting: VecDeque<(MetadataOffset, LeaderEpoch, Bytes)>,
    /// End and epoch of what was applied.
    applied_end: (MetadataOffset, LeaderEpoch),
    download: Option<Download>,
}

/// How long a fetch without news waits at the leader (stock `controller.quorum.fetch.timeout.ms` / 4).
const WAIT_MS: u32 = 500;
/// When the leader is thought to be gone (`controller.quorum.fetch.timeout.ms`).
const TIMEOUT: Nanos = Nanos::from_millis(2_000);
const MAX_BYTES: u32 = 8 << 20;

impl Observer {
    pub(crate) fn new(me: BrokerId, voters: Vec<NodeId>) -> Self {
        Self {
            me,
            link: QuorumLink::new(voters, me.0.unsigned_abs() as usize),
            in_flight: None,
            timer_at: None,
            timer_due: false,
            inbox: VecDeque::new(),
            epoch: LeaderEpoch::NONE,
            position: (MetadataOffset(0), LeaderEpoch::NONE),
            high_watermark: MetadataOffset(0),
            waiting: VecDeque::new(),
            applied_end: (MetadataOffset(0), LeaderEpoch::NONE),
            download: None,
        }
    }

    pub(crate) fn owns(&self, conn: ConnId) -> bool {
        self.link.owns(conn)
    }

    pub(crate) fn opened(&mut self, now: Now, cx: &mut Cx) {
        self.link.on_opened();
        self.ask(now, cx);
    }

    pub(crate) fn closed(&mut self, now: Now, cx: &mut Cx) {
        self.link.on_closed(now.mono);
        self.forget_question();
        self.ask(now, cx);
    }

    fn hang_up(&mut self, now: Nanos, cx: &mut Cx) {
        self.link.hang_up(now, cx);
        self.forget_question();
    }

    fn forget_question(&mut self) {
        self.in_flight = None;
        self.inbox.clear();
    }

    /// Connects or sends what comes next, and arms the timer.
    pub(crate) fn ask(&mut self, now: Now, cx: &mut Cx) {
        if self.in_flight.is_some_and(|(_, deadline)| now.mono >= deadline) {
            self.hang_up(now.mono, cx);
        }
        self.link.connect(now, cx);
        let idle = self.in_flight.is_none() && now.mono >= self.link.retry_at();
        if let Some(conn) = self.link.open().filter(|_| idle) {
            let patience = TIMEOUT + Nanos::from_millis(u64::from(WAIT_MS));
            let request = self.request();
            self.in_flight = Some((self.link.send(conn, request, cx), now.mono + patience));
        }
        let at = self.in_flight.map_or(self.link.retry_at(), |(_, deadline)| deadline);
        if at > now.mono && self.timer_at.is_none_or(|armed| armed > at || armed <= now.mono) {
            self.timer_at = Some(at);
            cx.set_timer(timer(kind::OBSERVER, 0), at);
        }
    }

    fn request(&self) -> Body {
        if let Some(download) = &self.download {
            return FetchSnapshotRequest {
                replica: self.me.0,
                snapshot: download.id,
                position: download.bytes.len() as u64,
                max_bytes: MAX_BYTES,
            }
            .into();
        }
        RaftFetchRequest {
            replica: self.me.0,
            directory: voter_directory(self.me.0),
            current_epoch: self.epoch,
            fetch_offset: self.position.0,
            last_fetched_epoch: self.position.1,
            high_watermark: self.high_watermark,
            max_wait_ms: WAIT_MS,
            max_bytes: MAX_BYTES,
        }
        .into()
    }

    fn on_fetched(&mut self, answer: &RaftFetchResponse, now: Now, cx: &mut Cx) {
        if answer.epoch > self.epoch {
            self.epoch = answer.epoch;
        }
        // A voter that does not lead may know who does.
        let current = answer.epoch >= self.epoch;
        if answer.leader.is_some() && current {
            self.link.set_leader(answer.leader);
        }
        if !answer.error.is_none() {
            if answer.leader.is_none() || !current {
                // Nor does it lead itself: the next one may know.
                self.link.set_leader(None);
            }
            self.link.back_off(now.mono);
            if !self.link.is_to_leader() {
                self.hang_up(now.mono, cx);
            }
            return;
        }
        if let Some(id) = answer.snapshot {
            self.download = Some(Download { id, bytes: Vec::new() });
            return;
        }
        if let Some(end) = answer.diverging {
            self.cut(MetadataOffset(end.end.0), end.epoch);
            return;
        }
        for bytes in &answer.batches {
            for batch in split(bytes) {
                let Ok(batch) = batch else { return };
                let Ok(view) = BatchView::parse(&batch) else { return };
                if !view.crc_valid() || view.base_offset().0 != self.position.0 .0 {
                    return;
                }
                self.position = (MetadataOffset(view.next_offset().0), view.leader_epoch());
                self.waiting.push_back((self.position.0, self.position.1, batch.clone()));
            }
        }
        self.high_watermark = self.high_watermark.max(answer.high_watermark);
    }

    /// The leader's log parts from ours: drop what was fetched above; applied records are committed and stay.
    fn cut(&mut self, end: MetadataOffset, epoch: LeaderEpoch) {
        while self.waiting.back().is_some_and(|(to, of, _)| *to > end || *of > epoch) {
            self.waiting.pop_back();
        }
        if let Some((to, of, _)) = self.waiting.back() {
            self.position = (*to, *of);
        } else {
            let start = self.applied_end;
            self.position = start;
        }
    }

    /// The next batch that is committed.
    fn next_committed(&mut self, guards: &mut Guards) -> Option<Bytes> {
        let (end, epoch, _) = self.waiting.front()?;
        if !guards.admits(quorum::ObserverAppliesCommitted, *end <= self.high_watermark) {
            return None;
        }
        self.applied_end = (*end, *epoch);
        self.waiting.pop_front().map(|(_, _, batch)| batch)
    }
}

impl Broker {
    /// One task of the metadata lane.
    pub(crate) fn run_metadata(&mut self, now: Now, cx: &mut Cx) {
        if std::mem::take(&mut self.observer.timer_due) {
            self.observer.timer_at = None;
        }
        while let Some(message) = self.observer.inbox.pop_front() {
            if self.observer.in_flight.is_none_or(|(correlation, _)| correlation != message.correlation) {
                continue;
            }
            self.observer.in_flight = None;
            match message.body {
                Body::RaftFetchResponse(answer) => {
                    self.observer.on_fetched(&answer, now, cx);
                    self.apply_committed(now, cx);
                }
                Body::FetchSnapshotResponse(answer) => self.on_snapshot(&answer, now, cx),
                _ => {}
            }
        }
        self.publish(now, cx);
        let (leader, epoch) = (self.observer.link.leader(), self.observer.epoch);
        for channel in &mut self.channels {
            channel.set_leader(leader, epoch, now, cx);
        }
        self.observer.ask(now, cx);
    }

    fn apply_committed(&mut self, now: Now, cx: &mut Cx) {
        let mut applied = false;
        while let Some(batch) = self.observer.next_committed(cx.guards) {
            applied = true;
            if !apply_batch(&mut self.image, &mut self.delta, &batch, false) {
                cx.effect(Effect::Exit(ExitReason::Broken("a committed metadata record does not decode")));
                return;
            }
        }
        self.unpublished |= applied;
        self.publish(now, cx);
    }

    fn on_snapshot(&mut self, answer: &FetchSnapshotResponse, now: Now, cx: &mut Cx) {
        let Some(download) = self.observer.download.as_mut() else { return };
        if !answer.error.is_none() || answer.position != download.bytes.len() as u64 {
            self.observer.download = None;
            self.observer.link.back_off(now.mono);
            return;
        }
        for piece in &answer.bytes {
            download.bytes.extend_from_slice(piece);
        }
        if (download.bytes.len() as u64) < answer.size {
            return;
        }
        let Some(download) = self.observer.download.take() else { return };
        let mut image = MetadataImage::default();
        let mut delta = MetadataDelta::default();
        for batch in split(&Bytes::from(download.bytes)) {
            if !batch.is_ok_and(|batch| apply_batch(&mut image, &mut delta, &batch, true)) {
                self.observer.link.back_off(now.mono);
                return;
            }
        }
        image.set_end(download.id.0);
        // What the snapshot does not have any more is gone.
        for (ix, topic) in self.image.topics() {
            if image.topic(ix).is_none() {
                delta.topics_removed.push((ix, topic.clone()));
            }
        }
        self.image = image;
        self.delta = delta;
        self.observer.position = download.id;
        self.observer.applied_end = download.id;
        self.observer.waiting.clear();
        self.observer.high_watermark = self.observer.high_watermark.max(download.id.0);
        self.unpublished = true;
        self.publish(now, cx);
    }

    /// Takes the delta over: brokers, topics, roles, fetchers, mirrors. Then the delta is empty again.
    ///
    /// Before its own registration stands in the image, a broker acts on nothing: until then the image may still name it
    /// leader, or in sync, by the word of a predecessor that lost its disk (Kafka installs its publishers only after the
    /// controller let it catch up).
    fn publish(&mut self, now: Now, cx: &mut Cx) {
        let registered = self.life.epoch.0 >= 0 && self.image.end().0 > self.life.epoch.0;
        if !self.unpublished || !cx.guards.admits(guard::PublishAfterRegistration, registered) {
            return;
        }
        self.unpublished = false;
        let delta = std::mem::take(&mut self.delta);
        cx.trace(Trace::MetadataApplied { end: self.image.end().0, hash: self.image.hash() });
        self.publish_brokers(&delta);
        for topic in delta.topics_created.iter().chain(delta.topic_configs.iter()).chain(delta.mirror_topics.iter()) {
            let policy = policy_of(&self.image, *topic);
            self.replicas.set_topic(*topic, policy);
        }
        for (topic, image) in &delta.topics_removed {
            for partition in &image.partitions {
                self.replicas.remove(*partition, now, cx);
            }
            self.replicas.set_topic(*topic, None);
        }
        for partition in delta.partitions.iter() {
            self.publish_partition(*partition, &delta, now, cx);
        }
        self.publish_transactions(&delta, now, cx);
        if !delta.brokers.is_empty() {
            self.replicas.recheck_joins(cx);
        }
        let changes = self.replicas.take_fetch_changes();
        let Self { fetchers, replicas, image, .. } = self;
        fetchers.apply(&changes, replicas, &|broker| image.broker_node(broker), now, cx);
        let (mirror, mut task) = self.mirror_room();
        mirror.on_metadata(now, &delta, &mut task, cx);
        self.delta = delta;
        self.delta.clear();
        self.caught_up(now, cx);
        if self.life.stage != crate::broker::lifecycle::Stage::Registering && self.image.end().0 > self.life.epoch.0 {
            self.remove_strays(cx);
        }
    }

    fn publish_brokers(&mut self, delta: &MetadataDelta) {
        if delta.brokers.is_empty() {
            return;
        }
        let views = self.image.brokers().map(|(broker, b)| BrokerView {
            broker,
            epoch: b.epoch,
            fenced: b.fenced,
            shutting_down: b.shutting_down,
        });
        self.replicas.set_brokers(views.collect());
        for broker in &delta.brokers {
            if let Some(node) = self.image.broker_node(*broker) {
                self.fetchers.set_node(*broker, node);
            }
        }
    }

    fn publish_partition(&mut self, partition: PartitionIx, delta: &MetadataDelta, now: Now, cx: &mut Cx) {
        let Some(p) = self.image.partition(partition) else { return };
        let me = self.config.broker;
        let (topic, number) = (p.topic, p.number);
        let Some(topic_id) = self.image.topic(topic).map(|t| t.id) else { return };
        let hosted = self.replicas.get(partition).is_some();
        if !hosted && !p.state.replicas.contains(&me) {
            return;
        }
        // M22, put back only by a mutant: a delta that makes followers makes no mirror leaders.
        let mirror_leader = p.state.leader == me && self.replicas.topic(topic).is_some_and(|t| t.read_only);
        if mirror_leader && self.has_followers(delta) && cx.guards.admits(guard::WholeDelta, false) {
            return;
        }
        let key = self.key(partition).filter(|_| !hosted);
        let found = key.and_then(|key| self.adopt(key, partition, cx));
        let Self { image, replicas, .. } = self;
        let Some(p) = image.partition(partition) else { return };
        let spec = PartitionSpec { partition, topic, topic_id, number, state: &p.state };
        if replicas.apply(&spec, found, now, cx).is_err() {
            cx.effect(Effect::Exit(ExitReason::DiskFailed));
        }
    }

    fn has_followers(&self, delta: &MetadataDelta) -> bool {
        let me = self.config.broker;
        delta
            .partitions
            .iter()
            .any(|ix| self.image.partition(*ix).is_some_and(|p| p.state.leader != me && p.state.replicas.contains(&me)))
    }

    /// The log that was loaded for a partition (I18): never one of another topic id, nor one of an earlier topic of this id.
    fn adopt(&mut self, key: PartitionKey, partition: PartitionIx, cx: &mut Cx) -> Option<Log> {
        let mut log = self.found.remove(&key);
        if log.is_none() {
            log = self.adopt_stray(key, cx);
        }
        let found = log.as_ref()?;
        let (start, end, clean) = (found.start(), found.end(), self.clean);
        cx.trace(Trace::LogRecovered { partition, start, end, clean });
        if let Some(at) = self.damaged.remove(&key) {
            cx.trace(Trace::CorruptFound { partition, at });
        }
        log
    }

    /// What is adopted only if a guard is off.
    fn adopt_stray(&mut self, (life, number): PartitionKey, cx: &mut Cx) -> Option<Log> {
        let of_number = || self.found.keys().filter(|(_, n)| *n == number);
        let earlier = of_number().find(|(other, _)| other.id == life.id).copied();
        let foreign = of_number().find(|(other, _)| self.image.topic_of(other.id).is_none()).copied();
        let earlier = earlier.filter(|_| cx.guards.admits(guard::LogsOfThisLife, false));
        let stray = earlier.or_else(|| foreign.filter(|_| cx.guards.admits(guard::LogsByTopicId, false)))?;
        self.found.remove(&stray)
    }

    /// What is left of the logs found at boot belongs to nobody any more (I18).
    fn remove_strays(&mut self, cx: &mut Cx) {
        for (_, log) in std::mem::take(&mut self.found) {
            // What cannot be removed is found again, and ignored again, at the next boot.
            let _ = cx.disk.remove_dir(log.dir());
        }
        self.damaged.clear();
    }
}

/// Applies the records of one committed batch. A snapshot's records do not continue the running hash: its header sets it.
fn apply_batch(image: &mut MetadataImage, delta: &mut MetadataDelta, batch: &Bytes, snapshot: bool) -> bool {
    let Ok(view) = BatchView::parse(batch) else { return false };
    for record in view.records() {
        let Ok(record) = record else { return false };
        let Some(value) = record.value else { continue };
        if view.is_control() {
            continue;
        }
        let applied = if snapshot {
            Record::decode(value).map(|decoded| image.apply(record.offset.0, &decoded, delta))
        } else {
            image.apply_bytes(record.offset.0, value, delta)
        };
        if applied.is_err() {
            return false;
        }
    }
    let end = MetadataOffset(view.next_offset().0);
    if image.end() < end {
        image.set_end(end);
    }
    true
}

/// What the replica room needs to know of a topic.
fn policy_of(image: &MetadataImage, topic: TopicIx) -> Option<Arc<TopicPolicy>> {
    image.topic(topic)?;
    let config = image.topic_config(topic);
    let mirror = image.mirror_of(topic);
    let compact = config.cleanup_policy != CleanupPolicy::Delete;
    // What waits in the active segment waits for ever.
    let segment_ms = if compact { config.segment_ms.min(config.max_compaction_lag_ms) } else { config.segment_ms };
    Some(Arc::new(TopicPolicy {
        log: LogPolicy {
            segment_bytes: config.segment_bytes,
            segment_ms,
            retention_ms: config.retention_ms,
            retention_bytes: config.retention_bytes,
            max_message_bytes: config.max_message_bytes,
            index_interval_bytes: config.index_interval_bytes,
            flush_messages: config.flush_messages,
            flush_ms: config.flush_ms,
            delete: config.cleanup_policy != CleanupPolicy::Compact,
            compact,
            dirty_ratio_ppm: config.min_cleanable_dirty_ratio.0,
            delete_retention_ms: config.delete_retention_ms,
            min_compaction_lag_ms: config.min_compaction_lag_ms,
            max_compaction_lag_ms: config.max_compaction_lag_ms,
            ..LogPolicy::default()
        },
        min_isr: config.min_insync_replicas,
        mirrored: mirror.is_some(),
        read_only: mirror.is_some_and(|(_, desired)| desired != DesiredState::Stopped),
    }))
}
