use super::*;
use crate::ids::{Offset, PartitionIx, TopicId};

fn key() -> StateKey {
    StateKey { mirror: "m".into(), topic: TopicId(9), number: 0 }
}
fn write(state: MirrorState, leader_epoch: i32, state_epoch: i32) -> StateWrite {
    StateWrite {
        partition: PartitionIx(0),
        state,
        leader_epoch: LeaderEpoch(leader_epoch),
        state_epoch,
        position: None,
        message: None,
        attempt: -1,
        for_good: false,
    }
}
fn commit(table: &mut Table, write: &StateWrite) -> Result<i32, ErrorCode> {
    let (records, epoch) = plan_write(table, &key(), write, 20, &mut Guards::default())?;
    records.iter().for_each(|record| apply(table, record));
    Ok(epoch)
}

#[test]
fn writes_are_fenced_by_leader_epoch_then_state_epoch_then_transition() {
    let mut table = Table::default();
    assert_eq!(commit(&mut table, &write(MirrorState::LogAlignment, 5, 0)), Ok(1));
    assert_eq!(commit(&mut table, &write(MirrorState::Paused, 4, 0)), Err(ErrorCode::FencedLeaderEpoch));
    assert_eq!(commit(&mut table, &write(MirrorState::Paused, 5, 0)), Err(ErrorCode::FencedStateEpoch));
    assert_eq!(commit(&mut table, &write(MirrorState::Paused, 5, 1)), Err(ErrorCode::InvalidClusterMirrorStates));
    assert_eq!(commit(&mut table, &write(MirrorState::Mirroring, 5, 1)), Ok(2));
    assert_eq!(commit(&mut table, &write(MirrorState::Mirroring, 6, -1)), Ok(3));
}

#[test]
fn failures_count_keep_what_was_before_and_end_with_a_clean_state() {
    let mut table = Table::default();
    let failed = |message: &str| StateWrite { message: Some(message.into()), ..write(MirrorState::Failed, 1, -1) };
    assert!(commit(&mut table, &write(MirrorState::LogAlignment, 1, -1)).is_ok());
    assert!(commit(&mut table, &write(MirrorState::Mirroring, 1, -1)).is_ok());
    for attempt in 1..=3 {
        assert!(commit(&mut table, &failed("x")).is_ok());
        let now = table.get(&key()).expect("written");
        assert_eq!((now.attempt, now.previous), (attempt, MirrorState::Mirroring));
    }
    // Back at work, but not proven: the next failure waits longer.
    assert!(commit(&mut table, &write(MirrorState::Mirroring, 1, -1)).is_ok());
    assert!(commit(&mut table, &failed("y")).is_ok());
    assert_eq!(table.get(&key()).map(|r| r.attempt), Some(4));
    // For good stays for good until somebody says otherwise (D-36).
    assert!(commit(&mut table, &StateWrite { for_good: true, ..failed("z") }).is_ok());
    assert!(commit(&mut table, &failed("again")).is_ok());
    assert_eq!(table.get(&key()).map(|r| r.attempt), Some(-1));
    assert!(commit(&mut table, &StateWrite { attempt: 0, ..write(MirrorState::Mirroring, 1, -1) }).is_ok());
    let now = table.get(&key()).expect("written");
    assert_eq!((now.attempt, now.previous, now.message.clone()), (0, MirrorState::Unknown, None));
}

#[test]
fn a_position_is_kept_over_states_and_cleared_on_demand() {
    let mut table = Table::default();
    let position = LastPosition { epoch: LeaderEpoch(3), offset: Offset(40) };
    let only = |position| StateWrite { position: Some(position), ..write(MirrorState::Unknown, 1, -1) };
    assert_eq!(commit(&mut table, &write(MirrorState::Stopping, 1, 0)), Ok(1));
    assert_eq!(commit(&mut table, &only(position)), Ok(1), "a position alone changes no state");
    assert_eq!(commit(&mut table, &write(MirrorState::Stopped, 1, 1)), Ok(2));
    assert_eq!(table.get(&key()).and_then(|r| r.position), Some(position));
    assert_eq!(commit(&mut table, &only(LastPosition::CLEAR)), Ok(2));
    assert_eq!(table.get(&key()).and_then(|r| r.position), None);
}

#[test]
fn cli_12_exactly_two_tombstones_the_state_first() {
    let mut table = Table::default();
    let position = Some(LastPosition { epoch: LeaderEpoch(3), offset: Offset(40) });
    assert!(commit(&mut table, &StateWrite { position, ..write(MirrorState::Stopping, 1, 0) }).is_ok());
    let records = plan_tombstones(&table, |key| &*key.mirror == "m");
    assert_eq!(records, [MirrorRecord::State(key(), None), MirrorRecord::Position(key(), None)]);
    records.iter().for_each(|record| apply(&mut table, record));
    assert_eq!(table.get(&key()), None);
}
