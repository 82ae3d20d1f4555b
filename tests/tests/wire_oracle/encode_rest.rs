//! As the parent, for everything that is not produce, fetch or raft.

use super::*;
use kafka_protocol::messages as k;

/// One topic per entry, as the sizes assume.
fn by_name<T, U>(entries: &[T], topic: impl Fn(&T) -> U) -> Vec<U> {
    entries.iter().map(topic).collect()
}

fn name() -> k::TopicName {
    topic(TOPIC_NAME_LEN)
}

fn opt(text: Option<&str>) -> Option<StrBytes> {
    text.map(copy)
}

fn resource_name(resource: &ConfigResource) -> StrBytes {
    match resource {
        ConfigResource::Topic(name) | ConfigResource::ClusterMirror(name) => copy(name),
        ConfigResource::Broker(id) => copy(&id.map(|id| id.0.to_string()).unwrap_or_default()),
    }
}

#[allow(clippy::too_many_lines)] // one arm per kind
pub fn frame_len(api: Api, body: &Body) -> usize {
    match body {
        Body::ListOffsetsRequest(r) => {
            use k::list_offsets_request::{ListOffsetsPartition as P, ListOffsetsTopic as T};
            let topics = by_name(&r.parts, |_| T::default().with_name(name()).with_partitions(vec![P::default()]));
            request(api, &k::ListOffsetsRequest::default().with_topics(topics))
        }
        Body::ListOffsetsResponse(r) => {
            use k::list_offsets_response::{ListOffsetsPartitionResponse as P, ListOffsetsTopicResponse as T};
            let topics = by_name(&r.parts, |_| T::default().with_name(name()).with_partitions(vec![P::default()]));
            response(api, &k::ListOffsetsResponse::default().with_topics(topics))
        }
        Body::OffsetForLeaderEpochRequest(r) => {
            use k::offset_for_leader_epoch_request::{OffsetForLeaderPartition as P, OffsetForLeaderTopic as T};
            let topics = by_name(&r.parts, |_| T::default().with_topic(name()).with_partitions(vec![P::default()]));
            request(api, &k::OffsetForLeaderEpochRequest::default().with_topics(topics))
        }
        Body::OffsetForLeaderEpochResponse(r) => {
            use k::offset_for_leader_epoch_response::{EpochEndOffset as P, OffsetForLeaderTopicResult as T};
            let topics = by_name(&r.parts, |_| T::default().with_topic(name()).with_partitions(vec![P::default()]));
            response(api, &k::OffsetForLeaderEpochResponse::default().with_topics(topics))
        }
        Body::DeleteRecordsRequest(r) => {
            use k::delete_records_request::{DeleteRecordsPartition as P, DeleteRecordsTopic as T};
            let topics = by_name(&r.parts, |_| T::default().with_name(name()).with_partitions(vec![P::default()]));
            request(api, &k::DeleteRecordsRequest::default().with_topics(topics))
        }
        Body::DeleteRecordsResponse(r) => {
            use k::delete_records_response::{DeleteRecordsPartitionResult as P, DeleteRecordsTopicResult as T};
            let topics = by_name(&r.parts, |_| T::default().with_name(name()).with_partitions(vec![P::default()]));
            response(api, &k::DeleteRecordsResponse::default().with_topics(topics))
        }
        Body::MetadataRequest(r) => {
            use k::metadata_request::MetadataRequestTopic as T;
            let topics =
                r.topics.as_ref().map(|names| by_name(names, |name| T::default().with_name(Some(named(name)))));
            request(api, &k::MetadataRequest::default().with_topics(topics))
        }
        Body::MetadataResponse(r) => {
            use k::metadata_response::{
                MetadataResponseBroker as B, MetadataResponsePartition as P, MetadataResponseTopic as T,
            };
            let topics = by_name(&r.topics, |topic| {
                let partitions = by_name(&topic.partitions, |part| {
                    P::default()
                        .with_replica_nodes(brokers(part.replicas.len()))
                        .with_isr_nodes(brokers(part.isr.len()))
                });
                T::default().with_name(Some(named(&topic.name))).with_partitions(partitions)
            });
            let answer = k::MetadataResponse::default()
                .with_cluster_id(Some(copy(&r.cluster_id)))
                .with_brokers(by_name(&r.brokers, |_| B::default().with_host(text(HOST_LEN))))
                .with_topics(topics);
            response(api, &answer)
        }
        Body::InitProducerIdRequest(r) => {
            let id = opt(r.transactional_id.as_deref()).map(k::TransactionalId);
            request(api, &k::InitProducerIdRequest::default().with_transactional_id(id))
        }
        Body::InitProducerIdResponse(_) => response(api, &k::InitProducerIdResponse::default()),
        Body::BrokerRegistrationRequest(r) => {
            use k::broker_registration_request::{Feature, Listener};
            let listener = Listener::default().with_name(copy(LISTENER)).with_host(text(HOST_LEN));
            let ask = k::BrokerRegistrationRequest::default()
                .with_cluster_id(copy(&r.cluster_id))
                .with_listeners(vec![listener])
                .with_features(by_name(&FEATURES, |name| Feature::default().with_name(copy(name))))
                .with_log_dirs(vec![SOME_UUID.parse().unwrap()]);
            request(api, &ask)
        }
        Body::BrokerRegistrationResponse(_) => response(api, &k::BrokerRegistrationResponse::default()),
        Body::BrokerHeartbeatRequest(_) => request(api, &k::BrokerHeartbeatRequest::default()),
        Body::BrokerHeartbeatResponse(_) => response(api, &k::BrokerHeartbeatResponse::default()),
        Body::AlterPartitionRequest(r) => {
            use k::alter_partition_request::{BrokerState, PartitionData as P, TopicData as T};
            let topics = by_name(&r.parts, |part| {
                let isr = vec![BrokerState::default(); part.isr.len()];
                T::default().with_partitions(vec![P::default().with_new_isr_with_epochs(isr)])
            });
            request(api, &k::AlterPartitionRequest::default().with_topics(topics))
        }
        Body::AlterPartitionResponse(r) => {
            use k::alter_partition_response::{PartitionData as P, TopicData as T};
            let topics = by_name(&r.parts, |part| {
                T::default().with_partitions(vec![P::default().with_isr(brokers(part.isr.len()))])
            });
            response(api, &k::AlterPartitionResponse::default().with_topics(topics))
        }
        Body::AllocateProducerIdsRequest(_) => request(api, &k::AllocateProducerIdsRequest::default()),
        Body::AllocateProducerIdsResponse(_) => response(api, &k::AllocateProducerIdsResponse::default()),
        admin => admin_frame_len(api, admin),
    }
}

#[allow(clippy::too_many_lines)] // one arm per kind
fn admin_frame_len(api: Api, body: &Body) -> usize {
    match body {
        Body::CreateTopicsRequest(r) => {
            use k::create_topics_request::{
                CreatableReplicaAssignment as A, CreatableTopic as T, CreatableTopicConfig as C,
            };
            let topics = by_name(&r.topics, |topic| {
                let configs =
                    by_name(&topic.configs, |(k, v)| C::default().with_name(copy(k)).with_value(Some(copy(v))));
                let assignments = by_name(&topic.assignments, |ids| A::default().with_broker_ids(brokers(ids.len())));
                T::default().with_name(named(&topic.name)).with_assignments(assignments).with_configs(configs)
            });
            request(api, &k::CreateTopicsRequest::default().with_topics(topics))
        }
        Body::CreateTopicsResponse(r) => {
            use k::create_topics_response::CreatableTopicResult as T;
            let topics = by_name(&r.topics, |topic| {
                let message = opt(topic.message.as_deref());
                T::default().with_name(named(&topic.name)).with_error_message(message).with_configs(None)
            });
            response(api, &k::CreateTopicsResponse::default().with_topics(topics))
        }
        Body::DeleteTopicsRequest(r) => {
            use k::delete_topics_request::DeleteTopicState as T;
            let topics = by_name(&r.topics, |name| T::default().with_name(Some(named(name))));
            request(api, &k::DeleteTopicsRequest::default().with_topics(topics))
        }
        Body::DeleteTopicsResponse(r) => {
            use k::delete_topics_response::DeletableTopicResult as T;
            let topics = by_name(&r.topics, |topic| {
                T::default().with_name(Some(named(&topic.name))).with_error_message(opt(topic.message.as_deref()))
            });
            response(api, &k::DeleteTopicsResponse::default().with_responses(topics))
        }
        Body::CreatePartitionsRequest(r) => {
            use k::create_partitions_request::CreatePartitionsTopic as T;
            let topics = by_name(&r.topics, |(name, _)| T::default().with_name(named(name)).with_assignments(None));
            request(api, &k::CreatePartitionsRequest::default().with_topics(topics))
        }
        Body::CreatePartitionsResponse(r) => {
            use k::create_partitions_response::CreatePartitionsTopicResult as T;
            let topics = by_name(&r.topics, |topic| {
                T::default().with_name(named(&topic.name)).with_error_message(opt(topic.message.as_deref()))
            });
            response(api, &k::CreatePartitionsResponse::default().with_results(topics))
        }
        Body::IncrementalAlterConfigsRequest(r) => {
            use k::incremental_alter_configs_request::{AlterConfigsResource as R, AlterableConfig as C};
            let resources = by_name(&r.resources, |(resource, entries)| {
                let entries = by_name(entries, |(k, v)| C::default().with_name(copy(k)).with_value(opt(v.as_deref())));
                R::default().with_resource_name(resource_name(resource)).with_configs(entries)
            });
            request(api, &k::IncrementalAlterConfigsRequest::default().with_resources(resources))
        }
        Body::IncrementalAlterConfigsResponse(r) => {
            use k::incremental_alter_configs_response::AlterConfigsResourceResponse as R;
            let resources = by_name(&r.resources, |resource| {
                R::default()
                    .with_resource_name(copy(&resource.name))
                    .with_error_message(opt(resource.message.as_deref()))
            });
            response(api, &k::IncrementalAlterConfigsResponse::default().with_responses(resources))
        }
        Body::ElectLeadersRequest(r) => {
            use k::elect_leaders_request::TopicPartitions as T;
            let topics = by_name(&r.parts, |_| T::default().with_topic(name()).with_partitions(vec![0]));
            let topics = (!topics.is_empty()).then_some(topics);
            request(api, &k::ElectLeadersRequest::default().with_topic_partitions(topics))
        }
        Body::ElectLeadersResponse(r) => {
            use k::elect_leaders_response::{PartitionResult as P, ReplicaElectionResult as T};
            let part = P::default().with_error_message(None);
            let topics =
                by_name(&r.parts, |_| T::default().with_topic(name()).with_partition_result(vec![part.clone()]));
            response(api, &k::ElectLeadersResponse::default().with_replica_election_results(topics))
        }
        Body::OffsetCommitRequest(r) => {
            use k::offset_commit_request::{OffsetCommitRequestPartition as P, OffsetCommitRequestTopic as T};
            let part = P::default().with_committed_metadata(None);
            let topics = by_name(&r.parts, |_| T::default().with_name(name()).with_partitions(vec![part.clone()]));
            let group = k::GroupId(copy(&r.group));
            request(api, &k::OffsetCommitRequest::default().with_group_id(group).with_topics(topics))
        }
        Body::OffsetCommitResponse(r) => {
            use k::offset_commit_response::{OffsetCommitResponsePartition as P, OffsetCommitResponseTopic as T};
            let topics = by_name(&r.parts, |_| T::default().with_name(name()).with_partitions(vec![P::default()]));
            response(api, &k::OffsetCommitResponse::default().with_topics(topics))
        }
        Body::OffsetFetchRequest(r) => {
            use k::offset_fetch_request::{OffsetFetchRequestGroup as G, OffsetFetchRequestTopics as T};
            let topics = by_name(&r.parts, |_| T::default().with_name(name()).with_partition_indexes(vec![0]));
            let group = G::default().with_group_id(k::GroupId(copy(&r.group))).with_topics(Some(topics));
            request(api, &k::OffsetFetchRequest::default().with_groups(vec![group]))
        }
        Body::OffsetFetchResponse(r) => {
            use k::offset_fetch_response::{
                OffsetFetchResponseGroup as G, OffsetFetchResponsePartitions as P, OffsetFetchResponseTopics as T,
            };
            let part = P::default().with_metadata(None);
            let topics = by_name(&r.parts, |_| T::default().with_name(name()).with_partitions(vec![part.clone()]));
            let group = G::default().with_group_id(k::GroupId(text(GROUP_LEN))).with_topics(topics);
            response(api, &k::OffsetFetchResponse::default().with_groups(vec![group]))
        }
        other => panic!("{} is not a stock message", other.name()),
    }
}
