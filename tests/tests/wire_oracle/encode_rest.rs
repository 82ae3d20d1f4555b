//! As the parent, for everything that is not produce, fetch or raft.

use super::*;
use mirrorlab_model::wire::codec::{TIMEOUT_MS, UNSAID_GROUP};
use mirrorlab_model::wire::errors::ErrorCode;
use mirrorlab_model::wire::messages::ConfigResource;
use mirrorlab_model::wire::size::{FEATURES, LISTENER};

fn all<T, U>(items: &[T], item: impl Fn(&T) -> U) -> Vec<U> {
    items.iter().map(item).collect()
}

fn resource(resource: &ConfigResource) -> (i8, StrBytes) {
    match resource {
        ConfigResource::Topic(name) => (2, copy(name)),
        ConfigResource::Broker(id) => (4, copy(&id.map(|id| id.0.to_string()).unwrap_or_default())),
        ConfigResource::ClusterMirror(name) => (64, copy(name)),
    }
}

/// Fields that no message holds, of topics in answers.
const NO_OPERATIONS: i32 = i32::MIN;

impl Oracle<'_> {
    #[allow(clippy::too_many_lines)] // one arm per kind
    pub(super) fn rest(&self, body: &Body) -> Vec<u8> {
        match body {
            Body::ListOffsetsRequest(r) => {
                use k::list_offsets_request::{ListOffsetsPartition as P, ListOffsetsTopic as T};
                let part = |number, q: &m::OffsetQuestion| {
                    k!(P {
                        partition_index: number,
                        current_leader_epoch: q.current_leader_epoch.0,
                        timestamp: q.timestamp
                    })
                };
                let topics =
                    self.by_topic(&r.parts, |p| p.partition, |g| k!(T { name: g.name(), partitions: g.each(part) }));
                self.request(k!(k::ListOffsetsRequest {
                    replica_id: broker(r.replica),
                    isolation_level: level(r.isolation),
                    topics: topics,
                    timeout_ms: TIMEOUT_MS,
                }))
            }
            Body::ListOffsetsResponse(r) => {
                use k::list_offsets_response::{ListOffsetsPartitionResponse as P, ListOffsetsTopicResponse as T};
                let part = |number, a: &m::OffsetAnswer| {
                    k!(P {
                        partition_index: number,
                        error_code: a.error as i16,
                        timestamp: a.timestamp,
                        offset: a.offset.0,
                        leader_epoch: a.leader_epoch.0,
                    })
                };
                let topics =
                    self.by_topic(&r.parts, |p| p.partition, |g| k!(T { name: g.name(), partitions: g.each(part) }));
                self.response(k!(k::ListOffsetsResponse { topics: topics }))
            }
            Body::OffsetForLeaderEpochRequest(r) => {
                use k::offset_for_leader_epoch_request::{OffsetForLeaderPartition as P, OffsetForLeaderTopic as T};
                let part = |number, q: &m::EpochQuestion| {
                    k!(P { partition: number, current_leader_epoch: q.current_leader_epoch.0, leader_epoch: q.epoch.0 })
                };
                let topics =
                    self.by_topic(&r.parts, |p| p.partition, |g| k!(T { topic: g.name(), partitions: g.each(part) }));
                self.request(k!(k::OffsetForLeaderEpochRequest { replica_id: broker(r.replica), topics: topics }))
            }
            Body::OffsetForLeaderEpochResponse(r) => {
                use k::offset_for_leader_epoch_response::{EpochEndOffset as P, OffsetForLeaderTopicResult as T};
                let part = |number, a: &m::EpochAnswer| {
                    k!(P {
                        error_code: a.error as i16,
                        partition: number,
                        leader_epoch: a.end.epoch.0,
                        end_offset: a.end.end.0,
                    })
                };
                let topics =
                    self.by_topic(&r.parts, |p| p.partition, |g| k!(T { topic: g.name(), partitions: g.each(part) }));
                self.response(k!(k::OffsetForLeaderEpochResponse { topics: topics }))
            }
            Body::DeleteRecordsRequest(r) => {
                use k::delete_records_request::{DeleteRecordsPartition as P, DeleteRecordsTopic as T};
                let topics = self.by_topic(
                    &r.parts,
                    |p| p.0,
                    |g| {
                        let parts = g.each(|number, p| k!(P { partition_index: number, offset: p.1 .0 }));
                        k!(T { name: g.name(), partitions: parts })
                    },
                );
                self.request(k!(k::DeleteRecordsRequest { topics: topics, timeout_ms: TIMEOUT_MS }))
            }
            Body::DeleteRecordsResponse(r) => {
                use k::delete_records_response::{DeleteRecordsPartitionResult as P, DeleteRecordsTopicResult as T};
                let part = |number, p: &(PartitionIx, _, mirrorlab_model::ids::Offset)| {
                    let (_, error, low): &(_, mirrorlab_model::wire::errors::ErrorCode, _) = p;
                    k!(P { partition_index: number, low_watermark: low.0, error_code: *error as i16 })
                };
                let topics = self.by_topic(&r.parts, |p| p.0, |g| k!(T { name: g.name(), partitions: g.each(part) }));
                self.response(k!(k::DeleteRecordsResponse { topics: topics }))
            }
            Body::OffsetCommitRequest(r) => {
                use k::offset_commit_request::{OffsetCommitRequestPartition as P, OffsetCommitRequestTopic as T};
                let topics = self.by_topic(
                    &r.parts,
                    |p| p.0,
                    |g| {
                        let parts = g.each(|number, (_, offset, epoch)| {
                            k!(P {
                                partition_index: number,
                                committed_offset: offset.0,
                                committed_leader_epoch: epoch.0,
                                committed_metadata: None,
                            })
                        });
                        k!(T { name: g.name(), partitions: parts })
                    },
                );
                self.request(k!(k::OffsetCommitRequest {
                    group_id: k::GroupId(copy(&r.group)),
                    generation_id_or_member_epoch: -1,
                    topics: topics,
                }))
            }
            Body::OffsetCommitResponse(r) => {
                use k::offset_commit_response::{OffsetCommitResponsePartition as P, OffsetCommitResponseTopic as T};
                let topics = self.by_topic(
                    &r.parts,
                    |p| p.0,
                    |g| {
                        let parts = g.each(|number, p| k!(P { partition_index: number, error_code: p.1 as i16 }));
                        k!(T { name: g.name(), partitions: parts })
                    },
                );
                self.response(k!(k::OffsetCommitResponse { topics: topics }))
            }
            Body::OffsetFetchRequest(r) => {
                use k::offset_fetch_request::{OffsetFetchRequestGroup as G, OffsetFetchRequestTopics as T};
                let topics = self.by_topic(
                    &r.parts,
                    |p| *p,
                    |g| k!(T { name: g.name(), partition_indexes: g.each(|number, _| number) }),
                );
                let group = k!(G { group_id: k::GroupId(copy(&r.group)), member_epoch: -1, topics: Some(topics) });
                self.request(k!(k::OffsetFetchRequest { groups: vec![group] }))
            }
            Body::OffsetFetchResponse(r) => {
                use k::offset_fetch_response::{
                    OffsetFetchResponseGroup as G, OffsetFetchResponsePartitions as P, OffsetFetchResponseTopics as T,
                };
                let topics = self.by_topic(
                    &r.parts,
                    |p| p.0,
                    |g| {
                        let parts = g.each(|number, (_, offset, epoch)| {
                            k!(P {
                                partition_index: number,
                                committed_offset: offset.0,
                                committed_leader_epoch: epoch.0,
                                metadata: None,
                            })
                        });
                        k!(T { name: g.name(), partitions: parts })
                    },
                );
                let group =
                    k!(G { group_id: k::GroupId(copy(UNSAID_GROUP)), topics: topics, error_code: r.error as i16 });
                self.response(k!(k::OffsetFetchResponse { groups: vec![group] }))
            }
            other => self.brokers_and_metadata(other),
        }
    }

    #[allow(clippy::too_many_lines)] // one arm per kind
    fn brokers_and_metadata(&self, body: &Body) -> Vec<u8> {
        match body {
            Body::MetadataRequest(r) => {
                use k::metadata_request::MetadataRequestTopic as T;
                let topics = r.topics.as_ref().map(|names| all(names, |name| k!(T { name: Some(named(name)) })));
                self.request(k!(k::MetadataRequest { topics: topics, allow_auto_topic_creation: false }))
            }
            Body::MetadataResponse(r) => {
                use k::metadata_response::{
                    MetadataResponseBroker as B, MetadataResponsePartition as P, MetadataResponseTopic as T,
                };
                let part = |part: &m::PartitionMetadata| {
                    k!(P {
                        partition_index: part.number as i32,
                        leader_id: broker(part.leader),
                        leader_epoch: part.leader_epoch.0,
                        replica_nodes: brokers(&part.replicas),
                        isr_nodes: brokers(&part.isr),
                    })
                };
                let topics = all(&r.topics, |topic| {
                    k!(T {
                        error_code: topic.error as i16,
                        name: Some(named(&topic.name)),
                        topic_id: uuid(topic.id.0),
                        partitions: all(&topic.partitions, part),
                        topic_authorized_operations: NO_OPERATIONS,
                    })
                });
                let list = all(&r.brokers, |(id, node)| {
                    k!(B { node_id: broker(*id), host: address(*node), port: PORT.into() })
                });
                self.response(k!(k::MetadataResponse {
                    brokers: list,
                    cluster_id: Some(copy(&r.cluster_id)),
                    controller_id: k::BrokerId(-1),
                    topics: topics,
                }))
            }
            Body::InitProducerIdRequest(r) => self.request(k!(k::InitProducerIdRequest {
                transactional_id: opt(r.transactional_id.as_deref()).map(k::TransactionalId),
                transaction_timeout_ms: r.timeout_ms as i32,
                producer_id: k::ProducerId(r.producer.0),
                producer_epoch: r.epoch.0,
            })),
            Body::InitProducerIdResponse(r) => self.response(k!(k::InitProducerIdResponse {
                error_code: r.error as i16,
                producer_id: k::ProducerId(r.producer.0),
                producer_epoch: r.epoch.0,
            })),
            Body::FindCoordinatorRequest(r) => self.request(k!(k::FindCoordinatorRequest {
                key_type: r.kind as i8,
                coordinator_keys: all(&r.keys, |key| copy(key)),
            })),
            Body::FindCoordinatorResponse(r) => {
                use k::find_coordinator_response::Coordinator as C;
                let found = |f: &m::FoundCoordinator| {
                    k!(C {
                        key: copy(&f.key),
                        node_id: broker(f.broker),
                        host: f.node.map_or_else(StrBytes::default, address),
                        port: f.node.map_or(-1, |_| PORT.into()),
                        error_code: f.error as i16,
                        error_message: None,
                    })
                };
                self.response(k!(k::FindCoordinatorResponse { coordinators: all(&r.coordinators, found) }))
            }
            Body::AddPartitionsToTxnRequest(r) => {
                use k::add_partitions_to_txn_request::AddPartitionsToTxnTopic as T;
                let topics = self.by_topic(
                    &r.parts,
                    |p| *p,
                    |g| k!(T { name: g.name(), partitions: g.each(|number, _| number) }),
                );
                self.request(k!(k::AddPartitionsToTxnRequest {
                    v3_and_below_transactional_id: k::TransactionalId(copy(&r.transactional_id)),
                    v3_and_below_producer_id: k::ProducerId(r.producer.0),
                    v3_and_below_producer_epoch: r.epoch.0,
                    v3_and_below_topics: topics,
                }))
            }
            Body::AddPartitionsToTxnResponse(r) => {
                use k::add_partitions_to_txn_response::{
                    AddPartitionsToTxnPartitionResult as P, AddPartitionsToTxnTopicResult as T,
                };
                let topics = self.by_topic(
                    &r.parts,
                    |p| p.0,
                    |g| {
                        let part = |number, p: &(PartitionIx, ErrorCode)| {
                            k!(P { partition_index: number, partition_error_code: p.1 as i16 })
                        };
                        k!(T { name: g.name(), results_by_partition: g.each(part) })
                    },
                );
                self.response(k!(k::AddPartitionsToTxnResponse { results_by_topic_v3_and_below: topics }))
            }
            Body::EndTxnRequest(r) => self.request(k!(k::EndTxnRequest {
                transactional_id: k::TransactionalId(copy(&r.transactional_id)),
                producer_id: k::ProducerId(r.producer.0),
                producer_epoch: r.epoch.0,
                committed: r.commit,
            })),
            Body::EndTxnResponse(r) => self.response(k!(k::EndTxnResponse {
                error_code: r.error as i16,
                producer_id: k::ProducerId(r.producer.0),
                producer_epoch: r.epoch.0,
            })),
            Body::WriteTxnMarkersRequest(r) => {
                use k::write_txn_markers_request::{WritableTxnMarker as M, WritableTxnMarkerTopic as T};
                let marker = |marker: &m::TxnMarker| {
                    k!(M {
                        producer_id: k::ProducerId(marker.producer.0),
                        producer_epoch: marker.epoch.0,
                        transaction_result: marker.commit,
                        topics: self.by_topic(
                            &marker.parts,
                            |p| *p,
                            |g| k!(T { name: g.name(), partition_indexes: g.each(|number, _| number) }),
                        ),
                        coordinator_epoch: marker.coordinator_epoch,
                    })
                };
                self.request(k!(k::WriteTxnMarkersRequest { markers: all(&r.markers, marker) }))
            }
            Body::WriteTxnMarkersResponse(r) => {
                use k::write_txn_markers_response::{
                    WritableTxnMarkerPartitionResult as P, WritableTxnMarkerResult as M,
                    WritableTxnMarkerTopicResult as T,
                };
                let part =
                    |number, p: &(PartitionIx, ErrorCode)| k!(P { partition_index: number, error_code: p.1 as i16 });
                let marker = |marker: &m::TxnMarkerAnswer| {
                    k!(M {
                        producer_id: k::ProducerId(marker.producer.0),
                        topics: self.by_topic(
                            &marker.parts,
                            |p| p.0,
                            |g| k!(T { name: g.name(), partitions: g.each(part) }),
                        ),
                    })
                };
                self.response(k!(k::WriteTxnMarkersResponse { markers: all(&r.markers, marker) }))
            }
            Body::BrokerRegistrationRequest(r) => {
                use k::broker_registration_request::{Feature, Listener};
                let listener = k!(Listener { name: copy(LISTENER), host: address(r.node), port: PORT });
                let feature = |name: &&str| k!(Feature { name: copy(name), max_supported_version: 1 });
                self.request(k!(k::BrokerRegistrationRequest {
                    broker_id: broker(r.broker),
                    cluster_id: copy(&r.cluster_id),
                    incarnation_id: uuid(r.incarnation),
                    listeners: vec![listener],
                    features: all(&FEATURES, feature),
                    rack: None,
                    log_dirs: vec![uuid(r.incarnation)],
                    previous_broker_epoch: r.previous_epoch.0,
                }))
            }
            Body::BrokerRegistrationResponse(r) => {
                self.response(k!(k::BrokerRegistrationResponse { error_code: r.error as i16, broker_epoch: r.epoch.0 }))
            }
            Body::BrokerHeartbeatRequest(r) => self.request(k!(k::BrokerHeartbeatRequest {
                broker_id: broker(r.broker),
                broker_epoch: r.epoch.0,
                current_metadata_offset: r.metadata_offset.0,
                want_fence: r.want_fence,
                want_shut_down: r.want_shutdown,
            })),
            Body::BrokerHeartbeatResponse(r) => self.response(k!(k::BrokerHeartbeatResponse {
                error_code: r.error as i16,
                is_fenced: r.fenced,
                should_shut_down: r.may_shutdown,
            })),
            Body::AlterPartitionRequest(r) => {
                use k::alter_partition_request::{BrokerState as B, PartitionData as P, TopicData as T};
                let part = |number, p: &m::IsrProposal| {
                    let member = |(id, epoch): &(BrokerId, mirrorlab_model::ids::BrokerEpoch)| {
                        k!(B { broker_id: broker(*id), broker_epoch: epoch.0 })
                    };
                    k!(P {
                        partition_index: number,
                        leader_epoch: p.leader_epoch.0,
                        new_isr_with_epochs: all(&p.isr, member),
                        partition_epoch: p.partition_epoch.0,
                    })
                };
                let topics =
                    self.by_topic(&r.parts, |p| p.partition, |g| k!(T { topic_id: g.id(), partitions: g.each(part) }));
                self.request(k!(k::AlterPartitionRequest {
                    broker_id: broker(r.broker),
                    broker_epoch: r.broker_epoch.0,
                    topics: topics,
                }))
            }
            Body::AlterPartitionResponse(r) => {
                use k::alter_partition_response::{PartitionData as P, TopicData as T};
                let part = |number, p: &m::IsrVerdict| {
                    k!(P {
                        partition_index: number,
                        error_code: p.error as i16,
                        leader_id: broker(p.leader),
                        leader_epoch: p.leader_epoch.0,
                        isr: brokers(&p.isr),
                        partition_epoch: p.partition_epoch.0,
                    })
                };
                let topics =
                    self.by_topic(&r.parts, |p| p.partition, |g| k!(T { topic_id: g.id(), partitions: g.each(part) }));
                self.response(k!(k::AlterPartitionResponse { error_code: r.error as i16, topics: topics }))
            }
            Body::AllocateProducerIdsRequest(r) => self.request(k!(k::AllocateProducerIdsRequest {
                broker_id: broker(r.broker),
                broker_epoch: r.broker_epoch.0,
            })),
            Body::AllocateProducerIdsResponse(r) => self.response(k!(k::AllocateProducerIdsResponse {
                error_code: r.error as i16,
                producer_id_start: k::ProducerId(r.first.0),
                producer_id_len: r.count as i32,
            })),
            admin => self.admin(admin),
        }
    }

    #[allow(clippy::too_many_lines)] // one arm per kind
    fn admin(&self, body: &Body) -> Vec<u8> {
        match body {
            Body::CreateTopicsRequest(r) => {
                use k::create_topics_request::{
                    CreatableReplicaAssignment as A, CreatableTopic as T, CreatableTopicConfig as C,
                };
                let topics = all(&r.topics, |topic| {
                    let ids = topic.assignments.iter().enumerate();
                    k!(T {
                        name: named(&topic.name),
                        num_partitions: topic.partitions as i32,
                        replication_factor: topic.replication_factor,
                        assignments: ids
                            .map(|(at, ids)| k!(A { partition_index: at as i32, broker_ids: brokers(ids) }))
                            .collect(),
                        configs: all(&topic.configs, |(name, value)| {
                            k!(C { name: copy(name), value: Some(copy(value)) })
                        }),
                    })
                });
                self.request(k!(k::CreateTopicsRequest { topics: topics, timeout_ms: TIMEOUT_MS }))
            }
            Body::CreateTopicsResponse(r) => {
                use k::create_topics_response::CreatableTopicResult as T;
                let topics = all(&r.topics, |topic| {
                    k!(T {
                        name: named(&topic.name),
                        error_code: topic.error as i16,
                        error_message: opt(topic.message.as_deref()),
                        configs: None,
                    })
                });
                self.response(k!(k::CreateTopicsResponse { topics: topics }))
            }
            Body::DeleteTopicsRequest(r) => {
                use k::delete_topics_request::DeleteTopicState as T;
                let topics = all(&r.topics, |name| k!(T { name: Some(named(name)) }));
                self.request(k!(k::DeleteTopicsRequest { topics: topics, timeout_ms: TIMEOUT_MS }))
            }
            Body::DeleteTopicsResponse(r) => {
                use k::delete_topics_response::DeletableTopicResult as T;
                let topics = all(&r.topics, |topic| {
                    k!(T {
                        name: Some(named(&topic.name)),
                        error_code: topic.error as i16,
                        error_message: opt(topic.message.as_deref()),
                    })
                });
                self.response(k!(k::DeleteTopicsResponse { responses: topics }))
            }
            Body::CreatePartitionsRequest(r) => {
                use k::create_partitions_request::CreatePartitionsTopic as T;
                let topics = all(&r.topics, |(name, count)| {
                    k!(T { name: named(name), count: *count as i32, assignments: None })
                });
                self.request(k!(k::CreatePartitionsRequest { topics: topics, timeout_ms: TIMEOUT_MS }))
            }
            Body::CreatePartitionsResponse(r) => {
                use k::create_partitions_response::CreatePartitionsTopicResult as T;
                let topics = all(&r.topics, |topic| {
                    k!(T {
                        name: named(&topic.name),
                        error_code: topic.error as i16,
                        error_message: opt(topic.message.as_deref()),
                    })
                });
                self.response(k!(k::CreatePartitionsResponse { results: topics }))
            }
            Body::IncrementalAlterConfigsRequest(r) => {
                use k::incremental_alter_configs_request::{AlterConfigsResource as R, AlterableConfig as C};
                let resources = all(&r.resources, |(of, entries)| {
                    let (resource_type, resource_name) = resource(of);
                    let entry = |(name, value): &m::ConfigEntry| {
                        k!(C {
                            name: copy(name),
                            config_operation: i8::from(value.is_none()),
                            value: opt(value.as_deref())
                        })
                    };
                    k!(R { resource_type: resource_type, resource_name: resource_name, configs: all(entries, entry) })
                });
                self.request(k!(k::IncrementalAlterConfigsRequest { resources: resources }))
            }
            Body::IncrementalAlterConfigsResponse(r) => {
                use k::incremental_alter_configs_response::AlterConfigsResourceResponse as R;
                let resources = all(&r.resources, |it| {
                    k!(R {
                        error_code: it.error as i16,
                        error_message: opt(it.message.as_deref()),
                        resource_name: copy(&it.name),
                    })
                });
                self.response(k!(k::IncrementalAlterConfigsResponse { responses: resources }))
            }
            Body::ElectLeadersRequest(r) => {
                use k::elect_leaders_request::TopicPartitions as T;
                let topics = self.by_topic(
                    &r.parts,
                    |p| *p,
                    |g| k!(T { topic: g.name(), partitions: g.each(|number, _| number) }),
                );
                self.request(k!(k::ElectLeadersRequest {
                    election_type: i8::from(r.unclean),
                    topic_partitions: (!topics.is_empty()).then_some(topics),
                    timeout_ms: TIMEOUT_MS,
                }))
            }
            Body::ElectLeadersResponse(r) => {
                use k::elect_leaders_response::{PartitionResult as P, ReplicaElectionResult as T};
                let topics = self.by_topic(
                    &r.parts,
                    |p| p.0,
                    |g| {
                        let parts = g.each(|number, p| {
                            k!(P { partition_id: number, error_code: p.1 as i16, error_message: None })
                        });
                        k!(T { topic: g.name(), partition_result: parts })
                    },
                );
                self.response(k!(k::ElectLeadersResponse { replica_election_results: topics }))
            }
            other => panic!("{} is not a stock message", other.name()),
        }
    }
}
