//! Config entries are set and removed; some changes move more than themselves.

use crate::controller::change::Election;
use crate::controller::plan::Plan;
use crate::controller::topics::{verdict, Refusal};
use crate::guards::controller as guard;
use crate::ids::{BrokerId, PartitionIx};
use crate::metadata::configs::{topic_synonym, BrokerConfig, ConfigError, MirrorConfig, TopicConfig};
use crate::metadata::image::Entries;
use crate::metadata::records::{Brokers, Record};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    ConfigEntry, ConfigResource, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, NamedResult,
};
use std::sync::Arc;

/// Plans config changes, each resource on its own: all its entries or none.
pub fn alter_configs(plan: &mut Plan<'_>, request: &IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse {
    let mut alter = |(resource, entries): &(ConfigResource, Vec<ConfigEntry>)| -> NamedResult {
        verdict(&name_of(resource), alter_one(plan, resource, entries))
    };
    IncrementalAlterConfigsResponse { resources: request.resources.iter().map(&mut alter).collect() }
}

fn name_of(resource: &ConfigResource) -> Arc<str> {
    match resource {
        ConfigResource::Topic(name) | ConfigResource::ClusterMirror(name) => name.clone(),
        ConfigResource::Broker(Some(broker)) => broker.to_string().into(),
        ConfigResource::Broker(None) => "".into(),
    }
}

fn alter_one(plan: &mut Plan<'_>, resource: &ConfigResource, entries: &[ConfigEntry]) -> Result<(), Refusal> {
    let present = entries_of(plan, resource)?;
    for (key, value) in entries {
        check_entry(resource, key, value.as_deref()).map_err(|e| (e.code(), Some(e.to_string())))?;
    }
    let before = plan.entries.len();
    for (key, value) in entries {
        let key = canonical(resource, key);
        if present.get(&key) != value.as_ref() {
            plan.push(Record::Config { resource: resource.clone(), key, value: value.clone() });
        }
    }
    let keys: Vec<Arc<str>> = plan.entries[before..]
        .iter()
        .filter_map(|e| match &e.record {
            Record::Config { key, .. } => Some(key.clone()),
            _ => None,
        })
        .collect();
    follow_up(plan, resource, &keys, entries);
    Ok(())
}

/// The key under which an entry is stored: newest names only.
fn canonical(resource: &ConfigResource, key: &Arc<str>) -> Arc<str> {
    match (resource, key.strip_prefix("mirror.")) {
        (ConfigResource::ClusterMirror(_), Some(newest)) => newest.into(),
        _ => key.clone(),
    }
}

fn entries_of(plan: &Plan<'_>, resource: &ConfigResource) -> Result<Entries, Refusal> {
    let image = plan.image();
    match resource {
        ConfigResource::Topic(name) => {
            let topic = image.topic_by_name(name).and_then(|ix| image.topic(ix));
            topic.map(|t| t.entries.clone()).ok_or((ErrorCode::UnknownTopicOrPartition, None))
        }
        ConfigResource::ClusterMirror(name) => {
            let mirror = image.mirror_by_name(name).and_then(|ix| image.mirror(ix));
            mirror.map(|m| m.entries.clone()).ok_or((ErrorCode::UnknownClusterMirror, None))
        }
        ConfigResource::Broker(Some(broker)) if image.broker(*broker).is_none() => {
            Err((ErrorCode::BrokerIdNotRegistered, None))
        }
        ConfigResource::Broker(broker) => Ok(image.broker_entries(*broker).cloned().unwrap_or_default()),
    }
}

fn check_entry(resource: &ConfigResource, key: &str, value: Option<&str>) -> Result<(), ConfigError> {
    let unknown = || Err(ConfigError { key: key.into(), why: crate::metadata::configs::ConfigFault::UnknownKey });
    match (resource, value) {
        (ConfigResource::Topic(_), Some(value)) => TopicConfig::default().set(key, value),
        (ConfigResource::Broker(_), Some(value)) => BrokerConfig::default().set(key, value),
        (ConfigResource::ClusterMirror(_), Some(value)) => MirrorConfig::default().set(key, value),
        (ConfigResource::Topic(_), None) if TopicConfig::default().text_of(key).is_none() => unknown(),
        (ConfigResource::Broker(_), None)
            if BrokerConfig::default().text_of(key).is_none() && topic_synonym(key).is_none() =>
        {
            unknown()
        }
        (ConfigResource::ClusterMirror(_), None) => {
            let newest = key.strip_prefix("mirror.").unwrap_or(key);
            let required = matches!(newest, "bootstrap.servers" | "source.cluster.id");
            if required || MirrorConfig::default().text_of(newest).is_none() {
                return unknown();
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// What else has to change with these keys.
fn follow_up(plan: &mut Plan<'_>, resource: &ConfigResource, keys: &[Arc<str>], entries: &[ConfigEntry]) {
    let touches = |topic_key: &str| {
        keys.iter().any(|key| match resource {
            ConfigResource::Topic(_) => key.as_ref() == topic_key,
            ConfigResource::Broker(None) => topic_synonym(key) == Some(topic_key),
            _ => false,
        })
    };
    let turns_on =
        |topic_key: &str| entries.iter().any(|(k, v)| k.as_ref() == topic_key && v.as_deref() == Some("true"));
    if touches("min.insync.replicas") {
        for partition in governed(plan, resource, |plan| plan.index().with_elr.iter().copied().collect()) {
            clear_elr(plan, partition);
        }
    }
    let unclean = "unclean.leader.election.enable";
    if touches(unclean) && turns_on(unclean) {
        for partition in governed(plan, resource, |plan| plan.index().leaderless.iter().copied().collect()) {
            elect_unclean(plan, partition);
        }
    }
}

/// The partitions of an index that a topic's, or the cluster's, config governs.
fn governed(
    plan: &Plan<'_>,
    resource: &ConfigResource,
    all: impl FnOnce(&Plan<'_>) -> Vec<PartitionIx>,
) -> Vec<PartitionIx> {
    let mut partitions = all(plan);
    if let ConfigResource::Topic(name) = resource {
        let topic = plan.image().topic_by_name(name);
        partitions.retain(|ix| plan.image().partition(*ix).map(|p| p.topic) == topic);
    }
    partitions
}

/// An ELR promises completeness under the minimum it arose with (I10):
///
/// 1. The minimum is 2, the ISR {1}, the ELR {2}: the high watermark stands still, so broker 2 has all below it.
/// 2. The minimum becomes 1: broker 1 commits alone.
/// 3. Broker 1 dies, broker 2 is elected from the ELR, without what was committed.
///
/// While nobody is in sync, nobody commits, and the ELR is all there is: it stays.
fn clear_elr(plan: &mut Plan<'_>, partition: PartitionIx) {
    let Some(p) = plan.image().partition(partition) else { return };
    let state = &p.state;
    if state.isr.is_empty() || plan.has_changed(partition) {
        return;
    }
    if plan.guards.admits(guard::ElrClearedOnMinIsrChange, state.elr.is_empty()) {
        return;
    }
    plan.push(Record::PartitionChange {
        partition,
        leader: None,
        leader_epoch: None,
        isr: None,
        elr: Some(Brokers::new()),
        last_known_elr: Some(Brokers::new()),
        recovering: None,
        replicas: None,
    });
}

fn elect_unclean(plan: &mut Plan<'_>, partition: PartitionIx) {
    let image = plan.image();
    let Some(p) = image.partition(partition) else { return };
    if p.state.leader == BrokerId::NONE && !plan.has_changed(partition) {
        let mut change = plan.change(partition, &p.state);
        change.election = Election::Unclean;
        plan.finish(change, |b| image.is_active(b));
    }
}
