//! Fetch sessions at the serving side (KIP-227): who reads what, from where.
//!
//! A session has a dirty queue. A slot enters it once when there may be news: its reader moved, the log grew, a watermark or
//! log start moved, the leader epoch changed. A request is answered from the queue; without enough news it is parked, with
//! one timer per session.

use crate::ids::{BrokerEpoch, BrokerId, ConnId, LeaderEpoch, Nanos, Offset, PartitionIx};
use crate::log::ReadHint;
use crate::replica::chunked::Chunked;
use crate::replica::partition::{Watcher, NONE};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{FetchPart, FetchRequest, FetchResponse, Isolation};
use std::collections::VecDeque;

/// One partition of a session.
#[derive(Clone, Copy, Debug)]
pub struct SessionSlot {
    /// Which.
    pub partition: PartitionIx,
    pub(crate) flags: u16,
    /// The epoch the reader believes in.
    pub leader_epoch: LeaderEpoch,
    /// Epoch of the last record the reader holds.
    pub last_fetched_epoch: LeaderEpoch,
    /// The newest term in which a follower's log was aligned, −1 for none.
    pub aligned: LeaderEpoch,
    /// Next offset wanted.
    pub fetch_offset: Offset,
    pub(crate) hint: ReadHint,
}

impl SessionSlot {
    /// In use.
    pub(crate) const USED: u16 = 1;
    /// In the dirty queue.
    pub(crate) const DIRTY: u16 = 2;
    /// The next answer names it even without data: watermark, log start, or new in the session.
    pub(crate) const NEWS: u16 = 4;
    /// There may be data, or an error: a parked request may end.
    pub(crate) const DATA: u16 = 8;
    /// The present request listed it: its position is fresh.
    pub(crate) const LISTED: u16 = 16;
    /// The leader state knows it as a watcher.
    pub(crate) const WATCHING: u16 = 32;
    /// The reader wants the mirror leader epoch (Fetch 19).
    pub(crate) const MIRROR: u16 = 64;
    /// An error is due: a parked request ends at once, whatever its minimum of bytes.
    pub(crate) const URGENT: u16 = 128;
}

/// A request that waits for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parked {
    /// Where its answer goes.
    pub conn: ConnId,
    /// Its correlation id.
    pub correlation: u32,
    /// When it is answered in any case.
    pub deadline: Nanos,
    /// How much ends the wait.
    pub min_bytes: u32,
    /// Limit of the answer.
    pub max_bytes: u32,
}

/// One session, or the passing state of one request without a session.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its id; 0 for a request without a session.
    pub id: u32,
    pub(crate) open: bool,
    /// The connection that it was last used on.
    pub(crate) conn: ConnId,
    /// The follower, −1 for consumers and mirrors.
    pub replica: BrokerId,
    pub(crate) broker_epoch: BrokerEpoch,
    pub(crate) next_epoch: i32,
    pub(crate) isolation: Isolation,
    pub(crate) part_max_bytes: u32,
    pub(crate) slots: Chunked<SessionSlot>,
    pub(crate) queue: VecDeque<u32>,
    /// The request that waits.
    pub parked: Option<Parked>,
    pub(crate) timer_at: Option<Nanos>,
    /// Bytes announced since the request was parked.
    pub(crate) announced: u32,
    pub(crate) ready: bool,
    /// When it last fetched.
    pub fetched_at: Nanos,
    /// When it was opened.
    pub(crate) opened_at: Nanos,
}

impl Session {
    /// A follower of this cluster, which reads to the log end and takes part in the ISR.
    #[must_use]
    pub fn is_follower(&self) -> bool {
        self.replica.0 >= 0
    }
    /// The slots in use.
    pub fn slots(&self) -> impl Iterator<Item = &SessionSlot> {
        self.slots.iter().filter(|slot| slot.flags & SessionSlot::USED != 0)
    }
}

/// All sessions of a broker, by index. An id is the index and a generation, so that an old id finds nothing.
#[derive(Clone, Debug)]
pub struct Sessions {
    pub(crate) list: Vec<Session>,
    /// Lasting sessions, at most (`max.incremental.fetch.session.cache.slots`).
    pub(crate) limit: u32,
    /// Readers that are no replicas are not told where their log and this one part: what they say of their last epoch is not
    /// looked at, as before Fetch 12.
    pub(crate) divergence_untold: bool,
    /// How many there are.
    lasting: u32,
    free: Vec<u32>,
    generation: u32,
    /// Sessions whose parked request can be answered now.
    pub(crate) ready: Vec<u32>,
    /// An empty queue kept for its memory.
    pub(crate) spare: VecDeque<u32>,
    /// An answer that was not sent, emptied and kept for its memory: most looks find too little.
    pub(crate) blank: FetchResponse,
}

/// All sessions are worth more than the one that is asked for: its request is answered without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// Bits of an id that are the index.
const INDEX_BITS: u32 = 16;
/// A session that was used or opened within this time does not give way to one that is worth no more.
const KEPT: Nanos = Nanos::from_secs(120);

impl Default for Sessions {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            limit: 1_000,
            divergence_untold: false,
            lasting: 0,
            free: Vec::new(),
            generation: 0,
            ready: Vec::new(),
            spare: VecDeque::new(),
            blank: FetchResponse::default(),
        }
    }
}

impl Sessions {
    /// Whether there is room for one more session, and which one has to give way for that. A reader that vanished without
    /// closing its connection leaves a session behind, and nothing else ever ends it. KIP-227: first whoever did not fetch
    /// for two minutes; else whoever is worth less, followers before others, more partitions before fewer.
    pub(crate) fn room(&self, follower: bool, parts: usize, now: Nanos) -> Result<Option<usize>, NoRoom> {
        if self.lasting < self.limit {
            return Ok(None);
        }
        let lasting = || self.list.iter().enumerate().filter(|(_, s)| s.open && s.id != 0);
        let oldest = lasting().min_by_key(|(_, s)| s.fetched_at);
        if let Some((at, _)) = oldest.filter(|(_, s)| now.since(s.fetched_at) > KEPT) {
            return Ok(Some(at));
        }
        let worth = |s: &Session| (s.is_follower(), s.slots.len());
        let may_go = |s: &Session| now.since(s.opened_at) > KEPT || follower && !s.is_follower();
        let least = lasting().filter(|(_, s)| may_go(s)).map(|(at, s)| (worth(s), at)).min();
        least.filter(|(worth, _)| *worth <= (follower, parts)).map(|(_, at)| Some(at)).ok_or(NoRoom)
    }

    /// The session of an id.
    pub(crate) fn find(&self, id: u32) -> Option<usize> {
        let at = (id & ((1 << INDEX_BITS) - 1)) as usize;
        self.list.get(at).filter(|s| s.open && s.id == id && id != 0).map(|_| at)
    }

    /// Open sessions.
    pub fn iter(&self) -> impl Iterator<Item = &Session> {
        self.list.iter().filter(|s| s.open)
    }

    /// When the session of this index last fetched; zero without one.
    pub(crate) fn fetched_at(&self, index: u32) -> Nanos {
        self.list.get(index as usize).filter(|s| s.open).map_or(Nanos::ZERO, |s| s.fetched_at)
    }

    /// If a request of the session waits: makes it one that has no session, so that it ends with its answer.
    pub(crate) fn expires_with_answer(&mut self, at: usize) -> bool {
        let session = &mut self.list[at];
        if session.parked.is_none() || session.id == 0 {
            return false;
        }
        session.id = 0;
        self.lasting -= 1;
        true
    }

    /// Opens a session (or the passing state of one request).
    pub(crate) fn open(&mut self, conn: ConnId, lasting: bool, now: Nanos) -> usize {
        self.lasting += u32::from(lasting);
        let at = self.free.pop().map_or(self.list.len(), |at| at as usize);
        self.generation = (self.generation + 1) & 0xffff;
        let id = if lasting { ((self.generation.max(1)) << INDEX_BITS) | at as u32 } else { 0 };
        let session = Session {
            id,
            open: true,
            conn,
            replica: BrokerId::NONE,
            broker_epoch: BrokerEpoch(-1),
            next_epoch: 1,
            isolation: Isolation::ReadUncommitted,
            part_max_bytes: 0,
            slots: Chunked::new(),
            queue: VecDeque::new(),
            parked: None,
            timer_at: None,
            announced: 0,
            ready: false,
            fetched_at: Nanos::ZERO,
            opened_at: now,
        };
        if at == self.list.len() {
            self.list.push(session);
        } else {
            self.list[at] = session;
        }
        at
    }

    /// Frees a session's place; its watchers must be gone.
    pub(crate) fn close(&mut self, at: usize) {
        let session = &mut self.list[at];
        self.lasting -= u32::from(session.open && session.id != 0);
        session.open = false;
        session.parked = None;
        session.slots = Chunked::new();
        session.queue = VecDeque::new();
        self.free.push(at as u32);
    }

    /// Whether a request fits the session's epoch.
    pub(crate) fn check(&mut self, at: usize, epoch: i32) -> ErrorCode {
        let session = &mut self.list[at];
        if session.next_epoch != epoch || session.parked.is_some() {
            return ErrorCode::InvalidFetchSessionEpoch;
        }
        session.next_epoch = if epoch == i32::MAX { 1 } else { epoch + 1 };
        ErrorCode::None
    }

    /// Takes over what the request says of the session and of the partitions that it lists.
    pub(crate) fn take(&mut self, at: usize, conn: ConnId, request: &FetchRequest, now: Nanos) {
        let session = &mut self.list[at];
        session.conn = conn;
        session.replica = request.replica;
        session.broker_epoch = request.broker_epoch;
        session.isolation = request.isolation;
        session.fetched_at = now;
        let untold = self.divergence_untold && !session.is_follower();
        for part in &request.parts {
            session.list(&FetchPart {
                last_fetched_epoch: if untold { LeaderEpoch::NONE } else { part.last_fetched_epoch },
                ..*part
            });
        }
    }

    /// Notes news at a slot.
    pub(crate) fn touch(&mut self, watcher: Watcher, flags: u16, bytes: u32) {
        let session = &mut self.list[watcher.session as usize];
        let Some(slot) = session.slots.get_mut(watcher.slot as usize) else { return };
        slot.flags |= flags;
        if slot.flags & SessionSlot::DIRTY == 0 {
            slot.flags |= SessionSlot::DIRTY;
            session.queue.push_back(watcher.slot);
        }
        if flags & (SessionSlot::DATA | SessionSlot::URGENT) == 0 {
            return;
        }
        session.announced = session.announced.saturating_add(bytes);
        let Some(parked) = session.parked else { return };
        if !session.ready && (session.announced >= parked.min_bytes || flags & SessionSlot::URGENT != 0) {
            session.ready = true;
            self.ready.push(watcher.session);
        }
    }

    /// The leader state forgot this watcher; the next look makes it one again.
    pub(crate) fn unwatched(&mut self, watcher: Watcher) {
        if let Some(slot) = self.list[watcher.session as usize].slots.get_mut(watcher.slot as usize) {
            slot.flags &= !SessionSlot::WATCHING;
        }
    }

    /// As [`Self::touch`], for followers only or for the others only.
    #[inline]
    pub(crate) fn touch_if(&mut self, watcher: Watcher, followers: bool, flags: u16, bytes: u32) {
        if self.list[watcher.session as usize].is_follower() == followers {
            self.touch(watcher, flags, bytes);
        }
    }
}

impl Session {
    fn list(&mut self, part: &FetchPart) {
        /// A reader chooses its slots; this bounds what one request can make us allocate.
        const SLOTS_MAX: u32 = 1 << 20;
        if part.slot >= SLOTS_MAX {
            return;
        }
        let at = part.slot as usize;
        while self.slots.len() <= at {
            self.slots.push(SessionSlot::vacant());
        }
        let slot = &mut self.slots[at];
        let known = slot.flags & SessionSlot::USED != 0 && slot.partition == part.partition;
        let keep =
            slot.flags & (SessionSlot::DIRTY | if known { SessionSlot::WATCHING | SessionSlot::NEWS } else { 0 });
        let fresh = if known { 0 } else { SessionSlot::NEWS };
        let mirror = if part.mirror_leader_epoch == LeaderEpoch::NONE { 0 } else { SessionSlot::MIRROR };
        let moved = slot.fetch_offset != part.fetch_offset || !known;
        *slot = SessionSlot {
            partition: part.partition,
            flags: keep | fresh | mirror | SessionSlot::USED | SessionSlot::LISTED,
            leader_epoch: part.current_leader_epoch,
            last_fetched_epoch: part.last_fetched_epoch,
            aligned: part.aligned,
            fetch_offset: part.fetch_offset,
            hint: if moved && !known { ReadHint::default() } else { slot.hint },
        };
        self.part_max_bytes = part.max_bytes;
        if keep & SessionSlot::DIRTY == 0 {
            slot.flags |= SessionSlot::DIRTY;
            self.queue.push_back(part.slot);
        }
    }
}

impl SessionSlot {
    pub(crate) fn vacant() -> Self {
        Self {
            partition: PartitionIx(NONE),
            flags: 0,
            leader_epoch: LeaderEpoch::NONE,
            last_fetched_epoch: LeaderEpoch::NONE,
            aligned: LeaderEpoch::NONE,
            fetch_offset: Offset::UNKNOWN,
            hint: ReadHint::default(),
        }
    }
}
