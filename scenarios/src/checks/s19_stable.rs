//! S19 Stable offset. The last stable offset is the smaller of the watermark and of the first record of a transaction that is
//! open below it; a read-committed reader gets exactly the records below it that are committed or of no transaction.

use super::cx::Cx;
use super::excuses::Excuse;
use super::ghost::{ClusterGhost, More};
use super::logs;
use super::report::place_name;
use super::roster::slot_of;
use super::sight::{LogSight, Sight};
use super::transactions::{self, Fate, Said};
use mirrorlab_model::ids::{Offset, ProducerId};
use mirrorlab_model::record::{BatchView, ControlType};
use std::collections::BTreeMap;

/// A reader of committed records was handed `base..next`; its last reading ended at `before`.
pub(super) fn read<S: Sight>(
    cx: &mut Cx<'_, S>,
    clusters: &mut [ClusterGhost],
    said: &mut Said,
    before: Option<Offset>,
    (base, next): (Offset, Offset),
) {
    if said.is_empty() {
        return;
    }
    transactions::extend(cx, clusters, said);
    let Some(c) = clusters.get_mut(usize::from(cx.at.cluster)) else { return };
    let g = c.partition(cx.partition());
    let Some(fold) = g.more.as_ref().and_then(|more| more.txns.as_deref()) else { return };
    let Some(replica) = cx.replica(slot_of(g.leader)) else { return };
    let from = before.unwrap_or(base).min(base).max(replica.log.start());
    let mut wrong = None;
    logs::for_each(replica.log, from, next.min(g.true_hw), |batch| {
        let given = batch.base_offset() >= base;
        let fate = if batch.is_transactional() { fold.fate(batch) } else { Fate::Committed };
        // What compaction left without records is handed to nobody.
        let right = if batch.is_control() || batch.record_count() == 0 {
            true
        } else if given {
            fate == Fate::Committed
        } else {
            // What lies before it was left out; the first batch may have been read in part before.
            fate == Fate::Aborted || batch.base_offset() < from
        };
        if !right {
            wrong = Some((batch.base_offset(), batch.producer(), given, fate));
        }
        right
    });
    let Some((offset, producer, given, fate)) = wrong.filter(|_| !transactions::lost(c)) else { return };
    // A leader that was away while compaction took the marker ends that transaction with the next one.
    let g = c.partition(cx.partition());
    let slot = slot_of(g.leader);
    if g.more.as_ref().is_some_and(|more| is_endless(more, slot, producer, offset)) {
        let place = place_name(cx.sight, cx.roster, cx.at.with_node(cx.node_of(slot)));
        let text = format!("the end of the transaction of producer id {producer} around {offset} in {place}");
        return cx.report.excuse("S19", Excuse::AwayTooLong, text);
    }
    let what = if given { "a batch was handed over" } else { "a batch was left out" };
    cx.broken(
        "S19",
        "the records of committed transactions, all of them and no others",
        format_args!("{what} at {offset}, of a transaction that is {}", fate.name()),
    );
}

/// Whether a replica was never given the end of the transaction that a batch belongs to.
fn is_endless(more: &More, slot: u16, producer: ProducerId, at: Offset) -> bool {
    let first = more.txns.as_ref().and_then(|fold| fold.end_of(producer, at)).map(|txn| txn.first);
    let known = more.compaction.as_ref().zip(first);
    known.is_some_and(|(known, first)| known.endless.contains(&(slot, producer, first)))
}

/// The last stable offset of a replica against its log.
pub(super) fn replica<S: Sight>(cx: &mut Cx<'_, S>, said: &Said, slot: u16) {
    if said.is_empty() {
        return;
    }
    let Some(replica) = cx.replica(slot).filter(|r| !r.offline) else { return };
    let log = replica.log;
    let (stable, hw) = (log.last_stable(), log.high_watermark());
    let mut open: BTreeMap<ProducerId, Offset> = BTreeMap::new();
    logs::for_each(log, log.start(), hw, |batch: &BatchView<'_>| {
        if batch.next_offset() > hw {
            return false;
        }
        if batch.is_control() {
            if matches!(batch.control_type(), Some(ControlType::Commit | ControlType::Abort)) {
                open.remove(&batch.producer());
            }
        } else if batch.is_transactional() {
            open.entry(batch.producer()).or_insert(batch.base_offset());
        }
        true
    });
    let expected = open.values().min().map_or(hw, |first| hw.min((*first).max(log.start())));
    // A transaction whose first records retention took is known from a snapshot only.
    let cut = log.start() > Offset::ZERO && stable < expected;
    if stable != expected && !cut {
        cx.broken_at("S19", slot, format_args!("a last stable offset of {expected}"), stable);
    }
}
