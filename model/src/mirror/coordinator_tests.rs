use super::*;
use crate::ids::{BrokerId, PartitionEpoch, TopicId};
use crate::metadata::image::STATE_TOPIC;
use crate::metadata::records::{PartitionState, Record};
use crate::mirror::testing::{Rig, ME};
use crate::record::BatchView;
use crate::states::MirrorState;
use crate::wire::messages::ConfigResource;

const STATES: PartitionIx = PartitionIx(50);
const OTHER: BrokerId = BrokerId(2);

/// `__mirror_state` of one partition, led here, with these in-sync replicas; topic `t` with id 7 and two partitions.
fn rig(isr: &[BrokerId]) -> (Rig, Coordinator) {
    let mut rig = Rig::bare();
    let state = |isr: &[BrokerId]| PartitionState {
        replicas: isr.iter().copied().collect(),
        isr: isr.iter().copied().collect(),
        elr: Default::default(),
        last_known_elr: Default::default(),
        leader: ME,
        leader_epoch: LeaderEpoch(3),
        partition_epoch: PartitionEpoch(0),
        recovering: false,
    };
    let partition = |ix, topic, number, isr| Record::Partition { partition: ix, topic, number, state: state(isr) };
    let (states, topic) = (TopicIx(5), TopicIx(6));
    rig.metadata(&[
        Record::Topic { topic: states, id: TopicId(1), name: STATE_TOPIC.into() },
        partition(STATES, states, 0, isr),
        Record::Topic { topic, id: TopicId(7), name: "t".into() },
        partition(PartitionIx(60), topic, 0, &[ME]),
        partition(PartitionIx(61), topic, 1, &[ME]),
    ]);
    (rig, Coordinator::new(1, Nanos::from_millis(10), 20))
}

fn key(number: u32) -> StateKey {
    StateKey { mirror: "m".into(), topic: TopicId(7), number }
}
fn write(number: u32, state: MirrorState, state_epoch: i32) -> StateWrite {
    StateWrite {
        partition: PartitionIx(60 + number),
        state,
        leader_epoch: LeaderEpoch(4),
        state_epoch,
        attempt: -1,
        ..StateWrite::default()
    }
}

/// Comes to lead the state topic as the replicas do, and reads its log.
fn take_office(rig: &mut Rig, coordinator: &mut Coordinator) {
    rig.with(|_, task, cx, now| {
        assert!(coordinator.look_at(STATES, task.replicas, cx.guards));
        coordinator.load(STATES, now, task.image, task.replicas, cx);
    });
}

/// Files a write of this broker and lets the linger pass.
fn file(rig: &mut Rig, coordinator: &mut Coordinator, number: u32, write: StateWrite) -> Vec<Written> {
    rig.with(|_, task, _, now| coordinator.write(Asker::Own, key(number), write, task.image, now));
    rig.now.mono = rig.now.mono + Nanos::from_millis(10);
    rig.with(|_, task, cx, now| coordinator.append_due(now, task.image, task.replicas, cx));
    coordinator.take_written()
}

fn read(rig: &mut Rig, coordinator: &Coordinator, number: u32) -> Result<Option<MirrorState>, ErrorCode> {
    let mut found = Ok(None);
    rig.with(|_, task, _, _| found = coordinator.read(&key(number), task.image).map(|r| r.map(|r| r.state)));
    found
}

#[test]
fn a_write_waits_for_company_is_committed_and_survives_in_the_log() {
    let (mut rig, mut coordinator) = rig(&[ME]);
    assert_eq!(read(&mut rig, &coordinator, 0), Err(ErrorCode::NotCoordinator));
    take_office(&mut rig, &mut coordinator);
    assert_eq!(read(&mut rig, &coordinator, 0), Ok(None), "nothing was ever written: that is certain");

    let now = rig.now;
    rig.with(|_, task, cx, _| {
        coordinator.write(Asker::Own, key(0), write(0, MirrorState::LogAlignment, 0), task.image, now);
        coordinator.write(Asker::Own, key(1), write(1, MirrorState::LogAlignment, 0), task.image, now);
        coordinator.append_due(now, task.image, task.replicas, cx);
    });
    assert_eq!(coordinator.next_deadline(), Some(now.mono + Nanos::from_millis(10)));
    assert!(coordinator.take_written().is_empty(), "they wait for company");
    rig.now.mono = rig.now.mono + Nanos::from_millis(10);
    rig.with(|_, task, cx, now| coordinator.append_due(now, task.image, task.replicas, cx));
    let done: Vec<_> = coordinator.take_written().into_iter().map(|w| (w.write.partition.0, w.result)).collect();
    assert_eq!(done, [(60, Ok(1)), (61, Ok(1))]);
    let committed =
        rig.trace.iter().filter(|t| matches!(t, Trace::MirrorStateCommitted { state_epoch: 1, .. })).count();
    assert_eq!(committed, 2);

    // Another life, or another leader: the same log.
    let mut next = Coordinator::new(1, Nanos::from_millis(10), 20);
    take_office(&mut rig, &mut next);
    assert_eq!(read(&mut rig, &next, 1), Ok(Some(MirrorState::LogAlignment)));
    let done = file(&mut rig, &mut next, 1, write(1, MirrorState::Mirroring, 1));
    assert_eq!(done[0].result, Ok(2));
}

#[test]
fn refusals_say_why_and_change_nothing() {
    let (mut rig, mut coordinator) = rig(&[ME]);
    take_office(&mut rig, &mut coordinator);
    assert_eq!(file(&mut rig, &mut coordinator, 0, write(0, MirrorState::LogAlignment, 0))[0].result, Ok(1));
    for (refused, error) in [
        (
            StateWrite { leader_epoch: LeaderEpoch(3), ..write(0, MirrorState::Mirroring, 1) },
            ErrorCode::FencedLeaderEpoch,
        ),
        (write(0, MirrorState::Mirroring, 0), ErrorCode::FencedStateEpoch),
        (write(0, MirrorState::Paused, 1), ErrorCode::InvalidClusterMirrorStates),
    ] {
        assert_eq!(file(&mut rig, &mut coordinator, 0, refused)[0].result, Err(error));
    }
    assert_eq!(read(&mut rig, &coordinator, 0), Ok(Some(MirrorState::LogAlignment)));
}

#[test]
fn what_is_not_committed_is_not_told_and_does_not_outlive_the_leadership() {
    let (mut rig, mut coordinator) = rig(&[ME, OTHER]);
    take_office(&mut rig, &mut coordinator);
    assert!(file(&mut rig, &mut coordinator, 0, write(0, MirrorState::LogAlignment, 0)).is_empty());
    assert_eq!(read(&mut rig, &coordinator, 0), Ok(None), "the other replica does not have it");
    // The same broker comes to lead in another epoch: whoever waits hears so, and all begins with the log.
    let change = Record::PartitionChange {
        partition: STATES,
        leader: None,
        leader_epoch: Some(LeaderEpoch(4)),
        isr: None,
        elr: None,
        last_known_elr: None,
        recovering: None,
        replicas: None,
    };
    rig.metadata(&[change]);
    take_office(&mut rig, &mut coordinator);
    assert_eq!(coordinator.take_written()[0].result, Err(ErrorCode::NotCoordinator));
    assert_eq!(read(&mut rig, &coordinator, 0), Err(ErrorCode::CoordinatorLoadInProgress));
    let refused = file(&mut rig, &mut coordinator, 0, write(0, MirrorState::LogAlignment, 0));
    assert_eq!(refused[0].result, Err(ErrorCode::CoordinatorLoadInProgress));
}

#[test]
fn a_request_is_answered_once_with_every_entry() {
    let (mut rig, mut coordinator) = rig(&[ME]);
    take_office(&mut rig, &mut coordinator);
    let entries = vec![
        (Some(key(0)), write(0, MirrorState::LogAlignment, 0)),
        (None, StateWrite { partition: PartitionIx(999), ..write(0, MirrorState::LogAlignment, 0) }),
        (Some(key(1)), write(1, MirrorState::Paused, 0)),
    ];
    rig.with(|_, task, _, now| coordinator.request((ConnId(9), 4), entries, task.image, now));
    assert!(coordinator.take_answers().is_empty());
    rig.now.mono = rig.now.mono + Nanos::from_millis(10);
    rig.with(|_, task, cx, now| coordinator.append_due(now, task.image, task.replicas, cx));
    let answers = coordinator.take_answers();
    let [(conn, correlation, answer)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((*conn, *correlation), (ConnId(9), 4));
    let expected = [
        (PartitionIx(60), ErrorCode::None, 1),
        (PartitionIx(999), ErrorCode::UnknownTopicOrPartition, -1),
        (PartitionIx(61), ErrorCode::InvalidClusterMirrorStates, -1),
    ];
    assert_eq!(answer.parts, expected);
}

#[test]
fn states_die_with_their_mirror_or_topic() {
    // C24: the mutant leaves them for the next mirror of that name.
    for (die, left) in [(true, None), (false, Some(MirrorState::LogAlignment))] {
        let (mut rig, mut coordinator) = rig(&[ME]);
        rig.guards.set(guard::StatesDieWithTheirMirror, die);
        take_office(&mut rig, &mut coordinator);
        assert_eq!(file(&mut rig, &mut coordinator, 0, write(0, MirrorState::LogAlignment, 0))[0].result, Ok(1));
        rig.with(|_, task, cx, now| coordinator.sweep(task.image, now, task.replicas, cx));
        assert_eq!(read(&mut rig, &coordinator, 0), Ok(Some(MirrorState::LogAlignment)), "mirror and topic exist");
        rig.metadata(&[Record::RemoveTopic { topic: TopicIx(6) }]);
        rig.with(|_, task, cx, now| coordinator.sweep(task.image, now, task.replicas, cx));
        assert_eq!(read(&mut rig, &coordinator, 0), Ok(left));
    }
}

/// The topic is deleted, and copied again under its source's id.
fn created_again(rig: &mut Rig) {
    let (topic, leader) = (TopicIx(7), ME);
    let state = PartitionState {
        replicas: [ME].into_iter().collect(),
        isr: [ME].into_iter().collect(),
        elr: Default::default(),
        last_known_elr: Default::default(),
        leader,
        leader_epoch: LeaderEpoch(0),
        partition_epoch: PartitionEpoch(0),
        recovering: false,
    };
    rig.metadata(&[
        Record::RemoveTopic { topic: TopicIx(6) },
        Record::Topic { topic, id: TopicId(7), name: "t".into() },
        Record::Partition { partition: PartitionIx(62), topic, number: 0, state },
    ]);
}

#[test]
fn a_topic_that_is_created_again_begins_with_nothing() {
    // Whoever hears of both at once.
    let (mut rig, mut coordinator) = rig(&[ME]);
    take_office(&mut rig, &mut coordinator);
    assert_eq!(file(&mut rig, &mut coordinator, 0, write(0, MirrorState::LogAlignment, 0))[0].result, Ok(1));
    created_again(&mut rig);
    rig.with(|_, task, cx, now| coordinator.sweep(task.image, now, task.replicas, cx));
    assert_eq!(read(&mut rig, &coordinator, 0), Ok(None));
    let first = StateWrite { partition: PartitionIx(62), ..write(0, MirrorState::LogAlignment, 0) };
    assert_eq!(file(&mut rig, &mut coordinator, 0, first)[0].result, Ok(1));
}

#[test]
fn a_write_that_waits_while_its_topic_is_deleted_is_not_committed() {
    for (guarded, left) in [(true, None), (false, Some(MirrorState::LogAlignment))] {
        let (mut rig, mut coordinator) = rig(&[ME]);
        rig.guards.set(guard::DeadPartitionsGetNoStates, guarded);
        take_office(&mut rig, &mut coordinator);
        let late = write(0, MirrorState::LogAlignment, 0);
        rig.with(|_, task, _, now| coordinator.write(Asker::Own, key(0), late, task.image, now));
        created_again(&mut rig);
        rig.with(|_, task, cx, now| coordinator.sweep(task.image, now, task.replicas, cx));
        rig.now.mono = rig.now.mono + Nanos::from_millis(10);
        rig.with(|_, task, cx, now| coordinator.append_due(now, task.image, task.replicas, cx));
        let refused = coordinator.take_written()[0].result;
        assert_eq!(refused, if guarded { Err(ErrorCode::UnknownTopicOrPartition) } else { Ok(1) });
        assert_eq!(read(&mut rig, &coordinator, 0), Ok(left));
    }
}

/// BAD-20. A bit of the log turned, in a batch between others: the load is refused and the coordinator unavailable, whichever
/// bit it is. Neither what stands before nor what stands behind it is told, and nothing is taken for "never written".
#[test]
fn bad_20_a_corrupt_batch_in_the_middle_refuses_the_load() {
    let (mut rig, mut coordinator) = rig(&[ME]);
    take_office(&mut rig, &mut coordinator);
    for (number, state, epoch) in
        [(0, MirrorState::LogAlignment, 0), (1, MirrorState::LogAlignment, 0), (0, MirrorState::Mirroring, 1)]
    {
        assert!(file(&mut rig, &mut coordinator, number, write(number, state, epoch))[0].result.is_ok());
    }
    let log = rig.replicas.log(STATES).expect("its log");
    let (files, size): (Vec<_>, _) = (log.segments().map(|segment| segment.file).collect(), log.size_bytes());
    assert_eq!((files.len(), log.end().0), (1, 3));
    let clean = rig.disk.clone();
    for at in size / 3..size * 2 / 3 {
        rig.disk = clean.clone();
        rig.disk.rot(files[0], at);
        let mut next = Coordinator::new(1, Nanos::from_millis(10), 20);
        take_office(&mut rig, &mut next);
        for number in 0..2 {
            let told = read(&mut rig, &next, number);
            // The base offset and the leader epoch of a batch are not under its checksum.
            let unseen = told == Ok(Some([MirrorState::Mirroring, MirrorState::LogAlignment][number as usize]));
            assert!(unseen || told == Err(ErrorCode::CoordinatorNotAvailable), "byte {at}: {told:?}");
        }
    }
    // A record that is none of this topic's is as bad.
    rig.disk = clean;
    rig.produce(STATES.0, 1);
    let mut next = Coordinator::new(1, Nanos::from_millis(10), 20);
    take_office(&mut rig, &mut next);
    assert_eq!(read(&mut rig, &next, 0), Err(ErrorCode::CoordinatorNotAvailable));
}

/// CLI-12. The mirror is deleted: the log of the states ends with one batch of two tombstones, that of the state first, that of the
/// position second, and no key of the mirror is alive. (Which bytes they are: records_tests.rs.)
#[test]
fn cli_12_the_log_ends_with_one_batch_of_two_tombstones() {
    let (mut rig, mut coordinator) = rig(&[ME]);
    take_office(&mut rig, &mut coordinator);
    let position = Some(LastPosition { epoch: LeaderEpoch(3), offset: Offset(40) });
    let stopping = StateWrite { position, ..write(0, MirrorState::Stopping, 1) };
    for step in [write(0, MirrorState::LogAlignment, 0), stopping, write(0, MirrorState::Stopped, 2)] {
        assert!(file(&mut rig, &mut coordinator, 0, step)[0].result.is_ok());
    }
    let before = rig.replicas.log(STATES).expect("its log").end();
    let gone = |key: &str| Record::Config {
        resource: ConfigResource::ClusterMirror("m".into()),
        key: key.into(),
        value: None,
    };
    rig.metadata(&[gone("bootstrap.servers")]);
    rig.with(|_, task, cx, now| coordinator.sweep(task.image, now, task.replicas, cx));
    let log = rig.replicas.log(STATES).expect("its log");
    assert_eq!(log.end().0, before.0 + 2);
    let bytes = log.batch_at(&rig.disk, before).expect("a log that can be read").expect("a batch");
    let batch = BatchView::parse(&bytes).expect("a batch");
    assert_eq!((batch.base_offset(), batch.next_offset()), (before, log.end()));
    let records = batch.records().map(|record| {
        let record = record.expect("a record");
        (MirrorRecord::decode(record.key.expect("a key"), record.value).expect("of this topic"), record.value.is_none())
    });
    let expected = [MirrorRecord::State(key(0), None), MirrorRecord::Position(key(0), None, None)];
    assert_eq!(records.collect::<Vec<_>>(), expected.map(|record| (record, true)));
    assert_eq!(read(&mut rig, &coordinator, 0), Ok(None));
}
