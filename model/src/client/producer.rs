//! A producer with its own load: takes records as they fall due, batches them, sends them to the leaders, retries in order,
//! and tells exactly once per record what became of it (KIP-98, KIP-360, KIP-91).
//!
//! A record's identity ([`crate::record::Identity`]) counts up over the whole producer in the order batches are first sent,
//! so a batch is a contiguous range of it. `Sent` is told with the first sending; then follows one of `Acked`, `Nacked`
//! (surely not in the log) and `Undecided` (may be).

use crate::client::accumulator::{Accumulator, Batch, Head};
use crate::client::cluster::{Cluster, ClusterConfig, ClusterEvent};
use crate::client::connections::ChannelStatus;
use crate::client::door::{earlier, Door};
use crate::client::generator::{Generator, GeneratorConfig};
use crate::client::idempotence::{advance, restamp, IdState, Idempotence};
use crate::client::latency::Latency;
use crate::client::transactions::{TransactionConfig, Transactional, TxnAsked};
use crate::guards::client;
use crate::guards::points::Point;
use crate::ids::{BrokerId, LeaderEpoch, Nanos, NodeId, Now, Offset, PartitionIx, ProducerEpoch, ProducerId};
use crate::ports::{Cx, Input, Lane};
use crate::record::{BatchBuilder, BatchMeta, Identity, HEADER_LEN};
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{InitProducerIdRequest, ProducePart, ProduceRequest};
use bytes::{Bytes, BytesMut};
use std::sync::Arc;

/// A producer; names and defaults as in Kafka's producer configs where they have one.
#[derive(Clone, Debug, PartialEq)]
pub struct ProducerConfig {
    /// Unique in the run; in every record it writes.
    pub number: u32,
    /// The cluster and its times. `topics` is overwritten by [`Self::topics`].
    pub cluster: ClusterConfig,
    /// Where to.
    pub topics: Vec<Arc<str>>,
    /// How much.
    pub load: GeneratorConfig,
    /// 0, 1 or −1 (all).
    pub acks: i16,
    /// `enable.idempotence`; taken only with acks −1.
    pub idempotent: bool,
    /// It writes in transactions; taken only of an idempotent producer.
    pub transactions: Option<TransactionConfig>,
    /// `linger.ms`: the period of the ticks at which due records are taken.
    pub linger: Nanos,
    /// `batch.size`, in bytes; at least one record fits.
    pub batch_bytes: u32,
    /// `max.request.size`, in bytes.
    pub max_request_bytes: u32,
    /// `buffer.memory`, in bytes of record values: with so much undecided, due records wait with the generator.
    pub buffer_bytes: u64,
    /// `delivery.timeout.ms`.
    pub delivery_timeout: Nanos,
    /// `retry.backoff.ms`, doubled with every attempt.
    pub retry_backoff: Nanos,
    /// `retry.backoff.max.ms`.
    pub retry_backoff_max: Nanos,
    /// The first producer sequence of every partition, to start near the wrap (T14).
    pub first_sequence: i32,
    /// The first identity sequence: what an earlier life of this producer number did not reach.
    pub first_identity: u64,
}

impl ProducerConfig {
    /// Idempotent, acks all, no linger but 10 ms ticks, everything else as Kafka's defaults.
    #[must_use]
    pub fn new(number: u32, bootstrap: Vec<NodeId>, topics: Vec<Arc<str>>, load: GeneratorConfig) -> Self {
        Self {
            number,
            cluster: ClusterConfig::new(bootstrap, None),
            topics,
            load,
            acks: -1,
            idempotent: true,
            transactions: None,
            linger: Nanos::from_millis(10),
            batch_bytes: 16_384,
            max_request_bytes: 1 << 20,
            buffer_bytes: 32 << 20,
            delivery_timeout: Nanos::from_secs(120),
            retry_backoff: Nanos::from_millis(100),
            retry_backoff_max: Nanos::from_secs(1),
            first_sequence: 0,
            first_identity: 0,
        }
    }
}

/// Records by what became of them. `sent` is the sum of the others and of what is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProducerCounts {
    /// Told as sent.
    pub sent: u64,
    /// Acknowledged.
    pub acked: u64,
    /// Refused for good, or given up before the first sending: surely not in the log.
    pub nacked: u64,
    /// Given up after a sending whose end is not known.
    pub undecided: u64,
    /// Batches sent again.
    pub retries: u64,
    /// Epoch bumps.
    pub bumps: u64,
    /// Produce requests.
    pub requests: u64,
    /// Transactions that it was told to be committed.
    pub committed: u64,
    /// Transactions that it was told to be aborted.
    pub aborted: u64,
}

/// What a request in flight left.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Asked {
    /// Batches, in the order of the request.
    Produce {
        batches: Vec<Batch>,
        oldest: Nanos,
    },
    InitProducerId,
    /// The transaction coordinator.
    Transaction(TxnAsked),
}

/// The process.
#[derive(Clone, Debug, PartialEq)]
pub struct Producer {
    pub(super) config: ProducerConfig,
    pub(super) cluster: Cluster<Asked>,
    door: Door,
    generator: Generator,
    next_tick: Option<Nanos>,
    pub(super) held: Accumulator,
    pub(super) ids: Idempotence,
    pub(super) txn: Option<Transactional>,
    next_identity: u64,
    batch_max: u32,
    buffer_max: u64,
    next_sweep: Nanos,
    arena_hint: usize,
    pub(super) counts: ProducerCounts,
    pub(super) latency: Latency,
    /// Brokers whose channel is down, while something waits for them.
    channel_wait: Option<Nanos>,
}

/// Bytes of a record beside its value and key: lengths, deltas, attributes, headers; an upper bound.
const RECORD_OVERHEAD: u32 = 24;

impl Producer {
    /// Starts the process.
    pub fn boot(mut config: ProducerConfig, now: Now, cx: &mut Cx) -> Self {
        config.cluster.topics = Some(config.topics.clone());
        config.idempotent &= config.acks == -1;
        let cluster = Cluster::new(config.cluster.clone(), cx);
        let record = config.load.record_bytes.max(crate::record::identity::IDENTITY_LEN as u32) + RECORD_OVERHEAD;
        let batch_max = (config.batch_bytes.saturating_sub(HEADER_LEN as u32) / record).max(1);
        let buffer_max = (config.buffer_bytes / u64::from(record)).max(u64::from(batch_max));
        let mut producer = Self {
            generator: Generator::new(config.load, config.linger),
            ids: Idempotence::new(config.idempotent),
            txn: config.transactions.clone().filter(|_| config.idempotent).map(Transactional::new),
            next_identity: config.first_identity,
            cluster,
            config,
            door: Door::default(),
            next_tick: None,
            held: Accumulator::default(),
            batch_max,
            buffer_max,
            next_sweep: now.mono,
            arena_hint: 0,
            counts: ProducerCounts::default(),
            latency: Latency::default(),
            channel_wait: None,
        };
        if producer.txn.is_some() {
            // Taking over a transactional id fences whoever had it: not before there is something to do.
            producer.ids.state = IdState::Wanted(producer.config.load.start);
        }
        producer.door.wake(cx);
        producer
    }

    /// Files an input.
    pub fn accept(&mut self, _now: Now, input: Input, cx: &mut Cx) {
        self.door.accept(input, cx);
    }

    /// One poll: inputs, what is due, what can be sent.
    pub fn run(&mut self, now: Now, _lane: Lane, cx: &mut Cx) {
        let mut events = self.door.poll(|input| self.cluster.on_input(now, input, cx));
        self.cluster.set_quiet(self.is_idle(now));
        if cx.guards.points.fires(Point::ClientRefreshes) {
            self.cluster.want_refresh();
        }
        self.cluster.poll(now, cx, &mut events);
        for event in events {
            self.on_event(now, event, cx);
        }
        self.generate(now, cx);
        self.sweep(now, cx);
        self.bump_if_asked(now, cx);
        self.held.wake_delayed(now.mono, &self.cluster.view);
        self.ask_for_id(now, cx);
        self.send(now, cx);
        self.transact(now, cx);
        self.cluster.set_quiet(self.is_idle(now));
        self.cluster.ask(now, cx);
        self.arm(now, cx);
    }

    fn on_event(&mut self, now: Now, event: ClusterEvent<Asked>, cx: &mut Cx) {
        match event {
            ClusterEvent::Opened(_) => {}
            ClusterEvent::Metadata { changed } => {
                let topics = &self.config.topics;
                let (first, generation) = (self.config.first_sequence, self.ids.generation);
                if self.held.set_topics(topics, &self.cluster.view, first, generation) {
                    self.generator.set_partitions(self.held.slots.len() as u32, now.mono);
                    self.next_tick = self.generator.next_tick(now.mono);
                }
                self.leaders_changed(&changed);
            }
            ClusterEvent::Lost { node, failed } => {
                self.coordinator_lost(node, now);
                for asked in failed {
                    self.on_silence(now, asked, cx);
                }
            }
            ClusterEvent::Answer { token, body, .. } => self.on_answer(now, token, body, cx),
        }
    }

    pub(super) fn leaders_changed(&mut self, changed: &[PartitionIx]) {
        for &partition in changed {
            self.held.on_leader_change(partition, &self.cluster.view);
        }
    }

    // ------------------------------------------------------------------------------------------------------ the load

    fn generate(&mut self, now: Now, cx: &mut Cx) {
        // What found no room in a transaction comes as soon as there is one.
        let due = self.next_tick.is_some_and(|at| at <= now.mono) || self.txn.is_some();
        if !due || matches!(self.ids.state, IdState::Refused(_)) {
            return;
        }
        let mut room = self.buffer_max.saturating_sub(self.held.held());
        if let Some(txn) = &self.txn {
            room = room.min(txn.room(self.ids.state));
        }
        let count = self.generator.due(now.mono).min(room);
        if count > 0 {
            self.begin_transaction(count, now, cx);
            let (held, view, batch_max) = (&mut self.held, &self.cluster.view, self.batch_max);
            self.generator.take(count, cx.entropy, |slot, n| held.add(slot, n, batch_max, now.mono, view));
        }
        self.next_tick = self.generator.next_tick(now.mono);
    }

    /// So many records are due now, beside the load's schedule: a script's burst.
    pub fn produce_now(&mut self, records: u64, now: Now, cx: &mut Cx) {
        self.generator.add(records);
        self.next_tick = Some(now.mono);
        self.door.wake(cx);
    }

    fn ask_for_id(&mut self, now: Now, cx: &mut Cx) {
        if self.txn.is_some() || !matches!(self.ids.state, IdState::Wanted(at) if at <= now.mono) {
            return;
        }
        let Some(node) = self.cluster.any_ready(now, cx) else { return };
        let none = InitProducerIdRequest {
            transactional_id: None,
            timeout_ms: 60_000,
            producer: ProducerId::NONE,
            epoch: ProducerEpoch(-1),
        };
        if self.cluster.send(now, node, none.into(), Asked::InitProducerId, cx) {
            self.ids.state = IdState::Asked;
        }
    }

    // ------------------------------------------------------------------------------------------------------- sending

    fn send(&mut self, now: Now, cx: &mut Cx) {
        self.channel_wait = None;
        if !self.ids.is_ready() {
            return;
        }
        if !self.cluster.is_refresh_wanted() {
            for partition in self.held.homeless() {
                self.cluster.want_refresh_of(partition);
            }
        }
        for broker in self.held.brokers() {
            if broker == BrokerId::NONE || self.held.queue_len(broker) == 0 {
                continue;
            }
            let Some(node) = self.cluster.node(broker) else { continue };
            loop {
                match self.cluster.channels.ensure(now, node, cx) {
                    ChannelStatus::Ready => {}
                    ChannelStatus::Down(until) => {
                        self.channel_wait = earlier(self.channel_wait, Some(until));
                        break;
                    }
                    ChannelStatus::Busy | ChannelStatus::Opening => break,
                }
                if !self.send_request(now, broker, node, cx) {
                    break;
                }
            }
        }
    }

    /// Sends one request to a broker: at most one batch per partition, up to the request's size. False if nothing was left.
    fn send_request(&mut self, now: Now, broker: BrokerId, node: NodeId, cx: &mut Cx) -> bool {
        let mut request = Building::new(self.arena_hint);
        for _ in 0..self.held.queue_len(broker) {
            if request.size() >= self.config.max_request_bytes as usize {
                break;
            }
            let Some(slot) = self.held.pop(broker) else { break };
            // A slot whose records were refused stands in the queue still: nothing is asked for it.
            let works = self.held.slots[slot as usize].has_work();
            if let Some(txn) = &mut self.txn {
                if !works || !txn.may_write(slot, cx) {
                    continue;
                }
            }
            let ordered = self.config.cluster.channel.max_in_flight == 1;
            match self.held.head(slot, now.mono, &self.ids, ordered, cx.guards) {
                Head::Retry => {
                    if let Some(batch) = self.retried(slot, cx) {
                        request.again(batch);
                    }
                }
                Head::New => self.build(slot, now, &mut request, cx),
                Head::Delayed(until) => self.held.delay(slot, until),
                Head::Blocked | Head::Empty => continue,
            }
            // What is left of the slot goes with a later request; the leader was right a moment ago.
            self.held.enqueue(slot, &self.cluster.view);
        }
        if request.batches.is_empty() {
            return false;
        }
        self.arena_hint = request.arena.len().next_power_of_two().min(1 << 20);
        let batches = request.finish();
        self.launch(now, node, batches, cx);
        true
    }

    /// Makes a new batch of a slot at the end of the request's arena.
    fn build(&mut self, slot: u32, now: Now, request: &mut Building, cx: &mut Cx) {
        let idempotent = self.ids.is_on();
        let generation = self.ids.generation;
        let stale = self.held.slots[slot as usize].generation != generation;
        let Some((run, ordinal)) = self.held.take_new(slot, self.batch_max) else { return };
        let s = &mut self.held.slots[slot as usize];
        if stale {
            // T11: this partition had nothing in flight at the bump; its sequences start again all the same.
            if !cx.guards.admits(client::ProducerResetsAllSequences, s.next_sequence == 0) {
                (s.next_sequence, s.acked_next) = (0, 0);
            }
            s.generation = generation;
        }
        let base_sequence = if idempotent { s.next_sequence } else { -1 };
        if idempotent {
            s.next_sequence = advance(base_sequence, run.count, cx.guards);
        }
        let (partition, number) = (s.partition, s.number);
        let first = self.next_identity;
        self.next_identity += u64::from(run.count);
        let meta = BatchMeta {
            base_offset: Offset::ZERO,
            leader_epoch: LeaderEpoch::NONE,
            producer: self.ids.producer,
            producer_epoch: self.ids.epoch,
            base_sequence,
            transactional: self.txn.is_some(),
            base_timestamp: now.wall_ms,
            ..BatchMeta::default()
        };
        request.new_batch(meta, |builder| {
            let load = &self.config.load;
            for n in first..first + u64::from(run.count) {
                let identity = Identity { producer: self.config.number, sequence: n };
                let key = ((u64::from(number) << 32) | (n % u64::from(load.keys.max(1)))).to_be_bytes();
                let key = (load.keys > 0).then_some(&key[..]);
                let every = u64::from(load.tombstone_every);
                if every > 0 && n % every == every - 1 {
                    builder.push(now.wall_ms, key, None);
                } else {
                    builder.push_identity(now.wall_ms, key, identity, load.record_bytes as usize);
                }
            }
        });
        request.batches.push(Batch {
            slot,
            partition,
            ordinal,
            first,
            count: run.count,
            base_sequence,
            generation,
            producer: self.ids.producer,
            epoch: self.ids.epoch,
            stamped: generation,
            created: run.created,
            not_before: Nanos::ZERO,
            attempts: 0,
            uncertain: false,
            decided: false,
            bytes: Bytes::new(),
        });
        self.counts.sent += u64::from(run.count);
        cx.trace(Trace::Sent { partition, producer: self.config.number, first, count: run.count });
    }

    /// The first batch of a slot to be sent again, under the identity it has now.
    fn retried(&mut self, slot: u32, cx: &mut Cx) -> Option<Batch> {
        let mut batch = self.held.take_retry(slot)?;
        self.counts.retries += 1;
        batch.partition = self.held.slots[slot as usize].partition;
        // Without the guard a retry is numbered as if it were new: the broker cannot know it again (T19's client side).
        if self.ids.is_on() && cx.guards.admits(client::RetryKeepsSequence, false) {
            let s = &mut self.held.slots[slot as usize];
            batch.renumber(s.next_sequence, &self.ids);
            s.generation = self.ids.generation;
            s.next_sequence = advance(batch.base_sequence, batch.count, cx.guards);
            batch.stamped = batch.generation.wrapping_sub(1);
        }
        if batch.stamped != batch.generation {
            batch.bytes = restamp(&batch.bytes, batch.producer, batch.epoch, batch.base_sequence);
            batch.stamped = batch.generation;
        }
        Some(batch)
    }

    fn launch(&mut self, now: Now, node: NodeId, mut batches: Vec<Batch>, cx: &mut Cx) {
        self.counts.requests += 1;
        let mut topic_groups = 0;
        let mut last_topic = u32::MAX;
        let mut parts = Vec::with_capacity(batches.len());
        let mut oldest = now.mono;
        for batch in &mut batches {
            let topic = self.held.slots[batch.slot as usize].topic;
            topic_groups += u32::from(topic != last_topic);
            last_topic = topic;
            batch.attempts += 1;
            oldest = oldest.min(batch.created);
            parts.push(ProducePart { partition: batch.partition, batches: batch.bytes.clone() });
        }
        let transactional_id = self.txn.as_ref().map(|txn| txn.id().clone());
        let timeout_ms = self.config.cluster.channel.request_timeout.as_millis() as u32;
        let request = ProduceRequest { transactional_id, acks: self.config.acks, timeout_ms, topic_groups, parts };
        if self.config.acks == 0 {
            self.cluster.channels.send_unanswered(node, request.into(), cx);
            for batch in batches {
                self.ack(now, &batch, Offset::UNKNOWN, cx);
            }
            return;
        }
        for batch in &batches {
            self.held.launch(batch.slot, batch.ordinal);
        }
        // The caller saw the channel ready, so this is never refused.
        let sent = self.cluster.send(now, node, request.into(), Asked::Produce { batches, oldest }, cx);
        debug_assert!(sent, "a ready channel refused a request");
    }

    // -------------------------------------------------------------------------------------------------------- the end

    /// Gives up what is older than the delivery timeout: undecided if a sending may have arrived, else surely not written.
    fn sweep(&mut self, now: Now, cx: &mut Cx) {
        if self.held.held() == 0 || now.mono < self.next_sweep {
            return;
        }
        let timeout = self.config.delivery_timeout;
        let Some(limit) = now.mono.0.checked_sub(timeout.0).map(Nanos) else {
            self.next_sweep = timeout;
            return;
        };
        let mut oldest = now.mono;
        let mut expired = Vec::new();
        let mut slots = self.held.busy_slots();
        for token in self.cluster.own_tokens_mut() {
            let Asked::Produce { batches, oldest: first } = token else { continue };
            slots.extend(batches.iter().map(|b| b.slot));
            if *first > limit {
                oldest = oldest.min(*first);
                continue;
            }
            *first = now.mono;
            for batch in batches.iter_mut().filter(|b| !b.decided) {
                if batch.created <= limit {
                    batch.decided = true;
                    expired.push((Batch { bytes: Bytes::new(), uncertain: true, ..batch.clone() }, true));
                } else {
                    *first = (*first).min(batch.created);
                }
            }
            oldest = oldest.min(*first);
        }
        expired.extend(self.held.expire_retries(limit).into_iter().map(|b| (b, false)));
        for batch in self.held.retries_mut() {
            oldest = oldest.min(batch.created);
        }
        for (batch, on_wire) in expired {
            if on_wire {
                self.held.land(batch.slot, batch.ordinal);
            }
            self.give_up(&batch, cx);
        }
        slots.sort_unstable();
        slots.dedup();
        for slot in slots {
            while let Some(count) = self.held.expire_run(slot, limit) {
                self.give_up_unsent(slot, count, cx);
            }
            oldest = self.held.oldest_run(slot).map_or(oldest, |run| run.min(oldest));
        }
        // Everything that comes later is younger; but no oftener than each 100 ms.
        self.next_sweep = (oldest + timeout).max(now.mono + Nanos::from_millis(100));
    }

    fn give_up_unsent(&mut self, slot: u32, count: u32, cx: &mut Cx) {
        self.fail_transaction(ErrorCode::RequestTimedOut, false, cx);
        let partition = self.held.slots[slot as usize].partition;
        let (producer, first) = (self.config.number, self.next_identity);
        self.next_identity += u64::from(count);
        self.counts.sent += u64::from(count);
        self.counts.nacked += u64::from(count);
        cx.trace(Trace::Sent { partition, producer, first, count });
        cx.trace(Trace::Nacked { partition, producer, first, count, error: ErrorCode::RequestTimedOut as i16 });
    }

    /// Refuses all that waits unsent: the producer was refused for good.
    pub(super) fn drop_waiting(&mut self, cx: &mut Cx) {
        for slot in 0..self.held.slots.len() as u32 {
            while let Some(count) = self.held.expire_run(slot, Nanos(u64::MAX)) {
                self.give_up_unsent(slot, count, cx);
            }
        }
        for batch in self.held.expire_retries(Nanos(u64::MAX)) {
            self.give_up(&batch, cx);
        }
    }

    fn arm(&mut self, now: Now, cx: &mut Cx) {
        if self.is_idle(now) {
            return;
        }
        let full =
            self.held.held() >= self.buffer_max || self.txn.as_ref().is_some_and(|t| t.room(self.ids.state) == 0);
        let in_transactions = self.txn.is_some();
        let mut at = if full { None } else { self.next_tick };
        if self.held.held() > 0 {
            at = earlier(at, Some(self.next_sweep));
        }
        at = earlier(at, self.held.next_delayed());
        at = earlier(at, self.channel_wait);
        at = earlier(at, self.transaction_wakeup(now));
        if let (IdState::Wanted(since), false) = (self.ids.state, in_transactions) {
            let retry = if since > now.mono { since } else { self.cluster.channel_wait(now) };
            at = earlier(at, Some(retry));
        }
        at = earlier(at, self.cluster.next_wakeup(now));
        self.door.want(at, now, cx);
    }

    // ------------------------------------------------------------------------------------------------------ read-only

    /// Records by what became of them.
    #[must_use]
    pub fn counts(&self) -> ProducerCounts {
        self.counts
    }
    /// Time from the tick at which a batch's first record was taken to its acknowledgement, once per record.
    #[must_use]
    pub fn latency(&self) -> &Latency {
        &self.latency
    }
    /// Whether nothing is open and nothing will come: no timer is armed any more.
    #[must_use]
    pub fn is_idle(&self, now: Now) -> bool {
        let refused = matches!(self.ids.state, IdState::Refused(_));
        let between = self.txn.as_ref().is_none_or(Transactional::is_idle);
        self.held.held() == 0 && between && (refused || self.generator.is_over(now.mono))
    }
    /// Whether no record will come by itself any more.
    pub(super) fn generator_is_over(&self, now: Now) -> bool {
        self.generator.is_over(now.mono)
    }
    /// Records taken and not decided yet.
    #[must_use]
    pub fn open_records(&self) -> u64 {
        self.held.held()
    }
    /// When every record that it takes has timed out at the latest, by its clock; `None` if more of them come without an end, or if
    /// transactions have times of their own.
    #[must_use]
    pub fn decided_by(&self) -> Option<Nanos> {
        let stop = self.config.load.stop.filter(|_| self.txn.is_none())?;
        Some(stop + self.config.delivery_timeout)
    }
    /// Records that are due and wait with the generator because the buffer is full.
    #[must_use]
    pub fn backlog(&self, now: Now) -> u64 {
        self.generator.due(now.mono)
    }
    /// The first identity sequence not given to a record yet; a next life of this number starts here.
    #[must_use]
    pub fn next_identity(&self) -> u64 {
        self.next_identity
    }
    /// Producer id and epoch at the brokers, and where they stand.
    #[must_use]
    pub fn identity(&self) -> (ProducerId, ProducerEpoch, IdState) {
        (self.ids.producer, self.ids.epoch, self.ids.state)
    }
    /// Its number.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.config.number
    }
}

/// A request that is being made: one arena for all its new batches.
struct Building {
    arena: BytesMut,
    batches: Vec<Batch>,
    /// Where each new batch ends in the arena, with its place in `batches`.
    ends: Vec<(u32, u32)>,
    again: usize,
}

impl Building {
    fn new(capacity: usize) -> Self {
        Self { arena: BytesMut::with_capacity(capacity), batches: Vec::new(), ends: Vec::new(), again: 0 }
    }
    fn size(&self) -> usize {
        self.arena.len() + self.again
    }
    fn again(&mut self, batch: Batch) {
        self.again += batch.bytes.len();
        self.batches.push(batch);
    }
    /// Writes a batch; the caller pushes its entry right after.
    fn new_batch(&mut self, meta: BatchMeta, fill: impl FnOnce(&mut BatchBuilder)) {
        let mut builder = BatchBuilder::continuing(std::mem::take(&mut self.arena), meta);
        fill(&mut builder);
        self.arena = builder.into_arena();
        self.ends.push((self.arena.len() as u32, self.batches.len() as u32));
    }
    fn finish(self) -> Vec<Batch> {
        let mut batches = self.batches;
        let arena = self.arena.freeze();
        let mut start = 0;
        for (end, at) in self.ends {
            batches[at as usize].bytes = arena.slice(start..end as usize);
            start = end as usize;
        }
        batches
    }
}

#[cfg(test)]
#[path = "producer_tests.rs"]
mod tests;
