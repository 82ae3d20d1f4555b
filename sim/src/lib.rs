//! Where the state machines of `mirrorlab-model` run: event queue, network, disks, clocks, node life-cycle.
//!
//! Read in this order: [`rng`] (every draw is a hash of where it is made), [`queue`] (what happens next), [`clock`] (what a
//! node believes the time is), [`disk`] (what a node's disk holds, and what a crash leaves of it), [`net`] (what passes
//! between nodes), [`wire`] (whether bytes can carry it), [`node`] (a process and what outlives it), [`world`] (all of it, step
//! by step), [`causes`] (what led to what), [`trace_hash`] (one number per history), [`pump`] (driven under madsim), [`face`] (shown to async tasks that look
//! on). [`gallop`] searches logs from their end.

#[cfg(not(any(madsim, doc)))] // documentation runs nothing, and RUSTDOCFLAGS replaces the flag too
compile_error!(
    "the simulator is compiled out: the flag `--cfg madsim` is missing. It comes from .cargo/config.toml of the workspace; \
     an exported RUSTFLAGS (or CARGO_ENCODED_RUSTFLAGS) replaces it, and `--manifest-path` from another directory does not \
     find it. Run cargo from the workspace root and `unset RUSTFLAGS`."
);

pub mod causes;
pub mod clock;
pub mod disk;
pub mod face;
pub mod foreign;
pub mod gallop;
pub mod net;
pub mod node;
pub mod pump;
pub mod queue;
pub mod rng;
pub mod trace_hash;
pub mod wire;
pub mod world;
