//! Metadata (13).

use crate::ids::PartitionIx;
use crate::wire::codec::coder::{Coder, Done, Wire};
use crate::wire::codec::directory::PORT;
use crate::wire::codec::tags::{self, Tag};
use crate::wire::messages::{MetadataRequest, MetadataResponse, PartitionMetadata, TopicMetadata};

impl Wire for MetadataRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.array_or_null("Topics", &mut self.topics, |c, name| {
            c.always_uuid("TopicId", 0)?;
            c.text("Name", name)?;
            c.end()
        })?;
        c.always_bool("AllowAutoTopicCreation", false)?;
        c.always_bool("IncludeTopicAuthorizedOperations", false)?;
        c.end()
    }
}

/// `AuthorizedOperations` that were not asked for.
pub(super) const NO_OPERATIONS: i32 = i32::MIN;

impl Wire for MetadataResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.array("Brokers", &mut self.brokers, |c, (id, node)| {
            c.i32("NodeId", &mut id.0)?;
            c.host(node)?;
            c.always_i32("Port", PORT.into())?;
            c.always_text("Rack", None)?;
            c.end()
        })?;
        c.text("ClusterId", &mut self.cluster_id)?;
        // Controllers take no requests of clients.
        c.always_i32("ControllerId", -1)?;
        c.array("Topics", &mut self.topics, topic)?;
        c.always_i16("ErrorCode", 0)?;
        c.end()
    }
}

fn topic(c: &mut Coder<'_>, topic: &mut TopicMetadata) -> Done {
    c.code(&mut topic.error)?;
    c.text("Name", &mut topic.name)?;
    c.uuid("TopicId", &mut topic.id.0)?;
    c.always_bool("IsInternal", false)?;
    let id = topic.id;
    c.array("Partitions", &mut topic.partitions, |c, part: &mut PartitionMetadata| {
        c.always_i16("ErrorCode", 0)?;
        c.u32("PartitionIndex", &mut part.number)?;
        c.i32("LeaderId", &mut part.leader.0)?;
        c.i32("LeaderEpoch", &mut part.leader_epoch.0)?;
        c.broker_ids("ReplicaNodes", &mut part.replicas)?;
        c.broker_ids("IsrNodes", &mut part.isr)?;
        c.always_empty("OfflineReplicas", false)?;
        // Clients keep the serving cluster's index: it is derived, unless the image went on since.
        let known = c.dir.by_id(id, part.number);
        c.preset(&mut part.partition, known.unwrap_or(PartitionIx(u32::MAX)));
        let differs = known != Some(part.partition);
        c.tags(&mut [Tag::new(tags::INDEX, differs, &mut |c| c.u32("Index", &mut part.partition.0))])
    })?;
    c.always_i32("TopicAuthorizedOperations", NO_OPERATIONS)?;
    c.end()
}
