//! S17 Producer table. On every replica, after every restart and every cut, the producer table is the fold of the log; PID
//! resets included. A producer whose newest batch lies below the log start may still be known (from a snapshot), and one that
//! was silent for long may be forgotten: both are Kafka's.

use super::cx::Cx;
use super::logs;
use super::sight::{LogSight, Sight};
use mirrorlab_model::ids::Offset;
use mirrorlab_model::record::ControlType;
use smallvec::SmallVec;

/// Batches that are folded at most; a longer log is folded from where that many remain, and older producers are left out.
const BATCHES_MAX: usize = 20_000;

/// Epoch, last sequence and last offset of the newest batch by producer id, ascending; nearly always of one producer.
type Fold = SmallVec<[(i64, (i16, i32, i64)); 2]>;

fn put(fold: &mut Fold, id: i64, newest: (i16, i32, i64)) {
    match fold.binary_search_by_key(&id, |entry| entry.0) {
        Ok(at) => fold[at].1 = newest,
        Err(at) => fold.insert(at, (id, newest)),
    }
}

fn find(fold: &Fold, id: i64) -> Option<(i16, i32, i64)> {
    fold.binary_search_by_key(&id, |entry| entry.0).ok().map(|at| fold[at].1)
}

/// The table of a replica against its log.
pub(super) fn table<S: Sight>(cx: &mut Cx<'_, S>, slot: u16) {
    let Some(replica) = cx.replica(slot).filter(|r| !r.offline) else { return };
    let log = replica.log;
    let count: usize = (0..log.segments()).map(|s| log.batches(s) as usize).sum();
    if count == 0 || count > BATCHES_MAX {
        return;
    }
    // Per producer: epoch, last sequence, last offset of its newest batch.
    let mut fold = Fold::new();
    let mut reset = Offset(-1);
    logs::for_each(log, log.start(), log.end(), |batch| {
        if batch.is_control() {
            if batch.control_type() == Some(ControlType::MirrorPidReset) {
                fold.clear();
                reset = batch.base_offset();
            }
        } else if batch.producer().0 >= 0 {
            let newest = (batch.producer_epoch().0, batch.last_sequence(), batch.last_offset().0);
            put(&mut fold, batch.producer().0, newest);
        }
        true
    });
    let table = log.producers();
    let mut wrong = None;
    for entry in table.entries() {
        let in_log = entry.last_offset >= log.start();
        let known = find(&fold, entry.producer.0);
        let found = (entry.epoch.0, entry.last_sequence, entry.last_offset.0);
        let stale = entry.last_offset != Offset::UNKNOWN && entry.last_offset < reset;
        let same = known.is_none_or(|k| k == found || entry.last_sequence < 0);
        if stale || !same || (in_log && known.is_none()) {
            wrong = Some((entry.producer.0, known, Some(found)));
            break;
        }
    }
    // Forgetting is by age, all older ones with it: a forgotten producer has nobody older in the table.
    if wrong.is_none() {
        let oldest = table.entries().map(|e| e.last_offset.0).filter(|o| *o >= 0).min();
        let missing = fold.iter().find(|(id, k)| {
            table.get(mirrorlab_model::ids::ProducerId(*id)).is_none() && oldest.is_some_and(|o| o < k.2)
        });
        wrong = missing.map(|(id, k)| (*id, Some(*k), None));
    }
    if let Some((id, expected, got)) = wrong {
        let expected = format!("producer {id} as in the log: (epoch, last sequence, last offset) {expected:?}");
        cx.broken_at("S17", slot, expected, format_args!("{got:?}"));
    }
}
