//! Cluster mirroring (KIP-1279): the destination's brokers copy partitions of a source cluster, offsets and leader epochs
//! byte for byte.
//!
//! Read in this order: [`epochs`] (the rules), [`source`] (what is known of the source), [`link`] and [`fetcher`] (one
//! connection, one session), [`copy`] (what a fetcher does with an answer), [`manager`] (what a broker keeps of its
//! partitions), `membership` (which they are), `transitions` (their states), `placement` (their fetchers), `bumps` (their
//! leader epochs), `align` and [`inquiry`] (what must be known and cut before copying begins), [`stop`] (how it ends), [`sync`]
//! (looking at the source now and then), `jobs` (what is done once per mirror), [`retry`], [`steps`] (what a look from
//! outside sees of all that), and last `quirks` (what the prototype does where it is wrong).

mod align;
mod bumps;
pub mod coordinator;
pub mod copy;
pub mod epochs;
pub mod fetcher;
pub mod inquiry;
mod jobs;
pub mod link;
pub mod manager;
mod membership;
mod persist;
mod placement;
mod quirks;
pub mod records;
pub mod recover;
pub mod retry;
mod settings;
pub mod shard;
pub mod source;
pub mod state_client;
pub mod steps;
pub mod stop;
pub mod sync;
mod transitions;

#[cfg(test)]
mod testing;

pub use manager::{Gate, MirrorManager, MirrorTask};
