//! What a process needs from the outside, as traits and values: disk, connections, timers, lanes.
//!
//! A process has one door. [`Input`]s are *accepted* (filed under their lane), lanes are *run*; both leave [`Effect`]s in an
//! [`Outbox`]. Disk reads and page-cache writes are synchronous calls on [`Disk`]; only `flush` and `flush_dir` are effects,
//! answered by [`Input::Flushed`]. The calls and effects of one task form one ordered journal that a crash may cut after any
//! entry. Nothing here knows whether the world is simulated.

pub use crate::entropy::Entropy;
use crate::guards::Guards;
use crate::ids::{ConnId, Nanos, NodeId, TopicLife};
use crate::trace::{Trace, TraceEvent};
use crate::wire::messages::Message;
use bytes::Bytes;

// ---------------------------------------------------------------------------------------------------------------- disk

/// A directory of a broker's data disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DirName {
    /// The log directory itself: checkpoints over all partitions, the clean-shutdown marker.
    Root,
    /// One partition replica.
    Partition {
        /// The topic, as `partition.metadata` would name it (KIP-516).
        topic: TopicLife,
        /// The partition number within the topic.
        partition: u32,
    },
    /// The metadata log (`__cluster_metadata-0`).
    Metadata,
}

/// The name of a file within its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileName {
    /// A log segment, by base offset.
    Segment(i64),
    /// A producer snapshot, by the offset it was taken at.
    ProducerSnapshot(i64),
    /// A metadata snapshot, by the offset it ends at.
    MetadataSnapshot(i64),
    /// `leader-epoch-checkpoint`.
    EpochCheckpoint,
    /// `replication-offset-checkpoint`: high watermarks.
    HighWatermarks,
    /// `recovery-point-offset-checkpoint`.
    RecoveryPoints,
    /// `log-start-offset-checkpoint`.
    LogStarts,
    /// The clean-shutdown marker; holds the broker epoch (KIP-966).
    CleanShutdown,
    /// `meta.properties`: cluster id, node id, directory id.
    MetaProperties,
    /// `quorum-state`: leader, epoch and vote of a controller.
    QuorumState,
    /// `alignment-checkpoint`: the terms in which a replica was aligned with a mirror's source, and where its log ended then.
    Alignments,
    /// The `.tmp` twin of a file that is replaced by rename, by the name's tag.
    Temp(u8),
    /// `.cleaned`: what the cleaner wrote of segments from this base offset on. Worth nothing before it is renamed.
    Cleaned(i64),
    /// `.swap`: it is whole, and the segments that it stands for are being removed.
    Swap(i64),
    /// `cleaner-offset-checkpoint`: up to where logs are compacted.
    CleanerOffsets,
}

/// An open directory of one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirId(pub u32);

/// An open file of one disk. Stays valid after a rename; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// What a disk call can fail with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiskError {
    /// No space left.
    Full,
    /// The device reported an error.
    Io,
    /// No such file or directory.
    NotFound,
    /// A file of that name exists.
    Exists,
}

impl std::fmt::Display for DiskError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Full => "no space left on device",
            Self::Io => "input/output error",
            Self::NotFound => "no such file or directory",
            Self::Exists => "file exists",
        })
    }
}
impl std::error::Error for DiskError {}

/// One data disk. Writes go to the page cache; they survive a process kill at once and a power loss only after a flush of
/// the file, and a new name only after a flush of its directory.
pub trait Disk {
    /// How many calls of this task changed something, on a disk that keeps count (of a task that a crash is to cut).
    fn calls(&self) -> u32 {
        0
    }
    /// Opens a directory, creating it if `create`. Opening an open directory gives the same id.
    ///
    /// # Errors
    /// `NotFound` without `create`; `Full`, `Io`.
    fn open_dir(&mut self, name: DirName, create: bool) -> Result<DirId, DiskError>;
    /// All directories, in order of name.
    fn list_dirs(&self) -> Vec<DirName>;
    /// Removes a directory and the files in it.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn remove_dir(&mut self, dir: DirId) -> Result<(), DiskError>;
    /// The files of a directory, in order of name.
    fn list(&self, dir: DirId) -> Vec<FileName>;
    /// Creates an empty file.
    ///
    /// # Errors
    /// `Exists`, `Full`, `Io`.
    fn create(&mut self, dir: DirId, name: FileName) -> Result<FileId, DiskError>;
    /// Opens an existing file.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn open(&mut self, dir: DirId, name: FileName) -> Result<FileId, DiskError>;
    /// Gives the file another name in the same directory, replacing what had it.
    ///
    /// # Errors
    /// `Io`.
    fn rename(&mut self, dir: DirId, file: FileId, to: FileName) -> Result<(), DiskError>;
    /// Removes a file.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn remove(&mut self, dir: DirId, name: FileName) -> Result<(), DiskError>;
    /// Length in bytes.
    fn len(&self, file: FileId) -> u64;
    /// Appends; returns the position of the first byte. The bytes are shared, not copied, where the disk can.
    ///
    /// # Errors
    /// `Full` and `Io`; a prefix of the bytes may have been written then.
    fn append(&mut self, file: FileId, bytes: Bytes) -> Result<u64, DiskError>;
    /// Reads up to `max` bytes from `pos` as a list of shared pieces, cut where the file was appended to; `out` is extended.
    /// Pieces are whole appends where `pos` is the start of one and `max` allows. At least one whole piece is read if any
    /// byte is there, even when it is longer than `max`. Returns the number of bytes read.
    ///
    /// # Errors
    /// `Io`.
    fn read(&self, file: FileId, pos: u64, max: u64, out: &mut Vec<Bytes>) -> Result<u64, DiskError>;
    /// Cuts the file to `len` bytes.
    ///
    /// # Errors
    /// `Io`.
    fn truncate(&mut self, file: FileId, len: u64) -> Result<(), DiskError>;
}

// ----------------------------------------------------------------------------------------------------- inputs and effects

/// A queue of tasks of one process that runs one task at a time (a thread of the prototype). Numbers are the process's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(pub u16);

/// A timer's name, chosen by the process. A timer that is not wanted any more fires all the same: its owner ignores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timer(pub u64);

/// Names a flush, chosen by the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlushToken(pub u64);

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CloseReason {
    /// Nobody listens there.
    Refused,
    /// No answer to the attempt to connect.
    ConnectTimeout,
    /// The other side closed in order.
    Closed,
    /// The other side is gone, or sent a reset.
    Reset,
}

/// What reaches a process.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A connection stands: one that `peer` opened (`inbound`), or one that this process asked for.
    Opened {
        /// The connection.
        conn: ConnId,
        /// The other end.
        peer: NodeId,
        /// True if the other end opened it.
        inbound: bool,
    },
    /// A connection ended, or could not be made.
    Closed {
        /// The connection.
        conn: ConnId,
        /// Why.
        why: CloseReason,
    },
    /// A message arrived; messages of one connection arrive in order.
    Message {
        /// The connection.
        conn: ConnId,
        /// What was sent.
        message: Message,
    },
    /// A timer is due.
    Timer(Timer),
    /// A flush ended.
    Flushed {
        /// The token that the effect carried.
        token: FlushToken,
        /// How it ended. After an error the bytes may or may not be durable, for ever (fsync semantics).
        result: Result<(), DiskError>,
    },
}

/// What a process asks of the world.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Open a connection; answered by [`Input::Opened`] or [`Input::Closed`].
    Connect {
        /// The id that [`Cx::connect`] gave.
        conn: ConnId,
        /// Where to.
        to: NodeId,
    },
    /// Send on an open connection. On one that is gone, nothing happens: the end was or will be told.
    Send {
        /// The connection.
        conn: ConnId,
        /// What.
        message: Message,
    },
    /// Close a connection in order.
    Close {
        /// The connection.
        conn: ConnId,
    },
    /// Wake this process with [`Input::Timer`] when its monotonic clock reads `at`.
    SetTimer {
        /// The name.
        timer: Timer,
        /// The reading at which it is due.
        at: Nanos,
    },
    /// Run this lane soon. Asked once per piece of work; a lane never runs twice for one wake.
    Wake(Lane),
    /// Make a file's bytes durable.
    Flush {
        /// Which file.
        file: FileId,
        /// Returned in [`Input::Flushed`].
        token: FlushToken,
    },
    /// Make a directory's entries durable.
    FlushDir {
        /// Which directory.
        dir: DirId,
        /// Returned in [`Input::Flushed`].
        token: FlushToken,
    },
    /// The process ends by itself: in order, or because one of its own assertions broke.
    Exit(ExitReason),
}

/// Why a process ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExitReason {
    /// A controlled shutdown came to its end.
    Shutdown,
    /// The protocol's own assertion broke; the text says which. A violation, and the node is down.
    Broken(&'static str),
    /// The data disk failed in a way that the process cannot live with.
    DiskFailed,
}

impl std::fmt::Display for ExitReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Shutdown => f.write_str("a controlled shutdown"),
            Self::Broken(assertion) => write!(f, "an assertion of its own broke: {assertion}"),
            Self::DiskFailed => f.write_str("its disk failed"),
        }
    }
}

/// Where a process leaves its effects and trace events, in order.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    /// Effects in the order asked.
    pub effects: Vec<Effect>,
    /// Trace events in the order they happened.
    pub trace: Vec<TraceEvent>,
    /// Where they stand among the disk calls of the task; kept only of a task that a crash is to cut.
    pub order: Option<Box<Order>>,
}

/// The disk calls and effects of one task are entries of one journal; this says how many entries stand before what.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// By effect.
    pub effects: Vec<u32>,
    /// By trace event, which is no entry: it belongs to the entry before it.
    pub trace: Vec<u32>,
}

impl Order {
    /// Those of the first `count` effects that have no place yet stand behind `calls` disk calls.
    pub fn place_effects(&mut self, calls: u32, count: usize) {
        let placed = self.effects.len()..count.max(self.effects.len());
        self.effects.extend(placed.map(|n| calls + n as u32));
    }
}

/// The first connection number of a node: its id in the high bits.
#[must_use]
pub const fn first_conn(node: NodeId) -> u64 {
    (node.0 as u64) << 40
}

/// What a process is handed with every call: its disk, its guards, its outbox, its draws.
pub struct Cx<'a> {
    /// This node's id.
    pub node: NodeId,
    /// This node's data disk.
    pub disk: &'a mut dyn Disk,
    /// Which guards and quirks are on at this node, and which were hit.
    pub guards: &'a mut Guards,
    /// Where effects and trace events go.
    pub out: &'a mut Outbox,
    /// Draws for jitter and the like.
    pub entropy: Entropy,
    /// The next connection number of this node; the world keeps it across restarts.
    pub next_conn: &'a mut u64,
}

impl Cx<'_> {
    /// Asks for a connection; the id is valid at once.
    pub fn connect(&mut self, to: NodeId) -> ConnId {
        let conn = ConnId(*self.next_conn);
        *self.next_conn += 1;
        self.effect(Effect::Connect { conn, to });
        conn
    }
    /// Sends on a connection.
    pub fn send(&mut self, conn: ConnId, message: Message) {
        self.effect(Effect::Send { conn, message });
    }
    /// Arms a timer.
    pub fn set_timer(&mut self, timer: Timer, at: Nanos) {
        self.effect(Effect::SetTimer { timer, at });
    }
    /// Asks for a run of a lane.
    pub fn wake(&mut self, lane: Lane) {
        self.effect(Effect::Wake(lane));
    }
    /// Asks for an effect.
    #[inline]
    pub fn effect(&mut self, effect: Effect) {
        self.out.effects.push(effect);
        if self.out.order.is_some() {
            self.keep_order();
        }
    }
    /// Notes where the effects since the last call stand. Gives the entries so far.
    #[cold]
    fn keep_order(&mut self) -> u32 {
        let calls = self.disk.calls();
        let Outbox { effects, order, .. } = &mut *self.out;
        if let Some(order) = order {
            order.place_effects(calls, effects.len());
        }
        calls + effects.len() as u32
    }
    /// Records what happened.
    pub fn trace(&mut self, trace: Trace) {
        if self.out.order.is_some() {
            let entries = self.keep_order();
            self.out.order.iter_mut().for_each(|order| order.trace.push(entries));
        }
        self.out.trace.push(TraceEvent { node: self.node, trace });
    }
}
