//! What brokers ask of each other about mirrored partitions (spec 8.9 to 8.11, 8.13): APIs 100, 101, 105 and 106, version 0.
//! Fields are those of the later schemas.

use crate::ids::{LeaderEpoch, Offset};
use crate::states::{LastPosition, MirrorState, StateRecord};
use crate::wire::codec::coder::{Coder, Done, Wire, Wrong};
use crate::wire::codec::mirror_orders::bare_verdict;
use crate::wire::codec::tags::{self, Tag};
use crate::wire::codec::topics::By;
use crate::wire::messages::{
    BumpLeaderEpochsRequest, BumpLeaderEpochsResponse, ReadMirrorOffsetsRequest, ReadMirrorOffsetsResponse,
    ReadMirrorStatesRequest, ReadMirrorStatesResponse, StateWrite, WriteMirrorStatesRequest, WriteMirrorStatesResponse,
};

/// A state by its code.
pub(super) fn state(c: &mut Coder<'_>, field: &'static str, state: &mut MirrorState) -> Done {
    let mut code = state.code();
    c.i8(field, &mut code)?;
    *state = MirrorState::from_code(code).ok_or_else(|| c.wrong(field, Wrong::Value(code.into())))?;
    Ok(())
}

/// `LastMirrorEpoch` and `LastMirrorOffset`. An offset of −1 says that there is none; the end of a log is never below 0, while
/// the epoch of an empty log is −1.
pub(super) fn position(c: &mut Coder<'_>, position: &mut Option<LastPosition>) -> Done {
    let mut known = position.unwrap_or(LastPosition { epoch: LeaderEpoch::NONE, offset: Offset::UNKNOWN });
    c.i32("LastMirrorEpoch", &mut known.epoch.0)?;
    c.i64("LastMirrorOffset", &mut known.offset.0)?;
    c.preset(position, Some(known).filter(|known| known.offset != Offset::UNKNOWN));
    Ok(())
}

impl Wire for ReadMirrorStatesRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.text("MirrorName", &mut self.mirror)?;
        c.topics(
            By::Name,
            &mut self.parts,
            |part| part,
            |c, index, _| {
                c.u32("PartitionIndex", index)?;
                c.end()
            },
        )?;
        c.end()
    }
}

impl Wire for ReadMirrorStatesResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        bare_verdict(c, &mut self.error)?;
        c.topics(
            By::Name,
            &mut self.parts,
            |part| &mut part.0,
            |c, index, (_, error, record)| {
                let StateRecord {
                    state: now,
                    leader_epoch,
                    state_epoch,
                    previous,
                    attempt,
                    message,
                    position: at,
                    session,
                } = record;
                c.u32("PartitionIndex", index)?;
                state(c, "State", now)?;
                c.i32("LeaderEpoch", &mut leader_epoch.0)?;
                c.i32("StateEpoch", state_epoch)?;
                position(c, at)?;
                c.code(error)?;
                c.nullable("ErrorMessage", message)?;
                c.i16("RetryAttempt", attempt)?;
                state(c, "PreviousState", previous)?;
                c.preset(session, None);
                let told = session.is_some();
                c.tags(&mut [Tag::new(tags::SESSION, told, &mut |c| {
                    c.u32("Session", &mut session.get_or_insert_default().0)
                })])
            },
        )?;
        c.end()
    }
}

impl Wire for WriteMirrorStatesRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.text("MirrorName", &mut self.mirror)?;
        c.topics(
            By::Name,
            &mut self.parts,
            |part| &mut part.partition,
            |c, index, part: &mut StateWrite| {
                c.u32("PartitionIndex", index)?;
                state(c, "State", &mut part.state)?;
                c.i32("LeaderEpoch", &mut part.leader_epoch.0)?;
                c.i32("StateEpoch", &mut part.state_epoch)?;
                position(c, &mut part.position)?;
                c.nullable("ErrorMessage", &mut part.message)?;
                c.i32("RetryAttempt", &mut part.attempt)?;
                c.bool("NonRetryable", &mut part.for_good)?;
                let clears = part.position == Some(LastPosition::CLEAR);
                c.tags(&mut [Tag::new(tags::CLEARS, clears, &mut |c| {
                    part.position = Some(LastPosition::CLEAR);
                    c.always_bool("Clears", true)
                })])
            },
        )?;
        c.end()
    }
}

impl Wire for WriteMirrorStatesResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        bare_verdict(c, &mut self.error)?;
        c.topics(
            By::Name,
            &mut self.parts,
            |part| &mut part.0,
            |c, index, (_, error, state_epoch)| {
                c.u32("PartitionIndex", index)?;
                c.code(error)?;
                c.always_text("ErrorMessage", None)?;
                c.i32("StateEpoch", state_epoch)?;
                c.end()
            },
        )?;
        c.end()
    }
}

impl Wire for ReadMirrorOffsetsRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.text("MirrorName", &mut self.mirror)?;
        c.topics(
            By::Name,
            &mut self.parts,
            |part| part,
            |c, index, _| {
                c.u32("PartitionIndex", index)?;
                c.end()
            },
        )?;
        c.end()
    }
}

impl Wire for ReadMirrorOffsetsResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        bare_verdict(c, &mut self.error)?;
        c.topics(
            By::Name,
            &mut self.parts,
            |part| &mut part.0,
            |c, index, (_, source, destination, error)| {
                c.u32("PartitionIndex", index)?;
                c.i64("SourceOffset", &mut source.0)?;
                c.i64("DestinationOffset", &mut destination.0)?;
                c.code(error)?;
                c.end()
            },
        )?;
        c.end()
    }
}

impl Wire for BumpLeaderEpochsRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.topics(
            By::Name,
            &mut self.parts,
            |part| &mut part.0,
            |c, index, (_, minimum)| {
                c.u32("PartitionIndex", index)?;
                c.i32("MinLeaderEpoch", &mut minimum.0)?;
                c.end()
            },
        )?;
        c.end()
    }
}

impl Wire for BumpLeaderEpochsResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        bare_verdict(c, &mut self.error)?;
        c.topics(
            By::Name,
            &mut self.parts,
            |part| &mut part.0,
            |c, index, (_, error)| {
                c.u32("PartitionIndex", index)?;
                c.code(error)?;
                c.always_text("ErrorMessage", None)?;
                c.end()
            },
        )?;
        c.end()
    }
}
