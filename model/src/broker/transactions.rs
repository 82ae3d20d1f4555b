//! The transaction coordinator of one broker: the partitions of `__transaction_state` that it leads (KIP-98).
//!
//! A shard is loaded from its log when the broker comes to lead it, and forgotten when it no longer does. A request is
//! planned over the latest state, its record appended, and it is answered when that is committed; a lost leadership rolls
//! back what is not. A decision whose record is committed sets its markers going; when all are written, one more record
//! says that the transaction is over.

use crate::broker::lanes::TRANSACTIONS;
use crate::broker::markers::{Job, Markers};
use crate::coordinator::engine::Engine;
use crate::coordinator::routing::{abs, java_hash, TRANSACTION_TOPIC};
use crate::coordinator::txn_plan::{
    goes_on_with, plan_add, plan_complete, plan_end, plan_init, plan_timeout, End, Init, Txns,
};
use crate::coordinator::txn_records::{Member, TxnRecord, TxnValue};
use crate::guards::{mirror, transactions as guard, Guards};
use crate::ids::{BrokerId, ConnId, LeaderEpoch, Nanos, Now, Offset, PartitionIx, ProducerEpoch, ProducerId, TopicIx};
use crate::metadata::configs::BrokerConfig;
use crate::metadata::image::MetadataImage;
use crate::ports::Cx;
use crate::record::{BatchBuilder, BatchMeta};
use crate::replica::Replicas;
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, Body, EndTxnRequest, EndTxnResponse, InitProducerIdRequest,
    InitProducerIdResponse,
};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A request to be answered: its connection and correlation id.
pub type Asker = (ConnId, u32);

/// What a task of the coordinator works on.
pub struct TxnTask<'a> {
    /// The metadata as far as applied.
    pub image: &'a MetadataImage,
    /// This broker's replicas.
    pub replicas: &'a mut Replicas,
}

/// An answer that waits for its commit, and what it is if the records are lost instead.
#[derive(Clone, Debug)]
struct Waiting {
    asker: Asker,
    answer: Body,
    refusal: Body,
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
    /// The disk did not give the log: it is read again with the next scan.
    Unread,
    /// The log is damaged: this broker is no use as coordinator until the leadership moves.
    Failed,
}

#[derive(Clone, Debug)]
struct Shard {
    epoch: LeaderEpoch,
    phase: Phase,
    engine: Engine<Txns, Waiting>,
}

/// The shards that this broker leads, and their markers.
#[derive(Clone, Debug)]
pub struct Transactions {
    timeout_max_ms: u32,
    /// `transaction.version`.
    version: i16,
    scan_every: Nanos,
    shards: BTreeMap<PartitionIx, Shard>,
    /// Shards with something that is not committed.
    uncommitted: BTreeSet<PartitionIx>,
    loads: VecDeque<PartitionIx>,
    scan_at: Option<Nanos>,
    /// Decisions on their way.
    pub markers: Markers,
    answers: Vec<(ConnId, u32, Body)>,
}

impl Transactions {
    /// Leads nothing yet.
    #[must_use]
    pub fn new(me: BrokerId, config: &BrokerConfig) -> Self {
        Self {
            timeout_max_ms: config.transaction_max_timeout_ms,
            version: config.transaction_version.min(2) as i16,
            scan_every: Nanos::from_millis(config.transaction_abort_timed_out_transaction_cleanup_interval_ms),
            shards: BTreeMap::new(),
            uncommitted: BTreeSet::new(),
            loads: VecDeque::new(),
            scan_at: None,
            markers: Markers::new(me, Nanos::from_millis(config.request_timeout_ms)),
            answers: Vec::new(),
        }
    }

    /// Whether there is nothing to do until something comes.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.uncommitted.is_empty() && self.answers.is_empty() && self.markers.is_idle()
    }

    // ----------------------------------------------------------------------------------------------------------- routing

    /// The partition of `__transaction_state` that holds a transactional id; `None` while the topic does not exist.
    #[must_use]
    pub fn home(id: &str, image: &MetadataImage) -> Option<PartitionIx> {
        let topic = image.topic(image.topic_by_name(TRANSACTION_TOPIC)?)?;
        let number = abs(java_hash(id)) % u32::try_from(topic.partitions.len()).ok()?.max(1);
        topic.partitions.get(number as usize).copied()
    }

    /// Whether a topic is `__transaction_state`.
    #[must_use]
    pub fn is_state_topic(topic: TopicIx, image: &MetadataImage) -> bool {
        image.topic_by_name(TRANSACTION_TOPIC) == Some(topic)
    }

    /// One transactional id as committed, where this broker coordinates it; for those who look in from outside.
    #[must_use]
    pub fn committed(&self, id: &str, image: &MetadataImage) -> Option<&TxnValue> {
        self.shards.get(&Self::home(id, image)?)?.engine.committed().get(id)
    }

    // -------------------------------------------------------------------------------------------------------- leadership

    /// Looks again at a partition of `__transaction_state`: true if its log has to be read ([`Self::load_next`]).
    pub fn look_at(&mut self, partition: PartitionIx, replicas: &Replicas, now: Now, guards: &mut Guards) -> bool {
        let led = replicas.leads(partition);
        if led.is_some() && led == self.shards.get(&partition).map(|shard| shard.epoch) {
            return false;
        }
        self.resign(partition, guards);
        let Some(epoch) = led else { return false };
        let engine = Engine::new(Txns::default(), 0);
        self.shards.insert(partition, Shard { epoch, phase: Phase::Reading, engine });
        self.loads.push_back(partition);
        self.scan_at.get_or_insert(now.mono + self.scan_every);
        true
    }

    /// Forgets a shard; who waits there is refused, what was not committed never happened.
    fn resign(&mut self, partition: PartitionIx, guards: &mut Guards) {
        let Some(mut shard) = self.shards.remove(&partition) else { return };
        self.uncommitted.remove(&partition);
        // Off: they go on, and what they end may be another transaction when this broker coordinates again.
        if !guards.admits(guard::MarkersEndWithTerm, !self.markers.has_any_of(partition)) {
            self.markers.resign(partition);
        }
        let answers = &mut self.answers;
        shard.engine.on_failed(|waiting| answers.push((waiting.asker.0, waiting.asker.1, waiting.refusal)));
    }

    /// Reads the log of the next shard that waits for it; false if none does.
    pub fn load_next(&mut self, task: &mut TxnTask<'_>, cx: &mut Cx<'_>) -> bool {
        let Some(partition) = self.loads.pop_front() else { return false };
        let Some(shard) = self.shards.get_mut(&partition).filter(|shard| shard.phase == Phase::Reading) else {
            return true;
        };
        let Some(log) = task.replicas.log(partition) else {
            shard.phase = Phase::Failed;
            return true;
        };
        let mut engine = Engine::new(Txns::default(), log.start().0);
        let mut bad = false;
        let read = log.for_each_batch(cx.disk, log.start(), |batch| {
            // What rotted on the disk may still parse: a wrong decision would be obeyed as if it were committed (BAD-20).
            // Offsets are not under the checksum.
            let in_place = batch.base_offset().0 >= engine.end() && batch.next_offset() <= log.end();
            if !in_place || !batch.crc_valid() {
                bad = true;
                return;
            }
            for record in batch.records() {
                let parsed = record
                    .ok()
                    .map(|record| (record.offset, TxnRecord::decode(record.key.unwrap_or_default(), record.value)));
                match parsed {
                    Some((offset, Ok(record))) => engine.recovered(offset.0, &record),
                    _ => bad |= !batch.is_control(),
                }
            }
        });
        if read.is_err() && !cx.guards.admits(mirror::FailedLoadIsRepeated, false) {
            shard.phase = Phase::Unread;
            return true;
        }
        if read.is_err() || bad {
            shard.phase = Phase::Failed;
            return true;
        }
        engine.recovered_up_to(log.end().0);
        shard.engine = engine;
        shard.phase = Phase::Committing(log.end());
        self.uncommitted.insert(partition);
        true
    }

    // ---------------------------------------------------------------------------------------------------------- committing

    /// Follows the watermarks of shards that wait for them. Returns whether anything came of it.
    pub fn commit(&mut self, task: &TxnTask<'_>, cx: &mut Cx<'_>) -> bool {
        let waiting: Vec<PartitionIx> = self.uncommitted.iter().copied().collect();
        let before = self.answers.len();
        let mut moved = false;
        for partition in waiting {
            moved |= self.commit_shard(partition, task, cx);
        }
        moved || self.answers.len() > before
    }

    fn commit_shard(&mut self, partition: PartitionIx, task: &TxnTask<'_>, cx: &mut Cx<'_>) -> bool {
        let Some(shard) = self.shards.get_mut(&partition) else { return self.uncommitted.remove(&partition) };
        let Some(log) = task.replicas.log(partition) else { return false };
        let upto = log.high_watermark();
        let taken_up = match shard.phase {
            Phase::Committing(end) if upto >= end => {
                shard.phase = Phase::Active;
                true
            }
            Phase::Active => false,
            // Answers come only from a shard that knows all that was ever committed.
            _ => return false,
        };
        if !taken_up && shard.engine.committed_end() >= upto.0 {
            return false;
        }
        let (mut decided, answers) = (Vec::new(), &mut self.answers);
        shard.engine.on_committed(
            upto.0,
            |_, _, record| {
                decided.extend(record.value.as_ref().map(|value| (record.id.clone(), value.clone())));
            },
            |waiting: Waiting| answers.push((waiting.asker.0, waiting.asker.1, waiting.answer)),
        );
        if taken_up && !cx.guards.admits(guard::PreparedTakenUp, false) {
            let prepared = shard.engine.committed().iter().filter(|(_, value)| value.state.decision().is_some());
            decided = prepared.map(|(id, value)| (id.clone(), value.clone())).collect();
        }
        if shard.engine.committed_end() >= shard.engine.end() {
            self.uncommitted.remove(&partition);
        }
        let epoch = shard.epoch;
        for (id, value) in decided {
            trace_committed(&value, epoch, cx);
            self.send_markers(partition, epoch, id, &value);
        }
        true
    }

    fn send_markers(&mut self, home: PartitionIx, epoch: LeaderEpoch, id: Arc<str>, value: &TxnValue) {
        if let Some(commit) = value.state.decision() {
            self.markers.begin(home, id, value, commit, epoch.0);
        }
    }

    // ------------------------------------------------------------------------------------------------------------ requests

    fn active(&self, id: &str, image: &MetadataImage) -> Result<PartitionIx, ErrorCode> {
        let home = Self::home(id, image).ok_or(ErrorCode::NotCoordinator)?;
        let shard = self.shards.get(&home).ok_or(ErrorCode::NotCoordinator)?;
        match shard.phase {
            Phase::Active => Ok(home),
            Phase::Unread | Phase::Failed => Err(ErrorCode::CoordinatorNotAvailable),
            Phase::Reading | Phase::Committing(_) => Err(ErrorCode::CoordinatorLoadInProgress),
        }
    }

    fn latest(&self, home: PartitionIx, id: &str) -> Option<&TxnValue> {
        self.shards.get(&home)?.engine.latest().get(id)
    }

    /// InitProducerId with a transactional id. `fresh` is a producer id that nobody has; true: one is needed, ask again.
    pub fn init(
        &mut self,
        asker: Asker,
        request: &InitProducerIdRequest,
        fresh: Option<ProducerId>,
        now: Now,
        task: &mut TxnTask<'_>,
        cx: &mut Cx<'_>,
    ) -> bool {
        let id = request.transactional_id.clone().unwrap_or_default();
        let planned = if id.is_empty() {
            Err(ErrorCode::InvalidRequest)
        } else if request.timeout_ms == 0 || request.timeout_ms > self.timeout_max_ms {
            Err(ErrorCode::InvalidTransactionTimeout)
        } else {
            self.active(&id, task.image).and_then(|home| {
                let expected = (request.producer != ProducerId::NONE).then_some((request.producer, request.epoch));
                let known = self.latest(home, &id);
                let plan = plan_init(known, request.timeout_ms, expected, fresh, self.version, now.wall_ms, cx.guards)?;
                Ok((home, plan))
            })
        };
        match planned {
            Ok((_, Init::NeedsId)) => return true,
            Ok((home, Init::Granted(value))) => {
                let answer = granted(value.producer, value.epoch);
                self.write(home, id, Some(value), asker, answer, id_refused, now, task, cx);
            }
            Ok((home, Init::Again(producer, epoch))) => {
                self.write(home, id, None, asker, granted(producer, epoch), id_refused, now, task, cx);
            }
            Ok((home, Init::Abort(value))) => {
                let answer = id_refused(ErrorCode::ConcurrentTransactions);
                self.write(home, id, Some(value), asker, answer, id_refused, now, task, cx);
            }
            Err(error) => self.answers.push((asker.0, asker.1, id_refused(error))),
        }
        false
    }

    /// AddPartitionsToTxn, of partitions that exist and may be written to.
    pub fn add(
        &mut self,
        asker: Asker,
        request: &AddPartitionsToTxnRequest,
        members: &[Member],
        now: Now,
        task: &mut TxnTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        let all = |error| -> Body {
            AddPartitionsToTxnResponse { parts: request.parts.iter().map(|part| (*part, error)).collect() }.into()
        };
        let id = &request.transactional_id;
        let of = (request.producer, request.epoch);
        let planned = self
            .active(id, task.image)
            .and_then(|home| Ok((home, plan_add(self.latest(home, id), of, members, now.wall_ms, cx.guards)?)));
        match planned {
            Ok((home, value)) => {
                self.write(home, id.clone(), value, asker, all(ErrorCode::None), all, now, task, cx);
            }
            Err(error) => self.answers.push((asker.0, asker.1, all(error))),
        }
    }

    /// EndTxn. `fresh` is a producer id that nobody has; true: one is needed, ask again.
    pub fn end(
        &mut self,
        asker: Asker,
        request: &EndTxnRequest,
        fresh: Option<ProducerId>,
        now: Now,
        task: &mut TxnTask<'_>,
        cx: &mut Cx<'_>,
    ) -> bool {
        let id = &request.transactional_id;
        let (of, commit) = ((request.producer, request.epoch), request.commit);
        let planned = self.active(id, task.image).and_then(|home| {
            let known = self.latest(home, id);
            Ok((home, plan_end(known, of, commit, fresh, self.version, now.wall_ms, cx.guards)?))
        });
        match planned {
            Ok((_, End::NeedsId)) => return true,
            Ok((home, End::Decided(value))) => {
                let answer = ended(goes_on_with(&value));
                self.write(home, id.clone(), Some(value), asker, answer, end_refused, now, task, cx);
            }
            Ok((home, End::Again(producer, epoch))) => {
                self.write(home, id.clone(), None, asker, ended((producer, epoch)), end_refused, now, task, cx);
            }
            Err(error) => self.answers.push((asker.0, asker.1, end_refused(error))),
        }
        false
    }

    /// Appends a state, if there is one to append, and answers when everything that was seen is committed.
    #[allow(clippy::too_many_arguments)] // what is written, for whom, and the handles
    fn write(
        &mut self,
        home: PartitionIx,
        id: Arc<str>,
        value: Option<TxnValue>,
        asker: Asker,
        answer: Body,
        refuse: impl Fn(ErrorCode) -> Body,
        now: Now,
        task: &mut TxnTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        if let Some(value) = value {
            if let Err(error) = self.append(home, TxnRecord { id, value: Some(value) }, now, task, cx) {
                return self.answers.push((asker.0, asker.1, refuse(error)));
            }
        }
        let waiting = Waiting { asker, answer, refusal: refuse(ErrorCode::NotCoordinator) };
        let ready = self.shards.get_mut(&home).and_then(|shard| shard.engine.wait(waiting));
        self.answers.extend(ready.map(|waiting| (asker.0, asker.1, waiting.answer)));
    }

    /// Appends a record to a shard's log, and replays it.
    fn append(
        &mut self,
        home: PartitionIx,
        record: TxnRecord,
        now: Now,
        task: &mut TxnTask<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), ErrorCode> {
        let Some(shard) = self.shards.get_mut(&home) else { return Err(ErrorCode::NotCoordinator) };
        // Appended under another epoch than the one that the shard was loaded in, it would be another coordinator's.
        if task.replicas.leads(home) != Some(shard.epoch) {
            return Err(ErrorCode::NotCoordinator);
        }
        match task.replicas.append_coordinated(home, &encode_batch(&record, now), now, cx) {
            Ok(info) => {
                debug_assert_eq!(info.base.0, shard.engine.end(), "the log and the engine count alike");
                let early = record.value.clone().filter(|value| value.state.decision().is_some());
                let (id, epoch) = (record.id.clone(), shard.epoch);
                shard.engine.appended(vec![record]);
                self.uncommitted.insert(home);
                // The mutant: the decision is not certain yet, and a rollback takes it back.
                if let Some(value) = early.filter(|_| cx.guards.admits(guard::MarkersAfterDecision, false)) {
                    self.send_markers(home, epoch, id, &value);
                }
                Ok(())
            }
            Err(error) if error.code() == ErrorCode::NotLeaderOrFollower => Err(ErrorCode::NotCoordinator),
            Err(_) => Err(ErrorCode::CoordinatorNotAvailable),
        }
    }

    // -------------------------------------------------------------------------------------------------- the end, and time

    /// Every marker of a transaction was written: it is over.
    pub fn complete(&mut self, job: Job, now: Now, task: &mut TxnTask<'_>, cx: &mut Cx<'_>) {
        let Some(shard) = self.shards.get(&job.home) else { return };
        let known = shard.engine.latest().get(&job.id);
        let of = (job.producer, job.epoch);
        let Some(value) = plan_complete(known, of, job.commit, now.wall_ms, cx.guards) else { return };
        let record = TxnRecord { id: job.id.clone(), value: Some(value) };
        // What another coordinator took over it finds prepared; what this one cannot write now it writes later.
        if self.append(job.home, record, now, task, cx) == Err(ErrorCode::CoordinatorNotAvailable) {
            self.markers.note_again(job, now);
        }
    }

    /// Aborts what is open for too long, if it is time to look for that.
    pub fn scan(&mut self, now: Now, task: &mut TxnTask<'_>, cx: &mut Cx<'_>) {
        if self.scan_at.is_none_or(|at| at > now.mono) {
            return;
        }
        self.scan_at = (!self.shards.is_empty()).then_some(now.mono + self.scan_every);
        for (home, shard) in self.shards.iter_mut().filter(|(_, shard)| shard.phase == Phase::Unread) {
            shard.phase = Phase::Reading;
            self.loads.push_back(*home);
            cx.wake(TRANSACTIONS);
        }
        let mut late = Vec::new();
        for (home, shard) in self.shards.iter().filter(|(_, shard)| shard.phase == Phase::Active) {
            for (id, value) in shard.engine.latest().iter() {
                late.extend(
                    plan_timeout(value, self.version, now.wall_ms, cx.guards).map(|value| (*home, id.clone(), value)),
                );
            }
        }
        for (home, id, value) in late {
            let (producer, epoch) = (value.producer, value.epoch);
            if self.append(home, TxnRecord { id, value: Some(value) }, now, task, cx).is_ok() {
                cx.trace(Trace::TxnTimedOut { producer, epoch });
            }
        }
    }

    /// When something is to be looked at.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.scan_at.into_iter().chain(self.markers.next_deadline()).min()
    }

    /// Answers that may go out.
    pub fn take_answers(&mut self) -> Vec<(ConnId, u32, Body)> {
        std::mem::take(&mut self.answers)
    }
}

fn granted(producer: ProducerId, epoch: ProducerEpoch) -> Body {
    InitProducerIdResponse { error: ErrorCode::None, producer, epoch }.into()
}

/// The answer to an InitProducerId that is refused.
pub(crate) fn id_refused(error: ErrorCode) -> Body {
    InitProducerIdResponse { error, producer: ProducerId::NONE, epoch: ProducerEpoch(-1) }.into()
}

fn ended((producer, epoch): (ProducerId, ProducerEpoch)) -> Body {
    EndTxnResponse { error: ErrorCode::None, producer, epoch }.into()
}

/// The answer to an EndTxn that is refused.
pub(crate) fn end_refused(error: ErrorCode) -> Body {
    EndTxnResponse { error, ..EndTxnResponse::default() }.into()
}

fn encode_batch(record: &TxnRecord, now: Now) -> Bytes {
    let at = now.wall_ms;
    let mut batch = BatchBuilder::new(BatchMeta { base_timestamp: at, ..BatchMeta::default() });
    let (key, value) = record.encode();
    batch.push(at, Some(&key), value.as_deref());
    batch.finish()
}

fn trace_committed(value: &TxnValue, coordinator_epoch: LeaderEpoch, cx: &mut Cx<'_>) {
    use crate::coordinator::txn_records::TxnState as S;
    let (producer, epoch) = (value.producer, value.epoch);
    match value.state {
        S::PrepareCommit | S::PrepareAbort => {
            let commit = value.state == S::PrepareCommit;
            cx.trace(Trace::TxnDecided { producer, epoch, coordinator_epoch, commit });
        }
        S::CompleteCommit | S::CompleteAbort => {
            cx.trace(Trace::TxnCompleted { producer, epoch, commit: value.state == S::CompleteCommit });
        }
        S::Empty | S::Ongoing => {}
    }
}
