//! What was typed after `sweep`, and what it means.

use super::pool::Pool;
use crate::format::{Diagnostics, Fault, Problem};
use crate::switches::Switches;
use crate::units::{Quantity, Time};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Events after which a run is given up, unless `--events` says otherwise: some minutes.
const EVENTS_MAX: u64 = 500_000_000;

/// Arguments of a sweep.
#[derive(Args, Debug)]
pub struct SweepArgs {
    /// Scenario files, or folders of them.
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Seeds from A up to the one before B.
    #[arg(long, value_name = "A..B", value_parser = seeds, allow_hyphen_values = true)]
    pub seeds: (u64, u64),
    /// What is switched over the files.
    #[command(flatten)]
    pub switches: Switches,
    /// Shard I of N, counted from 1. Default: what a Kubernetes indexed job, a Slurm array or a CI matrix says in the
    /// environment.
    #[arg(long, value_name = "I/N", allow_hyphen_values = true)]
    pub shard: Option<String>,
    /// Run each that passes again for K of its decisions, with a node away when they commit: it has to end in the same state
    /// (L18).
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=crate::cli::SAMPLES_MAX))]
    pub absence: u32,
    /// End after this time, when what runs is over.
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub time: Option<Duration>,
    /// End with the first run that fails.
    #[arg(long)]
    pub fail_fast: bool,
    /// Write JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Run folders that are left for a group of failures that are alike: those with the fewest events.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub keep: usize,
    /// Workers, bounds and outputs.
    #[command(flatten)]
    pub common: Common,
}

/// What sweeps of every kind take.
#[derive(Args, Debug)]
pub struct Common {
    /// Worker processes. Default: one per core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub jobs: Option<u32>,
    /// Give a run up after this wall time: it is `unknown`.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10 min")]
    pub timeout: Duration,
    /// Give a run up after so many events: it is `unknown`.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), default_value_t = EVENTS_MAX)]
    pub events: u64,
    /// Print the summary as JSON and nothing else.
    #[arg(long)]
    pub json: bool,
    /// Print failures and the verdict only, and show no progress.
    #[arg(long)]
    pub quiet: bool,
    /// Where results go. Default: a folder below runs/, named by what is swept.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

impl Common {
    /// How many workers.
    #[must_use]
    pub fn jobs(&self) -> u32 {
        let cores = || std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(1));
        self.jobs.unwrap_or_else(cores)
    }

    /// The pool of workers.
    ///
    /// # Errors
    /// This machine does not let one be.
    pub(crate) fn pool(&self) -> Result<Pool, Diagnostics> {
        Pool::new(self.jobs(), self.timeout).map_err(|error| {
            Diagnostics::one("this machine", Problem::new(Fault::Machine, "unusable", error.to_string()))
        })
    }
}

fn seeds(text: &str) -> Result<(u64, u64), String> {
    let help = "write `A..B`, such as `0..100` for the seeds 0 to 99";
    let (from, to) = text.split_once("..").ok_or_else(|| help.to_owned())?;
    let number = |text: &str| text.trim().replace('_', "").parse::<u64>().map_err(|_| help.to_owned());
    let (from, to) = (number(from)?, number(to)?);
    if from < to {
        Ok((from, to))
    } else {
        Err(format!("there is no seed from {from} up to the one before {to}: {help}"))
    }
}

/// A time, `30m` as well as `30 min`.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let minutes = text.strip_suffix('m').filter(|number| number.ends_with(|c: char| c.is_ascii_digit() || c == ' '));
    let spelt = minutes.map_or_else(|| text.to_owned(), |number| format!("{number}min"));
    match Time::read(&spelt) {
        Ok(Time(0)) => Err("it must be more than nothing".to_owned()),
        Ok(Time(ns)) => Ok(Duration::from_nanos(ns)),
        Err(error) => {
            let (message, help) = error.explain::<Time>(text);
            Err(format!("{message}: {help}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_half_open() {
        assert_eq!(seeds("0..10000"), Ok((0, 10_000)));
        assert_eq!(seeds("5..6"), Ok((5, 6)));
        for bad in ["", "7", "0..", "..7", "0..=7", "7..7", "8..7", "-1..7", "a..b", "0..99999999999999999999"] {
            assert!(seeds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_have_units_and_minutes_may_be_short() {
        assert_eq!(time("30m"), Ok(Duration::from_secs(1800)));
        assert_eq!(time("30 m"), Ok(Duration::from_secs(1800)));
        assert_eq!(time("90 s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("2h"), Ok(Duration::from_secs(7200)));
        for bad in ["30", "m", "", "0 s", "-1 s", "30 parsecs"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }
}
