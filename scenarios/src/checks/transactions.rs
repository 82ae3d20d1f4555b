//! What the checks of transactions share: which transactions a partition's log holds and how they ended, folded from the
//! committed part of its leader's log; and what producers and coordinators said of them.
//!
//! A record carries its identity, so that the fold knows to which transaction its producer meant it to belong.

use super::cx::Cx;
use super::ghost::ClusterGhost;
use super::logs;
use super::roster::slot_of;
use super::sight::{LogSight, Sight};
use mirrorlab_model::ids::{Offset, ProducerEpoch, ProducerId};
use mirrorlab_model::record::{BatchView, ControlType, Identity};
use mirrorlab_model::trace::TxnOutcome;
use std::collections::{BTreeMap, BTreeSet};

/// A transaction as its producer counts them: the producer's number, and the identity of the first record.
pub type TxnName = (u32, u64);

/// What was said of transactions.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// By producer: the first record of each transaction, ascending, and how it ended as the producer was told.
    begun: BTreeMap<u32, Vec<(u64, Option<TxnOutcome>)>>,
    /// Decisions of coordinators: cluster, producer id and epoch, committed or not.
    decided: BTreeSet<(u8, ProducerId, ProducerEpoch, bool)>,
    /// Decisions as the logs of a cluster have them: committed or not.
    pub logged: BTreeMap<(u8, TxnName), bool>,
}

impl Said {
    /// A producer began a transaction.
    pub fn begun(&mut self, producer: u32, first: u64) {
        self.begun.entry(producer).or_default().push((first, None));
    }
    /// A producer was told how its transaction ended.
    pub fn ended(&mut self, producer: u32, first: u64, outcome: TxnOutcome) {
        let all = self.begun.entry(producer).or_default();
        if let Ok(at) = all.binary_search_by_key(&first, |txn| txn.0) {
            all[at].1 = Some(outcome);
        }
    }
    /// A coordinator decided.
    pub fn decided(&mut self, cluster: u8, producer: ProducerId, epoch: ProducerEpoch, commit: bool) {
        self.decided.insert((cluster, producer, epoch, commit));
    }
    /// Whether nobody ever began one.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.begun.is_empty()
    }
    /// Whether some coordinator of this cluster decided so.
    #[must_use]
    pub fn was_decided(&self, cluster: u8, producer: ProducerId, epoch: ProducerEpoch, commit: bool) -> bool {
        self.decided.contains(&(cluster, producer, epoch, commit))
    }
    /// The same, in any cluster.
    #[must_use]
    pub fn was_decided_anywhere(&self, producer: ProducerId, epoch: ProducerEpoch, commit: bool) -> bool {
        self.decided.iter().any(|(_, p, e, c)| (*p, *e, *c) == (producer, epoch, commit))
    }
    /// The transaction that a record belongs to.
    #[must_use]
    pub fn transaction_of(&self, record: Identity) -> Option<TxnName> {
        let all = self.begun.get(&record.producer)?;
        let at = all.partition_point(|txn| txn.0 <= record.sequence).checked_sub(1)?;
        Some((record.producer, all[at].0))
    }
    /// How a transaction ended, as its producer was told.
    #[must_use]
    pub fn outcome(&self, (producer, first): TxnName) -> Option<TxnOutcome> {
        let all = self.begun.get(&producer)?;
        all[all.binary_search_by_key(&first, |txn| txn.0).ok()?].1
    }
}

/// A transaction without a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Its first offset.
    pub first: Offset,
    /// Which it is.
    pub name: Option<TxnName>,
}

/// A transaction with its marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its first offset.
    pub first: Offset,
    /// Its marker's.
    pub last: Offset,
    /// Committed or aborted.
    pub commit: bool,
    /// Which it is.
    pub name: Option<TxnName>,
}

/// Something that the fold found wrong: an id, what was expected, what was found.
pub type Wrong = (&'static str, String, String);

/// The transactions of one partition's committed log.
#[derive(Clone, Debug, Default)]
pub struct Fold {
    upto: Offset,
    /// By producer id.
    pub open: BTreeMap<ProducerId, Open>,
    ended: BTreeMap<ProducerId, Vec<Ended>>,
    /// The last transaction of a producer that ended here.
    newest: BTreeMap<u32, u64>,
}

/// How a batch of a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A reader of committed records sees it.
    Committed,
    /// It does not.
    Aborted,
    /// Nobody knows yet.
    Open,
}

impl Fold {
    /// What became of a transactional batch.
    #[must_use]
    pub fn fate(&self, batch: &BatchView<'_>) -> Fate {
        let base = batch.base_offset();
        let ended = self.ended.get(&batch.producer()).map_or(&[][..], Vec::as_slice);
        let at = ended.partition_point(|txn| txn.last < base);
        match ended.get(at).filter(|txn| txn.first <= base) {
            Some(txn) if txn.commit => Fate::Committed,
            Some(_) => Fate::Aborted,
            None => Fate::Open,
        }
    }

    /// The next batch.
    fn see(&mut self, batch: &BatchView<'_>, said: &mut Said, cluster: u8, mirrored: bool, wrong: &mut Vec<Wrong>) {
        self.upto = batch.next_offset();
        let producer = batch.producer();
        if batch.is_control() {
            let commit = match batch.control_type() {
                Some(ControlType::Commit) => true,
                Some(ControlType::Abort) => false,
                _ => return,
            };
            super::s20_markers::marker(batch, commit, said, cluster, mirrored, wrong);
            let Some(open) = self.open.remove(&producer) else { return };
            let ended = Ended { first: open.first, last: batch.last_offset(), commit, name: open.name };
            self.ended.entry(producer).or_default().push(ended);
            if let Some(name) = open.name {
                self.newest.insert(name.0, name.1);
                super::s18_atomicity::ended(name, commit, said, cluster, mirrored, wrong);
            }
            return;
        }
        if !batch.is_transactional() {
            return;
        }
        let record = batch.records().next().and_then(Result::ok).and_then(|record| Identity::parse(record.value?));
        let name = record.and_then(|record| said.transaction_of(record));
        let newest = name.and_then(|name| self.newest.get(&name.0)).copied();
        super::s20_markers::batch(batch, name, self.open.get(&producer), newest, wrong);
        self.open.entry(producer).or_insert(Open { first: batch.base_offset(), name });
    }
}

/// Folds what the leader's log got since the last time; tells what that finds wrong.
pub(super) fn extend<S: Sight>(cx: &mut Cx<'_, S>, c: &mut ClusterGhost, said: &mut Said) {
    if said.is_empty() {
        return;
    }
    let g = c.partition(cx.partition());
    let leader = slot_of(g.leader);
    let Some(replica) = cx.replica(leader) else { return };
    let (log, to, mirrored) = (replica.log, g.true_hw.min(replica.log.end()), g.mirrored);
    let mut fold = g.more().txns.take().unwrap_or_default();
    if fold.upto < log.start() {
        *fold = Fold { upto: log.start(), ..Fold::default() };
    }
    let mut wrong = Vec::new();
    let cluster = cx.at.cluster;
    logs::for_each(log, fold.upto, to, |batch| {
        if batch.next_offset() <= to && batch.base_offset() >= fold.upto {
            fold.see(batch, said, cluster, mirrored, &mut wrong);
        }
        true
    });
    g.more().txns = Some(fold);
    if wrong.is_empty() || lost(c) {
        return;
    }
    for (id, expected, got) in wrong {
        cx.broken_at(id, leader, expected, got);
    }
}

/// Whether the cluster ever lost what was committed: what an unclean election takes, it takes from transactions too, from
/// their records as from their coordinators' decisions.
#[must_use]
pub fn lost(c: &ClusterGhost) -> bool {
    c.partitions.iter().any(|g| g.lineage > 0)
}
