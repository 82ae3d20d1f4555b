//! What a consumer asks: its coordinator for positions, leaders for ends of epochs, offsets and records. At most one question
//! of a kind is open per broker.

use crate::client::connections::ChannelStatus;
use crate::client::consumer::{Asked, Awaits, Consumer, Peer};
use crate::client::door::earlier;
use crate::guards::points::Point;
use crate::ids::{BrokerEpoch, BrokerId, LeaderEpoch, Nanos, NodeId, Now, Offset};
use crate::ports::Cx;
use crate::wire::messages::{
    Body, EpochQuestion, FetchPart, FetchRequest, ListOffsetsRequest, OffsetCommitRequest, OffsetFetchRequest,
    OffsetForLeaderEpochRequest, OffsetQuestion, LATEST,
};

impl Consumer {
    pub(super) fn periodic(&mut self, now: Now) {
        if self.next_ends.is_some_and(|at| at <= now.mono) {
            self.next_ends = self.config.list_ends_interval.map(|i| now.mono + Nanos(i.0.max(1)));
            for (slot, s) in self.slots.iter().enumerate() {
                if let Some(peer) = self.peers.get_mut(&s.leader).filter(|p| !p.listing) {
                    peer.ends.push(slot as u32);
                }
            }
        }
        if !self.homeless.is_empty() && !self.cluster.is_refresh_wanted() {
            for &slot in &self.homeless {
                self.cluster.want_refresh_of(self.slots[slot as usize].partition);
            }
        }
    }

    pub(super) fn ask_coordinator(&mut self, now: Now, cx: &mut Cx) {
        let Some(group) = self.config.group.clone() else { return };
        let commit = !self.committing && self.next_commit.is_some_and(|at| at <= now.mono);
        let resume = !self.resuming && !self.to_resume.is_empty();
        if !(commit || resume) || self.group_not_before > now.mono {
            return;
        }
        let brokers = self.cluster.view.brokers();
        if brokers.is_empty() {
            return;
        }
        let node = brokers[self.coordinator as usize % brokers.len()].1;
        match self.cluster.channels.ensure(now, node, cx) {
            ChannelStatus::Ready => {}
            // One that is gone tells nobody that it is not the one.
            ChannelStatus::Down(_) => return self.turn_coordinator(now),
            ChannelStatus::Busy | ChannelStatus::Opening => return,
        }
        if resume {
            let parts = std::mem::take(&mut self.to_resume);
            let ask = parts.iter().map(|&s| self.slots[s as usize].partition).collect();
            let request = OffsetFetchRequest { group: group.clone(), parts: ask };
            self.resuming = self.cluster.send(now, node, request.into(), Asked::Committed { parts }, cx);
        }
        if commit {
            self.next_commit = self.config.commit_interval.map(|i| now.mono + Nanos(i.0.max(1)));
            let slots = std::mem::take(&mut self.uncommitted);
            let mut parts = Vec::with_capacity(slots.len());
            for &slot in &slots {
                let s = &mut self.slots[slot as usize];
                s.uncommitted = false;
                parts.push((s.partition, s.offset, s.last_epoch));
            }
            if !parts.is_empty() {
                let request = OffsetCommitRequest { group, parts };
                self.committing = self.cluster.send(now, node, request.into(), Asked::Commit { parts: slots }, cx);
            }
        }
    }

    /// A commit ended; what was not taken is tried again with the next one.
    pub(super) fn commit_ended(&mut self, again: &[u32]) {
        self.committing = false;
        for &slot in again {
            self.moved(slot);
        }
    }

    /// Another broker is asked as coordinator, after the backoff. It may be one that is not known yet: it was away when the
    /// metadata was asked for.
    pub(super) fn turn_coordinator(&mut self, now: Now) {
        self.coordinator = self.coordinator.wrapping_add(1);
        self.cluster.want_refresh();
        self.group_not_before = now.mono + self.config.retry_backoff;
    }

    fn is_ready(&mut self, now: Now, node: NodeId, cx: &mut Cx) -> bool {
        match self.cluster.channels.ensure(now, node, cx) {
            ChannelStatus::Ready => true,
            ChannelStatus::Down(until) => {
                self.wait = earlier(self.wait, Some(until));
                false
            }
            ChannelStatus::Busy | ChannelStatus::Opening => false,
        }
    }

    pub(super) fn ask_leaders(&mut self, now: Now, cx: &mut Cx) {
        let brokers: smallvec::SmallVec<[BrokerId; 8]> = self.peers.keys().copied().collect();
        for broker in brokers {
            let peer = &self.peers[&broker];
            let fetch = !peer.fetching && !peer.session.is_empty() && peer.not_before <= now.mono;
            let validate = !peer.validating && !peer.validate.is_empty();
            let reset = !peer.resetting && !peer.reset.is_empty();
            let ends = !peer.listing && !peer.ends.is_empty();
            if !(fetch || validate || reset || ends) {
                continue;
            }
            let Some(node) = self.cluster.node(broker) else { continue };
            if !self.is_ready(now, node, cx) {
                continue;
            }
            if validate {
                self.send_validate(now, broker, node, cx);
            }
            if reset {
                self.send_reset(now, broker, node, cx);
            }
            if ends {
                self.send_ends(now, broker, node, cx);
            }
            if fetch {
                self.send_fetch(now, broker, node, cx);
            }
        }
    }

    /// Takes a list of a peer, without what is stale or double.
    fn take_list(
        &mut self,
        broker: BrokerId,
        list: fn(&mut Peer) -> &mut Vec<u32>,
        fits: fn(Awaits) -> bool,
    ) -> Vec<u32> {
        let mut slots = self.peers.get_mut(&broker).map(|p| std::mem::take(list(p))).unwrap_or_default();
        slots.sort_unstable();
        slots.dedup();
        slots.retain(|&s| {
            let s = &self.slots[s as usize];
            s.leader == broker && !s.delayed && fits(s.awaits)
        });
        slots
    }

    fn send_validate(&mut self, now: Now, broker: BrokerId, node: NodeId, cx: &mut Cx) {
        let slots = self.take_list(broker, |p| &mut p.validate, |a| a == Awaits::Validation);
        if slots.is_empty() {
            return;
        }
        let mut questions = Vec::with_capacity(slots.len());
        let mut parts = Vec::with_capacity(slots.len());
        for slot in slots {
            let s = &self.slots[slot as usize];
            questions.push(EpochQuestion {
                partition: s.partition,
                current_leader_epoch: s.leader_epoch,
                epoch: s.last_epoch,
            });
            parts.push((slot, s.leader_epoch, s.offset));
        }
        let request = OffsetForLeaderEpochRequest { replica: BrokerId::NONE, parts: questions };
        let sent = self.cluster.send(now, node, request.into(), Asked::Validate { broker, parts }, cx);
        self.peers.entry(broker).or_default().validating = sent;
    }

    fn send_reset(&mut self, now: Now, broker: BrokerId, node: NodeId, cx: &mut Cx) {
        let slots = self.take_list(broker, |p| &mut p.reset, |a| matches!(a, Awaits::Reset(_)));
        let mut questions = Vec::with_capacity(slots.len());
        let mut parts = Vec::with_capacity(slots.len());
        for slot in slots {
            let s = &self.slots[slot as usize];
            let Awaits::Reset(timestamp) = s.awaits else { continue };
            questions.push(OffsetQuestion { partition: s.partition, current_leader_epoch: s.leader_epoch, timestamp });
            parts.push((slot, s.leader_epoch, timestamp));
        }
        if !parts.is_empty() {
            let request = self.list_offsets(questions);
            let sent = self.cluster.send(now, node, request, Asked::Reset { broker, parts }, cx);
            self.peers.entry(broker).or_default().resetting = sent;
        }
    }

    fn send_ends(&mut self, now: Now, broker: BrokerId, node: NodeId, cx: &mut Cx) {
        let slots = self.take_list(broker, |p| &mut p.ends, |_| true);
        let mut questions = Vec::with_capacity(slots.len());
        let mut parts = Vec::with_capacity(slots.len());
        for slot in slots {
            let s = &self.slots[slot as usize];
            let current_leader_epoch = s.leader_epoch;
            questions.push(OffsetQuestion { partition: s.partition, current_leader_epoch, timestamp: LATEST });
            parts.push((slot, current_leader_epoch));
        }
        if !parts.is_empty() {
            let request = self.list_offsets(questions);
            let sent = self.cluster.send(now, node, request, Asked::Ends { broker, parts }, cx);
            self.peers.entry(broker).or_default().listing = sent;
        }
    }

    fn list_offsets(&self, parts: Vec<OffsetQuestion>) -> Body {
        ListOffsetsRequest { replica: BrokerId::NONE, isolation: self.config.isolation, parts }.into()
    }

    fn send_fetch(&mut self, now: Now, broker: BrokerId, node: NodeId, cx: &mut Cx) {
        let Some(peer) = self.peers.get_mut(&broker) else { return };
        let next = peer.session.next_fetch();
        peer.fetching = true;
        let (mut topic_groups, mut last_topic) = (0, u32::MAX);
        let mut parts = Vec::with_capacity(next.parts.len());
        for (place, slot) in next.parts {
            let s = &mut self.slots[slot as usize];
            topic_groups += u32::from(s.topic != last_topic);
            last_topic = s.topic;
            s.asked = s.offset;
            parts.push(FetchPart {
                slot: place,
                partition: s.partition,
                fetch_offset: s.offset,
                current_leader_epoch: s.leader_epoch,
                last_fetched_epoch: LeaderEpoch::NONE, // as Kafka's consumer: it validates before, not while, it fetches
                log_start: Offset::UNKNOWN,
                max_bytes: self.config.partition_max_bytes,
                mirror_leader_epoch: LeaderEpoch::NONE,
                aligned: LeaderEpoch::NONE,
            });
        }
        self.counts.fetches += 1;
        let request = FetchRequest {
            replica: BrokerId::NONE,
            broker_epoch: BrokerEpoch(-1),
            max_wait_ms: self.config.max_wait.as_millis() as u32,
            min_bytes: self.config.min_bytes,
            max_bytes: if cx.guards.points.fires(Point::ConsumerFetchSmall) { 1 } else { self.config.max_bytes },
            isolation: self.config.isolation,
            session_id: next.id,
            session_epoch: next.epoch,
            topic_groups,
            parts,
            forgotten: next.forgotten,
        };
        let sent = self.cluster.send(now, node, request.into(), Asked::Fetch { broker }, cx);
        debug_assert!(sent, "a ready channel refused a request");
    }
}
