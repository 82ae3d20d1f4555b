//! Which part of a sweep this process runs, and the order of all of it.
//!
//! Shards are counted from 1, as CI systems count them: `--shard 1/4` to `--shard 4/4`. Without the option the variables of a
//! scheduler are taken, if both the index and the count are there:
//!
//! | scheduler | index | count |
//! |---|---|---|
//! | Slurm array | `SLURM_ARRAY_TASK_ID` (from `SLURM_ARRAY_TASK_MIN`, by `SLURM_ARRAY_TASK_STEP`) | `SLURM_ARRAY_TASK_COUNT` |
//! | Kubernetes indexed job | `JOB_COMPLETION_INDEX`, from 0 | `MIRRORLAB_SHARDS`, to be set to the job's `completions` |
//! | GitLab `parallel` and others | `CI_NODE_INDEX`, from 1 | `CI_NODE_TOTAL` |
//! | CircleCI | `CIRCLE_NODE_INDEX`, from 0 | `CIRCLE_NODE_TOTAL` |
//! | Buildkite | `BUILDKITE_PARALLEL_JOB`, from 0 | `BUILDKITE_PARALLEL_JOB_COUNT` |

use crate::format::{Diagnostics, Fault, Problem};

/// Part `index` (from 1) of `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub index: u32,
    /// How many there are.
    pub of: u32,
}

/// Index, its first value, count.
const SCHEDULERS: [(&str, u32, &str); 5] = [
    ("SLURM_ARRAY_TASK_ID", 0, "SLURM_ARRAY_TASK_COUNT"),
    ("JOB_COMPLETION_INDEX", 0, "MIRRORLAB_SHARDS"),
    ("CI_NODE_INDEX", 1, "CI_NODE_TOTAL"),
    ("CIRCLE_NODE_INDEX", 0, "CIRCLE_NODE_TOTAL"),
    ("BUILDKITE_PARALLEL_JOB", 0, "BUILDKITE_PARALLEL_JOB_COUNT"),
];

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { index: 1, of: 1 };

    /// What `--shard` says, else the environment, else all of it; with the name of the variable that said so.
    ///
    /// # Errors
    /// What is not `I/N` with I from 1 to N, or a variable that does not go with its partner.
    pub fn choose(
        option: Option<&str>,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<(Self, Option<&'static str>), Diagnostics> {
        if let Some(text) = option {
            return Ok((Self::parse(text)?, None));
        }
        for (index, first, count) in SCHEDULERS {
            let (Some(at), Some(of)) = (env(index), env(count)) else { continue };
            let wrong = || {
                let message = format!("{index}={at} and {count}={of} name no shard");
                refused(message, format!("say which one with --shard I/N; {index} is counted from {first}"))
            };
            let number = |text: &str| text.trim().parse::<u32>().ok();
            let (Some(mut at), Some(of)) = (number(&at), number(&of)) else { return Err(wrong()) };
            let mut first = first;
            if index.starts_with("SLURM") {
                first = env("SLURM_ARRAY_TASK_MIN").and_then(|text| number(&text)).unwrap_or(0);
                let step = env("SLURM_ARRAY_TASK_STEP").and_then(|text| number(&text)).unwrap_or(1).max(1);
                at = first + at.checked_sub(first).ok_or_else(wrong)? / step;
            }
            let shard = at.checked_sub(first).and_then(|at| Self { index: at.checked_add(1)?, of }.valid());
            return shard.map(|shard| (shard, Some(index))).ok_or_else(wrong);
        }
        Ok((Self::WHOLE, None))
    }

    fn parse(text: &str) -> Result<Self, Diagnostics> {
        let shard = text
            .split_once('/')
            .and_then(|(index, of)| Self { index: index.trim().parse().ok()?, of: of.trim().parse().ok()? }.valid());
        shard.ok_or_else(|| {
            let message = format!("--shard: `{}` names no shard", crate::units::clip(text, 40));
            refused(message, "shards are counted from 1: `--shard 1/4` to `--shard 4/4`".to_owned())
        })
    }

    fn valid(self) -> Option<Self> {
        (self.index >= 1 && self.index <= self.of).then_some(self)
    }

    /// Whether it runs a file with a seed, both by number. Diagonals, so that every shard has every file.
    #[must_use]
    pub fn has(self, seed: u64, file: u64) -> bool {
        let of = u64::from(self.of);
        (seed % of + file % of) % of == u64::from(self.index - 1)
    }

    /// How many runs it has of so many seeds and files.
    #[must_use]
    pub fn runs(self, seeds: u64, files: u64) -> u64 {
        let of = u64::from(self.of);
        let of_file = |file: u64| {
            let first = (u64::from(self.index - 1) + of - file % of) % of;
            if first < seeds {
                (seeds - 1 - first) / of + 1
            } else {
                0
            }
        };
        (0..files).map(of_file).fold(0, u64::saturating_add)
    }
}

fn refused(message: String, help: String) -> Diagnostics {
    Diagnostics::one("command line", Problem::new(Fault::Command, "bad-value", message).help(help))
}

/// A file of a sweep, with a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    /// Number of the file.
    pub file: u32,
    /// The seed.
    pub seed: u64,
    /// Whether it is run a second time in a new process.
    pub twice: bool,
}

/// Runs of which one is run a second time.
const BATCH: usize = 64;

/// The turns of a shard, seeds outside and files inside, so that any beginning of it covers all files.
#[derive(Debug)]
pub struct Turns {
    shard: Shard,
    first: u64,
    seeds: u64,
    files: u32,
    next: Option<(u64, u32)>,
    batch: std::vec::IntoIter<Turn>,
}

impl Turns {
    /// All of a shard, for seeds from the first up to the one before the last.
    #[must_use]
    pub fn new(shard: Shard, seeds: (u64, u64), files: u32) -> Self {
        let next = (files > 0 && seeds.0 < seeds.1).then_some((0, 0));
        Self {
            shard,
            first: seeds.0,
            seeds: seeds.1.saturating_sub(seeds.0),
            files,
            next,
            batch: Vec::new().into_iter(),
        }
    }

    fn refill(&mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        while let Some((seed, file)) = self.next.filter(|_| batch.len() < BATCH) {
            if self.shard.has(seed, u64::from(file)) {
                batch.push(Turn { file, seed: self.first + seed, twice: false });
            }
            self.next = if file + 1 < self.files {
                Some((seed, file + 1))
            } else {
                Some((seed + 1, 0)).filter(|(seed, _)| *seed < self.seeds)
            };
        }
        // Which one is a matter of its first seed, not of what is left to do: a sweep that resumes chooses the same.
        if let Some(first) = batch.first() {
            let drawn =
                xxhash_rust::xxh3::xxh3_64(&[first.seed.to_le_bytes(), u64::from(first.file).to_le_bytes()].concat());
            let len = batch.len();
            batch[(drawn % len as u64) as usize].twice = true;
        }
        self.batch = batch.into_iter();
    }
}

impl Iterator for Turns {
    type Item = Turn;
    fn next(&mut self) -> Option<Turn> {
        if self.batch.as_slice().is_empty() {
            self.refill();
        }
        self.batch.next()
    }
}

#[cfg(test)]
#[path = "shard_tests.rs"]
mod tests;
