//! S16 Idempotence. In each partition log, for each producer id and epoch between two PID resets, sequence ranges are
//! consecutive (modulo 2^31) and disjoint, and the records are in the order in which their producer made them, each of them once: a
//! sequence that was given anew to a batch that is there already is consecutive too. For each acknowledgement (value, offset): the
//! record at that offset has that value; this catches writes that were swallowed silently. And no producer counts itself out of what
//! a broker takes for a batch at all.

use super::cx::Cx;
use super::ghost::{Newest, PartitionGhost, Sequences};
use super::logs;
use super::roster::slot_of;
use super::sight::{LogSight, Sight};
use mirrorlab_model::ids::{LeaderEpoch, Offset};
use mirrorlab_model::record::{BatchView, ControlType, Identity};
use mirrorlab_model::wire::errors::ErrorCode;

/// A producer was told that its records `first..first + count` are at `base`.
pub(super) fn acked<S: Sight>(
    cx: &mut Cx<'_, S>,
    g: &PartitionGhost,
    base: Offset,
    producer: u32,
    first: u64,
    (count, acks): (u32, i16),
) {
    let next = base.plus(i64::from(count));
    let expected = Identity { producer, sequence: first };
    let Some(there) = stands_at(cx, slot_of(g.leader), base).filter(|_| base >= g.compacted()) else { return };
    if there.is(expected, next) || g.was_cut(base.plus(1), cx.at.now) {
        return;
    }
    // A leader that was deposed and did not know it answers for itself, if it was asked for no more: in a term that is over, whatever
    // is committed there since.
    let alone = acks != -1;
    let has_it = |there: Standing| there.is(expected, next) && there.written_in < g.leader_epoch;
    if alone && g.members.iter().any(|m| stands_at(cx, m.slot, base).is_some_and(has_it)) {
        return;
    }
    let of = |who: Identity| format!("record {} of client {}", who.sequence, who.producer);
    let found = there.found.map_or_else(|| "a record of nobody here".to_owned(), of);
    let got = format_args!("{found}; records in that batch: {}", there.records);
    cx.broken("S16", format_args!("{} at {base} in a batch of {count} or more, as acknowledged", of(expected)), got);
}

/// A record at an offset of a replica's log.
struct Standing {
    found: Option<Identity>,
    /// After its batch.
    next: Offset,
    records: i32,
    /// The leader epoch of its batch.
    written_in: LeaderEpoch,
}

impl Standing {
    fn is(&self, expected: Identity, next: Offset) -> bool {
        self.found == Some(expected) && self.next >= next
    }
}

/// `None` where it is removed since, or not there (S11); and for a tombstone, which says nothing of who wrote it.
fn stands_at<S: Sight>(cx: &Cx<'_, S>, slot: u16, base: Offset) -> Option<Standing> {
    let log = cx.replica(slot)?.log;
    if base < log.start() || log.end() <= base {
        return None;
    }
    let batch = BatchView::parse(logs::batch_at(&log, base)?).ok()?;
    let record = batch.records().find_map(|r| r.ok().filter(|r| r.offset == base));
    if record.as_ref().is_some_and(|record| record.value.is_none()) {
        return None;
    }
    let found = record.and_then(|record| Identity::parse(record.value?));
    let (next, records, written_in) = (batch.next_offset(), batch.record_count(), batch.leader_epoch());
    Some(Standing { found, next, records, written_in })
}

/// A producer was told that its records are refused for this reason. Nobody here sends what no broker takes, but for records
/// without a key to a compacted topic: then it was made so.
pub(super) fn refused<S: Sight>(cx: &mut Cx<'_, S>, g: &PartitionGhost, error: i16) {
    let malformed = matches!(ErrorCode::from_code(error), Some(ErrorCode::InvalidRecord | ErrorCode::CorruptMessage));
    if malformed && !g.compacts {
        let error = ErrorCode::from_code(error).map_or_else(|| format!("error {error}"), ErrorCode::name);
        cx.broken("S16", "no batch of a producer refused as malformed", error);
    }
}

/// Sets what is known of a producer; returns what was known.
fn put(known: &mut Sequences, id: i64, now: Newest) -> Option<Newest> {
    match known.binary_search_by_key(&id, |entry| entry.0) {
        Ok(at) => Some(std::mem::replace(&mut known[at].1, now)),
        Err(at) => {
            known.insert(at, (id, now));
            None
        }
    }
}

/// The number of the first record of a batch among those that its producer made, −1 if none has one.
fn first_record(batch: &BatchView<'_>) -> i64 {
    let number = |value| Identity::parse(value).and_then(|identity| i64::try_from(identity.sequence).ok());
    batch.records().find_map(|r| number(r.ok()?.value?)).unwrap_or(-1)
}

/// The sequences of a log, batch by batch; see [`super::walk`].
pub(super) struct Walk {
    sequences: Sequences,
    from: Offset,
    /// Only what is committed: the rest may still be cut.
    to: Offset,
    /// Where the last batch ended.
    at: Offset,
    wrong: Option<(String, String)>,
}

impl Walk {
    /// What the leader's log got since the last walk.
    pub(super) fn of(g: &mut PartitionGhost, start: Offset, log_end: Offset) -> Self {
        let to = g.true_hw.min(log_end);
        let more = g.more();
        let mut sequences = std::mem::take(&mut more.sequences);
        if more.walked < start {
            sequences.clear(); // what lay between was removed before anybody looked
        }
        Self { sequences, from: more.walked, to, at: more.walked, wrong: None }
    }

    /// The next batch.
    pub(super) fn see(&mut self, batch: &BatchView<'_>) {
        if batch.last_offset() < self.from || batch.next_offset() > self.to || self.wrong.is_some() {
            return;
        }
        if batch.base_offset() > self.at {
            self.sequences.clear(); // what lay between was compacted away, or copied from where it was
        }
        self.at = batch.next_offset();
        if batch.is_control() {
            if batch.control_type() == Some(ControlType::MirrorPidReset) {
                self.sequences.clear();
            }
            return;
        }
        let (id, epoch) = (batch.producer().0, batch.producer_epoch().0);
        if id < 0 || batch.base_sequence() < 0 {
            return;
        }
        let record = first_record(batch);
        let now = Newest { epoch, sequence: batch.last_sequence(), record };
        let before = put(&mut self.sequences, id, now);
        let next = match before {
            Some(b) if b.epoch == epoch => b.sequence.wrapping_add(1) & i32::MAX,
            // A newer epoch begins at 0; one that was never seen begins anywhere (its past may be gone with retention).
            Some(b) if epoch > b.epoch => 0,
            Some(b) => {
                let got = format!("{epoch} at {}", batch.base_offset());
                self.wrong = Some((format!("no epoch below {} of producer {id}", b.epoch), got));
                put(&mut self.sequences, id, b);
                return;
            }
            None => batch.base_sequence(),
        };
        let (at, whose) = (batch.base_offset(), || format!("of producer {id} (epoch {epoch})"));
        if batch.base_sequence() != next {
            let got = format!("{} at offset {at}", batch.base_sequence());
            self.wrong = Some((format!("sequence {next} {}", whose()), got));
        }
        let newest = before.filter(|b| b.epoch == epoch && b.record >= 0).map_or(-1, |b| b.record);
        if record >= 0 && record <= newest && self.wrong.is_none() {
            self.wrong = Some((format!("a record behind {newest} {}", whose()), format!("{record} at offset {at}")));
        }
    }

    /// Everything was seen.
    pub(super) fn finish<S: Sight>(self, cx: &mut Cx<'_, S>, g: &mut PartitionGhost, leader: u16) {
        let more = g.more();
        more.sequences = self.sequences;
        more.walked = self.to.max(more.walked);
        if let Some((expected, got)) = self.wrong {
            cx.broken_at("S16", leader, expected, got);
        }
    }
}

/// Walks what the leader's log got since the last walk, for this check alone.
pub(super) fn sequences<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost) {
    let leader = slot_of(g.leader);
    let Some(replica) = cx.replica(leader) else { return };
    let mut walk = Walk::of(g, replica.log.start(), replica.log.end());
    logs::for_each(replica.log, walk.from.max(replica.log.start()), walk.to, |batch| {
        walk.see(batch);
        walk.wrong.is_none()
    });
    walk.finish(cx, g, leader);
}
