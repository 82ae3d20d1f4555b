//! One direction of a link at work: who may send next, and when the last bit has left.
//!
//! Bandwidth is shared by round robin in bytes. The link admits work up to one *turn* (about 1 ms worth of bytes) ahead of
//! the clock, in the order it is offered; that costs no event. Beyond it, flows with bytes to send queue up, and whenever
//! less than a turn of work is left, the next flow may send one turn's worth of its byte stream. Streams can be cut
//! anywhere, so equal turns are equal shares, and a flow never waits longer than one turn per competitor.

use super::topology::{LinkSpec, SiteIx};
use mirrorlab_model::ids::Nanos;
use std::collections::VecDeque;

/// Payload of a full packet, and the header bytes around it (Ethernet, IPv4, TCP with timestamps).
pub(super) const SEGMENT: u32 = 1_448;
const HEADER: u32 = 66;

/// What one direction of a link has carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LinkCounters {
    /// Messages whose last byte left, retransmissions included.
    pub messages: u64,
    /// Bytes on the wire, headers included.
    pub bytes: u64,
    /// Packets lost by chance, and messages lost at a cut or a dead host.
    pub drops: u64,
    /// Most bytes that senders ever held back at one time, for want of bandwidth or window.
    pub queue_peak: u64,
    /// How long it was sending.
    pub busy: Nanos,
}

/// A flow that waits for its turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub slot: u32,
    pub stamp: u32,
    pub direction: u8,
}

#[derive(Clone, Debug)]
pub(super) struct Link {
    pub from: SiteIx,
    pub to: SiteIx,
    pub base: LinkSpec,
    pub spec: LinkSpec,
    /// Nanoseconds per byte in 2^-16, rounded up so that the bandwidth is never exceeded.
    byte_time: u64,
    /// Bytes of payload per turn.
    pub turn: u32,
    /// How long a turn takes.
    pub horizon: u64,
    /// When the last admitted bit has left.
    pub free_at: Nanos,
    pub waiting: VecDeque<Waiting>,
    pub armed: bool,
    /// Bytes that senders hold back.
    pub queued: u64,
    pub counters: LinkCounters,
}

impl Link {
    pub fn new(from: SiteIx, to: SiteIx, base: LinkSpec) -> Self {
        let mut link = Self {
            from,
            to,
            base,
            spec: base,
            byte_time: 0,
            turn: 0,
            horizon: 0,
            free_at: Nanos::ZERO,
            waiting: VecDeque::new(),
            armed: false,
            queued: 0,
            counters: LinkCounters::default(),
        };
        link.shape(base);
        link
    }

    /// Takes other properties from now on; what was admitted keeps its time.
    pub fn shape(&mut self, spec: LinkSpec) {
        let bits = spec.bits_per_second.max(1_000);
        self.spec = spec;
        self.byte_time = (u128::from(8_000_000_000_u64) << 16).div_ceil(u128::from(bits)) as u64;
        self.turn = (bits / 8_000).clamp(2 * u64::from(SEGMENT), 65_536) as u32;
        self.horizon = self.time_of(self.turn);
    }

    const fn time_of(&self, payload: u32) -> u64 {
        (wire_bytes(payload) * self.byte_time + 0xffff) >> 16
    }

    /// Whether a flow may send at once.
    pub fn open(&self, now: Nanos) -> bool {
        self.waiting.is_empty() && self.has_room(now)
    }

    pub fn has_room(&self, now: Nanos) -> bool {
        self.free_at.0 <= now.0 + self.horizon
    }

    /// Admits `payload` bytes (at most a turn); returns when the last bit has left.
    pub fn admit(&mut self, now: Nanos, payload: u32) -> Nanos {
        let time = self.time_of(payload);
        self.free_at = Nanos(self.free_at.0.max(now.0) + time);
        self.counters.bytes += wire_bytes(payload);
        self.counters.busy.0 += time;
        self.free_at
    }

    pub fn hold_back(&mut self, bytes: u32) {
        self.queued += u64::from(bytes);
        self.counters.queue_peak = self.counters.queue_peak.max(self.queued);
    }

    /// When the next turn may be given.
    pub fn next_turn(&self, now: Nanos) -> Nanos {
        Nanos(self.free_at.0.saturating_sub(self.horizon).max(now.0))
    }
}

/// Bytes on the wire for a stretch of payload: a header for every packet begun; an empty one is a bare packet.
pub(super) const fn wire_bytes(payload: u32) -> u64 {
    payload as u64 + packets(payload) as u64 * HEADER as u64
}

pub(super) const fn packets(payload: u32) -> u32 {
    if payload <= SEGMENT {
        1
    } else {
        payload.div_ceil(SEGMENT)
    }
}
