//! One replica's log as Kafka has it: segments on a disk that may lie about durability, and the tables that must always be
//! the fold of what the segments hold (offset index, leader epochs, producers).
//!
//! Read in this order: [`log`](self::log::Log) (the struct and its watermarks), [`append`], [`read`], [`truncate`], [`retention`],
//! [`recovery`], [`clean`] (log compaction, by the rules of `compact`); below them [`segment`], [`epoch_cache`], [`producer_state`], [`snapshot`]. [`checkpoint`] holds the files that
//! a broker writes for all its replicas together.
//!
//! A log never flushes by itself: [`Log::plan_flush`] says what must be flushed, the broker issues the effects, and only
//! [`Log::on_flushed`] moves the recovery point. The recovery point is the promise that a power loss spares what is below it.

pub mod alignment;
pub mod append;
pub mod checkpoint;
pub mod clean;
pub(crate) mod compact;
pub mod epoch_cache;
#[allow(clippy::module_inception)]
pub mod log;
pub mod policy;
pub mod producer_state;
pub mod read;
pub mod recovery;
pub mod retention;
pub mod segment;
pub mod snapshot;
pub mod truncate;

pub use append::{AppendError, AppendInfo};
pub use clean::{CleanError, Cleaned, Dirty};
pub use epoch_cache::{EpochCache, EpochEntry};
pub use log::{FlushTarget, FlushUpto, FlushWant, Log, Lowered};
pub use policy::LogPolicy;
pub use producer_state::{AbortedRange, OpenTransaction, ProducerEntry, ProducerRefusal, ProducerStates, RaisedMarker};
pub use read::{ReadError, ReadHint};
pub use recovery::{LoadFrom, Recovered};

/// A list that most logs do not have: 8 bytes instead of 24 where it is absent, and there are 600,000 logs.
#[allow(clippy::box_collection)]
type Overflow<T> = Option<Box<Vec<T>>>;

#[cfg(test)]
mod tests;
