use super::*;
use crate::ids::Offset;
use crate::states::MirrorState;

fn part(state: MirrorState, state_epoch: i32, offsets: (i64, i64), age: Option<u32>) -> DescribedPart {
    DescribedPart {
        topic: "t".into(),
        number: 0,
        state,
        state_epoch,
        source_offset: Offset(offsets.0),
        destination_offset: Offset(offsets.1),
        source_age_ms: age,
        ..DescribedPart::default()
    }
}

fn told(error: ErrorCode, parts: Vec<DescribedPart>) -> Vec<DescribedMirror> {
    vec![DescribedMirror { name: "m".into(), error, parts, ..DescribedMirror::default() }]
}

fn rows(survey: Survey) -> Vec<(MirrorState, i64, i64)> {
    let (Report::Described(mirrors, _), _) = survey.end() else { return Vec::new() };
    let row = |p: &DescribedPart| (p.state, p.source_offset.0, p.destination_offset.0);
    mirrors.iter().flat_map(|m| &m.parts).map(row).collect()
}

#[test]
fn two_brokers_words_on_one_partition_make_one_row() {
    let coordinator = part(MirrorState::Mirroring, 4, (-1, -1), None);
    let leader = part(MirrorState::LogAlignment, 3, (7, 6), Some(40));
    for order in [[coordinator.clone(), leader.clone()], [leader, coordinator]] {
        let mut survey = Survey::default();
        order.into_iter().for_each(|p| survey.add(told(ErrorCode::None, vec![p])));
        assert_eq!(rows(survey), [(MirrorState::Mirroring, 7, 6)]);
    }
}

#[test]
fn a_leader_that_was_deposed_does_not_hide_the_new_one_s_offsets() {
    let old = part(MirrorState::Mirroring, 4, (7, 6), Some(9_000));
    let new = part(MirrorState::Mirroring, 4, (9, 9), Some(12));
    for order in [[old.clone(), new.clone()], [new, old]] {
        let mut survey = Survey::default();
        order.into_iter().for_each(|p| survey.add(told(ErrorCode::None, vec![p])));
        assert_eq!(rows(survey), [(MirrorState::Mirroring, 9, 9)]);
    }
}

#[test]
fn bad_05_a_mirror_that_no_broker_knows_is_reported_by_name_and_a_silent_broker_too() {
    let mut survey = Survey::default();
    survey.add(told(ErrorCode::UnknownClusterMirror, vec![]));
    survey.miss(BrokerId(2));
    let (report, items) = survey.end();
    assert_eq!(report, Report::Described(vec![], vec![BrokerId(2)]));
    assert_eq!(items.len(), 1);
    assert_eq!((&*items[0].name, items[0].error), ("m", ErrorCode::UnknownClusterMirror));

    let mut survey = Survey::default();
    survey.add(told(ErrorCode::UnknownClusterMirror, vec![]));
    survey.add(told(ErrorCode::None, vec![]));
    assert!(survey.end().1.is_empty(), "one that lags does not count");

    let mut survey = Survey::default();
    survey.miss(BrokerId(1));
    assert_eq!(survey.end().1[0].error, ErrorCode::RequestTimedOut, "nobody answered");
}

#[test]
fn patterns_mean_the_mirror_s_own_topics_and_names_go_out_as_they_are() {
    let listed = [ListedMirror {
        name: "m".into(),
        topics: vec!["orders-us".into(), "bills".into(), "orders-eu".into()],
        ..ListedMirror::default()
    }];
    let words: Vec<Arc<str>> = ["orders-.*", "ghost"].map(Arc::from).to_vec();
    let order = MirrorOrder::Stop("m".into(), Which::of(&words, true));
    assert_eq!(order.need(None, false), Need::Mirrors);
    assert_eq!(order.need(None, true), Need::Own(None), "E-16: all topics of the cluster");
    assert_eq!(order.need(Some(&listed), false), Need::Nothing);
    let requests = order.requests(&ClusterView::default(), None, Some(&listed)).unwrap();
    let [(Target::Any, Body::StopMirrorTopicsRequest(request))] = &requests[..] else { panic!("{requests:?}") };
    assert_eq!(request.topics, ["ghost", "orders-eu", "orders-us"].map(Arc::from));
    assert_eq!(request.patterns, ["ghost", "orders-.*"].map(Arc::from));
}
