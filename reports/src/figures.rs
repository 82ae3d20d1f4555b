//! Names of the figures that the printed summary and the page look for in [`Record::figures`].
//!
//! A figure that was not measured is absent, never zero: then a dash is shown. MB are 10^6 bytes, seconds are simulated.
//!
//! [`Record::figures`]: crate::record::Record::figures

/// Records that producers saw acknowledged.
pub const ACKED_RECORDS: &str = "acked_records";
/// Records appended by mirror leaders.
pub const MIRRORED_RECORDS: &str = "mirrored_records";
/// Records that consumers read.
pub const READ_RECORDS: &str = "read_records";
/// MB appended by mirror leaders.
pub const MIRRORED_MB: &str = "mirrored_mb";
/// Mirrored MB per simulated second, between the first and the last mirrored batch.
pub const MIRRORED_MB_PER_S: &str = "mirrored_mb_per_s";
/// Sum of all lags at the end, in records; absent while a mirror leader does not know its lag.
pub const LAG_END: &str = "lag_end";
/// Samples of lag that were unknown: they are in no percentile.
pub const LAG_SAMPLES_UNKNOWN: &str = "lag_samples_unknown";
/// Simulated seconds from the end of traffic and faults until every lag was zero; absent if that never came.
pub const CATCH_UP_S: &str = "catch_up_s";
/// What fetching can carry at most: response maximum over round trip, times parallel fetches, in MB per second.
pub const FETCH_BOUND_MB_PER_S: &str = "fetch_bound_mb_per_s";
/// What the link can carry at most, in MB per second.
pub const LINK_BOUND_MB_PER_S: &str = "link_bound_mb_per_s";
/// What producers offered, in MB per second.
pub const OFFERED_MB_PER_S: &str = "offered_mb_per_s";
/// Records acknowledged at the source and not in the log of a copy that was stopped, in all; absent if unknown for one partition.
pub const LEFT_BEHIND_RECORDS: &str = "left_behind_records";
/// The same by partition: 99th percentile.
pub const RPO_RECORDS_P99: &str = "rpo_records_p99";
/// The same by partition: the most.
pub const RPO_RECORDS_MAX: &str = "rpo_records_max";
/// Age of the first of them by partition, in seconds: 99th percentile.
pub const RPO_S_P99: &str = "rpo_s_p99";
/// The same: the most.
pub const RPO_S_MAX: &str = "rpo_s_max";
/// Seconds from the order to stop to STOPPED, by partition: 99th percentile; absent if one never came there.
pub const RTO_S_P99: &str = "rto_s_p99";
/// The same: the most.
pub const RTO_S_MAX: &str = "rto_s_max";
/// Acknowledged records that alignments cut from sides that returned as copies.
pub const DROPPED_ACKED_RECORDS: &str = "dropped_acked_records";
