//! Which lane does what, and how timers and flushes are named.
//!
//! | lane | does |
//! |---|---|
//! | 0 | metadata: committed records to image, replicas, coordinators, mirrors, in one task |
//! | 1 | answers of the controller, heartbeats |
//! | 2 | chores: ISR check, checkpoints, retention, log compaction, finished flushes |
//! | 3 | operators' orders: what other brokers answered |
//! | 4 | transactions: answers of partition leaders to markers, coordinator shards to be read, timeouts |
//! | 8 to 15 | requests, by connection |
//! | 256 to 1023 | the mirror room's |
//! | 1024 up | replica fetchers |

use crate::ids::ConnId;
use crate::ports::{Lane, Timer};
use std::collections::VecDeque;

/// The metadata lane.
pub const METADATA: Lane = Lane(0);
/// The controller lane.
pub const CONTROLLER: Lane = Lane(1);
/// The chores lane.
pub const CHORES: Lane = Lane(2);
/// The lane of operators' orders that wait for other brokers.
pub const ORDERS: Lane = Lane(3);
/// The transactions lane.
pub const TRANSACTIONS: Lane = Lane(4);
/// The first request lane.
pub const REQUESTS: u16 = 8;
/// How many request lanes there are (`num.io.threads`).
pub const REQUEST_LANES: u16 = 8;
/// The first lane of the mirror room.
pub const MIRROR: u16 = 256;
/// The first lane of replica fetchers.
pub const FETCHERS: u16 = 1024;

/// The kind of a timer: its top byte; the rest is the kind's own. Zero and all from [`MIRROR`](kind::MIRROR) up are the
/// mirror room's.
pub(crate) mod kind {
    pub const STOP: u64 = 1;
    pub const SESSION: u64 = 2;
    pub const PRODUCE: u64 = 3;
    pub const FETCHER: u64 = 4;
    pub const CHANNEL: u64 = 5;
    pub const OBSERVER: u64 = 6;
    pub const HEARTBEAT: u64 = 7;
    pub const CHORE: u64 = 8;
    pub const ISR_RETRY: u64 = 9;
    pub const ORDERS: u64 = 10;
    pub const TRANSACTIONS: u64 = 11;
    /// From here on the timers are the mirror room's.
    pub const MIRROR: u64 = 0x80;
}

/// The timer of a kind.
pub(crate) const fn timer(kind: u64, of: u64) -> Timer {
    Timer(kind << 56 | of)
}

/// Sent to a broker as [`crate::ports::Input::Timer`], this asks for a controlled shutdown (SIGTERM).
pub const STOP: Timer = timer(kind::STOP, 0);

/// A timer of the mirror room; its own number is below 2^48.
#[must_use]
pub const fn mirror_timer(of: u64) -> Timer {
    timer(kind::MIRROR, of)
}

/// A lane of the mirror room, numbered from 0.
#[must_use]
pub const fn mirror_lane(number: u16) -> Lane {
    Lane(MIRROR + number)
}

/// A task of a request lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// The connection's next request.
    Request(ConnId),
    /// A fetch session's time is up.
    Session(u32),
    /// Producers whose time is up.
    Produce,
}

/// A periodic chore; each has one timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chore {
    /// Take lagging followers out of ISRs.
    Isr,
    /// Checkpoint high watermarks.
    Watermarks,
    /// Checkpoint recovery points and log starts.
    RecoveryPoints,
    /// Delete old segments.
    Retention,
    /// Forget silent producers.
    Producers,
    /// Flush what is unflushed for longer than its topic's `flush.ms`.
    Flush,
    /// Compact logs.
    Clean,
}

impl Chore {
    pub const ALL: [Self; 7] =
        [Self::Isr, Self::Watermarks, Self::RecoveryPoints, Self::Retention, Self::Producers, Self::Flush, Self::Clean];
}

/// The queues of the request lanes.
#[derive(Clone, Debug)]
pub(crate) struct RequestLanes {
    pub queues: Vec<VecDeque<Task>>,
}

impl RequestLanes {
    pub fn new() -> Self {
        Self { queues: (0..REQUEST_LANES).map(|_| VecDeque::new()).collect() }
    }

    /// The lane of a task: a connection's requests share one, so that they stay in order.
    pub fn file(&mut self, task: Task) -> Lane {
        let at = match task {
            Task::Request(conn) => conn.0 ^ (conn.0 >> 40),
            Task::Session(session) => u64::from(session),
            Task::Produce => 0,
        } % u64::from(REQUEST_LANES);
        self.queues[at as usize].push_back(task);
        Lane(REQUESTS + at as u16)
    }

    pub fn next(&mut self, lane: Lane) -> Option<Task> {
        self.queues.get_mut(usize::from(lane.0.checked_sub(REQUESTS)?))?.pop_front()
    }
}
