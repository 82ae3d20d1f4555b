//! The answer to a request that is refused as a whole, in the shape that its type has for it.

use crate::ids::{BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, ProducerId};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::*;
use std::sync::Arc;

fn all_named<'a>(names: impl Iterator<Item = &'a Arc<str>>, error: ErrorCode) -> Vec<NamedResult> {
    names.map(|name| NamedResult { name: name.clone(), error, message: None }).collect()
}

/// The refusal of a request that a controller serves; `None` for any other.
#[must_use]
pub fn refusal(request: &Body, error: ErrorCode) -> Option<Body> {
    Some(match request {
        Body::RaftFetchRequest(_) => {
            RaftFetchResponse { error, epoch: LeaderEpoch::NONE, ..RaftFetchResponse::default() }.into()
        }
        Body::FetchSnapshotRequest(_) => FetchSnapshotResponse { error, ..FetchSnapshotResponse::default() }.into(),
        Body::BrokerRegistrationRequest(r) => {
            BrokerRegistrationResponse { error, incarnation: r.incarnation, epoch: BrokerEpoch(-1) }.into()
        }
        Body::BrokerHeartbeatRequest(_) => BrokerHeartbeatResponse { error, fenced: true, may_shutdown: false }.into(),
        Body::AlterPartitionRequest(_) => AlterPartitionResponse { error, parts: Vec::new() }.into(),
        Body::AllocateProducerIdsRequest(_) => {
            AllocateProducerIdsResponse { error, first: ProducerId::NONE, count: 0 }.into()
        }
        Body::CreateTopicsRequest(r) => {
            CreateTopicsResponse { topics: all_named(r.topics.iter().map(|t| &t.name), error) }.into()
        }
        Body::DeleteTopicsRequest(r) => DeleteTopicsResponse { topics: all_named(r.topics.iter(), error) }.into(),
        Body::CreatePartitionsRequest(r) => {
            CreatePartitionsResponse { topics: all_named(r.topics.iter().map(|(name, _)| name), error) }.into()
        }
        Body::IncrementalAlterConfigsRequest(r) => {
            let none: Arc<str> = "".into();
            let name = |resource: &ConfigResource| match resource {
                ConfigResource::Topic(name) | ConfigResource::ClusterMirror(name) => name.clone(),
                ConfigResource::Broker(_) => none.clone(),
            };
            let resources =
                r.resources.iter().map(|(r, _)| NamedResult { name: name(r), error, message: None }).collect();
            IncrementalAlterConfigsResponse { resources }.into()
        }
        Body::ElectLeadersRequest(r) => {
            ElectLeadersResponse { parts: r.parts.iter().map(|ix| (*ix, error)).collect() }.into()
        }
        Body::CreateClusterMirrorRequest(_) => CreateClusterMirrorResponse { error, message: None }.into(),
        Body::StartMirrorTopicsRequest(_) => StartMirrorTopicsResponse { error, topics: Vec::new() }.into(),
        Body::StopMirrorTopicsRequest(_) => StopMirrorTopicsResponse { error, topics: Vec::new() }.into(),
        Body::PauseMirrorTopicsRequest(_) => PauseMirrorTopicsResponse { error, topics: Vec::new() }.into(),
        Body::ResumeMirrorTopicsRequest(_) => ResumeMirrorTopicsResponse { error, topics: Vec::new() }.into(),
        Body::DeleteClusterMirrorRequest(_) => DeleteClusterMirrorResponse { error, message: None }.into(),
        Body::BumpLeaderEpochsRequest(_) => BumpLeaderEpochsResponse { error, parts: Vec::new() }.into(),
        _ => return None,
    })
}

/// A verdict without a partition behind it.
#[must_use]
pub fn no_verdict(partition: crate::ids::PartitionIx, error: ErrorCode) -> IsrVerdict {
    IsrVerdict {
        partition,
        error,
        leader: BrokerId::NONE,
        leader_epoch: LeaderEpoch::NONE,
        isr: crate::metadata::records::Brokers::new(),
        partition_epoch: PartitionEpoch(-1),
    }
}
