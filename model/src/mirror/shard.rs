//! One partition of `__mirror_state` in memory: states of mirrored partitions, changed by replay only (spec 7.5).
//!
//! What a write has to pass, in order: the leader epoch of its writer (a deposed mirror leader is told so), the state epoch
//! that it builds on (whoever wrote meanwhile wins), the table of transitions (decision 10: refused with an error, not
//! swallowed).

use crate::coordinator::engine::Machine;
use crate::guards::{mirror as guard, prototype as quirk, Guards};
use crate::ids::LeaderEpoch;
use crate::metadata::chunks::ChunkMap;
use crate::mirror::records::{MirrorRecord, StateKey};
use crate::states::{LastPosition, MirrorState, Session, StateRecord};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::StateWrite;

/// The states, by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct States {
    table: ChunkMap<StateKey, StateRecord>,
}

/// The table, as committed or as latest.
pub type Table = ChunkMap<StateKey, StateRecord>;

impl Machine for States {
    type Record = MirrorRecord;
    type Stable = Table;

    fn replay(&mut self, offset: i64, record: &MirrorRecord) {
        Self::replay_stable(&mut self.table, offset, record);
    }
    fn stable(&self) -> &Table {
        &self.table
    }
    fn replay_stable(table: &mut Table, _offset: i64, record: &MirrorRecord) {
        apply(table, record);
    }
    fn restore(&mut self, stable: &Table) {
        self.table = stable.clone();
    }
}

/// Applies one record.
pub fn apply(table: &mut Table, record: &MirrorRecord) {
    match record {
        MirrorRecord::State(key, Some(record)) => {
            let position = table.get(key).filter(|r| r.is_of(record.session)).and_then(|r| r.position);
            table.insert(key.clone(), StateRecord { position, ..record.clone() });
        }
        MirrorRecord::Position(key, position, session) => {
            let before = table.get(key).filter(|r| r.is_of(*session)).cloned();
            if before.is_some() || position.is_some() {
                let before = before.unwrap_or_default();
                let session = session.or(before.session);
                table.insert(key.clone(), StateRecord { position: *position, session, ..before });
            }
        }
        MirrorRecord::State(key, None) => {
            table.remove(key);
        }
    }
}

/// What a write comes to: the records, and the state epoch after them.
pub type Planned = (Vec<MirrorRecord>, i32);

/// Plans a write over the latest states, of this incarnation of the mirror. `attempts_max` bounds the count of retries.
///
/// # Errors
/// FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH, or INVALID_CLUSTER_MIRROR_STATES for a transition that spec 2.2 does not have.
pub fn plan_write(
    table: &Table,
    key: &StateKey,
    write: &StateWrite,
    session: Option<Session>,
    attempts_max: i16,
    guards: &mut Guards,
) -> Result<Planned, ErrorCode> {
    let blank = StateRecord::default();
    let now = table.get(key).unwrap_or(&blank);
    let now = if guards.admits(guard::StatesOfThisIncarnation, now.is_of(session)) { now } else { &blank };
    let checked = !guards.quirk(quirk::StatesAreNotChecked);
    if checked && !guards.admits(guard::StateLeaderEpochFenced, write.leader_epoch >= now.leader_epoch) {
        return Err(ErrorCode::FencedLeaderEpoch);
    }
    let builds_on = write.state_epoch < 0 || write.state_epoch == now.state_epoch;
    if checked && !guards.admits(guard::StateEpochFenced, builds_on) {
        return Err(ErrorCode::FencedStateEpoch);
    }
    let mut records = Vec::with_capacity(2);
    let mut epoch = now.state_epoch;
    if write.state != MirrorState::Unknown {
        let legal = write.state.can_follow(now.state);
        if !legal && guards.quirk(quirk::IllegalTransitionPasses) {
            return Ok((records, now.state_epoch));
        }
        if checked && !guards.admits(guard::StateTransitionLegal, legal) {
            return Err(ErrorCode::InvalidClusterMirrorStates);
        }
        epoch += 1;
        let next = StateRecord { state_epoch: epoch, session, ..next_record(now, write, attempts_max, guards) };
        records.push(MirrorRecord::State(key.clone(), Some(next)));
    }
    if let Some(position) = write.position {
        // A position alone raises no state epoch: a late one of a deposed leader has to be told from the first one otherwise.
        let first = position == LastPosition::CLEAR || now.position.is_none_or(|noted| noted == position);
        let once = first || !checked || guards.quirk(quirk::StopRecomputesPosition);
        if !guards.admits(guard::PositionNotedOnce, once) {
            return Err(ErrorCode::FencedStateEpoch);
        }
        let position = Some(position).filter(|p| *p != LastPosition::CLEAR);
        if position != now.position {
            records.push(MirrorRecord::Position(key.clone(), position, session));
        }
    }
    Ok((records, epoch))
}

fn next_record(now: &StateRecord, write: &StateWrite, attempts_max: i16, guards: &mut Guards) -> StateRecord {
    let given = i16::try_from(write.attempt).ok().filter(|attempt| *attempt >= 0);
    let failed = write.state == MirrorState::Failed;
    let attempt = match write.state {
        MirrorState::Failed if write.for_good => -1,
        // What failed for good stays so until an operator recovers it (D-36).
        MirrorState::Failed if now.state == MirrorState::Failed && now.attempt < 0 => {
            if guards.quirk(quirk::ForGoodIsRetried) {
                0
            } else {
                -1
            }
        }
        MirrorState::Failed => given.unwrap_or_else(|| now.attempt.max(0).saturating_add(1)).min(attempts_max),
        MirrorState::Paused | MirrorState::Stopped => 0,
        // It is known only later whether a retry helped: until then the count stays, so that waits grow.
        _ => given.unwrap_or(now.attempt.max(0)),
    };
    let previous = if failed && now.state != MirrorState::Failed { now.state } else { now.previous };
    StateRecord {
        state: write.state,
        leader_epoch: LeaderEpoch(write.leader_epoch.0.max(now.leader_epoch.0)),
        state_epoch: now.state_epoch,
        previous: if failed { previous } else { MirrorState::Unknown },
        attempt,
        message: write.message.clone().filter(|_| failed),
        position: None,
        session: None,
    }
}

/// Tombstones for every key that `is_orphan`: its mirror or its topic is no more, or the mirror is another one.
#[must_use]
pub fn plan_tombstones(table: &Table, mut is_orphan: impl FnMut(&StateKey, &StateRecord) -> bool) -> Vec<MirrorRecord> {
    let mut records = Vec::new();
    for (key, record) in table.iter().filter(|(key, record)| is_orphan(key, record)) {
        records.push(MirrorRecord::State(key.clone(), None));
        if record.position.is_some() {
            records.push(MirrorRecord::Position(key.clone(), None, None));
        }
    }
    records
}

#[cfg(test)]
#[path = "shard_tests.rs"]
mod tests;
