//! The log cleaner's schedule (Kafka's `LogCleanerManager`): which compacted logs are worth a cleaning, and what becomes of one.
//! Only logs that closed a segment are looked at; a log that waits for its watermark, its age or a flush is looked at again.

use crate::ids::{Now, Offset, PartitionIx};
use crate::log::{CleanError, Cleaned, FlushWant};
use crate::ports::Cx;
use crate::replica::partition::{Hot, Replicas};
use crate::trace::Trace;

impl Replicas {
    /// A compacted log has a closed segment that the cleaner has not seen.
    pub(crate) fn note_to_clean(&mut self, slot: usize) {
        let policy = self.topics.get(self.hot[slot].topic.0 as usize).and_then(Option::as_ref);
        let flags = &mut self.hot[slot].flags;
        if policy.is_some_and(|policy| policy.log.compact) && *flags & Hot::TO_CLEAN == 0 {
            *flags |= Hot::TO_CLEAN;
            self.to_clean.push(slot as u32);
        }
    }

    /// One look of the cleaner: writes the new files of all logs that are worth it, the dirtiest first, and says what to flush
    /// before [`Self::swap`].
    pub fn clean(&mut self, now: Now, cx: &mut Cx) -> Vec<(PartitionIx, Vec<FlushWant>)> {
        let mut due = Vec::new();
        for slot in std::mem::take(&mut self.to_clean) {
            let at = slot as usize;
            self.hot[at].flags &= !Hot::TO_CLEAN;
            let policy = self.topics.get(self.hot[at].topic.0 as usize).and_then(Option::as_ref);
            let (Some(log), Some(policy)) = (&self.logs[at], policy.filter(|policy| policy.log.compact)) else {
                continue;
            };
            if self.hot[at].flags & Hot::OFFLINE != 0 {
                continue;
            }
            let dirty = log.dirty(cx.guards, &policy.log, now);
            if dirty.due && !log.is_being_cleaned() {
                due.push((at, dirty));
            } else if dirty.waits || dirty.due {
                self.note_to_clean(at);
            }
        }
        due.sort_by_key(|(at, dirty)| (std::cmp::Reverse(dirty.share_ppm), *at));
        let mut planned = Vec::new();
        for (at, dirty) in due {
            let policy = self.topics.get(self.hot[at].topic.0 as usize).and_then(Option::as_ref);
            let (Some(log), Some(policy)) = (self.logs[at].as_mut(), policy) else { continue };
            let mut wants = Vec::new();
            match log.plan_cleaning(cx.disk, cx.guards, &policy.log, &dirty, now, &mut wants) {
                Ok(true) => {
                    let partition = self.hot[at].partition;
                    cx.trace(Trace::CleaningBegun { partition, to: dirty.upto, at_ms: now.wall_ms });
                    planned.push((partition, wants));
                }
                Ok(false) => self.cleaned(at, Cleaned { from: dirty.from, upto: dirty.upto, at_ms: now.wall_ms }, cx),
                Err(CleanError::Damaged(offset)) => {
                    let partition = self.hot[at].partition;
                    cx.trace(Trace::CorruptFound { partition, at: offset });
                }
                Err(CleanError::Disk(_)) => self.take_offline(at),
            }
            if dirty.waits {
                self.note_to_clean(at);
            }
        }
        planned
    }

    /// The new files of a log are durable: swaps. Gives up to where it is clean, and the directory to flush.
    pub fn swap(&mut self, partition: PartitionIx, ok: bool, cx: &mut Cx) -> Option<(Offset, FlushWant)> {
        let slot = self.slot(partition)?;
        let log = self.logs[slot].as_mut()?;
        if !ok {
            log.set_offline();
            self.take_offline(slot);
            return None;
        }
        match log.swap(cx.disk) {
            Ok(Some(cleaned)) => {
                let dir = log.dir();
                self.cleaned(slot, cleaned, cx);
                Some((cleaned.upto, FlushWant::Dir(dir)))
            }
            Ok(None) => {
                self.note_to_clean(slot);
                None
            }
            Err(_) => {
                self.take_offline(slot);
                None
            }
        }
    }

    fn cleaned(&mut self, slot: usize, cleaned: Cleaned, cx: &mut Cx) {
        let Cleaned { from, upto: to, at_ms } = cleaned;
        cx.trace(Trace::Cleaned { partition: self.hot[slot].partition, from, to, at_ms });
    }

    /// Up to where a log is clean.
    #[must_use]
    pub fn cleaned_to(&self, partition: PartitionIx) -> Option<Offset> {
        self.log(partition)?.clean_point()
    }
}
