//! The process: its door and its one lane.
//!
//! A task is a request, an answer of another voter, a timer or the end of a flush. Whatever it changed, it ends with
//! `settle`: promises are made durable before anything follows from them.

use crate::controller::config::ControllerConfig;
use crate::controller::observers::{self, Observers};
use crate::controller::peers::{Asked, Peers};
use crate::controller::quorum::{directory_of, Elected, Quorum, State};
use crate::controller::refuse::refusal;
use crate::controller::replication::{not_leader, Held, QUORUM_TIMER};
use crate::controller::sessions::Sessions;
use crate::controller::shutdown::STOP;
use crate::controller::state::{ClusterState, Entry, Note};
use crate::controller::store::{Opened, Store, DOWNLOAD_FLUSH, LOG_FLUSH, QUORUM_FLUSH, SNAPSHOT_FLUSH};
use crate::coordinator::engine::Engine;
use crate::ids::{ConnId, LeaderEpoch, Nanos, NodeId, Now, PartitionIx};
use crate::log::Log;
use crate::metadata::batches::ReplayError;
use crate::metadata::delta::Touched;
use crate::metadata::image::MetadataImage;
use crate::metadata::records::Record;
use crate::ports::{first_conn, Cx, DiskError, Effect, ExitReason, FlushToken, Input, Lane, Timer};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{Body, Message};
use std::collections::{BTreeMap, VecDeque};

/// The one lane.
pub const LANE: Lane = Lane(0);
/// A session may be over.
pub(super) const SESSION_TIMER: Timer = Timer(1);
/// Time to look for leaders that are not the preferred ones.
pub(super) const BALANCE_TIMER: Timer = Timer(2);
/// Timers of observers: this plus the observer's id.
pub(super) const OBSERVER_TIMERS: u64 = 1 << 32;

/// Concern of the draw of a directory's id.
const DIRECTORY_DRAWS: u64 = 0x6469_7265_6374_6f72;

/// What the process is in its quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Awaits: that it leads in this epoch is durable.
    Claiming(LeaderEpoch),
    /// Leads in this epoch.
    Leader(LeaderEpoch),
    /// Follows.
    Follower(NodeId),
    /// Knows no leader.
    Leaderless,
    /// Stopped by its disk or by a broken assertion.
    Dead,
}

/// An answer that waits for its commit, with its request in case it must be refused instead.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub conn: ConnId,
    pub correlation: u32,
    pub request: Body,
    pub response: Body,
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
    /// Another voter answered.
    Answer(NodeId, Asked, Body),
    /// A connection to another voter stands, or ended.
    Peers,
    Timer(Timer),
    Flushed(FlushToken, Result<(), DiskError>),
}

/// A controller process.
#[derive(Clone, Debug)]
pub struct Controller {
    pub(super) config: ControllerConfig,
    dead: bool,
    /// `None` if the disk could not be opened: the process is on its way out.
    pub(super) store: Option<Store>,
    pub(super) quorum: Quorum,
    pub(super) peers: Peers,
    /// The term in which the log is written here.
    pub(super) leading: Option<LeaderEpoch>,
    /// Answers to voters that wait for `quorum-state`.
    pub(super) held: Vec<Held>,
    pub(super) quorum_timer: Option<Nanos>,
    /// It is to end: by then at the latest.
    pub(super) stopping: Option<Nanos>,
    /// A fetched snapshot is being made durable.
    pub(super) installing: bool,
    pub(super) engine: Engine<ClusterState, Answer>,
    pub(super) sessions: Sessions,
    pub(super) observers: Observers,
    conns: BTreeMap<ConnId, Conn>,
    work: VecDeque<Work>,
    /// When the session timer is due, if it is armed.
    pub(super) session_timer: Option<Nanos>,
    /// When leaders are looked at next.
    pub(super) balance_at: Nanos,
    /// Partitions touched by what recovery replayed: traced with the first commit.
    pub(super) recovered: Touched<PartitionIx>,
    /// Bytes and records appended since the last snapshot began.
    pub(super) since_snapshot: (u64, u64),
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
    /// What it is in its quorum.
    #[must_use]
    pub fn role(&self) -> Role {
        match (self.dead, self.leading, self.quorum.state(), self.quorum.leader()) {
            (true, ..) => Role::Dead,
            (_, Some(epoch), ..) => Role::Leader(epoch),
            (_, None, State::Leader(_), _) => Role::Claiming(self.quorum.epoch()),
            (.., Some(leader)) => Role::Follower(leader),
            (.., None) => Role::Leaderless,
        }
    }
    /// What it waits for as a voter.
    #[must_use]
    pub fn quorum(&self) -> &Quorum {
        &self.quorum
    }
    /// Whether it leads, and has committed a record of its term: what earlier terms left is committed too then, and it
    /// takes requests. Alone it takes them at once; their answers wait for that commit all the same.
    #[must_use]
    pub fn is_active(&self) -> bool {
        let begun = || self.quorum.term().and_then(|t| t.start()).is_some_and(|at| self.engine.committed_end() > at);
        self.leading.is_some() && (self.quorum.is_alone() || begun())
    }
    pub(super) fn is_dead(&self) -> bool {
        self.dead
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
    /// Starts from what the disk holds: newest snapshot, then the log. Of the log nothing is known to be committed before a
    /// leader says so, unless this is the only voter.
    pub fn boot(config: ControllerConfig, now: Now, cx: &mut Cx<'_>) -> Self {
        let opened = Store::open(cx.disk, cx.guards, &config);
        let (mut store, image, mut elected) = match opened {
            Ok(Opened { store, image, elected }) => (Some(store), image, elected),
            Err(_) => (None, MetadataImage::default(), Elected::default()),
        };
        let found = store.as_mut().map_or(Err(DiskError::Io), |store| directory(&config, store, cx));
        let directory = found.unwrap_or_else(|_| {
            store = None;
            0
        });
        let in_log = store.as_ref().map_or(LeaderEpoch::NONE, |s| s.end().epoch).max(image.epoch());
        if in_log > elected.epoch {
            elected = Elected { epoch: in_log, leader: None, voted: None };
        }
        let quorum = Quorum::boot(&config, directory, elected, cx.guards, now.mono, cx.entropy);
        let timeout = Nanos::from_millis(config.broker.controller_quorum_fetch_timeout_ms);
        let end = image.end().0;
        let mut controller = Self {
            peers: Peers::new(&quorum.others(), timeout),
            config,
            dead: false,
            store,
            quorum,
            leading: None,
            held: Vec::new(),
            quorum_timer: None,
            stopping: None,
            installing: false,
            engine: Engine::new(ClusterState::of(image), end),
            sessions: Sessions::default(),
            observers: Observers::default(),
            conns: BTreeMap::new(),
            work: VecDeque::new(),
            session_timer: None,
            balance_at: Nanos::ZERO,
            recovered: Touched::default(),
            since_snapshot: (0, 0),
        };
        controller.begin(now, cx);
        controller
    }

    fn begin(&mut self, now: Now, cx: &mut Cx<'_>) {
        if self.quorum.is_alone() && self.replay_log(cx).is_err() {
            return self.die(ExitReason::Broken("the metadata log holds a record that cannot be read"), cx);
        }
        let alone = self.quorum.is_alone();
        let flushed = match &mut self.store {
            None => false,
            // What the log ends with may be in the page cache only: nobody is told of it before it is durable.
            Some(store) => alone || store.want_flush(cx.disk, cx.guards, &mut cx.out.effects).is_ok(),
        };
        if !flushed {
            return self.die(ExitReason::DiskFailed, cx);
        }
        self.settle(now, cx);
    }

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

    /// Files an input.
    pub fn accept(&mut self, now: Now, input: Input, cx: &mut Cx<'_>) {
        match input {
            Input::Opened { conn, inbound: true, .. } => {
                self.conns.insert(conn, Conn::default());
            }
            Input::Opened { conn, .. } => {
                if self.peers.opened(conn) {
                    self.file(Work::Peers, cx);
                }
            }
            Input::Closed { conn, .. } if self.peers.closed(conn, now.mono) => self.file(Work::Peers, cx),
            Input::Closed { conn, .. } => {
                self.conns.remove(&conn);
                self.observers.closed(conn);
            }
            Input::Message { conn, message } => {
                if let Some((node, asked)) = self.peers.answered(conn, &message) {
                    return self.file(Work::Answer(node, asked, message.body), cx);
                }
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
        if self.dead {
            return;
        }
        match work {
            Work::Request(conn, message) => self.on_request(conn, message, now, cx),
            Work::Answer(node, asked, body) => self.on_peer(node, &asked, body, now, cx),
            Work::Peers => {}
            Work::Timer(timer) => self.on_timer(timer, now, cx),
            Work::Flushed(SNAPSHOT_FLUSH, Err(_)) => self.store.iter_mut().for_each(Store::abandon_snapshot),
            Work::Flushed(_, Err(_)) => self.on_flush_failed(cx),
            Work::Flushed(LOG_FLUSH, Ok(())) => self.on_log_flushed(now, cx),
            Work::Flushed(QUORUM_FLUSH, Ok(())) => self.on_quorum_flushed(cx),
            Work::Flushed(DOWNLOAD_FLUSH, Ok(())) => self.on_download_flushed(cx),
            Work::Flushed(SNAPSHOT_FLUSH, Ok(())) => self.on_snapshot_flushed(now, cx),
            Work::Flushed(_, Ok(())) => {}
        }
        self.settle(now, cx);
    }

    fn file(&mut self, work: Work, cx: &mut Cx<'_>) {
        self.work.push_back(work);
        cx.wake(LANE);
    }

    pub(super) fn die(&mut self, reason: ExitReason, cx: &mut Cx<'_>) {
        self.dead = true;
        cx.effect(Effect::Exit(reason));
    }

    fn on_quorum_flushed(&mut self, cx: &mut Cx<'_>) {
        let Some(store) = &mut self.store else { return };
        if store.on_quorum_flushed(cx.disk, &mut cx.out.effects).is_err() {
            self.die(ExitReason::DiskFailed, cx);
        }
    }

    /// Answers, and takes up the connection's next request.
    pub(super) fn send(&mut self, conn: ConnId, correlation: u32, body: Body, cx: &mut Cx<'_>) {
        let Some(state) = self.conns.get_mut(&conn) else { return };
        let next = state.backlog.pop_front();
        state.busy = next.is_some();
        cx.send(conn, Message { correlation, body });
        if let Some(message) = next {
            self.file(Work::Request(conn, message), cx);
        }
    }
}

// --------------------------------------------------------------------------------------------------------------- requests

impl Controller {
    fn on_request(&mut self, conn: ConnId, message: Message, now: Now, cx: &mut Cx<'_>) {
        let Message { correlation, body } = message;
        if self.on_voter(conn, correlation, &body, now, cx) {
            return;
        }
        let leads = self.leading.is_some();
        match body {
            Body::RaftFetchRequest(request) if leads => self.on_fetch(conn, correlation, *request, now, cx),
            Body::FetchSnapshotRequest(request) if leads => {
                let Some(store) = &self.store else { return };
                let answer = observers::fetch_snapshot(store, cx.disk, &request);
                self.send(conn, correlation, answer.into(), cx);
            }
            body if !self.is_active() => self.refuse(conn, correlation, &body, ErrorCode::NotController, cx),
            body => self.on_operation(conn, correlation, body, now, cx),
        }
    }

    /// Refuses; what no controller serves closes the connection, as an unknown API does.
    pub(super) fn refuse(&mut self, conn: ConnId, correlation: u32, request: &Body, error: ErrorCode, cx: &mut Cx<'_>) {
        let refusal = match request {
            Body::RaftFetchRequest(_) => Some(not_leader(&self.quorum, self.config.node).into()),
            request => refusal(request, error),
        };
        match refusal {
            Some(body) => self.send(conn, correlation, body, cx),
            None => {
                self.conns.remove(&conn);
                cx.effect(Effect::Close { conn });
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, now: Now, cx: &mut Cx<'_>) {
        match timer {
            SESSION_TIMER => self.on_session_timer(now, cx),
            BALANCE_TIMER => self.on_balance_timer(now, cx),
            QUORUM_TIMER => self.on_quorum_timer(now, cx),
            STOP => self.on_stop(now, cx),
            Timer(n) if n >= OBSERVER_TIMERS => self.on_observer_timer(timer, now, cx),
            _ => {}
        }
    }
}

/// The id of the metadata log's directory: that of the voter as it was formatted, or another one if its disk was replaced
/// since (KIP-853). The connection counter survives restarts, and a controller of a quorum connects to nobody before its
/// first promise is durable: a disk without promises is the first one only as long as nothing was counted.
fn directory(config: &ControllerConfig, store: &mut Store, cx: &mut Cx<'_>) -> Result<u128, DiskError> {
    let replaced = !store.has_promised() && *cx.next_conn != first_conn(config.node);
    if config.voters.len() > 1 && store.is_replaced(cx.disk, replaced)? {
        return Ok(u128::from(cx.entropy.draw(DIRECTORY_DRAWS, 0)));
    }
    Ok(directory_of(config.node))
}
