//! Commands whose work is more than a call: what was typed, what is read, what is printed. The command line (`cli.rs`) only
//! dispatches to them.

pub mod absence;
pub mod census;
pub mod check;
pub mod lists;
pub mod named;
pub mod shrink;
pub mod why;
