//! Leader epochs are raised above the source's: wishes are collected, and go to the controller at the end of a task (spec
//! 3.3, 3.4).

use crate::guards::{mirror as guard, prototype as quirk};
use crate::ids::{LeaderEpoch, MirrorIx, Now, PartitionIx};
use crate::metadata::image::MetadataImage;
use crate::mirror::epochs::{bump_minimum, needs_bump};
use crate::mirror::fetcher::FailCause;
use crate::mirror::manager::{MirrorManager, MirrorTask, WAIT_MAX};
use crate::ports::Cx;
use crate::replica::channel::{Outcome as ChannelOutcome, Purpose};
use crate::states::MirrorState;
use crate::trace::Trace;
use crate::wire::messages::{Body, BumpLeaderEpochsRequest};
use std::collections::BTreeSet;

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

    /// After a look at the source: every leader epoch that the source came close to is raised, of the partitions that are copied
    /// here. The prototype has the mirror's coordinator do it for all topics that are wanted MIRRORING (spec 3.3, K10); but only
    /// the leader knows what is copied, and what is not must not rise: two clusters that were told to mirror each other would
    /// raise each other's epochs for ever.
    pub(super) fn periodic_bump(&mut self, image: &MetadataImage, mirror: MirrorIx, cx: &mut Cx<'_>) {
        let Some(source) = self.sources.get(&mirror) else { return };
        let mut close = Vec::new();
        for (name, id) in &source.wanted {
            let Some(entry) = image.topic_by_name(name).and_then(|topic| image.topic(topic)) else { continue };
            for (number, partition) in entry.partitions.iter().enumerate() {
                let Some(part) = self.part(*partition).filter(|part| part.state == MirrorState::Mirroring) else {
                    continue;
                };
                let theirs = source.cluster.epoch(*id, number as u32);
                if let Some(theirs) = theirs.filter(|theirs| needs_bump(*theirs, part.leader_epoch)) {
                    close.push((*partition, theirs));
                }
            }
        }
        for (partition, epoch) in close {
            self.want_bump(partition, epoch, cx);
        }
    }

    /// Sends the bumps collected so far, in requests below the controller's limits (decision 16). A bump is done when the image
    /// says so (spec 3.3), and its wait has a timer; the answer only tells what will not be done.
    pub(super) fn send_bumps(&mut self, now: Now, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        if self.bumps.is_empty() {
            return;
        }
        let bumps = std::mem::take(&mut self.bumps);
        for parts in bumps.chunks(BUMPS_PER_REQUEST) {
            self.requests += 1;
            if parts.len() > 1 && cx.guards.quirk(quirk::BumpWaitsForCompany) {
                self.company.push(parts.to_vec());
            }
            self.bumps_asked.insert(self.requests, parts.to_vec());
            let body = BumpLeaderEpochsRequest { parts: parts.to_vec() };
            let purpose = Purpose::Mirror(self.requests);
            task.controller.send(body.into(), purpose, Some(now.mono + WAIT_MAX), now, cx);
        }
    }

    /// The controller answered, or did not in time. What it refused or left out of its answer counts as failed (decision 32):
    /// it may be asked for again, and a partition that waits for it does not wait in vain.
    pub fn on_outcome(&mut self, now: Now, outcome: ChannelOutcome, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Purpose::Mirror(request) = outcome.purpose else { return };
        let Some(asked) = self.bumps_asked.remove(&request) else { return };
        let granted: BTreeSet<PartitionIx> = match &outcome.result {
            Ok(Body::BumpLeaderEpochsResponse(answer)) if answer.error.is_none() => {
                answer.parts.iter().filter(|(_, error)| error.is_none()).map(|(partition, _)| *partition).collect()
            }
            _ => BTreeSet::new(),
        };
        for (partition, min) in asked.into_iter().filter(|(partition, _)| !granted.contains(partition)) {
            let Some(part) = self.part_mut(partition).filter(|part| part.bump_min == Some(min)) else { continue };
            match (part.state, &outcome.result) {
                (MirrorState::EpochFencing, Ok(_)) => {
                    part.bump_min = None;
                    self.fail(now, partition, FailCause::BumpRefused, task, cx);
                }
                // Its own timer ends the wait.
                (MirrorState::EpochFencing, Err(_)) => {}
                _ => part.bump_min = None,
            }
        }
        self.arm(cx);
    }
}

#[cfg(test)]
#[path = "bumps_tests.rs"]
mod tests;
