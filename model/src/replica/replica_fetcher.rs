//! The fetching side of replication: one fetcher per leader broker and number, each a lane with one connection and one
//! request in flight (KIP-227 sessions, KIP-595 truncation on fetch).
//!
//! A request names only partitions whose position changed. An answer counts only for the offset *and* the leader epoch that
//! the request carried (R15, R16). One bad partition waits alone: it leaves the session for the backoff and the others go on.

use crate::guards::points::Point;
use crate::guards::replication as guard;
use crate::ids::{BrokerEpoch, BrokerId, ConnId, LeaderEpoch, Nanos, NodeId, Now, Offset, PartitionIx, TopicIx};
use crate::ports::{Cx, Lane, Timer};
use crate::replica::chunked::Chunked;
use crate::replica::partition::{mutant, Replicas, NONE};
use crate::replica::roles::FetchChange;
use crate::wire::messages::{
    Body, FetchPart, FetchRequest, Isolation, ListOffsetsRequest, Message, OffsetQuestion, EARLIEST, LATEST,
};
use std::collections::{BTreeMap, VecDeque};

/// The configs of replica fetchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetcherConfig {
    /// `num.replica.fetchers`: per leader broker.
    pub fetchers: u32,
    /// `replica.fetch.wait.max.ms`.
    pub wait_max_ms: u32,
    /// `replica.fetch.min.bytes`.
    pub min_bytes: u32,
    /// `replica.fetch.response.max.bytes`.
    pub max_bytes: u32,
    /// `replica.fetch.max.bytes`: per partition.
    pub part_max_bytes: u32,
    /// `replica.fetch.backoff.ms`.
    pub backoff: Nanos,
    /// `replica.socket.timeout.ms`.
    pub timeout: Nanos,
    /// The first lane that fetchers may use.
    pub lane_base: u16,
    /// The high bits of their timers.
    pub timer_base: u64,
}

impl Default for FetcherConfig {
    fn default() -> Self {
        Self {
            fetchers: 1,
            wait_max_ms: 500,
            min_bytes: 1,
            max_bytes: 10 << 20,
            part_max_bytes: 1 << 20,
            backoff: Nanos::from_millis(1000),
            timeout: Nanos::from_millis(30_000),
            lane_base: 1024,
            timer_base: 0,
        }
    }
}

/// What a fetched partition is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchState {
    /// Not in use.
    Free,
    /// Awaits: the cut to the watermark, for a log that knows no epoch.
    Truncating,
    /// Awaits: data.
    Fetching,
    /// Awaits: the end of the backoff.
    Delayed,
    /// Awaits: the leader's start and end, after an out-of-range answer.
    OutOfRange,
    /// Awaits: metadata with another leader epoch.
    Failed,
}

/// How often a partition is looked at whose flush has to end before the next fetch.
pub(crate) const FLUSH_LOOK: Nanos = Nanos::from_millis(1);
/// How long a request of the others may wait meanwhile.
const FLUSH_WAIT_MS: u32 = 5;

/// One partition of a fetcher.
#[derive(Clone, Copy, Debug)]
pub struct FetchSlot {
    /// Which.
    pub partition: PartitionIx,
    /// Of which topic.
    pub topic: TopicIx,
    /// What it is doing.
    pub state: FetchState,
    pub(crate) queued: bool,
    /// Next offset wanted.
    pub fetch_offset: Offset,
    /// The leader epoch it fetches in.
    pub leader_epoch: LeaderEpoch,
    /// Epoch of the last record held.
    pub last_fetched_epoch: LeaderEpoch,
    /// The bound on batch epochs under a mirror leader (spec 3.8); −1 for plain topics.
    pub mirror_epoch: LeaderEpoch,
    /// The newest term in which the log was aligned with a mirror's source; −1 for none.
    pub aligned: LeaderEpoch,
    pub(crate) sent_epoch: LeaderEpoch,
    pub(crate) sent_offset: Offset,
}

/// What a fetcher waits for on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InFlight {
    pub correlation: u32,
    pub deadline: Nanos,
}

/// One fetcher.
#[derive(Clone, Debug)]
pub struct Fetcher {
    /// Whom it fetches from.
    pub leader: BrokerId,
    pub(crate) node: NodeId,
    pub(crate) index: u16,
    pub(crate) conn: Option<ConnId>,
    pub(crate) connected: bool,
    pub(crate) reconnect_at: Nanos,
    pub(crate) slots: Chunked<FetchSlot>,
    pub(crate) free: Vec<u32>,
    pub(crate) changed: Vec<u32>,
    pub(crate) forgotten: Vec<u32>,
    pub(crate) truncating: Vec<u32>,
    pub(crate) out_of_range: Vec<u32>,
    pub(crate) delayed: VecDeque<(Nanos, u32)>,
    pub(crate) session_id: u32,
    pub(crate) session_epoch: i32,
    pub(crate) broker_epoch: BrokerEpoch,
    pub(crate) in_flight: Option<InFlight>,
    pub(crate) asked: Vec<u32>,
    pub(crate) correlation: u32,
    pub(crate) timer_at: Option<Nanos>,
    pub(crate) active: u32,
    pub(crate) inbox: VecDeque<Message>,
    pub(crate) woken: bool,
}

impl Fetcher {
    /// Its partitions.
    pub fn slots(&self) -> impl Iterator<Item = &FetchSlot> {
        self.slots.iter().filter(|slot| slot.state != FetchState::Free)
    }
}

/// All fetchers of a broker.
#[derive(Clone, Debug)]
pub struct ReplicaFetchers {
    pub(crate) me: BrokerId,
    pub(crate) config: FetcherConfig,
    pub(crate) list: Vec<Fetcher>,
    by_leader: BTreeMap<(BrokerId, u32), u16>,
    by_conn: BTreeMap<ConnId, u16>,
}

impl ReplicaFetchers {
    /// No fetchers yet.
    #[must_use]
    pub fn new(me: BrokerId, config: FetcherConfig) -> Self {
        Self { me, config, list: Vec::new(), by_leader: BTreeMap::new(), by_conn: BTreeMap::new() }
    }

    /// The fetchers, in order of lane.
    #[must_use]
    pub fn fetchers(&self) -> &[Fetcher] {
        &self.list
    }

    /// The fetch state of a partition, if it is fetched.
    #[must_use]
    pub fn slot_of(&self, replicas: &Replicas, partition: PartitionIx) -> Option<&FetchSlot> {
        let hot = &replicas.hot[replicas.slot(partition)?];
        self.list.get(usize::from(hot.fetcher))?.slots.get(hot.fetch_slot as usize).filter(|s| s.partition == partition)
    }

    /// Takes over what metadata changed. `node_of` finds a broker's address.
    pub fn apply(
        &mut self,
        changes: &[FetchChange],
        replicas: &mut Replicas,
        node_of: &dyn Fn(BrokerId) -> Option<NodeId>,
        now: Now,
        cx: &mut Cx,
    ) {
        for change in changes {
            if let Some((fetcher, slot)) = change.was {
                if let Some(fetcher) = self.list.get_mut(usize::from(fetcher)) {
                    fetcher.release(slot, change.partition);
                }
                continue;
            }
            let node = change.leader.and_then(|leader| node_of(leader).map(|node| (leader, node)));
            match node {
                Some((leader, node)) => self.follow(change.partition, leader, node, replicas, now, cx),
                None => self.leave(change.partition, replicas),
            }
        }
    }

    /// A broker came back at another address, or restarted.
    pub fn set_node(&mut self, leader: BrokerId, node: NodeId) {
        for fetcher in self.list.iter_mut().filter(|f| f.leader == leader) {
            fetcher.node = node;
        }
    }

    fn follow(
        &mut self,
        partition: PartitionIx,
        leader: BrokerId,
        node: NodeId,
        replicas: &mut Replicas,
        now: Now,
        cx: &mut Cx,
    ) {
        let index = self.fetcher_for(partition, leader, node);
        let Some(at) = replicas.slot(partition) else { return };
        let (old_fetcher, old_slot) = (replicas.hot[at].fetcher, replicas.hot[at].fetch_slot);
        let stays = old_slot != NONE && old_fetcher == index;
        if old_slot != NONE && !stays {
            self.leave(partition, replicas);
        }
        let epoch = replicas.hot[at].leader_epoch;
        if stays && mutant(cx.guards, guard::RestartOnEveryEpoch, true) {
            let fetcher = &mut self.list[usize::from(index)];
            let slot = &mut fetcher.slots[old_slot as usize];
            slot.leader_epoch = epoch;
            if slot.state == FetchState::Failed {
                // The old leader refused the old epoch; metadata brings it back, but at its old position.
                slot.state = FetchState::Fetching;
            }
            fetcher.change(old_slot);
            fetcher.wake(self.config.lane_base, cx);
            return;
        }
        let fetcher = &mut self.list[usize::from(index)];
        let slot_no = if stays { old_slot } else { fetcher.allocate() };
        let slot = start_of(replicas, at, epoch, fetcher.slots[slot_no as usize]);
        fetcher.place(slot_no, slot);
        replicas.hot[at].fetcher = index;
        replicas.hot[at].fetch_slot = slot_no;
        fetcher.wake(self.config.lane_base, cx);
        let _ = now;
    }

    fn leave(&mut self, partition: PartitionIx, replicas: &mut Replicas) {
        let Some(at) = replicas.slot(partition) else { return };
        let hot = &mut replicas.hot[at];
        let (fetcher, slot) = (hot.fetcher, std::mem::replace(&mut hot.fetch_slot, NONE));
        if let Some(fetcher) = self.list.get_mut(usize::from(fetcher)) {
            fetcher.release(slot, partition);
        }
    }

    fn fetcher_for(&mut self, partition: PartitionIx, leader: BrokerId, node: NodeId) -> u16 {
        let number = partition.0 % self.config.fetchers.max(1);
        if let Some(&index) = self.by_leader.get(&(leader, number)) {
            self.list[usize::from(index)].node = node;
            return index;
        }
        let index = self.list.len() as u16;
        self.by_leader.insert((leader, number), index);
        self.list.push(Fetcher {
            leader,
            node,
            index,
            conn: None,
            connected: false,
            reconnect_at: Nanos::ZERO,
            slots: Chunked::new(),
            free: Vec::new(),
            changed: Vec::new(),
            forgotten: Vec::new(),
            truncating: Vec::new(),
            out_of_range: Vec::new(),
            delayed: VecDeque::new(),
            session_id: 0,
            session_epoch: 0,
            broker_epoch: BrokerEpoch(-1),
            in_flight: None,
            asked: Vec::new(),
            correlation: 0,
            timer_at: None,
            active: 0,
            inbox: VecDeque::new(),
            woken: false,
        });
        index
    }

    /// Whether this lane is a fetcher's.
    #[must_use]
    pub fn owns_lane(&self, lane: Lane) -> Option<usize> {
        let at = usize::from(lane.0.checked_sub(self.config.lane_base)?);
        (at < self.list.len()).then_some(at)
    }

    /// Whether this connection is a fetcher's.
    #[must_use]
    pub fn owns_conn(&self, conn: ConnId) -> bool {
        self.by_conn.contains_key(&conn)
    }

    /// The connection stands.
    pub fn opened(&mut self, conn: ConnId, cx: &mut Cx) {
        if let Some(&index) = self.by_conn.get(&conn) {
            let fetcher = &mut self.list[usize::from(index)];
            fetcher.connected = true;
            fetcher.wake(self.config.lane_base, cx);
        }
    }

    /// The connection ended: what was in flight is lost, the session with it.
    pub fn closed(&mut self, conn: ConnId, now: Now, cx: &mut Cx) {
        if let Some(index) = self.by_conn.remove(&conn) {
            let backoff = self.config.backoff;
            let fetcher = &mut self.list[usize::from(index)];
            if fetcher.conn == Some(conn) {
                fetcher.disconnected(now.mono + backoff);
            }
            fetcher.wake(self.config.lane_base, cx);
        }
    }

    /// A message arrived; it is handled when the lane runs.
    pub fn message(&mut self, conn: ConnId, message: Message, cx: &mut Cx) {
        if let Some(&index) = self.by_conn.get(&conn) {
            let fetcher = &mut self.list[usize::from(index)];
            fetcher.inbox.push_back(message);
            fetcher.wake(self.config.lane_base, cx);
        }
    }

    /// The fetcher's timer fired.
    pub fn timer(&mut self, index: usize, cx: &mut Cx) {
        if let Some(fetcher) = self.list.get_mut(index) {
            fetcher.timer_at = None;
            fetcher.wake(self.config.lane_base, cx);
        }
    }

    /// Runs one task of a fetcher: the answer that came, then the next request.
    pub fn run(&mut self, index: usize, broker_epoch: BrokerEpoch, replicas: &mut Replicas, now: Now, cx: &mut Cx) {
        let config = self.config;
        let me = self.me;
        let Some(fetcher) = self.list.get_mut(index) else { return };
        fetcher.woken = false;
        while let Some(message) = fetcher.inbox.pop_front() {
            fetcher.take_answer(message, &config, replicas, now, cx);
        }
        if let Some(flight) = fetcher.in_flight {
            if now.mono >= flight.deadline {
                if let Some(conn) = fetcher.conn {
                    cx.effect(crate::ports::Effect::Close { conn });
                    self.by_conn.remove(&conn);
                }
                fetcher.disconnected(now.mono + config.backoff);
            }
        }
        fetcher.end_delays(replicas, now.mono);
        fetcher.truncate_to_watermark(replicas, now, cx);
        if fetcher.conn.is_none() && fetcher.active > 0 && now.mono >= fetcher.reconnect_at {
            let conn = cx.connect(fetcher.node);
            fetcher.conn = Some(conn);
            self.by_conn.insert(conn, index as u16);
        }
        let fetcher = &mut self.list[index];
        if fetcher.connected && fetcher.in_flight.is_none() {
            fetcher.ask(me, broker_epoch, &config, now, cx);
        }
        fetcher.arm(&config, cx);
    }
}

/// Where a follower starts in a new epoch: at its log end if it knows an epoch (the leader's answer tells whether the logs
/// part below), else at its watermark (stock `initialFetchOffset`).
fn start_of(replicas: &Replicas, at: usize, epoch: LeaderEpoch, before: FetchSlot) -> FetchSlot {
    let hot = &replicas.hot[at];
    let mirrored = replicas.topic(hot.topic).is_some_and(|t| t.mirrored);
    let Some(log) = replicas.logs[at].as_ref() else {
        return FetchSlot { partition: hot.partition, topic: hot.topic, state: FetchState::Failed, ..before };
    };
    let latest = log.latest_epoch();
    let (state, offset) = if latest != LeaderEpoch::NONE {
        (FetchState::Fetching, log.end())
    } else {
        (FetchState::Truncating, log.high_watermark())
    };
    FetchSlot {
        partition: hot.partition,
        topic: hot.topic,
        state,
        queued: before.queued,
        fetch_offset: offset,
        leader_epoch: epoch,
        last_fetched_epoch: latest,
        // The bound it knew, from its own epoch cache (decision 24); the leader's answer raises it.
        mirror_epoch: if mirrored { latest.max(LeaderEpoch(0)) } else { LeaderEpoch::NONE },
        aligned: log.aligned(),
        sent_epoch: before.sent_epoch,
        sent_offset: before.sent_offset,
    }
}

impl Fetcher {
    pub(crate) fn wake(&mut self, lane_base: u16, cx: &mut Cx) {
        if !self.woken {
            self.woken = true;
            cx.wake(Lane(lane_base + self.index));
        }
    }

    fn allocate(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(FetchSlot {
                partition: PartitionIx(NONE),
                topic: TopicIx(NONE),
                state: FetchState::Free,
                queued: false,
                fetch_offset: Offset::UNKNOWN,
                leader_epoch: LeaderEpoch::NONE,
                last_fetched_epoch: LeaderEpoch::NONE,
                mirror_epoch: LeaderEpoch::NONE,
                aligned: LeaderEpoch::NONE,
                sent_epoch: LeaderEpoch::NONE,
                sent_offset: Offset::UNKNOWN,
            }) as u32
        })
    }

    fn place(&mut self, slot_no: u32, slot: FetchSlot) {
        let before = self.slots[slot_no as usize].state;
        if before == FetchState::Free {
            self.active += 1;
        }
        self.slots[slot_no as usize] = slot;
        match slot.state {
            FetchState::Truncating => self.truncating.push(slot_no),
            FetchState::Fetching => self.change(slot_no),
            _ => {}
        }
    }

    fn release(&mut self, slot_no: u32, partition: PartitionIx) {
        let Some(slot) = self.slots.get_mut(slot_no as usize) else { return };
        if slot.partition == partition && slot.state != FetchState::Free {
            slot.state = FetchState::Free;
            self.active -= 1;
            self.forgotten.push(slot_no);
        }
    }

    /// The next request names this slot.
    pub(crate) fn change(&mut self, slot_no: u32) {
        let slot = &mut self.slots[slot_no as usize];
        if !slot.queued {
            slot.queued = true;
            self.changed.push(slot_no);
        }
    }

    pub(crate) fn disconnected(&mut self, reconnect_at: Nanos) {
        self.conn = None;
        self.connected = false;
        self.reconnect_at = reconnect_at;
        self.in_flight = None;
        self.inbox.clear();
        self.end_session();
        self.out_of_range.append(&mut self.asked);
    }

    /// The next request opens a session and lists everything.
    pub(crate) fn end_session(&mut self) {
        self.session_id = 0;
        self.session_epoch = 0;
    }

    /// Sets a partition aside for the backoff.
    pub(crate) fn delay(&mut self, slot_no: u32, until: Nanos) {
        self.slots[slot_no as usize].state = FetchState::Delayed;
        self.forgotten.push(slot_no);
        self.set_aside(slot_no, until);
    }

    fn set_aside(&mut self, slot_no: u32, until: Nanos) {
        // Nearly always the last: backoffs are equally long.
        let at = self.delayed.iter().rposition(|(other, _)| *other <= until).map_or(0, |before| before + 1);
        self.delayed.insert(at, (until, slot_no));
    }

    fn end_delays(&mut self, replicas: &Replicas, now: Nanos) {
        while let Some(&(until, slot_no)) = self.delayed.front() {
            if until > now {
                break;
            }
            self.delayed.pop_front();
            let slot = self.slots[slot_no as usize];
            if slot.state != FetchState::Delayed {
                continue;
            }
            let at = replicas.slot(slot.partition);
            if at.is_some_and(|at| replicas.awaits_flush(at) || replicas.is_marking(at)) {
                self.set_aside(slot_no, now + FLUSH_LOOK);
            } else {
                if let Some(log) = at.and_then(|at| replicas.logs[at].as_ref()) {
                    self.slots[slot_no as usize].aligned = log.aligned();
                }
                self.slots[slot_no as usize].state = FetchState::Fetching;
                self.change(slot_no);
            }
        }
    }

    fn ask(&mut self, me: BrokerId, broker_epoch: BrokerEpoch, config: &FetcherConfig, now: Now, cx: &mut Cx) {
        let body = if self.out_of_range.is_empty() {
            match self.fetch_request(me, broker_epoch, config, now.mono) {
                Some(mut request) => {
                    if cx.guards.points.fires(Point::ReplicaFetchSmall) {
                        request.max_bytes = 1;
                    }
                    if cx.guards.points.fires(Point::ReplicaFetchAtOnce) {
                        request.max_wait_ms = 0;
                    }
                    Body::from(request)
                }
                None => return,
            }
        } else {
            Body::from(self.offsets_request(me))
        };
        let Some(conn) = self.conn else { return };
        self.correlation = self.correlation.wrapping_add(1);
        self.in_flight = Some(InFlight { correlation: self.correlation, deadline: now.mono + config.timeout });
        cx.send(conn, Message { correlation: self.correlation, body });
    }

    fn offsets_request(&mut self, me: BrokerId) -> ListOffsetsRequest {
        let mut parts = Vec::with_capacity(self.out_of_range.len() * 2);
        self.asked = std::mem::take(&mut self.out_of_range);
        let slots = &mut self.slots;
        self.asked.retain(|&slot_no| slots[slot_no as usize].state == FetchState::OutOfRange);
        for &slot_no in &self.asked {
            let slot = &mut slots[slot_no as usize];
            slot.sent_epoch = slot.leader_epoch;
            for timestamp in [LATEST, EARLIEST] {
                parts.push(OffsetQuestion {
                    partition: slot.partition,
                    current_leader_epoch: slot.leader_epoch,
                    timestamp,
                });
            }
        }
        ListOffsetsRequest { replica: me, isolation: Isolation::ReadUncommitted, parts }
    }

    fn fetch_request(
        &mut self,
        me: BrokerId,
        broker_epoch: BrokerEpoch,
        config: &FetcherConfig,
        now: Nanos,
    ) -> Option<FetchRequest> {
        if self.active == 0 {
            return None;
        }
        if self.broker_epoch != broker_epoch {
            // The leader judges every partition by the registration of its last fetch (KIP-903): list them all again.
            self.broker_epoch = broker_epoch;
            self.end_session();
        }
        let full = self.session_epoch == 0;
        if full {
            for slot_no in 0..self.slots.len() as u32 {
                if self.slots[slot_no as usize].state == FetchState::Fetching {
                    self.change(slot_no);
                }
            }
        }
        let mut parts = Vec::with_capacity(self.changed.len());
        let (mut topic_groups, mut topic) = (0, None);
        for slot_no in std::mem::take(&mut self.changed) {
            let slot = &mut self.slots[slot_no as usize];
            slot.queued = false;
            if slot.state != FetchState::Fetching {
                continue;
            }
            slot.sent_epoch = slot.leader_epoch;
            slot.sent_offset = slot.fetch_offset;
            topic_groups += u32::from(topic.replace(slot.topic) != Some(slot.topic));
            parts.push(FetchPart {
                slot: slot_no,
                partition: slot.partition,
                fetch_offset: slot.fetch_offset,
                current_leader_epoch: slot.leader_epoch,
                last_fetched_epoch: slot.last_fetched_epoch,
                log_start: Offset::UNKNOWN,
                max_bytes: config.part_max_bytes,
                mirror_leader_epoch: slot.mirror_epoch,
                aligned: slot.aligned,
            });
        }
        let forgotten = std::mem::take(&mut self.forgotten);
        for &slot_no in &forgotten {
            if self.slots[slot_no as usize].state == FetchState::Free {
                self.free.push(slot_no);
            }
        }
        if full && parts.is_empty() {
            return None;
        }
        Some(FetchRequest {
            replica: me,
            broker_epoch,
            // One that waits for a flush is not to wait for the end of a long request, too.
            max_wait_ms: if self.awaits_flush(now) { FLUSH_WAIT_MS } else { config.wait_max_ms },
            min_bytes: config.min_bytes,
            max_bytes: config.max_bytes,
            isolation: Isolation::ReadUncommitted,
            session_id: self.session_id,
            session_epoch: self.session_epoch,
            topic_groups,
            parts,
            forgotten: if full { Vec::new() } else { forgotten },
        })
    }

    /// Whether a partition is set aside for the short time that a flush takes.
    fn awaits_flush(&self, now: Nanos) -> bool {
        self.delayed.front().is_some_and(|(until, _)| until.since(now) <= FLUSH_LOOK)
    }

    /// One timer: the end of the first backoff, of the wait to reconnect, or of the request.
    fn arm(&mut self, config: &FetcherConfig, cx: &mut Cx) {
        let delay = self.delayed.front().map(|(until, _)| *until);
        let reconnect = (self.conn.is_none() && self.active > 0).then_some(self.reconnect_at);
        let request = self.in_flight.map(|f| f.deadline);
        let Some(at) = [delay, reconnect, request].into_iter().flatten().min() else { return };
        if self.timer_at.is_none_or(|armed| armed > at) {
            self.timer_at = Some(at);
            cx.set_timer(Timer(config.timer_base | u64::from(self.index)), at);
        }
    }
}
