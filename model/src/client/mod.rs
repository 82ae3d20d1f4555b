//! Clients as processes: producer, consumer, admin. They find out for themselves who leads, retry, back off and time out,
//! because what a client does while a cluster misbehaves is half of what the cluster promises.
//!
//! Read in this order: [`connections`], [`metadata`], [`cluster`] (shared by all); [`generator`], [`accumulator`],
//! [`idempotence`], [`producer`], `verdicts`, [`transactions`]; [`sessions`], [`delivery`], [`consumer`], `questions`, `answers`; [`commands`], [`admin`].

pub mod accumulator;
pub mod admin;
mod answers;
pub mod cluster;
pub mod commands;
pub mod connections;
pub mod consumer;
pub mod delivery;
pub mod door;
pub mod generator;
pub mod idempotence;
pub mod latency;
pub mod metadata;
pub mod mirror_orders;
pub mod producer;
mod questions;
pub mod read_hash;
pub mod sessions;
#[cfg(test)]
mod testing;
pub mod transactions;
mod verdicts;
