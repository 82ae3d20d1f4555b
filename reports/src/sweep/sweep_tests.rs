//! Lines, groups and totals of sweeps.
