//! One direction of a connection: a byte stream with a window.
//!
//! The model of TCP, in the order in which it matters to the protocol above:
//! * Order. What is sent arrives in the order sent; a late packet holds up what follows.
//! * Loss is delay. A lost packet with three or more behind it in its burst costs one round trip (fast retransmit), any
//!   other the retransmission timeout, doubled for each loss of the retransmission itself.
//! * Window. Bytes in flight never exceed the lesser of the receive buffer and the congestion window. The latter starts
//!   at ten segments, doubles per round trip up to the threshold, then grows by a segment per round trip (Reno, RFC 5681);
//!   it grows only while it limits (RFC 7661) and decays while idle (RFC 2861).
//! * Silence. When packets vanish (cut, dead host), everything undelivered is sent again from the last message
//!   boundary once a retransmission comes through; retransmissions back off exponentially.
//!
//! Acknowledgements cost no bandwidth and no event: their arrival is computed when a burst leaves and looked at when the
//! sender wants to know. They do not arrive while the way back is cut.

use super::link::{packets, Link, SEGMENT};
use super::topology::{Jitter, Tcp};
use super::Laws;
use crate::rng::Concern;
use mirrorlab_model::ids::Nanos;
use mirrorlab_model::wire::messages::Message;
use std::collections::VecDeque;

pub(super) const NEVER: Nanos = Nanos(u64::MAX);

/// What travels.
#[derive(Clone, Debug)]
pub(super) enum Parcel {
    Message(Message),
    /// The end of the handshake for the receiving end.
    Opened,
    /// An orderly end.
    Fin,
    /// An abrupt end.
    Reset,
    /// The answer of a host where nobody listens.
    Refused,
    /// The receiving end's own kernel gives up an attempt to connect. Crosses no wire.
    ConnectTimeout,
    /// The receiving end's own kernel gives up a connection. Crosses no wire.
    TimedOut,
}

impl Parcel {
    pub const fn is_local(&self) -> bool {
        matches!(self, Self::ConnectTimeout | Self::TimedOut)
    }

    pub const fn is_end(&self) -> bool {
        !matches!(self, Self::Message(_) | Self::Opened)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Item {
    pub parcel: Parcel,
    /// When it arrives, once launched; before that, the delay that a rule adds.
    pub due: Nanos,
    pub bytes: u32,
}

/// A stretch of bytes that is not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub ack_due: Nanos,
    pub bytes: u32,
}

/// Whether acknowledgements and window come back to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acks {
    Flow,
    /// The way back is cut, or the receiving host is dead or frozen.
    Lost,
    /// The receiving process is paused: its kernel acknowledges but its buffer fills.
    WindowShut,
}

/// Why a flow stopped sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Everything,
    TurnOver,
    WindowFull,
}

#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// In order: `launched` items that are on their way, then those whose last byte has not left.
    pub queue: VecDeque<Item>,
    pub flight: VecDeque<Flight>,
    pub launched: u32,
    /// Bytes of the first item not launched that have not left.
    pub head_left: u32,
    pub in_flight: u32,
    pub congestion: u32,
    pub threshold: u32,
    pub window: u32,
    pub last_arrival: Nanos,
    pub last_sent: Nanos,
    /// When the armed events are due.
    pub deliver_at: Nanos,
    pub pump_at: Nanos,
    pub stalled_since: Nanos,
    /// Names the stream of its draws: connection and direction.
    pub key: u64,
    /// Bursts sent.
    pub ordinal: u64,
    pub link: u32,
    /// 0: not stalled. Else which retransmission is next.
    pub retry: u8,
    pub acks: Acks,
    /// Packets of this direction are lost.
    pub cut: bool,
    /// The sending host is frozen or without power.
    pub silent: bool,
    /// The kernel that sent it is no more: what gets lost is not sent again.
    pub gone: bool,
    /// Nothing may leave before the handshake is over.
    pub gated: bool,
    /// An end of stream was queued; nothing follows it.
    pub ended: bool,
    pub waiting: bool,
}

impl Flow {
    pub fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            flight: VecDeque::new(),
            launched: 0,
            head_left: 0,
            in_flight: 0,
            congestion: 0,
            threshold: u32::MAX,
            window: 0,
            last_arrival: Nanos::ZERO,
            last_sent: Nanos::ZERO,
            deliver_at: NEVER,
            pump_at: NEVER,
            stalled_since: Nanos::ZERO,
            key: 0,
            ordinal: 0,
            link: 0,
            retry: 0,
            acks: Acks::Flow,
            cut: false,
            silent: false,
            gone: false,
            gated: false,
            ended: false,
            waiting: false,
        }
    }

    /// A fresh stream in the memory of an old one.
    pub fn renew(&mut self, key: u64, link: u32, window: u32, tcp: &Tcp) {
        let (queue, flight) = (std::mem::take(&mut self.queue), std::mem::take(&mut self.flight));
        debug_assert!(queue.is_empty() && flight.is_empty());
        let window = window.max(SEGMENT);
        let congestion = initial_window(tcp).min(window);
        *self = Self { queue, flight, key, link, window, congestion, ..Self::new() };
    }

    pub fn has_unsent(&self) -> bool {
        (self.launched as usize) < self.queue.len()
    }

    /// Bytes that have not left.
    fn unsent_bytes(&self) -> u64 {
        let whole: u64 = self.queue.iter().skip(self.launched as usize + 1).map(|item| u64::from(item.bytes)).sum();
        whole + if self.has_unsent() { u64::from(self.head_left) } else { 0 }
    }

    pub fn push(&mut self, item: Item, link: &mut Link) {
        if !self.has_unsent() {
            self.head_left = item.bytes;
        }
        link.hold_back(item.bytes);
        self.queue.push_back(item);
    }

    /// Forgets what has not left.
    pub fn drop_unsent(&mut self, link: &mut Link) {
        link.queued -= self.unsent_bytes();
        self.queue.truncate(self.launched as usize);
        self.head_left = 0;
    }

    /// Forgets everything.
    pub fn clear(&mut self, link: &mut Link) {
        self.drop_unsent(link);
        self.queue.clear();
        self.flight.clear();
        self.launched = 0;
        self.in_flight = 0;
        self.retry = 0;
        self.deliver_at = NEVER;
        self.pump_at = NEVER;
    }

    /// Takes account of the acknowledgements that have come in.
    pub fn reclaim(&mut self, now: Nanos) {
        if self.acks != Acks::Flow {
            return;
        }
        while let Some(&Flight { ack_due, bytes }) = self.flight.front() {
            if ack_due > now {
                break;
            }
            self.flight.pop_front();
            let limited = self.in_flight >= self.congestion / 2;
            self.in_flight -= bytes;
            if limited {
                let growth = if self.congestion < self.threshold {
                    bytes
                } else {
                    (u64::from(SEGMENT) * u64::from(bytes)).div_ceil(u64::from(self.congestion)) as u32
                };
                self.congestion = self.congestion.saturating_add(growth).min(self.window);
            }
        }
    }

    /// Halves the congestion window for every retransmission timeout of silence, down to where it began.
    pub fn decay(&mut self, now: Nanos, rto: Nanos, tcp: &Tcp) {
        let mut idle = now.since(self.last_sent).0;
        if self.in_flight > 0 || idle <= rto.0 {
            return;
        }
        let least = initial_window(tcp).min(self.window);
        while idle > rto.0 && self.congestion > least {
            self.congestion = (self.congestion / 2).max(least);
            idle -= rto.0;
        }
    }

    /// Puts up to `budget` bytes on the link, as far as the window allows.
    pub fn transmit(&mut self, now: Nanos, mut budget: u32, link: &mut Link, back: Nanos, laws: &Laws) -> Sent {
        loop {
            let Some(item) = self.queue.get_mut(self.launched as usize) else { return Sent::Everything };
            if budget == 0 {
                return Sent::TurnOver;
            }
            let room = self.window.min(self.congestion).saturating_sub(self.in_flight);
            if room < self.head_left.min(SEGMENT) {
                return Sent::WindowFull;
            }
            let take = self.head_left.min(room).min(budget);
            let departed = link.admit(now, take);
            let ordinal = self.ordinal;
            self.ordinal += 1;
            let mut arrival = departed + link.spec.latency;
            if link.spec.jitter != Jitter::None {
                arrival.0 += link.spec.jitter.delay(laws.seed.draw(Concern::NetLatency, self.key, ordinal));
            }
            let loss = link.spec.loss;
            if !loss.is_never() {
                let pace = Pace { round_trip: link.spec.latency + back, in_flight: self.in_flight };
                let hit = lose(self.key, ordinal, take, link, laws, pace);
                arrival = arrival + hit.delay;
                if let Some(congestion) = hit.congestion {
                    self.threshold = (self.in_flight / 2).max(2 * SEGMENT);
                    self.congestion = congestion.min(self.window);
                }
            }
            budget -= take;
            self.head_left -= take;
            link.queued -= u64::from(take);
            let whole = self.head_left == 0;
            if whole {
                arrival = arrival + item.due;
            }
            arrival = arrival.max(self.last_arrival);
            self.last_arrival = arrival;
            self.last_sent = now;
            if take > 0 {
                self.in_flight += take;
                self.flight.push_back(Flight { ack_due: arrival + back, bytes: take });
            }
            if whole {
                item.due = arrival;
                self.launched += 1;
                link.counters.messages += 1;
                if let Some(next) = self.queue.get(self.launched as usize) {
                    self.head_left = next.bytes;
                }
            }
        }
    }

    /// Everything undelivered is to be sent again, slowly at first. Returns how many messages were lost.
    pub fn go_back(&mut self, link: &mut Link) -> u32 {
        let lost = self.launched;
        link.queued -= self.unsent_bytes();
        for item in self.queue.iter_mut().take(lost as usize) {
            item.due = Nanos::ZERO;
        }
        self.launched = 0;
        self.head_left = self.queue.front().map_or(0, |item| item.bytes);
        let unsent = self.unsent_bytes();
        link.queued += unsent;
        link.counters.queue_peak = link.counters.queue_peak.max(link.queued);
        link.counters.drops += u64::from(lost);
        self.threshold = (self.in_flight / 2).max(2 * SEGMENT);
        self.congestion = SEGMENT;
        self.flight.clear();
        self.in_flight = 0;
        self.deliver_at = NEVER;
        lost
    }
}

fn initial_window(tcp: &Tcp) -> u32 {
    tcp.initial_segments.max(1).saturating_mul(SEGMENT)
}

/// The retransmission timeout for a round trip.
pub(super) fn rto(tcp: &Tcp, round_trip: Nanos) -> Nanos {
    Nanos(tcp.rto_min.0.max(round_trip.0.saturating_mul(2)))
}

#[derive(Clone, Copy)]
struct Pace {
    round_trip: Nanos,
    in_flight: u32,
}

struct Loss {
    delay: Nanos,
    /// The congestion window after it.
    congestion: Option<u32>,
}

/// Whether one of the packets of a burst is lost, and what that costs. The window shrinks when the burst leaves, not a
/// round trip later when a real sender would learn of it.
fn lose(key: u64, ordinal: u64, bytes: u32, link: &mut Link, laws: &Laws, pace: Pace) -> Loss {
    let count = packets(bytes);
    let chance = link.spec.loss;
    let mut draws = laws.seed.stream(Concern::NetLoss, key, ordinal);
    let bits = draws.next();
    if (bits >> 32) < chance.all_miss(count) {
        return Loss { delay: Nanos::ZERO, congestion: None };
    }
    link.counters.drops += 1;
    let place = (((bits & 0xffff_ffff) * u64::from(count)) >> 32) as u32;
    if count - place > 3 {
        let half = (pace.in_flight / 2).max(2 * SEGMENT);
        return Loss { delay: pace.round_trip, congestion: Some(half) };
    }
    let mut wait = rto(&laws.tcp, pace.round_trip);
    let mut delay = wait;
    for _ in 0..8 {
        if !chance.hits(draws.next()) {
            break;
        }
        link.counters.drops += 1;
        wait = Nanos((wait.0 * 2).min(laws.tcp.rto_max.0.max(wait.0)));
        delay = delay + wait;
    }
    Loss { delay, congestion: Some(SEGMENT) }
}
