//! A consumer that assigns itself partitions: finds its positions (committed, earliest, latest), validates them against the
//! leader's epochs after every leader change (KIP-320), fetches in incremental sessions, one per broker (KIP-227), and tells
//! what it read. A group name serves for commits only; there is no membership.

use crate::client::cluster::{Cluster, ClusterConfig, ClusterEvent};
use crate::client::door::{earlier, Door};
use crate::client::sessions::{Session, NO_PLACE};
use crate::guards::client;
use crate::guards::points::Point;
use crate::ids::{BrokerId, LeaderEpoch, Nanos, NodeId, Now, Offset, PartitionIx};
use crate::ports::{Cx, Input, Lane};
use crate::wire::messages::{Isolation, EARLIEST, LATEST};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// `auto.offset.reset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// To the log start.
    Earliest,
    /// To the end.
    Latest,
    /// The partition is given up.
    None,
}

/// A topic to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Its name.
    pub topic: Arc<str>,
    /// Partition numbers; `None` for all, new ones included.
    pub partitions: Option<Vec<u32>>,
}

/// A consumer; names and defaults as in Kafka's consumer configs where they have one.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsumerConfig {
    /// Unique in the run; in its trace events.
    pub number: u32,
    /// The cluster and its times. `topics` is overwritten by [`Self::assignments`].
    pub cluster: ClusterConfig,
    /// What to read.
    pub assignments: Vec<Assignment>,
    /// For commits.
    pub group: Option<Arc<str>>,
    /// Start from the group's committed positions.
    pub resume: bool,
    /// `isolation.level`.
    pub isolation: Isolation,
    /// `auto.offset.reset`.
    pub reset: Reset,
    /// `fetch.max.wait.ms`.
    pub max_wait: Nanos,
    /// `fetch.min.bytes`.
    pub min_bytes: u32,
    /// `fetch.max.bytes`.
    pub max_bytes: u32,
    /// `max.partition.fetch.bytes`.
    pub partition_max_bytes: u32,
    /// `auto.commit.interval.ms`; none: no commits.
    pub commit_interval: Option<Nanos>,
    /// Ask for the ends of all partitions so often and tell the answers (S22).
    pub list_ends_interval: Option<Nanos>,
    /// `retry.backoff.ms`.
    pub retry_backoff: Nanos,
    /// Not before this reading of the node's monotonic clock.
    pub start: Nanos,
    /// Nothing is asked for from this reading on.
    pub stop: Option<Nanos>,
}

impl ConsumerConfig {
    /// Reads all partitions of these topics from the start, without a group; everything else as Kafka's defaults.
    #[must_use]
    pub fn new(number: u32, bootstrap: Vec<NodeId>, topics: &[Arc<str>]) -> Self {
        let mut cluster = ClusterConfig::new(bootstrap, None);
        cluster.channel.max_in_flight = 100;
        Self {
            number,
            cluster,
            assignments: topics.iter().map(|t| Assignment { topic: t.clone(), partitions: None }).collect(),
            group: None,
            resume: false,
            isolation: Isolation::ReadUncommitted,
            reset: Reset::Earliest,
            max_wait: Nanos::from_millis(500),
            min_bytes: 1,
            max_bytes: 50 << 20,
            partition_max_bytes: 1 << 20,
            commit_interval: None,
            list_ends_interval: None,
            retry_backoff: Nanos::from_millis(100),
            start: Nanos::ZERO,
            stop: None,
        }
    }
}

/// Counts of a consumer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsumerCounts {
    /// Records handed over.
    pub read: u64,
    /// Bytes of batches looked at.
    pub bytes: u64,
    /// Fetch requests.
    pub fetches: u64,
    /// Positions set by the reset policy.
    pub resets: u64,
    /// Truncations found by validation.
    pub truncations: u64,
    /// Answers with a malformed batch or a wrong CRC.
    pub corrupt: u64,
    /// Commits that were accepted, by partition.
    pub commits: u64,
    /// Sessions that the broker did not know, or that were out of step.
    pub session_errors: u64,
}

/// What a partition waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaits {
    /// The group's committed position.
    Committed,
    /// The offset of this timestamp ([`EARLIEST`], [`LATEST`]).
    Reset(i64),
    /// The end of its last epoch in the leader's log.
    Validation,
    /// Records.
    Records,
    /// Nothing: without a reset policy it was given up.
    Nothing,
}

/// One partition's position.
#[derive(Clone, Debug, PartialEq)]
pub struct Position {
    /// Which partition.
    pub partition: PartitionIx,
    /// The next offset to read, −1 before it is known.
    pub offset: Offset,
    /// Epoch of the last record before it, −1 if not known.
    pub last_epoch: LeaderEpoch,
    /// The end of what may be read, as last told; −1 before that.
    pub end: Offset,
    /// What it waits for.
    pub awaits: Awaits,
    /// The leader and epoch that it was validated against.
    pub leader: BrokerId,
    /// The epoch of that leader.
    pub leader_epoch: LeaderEpoch,
    pub(super) topic: u32,
    /// Offset of the last fetch that asked for it: an answer to another one is not its own.
    pub(super) asked: Offset,
    pub(super) place: u32,
    pub(super) delayed: bool,
    pub(super) uncommitted: bool,
}

impl Position {
    /// Whether it rests after an error.
    #[must_use]
    pub fn is_delayed(&self) -> bool {
        self.delayed
    }
}

/// What a request in flight left.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Asked {
    Fetch { broker: BrokerId },
    Validate { broker: BrokerId, parts: Vec<(u32, LeaderEpoch, Offset)> },
    Reset { broker: BrokerId, parts: Vec<(u32, LeaderEpoch, i64)> },
    Ends { broker: BrokerId, parts: Vec<(u32, LeaderEpoch)> },
    Commit { parts: Vec<u32> },
    Committed { parts: Vec<u32> },
}

/// What goes on with one broker.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Peer {
    pub session: Session,
    pub fetching: bool,
    pub validate: Vec<u32>,
    pub validating: bool,
    pub reset: Vec<u32>,
    pub resetting: bool,
    pub ends: Vec<u32>,
    pub listing: bool,
    /// After an error on the session: not before this reading.
    pub not_before: Nanos,
}

/// The process.
#[derive(Clone, Debug, PartialEq)]
pub struct Consumer {
    pub(super) config: ConsumerConfig,
    pub(super) cluster: Cluster<Asked>,
    door: Door,
    pub(super) slots: Vec<Position>,
    topics: Vec<Vec<u32>>,
    index: BTreeMap<PartitionIx, u32>,
    pub(super) peers: BTreeMap<BrokerId, Peer>,
    pub(super) homeless: BTreeSet<u32>,
    delayed: BTreeSet<(Nanos, u32)>,
    pub(super) uncommitted: Vec<u32>,
    pub(super) committing: bool,
    pub(super) next_commit: Option<Nanos>,
    pub(super) next_ends: Option<Nanos>,
    pub(super) to_resume: Vec<u32>,
    pub(super) resuming: bool,
    /// Which broker is asked as coordinator: turns when one will not be it.
    pub(super) coordinator: u32,
    pub(super) group_not_before: Nanos,
    pub(super) counts: ConsumerCounts,
    pub(super) wait: Option<Nanos>,
}

impl Consumer {
    /// Starts the process.
    pub fn boot(mut config: ConsumerConfig, now: Now, cx: &mut Cx) -> Self {
        config.cluster.topics = Some(config.assignments.iter().map(|a| a.topic.clone()).collect());
        let start = config.start.max(now.mono);
        let grouped = config.group.is_some();
        let mut consumer = Self {
            cluster: Cluster::new(config.cluster.clone(), cx),
            door: Door::default(),
            slots: Vec::new(),
            topics: vec![Vec::new(); config.assignments.len()],
            index: BTreeMap::new(),
            peers: BTreeMap::new(),
            homeless: BTreeSet::new(),
            delayed: BTreeSet::new(),
            uncommitted: Vec::new(),
            committing: false,
            next_commit: config.commit_interval.filter(|_| grouped).map(|i| start + i),
            next_ends: config.list_ends_interval.map(|i| start + i),
            to_resume: Vec::new(),
            resuming: false,
            coordinator: 0,
            group_not_before: Nanos::ZERO,
            counts: ConsumerCounts::default(),
            wait: None,
            config,
        };
        consumer.door.wake(cx);
        consumer
    }

    /// Files an input.
    pub fn accept(&mut self, _now: Now, input: Input, cx: &mut Cx) {
        self.door.accept(input, cx);
    }

    /// One poll: inputs, what is due, what can be asked.
    pub fn run(&mut self, now: Now, _lane: Lane, cx: &mut Cx) {
        let mut events = self.door.poll(|input| self.cluster.on_input(now, input, cx));
        if now.mono < self.config.start {
            self.door.want(Some(self.config.start), now, cx);
            return;
        }
        let stopped = self.is_stopped(now);
        self.cluster.set_quiet(stopped);
        if cx.guards.points.fires(Point::ClientRefreshes) {
            self.cluster.want_refresh();
        }
        self.cluster.poll(now, cx, &mut events);
        for event in events {
            self.on_event(now, event, cx);
        }
        if stopped {
            return;
        }
        self.wake_delayed(now);
        self.periodic(now);
        self.wait = None;
        self.ask_coordinator(now, cx);
        self.ask_leaders(now, cx);
        self.cluster.ask(now, cx);
        self.arm(now, cx);
    }

    fn on_event(&mut self, now: Now, event: ClusterEvent<Asked>, cx: &mut Cx) {
        match event {
            ClusterEvent::Opened(_) => {}
            ClusterEvent::Metadata { changed } => {
                self.assign();
                self.leaders_changed(&changed, cx);
            }
            ClusterEvent::Lost { failed, .. } => {
                for asked in failed {
                    self.on_silence(now, asked);
                }
            }
            ClusterEvent::Answer { token, body, .. } => self.on_answer(now, token, body, cx),
        }
    }

    // ------------------------------------------------------------------------------------- partitions and their leaders

    /// Takes over new partitions of the assigned topics.
    fn assign(&mut self) {
        for topic in 0..self.config.assignments.len() {
            let assignment = &self.config.assignments[topic];
            let Some((_, seen)) = self.cluster.view.topic(&assignment.topic) else { continue };
            let wanted = |n: u32| assignment.partitions.as_ref().is_none_or(|w| w.contains(&n));
            let found: Vec<_> = (0..).zip(&seen.partitions).filter(|(n, _)| wanted(*n)).map(|(_, p)| *p).collect();
            for (nth, partition) in found.into_iter().enumerate() {
                match self.topics[topic].get(nth).copied() {
                    Some(slot) if self.slots[slot as usize].partition == partition => {}
                    Some(slot) => self.recreated(slot, partition),
                    None => self.add_slot(topic as u32, partition),
                }
            }
        }
    }

    fn add_slot(&mut self, topic: u32, partition: PartitionIx) {
        let slot = self.slots.len() as u32;
        let resume = self.config.resume && self.config.group.is_some();
        self.slots.push(Position {
            partition,
            offset: Offset::UNKNOWN,
            last_epoch: LeaderEpoch::NONE,
            end: Offset::UNKNOWN,
            awaits: if resume { Awaits::Committed } else { self.reset_state() },
            leader: BrokerId::NONE,
            leader_epoch: LeaderEpoch::NONE,
            topic,
            asked: Offset::UNKNOWN,
            place: NO_PLACE,
            delayed: false,
            uncommitted: false,
        });
        self.topics[topic as usize].push(slot);
        self.index.insert(partition, slot);
        if resume {
            self.to_resume.push(slot);
        } else {
            self.place(slot);
        }
    }

    /// The topic was deleted and created again: positions go by name and number (as Kafka's), epochs do not.
    fn recreated(&mut self, slot: u32, partition: PartitionIx) {
        self.unplace(slot);
        let s = &mut self.slots[slot as usize];
        self.index.remove(&s.partition);
        s.partition = partition;
        (s.last_epoch, s.leader_epoch) = (LeaderEpoch::NONE, LeaderEpoch::NONE);
        self.index.insert(partition, slot);
        self.place(slot);
    }

    pub(super) fn reset_state(&self) -> Awaits {
        match self.config.reset {
            Reset::Earliest => Awaits::Reset(EARLIEST),
            Reset::Latest => Awaits::Reset(LATEST),
            Reset::None => Awaits::Nothing,
        }
    }

    pub(super) fn leaders_changed(&mut self, changed: &[PartitionIx], cx: &mut Cx) {
        for partition in changed {
            let Some(&slot) = self.index.get(partition) else { continue };
            let new = self.cluster.view.leadership(*partition);
            let s = &mut self.slots[slot as usize];
            if (new.leader, new.epoch) == (s.leader, s.leader_epoch) {
                continue;
            }
            if s.awaits == Awaits::Records {
                // G03: under another leader the position may lie on a lineage that is gone. No epoch, no check.
                let checked = s.last_epoch == LeaderEpoch::NONE || new.epoch == s.leader_epoch;
                if !cx.guards.admits(client::ConsumerValidatesEpoch, checked) {
                    s.awaits = Awaits::Validation;
                }
            }
            s.delayed = false;
            self.unplace(slot);
            self.place(slot);
        }
    }

    /// A position that came from outside (a commit) is validated before it is used.
    pub(super) fn start_from(&mut self, slot: u32, offset: Offset, epoch: LeaderEpoch, cx: &mut Cx) {
        let s = &mut self.slots[slot as usize];
        (s.offset, s.last_epoch) = (offset, epoch);
        let unknown = epoch == LeaderEpoch::NONE;
        let admitted = cx.guards.admits(client::ConsumerValidatesEpoch, unknown);
        s.awaits = if admitted { Awaits::Records } else { Awaits::Validation };
        self.place(slot);
    }

    /// Files a slot with its leader under what it waits for.
    pub(super) fn place(&mut self, slot: u32) {
        let s = &mut self.slots[slot as usize];
        if s.delayed {
            return;
        }
        let now = self.cluster.view.leadership(s.partition);
        (s.leader, s.leader_epoch) = (now.leader, now.epoch);
        if now.leader == BrokerId::NONE {
            self.homeless.insert(slot);
            return;
        }
        let peer = self.peers.entry(now.leader).or_default();
        match s.awaits {
            Awaits::Records if s.place == NO_PLACE => {
                s.place = peer.session.add(slot);
                s.asked = Offset::UNKNOWN;
            }
            Awaits::Records => peer.session.touch(s.place),
            Awaits::Validation => peer.validate.push(slot),
            Awaits::Reset(_) => peer.reset.push(slot),
            Awaits::Committed | Awaits::Nothing => {}
        }
    }

    /// Takes a slot out of its leader's session. Entries in the other lists are recognised as stale when they come up.
    pub(super) fn unplace(&mut self, slot: u32) {
        let s = &mut self.slots[slot as usize];
        self.homeless.remove(&slot);
        if s.place != NO_PLACE {
            if let Some(peer) = self.peers.get_mut(&s.leader) {
                peer.session.remove(s.place);
            }
            s.place = NO_PLACE;
        }
    }

    /// Lets a slot rest for the retry backoff.
    pub(super) fn delay(&mut self, slot: u32, now: Now) {
        self.unplace(slot);
        self.slots[slot as usize].delayed = true;
        self.delayed.insert((now.mono + self.config.retry_backoff, slot));
    }

    fn wake_delayed(&mut self, now: Now) {
        while let Some(&(until, slot)) = self.delayed.first() {
            if until > now.mono {
                return;
            }
            self.delayed.pop_first();
            if std::mem::take(&mut self.slots[slot as usize].delayed) {
                self.place(slot);
            }
        }
    }

    /// Notes that a position is not committed yet.
    pub(super) fn moved(&mut self, slot: u32) {
        let s = &mut self.slots[slot as usize];
        if self.next_commit.is_some() && !s.uncommitted {
            s.uncommitted = true;
            self.uncommitted.push(slot);
        }
    }

    fn arm(&mut self, now: Now, cx: &mut Cx) {
        let mut at = earlier(self.wait, self.delayed.first().map(|d| d.0));
        if !self.committing {
            let group = |t: Nanos| t.max(self.group_not_before);
            at = earlier(at, self.next_commit.map(group).filter(|&t| t > now.mono));
            let resume = !self.resuming && !self.to_resume.is_empty();
            at = earlier(at, Some(self.group_not_before).filter(|&t| resume && t > now.mono));
        }
        at = earlier(at, self.next_ends);
        for peer in self.peers.values().filter(|p| p.not_before > now.mono) {
            at = earlier(at, Some(peer.not_before));
        }
        at = earlier(at, self.config.stop);
        at = earlier(at, self.cluster.next_wakeup(now));
        self.door.want(at, now, cx);
    }

    // ------------------------------------------------------------------------------------------------------ read-only

    /// Counts.
    #[must_use]
    pub fn counts(&self) -> ConsumerCounts {
        self.counts
    }
    /// Its number.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.config.number
    }
    /// Positions of all partitions, in the order they became known.
    #[must_use]
    pub fn positions(&self) -> &[Position] {
        &self.slots
    }
    /// Whether its stop time has come.
    #[must_use]
    pub fn is_stopped(&self, now: Now) -> bool {
        self.config.stop.is_some_and(|stop| now.mono >= stop)
    }
    /// Partitions that were given up for want of a reset policy.
    pub fn given_up(&self) -> impl Iterator<Item = PartitionIx> + '_ {
        self.slots.iter().filter(|s| s.awaits == Awaits::Nothing).map(|s| s.partition)
    }
}

#[cfg(test)]
#[path = "consumer_tests.rs"]
mod tests;
