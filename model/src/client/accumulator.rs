//! What a producer holds until it is decided: per partition the records that wait (as counts; bytes are made when a request
//! is), the batches on the wire, the batches to be sent again; and per broker the partitions that have something to send.
//!
//! Nothing here walks all partitions: a partition is touched when records come, when a batch of it ends, when its leader
//! changes. Slots are dense in the order the partitions became known.

use crate::client::idempotence::Idempotence;
use crate::client::metadata::ClusterView;
use crate::guards::{client, Guards};
use crate::ids::{BrokerId, Nanos, PartitionIx, ProducerEpoch, ProducerId};
use bytes::Bytes;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// One batch between its first sending and its verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Its slot.
    pub slot: u32,
    /// Its partition when it was built.
    pub partition: PartitionIx,
    /// Its place among the batches of its slot.
    pub ordinal: u32,
    /// Identity sequence of its first record.
    pub first: u64,
    /// How many records.
    pub count: u32,
    /// Producer sequence of its first record, within `generation`.
    pub base_sequence: i32,
    /// The (producer id, epoch) its sequence counts in, by number.
    pub generation: u32,
    /// That producer id.
    pub producer: ProducerId,
    /// That epoch: the producer's own may be further by the time the batch is sent again.
    pub epoch: ProducerEpoch,
    /// The generation that its bytes carry; differs from `generation` between a bump and the next sending.
    pub stamped: u32,
    /// When its first record was taken; the delivery timeout counts from here.
    pub created: Nanos,
    /// Not sent again before this reading.
    pub not_before: Nanos,
    /// How often it was sent.
    pub attempts: u32,
    /// Some sending ended without a word, or with one that does not exclude an append.
    pub uncertain: bool,
    /// Its verdict was told already (delivery timeout); an answer that still comes is ignored.
    pub decided: bool,
    /// Its bytes, shared with the other batches of its first request.
    pub bytes: Bytes,
}

impl Batch {
    /// Gives it a sequence under the producer's present identity; its bytes follow with the next sending.
    pub fn renumber(&mut self, base_sequence: i32, ids: &Idempotence) {
        self.base_sequence = base_sequence;
        (self.generation, self.producer, self.epoch) = (ids.generation, ids.producer, ids.epoch);
    }
}

/// Records of one partition that wait, taken at one tick (or joined to its last, unfilled batch later).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// When the first was taken.
    pub created: Nanos,
    /// How many.
    pub count: u32,
}

/// A slot that stands in no queue.
const NOWHERE: i32 = i32::MIN;
/// A slot that waits for a retry's backoff.
const DELAYED: i32 = i32::MIN + 1;

/// One partition.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// Which.
    pub partition: PartitionIx,
    /// Its number within the topic.
    pub number: u32,
    /// Its topic, by place in the config.
    pub topic: u32,
    /// Sequence of the next new batch.
    pub next_sequence: i32,
    /// The sequence after the last acknowledged one.
    pub acked_next: i32,
    /// The generation these two count in.
    pub generation: u32,
    runs: SmallVec<[Run; 1]>,
    /// Ordinals of batches on the wire, ascending.
    on_wire: SmallVec<[u32; 4]>,
    next_ordinal: u32,
    retries: u32,
    queued: i32,
}

impl Slot {
    /// Whether records wait, or batches that go again.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.retries > 0 || !self.runs.is_empty()
    }
    /// Whether batches wait for an answer or to be sent again.
    #[must_use]
    pub fn has_open_batches(&self) -> bool {
        self.retries > 0 || !self.on_wire.is_empty()
    }
}

/// What a slot can send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// The first batch to be sent again.
    Retry,
    /// A new batch.
    New,
    /// Nothing before one of its batches ends.
    Blocked,
    /// Nothing before this reading.
    Delayed(Nanos),
    /// Nothing.
    Empty,
}

/// Slots, queues, counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accumulator {
    /// All slots.
    pub slots: Vec<Slot>,
    topics: Vec<Vec<u32>>,
    index: BTreeMap<PartitionIx, u32>,
    retries: BTreeMap<u32, VecDeque<Batch>>,
    queues: BTreeMap<BrokerId, VecDeque<u32>>,
    delayed: BTreeSet<(Nanos, u32)>,
    waiting: u64,
    open: u64,
}

impl Accumulator {
    /// Takes over the partitions of these topics; returns whether there are new ones. A re-created topic's partitions take
    /// the slots of the old ones, as Kafka's batches go by name.
    pub fn set_topics(&mut self, names: &[Arc<str>], view: &ClusterView, first_sequence: i32, generation: u32) -> bool {
        let before = self.slots.len();
        self.topics.resize(names.len(), Vec::new());
        for (topic, name) in names.iter().enumerate() {
            let Some((_, seen)) = view.topic(name) else { continue };
            for (number, &partition) in seen.partitions.iter().enumerate() {
                match self.topics[topic].get(number) {
                    Some(&slot) if self.slots[slot as usize].partition == partition => {}
                    Some(&slot) => {
                        self.index.remove(&self.slots[slot as usize].partition);
                        self.slots[slot as usize].partition = partition;
                        self.index.insert(partition, slot);
                    }
                    None => {
                        let slot = self.slots.len() as u32;
                        self.topics[topic].push(slot);
                        self.index.insert(partition, slot);
                        self.slots.push(Slot {
                            partition,
                            number: number as u32,
                            topic: topic as u32,
                            next_sequence: first_sequence,
                            acked_next: first_sequence,
                            generation,
                            runs: SmallVec::new(),
                            on_wire: SmallVec::new(),
                            next_ordinal: 0,
                            retries: 0,
                            queued: NOWHERE,
                        });
                    }
                }
            }
        }
        self.slots.len() > before
    }

    /// Records that wait or are in open batches.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.waiting + self.open
    }

    /// Adds `count` records to a slot; at most `batch_max` records go into one batch.
    pub fn add(&mut self, slot: u32, count: u32, batch_max: u32, now: Nanos, view: &ClusterView) {
        self.waiting += u64::from(count);
        let runs = &mut self.slots[slot as usize].runs;
        let mut count = count;
        if let Some(last) = runs.last_mut() {
            // The last batch of a run is open until it is full.
            let filled = last.count % batch_max;
            let room = if filled == 0 { 0 } else { batch_max - filled };
            last.count += room.min(count);
            count -= room.min(count);
        }
        if count > 0 {
            runs.push(Run { created: now, count });
        }
        self.enqueue(slot, view);
    }

    /// Puts a slot with work into its leader's queue, unless it stands there or in a backoff.
    pub fn enqueue(&mut self, slot: u32, view: &ClusterView) {
        let s = &mut self.slots[slot as usize];
        let leader = view.leadership(s.partition).leader;
        if s.queued == leader.0 || s.queued == DELAYED || !s.has_work() {
            return;
        }
        s.queued = leader.0;
        self.queues.entry(leader).or_default().push_back(slot);
    }

    /// The leader of a partition changed: its slot changes the queue. Its entry in the old one is stale from now on.
    pub fn on_leader_change(&mut self, partition: PartitionIx, view: &ClusterView) {
        if let Some(&slot) = self.index.get(&partition) {
            if self.slots[slot as usize].queued != NOWHERE {
                self.enqueue(slot, view);
            }
        }
    }

    /// Brokers that have or had a queue, none ([`BrokerId::NONE`]) among them.
    #[must_use]
    pub fn brokers(&self) -> SmallVec<[BrokerId; 8]> {
        self.queues.keys().copied().collect()
    }

    /// Partitions without a leader that have something to send.
    pub fn homeless(&self) -> impl Iterator<Item = PartitionIx> + '_ {
        let queue = self.queues.get(&BrokerId::NONE).into_iter().flatten();
        queue.map(|&s| &self.slots[s as usize]).filter(|s| s.queued == BrokerId::NONE.0).map(|s| s.partition)
    }

    /// The next slot of a broker's queue, out of it.
    pub fn pop(&mut self, broker: BrokerId) -> Option<u32> {
        let queue = self.queues.get_mut(&broker)?;
        while let Some(slot) = queue.pop_front() {
            let s = &mut self.slots[slot as usize];
            if s.queued == broker.0 {
                s.queued = NOWHERE;
                return Some(slot);
            }
        }
        None
    }

    /// How many entries a broker's queue has, stale ones at its head dropped.
    pub fn queue_len(&mut self, broker: BrokerId) -> usize {
        let Some(queue) = self.queues.get_mut(&broker) else { return 0 };
        while queue.front().is_some_and(|&slot| self.slots[slot as usize].queued != broker.0) {
            queue.pop_front();
        }
        queue.len()
    }

    /// What a slot may send now. `ordered`: never two batches on the wire (one request in flight, not idempotent).
    pub fn head(&self, slot: u32, now: Nanos, ids: &Idempotence, ordered: bool, guards: &mut Guards) -> Head {
        let s = &self.slots[slot as usize];
        if s.retries > 0 {
            let Some(first) = self.retries.get(&slot).and_then(VecDeque::front) else { return Head::Empty };
            if first.not_before > now {
                return Head::Delayed(first.not_before);
            }
            let lowest = s.on_wire.first().is_none_or(|&o| first.ordinal < o);
            if (ids.is_on() || ordered) && !guards.admits(client::ProducerKeepsOrder, lowest) {
                return Head::Blocked;
            }
            return Head::Retry;
        }
        if s.runs.is_empty() {
            return Head::Empty;
        }
        let idle = s.on_wire.is_empty();
        if ordered && !idle {
            return Head::Blocked;
        }
        // New sequences begin only when the older generation's batches are through, and not behind a batch of which
        // nobody knows whether the broker has it.
        if ids.is_on() && ((s.generation != ids.generation && !idle) || ids.unresolved.contains_key(&slot)) {
            return Head::Blocked;
        }
        Head::New
    }

    /// Makes a slot wait.
    pub fn delay(&mut self, slot: u32, until: Nanos) {
        self.slots[slot as usize].queued = DELAYED;
        self.delayed.insert((until, slot));
    }

    /// Slots whose backoff is over go back to their queues.
    pub fn wake_delayed(&mut self, now: Nanos, view: &ClusterView) {
        while let Some(&(until, slot)) = self.delayed.first() {
            if until > now {
                return;
            }
            self.delayed.pop_first();
            self.slots[slot as usize].queued = NOWHERE;
            self.enqueue(slot, view);
        }
    }

    /// When a backoff is over next.
    #[must_use]
    pub fn next_delayed(&self) -> Option<Nanos> {
        self.delayed.first().map(|d| d.0)
    }

    /// Takes the records of the next new batch out of a slot: when the first was taken, how many, its ordinal.
    pub fn take_new(&mut self, slot: u32, batch_max: u32) -> Option<(Run, u32)> {
        let s = &mut self.slots[slot as usize];
        let first = s.runs.first_mut()?;
        let taken = Run { created: first.created, count: first.count.min(batch_max) };
        first.count -= taken.count;
        if first.count == 0 {
            s.runs.remove(0);
        }
        let ordinal = s.next_ordinal;
        s.next_ordinal = ordinal.wrapping_add(1);
        self.waiting -= u64::from(taken.count);
        self.open += u64::from(taken.count);
        Some((taken, ordinal))
    }

    /// Takes the first batch to be sent again.
    pub fn take_retry(&mut self, slot: u32) -> Option<Batch> {
        let queue = self.retries.get_mut(&slot)?;
        let batch = queue.pop_front();
        if queue.is_empty() {
            self.retries.remove(&slot);
        }
        self.slots[slot as usize].retries -= u32::from(batch.is_some());
        batch
    }

    /// A batch goes on the wire.
    pub fn launch(&mut self, slot: u32, ordinal: u32) {
        let on_wire = &mut self.slots[slot as usize].on_wire;
        let at = on_wire.partition_point(|&o| o < ordinal);
        on_wire.insert(at, ordinal);
    }

    /// A batch came off the wire.
    pub fn land(&mut self, slot: u32, ordinal: u32) {
        self.slots[slot as usize].on_wire.retain(|o| *o != ordinal);
    }

    /// A batch that landed is to be sent again, in the order of its partition.
    pub fn retry(&mut self, batch: Batch, view: &ClusterView) {
        let slot = batch.slot;
        let queue = self.retries.entry(slot).or_default();
        let at = queue.partition_point(|b| b.ordinal < batch.ordinal);
        queue.insert(at, batch);
        self.slots[slot as usize].retries += 1;
        self.enqueue(slot, view);
    }

    /// A batch has its verdict.
    pub fn close(&mut self, count: u32) {
        self.open -= u64::from(count);
    }

    /// Batches that wait to be sent again, by slot.
    pub fn retries_mut(&mut self) -> impl Iterator<Item = &mut Batch> {
        self.retries.values_mut().flatten()
    }

    /// As [`Self::retries_mut`], of one slot.
    pub fn retries_of_mut(&mut self, slot: u32) -> impl Iterator<Item = &mut Batch> {
        self.retries.get_mut(&slot).into_iter().flatten()
    }

    /// Takes out waiting batches that are older than `created`.
    pub fn expire_retries(&mut self, created: Nanos) -> Vec<Batch> {
        let mut expired = Vec::new();
        let slots = &mut self.slots;
        self.retries.retain(|&slot, queue| {
            let before = queue.len();
            queue.retain(|b| {
                let old = b.created <= created;
                if old {
                    expired.push(b.clone());
                }
                !old
            });
            slots[slot as usize].retries -= (before - queue.len()) as u32;
            !queue.is_empty()
        });
        expired
    }

    /// Takes out records of a slot that wait since `created` or before; closes them.
    pub fn expire_run(&mut self, slot: u32, created: Nanos) -> Option<u32> {
        let runs = &mut self.slots[slot as usize].runs;
        if runs.first().is_none_or(|r| r.created > created) {
            return None;
        }
        let run = runs.remove(0);
        self.waiting -= u64::from(run.count);
        Some(run.count)
    }

    /// When the first record that waits in a slot was taken.
    #[must_use]
    pub fn oldest_run(&self, slot: u32) -> Option<Nanos> {
        self.slots[slot as usize].runs.first().map(|r| r.created)
    }

    /// Slots with something to send, or to send again: where old records can be. Sorted.
    #[must_use]
    pub fn busy_slots(&self) -> Vec<u32> {
        let mut slots: Vec<u32> = self.queues.values().flatten().copied().collect();
        slots.extend(self.retries.keys());
        slots.sort_unstable();
        slots.dedup();
        slots
    }
}
