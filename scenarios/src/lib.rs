//! What happens: scenario files, plan, workload, faults, checks, runner.
//!
//! Read in this order: [`mod@format`] (what a file may say), [`plan`] (every choice made), [`lab`] (a world made of it), [`setup`]
//! (who is who), [`faults`] (what steps do), [`conditions`] (how a world is looked at), [`checks`] (what must hold), [`run`]
//! (phases and verdict), [`marks`], [`meter`], [`census`], [`failovers`], [`story`] (what is told of it), [`folder`] (what it leaves
//! on disk), [`same`] (one seed, one history), [`sweep`] (many seeds), [`hunt`] (the same with one rule left out), [`mod@shrink`] (a failing plan made smaller), [`mod@why`]
//! (what led to a violation), [`absence`] (the same run with a node away), [`cli`] (the command line), [`switches`] (options that every run takes) and [`commands`] (what is behind
//! its longer words), `again` (the one that does a run again), [`guard_page`] (guards and their proofs), [`api`] (scenarios in Rust), [`face`] and [`hands`] (what a test in
//! Rust may do to a world).

pub mod absence;
mod again;
pub mod api;
pub mod census;
pub mod checks;
pub mod cli;
pub mod commands;
pub mod conditions;
pub mod face;
pub mod failovers;
pub mod faults;
pub mod folder;
pub mod format;
pub mod given;
pub mod guard_page;
pub mod hands;
pub mod hunt;
pub mod lab;
mod losses;
pub mod marks;
pub mod meter;
mod nearest;
pub mod plan;
pub mod recorder;
pub mod run;
pub mod same;
pub mod setup;
pub mod shrink;
pub mod story;
pub mod sweep;
pub mod switches;
mod tell;
pub mod units;
pub mod why;
