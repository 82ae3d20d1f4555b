use super::*;
use crate::ids::{MirrorIx, Offset, PartitionIx, TopicId, TopicIx};

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
    let (records, epoch) = plan_write(table, &key(), write, None, 20, &mut Guards::default())?;
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
    // A deposed leader's, which comes late: the first one stands; said again it does no harm.
    let late = LastPosition { epoch: LeaderEpoch(3), offset: Offset(41) };
    assert_eq!(commit(&mut table, &only(late)), Err(ErrorCode::FencedStateEpoch));
    assert!(commit(&mut table, &only(position)).is_ok());
    assert_eq!(commit(&mut table, &only(LastPosition::CLEAR)), Ok(2));
    assert_eq!(table.get(&key()).and_then(|r| r.position), None);
}

#[test]
fn cli_12_exactly_two_tombstones_the_state_first() {
    let mut table = Table::default();
    let position = Some(LastPosition { epoch: LeaderEpoch(3), offset: Offset(40) });
    assert!(commit(&mut table, &StateWrite { position, ..write(MirrorState::Stopping, 1, 0) }).is_ok());
    let records = plan_tombstones(&table, |key, _| &*key.mirror == "m");
    assert_eq!(records, [MirrorRecord::State(key(), None), MirrorRecord::Position(key(), None, None)]);
    records.iter().for_each(|record| apply(&mut table, record));
    assert_eq!(table.get(&key()), None);
}

/// LEAD-24. Writes of an older leader are refused before anything else is looked at, and leave no record. A write that names no
/// epoch is older than any that was stored (the older coordinator lets it pass: K8; here a write names the epoch that was captured
/// when its transition began, decision 32).
#[test]
fn lead_24_state_writes_are_fenced_by_leader_epoch() {
    let mut table = Table::default();
    assert_eq!(commit(&mut table, &write(MirrorState::LogAlignment, 5, 0)), Ok(1));
    let before = table.clone();
    for (leader_epoch, state_epoch) in [(3, 1), (3, 7), (-1, 1)] {
        let refused = commit(&mut table, &write(MirrorState::Mirroring, leader_epoch, state_epoch));
        assert_eq!(refused, Err(ErrorCode::FencedLeaderEpoch), "{leader_epoch}");
    }
    assert_eq!(table, before);
    assert_eq!(commit(&mut table, &write(MirrorState::Mirroring, 5, 1)), Ok(2));
    assert_eq!(commit(&mut table, &write(MirrorState::Pausing, 6, 2)), Ok(3));
    let now = table.get(&key()).expect("written");
    assert_eq!((now.leader_epoch, now.state, now.state_epoch), (LeaderEpoch(6), MirrorState::Pausing, 3));
    assert_eq!(
        commit(&mut table, &write(MirrorState::Paused, 5, 3)),
        Err(ErrorCode::FencedLeaderEpoch),
        "6 is stored now"
    );
}

/// LEAD-24 in the older way (spec 2.4, July): a coordinator writes whatever it is sent, also of a leader that was deposed long ago:
/// the state is that one's, beside the epoch of the leader that it was taken from.
#[test]
fn lead_24_the_older_coordinator_takes_every_leader_epoch() {
    let mut guards = Guards::default();
    guards.set(quirk::StatesAreNotChecked, true);
    let mut table = Table::default();
    let told = [(MirrorState::LogAlignment, 5), (MirrorState::Mirroring, 3), (MirrorState::Paused, -1)];
    for (n, (state, leader_epoch)) in told.into_iter().enumerate() {
        let write = write(state, leader_epoch, 9);
        let (records, epoch) = plan_write(&table, &key(), &write, None, 20, &mut guards).expect("whatever it is");
        records.iter().for_each(|record| apply(&mut table, record));
        let now = table.get(&key()).expect("written");
        assert_eq!((now.state, now.leader_epoch, epoch), (state, LeaderEpoch(5), n as i32 + 1));
    }
}

/// LEAD-25. A write builds on the state epoch that its writer knows, or on any (-1); of two that build on the same one wins.
#[test]
fn lead_25_state_writes_are_fenced_by_state_epoch() {
    let mut table = Table::default();
    assert_eq!(commit(&mut table, &write(MirrorState::LogAlignment, 1, 0)), Ok(1));
    assert_eq!(commit(&mut table, &write(MirrorState::Mirroring, 1, 1)), Ok(2));
    for epoch in 2..5 {
        assert_eq!(commit(&mut table, &write(MirrorState::Mirroring, 1, epoch)), Ok(epoch + 1));
    }
    let before = table.clone();
    assert_eq!(commit(&mut table, &write(MirrorState::Pausing, 1, 3)), Err(ErrorCode::FencedStateEpoch));
    assert_eq!(table, before);
    // Two brokers both expect 5.
    assert_eq!(commit(&mut table, &write(MirrorState::Pausing, 1, 5)), Ok(6));
    assert_eq!(commit(&mut table, &write(MirrorState::Stopping, 1, 5)), Err(ErrorCode::FencedStateEpoch));
    assert_eq!(table.get(&key()).map(|r| r.state), Some(MirrorState::Pausing));
    for epoch in 6..10 {
        assert_eq!(commit(&mut table, &write(MirrorState::Pausing, 1, epoch)), Ok(epoch + 1));
    }
    assert_eq!(commit(&mut table, &write(MirrorState::Paused, 1, -1)), Ok(11));
}

/// LEAD-27. Random writes and tombstones, as bytes; the log is cut behind any record and read again: each key is as a plain map of
/// the same records has it, and what a tombstone took away is absent.
#[test]
fn lead_27_replay_gives_everything_back() {
    let keys: Vec<StateKey> = (0..4).map(|number| StateKey { number, ..key() }).collect();
    for seed in 0..60_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut draw = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let (mut table, mut log, mut model) = (Table::default(), Vec::new(), vec![Default::default()]);
        for _ in 0..160 {
            let at = &keys[draw(4) as usize];
            let records = if draw(12) == 0 {
                plan_tombstones(&table, |key, _| key == at)
            } else {
                let for_good = draw(5) == 0;
                let position = match draw(4) {
                    0 => Some(LastPosition { epoch: LeaderEpoch(draw(9) as i32), offset: Offset(draw(99) as i64) }),
                    1 => Some(LastPosition::CLEAR),
                    _ => None,
                };
                let to = MirrorState::ALL[draw(MirrorState::ALL.len() as u64) as usize];
                let message = (draw(2) == 0).then(|| "why".into());
                let write = StateWrite { position, message, for_good, ..write(to, draw(9) as i32, -1) };
                plan_write(&table, at, &write, None, 20, &mut Guards::default())
                    .map(|(records, _)| records)
                    .unwrap_or_default()
            };
            for record in records {
                apply(&mut table, &record);
                log.push(record.encode());
                let mut next: std::collections::BTreeMap<StateKey, StateRecord> =
                    model.last().cloned().unwrap_or_default();
                match record {
                    MirrorRecord::State(key, None) => drop(next.remove(&key)),
                    MirrorRecord::State(key, Some(record)) => {
                        let position = next.get(&key).and_then(|before| before.position);
                        next.insert(key, StateRecord { position, ..record });
                    }
                    MirrorRecord::Position(key, position, _) if position.is_some() || next.contains_key(&key) => {
                        next.entry(key).or_default().position = position;
                    }
                    MirrorRecord::Position(..) => {}
                }
                model.push(next);
            }
        }
        assert!(log.len() > 20, "seed {seed}: {} records", log.len());
        for cut in 0..=log.len() {
            let mut read = Table::default();
            for (key, value) in &log[..cut] {
                apply(&mut read, &MirrorRecord::decode(key, value.as_deref()).expect("its own bytes"));
            }
            for key in &keys {
                assert_eq!(read.get(key), model[cut].get(key), "seed {seed}, {cut} records, {key:?}");
            }
        }
    }
}

/// C-9: a mirror is created again under its name before what the first one left is gone.
#[test]
fn states_of_another_incarnation_are_nobodys() {
    let of = |mirror, topic| Some(Session::of(MirrorIx(mirror), TopicIx(topic)));
    let (first, second) = (of(0, 6), of(1, 6));
    assert!(of(0, 6) != of(0, 7) && of(0, 7) != of(1, 6), "nor is that of a former topic of the id");
    let position = LastPosition { epoch: LeaderEpoch(3), offset: Offset(119) };
    let mut table = Table::default();
    let stopped = StateRecord { state: MirrorState::Stopped, state_epoch: 4, session: first, ..StateRecord::default() };
    apply(&mut table, &MirrorRecord::State(key(), Some(stopped)));
    apply(&mut table, &MirrorRecord::Position(key(), Some(position), first));
    assert_eq!(table.get(&key()).and_then(|r| r.position), Some(position));
    let write = write(MirrorState::LogAlignment, 5, 0);
    let plan =
        |guards: &mut Guards, session| plan_write(&table, &key(), &write, session, 20, guards).map(|planned| planned.1);
    assert_eq!(plan(&mut Guards::default(), second), Ok(1));
    assert_eq!(plan(&mut Guards::default(), first), Err(ErrorCode::FencedStateEpoch));
    let (records, _) = plan_write(&table, &key(), &write, second, 20, &mut Guards::default()).unwrap();
    records.iter().for_each(|record| apply(&mut table, record));
    let now = table.get(&key()).cloned().unwrap();
    assert_eq!((now.state, now.state_epoch, now.position, now.session), (MirrorState::LogAlignment, 1, None, second));
    // What says nothing of itself is of whichever there is.
    assert!(StateRecord::default().is_of(second) && now.is_of(None) && !now.is_of(first));
}
