//! A scenario as it stands after reading: every default filled in, every reference checked, every quantity in its unit.
//!
//! These types are also what a plan holds and what its file is written from, and the JSON schema is derived from them.

use super::action::Step;
use super::condition::Term;
use crate::units::{Bandwidth, Chance, Rate, Size, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Config entries by key, as Kafka takes them: texts.
pub type Config = BTreeMap<String, String>;

/// Who runs a scenario, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// `cargo test`.
    #[default]
    Fast,
    /// CI.
    Slow,
    /// By hand.
    Full,
}

/// Which quirks are on to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// None: the protocol as it should be.
    #[default]
    Corrected,
    /// Those of the latest prototype (L, JL).
    Prototype,
    /// Those of the July prototype (J, JL).
    PrototypeJuly,
}

impl Profile {
    /// All, by name.
    pub const NAMED: &'static [(&'static str, Self)] =
        &[("corrected", Self::Corrected), ("prototype", Self::Prototype), ("prototype-july", Self::PrototypeJuly)];
    /// Its name in files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, p)| *p == self).map_or("corrected", |(name, _)| name)
    }
}

/// A cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Cluster {
    /// Brokers: NAME/broker-1 to NAME/broker-N. Default 3.
    pub brokers: u32,
    /// Controllers, 1 to 5: NAME/controller-1 and so on. Default 1.
    pub controllers: u32,
    /// Where it stands. Default: a site of the cluster's own name.
    pub site: String,
    /// Replicas of a topic that does not say. Default: 3, or the number of brokers if that is less.
    pub default_rf: u32,
    /// `min.insync.replicas` of a topic that does not say. Default: `default_rf` - 1, at least 1.
    pub min_isr: u32,
    /// The first producer id that this cluster gives away. Default 0.
    pub first_producer_id: u64,
    /// The Kafka release that others find here: before "2.7" fetches are not told where logs part, and none with a number knows
    /// mirrors, so that it can only be a source. Default: the one that this model is of.
    pub release: Option<String>,
    /// The cluster id. Default: the cluster's name.
    pub id: String,
    /// Broker configs.
    pub config: Config,
}

/// What one direction of a link is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Direction {
    /// One way, without queueing.
    pub latency: Time,
    /// Uniform addition to each packet's latency. Default 0.
    pub jitter: Time,
    /// Default: unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bandwidth>,
    /// Chance that a packet is lost. Default 0.
    pub loss: Chance,
    /// The queue in front of the bandwidth. Default: unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Size>,
}

/// Differences of one direction from the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, Default)]
#[schemars(deny_unknown_fields)]
pub struct DirectionChange {
    /// Other latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Time>,
    /// Other jitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Time>,
    /// Other bandwidth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bandwidth>,
    /// Other loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Chance>,
    /// Other queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Size>,
}

/// A link between two sites, or the local network of one (`between = ["dc", "dc"]`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Link {
    /// Its two sites.
    pub between: [String; 2],
    /// What both directions are like.
    #[serde(flatten)]
    pub both: Direction,
    /// The TCP window of connections over it (socket buffer). Default: unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket_buffer: Option<Size>,
    /// Differences by direction, named by the site that packets go to.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub toward: BTreeMap<String, DirectionChange>,
}

impl Link {
    /// The direction from `between[from]` to the other site.
    #[must_use]
    pub fn direction(&self, from: usize) -> Direction {
        let to = &self.between[1 - from.min(1)];
        let change = self.toward.get(to).copied().unwrap_or_default();
        Direction {
            latency: change.latency.unwrap_or(self.both.latency),
            jitter: change.jitter.unwrap_or(self.both.jitter),
            bandwidth: change.bandwidth.or(self.both.bandwidth),
            loss: change.loss.unwrap_or(self.both.loss),
            queue: change.queue.or(self.both.queue),
        }
    }
}

/// A topic, or a family of `count` topics `NAME-0`, `NAME-1`, …
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Topic {
    /// Its cluster. Default: the only one.
    pub on: String,
    /// Its name there, if the table has another (the same name on two clusters). Default: the table's name.
    pub name: String,
    /// Default 1.
    pub partitions: u32,
    /// Replicas of each partition. Default: the cluster's `default_rf`.
    pub rf: u32,
    /// A family of so many topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Topic configs.
    pub config: Config,
}

impl Topic {
    /// How many topics it stands for.
    #[must_use]
    pub fn topics(&self) -> u32 {
        self.count.unwrap_or(1)
    }
    /// The names of these topics.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        let family = self.count.is_some();
        (0..self.topics()).map(move |n| if family { format!("{}-{n}", self.name) } else { self.name.clone() })
    }
    /// Whether `name` is one of them.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        match self.count {
            None => self.name == name,
            Some(count) => name
                .strip_prefix(&*self.name)
                .and_then(|rest| rest.strip_prefix('-'))
                .filter(|n| *n == "0" || !n.starts_with('0'))
                .and_then(|n| n.parse::<u32>().ok())
                .is_some_and(|n| n < count),
        }
    }
}

/// A mirror on the destination cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Mirror {
    /// The destination cluster.
    pub on: String,
    /// The source cluster.
    pub source: String,
    /// Topic names and patterns to start.
    pub topics: Vec<String>,
    /// Patterns that win over `topics`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// When the operator creates it and starts its topics. Default 0 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Time>,
    /// True: only a `create-mirror` step creates it.
    pub later: bool,
    /// Mirror configs.
    pub config: Config,
}

/// What a producer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, Default)]
pub enum Acks {
    /// All in-sync replicas.
    #[default]
    #[serde(rename = "all")]
    All,
    /// The leader.
    #[serde(rename = "1")]
    Leader,
    /// Nobody.
    #[serde(rename = "0")]
    None,
}

/// Transactions of a producer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Transactions {
    /// Its transactional id. Default: its name. Of two producers with the same one, the later fences the earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Records in each; the last may have fewer. Default, with `duration`: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<u32>,
    /// Each ends after so long, with however many records. Default, with `records`: when they are full, or nothing more
    /// comes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Time>,
    /// Chance that it is aborted. Default 0.
    pub abort: Chance,
    /// Its time-out at the coordinator. Default 60 s.
    pub timeout: Time,
}

/// A producer, or `count` alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Producer {
    /// Its cluster. Default: the only one.
    pub on: String,
    /// The topics that it writes to (`topic = "…"` for one). A family's name means all its topics.
    pub topics: Vec<String>,
    /// Records per time, over all partitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Instead of `rate`: one record to each partition this often.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Time>,
    /// The size of a record's value. Default 100 B.
    pub record: Size,
    /// Default `all`.
    pub acks: Acks,
    /// Default: true with acks `all`, else false.
    pub idempotent: bool,
    /// How long it gathers records for a batch. Default 5 ms.
    pub linger: Time,
    /// Most bytes of a batch. Default 16 KiB.
    pub batch: Size,
    /// Most requests in flight per connection. Default 5.
    pub in_flight: u32,
    /// The first sequence of its idempotence in each partition: close to 2147483647, what comes behind that comes soon. Default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_sequence: Option<u32>,
    /// When it gives a record up. Default 120 s.
    pub delivery_timeout: Time,
    /// When it gives a request up. Default 30 s.
    pub request_timeout: Time,
    /// Default 0 s.
    pub start: Time,
    /// Default: the end of the safety phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Time>,
    /// Ends after so many records. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// Different keys; 0: records without key. Default 0.
    pub keys: u64,
    /// Each record of so many deletes its key (it has no value). Default: none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tombstone_every: Option<u64>,
    /// Writes in transactions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions: Option<Transactions>,
    /// So many alike: NAME-0, NAME-1, … Default 1.
    pub count: u32,
    /// Where it runs. Default: its cluster's site.
    pub site: String,
}

/// Which records a consumer sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// All below the high watermark.
    #[default]
    ReadUncommitted,
    /// Those of committed transactions, below the last stable offset.
    ReadCommitted,
}

/// Where a consumer without a valid position starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Reset {
    /// At the log start.
    #[default]
    Earliest,
    /// At the end.
    Latest,
    /// Nowhere: it fails.
    None,
}

/// A consumer, or `count` alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Consumer {
    /// Its cluster. Default: the only one.
    pub on: String,
    /// The topics that it reads (`topic = "…"` for one). A family's name means all its topics.
    pub topics: Vec<String>,
    /// Its group; without one it reads every partition and commits nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Default `read_uncommitted`.
    pub isolation: Isolation,
    /// Default `earliest`.
    pub reset: Reset,
    /// How often it commits its positions. Default 5 s with a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_every: Option<Time>,
    /// How often it asks for the end offsets. Default: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_end: Option<Time>,
    /// Default 0 s.
    pub start: Time,
    /// Default: the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Time>,
    /// So many alike: NAME-0, NAME-1, … Default 1.
    pub count: u32,
    /// Where it runs. Default: its cluster's site.
    pub site: String,
}

/// How long the phases of a run are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Phases {
    /// Most time until every node is up and every topic exists. Default 30 s. Instants of the file count from its end.
    pub boot: Time,
    /// Traffic and faults. Default 60 s.
    pub safety: Time,
    /// Most time until every liveness property holds. Default 120 s.
    pub converge: Time,
}

impl Default for Phases {
    fn default() -> Self {
        Self { boot: Time::secs(30), safety: Time::secs(60), converge: Time::secs(120) }
    }
}

/// A number of records: exact, or within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Count {
    /// Exactly.
    Exactly(u64),
    /// Within bounds, both included.
    Within {
        /// Least. Default 0.
        at_least: u64,
        /// Most. Default: no limit.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_most: Option<u64>,
    },
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(number) => write!(f, "{number}"),
            Self::Within { at_least, at_most: Some(most) } => write!(f, "{at_least} to {most}"),
            Self::Within { at_least, at_most: None } => write!(f, "at least {at_least}"),
        }
    }
}

impl Count {
    /// Whether `count` is as expected.
    #[must_use]
    pub fn admits(&self, count: u64) -> bool {
        match *self {
            Self::Exactly(n) => count == n,
            Self::Within { at_least, at_most } => count >= at_least && at_most.is_none_or(|most| count <= most),
        }
    }
}

/// Upper bounds by percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Bounds<T> {
    /// Half of the samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<T>,
    /// 90 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p90: Option<T>,
    /// 99 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<T>,
    /// 99.9 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p999: Option<T>,
    /// All.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<T>,
}

/// What a term must equal at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Wanted {
    /// A number.
    Number(i64),
    /// A state or a node, by name.
    Name(String),
    /// Yes or no.
    Truth(bool),
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(name),
            Self::Truth(truth) => write!(f, "{truth}"),
        }
    }
}

/// One entry of `expect.equals`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equal {
    /// What is looked at.
    pub term: Term,
    /// What it must be.
    pub value: Wanted,
}

/// A mark that a run must reach: once, or so often, and perhaps no more often than that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Reach {
    /// Once.
    Once(String),
    /// So often.
    Times {
        /// The mark.
        mark: String,
        /// Least count.
        at_least: u64,
        /// Greatest count; more is an unmet expectation.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_most: Option<u64>,
    },
}

impl Reach {
    /// The mark's name.
    #[must_use]
    pub fn mark(&self) -> &str {
        match self {
            Self::Once(mark) | Self::Times { mark, .. } => mark,
        }
    }
    /// How often it has to be reached.
    #[must_use]
    pub fn at_least(&self) -> u64 {
        match self {
            Self::Once(_) => 1,
            Self::Times { at_least, .. } => *at_least,
        }
    }
    /// How often it may be reached, if that is bounded.
    #[must_use]
    pub fn at_most(&self) -> Option<u64> {
        match self {
            Self::Once(_) => None,
            Self::Times { at_most, .. } => *at_most,
        }
    }
}

/// What must hold at the end, beside the invariants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema, Default)]
#[schemars(deny_unknown_fields)]
pub struct Expect {
    /// State by mirrored topic: all its partitions.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub states: BTreeMap<String, String>,
    /// Records by topic (`CLUSTER/TOPIC`), as a reader counts them: control records and aborted ones left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub records: BTreeMap<String, Count>,
    /// Marks that must be reached, once or so often, else the run is vacuous.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub must_reach: Vec<Reach>,
    /// Marks that must not be reached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub never_reach: Vec<String>,
    /// Terms of the condition language and the values that they must have at the end.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "equals_as_table")]
    #[schemars(with = "BTreeMap<String, Wanted>")]
    pub equals: Vec<Equal>,
    /// The run passes only if one of these is the first violation or stall.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violation: Vec<String>,
    /// Upper bounds, by stopped partition, of the records acknowledged at the source that the copy did not have at STOPPED.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpo_records: Option<Bounds<u64>>,
    /// Upper bounds of the age of the first of them when the source died, or else when the last mirrored position was noted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpo: Option<Bounds<Time>>,
    /// Upper bounds of the time from an order to stop to STOPPED, by partition: then the copy is writable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rto: Option<Bounds<Time>>,
    /// A step of the timeline may never strike: its condition need not hold in this run (`--ignore-expect` says so). Default
    /// false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub steps_may_miss: bool,
}

impl Expect {
    /// Nothing, not even that every step strikes: the bare verdict.
    #[must_use]
    pub fn nothing() -> Self {
        Self { steps_may_miss: true, ..Self::default() }
    }
    /// Whether nothing is expected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn equals_as_table<S: serde::Serializer>(equals: &[Equal], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(equals.iter().map(|e| (e.term.to_string(), &e.value)))
}

/// The parts of a scenario that describe the world; a plan has them too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema, Default)]
pub struct Stage {
    /// Clusters by name.
    pub clusters: BTreeMap<String, Cluster>,
    /// Links by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, Link>,
    /// Topics by table name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub topics: BTreeMap<String, Topic>,
    /// Mirrors by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mirrors: BTreeMap<String, Mirror>,
    /// Producers by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub producers: BTreeMap<String, Producer>,
    /// Consumers by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub consumers: BTreeMap<String, Consumer>,
    /// The phases of the run.
    pub phases: Phases,
    /// What happens, in the order of the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Step>,
    /// What must hold at the end.
    #[serde(skip_serializing_if = "Expect::is_empty")]
    pub expect: Expect,
    /// Guards that are off.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guards_off: Vec<String>,
    /// Quirks that are on, beside those of the profile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quirks: Vec<String>,
    /// Quirks that are off although the profile has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quirks_off: Vec<String>,
    /// Points of perturbation that are armed until all faults end: places where the code may do another legal thing now and then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub perturb: Vec<String>,
    /// Those that do the other thing each time, until all faults end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub perturb_always: Vec<String>,
    /// Whether the messages of half of the connections go through their bytes: a check of the codec that changes no history.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wire: bool,
}
