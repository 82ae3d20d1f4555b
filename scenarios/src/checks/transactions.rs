//! What the checks of transactions share: which transactions a partition's log holds and how they ended, folded from the
//! committed part of its leader's log; and what producers and coordinators said of them.
//!
//! A record carries its identity, so that the fold knows to which transaction its producer meant it to belong.
//!
//! A log that is compacted is folded as its watermark moves: compaction takes the records of an aborted transaction at once, and
//! a marker when its retention is over, so that whoever came later would find beginnings without their ends. Who is given the
//! log later than that, a mirror or a follower, has just such a log, and takes the end of the producer's next transaction for
//! that of the one before: Kafka's own limit of compacted topics, an excuse ([`Excuse::AwayTooLong`]).

use super::cx::Cx;
use super::excuses::Excuse;
use super::ghost::{ClusterGhost, PartitionGhost};
use super::logs;
use super::report::place_name;
use super::roster::slot_of;
use super::sight::{LogSight, Sight};
use mirrorlab_model::ids::{Offset, PartitionIx, ProducerEpoch, ProducerId};
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

/// Something that the fold found wrong.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// Of the check.
    pub id: &'static str,
    /// What should be.
    pub expected: String,
    /// What is.
    pub got: String,
    /// It is about a transaction that lacks its end: whose, and where it begins.
    pub endless: Option<(ProducerId, Offset)>,
}

impl Wrong {
    /// Something that is wrong whatever compaction took.
    pub fn new(id: &'static str, expected: String, got: String) -> Self {
        Self { id, expected, got, endless: None }
    }
}

/// The transactions of one partition's committed log.
#[derive(Clone, Debug, Default)]
pub struct Fold {
    upto: Offset,
    /// By producer id.
    pub open: BTreeMap<ProducerId, Open>,
    ended: BTreeMap<ProducerId, Vec<Ended>>,
    /// The last transaction of a producer that ended here.
    newest: BTreeMap<u32, u64>,
    /// Transactions whose markers compaction took before this log was given them: producer id and first offset.
    endless: BTreeSet<(ProducerId, Offset)>,
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

impl Fate {
    /// In a message.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Aborted => "aborted",
            Self::Open => "open",
        }
    }
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

    /// The end of a transaction of this producer that began at `first` or before, and ended behind it.
    #[must_use]
    pub fn end_of(&self, producer: ProducerId, first: Offset) -> Option<Ended> {
        let ended = self.ended.get(&producer).map_or(&[][..], Vec::as_slice);
        ended.get(ended.partition_point(|txn| txn.last < first)).filter(|txn| txn.first <= first).copied()
    }

    /// Transactions that ended in `from..to` and began below.
    pub fn ended_between(&self, from: Offset, to: Offset) -> impl Iterator<Item = (ProducerId, Ended)> + '_ {
        self.ended.iter().flat_map(move |(producer, all)| {
            let all = &all[all.partition_point(|txn| txn.last < from)..];
            all.iter()
                .take_while(move |txn| txn.last < to)
                .filter(move |txn| txn.first < from)
                .map(|txn| (*producer, *txn))
        })
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
pub(super) fn extend<S: Sight>(cx: &mut Cx<'_, S>, clusters: &mut [ClusterGhost], said: &mut Said) {
    let Some(c) = clusters.get_mut(usize::from(cx.at.cluster)) else { return };
    let leader = slot_of(c.partition(cx.partition()).leader);
    extend_at(cx, clusters, said, leader);
}

/// The same, of the log of one replica: its watermark moved, or it is about to be compacted.
pub(super) fn extend_at<S: Sight>(cx: &mut Cx<'_, S>, clusters: &mut [ClusterGhost], said: &mut Said, slot: u16) {
    if said.is_empty() {
        return;
    }
    let cluster = cx.at.cluster;
    let Some(c) = clusters.get_mut(usize::from(cluster)) else { return };
    let g = c.partition(cx.partition());
    let Some(log) = cx.replica(slot).map(|replica| replica.log) else { return };
    let (to, mirrored) = (g.true_hw.min(log.end()), g.mirrored);
    let mut fold = g.more().txns.take().unwrap_or_default();
    if fold.upto < log.start() {
        *fold = Fold { upto: log.start(), ..Fold::default() };
    }
    let mut wrong = Vec::new();
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
    for found in wrong {
        let endless = found.endless.filter(|of| marker_was_taken(cx, clusters, *of));
        if let (Some(of), Some(c)) = (endless, clusters.get_mut(usize::from(cluster))) {
            let place = place_name(cx.sight, cx.roster, cx.at.with_node(cx.node_of(slot)));
            let text = format!("the end of the transaction of producer id {} from {} on in {place}", of.0, of.1);
            cx.report.excuse(found.id, Excuse::AwayTooLong, text);
            if let Some(fold) = &mut c.partition(cx.partition()).more().txns {
                fold.endless.insert(of);
            }
        } else {
            cx.broken_at(found.id, slot, found.expected, found.got);
        }
    }
}

/// Whether the source of a mirrored partition had the end of a transaction, and compaction might take it there before the mirror
/// came; or the source itself was given it no more.
fn marker_was_taken<S: Sight>(cx: &Cx<'_, S>, clusters: &[ClusterGhost], of: (ProducerId, Offset)) -> bool {
    let at = |cluster: u8, ix: PartitionIx| clusters.get(usize::from(cluster))?.partitions.get(ix.0 as usize);
    let more = |g: &'_ PartitionGhost| g.more.as_ref().and_then(|more| more.source);
    let Some(origin) = at(cx.at.cluster, cx.partition()).and_then(more).and_then(|(c, ix)| at(c, ix)) else {
        return false;
    };
    let Some(there) = origin.more.as_deref() else { return false };
    let Some(fold) = there.txns.as_deref() else { return false };
    let gone = |txn: Ended| there.compaction.as_ref().is_some_and(|known| known.may_be_gone(txn.last));
    fold.endless.contains(&of) || fold.end_of(of.0, of.1).is_some_and(gone)
}

/// Whether the cluster ever lost what was committed: what an unclean election takes, it takes from transactions too, from
/// their records as from their coordinators' decisions.
#[must_use]
pub fn lost(c: &ClusterGhost) -> bool {
    c.partitions.iter().any(|g| g.lineage > 0)
}
