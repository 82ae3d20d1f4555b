//! What operators ask of topics and configs: CreateTopics (7, and 8 of the proposal), DeleteTopics (6), CreatePartitions (3),
//! IncrementalAlterConfigs (1), ElectLeaders (2).

use crate::ids::{BrokerId, TopicId};
use crate::wire::codec::coder::{Coder, Done, Wire, Wrong};
use crate::wire::codec::offsets::TIMEOUT_MS;
use crate::wire::codec::tags::{self, Tag};
use crate::wire::codec::topics::By;
use crate::wire::messages::{
    ConfigEntry, ConfigResource, CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest,
    CreateTopicsResponse, DeleteTopicsRequest, DeleteTopicsResponse, ElectLeadersRequest, ElectLeadersResponse,
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, NamedResult, NewTopic,
};
use std::sync::Arc;

/// From this version on a topic may have the id of a mirror's source (spec 8.12).
const WITH_MIRROR_INFO: i16 = 8;

impl Wire for CreateTopicsRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.array("Topics", &mut self.topics, new_topic)?;
        c.always_i32("TimeoutMs", TIMEOUT_MS)?;
        c.always_bool("ValidateOnly", false)?;
        c.end()
    }
}

fn new_topic(c: &mut Coder<'_>, topic: &mut NewTopic) -> Done {
    c.text("Name", &mut topic.name)?;
    c.u32("NumPartitions", &mut topic.partitions)?;
    c.i16("ReplicationFactor", &mut topic.replication_factor)?;
    let mut place = 0;
    c.array("Assignments", &mut topic.assignments, |c, brokers| {
        // Listed by number here; Kafka allows any order, and nobody uses another.
        let mut number = place;
        c.u32("PartitionIndex", &mut number)?;
        if number != place {
            return Err(c.wrong("PartitionIndex", Wrong::Value(number.into())));
        }
        place += 1;
        c.array("BrokerIds", brokers, |c, id| c.i32("BrokerIds", &mut id.0))?;
        c.end()
    })?;
    config_pairs(c, "Configs", &mut topic.configs)?;
    if c.version >= WITH_MIRROR_INFO {
        mirror_info(c, &mut topic.mirror_id)?;
    }
    c.end()
}

/// `MirrorInfo`, a nullable structure (KIP-893): a mark, then its fields.
fn mirror_info(c: &mut Coder<'_>, id: &mut Option<TopicId>) -> Done {
    let mut mark = if id.is_some() { 1 } else { -1 };
    c.i8("MirrorInfo", &mut mark)?;
    if mark < 0 {
        return Ok(());
    }
    c.uuid("TopicId", &mut id.get_or_insert_default().0)?;
    c.end()
}

/// Names and values; what may be null on the wire may not be here.
pub(super) fn config_pairs(c: &mut Coder<'_>, field: &'static str, pairs: &mut Vec<(Arc<str>, Arc<str>)>) -> Done {
    c.array(field, pairs, |c, (name, value)| {
        c.text("Name", name)?;
        c.text("Value", value)?;
        c.end()
    })
}

impl Wire for CreateTopicsResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.array("Topics", &mut self.topics, |c, topic: &mut NamedResult| {
            c.text("Name", &mut topic.name)?;
            c.always_uuid("TopicId", 0)?;
            c.code(&mut topic.error)?;
            c.nullable("ErrorMessage", &mut topic.message)?;
            c.always_i32("NumPartitions", -1)?;
            c.always_i16("ReplicationFactor", -1)?;
            c.always_empty("Configs", true)?;
            c.end()
        })?;
        c.end()
    }
}

impl Wire for DeleteTopicsRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.array("Topics", &mut self.topics, |c, name| {
            c.text("Name", name)?;
            c.always_uuid("TopicId", 0)?;
            c.end()
        })?;
        c.always_i32("TimeoutMs", TIMEOUT_MS)?;
        c.end()
    }
}

impl Wire for DeleteTopicsResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.array("Responses", &mut self.topics, |c, topic: &mut NamedResult| {
            c.text("Name", &mut topic.name)?;
            c.always_uuid("TopicId", 0)?;
            c.code(&mut topic.error)?;
            c.nullable("ErrorMessage", &mut topic.message)?;
            c.end()
        })?;
        c.end()
    }
}

impl Wire for CreatePartitionsRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.array("Topics", &mut self.topics, |c, (name, count)| {
            c.text("Name", name)?;
            c.u32("Count", count)?;
            c.always_empty("Assignments", true)?;
            c.end()
        })?;
        c.always_i32("TimeoutMs", TIMEOUT_MS)?;
        c.always_bool("ValidateOnly", false)?;
        let own = self.for_mirror;
        c.tags(&mut [Tag::new(tags::FOR_MIRROR, own, &mut |c| c.bool("ForMirror", &mut self.for_mirror))])
    }
}

/// Name, verdict, message.
pub(super) fn named_results(c: &mut Coder<'_>, field: &'static str, results: &mut Vec<NamedResult>) -> Done {
    c.array(field, results, |c, result| {
        c.text("Name", &mut result.name)?;
        c.code(&mut result.error)?;
        c.nullable("ErrorMessage", &mut result.message)?;
        c.end()
    })
}

impl Wire for CreatePartitionsResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        named_results(c, "Results", &mut self.topics)?;
        c.end()
    }
}

// ----------------------------------------------------------------------------------------------------------------- configs

/// Resource types; the last is the proposal's (spec 8.12).
mod resource_type {
    pub const TOPIC: i8 = 2;
    pub const BROKER: i8 = 4;
    pub const CLUSTER_MIRROR: i8 = 64;
}

impl Wire for IncrementalAlterConfigsRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        let blank = || (ConfigResource::Broker(None), Vec::new());
        c.array_of("Resources", blank, &mut self.resources, |c, (resource, entries)| {
            self::resource(c, resource)?;
            c.array("Configs", entries, config_entry)?;
            c.end()
        })?;
        c.always_bool("ValidateOnly", false)?;
        c.end()
    }
}

/// Set (0) or delete (1).
fn config_entry(c: &mut Coder<'_>, (name, value): &mut ConfigEntry) -> Done {
    c.text("Name", name)?;
    let mut operation = i8::from(value.is_none());
    c.i8("ConfigOperation", &mut operation)?;
    c.nullable("Value", value)?;
    match (operation, &value) {
        (0, Some(_)) => {}
        (1, _) => *value = None,
        _ => return Err(c.wrong("ConfigOperation", Wrong::Value(operation.into()))),
    }
    c.end()
}

/// Brokers go by their id in decimal; all brokers by the empty name.
fn resource(c: &mut Coder<'_>, resource: &mut ConfigResource) -> Done {
    let (mut kind, mut name) = match resource {
        ConfigResource::Topic(name) => (resource_type::TOPIC, name.clone()),
        ConfigResource::Broker(id) => (resource_type::BROKER, id.map(|id| id.0.to_string()).unwrap_or_default().into()),
        ConfigResource::ClusterMirror(name) => (resource_type::CLUSTER_MIRROR, name.clone()),
    };
    c.i8("ResourceType", &mut kind)?;
    c.text("ResourceName", &mut name)?;
    *resource = match kind {
        resource_type::TOPIC => ConfigResource::Topic(name),
        resource_type::BROKER if name.is_empty() => ConfigResource::Broker(None),
        resource_type::BROKER => match name.parse() {
            Ok(id) => ConfigResource::Broker(Some(BrokerId(id))),
            Err(_) => return Err(c.wrong("ResourceName", Wrong::Form)),
        },
        resource_type::CLUSTER_MIRROR => ConfigResource::ClusterMirror(name),
        other => return Err(c.wrong("ResourceType", Wrong::Value(other.into()))),
    };
    Ok(())
}

impl Wire for IncrementalAlterConfigsResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.array("Responses", &mut self.resources, |c, result: &mut NamedResult| {
            c.code(&mut result.error)?;
            c.nullable("ErrorMessage", &mut result.message)?;
            // The asker knows by the order what its names are names of.
            c.always_i8("ResourceType", 0)?;
            c.text("ResourceName", &mut result.name)?;
            c.end()
        })?;
        c.end()
    }
}

// --------------------------------------------------------------------------------------------------------------- elections

impl Wire for ElectLeadersRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        let mut kind = i8::from(self.unclean);
        c.i8("ElectionType", &mut kind)?;
        self.unclean = match kind {
            0 => false,
            1 => true,
            other => return Err(c.wrong("ElectionType", Wrong::Value(other.into()))),
        };
        c.topics_or_null(By::Name, &mut self.parts, |part| part, |c, index, _| c.u32("Partitions", index))?;
        c.always_i32("TimeoutMs", TIMEOUT_MS)?;
        c.end()
    }
}

impl Wire for ElectLeadersResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.always_i16("ErrorCode", 0)?;
        c.topics(
            By::Name,
            &mut self.parts,
            |part| &mut part.0,
            |c, index, (_, error)| {
                c.u32("PartitionId", index)?;
                c.code(error)?;
                c.always_text("ErrorMessage", None)?;
                c.end()
            },
        )?;
        c.end()
    }
}
