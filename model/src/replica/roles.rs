//! What committed metadata makes of a replica: leader, follower, or gone.
//!
//! A *new leader epoch* starts everything anew: a leader notes where its epoch begins and forgets all positions (R07, R09), a
//! follower starts its fetching again even under the same leader (R08). The *same* leader epoch keeps all of that (R23).

use crate::guards::replication as guard;
use crate::ids::{
    BrokerEpoch, BrokerId, LeaderEpoch, Nanos, Now, Offset, PartitionEpoch, PartitionIx, TopicId, TopicIx, TopicLife,
};
use crate::log::Log;
use crate::metadata::records::PartitionState;
use crate::ports::{Cx, DirName, DiskError};
use crate::replica::barrier::Barrier;
use crate::replica::fetch_session::SessionSlot;
use crate::replica::partition::{mutant, Follower, Hot, LeaderState, Replicas, NONE};
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use smallvec::SmallVec;

/// One partition as the metadata image has it.
#[derive(Clone, Copy, Debug)]
pub struct PartitionSpec<'a> {
    /// Which.
    pub partition: PartitionIx,
    /// Its topic.
    pub topic: TopicIx,
    /// The topic's id.
    pub topic_id: TopicId,
    /// Its number within the topic.
    pub number: u32,
    /// Its registration.
    pub state: &'a PartitionState,
}

/// What the fetchers have to know after metadata was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchChange {
    /// Which.
    pub partition: PartitionIx,
    /// Whom to fetch from from now on; `None`: nobody.
    pub leader: Option<BrokerId>,
    /// Where a replica that was removed was fetched: fetcher and slot.
    pub(crate) was: Option<(u16, u32)>,
}

impl Replicas {
    /// Applies one partition's registration. `found` is the log that was loaded at boot for this topic id and number, if any.
    ///
    /// # Errors
    /// The disk's, if the log of a new replica cannot be made.
    pub fn apply(
        &mut self,
        spec: &PartitionSpec<'_>,
        found: Option<Log>,
        now: Now,
        cx: &mut Cx,
    ) -> Result<(), DiskError> {
        if !spec.state.replicas.contains(&self.me) {
            self.remove(spec.partition, now, cx);
            return Ok(());
        }
        let (slot, new) = match self.slot(spec.partition) {
            Some(slot) => (slot, false),
            None => (self.host(spec, found, cx)?, true),
        };
        let hot = &self.hot[slot];
        let older = !new && spec.state.partition_epoch < hot.partition_epoch;
        if !cx.guards.admits(guard::OlderMetadataIgnored, !older) {
            return Ok(());
        }
        let new_epoch = new || spec.state.leader_epoch > hot.leader_epoch;
        if spec.state.leader == self.me {
            self.become_leader(slot, spec, new_epoch, now, cx);
        } else {
            self.become_follower(slot, spec, new_epoch, now, cx);
        }
        Ok(())
    }

    fn host(&mut self, spec: &PartitionSpec<'_>, found: Option<Log>, cx: &mut Cx) -> Result<usize, DiskError> {
        let log = match found {
            Some(log) => log,
            None => {
                let topic = TopicLife { id: spec.topic_id, ix: spec.topic };
                let name = DirName::Partition { topic, partition: spec.number };
                let dir = cx.disk.open_dir(name, true)?;
                Log::create(cx.disk, dir, Offset::ZERO)?
            }
        };
        let hot = Hot {
            partition: spec.partition,
            topic: spec.topic,
            leader: BrokerId::NONE,
            leader_epoch: LeaderEpoch::NONE,
            partition_epoch: PartitionEpoch(-1),
            lead: NONE,
            fetch_slot: NONE,
            fetcher: 0,
            flags: 0,
        };
        let at = spec.partition.0 as usize;
        if self.index.len() <= at {
            self.index.resize(at + 1, NONE);
        }
        let slot = if let Some(slot) = self.free.pop() {
            self.hot[slot as usize] = hot;
            self.logs[slot as usize] = Some(log);
            slot as usize
        } else {
            self.logs.push(Some(log));
            self.hot.push(hot)
        };
        self.index[at] = slot as u32;
        if self.logs[slot].as_ref().is_some_and(|log| log.segment_count() > 1) {
            self.note_to_clean(slot);
        }
        Ok(slot)
    }

    /// Removes a replica and its directory.
    pub fn remove(&mut self, partition: PartitionIx, now: Now, cx: &mut Cx) {
        let Some(slot) = self.slot(partition) else { return };
        self.resign(slot, now, cx);
        let hot = &self.hot[slot];
        if hot.fetch_slot != NONE {
            let was = Some((hot.fetcher, hot.fetch_slot));
            self.fetch_changes.push(FetchChange { partition, leader: None, was });
        }
        if let Some(log) = self.logs[slot].take() {
            // A directory that cannot be removed is a stray: the next boot finds and ignores it (I18).
            let _ = cx.disk.remove_dir(log.dir());
        }
        self.index[partition.0 as usize] = NONE;
        self.marking.remove(&partition);
        self.flushed_at.remove(&(slot as u32));
        self.hot[slot].flags = 0;
        self.free.push(slot as u32);
        cx.trace(Trace::ReplicaRemoved { partition });
    }

    fn become_leader(&mut self, slot: usize, spec: &PartitionSpec<'_>, new_epoch: bool, now: Now, cx: &mut Cx) {
        let PartitionSpec { partition, state, .. } = *spec;
        let was_leader = self.hot[slot].lead != NONE;
        // Not older: `OlderMetadataIgnored` stands before this.
        let newer = state.partition_epoch != self.hot[slot].partition_epoch;
        let hot = &mut self.hot[slot];
        hot.leader = self.me;
        hot.leader_epoch = hot.leader_epoch.max(state.leader_epoch);
        hot.partition_epoch = state.partition_epoch;
        if hot.fetch_slot != NONE {
            self.fetch_changes.push(FetchChange { partition, leader: None, was: None });
        }
        let reset = new_epoch || !was_leader || mutant(cx.guards, guard::SameEpochKeepsState, true);
        let lead = self.seat(slot, was_leader);
        self.leaders[lead].replicas = state.replicas.iter().copied().collect();
        self.seat_followers(slot, lead, &state.isr, reset, now.mono, cx);
        let leader = &mut self.leaders[lead];
        let committed = leader.mask(&state.isr);
        let isr_changed = leader.isr != committed;
        if reset || newer {
            leader.isr = committed;
            leader.proposed = committed;
            leader.in_flight = false;
            leader.sent = false;
            leader.recovering = state.recovering;
            leader.recovered = false;
        }
        if reset {
            self.start_epoch(slot, lead, state.leader_epoch, cx);
        } else if isr_changed && newer {
            let isr = committed;
            cx.trace(Trace::IsrCommitted { partition, isr, partition_epoch: state.partition_epoch });
        }
        self.note_flush_due(slot);
        self.report_recovery(slot, lead, cx);
        self.isr_changed(slot, now, cx);
    }

    /// A place among the leaders.
    fn seat(&mut self, slot: usize, was_leader: bool) -> usize {
        if was_leader {
            return self.hot[slot].lead as usize;
        }
        let state = LeaderState {
            slot: slot as u32,
            replicas: SmallVec::new(),
            isr: 0,
            proposed: 0,
            in_flight: false,
            sent: false,
            recovering: false,
            recovered: false,
            in_behind: false,
            barrier: Barrier::None,
            aligned: LeaderEpoch::NONE,
            epoch_start: Offset::ZERO,
            followers: SmallVec::new(),
            watchers: SmallVec::new(),
            waits: (NONE, NONE),
        };
        let lead = if let Some(lead) = self.leaders_free.pop() {
            // `check_isr` may still hold this index of an earlier leader; it reads the flag first.
            self.leaders[lead as usize] = state;
            lead as usize
        } else {
            self.leaders.push(state)
        };
        self.hot[slot].lead = lead as u32;
        lead
    }

    /// The followers of the replica list. In a new epoch all positions are unknown; else those that stay keep theirs.
    fn seat_followers(&mut self, slot: usize, lead: usize, isr: &[BrokerId], reset: bool, now: Nanos, cx: &mut Cx) {
        let me = self.me;
        let end = self.logs[slot].as_ref().map_or(Offset::ZERO, |log| log.end());
        let leader = &mut self.leaders[lead];
        let before = std::mem::take(&mut leader.followers);
        for broker in leader.replicas.iter().copied().filter(|b| *b != me) {
            let old = before.iter().find(|f| f.broker == broker).copied();
            // Members of the ISR have the whole lag to show up (stock `resetReplicaState`).
            let since = if isr.contains(&broker) { now } else { Nanos::ZERO };
            let forget = reset && !mutant(cx.guards, guard::PositionsResetInNewEpoch, old.is_some());
            let follower = old.filter(|_| !forget).unwrap_or(Follower {
                broker,
                session: NONE,
                position: Offset::UNKNOWN,
                broker_epoch: BrokerEpoch(-1),
                caught_up_at: since,
                end_at_fetch: end,
                fetched_at: since,
            });
            leader.followers.push(follower);
        }
        if !leader.followers.is_empty() && !leader.in_behind {
            leader.in_behind = true;
            self.behind.push(lead as u32);
        }
    }

    fn start_epoch(&mut self, slot: usize, lead: usize, epoch: LeaderEpoch, cx: &mut Cx) {
        let hot = &self.hot[slot];
        let read_only = self.topics.get(hot.topic.0 as usize).and_then(Option::as_ref).is_some_and(|t| t.read_only);
        let (partition, partition_epoch) = (hot.partition, hot.partition_epoch);
        let Some(log) = self.logs[slot].as_mut() else { return };
        let epoch_start = log.end();
        let note = if read_only {
            mutant(cx.guards, guard::MirrorLeaderKeepsSourceEpochs, true)
        } else {
            !mutant(cx.guards, guard::EpochStartAssigned, true)
        };
        if note {
            log.assign_epoch_start(epoch, epoch_start);
        }
        let aligned = log.aligned();
        self.marking.remove(&partition);
        let leader = &mut self.leaders[lead];
        leader.epoch_start = epoch_start;
        leader.aligned = aligned;
        for watcher in &leader.watchers {
            self.sessions.touch(*watcher, SessionSlot::URGENT, 0);
        }
        cx.trace(Trace::BecameLeader { partition, epoch, partition_epoch, epoch_start });
    }

    /// After an unclean election the leader reports at once that it has recovered; the ISR does not grow before (S12).
    fn report_recovery(&mut self, slot: usize, lead: usize, cx: &mut Cx) {
        let leader = &mut self.leaders[lead];
        if !leader.recovering || leader.in_flight {
            return;
        }
        leader.recovered = true;
        let isr = leader.isr;
        self.propose(slot, lead, isr, cx);
    }

    fn become_follower(&mut self, slot: usize, spec: &PartitionSpec<'_>, new_epoch: bool, now: Now, cx: &mut Cx) {
        let PartitionSpec { partition, state, .. } = *spec;
        self.resign(slot, now, cx);
        self.note_flush_due(slot);
        let hot = &mut self.hot[slot];
        let same_leader = hot.leader == state.leader;
        hot.leader = state.leader;
        hot.leader_epoch = hot.leader_epoch.max(state.leader_epoch);
        hot.partition_epoch = hot.partition_epoch.max(state.partition_epoch);
        let fetching = hot.fetch_slot != NONE;
        if !new_epoch && same_leader && (fetching || state.leader == BrokerId::NONE) {
            return;
        }
        let leader = (state.leader != BrokerId::NONE).then_some(state.leader);
        self.fetch_changes.push(FetchChange { partition, leader, was: None });
        if new_epoch || !same_leader {
            let epoch = state.leader_epoch;
            cx.trace(Trace::BecameFollower { partition, epoch, leader: state.leader });
        }
        self.cut_to_watermark_mutant(slot, now, cx);
    }

    /// R01, put back only by a mutant: the follower cuts to what it knows to be committed.
    fn cut_to_watermark_mutant(&mut self, slot: usize, now: Now, cx: &mut Cx) {
        let Some(log) = self.logs[slot].as_ref() else { return };
        let (hw, end) = (log.high_watermark(), log.end());
        if mutant(cx.guards, guard::ReconcileByEpoch, hw < end) {
            let _ = self.cut(slot, hw, crate::trace::CutCause::Divergence, now, cx);
        }
    }

    /// Ends leadership: waiting producers hear of it, readers are checked again.
    pub(crate) fn resign(&mut self, slot: usize, _now: Now, cx: &mut Cx) {
        let Some(lead) = self.lead(slot) else { return };
        if cx.guards.admits(guard::DeposedLeaderRefuses, self.leaders[lead].waits.0 == NONE) {
            self.fail_waits(lead, ErrorCode::None);
        } else {
            self.fail_waits(lead, ErrorCode::NotLeaderOrFollower);
        }
        let leader = &mut self.leaders[lead];
        leader.in_behind = false;
        leader.barrier = Barrier::None;
        leader.in_flight = false;
        leader.followers = SmallVec::new();
        for watcher in std::mem::take(&mut leader.watchers) {
            self.sessions.touch(watcher, SessionSlot::URGENT, 0);
            self.sessions.unwatched(watcher);
        }
        self.marking.remove(&self.hot[slot].partition);
        self.hot[slot].lead = NONE;
        self.leaders_free.push(lead as u32);
    }

    /// What the fetchers have to be told since the last call.
    pub fn take_fetch_changes(&mut self) -> Vec<FetchChange> {
        std::mem::take(&mut self.fetch_changes)
    }
}
