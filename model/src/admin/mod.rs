//! The operators' tool `kafka-cluster-mirrors` (older name `kafka-mirrors`) as pure functions: what was typed becomes an order
//! ([`command`]), and what came of it becomes text and an exit code ([`render`]). Spec 9.6 with the texts of K18.
//!
//! It is not a process: an admin client carries the order out.

pub mod command;
pub mod render;

/// The tool's names, the newest first.
pub const NAMES: [&str; 2] = ["kafka-cluster-mirrors", "kafka-mirrors"];
