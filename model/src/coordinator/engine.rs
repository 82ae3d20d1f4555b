//! Plan and replay: the one way in which replicated state changes, for the controller and every coordinator shard.
//!
//! 1. An operation reads the state and *plans*: records and an answer. It changes nothing.
//! 2. The caller appends the records to the log. If that fails, nothing has happened.
//! 3. [`Engine::appended`] *replays* them: the only place where state changes. The next operation builds on it, though
//!    nothing is committed yet.
//! 4. The answer waits until everything that the operation saw is committed ([`Engine::on_committed`]).
//! 5. If the log loses the records instead (a failed flush, a lost leadership), [`Engine::on_failed`] goes back to the
//!    committed state and gives the waiting answers back as refused.
//!
//! Recovery is the same replay ([`Engine::recovered`]).

use std::collections::VecDeque;

/// Replicated state that only [`replay`](Self::replay) changes.
pub trait Machine {
    /// One record of the log.
    type Record;
    /// The part of the state that a rollback restores; must clone in constant time. What can be derived from it (indices)
    /// is not in it.
    type Stable: Clone;

    /// Applies the record that stands at `offset`.
    fn replay(&mut self, offset: i64, record: &Self::Record);
    /// The present stable part.
    fn stable(&self) -> &Self::Stable;
    /// Applies a record to a stable part alone.
    fn replay_stable(stable: &mut Self::Stable, offset: i64, record: &Self::Record);
    /// Goes back to a stable part, and derives the rest again.
    fn restore(&mut self, stable: &Self::Stable);
}

/// Records that were appended together, first offset first.
#[derive(Clone, Debug)]
struct Appended<R> {
    base: i64,
    records: Vec<R>,
}

/// A machine, its committed twin, and what lies between them. `A` is an answer that waits.
#[derive(Clone, Debug)]
pub struct Engine<M: Machine, A> {
    machine: M,
    committed: M::Stable,
    committed_end: i64,
    end: i64,
    pending: VecDeque<Appended<M::Record>>,
    waiting: VecDeque<(i64, A)>,
}

impl<M: Machine, A> Engine<M, A> {
    /// Over a state that is committed up to `end` (exclusive): an empty one, or a snapshot.
    pub fn new(machine: M, end: i64) -> Self {
        let committed = machine.stable().clone();
        Self { machine, committed, committed_end: end, end, pending: VecDeque::new(), waiting: VecDeque::new() }
    }

    /// The latest state, uncommitted changes included: what plans build on.
    pub fn latest(&self) -> &M {
        &self.machine
    }
    /// The committed state: what reads answer from.
    pub fn committed(&self) -> &M::Stable {
        &self.committed
    }
    /// Offset after the last record.
    pub fn end(&self) -> i64 {
        self.end
    }
    /// Offset after the last committed record.
    pub fn committed_end(&self) -> i64 {
        self.committed_end
    }
    /// Whether all that exists is committed.
    pub fn is_settled(&self) -> bool {
        self.committed_end >= self.end
    }
    /// Whether some answer waits.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes a record found in the log at start. They become committed like any other, but are not kept for a partial
    /// commit: they commit together, or the process ends.
    pub fn recovered(&mut self, offset: i64, record: &M::Record) {
        debug_assert!(self.pending.is_empty(), "recovery comes before the first operation");
        self.machine.replay(offset, record);
        self.end = offset + 1;
    }

    /// The log that was read ends here: behind its last record there may be offsets of which compaction left nothing.
    pub fn recovered_up_to(&mut self, end: i64) {
        self.end = self.end.max(end);
    }

    /// Takes records that were appended to the log from the present end on.
    pub fn appended(&mut self, records: Vec<M::Record>) {
        let base = self.end;
        for record in &records {
            self.machine.replay(self.end, record);
            self.end += 1;
        }
        if !records.is_empty() {
            self.pending.push_back(Appended { base, records });
        }
    }

    /// Keeps an answer until all that exists now is committed. It is given back at once if that is so already.
    #[must_use]
    pub fn wait(&mut self, answer: A) -> Option<A> {
        if self.is_settled() {
            return Some(answer);
        }
        self.waiting.push_back((self.end, answer));
        None
    }

    /// Everything below `end` is committed. `each` sees the records that became so, in order (those of
    /// [`recovered`](Self::recovered) excepted), each over a state that has all records of its own append and none of a later
    /// one; `release` gets the answers that waited for them.
    pub fn on_committed(
        &mut self,
        end: i64,
        mut each: impl FnMut(&M::Stable, i64, &M::Record),
        mut release: impl FnMut(A),
    ) {
        let end = end.min(self.end);
        if end <= self.committed_end {
            return;
        }
        let mut done = Vec::new();
        while self.pending.front().is_some_and(|batch| batch.base < end) {
            let Some(mut batch) = self.pending.pop_front() else { break };
            let inside = ((end - batch.base) as usize).min(batch.records.len());
            let rest = batch.records.split_off(inside);
            if !rest.is_empty() {
                self.pending.push_front(Appended { base: end, records: rest });
            }
            done.push(batch);
        }
        // 1. A broker is fenced, and let in again before the first of the two is committed. 2. Told over the last state, the
        // first record would show it in sync while it is fenced. So several appends are replayed one after another.
        let whole = end == self.end && (done.len() < 2 || done[0].base != self.committed_end);
        if whole {
            self.committed = self.machine.stable().clone();
        }
        for batch in &done {
            if !whole {
                for (offset, record) in (batch.base..).zip(&batch.records) {
                    M::replay_stable(&mut self.committed, offset, record);
                }
            }
            for (offset, record) in (batch.base..).zip(&batch.records) {
                each(&self.committed, offset, record);
            }
        }
        if end == self.end && !whole {
            // The same once more, but shared with the latest state.
            self.committed = self.machine.stable().clone();
        }
        self.committed_end = end;
        while self.waiting.front().is_some_and(|(at, _)| *at <= end) {
            if let Some((_, answer)) = self.waiting.pop_front() {
                release(answer);
            }
        }
    }

    /// The uncommitted records are lost: back to the committed state. `refuse` gets the answers that waited for them.
    pub fn on_failed(&mut self, mut refuse: impl FnMut(A)) {
        self.pending.clear();
        self.machine.restore(&self.committed);
        self.end = self.committed_end;
        for (_, answer) in self.waiting.drain(..) {
            refuse(answer);
        }
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
