//! What was measured: the record that a run leaves, and its rendering as text, JSON, JUnit XML and HTML.

mod charts;
pub mod distribution;
pub mod figures;
pub mod record;
mod rows;
#[cfg(test)]
mod samples;
mod show;
pub mod text;

pub use rows::worst;
