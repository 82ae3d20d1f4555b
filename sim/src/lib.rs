//! Where the state machines run.

pub mod net;
