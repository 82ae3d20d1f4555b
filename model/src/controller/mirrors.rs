//! The controller's part of mirroring: mirrors are created, topics join them, leader epochs are raised (spec 1.3, 1.4, 3.4).

use crate::controller::plan::Plan;
use crate::controller::topics::{is_legal_name, verdict, Creation, Refusal};
use crate::coordinator::routing::STATE_TOPIC;
use crate::guards::{controller as guard, prototype as quirk};
use crate::ids::{LeaderEpoch, MetadataOffset, MirrorIx, PartitionIx, TopicId, TopicIx};
use crate::metadata::configs::MirrorConfig;
use crate::metadata::patterns::Patterns;
use crate::metadata::records::Record;
use crate::states::DesiredState;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    BumpLeaderEpochsRequest, BumpLeaderEpochsResponse, ConfigResource, CreateClusterMirrorRequest,
    CreateClusterMirrorResponse, NewTopic, StartMirrorTopicsRequest, StartMirrorTopicsResponse,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

// ----------------------------------------------------------------------------------------------------------------- create

/// Plans a mirror, and `__mirror_state` with the first one: both or nothing.
pub fn create_mirror(plan: &mut Plan<'_>, request: &CreateClusterMirrorRequest) -> CreateClusterMirrorResponse {
    match plan_mirror(plan, request) {
        Ok(()) => CreateClusterMirrorResponse::default(),
        Err((error, message)) => {
            plan.entries.clear();
            CreateClusterMirrorResponse { error, message: message.map(Arc::from) }
        }
    }
}

fn plan_mirror(plan: &mut Plan<'_>, request: &CreateClusterMirrorRequest) -> Result<(), Refusal> {
    let name = &request.mirror;
    let refuse = |error, why: &str| Err((error, Some(why.to_string())));
    // A name that begins like an option could not be typed.
    if !is_legal_name(name) || name.starts_with('-') {
        return refuse(
            ErrorCode::InvalidRequest,
            "mirror names follow the rules of topic names, and begin with no dash",
        );
    }
    let mut config = MirrorConfig::default();
    for (key, value) in &request.configs {
        config.set(key, value).map_err(|e| (e.code(), Some(e.to_string())))?;
    }
    if config.bootstrap_servers.is_empty() {
        return refuse(ErrorCode::InvalidRequest, "'bootstrap.servers' is missing");
    }
    if config.source_cluster_id.is_empty() {
        return refuse(ErrorCode::InvalidRequest, "'source.cluster.id' is missing");
    }
    if plan.image().mirror_by_name(name).is_some() {
        return Err((ErrorCode::ClusterMirrorAlreadyExists, Some(format!("mirror '{name}' exists"))));
    }
    plan.push(Record::Mirror { mirror: plan.image().next_mirror(), name: name.clone() });
    for (key, value) in &request.configs {
        let newest = key.strip_prefix("mirror.").map_or(key.clone(), Arc::from);
        let resource = ConfigResource::ClusterMirror(name.clone());
        plan.push(Record::Config { resource, key: newest, value: Some(value.clone()) });
    }
    if plan.image().topic_by_name(STATE_TOPIC).is_none() {
        let topic = state_topic(plan);
        Creation::new(plan).create(plan, &topic)?;
    }
    Ok(())
}

/// `__mirror_state` as spec 7.1 has it.
fn state_topic(plan: &Plan<'_>) -> NewTopic {
    let broker = plan.image().broker_config(crate::ids::BrokerId::NONE, &plan.config.broker);
    let configs = [("cleanup.policy", "compact"), ("compression.type", "producer"), ("retention.ms", "-1")];
    NewTopic {
        name: STATE_TOPIC.into(),
        partitions: broker.mirror_state_topic_num_partitions,
        replication_factor: i16::try_from(broker.mirror_state_topic_replication_factor).unwrap_or(i16::MAX),
        configs: configs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
        ..NewTopic::default()
    }
}

// ------------------------------------------------------------------------------------------------------------------ start

/// What an order makes of a mirror's pattern lists.
pub(crate) struct Lists {
    pub(crate) include: Vec<Arc<str>>,
    pub(crate) exclude: Vec<Arc<str>>,
}

impl Lists {
    /// The lists as they stand.
    pub(crate) fn of(plan: &Plan<'_>, mirror: MirrorIx) -> Self {
        let config = plan.image().mirror(mirror).map(|m| m.config.clone()).unwrap_or_default();
        Self { include: config.topics_include.list().to_vec(), exclude: config.topics_exclude.list().to_vec() }
    }

    /// Writes those that differ (decision 35: what is not edited keeps its default).
    pub(crate) fn push(self, plan: &mut Plan<'_>, mirror: MirrorIx) {
        let Some(image) = plan.image().mirror(mirror).cloned() else { return };
        for (key, new, old) in [
            ("topics.include", self.include, &image.config.topics_include),
            ("topics.exclude", self.exclude, &image.config.topics_exclude),
        ] {
            if old.list() != new.as_slice() {
                let resource = ConfigResource::ClusterMirror(image.name.clone());
                plan.push(Record::Config { resource, key: key.into(), value: Some(new.join(",").into()) });
            }
        }
    }
}

/// A topic that may start, and what that takes.
enum Start {
    /// Nothing: it mirrors already.
    Already,
    /// Nothing yet: discovery finds it at the next refresh.
    Later,
    /// A change of its desired state.
    Existing(TopicIx),
    /// Its creation, and then that.
    New(TopicId, u32),
}

/// Plans the start of topics. Every topic has its own verdict, and a refused one changes nothing, the pattern lists
/// included (decisions 2 and 17).
pub fn start_topics(plan: &mut Plan<'_>, request: &StartMirrorTopicsRequest) -> StartMirrorTopicsResponse {
    let refuse = |error| StartMirrorTopicsResponse { error, topics: Vec::new() };
    let Some(mirror) = plan.image().mirror_by_name(&request.mirror) else {
        return refuse(ErrorCode::UnknownClusterMirror);
    };
    let names: Vec<Arc<str>> = request.topics.iter().map(|(_, name, _)| name.clone()).collect();
    if !plan.guards.admits(guard::StartNeedsFreshStates, states_are_fresh(plan, &names, request.state_offset)) {
        return refuse(ErrorCode::InvalidClusterMirrorStates);
    }
    let mut lists = merged_lists(plan, mirror, request);
    let Some((include, exclude)) = compile(&lists) else { return refuse(ErrorCode::InvalidRequest) };

    let (mut creation, mut topics, mut started) = (Creation::new(plan), Vec::new(), Vec::new());
    let mut named = BTreeSet::new();
    for (id, name, partitions) in &request.topics {
        let result = if !named.insert(name) {
            Err((ErrorCode::InvalidRequest, Some("the topic is named twice".to_string())))
        } else {
            start_one(plan, mirror, (*id, name, *partitions), &exclude, &mut creation)
        };
        if result.is_ok() {
            started.push(name.clone());
        }
        topics.push(verdict(name, result));
    }
    // The names of topics that start are added where no pattern covers them, so that they stay included.
    lists.include.extend(started.iter().filter(|name| !include.matches(name)).cloned());
    lists.push(plan, mirror);
    stop_matching(plan, mirror, |name| exclude.matches(name), &[]);
    StartMirrorTopicsResponse { error: ErrorCode::None, topics }
}

/// Whether no topic's desired state changed after the states were checked. The offset of the check is exclusive.
pub(crate) fn states_are_fresh(plan: &Plan<'_>, topics: &[Arc<str>], offset: MetadataOffset) -> bool {
    offset.0 < 0
        || topics.iter().all(|name| {
            let changed = plan.image().topic_by_name(name).and_then(|ix| plan.state.mirror_changed_at(ix));
            changed.is_none_or(|at| at < offset.0)
        })
}

fn merged_lists(plan: &Plan<'_>, mirror: MirrorIx, request: &StartMirrorTopicsRequest) -> Lists {
    let Lists { mut include, mut exclude } = Lists::of(plan, mirror);
    for pattern in &request.include {
        if !include.contains(pattern) {
            include.push(pattern.clone());
        }
    }
    let literals: BTreeSet<&Arc<str>> =
        request.topics.iter().map(|(_, name, _)| name).chain(&request.include).collect();
    // A literal that is started leaves the exclude list; a pattern there that matches it still refuses it.
    exclude.retain(|p| !literals.contains(p));
    for pattern in &request.exclude {
        if !exclude.contains(pattern) {
            exclude.push(pattern.clone());
        }
    }
    Lists { include, exclude }
}

/// The lists, ready to match; `None` if one of the patterns is none.
pub(crate) fn compile(lists: &Lists) -> Option<(Patterns, Patterns)> {
    Some((Patterns::new(lists.include.clone()).ok()?, Patterns::new(lists.exclude.clone()).ok()?))
}

fn start_one(
    plan: &mut Plan<'_>,
    mirror: MirrorIx,
    (id, name, partitions): (TopicId, &Arc<str>, u32),
    exclude: &Patterns,
    creation: &mut Creation,
) -> Result<(), Refusal> {
    let topic = match may_start(plan, mirror, id, name, partitions, exclude)? {
        Start::Already | Start::Later => return Ok(()),
        Start::Existing(topic) => topic,
        Start::New(id, partitions) => {
            let mirror_id = Some(id);
            let new =
                NewTopic { name: name.clone(), mirror_id, partitions, replication_factor: -1, ..NewTopic::default() };
            creation.create(plan, &new)?
        }
    };
    plan.push(Record::MirrorTopicStateChange { topic, mirror: Some(mirror), desired: DesiredState::Mirroring });
    Ok(())
}

fn may_start(
    plan: &mut Plan<'_>,
    mirror: MirrorIx,
    id: TopicId,
    name: &Arc<str>,
    partitions: u32,
    exclude: &Patterns,
) -> Result<Start, Refusal> {
    let refuse = |error, why: &str| Err((error, Some(why.to_string())));
    if !is_legal_name(name) {
        return refuse(ErrorCode::InvalidTopic, "not a legal topic name");
    }
    if name.starts_with("__") {
        return refuse(ErrorCode::InvalidRequest, "internal topics are not mirrored");
    }
    if exclude.matches(name) {
        return refuse(ErrorCode::InvalidRequest, "the mirror's 'topics.exclude' matches it");
    }
    let image = plan.image();
    let existing = image.topic_by_name(name).and_then(|ix| Some((ix, image.topic(ix)?)));
    let has_id = id != TopicId::ZERO;
    let id_differs = has_id && existing.is_some_and(|(_, t)| t.id != id);
    if id_differs && plan.guards.quirk(quirk::StartWithOtherIdStopsController) {
        plan.broken = Some("a record names a topic that does not exist");
    }
    if !plan.guards.admits(guard::StartTopicIdMatches, !id_differs) {
        return refuse(ErrorCode::InconsistentTopicId, "the topic here has another id than the source's");
    }
    if has_id && existing.is_none() && image.topic_of(id).is_some() {
        return refuse(ErrorCode::TopicAlreadyExists, "the source topic's id belongs to a topic of another name here");
    }
    let Some((ix, topic)) = existing else {
        return Ok(if partitions == 0 { Start::Later } else { Start::New(id, partitions) });
    };
    match topic.mirror {
        Some((other, desired)) if other != mirror && desired != DesiredState::Stopped => {
            refuse(ErrorCode::TopicAlreadyInClusterMirror, "the topic belongs to another mirror")
        }
        Some((same, DesiredState::Mirroring)) if same == mirror => Ok(Start::Already),
        Some((same, DesiredState::Paused)) if same == mirror => {
            refuse(ErrorCode::MirrorTopicNotStopped, "the topic is paused: resume it")
        }
        _ => Ok(Start::Existing(ix)),
    }
}

/// Topics of the mirror that match and are not stopped yet are stopped, unless they were dealt with by name; paused ones of a
/// start's exclude list too (decision 1).
pub(crate) fn stop_matching(plan: &mut Plan<'_>, mirror: MirrorIx, matches: impl Fn(&str) -> bool, named: &[Arc<str>]) {
    let image = plan.image();
    let Some(known) = image.mirror(mirror).cloned() else { return };
    for &topic in &known.topics {
        let again = plan.guards.quirk(guard::ExcludedStoppedAgain);
        let Some(t) = plan.image().topic(topic) else { continue };
        let runs =
            again || matches!(t.mirror, Some((m, DesiredState::Mirroring | DesiredState::Paused)) if m == mirror);
        if runs && matches(&t.name) && !named.contains(&t.name) {
            plan.push(Record::MirrorTopicStateChange { topic, mirror: Some(mirror), desired: DesiredState::Stopped });
        }
    }
}

// ------------------------------------------------------------------------------------------------------------------- bump

/// Plans that leader epochs rise above minima: to max(minimum + 1, current), leaders unchanged (spec 3.4, decision 29). The
/// epoch is in the record: who replays derives nothing (C28).
pub fn bump_epochs(plan: &mut Plan<'_>, request: &BumpLeaderEpochsRequest) -> BumpLeaderEpochsResponse {
    // The same partition may be named twice: the higher minimum counts.
    let mut least: BTreeMap<PartitionIx, LeaderEpoch> = BTreeMap::new();
    for (partition, min) in &request.parts {
        let entry = least.entry(*partition).or_insert(*min);
        *entry = (*entry).max(*min);
    }
    let parts = least.into_iter().map(|(partition, min)| (partition, bump(plan, partition, min))).collect();
    BumpLeaderEpochsResponse { error: ErrorCode::None, parts }
}

fn bump(plan: &mut Plan<'_>, partition: PartitionIx, min: LeaderEpoch) -> ErrorCode {
    let Some(p) = plan.image().partition(partition) else { return ErrorCode::UnknownTopicOrPartition };
    let current = p.state.leader_epoch;
    let Some(above) = min.0.checked_add(1) else { return ErrorCode::InvalidRequest };
    let needed = current < min || current == min && !plan.guards.admits(guard::BumpAboveMinimum, false);
    if needed {
        plan.push(Record::PartitionChange {
            partition,
            leader: None,
            leader_epoch: Some(LeaderEpoch(above.max(current.0))),
            isr: None,
            elr: None,
            last_known_elr: None,
            recovering: None,
            replicas: None,
        });
    }
    ErrorCode::None
}
