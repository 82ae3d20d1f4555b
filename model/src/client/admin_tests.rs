//! Admin orders against a scripted cluster.

use super::*;
use crate::client::testing::{metadata, node_of, Bench, Request};
use crate::ids::{LeaderEpoch, Offset, PartitionIx, TopicId};
use crate::wire::messages::{
    BumpLeaderEpochsResponse, CreateTopicsResponse, DeleteRecordsResponse, NamedResult, NewTopic,
    StartMirrorTopicsResponse,
};

fn order(command: Command) -> Order {
    Order { id: 1, command, timeout: Nanos::from_secs(60), insist: false }
}

fn create() -> Command {
    Command::CreateTopics(vec![NewTopic { name: "t".into(), partitions: 1, ..NewTopic::default() }])
}

fn bench(order: Order) -> Bench<Admin> {
    let mut bench =
        Bench::new(metadata(&[(1, 0), (2, 0)]), |now, cx| Admin::boot(AdminConfig::new(vec![node_of(1)]), now, cx));
    bench.act(|admin, _, cx| admin.submit(order, cx));
    bench
}

fn created(bench: &mut Bench<Admin>, request: &Request, error: ErrorCode) {
    let topics = vec![NamedResult { name: "t".into(), error, message: None }];
    bench.answer(request, CreateTopicsResponse { topics });
}

fn verdict(bench: &Bench<Admin>) -> Option<Verdict> {
    bench.process.outcome(1).map(|o| o.verdict)
}

#[test]
fn an_accepted_order_ends_and_the_admin_rests() {
    let mut bench = bench(order(create()));
    let request = bench.request();
    created(&mut bench, &request, ErrorCode::None);
    assert_eq!(verdict(&bench), Some(Verdict::Accepted));
    assert!(bench.process.is_idle());
    bench.pass(Nanos::from_secs(600));
    assert_eq!((bench.timers(), bench.requests.len()), (0, 0));
}

#[test]
fn orders_are_carried_out_one_by_one() {
    let mut bench = bench(order(create()));
    let second = Order { id: 2, ..order(Command::DeleteTopics(vec!["t".into()])) };
    bench.act(|admin, _, cx| admin.submit(second, cx));
    assert_eq!(bench.requests.len(), 1);
    let request = bench.request();
    created(&mut bench, &request, ErrorCode::None);
    assert!(matches!(bench.request().message.body, Body::DeleteTopicsRequest(_)));
}

#[test]
fn a_refusal_ends_an_order_unless_it_insists() {
    for insist in [false, true] {
        let mut bench = bench(Order { insist, ..order(create()) });
        let request = bench.request();
        created(&mut bench, &request, ErrorCode::InvalidReplicationFactor);
        let refused = Verdict::Refused(ErrorCode::InvalidReplicationFactor);
        assert_eq!(verdict(&bench), (!insist).then_some(refused));
        bench.pass_ms(150);
        assert_eq!(bench.requests.len(), usize::from(insist));
    }
}

#[test]
fn a_wrong_controller_is_asked_again_elsewhere() {
    let mut bench = bench(order(create()));
    let request = bench.request();
    created(&mut bench, &request, ErrorCode::NotController);
    bench.pass_ms(150);
    let again = bench.request();
    created(&mut bench, &again, ErrorCode::None);
    assert_eq!(bench.process.outcome(1).map(|o| (o.verdict, o.attempts)), Some((Verdict::Accepted, 2)));
    assert_eq!((bench.process.attempts(1), bench.process.attempts(2)), (2, 0));
}

#[test]
fn after_a_lost_answer_what_exists_already_is_its_own_work() {
    let mut bench = bench(order(create()));
    let lost = bench.request();
    bench.cut(lost.node);
    bench.pass_ms(300);
    let again = bench.request();
    created(&mut bench, &again, ErrorCode::TopicAlreadyExists);
    assert_eq!(verdict(&bench), Some(Verdict::Accepted));
}

#[test]
fn without_an_answer_until_the_deadline_nothing_is_known() {
    let mut bench = bench(order(create()));
    bench.pass(Nanos::from_secs(61));
    assert_eq!(verdict(&bench), Some(Verdict::Undecided));
    let late = bench.requests.back().cloned();
    // An answer that still comes changes nothing.
    if let Some(late) = late.filter(|r| bench.conns.contains_key(&r.conn)) {
        created(&mut bench, &late, ErrorCode::None);
    }
    assert_eq!(bench.process.outcomes().len(), 1);
}

#[test]
fn records_are_deleted_at_each_partitions_leader() {
    let parts = vec![(("t".into(), 0), Offset(5)), (("t".into(), 1), Offset(-1))];
    let mut bench = bench(order(Command::DeleteRecords(parts)));
    bench.pass_ms(150);
    for (leader, partition) in [(1, 0), (2, 1)] {
        let request = bench.request();
        assert_eq!(request.node, node_of(leader));
        let parts = vec![(PartitionIx(partition), ErrorCode::None, Offset(5))];
        bench.answer(&request, DeleteRecordsResponse { parts });
    }
    let outcome = bench.process.outcome(1).unwrap();
    assert_eq!((outcome.verdict, &*outcome.items[1].name), (Verdict::Accepted, "t-1"));
}

#[test]
fn mirror_topics_are_looked_up_at_the_source() {
    let command = Command::StartMirrorTopics {
        mirror: "m".into(),
        source: vec![crate::ids::NodeId(200)],
        topics: vec!["s".into()],
        include: vec![],
        exclude: vec!["x.*".into()],
    };
    let config = AdminConfig::new(vec![node_of(1)]);
    let mut bench = Bench::new(metadata(&[(1, 0)]), |now, cx| Admin::boot(config, now, cx));
    let mut source = metadata(&[(1, 0), (1, 0), (1, 0)]);
    source.topics[0].name = "s".into();
    source.topics[0].id = TopicId(99);
    bench.metadata_of.insert(crate::ids::NodeId(200), source);
    bench.act(|admin, _, cx| admin.submit(order(command), cx));
    let request = bench.request();
    let Body::StartMirrorTopicsRequest(start) = &request.message.body else { panic!("{request:?}") };
    assert_eq!(start.topics, [(TopicId(99), "s".into(), 3)]);
    assert!(request.node.0 < 200);
    let topics = vec![NamedResult { name: "s".into(), ..NamedResult::default() }];
    bench.answer(&request, StartMirrorTopicsResponse { error: ErrorCode::None, topics });
    assert_eq!(verdict(&bench), Some(Verdict::Accepted));
}

#[test]
fn a_mirror_gets_its_source_filled_in() {
    let command =
        Command::CreateClusterMirror { mirror: "m".into(), source: vec![crate::ids::NodeId(200)], configs: vec![] };
    let config = AdminConfig::new(vec![node_of(1)]);
    let mut bench = Bench::new(metadata(&[]), |now, cx| Admin::boot(config, now, cx));
    let mut source = metadata(&[]);
    source.cluster_id = "west".into();
    bench.metadata_of.insert(crate::ids::NodeId(200), source);
    bench.act(|admin, _, cx| admin.submit(order(command), cx));
    let request = bench.request();
    let Body::CreateClusterMirrorRequest(create) = &request.message.body else { panic!("{request:?}") };
    let expected = [("bootstrap.servers".into(), "200".into()), ("source.cluster.id".into(), "west".into())];
    assert_eq!(create.configs, expected);
}

/// Spec 1.3: only what is missing is asked for. A source that is out of reach keeps nobody from creating its mirror.
#[test]
fn a_mirror_whose_source_id_is_given_asks_no_source() {
    let given = vec![("source.cluster.id".into(), "west".into())];
    let command =
        Command::CreateClusterMirror { mirror: "m".into(), source: vec![crate::ids::NodeId(200)], configs: given };
    let config = AdminConfig::new(vec![node_of(1)]);
    let mut bench = Bench::new(metadata(&[]), |now, cx| Admin::boot(config, now, cx));
    bench.act(|admin, _, cx| admin.submit(order(command), cx));
    let request = bench.request();
    let Body::CreateClusterMirrorRequest(create) = &request.message.body else { panic!("{request:?}") };
    assert_eq!(
        create.configs,
        [("source.cluster.id", "west"), ("bootstrap.servers", "200")].map(|(k, v)| (k.into(), v.into()))
    );
}

#[test]
fn a_topic_that_the_source_does_not_have_is_refused_without_asking_the_destination() {
    let command = Command::StartMirrorTopics {
        mirror: "m".into(),
        source: vec![node_of(1)],
        topics: vec!["nowhere".into()],
        include: vec![],
        exclude: vec![],
    };
    let bench = bench(order(command));
    assert_eq!(verdict(&bench), Some(Verdict::Refused(ErrorCode::UnknownTopicOrPartition)));
    assert!(bench.requests.is_empty());
}

#[test]
fn an_epoch_is_raised_by_partition_and_the_verdict_is_by_name() {
    let parts = vec![(("t".into(), 1), LeaderEpoch(9))];
    let mut bench = bench(order(Command::BumpLeaderEpochs(parts)));
    let request = bench.request();
    let Body::BumpLeaderEpochsRequest(body) = &request.message.body else { panic!("{:?}", request.message.body) };
    let (partition, min) = body.parts[0];
    assert_eq!(min, LeaderEpoch(9));
    let parts = vec![(partition, ErrorCode::InvalidRequest)];
    bench.answer(&request, BumpLeaderEpochsResponse { error: ErrorCode::None, parts });
    assert_eq!(verdict(&bench), Some(Verdict::Refused(ErrorCode::InvalidRequest)));
    assert_eq!(bench.process.outcome(1).map(|o| &*o.items[0].name), Some("t-1"));
}
