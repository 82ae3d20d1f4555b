//! How large a scenario may be. Beyond these a file is refused before anything is built from it.

use crate::units::{Time, TIME_MAX_NS};

/// Bytes of a file.
pub const FILE_BYTES: u64 = 16 << 20;
/// TOML tokens of a file: what bounds the memory that reading takes.
pub const TOKENS: usize = 2_000_000;
/// Keys inside keys, dotted or in brackets.
pub const DEPTH: usize = 16;
/// Bytes of one name.
pub const NAME_BYTES: usize = 249;
/// Bytes of `title`, `why` and `origin`.
pub const PROSE_BYTES: usize = 16 << 10;
/// Controllers of one cluster.
pub const CONTROLLERS: u32 = 5;
/// Brokers of all clusters together.
pub const BROKERS: u32 = 1_000;
/// Partitions times replicas over all topics, mirrored ones counted on both sides.
pub const REPLICAS: u64 = 2_000_000;
/// Clusters.
pub const CLUSTERS: usize = 100;
/// Links.
pub const LINKS: usize = 1_000;
/// `[topics.NAME]` tables; a family counts once.
pub const TOPICS: usize = 10_000;
/// Mirrors.
pub const MIRRORS: usize = 32;
/// Patterns of one mirror.
pub const PATTERNS: usize = 100;
/// Producer and consumer tables.
pub const CLIENTS: usize = 1_000;
/// Producers and consumers that these stand for.
pub const CLIENT_PROCESSES: u64 = 10_000;
/// Topics that one client names; a family counts once.
pub const CLIENT_TOPICS: usize = 100;
/// Operators of one cluster.
pub const OPERATORS: u32 = 8;
/// Steps of a timeline, as written and after repetitions and chaos are expanded.
pub const STEPS: usize = 20_000;
/// Partitions that one request creates at most: a controller takes at most so many records at once (decision 16).
pub const CREATED_AT_ONCE: u32 = 10_000;
/// Records that all producers of a run may offer: more is a slip of the pen, and no machine holds it.
pub const RECORDS: u128 = 1_000_000_000;
/// Their bytes.
pub const RECORD_BYTES: u128 = 1_000_000_000_000;
/// Rows of a matrix.
pub const MATRIX_ROWS: usize = 1_000;
/// Axes of a matrix.
pub const MATRIX_AXES: usize = 8;
/// Paths of `[draw]`.
pub const DRAWS: usize = 200;
/// Values of all paths of `[draw]`.
pub const DRAW_VALUES: usize = 10_000;
/// Tokens times rows of a matrix: what bounds the time that reading takes.
pub const MATRIX_TOKENS: usize = 50_000_000;
/// The longest duration and the longest run.
pub const TIME: Time = Time(TIME_MAX_NS);
