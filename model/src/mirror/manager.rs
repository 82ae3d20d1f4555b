//! The mirror manager of one broker: which mirrored partitions this broker leads, what state each is in, and what happens
//! next (spec 2).
//!
//! It is called at three places. *Metadata*: after the replicas applied a delta, every partition in it is looked at again.
//! *Fetchers*: a fetcher's outcomes change states. *Time*: retries and waits. Until the persisted coordinator exists, a new
//! leader starts from UNKNOWN, aligns (only the fetcher's own epoch check cuts) and mirrors.

use crate::guards::mirror as guard;
use crate::ids::{BrokerId, ConnId, LeaderEpoch, MirrorIx, Nanos, Now, Offset, PartitionIx, TopicId, TopicIx};
use crate::metadata::configs::BrokerConfig;
use crate::metadata::delta::MetadataDelta;
use crate::metadata::image::MetadataImage;
use crate::mirror::epochs::bump_minimum;
use crate::mirror::fetcher::{
    fetcher_number, java_hash, FailCause, FetchLimits, Fetcher, FetcherKey, Outcome, Position, Task,
};
use crate::mirror::retry::RetryPolicy;
use crate::mirror::source::NoLeader;
use crate::mirror::sync::{Source, SourceTask};
use crate::ports::{Cx, Input, Lane, Timer};
use crate::replica::channel::{ControllerChannel, Outcome as ChannelOutcome, Purpose};
use crate::replica::chunked::Chunked;
use crate::replica::Replicas;
use crate::states::{DesiredState, MirrorState};
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{Body, BumpLeaderEpochsRequest};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The first lane of the mirror room: the manager's own. Fetchers follow it.
pub const LANE_MANAGER: Lane = Lane(256);
/// The first timer of the mirror room: the manager's. Fetchers' timers follow it.
pub const TIMER_MANAGER: Timer = Timer(0x80 << 56);

/// Partitions per bump request.
const BUMPS_PER_REQUEST: usize = 10_000;
/// The longest wait for a bump, or for replicas after a cut (decision 12).
const WAIT_MAX: Nanos = Nanos::from_secs(30);

/// Whether clients may write to a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Not mirrored, or stopped.
    Open,
    /// Mirrored: READ_ONLY_TOPIC.
    ReadOnly,
    /// Not known yet: this retriable error (decision 9).
    Retry(ErrorCode),
}

/// What a task of the mirror room works on.
pub struct MirrorTask<'a> {
    /// The metadata as far as applied.
    pub image: &'a MetadataImage,
    /// This broker's replicas.
    pub replicas: &'a mut Replicas,
    /// The way to the active controller; answers come back through [`MirrorManager::on_outcome`].
    pub controller: &'a mut ControllerChannel,
}

/// One mirrored partition that this broker leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which.
    pub partition: PartitionIx,
    /// Its topic.
    pub topic: TopicIx,
    /// Its topic's id, here and at the source.
    pub topic_id: TopicId,
    /// Its number within the topic.
    pub number: u32,
    /// Its mirror.
    pub mirror: MirrorIx,
    /// What it does.
    pub state: MirrorState,
    /// What it did before FAILED.
    pub previous: MirrorState,
    /// FAILED: how often in a row; −1: never again by itself.
    pub attempt: i16,
    /// Why it failed.
    pub cause: Option<FailCause>,
    /// The local leader epoch of this term.
    pub leader_epoch: LeaderEpoch,
    /// Its fetcher and slot.
    pub(super) place: Option<(u32, u32)>,
    /// The source's high watermark in its last answer, −1: none yet.
    pub(super) source_hw: Offset,
    /// When the source answered last.
    pub(super) answered_at: Nanos,
    /// The bump it waits for.
    pub(super) bump_min: Option<LeaderEpoch>,
    /// The end of its present wait.
    pub(super) wait_until: Option<Nanos>,
    /// Its next retry.
    pub(super) retry_at: Option<Nanos>,
    /// The source contradicts the log from here.
    pub diverged_at: Option<Offset>,
    /// Records lost to the source's retention before they were copied (decision 40).
    pub gaps: Vec<(Offset, Offset)>,
}

/// The mirror manager of one broker.
#[derive(Clone, Debug)]
pub struct MirrorManager {
    pub(super) me: BrokerId,
    pub(super) settings: Settings,
    index: Vec<u32>,
    pub(super) parts: Chunked<Option<Part>>,
    free: Vec<u32>,
    pub(super) sources: BTreeMap<MirrorIx, Source>,
    pub(super) fetchers: Vec<Fetcher>,
    by_key: BTreeMap<FetcherKey, u32>,
    conns: BTreeMap<ConnId, Owner>,
    waits: BTreeSet<(Nanos, PartitionIx)>,
    pub(super) tasks: VecDeque<ManagerTask>,
    bumps: Vec<(PartitionIx, LeaderEpoch)>,
    pub(super) outcomes: Vec<Outcome>,
    draws: u64,
    timer_at: Option<Nanos>,
}

/// What the broker's configuration says of mirroring (spec 9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `mirror.num.replica.fetchers`.
    pub fetchers: u32,
    /// `mirror.metadata.refresh.interval.ms`.
    pub refresh: Nanos,
    /// `mirror.failed.retry.*`.
    pub retry: RetryPolicy,
}

impl Settings {
    /// The settings in a broker's configuration.
    #[must_use]
    pub fn of(config: &BrokerConfig) -> Self {
        Self {
            fetchers: config.mirror_num_replica_fetchers,
            refresh: Nanos::from_millis(config.mirror_metadata_refresh_interval_ms.max(1)),
            retry: RetryPolicy {
                initial: Nanos::from_millis(config.mirror_failed_retry_initial_backoff_ms),
                max: Nanos::from_millis(config.mirror_failed_retry_max_backoff_ms),
                max_attempts: i16::try_from(config.mirror_failed_retry_max_attempts).unwrap_or(i16::MAX),
            },
        }
    }
}

/// Who a connection belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Source(MirrorIx),
    Fetcher(u32),
}

/// What the manager's lane has to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ManagerTask {
    /// Something arrived from a source's metadata connection.
    Source(MirrorIx, SourceTask),
    /// The timer is due.
    Tick,
}

/// No part.
const NONE: u32 = u32::MAX;

impl MirrorManager {
    /// A manager without partitions.
    #[must_use]
    pub fn new(me: BrokerId, config: &BrokerConfig) -> Self {
        Self {
            me,
            settings: Settings::of(config),
            index: Vec::new(),
            parts: Chunked::new(),
            free: Vec::new(),
            sources: BTreeMap::new(),
            fetchers: Vec::new(),
            by_key: BTreeMap::new(),
            conns: BTreeMap::new(),
            waits: BTreeSet::new(),
            tasks: VecDeque::new(),
            bumps: Vec::new(),
            outcomes: Vec::new(),
            draws: 0,
            timer_at: None,
        }
    }

    // ------------------------------------------------------------------------------------------------------- looking in

    /// A partition that this broker leads and mirrors.
    #[must_use]
    pub fn part(&self, partition: PartitionIx) -> Option<&Part> {
        let at = *self.index.get(partition.0 as usize)?;
        self.parts.get(at as usize)?.as_ref()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().flatten()
    }

    /// Records that the source has committed and this leader has not; `None` while that is not known (decision 19).
    #[must_use]
    pub fn lag(&self, part: &Part, replicas: &Replicas) -> Option<i64> {
        if part.state != MirrorState::Mirroring {
            return None;
        }
        let (source_hw, _) = self.source_hw_of(part)?;
        let log = replicas.log(part.partition)?.high_watermark();
        Some((source_hw.0 - log.0).max(0))
    }

    /// How many fetchers hold partitions now: each has a connection and a request of its own under way.
    #[must_use]
    pub fn busy_fetchers(&self) -> usize {
        self.fetchers.iter().filter(|f| f.count > 0).count()
    }

    /// Whether a fetcher of this broker holds the partition now.
    #[must_use]
    pub fn is_fetching(&self, partition: PartitionIx) -> bool {
        self.part(partition).is_some_and(|p| p.place.is_some())
    }

    /// The source's high watermark as last told, and when; `None` before the first answer (decision 19).
    #[must_use]
    pub fn source_high_watermark(&self, partition: PartitionIx) -> Option<(Offset, Nanos)> {
        self.source_hw_of(self.part(partition)?)
    }

    fn source_hw_of(&self, part: &Part) -> Option<(Offset, Nanos)> {
        let slot = part.place.and_then(|(f, s)| self.fetchers.get(f as usize)?.slot(s));
        let (hw, at) = match slot {
            Some(slot) if slot.source_hw >= Offset::ZERO => (slot.source_hw, slot.answered_at),
            _ => (part.source_hw, part.answered_at),
        };
        (hw >= Offset::ZERO).then_some((hw, at))
    }

    /// Whether clients may write. Reads the membership in the image it is handed, never one remembered from an election (M23).
    #[must_use]
    pub fn gate(&self, partition: PartitionIx, image: &MetadataImage, cx: &mut Cx<'_>) -> Gate {
        let topic = image.partition(partition).map(|p| p.topic);
        let read_only = !matches!(topic.and_then(|t| image.mirror_of(t)), None | Some((_, DesiredState::Stopped)));
        if cx.guards.admits(guard::MirrorTopicReadOnly, !read_only) {
            Gate::Open
        } else {
            Gate::ReadOnly
        }
    }

    pub(super) fn part_mut(&mut self, partition: PartitionIx) -> Option<&mut Part> {
        let at = *self.index.get(partition.0 as usize)?;
        self.parts.get_mut(at as usize)?.as_mut()
    }

    // ---------------------------------------------------------------------------------------------------------- metadata

    /// Looks again at everything in a delta. The replicas have applied it already: old fetchers of led partitions are stale
    /// (spec 1.1, A.4.2).
    pub fn on_metadata(&mut self, now: Now, delta: &MetadataDelta, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        for (_, topic) in &delta.topics_removed {
            topic.partitions.iter().for_each(|p| self.forget(*p, cx));
            self.sources.values_mut().for_each(|s| s.drop_topic(&topic.name, topic.id));
        }
        for topic in delta.mirror_topics.iter() {
            self.note_membership(now, task.image, *topic, cx);
        }
        for partition in delta.partitions.iter() {
            self.look_at(now, *partition, task, cx);
        }
        for topic in delta.mirror_topics.iter() {
            if let Some(topic) = task.image.topic(*topic) {
                for partition in &topic.partitions {
                    self.look_at(now, *partition, task, cx);
                }
            }
        }
        self.arm(cx);
    }

    fn note_membership(&mut self, now: Now, image: &MetadataImage, topic: TopicIx, cx: &mut Cx<'_>) {
        let Some(entry) = image.topic(topic) else { return };
        for (mirror, source) in &mut self.sources {
            if image.mirror_of(topic).is_none_or(|(m, _)| m != *mirror) {
                source.wanted.remove(&entry.name);
            }
        }
        let Some((mirror, _)) = image.mirror_of(topic) else { return };
        let Some(entry_mirror) = image.mirror(mirror) else { return };
        let interval = self.settings.refresh;
        let source = self
            .sources
            .entry(mirror)
            .or_insert_with(|| Source::new(&entry_mirror.config, &entry_mirror.source_nodes, interval, now));
        source.wanted.insert(entry.name.clone(), entry.id);
        cx.wake(LANE_MANAGER);
        self.tasks.push_back(ManagerTask::Tick);
    }

    /// Brings one partition in line with the image: ours to mirror, or not.
    fn look_at(&mut self, now: Now, partition: PartitionIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let image = task.image;
        let wanted = image.partition(partition).and_then(|entry| {
            let (mirror, desired) = image.mirror_of(entry.topic)?;
            let leads = cx.guards.admits(guard::MirrorLeaderOnly, entry.state.leader == self.me);
            (leads && desired == DesiredState::Mirroring).then_some((mirror, entry.topic, entry.number))
        });
        let term = task.replicas.leads(partition);
        let (Some((mirror, topic, number)), Some(epoch)) = (wanted, term) else {
            if !cx.guards.is_on(guard::MirrorLeaderOnly) && wanted.is_some() {
                return; // the mutant keeps its old fetcher
            }
            return self.forget(partition, cx);
        };
        match self.part(partition).map(|p| (p.leader_epoch, p.mirror)) {
            Some((held, held_mirror)) if held == epoch && held_mirror == mirror => {}
            Some((_, held_mirror)) if held_mirror == mirror => self.on_new_term(now, partition, epoch, task, cx),
            _ => {
                self.forget(partition, cx);
                let Some(topic_id) = image.topic(topic).map(|t| t.id) else { return };
                self.insert(Part {
                    partition,
                    topic,
                    topic_id,
                    number,
                    mirror,
                    state: MirrorState::Unknown,
                    previous: MirrorState::Unknown,
                    attempt: 0,
                    cause: None,
                    leader_epoch: epoch,
                    place: None,
                    source_hw: Offset::UNKNOWN,
                    answered_at: Nanos::ZERO,
                    bump_min: None,
                    wait_until: None,
                    retry_at: None,
                    diverged_at: None,
                    gaps: Vec::new(),
                });
                self.enter(now, partition, MirrorState::LogAlignment, task, cx);
            }
        }
    }

    /// The same broker leads in another epoch: a bump, or an election that came back. Side effects run again (spec 2.3 rule 6).
    fn on_new_term(
        &mut self,
        now: Now,
        partition: PartitionIx,
        epoch: LeaderEpoch,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        self.stop_fetching(partition, cx);
        let Some(part) = self.part_mut(partition) else { return };
        part.leader_epoch = epoch;
        let bumped = part.bump_min.is_none_or(|min| epoch > min);
        let state = part.state;
        if bumped {
            part.bump_min = None;
        }
        match state {
            MirrorState::EpochFencing => {
                let min = self.part(partition).and_then(|p| p.bump_min);
                if cx.guards.admits(guard::BumpWaitsForImage, min.is_none()) {
                    self.enter(now, partition, MirrorState::Mirroring, task, cx);
                }
            }
            MirrorState::Mirroring | MirrorState::LogAlignment | MirrorState::UleRecovery => {
                self.enter(now, partition, state, task, cx);
            }
            _ => {}
        }
    }

    fn insert(&mut self, part: Part) {
        let ix = part.partition.0 as usize;
        if self.index.len() <= ix {
            self.index.resize(ix + 1, NONE);
        }
        self.index[ix] = match self.free.pop() {
            Some(at) => {
                self.parts[at as usize] = Some(part);
                at
            }
            None => self.parts.push(Some(part)) as u32,
        };
    }

    /// This broker does not mirror the partition any more.
    fn forget(&mut self, partition: PartitionIx, cx: &mut Cx<'_>) {
        if self.part(partition).is_none() {
            return;
        }
        self.stop_fetching(partition, cx);
        self.clear_timers(partition);
        let at = std::mem::replace(&mut self.index[partition.0 as usize], NONE);
        if let Some(part) = self.parts[at as usize].take() {
            if let Some(source) = self.sources.get_mut(&part.mirror) {
                source.stop_awaiting(partition);
            }
        }
        self.free.push(at);
    }

    // ------------------------------------------------------------------------------------------------------------ states

    /// Takes a state and runs what belongs to it (spec 2.5).
    pub(super) fn enter(
        &mut self,
        now: Now,
        partition: PartitionIx,
        to: MirrorState,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        if !self.change_state(partition, to, cx) {
            return;
        }
        self.clear_timers(partition);
        match to {
            MirrorState::LogAlignment => self.align(now, partition, task, cx),
            MirrorState::Mirroring => self.start_fetching(now, partition, task, cx),
            MirrorState::EpochFencing => self.wait(now, partition),
            MirrorState::UleRecovery => {
                if task.replicas.start_barrier(now, partition, true, cx) {
                    self.enter(now, partition, MirrorState::Mirroring, task, cx);
                } else {
                    self.wait(now, partition);
                }
            }
            _ => {}
        }
    }

    fn change_state(&mut self, partition: PartitionIx, to: MirrorState, cx: &mut Cx<'_>) -> bool {
        let Some(part) = self.part_mut(partition) else { return false };
        if !to.can_follow(part.state) {
            return false;
        }
        let from = std::mem::replace(&mut part.state, to);
        if to == MirrorState::Failed && from != MirrorState::Failed {
            part.previous = from;
        }
        let (mirror, attempt) = (part.mirror, part.attempt);
        if from != to || to == MirrorState::Failed {
            cx.trace(Trace::MirrorStateChanged { partition, mirror, from, to, attempt });
        }
        true
    }

    /// LOG_ALIGNMENT: until last mirrored positions exist, all it awaits is to know the source's leader.
    pub(super) fn align(&mut self, now: Now, partition: PartitionIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Some((topic, number, mirror)) = self.part(partition).map(|p| (p.topic_id, p.number, p.mirror)) else {
            return;
        };
        let Some(source) = self.sources.get_mut(&mirror) else { return };
        if source.cluster.leader(topic, number).is_ok() {
            return self.enter(now, partition, MirrorState::Mirroring, task, cx);
        }
        source.awaiting.insert(partition);
        self.want_refresh(mirror, cx);
    }

    fn start_fetching(&mut self, now: Now, partition: PartitionIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Some(part) = self.part(partition) else { return };
        let (topic, topic_id, number, mirror) = (part.topic, part.topic_id, part.number, part.mirror);
        let Some(source) = self.sources.get(&mirror) else { return };
        let (node, known) = match source.cluster.leader(topic_id, number) {
            Ok(found) => found,
            Err(why) => {
                let cause = if why == NoLeader::TopicMissing {
                    FailCause::SourceTopicMissing
                } else {
                    FailCause::SourceLeaderUnknown
                };
                return self.fail(now, partition, cause, task, cx);
            }
        };
        let (Some(entry), Some(mirror_entry)) = (task.image.topic(topic), task.image.mirror(mirror)) else { return };
        let Some(log) = task.replicas.log(partition) else { return };
        let position = Position {
            partition,
            topic,
            source_partition: known.partition,
            offset: log.end(),
            source_epoch: known.epoch,
            last_epoch: log.latest_epoch(),
        };
        let config = &mirror_entry.config;
        let key = FetcherKey {
            mirror,
            source: node,
            number: fetcher_number(java_hash(&entry.name), number, self.settings.fetchers),
        };
        let limits = FetchLimits {
            max_wait: Nanos::from_millis(u64::from(config.fetch_wait_max_ms)),
            min_bytes: config.fetch_min_bytes,
            max_bytes: config.fetch_response_max_bytes,
            partition_max_bytes: config.fetch_max_bytes,
            backoff: Nanos::from_millis(config.fetch_backoff_ms),
            timeout: Nanos::from_millis(config.socket_timeout_ms),
        };
        let fetcher = self.fetcher_for(key, limits);
        let slot = self.fetchers[fetcher as usize].add(position);
        cx.trace(Trace::MirrorFetcherAdded {
            partition,
            source: node,
            offset: position.offset,
            epoch: position.source_epoch,
        });
        if let Some(part) = self.part_mut(partition) {
            part.place = Some((fetcher, slot));
        }
        self.kick(fetcher, cx);
    }

    fn fetcher_for(&mut self, key: FetcherKey, limits: FetchLimits) -> u32 {
        if let Some(at) = self.by_key.get(&key) {
            return *at;
        }
        let at = self.fetchers.len() as u32;
        self.fetchers.push(Fetcher::new(key, Lane(LANE_MANAGER.0 + 1 + at as u16), limits));
        self.by_key.insert(key, at);
        at
    }

    /// Wakes a fetcher's lane once, however many partitions it was given.
    fn kick(&mut self, fetcher: u32, cx: &mut Cx<'_>) {
        let fetcher = &mut self.fetchers[fetcher as usize];
        if fetcher.tasks.back() != Some(&Task::Kick) {
            fetcher.tasks.push_back(Task::Kick);
            cx.wake(fetcher.lane);
        }
    }

    fn stop_fetching(&mut self, partition: PartitionIx, cx: &mut Cx<'_>) {
        let Some((fetcher, slot)) = self.part_mut(partition).and_then(|p| p.place.take()) else { return };
        let held = &mut self.fetchers[fetcher as usize];
        let source = held.key.source;
        if let (Some(old), Some(part)) = (held.remove(slot), self.part_mut(partition)) {
            if old.source_hw >= Offset::ZERO {
                (part.source_hw, part.answered_at) = (old.source_hw, old.answered_at);
            }
        }
        cx.trace(Trace::MirrorFetcherRemoved { partition, source });
    }

    /// FAILED, with a retry unless it cannot help (spec 2.6).
    pub(super) fn fail(
        &mut self,
        now: Now,
        partition: PartitionIx,
        cause: FailCause,
        _task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        self.stop_fetching(partition, cx);
        self.clear_timers(partition);
        self.draws += 1;
        let draw = self.draws << 32 | u64::from(partition.0);
        let retry = self.settings.retry;
        let Some(part) = self.part_mut(partition) else { return };
        let mirror = part.mirror;
        part.cause = Some(cause);
        part.attempt =
            if cause.is_retryable() { part.attempt.max(0).saturating_add(1).min(retry.max_attempts) } else { -1 };
        part.retry_at = retry.delay(part.attempt, cx.entropy, draw).map(|d| now.mono + d);
        let retry_at = part.retry_at;
        self.change_state(partition, MirrorState::Failed, cx);
        if let Some(at) = retry_at {
            self.waits.insert((at, partition));
        }
        if cause.is_retryable() && cx.guards.admits(guard::MissedPartitionIsRetried, false) {
            return; // the mutant does not look the source up again
        }
        self.want_refresh(mirror, cx);
    }

    /// The retry of a FAILED partition: back to what it did, or to the start if that is not known (spec 2.6). The desired
    /// state was looked at when the part was kept (decision 33): a part exists only while MIRRORING is wanted.
    fn retry(&mut self, now: Now, partition: PartitionIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Some(part) = self.part_mut(partition) else { return };
        part.retry_at = None;
        if part.state != MirrorState::Failed {
            return;
        }
        let to = match part.previous {
            MirrorState::Unknown | MirrorState::LogAlignment => MirrorState::LogAlignment,
            MirrorState::EpochFencing if part.bump_min.is_some() => {
                let min = part.bump_min.unwrap_or(LeaderEpoch::NONE);
                self.bumps.push((partition, min));
                cx.trace(Trace::BumpRequested { partition, min });
                MirrorState::EpochFencing
            }
            MirrorState::UleRecovery => MirrorState::UleRecovery,
            _ => MirrorState::Mirroring,
        };
        self.enter(now, partition, to, task, cx);
    }

    // ------------------------------------------------------------------------------------------------------------- waits

    fn wait(&mut self, now: Now, partition: PartitionIx) {
        let until = now.mono + WAIT_MAX;
        if let Some(part) = self.part_mut(partition) {
            part.wait_until = Some(until);
            self.waits.insert((until, partition));
        }
    }

    /// Timers die with the state that set them (decision 21).
    fn clear_timers(&mut self, partition: PartitionIx) {
        let Some(part) = self.part_mut(partition) else { return };
        for at in [part.wait_until.take(), part.retry_at.take()].into_iter().flatten() {
            self.waits.remove(&(at, partition));
        }
    }

    /// Asks for a leader epoch above the source's; one bump per partition is under way at a time.
    pub(super) fn want_bump(&mut self, partition: PartitionIx, source_epoch: LeaderEpoch, cx: &mut Cx<'_>) {
        let min = bump_minimum(source_epoch);
        let Some(part) = self.part_mut(partition) else { return };
        if part.bump_min.is_some_and(|pending| pending >= min) {
            return;
        }
        part.bump_min = Some(min);
        if !self.bumps.is_empty() && cx.guards.admits(guard::EveryBumpRemembered, false) {
            self.bumps.clear(); // the mutant has one slot
        }
        self.bumps.push((partition, min));
        cx.trace(Trace::BumpRequested { partition, min });
    }

    /// The same for a partition that another broker may lead.
    pub(super) fn want_bump_anywhere(&mut self, partition: PartitionIx, source_epoch: LeaderEpoch, cx: &mut Cx<'_>) {
        if self.part(partition).is_some() {
            return self.want_bump(partition, source_epoch, cx);
        }
        let min = bump_minimum(source_epoch);
        self.bumps.push((partition, min));
        cx.trace(Trace::BumpRequested { partition, min });
    }

    /// What the fetcher saw, turned into states.
    pub(super) fn apply_outcome(&mut self, now: Now, outcome: Outcome, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        match outcome {
            Outcome::Proven(partition) => {
                if let Some(part) = self.part_mut(partition) {
                    (part.attempt, part.cause) = (0, None);
                }
            }
            Outcome::Bump(partition, epoch) => self.want_bump(partition, epoch, cx),
            Outcome::Fence(partition, epoch) => {
                self.stop_fetching(partition, cx);
                self.enter(now, partition, MirrorState::EpochFencing, task, cx);
                self.want_bump(partition, epoch, cx);
            }
            Outcome::Fail(partition, cause) => self.fail(now, partition, cause, task, cx),
            Outcome::Moved(partition, hint) => {
                let Some((topic, number, mirror)) = self.part(partition).map(|p| (p.topic_id, p.number, p.mirror))
                else {
                    return;
                };
                self.stop_fetching(partition, cx);
                if let Some(source) = self.sources.get_mut(&mirror) {
                    source.cluster.on_hint(topic, number, hint);
                }
                self.enter(now, partition, MirrorState::Mirroring, task, cx);
            }
            Outcome::Cut(partition, _) => {
                self.stop_fetching(partition, cx);
                if cx.guards.admits(guard::BarrierAfterMirrorCut, false) {
                    self.enter(now, partition, MirrorState::Mirroring, task, cx);
                } else {
                    self.enter(now, partition, MirrorState::UleRecovery, task, cx);
                }
            }
            Outcome::Gap(partition, from, to) => {
                if let Some(part) = self.part_mut(partition) {
                    part.gaps.push((from, to));
                }
            }
            Outcome::Contradicted(partition, at) => {
                if let Some(part) = self.part_mut(partition) {
                    part.diverged_at = Some(at);
                }
                self.fail(now, partition, FailCause::Diverged, task, cx);
            }
        }
    }

    // -------------------------------------------------------------------------------------------------------------- door

    /// Files an input under its lane: one on a connection that this room opened, or a timer from [`TIMER_MANAGER`] up.
    pub fn on_input(&mut self, _now: Now, input: Input, cx: &mut Cx<'_>) {
        let (conn, task) = match input {
            Input::Opened { conn, .. } => (conn, Task::Opened),
            Input::Closed { conn, .. } => (conn, Task::Closed),
            Input::Message { conn, message } => (conn, Task::Answer(message)),
            Input::Timer(TIMER_MANAGER) => {
                self.timer_at = None;
                self.tasks.push_back(ManagerTask::Tick);
                return cx.wake(LANE_MANAGER);
            }
            Input::Timer(timer) => {
                let at = timer.0.wrapping_sub(TIMER_MANAGER.0 + 1) as usize;
                if at < self.fetchers.len() {
                    self.fetchers[at].timer_at = Nanos::ZERO;
                    self.kick(at as u32, cx);
                }
                return;
            }
            Input::Flushed { .. } => return,
        };
        let Some(owner) = self.conns.get(&conn).copied() else { return };
        if task == Task::Closed {
            self.conns.remove(&conn);
        }
        match owner {
            Owner::Source(mirror) => {
                self.tasks.push_back(ManagerTask::Source(mirror, SourceTask { conn, task }));
                cx.wake(LANE_MANAGER);
            }
            Owner::Fetcher(at) => {
                let fetcher = &mut self.fetchers[at as usize];
                if fetcher.link.conn() == Some(conn) {
                    fetcher.tasks.push_back(task);
                    cx.wake(fetcher.lane);
                }
            }
        }
    }

    /// Runs one task of one of this room's lanes.
    pub fn run(&mut self, now: Now, lane: Lane, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        if lane == LANE_MANAGER {
            match self.tasks.pop_front() {
                Some(ManagerTask::Tick) => self.tick(now, task, cx),
                Some(ManagerTask::Source(mirror, arrived)) => self.run_source(now, mirror, arrived, task, cx),
                None => {}
            }
        } else {
            self.run_fetcher(now, usize::from(lane.0 - LANE_MANAGER.0 - 1), task, cx);
        }
        self.arm(cx);
    }

    fn tick(&mut self, now: Now, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        while let Some(&(at, partition)) = self.waits.first() {
            if at > now.mono {
                break;
            }
            self.waits.pop_first();
            match self.part(partition).map(|p| p.state) {
                Some(MirrorState::Failed) => self.retry(now, partition, task, cx),
                Some(MirrorState::EpochFencing) => {
                    self.fail(now, partition, FailCause::BumpTimedOut, task, cx);
                }
                Some(MirrorState::UleRecovery) => {
                    self.fail(now, partition, FailCause::ReplicasBehind, task, cx);
                }
                _ => {}
            }
        }
        self.sync_sources(now, task, cx);
    }

    /// At the end of every task of the broker: barriers that were reached, bumps that were asked for.
    pub fn after(&mut self, now: Now, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        for partition in task.replicas.take_converged() {
            if self.part(partition).is_some_and(|p| p.state == MirrorState::UleRecovery) {
                self.enter(now, partition, MirrorState::Mirroring, task, cx);
                self.arm(cx);
            }
        }
        self.send_bumps(now, task, cx);
    }

    /// Sends the bumps collected so far, in requests below the controller's limits (decision 16). The answer is not waited
    /// for: a bump is done when the image says so (spec 3.3), and its wait has a timer.
    fn send_bumps(&mut self, now: Now, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        if self.bumps.is_empty() {
            return;
        }
        let bumps = std::mem::take(&mut self.bumps);
        for parts in bumps.chunks(BUMPS_PER_REQUEST) {
            let body = BumpLeaderEpochsRequest { parts: parts.to_vec() };
            task.controller.send(body.into(), Purpose::Mirror(0), Some(now.mono + WAIT_MAX), now, cx);
        }
    }

    /// The controller answered, or did not in time: a bump whose request was lost may be asked for again.
    pub fn on_outcome(&mut self, _now: Now, outcome: ChannelOutcome, _task: &mut MirrorTask<'_>, _cx: &mut Cx<'_>) {
        if let Err(Body::BumpLeaderEpochsRequest(request)) = outcome.result {
            for (partition, min) in &request.parts {
                if let Some(part) = self.part_mut(*partition) {
                    if part.bump_min == Some(*min) && part.state != MirrorState::EpochFencing {
                        part.bump_min = None;
                    }
                }
            }
        }
    }

    /// A request of a kind that this room answers: true if it was taken.
    pub fn on_request(
        &mut self,
        _now: Now,
        _conn: ConnId,
        _correlation: u32,
        _body: &Body,
        _task: &mut MirrorTask<'_>,
        _cx: &mut Cx<'_>,
    ) -> bool {
        false
    }

    /// Answers for requests that were taken: none before the mirror state coordinator.
    pub fn take_answers(&mut self) -> Vec<(ConnId, u32, Body)> {
        Vec::new()
    }

    pub(super) fn own_source(&mut self, conn: ConnId, mirror: MirrorIx) {
        self.conns.insert(conn, Owner::Source(mirror));
    }
    pub(super) fn own_fetcher(&mut self, conn: ConnId, fetcher: u32) {
        self.conns.insert(conn, Owner::Fetcher(fetcher));
    }
    pub(super) fn disown(&mut self, conn: ConnId) {
        self.conns.remove(&conn);
    }

    /// Keeps the one timer of this lane at the earliest thing that waits.
    fn arm(&mut self, cx: &mut Cx<'_>) {
        let sources = self.sources.values().map(Source::next_deadline).min();
        let waits = self.waits.first().map(|(at, _)| *at);
        let Some(at) = [sources, waits].into_iter().flatten().min() else { return };
        if self.timer_at.is_none_or(|armed| at < armed) {
            self.timer_at = Some(at);
            cx.set_timer(TIMER_MANAGER, at);
        }
    }
}
