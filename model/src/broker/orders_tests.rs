//! Orders of operators at a broker: which states it asks for, what it makes of answers and of silence, what it passes on.

use super::*;
use crate::coordinator::routing::STATE_TOPIC;
use crate::guards::mirror as mirror_guard;
use crate::states::{MirrorState, StateRecord};
use crate::wire::messages::{
    CreatePartitionsRequest, DescribeClusterMirrorsRequest, PauseMirrorTopicsRequest, PauseMirrorTopicsResponse,
    ReadMirrorStatesRequest, ReadMirrorStatesResponse, RecoverMirrorTopicsRequest, RecoverMirrorTopicsResponse,
    StopMirrorTopicsRequest,
};
use std::sync::Arc;

/// The partitions of "orders"; broker 2 leads them.
const ORDERS: [PartitionIx; 2] = [PartitionIx(0), PartitionIx(1)];

/// Mirror "m" copies "orders"; broker 2 coordinates all of it.
fn host() -> Host {
    let mut host = Host::running();
    let mut records = vec![
        topic(0, 7, "orders"),
        topic(1, 8, STATE_TOPIC),
        Record::Mirror { mirror: MirrorIx(0), name: "m".into() },
        Record::MirrorTopicStateChange {
            topic: TopicIx(0),
            mirror: Some(MirrorIx(0)),
            desired: DesiredState::Mirroring,
        },
        partition(0, 0, 0, 2, &[1, 2]),
        partition(1, 0, 1, 2, &[1, 2]),
    ];
    let count = configs::BrokerConfig::default().mirror_state_topic_num_partitions;
    records.extend((0..count).map(|n| partition(10 + n, 1, n, 2, &[2, 1])));
    host.metadata(&records);
    host.open_client();
    host
}

fn names(list: &[&str]) -> Vec<Arc<str>> {
    list.iter().map(|name| Arc::from(*name)).collect()
}

fn pause(topics: &[&str]) -> PauseMirrorTopicsRequest {
    PauseMirrorTopicsRequest { mirror: "m".into(), topics: names(topics), state_offset: MetadataOffset(-1) }
}

/// What the client was answered, topic by topic.
fn paused(host: &mut Host) -> Vec<ErrorCode> {
    let Body::PauseMirrorTopicsResponse(answer) = host.take("PauseMirrorTopicsResponse").1.body else { panic!() };
    assert_eq!(answer.error, ErrorCode::None);
    answer.topics.iter().map(|t| t.error).collect()
}

fn in_state(partition: PartitionIx, state: MirrorState) -> (PartitionIx, ErrorCode, StateRecord) {
    (partition, ErrorCode::None, StateRecord { state, ..StateRecord::default() })
}

/// Pauses "orders"; gives the question that went to the coordinator.
fn ask(host: &mut Host) -> (ConnId, Message) {
    host.client(1, pause(&["orders"]));
    let asked = host.take("ReadMirrorStatesRequest");
    assert_eq!(asked.1.body, ReadMirrorStatesRequest { mirror: "m".into(), parts: ORDERS.to_vec() }.into());
    assert_eq!(host.connects.last(), Some(&(asked.0, NodeId(2))));
    asked
}

#[test]
fn what_fits_goes_to_the_controller_with_the_offset_it_was_judged_by() {
    let mut host = host();
    let asked = ask(&mut host);
    let parts = ORDERS.map(|p| in_state(p, MirrorState::Mirroring)).to_vec();
    host.reply(&asked, ReadMirrorStatesResponse { error: ErrorCode::None, parts });
    let end = host.broker().image.end();
    let forwarded = host.take("PauseMirrorTopicsRequest");
    assert_eq!(forwarded.1.body, PauseMirrorTopicsRequest { state_offset: end, ..pause(&["orders"]) }.into());
    let verdict = NamedResult { name: "orders".into(), error: ErrorCode::None, message: None };
    host.reply(&forwarded, PauseMirrorTopicsResponse { error: ErrorCode::None, topics: vec![verdict] });
    assert_eq!(paused(&mut host), [ErrorCode::None]);
}

#[test]
fn one_failed_partition_refuses_its_topic() {
    let mut host = host();
    let asked = ask(&mut host);
    let parts = vec![in_state(ORDERS[0], MirrorState::Mirroring), in_state(ORDERS[1], MirrorState::Failed)];
    host.reply(&asked, ReadMirrorStatesResponse { error: ErrorCode::None, parts });
    assert_eq!(paused(&mut host), [ErrorCode::InvalidClusterMirrorStates]);
}

/// D-19, K21: an answer that names no partition, or none at all, is a failure to try again after.
#[test]
fn silence_never_passes_an_order() {
    let loading = (ORDERS[1], ErrorCode::CoordinatorLoadInProgress, StateRecord::default());
    type Told = Vec<(PartitionIx, ErrorCode, StateRecord)>;
    let answers: [(Told, ErrorCode); 3] = [
        (vec![], ErrorCode::CoordinatorNotAvailable),
        (vec![in_state(ORDERS[0], MirrorState::Mirroring)], ErrorCode::CoordinatorNotAvailable),
        (vec![in_state(ORDERS[0], MirrorState::Mirroring), loading], ErrorCode::CoordinatorLoadInProgress),
    ];
    for (parts, expected) in answers {
        let mut host = host();
        let asked = ask(&mut host);
        host.reply(&asked, ReadMirrorStatesResponse { error: ErrorCode::None, parts });
        assert_eq!(paused(&mut host), [expected]);
        assert!(expected.is_retriable());
    }
    let mut host = host();
    let (conn, _) = ask(&mut host);
    host.input(Input::Closed { conn, why: CloseReason::Reset });
    assert_eq!(paused(&mut host), [ErrorCode::RequestTimedOut]);

    // The older way: it passes.
    let mut host = self::host();
    host.guards.set(mirror_guard::SilencePassesValidation, true);
    let (conn, _) = ask(&mut host);
    host.input(Input::Closed { conn, why: CloseReason::Reset });
    host.take("PauseMirrorTopicsRequest");
}

#[test]
fn a_coordinator_that_says_nothing_for_too_long_is_given_up() {
    let mut host = host();
    ask(&mut host);
    host.advance(4_000);
    assert!(host.sent.iter().all(|(_, m)| !matches!(m.body, Body::PauseMirrorTopicsResponse(_))));
    host.advance(1_500);
    assert_eq!(paused(&mut host), [ErrorCode::RequestTimedOut]);
}

#[test]
fn what_the_broker_cannot_judge_is_the_controller_s_to_judge() {
    let mut host = host();
    host.client(1, pause(&["ghost"]));
    let Body::PauseMirrorTopicsRequest(forwarded) = host.take("PauseMirrorTopicsRequest").1.body else { panic!() };
    assert_eq!(forwarded.topics, names(&["ghost"]));
}

fn stop(patterns: &[&str]) -> StopMirrorTopicsRequest {
    let (topics, patterns) = (names(&["orders"]), names(patterns));
    StopMirrorTopicsRequest { mirror: "m".into(), topics, patterns, state_offset: MetadataOffset(-1) }
}

/// Decision 1: from every state, so none is asked for; what this broker knows of the metadata judges nothing either.
#[test]
fn a_stop_asks_for_no_state() {
    let mut host = host();
    host.client(1, stop(&["ord.*"]));
    let forwarded = host.take("StopMirrorTopicsRequest");
    assert_eq!(forwarded.1.body, stop(&["ord.*"]).into());
    assert!(host.sent.iter().all(|(_, m)| !matches!(m.body, Body::ReadMirrorStatesRequest(_))));
}

#[test]
fn a_stop_by_pattern_needs_the_states_of_what_it_matches_in_the_older_way() {
    let mut host = host();
    host.guards.set(mirror_guard::OrderNeedsExactState, true);
    host.client(1, StopMirrorTopicsRequest { topics: vec![], ..stop(&["ord.*"]) });
    let asked = host.take("ReadMirrorStatesRequest");
    host.reply(&asked, ReadMirrorStatesResponse { error: ErrorCode::CoordinatorLoadInProgress, parts: vec![] });
    let Body::StopMirrorTopicsResponse(answer) = host.take("StopMirrorTopicsResponse").1.body else { panic!() };
    assert_eq!(answer.error, ErrorCode::CoordinatorLoadInProgress);
}

#[test]
fn a_recovery_is_the_leader_s_and_silence_is_told() {
    let mut host = host();
    let request = |parts: Vec<PartitionIx>| RecoverMirrorTopicsRequest {
        mirror: "m".into(),
        topics: names(&["orders", "ghost"]),
        parts,
        keep_source: false,
    };
    host.client(1, request(vec![]));
    let (conn, asked) = host.take("RecoverMirrorTopicsRequest");
    let Body::RecoverMirrorTopicsRequest(passed) = asked.body else { panic!() };
    assert_eq!((passed.topics, passed.parts), (names(&["orders"]), ORDERS.to_vec()));
    host.input(Input::Closed { conn, why: CloseReason::Reset });
    let Body::RecoverMirrorTopicsResponse(answer) = host.take("RecoverMirrorTopicsResponse").1.body else { panic!() };
    let RecoverMirrorTopicsResponse { error, topics } = *answer;
    assert_eq!(error, ErrorCode::None);
    let told: Vec<ErrorCode> = topics.iter().map(|t| t.error).collect();
    assert_eq!(told, [ErrorCode::RequestTimedOut, ErrorCode::UnknownTopicOrPartition]);

    // Asked by a broker that believes that we lead: we say that we do not.
    host.client(2, request(vec![ORDERS[0]]));
    let Body::RecoverMirrorTopicsResponse(answer) = host.take("RecoverMirrorTopicsResponse").1.body else { panic!() };
    assert_eq!(answer.topics[0].error, ErrorCode::NotLeaderOrFollower);
}

#[test]
fn a_look_up_leaves_out_what_this_broker_does_not_coordinate() {
    let mut host = host();
    let look_up = DescribeClusterMirrorsRequest {
        cluster: Some("".into()), // the mirror of this test names no source
        lookups: vec![(TopicId(7), vec![0, 1])],
        ..DescribeClusterMirrorsRequest::default()
    };
    host.client(1, look_up);
    let Body::DescribeClusterMirrorsResponse(answer) = host.take("DescribeClusterMirrorsResponse").1.body else {
        panic!()
    };
    assert!(answer.positions.is_empty(), "silence is 'unavailable', never 'none' (decision 34)");
    assert_eq!(answer.mirrors.len(), 1);
}

/// PART-02. Whether a topic may grow is the controller's to say; what a client asks is passed on as a client's.
#[test]
fn part_02_a_client_does_not_speak_for_a_mirror() {
    let mut host = host();
    let request = |for_mirror| CreatePartitionsRequest { topics: vec![("orders".into(), 9)], for_mirror };
    host.client(1, request(true));
    let asked = host.take("CreatePartitionsRequest");
    let Body::CreatePartitionsRequest(passed) = &asked.1.body else { panic!() };
    assert_eq!(**passed, request(false));
}
