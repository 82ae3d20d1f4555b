//! What happens: scenario files, plan, workload, faults, checks, runner.

pub mod format;
mod nearest;
pub mod plan;
pub mod units;
