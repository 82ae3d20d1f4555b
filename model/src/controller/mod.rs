//! One controller of a cluster: a lane that plans operations, appends their records to the metadata log, and answers when
//! they are committed.
//!
//! Read in this order: [`state`] (what replay changes), [`plan`] (what an operation sees), [`change`] (one partition's next
//! registration), then the operations: [`brokers`], [`isr`], [`elections`], [`topics`], [`alter_configs`], [`mirrors`],
//! [`mirror_orders`]; last
//! [`store`] (disk), [`quorum`] (observers) and [`controller`] (the process).

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
pub mod plan;
pub mod quorum;
pub mod refuse;
pub mod sessions;
pub mod state;
pub mod store;
pub mod topics;
pub mod traces;

pub use config::ControllerConfig;
pub use controller::Controller;

#[cfg(test)]
mod tests;
