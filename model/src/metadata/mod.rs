//! The metadata log's records and the image that replaying them gives.

pub mod configs;
pub mod image;
pub mod records;
