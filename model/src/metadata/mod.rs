//! The metadata log's records and the image that replaying them gives.

pub mod batches;
pub mod chunks;
pub mod configs;
pub mod delta;
pub mod directory;
pub mod encoding;
pub mod image;
pub mod patterns;
pub mod records;
pub mod snapshot;
