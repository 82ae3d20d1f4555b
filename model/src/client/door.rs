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
struct Inbox {
    queue: VecDeque<Input>,
    woken: bool,
}

impl Inbox {
    /// Files an input and asks for a run, unless one is asked for already.
    fn file(&mut self, input: Input, cx: &mut Cx) {
        self.queue.push_back(input);
        self.wake(cx);
    }
    /// Asks for a run without an input.
    fn wake(&mut self, cx: &mut Cx) {
        if !self.woken {
            self.woken = true;
            cx.wake(LANE);
        }
    }
    /// The run began: the next input asks for another.
    fn begin(&mut self) {
        self.woken = false;
    }
    /// The next input of this run.
    fn take(&mut self) -> Option<Input> {
        self.queue.pop_front()
    }
}

/// The timers of a process, as few as can be: another is armed only when it is to ring before all that stand. A timer cannot
/// be taken back, so one that turns out too early just rings; what is due is looked at then, and armed for again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Alarm {
    /// Readings of the timers that stand, latest first: each was armed because it was earlier than the one before it.
    standing: SmallVec<[Nanos; 4]>,
}

impl Alarm {
    /// A timer fired: whether it is one of this life of the process.
    fn rings(&mut self, timer: Timer) -> bool {
        let before = self.standing.len();
        self.standing.retain(|at| at.0 != timer.0);
        self.standing.len() < before
    }
    /// Makes sure that the process is woken by `at`.
    fn want(&mut self, at: Option<Nanos>, now: Now, cx: &mut Cx) {
        let Some(at) = at else { return };
        let at = Nanos(at.0.max(now.mono.0 + 1));
        if self.standing.last().is_none_or(|&first| at < first) {
            self.standing.push(at);
            cx.set_timer(Timer(at.0), at);
        }
    }
}

/// The door of a client process: inputs wait for the next poll, and one timer at a time asks for one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Door {
    inbox: Inbox,
    alarm: Alarm,
}

impl Door {
    /// Files an input; a timer of an earlier life, or one that was taken for another, is none.
    pub fn accept(&mut self, input: Input, cx: &mut Cx) {
        match input {
            Input::Timer(timer) if !self.alarm.rings(timer) => {}
            input => self.inbox.file(input, cx),
        }
    }
    /// Asks for a poll without an input.
    pub fn wake(&mut self, cx: &mut Cx) {
        self.inbox.wake(cx);
    }
    /// Makes sure that there is a poll by `at`.
    pub fn want(&mut self, at: Option<Nanos>, now: Now, cx: &mut Cx) {
        self.alarm.want(at, now, cx);
    }
    /// A poll begins: what each input means, in order.
    pub fn poll<T>(&mut self, mut on_input: impl FnMut(Input) -> Option<T>) -> Vec<T> {
        self.inbox.begin();
        let mut news = Vec::new();
        while let Some(input) = self.inbox.take() {
            news.extend(on_input(input));
        }
        news
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

/// Kafka's exponential backoff without its jitter (KIP-580).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first wait; each further one is twice as long.
    pub first: Nanos,
    /// No wait is longer.
    pub max: Nanos,
}

impl Backoff {
    /// `first * 2^step`, at most `max`.
    #[must_use]
    pub fn after(self, step: u32) -> Nanos {
        let factor = 1u64.checked_shl(step.min(32)).unwrap_or(u64::MAX);
        Nanos(self.first.0.saturating_mul(factor).min(self.max.0))
    }
}
