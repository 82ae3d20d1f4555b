//! The broker process: its state, its door, and what every task ends with.

use crate::broker::config::BrokerConfig;
use crate::broker::groups::Groups;
use crate::broker::lanes::{
    self, kind, timer, Chore, RequestLanes, Task, CHORES, CONTROLLER, METADATA, ORDERS, TRANSACTIONS,
};
use crate::broker::lifecycle::{Lifecycle, Stage};
use crate::broker::metadata::Observer;
use crate::broker::on_clients::ProducerIdBlock;
use crate::broker::on_transactions::TxnDoor;
use crate::broker::orders::Orders;
use crate::broker::pending::PendingProduces;
use crate::broker::transactions::Transactions;
use crate::broker::upkeep::Flushes;
use crate::guards::points::Point;
use crate::ids::{BrokerEpoch, BrokerId, ConnId, NodeId, Now};
use crate::log::checkpoint::PartitionKey;
use crate::log::Log;
use crate::metadata::delta::MetadataDelta;
use crate::metadata::image::MetadataImage;
use crate::mirror::{MirrorManager, MirrorTask};
use crate::ports::{Cx, Effect, ExitReason, Input, Lane, Timer};
use crate::replica::channel::ControllerChannel;
use crate::replica::replica_fetcher::ReplicaFetchers;
use crate::replica::waits::WaitDone;
use crate::replica::Replicas;
use crate::wire::messages::Message;
use std::collections::{BTreeMap, VecDeque};

/// A connection that somebody opened to this broker.
#[derive(Clone, Debug)]
pub(crate) struct Inbound {
    pub queue: VecDeque<Message>,
    /// A request of it is being handled: requests of one connection go one at a time.
    pub busy: bool,
}

/// The controller channels.
pub(crate) const HEARTBEATS: usize = 0;
pub(crate) const ISR: usize = 1;
pub(crate) const FORWARDS: usize = 2;

/// One broker.
#[derive(Clone, Debug)]
pub struct Broker {
    pub(crate) config: BrokerConfig,
    pub(crate) conns: BTreeMap<ConnId, Inbound>,
    pub(crate) lanes: RequestLanes,
    /// The replicas hosted here.
    pub replicas: Replicas,
    /// The fetchers that follow other brokers.
    pub fetchers: ReplicaFetchers,
    /// The metadata as far as applied.
    pub image: MetadataImage,
    pub(crate) delta: MetadataDelta,
    /// The image is ahead of what was acted on.
    pub(crate) unpublished: bool,
    pub(crate) observer: Observer,
    pub(crate) channels: [ControllerChannel; 3],
    pub(crate) answers: VecDeque<(usize, Message)>,
    pub(crate) life: Lifecycle,
    pub(crate) pending: PendingProduces,
    pub(crate) ids: ProducerIdBlock,
    /// Positions of memberless consumers.
    pub groups: Groups,
    /// Logs found at boot that no metadata claimed yet.
    pub(crate) found: BTreeMap<PartitionKey, Log>,
    /// Those of them that were cut because something stored is damaged, and where.
    pub(crate) damaged: BTreeMap<PartitionKey, crate::ids::Offset>,
    /// How the last stop ended, for the trace of adopted logs.
    pub(crate) clean: bool,
    pub(crate) flushes: Flushes,
    pub(crate) chores: VecDeque<Chore>,
    pub(crate) isr_in_flight: bool,
    pub(crate) isr_retry_at: crate::ids::Nanos,
    /// The mirror room's part of this broker.
    pub mirror: MirrorManager,
    pub(crate) orders: Orders,
    /// The transaction coordinator's part of it.
    pub txns: Transactions,
    pub(crate) txn_door: TxnDoor,
    done: Vec<WaitDone>,
    ready: Vec<u32>,
}

impl Broker {
    /// Starts a broker over what its disk holds. It stays fenced until it registered and caught up.
    pub fn boot(config: BrokerConfig, now: Now, cx: &mut Cx) -> Self {
        let request_timeout = crate::ids::Nanos::from_millis(config.configs.request_timeout_ms);
        let heartbeat_timeout = crate::ids::Nanos::from_millis(config.configs.broker_session_timeout_ms / 2);
        let channel = |at: usize, timeout| {
            ControllerChannel::new(config.controllers.clone(), timer(kind::CHANNEL, at as u64), timeout)
        };
        let channels =
            [channel(HEARTBEATS, heartbeat_timeout), channel(ISR, request_timeout), channel(FORWARDS, request_timeout)];
        let lag = crate::ids::Nanos::from_millis(config.configs.replica_lag_time_max_ms);
        let fetchers = config.fetchers(lanes::FETCHERS, timer(kind::FETCHER, 0).0);
        let mut broker = Self {
            conns: BTreeMap::new(),
            lanes: RequestLanes::new(),
            replicas: Replicas::new(config.broker, lag),
            fetchers: ReplicaFetchers::new(config.broker, fetchers),
            image: MetadataImage::default(),
            delta: MetadataDelta::default(),
            unpublished: false,
            observer: Observer::new(config.broker, config.controllers.clone()),
            channels,
            answers: VecDeque::new(),
            life: Lifecycle::new(&config, now, cx),
            pending: PendingProduces::default(),
            ids: ProducerIdBlock::default(),
            groups: Groups::default(),
            found: BTreeMap::new(),
            damaged: BTreeMap::new(),
            clean: false,
            flushes: Flushes::default(),
            chores: VecDeque::new(),
            isr_in_flight: false,
            isr_retry_at: crate::ids::Nanos::ZERO,
            mirror: MirrorManager::new(config.broker, &config.configs),
            orders: Orders::new(crate::ids::Nanos::from_millis(config.configs.mirror_coordinator_write_timeout_ms)),
            txns: Transactions::new(config.broker, &config.configs),
            txn_door: TxnDoor::default(),
            done: Vec::new(),
            ready: Vec::new(),
            config,
        };
        broker.replicas.limit_sessions(broker.config.configs.max_incremental_fetch_session_cache_slots);
        broker.replicas.tell_divergence(broker.config.release.tells_divergence());
        broker.load(now, cx);
        broker.start_chores(now, cx);
        broker.observer.ask(now, cx);
        if !broker.flushes.marker_may_stand() {
            broker.register(now, cx);
        }
        broker
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> BrokerId {
        self.config.broker
    }

    /// Its address.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.config.node
    }

    /// Whether others find somebody here who knows mirrors.
    #[must_use]
    pub fn has_mirrors(&self) -> bool {
        self.config.release.has_mirrors()
    }

    /// What it says its cluster's id is.
    #[must_use]
    pub fn cluster_id(&self) -> &std::sync::Arc<str> {
        &self.config.cluster_id
    }

    /// From now on it says that its cluster has this id: what clients see whose address leads to another cluster.
    pub fn set_cluster_id(&mut self, id: std::sync::Arc<str>) {
        self.config.cluster_id = id;
    }

    /// Its registration's epoch, −1 before.
    #[must_use]
    pub fn epoch(&self) -> BrokerEpoch {
        self.life.epoch
    }

    /// Whether it registered, caught up and was let in, as far as it knows.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.life.is_running()
    }

    /// The channel for requests of the mirror room.
    pub fn controller(&mut self) -> &mut ControllerChannel {
        &mut self.channels[FORWARDS]
    }

    /// Files an input under its lane.
    pub fn accept(&mut self, now: Now, input: Input, cx: &mut Cx) {
        if cx.guards.points.fires(Point::ExtraWake) {
            for lane in [METADATA, CONTROLLER, CHORES] {
                cx.wake(lane);
            }
        }
        match input {
            Input::Opened { conn, inbound: true, .. } => {
                self.conns.insert(conn, Inbound { queue: VecDeque::new(), busy: false });
            }
            Input::Opened { conn, .. } if self.fetchers.owns_conn(conn) => self.fetchers.opened(conn, cx),
            Input::Opened { conn, .. } if self.observer.owns(conn) => self.observer.opened(now, cx),
            Input::Closed { conn, .. } if self.fetchers.owns_conn(conn) => self.fetchers.closed(conn, now, cx),
            Input::Closed { conn, .. } if self.observer.owns(conn) => self.observer.closed(now, cx),
            Input::Closed { conn, .. } if self.conns.remove(&conn).is_some() => {
                self.replicas.connection_closed(conn);
                self.pending.closed(conn);
            }
            Input::Message { conn, message } if message.body.is_request() => self.file_request(conn, message, cx),
            Input::Message { conn, message } if self.fetchers.owns_conn(conn) => {
                self.fetchers.message(conn, message, cx);
            }
            Input::Message { conn, message } if self.observer.owns(conn) => {
                self.observer.inbox.push_back(message);
                cx.wake(METADATA);
            }
            Input::Timer(timer) if (1..kind::MIRROR).contains(&(timer.0 >> 56)) => self.file_timer(timer, now, cx),
            Input::Flushed { token, result } if self.flushes.owns(token) => {
                self.flushes.ended.push_back((token, result));
                cx.wake(CHORES);
            }
            Input::Opened { conn, .. } | Input::Closed { conn, .. } | Input::Message { conn, .. }
                if self.txns.markers.owns(conn) =>
            {
                self.file_txn_input(input, cx);
            }
            input => self.accept_channel(now, input, cx),
        }
    }

    fn accept_channel(&mut self, now: Now, input: Input, cx: &mut Cx) {
        let conn = match &input {
            Input::Opened { conn, .. } | Input::Closed { conn, .. } | Input::Message { conn, .. } => Some(*conn),
            _ => None,
        };
        let Some(at) = conn.and_then(|conn| self.channels.iter().position(|c| c.owns(conn))) else {
            if let Some(input) = self.orders.accept(input, cx) {
                self.mirror.on_input(now, input, cx);
            }
            return;
        };
        match input {
            Input::Opened { .. } => self.channels[at].opened(now, cx),
            Input::Closed { .. } => self.channels[at].closed(now, cx),
            Input::Message { message, .. } => {
                self.answers.push_back((at, message));
                cx.wake(CONTROLLER);
            }
            _ => {}
        }
    }

    fn file_request(&mut self, conn: ConnId, message: Message, cx: &mut Cx) {
        let Some(inbound) = self.conns.get_mut(&conn) else { return };
        inbound.queue.push_back(message);
        if !inbound.busy {
            inbound.busy = true;
            cx.wake(self.lanes.file(Task::Request(conn)));
        }
    }

    fn file_timer(&mut self, timer: Timer, now: Now, cx: &mut Cx) {
        let of = timer.0 & ((1 << 56) - 1);
        match timer.0 >> 56 {
            kind::STOP => self.stop(now, cx),
            kind::SESSION => cx.wake(self.lanes.file(Task::Session(of as u32))),
            kind::PRODUCE => cx.wake(self.lanes.file(Task::Produce)),
            kind::FETCHER => self.fetchers.timer(of as usize, cx),
            kind::CHANNEL => {
                self.life.channel_timers.push_back(of as usize);
                cx.wake(CONTROLLER);
            }
            kind::OBSERVER => {
                self.observer.timer_due = true;
                cx.wake(METADATA);
            }
            kind::HEARTBEAT => {
                self.life.heartbeat_due = true;
                cx.wake(CONTROLLER);
            }
            kind::ISR_RETRY => {
                self.life.isr_due = true;
                cx.wake(CONTROLLER);
            }
            kind::ORDERS => self.orders.fired(cx),
            kind::TRANSACTIONS => self.txn_timer(cx),
            kind::CHORE => {
                if let Some(chore) = Chore::ALL.get(of as usize) {
                    self.chores.push_back(*chore);
                    cx.wake(CHORES);
                }
            }
            _ => {}
        }
    }

    /// Runs one task of a lane.
    pub fn run(&mut self, now: Now, lane: Lane, cx: &mut Cx) {
        if matches!(self.life.stage, Stage::Flushing | Stage::Stopped) && lane != CHORES {
            // The logs are closed: nothing may be written behind the last flush.
            return;
        }
        if let Some(at) = self.fetchers.owns_lane(lane) {
            self.fetchers.run(at, self.life.epoch, &mut self.replicas, now, cx);
        } else if lane == METADATA {
            self.run_metadata(now, cx);
        } else if lane == CONTROLLER {
            self.run_controller(now, cx);
        } else if lane == CHORES {
            self.run_chores(now, cx);
        } else if lane == ORDERS {
            self.run_orders();
        } else if lane == TRANSACTIONS {
            self.run_transactions(now, cx);
        } else if lane.0 >= lanes::MIRROR {
            let (mirror, mut task) = self.mirror_room();
            mirror.run(now, lane, &mut task, cx);
        } else if let Some(task) = self.lanes.next(lane) {
            match task {
                Task::Request(conn) => self.run_request(conn, now, cx),
                Task::Session(session) => self.run_session(session, now, cx),
                Task::Produce => self.run_produce_timer(now, cx),
            }
        }
        self.after(now, cx);
    }

    /// The mirror room, and what its tasks work on.
    pub(crate) fn mirror_room(&mut self) -> (&mut MirrorManager, MirrorTask<'_>) {
        let Self { mirror, image, replicas, channels, config, .. } = self;
        let controller = &mut channels[FORWARDS];
        (mirror, MirrorTask { image, cluster_id: &config.cluster_id, replicas, controller })
    }

    /// What every task ends with: answers that became possible, ISR proposals, flushes after rolls, news for mirrors.
    pub(crate) fn after(&mut self, now: Now, cx: &mut Cx) {
        if self.replicas.disk_failed() {
            return cx.effect(Effect::Exit(ExitReason::DiskFailed));
        }
        loop {
            let mut done = std::mem::take(&mut self.done);
            let mut ready = std::mem::take(&mut self.ready);
            self.replicas.take_done(&mut done);
            self.replicas.take_ready(&mut ready);
            let mut idle = done.is_empty() && ready.is_empty();
            for done in done.drain(..) {
                self.finish_wait(&done, now, cx);
            }
            for session in ready.drain(..) {
                if let Some((parked, answer)) = self.replicas.resume(session, now, cx) {
                    self.answer_fetch(parked.conn, parked.correlation, answer, cx);
                }
            }
            self.done = done;
            self.ready = ready;
            idle &= !self.go_on_with_transactions(now, cx);
            if idle {
                break;
            }
        }
        self.send_proposals(now, cx);
        self.checkpoint_cuts(cx);
        self.flush_due(now, cx);
        let (mirror, mut task) = self.mirror_room();
        mirror.after(now, &mut task, cx);
        self.after_orders(now, cx);
        for (conn, correlation, body) in self.mirror.take_answers() {
            self.respond(conn, correlation, body, cx);
        }
    }
}
