//! One controller of a cluster: a voter of the metadata quorum and, while it leads, a lane that plans operations, appends
//! their records to the metadata log, and answers when they are committed.
//!
//! Read in this order: [`state`] (what replay changes), [`plan`] (what an operation sees), [`change`] (one partition's next
//! registration), then the operations: [`brokers`], [`isr`], [`elections`], [`topics`], [`alter_configs`], [`mirrors`],
//! [`mirror_orders`], all by way of [`operations`]; then the voter: [`voter`] (what it promised and waits for), [`quorum`]
//! (what it makes of messages and time), [`term`] (what a leader knows of the others), [`peers`] and [`quorum_link`]
//! (connections; brokers reach the quorum by the same link); last [`store`] (disk), [`observers`] (whoever fetches) and the
//! process: [`controller`] (its door), [`terms`] (leading), [`replication`] (voting and following),
//! [`shutdown`] (its end).

pub mod alter_configs;
pub mod brokers;
pub mod change;
pub mod config;
#[allow(clippy::module_inception)]
pub mod controller;
pub mod elections;
pub mod isr;
pub mod mirror_orders;
pub mod mirrors;
pub mod observers;
pub mod operations;
pub mod peers;
pub mod plan;
pub mod quorum;
pub mod quorum_link;
pub mod refuse;
pub mod replication;
pub mod sessions;
pub mod shutdown;
pub mod state;
pub mod store;
pub mod term;
pub mod terms;
pub mod topics;
pub mod traces;
pub mod voter;

pub use config::ControllerConfig;
pub use controller::Controller;

#[cfg(test)]
mod tests;
