//! Engines that plan and replay: the controller, and the shards of the coordinators.

pub mod engine;
pub mod routing;
