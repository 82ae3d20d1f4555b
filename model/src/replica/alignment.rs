//! Alignments with a mirror's source, as leader and followers of one partition agree about them (see [`crate::log::alignment`]).
//!
//! A mirror leader that has cut what its source does not have marks the term; its followers learn it with their next fetch, cut,
//! and mark it too. Positions of followers without the mark are not believed, and the replica barrier waits for it. A mark may
//! not outlive the cut that it tells of, so the cut is flushed first.

use crate::guards::alignment as guard;
use crate::ids::{LeaderEpoch, Nanos, Now, Offset, PartitionIx};
use crate::ports::{Cx, DiskError};
use crate::replica::fetch_session::SessionSlot;
use crate::replica::partition::Replicas;
use crate::trace::CutCause;
use crate::wire::messages::EpochEnd;

/// An alignment on its way to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marking {
    /// The term of the leader that aligned.
    term: LeaderEpoch,
    /// Where its log ended.
    end: Offset,
    /// The term that it was aligned in before.
    before: LeaderEpoch,
    /// The cut is durable and the mark is written: awaits its flush.
    written: bool,
    /// The flush that counts was asked for.
    planned: bool,
}

impl Replicas {
    /// The leader of a mirrored partition has cut what the source does not have: its log ends where the two part. Nothing is
    /// done for a partition that nobody can have written to.
    pub fn mark_alignment(&mut self, now: Now, partition: PartitionIx, cx: &mut Cx) {
        let Some(slot) = self.slot(partition) else { return };
        let (Some(_), Some(log)) = (self.lead(slot), self.logs[slot].as_ref()) else { return };
        let term = self.hot[slot].leader_epoch;
        let end = log.end();
        let untouched = term <= LeaderEpoch(0) && end == Offset::ZERO && log.aligned() == LeaderEpoch::NONE;
        let needless = untouched || log.aligned() >= term;
        if !cx.guards.admits(guard::AlignmentIsMarked, needless) {
            self.begin_marking(slot, term, end, now.mono, cx);
        }
    }

    /// A follower's leader was aligned in a term that this replica missed, or was not in one that it took part in: cuts what is
    /// not of the leader's history. Returns the new log end.
    pub(crate) fn follow_alignment(
        &mut self,
        slot: usize,
        leader: EpochEnd,
        now: Now,
        cx: &mut Cx,
    ) -> Result<Offset, DiskError> {
        let Some(log) = self.logs[slot].as_mut() else { return Err(DiskError::NotFound) };
        let missed = leader.epoch > log.aligned();
        let to = if missed { leader.end } else { log.forget_alignments_after(cx.disk, leader.epoch)? };
        let to = to.clamp(log.start(), log.end());
        self.cut(slot, to, CutCause::Divergence, now, cx)?;
        if missed {
            self.begin_marking(slot, leader.epoch, leader.end, now.mono, cx);
        }
        Ok(self.logs[slot].as_ref().map_or(to, |log| log.end()))
    }

    fn begin_marking(&mut self, slot: usize, term: LeaderEpoch, end: Offset, now: Nanos, cx: &mut Cx) {
        if cx.guards.admits(guard::CutLastsBeforeItsMark, false) {
            self.write_mark(slot, term, end, cx); // the mutant leaves both to whoever flushes next
            return self.marked(slot, term, now, cx);
        }
        let partition = self.hot[slot].partition;
        let before = self.logs[slot].as_ref().map_or(LeaderEpoch::NONE, |log| log.aligned());
        self.marking.insert(partition, Marking { term, end, before, written: false, planned: false });
        self.flush_due.push(partition);
    }

    /// A leader appends of its own: the alignment was given up for a stop, before anything of the source's took the place of what
    /// was cut. Its followers have what is appended now, and must not be told to cut it; whoever was away is told by epochs, for
    /// the cut was made in a later one than anything that it did away with.
    pub(crate) fn give_up_marking(&mut self, slot: usize, cx: &mut Cx) {
        if !self.is_marking(slot) || cx.guards.admits(guard::MarkEndsWithAlignment, false) {
            return;
        }
        let Some(marking) = self.marking.remove(&self.hot[slot].partition) else { return };
        if !marking.written {
            return;
        }
        let Marking { term, end, before, .. } = marking;
        let Some(log) = self.logs[slot].as_mut() else { return };
        let mut ended = log.forget_alignments_after(cx.disk, LeaderEpoch(term.0 - 1)).map(|_| ());
        // 1. Aligned at 12 in term 5, as the followers are, too. 2. Aligned at 12 in term 7, given up. 3. The mark of term 7 had
        // taken the place of the other: without it the followers would know more than their leader, and cut to 12.
        if ended.is_ok() && before > log.aligned() && !cx.guards.admits(guard::GivenUpMarkRestores, false) {
            ended = log.note_alignment(cx.disk, before, end);
        }
        if ended.is_err() {
            self.take_offline(slot);
        }
    }

    fn write_mark(&mut self, slot: usize, term: LeaderEpoch, end: Offset, cx: &mut Cx) {
        let noted = self.logs[slot].as_mut().map(|log| log.note_alignment(cx.disk, term, end));
        if !matches!(noted, Some(Ok(()))) {
            self.take_offline(slot);
        }
    }

    /// Whether an alignment is on its way to the disk.
    #[inline]
    pub(crate) fn is_marking(&self, slot: usize) -> bool {
        !self.marking.is_empty() && self.marking.contains_key(&self.hot[slot].partition)
    }

    pub(crate) fn marking_planned(&mut self, partition: PartitionIx) {
        if let Some(marking) = self.marking.get_mut(&partition) {
            marking.planned = true;
        }
    }

    /// A flush ended: the cut lasts, or the mark does.
    pub(crate) fn marking_flushed(&mut self, slot: usize, this_lineage: bool, now: Nanos, cx: &mut Cx) {
        let partition = self.hot[slot].partition;
        let Some(marking) = self.marking.get_mut(&partition) else { return };
        let counts = this_lineage && std::mem::take(&mut marking.planned);
        let Marking { term, end, written, .. } = *marking;
        if counts && written {
            self.marking.remove(&partition);
            return self.marked(slot, term, now, cx);
        }
        if counts {
            marking.written = true;
            self.write_mark(slot, term, end, cx);
        }
        self.flush_due.push(partition);
    }

    /// A leader is aligned: what its followers hold is not known before they say that they are.
    fn marked(&mut self, slot: usize, term: LeaderEpoch, now: Nanos, cx: &mut Cx) {
        let Some(lead) = self.lead(slot) else { return };
        let leader = &mut self.leaders[lead];
        leader.aligned = term;
        for follower in &mut leader.followers {
            follower.position = Offset::UNKNOWN;
        }
        for watcher in &leader.watchers {
            self.sessions.touch(*watcher, SessionSlot::URGENT | SessionSlot::NEWS, 0);
        }
        self.check_barrier(slot, now, cx);
    }

    /// What a follower has to be told that was aligned last in `theirs`; `None` if it was where this leader was.
    #[inline]
    pub(crate) fn missed_alignment(&self, slot: usize, lead: usize, theirs: LeaderEpoch) -> Option<EpochEnd> {
        let ours = self.leaders[lead].aligned;
        if ours == theirs {
            return None;
        }
        let log = self.logs[slot].as_ref()?;
        let missed = log.alignment_after(theirs).filter(|entry| entry.epoch <= ours);
        Some(missed.map_or(EpochEnd { epoch: ours, end: log.end() }, |entry| EpochEnd {
            epoch: entry.epoch,
            end: entry.start,
        }))
    }
}
