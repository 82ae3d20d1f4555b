//! What is local to a cluster, and what the wire calls it.

use crate::ids::{NodeId, PartitionIx, TopicId};
use crate::wire::codec::coder::{Coder, Done, Wrong};
use crate::wire::size::TOPIC_NAME_LEN;
use std::fmt::Write;
use std::sync::Arc;

/// Where a partition stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its topic's id.
    pub id: TopicId,
    /// Its topic's name.
    pub name: Arc<str>,
    /// Its number within the topic.
    pub number: u32,
}

/// Knows the partitions of one cluster: the one that serves the connection, whose indices the messages on it hold. Both ways
/// must agree.
pub trait Directory {
    /// Where a partition stands; `None` if there is none of that index (any more).
    fn place(&self, partition: PartitionIx) -> Option<Place>;
    /// A partition by its topic's id and its number.
    fn by_id(&self, topic: TopicId, number: u32) -> Option<PartitionIx>;
    /// A partition by its topic's name and its number.
    fn by_name(&self, topic: &str, number: u32) -> Option<PartitionIx>;
    /// The cluster's id.
    fn cluster_id(&self) -> &str;
}

/// Knows no partition.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nowhere;

impl Directory for Nowhere {
    fn place(&self, _: PartitionIx) -> Option<Place> {
        None
    }
    fn by_id(&self, _: TopicId, _: u32) -> Option<PartitionIx> {
        None
    }
    fn by_name(&self, _: &str, _: u32) -> Option<PartitionIx> {
        None
    }
    fn cluster_id(&self) -> &'static str {
        ""
    }
}

// --------------------------------------------------------------------------------------------------------- what is unknown

/// The upper half of topic ids that are none: the lower half is an index that the directory does not know. Messages with
/// such indices are sent all the time (a client's metadata is stale, a topic was deleted) and must come back as they were.
/// A drawn topic id meets one of these with probability 2⁻⁶⁴.
const UNKNOWN_TOPIC: u128 = 0x6d69_7272_6f72_6c61_u128 << 64;
/// The same for slots of a fetch session: requests forget partitions by slot only.
const SLOT_TOPIC: u128 = 0x6d69_7272_6f72_736c_u128 << 64;
/// The first character of names that are none; no topic's name may contain it.
const UNKNOWN_NAME: char = '?';

/// What stands for an index that the directory does not know, as partition 0 of a topic of its own.
#[must_use]
pub fn stand_in(partition: PartitionIx) -> Place {
    let mut name = String::with_capacity(TOPIC_NAME_LEN);
    // As long as names are assumed to be: a stale index costs no link more.
    let _ = write!(name, "{UNKNOWN_NAME}{:0width$}", partition.0, width = TOPIC_NAME_LEN - 1);
    Place { id: TopicId(UNKNOWN_TOPIC | u128::from(partition.0)), name: name.into(), number: 0 }
}

/// The index that a topic id stands for, if it is one of [`stand_in`]'s.
pub(super) fn index_in_id(topic: TopicId) -> Option<PartitionIx> {
    u32::try_from(topic.0 ^ UNKNOWN_TOPIC).ok().map(PartitionIx)
}

/// The index that a topic name stands for, if it is one of [`stand_in`]'s.
pub(super) fn index_in_name(topic: &str) -> Option<PartitionIx> {
    let digits = topic.strip_prefix(UNKNOWN_NAME).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))?;
    digits.parse().ok().map(PartitionIx)
}

// --------------------------------------------------------------------------------------------------------------- addresses

/// Every node listens here.
pub const PORT: u16 = 9092;

/// The host name of a node: addresses are node ids, for all clusters alike.
#[must_use]
pub fn host(node: NodeId) -> String {
    format!("node-{:05}", node.0)
}

fn node_of(host: &str) -> Option<NodeId> {
    host.strip_prefix("node-").and_then(|digits| digits.parse().ok()).map(NodeId)
}

impl Coder<'_> {
    /// `Host`; the port follows.
    pub(super) fn host(&mut self, node: &mut NodeId) -> Done {
        let mut name = Arc::from(host(*node));
        self.text("Host", &mut name)?;
        *node = node_of(&name).ok_or_else(|| self.wrong("Host", Wrong::Form))?;
        Ok(())
    }

    /// `Host` of a node that may be none: empty then.
    pub(super) fn maybe_host(&mut self, node: &mut Option<NodeId>) -> Done {
        let mut name: Arc<str> = node.map_or_else(Arc::default, |node| host(node).into());
        self.text("Host", &mut name)?;
        *node = match &*name {
            "" => None,
            name => Some(node_of(name).ok_or_else(|| self.wrong("Host", Wrong::Form))?),
        };
        Ok(())
    }

    /// The partition forgotten by a slot. The session's owner knows which partition the slot had; the message does not say.
    pub(super) fn forgotten(&mut self, slot: &mut u32) -> Done {
        let mut topic = SLOT_TOPIC;
        self.uuid("TopicId", &mut topic)?;
        if topic != SLOT_TOPIC {
            return Err(self.wrong("ForgottenTopicsData", Wrong::UnknownPartition));
        }
        let mut slots = vec![*slot];
        self.array("Partitions", &mut slots, |c, slot| c.u32("Partition", slot))?;
        let [only] = slots[..] else { return Err(self.wrong("Partitions", Wrong::Value(slots.len() as i64))) };
        *slot = only;
        self.end()
    }
}
