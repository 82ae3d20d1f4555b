//! What is done to a run by hand, by a test in Rust, beside its timeline.
//!
//! Whatever is asked for is done by an event of the world of its own, at the instant at which it was asked: so the checks see
//! what comes of it like anything else, and the trace hash covers it.

use crate::faults::{undo, Undo};
use crate::format::action::Action;
use crate::run::{Phase, Run};
use mirrorlab_model::client::commands::Command;
use mirrorlab_model::ids::Nanos;
use mirrorlab_reports::record::Band;
use mirrorlab_sim::pump::Drive;
use std::collections::BTreeMap;

/// Longest that a safety phase is held open for a test's body, from its end by the plan.
pub const HELD_AT_MOST: Nanos = Nanos::from_secs(3_600);

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) enum Wish {
    /// What a step of the timeline does; durations in it do not count.
    Act(Action),
    /// An order to the operator's client of a cluster.
    Order(u8, Command),
    /// An end to what an earlier wish struck.
    End(u32),
}

/// What became of a wish.
#[derive(Clone, Debug, Default)]
pub(crate) struct Granted {
    /// How what it struck ends.
    undo: Vec<Undo>,
    /// The orders that it gave.
    pub(crate) orders: Vec<u32>,
    band: Option<usize>,
}

/// Wishes of a run, by number.
#[derive(Debug, Default)]
pub(crate) struct Hands {
    asked: Vec<(u32, Wish)>,
    granted: BTreeMap<u32, Granted>,
    count: u32,
    is_holding: bool,
}

impl Run {
    /// Keeps the safety phase open, or lets it end.
    pub(crate) fn hold(&mut self, hold: bool) {
        self.hands.is_holding = hold;
    }

    /// Whether the safety phase stays open beyond its time.
    pub(crate) fn is_held(&self) -> bool {
        self.hands.is_holding && self.now() < self.safety_end() + HELD_AT_MOST
    }

    /// Whether the clusters stand and the topics exist.
    pub(crate) fn is_in_safety(&self) -> bool {
        self.phase() == Phase::SafetyEnd
    }

    /// Asks for something to be done now; gives its number.
    pub(crate) fn wish(&mut self, wish: Wish) -> u32 {
        self.hands.count += 1;
        self.hands.asked.push((self.hands.count, wish));
        self.look_at_hands(self.now());
        self.hands.count
    }

    /// What became of a wish, once it was done.
    pub(crate) fn granted(&self, wish: u32) -> Option<&Granted> {
        self.hands.granted.get(&wish)
    }

    pub(crate) fn do_by_hand(&mut self) {
        for (number, wish) in std::mem::take(&mut self.hands.asked) {
            let mut granted = Granted::default();
            match wish {
                Wish::Act(action) => {
                    let done = self.strike_by_hand(&action);
                    self.tell(done.text.clone());
                    if !done.undo.is_empty() {
                        let now = self.now().0;
                        granted.band = Some(self.bands.len());
                        self.bands.push(Band { from_ns: now, to_ns: now, label: done.text });
                    }
                    granted.undo = done.undo;
                    granted.orders = done.orders;
                }
                Wish::Order(cluster, command) => {
                    self.tell(format!("operator orders {}", command.name()));
                    granted.orders.push(self.lab_mut().order(cluster, command));
                }
                Wish::End(earlier) => self.end_wish(earlier),
            }
            self.hands.granted.insert(number, granted);
        }
    }

    fn end_wish(&mut self, number: u32) {
        let Some(granted) = self.hands.granted.get_mut(&number) else { return };
        let (ends, band) = (std::mem::take(&mut granted.undo), granted.band);
        for end in &ends {
            undo(self.lab_mut(), end);
        }
        let now = self.now().0;
        if let Some(band) = band.filter(|_| !ends.is_empty()) {
            self.bands[band].to_ns = now;
            let text = format!("{} ends", self.bands[band].label);
            self.tell(text);
        }
    }

    /// Ends whatever was struck by hand.
    pub(crate) fn end_by_hand(&mut self) {
        let all: Vec<u32> = self.hands.granted.keys().copied().collect();
        all.into_iter().for_each(|number| self.end_wish(number));
    }
}
