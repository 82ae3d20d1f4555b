//! The process: its door, its one lane, its roles.
//!
//! A role is a state. The first voter leads, by way of `Claiming` (its new epoch is made durable); other voters only point to
//! it. An elected quorum puts more states between, and its commit needs more than the own flush, in
//! `Controller::on_log_flushed`.

use crate::controller::brokers;
use crate::controller::config::ControllerConfig;
use crate::controller::plan::Plan;
use crate::controller::quorum::{self, Observers, View, Waiting};
use crate::controller::refuse::refusal;
use crate::controller::sessions::Sessions;
use crate::controller::state::{ClusterState, Entry, Note};
use crate::controller::store::{Opened, Store, LOG_FLUSH, QUORUM_FLUSH, SNAPSHOT_FLUSH};
use crate::controller::traces::{entry_traces, partition_changed};
use crate::controller::{alter_configs, elections, isr, mirror_orders, mirrors, topics};
use crate::coordinator::engine::Engine;
use crate::guards::controller as guard;
use crate::ids::{BrokerId, ConnId, LeaderEpoch, MetadataOffset, Nanos, NodeId, Now, PartitionIx, ProducerId};
use crate::log::Log;
use crate::metadata::batches::{pack, ReplayError};
use crate::metadata::delta::Touched;
use crate::metadata::image::MetadataImage;
use crate::metadata::records::Record;
use crate::ports::{Cx, DiskError, Effect, ExitReason, FlushToken, Input, Lane, Timer};
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{AllocateProducerIdsRequest, AllocateProducerIdsResponse, Body, Message, RaftFetchRequest};
use std::collections::{BTreeMap, VecDeque};

/// The one lane.
pub const LANE: Lane = Lane(0);
/// A session may be over.
const SESSION_TIMER: Timer = Timer(1);
/// Time to look for leaders that are not the preferred ones.
const BALANCE_TIMER: Timer = Timer(2);
/// Timers of observers: this plus the observer's id.
const OBSERVER_TIMERS: u64 = 1 << 32;

/// What the process is in its quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Awaits: that its new epoch is durable.
    Claiming(LeaderEpoch),
    /// Leads in this epoch.
    Leader(LeaderEpoch),
    /// Awaits nothing: the first voter leads.
    Follower(NodeId),
    /// Stopped by its disk or by a broken assertion.
    Dead,
}

/// An answer that waits for its commit, with its request in case it must be refused instead.
#[derive(Clone, Debug)]
struct Answer {
    conn: ConnId,
    correlation: u32,
    request: Body,
    response: Body,
}

/// A connection: requests on it are served one at a time.
#[derive(Clone, Debug, Default)]
struct Conn {
    busy: bool,
    backlog: VecDeque<Message>,
}

#[derive(Clone, Debug)]
enum Work {
    Request(ConnId, Message),
    Timer(Timer),
    Flushed(FlushToken, Result<(), DiskError>),
}

/// A controller process.
#[derive(Clone, Debug)]
pub struct Controller {
    config: ControllerConfig,
    role: Role,
    /// `None` if the disk could not be opened: the process is on its way out.
    store: Option<Store>,
    engine: Engine<ClusterState, Answer>,
    sessions: Sessions,
    observers: Observers,
    conns: BTreeMap<ConnId, Conn>,
    work: VecDeque<Work>,
    /// When the session timer is due, if it is armed.
    session_timer: Option<Nanos>,
    /// Partitions touched by what recovery replayed: traced with the first commit.
    recovered: Touched<PartitionIx>,
    /// Bytes and records appended since the last snapshot began.
    since_snapshot: (u64, u64),
}

// ------------------------------------------------------------------------------------------------------------- what it is

impl Controller {
    /// The latest image, uncommitted changes included.
    #[must_use]
    pub fn image(&self) -> &MetadataImage {
        self.engine.latest().image()
    }
    /// The committed image.
    #[must_use]
    pub fn committed_image(&self) -> &MetadataImage {
        self.engine.committed()
    }
    /// The metadata log, `None` if the disk could not be opened.
    #[must_use]
    pub fn log(&self) -> Option<&Log> {
        self.store.as_ref().map(Store::log)
    }
    /// An operator moves leaderships: to brokers in service that are in sync. Others are left out.
    pub fn move_leaders(&mut self, moves: &[(PartitionIx, BrokerId)], now: Now, cx: &mut Cx<'_>) {
        let mut plan = Plan::new(self.engine.latest(), &self.config, cx.guards, cx.entropy, self.engine.end());
        for (partition, to) in moves {
            elections::move_leader(&mut plan, *partition, *to);
        }
        let entries = plan.entries;
        let _ = self.append(entries, now, cx);
    }
    /// What it is in its quorum.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }
    /// The replicated state with its indices.
    #[must_use]
    pub fn state(&self) -> &ClusterState {
        self.engine.latest()
    }
    /// Its settings.
    #[must_use]
    pub fn config(&self) -> &ControllerConfig {
        &self.config
    }
    /// From now on it takes registrations for a cluster of this id.
    pub fn set_cluster_id(&mut self, id: std::sync::Arc<str>) {
        self.config.cluster_id = id;
    }
    /// Whether something is appended that is not committed.
    #[must_use]
    pub fn has_uncommitted(&self) -> bool {
        self.engine.committed_end() < self.engine.end()
    }
}

// ------------------------------------------------------------------------------------------------------------------- door

impl Controller {
    /// Starts from what the disk holds: newest snapshot, then the log; then claims a new epoch.
    pub fn boot(config: ControllerConfig, _now: Now, cx: &mut Cx<'_>) -> Self {
        let opened = Store::open(cx.disk, cx.guards, &config);
        let (store, image, epoch) = match opened {
            Ok(Opened { store, image, epoch }) => (Some(store), image, epoch),
            Err(_) => (None, MetadataImage::default(), LeaderEpoch(0)),
        };
        let end = image.end().0;
        let mut controller = Self {
            config,
            role: Role::Dead,
            store,
            engine: Engine::new(ClusterState::of(image), end),
            sessions: Sessions::default(),
            observers: Observers::default(),
            conns: BTreeMap::new(),
            work: VecDeque::new(),
            session_timer: None,
            recovered: Touched::default(),
            since_snapshot: (0, 0),
        };
        if controller.store.is_none() {
            controller.die(ExitReason::DiskFailed, cx);
        } else if controller.replay_log(cx).is_err() {
            controller.die(ExitReason::Broken("the metadata log holds a record that cannot be read"), cx);
        } else {
            controller.claim(epoch, cx);
        }
        controller
    }

    /// Files an input.
    pub fn accept(&mut self, _now: Now, input: Input, cx: &mut Cx<'_>) {
        match input {
            Input::Opened { conn, .. } => {
                self.conns.insert(conn, Conn::default());
            }
            Input::Closed { conn, .. } => {
                self.conns.remove(&conn);
                self.observers.closed(conn);
            }
            Input::Message { conn, message } => {
                let Some(state) = self.conns.get_mut(&conn) else { return };
                if !message.body.is_request() {
                    return;
                }
                if state.busy {
                    state.backlog.push_back(message);
                } else {
                    state.busy = true;
                    self.file(Work::Request(conn, message), cx);
                }
            }
            Input::Timer(timer) => self.file(Work::Timer(timer), cx),
            Input::Flushed { token, result } => self.file(Work::Flushed(token, result), cx),
        }
    }

    /// Runs one task.
    pub fn run(&mut self, now: Now, _lane: Lane, cx: &mut Cx<'_>) {
        let Some(work) = self.work.pop_front() else { return };
        if self.role == Role::Dead {
            return;
        }
        match work {
            Work::Request(conn, message) => self.on_request(conn, message, now, cx),
            Work::Timer(timer) => self.on_timer(timer, now, cx),
            Work::Flushed(SNAPSHOT_FLUSH, Err(_)) => self.store.iter_mut().for_each(Store::abandon_snapshot),
            Work::Flushed(_, Err(_)) => self.on_flush_failed(cx),
            Work::Flushed(LOG_FLUSH, Ok(())) => self.on_log_flushed(now, cx),
            Work::Flushed(QUORUM_FLUSH, Ok(())) => self.on_quorum_flushed(now, cx),
            Work::Flushed(SNAPSHOT_FLUSH, Ok(())) => self.on_snapshot_flushed(now, cx),
            Work::Flushed(_, Ok(())) => {}
        }
    }

    fn file(&mut self, work: Work, cx: &mut Cx<'_>) {
        self.work.push_back(work);
        cx.wake(LANE);
    }

    fn die(&mut self, reason: ExitReason, cx: &mut Cx<'_>) {
        self.role = Role::Dead;
        cx.effect(Effect::Exit(reason));
    }

    /// Answers, and takes up the connection's next request.
    fn send(&mut self, conn: ConnId, correlation: u32, body: Body, cx: &mut Cx<'_>) {
        let Some(state) = self.conns.get_mut(&conn) else { return };
        let next = state.backlog.pop_front();
        state.busy = next.is_some();
        cx.send(conn, Message { correlation, body });
        if let Some(message) = next {
            self.file(Work::Request(conn, message), cx);
        }
    }
}

// ------------------------------------------------------------------------------------------------------- start and quorum

impl Controller {
    fn replay_log(&mut self, cx: &mut Cx<'_>) -> Result<(), ReplayError> {
        let Some(store) = &self.store else { return Ok(()) };
        let (engine, recovered, since) = (&mut self.engine, &mut self.recovered, &mut self.since_snapshot);
        let from = engine.end();
        store.replay(cx.disk, from, |offset, bytes| {
            let record = Record::decode(bytes).map_err(ReplayError::Record)?;
            if let Record::Partition { partition, .. } | Record::PartitionChange { partition, .. } = &record {
                recovered.touch(*partition);
            }
            *since = (since.0 + bytes.len() as u64, since.1 + 1);
            engine.recovered(offset, &Entry { record, bytes: bytes.to_vec(), note: Note::Plain });
            Ok(())
        })
    }

    fn claim(&mut self, stored: LeaderEpoch, cx: &mut Cx<'_>) {
        if let Some(first) = self.config.voters.first().filter(|first| **first != self.config.node) {
            self.role = Role::Follower(*first);
            return;
        }
        let in_log = self.store.as_ref().map_or(LeaderEpoch::NONE, |s| s.log().latest_epoch());
        let last = stored.max(in_log).max(self.image().epoch());
        let epoch = LeaderEpoch(last.0.saturating_add(1));
        self.role = Role::Claiming(epoch);
        let Some(store) = &mut self.store else { return };
        if store.write_quorum(cx.disk, epoch, self.config.node, &mut cx.out.effects).is_err() {
            self.die(ExitReason::DiskFailed, cx);
        }
    }

    fn on_quorum_flushed(&mut self, now: Now, cx: &mut Cx<'_>) {
        let (Some(store), Role::Claiming(epoch)) = (&mut self.store, self.role) else { return };
        match store.on_quorum_flushed(cx.disk, &mut cx.out.effects) {
            Err(_) => self.die(ExitReason::DiskFailed, cx),
            Ok(false) => {}
            Ok(true) => self.lead(epoch, now, cx),
        }
    }

    fn lead(&mut self, epoch: LeaderEpoch, now: Now, cx: &mut Cx<'_>) {
        self.role = Role::Leader(epoch);
        let timeout = Nanos::from_millis(self.config.broker.broker_session_timeout_ms);
        self.sessions = Sessions::start(self.image(), timeout, now.mono);
        let record = Record::LeaderChange { epoch, leader: self.config.node };
        let _ = self.append(vec![Entry::new(record, Note::Plain)], now, cx);
        self.arm_sessions(cx);
        self.arm_balance(now.mono, cx);
    }

    fn arm_balance(&mut self, now: Nanos, cx: &mut Cx<'_>) {
        let interval = Nanos::from_secs(self.config.broker.leader_imbalance_check_interval_seconds);
        cx.set_timer(BALANCE_TIMER, now + interval);
    }

    /// One timer for all sessions: it fires when the oldest one could be over.
    fn arm_sessions(&mut self, cx: &mut Cx<'_>) {
        if let (None, Some(at)) = (self.session_timer, self.sessions.next_expiry()) {
            self.session_timer = Some(at);
            cx.set_timer(SESSION_TIMER, at);
        }
    }

    /// Appends and replays; nothing happens on an error.
    fn append(&mut self, entries: Vec<Entry>, now: Now, cx: &mut Cx<'_>) -> Result<(), ()> {
        if entries.is_empty() {
            return Ok(());
        }
        let (Some(store), Role::Leader(epoch)) = (&mut self.store, self.role) else { return Err(()) };
        let base = self.engine.end();
        debug_assert_eq!(base, store.log().end().0, "the log and its replay go together");
        let batches = pack(base, epoch, now.wall_ms, entries.iter().map(|e| e.bytes.as_slice()));
        let appended = store.append(cx.disk, cx.guards, &batches, epoch, now);
        let flush = appended.is_ok().then(|| store.want_flush(cx.disk, cx.guards, &mut cx.out.effects));
        let offline = store.log().is_offline();
        if appended.is_ok() {
            self.since_snapshot.0 += batches.len() as u64;
            self.since_snapshot.1 += entries.len() as u64;
            self.engine.appended(entries);
        }
        if offline || matches!(flush, Some(Err(_))) {
            self.on_flush_failed(cx);
            return Err(());
        }
        if appended.is_ok() {
            self.serve_observers(cx);
        }
        appended.map_err(|_| ())
    }

    #[cfg(test)]
    pub(super) fn append_for_test(&mut self, record: Record, now: Now, cx: &mut Cx<'_>) {
        let _ = self.append(vec![Entry::new(record, Note::Plain)], now, cx);
    }

    fn on_log_flushed(&mut self, now: Now, cx: &mut Cx<'_>) {
        let Some(store) = &mut self.store else { return };
        let durable = store.on_log_flushed(cx.guards);
        if store.want_flush(cx.disk, cx.guards, &mut cx.out.effects).is_err() {
            return self.on_flush_failed(cx);
        }
        if let Some(end) = durable {
            // The only voter's log is durable: the quorum has it.
            store.set_high_watermark(cx.guards, end);
            self.commit(end, now, cx);
        }
    }

    fn commit(&mut self, end: i64, now: Now, cx: &mut Cx<'_>) {
        let (mut traces, mut released) = (Vec::new(), Vec::new());
        self.engine.on_committed(
            end,
            |image, _, entry| entry_traces(image, entry, &mut traces),
            |answer| released.push(answer),
        );
        let image = self.engine.committed();
        for &partition in self.recovered.iter() {
            traces.extend(partition_changed(image, partition));
        }
        self.recovered.clear();
        traces.push(Trace::MetadataCommitted { end: image.end().0, hash: image.hash() });
        for trace in traces {
            cx.trace(trace);
        }
        for answer in released {
            self.send(answer.conn, answer.correlation, answer.response, cx);
        }
        self.serve_observers(cx);
        self.maybe_snapshot(now, cx);
    }

    /// The disk may or may not have what we appended: nobody is told that it has, and the process ends, for only a start
    /// from the disk can tell.
    fn on_flush_failed(&mut self, cx: &mut Cx<'_>) {
        let mut refused = Vec::new();
        self.engine.on_failed(|answer| refused.push(answer));
        for answer in refused {
            if let Some(body) = refusal(&answer.request, ErrorCode::KafkaStorageError) {
                self.send(answer.conn, answer.correlation, body, cx);
            }
        }
        self.die(ExitReason::DiskFailed, cx);
    }

    fn maybe_snapshot(&mut self, now: Now, cx: &mut Cx<'_>) {
        let limit = self.config.broker.metadata_log_max_record_bytes_between_snapshots;
        let (bytes, records) = self.since_snapshot;
        let Some(store) = &mut self.store else { return };
        if (bytes < limit && records < self.config.records_between_snapshots) || store.is_writing_snapshot() {
            return;
        }
        self.since_snapshot = (0, 0);
        // A snapshot that fails is no harm: the log has everything.
        let _ = store.start_snapshot(cx.disk, self.engine.committed(), now, &mut cx.out.effects);
    }

    fn on_snapshot_flushed(&mut self, now: Now, cx: &mut Cx<'_>) {
        let Some(store) = &mut self.store else { return };
        if store.on_snapshot_flushed(cx.disk, cx.guards, now, &mut cx.out.effects).is_err() {
            store.abandon_snapshot();
            if store.log().is_offline() {
                self.on_flush_failed(cx);
            }
        }
    }
}

// --------------------------------------------------------------------------------------------------------------- requests

impl Controller {
    fn on_request(&mut self, conn: ConnId, message: Message, now: Now, cx: &mut Cx<'_>) {
        let Message { correlation, body } = message;
        let Role::Leader(_) = self.role else {
            return self.refuse(conn, correlation, &body, ErrorCode::NotController, cx);
        };
        match body {
            Body::RaftFetchRequest(request) => self.on_fetch(conn, correlation, *request, now, cx),
            Body::FetchSnapshotRequest(request) => {
                let Some(store) = &self.store else { return };
                let answer = quorum::fetch_snapshot(store, cx.disk, &request);
                self.send(conn, correlation, answer.into(), cx);
            }
            body => self.on_operation(conn, correlation, body, now, cx),
        }
    }

    /// Refuses; what no controller serves closes the connection, as an unknown API does.
    fn refuse(&mut self, conn: ConnId, correlation: u32, request: &Body, error: ErrorCode, cx: &mut Cx<'_>) {
        let mut refusal = refusal(request, error);
        if let (Some(Body::RaftFetchResponse(answer)), Role::Follower(leader)) = (&mut refusal, self.role) {
            answer.leader = Some(leader);
        }
        match refusal {
            Some(body) => self.send(conn, correlation, body, cx),
            None => {
                self.conns.remove(&conn);
                cx.effect(Effect::Close { conn });
            }
        }
    }

    fn on_operation(&mut self, conn: ConnId, correlation: u32, request: Body, now: Now, cx: &mut Cx<'_>) {
        let mut plan = Plan::new(self.engine.latest(), &self.config, cx.guards, cx.entropy, self.engine.end());
        let Some(response) = plan_operation(&mut plan, &mut self.sessions, now, &request) else {
            return self.refuse(conn, correlation, &request, ErrorCode::InvalidRequest, cx);
        };
        if let Some(why) = plan.broken {
            return self.die(ExitReason::Broken(why), cx);
        }
        let entries = plan.entries;
        let registered = match &response {
            // A repeated request is answered again and changes nothing.
            Body::BrokerRegistrationResponse(_) if !entries.is_empty() => registered_broker(&request),
            _ => None,
        };
        if self.append(entries, now, cx).is_err() {
            return self.refuse(conn, correlation, &request, ErrorCode::KafkaStorageError, cx);
        }
        if let Some(broker) = registered {
            self.sessions.touch(broker, now.mono, false, -1, None);
        }
        self.arm_sessions(cx);
        let committed = !self.has_uncommitted();
        if cx.guards.admits(guard::CommittedBeforeAnswered, committed) {
            self.send(conn, correlation, response, cx);
        } else if let Some(answer) = self.engine.wait(Answer { conn, correlation, request, response }) {
            self.send(answer.conn, answer.correlation, answer.response, cx);
        }
    }

    fn on_fetch(&mut self, conn: ConnId, correlation: u32, request: RaftFetchRequest, now: Now, cx: &mut Cx<'_>) {
        let (Some(view), Some(store)) = (self.view(), &self.store) else { return };
        let hint = self.observers.hint(request.replica);
        let (answer, news) = quorum::fetch(store, cx.disk, view, &request, hint);
        if news || request.max_wait_ms == 0 {
            return self.send(conn, correlation, answer.into(), cx);
        }
        let deadline = now.mono + Nanos::from_millis(u64::from(request.max_wait_ms));
        let timer = observer_timer(request.replica);
        let (replaced, arm) = self.observers.wait(Waiting { conn, correlation, request, deadline });
        if arm {
            cx.set_timer(timer, deadline);
        }
        if let Some(old) = replaced {
            self.answer_fetch(old, cx);
        }
    }

    fn view(&self) -> Option<View> {
        let Role::Leader(epoch) = self.role else { return None };
        let high_watermark = MetadataOffset(self.engine.committed_end());
        Some(View { leader: self.config.node, epoch, high_watermark })
    }

    fn answer_fetch(&mut self, waiting: Waiting, cx: &mut Cx<'_>) {
        let (Some(view), Some(store)) = (self.view(), &self.store) else { return };
        let hint = self.observers.hint(waiting.request.replica);
        let (answer, _) = quorum::fetch(store, cx.disk, view, &waiting.request, hint);
        self.send(waiting.conn, waiting.correlation, answer.into(), cx);
    }

    /// The log grew, or more of it is committed: whoever waits is told.
    fn serve_observers(&mut self, cx: &mut Cx<'_>) {
        for waiting in self.observers.take_waiting() {
            self.answer_fetch(waiting, cx);
        }
    }
}

fn registered_broker(request: &Body) -> Option<BrokerId> {
    match request {
        Body::BrokerRegistrationRequest(r) => Some(r.broker),
        _ => None,
    }
}

fn plan_operation(plan: &mut Plan<'_>, sessions: &mut Sessions, now: Now, request: &Body) -> Option<Body> {
    Some(match request {
        Body::BrokerHeartbeatRequest(r) => brokers::heartbeat(plan, sessions, now.mono, r).into(),
        Body::BrokerRegistrationRequest(r) => brokers::register(plan, sessions, now.mono, r).into(),
        Body::AlterPartitionRequest(r) => isr::alter_partition(plan, r).into(),
        Body::AllocateProducerIdsRequest(r) => allocate_producer_ids(plan, r).into(),
        Body::CreateTopicsRequest(r) => topics::create_topics(plan, r).into(),
        Body::DeleteTopicsRequest(r) => topics::delete_topics(plan, r).into(),
        Body::CreatePartitionsRequest(r) => topics::create_partitions(plan, r).into(),
        Body::IncrementalAlterConfigsRequest(r) => alter_configs::alter_configs(plan, r).into(),
        Body::ElectLeadersRequest(r) => elections::elect_leaders(plan, r).into(),
        Body::CreateClusterMirrorRequest(r) => mirrors::create_mirror(plan, r).into(),
        Body::StartMirrorTopicsRequest(r) => mirrors::start_topics(plan, r).into(),
        Body::StopMirrorTopicsRequest(r) => mirror_orders::stop_topics(plan, r).into(),
        Body::PauseMirrorTopicsRequest(r) => mirror_orders::pause_topics(plan, r).into(),
        Body::ResumeMirrorTopicsRequest(r) => mirror_orders::resume_topics(plan, r).into(),
        Body::DeleteClusterMirrorRequest(r) => mirror_orders::delete_mirror(plan, r).into(),
        Body::BumpLeaderEpochsRequest(r) => mirrors::bump_epochs(plan, r).into(),
        _ => return None,
    })
}

/// A block of producer ids that nobody was given before (KIP-730).
fn allocate_producer_ids(plan: &mut Plan<'_>, request: &AllocateProducerIdsRequest) -> AllocateProducerIdsResponse {
    let refuse = |error| AllocateProducerIdsResponse { error, first: ProducerId::NONE, count: 0 };
    let Some(known) = plan.image().broker(request.broker) else { return refuse(ErrorCode::BrokerIdNotRegistered) };
    let fresh = known.epoch == request.broker_epoch;
    if !plan.guards.admits(guard::StaleBrokerEpochRefused, fresh) {
        return refuse(ErrorCode::StaleBrokerEpoch);
    }
    let first = plan.image().next_producer().max(plan.config.first_producer);
    let count = plan.config.producer_block;
    let Some(next) = first.0.checked_add(i64::from(count)) else { return refuse(ErrorCode::UnknownServerError) };
    plan.push(Record::ProducerIds { broker: request.broker, next: ProducerId(next) });
    AllocateProducerIdsResponse { error: ErrorCode::None, first, count }
}

// ----------------------------------------------------------------------------------------------------------------- timers

fn observer_timer(replica: i32) -> Timer {
    Timer(OBSERVER_TIMERS + u64::from(replica as u32))
}

impl Controller {
    fn on_timer(&mut self, timer: Timer, now: Now, cx: &mut Cx<'_>) {
        match timer {
            SESSION_TIMER => self.on_session_timer(now, cx),
            BALANCE_TIMER => self.on_balance_timer(now, cx),
            Timer(n) if n >= OBSERVER_TIMERS => {
                let (over, again) = self.observers.on_timer((n - OBSERVER_TIMERS) as u32 as i32, now.mono);
                if let Some(waiting) = over {
                    self.answer_fetch(waiting, cx);
                }
                if let Some(at) = again {
                    cx.set_timer(timer, at);
                }
            }
            _ => {}
        }
    }

    fn on_session_timer(&mut self, now: Now, cx: &mut Cx<'_>) {
        self.session_timer = None;
        while let Some(broker) = self.sessions.expired(now.mono) {
            let mut plan = Plan::new(self.engine.latest(), &self.config, cx.guards, cx.entropy, self.engine.end());
            brokers::fence(&mut plan, broker);
            let entries = plan.entries;
            self.sessions.fenced(broker);
            if self.append(entries, now, cx).is_err() {
                break;
            }
        }
        self.arm_sessions(cx);
    }

    fn on_balance_timer(&mut self, now: Now, cx: &mut Cx<'_>) {
        if !matches!(self.role, Role::Leader(_)) {
            return;
        }
        let mut more = false;
        if self.config.broker.auto_leader_rebalance_enable {
            let mut plan = Plan::new(self.engine.latest(), &self.config, cx.guards, cx.entropy, self.engine.end());
            more = elections::balance(&mut plan);
            let entries = plan.entries;
            more &= self.append(entries, now, cx).is_ok();
        }
        if more {
            cx.set_timer(BALANCE_TIMER, now.mono);
        } else {
            self.arm_balance(now.mono, cx);
        }
    }
}
