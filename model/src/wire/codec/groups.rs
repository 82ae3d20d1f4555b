//! Positions of groups without members: OffsetCommit (9), OffsetFetch (9).

use crate::wire::codec::coder::{Coder, Done, Wire, Wrong};
use crate::wire::codec::topics::By;
use crate::wire::messages::{OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse};
use crate::wire::size::GROUP_LEN;

/// The group in an answer that holds none: the asker knows. As long as sizes assume.
pub const UNSAID_GROUP: &str = "----------------";
const _: () = assert!(UNSAID_GROUP.len() == GROUP_LEN);

impl Wire for OffsetCommitRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.text("GroupId", &mut self.group)?;
        c.always_i32("GenerationIdOrMemberEpoch", -1)?;
        c.always_text("MemberId", Some(""))?;
        c.always_text("GroupInstanceId", None)?;
        c.topics(
            By::Name,
            &mut self.parts,
            |part| &mut part.0,
            |c, index, (_, offset, epoch)| {
                c.u32("PartitionIndex", index)?;
                c.i64("CommittedOffset", &mut offset.0)?;
                c.i32("CommittedLeaderEpoch", &mut epoch.0)?;
                c.always_text("CommittedMetadata", None)?;
                c.end()
            },
        )?;
        c.end()
    }
}

impl Wire for OffsetCommitResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.topics(
            By::Name,
            &mut self.parts,
            |part| &mut part.0,
            |c, index, (_, error)| {
                c.u32("PartitionIndex", index)?;
                c.code(error)?;
                c.end()
            },
        )?;
        c.end()
    }
}

/// The array of groups has one.
fn one_group(c: &mut Coder<'_>) -> Done {
    match c.length("Groups", Some(1))? {
        Some(1) => Ok(()),
        other => Err(c.wrong("Groups", Wrong::Value(other.map_or(-1, |len| len as i64)))),
    }
}

impl Wire for OffsetFetchRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        one_group(c)?;
        c.text("GroupId", &mut self.group)?;
        c.always_text("MemberId", None)?;
        c.always_i32("MemberEpoch", -1)?;
        c.topics(By::Name, &mut self.parts, |part| part, |c, index, _| c.u32("PartitionIndexes", index))?;
        c.end()?;
        c.always_bool("RequireStable", false)?;
        c.end()
    }
}

impl Wire for OffsetFetchResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        one_group(c)?;
        c.always_text("GroupId", Some(UNSAID_GROUP))?;
        c.topics(
            By::Name,
            &mut self.parts,
            |part| &mut part.0,
            |c, index, (_, offset, epoch)| {
                c.u32("PartitionIndex", index)?;
                c.i64("CommittedOffset", &mut offset.0)?;
                c.i32("CommittedLeaderEpoch", &mut epoch.0)?;
                c.always_text("Metadata", None)?;
                c.always_i16("ErrorCode", 0)?;
                c.end()
            },
        )?;
        c.code(&mut self.error)?;
        c.end()?;
        c.end()
    }
}
