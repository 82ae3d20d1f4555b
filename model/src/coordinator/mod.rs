//! Engines that plan and replay: the controller, and the shards of the coordinators.
//!
//! Transactions: [`txn_records`] (what stands in `__transaction_state`), [`txn_plan`] (one shard: what a request comes to).
//! The shards that a broker leads, and its markers on their way, are in the broker room, which has replicas and links.

pub mod engine;
pub mod routing;
pub mod txn_plan;
pub mod txn_records;
