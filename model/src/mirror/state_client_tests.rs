use super::*;
use crate::coordinator::routing::STATE_TOPIC;
use crate::ids::{LeaderEpoch, PartitionEpoch, TopicId, TopicIx};
use crate::metadata::records::{PartitionState, Record};
use crate::mirror::testing::{Rig, ME};
use crate::states::MirrorState;

const PEER: BrokerId = BrokerId(2);
const PEER_NODE: NodeId = NodeId(22);

/// `__mirror_state` has one partition, which another broker leads.
fn rig() -> (Rig, Coordinator, StateClient) {
    let mut rig = Rig::bare();
    let state = PartitionState {
        replicas: [PEER].into_iter().collect(),
        isr: [PEER].into_iter().collect(),
        elr: Default::default(),
        last_known_elr: Default::default(),
        leader: PEER,
        leader_epoch: LeaderEpoch(0),
        partition_epoch: PartitionEpoch(0),
        recovering: false,
    };
    let topic = TopicIx(5);
    let incarnation = Default::default();
    let epoch = crate::ids::BrokerEpoch(1);
    let mut delta = Default::default();
    for record in [
        Record::RegisterBroker { broker: PEER, node: PEER_NODE, incarnation, epoch },
        Record::Topic { topic, id: TopicId(1), name: STATE_TOPIC.into() },
        Record::Partition { partition: PartitionIx(50), topic, number: 0, state },
    ] {
        let end = rig.image.end().0;
        rig.image.apply(end, &record, &mut delta);
    }
    (rig, Coordinator::new(1, Nanos::ZERO, 20), StateClient::new(ME, Nanos::from_secs(5)))
}
fn key(number: u32) -> StateKey {
    StateKey { mirror: "m".into(), topic: TopicId(7), number }
}
fn write(number: u32) -> StateWrite {
    StateWrite { partition: PartitionIx(60 + number), state: MirrorState::Mirroring, ..StateWrite::default() }
}
/// Files a read of partition 60 and writes of 60 and 61; the connection stands; gives its id.
fn asked(rig: &mut Rig, own: &mut Coordinator, client: &mut StateClient) -> ConnId {
    rig.with(|_, task, cx, now| {
        client.read(PartitionIx(60), &key(0), own, task.image, cx);
        client.write(now, key(0), write(0), own, task.image, cx);
        client.write(now, key(1), write(1), own, task.image, cx);
        client.go_on(now, cx);
    });
    let (conn, to) = *rig.connects.last().expect("a connection");
    assert_eq!(to, PEER_NODE);
    client.arrived(conn, PeerTask::Opened);
    rig.with(|_, _, cx, now| client.go_on(now, cx));
    conn
}
fn reply(rig: &mut Rig, client: &mut StateClient, body: impl Into<Body>) -> Body {
    let (conn, message) = rig.sent.pop().expect("a request");
    client.arrived(conn, PeerTask::Answer(Message { correlation: message.correlation, body: body.into() }));
    rig.with(|_, _, cx, now| client.go_on(now, cx));
    message.body
}

#[test]
fn reads_and_writes_go_to_the_coordinator_one_request_at_a_time() {
    let (mut rig, mut own, mut client) = rig();
    let _ = asked(&mut rig, &mut own, &mut client);
    assert_eq!(rig.sent.len(), 1, "what is of another kind waits");
    let record = StateRecord { state: MirrorState::Paused, ..StateRecord::default() };
    let parts = vec![(PartitionIx(60), ErrorCode::None, record.clone())];
    let question = reply(&mut rig, &mut client, ReadMirrorStatesResponse { error: ErrorCode::None, parts });
    assert!(matches!(question, Body::ReadMirrorStatesRequest(r) if r.parts == [PartitionIx(60)]));
    assert_eq!(client.take_answers(&mut own), [StateAnswer::Read(PartitionIx(60), Ok(record))]);
    let parts = vec![(PartitionIx(60), ErrorCode::None, 4), (PartitionIx(61), ErrorCode::FencedStateEpoch, -1)];
    let order = reply(&mut rig, &mut client, WriteMirrorStatesResponse { error: ErrorCode::None, parts });
    assert!(matches!(order, Body::WriteMirrorStatesRequest(r) if r.parts == [write(0), write(1)]));
    let told =
        [StateAnswer::Written(write(0), Ok(4)), StateAnswer::Written(write(1), Err(ErrorCode::FencedStateEpoch))];
    assert_eq!(client.take_answers(&mut own), told);
}

/// Decision 32, K21: an answer that leaves an entry out, or has none, has not answered it.
#[test]
fn silence_is_no_success() {
    let (mut rig, mut own, mut client) = rig();
    let _ = asked(&mut rig, &mut own, &mut client);
    reply(&mut rig, &mut client, ReadMirrorStatesResponse { error: ErrorCode::NotCoordinator, parts: Vec::new() });
    assert_eq!(client.take_answers(&mut own), [StateAnswer::Read(PartitionIx(60), Err(ErrorCode::NotCoordinator))]);
    let parts = vec![(PartitionIx(61), ErrorCode::None, 1)];
    reply(&mut rig, &mut client, WriteMirrorStatesResponse { error: ErrorCode::None, parts });
    let told = client.take_answers(&mut own);
    assert_eq!(told[0], StateAnswer::Written(write(0), Err(ErrorCode::UnknownServerError)));
    assert_eq!(told[1], StateAnswer::Written(write(1), Ok(1)));
}

#[test]
fn a_lost_connection_and_a_late_answer_are_told_to_everybody_who_waits() {
    let (mut rig, mut own, mut client) = rig();
    let conn = asked(&mut rig, &mut own, &mut client);
    client.arrived(conn, PeerTask::Closed);
    let errors = |answers: Vec<StateAnswer>| -> Vec<ErrorCode> {
        let error = |a| match a {
            StateAnswer::Read(_, Err(e)) | StateAnswer::Written(_, Err(e)) => e,
            other => panic!("{other:?}"),
        };
        answers.into_iter().map(error).collect()
    };
    // The request under way may have been carried out; what waited behind it was not.
    let (unknown, refused) = (ErrorCode::RequestTimedOut, ErrorCode::CoordinatorNotAvailable);
    assert_eq!(errors(client.take_answers(&mut own)), [unknown, refused, refused]);
    let _ = asked(&mut rig, &mut own, &mut client);
    rig.now.mono = rig.now.mono + Nanos::from_secs(5);
    rig.with(|_, _, cx, now| client.go_on(now, cx));
    assert_eq!(errors(client.take_answers(&mut own)), [unknown, refused, refused]);
}

#[test]
fn without_a_state_topic_there_is_no_coordinator() {
    let mut rig = Rig::bare();
    let (own, mut client) = (Coordinator::new(1, Nanos::ZERO, 20), StateClient::new(ME, Nanos::from_secs(5)));
    rig.with(|_, task, cx, _| client.read(PartitionIx(60), &key(0), &own, task.image, cx));
    let mut own = own;
    let error = ErrorCode::CoordinatorNotAvailable;
    assert_eq!(client.take_answers(&mut own), [StateAnswer::Read(PartitionIx(60), Err(error))]);
}
