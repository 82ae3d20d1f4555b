//! How fast events are queued and taken.
fn main() {}
