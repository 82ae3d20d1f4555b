//! S51 Legal compaction. Below the end up to which a partition was compacted anywhere, each in-sync replica holds nothing but
//! committed records (or what a mirror's source once gave there), unchanged in offset, epoch and content, and the last one of each
//! key among them: a tombstone may be missing once its retention is over, and then nothing older of its key is there. Up to where a
//! replica was compacted itself it has one record per key.

use super::compaction::{fact, Compaction};
use super::cx::Cx;
use super::excuses::Excuse;
use super::ghost::PartitionGhost;
use super::logs;
use super::report::place_name;
use super::s04_candidate_completeness;
use super::sight::{LogSight, Sight};
use mirrorlab_model::ids::Offset;
use std::collections::{BTreeMap, BTreeSet};

/// Records of a key that a message names.
const SHOWN_MAX: usize = 5;

/// What a look at a log found.
struct Found {
    /// Records that are there, newest last, by key.
    keys: BTreeMap<u64, Vec<Offset>>,
    wrong: Option<(String, String)>,
}

/// A broker compacts its log up to `to`, or has `done` so.
pub(super) fn cleaned<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, to: Offset, at_ms: i64, done: bool) {
    let retention = cx.sight.image(cx.at.cluster).and_then(|image| {
        let topic = image.partition(cx.partition())?.topic;
        Some(image.topic_config(topic).delete_retention_ms)
    });
    let before = g.more.as_ref().and_then(|more| more.compaction.as_ref()?.committed_before(cx.slot));
    let comes_back = s04_candidate_completeness::comes_back(g, cx.slot);
    if to > before.unwrap_or_default().max(g.true_hw).max(comes_back) {
        cx.broken("S51", format_args!("nothing compacted above what is committed ({})", g.true_hw), to);
    }
    if before.is_some() {
        // It was not cut yet: what it has says nothing of what there is now.
        return g.more().compaction.get_or_insert_default().cleaned_behind(cx.slot, to);
    }
    super::compaction::follow(cx, g);
    if !done {
        // The leader may be down.
        super::compaction::follow_at(cx, g, cx.slot);
    }
    let mirrored = g.mirrored;
    let known = g.more().compaction.get_or_insert_default();
    known.retention_ms = known.retention_ms.into_iter().chain(retention).min();
    if mirrored {
        // Copied batches carry the horizon that the source's cleaning gave them, which began earlier than any of these.
        known.retention_ms = None;
    }
    known.cleaned(cx.slot, to, at_ms);
    let Some(replica) = cx.replica(cx.slot).filter(|_| done) else { return };
    let found = look(known, replica.log, to);
    let twice = found.keys.values().find(|all| all.len() > 1);
    if let Some(twice) = twice {
        let (shown, count) = (twice.iter().take(SHOWN_MAX).map(Offset::to_string).collect::<Vec<_>>(), twice.len());
        let got =
            format_args!("a key has {count}, at {}{}", shown.join(", "), if count > SHOWN_MAX { " …" } else { "" });
        cx.broken("S51", format_args!("one record per key below {to}"), got);
    }
    holds(cx, g, cx.slot);
}

/// A log was read anew: what was compacted had been durable, and is there in its old form or in the new one; unless the disk
/// was `wiped`, or S15 knows why the log is `shorter`: its process died in the middle of a cut, or bits of it flipped.
pub(super) fn recovered<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, end: Offset, wiped: bool, shorter: bool) {
    let slot = cx.slot;
    let before = g.member(slot).map_or(end, |(_, m)| m.end);
    let Some(known) = g.more.as_mut().and_then(|more| more.compaction.as_mut()) else { return };
    let own = known.own(slot);
    if wiped || end < before {
        known.shortened(slot, if wiped { Offset::ZERO } else { end });
    }
    if end < own && !wiped && !shorter {
        cx.broken(
            "S51",
            format_args!("what was compacted up to {own}, in one form or the other"),
            format_args!("a log that ends at {end}"),
        );
    }
}

/// A log was cut to `to`, or is no more.
pub(super) fn shortened(g: &mut PartitionGhost, slot: u16, to: Offset) {
    if let Some(known) = g.more.as_mut().and_then(|more| more.compaction.as_mut()) {
        known.shortened(slot, to);
    }
}

/// A follower that ended at `end` copied up to `next`: tombstones and ends of transactions that it was not given were compacted
/// away before it came.
pub(super) fn copied<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, end: Offset, next: Offset) {
    let slot = cx.slot;
    let Some(log) = cx.replica(slot).map(|replica| replica.log) else { return };
    let Some(more) = g.more.as_mut() else { return };
    let Some(known) = more.compaction.as_mut() else { return };
    let mut given = BTreeSet::new();
    logs::for_each(log, end, next, |batch| {
        given.extend(batch.records().flatten().map(|record| record.offset));
        true
    });
    let ended = more.txns.iter().flat_map(|fold| fold.ended_between(end, next));
    let endless = ended.filter(|(_, txn)| !given.contains(&txn.last) && known.may_be_gone(txn.last));
    let endless: Vec<_> = endless.map(|(producer, txn)| (slot, producer, txn.first)).collect();
    known.endless.extend(endless);
    let missed = known.between(end, next).filter(|(at, fact)| fact.tombstone && !fact.aborted && !given.contains(at));
    let missed: Vec<u64> = missed.map(|(_, fact)| fact.key).collect();
    known.missed.extend(missed.into_iter().map(|key| (slot, key)));
}

/// The committed records that a log has below `to`.
fn look<L: LogSight>(known: &Compaction, log: L, to: Offset) -> Found {
    let mut found = Found { keys: BTreeMap::new(), wrong: None };
    logs::for_each(log, log.start(), to, |batch| {
        if batch.is_control() {
            return true;
        }
        for record in batch.records().flatten().filter(|r| r.offset >= log.start() && known.knows(r.offset)) {
            let own = fact(batch, &record);
            match known.fact(record.offset) {
                Some(there) if there.hash == own.hash => {
                    if !there.aborted {
                        found.keys.entry(own.key).or_default().push(record.offset);
                    }
                }
                None if known.given(record.offset).is_some_and(|(given, _)| given.hash == own.hash) => {
                    // Whether its transaction was aborted is not known here.
                    if known.given(record.offset).is_some_and(|(_, transactional)| !transactional) {
                        found.keys.entry(own.key).or_default().push(record.offset);
                    }
                }
                other => {
                    let expected =
                        if other.is_some() { "the record that was committed there" } else { "no record there" };
                    found.wrong.get_or_insert((expected.to_owned(), format!("another one at {}", record.offset)));
                }
            }
        }
        true
    });
    found
}

/// A replica holds what compaction has to leave.
pub(super) fn holds<S: Sight>(cx: &mut Cx<'_, S>, g: &PartitionGhost, slot: u16) {
    let upto = g.compacted();
    if upto == Offset::ZERO {
        return;
    }
    let Some(known) = g.more.as_ref().and_then(|more| more.compaction.as_ref()) else { return };
    let Some(replica) = cx.replica(slot).filter(|r| !r.offline) else { return };
    let (start, end) = (replica.log.start(), replica.log.end());
    if known.committed_before(slot).is_some() {
        return;
    }
    let found = look(known, replica.log, upto.min(end));
    if let Some((expected, got)) = found.wrong {
        return cx.broken_at("S51", slot, expected, got);
    }
    for (key, last) in known.last_below(upto) {
        if last.at < start || last.at >= end {
            continue;
        }
        let own = found.keys.get(&key).and_then(|all| all.last()).copied();
        // Or a newer one, in a batch that reaches above: whoever it was copied from was compacted further.
        if own >= Some(last.at) {
            continue;
        }
        if last.tombstone && known.may_be_gone(last.at) {
            if let Some(own) = own {
                let missed = known.missed.contains(&(slot, key));
                back(cx, slot, own, last.at, missed);
            }
            continue;
        }
        let what = if last.tombstone { "tombstone" } else { "value" };
        let expected = format_args!("the last {what} of a key at {}, below the compacted end {upto}", last.at);
        return match own {
            Some(own) => cx.broken_at("S51", slot, expected, format_args!("its last record is at {own}")),
            None => cx.broken_at("S51", slot, expected, "no record of the key"),
        };
    }
}

/// A key that was deleted has a record again.
fn back<S: Sight>(cx: &mut Cx<'_, S>, slot: u16, own: Offset, tombstone: Offset, missed: bool) {
    if missed {
        let place = place_name(cx.sight, cx.roster, cx.at.with_node(cx.node_of(slot)));
        let text = format!("the record at {own} of a key that was deleted at {tombstone} in {place}");
        return cx.report.excuse("S51", Excuse::AwayTooLong, text);
    }
    let expected = format_args!("nothing of a key that was deleted at {tombstone}");
    cx.broken_at("S51", slot, expected, format_args!("a record at {own}"));
}

/// A mirror leader copied `base..next` of a topic that its source compacts.
pub(super) fn given<S: Sight>(cx: &Cx<'_, S>, g: &mut PartitionGhost, base: Offset, next: Offset) {
    let Some(own) = cx.replica(cx.slot) else { return };
    let known = g.more().compaction.get_or_insert_default();
    logs::for_each(own.log, base, next, |batch| {
        known.give(batch);
        true
    });
}

/// What a mirror copied from a compacted part of its source was committed there.
pub(super) fn mirrored<S: Sight>(cx: &mut Cx<'_, S>, origin: &PartitionGhost, base: Offset, next: Offset) {
    let Some(known) = origin.more.as_ref().and_then(|more| more.compaction.as_ref()) else { return };
    let Some(own) = cx.replica(cx.slot) else { return };
    let mut wrong = None;
    logs::for_each(own.log, base, next, |batch| {
        for record in batch.records().flatten().filter(|r| !batch.is_control() && known.knows(r.offset)) {
            if known.fact(record.offset).is_none_or(|there| there.hash != fact(batch, &record).hash) {
                wrong.get_or_insert(record.offset);
            }
        }
        true
    });
    if let Some(at) = wrong {
        cx.broken("S30", "records that the source's leader had", format_args!("another one at {at}"));
    }
}

/// Source and mirror hold the same table below the end up to which either is compacted.
pub(super) fn same_table<S: Sight>(
    cx: &mut Cx<'_, S>,
    origin: &PartitionGhost,
    g: &PartitionGhost,
    logs: (S::Log<'_>, S::Log<'_>),
    slot: u16,
) {
    let upto = origin.compacted().max(g.compacted());
    let (source, own) = logs;
    let known = |g: &PartitionGhost| g.more.as_ref().and_then(|more| more.compaction.clone());
    let (Some(there), Some(here)) = (known(origin), known(g)) else { return };
    if upto == Offset::ZERO || own.end() < upto || source.end() < upto || own.start() != source.start() {
        return;
    }
    if here.followed() < upto {
        return; // a copy that has not heard yet that its source compacts
    }
    let (theirs, ours) = (table(&there, source, upto), table(&here, own, upto));
    let last_of = there.last_below(upto);
    let deleted = |key: &u64| last_of.get(key).filter(|last| last.tombstone && there.may_be_gone(last.at));
    let too_long = |cx: &mut Cx<'_, S>, at: Offset, tombstone: Offset| {
        let place = place_name(cx.sight, cx.roster, cx.at.with_node(cx.node_of(slot)));
        let text =
            format!("the record at {at} of a key that the source deleted at {tombstone} in {place}, or at its source");
        cx.report.excuse("S30", Excuse::AwayTooLong, text);
    };
    for (key, at) in theirs.iter().filter(|(key, at)| last_of.contains_key(key) && ours.get(key) != Some(at)) {
        match deleted(key) {
            // The source's leader has it back itself, which S51 tells there.
            Some(last) if !ours.contains_key(key) => too_long(cx, *at, last.at),
            _ => {
                let expected = format_args!("the source's record at {at}, the last one of its key");
                return cx.broken_at("S30", slot, expected, "another, or none");
            }
        }
    }
    for (key, at) in ours.iter().filter(|(key, _)| !theirs.contains_key(key) && last_of.contains_key(key)) {
        match deleted(key) {
            Some(last) => too_long(cx, *at, last.at),
            None => return cx.broken_at("S30", slot, "no record of a key that the source does not have", at),
        }
    }
}

/// Keys with a value below `to`, and where it is.
fn table<L: LogSight>(known: &Compaction, log: L, to: Offset) -> BTreeMap<u64, Offset> {
    let found = look(known, log, to);
    let last = found.keys.into_iter().filter_map(|(key, all)| Some((key, *all.last()?)));
    last.filter(|(_, at)| known.fact(*at).is_some_and(|fact| !fact.tombstone)).collect()
}
