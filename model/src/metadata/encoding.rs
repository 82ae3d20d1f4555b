//! Metadata records to bytes and back.
//!
//! Framing as in KRaft: frame version, api key, record version (unsigned varints), then the fields: zigzag varints, compact
//! strings and arrays (length + 1, 0 for null), ids in 16 bytes; what may be absent is a tagged field. Api keys are Kafka's
//! where the record is; those from 64 up are this project's.
//!
//! Bytes come from a disk or a peer: decoding refuses what it cannot read and never panics.

use crate::ids::{
    BrokerEpoch, BrokerId, LeaderEpoch, MirrorIx, NodeId, PartitionEpoch, PartitionIx, ProducerId, TopicId, TopicIx,
};
use crate::metadata::records::{Brokers, PartitionState, Record};
use crate::states::DesiredState;
use crate::wire::messages::ConfigResource;
use std::fmt;
use std::sync::Arc;

/// Version of the frame around each record.
const FRAME_VERSION: u64 = 1;

mod key {
    pub const REGISTER_BROKER: u64 = 0;
    pub const TOPIC: u64 = 2;
    pub const PARTITION: u64 = 3;
    pub const CONFIG: u64 = 4;
    pub const PARTITION_CHANGE: u64 = 5;
    pub const REMOVE_TOPIC: u64 = 9;
    pub const PRODUCER_IDS: u64 = 15;
    pub const BROKER_CHANGE: u64 = 17;
    pub const NO_OP: u64 = 20;
    pub const MIRROR_TOPIC_STATE_CHANGE: u64 = 29;
    pub const MIRROR: u64 = 64;
    pub const LEADER_CHANGE: u64 = 65;
    pub const SNAPSHOT_HEADER: u64 = 66;
}

/// The record version written and read for an api key.
const fn version_of(api_key: u64) -> u64 {
    match api_key {
        // v3 carries the leader epoch explicitly (spec 3.4).
        key::PARTITION_CHANGE => 3,
        _ => 0,
    }
}

/// Why bytes are not a metadata record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end within a field.
    Truncated,
    /// Bytes are left after the last field.
    Trailing,
    /// The frame version is not known.
    FrameVersion(u64),
    /// No record has this api key.
    UnknownRecord(u64),
    /// The record's version is not known.
    UnknownVersion(u64, u64),
    /// A field's value is outside its type.
    BadField,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the record ends within a field"),
            Self::Trailing => f.write_str("bytes follow the record"),
            Self::FrameVersion(v) => write!(f, "frame version {v} is not known"),
            Self::UnknownRecord(k) => write!(f, "no metadata record has api key {k}"),
            Self::UnknownVersion(k, v) => write!(f, "version {v} of metadata record {k} is not known"),
            Self::BadField => f.write_str("a field's value is outside its type"),
        }
    }
}
impl std::error::Error for DecodeError {}

/// The running hash over the records of a metadata log, continued by one record's bytes. Controller and brokers compute
/// the same, so equal hashes at equal ends mean equal logs (S13).
#[must_use]
pub fn chain(hash: u64, bytes: &[u8]) -> u64 {
    // A multiply-and-fold over words; not cryptographic, stable across machines.
    let mut h = hash ^ (bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for word in bytes.chunks(8) {
        let mut eight = [0; 8];
        eight[..word.len()].copy_from_slice(word);
        let wide = u128::from(h ^ u64::from_le_bytes(eight)) * 0xa5a3_564e_27f8_8697;
        h = (wide as u64) ^ ((wide >> 64) as u64) ^ h.rotate_left(23);
    }
    h
}

// ---------------------------------------------------------------------------------------------------------------- writing

fn put_uvarint(out: &mut Vec<u8>, mut v: u64) {
    while v >= 0x80 {
        out.push((v as u8 & 0x7f) | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

fn put_varint(out: &mut Vec<u8>, v: i64) {
    put_uvarint(out, ((v << 1) ^ (v >> 63)) as u64);
}

fn put_text(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        None => put_uvarint(out, 0),
        Some(text) => {
            put_uvarint(out, text.len() as u64 + 1);
            out.extend_from_slice(text.as_bytes());
        }
    }
}

fn put_id(out: &mut Vec<u8>, id: u128) {
    out.extend_from_slice(&id.to_be_bytes());
}

fn put_brokers(out: &mut Vec<u8>, brokers: &[BrokerId]) {
    put_uvarint(out, brokers.len() as u64 + 1);
    for broker in brokers {
        put_varint(out, i64::from(broker.0));
    }
}

fn put_tag(out: &mut Vec<u8>, tag: u64, write: impl FnOnce(&mut Vec<u8>)) {
    let mut field = Vec::with_capacity(16);
    write(&mut field);
    put_uvarint(out, tag);
    put_uvarint(out, field.len() as u64);
    out.extend_from_slice(&field);
}

fn put_state(out: &mut Vec<u8>, state: &PartitionState) {
    for list in [&state.replicas, &state.isr, &state.elr, &state.last_known_elr] {
        put_brokers(out, list);
    }
    put_varint(out, i64::from(state.leader.0));
    put_varint(out, i64::from(state.leader_epoch.0));
    put_varint(out, i64::from(state.partition_epoch.0));
    out.push(u8::from(state.recovering));
}

fn put_resource(out: &mut Vec<u8>, resource: &ConfigResource) {
    // Kafka's resource types: topic 2, broker 4, cluster mirror 64 (provisional).
    match resource {
        ConfigResource::Topic(name) => {
            out.push(2);
            put_text(out, Some(name));
        }
        ConfigResource::Broker(broker) => {
            out.push(4);
            put_varint(out, broker.map_or(-1, |b| i64::from(b.0)));
        }
        ConfigResource::ClusterMirror(name) => {
            out.push(64);
            put_text(out, Some(name));
        }
    }
}

const fn desired_code(desired: DesiredState) -> u8 {
    match desired {
        DesiredState::Mirroring => 0,
        DesiredState::Paused => 1,
        DesiredState::Stopped => 2,
        DesiredState::Unknown => 255,
    }
}

impl Record {
    /// The record's api key.
    #[must_use]
    pub const fn api_key(&self) -> u64 {
        match self {
            Self::RegisterBroker { .. } => key::REGISTER_BROKER,
            Self::BrokerChange { .. } => key::BROKER_CHANGE,
            Self::Topic { .. } => key::TOPIC,
            Self::Partition { .. } => key::PARTITION,
            Self::PartitionChange { .. } => key::PARTITION_CHANGE,
            Self::RemoveTopic { .. } => key::REMOVE_TOPIC,
            Self::Config { .. } => key::CONFIG,
            Self::ProducerIds { .. } => key::PRODUCER_IDS,
            Self::Mirror { .. } => key::MIRROR,
            Self::MirrorTopicStateChange { .. } => key::MIRROR_TOPIC_STATE_CHANGE,
            Self::LeaderChange { .. } => key::LEADER_CHANGE,
            Self::NoOp => key::NO_OP,
            Self::SnapshotHeader { .. } => key::SNAPSHOT_HEADER,
        }
    }

    /// Appends the record's bytes to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_uvarint(out, FRAME_VERSION);
        put_uvarint(out, self.api_key());
        put_uvarint(out, version_of(self.api_key()));
        match self {
            Self::RegisterBroker { broker, node, incarnation, epoch } => {
                put_varint(out, i64::from(broker.0));
                put_uvarint(out, u64::from(node.0));
                put_id(out, *incarnation);
                put_varint(out, epoch.0);
            }
            Self::BrokerChange { broker, epoch, fenced, shutting_down } => {
                put_varint(out, i64::from(broker.0));
                put_varint(out, epoch.0);
                out.push(u8::from(*fenced));
                out.push(u8::from(*shutting_down));
            }
            Self::Topic { topic, id, name } => {
                put_uvarint(out, u64::from(topic.0));
                put_id(out, id.0);
                put_text(out, Some(name));
            }
            Self::Partition { partition, topic, number, state } => {
                put_uvarint(out, u64::from(partition.0));
                put_uvarint(out, u64::from(topic.0));
                put_uvarint(out, u64::from(*number));
                put_state(out, state);
            }
            Self::PartitionChange { .. } => self.encode_partition_change(out),
            Self::RemoveTopic { topic } => put_uvarint(out, u64::from(topic.0)),
            Self::Config { resource, key, value } => {
                put_resource(out, resource);
                put_text(out, Some(key));
                put_text(out, value.as_deref());
            }
            Self::ProducerIds { broker, next } => {
                put_varint(out, i64::from(broker.0));
                put_varint(out, next.0);
            }
            Self::Mirror { mirror, name } => {
                put_uvarint(out, u64::from(mirror.0));
                put_text(out, Some(name));
            }
            Self::MirrorTopicStateChange { topic, mirror, desired } => {
                put_uvarint(out, u64::from(topic.0));
                put_uvarint(out, mirror.map_or(0, |m| u64::from(m.0) + 1));
                out.push(desired_code(*desired));
            }
            Self::LeaderChange { epoch, leader } => {
                put_varint(out, i64::from(epoch.0));
                put_uvarint(out, u64::from(leader.0));
            }
            Self::NoOp => {}
            Self::SnapshotHeader { epoch, leader, hash, next_topic, next_partition, next_mirror } => {
                put_varint(out, i64::from(epoch.0));
                put_uvarint(out, u64::from(leader.0));
                out.extend_from_slice(&hash.to_be_bytes());
                put_uvarint(out, u64::from(next_topic.0));
                put_uvarint(out, u64::from(next_partition.0));
                put_uvarint(out, u64::from(next_mirror.0));
            }
        }
    }

    fn encode_partition_change(&self, out: &mut Vec<u8>) {
        let Self::PartitionChange { partition, leader, leader_epoch, isr, elr, last_known_elr, recovering, replicas } =
            self
        else {
            return;
        };
        put_uvarint(out, u64::from(partition.0));
        let lists = [(1, isr), (2, replicas), (6, elr), (7, last_known_elr)];
        let count = lists.iter().filter(|(_, list)| list.is_some()).count()
            + usize::from(leader.is_some())
            + usize::from(leader_epoch.is_some())
            + usize::from(recovering.is_some());
        put_uvarint(out, count as u64);
        if let Some(leader) = leader {
            put_tag(out, 0, |f| put_varint(f, i64::from(leader.0)));
        }
        for (tag, list) in lists {
            if let Some(list) = list {
                put_tag(out, tag, |f| put_brokers(f, list));
            }
        }
        if let Some(recovering) = recovering {
            put_tag(out, 8, |f| f.push(u8::from(*recovering)));
        }
        if let Some(epoch) = leader_epoch {
            put_tag(out, 9, |f| put_varint(f, i64::from(epoch.0)));
        }
    }

    /// Reads exactly one record.
    ///
    /// # Errors
    /// Bytes that are not exactly one known record.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader { bytes };
        let frame = r.uvarint()?;
        if frame != FRAME_VERSION {
            return Err(DecodeError::FrameVersion(frame));
        }
        let api_key = r.uvarint()?;
        let version = r.uvarint()?;
        if version != version_of(api_key) {
            return Err(DecodeError::UnknownVersion(api_key, version));
        }
        let record = r.record(api_key)?;
        if !r.bytes.is_empty() {
            return Err(DecodeError::Trailing);
        }
        Ok(record)
    }
}

// ---------------------------------------------------------------------------------------------------------------- reading

struct Reader<'a> {
    bytes: &'a [u8],
}

type Read<T> = Result<T, DecodeError>;

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Read<&'a [u8]> {
        if n > self.bytes.len() {
            return Err(DecodeError::Truncated);
        }
        let (head, tail) = self.bytes.split_at(n);
        self.bytes = tail;
        Ok(head)
    }
    fn byte(&mut self) -> Read<u8> {
        Ok(self.take(1)?[0])
    }
    fn flag(&mut self) -> Read<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::BadField),
        }
    }
    fn uvarint(&mut self) -> Read<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let low = u64::from(byte & 0x7f);
            if shift == 63 && low > 1 {
                return Err(DecodeError::BadField);
            }
            value |= low << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::BadField)
    }
    fn varint(&mut self) -> Read<i64> {
        let v = self.uvarint()?;
        Ok(((v >> 1) as i64) ^ -((v & 1) as i64))
    }
    fn narrow<T: TryFrom<u64>>(&mut self) -> Read<T> {
        T::try_from(self.uvarint()?).map_err(|_| DecodeError::BadField)
    }
    fn int(&mut self) -> Read<i32> {
        i32::try_from(self.varint()?).map_err(|_| DecodeError::BadField)
    }
    fn maybe_text(&mut self) -> Read<Option<Arc<str>>> {
        let length = self.uvarint()?;
        if length == 0 {
            return Ok(None);
        }
        let length = usize::try_from(length - 1).map_err(|_| DecodeError::Truncated)?;
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| DecodeError::BadField)?;
        Ok(Some(text.into()))
    }
    fn text(&mut self) -> Read<Arc<str>> {
        self.maybe_text()?.ok_or(DecodeError::BadField)
    }
    fn id(&mut self) -> Read<u128> {
        let mut sixteen = [0; 16];
        sixteen.copy_from_slice(self.take(16)?);
        Ok(u128::from_be_bytes(sixteen))
    }
    fn hash(&mut self) -> Read<u64> {
        let mut eight = [0; 8];
        eight.copy_from_slice(self.take(8)?);
        Ok(u64::from_be_bytes(eight))
    }
    fn brokers(&mut self) -> Read<Brokers> {
        let count = self.uvarint()?.checked_sub(1).ok_or(DecodeError::BadField)?;
        // Each takes a byte at least: a count beyond the bytes left is a lie, not a reason to allocate.
        if count > self.bytes.len() as u64 {
            return Err(DecodeError::Truncated);
        }
        (0..count).map(|_| Ok(BrokerId(self.int()?))).collect()
    }
    fn partition_ix(&mut self) -> Read<PartitionIx> {
        Ok(PartitionIx(self.narrow()?))
    }
    fn topic_ix(&mut self) -> Read<TopicIx> {
        Ok(TopicIx(self.narrow()?))
    }
    fn state(&mut self) -> Read<PartitionState> {
        Ok(PartitionState {
            replicas: self.brokers()?,
            isr: self.brokers()?,
            elr: self.brokers()?,
            last_known_elr: self.brokers()?,
            leader: BrokerId(self.int()?),
            leader_epoch: LeaderEpoch(self.int()?),
            partition_epoch: PartitionEpoch(self.int()?),
            recovering: self.flag()?,
        })
    }
    fn resource(&mut self) -> Read<ConfigResource> {
        Ok(match self.byte()? {
            2 => ConfigResource::Topic(self.text()?),
            4 => {
                let id = self.int()?;
                ConfigResource::Broker((id >= 0).then_some(BrokerId(id)))
            }
            64 => ConfigResource::ClusterMirror(self.text()?),
            _ => return Err(DecodeError::BadField),
        })
    }
    fn desired(&mut self) -> Read<DesiredState> {
        Ok(match self.byte()? {
            0 => DesiredState::Mirroring,
            1 => DesiredState::Paused,
            2 => DesiredState::Stopped,
            255 => DesiredState::Unknown,
            _ => return Err(DecodeError::BadField),
        })
    }

    fn record(&mut self, api_key: u64) -> Read<Record> {
        Ok(match api_key {
            key::REGISTER_BROKER => Record::RegisterBroker {
                broker: BrokerId(self.int()?),
                node: NodeId(self.narrow()?),
                incarnation: self.id()?,
                epoch: BrokerEpoch(self.varint()?),
            },
            key::BROKER_CHANGE => Record::BrokerChange {
                broker: BrokerId(self.int()?),
                epoch: BrokerEpoch(self.varint()?),
                fenced: self.flag()?,
                shutting_down: self.flag()?,
            },
            key::TOPIC => Record::Topic { topic: self.topic_ix()?, id: TopicId(self.id()?), name: self.text()? },
            key::PARTITION => Record::Partition {
                partition: self.partition_ix()?,
                topic: self.topic_ix()?,
                number: self.narrow()?,
                state: self.state()?,
            },
            key::PARTITION_CHANGE => self.partition_change()?,
            key::REMOVE_TOPIC => Record::RemoveTopic { topic: self.topic_ix()? },
            key::CONFIG => Record::Config { resource: self.resource()?, key: self.text()?, value: self.maybe_text()? },
            key::PRODUCER_IDS => {
                Record::ProducerIds { broker: BrokerId(self.int()?), next: ProducerId(self.varint()?) }
            }
            key::MIRROR => Record::Mirror { mirror: MirrorIx(self.narrow()?), name: self.text()? },
            key::MIRROR_TOPIC_STATE_CHANGE => {
                let topic = self.topic_ix()?;
                let mirror = match self.uvarint()? {
                    0 => None,
                    n => Some(MirrorIx(u32::try_from(n - 1).map_err(|_| DecodeError::BadField)?)),
                };
                Record::MirrorTopicStateChange { topic, mirror, desired: self.desired()? }
            }
            key::LEADER_CHANGE => {
                Record::LeaderChange { epoch: LeaderEpoch(self.int()?), leader: NodeId(self.narrow()?) }
            }
            key::NO_OP => Record::NoOp,
            key::SNAPSHOT_HEADER => Record::SnapshotHeader {
                epoch: LeaderEpoch(self.int()?),
                leader: NodeId(self.narrow()?),
                hash: self.hash()?,
                next_topic: self.topic_ix()?,
                next_partition: self.partition_ix()?,
                next_mirror: MirrorIx(self.narrow()?),
            },
            other => return Err(DecodeError::UnknownRecord(other)),
        })
    }

    fn partition_change(&mut self) -> Read<Record> {
        let partition = self.partition_ix()?;
        let (mut leader, mut leader_epoch, mut recovering) = (None, None, None);
        let (mut isr, mut elr, mut last_known_elr, mut replicas) = (None, None, None, None);
        for _ in 0..self.uvarint()? {
            let tag = self.uvarint()?;
            let length = usize::try_from(self.uvarint()?).map_err(|_| DecodeError::Truncated)?;
            let mut field = Reader { bytes: self.take(length)? };
            match tag {
                0 => leader = Some(BrokerId(field.int()?)),
                1 => isr = Some(field.brokers()?),
                2 => replicas = Some(field.brokers()?),
                6 => elr = Some(field.brokers()?),
                7 => last_known_elr = Some(field.brokers()?),
                8 => recovering = Some(field.flag()?),
                9 => leader_epoch = Some(LeaderEpoch(field.int()?)),
                _ => return Err(DecodeError::BadField),
            }
            if !field.bytes.is_empty() {
                return Err(DecodeError::Trailing);
            }
        }
        Ok(Record::PartitionChange { partition, leader, leader_epoch, isr, elr, last_known_elr, recovering, replicas })
    }
}

#[cfg(test)]
#[path = "encoding_tests.rs"]
mod tests;
