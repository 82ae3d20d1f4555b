//! The load generator as plain parameters and counters: how many records are due at an instant, and to which partitions.
//!
//! The schedule is an exact rational: record `n` is due at `start + ceil(n * per / records)`, so rates neither drift nor
//! round. Records are taken at linger ticks (multiples of the linger from the start); ticks at which nothing is due are
//! skipped, so one timer serves any number of partitions and the work is that of the records due.

use crate::ids::Nanos;
use crate::ports::Entropy;

/// How often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// `records` per `per` over all partitions: `Total { records: 2000, per: 1 s }`.
    Total {
        /// How many.
        records: u64,
        /// In which time.
        per: Nanos,
    },
    /// One record per partition and period, the partitions spread evenly over the period. Goes with [`Choice::RoundRobin`],
    /// whatever the config says.
    EachPartition {
        /// The period.
        period: Nanos,
    },
}

/// Which partition a record goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// One after the other.
    RoundRobin,
    /// By a draw.
    Uniform,
    /// The first partition gets this share (in millionths) by a draw, the rest is uniform over all.
    HotShare {
        /// Millionths.
        ppm: u32,
    },
}

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneratorConfig {
    /// How often.
    pub rate: Rate,
    /// Where to.
    pub choice: Choice,
    /// Bytes of a record's value; an identity needs 16.
    pub record_bytes: u32,
    /// Distinct keys per partition; 0: records have no key. A key is 8 bytes: partition number and key number.
    pub keys: u32,
    /// Each record of so many has no value (a tombstone); 0: none.
    pub tombstone_every: u32,
    /// Not before this reading of the node's monotonic clock. The schedule starts here, or when the partitions are known.
    pub start: Nanos,
    /// Nothing new from this reading on.
    pub stop: Option<Nanos>,
    /// At most so many records.
    pub limit: Option<u64>,
}

/// The concern of partition draws ("PART").
const PICK: u64 = 0x5041_5254;

/// Where the load stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generator {
    config: GeneratorConfig,
    linger: Nanos,
    /// When the schedule started; none before the partitions are known.
    origin: Option<Nanos>,
    /// Records and time of the rate as it stands.
    records: u64,
    per: Nanos,
    /// Records taken since `origin`.
    taken: u64,
    /// Records taken in all.
    total: u64,
    partitions: u32,
    cursor: u32,
    /// Records ordered beside the schedule and not taken yet.
    extra: u64,
}

impl Generator {
    /// A load that has not started.
    #[must_use]
    pub fn new(config: GeneratorConfig, linger: Nanos) -> Self {
        Self {
            config,
            linger,
            origin: None,
            records: 0,
            per: Nanos(1),
            taken: 0,
            total: 0,
            partitions: 0,
            cursor: 0,
            extra: 0,
        }
    }

    /// There are `partitions` from now on. A rate per partition starts a new schedule, a total rate goes on.
    pub fn set_partitions(&mut self, partitions: u32, now: Nanos) {
        if partitions == self.partitions || partitions == 0 {
            return;
        }
        self.partitions = partitions;
        let restart = match self.config.rate {
            Rate::Total { records, per } => {
                (self.records, self.per) = (records, Nanos(per.0.max(1)));
                self.origin.is_none()
            }
            Rate::EachPartition { period } => {
                (self.records, self.per) = (u64::from(partitions), Nanos(period.0.max(1)));
                true
            }
        };
        if restart {
            self.origin = Some(now.max(self.config.start));
            self.taken = 0;
            self.cursor = 0;
        }
    }

    /// Records of the schedule due by `at`, counted from its start, stop and limit applied.
    fn due_by(&self, at: Nanos) -> u64 {
        let Some(origin) = self.origin else { return 0 };
        // A record due at the very stop is not sent any more.
        let at = self.config.stop.map_or(at, |stop| at.min(Nanos(stop.0.saturating_sub(1))));
        if at < origin || self.records == 0 {
            return 0;
        }
        let elapsed = u128::from(at.0 - origin.0);
        let due = elapsed * u128::from(self.records) / u128::from(self.per.0);
        let due = u64::try_from(due).unwrap_or(u64::MAX).saturating_add(1); // record 0 is due at the start itself
        self.config.limit.map_or(due, |limit| due.min(limit.saturating_sub(self.total - self.taken)))
    }

    /// How many records wait to be taken at `now`; none while there are no partitions for them.
    #[must_use]
    pub fn due(&self, now: Nanos) -> u64 {
        if self.partitions == 0 {
            return 0;
        }
        self.due_by(now).saturating_sub(self.taken) + self.extra
    }

    /// So many records more are due now, whatever the schedule says.
    pub fn add(&mut self, records: u64) {
        self.extra += records;
    }

    /// Whether nothing will ever be due again.
    #[must_use]
    pub fn is_over(&self, now: Nanos) -> bool {
        let stopped = self.config.stop.is_some_and(|stop| now >= stop) && self.due(now) == 0;
        if self.extra > 0 {
            return false;
        }
        stopped
            || self.config.limit.is_some_and(|limit| self.total >= limit)
            || (self.origin.is_some() && self.records == 0)
    }

    /// The first linger tick after `now` at which a record is due. None if there is none, or the partitions are not known.
    #[must_use]
    pub fn next_tick(&self, now: Nanos) -> Option<Nanos> {
        let origin = self.origin?;
        if self.extra > 0 {
            // Ordered before the partitions were known.
            return Some(Nanos(now.0 + 1));
        }
        if self.is_over(now) || self.records == 0 {
            return None;
        }
        let next = u128::from(self.taken) * u128::from(self.per.0);
        let next = next.div_ceil(u128::from(self.records));
        let due = Nanos(origin.0.saturating_add(u64::try_from(next).unwrap_or(u64::MAX)));
        if self.config.stop.is_some_and(|stop| due >= stop) {
            return None;
        }
        let due = due.max(Nanos(now.0 + 1));
        if self.linger.0 == 0 {
            return Some(due);
        }
        let tick = Nanos(origin.0 + (due.0 - origin.0.min(due.0)).div_ceil(self.linger.0) * self.linger.0);
        // What is due before the stop goes out at the stop, not after it.
        Some(self.config.stop.map_or(tick, |stop| tick.min(stop)))
    }

    /// Takes `count` records and says for each slot how many go there, as `(slot, how many)`; a slot may come repeatedly.
    pub fn take(&mut self, count: u64, entropy: Entropy, mut to: impl FnMut(u32, u32)) {
        if self.partitions == 0 {
            return;
        }
        let first = self.total;
        let beside = count.min(self.extra);
        self.extra -= beside;
        self.taken += count - beside;
        self.total += count - beside;
        let choice = match self.config.rate {
            Rate::EachPartition { .. } => Choice::RoundRobin,
            Rate::Total { .. } => self.config.choice,
        };
        match choice {
            Choice::RoundRobin => self.deal(count, to),
            Choice::Uniform => {
                for n in first..first + count {
                    to(entropy.below(PICK, n, u64::from(self.partitions)) as u32, 1);
                }
            }
            Choice::HotShare { ppm } => {
                for n in first..first + count {
                    let hot = entropy.below(PICK ^ 1, n, 1_000_000) < u64::from(ppm);
                    let slot = if hot { 0 } else { entropy.below(PICK, n, u64::from(self.partitions)) as u32 };
                    to(slot, 1);
                }
            }
        }
    }

    fn deal(&mut self, count: u64, mut to: impl FnMut(u32, u32)) {
        let n = u64::from(self.partitions);
        let (each, extra) = ((count / n) as u32, (count % n) as u32);
        let touched = if each > 0 { self.partitions } else { extra };
        for i in 0..touched {
            let slot = (u64::from(self.cursor) + u64::from(i)) % n;
            to(slot as u32, each + u32::from(i < extra));
        }
        self.cursor = ((u64::from(self.cursor) + u64::from(extra)) % n) as u32;
    }

    /// Records taken in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
#[path = "generator_tests.rs"]
mod tests;
