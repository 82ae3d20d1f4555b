use super::*;
use crate::guards::controller as guard;
use crate::ids::{TopicId, TopicIx};
use crate::states::DesiredState;

fn create(rig: &mut Rig, name: &str, configs: &[(&str, &str)]) -> CreateClusterMirrorResponse {
    let configs = configs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    let Body::CreateClusterMirrorResponse(answer) =
        rig.ask(CreateClusterMirrorRequest { mirror: name.into(), configs })
    else {
        panic!()
    };
    *answer
}
const SOURCE: [(&str, &str); 2] = [("bootstrap.servers", "1,2"), ("source.cluster.id", "west")];

fn rig() -> Rig {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2, 3]);
    assert_eq!(create(&mut rig, "m", &SOURCE).error, ErrorCode::None);
    rig
}
fn request(topics: &[(u128, &str, u32)]) -> StartMirrorTopicsRequest {
    StartMirrorTopicsRequest {
        mirror: "m".into(),
        topics: topics.iter().map(|(id, name, n)| (TopicId(*id), Arc::from(*name), *n)).collect(),
        include: Vec::new(),
        exclude: Vec::new(),
        state_offset: MetadataOffset(-1),
    }
}
fn start(rig: &mut Rig, request: StartMirrorTopicsRequest) -> (ErrorCode, Vec<ErrorCode>) {
    let Body::StartMirrorTopicsResponse(answer) = rig.ask(request) else { panic!() };
    (answer.error, answer.topics.into_iter().map(|t| t.error).collect())
}
fn ix(rig: &Rig, name: &str) -> TopicIx {
    rig.controller.image().topic_by_name(name).unwrap()
}
fn desired(rig: &Rig, name: &str) -> Option<DesiredState> {
    rig.controller.image().mirror_of(ix(rig, name)).map(|(_, desired)| desired)
}
fn lists(rig: &Rig, mirror: &str) -> (String, String) {
    let image = rig.controller.image();
    let config = &image.mirror(image.mirror_by_name(mirror).unwrap()).unwrap().config;
    (config.topics_include.to_string(), config.topics_exclude.to_string())
}
/// Writes a desired state as a later command would.
fn set_desired(rig: &mut Rig, name: &str, to: DesiredState) {
    let topic = ix(rig, name);
    let (mirror, _) = rig.controller.image().mirror_of(topic).unwrap();
    rig.plan_for_test(crate::metadata::records::Record::MirrorTopicStateChange {
        topic,
        mirror: Some(mirror),
        desired: to,
    });
}

#[test]
fn a_mirror_is_created_with_its_state_topic() {
    let rig = rig();
    let image = rig.controller.image();
    let mirror = image.mirror(image.mirror_by_name("m").unwrap()).unwrap();
    assert_eq!(
        (mirror.source_nodes.clone(), mirror.config.source_cluster_id.as_ref()),
        (vec![NodeId(1), NodeId(2)], "west")
    );
    let topic = image.topic(ix(&rig, "__mirror_state")).unwrap();
    assert_eq!(topic.partitions.len(), 50);
    assert_eq!(topic.config.retention_ms, -1);
}

#[test]
fn a_mirror_that_cannot_be_is_refused_and_leaves_nothing() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2]);
    let end = rig.end();
    let long = "x".repeat(250);
    for (name, configs, error) in [
        ("a/b", &SOURCE[..], ErrorCode::InvalidRequest),
        (long.as_str(), &SOURCE[..], ErrorCode::InvalidRequest),
        ("m", &SOURCE[..1], ErrorCode::InvalidRequest),
        ("m", &SOURCE[1..], ErrorCode::InvalidRequest),
        (
            "m",
            &[("bootstrap.servers", "1"), ("source.cluster.id", "w"), ("fetch.max", "1")][..],
            ErrorCode::InvalidConfig,
        ),
        ("m", &SOURCE[..], ErrorCode::InvalidReplicationFactor),
    ] {
        assert_eq!(create(&mut rig, name, configs).error, error, "{name}");
        assert_eq!(rig.end(), end);
    }
    rig.bring_up(&[3]);
    assert_eq!(create(&mut rig, "m", &SOURCE).error, ErrorCode::None);
    assert_eq!(create(&mut rig, "m", &SOURCE).error, ErrorCode::ClusterMirrorAlreadyExists);
}

#[test]
fn topics_start_each_with_its_own_outcome() {
    let mut rig = rig();
    assert_eq!(create(&mut rig, "other", &SOURCE).error, ErrorCode::None);
    rig.topic("local", &[&[1, 2]], &[]);
    let local = rig.controller.image().topic(ix(&rig, "local")).unwrap().id;
    let theirs = StartMirrorTopicsRequest { mirror: "other".into(), ..request(&[(70, "theirs", 1)]) };
    assert_eq!(start(&mut rig, theirs), (ErrorCode::None, vec![ErrorCode::None]));

    let answer = start(
        &mut rig,
        request(&[
            (1, "fresh", 2),         // created with the source's id
            (local.0, "local", 1),   // exists, same id
            (9, "later", 0),         // no count: left to discovery
            (5, "local2", 1),        // created too
            (local.0, "renamed", 1), // the id belongs to another name
            (70, "theirs", 1),       // another mirror's
            (3, "__consumer_offsets", 1),
            (4, "bad/name", 1),
            (1, "fresh", 2), // named twice
        ]),
    );
    let expected = vec![
        ErrorCode::None,
        ErrorCode::None,
        ErrorCode::None,
        ErrorCode::None,
        ErrorCode::TopicAlreadyExists,
        ErrorCode::TopicAlreadyInClusterMirror,
        ErrorCode::InvalidRequest,
        ErrorCode::InvalidTopic,
        ErrorCode::InvalidRequest,
    ];
    assert_eq!(answer, (ErrorCode::None, expected));
    assert_eq!(rig.controller.image().topic_of(TopicId(1)), Some(ix(&rig, "fresh")));
    assert_eq!(desired(&rig, "local"), Some(DesiredState::Mirroring));
    assert!(rig.controller.image().topic_by_name("renamed").is_none());
    // Only what started is in the list now.
    assert_eq!(lists(&rig, "m"), ("fresh,local,later,local2".into(), "__.*".into()));
}

#[test]
fn a_clash_changes_nothing() {
    let mut rig = rig();
    rig.topic("t", &[&[1, 2]], &[]);
    let end = rig.end();
    assert_eq!(start(&mut rig, request(&[(666, "t", 1)])).1, [ErrorCode::InconsistentTopicId]);
    assert_eq!((rig.end(), desired(&rig, "t")), (end, None));
    // A source without ids cannot clash.
    assert_eq!(start(&mut rig, request(&[(0, "t", 1)])).1, [ErrorCode::None]);
    rig.guards.set(guard::StartTopicIdMatches, false);
    assert_eq!(start(&mut rig, request(&[(666, "t", 1)])).1, [ErrorCode::None]);
}

#[test]
fn a_repeated_start_is_a_success_without_effect_and_a_paused_topic_is_refused() {
    let mut rig = rig();
    assert_eq!(start(&mut rig, request(&[(1, "t", 1)])).1, [ErrorCode::None]);
    let end = rig.end();
    assert_eq!(start(&mut rig, request(&[(1, "t", 1)])).1, [ErrorCode::None]);
    assert_eq!(rig.end(), end);
    set_desired(&mut rig, "t", DesiredState::Paused);
    assert_eq!(start(&mut rig, request(&[(1, "t", 1)])).1, [ErrorCode::MirrorTopicNotStopped]);
    set_desired(&mut rig, "t", DesiredState::Stopped);
    assert_eq!(start(&mut rig, request(&[(1, "t", 1)])).1, [ErrorCode::None]);
    assert_eq!(desired(&rig, "t"), Some(DesiredState::Mirroring));
}

#[test]
fn a_start_on_states_that_changed_since_is_refused_whole() {
    let mut rig = rig();
    assert_eq!(start(&mut rig, request(&[(1, "t", 1)])).1, [ErrorCode::None]);
    let checked = MetadataOffset(rig.end());
    set_desired(&mut rig, "t", DesiredState::Stopped);
    let stale = StartMirrorTopicsRequest { state_offset: checked, ..request(&[(1, "t", 1)]) };
    assert_eq!(start(&mut rig, stale.clone()), (ErrorCode::InvalidClusterMirrorStates, vec![]));
    let fresh = StartMirrorTopicsRequest { state_offset: MetadataOffset(rig.end()), ..stale };
    assert_eq!(start(&mut rig, fresh).0, ErrorCode::None);
    let nobody = StartMirrorTopicsRequest { mirror: "nobody".into(), ..request(&[]) };
    assert_eq!(start(&mut rig, nobody).0, ErrorCode::UnknownClusterMirror);
}

#[test]
fn patterns_are_merged_and_what_is_excluded_now_stops() {
    let mut rig = rig();
    let first =
        StartMirrorTopicsRequest { include: vec!["orders.*".into()], ..request(&[(1, "orders-a", 1), (2, "pay", 1)]) };
    assert_eq!(start(&mut rig, first).1, [ErrorCode::None, ErrorCode::None]);
    assert_eq!(lists(&rig, "m"), ("orders.*,pay".into(), "__.*".into()));
    let second = StartMirrorTopicsRequest { exclude: vec!["pay.*".into()], ..request(&[(3, "payroll", 1)]) };
    assert_eq!(start(&mut rig, second).1, [ErrorCode::InvalidRequest]);
    assert_eq!(lists(&rig, "m"), ("orders.*,pay".into(), "__.*,pay.*".into()));
    assert_eq!(
        (desired(&rig, "pay"), desired(&rig, "orders-a")),
        (Some(DesiredState::Stopped), Some(DesiredState::Mirroring))
    );
    let broken = StartMirrorTopicsRequest { include: vec!["(".into()], ..request(&[]) };
    assert_eq!(start(&mut rig, broken).0, ErrorCode::InvalidRequest);
}

#[test]
fn bumps_go_above_the_minimum_and_write_nothing_where_none_is_needed() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2]);
    let p = rig.topic("t", &[&[1, 2]], &[])[0];
    let bump = |rig: &mut Rig, parts: &[(PartitionIx, i32)]| {
        let parts = parts.iter().map(|(ix, min)| (*ix, LeaderEpoch(*min))).collect();
        let Body::BumpLeaderEpochsResponse(answer) = rig.ask(BumpLeaderEpochsRequest { parts }) else { panic!() };
        let errors: Vec<_> = answer.parts.iter().map(|(_, e)| *e).collect();
        (errors, rig.state(p).leader_epoch.0)
    };
    // LEAD-04 as decision 29 reads it: source epoch + 10 is the minimum.
    assert_eq!(bump(&mut rig, &[(p, 10)]), (vec![ErrorCode::None], 11));
    let end = rig.end();
    assert_eq!(bump(&mut rig, &[(p, 10)]), (vec![ErrorCode::None], 11));
    assert_eq!(rig.end(), end);
    assert_eq!(bump(&mut rig, &[(p, 18)]), (vec![ErrorCode::None], 19));
    assert_eq!(bump(&mut rig, &[(p, 19)]), (vec![ErrorCode::None], 20));
    assert_eq!(bump(&mut rig, &[(p, 40), (p, 25)]), (vec![ErrorCode::None], 41));
    assert_eq!(rig.state(p).leader, BrokerId(1));
    // A partition that is gone does not hold up the others (C-5), and no number makes it panic.
    let unknown = PartitionIx(99);
    let answer = bump(&mut rig, &[(p, 50), (unknown, 1)]);
    assert_eq!(answer, (vec![ErrorCode::None, ErrorCode::UnknownTopicOrPartition], 51));
    assert_eq!(bump(&mut rig, &[(p, i32::MAX)]), (vec![ErrorCode::InvalidRequest], 51));
    // C12: an equal epoch taken for enough.
    rig.guards.set(guard::BumpAboveMinimum, false);
    assert_eq!(bump(&mut rig, &[(p, 51)]), (vec![ErrorCode::None], 51));
}

// ----------------------------------------------------------------------------------------------------- stop, pause, resume

fn names(topics: &[&str]) -> Vec<Arc<str>> {
    topics.iter().map(|name| Arc::from(*name)).collect()
}
fn errors(topics: Vec<NamedResult>) -> Vec<ErrorCode> {
    topics.into_iter().map(|t| t.error).collect()
}
fn stop(rig: &mut Rig, topics: &[&str], patterns: &[&str], offset: i64) -> (ErrorCode, Vec<ErrorCode>) {
    let (topics, patterns) = (names(topics), names(patterns));
    let state_offset = MetadataOffset(offset);
    let Body::StopMirrorTopicsResponse(answer) =
        rig.ask(StopMirrorTopicsRequest { mirror: "m".into(), topics, patterns, state_offset })
    else {
        panic!()
    };
    (answer.error, errors(answer.topics))
}
fn pause(rig: &mut Rig, topics: &[&str]) -> Vec<ErrorCode> {
    let (topics, state_offset) = (names(topics), MetadataOffset(-1));
    let Body::PauseMirrorTopicsResponse(answer) =
        rig.ask(PauseMirrorTopicsRequest { mirror: "m".into(), topics, state_offset })
    else {
        panic!()
    };
    errors(answer.topics)
}
fn resume(rig: &mut Rig, topics: &[&str]) -> Vec<ErrorCode> {
    let (topics, state_offset) = (names(topics), MetadataOffset(-1));
    let Body::ResumeMirrorTopicsResponse(answer) =
        rig.ask(ResumeMirrorTopicsRequest { mirror: "m".into(), topics, state_offset })
    else {
        panic!()
    };
    errors(answer.topics)
}
fn delete(rig: &mut Rig) -> ErrorCode {
    let state_offset = MetadataOffset(-1);
    let Body::DeleteClusterMirrorResponse(answer) =
        rig.ask(DeleteClusterMirrorRequest { mirror: "m".into(), state_offset })
    else {
        panic!()
    };
    answer.error
}

#[test]
fn topics_pause_resume_and_stop_each_with_its_own_outcome() {
    let mut rig = rig();
    rig.topic("plain", &[&[1, 2]], &[]);
    assert_eq!(create(&mut rig, "other", &SOURCE).error, ErrorCode::None);
    let theirs = StartMirrorTopicsRequest { mirror: "other".into(), ..request(&[(70, "theirs", 1)]) };
    assert_eq!(start(&mut rig, theirs).0, ErrorCode::None);
    assert_eq!(start(&mut rig, request(&[(1, "a", 1), (2, "b", 1), (3, "c", 1)])).0, ErrorCode::None);

    let odd = [ErrorCode::UnknownClusterMirror, ErrorCode::TopicNotInClusterMirror, ErrorCode::UnknownTopicOrPartition];
    let with_odd = |first: ErrorCode| [&[first][..], &odd[..]].concat();
    assert_eq!(pause(&mut rig, &["a", "plain", "theirs", "nowhere"]), with_odd(ErrorCode::None));
    assert_eq!(desired(&rig, "a"), Some(DesiredState::Paused));
    let end = rig.end();
    assert_eq!(pause(&mut rig, &["a"]), [ErrorCode::None], "again: nothing to do");
    assert_eq!(resume(&mut rig, &["b"]), [ErrorCode::None], "mirrors already");
    assert_eq!(rig.end(), end);
    assert_eq!(pause(&mut rig, &["b", "b"]), [ErrorCode::None, ErrorCode::InvalidRequest]);
    assert_eq!(resume(&mut rig, &["b", "plain", "theirs", "nowhere"]), with_odd(ErrorCode::None));
    assert_eq!(desired(&rig, "b"), Some(DesiredState::Mirroring));

    // Decision 1: a paused topic stops too.
    assert_eq!(
        stop(&mut rig, &["a", "plain", "theirs", "nowhere"], &[], -1),
        (ErrorCode::None, with_odd(ErrorCode::None))
    );
    assert_eq!(desired(&rig, "a"), Some(DesiredState::Stopped));
    let end = rig.end();
    assert_eq!(stop(&mut rig, &["a"], &[], -1), (ErrorCode::None, vec![ErrorCode::None]));
    assert_eq!(rig.end(), end, "a second stop is a success without effect");
    assert_eq!(pause(&mut rig, &["a"]), [ErrorCode::MirrorTopicBeingStopped]);
    assert_eq!(resume(&mut rig, &["a"]), [ErrorCode::MirrorTopicNotPaused]);
}

#[test]
fn a_stop_by_pattern_takes_it_out_of_the_lists_and_stops_what_it_matches() {
    let mut rig = rig();
    let started = StartMirrorTopicsRequest {
        include: names(&["orders-.*"]),
        ..request(&[(1, "orders-a", 1), (2, "orders-b", 1), (3, "bills", 1)])
    };
    assert_eq!(start(&mut rig, started).0, ErrorCode::None);
    assert_eq!(lists(&rig, "m"), ("orders-.*,bills".into(), "__.*".into()));
    assert_eq!(stop(&mut rig, &[], &["orders-.*"], -1), (ErrorCode::None, vec![]));
    assert_eq!(lists(&rig, "m"), ("bills".into(), "__.*".into()), "it stood in the include list");
    assert_eq!(stop(&mut rig, &[], &["bil.*"], -1), (ErrorCode::None, vec![]));
    assert_eq!(lists(&rig, "m"), ("bills".into(), "__.*,bil.*".into()), "the default exclude holds beside it");
    for topic in ["orders-a", "orders-b", "bills"] {
        assert_eq!(desired(&rig, topic), Some(DesiredState::Stopped), "{topic}");
    }
    assert_eq!(stop(&mut rig, &[], &["["], -1).0, ErrorCode::InvalidRequest);
}

#[test]
fn an_order_that_was_checked_against_older_states_is_refused() {
    let mut rig = rig();
    assert_eq!(start(&mut rig, request(&[(1, "a", 1)])).0, ErrorCode::None);
    let checked = rig.end();
    assert_eq!(pause(&mut rig, &["a"]), [ErrorCode::None]);
    assert_eq!(stop(&mut rig, &["a"], &[], checked), (ErrorCode::InvalidClusterMirrorStates, vec![]));
    let now = rig.end();
    assert_eq!(stop(&mut rig, &["a"], &[], now).1, [ErrorCode::None]);
}

#[test]
fn a_mirror_is_deleted_only_when_all_its_topics_are_stopped() {
    let mut rig = rig();
    assert_eq!(start(&mut rig, request(&[(1, "a", 1), (2, "b", 1)])).0, ErrorCode::None);
    assert_eq!(stop(&mut rig, &["a"], &[], -1).1, [ErrorCode::None]);
    assert_eq!(delete(&mut rig), ErrorCode::ClusterMirrorNotEmpty);
    assert_eq!(pause(&mut rig, &["b"]), [ErrorCode::None]);
    assert_eq!(delete(&mut rig), ErrorCode::ClusterMirrorNotEmpty);
    assert_eq!(stop(&mut rig, &["b"], &[], -1).1, [ErrorCode::None]);
    assert_eq!(delete(&mut rig), ErrorCode::None);
    assert_eq!(delete(&mut rig), ErrorCode::UnknownClusterMirror);
    // Decision 18: its topics belong to nobody, and the name is free again.
    assert_eq!((desired(&rig, "a"), desired(&rig, "b")), (None, None));
    assert!(rig.controller.image().mirror_by_name("m").is_none());
    assert_eq!(create(&mut rig, "m", &SOURCE).error, ErrorCode::None);
}

/// CLI-10, BAD-02. A setting that no mirror has is refused by name and changes nothing; another bootstrap list is taken over.
#[test]
fn cli_10_a_mirror_s_settings_are_altered() {
    let mut rig = rig();
    let of_mirror = || ConfigResource::ClusterMirror("m".into());
    let end = rig.end();
    let refused = rig.set_config(of_mirror(), "invalid.config", Some("foo"));
    assert_eq!(refused.error, ErrorCode::InvalidConfig);
    assert!(refused.message.as_deref().is_some_and(|why| why.contains("invalid.config")), "{:?}", refused.message);
    assert_eq!(rig.end(), end);
    assert_eq!(rig.set_config(of_mirror(), "bootstrap.servers", Some("2")).error, ErrorCode::None);
    let image = rig.controller.image();
    let mirror = image.mirror(image.mirror_by_name("m").unwrap()).unwrap();
    assert_eq!(mirror.source_nodes, [NodeId(2)]);
}

/// PAU-03, the controller alone. It knows what is wished, not what is: a topic that FAILED is wished MIRRORING, so that its resume
/// is a success without effect (spec 1.5), and 141 is for what is STOPPED. Brokers look at states first (order_rules_tests.rs).
#[test]
fn pau_03_what_the_controller_alone_says() {
    let mut rig = rig();
    assert_eq!(start(&mut rig, request(&[(1, "copied", 1), (2, "held", 1), (3, "over", 1)])).0, ErrorCode::None);
    assert_eq!(pause(&mut rig, &["held"]), [ErrorCode::None]);
    assert_eq!(stop(&mut rig, &["over"], &[], -1).1, [ErrorCode::None]);
    let end = rig.end();
    assert_eq!(pause(&mut rig, &["over"]), [ErrorCode::MirrorTopicBeingStopped]);
    assert_eq!(pause(&mut rig, &["held"]), [ErrorCode::None]);
    assert_eq!(resume(&mut rig, &["copied"]), [ErrorCode::None]);
    assert_eq!(resume(&mut rig, &["over"]), [ErrorCode::MirrorTopicNotPaused]);
    assert_eq!(start(&mut rig, request(&[(2, "held", 1)])).1, [ErrorCode::MirrorTopicNotStopped]);
    assert_eq!(rig.end(), end, "none of it wrote a record");
    let codes = [ErrorCode::MirrorTopicBeingStopped, ErrorCode::MirrorTopicNotPaused, ErrorCode::MirrorTopicNotStopped];
    assert_eq!(codes.map(|error| error as i16), [142, 141, 146]);
}

/// BAD-05, the controller alone: 137 each time, and no record.
#[test]
fn bad_05_orders_to_a_mirror_that_does_not_exist() {
    let mut rig = rig();
    assert_eq!(start(&mut rig, request(&[(1, "a", 1)])).0, ErrorCode::None);
    let end = rig.end();
    let (mirror, topics, state_offset) = (Arc::<str>::from("ghost"), names(&["a"]), MetadataOffset(-1));
    let orders: [Body; 5] = [
        StartMirrorTopicsRequest { mirror: mirror.clone(), ..request(&[(2, "b", 1)]) }.into(),
        StopMirrorTopicsRequest { mirror: mirror.clone(), topics: topics.clone(), patterns: Vec::new(), state_offset }
            .into(),
        PauseMirrorTopicsRequest { mirror: mirror.clone(), topics: topics.clone(), state_offset }.into(),
        ResumeMirrorTopicsRequest { mirror: mirror.clone(), topics, state_offset }.into(),
        DeleteClusterMirrorRequest { mirror, state_offset }.into(),
    ];
    for order in orders {
        let error = match rig.ask(order) {
            Body::StartMirrorTopicsResponse(answer) => answer.error,
            Body::StopMirrorTopicsResponse(answer) => answer.error,
            Body::PauseMirrorTopicsResponse(answer) => answer.error,
            Body::ResumeMirrorTopicsResponse(answer) => answer.error,
            Body::DeleteClusterMirrorResponse(answer) => answer.error,
            other => panic!("{other:?}"),
        };
        assert_eq!((error, error as i16), (ErrorCode::UnknownClusterMirror, 137));
    }
    assert_eq!((rig.end(), desired(&rig, "a")), (end, Some(DesiredState::Mirroring)));
}

/// BAD-14. Of two topics in one call the mirrored one stays, the plain one goes; stopped, the other one goes too.
#[test]
fn bad_14_a_mirrored_and_a_plain_topic_in_one_call() {
    let mut rig = rig();
    rig.topic("u", &[&[1, 2]], &[]);
    assert_eq!(start(&mut rig, request(&[(1, "t", 1)])).0, ErrorCode::None);
    let delete = |rig: &mut Rig, topics: &[&str]| {
        let Body::DeleteTopicsResponse(answer) = rig.ask(DeleteTopicsRequest { topics: names(topics) }) else {
            panic!()
        };
        errors(answer.topics)
    };
    for hold in [false, true] {
        if hold {
            assert_eq!(pause(&mut rig, &["t"]), [ErrorCode::None]);
        }
        let second = if hold { ErrorCode::UnknownTopicOrPartition } else { ErrorCode::None };
        assert_eq!(delete(&mut rig, &["t", "u"]), [ErrorCode::InvalidClusterMirrorStates, second]);
        assert!(
            rig.controller.image().topic_by_name("t").is_some() && rig.controller.image().topic_by_name("u").is_none()
        );
    }
    assert_eq!(stop(&mut rig, &["t"], &[], -1).1, [ErrorCode::None]);
    assert_eq!(delete(&mut rig, &["t"]), [ErrorCode::None]);
    assert!(rig.controller.image().topic_by_name("t").is_none());
}

/// CLI-15. What each call of the tool leaves in the mirror's lists. A name that is started leaves the exclude list and stands in the
/// include list beside the pattern (spec 6.8), until it is stopped, by whatever it is named.
#[test]
fn cli_15_start_and_stop_edit_the_lists() {
    let mut rig = rig();
    let begin = |words: &[&str], topics: &[(u128, &str, u32)]| StartMirrorTopicsRequest {
        include: names(words),
        ..request(topics)
    };
    let both = [(1, "orders-us", 1), (2, "orders-eu", 1)];
    assert_eq!(start(&mut rig, begin(&["orders-.*"], &both)).1, [ErrorCode::None; 2]);
    assert_eq!(lists(&rig, "m"), ("orders-.*".into(), "__.*".into()));
    assert_eq!(stop(&mut rig, &["orders-eu"], &["orders-eu"], -1).1, [ErrorCode::None]);
    assert_eq!(lists(&rig, "m"), ("orders-.*".into(), "__.*,orders-eu".into()));
    assert_eq!(
        (desired(&rig, "orders-us"), desired(&rig, "orders-eu")),
        (Some(DesiredState::Mirroring), Some(DesiredState::Stopped))
    );
    assert_eq!(start(&mut rig, begin(&["orders-eu"], &both[1..])).1, [ErrorCode::None]);
    assert_eq!(lists(&rig, "m"), ("orders-.*,orders-eu".into(), "__.*".into()));
    assert_eq!(stop(&mut rig, &["orders-eu", "orders-us"], &["orders-.*"], -1).1, [ErrorCode::None; 2]);
    assert_eq!(lists(&rig, "m"), ("".into(), "__.*".into()));
    assert_eq!(
        (desired(&rig, "orders-us"), desired(&rig, "orders-eu")),
        (Some(DesiredState::Stopped), Some(DesiredState::Stopped))
    );
}

/// PART-02. Of two topics in one call the mirrored one is refused; the results keep their order. Its mirror may let it grow.
#[test]
fn part_02_a_mirrored_topic_grows_by_its_mirror_s_word_only() {
    let mut rig = rig();
    assert_eq!(start(&mut rig, request(&[(7, "orders", 2)])).1, [ErrorCode::None]);
    let plain = NewTopic { name: "plain".into(), partitions: 1, replication_factor: 1, ..NewTopic::default() };
    rig.ask(CreateTopicsRequest { topics: vec![plain] });
    let mut grow = |topics: &[(&str, u32)], for_mirror| {
        let topics = topics.iter().map(|(name, total)| ((*name).into(), *total)).collect();
        let Body::CreatePartitionsResponse(answer) = rig.ask(CreatePartitionsRequest { topics, for_mirror }) else {
            panic!()
        };
        answer.topics.iter().map(|topic| topic.error).collect::<Vec<_>>()
    };
    let (refused, done) = (ErrorCode::InvalidClusterMirrorStates, ErrorCode::None);
    assert_eq!(grow(&[("orders", 9), ("plain", 2)], false), [refused, done]);
    assert_eq!(grow(&[("orders", 9)], true), [done]);
    set_desired(&mut rig, "orders", DesiredState::Stopped);
    let request = CreatePartitionsRequest { topics: vec![("orders".into(), 10)], for_mirror: false };
    let Body::CreatePartitionsResponse(answer) = rig.ask(request) else { panic!() };
    assert_eq!(answer.topics[0].error, done);
}
