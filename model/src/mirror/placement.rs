//! Which fetcher copies a partition: found or made when the partition starts, left when it stops (spec 4.1).

use crate::coordinator::routing::java_hash;
use crate::ids::{Now, Offset, PartitionIx};
use crate::mirror::fetcher::{fetcher_number, FetchLimits, Fetcher, FetcherKey, Position, Purpose, Task};
use crate::mirror::manager::{MirrorManager, MirrorTask, LANE_MANAGER};
use crate::ports::{Cx, Lane};
use crate::trace::Trace;

impl MirrorManager {
    pub(super) fn start_fetching(
        &mut self,
        now: Now,
        partition: PartitionIx,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        self.start_slot(now, partition, Purpose::Copy, task, cx);
    }

    /// Gives a partition to the fetcher of its source broker.
    pub(super) fn start_slot(
        &mut self,
        now: Now,
        partition: PartitionIx,
        purpose: Purpose,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        // One that copies already goes on: a second slot would outlive the first.
        let Some(part) = self.part(partition).filter(|part| part.place.is_none()) else { return };
        let (topic, topic_id, number, mirror) = (part.topic, part.topic_id, part.number, part.mirror);
        let Some(source) = self.sources.get(&mirror) else { return };
        let (node, known) = match source.cluster.leader(topic_id, number) {
            Ok(found) => found,
            Err(why) => return self.fail(now, partition, why.into(), task, cx),
        };
        let (Some(entry), Some(mirror_entry)) = (task.image.topic(topic), task.image.mirror(mirror)) else { return };
        let Some(log) = task.replicas.log(partition) else { return };
        let position = Position {
            partition,
            topic,
            source_partition: known.partition,
            offset: log.end(),
            source_epoch: known.epoch,
            last_epoch: log.latest_epoch(),
            purpose,
        };
        let config = &mirror_entry.config;
        let key = FetcherKey {
            mirror,
            source: node,
            number: fetcher_number(java_hash(&entry.name), number, self.settings.fetchers),
        };
        let fetcher = self.fetcher_for(key, FetchLimits::of(config));
        let slot = self.fetchers[fetcher as usize].add(position, cx.guards);
        if purpose == Purpose::Copy {
            let (offset, epoch) = (position.offset, position.source_epoch);
            cx.trace(Trace::MirrorFetcherAdded { partition, source: node, offset, epoch });
        }
        if let Some(part) = self.part_mut(partition) {
            part.place = Some((fetcher, slot));
        }
        self.kick(fetcher, cx);
    }

    pub(super) fn fetcher_for(&mut self, key: FetcherKey, limits: FetchLimits) -> u32 {
        if let Some(at) = self.by_key.get(&key) {
            return *at;
        }
        let at = self.fetchers.len() as u32;
        self.fetchers.push(Fetcher::new(key, Lane(LANE_MANAGER.0 + 1 + at as u16), limits));
        self.by_key.insert(key, at);
        at
    }

    /// Wakes a fetcher's lane once, however many partitions it was given.
    pub(super) fn kick(&mut self, fetcher: u32, cx: &mut Cx<'_>) {
        let fetcher = &mut self.fetchers[fetcher as usize];
        if fetcher.tasks.back() != Some(&Task::Kick) {
            fetcher.tasks.push_back(Task::Kick);
            cx.wake(fetcher.lane);
        }
    }

    pub(super) fn stop_fetching(&mut self, partition: PartitionIx, cx: &mut Cx<'_>) {
        let Some((fetcher, slot)) = self.part_mut(partition).and_then(|p| p.place.take()) else { return };
        let held = &mut self.fetchers[fetcher as usize];
        let source = held.key.source;
        let old = held.remove(slot);
        if old.is_some_and(|old| old.purpose != Purpose::Copy) {
            return; // it copied nothing
        }
        if let (Some(old), Some(part)) = (old, self.part_mut(partition)) {
            if old.source_hw >= Offset::ZERO {
                (part.source_hw, part.answered_at) = (old.source_hw, old.answered_at);
            }
        }
        cx.trace(Trace::MirrorFetcherRemoved { partition, source });
    }
}
