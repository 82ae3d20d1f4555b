//! What a broker keeps per replica. Partitions go by dense index: a slot map leads from [`PartitionIx`] to a dense slot; the
//! slot's hot fields are 32 bytes, the log stands beside them, and only leaders have more (their own vector).

use crate::guards::{GuardId, Guards};
use crate::ids::{BrokerEpoch, BrokerId, LeaderEpoch, Nanos, Offset, PartitionEpoch, PartitionIx, TopicIx};
use crate::log::{Log, LogPolicy};
use crate::replica::alignment::Marking;
use crate::replica::barrier::Barrier;
use crate::replica::chunked::Chunked;
use crate::replica::fetch_session::Sessions;
use crate::replica::roles::FetchChange;
use crate::replica::waits::{WaitDone, Waits};
use bytes::BytesMut;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// "None" of an index that is kept as a plain number.
pub const NONE: u32 = u32::MAX;

/// What the replica room needs to know of a topic; shared by its partitions.
#[derive(Clone, Debug)]
pub struct TopicPolicy {
    /// How its logs behave.
    pub log: LogPolicy,
    /// `min.insync.replicas`.
    pub min_isr: u32,
    /// The topic belongs to a mirror (any desired state): followers exchange the mirror leader epoch (spec 3.8).
    pub mirrored: bool,
    /// It belongs to a mirror and is not ordered to be STOPPED: the leader's own epoch stays out of the log (spec 3.2 E3).
    pub read_only: bool,
}

/// What the replica room needs to know of another broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerView {
    /// Its id.
    pub broker: BrokerId,
    /// Its registration.
    pub epoch: BrokerEpoch,
    /// Fenced by the controller.
    pub fenced: bool,
    /// In controlled shutdown.
    pub shutting_down: bool,
}

/// What a replica is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It takes writes and serves reads.
    Leader,
    /// It copies from this leader ([`BrokerId::NONE`] while there is none).
    Follower(BrokerId),
}

/// The hot fields of one replica: 32 bytes.
#[derive(Clone, Debug)]
pub(crate) struct Hot {
    pub partition: PartitionIx,
    pub topic: TopicIx,
    pub leader: BrokerId,
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: PartitionEpoch,
    /// Index into `leaders`; [`NONE`] for followers.
    pub lead: u32,
    /// The follower's slot in its fetcher; [`NONE`] if it does not fetch.
    pub fetch_slot: u32,
    /// The fetcher of that slot.
    pub fetcher: u16,
    pub flags: u16,
}

impl Hot {
    /// The watermark changed since the last checkpoint.
    pub const HW_DIRTY: u16 = 1;
    /// The log has bytes or a log start that no checkpoint knows.
    pub const LOG_DIRTY: u16 = 2;
    /// The mirror room watches the watermark.
    pub const HW_WATCHED: u16 = 4;
    /// Already in the list of watched watermarks that moved.
    pub const HW_NEWS: u16 = 8;
    /// The log failed: the replica is offline here.
    pub const OFFLINE: u16 = 16;
    /// In the cleaner's queue.
    pub const TO_CLEAN: u16 = 32;
}

/// What a leader knows of one follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follower {
    /// Who.
    pub broker: BrokerId,
    /// The fetch session that it last used ([`NONE`]: none).
    pub session: u32,
    /// Its position: the end of its log as its last valid fetch in this leader epoch told; [`Offset::UNKNOWN`] before.
    pub position: Offset,
    /// The broker epoch of that fetch (KIP-903); −1 before.
    pub broker_epoch: BrokerEpoch,
    /// When it last had everything that the leader had.
    pub caught_up_at: Nanos,
    /// The leader's log end at its last fetch.
    pub end_at_fetch: Offset,
    /// When it last fetched this partition.
    pub fetched_at: Nanos,
}

/// A session slot that reads a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watcher {
    /// Index of the session.
    pub session: u32,
    /// Slot within it.
    pub slot: u32,
}

/// What only a leader keeps.
#[derive(Clone, Debug)]
pub struct LeaderState {
    /// The replica's slot.
    pub(crate) slot: u32,
    /// Replicas as the controller lists them; ISR masks count positions in this list.
    pub replicas: SmallVec<[BrokerId; 4]>,
    /// The committed ISR, a bit per position in `replicas`.
    pub isr: u32,
    /// The proposed ISR; equal to `isr` while nothing is in flight.
    pub proposed: u32,
    /// A proposal waits to be sent or answered.
    pub in_flight: bool,
    /// The proposal is in the request in flight.
    pub(crate) sent: bool,
    /// Unclean election: recovery was not yet reported.
    pub recovering: bool,
    /// The proposal reports the end of recovery.
    pub(crate) recovered: bool,
    /// In the list of leaders with followers that are behind.
    pub(crate) in_behind: bool,
    /// A barrier of the mirror room waits here.
    pub(crate) barrier: Barrier,
    /// The newest term in which the log was aligned; followers have to know it.
    pub(crate) aligned: LeaderEpoch,
    /// Where the epoch began: the log end when this broker became leader.
    pub epoch_start: Offset,
    /// The others.
    pub followers: SmallVec<[Follower; 2]>,
    /// Who reads here.
    pub(crate) watchers: SmallVec<[Watcher; 3]>,
    /// First and last wait of producers (acks=all), [`NONE`] if there is none.
    pub(crate) waits: (u32, u32),
}

impl LeaderState {
    /// The committed ISR and the one that may be committed any moment (KIP-497).
    #[must_use]
    pub fn maximal_isr(&self) -> u32 {
        self.isr | self.proposed
    }
    /// The bit of a broker in the masks; 0 if it is no replica.
    #[must_use]
    pub fn bit(&self, broker: BrokerId) -> u32 {
        self.replicas.iter().position(|b| *b == broker).map_or(0, |at| 1 << (at as u32 & 31))
    }
    /// The brokers of a mask.
    pub fn members(&self, mask: u32) -> impl Iterator<Item = BrokerId> + '_ {
        self.replicas.iter().enumerate().filter(move |(at, _)| mask & (1 << (*at as u32 & 31)) != 0).map(|(_, b)| *b)
    }
    /// The mask of these brokers.
    #[must_use]
    pub fn mask(&self, brokers: &[BrokerId]) -> u32 {
        brokers.iter().fold(0, |mask, b| mask | self.bit(*b))
    }
}

/// A replica, read-only: for checkers, tests and the mirror room.
#[derive(Clone, Copy, Debug)]
pub struct Replica<'a> {
    pub(crate) hot: &'a Hot,
    /// Its log.
    pub log: &'a Log,
    /// What it keeps as leader.
    pub leader: Option<&'a LeaderState>,
}

impl Replica<'_> {
    /// Which partition.
    #[must_use]
    pub fn partition(&self) -> PartitionIx {
        self.hot.partition
    }
    /// Of which topic.
    #[must_use]
    pub fn topic(&self) -> TopicIx {
        self.hot.topic
    }
    /// Leader or follower.
    #[must_use]
    pub fn role(&self) -> Role {
        if self.leader.is_some() {
            Role::Leader
        } else {
            Role::Follower(self.hot.leader)
        }
    }
    /// The leader epoch it lives in.
    #[must_use]
    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.hot.leader_epoch
    }
    /// The partition epoch it knows.
    #[must_use]
    pub fn partition_epoch(&self) -> PartitionEpoch {
        self.hot.partition_epoch
    }
    /// Its log failed.
    #[must_use]
    pub fn offline(&self) -> bool {
        self.hot.flags & Hot::OFFLINE != 0
    }
}

/// All replicas of a broker.
#[derive(Clone, Debug)]
pub struct Replicas {
    pub(crate) me: BrokerId,
    /// `replica.lag.time.max.ms`.
    pub(crate) lag_max: Nanos,
    pub(crate) index: Vec<u32>,
    pub(crate) hot: Chunked<Hot>,
    pub(crate) logs: Chunked<Option<Log>>,
    pub(crate) free: Vec<u32>,
    pub(crate) leaders: Chunked<LeaderState>,
    pub(crate) leaders_free: Vec<u32>,
    pub(crate) topics: Vec<Option<Arc<TopicPolicy>>>,
    pub(crate) brokers: Vec<BrokerView>,
    /// Fetch sessions of followers, consumers and mirrors.
    pub sessions: Sessions,
    pub(crate) waits: Waits,
    /// Producers whose wait ended, for the broker to answer.
    pub(crate) done: Vec<WaitDone>,
    /// Partitions with an ISR proposal to be sent.
    pub(crate) proposals: Vec<PartitionIx>,
    /// Leader states with followers that are behind.
    pub(crate) behind: Vec<u32>,
    /// Slots whose watermark, log end or log start no checkpoint knows.
    pub(crate) hw_dirty: Vec<u32>,
    pub(crate) log_dirty: Vec<u32>,
    /// Slots whose log was cut below its recovery point; its checkpoint is to be written at the end of the task.
    pub(crate) lowered: Vec<u32>,
    /// Partitions that closed a segment: to be flushed up to there.
    pub(crate) rolled: Vec<PartitionIx>,
    /// Partitions with so many, or so old, unflushed records that a flush is due.
    pub(crate) flush_due: Vec<PartitionIx>,
    /// Slots of compacted logs with closed segments that the cleaner has not looked at.
    pub(crate) to_clean: Vec<u32>,
    /// When a flush ended last, by slot; only of topics that set `flush.ms`.
    pub(crate) flushed_at: BTreeMap<u32, Nanos>,
    /// Watched partitions whose watermark moved.
    pub(crate) hw_news: Vec<PartitionIx>,
    /// Partitions whose barrier was reached.
    pub(crate) converged: Vec<PartitionIx>,
    /// Alignments that are not durable yet.
    pub(crate) marking: BTreeMap<PartitionIx, Marking>,
    /// What the fetchers have to be told.
    pub(crate) fetch_changes: Vec<FetchChange>,
    pub(crate) disk_failed: bool,
    /// Where the copies of a request's batches are made; empty but for room.
    pub(crate) arena: BytesMut,
}

/// True if the mutant of a guard has to be played here: the guard is off, and its behaviour differs on this input.
#[inline]
pub(crate) fn mutant(guards: &mut Guards, id: GuardId, differs: bool) -> bool {
    differs && guards.admits(id, false)
}

impl Replicas {
    /// No replicas yet. `lag_max` is `replica.lag.time.max.ms`.
    #[must_use]
    pub fn new(me: BrokerId, lag_max: Nanos) -> Self {
        Self {
            me,
            lag_max,
            index: Vec::new(),
            hot: Chunked::new(),
            logs: Chunked::new(),
            free: Vec::new(),
            leaders: Chunked::new(),
            leaders_free: Vec::new(),
            topics: Vec::new(),
            brokers: Vec::new(),
            sessions: Sessions::default(),
            waits: Waits::default(),
            done: Vec::new(),
            proposals: Vec::new(),
            behind: Vec::new(),
            hw_dirty: Vec::new(),
            log_dirty: Vec::new(),
            lowered: Vec::new(),
            rolled: Vec::new(),
            flush_due: Vec::new(),
            to_clean: Vec::new(),
            flushed_at: BTreeMap::new(),
            hw_news: Vec::new(),
            converged: Vec::new(),
            marking: BTreeMap::new(),
            fetch_changes: Vec::new(),
            disk_failed: false,
            arena: BytesMut::new(),
        }
    }

    /// The fetch sessions of all readers.
    #[must_use]
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Keeps at most so many fetch sessions (`max.incremental.fetch.session.cache.slots`).
    pub fn limit_sessions(&mut self, limit: u32) {
        self.sessions.limit = limit;
    }

    /// Whether readers that are no replicas are told where their log and this one part.
    pub fn tell_divergence(&mut self, told: bool) {
        self.sessions.divergence_untold = !told;
    }

    /// The broker that these are.
    #[must_use]
    pub fn broker(&self) -> BrokerId {
        self.me
    }

    /// The slot of a partition.
    #[inline]
    pub(crate) fn slot(&self, partition: PartitionIx) -> Option<usize> {
        match self.index.get(partition.0 as usize) {
            Some(&slot) if slot != NONE => Some(slot as usize),
            _ => None,
        }
    }

    /// The leader state of a slot.
    #[inline]
    pub(crate) fn lead(&self, slot: usize) -> Option<usize> {
        let lead = self.hot[slot].lead;
        (lead != NONE).then_some(lead as usize)
    }

    /// A replica, if hosted here.
    #[must_use]
    pub fn get(&self, partition: PartitionIx) -> Option<Replica<'_>> {
        self.slot(partition).and_then(|slot| self.at(slot))
    }

    fn at(&self, slot: usize) -> Option<Replica<'_>> {
        let hot = &self.hot[slot];
        let leader = self.lead(slot).map(|lead| &self.leaders[lead]);
        self.logs[slot].as_ref().map(|log| Replica { hot, log, leader })
    }

    /// All replicas, in order of slot.
    pub fn iter(&self) -> impl Iterator<Item = Replica<'_>> {
        (0..self.hot.len()).filter_map(|slot| self.at(slot))
    }

    /// How many replicas are hosted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hot.len() - self.free.len()
    }

    /// None at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The log of a partition.
    #[must_use]
    pub fn log(&self, partition: PartitionIx) -> Option<&Log> {
        self.slot(partition).and_then(|slot| self.logs[slot].as_ref())
    }

    /// Whether this broker leads it, and in which epoch.
    #[must_use]
    pub fn leads(&self, partition: PartitionIx) -> Option<LeaderEpoch> {
        let slot = self.slot(partition)?;
        self.lead(slot).map(|_| self.hot[slot].leader_epoch)
    }

    /// Tells what a topic's partitions have to obey; before [`Self::apply`] of its first partition, and after every change.
    pub fn set_topic(&mut self, topic: TopicIx, policy: Option<Arc<TopicPolicy>>) {
        let at = topic.0 as usize;
        if self.topics.len() <= at {
            self.topics.resize(at + 1, None);
        }
        self.topics[at] = policy;
    }

    /// The policy of a topic.
    #[must_use]
    pub fn topic(&self, topic: TopicIx) -> Option<&Arc<TopicPolicy>> {
        self.topics.get(topic.0 as usize).and_then(Option::as_ref)
    }

    /// Tells which brokers there are; sorted by id.
    pub fn set_brokers(&mut self, brokers: Vec<BrokerView>) {
        self.brokers = brokers;
    }

    /// `min.insync.replicas`, at most the number of replicas (KIP-966).
    /// Whether a partition that is led here has fewer replicas in sync than it wants.
    #[must_use]
    pub fn is_under_min_isr(&self, partition: PartitionIx) -> bool {
        let Some(slot) = self.slot(partition) else { return false };
        let Some(leader) = self.lead(slot).map(|lead| &self.leaders[lead]) else { return false };
        leader.isr.count_ones() < self.min_isr(self.hot[slot].topic, leader.replicas.len())
    }

    pub(crate) fn min_isr(&self, topic: TopicIx, replicas: usize) -> u32 {
        self.topic(topic).map_or(1, |t| t.min_isr).min(replicas as u32).max(1)
    }

    pub(crate) fn mark_log_dirty(&mut self, slot: usize) {
        let hot = &mut self.hot[slot];
        if hot.flags & Hot::LOG_DIRTY == 0 {
            hot.flags |= Hot::LOG_DIRTY;
            self.log_dirty.push(slot as u32);
        }
    }
}
