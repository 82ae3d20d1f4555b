//! What stands in `__mirror_state`: key and value of one record, byte for byte (spec 7.3 with correction K6), and which
//! partition of the topic a mirrored partition belongs to (spec 7.2).
//!
//! Keys are of the older, non-flexible encoding: a type, the mirror's name, the topic's id, the partition's number. Values
//! begin with a version and are flexible.

use crate::coordinator::routing;
use crate::ids::{LeaderEpoch, Offset, TopicId};
use crate::record::varint;
use crate::states::{LastPosition, MirrorState, Session, StateRecord};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::sync::Arc;

/// Key type of states.
const STATE: i16 = 1;
/// Key type of last mirrored positions (provisional).
const POSITION: i16 = 2;
/// The only version of both values.
const VERSION: i16 = 0;

/// Names a mirrored partition: its mirror, its topic's id (the same in both clusters), its number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateKey {
    /// Mirror.
    pub mirror: Arc<str>,
    /// Topic.
    pub topic: TopicId,
    /// Number.
    pub number: u32,
}

/// One record; a tombstone has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MirrorRecord {
    /// The state; its position is not part of it.
    State(StateKey, Option<StateRecord>),
    /// The last mirrored position, and the incarnation of mirror and topic that it is of.
    Position(StateKey, Option<LastPosition>, Option<Session>),
}

/// Bytes that are no record of this topic, or of a version that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRecord(pub &'static str);

impl std::fmt::Display for BadRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "not a record of the mirror state topic: {}", self.0)
    }
}
impl std::error::Error for BadRecord {}

impl MirrorRecord {
    /// What it is about.
    #[must_use]
    pub fn key(&self) -> &StateKey {
        match self {
            Self::State(key, _) | Self::Position(key, ..) => key,
        }
    }

    /// Key and value as they stand in the log.
    #[must_use]
    pub fn encode(&self) -> (Bytes, Option<Bytes>) {
        match self {
            Self::State(key, record) => (encode_key(STATE, key), record.as_ref().map(encode_state)),
            Self::Position(key, position, session) => {
                (encode_key(POSITION, key), position.as_ref().map(|position| encode_position(position, *session)))
            }
        }
    }

    /// Reads a record.
    ///
    /// # Errors
    /// [`BadRecord`]
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Self, BadRecord> {
        let (kind, key) = decode_key(key)?;
        match kind {
            STATE => Ok(Self::State(key, value.map(decode_state).transpose()?)),
            POSITION => {
                let found = value.map(decode_position).transpose()?;
                Ok(Self::Position(key, found.map(|found| found.0), found.and_then(|found| found.1)))
            }
            _ => Err(BadRecord("key type")),
        }
    }
}

fn encode_key(kind: i16, key: &StateKey) -> Bytes {
    let mut out = BytesMut::with_capacity(2 + 2 + key.mirror.len() + 16 + 4);
    out.put_i16(kind);
    out.put_i16(key.mirror.len() as i16);
    out.put_slice(key.mirror.as_bytes());
    out.put_u128(key.topic.0);
    out.put_i32(key.number as i32);
    out.freeze()
}

fn decode_key(mut bytes: &[u8]) -> Result<(i16, StateKey), BadRecord> {
    let cut = |_| BadRecord("key is cut off");
    let kind = bytes.try_get_i16().map_err(cut)?;
    let len = usize::try_from(bytes.try_get_i16().map_err(cut)?).map_err(|_| BadRecord("name length"))?;
    if bytes.len() < len {
        return Err(BadRecord("key is cut off"));
    }
    let (name, mut rest) = bytes.split_at(len);
    let mirror = std::str::from_utf8(name).map_err(|_| BadRecord("name"))?.into();
    let topic = TopicId(rest.try_get_u128().map_err(cut)?);
    let number = u32::try_from(rest.try_get_i32().map_err(cut)?).map_err(|_| BadRecord("partition"))?;
    if !rest.is_empty() {
        return Err(BadRecord("bytes behind the key"));
    }
    Ok((kind, StateKey { mirror, topic, number }))
}

/// State, leader epoch, state epoch, error message, retry attempt, previous state (K6).
fn encode_state(record: &StateRecord) -> Bytes {
    let mut out = BytesMut::with_capacity(24);
    out.put_i16(VERSION);
    out.put_i8(record.state.code());
    out.put_i32(record.leader_epoch.0);
    out.put_i32(record.state_epoch);
    put_text(&mut out, record.message.as_deref());
    out.put_i16(record.attempt);
    out.put_i8(record.previous.code());
    put_session(&mut out, record.session);
    out.freeze()
}

fn decode_state(mut bytes: &[u8]) -> Result<StateRecord, BadRecord> {
    let cut = |_| BadRecord("state is cut off");
    if bytes.try_get_i16().map_err(cut)? != VERSION {
        return Err(BadRecord("version of a state"));
    }
    let state = MirrorState::from_code(bytes.try_get_i8().map_err(cut)?).ok_or(BadRecord("state"))?;
    let leader_epoch = LeaderEpoch(bytes.try_get_i32().map_err(cut)?);
    let state_epoch = bytes.try_get_i32().map_err(cut)?;
    let message = get_text(&mut bytes)?;
    let attempt = bytes.try_get_i16().map_err(cut)?;
    let previous = MirrorState::from_code(bytes.try_get_i8().map_err(cut)?).ok_or(BadRecord("previous state"))?;
    let session = get_session(bytes)?;
    Ok(StateRecord { state, leader_epoch, state_epoch, previous, attempt, message, position: None, session })
}

/// Tag of the incarnation of mirror and topic that a value is of: spec 7.3 has no such field, so who does not know it passes over it
/// (decision 18). A value without it is of whichever there is.
const SESSION: u32 = 0;

fn put_session(out: &mut BytesMut, session: Option<Session>) {
    varint::put_unsigned(out, u32::from(session.is_some()));
    if let Some(session) = session {
        varint::put_unsigned(out, SESSION);
        varint::put_unsigned(out, 4);
        out.put_u32(session.0);
    }
}

fn get_session(mut bytes: &[u8]) -> Result<Option<Session>, BadRecord> {
    // Values of before had nothing behind the last field but the count, and nobody looked at that.
    let Some(count) = varint::take_unsigned(&mut bytes) else { return Ok(None) };
    let mut session = None;
    for _ in 0..count {
        let cut = BadRecord("tagged fields are cut off");
        let (Some(tag), Some(len)) = (varint::take_unsigned(&mut bytes), varint::take_unsigned(&mut bytes)) else {
            return Err(cut);
        };
        let (mut field, rest) = bytes.split_at_checked(len as usize).ok_or(cut)?;
        bytes = rest;
        if tag == SESSION {
            session = Some(Session(field.try_get_u32().map_err(|_| BadRecord("incarnation"))?));
        }
    }
    Ok(session)
}

fn encode_position(position: &LastPosition, session: Option<Session>) -> Bytes {
    let mut out = BytesMut::with_capacity(15);
    out.put_i16(VERSION);
    out.put_i32(position.epoch.0);
    out.put_i64(position.offset.0);
    put_session(&mut out, session);
    out.freeze()
}

fn decode_position(mut bytes: &[u8]) -> Result<(LastPosition, Option<Session>), BadRecord> {
    let cut = |_| BadRecord("position is cut off");
    if bytes.try_get_i16().map_err(cut)? != VERSION {
        return Err(BadRecord("version of a position"));
    }
    let epoch = LeaderEpoch(bytes.try_get_i32().map_err(cut)?);
    let offset = Offset(bytes.try_get_i64().map_err(cut)?);
    Ok((LastPosition { epoch, offset }, get_session(bytes)?))
}

/// A nullable compact string.
fn put_text(out: &mut BytesMut, text: Option<&str>) {
    varint::put_unsigned(out, text.map_or(0, |text| text.len() as u32 + 1));
    out.put_slice(text.unwrap_or_default().as_bytes());
}

fn get_text(bytes: &mut &[u8]) -> Result<Option<Arc<str>>, BadRecord> {
    let len = varint::take_unsigned(bytes).ok_or(BadRecord("text length"))?;
    let Some(len) = len.checked_sub(1) else { return Ok(None) };
    if bytes.len() < len as usize {
        return Err(BadRecord("text is cut off"));
    }
    let (text, rest) = bytes.split_at(len as usize);
    *bytes = rest;
    Ok(Some(std::str::from_utf8(text).map_err(|_| BadRecord("text"))?.into()))
}

// ---------------------------------------------------------------------------------------------------------------- routing

/// The partition of `__mirror_state` that holds a mirrored partition's state, of `count`.
#[must_use]
pub fn state_partition(key: &StateKey, count: u32) -> u32 {
    let StateKey { mirror, topic, number } = key;
    routing::state_partition_of(&routing::PartitionKey { mirror, topic: *topic, number: *number }, count)
}

/// The partition of `__mirror_state` whose leader does what is done once per mirror.
#[must_use]
pub fn state_partition_of_mirror(mirror: &str, count: u32) -> u32 {
    routing::state_partition(mirror, count)
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
