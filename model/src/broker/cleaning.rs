//! The log cleaner of a broker: a chore that looks for compacted logs worth a cleaning, and the flushes between its steps.
//! What is clean is checkpointed (`cleaner-offset-checkpoint`) only behind a durable swap.

use crate::broker::broker::Broker;
use crate::broker::upkeep::Job;
use crate::guards::log as guard;
use crate::ids::{Now, Offset, PartitionIx};
use crate::ports::Cx;

impl Broker {
    /// One look of the cleaner.
    pub(crate) fn clean_logs(&mut self, now: Now, cx: &mut Cx) {
        for (partition, wants) in self.replicas.clean(now, cx) {
            if wants.is_empty() {
                self.swap_cleaned(partition, true, cx);
            } else {
                self.flushes.start(Job::Clean(partition), &wants, cx);
            }
        }
    }

    /// The files that a cleaning wrote are durable, or failed to become so.
    pub(crate) fn swap_cleaned(&mut self, partition: PartitionIx, ok: bool, cx: &mut Cx) {
        let Some((upto, want)) = self.replicas.swap(partition, ok, cx) else { return };
        self.flushes.start(Job::Swapped(partition, upto), &[want], cx);
        // 1. The checkpoint is on disk, the swap is not. 2. Power loss: the old segments are back, and count as clean. 3. A key's
        // tombstone goes when its time is over, its older value stays.
        if cx.guards.admits(guard::CleanPointAfterSwap, false) {
            self.checkpoint_cleaned(partition, upto, cx);
        }
    }

    /// A swap is durable.
    pub(crate) fn checkpoint_cleaned(&mut self, partition: PartitionIx, upto: Offset, cx: &mut Cx) {
        let (Some(key), Some(now)) = (self.key(partition), self.replicas.cleaned_to(partition)) else { return };
        // It may have been cut meanwhile.
        let written = self.write_clean_points(&[(key, now.min(upto))], cx);
        written.into_iter().for_each(|file| self.flush_checkpoint(file, cx));
    }
}
