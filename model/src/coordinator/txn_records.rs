//! What stands in `__transaction_state`: Kafka's TransactionLogKey (0) and TransactionLogValue (1, and 0 to read), byte for
//! byte. One record is the whole state of one transactional id; a later one replaces it.

use crate::ids::{ProducerEpoch, ProducerId};
use crate::record::varint::{put_unsigned, take_unsigned};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::sync::Arc;

/// Where a transactional id stands. Numbers are Kafka's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(i8)]
pub enum TxnState {
    /// It has a producer id and no transaction yet.
    #[default]
    Empty = 0,
    /// A transaction takes in records.
    Ongoing = 1,
    /// It is decided that it commits; markers are on their way.
    PrepareCommit = 2,
    /// It is decided that it aborts; markers are on their way.
    PrepareAbort = 3,
    /// Every partition has its commit marker.
    CompleteCommit = 4,
    /// Every partition has its abort marker.
    CompleteAbort = 5,
}

impl TxnState {
    /// The state of that number.
    #[must_use]
    pub const fn from_code(code: i8) -> Option<Self> {
        Some(match code {
            0 => Self::Empty,
            1 => Self::Ongoing,
            2 => Self::PrepareCommit,
            3 => Self::PrepareAbort,
            4 => Self::CompleteCommit,
            5 => Self::CompleteAbort,
            _ => return None,
        })
    }
    /// Whether `next` may follow (Kafka's `TransactionState.validPreviousStates`; an abort of nothing is version 2's).
    #[must_use]
    pub const fn can_become(self, next: Self) -> bool {
        use TxnState as S;
        match next {
            S::Empty => matches!(self, S::Empty | S::CompleteCommit | S::CompleteAbort),
            S::Ongoing => matches!(self, S::Empty | S::Ongoing | S::CompleteCommit | S::CompleteAbort),
            S::PrepareCommit => matches!(self, S::Ongoing),
            S::PrepareAbort => matches!(self, S::Ongoing | S::Empty | S::CompleteCommit | S::CompleteAbort),
            S::CompleteCommit => matches!(self, S::PrepareCommit),
            S::CompleteAbort => matches!(self, S::PrepareAbort),
        }
    }
    /// The decision, while its markers are on their way.
    #[must_use]
    pub const fn decision(self) -> Option<bool> {
        match self {
            Self::PrepareCommit => Some(true),
            Self::PrepareAbort => Some(false),
            _ => None,
        }
    }
}

/// A partition by topic name and number: names outlive a re-created topic, as in Kafka.
pub type Member = (Arc<str>, u32);

/// One transactional id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxnValue {
    /// Its producer id.
    pub producer: ProducerId,
    /// The producer id before the last change of it, while no transaction was begun since; −1 otherwise.
    pub previous: ProducerId,
    /// Between the decision under a producer id's last epoch and the end of its markers: the id that the producer goes on
    /// with; −1 otherwise.
    pub next: ProducerId,
    /// The epoch of its producer.
    pub epoch: ProducerEpoch,
    /// The epoch before the last bump that the producer was told of, −1 otherwise: what a repeated InitProducerId is known by.
    /// Not in the record; a new coordinator does not know it (Kafka's neither).
    pub last_epoch: ProducerEpoch,
    /// `transaction.timeout.ms`.
    pub timeout_ms: u32,
    /// Where it stands.
    pub state: TxnState,
    /// The partitions of its transaction, ascending.
    pub members: Vec<Member>,
    /// When it changed last, milliseconds.
    pub updated: i64,
    /// When its transaction began, milliseconds; −1 before the first.
    pub started: i64,
    /// The transaction version (KIP-890) under which its last transaction ended, 0 before the first.
    pub version: i16,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxnRecord {
    /// The transactional id.
    pub id: Arc<str>,
    /// Its state; `None`: it is forgotten.
    pub value: Option<TxnValue>,
}

/// Bytes that are no record of this topic, or of a version that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRecord(pub &'static str);

impl std::fmt::Display for BadRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "not a record of the transaction log: {}", self.0)
    }
}
impl std::error::Error for BadRecord {}

const CUT: BadRecord = BadRecord("it is cut off");

impl TxnRecord {
    /// Key and value as they stand in the log, of versions 0 and 1 (transaction versions 1 and 2).
    #[must_use]
    pub fn encode(&self) -> (Bytes, Option<Bytes>) {
        let mut key = BytesMut::with_capacity(4 + self.id.len());
        key.put_i16(0);
        put_text(&mut key, &self.id);
        (key.freeze(), self.value.as_ref().map(encode_value))
    }

    /// Reads a record.
    ///
    /// # Errors
    /// [`BadRecord`]
    pub fn decode(mut key: &[u8], value: Option<&[u8]>) -> Result<Self, BadRecord> {
        if key.try_get_i16().map_err(|_| CUT)? != 0 {
            return Err(BadRecord("version of a key"));
        }
        let id = take_text(&mut key)?;
        if !key.is_empty() {
            return Err(BadRecord("bytes behind the key"));
        }
        Ok(Self { id, value: value.map(decode_value).transpose()? })
    }
}

fn put_text(out: &mut BytesMut, text: &str) {
    out.put_i16(i16::try_from(text.len()).unwrap_or(i16::MAX));
    out.put_slice(&text.as_bytes()[..text.len().min(i16::MAX as usize)]);
}

fn take_text(bytes: &mut &[u8]) -> Result<Arc<str>, BadRecord> {
    let len = usize::try_from(bytes.try_get_i16().map_err(|_| CUT)?).map_err(|_| BadRecord("length of a text"))?;
    split_text(bytes, len)
}

fn split_text(bytes: &mut &[u8], len: usize) -> Result<Arc<str>, BadRecord> {
    let (text, rest) = bytes.split_at_checked(len).ok_or(CUT)?;
    *bytes = rest;
    Ok(std::str::from_utf8(text).map_err(|_| BadRecord("a text"))?.into())
}

/// Members by topic: neighbours of one name.
fn topics(members: &[Member]) -> impl Iterator<Item = &[Member]> {
    members.chunk_by(|a, b| a.0 == b.0)
}

/// Tagged fields of version 1.
const PREVIOUS: u32 = 0;
const NEXT: u32 = 1;
const VERSION: u32 = 2;

fn encode_value(value: &TxnValue) -> Bytes {
    let mut out = BytesMut::with_capacity(64);
    out.put_i16(1);
    out.put_i64(value.producer.0);
    out.put_i16(value.epoch.0);
    out.put_i32(value.timeout_ms as i32);
    out.put_i8(value.state as i8);
    if value.state == TxnState::Empty {
        put_unsigned(&mut out, 0);
    } else {
        put_unsigned(&mut out, topics(&value.members).count() as u32 + 1);
        for topic in topics(&value.members) {
            put_unsigned(&mut out, topic[0].0.len() as u32 + 1);
            out.put_slice(topic[0].0.as_bytes());
            put_unsigned(&mut out, topic.len() as u32 + 1);
            topic.iter().for_each(|(_, number)| out.put_i32(*number as i32));
            out.put_u8(0);
        }
    }
    out.put_i64(value.updated);
    out.put_i64(value.started);
    put_tags(&mut out, value);
    out.freeze()
}

/// What is not as it is by default, by number.
fn put_tags(out: &mut BytesMut, value: &TxnValue) {
    let ids = [(PREVIOUS, value.previous), (NEXT, value.next)].into_iter().filter(|(_, id)| *id != ProducerId::NONE);
    put_unsigned(out, ids.clone().count() as u32 + u32::from(value.version != 0));
    for (tag, id) in ids {
        put_unsigned(out, tag);
        put_unsigned(out, 8);
        out.put_i64(id.0);
    }
    if value.version != 0 {
        put_unsigned(out, VERSION);
        put_unsigned(out, 2);
        out.put_i16(value.version);
    }
}

/// How long an array is: version 1 is of the flexible encoding, one more than its elements, 0 for null.
fn take_len(bytes: &mut &[u8], flexible: bool) -> Result<usize, BadRecord> {
    let len = if flexible {
        i64::from(take_unsigned(bytes).ok_or(CUT)?) - 1
    } else {
        i64::from(bytes.try_get_i32().map_err(|_| CUT)?)
    };
    let len = usize::try_from(len.max(0)).map_err(|_| CUT)?;
    // Every element takes a byte at least.
    if len > bytes.len() {
        return Err(CUT);
    }
    Ok(len)
}

/// Goes through tagged fields; those that `take` does not know are passed over.
fn take_tags(
    bytes: &mut &[u8],
    mut take: impl FnMut(u32, &mut &[u8]) -> Result<(), BadRecord>,
) -> Result<(), BadRecord> {
    for _ in 0..take_unsigned(bytes).ok_or(CUT)? {
        let tag = take_unsigned(bytes).ok_or(CUT)?;
        let len = take_unsigned(bytes).ok_or(CUT)? as usize;
        let (mut field, rest) = bytes.split_at_checked(len).ok_or(CUT)?;
        take(tag, &mut field)?;
        *bytes = rest;
    }
    Ok(())
}

fn decode_value(mut bytes: &[u8]) -> Result<TxnValue, BadRecord> {
    let cut = |_| CUT;
    let bytes = &mut bytes;
    let flexible = match bytes.try_get_i16().map_err(cut)? {
        0 => false,
        1 => true,
        _ => return Err(BadRecord("version of a value")),
    };
    let producer = ProducerId(bytes.try_get_i64().map_err(cut)?);
    let epoch = ProducerEpoch(bytes.try_get_i16().map_err(cut)?);
    let timeout_ms = bytes.try_get_i32().map_err(cut)? as u32;
    let state = TxnState::from_code(bytes.try_get_i8().map_err(cut)?).ok_or(BadRecord("a state"))?;
    let mut members = Vec::new();
    for _ in 0..take_len(bytes, flexible)? {
        let name = if flexible {
            let len = take_unsigned(bytes).and_then(|len| len.checked_sub(1)).ok_or(CUT)?;
            split_text(bytes, len as usize)?
        } else {
            take_text(bytes)?
        };
        for _ in 0..take_len(bytes, flexible)? {
            let number = u32::try_from(bytes.try_get_i32().map_err(cut)?).map_err(|_| BadRecord("a partition"))?;
            members.push((name.clone(), number));
        }
        if flexible {
            take_tags(bytes, |_, _| Ok(()))?;
        }
    }
    members.sort_unstable();
    members.dedup();
    let updated = bytes.try_get_i64().map_err(cut)?;
    let started = bytes.try_get_i64().map_err(cut)?;
    let (mut previous, mut next, mut version) = (ProducerId::NONE, ProducerId::NONE, 0);
    if flexible {
        take_tags(bytes, |tag, field| {
            match tag {
                PREVIOUS => previous = ProducerId(field.try_get_i64().map_err(cut)?),
                NEXT => next = ProducerId(field.try_get_i64().map_err(cut)?),
                VERSION => version = field.try_get_i16().map_err(cut)?,
                _ => {}
            }
            Ok(())
        })?;
    }
    let last_epoch = ProducerEpoch(-1);
    Ok(TxnValue { producer, previous, next, epoch, last_epoch, timeout_ms, state, members, updated, started, version })
}

#[cfg(test)]
#[path = "txn_records_tests.rs"]
mod tests;
