//! The mirror manager of one broker: which mirrored partitions this broker leads, what state each is in, and what happens
//! next (spec 2). Here stand what it keeps and its door; what it does is in the files beside it.
//!
//! It is called at three places. *Metadata*: after the replicas applied a delta, every partition in it is looked at again.
//! *Fetchers*: a fetcher's outcomes change states. *Time*: retries and waits. Every state is committed by the partition's
//! coordinator before it is acted on; a new leader begins with what is committed.

use crate::guards::points::Point;
use crate::guards::{mirror as guard, prototype as quirk};
use crate::ids::{BrokerId, ConnId, LeaderEpoch, MirrorIx, Nanos, Now, Offset, PartitionIx, TopicId, TopicIx};
use crate::metadata::configs::BrokerConfig;
use crate::metadata::image::MetadataImage;
use crate::mirror::align::AlignStep;
use crate::mirror::coordinator::Coordinator;
use crate::mirror::fetcher::{FailCause, Fetcher, FetcherKey, Outcome, Task};
use crate::mirror::persist::Change;
use crate::mirror::retry::RetryPolicy;
use crate::mirror::state_client::{PeerTask, StateClient};
use crate::mirror::stop::StopStep;
use crate::mirror::sync::{Source, SourceTask};
use crate::ports::{Cx, Input, Lane, Timer};
use crate::replica::channel::ControllerChannel;
use crate::replica::chunked::Chunked;
use crate::replica::Replicas;
use crate::states::{DesiredState, MirrorState, StateRecord};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::Body;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The first lane of the mirror room: the manager's own. Fetchers follow it.
pub const LANE_MANAGER: Lane = Lane(256);
/// The first timer of the mirror room: the manager's. Fetchers' timers follow it.
pub const TIMER_MANAGER: Timer = Timer(0x80 << 56);

/// The longest wait for a bump, or for replicas after a cut (decision 12).
pub(super) const WAIT_MAX: Nanos = Nanos::from_secs(30);

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
    /// The id of this broker's cluster.
    pub cluster_id: &'a Arc<str>,
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
    /// What is committed of it in `__mirror_state`; `None` until its coordinator told.
    pub record: Option<StateRecord>,
    /// What it does: its committed state.
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
    /// EPOCH_FENCING: the epoch of the batch that has to wait.
    pub(super) ahead: Option<LeaderEpoch>,
    /// The end of its present wait.
    pub(super) wait_until: Option<Nanos>,
    /// Its next retry.
    pub(super) retry_at: Option<Nanos>,
    /// The state that is to be committed next.
    pub(super) change: Option<Change>,
    /// The state whose write is under way.
    pub(super) writing: Option<MirrorState>,
    /// Quirk D-15: a transition that was refused, and is taken for one under way.
    pub(super) refused: Option<MirrorState>,
    /// When the coordinator is asked again.
    pub(super) ask_at: Option<Nanos>,
    /// What an alignment awaits.
    pub(super) align: AlignStep,
    /// Nothing was copied yet in this session.
    pub(super) is_young: bool,
    /// The leader epoch in which the broker led already when the topic came to be mirrored.
    pub(super) joined_in: Option<LeaderEpoch>,
    /// The write that is under way was made before, and not answered well.
    pub(super) is_repeated: bool,
    /// How far a stop has come.
    pub(super) stop: StopStep,
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
    pub(super) index: Vec<u32>,
    pub(super) parts: Chunked<Option<Part>>,
    pub(super) free: Vec<u32>,
    pub(super) sources: BTreeMap<MirrorIx, Source>,
    pub(super) fetchers: Vec<Fetcher>,
    pub(super) by_key: BTreeMap<FetcherKey, u32>,
    conns: BTreeMap<ConnId, Owner>,
    pub(super) waits: BTreeSet<(Nanos, PartitionIx)>,
    pub(super) tasks: VecDeque<ManagerTask>,
    pub(super) bumps: Vec<(PartitionIx, LeaderEpoch)>,
    /// Bumps that the controller was asked for, by the request's number.
    pub(super) bumps_asked: BTreeMap<u64, Vec<(PartitionIx, LeaderEpoch)>>,
    /// Numbers requests to the controller.
    pub(super) requests: u64,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) draws: u64,
    timer_at: Option<Nanos>,
    /// The partitions of `__mirror_state` that this broker leads.
    pub coordinator: Coordinator,
    pub(super) states: StateClient,
    /// Partitions whose coordinator is asked again, by when.
    pub(super) asks: BTreeSet<(Nanos, PartitionIx)>,
    /// Answers for other brokers.
    pub(super) answers: Vec<(ConnId, u32, Body)>,
    /// A quirk that is asked where the registry is not at hand (E-1).
    pub(crate) lag_begins_at_zero: bool,
    /// Quirk D-31: partitions that this broker awaited the replicas of when it lost them.
    pub(super) left_waiting: BTreeSet<PartitionIx>,
    /// Quirk D-42: partitions whose bumps went in one request.
    pub(super) company: Vec<Vec<(PartitionIx, LeaderEpoch)>>,
    /// The mutant of C05: what this broker knew of partitions when it lost them.
    pub(super) remembered: BTreeMap<PartitionIx, StateRecord>,
    /// Stops that wait for a watermark.
    pub(super) stopping: BTreeSet<PartitionIx>,
    /// Diverged partitions whose source's side wins, by an operator's word in that leader epoch (decision 39).
    pub(super) source_wins: BTreeMap<PartitionIx, LeaderEpoch>,
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
    /// `mirror.state.topic.num.partitions`.
    pub state_partitions: u32,
    /// `mirror.coordinator.append.linger.ms`.
    pub linger: Nanos,
    /// `mirror.coordinator.write.timeout.ms`.
    pub write_timeout: Nanos,
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
            state_partitions: config.mirror_state_topic_num_partitions,
            linger: Nanos::from_millis(config.mirror_coordinator_append_linger_ms),
            write_timeout: Nanos::from_millis(config.mirror_coordinator_write_timeout_ms),
        }
    }
}

/// Who a connection belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Source(MirrorIx),
    Inquiry(MirrorIx),
    Fetcher(u32),
}

/// What the manager's lane has to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ManagerTask {
    /// Something arrived from a source's metadata connection.
    Source(MirrorIx, SourceTask),
    /// Something arrived from a source broker that is asked about its mirrors.
    Inquiry(MirrorIx, SourceTask),
    /// Something arrived from another broker that coordinates.
    Peer(ConnId, PeerTask),
    /// A partition of `__mirror_state` is to be read.
    Load(PartitionIx),
    /// The timer is due.
    Tick,
}

impl Part {
    /// A partition that this broker came to lead; nothing is known of its state yet.
    pub(super) fn new(
        partition: PartitionIx,
        topic: TopicIx,
        topic_id: TopicId,
        number: u32,
        mirror: MirrorIx,
        leader_epoch: LeaderEpoch,
    ) -> Self {
        Self {
            partition,
            topic,
            topic_id,
            number,
            mirror,
            record: None,
            state: MirrorState::Unknown,
            previous: MirrorState::Unknown,
            attempt: 0,
            cause: None,
            leader_epoch,
            place: None,
            source_hw: Offset::UNKNOWN,
            answered_at: Nanos::ZERO,
            bump_min: None,
            ahead: None,
            wait_until: None,
            retry_at: None,
            change: None,
            writing: None,
            refused: None,
            ask_at: None,
            align: AlignStep::default(),
            is_young: false,
            joined_in: None,
            is_repeated: false,
            stop: StopStep::default(),
            diverged_at: None,
            gaps: Vec::new(),
        }
    }
    /// When its present wait ends, by this broker's monotonic clock.
    #[must_use]
    pub fn waits_until(&self) -> Option<Nanos> {
        self.wait_until
    }
    /// FAILED: when it is tried again, by this broker's monotonic clock.
    #[must_use]
    pub fn retry_at(&self) -> Option<Nanos> {
        self.retry_at
    }
    /// No session ended here, and none got as far as to copy: what the log holds is local.
    pub(super) fn never_mirrored(&self) -> bool {
        use MirrorState as S;
        let before = if self.state == S::Failed { self.previous } else { self.state };
        let fresh = self.record.as_ref().is_none_or(|record| record.position.is_none());
        fresh && matches!(before, S::Unknown | S::LogAlignment)
    }
    /// FAILED, and its time has come: all it waits for is what the source says of its leader.
    pub(super) fn is_retrying(&self, now: Now) -> bool {
        self.state == MirrorState::Failed && self.retry_at.is_some_and(|at| at <= now.mono)
    }
}

impl MirrorManager {
    /// A manager without partitions.
    #[must_use]
    pub fn new(me: BrokerId, config: &BrokerConfig) -> Self {
        let settings = Settings::of(config);
        let attempts_max = settings.retry.max_attempts;
        Self {
            me,
            settings,
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
            bumps_asked: BTreeMap::new(),
            requests: 0,
            outcomes: Vec::new(),
            draws: 0,
            timer_at: None,
            coordinator: Coordinator::new(settings.state_partitions, settings.linger, attempts_max),
            states: StateClient::new(me, settings.write_timeout),
            asks: BTreeSet::new(),
            answers: Vec::new(),
            lag_begins_at_zero: false,
            left_waiting: BTreeSet::new(),
            company: Vec::new(),
            remembered: BTreeMap::new(),
            stopping: BTreeSet::new(),
            source_wins: BTreeMap::new(),
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
        let Some((source_hw, _)) = self.source_hw_of(part) else { return self.lag_begins_at_zero.then_some(0) };
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

    /// The source leader's epoch in which the source last answered the partition's fetcher; −1 while it has not.
    #[must_use]
    pub fn proven_source_epoch(&self, partition: PartitionIx) -> LeaderEpoch {
        let place = self.part(partition).and_then(|part| part.place);
        let slot = place.and_then(|(fetcher, slot)| self.fetchers.get(fetcher as usize)?.slot(slot));
        slot.filter(|slot| !slot.unproven).map_or(LeaderEpoch::NONE, |slot| slot.epoch)
    }

    /// The source's high watermark as last told, and when; `None` before the first answer (decision 19).
    #[must_use]
    pub fn source_high_watermark(&self, partition: PartitionIx) -> Option<(Offset, Nanos)> {
        self.source_hw_of(self.part(partition)?)
    }

    fn source_hw_of(&self, part: &Part) -> Option<(Offset, Nanos)> {
        let slot = part.place.and_then(|(f, s)| self.fetchers.get(f as usize)?.slot(s));
        let (hw, at) = match slot {
            // A session's answer leaves out what did not change.
            Some(slot) if slot.source_hw >= Offset::ZERO => {
                let heard = part.place.and_then(|(f, _)| self.fetchers.get(f as usize)).map(|f| f.heard_at);
                (slot.source_hw, slot.answered_at.max(heard.filter(|_| slot.in_session).unwrap_or_default()))
            }
            _ => (part.source_hw, part.answered_at),
        };
        (hw >= Offset::ZERO).then_some((hw, at))
    }

    /// Whether clients may write. Reads the membership in the image it is handed, never one remembered from an election (M23),
    /// and the last committed state (decision 9): a topic that is to be stopped is writable where STOPPED is committed, and
    /// where nothing is known yet that is what the client hears.
    #[must_use]
    pub fn gate(&self, partition: PartitionIx, image: &MetadataImage, cx: &mut Cx<'_>) -> Gate {
        let topic = image.partition(partition).map(|p| p.topic);
        let gate = match topic.and_then(|t| image.mirror_of(t)) {
            None => Gate::Open,
            Some((_, DesiredState::Stopped)) => match self.part(partition).filter(|part| part.record.is_some()) {
                // On its way out of STOPPED: nobody knows here whether that is committed yet.
                Some(part) if part.state == MirrorState::Stopped && part.change.is_some() => {
                    Gate::Retry(ErrorCode::CoordinatorLoadInProgress)
                }
                Some(part) if part.state == MirrorState::Stopped => Gate::Open,
                Some(_) => Gate::ReadOnly,
                None if cx.guards.quirk(quirk::ResignationForgetsStates) => Gate::ReadOnly,
                None => Gate::Retry(ErrorCode::CoordinatorLoadInProgress),
            },
            Some(_) => Gate::ReadOnly,
        };
        let late = self.part(partition).is_some_and(|part| part.joined_in == Some(part.leader_epoch));
        if late && gate != Gate::Open && cx.guards.admits(guard::GateReadsMembership, false) {
            return Gate::Open;
        }
        if cx.guards.admits(guard::MirrorTopicReadOnly, gate != Gate::ReadOnly) && gate == Gate::ReadOnly {
            Gate::Open
        } else {
            gate
        }
    }

    pub(super) fn part_mut(&mut self, partition: PartitionIx) -> Option<&mut Part> {
        let at = *self.index.get(partition.0 as usize)?;
        self.parts.get_mut(at as usize)?.as_mut()
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
        if self.states.owns(conn) {
            let task = match task {
                Task::Opened => PeerTask::Opened,
                Task::Closed => PeerTask::Closed,
                Task::Answer(message) => PeerTask::Answer(message),
                Task::Kick => return,
            };
            self.tasks.push_back(ManagerTask::Peer(conn, task));
            return cx.wake(LANE_MANAGER);
        }
        let Some(owner) = self.conns.get(&conn).copied() else { return };
        if task == Task::Closed {
            self.conns.remove(&conn);
        }
        match owner {
            Owner::Source(mirror) => {
                self.tasks.push_back(ManagerTask::Source(mirror, SourceTask { conn, task }));
                cx.wake(LANE_MANAGER);
            }
            Owner::Inquiry(mirror) => {
                self.tasks.push_back(ManagerTask::Inquiry(mirror, SourceTask { conn, task }));
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
                Some(ManagerTask::Inquiry(mirror, arrived)) => self.run_inquiry(now, mirror, arrived, task, cx),
                Some(ManagerTask::Peer(conn, arrived)) => self.states.arrived(conn, arrived),
                Some(ManagerTask::Load(partition)) if cx.guards.points.fires(Point::ShardLoadWaits) => {
                    self.tasks.push_back(ManagerTask::Load(partition));
                    cx.wake(LANE_MANAGER);
                }
                Some(ManagerTask::Load(partition)) => {
                    self.coordinator.load(partition, now, task.image, task.replicas, cx);
                    self.coordinator.sweep(task.image, now, task.replicas, cx);
                    self.note_mirrors(now, task.image, cx);
                }
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
            let Some(part) = self.part(partition) else { continue };
            let align = part.align;
            if part.retry_at == Some(at) && part.state != MirrorState::Failed {
                // Only with its quirk a retry outlives the failure.
                self.resume_anyway(now, partition, task, cx);
                continue;
            }
            match part.state {
                MirrorState::Failed => self.retry(now, partition, task, cx),
                MirrorState::EpochFencing => {
                    self.fail(now, partition, FailCause::BumpTimedOut, task, cx);
                }
                MirrorState::LogAlignment => {
                    let cause = self.overdue_alignment(partition, align);
                    self.fail(now, partition, cause, task, cx);
                }
                MirrorState::UleRecovery => self.fail(now, partition, FailCause::ReplicasBehind, task, cx),
                MirrorState::Stopping => self.fail(now, partition, FailCause::StopTimedOut, task, cx),
                _ => {}
            }
        }
        for partition in self.coordinator.take_unread(now) {
            self.tasks.push_back(ManagerTask::Load(partition));
            cx.wake(LANE_MANAGER);
        }
        self.coordinator.append_due(now, task.image, task.replicas, cx);
        self.ask_due(now, task, cx);
        self.sync_sources(now, task, cx);
        self.inquire_due(now, task, cx);
    }

    /// At the end of every task of the broker: barriers that were reached, bumps that were asked for.
    pub fn after(&mut self, now: Now, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        self.lag_begins_at_zero = cx.guards.quirk(quirk::LagBeginsAtZero);
        self.coordinator.tells_uncommitted = cx.guards.quirk(quirk::UncommittedStateIsTold);
        self.coordinator.not_loaded_is_none = cx.guards.quirk(quirk::NotLoadedReadsAsNone);
        for partition in task.replicas.take_converged() {
            let Some(part) = self.part(partition) else { continue };
            let aligned = part.state == MirrorState::LogAlignment && part.align == AlignStep::Replicas;
            if aligned || part.state == MirrorState::UleRecovery {
                self.enter(now, partition, MirrorState::Mirroring, task, cx);
            }
        }
        for partition in task.replicas.take_watermark_news() {
            self.coordinator.commit(partition, task.image, task.replicas, cx);
            if self.stopping.contains(&partition) {
                self.go_on_stopping(now, partition, task, cx);
            }
        }
        self.states.go_on(now, cx);
        self.take_state_answers(now, task, cx);
        self.send_bumps(now, task, cx);
        self.arm(cx);
    }

    /// A request of a kind that this room answers: true if it was taken.
    pub fn on_request(
        &mut self,
        now: Now,
        conn: ConnId,
        correlation: u32,
        body: &Body,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) -> bool {
        match body {
            Body::ReadMirrorStatesRequest(request) => self.on_read_states((conn, correlation), request, task),
            Body::WriteMirrorStatesRequest(request) => {
                self.on_write_states((conn, correlation), request, now, task, cx);
            }
            _ => return false,
        }
        true
    }

    pub(super) fn own(&mut self, conn: ConnId, owner: Owner) {
        self.conns.insert(conn, owner);
    }

    /// Whether a connection is to a source broker that is asked about its mirrors.
    #[cfg(test)]
    pub(super) fn inquires_on(&self, conn: ConnId) -> bool {
        matches!(self.conns.get(&conn), Some(Owner::Inquiry(_)))
    }

    pub(super) fn own_source(&mut self, conn: ConnId, mirror: MirrorIx) {
        self.own(conn, Owner::Source(mirror));
    }

    pub(super) fn own_fetcher(&mut self, conn: ConnId, fetcher: u32) {
        self.own(conn, Owner::Fetcher(fetcher));
    }

    pub(super) fn disown(&mut self, conn: ConnId) {
        self.conns.remove(&conn);
    }

    /// Keeps the one timer of this lane at the earliest thing that waits.
    pub(super) fn arm(&mut self, cx: &mut Cx<'_>) {
        let sources = self.sources.values().map(Source::next_deadline).min();
        let inquiries = self.sources.values().filter_map(|source| source.inquiry.next_deadline()).min();
        let waits = self.waits.first().map(|(at, _)| *at);
        let asks = self.asks.first().map(|(at, _)| *at);
        let coordinators = [self.coordinator.next_deadline(), self.states.next_deadline()];
        let Some(at) = [sources, inquiries, waits, asks].into_iter().chain(coordinators).flatten().min() else {
            return;
        };
        if self.timer_at.is_none_or(|armed| at < armed) {
            self.timer_at = Some(at);
            cx.set_timer(TIMER_MANAGER, at);
        }
    }
}
