//! Leader and follower of a partition: roles, in-sync replicas, watermarks, fetch sessions and replica fetchers.
//!
//! Read in this order: [`partition`] (what is kept per replica), [`roles`] (what metadata makes of it), [`append`] (writes and
//! the watermark), [`isr`] (who is in sync), [`fetch_session`] and [`fetch_serve`] (the serving side of a fetch),
//! [`queries`] (offsets and epochs), [`replica_fetcher`] and [`follower`] (the fetching side), [`barrier`] (waits of a mirror), [`cleaning`] (log compaction); [`channel`] (the way to the
//! controller).

pub mod alignment;
pub mod append;
pub mod barrier;
pub mod channel;
pub mod chunked;
pub mod cleaning;
pub mod fetch_answers;
pub mod fetch_serve;
pub mod fetch_session;
pub mod follower;
pub mod isr;
pub mod partition;
pub mod queries;
pub mod replica_fetcher;
pub mod roles;
pub mod upkeep;
pub mod waits;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use partition::{BrokerView, Follower, LeaderState, Replica, Replicas, Role, TopicPolicy};
pub use roles::{FetchChange, PartitionSpec};
