//! What is done once per mirror, by the broker that leads the state partition that the mirror's name hashes to (spec 1.1, 6.1):
//! topics are discovered and grow, excluded ones are stopped.
//!
//! Nothing here waits for the controller's answer: what was not done is seen again at the next look.

use crate::guards::prototype as quirk;
use crate::ids::{MetadataOffset, Nanos};
use crate::ids::{MirrorIx, Now};
use crate::metadata::image::MetadataImage;
use crate::mirror::manager::{MirrorManager, MirrorTask};
use crate::mirror::sync::Source;
use crate::ports::Cx;
use crate::replica::channel::Purpose;
use crate::states::DesiredState;
use crate::trace::Trace;
use crate::wire::messages::{
    Body, CreatePartitionsRequest, MetadataResponse, StartMirrorTopicsRequest, StopMirrorTopicsRequest,
};

/// How long the controller may take to let topics grow (spec 1.10).
const GROWTH_WAIT: Nanos = Nanos::from_secs(3);
/// How long it may take to start and stop topics.
const ORDER_WAIT: Nanos = Nanos::from_secs(30);
/// Partitions that one start may create (decision 16).
const CREATED_MAX: u32 = 10_000;
/// Topics that one order may name.
const NAMED_MAX: usize = 10_000;

impl MirrorManager {
    /// Whether this broker does the jobs of the mirror as a whole.
    pub(super) fn is_mirror_coordinator(&self, image: &MetadataImage, mirror: MirrorIx) -> bool {
        image.mirror(mirror).is_some_and(|entry| self.coordinator.coordinates_mirror(&entry.name, image))
    }

    /// Whether the source is asked for all its topics: to find those that the mirror includes.
    pub(super) fn discovers(&self, image: &MetadataImage, mirror: MirrorIx) -> bool {
        let includes = image.mirror(mirror).is_some_and(|entry| !entry.config.topics_include.is_empty());
        includes && self.is_mirror_coordinator(image, mirror)
    }

    /// A mirror is looked after by its coordinator before it has topics here; one that is gone, by nobody.
    pub(super) fn note_mirrors(&mut self, now: Now, image: &MetadataImage, cx: &mut Cx<'_>) {
        let gone: Vec<MirrorIx> =
            self.sources.keys().copied().filter(|mirror| image.mirror(*mirror).is_none()).collect();
        for mirror in gone {
            self.drop_source(mirror, cx);
        }
        for (mirror, entry) in image.mirrors() {
            if self.discovers(image, mirror) {
                let interval = self.settings.refresh;
                let fresh = || Source::new(&entry.config, &entry.source_nodes, interval, now);
                self.sources.entry(mirror).or_insert_with(fresh);
                self.want_refresh(mirror, cx);
            }
        }
    }

    /// The jobs, after each look at the source.
    pub(super) fn look_after_mirror(
        &mut self,
        now: Now,
        mirror: MirrorIx,
        answer: &MetadataResponse,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        if !self.is_mirror_coordinator(task.image, mirror) {
            return;
        }
        self.grow_topics(now, mirror, task, cx);
        self.discover(now, mirror, answer, task, cx);
        self.stop_excluded(now, mirror, task, cx);
    }

    fn order(&mut self, now: Now, body: Body, wait: Nanos, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        self.requests += 1;
        task.controller.send(body, Purpose::Mirror(self.requests), Some(now.mono + wait), now, cx);
    }

    /// Topics of the source that the mirror includes and that nobody here mirrors are started (spec 6.8): with their ids and
    /// sizes, so that the controller creates what is missing. Internal ones never (decision 22).
    fn discover(
        &mut self,
        now: Now,
        mirror: MirrorIx,
        answer: &MetadataResponse,
        task: &mut MirrorTask<'_>,
        cx: &mut Cx<'_>,
    ) {
        let Some(entry) = task.image.mirror(mirror).cloned() else { return };
        let (mut found, mut size) = (Vec::new(), 0);
        for topic in answer.topics.iter().filter(|topic| topic.error.is_none() && !topic.name.starts_with("__")) {
            let belongs = task.image.topic_by_name(&topic.name).is_some_and(|ix| task.image.mirror_of(ix).is_some());
            let wanted =
                entry.config.topics_include.matches(&topic.name) && !entry.config.topics_exclude.matches(&topic.name);
            if belongs || !wanted || topic.partitions.is_empty() {
                continue;
            }
            let partitions = topic.partitions.len() as u32;
            if size + partitions > CREATED_MAX && !found.is_empty() {
                break; // the rest is found at the next look
            }
            size += partitions;
            found.push((topic.id, topic.name.clone(), partitions));
        }
        if found.is_empty() {
            return;
        }
        let request = StartMirrorTopicsRequest {
            mirror: entry.name.clone(),
            topics: found,
            state_offset: MetadataOffset(-1),
            ..StartMirrorTopicsRequest::default()
        };
        self.order(now, request.into(), ORDER_WAIT, task, cx);
    }

    /// Topics that are copied though the mirror excludes them are stopped (spec 6.8): the lists were edited.
    fn stop_excluded(&mut self, now: Now, mirror: MirrorIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Some(entry) = task.image.mirror(mirror).cloned() else { return };
        let excluded = |ix: &crate::ids::TopicIx| {
            let topic =
                task.image.topic(*ix).filter(|topic| topic.mirror == Some((mirror, DesiredState::Mirroring)))?;
            entry.config.topics_exclude.matches(&topic.name).then(|| topic.name.clone())
        };
        let topics: Vec<_> = entry.topics.iter().filter_map(excluded).take(NAMED_MAX).collect();
        if topics.is_empty() {
            return;
        }
        let request = StopMirrorTopicsRequest {
            mirror: entry.name.clone(),
            topics,
            state_offset: MetadataOffset(-1),
            ..StopMirrorTopicsRequest::default()
        };
        self.order(now, request.into(), ORDER_WAIT, task, cx);
    }

    /// Topics that grew at the source grow here (spec 1.10), those that are wanted PAUSED or STOPPED excepted (decision 5, peer case PAU-05).
    fn grow_topics(&mut self, now: Now, mirror: MirrorIx, task: &mut MirrorTask<'_>, cx: &mut Cx<'_>) {
        let Some(source) = self.sources.get(&mirror) else { return };
        let mut grown = Vec::new();
        for (name, id) in &source.wanted {
            let Some(topic) = task.image.topic_by_name(name) else { continue };
            let wanted = task.image.mirror_of(topic);
            let copied = match wanted.filter(|(m, _)| *m == mirror) {
                Some((_, DesiredState::Mirroring)) => true,
                Some((_, DesiredState::Stopped)) => cx.guards.quirk(quirk::StoppedTopicsAreSynced),
                _ => false,
            };
            let here = task.image.topic(topic).filter(|t| t.id == *id && copied).map(|t| t.partitions.len());
            let there = source.cluster.partition_count(*id);
            if here.is_some_and(|here| here < there) {
                cx.trace(Trace::MirrorGrew { topic, partitions: there as u32 });
                grown.push((name.clone(), there as u32));
            }
        }
        if !grown.is_empty() {
            self.order(now, CreatePartitionsRequest { topics: grown, for_mirror: true }.into(), GROWTH_WAIT, task, cx);
        }
    }
}
