//! Draws without state: hash(seed, concern, stream, ordinal).
//!
//! A generator with a position makes every draw depend on all draws before it: one packet less, and every later crash falls
//! elsewhere. Here a draw depends on nothing but its coordinates, so that removing a fault or adding a node leaves every
//! other draw alone, and shrinking a failing run is possible at all. Integer arithmetic and `libm` only: the same seed
//! gives the same history on another machine.

use mirrorlab_model::ids::{Nanos, NodeId};
use rand::RngCore;

/// What a draw is for. The numbers are part of every history: never renumber, only add.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u64)]
pub enum Concern {
    /// Delay between the wake of a lane and its run. Stream: node and lane.
    Lane = 1,
    /// How long a process takes to start. Stream: node.
    Boot = 2,
    /// Entropy handed to a process (`Cx::entropy`). Stream: node.
    Process = 3,
    /// Latency and jitter of a packet. Stream: connection and direction.
    NetLatency = 10,
    /// Loss of a packet. Stream: connection and direction.
    NetLoss = 11,
    /// Establishing and ending connections. Stream: connection.
    NetConnect = 12,
    /// Other faults of links (reordering between connections, duplicates). Stream: connection or link.
    NetFault = 13,
    /// Latency of a flush. Stream: node and file.
    DiskFlush = 20,
    /// What a power loss leaves. Stream: node and file or directory.
    DiskCrash = 21,
    /// Whether a disk call fails, and what a failed call leaves. Stream: node and file.
    DiskError = 22,
    /// Where a bit rots. Stream: node.
    DiskRot = 23,
    /// Where a crash cuts the journal of a task. Stream: node.
    DiskCut = 24,
    /// Offset, drift and jumps of clocks. Stream: node.
    Clock = 30,
    /// Topology of a generated scenario.
    Topology = 40,
    /// Traffic of a generator. Stream: generator.
    Workload = 41,
    /// Contents of generated records. Stream: generator.
    Payload = 42,
    /// Which faults strike, when and whom. Stream: step.
    Fault = 43,
    /// What operators do and when. Stream: step.
    Operator = 44,
    /// Whose messages go through their bytes. Stream: connection.
    Wire = 45,
    /// Which points of perturbation fire. Stream: node.
    Perturb = 46,
    /// Which answers of a foreign cluster are wrong. Stream: node.
    Foreign = 47,
    /// Draws of tests.
    Test = 99,
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's finaliser (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators").
#[inline]
const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Folds a number into a stream id, to name a stream by several numbers.
#[inline]
#[must_use]
pub const fn join(id: u64, more: u64) -> u64 {
    mix(id.wrapping_add(GOLDEN) ^ more.wrapping_mul(0xd1b5_4a32_d192_ed03))
}

/// The seed of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seed(pub u64);

impl Seed {
    /// The draws at one place: as many as are wanted, each depending on the four coordinates and its number only.
    #[inline]
    #[must_use]
    pub const fn stream(self, concern: Concern, id: u64, ordinal: u64) -> Stream {
        let key = mix(self.0.wrapping_add(GOLDEN.wrapping_mul(concern as u64)));
        let key = mix(key.wrapping_add(GOLDEN) ^ id);
        Stream { key: mix(key.wrapping_add(GOLDEN) ^ ordinal), drawn: 0 }
    }

    /// One 64-bit draw: the first of [`Seed::stream`].
    #[inline]
    #[must_use]
    pub const fn draw(self, concern: Concern, id: u64, ordinal: u64) -> u64 {
        let mut stream = self.stream(concern, id, ordinal);
        stream.next()
    }

    /// The seed that a process derives its own draws from (`ports::Entropy`): another one for each node.
    #[must_use]
    pub const fn of_process(self, node: NodeId) -> u64 {
        self.draw(Concern::Process, node.0 as u64, 0)
    }
}

/// The draws of one (concern, stream, ordinal). A `rand` 0.8 generator, so that its distributions can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    key: u64,
    drawn: u64,
}

impl Stream {
    /// The next 64 bits.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "endless, so not an iterator")]
    pub const fn next(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_add(1);
        mix(self.key.wrapping_add(GOLDEN.wrapping_mul(self.drawn)))
    }

    /// Uniform in `0..n`; 0 if `n` is 0.
    #[inline]
    pub const fn below(&mut self, n: u64) -> u64 {
        ((self.next() as u128 * n as u128) >> 64) as u64
    }

    /// Uniform in `from..=to`; `from` if the range is empty.
    #[inline]
    pub const fn between(&mut self, from: u64, to: u64) -> u64 {
        match to.saturating_sub(from).checked_add(1) {
            Some(width) => from + self.below(width),
            None => self.next(),
        }
    }

    /// Uniform in `0.0..1.0`, 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability `p`; never for 0 and always for 1.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// An index of `weights`, each with its share of their sum. `None` if all are 0.
    pub fn weighted(&mut self, weights: &[u32]) -> Option<usize> {
        let sum: u64 = weights.iter().map(|w| u64::from(*w)).sum();
        if sum == 0 {
            return None;
        }
        let mut at = self.below(sum);
        for (index, weight) in weights.iter().enumerate() {
            match at.checked_sub(u64::from(*weight)) {
                Some(rest) => at = rest,
                None => return Some(index),
            }
        }
        None
    }

    /// Exponentially distributed with this mean: gaps of independent arrivals.
    #[inline]
    pub fn exponential(&mut self, mean: Nanos) -> Nanos {
        Nanos((-libm::log(1.0 - self.unit()) * mean.0 as f64) as u64)
    }

    /// A delay with a heavy tail: a Pareto law from `least`, cut at `most`. The chance to exceed `x` is
    /// `(least / x)^alpha`: with `alpha` 1 one delay in ten is ten times the least, one in a hundred a hundred times.
    #[inline]
    pub fn heavy_tailed(&mut self, least: Nanos, alpha: f64, most: Nanos) -> Nanos {
        let unit = 1.0 - self.unit();
        let stretch = if alpha == 1.0 { 1.0 / unit } else { libm::pow(unit, -1.0 / alpha) };
        Nanos((least.0 as f64 * stretch) as u64).min(most)
    }
}

impl RngCore for Stream {
    fn next_u32(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }
    fn next_u64(&mut self) -> u64 {
        self.next()
    }
    fn fill_bytes(&mut self, dest: &mut [u8]) {
        for chunk in dest.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), rand::Error> {
        self.fill_bytes(dest);
        Ok(())
    }
}

#[cfg(test)]
#[path = "rng_tests.rs"]
mod tests;
