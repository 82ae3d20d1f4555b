//! How a run is driven to its end, or part of the way.

use super::{End, Run};
use crate::recorder::Recorder;
use mirrorlab_model::ids::Nanos;
use mirrorlab_reports::record::Record;
use mirrorlab_sim::pump::{pump, Drive};
use std::ops::ControlFlow;

impl Run {
    /// Runs to the end, paced by madsim's clock, and gives the record.
    pub async fn to_end(&mut self) -> Record {
        match pump(self, Nanos(u64::MAX)).await {
            ControlFlow::Break(end) => self.record(end),
            ControlFlow::Continue(()) => self.record(End::default()),
        }
    }

    /// Runs to the end at full speed and gives the record; `None` if it takes more events than so many, or lasts longer.
    pub fn to_end_within(&mut self, events: u64, until: Nanos) -> Option<Record> {
        while self.next_time().is_some() {
            if self.lab.world.counts().events >= events || self.now() > until {
                return None;
            }
            if let ControlFlow::Break(end) = self.step() {
                return Some(self.record(end));
            }
        }
        Some(self.record(End::default()))
    }

    /// Runs to the end at full speed, shows what each event left to `look`, and gives the record.
    pub fn to_end_watched(&mut self, mut look: impl FnMut(&Self)) -> Record {
        while self.next_time().is_some() {
            let end = self.step();
            look(self);
            if let ControlFlow::Break(end) = end {
                return self.record(end);
            }
        }
        self.record(End::default())
    }

    /// Takes events up to an instant; false if the run ended before it.
    pub fn go_to(&mut self, until: Nanos) -> bool {
        while self.next_time().is_some_and(|at| at < until) {
            if self.step().is_break() {
                return false;
            }
        }
        self.next_time().is_some()
    }

    /// Notes from now on what leads to what ([`mirrorlab_sim::causes`]). The history stays the same.
    pub fn note_causes(&mut self) {
        self.lab.world.note_causes();
    }

    /// Lets every draw from now on come from another seed. The steps of the plan stay.
    pub fn reseed(&mut self, seed: u64) {
        self.lab.world.reseed(seed);
    }

    /// Gives the run up after so many events: what it would have come to is unknown.
    pub fn limit_events(&mut self, most: u64) {
        self.events_max = most;
    }

    /// Writes every trace event down from now on.
    pub fn record_trace(&mut self, recorder: Recorder) {
        self.recorder = Some(recorder);
    }

    /// Takes the recorder back, to be finished.
    pub fn take_recorder(&mut self) -> Option<Recorder> {
        self.recorder.take()
    }

    /// Takes one event; false at the end.
    pub fn single_step(&mut self) -> bool {
        self.next_time().is_some() && self.step().is_continue()
    }
}
