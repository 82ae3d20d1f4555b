//! What operators order of topics that are mirrored: stop, pause, resume; and the end of a mirror (spec 1.5, 1.6, 1.8).
//!
//! Each topic has its own verdict, an error on one leaves the others alone, and an order that is carried out already is a
//! success without effect (decisions 1 and 2).

use crate::controller::mirrors::{compile, states_are_fresh, stop_matching, Lists};
use crate::controller::plan::Plan;
use crate::controller::topics::{verdict, Refusal};
use crate::guards::controller as guard;
use crate::ids::{MetadataOffset, MirrorIx, TopicIx};
use crate::metadata::records::Record;
use crate::states::DesiredState;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    ConfigResource, DeleteClusterMirrorRequest, DeleteClusterMirrorResponse, NamedResult, PauseMirrorTopicsRequest,
    PauseMirrorTopicsResponse, ResumeMirrorTopicsRequest, ResumeMirrorTopicsResponse, StopMirrorTopicsRequest,
    StopMirrorTopicsResponse,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Plans that topics become writable here: from every desired state (decision 1). Patterns leave the include list, or join
/// the exclude list; what of this mirror they match is stopped with the named topics. Who names nothing means all that is not
/// stopped: which that is nobody else knows for certain, as lists that brokers tell may be older than the last start.
pub fn stop_topics(plan: &mut Plan<'_>, request: &StopMirrorTopicsRequest) -> StopMirrorTopicsResponse {
    let refuse = |error| StopMirrorTopicsResponse { error, topics: Vec::new() };
    let mirror = match admit(plan, &request.mirror, &request.topics, request.state_offset) {
        Ok(mirror) => mirror,
        Err(error) => return refuse(error),
    };
    let lists = without(plan, mirror, &request.patterns);
    let Some((_, exclude)) = compile(&lists) else { return refuse(ErrorCode::InvalidRequest) };
    let Ok(stopped) = crate::metadata::patterns::Patterns::new(request.patterns.clone()) else {
        return refuse(ErrorCode::InvalidRequest);
    };
    let refuses_paused = plan.guards.quirk(guard::StopOfPausedRefused);
    let all = (request.topics.is_empty() && request.patterns.is_empty()).then(|| not_stopped(plan, mirror));
    let named = all.as_ref().unwrap_or(&request.topics);
    let topics = each(plan, mirror, named, |desired| match desired {
        DesiredState::Stopped => Ok(None),
        DesiredState::Paused if refuses_paused => Err((ErrorCode::MirrorTopicAlreadyPaused, None)),
        _ => Ok(Some(DesiredState::Stopped)),
    });
    let mut lists = lists;
    for topic in topics.iter().filter(|topic| topic.error.is_none()) {
        // What was stopped by name is not to be found again when somebody deletes it here (E-6).
        lists.include.retain(|pattern| *pattern != topic.name);
    }
    let Some((include, _)) = compile(&lists) else { return refuse(ErrorCode::InvalidRequest) };
    let found_again = |topic: &&NamedResult| topic.error.is_none() && include.matches(&topic.name);
    for topic in topics.iter().filter(found_again) {
        if !lists.exclude.contains(&topic.name) {
            lists.exclude.push(topic.name.clone());
        }
    }
    lists.push(plan, mirror);
    stop_matching(plan, mirror, |name| exclude.matches(name) || stopped.matches(name), named);
    StopMirrorTopicsResponse { error: ErrorCode::None, topics }
}

/// The topics of a mirror that are copied or held, by name.
fn not_stopped(plan: &Plan<'_>, mirror: MirrorIx) -> Vec<Arc<str>> {
    let image = plan.image();
    let Some(entry) = image.mirror(mirror) else { return Vec::new() };
    let goes_on =
        |topic: &&TopicIx| image.mirror_of(**topic).is_some_and(|(_, desired)| desired != DesiredState::Stopped);
    let mut names: Vec<Arc<str>> =
        entry.topics.iter().filter(goes_on).filter_map(|topic| Some(image.topic(*topic)?.name.clone())).collect();
    names.sort_unstable();
    names
}

/// The lists without the patterns: out of `topics.include` where one stands there, else into `topics.exclude`.
fn without(plan: &Plan<'_>, mirror: MirrorIx, patterns: &[Arc<str>]) -> Lists {
    let mut lists = Lists::of(plan, mirror);
    for pattern in patterns {
        let before = lists.include.len();
        lists.include.retain(|p| p != pattern);
        if lists.include.len() == before && !lists.exclude.contains(pattern) {
            lists.exclude.push(pattern.clone());
        }
    }
    lists
}

/// Plans that topics hold.
pub fn pause_topics(plan: &mut Plan<'_>, request: &PauseMirrorTopicsRequest) -> PauseMirrorTopicsResponse {
    let mirror = match admit(plan, &request.mirror, &request.topics, request.state_offset) {
        Ok(mirror) => mirror,
        Err(error) => return PauseMirrorTopicsResponse { error, topics: Vec::new() },
    };
    let topics = each(plan, mirror, &request.topics, |desired| match desired {
        DesiredState::Paused => Ok(None),
        DesiredState::Mirroring => Ok(Some(DesiredState::Paused)),
        _ => Err((ErrorCode::MirrorTopicBeingStopped, Some("the topic is stopped, or about to be".to_string()))),
    });
    PauseMirrorTopicsResponse { error: ErrorCode::None, topics }
}

/// Plans that paused topics go on.
pub fn resume_topics(plan: &mut Plan<'_>, request: &ResumeMirrorTopicsRequest) -> ResumeMirrorTopicsResponse {
    let mirror = match admit(plan, &request.mirror, &request.topics, request.state_offset) {
        Ok(mirror) => mirror,
        Err(error) => return ResumeMirrorTopicsResponse { error, topics: Vec::new() },
    };
    let topics = each(plan, mirror, &request.topics, |desired| match desired {
        DesiredState::Mirroring => Ok(None),
        DesiredState::Paused => Ok(Some(DesiredState::Mirroring)),
        _ => Err((ErrorCode::MirrorTopicNotPaused, Some("the topic is not paused".to_string()))),
    });
    ResumeMirrorTopicsResponse { error: ErrorCode::None, topics }
}

/// Plans the end of a mirror, all or nothing: its topics belong to nobody, its configs are gone, and so is it.
pub fn delete_mirror(plan: &mut Plan<'_>, request: &DeleteClusterMirrorRequest) -> DeleteClusterMirrorResponse {
    let refuse = |error, why: &str| DeleteClusterMirrorResponse { error, message: Some(why.into()) };
    let Some(mirror) = plan.image().mirror_by_name(&request.mirror) else {
        return refuse(ErrorCode::UnknownClusterMirror, "there is no such mirror");
    };
    let Some(image) = plan.image().mirror(mirror).cloned() else {
        return refuse(ErrorCode::UnknownClusterMirror, "there is no such mirror");
    };
    let names: Vec<Arc<str>> =
        image.topics.iter().filter_map(|ix| plan.image().topic(*ix)).map(|t| t.name.clone()).collect();
    if !plan.guards.admits(guard::StartNeedsFreshStates, states_are_fresh(plan, &names, request.state_offset)) {
        return refuse(ErrorCode::InvalidClusterMirrorStates, "a topic's desired state changed meanwhile: try again");
    }
    let busy = image
        .topics
        .iter()
        .filter_map(|ix| plan.image().topic(*ix))
        .find(|topic| matches!(topic.mirror, Some((_, DesiredState::Mirroring | DesiredState::Paused))));
    if let Some(topic) = busy {
        return refuse(ErrorCode::ClusterMirrorNotEmpty, &format!("topic '{}' is not stopped", topic.name));
    }
    for &topic in &image.topics {
        plan.push(Record::MirrorTopicStateChange { topic, mirror: None, desired: DesiredState::Unknown });
    }
    for key in image.entries.keys() {
        let resource = ConfigResource::ClusterMirror(image.name.clone());
        plan.push(Record::Config { resource, key: key.clone(), value: None });
    }
    DeleteClusterMirrorResponse::default()
}

fn admit(
    plan: &mut Plan<'_>,
    mirror: &str,
    topics: &[Arc<str>],
    offset: MetadataOffset,
) -> Result<MirrorIx, ErrorCode> {
    let found = plan.image().mirror_by_name(mirror).ok_or(ErrorCode::UnknownClusterMirror)?;
    if plan.guards.admits(guard::StartNeedsFreshStates, states_are_fresh(plan, topics, offset)) {
        Ok(found)
    } else {
        Err(ErrorCode::InvalidClusterMirrorStates)
    }
}

/// Plans what `order` makes of each topic's desired state: nothing, another one, or a refusal.
fn each(
    plan: &mut Plan<'_>,
    mirror: MirrorIx,
    topics: &[Arc<str>],
    order: impl Fn(DesiredState) -> Result<Option<DesiredState>, Refusal>,
) -> Vec<NamedResult> {
    let mut named = BTreeSet::new();
    let mut results = Vec::with_capacity(topics.len());
    for name in topics {
        let result = if named.insert(name) {
            one(plan, mirror, name, &order)
        } else {
            Err((ErrorCode::InvalidRequest, Some("the topic is named twice".to_string())))
        };
        results.push(verdict(name, result));
    }
    results
}

fn one(
    plan: &mut Plan<'_>,
    mirror: MirrorIx,
    name: &str,
    order: impl Fn(DesiredState) -> Result<Option<DesiredState>, Refusal>,
) -> Result<(), Refusal> {
    let (topic, desired) = member(plan, mirror, name)?;
    if let Some(desired) = order(desired)? {
        plan.push(Record::MirrorTopicStateChange { topic, mirror: Some(mirror), desired });
    }
    Ok(())
}

fn member(plan: &Plan<'_>, mirror: MirrorIx, name: &str) -> Result<(TopicIx, DesiredState), Refusal> {
    let refuse = |error, why: &str| Err((error, Some(why.to_string())));
    let image = plan.image();
    let Some(topic) = image.topic_by_name(name) else {
        return refuse(ErrorCode::UnknownTopicOrPartition, "there is no such topic");
    };
    match image.mirror_of(topic) {
        None => refuse(ErrorCode::UnknownClusterMirror, "the topic belongs to no mirror"),
        Some((other, _)) if other != mirror => {
            refuse(ErrorCode::TopicNotInClusterMirror, "the topic belongs to another mirror")
        }
        Some((_, desired)) => Ok((topic, desired)),
    }
}
