//! Cluster mirroring (KIP-1279): the destination's brokers copy partitions of a source cluster, offsets and leader epochs
//! byte for byte.
//!
//! Read in this order: [`epochs`] (the rules), [`source`] (what is known of the source), [`link`] and [`fetcher`] (one
//! connection, one session), [`copy`] (what a fetcher does with an answer), [`manager`] (states), [`sync`] (looking at the
//! source now and then), [`retry`].

pub mod copy;
pub mod epochs;
pub mod fetcher;
pub mod link;
pub mod manager;
pub mod retry;
pub mod source;
pub mod sync;

#[cfg(test)]
mod testing;

pub use manager::{Gate, MirrorManager, MirrorTask};
