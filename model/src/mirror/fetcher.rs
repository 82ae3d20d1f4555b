//! The mirror fetcher: copies partitions from one source broker, as a consumer would read them (spec 4).
//!
//! One fetcher per (fetcher number, source broker, mirror); one lane each. It holds the client side of one fetch session and
//! asks only about what changed. Its partitions are slots; a slot begins by checking its log against the source's epochs
//! (spec 3.9) and then fetches. What concerns a partition's *state* is not decided here: the fetcher tells the manager by
//! [`Outcome`]s, and by then holds the partition no more.

use crate::coordinator::routing::abs;
use crate::guards::points::Point;
use crate::guards::{mirror as guard, Guards};
use crate::ids::{BrokerEpoch, BrokerId, LeaderEpoch, MirrorIx, Nanos, NodeId, Now, Offset, PartitionIx, TopicIx};
use crate::mirror::link::Link;
use crate::mirror::source::NoLeader;
use crate::ports::{Cx, Lane};
use crate::replica::chunked::Chunked;
use crate::wire::messages::{
    EpochQuestion, FetchPart, FetchRequest, Isolation, LeaderHint, ListOffsetsRequest, Message,
    OffsetForLeaderEpochRequest, OffsetQuestion, EARLIEST, LATEST,
};
use std::collections::{BTreeSet, VecDeque};

/// What a slot waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing: the slot is free.
    Vacant,
    /// The source's answer where our last epoch ends there.
    Truncating,
    /// Data.
    Fetching,
    /// The end of a backoff.
    Delayed(Nanos),
    /// The source's first and last offset, after OFFSET_OUT_OF_RANGE.
    Locating,
}

/// What a partition was given to a fetcher for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To be copied.
    Copy,
    /// To be compared with the source's epochs, and cut until they agree (decision 27).
    Align {
        /// Whether records may be cut; else the source contradicts the log (decision 39).
        may_cut: bool,
    },
}

/// One partition in a fetcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The partition here.
    pub partition: PartitionIx,
    /// Its topic here; the source's has the same id.
    pub topic: TopicIx,
    /// The same partition in the source's numbering.
    pub source_partition: PartitionIx,
    /// Next offset to fetch: the end of the local log.
    pub offset: Offset,
    /// What the last request of this slot asked from; an answer counts only while both are equal.
    pub asked: Offset,
    /// The source leader's epoch as we know it.
    pub epoch: LeaderEpoch,
    /// Epoch of the last record in the local log.
    pub last_fetched_epoch: LeaderEpoch,
    /// What it waits for.
    pub phase: Phase,
    /// What it was given here for.
    pub purpose: Purpose,
    /// The source's high watermark in its last answer, −1 before the first.
    pub source_hw: Offset,
    /// When the source last answered for this slot.
    pub answered_at: Nanos,
    /// In the dirty list: the next request mentions it.
    pub dirty: bool,
    /// The source's session knows the slot.
    pub in_session: bool,
    /// A bump was asked for since the slot was taken.
    pub bump_asked: bool,
    /// No answer in this source epoch was good yet.
    pub unproven: bool,
}

/// Where a partition's copying starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The partition here.
    pub partition: PartitionIx,
    /// Its topic here.
    pub topic: TopicIx,
    /// The same partition in the source's numbering.
    pub source_partition: PartitionIx,
    /// The end of the local log.
    pub offset: Offset,
    /// The source leader's epoch as we know it.
    pub source_epoch: LeaderEpoch,
    /// The last epoch in the local log; −1: none, nothing to check against the source.
    pub last_epoch: LeaderEpoch,
    /// What it is given to the fetcher for.
    pub purpose: Purpose,
}

/// What arrived for a fetcher, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Its connection stands.
    Opened,
    /// Its connection ended.
    Closed,
    /// A message came.
    Answer(Message),
    /// Its timer is due, or it has new partitions.
    Kick,
}

/// Limits of a fetch (spec 4.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Longest wait for data at the source.
    pub max_wait: Nanos,
    /// Answer at once when so many bytes are there.
    pub min_bytes: u32,
    /// Limit of an answer.
    pub max_bytes: u32,
    /// Limit of one partition's share.
    pub partition_max_bytes: u32,
    /// Wait after an error of one partition.
    pub backoff: Nanos,
    /// Longest wait for an answer beyond `max_wait`, or for a connection.
    pub timeout: Nanos,
}

/// Which question is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Asked {
    /// None.
    #[default]
    Nothing,
    /// A fetch.
    Fetch,
    /// Where epochs end.
    Epochs,
    /// Where logs begin and end.
    Offsets,
}

/// What a fetcher tells the manager of a partition that it let go, or of something it saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A batch of this epoch must wait for a higher local epoch; the slot is gone.
    Fence(PartitionIx, LeaderEpoch),
    /// The epoch came close; go on, but ask for a bump.
    Bump(PartitionIx, LeaderEpoch),
    /// It failed; the slot is gone.
    Fail(PartitionIx, FailCause),
    /// Another source broker leads; the slot is gone.
    Moved(PartitionIx, LeaderHint),
    /// The log was cut because the source's log is another one; the slot is gone.
    Cut(PartitionIx, Offset),
    /// The source's log contradicts ours from this offset on, and nothing was cut; the slot is gone.
    Contradicted(PartitionIx, Offset),
    /// What it was compared for: the source has everything that is left.
    Aligned(PartitionIx),
    /// The first good answer under this assignment.
    Proven(PartitionIx),
    /// The source's retention removed these before they were copied; the log goes on behind them.
    Gap(PartitionIx, Offset, Offset),
}

/// Why a partition went to FAILED.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailCause {
    /// The connection to the source failed, or a request timed out.
    SourceUnreachable,
    /// The source refused and did not say who leads.
    SourceLeaderUnknown,
    /// Batches were newer than what is known of the source.
    SourceMetadataStale,
    /// The source has no such topic.
    SourceTopicMissing,
    /// The source's topic has fewer partitions (E-22). It may grow.
    SourcePartitionMissing,
    /// The source had the topic, and has it no more.
    SourceTopicDeleted,
    /// The source is another cluster.
    SourceClusterChanged,
    /// The local append or cut failed.
    Storage,
    /// The answer did not fit the log.
    OffsetMismatch,
    /// The source sent a batch that is damaged.
    SourceCorrupt,
    /// The source's log contradicts ours; an operator must say which side wins.
    Diverged,
    /// The source mirrors this topic from us.
    LoopFound,
    /// Somebody who knows where mirroring ended last could not be asked.
    PositionUnavailable,
    /// The mirror in the other direction has not stopped yet.
    ReverseNotStopped,
    /// The source does not answer what must be known of its own mirrors.
    SourceRefuses,
    /// The leader epoch was not raised in time.
    BumpTimedOut,
    /// The controller did not raise the leader epoch.
    BumpRefused,
    /// The replicas did not reach the leader in time after a cut.
    ReplicasBehind,
    /// A step of a stop was not committed in time.
    StopTimedOut,
}

impl FailCause {
    /// For people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::SourceUnreachable => "Fetch IO error: the source broker did not answer",
            Self::SourceLeaderUnknown => "Failed to get source metadata: no leader known",
            Self::SourceMetadataStale => "Source metadata is stale: a batch is newer than the known leader epoch",
            Self::SourceTopicMissing => "The source topic does not exist",
            Self::SourcePartitionMissing => "The source topic has no such partition: more were added here",
            Self::SourceTopicDeleted => "The source topic is deleted.",
            Self::SourceClusterChanged => "The source cluster id changed",
            Self::Storage => "Storage error at the mirror leader",
            Self::OffsetMismatch => "The fetched offsets do not continue the log",
            Self::SourceCorrupt => "The source sent a damaged batch: its CRC does not match",
            Self::Diverged => "diverged: the source's log contradicts the mirrored one",
            Self::LoopFound => {
                "Detected mirror loop: the source mirrors this topic from this cluster, itself or through others"
            }
            Self::PositionUnavailable => "The last mirrored position could not be looked up at the source",
            Self::ReverseNotStopped => "The source's mirror of this partition is not STOPPED",
            Self::SourceRefuses => {
                "The source does not tell of its mirrors; allow.one.way=true mirrors without failback"
            }
            Self::BumpTimedOut => "The leader epoch was not raised in time",
            Self::BumpRefused => "The controller refused to raise the leader epoch",
            Self::ReplicasBehind => "The replicas did not reach the leader in time after a cut",
            Self::StopTimedOut => "A step of the stop was not committed in time",
        }
    }
    /// Whether time may heal it.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        !matches!(self, Self::Diverged | Self::SourceClusterChanged | Self::SourceTopicDeleted | Self::LoopFound)
    }
}

impl From<NoLeader> for FailCause {
    fn from(why: NoLeader) -> Self {
        match why {
            NoLeader::TopicMissing => Self::SourceTopicMissing,
            NoLeader::PartitionMissing => Self::SourcePartitionMissing,
            NoLeader::NotKnown | NoLeader::NoneNow => Self::SourceLeaderUnknown,
        }
    }
}

/// Names a fetcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FetcherKey {
    /// The mirror: fetchers never share credentials.
    pub mirror: MirrorIx,
    /// The source broker's address.
    pub source: NodeId,
    /// Number within `mirror.num.replica.fetchers`.
    pub number: u32,
}

/// One fetcher.
#[derive(Clone, Debug)]
pub struct Fetcher {
    /// Which.
    pub key: FetcherKey,
    /// Its lane.
    pub lane: Lane,
    /// Its limits.
    pub limits: FetchLimits,
    pub(super) link: Link,
    pub(super) tasks: VecDeque<Task>,
    pub(super) slots: Chunked<Slot>,
    free: Vec<u32>,
    dirty: Vec<u32>,
    forgotten: Vec<u32>,
    /// Slots that left the session and are still held.
    unlisted: Vec<u32>,
    /// Slots that wait for something other than data, by slot: few at a time.
    special: BTreeSet<u32>,
    pub(super) session_id: u32,
    pub(super) session_epoch: i32,
    /// When the source answered last: in a session, that speaks for the partitions that the answer leaves out too.
    pub(super) heard_at: Nanos,
    pub(super) asked: Asked,
    /// The slots that the epoch or offset look-up under way asks about, in the request's order.
    pub(super) questions: Vec<u32>,
    /// How much it asks for at a time: less, after an answer that did not come whole in time.
    pub(super) appetite: u32,
    /// When it asked last.
    pub(super) asked_at: Nanos,
    /// Occupied slots.
    pub(super) count: u32,
    /// Quirk D-48: it asks nothing any more.
    pub(super) is_dead: bool,
    /// Last reading for which the timer was armed.
    pub(super) timer_at: Nanos,
}

/// The least that a fetcher asks for; the source gives a whole batch in any case.
const LEAST_BYTES: u32 = 4096;
/// A consumer in the source's eyes; the mirror's epoch and offset look-ups say −2 (spec 3.9, K15).
const CONSUMER: BrokerId = BrokerId(-1);
const MIRROR: BrokerId = BrokerId(-2);

impl Fetcher {
    /// A fetcher without partitions.
    #[must_use]
    pub fn new(key: FetcherKey, lane: Lane, limits: FetchLimits) -> Self {
        Self {
            key,
            lane,
            limits,
            link: Link::new(key.source, limits.timeout),
            tasks: VecDeque::new(),
            slots: Chunked::new(),
            free: Vec::new(),
            dirty: Vec::new(),
            forgotten: Vec::new(),
            unlisted: Vec::new(),
            special: BTreeSet::new(),
            session_id: 0,
            session_epoch: 0,
            heard_at: Nanos::ZERO,
            asked: Asked::Nothing,
            questions: Vec::new(),
            appetite: limits.max_bytes,
            asked_at: Nanos::ZERO,
            count: 0,
            is_dead: false,
            timer_at: Nanos::ZERO,
        }
    }

    /// Takes a partition.
    pub fn add(&mut self, position: Position, guards: &mut Guards) -> u32 {
        let checked = position.last_epoch == LeaderEpoch::NONE
            || (position.purpose == Purpose::Copy && guards.admits(guard::EpochAskedBeforeFetch, false));
        let slot = Slot {
            partition: position.partition,
            topic: position.topic,
            source_partition: position.source_partition,
            offset: position.offset,
            asked: Offset::UNKNOWN,
            epoch: position.source_epoch,
            last_fetched_epoch: position.last_epoch,
            phase: if checked { Phase::Fetching } else { Phase::Truncating },
            purpose: position.purpose,
            source_hw: Offset::UNKNOWN,
            answered_at: Nanos::ZERO,
            dirty: false,
            in_session: false,
            bump_asked: false,
            unproven: true,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = slot;
                at
            }
            None => self.slots.push(slot) as u32,
        };
        self.count += 1;
        if checked {
            self.mark_dirty(at);
        } else {
            self.special.insert(at);
        }
        at
    }

    /// Lets a partition go; the session forgets it with the next fetch, and only then is the slot given again.
    pub fn remove(&mut self, at: u32) -> Option<Slot> {
        let slot = self.slots.get_mut(at as usize).filter(|s| s.phase != Phase::Vacant)?;
        let old = *slot;
        slot.phase = Phase::Vacant;
        slot.dirty = false;
        self.special.remove(&at);
        self.count -= 1;
        self.forgotten.push(at);
        Some(old)
    }

    /// The partitions held, in slot order.
    pub fn partitions(&self) -> impl Iterator<Item = PartitionIx> + '_ {
        self.slots.iter().filter(|s| s.phase != Phase::Vacant).map(|s| s.partition)
    }

    /// A slot's present content.
    #[must_use]
    pub fn slot(&self, at: u32) -> Option<&Slot> {
        self.slots.get(at as usize).filter(|s| s.phase != Phase::Vacant)
    }

    pub(super) fn slot_mut(&mut self, at: u32) -> Option<&mut Slot> {
        self.slots.get_mut(at as usize).filter(|s| s.phase != Phase::Vacant)
    }

    pub(super) fn mark_dirty(&mut self, at: u32) {
        let slot = &mut self.slots[at as usize];
        if !slot.dirty {
            slot.dirty = true;
            self.dirty.push(at);
        }
    }

    /// Moves a slot to another phase and into the list that the next request is built from.
    pub(super) fn set_phase(&mut self, at: u32, phase: Phase) {
        let slot = &mut self.slots[at as usize];
        slot.phase = phase;
        if phase == Phase::Fetching {
            self.special.remove(&at);
            self.mark_dirty(at);
        } else {
            self.special.insert(at);
        }
    }

    /// Puts slots whose backoff is over back to work; `recheck` makes them compare epochs again.
    pub(super) fn wake_delayed(&mut self, now: Now) {
        let due: Vec<u32> = self
            .special
            .iter()
            .copied()
            .filter(|at| matches!(self.slots[*at as usize].phase, Phase::Delayed(until) if until <= now.mono))
            .collect();
        for at in due {
            self.set_phase(at, Phase::Fetching);
        }
    }

    /// 1. A slot waits for its backoff. 2. The source tells it that there is nothing new, which nobody here looks at. 3. The
    ///    slot asks again, in the same epoch from the same offset: to the source it knows everything. So who waits is not in the
    ///    session, and its next question is answered, as stock fetchers do it.
    fn leave_sessions(&mut self, guards: &mut Guards) {
        for &at in &self.special {
            let slot = &mut self.slots[at as usize];
            if slot.in_session && !guards.admits(guard::WaitingLeavesSession, false) {
                slot.in_session = false;
                self.unlisted.push(at);
            }
        }
    }

    /// The session is gone: the next fetch opens a new one and names every fetching slot.
    pub(super) fn reset_session(&mut self) {
        self.session_id = 0;
        self.session_epoch = 0;
        self.unlisted.clear();
        for at in self.forgotten.drain(..) {
            self.free.push(at);
        }
        for at in 0..self.slots.len() as u32 {
            let slot = &mut self.slots[at as usize];
            slot.in_session = false;
            if slot.phase == Phase::Fetching {
                self.mark_dirty(at);
            }
        }
    }

    /// Sends the next request if the link is free and there is something to ask.
    pub(super) fn ask(&mut self, now: Now, cx: &mut Cx<'_>) {
        self.leave_sessions(cx.guards);
        if self.count == 0 || !self.link.is_ready() {
            return;
        }
        if let Some(body) = self.epoch_questions() {
            self.asked = Asked::Epochs;
            self.link.send(now, body.into(), Nanos::ZERO, cx);
        } else if let Some(body) = self.offset_questions() {
            self.asked = Asked::Offsets;
            self.link.send(now, body.into(), Nanos::ZERO, cx);
        } else if let Some(mut body) = self.fetch_request() {
            if cx.guards.points.fires(Point::MirrorFetchSmall) {
                body.max_bytes = 1;
            }
            if cx.guards.points.fires(Point::MirrorFetchAtOnce) {
                body.max_wait_ms = 0;
            }
            self.asked = Asked::Fetch;
            self.asked_at = now.mono;
            self.link.send(now, body.into(), self.limits.max_wait, cx);
        }
    }

    fn epoch_questions(&mut self) -> Option<OffsetForLeaderEpochRequest> {
        self.collect_questions(Phase::Truncating)?;
        let question = |s: &Slot| EpochQuestion {
            partition: s.source_partition,
            current_leader_epoch: s.epoch,
            epoch: s.last_fetched_epoch,
        };
        let parts = self.questions.iter().map(|at| question(&self.slots[*at as usize])).collect();
        Some(OffsetForLeaderEpochRequest { replica: MIRROR, parts })
    }

    fn offset_questions(&mut self) -> Option<ListOffsetsRequest> {
        self.collect_questions(Phase::Locating)?;
        let ask = |at: u32, timestamp| {
            let slot = &self.slots[at as usize];
            OffsetQuestion { partition: slot.source_partition, current_leader_epoch: slot.epoch, timestamp }
        };
        let parts = self.questions.iter().flat_map(|at| [ask(*at, EARLIEST), ask(*at, LATEST)]).collect();
        Some(ListOffsetsRequest { replica: MIRROR, isolation: Isolation::ReadUncommitted, parts })
    }

    fn collect_questions(&mut self, phase: Phase) -> Option<()> {
        let slots = &self.slots;
        self.questions.clear();
        self.questions.extend(self.special.iter().copied().filter(|at| slots[*at as usize].phase == phase));
        (!self.questions.is_empty()).then_some(())
    }

    fn fetch_request(&mut self) -> Option<FetchRequest> {
        let fetching = self.count as usize > self.special.len();
        if !fetching {
            return None;
        }
        let full = self.session_epoch == 0;
        let mut parts = Vec::with_capacity(self.dirty.len());
        let (mut topic_groups, mut last_topic) = (0, None);
        for at in std::mem::take(&mut self.dirty) {
            let slot = &mut self.slots[at as usize];
            if !slot.dirty || slot.phase != Phase::Fetching {
                slot.dirty = false;
                continue;
            }
            slot.dirty = false;
            slot.in_session = true;
            slot.asked = slot.offset;
            if last_topic != Some(slot.topic) {
                last_topic = Some(slot.topic);
                topic_groups += 1;
            }
            parts.push(FetchPart {
                slot: at,
                partition: slot.source_partition,
                fetch_offset: slot.offset,
                current_leader_epoch: slot.epoch,
                last_fetched_epoch: slot.last_fetched_epoch,
                log_start: Offset::UNKNOWN,
                max_bytes: self.limits.partition_max_bytes,
                mirror_leader_epoch: LeaderEpoch::NONE,
                aligned: LeaderEpoch::NONE,
            });
        }
        let gone = self.forgotten.iter().chain(&self.unlisted).copied();
        let forgotten = if full { Vec::new() } else { gone.collect() };
        self.unlisted.clear();
        for at in self.forgotten.drain(..) {
            self.free.push(at);
        }
        Some(FetchRequest {
            replica: CONSUMER,
            broker_epoch: BrokerEpoch(-1),
            max_wait_ms: self.limits.max_wait.as_millis() as u32,
            min_bytes: self.limits.min_bytes,
            max_bytes: self.appetite.min(self.limits.max_bytes),
            isolation: Isolation::ReadUncommitted,
            session_id: self.session_id,
            session_epoch: self.session_epoch,
            topic_groups,
            parts,
            forgotten,
        })
    }

    /// The answer did not come whole in time. A slow link gets a smaller question the next time: the same one would never be
    /// answered (E-15).
    pub(super) fn ask_for_less(&mut self, guards: &mut Guards) {
        if self.asked == Asked::Fetch && !guards.admits(guard::LateAnswerAsksForLess, false) {
            self.appetite = (self.appetite.min(self.limits.partition_max_bytes) / 2).max(LEAST_BYTES);
        }
    }

    /// An answer came: if it came soon, there is room for more.
    pub(super) fn ask_for_more(&mut self, now: Now) {
        if self.appetite < self.limits.max_bytes && now.mono.since(self.asked_at).0 * 4 <= self.limits.timeout.0 {
            self.appetite = self.appetite.saturating_mul(2).min(self.limits.max_bytes);
        }
    }

    /// When the fetcher must run again by itself: the link's deadline or the first end of a backoff.
    pub(super) fn next_deadline(&self) -> Option<Nanos> {
        let delayed = self.special.iter().filter_map(|at| match self.slots[*at as usize].phase {
            Phase::Delayed(until) => Some(until),
            _ => None,
        });
        delayed.chain(self.link.deadline()).min()
    }
}

/// The fetcher number of a partition (spec 4.2): stock rule `abs(31 · hash(topic) + partition) mod n`, with Java's hash.
#[must_use]
pub fn fetcher_number(topic_name_hash: i32, partition: u32, fetchers: u32) -> u32 {
    let mixed = topic_name_hash.wrapping_mul(31).wrapping_add(partition as i32);
    abs(mixed) % fetchers.max(1)
}
