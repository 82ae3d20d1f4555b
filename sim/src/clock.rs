//! What a node believes the time is: offset, drift and jumps against the world's time.
//!
//! The protocol sees its node's clock only (`ports::Cx`, `Now`). The monotonic reading may run fast or slow and never jumps;
//! the wall reading runs with it and jumps as well. Arithmetic is exact integers, so that a timer set for a reading fires at
//! the first world instant at which the clock shows it: never early, never a nanosecond late.

use mirrorlab_model::ids::{Nanos, Now};

/// Parts per billion in one.
const BILLION: i64 = 1_000_000_000;
/// The fastest and slowest clock: half and one and a half times the world's pace.
pub const MAX_DRIFT_PPB: i64 = BILLION / 2;
/// What wall clocks read at the start of a run unless told otherwise: 2026-01-01 00:00 UTC.
pub const WALL_START_MS: i64 = 1_767_225_600_000;

/// The clock of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// World time of the last change of drift.
    anchor_world: u64,
    /// Monotonic reading then.
    anchor_mono: u64,
    drift_ppb: i64,
    /// Wall reading minus monotonic reading, in nanoseconds.
    wall_minus_mono: i64,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(0, 0)
    }
}

impl Clock {
    /// A clock whose wall reading is `offset_ms` ahead of [`WALL_START_MS`] at the start of the run, and that gains
    /// `drift_ppb` nanoseconds a second (bounded by [`MAX_DRIFT_PPB`]).
    #[must_use]
    pub fn new(offset_ms: i64, drift_ppb: i64) -> Self {
        Self {
            anchor_world: 0,
            anchor_mono: 0,
            drift_ppb: drift_ppb.clamp(-MAX_DRIFT_PPB, MAX_DRIFT_PPB),
            wall_minus_mono: WALL_START_MS.saturating_add(offset_ms).saturating_mul(1_000_000),
        }
    }

    /// What the clock shows at a world instant. Before the last change of drift it shows what it showed then.
    #[inline]
    #[must_use]
    pub fn now(&self, world: Nanos) -> Now {
        let mono = self.mono(world);
        let wall = self.wall_minus_mono.saturating_add(i64::try_from(mono.0).unwrap_or(i64::MAX));
        Now { mono, wall_ms: wall.div_euclid(1_000_000) }
    }

    /// The monotonic reading at a world instant.
    #[inline]
    #[must_use]
    pub fn mono(&self, world: Nanos) -> Nanos {
        let elapsed = world.0.saturating_sub(self.anchor_world);
        if self.drift_ppb == 0 {
            return Nanos(self.anchor_mono.saturating_add(elapsed));
        }
        // floor(elapsed * (1 + ppb/10^9)) = elapsed + floor(elapsed * ppb / 10^9); 64 bits do for hours, 128 for ever.
        let gained = match i64::try_from(elapsed).ok().and_then(|e| e.checked_mul(self.drift_ppb)) {
            Some(product) => i128::from(product.div_euclid(BILLION)),
            None => (i128::from(elapsed) * i128::from(self.drift_ppb)).div_euclid(i128::from(BILLION)),
        };
        let mono = i128::from(self.anchor_mono) + i128::from(elapsed) + gained;
        Nanos(u64::try_from(mono).unwrap_or(u64::MAX))
    }

    /// The first world instant at which the monotonic reading is at least `mono`. Valid until the drift changes: whoever
    /// holds a timer over such a change asks again when it comes up early.
    #[inline]
    #[must_use]
    pub fn world_at(&self, mono: Nanos) -> Nanos {
        let ahead = mono.0.saturating_sub(self.anchor_mono);
        if self.drift_ppb == 0 || ahead == 0 {
            return Nanos(self.anchor_world.saturating_add(ahead));
        }
        // floor(x * pace / 10^9) >= ahead exactly when x >= ceil(ahead * 10^9 / pace).
        let pace = (BILLION + self.drift_ppb).unsigned_abs();
        let elapsed = (u128::from(ahead) * u128::from(BILLION.unsigned_abs())).div_ceil(u128::from(pace));
        Nanos(u64::try_from(elapsed).unwrap_or(u64::MAX).saturating_add(self.anchor_world))
    }

    /// From this world instant on the clock gains `drift_ppb` a second. The reading goes on from where it is.
    pub fn set_drift(&mut self, world: Nanos, drift_ppb: i64) {
        self.anchor_mono = self.mono(world).0;
        self.anchor_world = self.anchor_world.max(world.0);
        self.drift_ppb = drift_ppb.clamp(-MAX_DRIFT_PPB, MAX_DRIFT_PPB);
    }

    /// The wall reading jumps by `by_ms`; the monotonic one does not.
    pub fn jump(&mut self, by_ms: i64) {
        self.wall_minus_mono = self.wall_minus_mono.saturating_add(by_ms.saturating_mul(1_000_000));
    }

    /// How many nanoseconds the clock gains a second.
    #[must_use]
    pub const fn drift_ppb(&self) -> i64 {
        self.drift_ppb
    }
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;
