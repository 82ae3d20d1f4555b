//! One broker process: boot, lanes, requests, metadata, life-cycle.
//!
//! Read in this order: [`config`], [`lanes`] (which lane does what), [`broker`] (the struct and its door), [`boot`],
//! [`lifecycle`] (registration, heartbeats, shutdown), [`metadata`] (the observer, and what a new image sets going),
//! [`requests`], [`on_data`], [`on_clients`] and [`on_transactions`] (the handlers), [`transactions`] and [`markers`] (the
//! transaction coordinator), [`on_mirrors`], `orders`, `order_rules` and `recoveries` (what operators ask of mirrors),
//! [`pending`] (producers that wait), [`upkeep`] (flushes,
//! checkpoints, retention), `cleaning` (log compaction).

pub mod boot;
#[allow(clippy::module_inception)]
pub mod broker;
mod cleaning;
pub mod config;
pub mod groups;
mod joins;
pub mod lanes;
pub mod lifecycle;
pub mod markers;
pub mod metadata;
pub mod on_clients;
pub mod on_data;
pub mod on_mirrors;
pub mod on_transactions;
mod order_rules;
mod orders;
mod peers;
pub mod pending;
mod recoveries;
pub mod requests;
pub mod transactions;
pub mod upkeep;

#[cfg(test)]
mod tests;

pub use broker::Broker;
pub use config::{BrokerConfig, Release};
pub use groups::coordinator_of;
pub use lanes::{mirror_lane, mirror_timer, STOP};
