//! What was measured: the record that a run leaves, and its rendering as text, JSON, JUnit XML and HTML.
//!
//! Read in this order: [`record`] is what all else renders, [`figures`] names what a run may measure, [`distribution`] gives
//! percentiles; [`text`] prints, [`html`] makes a page with charts, [`junit`] speaks to CI, [`census`] adds up what happened over
//! many runs, [`load`] reads records back, [`sweep`] does all this for many runs, [`hunt`]
//! for many runs of many mutants.

pub mod census;
mod charts;
pub mod distribution;
mod failovers;
pub mod figures;
pub mod html;
pub mod hunt;
pub mod junit;
pub mod load;
pub mod record;
mod rows;
#[cfg(test)]
mod samples;
mod show;
pub mod sweep;
pub mod text;

pub use rows::worst;
