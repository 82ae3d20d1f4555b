//! The mirror state coordinator of one broker: the partitions of `__mirror_state` that it leads (spec 7.4, decisions 10, 11, 32).
//!
//! A shard is loaded from its log when the broker comes to lead it, and forgotten when it no longer does. Writes wait a little
//! for company, are planned one after the other, appended together, and answered when they are committed; a lost leadership
//! rolls back what is not. Reads answer from what is committed.

use crate::coordinator::engine::{Engine, Machine};
use crate::guards::points::Point;
use crate::guards::{mirror as guard, Guards};
use crate::ids::{ConnId, LeaderEpoch, Nanos, Now, Offset, PartitionIx, TopicIx};
use crate::metadata::image::MetadataImage;
use crate::mirror::records::{state_partition, state_partition_of_mirror, MirrorRecord, StateKey};
use crate::mirror::shard::{apply, plan_tombstones, plan_write, States, Table};
use crate::ports::Cx;
use crate::record::{BatchBuilder, BatchMeta};
use crate::replica::Replicas;
use crate::states::{LastPosition, Session, StateRecord};
use crate::trace::{Origin, Trace};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{StateWrite, WriteMirrorStatesResponse};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// How much longer a queue waits whose point of perturbation fires.
const LINGERS: Nanos = Nanos::from_millis(50);

/// Who asked for a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// This broker's manager.
    Own,
    /// A request of another broker, by number, and which of its entries.
    Request(u32, u32),
    /// Nobody waits: a tombstone.
    Nobody,
}

/// A write that ended, for this broker's manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// What was to be written.
    pub write: StateWrite,
    /// The state epoch now, or why nothing was written.
    pub result: Result<i32, ErrorCode>,
}

/// A write on its way.
#[derive(Clone, Debug)]
struct Op {
    asker: Asker,
    key: StateKey,
    write: StateWrite,
}

/// An answer that waits for its commit.
#[derive(Clone, Debug)]
struct Waiting {
    op: Op,
    result: Result<i32, ErrorCode>,
}

/// What a shard waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Its log is to be read.
    Reading,
    /// What was read is to be committed: below this offset nothing is certain yet.
    Committing(Offset),
    /// Work.
    Active,
    /// The disk did not give the log: it is read again when it is due.
    Unread,
    /// The log is damaged: this broker is no use as coordinator until the leadership moves.
    Failed,
}

/// Until a log that could not be read is read again.
const READ_AGAIN: Nanos = Nanos::from_secs(1);

#[derive(Clone, Debug)]
struct Shard {
    epoch: LeaderEpoch,
    phase: Phase,
    engine: Engine<States, Waiting>,
    queue: Vec<Op>,
    /// When the queue is appended, or the log read again.
    due: Option<Nanos>,
}

/// What is due when, of all shards: each task asks for the first of them.
type Dues = BTreeSet<(Nanos, PartitionIx)>;

impl Shard {
    fn set_due(&mut self, partition: PartitionIx, at: Option<Nanos>, dues: &mut Dues) {
        if let Some(before) = std::mem::replace(&mut self.due, at) {
            dues.remove(&(before, partition));
        }
        dues.extend(at.map(|at| (at, partition)));
    }
}

/// A request of another broker, while some of its entries are open.
#[derive(Clone, Debug)]
struct Request {
    conn: ConnId,
    correlation: u32,
    open: u32,
    answer: WriteMirrorStatesResponse,
}

/// The shards that this broker leads.
#[derive(Clone, Debug)]
pub struct Coordinator {
    /// Partitions of the topic by configuration: what keys are spread over.
    count: u32,
    linger: Nanos,
    attempts_max: i16,
    shards: BTreeMap<PartitionIx, Shard>,
    dues: Dues,
    requests: BTreeMap<u32, Request>,
    next_request: u32,
    written: Vec<Written>,
    answers: Vec<(ConnId, u32, WriteMirrorStatesResponse)>,
    /// Quirk K7: reads answer from uncommitted states.
    pub(super) tells_uncommitted: bool,
    /// States of other incarnations of a mirror were found.
    ignores: bool,
    /// Quirk D-6: what is not loaded is told as none.
    pub(super) not_loaded_is_none: bool,
}

impl Coordinator {
    /// Leads nothing yet. `count` is `mirror.state.topic.num.partitions`, `linger` is
    /// `mirror.coordinator.append.linger.ms`, `attempts_max` is `mirror.failed.retry.max.attempts`.
    #[must_use]
    pub fn new(count: u32, linger: Nanos, attempts_max: i16) -> Self {
        Self {
            count,
            linger,
            attempts_max,
            shards: BTreeMap::new(),
            dues: Dues::new(),
            requests: BTreeMap::new(),
            next_request: 0,
            written: Vec::new(),
            answers: Vec::new(),
            tells_uncommitted: false,
            ignores: false,
            not_loaded_is_none: false,
        }
    }

    // ----------------------------------------------------------------------------------------------------------- routing

    /// The partition of `__mirror_state` that holds a key; `None` while the topic does not exist.
    #[must_use]
    pub fn home(&self, key: &StateKey, image: &MetadataImage) -> Option<PartitionIx> {
        self.numbered(state_partition(key, self.count), image)
    }

    /// The partition whose leader does what is done once per mirror.
    #[must_use]
    pub fn home_of_mirror(&self, mirror: &str, image: &MetadataImage) -> Option<PartitionIx> {
        self.numbered(state_partition_of_mirror(mirror, self.count), image)
    }

    fn numbered(&self, number: u32, image: &MetadataImage) -> Option<PartitionIx> {
        let topic = image.topic(image.state_topic()?)?;
        topic.partitions.get(number as usize).copied()
    }

    /// Whether this broker's shard for a mirror's jobs works.
    #[must_use]
    pub fn coordinates_mirror(&self, mirror: &str, image: &MetadataImage) -> bool {
        self.home_of_mirror(mirror, image)
            .and_then(|home| self.shards.get(&home))
            .is_some_and(|shard| shard.phase == Phase::Active)
    }

    // -------------------------------------------------------------------------------------------------------- leadership

    /// Looks again at a partition of `__mirror_state`: true if its log has to be read ([`Self::load`]).
    pub fn look_at(&mut self, partition: PartitionIx, replicas: &mut Replicas, guards: &mut Guards) -> bool {
        let led = replicas.leads(partition);
        if led.is_some() && led == self.shards.get(&partition).map(|shard| shard.epoch) {
            return false;
        }
        self.resign(partition, guards);
        replicas.watch_watermark(partition, led.is_some());
        let Some(epoch) = led else { return false };
        let shard = Shard {
            epoch,
            phase: Phase::Reading,
            engine: Engine::new(States::default(), 0),
            queue: Vec::new(),
            due: None,
        };
        self.shards.insert(partition, shard);
        true
    }

    /// Whether a partition is one of `__mirror_state`.
    #[must_use]
    pub fn is_state_topic(topic: TopicIx, image: &MetadataImage) -> bool {
        image.state_topic() == Some(topic)
    }

    /// Forgets a shard; what waits there is refused, what was not committed never happened.
    fn resign(&mut self, partition: PartitionIx, guards: &mut Guards) {
        let Some(mut shard) = self.shards.remove(&partition) else { return };
        shard.set_due(partition, None, &mut self.dues);
        if !self.shards.is_empty() && guards.admits(guard::ShardsResignAlone, false) {
            // The mutant has one table for all.
            self.shards
                .values_mut()
                .for_each(|other| other.engine = Engine::new(States::default(), other.engine.end()));
        }
        let mut refused: Vec<Op> = Vec::new();
        shard.engine.on_failed(|waiting| refused.push(waiting.op));
        refused.append(&mut shard.queue);
        for op in refused {
            self.finish(op, Err(ErrorCode::NotCoordinator));
        }
    }

    /// Reads a shard's log from its start.
    pub fn load(
        &mut self,
        partition: PartitionIx,
        now: Now,
        image: &MetadataImage,
        replicas: &Replicas,
        cx: &mut Cx<'_>,
    ) {
        let Some(shard) = self.shards.get_mut(&partition).filter(|shard| shard.phase == Phase::Reading) else { return };
        let Some(log) = replicas.log(partition) else {
            shard.phase = Phase::Failed;
            return;
        };
        let mut engine = Engine::new(States::default(), log.start().0);
        let mut bad = None;
        let read = log.for_each_batch(cx.disk, log.start(), |batch| {
            // What rotted on the disk may still parse: a wrong state would be told as if it were committed (BAD-20).
            if !batch.crc_valid() {
                bad = Some("a batch whose checksum is wrong");
                return;
            }
            if batch.is_control() {
                return;
            }
            for record in batch.records() {
                let Ok(record) = record else {
                    bad = Some("a batch that is not made of records");
                    continue;
                };
                match MirrorRecord::decode(record.key.unwrap_or_default(), record.value) {
                    Ok(parsed) => engine.recovered(record.offset.0, &parsed),
                    Err(error) => bad = Some(error.0),
                }
            }
        });
        if read.is_err() && !cx.guards.admits(guard::FailedLoadIsRepeated, false) {
            shard.phase = Phase::Unread;
            shard.set_due(partition, Some(now.mono + READ_AGAIN), &mut self.dues);
            return;
        }
        if read.is_err() || bad.is_some() {
            shard.phase = Phase::Failed;
            return;
        }
        engine.recovered_up_to(log.end().0);
        shard.engine = engine;
        shard.phase = Phase::Committing(log.end());
        self.commit(partition, image, replicas, cx);
    }

    // ---------------------------------------------------------------------------------------------------------- committing

    /// The watermark of a partition moved.
    pub fn commit(&mut self, partition: PartitionIx, image: &MetadataImage, replicas: &Replicas, cx: &mut Cx<'_>) {
        let Some(shard) = self.shards.get_mut(&partition) else { return };
        let Some(log) = replicas.log(partition) else { return };
        let upto = log.high_watermark();
        match shard.phase {
            Phase::Committing(end) if upto >= end => {
                shard.phase = Phase::Active;
                cx.trace(Trace::MirrorStatesLoaded { partition, end });
            }
            Phase::Active => {}
            // Answers come only from a shard that knows all that was ever committed.
            _ => return,
        }
        let mut done = Vec::new();
        shard.engine.on_committed(
            upto.0,
            |_, _, record| trace_committed(record, image, cx),
            |waiting: Waiting| done.push(waiting),
        );
        for Waiting { op, result } in done {
            self.finish(op, result);
        }
    }

    // ------------------------------------------------------------------------------------------------------------- reading

    /// What is committed of a key.
    ///
    /// # Errors
    /// NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
    pub fn read(&self, key: &StateKey, image: &MetadataImage) -> Result<Option<StateRecord>, ErrorCode> {
        self.read_of(self.shard_of(key, image)?, key, image)
    }

    /// The shard of a key.
    fn shard_of(&self, key: &StateKey, image: &MetadataImage) -> Result<&Shard, ErrorCode> {
        let home = self.home(key, image).ok_or(ErrorCode::CoordinatorNotAvailable)?;
        self.shards.get(&home).ok_or(ErrorCode::NotCoordinator)
    }

    /// The only incarnation whose states are told; `None`: there are no others.
    fn told_session(&self, key: &StateKey, image: &MetadataImage) -> Option<Session> {
        if self.ignores {
            session_of(key, image)
        } else {
            None
        }
    }

    fn read_of(&self, shard: &Shard, key: &StateKey, image: &MetadataImage) -> Result<Option<StateRecord>, ErrorCode> {
        match shard.phase {
            Phase::Active if self.tells_uncommitted => Ok(shard.engine.latest().stable().get(key).cloned()),
            Phase::Active => {
                // Until the tombstones of another incarnation's states are committed, nobody is told of them either.
                let session = self.told_session(key, image);
                Ok(shard.engine.committed().get(key).filter(|record| record.is_of(session)).cloned())
            }
            Phase::Unread | Phase::Failed => Err(ErrorCode::CoordinatorNotAvailable),
            Phase::Reading | Phase::Committing(_) if self.not_loaded_is_none => Ok(None),
            Phase::Reading | Phase::Committing(_) => Err(ErrorCode::CoordinatorLoadInProgress),
        }
    }

    /// What is committed in a partition of the topic, while this broker serves it.
    #[must_use]
    pub fn committed(&self, partition: PartitionIx) -> Option<&Table> {
        self.shards.get(&partition).filter(|shard| shard.phase == Phase::Active).map(|shard| shard.engine.committed())
    }

    /// The same for who will act on it: while a write of the key is not committed, what is committed may be overtaken in the same
    /// instant, by a leader of an earlier term.
    ///
    /// # Errors
    /// As [`Self::read`]; COORDINATOR_LOAD_IN_PROGRESS while a write is under way.
    pub fn read_settled(&self, key: &StateKey, image: &MetadataImage) -> Result<Option<StateRecord>, ErrorCode> {
        let shard = self.shard_of(key, image)?;
        let found = self.read_of(shard, key, image)?;
        if shard.engine.is_settled() {
            return Ok(found);
        }
        let session = self.told_session(key, image);
        let latest = shard.engine.latest().stable().get(key).filter(|record| record.is_of(session));
        if latest == found.as_ref() || self.tells_uncommitted || self.not_loaded_is_none {
            return Ok(found);
        }
        Err(ErrorCode::CoordinatorLoadInProgress)
    }

    /// How many partitions of the topic it holds.
    #[must_use]
    pub fn shards_held(&self) -> usize {
        self.shards.len()
    }

    // ------------------------------------------------------------------------------------------------------------- writing

    /// A request of another broker: each entry by its key (`None`: no such partition). Answered through
    /// [`Self::take_answers`].
    pub fn request(
        &mut self,
        (conn, correlation): (ConnId, u32),
        writes: Vec<(Option<StateKey>, StateWrite)>,
        image: &MetadataImage,
        now: Now,
    ) {
        let number = self.next_request;
        self.next_request = self.next_request.wrapping_add(1);
        let answer = WriteMirrorStatesResponse {
            error: ErrorCode::None,
            parts: writes.iter().map(|(_, w)| (w.partition, ErrorCode::RequestTimedOut, -1)).collect(),
        };
        // One more than there are entries, so that it is not over before all are filed.
        let open = writes.len() as u32 + 1;
        self.requests.insert(number, Request { conn, correlation, open, answer });
        for (at, (key, write)) in writes.into_iter().enumerate() {
            let asker = Asker::Request(number, at as u32);
            match key {
                Some(key) => self.write(asker, key, write, image, now),
                None => self.answer_entry(number, at as u32, Err(ErrorCode::UnknownTopicOrPartition)),
            }
        }
        self.close_entry(number);
    }

    /// Files a write; it is answered exactly once.
    pub fn write(&mut self, asker: Asker, key: StateKey, write: StateWrite, image: &MetadataImage, now: Now) {
        let home = self.home(&key, image);
        let op = Op { asker, key, write };
        let Some(home) = home else { return self.finish(op, Err(ErrorCode::CoordinatorNotAvailable)) };
        let Some(shard) = self.shards.get_mut(&home) else { return self.finish(op, Err(ErrorCode::NotCoordinator)) };
        match shard.phase {
            Phase::Active => {
                shard.queue.push(op);
                let due = shard.due.unwrap_or(now.mono + self.linger);
                shard.set_due(home, Some(due), &mut self.dues);
            }
            Phase::Unread | Phase::Failed => self.finish(op, Err(ErrorCode::CoordinatorNotAvailable)),
            Phase::Reading | Phase::Committing(_) => self.finish(op, Err(ErrorCode::CoordinatorLoadInProgress)),
        }
    }

    /// When the next queue is to be appended, or the next log to be read again.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.dues.first().map(|(at, _)| *at)
    }

    /// The shards with something due now, by partition.
    fn due(&self, now: Now) -> Vec<PartitionIx> {
        let mut due: Vec<PartitionIx> =
            self.dues.iter().take_while(|(at, _)| *at <= now.mono).map(|(_, partition)| *partition).collect();
        due.sort_unstable();
        due
    }

    /// The shards whose logs are to be read again now.
    pub fn take_unread(&mut self, now: Now) -> Vec<PartitionIx> {
        let mut again = self.due(now);
        again.retain(|partition| {
            let Some(shard) = self.shards.get_mut(partition).filter(|s| s.phase == Phase::Unread) else { return false };
            shard.phase = Phase::Reading;
            shard.set_due(*partition, None, &mut self.dues);
            true
        });
        again
    }

    /// Appends the queues that waited long enough.
    pub fn append_due(&mut self, now: Now, image: &MetadataImage, replicas: &mut Replicas, cx: &mut Cx<'_>) {
        for partition in self.due(now) {
            if cx.guards.points.fires(Point::StateWriteLingers) {
                if let Some(shard) = self.shards.get_mut(&partition) {
                    shard.set_due(partition, Some(now.mono + LINGERS), &mut self.dues);
                }
                continue;
            }
            self.append_queue(partition, now, image, replicas, cx);
        }
    }

    fn append_queue(
        &mut self,
        partition: PartitionIx,
        now: Now,
        image: &MetadataImage,
        replicas: &mut Replicas,
        cx: &mut Cx<'_>,
    ) {
        let Some(shard) = self.shards.get_mut(&partition) else { return };
        shard.set_due(partition, None, &mut self.dues);
        let mut table = shard.engine.latest().stable().clone();
        let (mut records, mut waiting) = (Vec::new(), Vec::new());
        for op in std::mem::take(&mut shard.queue) {
            // 1. A topic is deleted while a write of its partition waits here. 2. The sweep finds nothing. 3. The write is appended.
            // 4. The topic is copied again, under its source's id: it would begin in the middle of the former one's life.
            let session = session_of(&op.key, image);
            let lives = session.is_some() && is_partition_of(op.write.partition, &op.key, image);
            // 1. A leader's write waits here. 2. Its next term begins, and it asks for the state: it is told what is committed. 3. The
            // write is committed. Nobody acts on it, and nobody knows.
            let term = image.partition(op.write.partition).map_or(LeaderEpoch::NONE, |p| p.state.leader_epoch);
            let planned = if !cx.guards.admits(guard::DeadPartitionsGetNoStates, lives) {
                Err(ErrorCode::UnknownTopicOrPartition)
            } else if !cx.guards.admits(guard::StatesOfPresentTerm, op.write.leader_epoch >= term) {
                Err(ErrorCode::FencedLeaderEpoch)
            } else {
                plan_write(&table, &op.key, &op.write, session, self.attempts_max, cx.guards)
            };
            let result = planned.map(|(new, epoch)| {
                new.iter().for_each(|record| apply(&mut table, record));
                records.extend(new);
                epoch
            });
            waiting.push(Waiting { op, result });
        }
        if let Err(error) = self.append(partition, records, now, image, replicas, cx) {
            for Waiting { op, .. } in waiting {
                self.finish(op, Err(error));
            }
            return;
        }
        for answer in waiting {
            // A refusal waits too: what it was judged by may still be rolled back.
            let ready = self.shards.get_mut(&partition).and_then(|shard| shard.engine.wait(answer));
            if let Some(Waiting { op, result }) = ready {
                self.finish(op, result);
            }
        }
    }

    /// Appends records to a shard's log, and replays them.
    fn append(
        &mut self,
        partition: PartitionIx,
        records: Vec<MirrorRecord>,
        now: Now,
        image: &MetadataImage,
        replicas: &mut Replicas,
        cx: &mut Cx<'_>,
    ) -> Result<(), ErrorCode> {
        if records.is_empty() {
            return Ok(());
        }
        let batch = encode_batch(&records, now);
        let done = replicas.append_local(partition, &batch, Origin::Coordinator, now, cx);
        let Some(shard) = self.shards.get_mut(&partition) else { return Err(ErrorCode::NotCoordinator) };
        match done {
            Ok(info) => {
                debug_assert_eq!(info.base.0, shard.engine.end(), "the log and the engine count alike");
                shard.engine.appended(records);
                self.commit(partition, image, replicas, cx);
                Ok(())
            }
            Err(error) if error.code() == ErrorCode::NotLeaderOrFollower => Err(ErrorCode::NotCoordinator),
            Err(_) => Err(ErrorCode::CoordinatorNotAvailable),
        }
    }

    /// Writes tombstones for everything whose mirror or topic is no more (decision 18). Asked after a load, and when one was
    /// deleted.
    pub fn sweep(&mut self, image: &MetadataImage, now: Now, replicas: &mut Replicas, cx: &mut Cx<'_>) {
        let active: Vec<PartitionIx> =
            self.shards.iter().filter(|(_, s)| s.phase == Phase::Active).map(|(p, _)| *p).collect();
        for partition in active {
            let Some(shard) = self.shards.get(&partition) else { continue };
            let mut strange = false;
            let orphan = |key: &StateKey, record: &StateRecord| {
                // 1. A mirror or a topic is deleted while a shard has no coordinator, or one that hears of it late. 2. It is created
                // again. 3. The shard is read: the states of the first one would be the second one's (C-9).
                let session = session_of(key, image);
                let own = cx.guards.admits(guard::StatesOfThisIncarnation, record.is_of(session));
                strange |= !own;
                session.is_none() || !own
            };
            let records = plan_tombstones(shard.engine.latest().stable(), orphan);
            self.ignores |= strange;
            if !cx.guards.admits(guard::StatesDieWithTheirMirror, records.is_empty()) {
                // Refused appends are made up for by the next leader's sweep.
                let _ = self.append(partition, records, now, image, replicas, cx);
            }
        }
    }

    // ------------------------------------------------------------------------------------------------------------- answers

    fn finish(&mut self, op: Op, result: Result<i32, ErrorCode>) {
        match op.asker {
            Asker::Own => self.written.push(Written { write: op.write, result }),
            Asker::Request(number, at) => self.answer_entry(number, at, result),
            Asker::Nobody => {}
        }
    }

    fn answer_entry(&mut self, number: u32, at: u32, result: Result<i32, ErrorCode>) {
        let Some(request) = self.requests.get_mut(&number) else { return };
        if let Some((_, error, epoch)) = request.answer.parts.get_mut(at as usize) {
            (*error, *epoch) = match result {
                Ok(now) => (ErrorCode::None, now),
                Err(why) => (why, -1),
            };
        }
        self.close_entry(number);
    }

    fn close_entry(&mut self, number: u32) {
        let Some(request) = self.requests.get_mut(&number) else { return };
        request.open -= 1;
        if request.open == 0 {
            if let Some(request) = self.requests.remove(&number) {
                self.answers.push((request.conn, request.correlation, request.answer));
            }
        }
    }

    /// Writes of this broker's manager that ended.
    pub fn take_written(&mut self) -> Vec<Written> {
        std::mem::take(&mut self.written)
    }

    /// Answers for other brokers.
    pub fn take_answers(&mut self) -> Vec<(ConnId, u32, WriteMirrorStatesResponse)> {
        std::mem::take(&mut self.answers)
    }
}

/// The incarnation that a key names now; `None`: its mirror or its topic is no more.
fn session_of(key: &StateKey, image: &MetadataImage) -> Option<Session> {
    Some(Session::of(image.mirror_by_name(&key.mirror)?, image.topic_of(key.topic)?))
}

/// Whether a partition is the one that a key names now.
fn is_partition_of(partition: PartitionIx, key: &StateKey, image: &MetadataImage) -> bool {
    let entry = image.partition(partition);
    entry.is_some_and(|entry| entry.number == key.number && image.topic_of(key.topic) == Some(entry.topic))
}

fn encode_batch(records: &[MirrorRecord], now: Now) -> Bytes {
    let at = now.wall_ms;
    let mut batch = BatchBuilder::new(BatchMeta { base_timestamp: at, ..BatchMeta::default() });
    for record in records {
        let (key, value) = record.encode();
        batch.push(at, Some(&key), value.as_deref());
    }
    batch.finish()
}

fn trace_committed(record: &MirrorRecord, image: &MetadataImage, cx: &mut Cx<'_>) {
    let key = record.key();
    let topic = image.topic_of(key.topic).and_then(|ix| image.topic(ix));
    let Some(&partition) = topic.and_then(|t| t.partitions.get(key.number as usize)) else { return };
    match record {
        MirrorRecord::State(_, Some(r)) => cx.trace(Trace::MirrorStateCommitted {
            partition,
            state: r.state,
            leader_epoch: r.leader_epoch,
            state_epoch: r.state_epoch,
        }),
        MirrorRecord::Position(_, position, _) => {
            let LastPosition { epoch, offset } = position.unwrap_or(LastPosition::CLEAR);
            cx.trace(Trace::MirrorPositionCommitted { partition, epoch, offset });
        }
        MirrorRecord::State(_, None) => cx.trace(Trace::MirrorStateRemoved { partition }),
    }
}

#[cfg(test)]
#[path = "coordinator_tests.rs"]
mod tests;
