//! S17 Producer table. On every replica, after every restart and every cut, the producer table is the fold of the log; PID
//! resets included. A producer whose newest batch lies below the log start may still be known (from a snapshot), and one that
//! was silent for long may be forgotten: both are Kafka's. Compaction keeps the newest batch of each producer; but a cut may make
//! one of those that it took the newest again, and the snapshot knows it. Of what rotted in a log its table may know nothing.

use super::cx::Cx;
use super::logs;
use super::sight::{LogSight, RotSight, Sight};
use mirrorlab_model::ids::Offset;
use mirrorlab_model::record::{BatchView, ControlType};
use smallvec::SmallVec;

/// Batches that are folded at most; a longer log is folded from where that many remain, and older producers are left out.
const BATCHES_MAX: usize = 20_000;

/// Epoch, last sequence and last offset of the newest batch by producer id, ascending; nearly always of one producer.
type Newest = SmallVec<[(i64, (i16, i32, i64)); 2]>;

/// The fold of a log, batch by batch; see [`super::walk`].
pub(super) struct Fold {
    newest: Newest,
    reset: Offset,
    /// Batches that rotted in this log: who stands in them may be known, from before, or not.
    rotten: Vec<RotSight>,
    unreadable: SmallVec<[i64; 2]>,
    /// A marker rotted: whatever it says of producers is not known to a table that was rebuilt.
    is_open: bool,
}

impl Fold {
    pub(super) fn of<S: Sight>(cx: &Cx<'_, S>, slot: u16) -> Self {
        let rotten = cx.node_of(slot).map_or_else(Vec::new, |node| cx.sight.rotten(node, cx.partition()));
        Self { newest: Newest::new(), reset: Offset(-1), rotten, unreadable: SmallVec::new(), is_open: false }
    }

    /// Whether a log is short enough to be folded, and holds anything.
    pub(super) fn fits<L: LogSight>(log: L) -> bool {
        let count: usize = (0..log.segments()).map(|s| log.batches(s) as usize).sum();
        (1..=BATCHES_MAX).contains(&count)
    }

    /// The next batch.
    pub(super) fn see(&mut self, batch: &BatchView<'_>) {
        if self.rotten.iter().any(|rot| rot.from == batch.base_offset()) {
            self.is_open |= batch.is_control();
            self.unreadable.push(batch.producer().0);
        }
        if batch.is_control() {
            if batch.control_type() == Some(ControlType::MirrorPidReset) {
                self.newest.clear();
                self.reset = batch.base_offset();
            }
        } else if batch.producer().0 >= 0 {
            let newest = (batch.producer_epoch().0, batch.last_sequence(), batch.last_offset().0);
            match self.newest.binary_search_by_key(&batch.producer().0, |entry| entry.0) {
                Ok(at) => self.newest[at].1 = newest,
                Err(at) => self.newest.insert(at, (batch.producer().0, newest)),
            }
        }
    }

    fn find(&self, id: i64) -> Option<(i16, i32, i64)> {
        self.newest.binary_search_by_key(&id, |entry| entry.0).ok().map(|at| self.newest[at].1)
    }

    /// The whole log was seen: compares with the table. Below `loose` it may lack what the table knows.
    pub(super) fn finish<S: Sight>(&self, cx: &mut Cx<'_, S>, slot: u16, log: S::Log<'_>, loose: Offset) {
        if self.is_open {
            return;
        }
        let table = log.producers();
        let mut wrong = None;
        for entry in table.entries().filter(|entry| !self.unreadable.contains(&entry.producer.0)) {
            let in_log = entry.last_offset >= log.start();
            let known = self.find(entry.producer.0);
            let found = (entry.epoch.0, entry.last_sequence, entry.last_offset.0);
            let stale = entry.last_offset != Offset::UNKNOWN && entry.last_offset < self.reset;
            let same = known.is_none_or(|k| k == found || entry.last_sequence < 0);
            let taken = entry.last_offset < loose.min(log.end()) && known.is_none_or(|k| k.2 < found.2);
            if stale || (!taken && (!same || (in_log && known.is_none()))) {
                wrong = Some((entry.producer.0, known, Some(found)));
                break;
            }
        }
        // Forgetting is by age, all older ones with it: a forgotten producer has nobody older in the table.
        if wrong.is_none() {
            let oldest = table.entries().map(|e| e.last_offset.0).filter(|o| *o >= 0).min();
            let missing = self.newest.iter().find(|(id, k)| {
                !self.unreadable.contains(id)
                    && table.get(mirrorlab_model::ids::ProducerId(*id)).is_none()
                    && oldest.is_some_and(|o| o < k.2)
            });
            wrong = missing.map(|(id, k)| (*id, Some(*k), None));
        }
        if let Some((id, expected, got)) = wrong {
            let say = |newest: Option<(i16, i32, i64)>| match newest {
                Some((epoch, sequence, offset)) => {
                    format!("epoch {epoch}, last sequence {sequence}, last offset {offset}")
                }
                None => "not there".to_owned(),
            };
            cx.broken_at("S17", slot, format!("producer id {id} as in the log: {}", say(expected)), say(got));
        }
    }
}

/// The table of a replica against its log, for this check alone.
pub(super) fn table<S: Sight>(cx: &mut Cx<'_, S>, slot: u16, loose: Offset) {
    let Some(replica) = cx.replica(slot).filter(|r| !r.offline && Fold::fits(r.log)) else { return };
    let mut fold = Fold::of(cx, slot);
    logs::for_each(replica.log, replica.log.start(), replica.log.end(), |batch| {
        fold.see(batch);
        true
    });
    fold.finish(cx, slot, replica.log, loose);
}
