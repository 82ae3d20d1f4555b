//! What a topic's configuration says about its logs.

/// A topic's log settings; one value is shared by all replicas of the topic. Sizes in bytes, times in milliseconds, −1 for
/// "no limit" where that exists. Defaults are Kafka's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPolicy {
    /// `segment.bytes`: a batch that would make a segment longer goes into a new one.
    pub segment_bytes: u32,
    /// `segment.ms`: a segment whose first record is older than this is closed by the next append.
    pub segment_ms: i64,
    /// `retention.ms`, −1 for ever.
    pub retention_ms: i64,
    /// `retention.bytes`, −1 without limit.
    pub retention_bytes: i64,
    /// `max.message.bytes`: the largest batch that a leader takes.
    pub max_message_bytes: u32,
    /// `index.interval.bytes`.
    pub index_interval_bytes: u32,
    /// `flush.messages`: so many records that are not durable ask for a flush.
    pub flush_messages: i64,
    /// `flush.ms`: records that are not durable for longer ask for a flush.
    pub flush_ms: i64,
    /// Whether `cleanup.policy` has `delete`.
    pub delete: bool,
    /// Whether `cleanup.policy` has `compact`.
    pub compact: bool,
    /// `min.cleanable.dirty.ratio` in millionths: less is not worth the work.
    pub dirty_ratio_ppm: u32,
    /// `delete.retention.ms`: tombstones and markers stay for so long after they were first cleaned.
    pub delete_retention_ms: i64,
    /// `min.compaction.lag.ms`: what is younger is not cleaned.
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`: what is older is cleaned whatever the ratio.
    pub max_compaction_lag_ms: i64,
    /// `producer.id.expiration.ms`: a producer that was silent for longer is forgotten.
    pub producer_expiration_ms: i64,
}

impl Default for LogPolicy {
    fn default() -> Self {
        Self {
            segment_bytes: 1 << 30,
            segment_ms: 7 * 24 * 3_600_000,
            retention_ms: 7 * 24 * 3_600_000,
            retention_bytes: -1,
            max_message_bytes: 1_048_588,
            index_interval_bytes: 4096,
            flush_messages: i64::MAX,
            flush_ms: i64::MAX,
            delete: true,
            compact: false,
            dirty_ratio_ppm: 500_000,
            delete_retention_ms: 24 * 3_600_000,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            producer_expiration_ms: 24 * 3_600_000,
        }
    }
}
