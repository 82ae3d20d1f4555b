//! Who is in sync: shrink, expand, and the one change in flight per partition (KIP-497, 841, 903).
//!
//! A follower that misses nothing stays in, however long it is silent; one that misses something has to have had everything
//! within `replica.lag.time.max.ms`. So the periodic check walks only leaders with followers that are behind.

use crate::guards::replication as guard;
use crate::ids::{BrokerEpoch, BrokerId, Nanos, Now, Offset, PartitionEpoch, PartitionIx};
use crate::ports::Cx;
use crate::replica::partition::{Follower, Replicas};
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{IsrProposal, IsrVerdict};
use smallvec::SmallVec;

impl Replicas {
    /// Stock rule: nothing is missing, or everything was there not longer than the lag ago.
    pub(crate) fn caught_up(&self, follower: &Follower, end: Offset, now: Nanos) -> bool {
        follower.position == end || now.since(follower.caught_up_at) <= self.lag_max
    }

    /// Not fenced, not stopping, and fetching in its present registration; without a hit of the guards.
    pub(crate) fn eligible(&self, follower: &Follower) -> bool {
        self.view(follower.broker).is_some_and(|b| !b.fenced && !b.shutting_down && b.epoch == follower.broker_epoch)
    }

    fn view(&self, broker: BrokerId) -> Option<&crate::replica::BrokerView> {
        self.brokers.binary_search_by_key(&broker, |b| b.broker).ok().map(|at| &self.brokers[at])
    }

    fn may_join(&self, follower: &Follower, cx: &mut Cx) -> bool {
        let view = self.view(follower.broker).copied();
        let live = view.is_some_and(|b| !b.fenced && !b.shutting_down);
        let known = view.is_some_and(|b| b.epoch == follower.broker_epoch);
        cx.guards.admits(guard::IsrMemberEligible, live) && cx.guards.admits(guard::IsrBrokerEpochMatches, known)
    }

    /// Proposes a follower for the ISR if it is in sync for this epoch.
    pub(crate) fn maybe_expand(&mut self, slot: usize, broker: BrokerId, cx: &mut Cx) {
        let Some(lead) = self.lead(slot) else { return };
        let leader = &self.leaders[lead];
        let bit = leader.bit(broker);
        if bit == 0 || leader.maximal_isr() & bit != 0 || leader.recovering {
            return;
        }
        if !cx.guards.admits(guard::OneIsrChangeAtATime, !leader.in_flight) {
            return;
        }
        let Some(follower) = leader.followers.iter().find(|f| f.broker == broker).copied() else { return };
        if follower.position == Offset::UNKNOWN {
            return;
        }
        let Some(log) = self.logs[slot].as_ref() else { return };
        let read_only = self.topic(self.hot[slot].topic).is_some_and(|t| t.read_only);
        // What was committed lies below the end that the leader began with, or below where it cut that since. A mirror leader does
        // not write its epoch into the log: its follower must stand in the latest epoch that the log knows, too (spec 3.8).
        let in_latest = || follower.position >= log.end() || log.epoch_of(follower.position) == log.latest_epoch();
        let in_epoch = follower.position >= leader.epoch_start && (!read_only || in_latest());
        let at_watermark = follower.position >= log.high_watermark();
        if !cx.guards.admits(guard::IsrJoinNeedsEpochStart, in_epoch)
            || !cx.guards.admits(guard::IsrJoinNeedsWatermark, at_watermark)
            || !self.may_join(&follower, cx)
        {
            return;
        }
        let isr = self.leaders[lead].isr | bit;
        self.propose(slot, lead, isr, cx);
    }

    pub(crate) fn propose(&mut self, slot: usize, lead: usize, isr: u32, cx: &mut Cx) {
        let leader = &mut self.leaders[lead];
        leader.proposed = isr;
        leader.in_flight = true;
        leader.sent = false;
        let hot = &self.hot[slot];
        self.proposals.push(hot.partition);
        cx.trace(Trace::IsrProposed { partition: hot.partition, isr, partition_epoch: hot.partition_epoch });
    }

    /// The periodic check: takes lagging members out. Leaders whose followers are all in and miss nothing leave the list.
    pub fn check_isr(&mut self, now: Now, cx: &mut Cx) {
        let mut behind = std::mem::take(&mut self.behind);
        // A place among the leaders that was given up and taken again is in the list twice.
        behind.sort_unstable();
        behind.dedup();
        behind.retain(|&lead| self.check_one(lead as usize, now.mono, cx));
        behind.append(&mut self.behind);
        self.behind = behind;
    }

    /// Tries again to let followers in that are not: what they waited for (to be unfenced, to register) may have come.
    pub fn recheck_joins(&mut self, cx: &mut Cx) {
        for at in 0..self.behind.len() {
            let lead = self.behind[at] as usize;
            if self.leaders[lead].in_behind {
                self.recheck_join(lead, cx);
            }
        }
    }

    fn recheck_join(&mut self, lead: usize, cx: &mut Cx) {
        let slot = self.leaders[lead].slot as usize;
        for at in 0..self.leaders[lead].followers.len() {
            let broker = self.leaders[lead].followers[at].broker;
            self.maybe_expand(slot, broker, cx);
        }
    }

    /// Lets followers in that are not, and keep up. Who fell behind comes back by its own fetches: what it held once says nothing
    /// of now, and a watermark that stands still below `min.insync.replicas` would let it in as often as it is taken out.
    fn let_back_in(&mut self, slot: usize, lead: usize, end: Offset, now: Nanos, cx: &mut Cx) {
        for at in 0..self.leaders[lead].followers.len() {
            let follower = self.leaders[lead].followers[at];
            if self.caught_up(&follower, end, now) {
                self.maybe_expand(slot, follower.broker, cx);
            }
        }
    }

    /// False if nothing is missing there any more, and nobody is out.
    fn check_one(&mut self, lead: usize, now: Nanos, cx: &mut Cx) -> bool {
        let leader = &self.leaders[lead];
        if !leader.in_behind {
            return false;
        }
        let slot = leader.slot as usize;
        let Some(end) = self.logs[slot].as_ref().map(|log| log.end()) else { return false };
        let mut isr = leader.isr;
        let mut missing = false;
        for follower in &leader.followers {
            if follower.position != end {
                missing = true;
                if !self.caught_up(follower, end, now) {
                    isr &= !leader.bit(follower.broker);
                }
            }
        }
        let in_flight = leader.in_flight;
        if isr != leader.isr && cx.guards.admits(guard::OneIsrChangeAtATime, !in_flight) {
            self.propose(slot, lead, isr, cx);
        }
        self.let_back_in(slot, lead, end, now, cx);
        // Time moves the set of followers that the watermark waits for.
        self.advance_watermark(slot, now, cx);
        let leader = &mut self.leaders[lead];
        leader.in_behind = missing || leader.isr.count_ones() as usize != leader.replicas.len();
        leader.in_behind
    }

    /// Whether proposals wait to be sent.
    #[must_use]
    pub fn has_proposals(&self) -> bool {
        !self.proposals.is_empty()
    }

    /// The proposals to send, at most `limit`. The broker keeps one request in flight.
    pub fn take_proposals(&mut self, limit: usize) -> Vec<IsrProposal> {
        let count = limit.min(self.proposals.len());
        let parts: Vec<PartitionIx> = self.proposals.drain(..count).collect();
        parts.into_iter().filter_map(|partition| self.proposal(partition)).collect()
    }

    fn proposal(&mut self, partition: PartitionIx) -> Option<IsrProposal> {
        let slot = self.slot(partition)?;
        let lead = self.lead(slot)?;
        if !self.leaders[lead].in_flight || self.leaders[lead].sent {
            return None;
        }
        self.leaders[lead].sent = true;
        let leader = &self.leaders[lead];
        let hot = &self.hot[slot];
        let isr: SmallVec<[(BrokerId, BrokerEpoch); 4]> = leader
            .members(leader.proposed)
            .map(|b| (b, leader.followers.iter().find(|f| f.broker == b).map_or(BrokerEpoch(-1), |f| f.broker_epoch)))
            .collect();
        Some(IsrProposal {
            partition,
            leader_epoch: hot.leader_epoch,
            partition_epoch: hot.partition_epoch,
            isr,
            recovered: leader.recovered,
        })
    }

    /// The request with these proposals failed as a whole in a way that may heal: they are sent again.
    pub fn proposals_failed(&mut self, parts: &[PartitionIx]) {
        for &partition in parts {
            self.send_again(partition);
        }
    }

    fn send_again(&mut self, partition: PartitionIx) {
        let Some(lead) = self.slot(partition).and_then(|slot| self.lead(slot)) else { return };
        let leader = &mut self.leaders[lead];
        if leader.in_flight && leader.sent {
            leader.sent = false;
            self.proposals.push(partition);
        }
    }

    /// The controller's answer to one proposal that was sent. Returns true if it will be sent again.
    pub fn on_isr_verdict(&mut self, verdict: &IsrVerdict, now: Now, cx: &mut Cx) -> bool {
        let Some(slot) = self.slot(verdict.partition) else { return false };
        let Some(lead) = self.lead(slot) else { return false };
        // A proposal made after metadata settled the one that this answers is not the one in flight (R23, I13).
        let asked = self.leaders[lead].sent;
        if !cx.guards.admits(guard::StaleIsrAnswerIgnored, asked) {
            return false;
        }
        match verdict.error {
            ErrorCode::None => self.on_isr_accepted(slot, lead, verdict, now, cx),
            ErrorCode::IneligibleReplica => {
                if cx.guards.admits(guard::IsrAnswerClearsFlight, false) {
                    return false;
                }
                let leader = &mut self.leaders[lead];
                leader.proposed = leader.isr;
                leader.in_flight = false;
                leader.sent = false;
                self.advance_watermark(slot, now.mono, cx);
            }
            // The registration changed under the proposal: metadata that says how is on its way and settles it. The
            // maximal ISR keeps the proposed members until then, which is the safe side.
            ErrorCode::InvalidUpdateVersion
            | ErrorCode::FencedLeaderEpoch
            | ErrorCode::NewLeaderElected
            | ErrorCode::NotLeaderOrFollower
            | ErrorCode::UnknownTopicOrPartition
            | ErrorCode::UnknownTopicId
            | ErrorCode::InvalidRequest => {
                if verdict.partition_epoch != PartitionEpoch::default()
                    && verdict.partition_epoch == self.hot[slot].partition_epoch
                {
                    // It was refused although both sides agree on the version: nothing will come to settle it.
                    let leader = &mut self.leaders[lead];
                    leader.proposed = leader.isr;
                    leader.in_flight = false;
                    leader.sent = false;
                }
            }
            _ => {
                if !cx.guards.admits(guard::IsrAnswerClearsFlight, false) {
                    self.send_again(verdict.partition);
                    return true;
                }
            }
        }
        false
    }

    fn on_isr_accepted(&mut self, slot: usize, lead: usize, verdict: &IsrVerdict, now: Now, cx: &mut Cx) {
        let hot = &mut self.hot[slot];
        let fresh = verdict.leader_epoch == hot.leader_epoch && verdict.partition_epoch >= hot.partition_epoch;
        if !cx.guards.admits(guard::StaleIsrAnswerIgnored, fresh) {
            return;
        }
        let unchanged = verdict.partition_epoch == hot.partition_epoch;
        if unchanged && cx.guards.admits(guard::IsrAnswerClearsFlight, false) {
            return;
        }
        hot.partition_epoch = verdict.partition_epoch;
        let leader = &mut self.leaders[lead];
        leader.isr = leader.mask(&verdict.isr);
        leader.proposed = leader.isr;
        leader.in_flight = false;
        leader.sent = false;
        if leader.recovered {
            leader.recovering = false;
            leader.recovered = false;
        }
        let (partition, isr) = (hot.partition, leader.isr);
        cx.trace(Trace::IsrCommitted { partition, isr, partition_epoch: verdict.partition_epoch });
        self.isr_changed(slot, now, cx);
    }

    /// After a committed change: the watermark may move, others may join, a barrier may be reached.
    pub(crate) fn isr_changed(&mut self, slot: usize, now: Now, cx: &mut Cx) {
        self.advance_watermark(slot, now.mono, cx);
        let end = self.logs[slot].as_ref().map(|log| log.end());
        if let (Some(lead), Some(end)) = (self.lead(slot), end) {
            self.let_back_in(slot, lead, end, now.mono, cx);
        }
        self.check_barrier(slot, now.mono, cx);
    }
}
