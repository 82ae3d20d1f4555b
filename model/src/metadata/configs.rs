//! Typed configurations of topics, brokers and mirrors, parsed from string entries.
//!
//! One table per kind gives key, type, default and lower bound: it is the parser, the documentation and the source of
//! diagnostics ([`topic_keys`], [`broker_keys`], [`mirror_keys`]). Mirror keys carry the newest names (spec 9.2); the older
//! `mirror.` prefix is accepted for them.

use crate::metadata::patterns::Patterns;
use crate::wire::errors::ErrorCode;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// An entry that is not accepted: names the key, and says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The key as given.
    pub key: Arc<str>,
    /// What is wrong with it.
    pub why: ConfigFault,
}

/// What is wrong with a config entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigFault {
    /// No such key for this kind of resource.
    UnknownKey,
    /// The value is not of the key's type.
    NotA(&'static str),
    /// The value is below the smallest one allowed.
    Below(i64),
    /// The value is known, but this project refuses it (tiered and diskless topics).
    Unsupported,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            ConfigFault::UnknownKey => write!(f, "unknown configuration '{}'", self.key),
            ConfigFault::NotA(kind) => write!(f, "'{}' must be a {kind}", self.key),
            ConfigFault::Below(least) => write!(f, "'{}' must be at least {least}", self.key),
            ConfigFault::Unsupported => write!(f, "'{}': this setting is not supported here", self.key),
        }
    }
}
impl std::error::Error for ConfigError {}

impl ConfigError {
    /// The code a request is refused with.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        ErrorCode::InvalidConfig
    }
}

/// One row of a table of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// The key.
    pub key: &'static str,
    /// The type's name.
    pub kind: &'static str,
    /// The default, as text.
    pub default: String,
    /// What it does.
    pub says: &'static str,
    /// Never answered by describe (decision 23).
    pub secret: bool,
}

/// A value of a config key.
trait Value: Sized {
    const KIND: &'static str;
    fn parse(text: &str) -> Option<Self>;
    fn text(&self) -> String;
    fn at_least(&self, _least: i64) -> bool {
        true
    }
}

macro_rules! number_value {
    ($($t:ty: $kind:literal),*) => { $(
        impl Value for $t {
            const KIND: &'static str = $kind;
            fn parse(text: &str) -> Option<Self> { text.trim().parse().ok() }
            fn text(&self) -> String { self.to_string() }
            #[allow(clippy::unnecessary_cast)]
            fn at_least(&self, least: i64) -> bool { i128::from(*self) >= i128::from(least) }
        }
    )* };
}
number_value!(i32: "32-bit number", i64: "64-bit number", u32: "32-bit number", u64: "64-bit number");

impl Value for bool {
    const KIND: &'static str = "boolean";
    fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }
    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for Arc<str> {
    const KIND: &'static str = "text";
    fn parse(text: &str) -> Option<Self> {
        Some(text.into())
    }
    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for Patterns {
    const KIND: &'static str = "list of patterns";
    fn parse(text: &str) -> Option<Self> {
        Self::parse(text).ok()
    }
    fn text(&self) -> String {
        self.to_string()
    }
}

/// A comma-separated list.
pub type List = Arc<[Arc<str>]>;

impl Value for List {
    const KIND: &'static str = "list";
    fn parse(text: &str) -> Option<Self> {
        Some(text.split(',').map(str::trim).filter(|s| !s.is_empty()).map(Arc::from).collect())
    }
    fn text(&self) -> String {
        self.join(",")
    }
}

/// What retention does with old segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum CleanupPolicy {
    /// Old segments are deleted.
    #[default]
    Delete,
    /// The last value of each key is kept.
    Compact,
    /// Both.
    CompactDelete,
}

impl Value for CleanupPolicy {
    const KIND: &'static str = "cleanup policy (delete, compact, or both)";
    fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "delete" => Some(Self::Delete),
            "compact" => Some(Self::Compact),
            "compact,delete" | "delete,compact" => Some(Self::CompactDelete),
            _ => None,
        }
    }
    fn text(&self) -> String {
        match self {
            Self::Delete => "delete",
            Self::Compact => "compact",
            Self::CompactDelete => "compact,delete",
        }
        .to_string()
    }
}

/// A share between 0 and 1, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Share(pub u32);

impl Value for Share {
    const KIND: &'static str = "number from 0 to 1";
    fn parse(text: &str) -> Option<Self> {
        let (whole, rest) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        let digits = rest.len() <= 6 && rest.bytes().all(|b| b.is_ascii_digit());
        let millionths = format!("{rest:0<6}").parse::<u32>().ok().filter(|_| digits)?;
        let all = whole.parse::<u32>().ok().filter(|whole| *whole <= 1)? * 1_000_000 + millionths;
        (all <= 1_000_000).then_some(Self(all))
    }
    fn text(&self) -> String {
        let text = format!("{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000);
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    }
}

/// A switch that may only stay off: what it would turn on is outside this project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct AlwaysOff;

impl Value for AlwaysOff {
    const KIND: &'static str = "boolean";
    fn parse(text: &str) -> Option<Self> {
        (text.trim() == "false").then_some(Self)
    }
    fn text(&self) -> String {
        "false".to_string()
    }
}

/// Declares one kind of configuration: a struct with one typed field per key.
macro_rules! config {
    (
        $(#[$doc:meta])* $name:ident, $keys:ident;
        $( $says:literal $key:literal => $field:ident: $kind:ty = $default:expr $(, min $least:literal)? $(, secret $secret:literal)?; )*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $( #[doc = $says] #[doc = concat!("\n\nKey: `", $key, "`.")] pub $field: $kind ),* }

        impl Default for $name {
            /// Made once: patterns are compiled.
            fn default() -> Self {
                static DEFAULT: LazyLock<$name> = LazyLock::new(|| $name { $( $field: $default ),* });
                DEFAULT.clone()
            }
        }

        impl $name {
            /// Sets one entry.
            ///
            /// # Errors
            /// An unknown key or a bad value; nothing is changed then.
            fn set_known(&mut self, key: &str, text: &str) -> Result<(), ConfigFault> {
                match key {
                    $( $key => {
                        let value = <$kind as Value>::parse(text)
                            .ok_or(if stringify!($kind) == "AlwaysOff" { ConfigFault::Unsupported } else { ConfigFault::NotA(<$kind as Value>::KIND) })?;
                        $( if !value.at_least($least) { return Err(ConfigFault::Below($least)); } )?
                        self.$field = value;
                        Ok(())
                    } )*
                    _ => Err(ConfigFault::UnknownKey),
                }
            }

            /// Defaults, overridden by entries; entries that are not accepted are left out (replay must not fail).
            #[must_use]
            pub fn from_entries<'a>(defaults: &Self, entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
                let mut config = defaults.clone();
                for (key, value) in entries {
                    let _ = config.set(key, value);
                }
                config
            }

            /// The value of a key as text, `None` for an unknown key.
            #[must_use]
            pub fn text_of(&self, key: &str) -> Option<String> {
                match key { $( $key => Some(self.$field.text()), )* _ => None }
            }
        }

        /// All keys of this kind with their defaults, in the order of the documentation.
        #[must_use]
        pub fn $keys() -> Vec<KeyInfo> {
            let defaults = $name::default();
            vec![ $( KeyInfo {
                key: $key,
                kind: <$kind as Value>::KIND,
                default: defaults.$field.text(),
                says: $says,
                secret: false $( || $secret )?,
            } ),* ]
        }
    };
}

config! {
    /// What a topic may be told. Times in milliseconds, sizes in bytes.
    TopicConfig, topic_keys;
    "An acks=all append needs so many in-sync replicas." "min.insync.replicas" => min_insync_replicas: u32 = 1, min 1;
    "Records older than this may go; −1: never." "retention.ms" => retention_ms: i64 = 604_800_000, min -1;
    "A partition's log larger than this loses old segments; −1: never." "retention.bytes" => retention_bytes: i64 = -1, min -1;
    "A segment is closed at this size." "segment.bytes" => segment_bytes: u32 = 1_073_741_824, min 14;
    "A segment is closed at this age." "segment.ms" => segment_ms: i64 = 604_800_000, min 1;
    "The largest batch." "max.message.bytes" => max_message_bytes: u32 = 1_048_588, min 0;
    "What retention does." "cleanup.policy" => cleanup_policy: CleanupPolicy = CleanupPolicy::Delete;
    "Whether a replica outside the ISR may be elected." "unclean.leader.election.enable" => unclean_leader_election_enable: bool = false;
    "Compression at rest; only `producer` has an effect." "compression.type" => compression_type: Arc<str> = "producer".into();
    "A flush when so many records are not durable; until it ends the replica does not count as having them (acks=1 does not wait)." "flush.messages" => flush_messages: i64 = i64::MAX, min 1;
    "A flush when records are not durable for so long; looked for every `log.flush.scheduler.interval.ms`." "flush.ms" => flush_ms: i64 = i64::MAX, min 0;
    "Distance between entries of the offset index." "index.interval.bytes" => index_interval_bytes: u32 = 4096, min 0;
    "How long a tombstone stays after compaction." "delete.retention.ms" => delete_retention_ms: i64 = 86_400_000, min 0;
    "A compacted log is cleaned when more than this share of it is new." "min.cleanable.dirty.ratio" => min_cleanable_dirty_ratio: Share = Share(500_000);
    "What is younger is not compacted." "min.compaction.lag.ms" => min_compaction_lag_ms: i64 = 0, min 0;
    "What is older is compacted, however little of it there is." "max.compaction.lag.ms" => max_compaction_lag_ms: i64 = i64::MAX, min 1;
    "How long a deleted segment's file stays." "file.delete.delay.ms" => file_delete_delay_ms: i64 = 60_000, min 0;
    "Replicas whose leader side is throttled." "leader.replication.throttled.replicas" => leader_replication_throttled_replicas: List = List::default();
    "Replicas whose follower side is throttled." "follower.replication.throttled.replicas" => follower_replication_throttled_replicas: List = List::default();
    "Partitions whose mirroring is throttled (spec 4.7)." "mirror.replication.throttled.replicas" => mirror_replication_throttled_replicas: List = List::default();
    "Mirroring survives an unclean election at the source by cutting; alignment waits for all replicas (spec 9.3)." "mirror.support.unclean.leader.election" => mirror_support_unclean_leader_election: bool = false;
    "Tiered storage; refused." "remote.storage.enable" => remote_storage_enable: AlwaysOff = AlwaysOff;
    "Diskless storage; refused." "diskless.enable" => diskless_enable: AlwaysOff = AlwaysOff;
}

config! {
    /// What a broker, or all brokers, may be told. Times in milliseconds, sizes in bytes.
    BrokerConfig, broker_keys;
    "A follower that was not caught up for so long leaves the ISR." "replica.lag.time.max.ms" => replica_lag_time_max_ms: u64 = 30_000, min 1;
    "How long a follower's fetch without data waits." "replica.fetch.wait.max.ms" => replica_fetch_wait_max_ms: u32 = 500, min 0;
    "Limit per partition of a follower's fetch." "replica.fetch.max.bytes" => replica_fetch_max_bytes: u32 = 1_048_576, min 0;
    "A follower's fetch is answered when so much is there." "replica.fetch.min.bytes" => replica_fetch_min_bytes: u32 = 1, min 0;
    "Limit of a follower's fetch." "replica.fetch.response.max.bytes" => replica_fetch_response_max_bytes: u32 = 10_485_760, min 0;
    "Wait after an error of a follower's fetch." "replica.fetch.backoff.ms" => replica_fetch_backoff_ms: u64 = 1_000, min 0;
    "Timeout of a follower's requests." "replica.socket.timeout.ms" => replica_socket_timeout_ms: u64 = 30_000, min 1;
    "Fetchers per source broker." "num.replica.fetchers" => num_replica_fetchers: u32 = 1, min 1;
    "A broker without a heartbeat for so long is fenced." "broker.session.timeout.ms" => broker_session_timeout_ms: u64 = 9_000, min 1;
    "Distance between heartbeats." "broker.heartbeat.interval.ms" => broker_heartbeat_interval_ms: u64 = 2_000, min 1;
    "Whether the controller keeps eligible leader replicas (KIP-966)." "eligible.leader.replicas.enable" => eligible_leader_replicas_enable: bool = true;
    "Whether leadership returns to preferred replicas by itself." "auto.leader.rebalance.enable" => auto_leader_rebalance_enable: bool = true;
    "Distance between such checks." "leader.imbalance.check.interval.seconds" => leader_imbalance_check_interval_seconds: u64 = 300, min 1;
    "Distance between checkpoints of recovery points." "log.flush.offset.checkpoint.interval.ms" => log_flush_offset_checkpoint_interval_ms: u64 = 60_000, min 0;
    "Distance between checkpoints of log starts." "log.flush.start.offset.checkpoint.interval.ms" => log_flush_start_offset_checkpoint_interval_ms: u64 = 60_000, min 0;
    "Distance between checkpoints of high watermarks." "replica.high.watermark.checkpoint.interval.ms" => replica_high_watermark_checkpoint_interval_ms: u64 = 5_000, min 1;
    "Distance between looks for logs that are unflushed for longer than `flush.ms`; the default is never." "log.flush.scheduler.interval.ms" => log_flush_scheduler_interval_ms: i64 = i64::MAX, min 1;
    "Distance between retention runs." "log.retention.check.interval.ms" => log_retention_check_interval_ms: u64 = 300_000, min 1;
    "Distance between looks of the log cleaner for something to do." "log.cleaner.backoff.ms" => log_cleaner_backoff_ms: u64 = 15_000, min 1;
    "Whether a stop in order hands leaderships over first." "controlled.shutdown.enable" => controlled_shutdown_enable: bool = true;
    "Replicas of a topic that does not say." "default.replication.factor" => default_replication_factor: u32 = 1, min 1;
    "Partitions of a topic that does not say." "num.partitions" => num_partitions: u32 = 1, min 1;
    "Timeout of a broker's requests." "request.timeout.ms" => request_timeout_ms: u64 = 30_000, min 1;
    "Limit of any fetch answer." "fetch.max.bytes" => fetch_max_bytes: u32 = 57_671_680, min 1024;
    "Fetch sessions kept." "max.incremental.fetch.session.cache.slots" => max_incremental_fetch_session_cache_slots: u32 = 1_000, min 0;
    "A producer id unused for so long is forgotten." "producer.id.expiration.ms" => producer_id_expiration_ms: u64 = 86_400_000, min 1;
    "How long a voter waits for an election before it looks for votes itself; up to twice that, drawn." "controller.quorum.election.timeout.ms" => controller_quorum_election_timeout_ms: u64 = 1_000, min 1;
    "How long a voter does without its leader, and a leader without a majority that fetches (half as long again)." "controller.quorum.fetch.timeout.ms" => controller_quorum_fetch_timeout_ms: u64 = 2_000, min 1;
    "A metadata snapshot is written after so many bytes." "metadata.log.max.record.bytes.between.snapshots" => metadata_log_max_record_bytes_between_snapshots: u64 = 20_971_520, min 1;
    "Partitions of `__mirror_state`; must not change afterwards (spec 7.1)." "mirror.state.topic.num.partitions" => mirror_state_topic_num_partitions: u32 = 50, min 1;
    "Replicas of `__mirror_state`." "mirror.state.topic.replication.factor" => mirror_state_topic_replication_factor: u32 = 3, min 1;
    "Mirror fetchers per source broker and mirror." "mirror.num.replica.fetchers" => mirror_num_replica_fetchers: u32 = 1, min 1;
    "Distance between runs of the sync loop." "mirror.metadata.refresh.interval.ms" => mirror_metadata_refresh_interval_ms: u64 = 60_000, min 0;
    "First wait before a FAILED partition is retried." "mirror.failed.retry.initial.backoff.ms" => mirror_failed_retry_initial_backoff_ms: u64 = 1_000, min 1;
    "Longest such wait." "mirror.failed.retry.max.backoff.ms" => mirror_failed_retry_max_backoff_ms: u64 = 300_000, min 1;
    "Retries before an operator is needed; 0: none." "mirror.failed.retry.max.attempts" => mirror_failed_retry_max_attempts: u32 = 100, min 0;
    "Partitions of `__transaction_state`; must not change afterwards." "transaction.state.log.num.partitions" => transaction_state_log_num_partitions: u32 = 50, min 1;
    "Replicas of `__transaction_state`." "transaction.state.log.replication.factor" => transaction_state_log_replication_factor: u32 = 3, min 1;
    "`min.insync.replicas` of `__transaction_state`." "transaction.state.log.min.isr" => transaction_state_log_min_isr: u32 = 2, min 1;
    "`segment.bytes` of `__transaction_state`." "transaction.state.log.segment.bytes" => transaction_state_log_segment_bytes: u32 = 104_857_600, min 1;
    "The longest timeout that a transactional producer may ask for." "transaction.max.timeout.ms" => transaction_max_timeout_ms: u32 = 900_000, min 1;
    "How transactions end: 1 leaves a producer its epoch, 2 raises it with each (KIP-890; in Kafka a feature of the cluster)." "transaction.version" => transaction_version: u32 = 2, min 1;
    "Distance between looks for transactions that are open for too long." "transaction.abort.timed.out.transaction.cleanup.interval.ms" => transaction_abort_timed_out_transaction_cleanup_interval_ms: u64 = 10_000, min 1;
    "Threads of the mirror coordinator." "mirror.coordinator.threads" => mirror_coordinator_threads: u32 = 1, min 1;
    "Timeout of a state write." "mirror.coordinator.write.timeout.ms" => mirror_coordinator_write_timeout_ms: u64 = 5_000, min 1;
    "How long state writes wait for company." "mirror.coordinator.append.linger.ms" => mirror_coordinator_append_linger_ms: u64 = 10, min 0;
    "Bytes read at once while a state partition loads." "mirror.coordinator.load.buffer.size" => mirror_coordinator_load_buffer_size: u32 = 5_242_880, min 1;
    "Limit of throttled mirroring, bytes per second (spec 4.7)." "mirror.replication.throttled.rate" => mirror_replication_throttled_rate: i64 = i64::MAX, min 0;
}

config! {
    /// What a mirror may be told (spec 9.2). Times in milliseconds, sizes in bytes.
    MirrorConfig, mirror_keys;
    "The source's brokers: node ids (in place of host and port)." "bootstrap.servers" => bootstrap_servers: List = List::default();
    "The source's cluster id, filled in by the client that creates the mirror." "source.cluster.id" => source_cluster_id: Arc<str> = "".into();
    "Timeout of requests to the source." "request.timeout.ms" => request_timeout_ms: u64 = 30_000, min 0;
    "First timeout of an attempt to connect." "socket.connection.setup.timeout.ms" => socket_connection_setup_timeout_ms: u64 = 10_000, min 0;
    "Longest timeout of an attempt to connect." "socket.connection.setup.timeout.max.ms" => socket_connection_setup_timeout_max_ms: u64 = 30_000, min 0;
    "An idle connection is closed after this." "connections.max.idle.ms" => connections_max_idle_ms: i64 = 600_000;
    "How long a fetch without data waits at the source." "fetch.wait.max.ms" => fetch_wait_max_ms: u32 = 1_000, min 0;
    "Wait after a failed fetch." "fetch.backoff.ms" => fetch_backoff_ms: u64 = 1_000, min 0;
    "A fetch is answered when so much is there." "fetch.min.bytes" => fetch_min_bytes: u32 = 1, min 0;
    "Limit of a fetch answer." "fetch.response.max.bytes" => fetch_response_max_bytes: u32 = 10_485_760, min 0;
    "Limit per partition." "fetch.max.bytes" => fetch_max_bytes: u32 = 1_048_576, min 0;
    "Timeout of a fetch on the socket." "socket.timeout.ms" => socket_timeout_ms: u64 = 30_000, min 0;
    "Receive buffer of a fetcher's connection." "socket.receive.buffer.bytes" => socket_receive_buffer_bytes: i64 = 65_536, min -1;
    "Topic configs that are not synced." "topic.properties.exclude" => topic_properties_exclude: Patterns = Patterns::of(DEFAULT_PROPERTIES_EXCLUDE);
    "Topics to mirror." "topics.include" => topics_include: Patterns = Patterns::of(&[]);
    "Topics not to mirror; wins over include." "topics.exclude" => topics_exclude: Patterns = Patterns::of(&["__.*"]);
    "Groups whose offsets are synced." "groups.include" => groups_include: Patterns = Patterns::of(&[".*"]);
    "Groups whose offsets are not synced; wins." "groups.exclude" => groups_exclude: Patterns = Patterns::of(&[]);
    "ACL rules to sync (grammar of spec 6.7)." "acls.include" => acls_include: Arc<str> = "*".into();
    "Whether a source that cannot answer the loop check is accepted (decision 26)." "allow.one.way" => allow_one_way: bool = false;
    "Security of connections to the source." "security.protocol" => security_protocol: Arc<str> = "PLAINTEXT".into();
    "SASL mechanism." "sasl.mechanism" => sasl_mechanism: Arc<str> = "PLAIN".into();
    "SASL login." "sasl.jaas.config" => sasl_jaas_config: Arc<str> = "".into(), secret true;
    "Trust store." "ssl.truststore.location" => ssl_truststore_location: Arc<str> = "".into();
    "Trust store password." "ssl.truststore.password" => ssl_truststore_password: Arc<str> = "".into(), secret true;
    "Key store." "ssl.keystore.location" => ssl_keystore_location: Arc<str> = "".into();
    "Key store password." "ssl.keystore.password" => ssl_keystore_password: Arc<str> = "".into(), secret true;
    "Key password." "ssl.key.password" => ssl_key_password: Arc<str> = "".into(), secret true;
}

/// Default of `topic.properties.exclude` (spec 6.4, names corrected after E-14).
const DEFAULT_PROPERTIES_EXCLUDE: &[&str] = &[
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms",
    "message.timestamp.type",
    "unclean.leader.election.enable",
    "min.insync.replicas",
];

/// Broker keys that are defaults of topic keys (Kafka's synonyms), as cluster-wide broker config.
const TOPIC_SYNONYMS: &[(&str, &str)] = &[
    ("min.insync.replicas", "min.insync.replicas"),
    ("unclean.leader.election.enable", "unclean.leader.election.enable"),
    ("log.retention.ms", "retention.ms"),
    ("log.retention.bytes", "retention.bytes"),
    ("log.segment.bytes", "segment.bytes"),
    ("log.roll.ms", "segment.ms"),
    ("message.max.bytes", "max.message.bytes"),
    ("log.cleanup.policy", "cleanup.policy"),
    ("log.flush.interval.messages", "flush.messages"),
    ("log.flush.interval.ms", "flush.ms"),
    ("log.index.interval.bytes", "index.interval.bytes"),
    ("log.cleaner.delete.retention.ms", "delete.retention.ms"),
    ("log.cleaner.min.cleanable.ratio", "min.cleanable.dirty.ratio"),
    ("log.cleaner.min.compaction.lag.ms", "min.compaction.lag.ms"),
    ("log.cleaner.max.compaction.lag.ms", "max.compaction.lag.ms"),
    ("log.segment.delete.delay.ms", "file.delete.delay.ms"),
];

/// Names of broker keys that set a topic default, with the topic key they set.
#[must_use]
pub fn topic_synonym(broker_key: &str) -> Option<&'static str> {
    TOPIC_SYNONYMS.iter().find(|(broker, _)| *broker == broker_key).map(|(_, topic)| *topic)
}

fn named(key: &str, result: Result<(), ConfigFault>) -> Result<(), ConfigError> {
    result.map_err(|why| ConfigError { key: key.into(), why })
}

impl TopicConfig {
    /// Sets one entry.
    ///
    /// # Errors
    /// An unknown key or a bad value; nothing is changed then.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        named(key, self.set_known(key, value))
    }
}

impl BrokerConfig {
    /// Sets one entry. Keys that are defaults of topic keys are checked here and take effect through
    /// [`MetadataImage::topic_config`](crate::metadata::image::MetadataImage::topic_config).
    ///
    /// # Errors
    /// An unknown key or a bad value; nothing is changed then.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        if let Some(topic_key) = topic_synonym(key) {
            return named(key, TopicConfig::default().set_known(topic_key, value));
        }
        named(key, self.set_known(key, value))
    }
}

impl MirrorConfig {
    /// Sets one entry; the older `mirror.` prefix is accepted.
    ///
    /// # Errors
    /// An unknown key or a bad value; nothing is changed then.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        let newest = key.strip_prefix("mirror.").unwrap_or(key);
        if newest == "bootstrap.servers" && parse_nodes(value).is_none() {
            return named(key, Err(ConfigFault::NotA("list of node ids")));
        }
        named(key, self.set_known(newest, value))
    }
}

/// Node ids of a `bootstrap.servers` value, `None` if an element is not one.
#[must_use]
pub fn parse_nodes(text: &str) -> Option<Vec<crate::ids::NodeId>> {
    let parts = text.split(',').map(str::trim).filter(|s| !s.is_empty());
    parts.map(|part| part.parse().ok().map(crate::ids::NodeId)).collect()
}

#[cfg(test)]
#[path = "configs_tests.rs"]
mod tests;
