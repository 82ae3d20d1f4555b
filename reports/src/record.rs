//! The record that a run leaves: `summary.json`, the printed summary and the pages are renderings of it.
//!
//! Everything in it but [`Record::wall_s`], [`Record::peak_rss_mb`] and the figures derived from them comes from simulated
//! time and state, so two runs of one seed leave equal records otherwise.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a run ended. The number is the process's exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Everything held.
    Pass,
    /// A safety invariant broke.
    Violation,
    /// A liveness property failed without an excuse.
    Stall,
    /// A required mark was never reached: the run proved nothing.
    Vacuous,
    /// The same seed gave two histories.
    Diverged,
    /// The budget or the time ran out.
    Unknown,
    /// An expectation was not met, or the expected violation did not come.
    Unmet,
    /// The program itself failed: only a sweep lives to tell.
    Panic,
}

impl Verdict {
    /// The exit code of design section 2.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Violation => 1,
            Self::Stall => 3,
            Self::Vacuous => 4,
            Self::Diverged => 5,
            Self::Unknown => 6,
            Self::Unmet => 7,
            Self::Panic => 101,
        }
    }

    /// One word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Violation => "violation",
            Self::Stall => "stall",
            Self::Vacuous => "vacuous",
            Self::Diverged => "diverged",
            Self::Unknown => "unknown",
            Self::Unmet => "unmet",
            Self::Panic => "panic",
        }
    }
}

/// One broken invariant or failed liveness property.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Violation {
    /// The property's id, as in `mirrorlab checks`.
    pub id: String,
    /// What it demands.
    pub says: String,
    /// Where: cluster, partition, node.
    pub at: String,
    /// What should have been.
    pub expected: String,
    /// What was.
    pub got: String,
    /// Whose it is: system, client, operator or environment.
    pub whose: String,
    /// Simulated nanoseconds.
    pub time_ns: u64,
    /// Number of the event.
    pub step: u64,
}

/// An `expect` entry and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expectation {
    /// The entry as written.
    pub what: String,
    /// What should have been.
    pub expected: String,
    /// What was.
    pub got: String,
    /// Whether it was met.
    pub met: bool,
}

/// One line of the run's story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoryLine {
    /// Simulated nanoseconds.
    pub time_ns: u64,
    /// Number of the event.
    pub step: u64,
    /// What happened.
    pub text: String,
    /// True for faults and operator actions.
    pub fault: bool,
}

/// A fault's or operator action's stretch of time, for the bands of a chart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Band {
    /// Start, simulated nanoseconds.
    pub from_ns: u64,
    /// End, simulated nanoseconds.
    pub to_ns: u64,
    /// What.
    pub label: String,
}

/// One sampled curve: values at a fixed interval.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Curve {
    /// Name, e.g. `mirrored bytes per second`.
    pub name: String,
    /// Unit of the values.
    pub unit: String,
    /// When the first value was taken, simulated nanoseconds on the clock of bands and story.
    #[serde(default)]
    pub start_ns: u64,
    /// Sample interval, simulated nanoseconds.
    pub interval_ns: u64,
    /// Values; `None` where it was unknown (a lag while the source is silent).
    pub values: Vec<Option<f64>>,
}

/// What an operator ordered by a step of the timeline, and what was answered.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OrderTold {
    /// The step's number, from 1.
    pub step: u32,
    /// What it orders.
    pub order: String,
    /// When it was given, simulated nanoseconds.
    pub from_ns: u64,
    /// When it was answered.
    pub to_ns: Option<u64>,
    /// How often it was sent.
    pub attempts: u32,
    /// `NONE` if it was accepted, else the name of the first error; "no answer", "not sent".
    pub answer: String,
    /// What was refused, item by item.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<String>,
    /// A call of the tool: its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<String>,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// What it printed on standard output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// What it printed on standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
}

/// Percentiles of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Percentiles {
    /// How many samples.
    pub count: u64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// What an order about a mirrored topic was: to stop, or to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailoverKind {
    /// The copy becomes writable.
    #[default]
    Stop,
    /// A side becomes a copy (again).
    Start,
}

/// What a stop, or a start after it, cost of one topic. `None` (null): unknown, or never. Seconds count from the order.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Failover {
    /// Stop or start.
    pub kind: FailoverKind,
    /// The mirror.
    pub mirror: String,
    /// The topic.
    pub topic: String,
    /// When an operator first ordered it, simulated nanoseconds.
    pub ordered_ns: u64,
    /// When that was sent: later if it had to wait for earlier orders of the same operator. Everything counts from here.
    #[serde(default)]
    pub sent_ns: u64,
    /// Partitions of the topic.
    pub partitions: u64,
    /// Those that came to STOPPED (to MIRRORING, for a start).
    pub done: u64,
    /// How long that took: the time to writable of a stop.
    pub done_s: Option<Percentiles>,
    /// A stop: when the last replica of the source was gone, if all were when the last mirrored position was noted.
    pub source_died_ns: Option<u64>,
    /// Of so many of its partitions.
    pub source_died_of: u64,
    /// Records acknowledged at the source and not in the copy's log, in all; `None` if unknown for one partition.
    pub left_behind: Option<u64>,
    /// Partitions for which that is unknown.
    pub left_behind_unknown: u64,
    /// The same by partition, where known.
    pub rpo_records: Option<Percentiles>,
    /// Seconds from the first acknowledgement among them to the death of the source, else to the noting of the position.
    pub rpo_s: Option<Percentiles>,
    /// To the first write of a client that was acknowledged after STOPPED, of partitions that had one.
    pub first_write_s: Option<Percentiles>,
    /// To the first read of a consumer after STOPPED, of partitions that had one.
    pub first_read_s: Option<Percentiles>,
    /// Records that the source's retention removed before they were mirrored (not counted as left behind).
    pub gap_records: u64,
    /// Control records that the stop wrote: markers and resets of producer ids.
    pub control_added: Option<u64>,
    /// A start: offsets cut from the log of the side that becomes the copy.
    pub dropped_offsets: u64,
    /// Records among them; `None` if no replica held them any more.
    pub dropped_records: Option<u64>,
    /// Control records among them.
    pub dropped_control: Option<u64>,
    /// Records among them that had been acknowledged with acks=all.
    pub dropped_acked: u64,
    /// By partition, if they are few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<FailoverPart>,
}

/// The same of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct FailoverPart {
    /// Its number.
    pub partition: u32,
    /// Seconds to STOPPED (MIRRORING).
    pub done_s: Option<f64>,
    /// A stop: records left behind.
    pub left_behind: Option<u64>,
    /// The age of the first of them.
    pub rpo_s: Option<f64>,
    /// Seconds to the first accepted write.
    pub first_write_s: Option<f64>,
    /// Seconds to the first read.
    pub first_read_s: Option<f64>,
    /// A start: offsets cut.
    pub dropped_offsets: u64,
    /// Acknowledged records among them.
    pub dropped_acked: u64,
}

/// One row of a matrix run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The matrix values of this row, by key.
    pub set: BTreeMap<String, String>,
    /// The row's own record.
    pub record: Record,
}

/// The record of one run, or of a matrix of runs (then with `rows`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The scenario's path as given.
    pub scenario: String,
    /// Its title.
    pub title: String,
    /// The seed.
    pub seed: u64,
    /// The profile.
    pub profile: String,
    /// What was resolved from the seed, in one line.
    pub resolved: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Why, in one line.
    pub reason: String,
    /// What broke, in order; all of the first failing event.
    pub violations: Vec<Violation>,
    /// Excuses that liveness properties named.
    pub excuses: Vec<String>,
    /// Expectations.
    pub expectations: Vec<Expectation>,
    /// How often each mark was reached.
    pub marks: BTreeMap<String, u64>,
    /// Guards whose condition was never refused, and guards that were switched off.
    pub guards: GuardUse,
    /// The running hash over all trace events, in hexadecimal.
    pub trace_hash: String,
    /// Events of the world.
    pub events: u64,
    /// Requests and responses delivered.
    pub messages: u64,
    /// Batches appended to any replica.
    pub appends: u64,
    /// Simulated seconds.
    pub simulated_s: f64,
    /// Wall seconds.
    pub wall_s: f64,
    /// Peak resident memory of the process, MB.
    pub peak_rss_mb: f64,
    /// Everything else that was measured, by name.
    pub figures: BTreeMap<String, f64>,
    /// What stops of mirrored topics cost, and starts after them, in the order of the orders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failovers: Vec<Failover>,
    /// Lag of mirrored partitions in records, sampled.
    pub lag: Percentiles,
    /// Curves over simulated time.
    pub curves: Vec<Curve>,
    /// Faults and operator actions as bands.
    pub bands: Vec<Band>,
    /// Orders of steps, in the order in which they were given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<OrderTold>,
    /// State changes, at most 50, oldest first.
    pub story: Vec<StoryLine>,
    /// How many story lines were left out.
    pub story_omitted: u64,
    /// One command that runs this again.
    pub repro: String,
    /// Commit, toolchain and lock file that made it.
    pub build: Build,
    /// How often what happened: faults, orders and their answers, elections, changes of mirror states, refusals of guards, and
    /// what met which state. Keys are words with dots (`census.rs` of the scenarios lists all that can occur); what did not
    /// happen is left out. Runs are added key by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub census: BTreeMap<String, u64>,
    /// Rows of a matrix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Row>,
}

/// What made the binary: a repro names it, and a mismatch is announced.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Build {
    /// The commit, or "unknown".
    pub commit: String,
    /// `rustc --version`.
    pub toolchain: String,
    /// Hash of Cargo.lock.
    pub lockfile: String,
}

/// Use of the guard registry in a run.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GuardUse {
    /// Guards that refused something at least once.
    pub hit: Vec<String>,
    /// Quirks whose place was passed: where on and off may differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<String>,
    /// Guards switched off.
    pub off: Vec<String>,
    /// Quirks switched on.
    pub quirks: Vec<String>,
}
