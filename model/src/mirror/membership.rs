//! Which partitions this broker mirrors: what metadata says of them, taken over partition by partition (spec 1.1, 2.3).

use crate::guards::{mirror as guard, prototype as quirk};
use crate::ids::{LeaderEpoch, Now, PartitionIx, TopicIx};
use crate::metadata::delta::MetadataDelta;
use crate::metadata::image::MetadataImage;
use crate::mirror::align::AlignStep;
use crate::mirror::coordinator::Coordinator;
use crate::mirror::manager::{ManagerTask, MirrorManager, MirrorTask, Part, LANE_MANAGER};
use crate::mirror::stop::StopStep;
use crate::mirror::sync::Source;
use crate::ports::Cx;
use crate::states::{DesiredState, MirrorState};

/// No part.
const NONE: u32 = u32::MAX;

/// Whether the source is asked about topics of a desired state.
fn is_looked_up(desired: DesiredState, cx: &mut Cx<'_>) -> bool {
    match desired {
        // A pause waits for MIRRORING (decision 28): till then the source's leaders have to be known.
        DesiredState::Mirroring | DesiredState::Paused => true,
        DesiredState::Stopped => {
            cx.guards.quirk(quirk::StoppedTopicsFailToo) || cx.guards.quirk(quirk::StoppedTopicsAreSynced)
        }
        DesiredState::Unknown => false,
    }
}

impl MirrorManager {
    /// Looks again at everything in a delta. The replicas have applied it already: old fetchers of led partitions are stale
    /// (spec 1.1, A.4.2).
    pub fn on_metadata(&mut self, now: Now, delta: &MetadataDelta, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        for (_, topic) in &delta.topics_removed {
            topic.partitions.iter().for_each(|p| self.forget(*p, cx));
            self.sources.values_mut().for_each(|s| s.drop_topic(&topic.name, topic.id));
        }
        for topic in delta.mirror_topics.iter() {
            self.note_membership(now, task.image, *topic, cx);
        }
        let mut homes = false;
        let led_before = self.coordinator.shards_held();
        for partition in delta.partitions.iter() {
            let entry = task.image.partition(*partition);
            if entry.is_some_and(|entry| Coordinator::is_state_topic(entry.topic, task.image)) {
                homes = true;
                if self.coordinator.look_at(*partition, task.replicas, cx.guards) {
                    self.tasks.push_back(ManagerTask::Load(*partition));
                    cx.wake(LANE_MANAGER);
                }
                continue;
            }
            self.look_at(now, *partition, task, cx);
        }
        if homes && self.coordinator.shards_held() < led_before {
            self.forget_states(cx);
        }
        for mirror in delta.mirrors.iter() {
            self.note_settings(*mirror, task.image, cx);
        }
        if homes || !delta.mirrors.is_empty() {
            self.note_mirrors(now, task.image, cx);
        }
        if !delta.topics_removed.is_empty() || !delta.mirrors.is_empty() {
            self.coordinator.sweep(task.image, now, task.replicas, cx);
        }
        if homes {
            // Whoever waits for a coordinator need not wait longer.
            self.ask_now(now, cx);
        }
        for topic in delta.mirror_topics.iter() {
            if let Some(topic) = task.image.topic(*topic) {
                for partition in &topic.partitions {
                    let before = self.part(*partition).is_some();
                    self.look_at(now, *partition, task, cx);
                    if let Some(part) = self.part_mut(*partition).filter(|_| !before) {
                        part.joined_in = Some(part.leader_epoch);
                    }
                }
            }
        }
        self.arm(cx);
    }

    pub(super) fn note_membership(&mut self, now: Now, image: &MetadataImage, topic: TopicIx, cx: &mut Cx<'_>) {
        let Some(entry) = image.topic(topic) else { return };
        for (mirror, source) in &mut self.sources {
            // Nothing is asked about what is not copied (decision 5).
            let member = image.mirror_of(topic).filter(|(m, _)| m == mirror);
            if !member.is_some_and(|(_, desired)| is_looked_up(desired, cx)) {
                source.wanted.remove(&entry.name);
            }
        }
        let Some((mirror, desired)) = image.mirror_of(topic) else { return };
        let Some(entry_mirror) = image.mirror(mirror) else { return };
        let interval = self.settings.refresh;
        let source = self
            .sources
            .entry(mirror)
            .or_insert_with(|| Source::new(&entry_mirror.config, &entry_mirror.source_nodes, interval, now));
        if is_looked_up(desired, cx) {
            source.wanted.insert(entry.name.clone(), entry.id);
            self.tick_soon(cx);
        }
    }

    /// Brings one partition in line with the image: ours to mirror, or not.
    pub(super) fn look_at(&mut self, now: Now, partition: PartitionIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let image = task.image;
        let member = image.partition(partition).and_then(|entry| {
            let (mirror, _) = image.mirror_of(entry.topic)?;
            let leads = cx.guards.admits(guard::MirrorLeaderOnly, entry.state.leader == self.me);
            leads.then_some((mirror, entry.topic, entry.number))
        });
        let term = task.replicas.leads(partition);
        let (Some((mirror, topic, number)), Some(epoch)) = (member, term) else {
            if member.is_some() && cx.guards.admits(guard::MirrorLeaderOnly, false) {
                return; // the mutant keeps its old fetcher
            }
            if member.is_none() {
                self.stop_on(now, partition, task, cx);
            }
            return self.forget(partition, cx);
        };
        match self.part(partition).map(|p| (p.leader_epoch, p.mirror)) {
            Some((held, held_mirror)) if held == epoch && held_mirror == mirror => {
                // What is wanted may be another thing now.
                self.follow_wish(now, partition, task, cx);
            }
            Some((_, held_mirror)) if held_mirror == mirror => self.on_new_term(now, partition, epoch, task, cx),
            _ => {
                self.forget(partition, cx);
                let Some(topic_id) = image.topic(topic).map(|t| t.id) else { return };
                let mut part = Part::new(partition, topic, topic_id, number, mirror, epoch);
                if let Some(record) = self.remembered.remove(&partition) {
                    part.take(record);
                    self.insert(part);
                    return self.evaluate(now, partition, task, cx);
                }
                self.insert(part);
                self.ask_state(partition, task, cx);
            }
        }
    }

    /// The same broker leads in another epoch: a bump, or an election that came back. Side effects run again (spec 2.3 rule 6);
    /// a write of the old term may still be committed, so the record is read again.
    pub(super) fn on_new_term(
        &mut self,
        now: Now,
        partition: PartitionIx,
        epoch: LeaderEpoch,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        self.stop_fetching(partition, cx);
        let Some(part) = self.part_mut(partition) else { return };
        // Metadata that came late may have others' terms between the two: the next epoch after this one, or the one that was asked
        // for, is this broker's own.
        let asked = part.bump_min.is_some_and(|min| epoch.0 == min.0.saturating_add(1));
        let own = asked || epoch.0 == part.leader_epoch.0.saturating_add(1);
        part.leader_epoch = epoch;
        if part.bump_min.is_none_or(|min| epoch > min) {
            part.bump_min = None;
        }
        part.writing = None;
        // Written and not answered yet, or not in time: it may be committed.
        let in_doubt = part.change.take().is_some();
        part.stop = StopStep::default();
        if part.record.is_none() || !cx.guards.admits(guard::NewTermReadsState, own && !in_doubt) {
            // 1. A leader asks its source before it cuts. 2. Its term ends, and its next one begins; it asks for its state. 3. The
            // source answers first: nobody knows yet whether the partition still aligns.
            let stale = cx.guards.admits(guard::StateReadBeforeAct, false);
            part.record = None;
            if !stale {
                (part.state, part.align) = (MirrorState::Unknown, AlignStep::default());
            }
            return self.ask_state(partition, task, cx);
        }
        if part.state == MirrorState::EpochFencing {
            // Who went on too early (C12) would be sent back before it appended: EpochBumpBeforeAppend.
            if part.bump_min.is_none() {
                self.enter(now, partition, MirrorState::Mirroring, task, cx);
            }
            return;
        }
        self.evaluate(now, partition, task, cx);
    }

    pub(super) fn insert(&mut self, part: Part) {
        let ix = part.partition.0 as usize;
        if self.index.len() <= ix {
            self.index.resize(ix + 1, NONE);
        }
        self.index[ix] = match self.free.pop() {
            Some(at) => {
                self.parts[at as usize] = Some(part);
                at
            }
            None => self.parts.push(Some(part)) as u32,
        };
    }

    /// This broker does not mirror the partition any more.
    pub(super) fn forget(&mut self, partition: PartitionIx, cx: &mut Cx<'_>) {
        let Some(part) = self.part(partition) else { return };
        let awaits_replicas = part.state == MirrorState::LogAlignment && part.align == AlignStep::Replicas;
        if awaits_replicas && cx.guards.quirk(quirk::BarrierSurvivesLeadership) {
            self.left_waiting.insert(partition);
        }
        self.stop_fetching(partition, cx);
        self.drop_timers(partition);
        self.stopping.remove(&partition);
        if let Some(at) = self.part_mut(partition).and_then(|part| part.ask_at.take()) {
            self.asks.remove(&(at, partition));
        }
        let at = std::mem::replace(&mut self.index[partition.0 as usize], NONE);
        if let Some(part) = self.parts[at as usize].take() {
            if let Some(record) = part.record.filter(|_| cx.guards.admits(guard::NewTermReadsState, false)) {
                self.remembered.insert(partition, record); // the mutant believes it when it leads again
            }
            if let Some(source) = self.sources.get_mut(&part.mirror) {
                source.stop_awaiting(partition);
                source.inquiry.forget(partition);
            }
        }
        self.free.push(at);
    }
}
