//! Messages between processes, and their exact size on the wire.

pub mod codec;
pub mod errors;
pub mod messages;
pub mod mirrors;
pub mod quorum;
pub mod size;
pub mod transactions;
