//! Names and quantities of the protocol, one newtype each, so that an offset is never passed for an epoch.
//!
//! Dense indices ([`PartitionIx`], [`TopicIx`]) are given once per cluster when the metadata log creates the thing; they are
//! never reused. Hot paths index vectors with them and never hash a name.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

number! {
    /// A process of the world: a broker, a controller or a client. Also its network address (host and port).
    NodeId(u16)
}
number! {
    /// A broker's id within its cluster (`node.id`). `-1` stands for "none".
    BrokerId(i32)
}
/// Ids of controllers begin here: brokers and controllers of a cluster share one space of ids (KIP-631), and a controller has
/// no number of its own but its address.
const FIRST_CONTROLLER: i32 = 3_000;

/// A controller's `node.id`.
#[must_use]
pub const fn controller_id(node: NodeId) -> i32 {
    FIRST_CONTROLLER + node.0 as i32
}

/// The controller of an id, `None` if it is none's.
#[must_use]
pub fn controller_node(id: i32) -> Option<NodeId> {
    u16::try_from(id.checked_sub(FIRST_CONTROLLER)?).ok().map(NodeId)
}

number! {
    /// Dense index of a partition within its cluster.
    PartitionIx(u32)
}
number! {
    /// Dense index of a topic within its cluster.
    TopicIx(u32)
}
number! {
    /// Dense index of a mirror within its (destination) cluster.
    MirrorIx(u32)
}
number! {
    /// Record offset in a partition; ends are exclusive.
    Offset(i64)
}
number! {
    /// Leader epoch of a partition; also the epoch stamped into a record batch.
    LeaderEpoch(i32)
}
number! {
    /// Version of a partition's registration at the controller (KIP-497); raised by every change.
    PartitionEpoch(i32)
}
number! {
    /// A broker's registration epoch (KIP-631): the metadata offset of its registration record.
    BrokerEpoch(i64)
}
number! {
    /// Producer id (KIP-98). `-1` stands for "not idempotent".
    ProducerId(i64)
}
number! {
    /// Producer epoch (KIP-98).
    ProducerEpoch(i16)
}
number! {
    /// Epoch of one record of `__mirror_state` per partition: raised by every state write (spec 7.5).
    StateEpoch(i32)
}
number! {
    /// Offset in the metadata log.
    MetadataOffset(i64)
}
number! {
    /// A 128-bit topic id. Zero stands for "none".
    TopicId(u128)
}
number! {
    /// A connection. Unique in the world: the opener's node id in the high bits, its count of connections in the low ones.
    ConnId(u64)
}
number! {
    /// Simulated time in nanoseconds; as an instant it counts from the start of the run.
    Nanos(u64)
}

/// One life of a topic in one cluster. Ids come again: a mirrored topic has its source's, and so has the next copy when this one
/// was deleted. Indices do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicLife {
    /// The topic's id.
    pub id: TopicId,
    /// What it was given when it was created.
    pub ix: TopicIx,
}

impl BrokerId {
    /// No broker: a partition without a leader.
    pub const NONE: Self = Self(-1);
}

impl Offset {
    /// The first offset of a log.
    pub const ZERO: Self = Self(0);
    /// "Not known" in requests and answers.
    pub const UNKNOWN: Self = Self(-1);

    /// The offset `count` further.
    #[must_use]
    pub fn plus(self, count: i64) -> Self {
        Self(self.0 + count)
    }
}

impl LeaderEpoch {
    /// "No epoch" in requests, answers and caches.
    pub const NONE: Self = Self(-1);
}

impl ProducerId {
    /// A batch without idempotence.
    pub const NONE: Self = Self(-1);
}

impl Nanos {
    /// The start of the run.
    pub const ZERO: Self = Self(0);

    /// Whole milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
    /// Whole microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }
    /// Whole seconds.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }
    /// Milliseconds, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Seconds as a float, for reports only.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// `self - earlier`, zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl TopicId {
    /// No id.
    pub const ZERO: Self = Self(0);
}

/// A node's reading of its clock. The protocol sees nothing else of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Now {
    /// Monotonic reading: drifts against the world, never jumps. Timers are set against it.
    pub mono: Nanos,
    /// Wall reading in milliseconds since the epoch: also jumps. Record timestamps and retention use it.
    pub wall_ms: i64,
}
