use super::*;
use crate::ids::TopicId;

fn new_topic(name: &str, partitions: u32, factor: i16) -> NewTopic {
    NewTopic { name: name.into(), partitions, replication_factor: factor, ..NewTopic::default() }
}
fn create(rig: &mut Rig, topics: Vec<NewTopic>) -> Vec<ErrorCode> {
    let Body::CreateTopicsResponse(answer) = rig.ask(CreateTopicsRequest { topics }) else { panic!() };
    answer.topics.into_iter().map(|t| t.error).collect()
}
fn grow(rig: &mut Rig, name: &str, total: u32) -> ErrorCode {
    let request = CreatePartitionsRequest { topics: vec![(name.into(), total)], for_mirror: false };
    let Body::CreatePartitionsResponse(answer) = rig.ask(request) else { panic!() };
    answer.topics[0].error
}

#[test]
fn placement_spreads_leaders_and_followers() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2, 3, 4]);
    assert_eq!(create(&mut rig, vec![new_topic("a", 12, -1), new_topic("b", 4, 2)]), [ErrorCode::None; 2]);
    let image = rig.controller.image();
    for broker in 1..=4 {
        let parts = rig.controller.state().index().of_broker(BrokerId(broker));
        assert_eq!((parts.leads.len(), parts.in_isr.len()), (4, 11));
    }
    for (_, p) in image.partitions() {
        let mut replicas = p.state.replicas.clone();
        replicas.sort_unstable();
        replicas.dedup();
        assert_eq!(replicas.len(), if p.topic.0 == 0 { 3 } else { 2 });
        assert_eq!((p.state.leader, p.state.isr.clone()), (p.state.replicas[0], p.state.replicas.clone()));
    }
}

#[test]
fn each_topic_has_its_own_verdict() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2]);
    rig.topic("old", &[&[1, 2]], &[]);
    let bad_config = NewTopic { configs: vec![("retention.ms".into(), "soon".into())], ..new_topic("c", 1, 1) };
    let tiered = NewTopic { configs: vec![("remote.storage.enable".into(), "true".into())], ..new_topic("c", 1, 1) };
    let assigned = |lists: &[&[i32]]| NewTopic {
        assignments: lists.iter().map(|l| l.iter().map(|b| BrokerId(*b)).collect()).collect(),
        ..new_topic("d", 0, -1)
    };
    let errors = create(
        &mut rig,
        vec![
            new_topic("ok", 1, 2),
            new_topic("ok", 1, 2),
            new_topic("old", 1, 1),
            new_topic("no/slash", 1, 1),
            new_topic("p0", 0, 1),
            new_topic("rf0", 1, 0),
            new_topic("rf3", 1, 3),
            new_topic("huge", 10_001, 1),
            bad_config,
            tiered,
            assigned(&[&[1, 2], &[1]]),
            assigned(&[&[1, 1]]),
            assigned(&[&[1, 7]]),
        ],
    );
    assert_eq!(
        errors,
        [
            ErrorCode::None,
            ErrorCode::TopicAlreadyExists,
            ErrorCode::TopicAlreadyExists,
            ErrorCode::InvalidTopic,
            ErrorCode::InvalidPartitions,
            ErrorCode::InvalidReplicationFactor,
            ErrorCode::InvalidReplicationFactor,
            ErrorCode::PolicyViolation,
            ErrorCode::InvalidConfig,
            ErrorCode::InvalidConfig,
            ErrorCode::InvalidReplicaAssignment,
            ErrorCode::InvalidReplicaAssignment,
            ErrorCode::InvalidReplicaAssignment,
        ]
    );
    assert_eq!(rig.controller.image().topics().count(), 2);
}

#[test]
fn a_mirror_topic_takes_the_sources_id_and_needs_all_replicas_alive() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2, 3]);
    let with_id = |name: &str, id: u128| NewTopic { mirror_id: Some(TopicId(id)), ..new_topic(name, 2, -1) };
    assert_eq!(create(&mut rig, vec![with_id("m", 42)]), [ErrorCode::None]);
    assert_eq!(rig.controller.image().topic_of(TopicId(42)), rig.controller.image().topic_by_name("m"));
    assert_eq!(create(&mut rig, vec![with_id("n", 42)]), [ErrorCode::TopicAlreadyExists]);
    rig.fence(&[3]);
    assert_eq!(create(&mut rig, vec![with_id("n", 43)]), [ErrorCode::InvalidReplicationFactor]);
}

#[test]
fn part_05_growth() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2]);
    assert_eq!(create(&mut rig, vec![new_topic("t", 4, 2)]), [ErrorCode::None]);
    assert_eq!(grow(&mut rig, "t", 3), ErrorCode::InvalidPartitions);
    assert_eq!(grow(&mut rig, "t", 4), ErrorCode::InvalidPartitions);
    assert_eq!(grow(&mut rig, "u", 4), ErrorCode::UnknownTopicOrPartition);
    assert_eq!(grow(&mut rig, "t", 6), ErrorCode::None);
    let topic = rig.controller.image().topic_by_name("t").unwrap();
    assert_eq!(rig.controller.image().topic(topic).unwrap().partitions.len(), 6);
    rig.beat(2, false, true);
    rig.fence(&[1]);
    assert_eq!(grow(&mut rig, "t", 7), ErrorCode::InvalidReplicationFactor);
}

#[test]
fn a_removed_topic_is_gone_with_its_partitions_and_its_indices_are_not_given_again() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2]);
    let old = rig.topic("t", &[&[1, 2], &[2, 1]], &[("retention.ms", "1")]);
    let names: Vec<Arc<str>> = vec!["t".into(), "t".into(), "x".into()];
    let Body::DeleteTopicsResponse(answer) = rig.ask(DeleteTopicsRequest { topics: names }) else { panic!() };
    let errors: Vec<_> = answer.topics.iter().map(|t| t.error).collect();
    let unknown = ErrorCode::UnknownTopicOrPartition;
    assert_eq!(errors, [ErrorCode::None, unknown, unknown]);
    assert!(rig.controller.image().partition(old[0]).is_none());
    assert!(rig.controller.state().index().of_broker(BrokerId(1)).in_isr.is_empty());
    let new = rig.topic("t", &[&[1, 2]], &[]);
    assert_eq!(new, [PartitionIx(2)]);
    let topic = rig.controller.image().topic_by_name("t").unwrap();
    assert_eq!(rig.controller.image().topic_config(topic).retention_ms, 604_800_000);
}

#[test]
fn many_records_go_into_batches_of_ten_thousand_at_most() {
    let mut rig = Rig::new(ControllerConfig { max_partitions_per_request: 50_000, ..config() });
    rig.bring_up(&[1, 2, 3]);
    assert_eq!(create(&mut rig, vec![new_topic("big", 25_000, 3)]), [ErrorCode::None]);
    let mut sizes = Vec::new();
    let log = rig.controller.log().unwrap();
    log.for_each_batch(&rig.disk, crate::ids::Offset(0), |batch| sizes.push(batch.record_count())).unwrap();
    assert_eq!(&sizes[sizes.len() - 3..], [10_000, 10_000, 5_001]);
}

#[test]
fn configs_are_checked_and_written_on_change_only() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1]);
    rig.topic("t", &[&[1]], &[]);
    let topic = || ConfigResource::Topic("t".into());
    assert_eq!(rig.set_config(topic(), "retention.ms", Some("5")).error, ErrorCode::None);
    let end = rig.end();
    assert_eq!(rig.set_config(topic(), "retention.ms", Some("5")).error, ErrorCode::None);
    assert_eq!(rig.end(), end);
    let refused = rig.set_config(topic(), "retention.msec", Some("5"));
    assert_eq!(refused.error, ErrorCode::InvalidConfig);
    assert_eq!(refused.message.as_deref(), Some("unknown configuration 'retention.msec'"));
    assert_eq!(rig.set_config(topic(), "nothing", None).error, ErrorCode::InvalidConfig);
    let other = ConfigResource::Topic("x".into());
    assert_eq!(rig.set_config(other, "retention.ms", None).error, ErrorCode::UnknownTopicOrPartition);
    let broker = ConfigResource::Broker(Some(BrokerId(9)));
    assert_eq!(rig.set_config(broker, "num.replica.fetchers", Some("2")).error, ErrorCode::BrokerIdNotRegistered);
    assert_eq!(rig.set_config(ConfigResource::Broker(None), "log.retention.ms", Some("9")).error, ErrorCode::None);
    assert_eq!(rig.set_config(topic(), "retention.ms", None).error, ErrorCode::None);
    let ix = rig.controller.image().topic_by_name("t").unwrap();
    assert_eq!(rig.controller.image().topic_config(ix).retention_ms, 9);
}
