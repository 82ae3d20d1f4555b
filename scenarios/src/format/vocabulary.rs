//! The names that scenario files may use and that belong to other parts: guards, quirks, invariants, marks, message kinds,
//! lanes and config keys. Kept as data, so that the format does not depend on those parts.

use crate::faults::LANES;
use crate::marks::Mark;
use mirrorlab_model::guards::points::Point;
use mirrorlab_model::metadata::configs::{broker_keys, mirror_keys, topic_keys, topic_synonym, KeyInfo};
use mirrorlab_model::wire::messages::Body;
use std::borrow::Cow;

/// A name or config key.
pub type Name = Cow<'static, str>;

/// What a config key's value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// `true` or `false`.
    Bool,
    /// A whole number within bounds.
    Int {
        /// Least.
        min: i64,
        /// Most.
        max: i64,
    },
    /// Milliseconds: a whole number as Kafka takes it, or a duration with its unit.
    Millis {
        /// Least, in milliseconds.
        min: i64,
        /// Most, in milliseconds.
        max: i64,
    },
    /// Bytes: a whole number as Kafka takes it, or a size with its unit.
    Bytes {
        /// Least.
        min: i64,
        /// Most.
        max: i64,
    },
    /// A fraction from 0 to 1.
    Fraction,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list, written as an array or as a text with commas.
    List,
    /// Any text.
    Text,
}

/// A config key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigKey {
    /// Its newest name.
    pub name: Name,
    /// What its value may be.
    pub kind: ValueKind,
    /// Older names that mean the same (decisions, Names).
    pub aliases: &'static [&'static str],
}

/// Whose config a table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigOf {
    /// `[clusters.NAME.config]`: brokers and controllers.
    Broker,
    /// `[topics.NAME.config]`.
    Topic,
    /// `[mirrors.NAME.config]`.
    Mirror,
}

/// All names of other parts.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Vocabulary {
    /// Guards of the registry.
    pub guards: Vec<Name>,
    /// Quirks of the registry.
    pub quirks: Vec<Name>,
    /// Ids of the invariants: `S2`, `L10`, …
    pub invariants: Vec<Name>,
    /// Marks that a run can reach.
    pub marks: Vec<Name>,
    /// Points of perturbation.
    pub points: Vec<Name>,
    /// Kinds of messages, as `delay-messages` and `duplicate` name them.
    pub messages: Vec<Name>,
    /// Lanes of a broker, as `slow-lane` names them.
    pub lanes: Vec<Name>,
    /// Config keys of brokers.
    pub broker_keys: Vec<ConfigKey>,
    /// Config keys of topics.
    pub topic_keys: Vec<ConfigKey>,
    /// Config keys of mirrors.
    pub mirror_keys: Vec<ConfigKey>,
}

impl Vocabulary {
    /// The names known from the registry of guards and from the specification. Parts that know better replace a list.
    #[must_use]
    pub fn standard() -> Self {
        use mirrorlab_model::guards::{rows, Kind};
        let named = |guard: bool| {
            rows().filter(|row| (row.kind == Kind::Guard) == guard).map(|row| Name::from(row.name)).collect()
        };
        let numbered = |letter: &str, ranges: &[std::ops::RangeInclusive<u32>]| -> Vec<Name> {
            ranges.iter().flat_map(|r| r.clone().map(|n| Name::from(format!("{letter}{n}")))).collect()
        };
        let mut invariants = numbered("S", &[0..=22, 30..=52]);
        invariants.extend(numbered("L", &[1..=19]));
        Self {
            guards: named(true),
            quirks: named(false),
            invariants,
            marks: Mark::ALL.iter().map(|(_, name, _)| Name::from(*name)).collect(),
            points: Point::ALL.iter().map(|(_, name, ..)| Name::from(*name)).collect(),
            messages: Body::NAMES.iter().map(|name| Name::from(*name)).collect(),
            lanes: LANES.iter().map(|(name, _)| Name::from(*name)).collect(),
            broker_keys: keys(BROKER_KEYS, &broker_keys(), true),
            topic_keys: keys(TOPIC_KEYS, &topic_keys(), false),
            mirror_keys: keys(MIRROR_KEYS, &mirror_keys(), false),
        }
    }

    /// The keys of one kind of config table.
    #[must_use]
    pub fn config(&self, of: ConfigOf) -> &[ConfigKey] {
        match of {
            ConfigOf::Broker => &self.broker_keys,
            ConfigOf::Topic => &self.topic_keys,
            ConfigOf::Mirror => &self.mirror_keys,
        }
    }

    /// Finds a config key by its newest or an older name.
    #[must_use]
    pub fn config_key(&self, of: ConfigOf, name: &str) -> Option<&ConfigKey> {
        self.config(of).iter().find(|key| key.name == name || key.aliases.contains(&name))
    }
}

type KeyRow = (&'static str, ValueKind, &'static [&'static str]);

/// The rows that the model takes: a key that would change nothing is not offered. Brokers also take the defaults of topic
/// keys under their own names (`log.segment.bytes` for `segment.bytes`).
fn keys(rows: &'static [KeyRow], taken: &[KeyInfo], of_brokers: bool) -> Vec<ConfigKey> {
    rows.iter()
        .filter(|(name, ..)| taken.iter().any(|k| k.key == *name) || (of_brokers && topic_synonym(name).is_some()))
        .map(|(name, kind, aliases)| ConfigKey { name: (*name).into(), kind: *kind, aliases })
        .collect()
}

const INT_MAX: i64 = i32::MAX as i64;
const COUNT: ValueKind = ValueKind::Int { min: 1, max: INT_MAX };
const FROM_ZERO: ValueKind = ValueKind::Int { min: 0, max: INT_MAX };
const MS: ValueKind = ValueKind::Millis { min: 0, max: i64::MAX };
const MS_INT: ValueKind = ValueKind::Millis { min: 0, max: INT_MAX };
const MS_POSITIVE: ValueKind = ValueKind::Millis { min: 1, max: i64::MAX };
const MS_OR_FOREVER: ValueKind = ValueKind::Millis { min: -1, max: i64::MAX };
const BYTES: ValueKind = ValueKind::Bytes { min: 0, max: INT_MAX };
const BYTES_OR_ALL: ValueKind = ValueKind::Bytes { min: -1, max: i64::MAX };
const SEGMENT: ValueKind = ValueKind::Bytes { min: 14, max: INT_MAX };
const POLICY: ValueKind = ValueKind::Choice(&["delete", "compact", "delete,compact", "compact,delete"]);
const STAMP: ValueKind = ValueKind::Choice(&["CreateTime", "LogAppendTime"]);

/// Topic keys: Kafka's, and those of spec 9.3.
const TOPIC_KEYS: &[KeyRow] = &[
    ("cleanup.policy", POLICY, &[]),
    (
        "compression.type",
        ValueKind::Choice(&["producer", "none", "uncompressed", "gzip", "snappy", "lz4", "zstd"]),
        &[],
    ),
    ("delete.retention.ms", MS, &[]),
    ("file.delete.delay.ms", MS, &[]),
    ("flush.messages", ValueKind::Int { min: 1, max: i64::MAX }, &[]),
    ("flush.ms", MS, &[]),
    ("follower.replication.throttled.replicas", ValueKind::List, &[]),
    ("index.interval.bytes", BYTES, &[]),
    ("leader.replication.throttled.replicas", ValueKind::List, &[]),
    ("max.compaction.lag.ms", MS_POSITIVE, &[]),
    ("max.message.bytes", BYTES, &[]),
    ("message.timestamp.type", STAMP, &[]),
    ("min.cleanable.dirty.ratio", ValueKind::Fraction, &[]),
    ("min.compaction.lag.ms", MS, &[]),
    ("min.insync.replicas", COUNT, &[]),
    ("mirror.replication.throttled.replicas", ValueKind::List, &[]),
    ("mirror.support.unclean.leader.election", ValueKind::Bool, &[]),
    ("preallocate", ValueKind::Bool, &[]),
    ("remote.storage.enable", ValueKind::Bool, &[]),
    ("retention.bytes", BYTES_OR_ALL, &[]),
    ("retention.ms", MS_OR_FOREVER, &[]),
    ("segment.bytes", SEGMENT, &[]),
    ("segment.jitter.ms", MS, &[]),
    ("segment.ms", MS_POSITIVE, &[]),
    ("unclean.leader.election.enable", ValueKind::Bool, &[]),
];

/// Broker keys: Kafka's that the model reads, and those of spec 9.1.
const BROKER_KEYS: &[KeyRow] = &[
    ("auto.create.topics.enable", ValueKind::Bool, &[]),
    ("auto.leader.rebalance.enable", ValueKind::Bool, &[]),
    ("broker.heartbeat.interval.ms", MS_INT, &[]),
    ("broker.session.timeout.ms", MS_INT, &[]),
    (
        "compression.type",
        ValueKind::Choice(&["producer", "none", "uncompressed", "gzip", "snappy", "lz4", "zstd"]),
        &[],
    ),
    ("connections.max.idle.ms", MS, &[]),
    ("controlled.shutdown.enable", ValueKind::Bool, &[]),
    ("controlled.shutdown.max.retries", FROM_ZERO, &[]),
    ("controlled.shutdown.retry.backoff.ms", MS, &[]),
    ("controller.quorum.election.timeout.ms", MS_INT, &[]),
    ("controller.quorum.fetch.timeout.ms", MS_INT, &[]),
    ("default.replication.factor", COUNT, &[]),
    ("delete.topic.enable", ValueKind::Bool, &[]),
    ("eligible.leader.replicas.enable", ValueKind::Bool, &[]),
    ("fetch.max.bytes", BYTES, &[]),
    ("group.initial.rebalance.delay.ms", MS_INT, &[]),
    ("leader.imbalance.check.interval.seconds", COUNT, &[]),
    ("leader.imbalance.per.broker.percentage", FROM_ZERO, &[]),
    ("log.cleaner.backoff.ms", MS_POSITIVE, &[]),
    ("log.cleaner.max.compaction.lag.ms", MS_POSITIVE, &[]),
    ("log.cleaner.min.cleanable.ratio", ValueKind::Fraction, &[]),
    ("log.cleaner.min.compaction.lag.ms", MS, &[]),
    ("log.cleaner.delete.retention.ms", MS, &[]),
    ("log.cleanup.policy", POLICY, &[]),
    ("log.flush.interval.messages", ValueKind::Int { min: 1, max: i64::MAX }, &[]),
    ("log.flush.interval.ms", MS, &[]),
    ("log.flush.offset.checkpoint.interval.ms", MS_INT, &[]),
    ("log.flush.scheduler.interval.ms", MS_POSITIVE, &[]),
    ("log.flush.scheduler.interval.ms", MS, &[]),
    ("log.flush.start.offset.checkpoint.interval.ms", MS_INT, &[]),
    ("log.message.timestamp.type", STAMP, &[]),
    ("log.retention.bytes", BYTES_OR_ALL, &[]),
    ("log.retention.check.interval.ms", MS_POSITIVE, &[]),
    ("log.retention.ms", MS_OR_FOREVER, &[]),
    ("log.roll.ms", MS_POSITIVE, &[]),
    ("log.segment.bytes", SEGMENT, &[]),
    ("log.segment.delete.delay.ms", MS, &[]),
    ("max.incremental.fetch.session.cache.slots", FROM_ZERO, &[]),
    ("message.max.bytes", BYTES, &[]),
    ("metadata.log.max.record.bytes.between.snapshots", BYTES_OR_ALL, &[]),
    ("metadata.log.max.snapshot.interval.ms", MS, &[]),
    ("metadata.max.idle.interval.ms", MS_INT, &[]),
    ("min.insync.replicas", COUNT, &[]),
    ("mirror.admin.listener.name", ValueKind::Text, &[]),
    ("mirror.coordinator.append.linger.ms", MS_INT, &[]),
    ("mirror.coordinator.load.buffer.size", BYTES, &[]),
    ("mirror.coordinator.threads", COUNT, &[]),
    ("mirror.coordinator.write.timeout.ms", MS_INT, &[]),
    ("mirror.failed.retry.initial.backoff.ms", MS_POSITIVE, &[]),
    ("mirror.failed.retry.max.attempts", ValueKind::Int { min: 0, max: 32767 }, &[]),
    ("mirror.failed.retry.max.backoff.ms", MS_POSITIVE, &[]),
    ("mirror.fetch.backoff.ms", MS, &[]),
    ("mirror.fetch.max.bytes", BYTES, &[]),
    ("mirror.fetch.min.bytes", BYTES, &[]),
    ("mirror.fetch.response.max.bytes", BYTES, &[]),
    ("mirror.fetch.wait.max.ms", MS_INT, &[]),
    ("mirror.metadata.refresh.interval.ms", MS, &[]),
    ("mirror.num.replica.fetchers", COUNT, &[]),
    ("mirror.replication.throttled.rate", ValueKind::Bytes { min: 0, max: i64::MAX }, &[]),
    ("mirror.socket.receive.buffer.bytes", BYTES, &[]),
    ("mirror.socket.timeout.ms", MS_INT, &[]),
    ("mirror.state.topic.num.partitions", COUNT, &[]),
    ("mirror.state.topic.replication.factor", ValueKind::Int { min: 1, max: 32767 }, &[]),
    ("num.io.threads", COUNT, &[]),
    ("num.network.threads", COUNT, &[]),
    ("num.partitions", COUNT, &[]),
    ("num.recovery.threads.per.data.dir", COUNT, &[]),
    ("num.replica.fetchers", COUNT, &[]),
    ("offsets.commit.timeout.ms", MS_INT, &[]),
    ("offsets.topic.num.partitions", COUNT, &[]),
    ("offsets.topic.replication.factor", ValueKind::Int { min: 1, max: 32767 }, &[]),
    ("producer.id.expiration.ms", MS_INT, &[]),
    ("producer.purgatory.purge.interval.requests", FROM_ZERO, &[]),
    ("queued.max.requests", COUNT, &[]),
    ("replica.fetch.backoff.ms", MS_INT, &[]),
    ("replica.fetch.max.bytes", BYTES, &[]),
    ("replica.fetch.min.bytes", BYTES, &[]),
    ("replica.fetch.response.max.bytes", BYTES, &[]),
    ("replica.fetch.wait.max.ms", MS_INT, &[]),
    ("replica.high.watermark.checkpoint.interval.ms", MS, &[]),
    ("replica.lag.time.max.ms", MS, &[]),
    ("replica.socket.receive.buffer.bytes", BYTES, &[]),
    ("replica.socket.timeout.ms", MS_INT, &[]),
    ("request.timeout.ms", MS_INT, &[]),
    ("socket.connection.setup.timeout.max.ms", MS, &[]),
    ("socket.connection.setup.timeout.ms", MS, &[]),
    ("socket.receive.buffer.bytes", BYTES_OR_ALL, &[]),
    ("socket.send.buffer.bytes", BYTES_OR_ALL, &[]),
    ("transaction.abort.timed.out.transaction.cleanup.interval.ms", MS_POSITIVE, &[]),
    ("transaction.max.timeout.ms", MS_INT, &[]),
    ("transaction.state.log.min.isr", COUNT, &[]),
    ("transaction.state.log.num.partitions", COUNT, &[]),
    ("transaction.state.log.replication.factor", ValueKind::Int { min: 1, max: 32767 }, &[]),
    ("transaction.state.log.segment.bytes", BYTES, &[]),
    ("transaction.version", ValueKind::Int { min: 1, max: 2 }, &[]),
    ("transactional.id.expiration.ms", MS_INT, &[]),
    ("unclean.leader.election.enable", ValueKind::Bool, &[]),
    ("unstable.feature.versions.enable", ValueKind::Bool, &[]),
];

/// Mirror keys of spec 9.2 under their newest names; `bootstrap.servers` and the source's id come from the scenario.
const MIRROR_KEYS: &[KeyRow] = &[
    ("acls.include", ValueKind::List, &["mirror.acls.include"]),
    ("allow.one.way", ValueKind::Bool, &[]),
    ("connections.max.idle.ms", MS, &[]),
    ("fetch.backoff.ms", MS, &["mirror.fetch.backoff.ms"]),
    ("fetch.max.bytes", BYTES, &["mirror.fetch.max.bytes"]),
    ("fetch.min.bytes", BYTES, &["mirror.fetch.min.bytes"]),
    ("fetch.response.max.bytes", BYTES, &["mirror.fetch.response.max.bytes"]),
    ("fetch.wait.max.ms", MS_INT, &["mirror.fetch.wait.max.ms"]),
    ("groups.exclude", ValueKind::List, &["mirror.groups.exclude"]),
    ("groups.include", ValueKind::List, &["mirror.groups.include"]),
    ("request.timeout.ms", MS_INT, &[]),
    ("sasl.jaas.config", ValueKind::Text, &[]),
    ("sasl.mechanism", ValueKind::Text, &[]),
    ("security.protocol", ValueKind::Choice(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]), &[]),
    ("socket.connection.setup.timeout.max.ms", MS, &[]),
    ("socket.connection.setup.timeout.ms", MS, &[]),
    ("socket.receive.buffer.bytes", BYTES, &["mirror.socket.receive.buffer.bytes"]),
    ("socket.timeout.ms", MS_INT, &["mirror.socket.timeout.ms"]),
    ("source.cluster.id", ValueKind::Text, &["mirror.source.cluster.id"]),
    ("topic.properties.exclude", ValueKind::List, &["mirror.topic.properties.exclude"]),
    ("topics.exclude", ValueKind::List, &["mirror.topics.exclude"]),
    ("topics.include", ValueKind::List, &["mirror.topics.include"]),
];
