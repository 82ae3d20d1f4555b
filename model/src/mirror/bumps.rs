//! Leader epochs are raised above the source's: wishes are collected, and go to the controller at the end of a task (spec
//! 3.3, 3.4).

use crate::guards::mirror as guard;
use crate::ids::{LeaderEpoch, Now, PartitionIx};
use crate::mirror::epochs::bump_minimum;
use crate::mirror::manager::{MirrorManager, MirrorTask, WAIT_MAX};
use crate::ports::Cx;
use crate::replica::channel::Purpose;
use crate::trace::Trace;
use crate::wire::messages::BumpLeaderEpochsRequest;

/// Partitions per bump request.
const BUMPS_PER_REQUEST: usize = 10_000;

impl MirrorManager {
    /// Asks for a leader epoch above the source's; one bump per partition is under way at a time.
    pub(super) fn want_bump(&mut self, partition: PartitionIx, source_epoch: LeaderEpoch, cx: &mut Cx<'_>) {
        let min = bump_minimum(source_epoch);
        let Some(part) = self.part_mut(partition) else { return };
        if part.bump_min.is_some_and(|pending| pending >= min) {
            return;
        }
        part.bump_min = Some(min);
        if !self.bumps.is_empty() && cx.guards.admits(guard::EveryBumpRemembered, false) {
            self.bumps.clear(); // the mutant has one slot
        }
        self.bumps.push((partition, min));
        cx.trace(Trace::BumpRequested { partition, min });
    }

    /// The same for a partition that another broker may lead.
    pub(super) fn want_bump_anywhere(&mut self, partition: PartitionIx, source_epoch: LeaderEpoch, cx: &mut Cx<'_>) {
        if self.part(partition).is_some() {
            return self.want_bump(partition, source_epoch, cx);
        }
        let min = bump_minimum(source_epoch);
        self.bumps.push((partition, min));
        cx.trace(Trace::BumpRequested { partition, min });
    }

    /// Sends the bumps collected so far, in requests below the controller's limits (decision 16). The answer is not waited
    /// for: a bump is done when the image says so (spec 3.3), and its wait has a timer.
    pub(super) fn send_bumps(&mut self, now: Now, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        if self.bumps.is_empty() {
            return;
        }
        let bumps = std::mem::take(&mut self.bumps);
        for parts in bumps.chunks(BUMPS_PER_REQUEST) {
            let body = BumpLeaderEpochsRequest { parts: parts.to_vec() };
            task.controller.send(body.into(), Purpose::Mirror(0), Some(now.mono + WAIT_MAX), now, cx);
        }
    }
}
