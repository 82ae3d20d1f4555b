//! What the ghost remembers of a compacted partition: every record that was committed, as a few numbers, and up to where some
//! replica was compacted. Replicas are compacted at different times, so below that end logs are not compared batch by batch;
//! each is held against what was committed instead (S51).

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::logs;
use super::sight::{LogSight, Sight};
use mirrorlab_model::ids::{Offset, ProducerId};
use mirrorlab_model::record::{BatchView, ControlType, RecordView};
use std::collections::{BTreeMap, BTreeSet};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// One committed record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Over everything that compaction must not change.
    pub hash: u64,
    /// Of its key.
    pub key: u64,
    /// It has no value.
    pub tombstone: bool,
    /// Its transaction was aborted.
    pub aborted: bool,
}

/// The last record of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last {
    /// Where.
    pub at: Offset,
    /// It deletes the key.
    pub tombstone: bool,
}

/// What a replica holds whose lineage ended.
#[derive(Clone, Copy, Debug, Default)]
struct Behind {
    /// Where it ended.
    cut: Offset,
    /// Up to where it was committed.
    committed: Offset,
    /// Up to where it was compacted.
    upto: Offset,
}

/// A compacted partition.
#[derive(Clone, Debug, Default)]
pub struct Compaction {
    /// By offset.
    facts: BTreeMap<Offset, Fact>,
    /// Where they end.
    end: Offset,
    /// Offsets in transactions without a marker, by producer.
    open: BTreeMap<i64, Vec<Offset>>,
    /// Markers by offset: whose, and what they ended. A lineage that ends takes markers with it.
    markers: BTreeMap<Offset, (i64, Vec<Offset>)>,
    /// Ends of cleanings, and the wall clocks that they went by.
    cleanings: Vec<(Offset, i64)>,
    /// Some replica was compacted up to here, or copied from one that was.
    pub upto: Offset,
    /// Replicas, by slot, that still hold a lineage that ended, because they are down or were not told yet.
    behind: BTreeMap<u16, Behind>,
    /// Up to where each replica cleaned, by slot: all of that was durable before.
    own: BTreeMap<u16, Offset>,
    /// Up to where each replica, by slot, was cut after it had cleaned: what had been the newest batch of a producer then is gone,
    /// and the one that is the newest now may have been taken before.
    loose: BTreeMap<u16, Offset>,
    /// `delete.retention.ms`, the shortest that was seen.
    pub retention_ms: Option<i64>,
    /// What mirror leaders copied here, by offset, until an order cuts it. A leader that lost its end copies it again, and its source
    /// may have compacted it meanwhile: a follower that kept the end has records there that no leader has any more.
    given: BTreeMap<Offset, (Fact, bool)>,
    /// Keys of which records were lost, whatever excused that, after they may have taken older ones away: nothing is asked of
    /// what they had below.
    pardoned: BTreeMap<u64, Offset>,
    /// Keys whose tombstone a replica was never given, because it was away for too long: slot and key.
    pub missed: BTreeSet<(u16, u64)>,
    /// Transactions of which a replica has the beginning, and was never given the end, for the same reason: slot, producer id and
    /// first offset.
    pub endless: BTreeSet<(u16, ProducerId, Offset)>,
}

/// What stands for no key. Compaction takes such records away (stock `LogCleaner`), and nothing supersedes them.
const KEYLESS: u64 = 0;

/// What a record is known by: nothing that compaction may change goes into it.
#[must_use]
pub fn fact(batch: &BatchView<'_>, record: &RecordView<'_>) -> Fact {
    let key = record.key.map_or(KEYLESS, xxh3_64);
    let mut hash = xxh3_64_with_seed(record.value.unwrap_or_default(), u64::from(record.value.is_none()));
    let numbers = [
        record.timestamp as u64,
        key,
        i64::from(batch.leader_epoch().0) as u64,
        batch.producer().0 as u64,
        i64::from(batch.producer_epoch().0) as u64,
        u64::from(batch.is_transactional()) << 1 | u64::from(batch.is_control()),
    ];
    for number in numbers {
        hash = xxh3_64_with_seed(&number.to_le_bytes(), hash);
    }
    for (name, value) in record.headers {
        hash = xxh3_64_with_seed(value.unwrap_or_default(), xxh3_64_with_seed(name, hash));
    }
    Fact { hash, key, tombstone: record.value.is_none(), aborted: false }
}

impl Compaction {
    fn see(&mut self, batch: &BatchView<'_>) {
        self.end = batch.next_offset();
        let producer = batch.producer().0;
        if batch.is_control() {
            let of = self.open.remove(&producer).unwrap_or_default();
            if batch.control_type() == Some(ControlType::Abort) {
                self.set_aborted(&of, true);
            }
            if !of.is_empty() {
                self.markers.insert(batch.base_offset(), (producer, of));
            }
            return;
        }
        for record in batch.records().flatten() {
            self.facts.insert(record.offset, fact(batch, &record));
            if batch.is_transactional() {
                self.open.entry(producer).or_default().push(record.offset);
            }
        }
    }

    fn set_aborted(&mut self, of: &[Offset], aborted: bool) {
        for at in of {
            self.facts.entry(*at).and_modify(|fact| fact.aborted = aborted);
        }
    }

    /// A lineage ended at `to`. What was ended by a marker that is lost is open again. Unless an order cut it, what compaction had
    /// passed by then followed the marker: what had been aborted may be gone, and of what had been committed the older ones.
    /// Replicas that end `above` it still have what was committed up to `from`.
    pub fn cut(&mut self, (from, to): (Offset, Offset), ordered: bool, above: impl IntoIterator<Item = u16>) {
        for slot in above {
            let new = Behind { cut: to, committed: from, upto: self.upto };
            let behind = self.behind.entry(slot).or_insert(new);
            behind.cut = behind.cut.min(to);
        }
        if ordered {
            self.given.split_off(&to);
        }
        for (_, (producer, of)) in self.markers.split_off(&to).into_iter().rev() {
            let passed = of.iter().filter(|at| **at < self.upto && !ordered);
            self.pardoned.extend(passed.filter_map(|at| Some((self.facts.get(at)?.key, to))));
            self.set_aborted(&of, false);
            let later = self.open.insert(producer, of).unwrap_or_default();
            self.open.entry(producer).or_default().extend(later);
        }
        let lost = self.facts.split_off(&to);
        if self.upto > to {
            self.pardoned.extend(lost.values().map(|fact| (fact.key, to)));
        }
        self.open.values_mut().for_each(|of| of.retain(|at| *at < to));
        self.end = self.end.min(to);
        self.upto = self.upto.min(to);
    }

    /// The committed record at an offset.
    #[must_use]
    pub fn fact(&self, at: Offset) -> Option<&Fact> {
        self.facts.get(&at)
    }

    /// Up to where committed records are known.
    #[must_use]
    pub const fn followed(&self) -> Offset {
        self.end
    }

    /// A mirror leader copied this batch.
    pub fn give(&mut self, batch: &BatchView<'_>) {
        let records = batch.records().flatten().filter(|_| !batch.is_control());
        self.given.extend(records.map(|record| (record.offset, (fact(batch, &record), batch.is_transactional()))));
    }

    /// What a mirror leader once copied to an offset, and whether a transaction wrote it.
    #[must_use]
    pub fn given(&self, at: Offset) -> Option<&(Fact, bool)> {
        self.given.get(&at)
    }

    /// Whether this offset was followed.
    #[must_use]
    pub fn knows(&self, at: Offset) -> bool {
        at < self.end
    }

    /// Records of `from..to`.
    pub fn between(&self, from: Offset, to: Offset) -> impl Iterator<Item = (Offset, &Fact)> {
        self.facts.range(from..to.max(from)).map(|(at, fact)| (*at, fact))
    }

    /// The last committed record of each key below `to`.
    #[must_use]
    pub fn last_below(&self, to: Offset) -> BTreeMap<u64, Last> {
        let mut last = BTreeMap::new();
        for (at, fact) in self.facts.range(..to).filter(|(_, fact)| !fact.aborted && fact.key != KEYLESS) {
            last.insert(fact.key, Last { at: *at, tombstone: fact.tombstone });
        }
        last.retain(|key, last| self.pardoned.get(key).is_none_or(|lost| last.at >= *lost));
        last
    }

    /// A replica was cleaned up to `to`, by this wall clock.
    pub fn cleaned(&mut self, slot: u16, to: Offset, at_ms: i64) {
        let own = self.own.entry(slot).or_default();
        *own = to.max(*own);
        self.cleanings.push((to, at_ms));
        self.upto = self.upto.max(to);
    }

    /// A replica's log was cut to `to`, or (zero) removed.
    pub fn shortened(&mut self, slot: u16, to: Offset) {
        if let Some(behind) = self.behind.get_mut(&slot) {
            (behind.committed, behind.upto) = (behind.committed.min(to), behind.upto.min(to));
            if to <= behind.cut {
                self.behind.remove(&slot);
            }
        }
        if let Some(own) = self.own.get_mut(&slot) {
            *own = to.min(*own);
            self.loose.insert(slot, to);
        }
    }

    /// Below this a replica may lack the newest batch of a producer that its table knows from a snapshot.
    #[must_use]
    pub fn loose(&self, slot: u16) -> Offset {
        self.loose.get(&slot).copied().unwrap_or_default()
    }

    /// Up to where what a replica holds may be compacted, be it of a lineage that ended while it was away.
    #[must_use]
    pub fn upto_at(&self, slot: u16) -> Offset {
        self.behind.get(&slot).map_or(Offset::ZERO, |behind| behind.upto).max(self.upto)
    }

    /// Up to where what a replica holds was committed once, if that is of a lineage that ended.
    #[must_use]
    pub fn committed_before(&self, slot: u16) -> Option<Offset> {
        self.behind.get(&slot).map(|behind| behind.committed)
    }

    /// A replica cleaned what it holds of a lineage that ended.
    pub fn cleaned_behind(&mut self, slot: u16, to: Offset) {
        if let Some(behind) = self.behind.get_mut(&slot) {
            behind.upto = behind.upto.max(to);
        }
    }

    /// Up to where a replica cleaned.
    #[must_use]
    pub fn own(&self, slot: u16) -> Offset {
        self.own.get(&slot).copied().unwrap_or_default()
    }

    /// Whether the time of a tombstone is over: somebody cleaned it, and somebody came by again long enough after that.
    #[must_use]
    pub fn may_be_gone(&self, at: Offset) -> bool {
        let over = || self.cleanings.iter().filter(|(to, _)| *to > at).map(|(_, ms)| *ms);
        let (Some(first), Some(last)) = (over().min(), over().max()) else { return false };
        self.retention_ms.is_none_or(|retention| last >= first.saturating_add(retention))
    }
}

/// Follows what is committed, while it is all there.
pub fn follow<S: Sight>(cx: &Cx<'_, S>, g: &mut PartitionGhost) {
    follow_at(cx, g, g.lead.slot);
}

/// The same, at one replica: one that has not compacted it yet has it all, whoever leads.
pub fn follow_at<S: Sight>(cx: &Cx<'_, S>, g: &mut PartitionGhost, slot: u16) {
    let to = g.true_hw;
    let Some(log) = cx.replica(slot).map(|replica| replica.log) else { return };
    let known = &mut g.more().compaction.get_or_insert_default();
    let from = known.end;
    logs::for_each(log, from.max(log.start()), to.min(log.end()), |batch| {
        if batch.base_offset() >= from && batch.next_offset() <= to {
            known.see(batch);
        }
        true
    });
}
