//! What all client processes share at their door: one lane, an inbox that is worked off in one go (the client's poll loop),
//! and one timer at a time, however many deadlines stand behind it.

use crate::ids::{Nanos, Now};
use crate::ports::{Cx, Input, Lane, Timer};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// The only lane of a client process: its poll loop.
pub const LANE: Lane = Lane(0);

/// Inputs that wait for the next run. One wake stands for all of them: a poll takes what is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inbox {
    queue: VecDeque<Input>,
    woken: bool,
}

impl Inbox {
    /// Files an input and asks for a run, unless one is asked for already.
    pub fn file(&mut self, input: Input, cx: &mut Cx) {
        self.queue.push_back(input);
        self.wake(cx);
    }
    /// Asks for a run without an input.
    pub fn wake(&mut self, cx: &mut Cx) {
        if !self.woken {
            self.woken = true;
            cx.wake(LANE);
        }
    }
    /// The run began: the next input asks for another.
    pub fn begin(&mut self) {
        self.woken = false;
    }
    /// The next input of this run.
    pub fn take(&mut self) -> Option<Input> {
        self.queue.pop_front()
    }
}

/// The timers of a process, as few as can be: another is armed only when it is to ring before all that stand. A timer cannot
/// be taken back, so one that turns out too early just rings; what is due is looked at then, and armed for again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alarm {
    /// Readings of the timers that stand, latest first: each was armed because it was earlier than the one before it.
    standing: SmallVec<[Nanos; 4]>,
}

impl Alarm {
    /// A timer fired: whether it is one of this life of the process.
    pub fn rings(&mut self, timer: Timer) -> bool {
        let before = self.standing.len();
        self.standing.retain(|at| at.0 != timer.0);
        self.standing.len() < before
    }
    /// Makes sure that the process is woken by `at`.
    pub fn want(&mut self, at: Option<Nanos>, now: Now, cx: &mut Cx) {
        let Some(at) = at else { return };
        let at = Nanos(at.0.max(now.mono.0 + 1));
        if self.standing.last().is_none_or(|&first| at < first) {
            self.standing.push(at);
            cx.set_timer(Timer(at.0), at);
        }
    }
}

/// The earlier of two deadlines, where none is never.
#[must_use]
pub fn earlier(a: Option<Nanos>, b: Option<Nanos>) -> Option<Nanos> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// `first * 2^step`, at most `max`: Kafka's exponential backoff without its jitter (KIP-580).
#[must_use]
pub fn backoff(first: Nanos, max: Nanos, step: u32) -> Nanos {
    let factor = 1u64.checked_shl(step.min(32)).unwrap_or(u64::MAX);
    Nanos(first.0.saturating_mul(factor).min(max.0))
}
