//! Who waits for an answer of the source, and for which one.

use crate::guards::Guards;
use crate::ids::{BrokerId, ConnId, LeaderEpoch, MirrorIx, Nanos, PartitionIx, TopicId, TopicIx};
use crate::metadata::records::Record;
use crate::mirror::source::SourceCluster;
use crate::mirror::testing::{Rig, SOURCE};
use crate::ports::{CloseReason, Input};
use crate::states::{DesiredState, MirrorState};
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{Body, Message, MetadataResponse, PartitionMetadata, TopicMetadata};
use std::sync::Arc;

/// A topic is started and the source is asked about it; another one is started before the answer comes. The answer says
/// nothing of the second: it has not failed, it was not asked for.
#[test]
fn a_topic_that_was_not_in_the_question_waits_for_the_next_answer() {
    let mut rig = Rig::new();
    rig.mirrored_topic(0, "first");
    let (conn, to) = rig.connects[0];
    assert_eq!(to, SOURCE);
    rig.opened(conn);
    rig.mirrored_topic(1, "second");
    assert_eq!(*rig.answer(&[(0, "first"), (1, "second")]), ["first".into()]);
    assert_eq!(rig.state(0), (MirrorState::Mirroring, 0));
    assert_eq!(rig.state(1), (MirrorState::LogAlignment, 0));
    assert_eq!(*rig.answer(&[(0, "first"), (1, "second")]), ["first".into(), "second".into()]);
    assert_eq!(rig.state(1), (MirrorState::Mirroring, 0));
}

#[test]
fn a_topic_that_was_in_the_question_and_not_in_the_answer_fails() {
    let mut rig = Rig::new();
    rig.mirrored_topic(0, "first");
    rig.opened(rig.connects[0].0);
    rig.answer(&[]);
    assert_eq!(rig.state(0), (MirrorState::Failed, 1));
}

/// A partition fails because the source has no leader for it. When it tries again, what is known of the source is old: it is
/// asked first, and only its answer decides. Else the retry fails of old news, and the next one is twice as far away.
#[test]
fn a_retry_asks_a_source_that_knew_no_leader() {
    let mut rig = Rig::new();
    rig.mirrored_topic(0, "first");
    rig.opened(rig.connects[0].0);
    rig.answer(&[]);
    rig.answer(&[]); // the failure asked at once
    for attempt in 1..=2 {
        assert_eq!(rig.state(0), (MirrorState::Failed, attempt));
        rig.pass(20);
        assert_eq!(rig.state(0), (MirrorState::Failed, attempt));
        if attempt == 1 {
            rig.answer(&[]);
            rig.answer(&[]);
        }
    }
    rig.answer(&[(0, "first")]);
    assert_eq!(rig.state(0), (MirrorState::Mirroring, 2));
}

/// META-12. Whether the source has the topic, look by look, five seconds apart: one look without it proves nothing, nor do two with
/// another between them; two in a row do. An answer to a question about all topics does not name those that are gone.
#[test]
fn meta_12_deletion_needs_two_looks_in_a_row() {
    let (id, name) = (TopicId(7), Arc::<str>::from("t"));
    let wanted = [(name.clone(), id)].into_iter().collect();
    let (mut source, mut guards) = (SourceCluster::default(), Guards::default());
    let part = PartitionMetadata {
        number: 0,
        partition: PartitionIx(0),
        leader: BrokerId(9),
        leader_epoch: LeaderEpoch(0),
        replicas: Default::default(),
        isr: Default::default(),
    };
    let there = TopicMetadata { error: ErrorCode::None, name: name.clone(), id, partitions: vec![part] };
    let gone = TopicMetadata { error: ErrorCode::UnknownTopicOrPartition, partitions: vec![], ..there.clone() };
    let (there, gone, unnamed) = (vec![there], vec![gone], vec![]);
    let looks = [&there, &gone, &there, &unnamed, &there, &there, &gone, &unnamed];
    for (at, topics) in looks.into_iter().enumerate() {
        let answer = MetadataResponse {
            cluster_id: "source".into(),
            brokers: vec![(BrokerId(9), SOURCE)],
            topics: topics.clone(),
        };
        source.on_metadata(&answer, &wanted, &mut guards);
        let deleted = source.take_deleted(Nanos::from_secs(5 * at as u64), Nanos::from_millis(2_500), &mut guards);
        assert_eq!(deleted, if at == 7 { vec![id] } else { vec![] }, "look {}", at + 1);
        assert_eq!(source.leader(id, 0).is_ok(), !topics.is_empty() && topics[0].error.is_none(), "look {}", at + 1);
    }
}

/// FOV-12. A partition waits for a source that is silent, and is stopped meanwhile. When the look at the source fails, that is
/// nothing to it any more.
#[test]
fn fov_12_a_stopped_partition_waits_for_no_source() {
    let mut rig = Rig::new();
    rig.mirrored_topic(0, "t");
    let (conn, _) = rig.connects[0];
    assert_eq!(rig.state(0), (MirrorState::LogAlignment, 0));
    let (topic, mirror, desired) = (TopicIx(0), Some(MirrorIx(0)), DesiredState::Stopped);
    rig.metadata(&[Record::MirrorTopicStateChange { topic, mirror, desired }]);
    assert_eq!(rig.state(0), (MirrorState::Stopped, 0));
    let lost = Input::Closed { conn, why: CloseReason::Refused };
    rig.with(|manager, _, cx, now| manager.on_input(now, lost, cx));
    assert_eq!(rig.state(0), (MirrorState::Stopped, 0));
}

/// PART-08. The source has more partitions than the topic here; the controller refuses the growth, or says nothing. Each look at the
/// source asks for it once, and nothing else does.
#[test]
fn part_08_growth_is_asked_for_once_in_a_look() {
    let mut rig = Rig::new();
    rig.mirrored_topic(0, "t");
    let (conn, _) = rig.connects[0];
    rig.opened(conn);
    for look in 1..=3 {
        let is_question = |(_, m): &(ConnId, Message)| matches!(m.body, Body::MetadataRequest(_));
        let at = rig.sent.iter().rposition(is_question).expect("a look");
        let (conn, question) = rig.sent.remove(at);
        let part = |number| PartitionMetadata {
            number,
            partition: PartitionIx(number),
            leader: BrokerId(9),
            leader_epoch: LeaderEpoch(0),
            replicas: Default::default(),
            isr: Default::default(),
        };
        let topic = TopicMetadata {
            error: ErrorCode::None,
            name: "t".into(),
            id: TopicId(0),
            partitions: vec![part(0), part(1)],
        };
        let answer =
            MetadataResponse { cluster_id: "source".into(), brokers: vec![(BrokerId(9), SOURCE)], topics: vec![topic] };
        rig.reply(conn, question.correlation, answer.into());
        let asked =
            |rig: &Rig| rig.trace.iter().filter(|t| matches!(t, Trace::MirrorGrew { partitions: 2, .. })).count();
        assert_eq!(asked(&rig), look);
        rig.with(|manager, _, cx, _| manager.want_refresh(MirrorIx(0), cx));
        rig.pass(1);
        assert_eq!(asked(&rig), look, "time alone asks for nothing");
    }
}
