//! Engines that plan and replay: the controller, and the shards of the coordinators.
//!
//! Transactions, in this order: [`txn_records`] (what stands in `__transaction_state`), [`txn_plan`] (one shard: what a
//! request comes to), [`transactions`] (the shards that a broker leads), [`markers`] (decisions on their way to the logs).

pub mod engine;
pub mod markers;
pub mod routing;
pub mod transactions;
pub mod txn_plan;
pub mod txn_records;
