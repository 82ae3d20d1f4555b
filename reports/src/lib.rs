//! What was measured: the record that a run leaves, and its rendering as text, JSON, JUnit XML and HTML.

pub mod distribution;
pub mod record;
