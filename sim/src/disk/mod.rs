//! Disks of simulated nodes: page cache above a durable image, faults, and what a crash leaves of it all.
//!
//! Every replica has its bytes on its own disk, and equal content is stored once: a file of the simulated disk is a position
//! in a shared *lineage* of appends. Read in this order: [`store`] (lineages, forks, what is shared), `tree` (names and their
//! durability), [`node`] (one node's disk), [`view`] (the disk as a process sees it), [`flush`], [`crash`], [`fault`],
//! [`inspect`] (the disk as a checker sees it). [`real`] is the same port over a real directory.

mod copy;
pub mod crash;
pub mod fault;
pub mod flush;
pub mod inspect;
pub mod journal;
mod lineage;
pub mod node;
pub mod real;
pub mod rot;
pub mod store;
mod tree;
pub mod view;

pub use copy::DiskCopy;
pub use crash::{CrashRules, PowerLoss};
pub use fault::{ErrorRule, Ops, RuleId};
pub use flush::{FlushEnd, FlushStart, Ticket};
pub use inspect::{equal_prefix, shared_prefix, Look, Mismatch};
pub use node::{DiskModel, NodeDisk};
pub use real::RealDisk;
pub use store::{LineageId, Store, Sum};
pub use view::DiskView;

/// Pushes onto a long-lived vector that must not be half empty: it grows by an eighth.
fn push_tight<T>(items: &mut Vec<T>, item: T) {
    if items.len() == items.capacity() {
        items.reserve_exact(items.len() / 8 + 2);
    }
    items.push(item);
}

#[cfg(test)]
mod tests;
