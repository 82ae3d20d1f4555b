//! What a hunt leaves: for each guard switched off, and each quirk switched on, whether a sweep found it, how soon, and by which
//! invariant; and whether the protocol with all guards on is clean over the same seeds.
//!
//! Its files are lines, as those of a sweep: one that was killed goes on where it ended, and one that is given more seeds goes on
//! with those that were not tried yet.

pub mod text;

use crate::record::{Build, Verdict};
use crate::rows;
use crate::sweep::{self, Finished, Head};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A line of a hunt's file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "lowercase")]
pub enum Line {
    /// The first one: which profiles, by which binary. Its seeds are not bound.
    Head(Head),
    /// A process began to add to the file.
    Begun {
        /// Seeds for each target.
        seeds: u64,
        /// What it hunts, in order.
        targets: Vec<Target>,
        /// Runs of the baseline, all shards together.
        baseline: u64,
        /// Which ones: seed n runs file n of each list, counted round.
        #[serde(default)]
        profiles: Vec<Vec<String>>,
    },
    /// A run of the baseline is over: everything on.
    Base(Box<Base>),
    /// A run with the target switched found nothing.
    Try(Try),
    /// What became of a target. The last one counts.
    Row(Box<Row>),
}

/// A guard to be switched off, or a quirk to be switched on.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Target {
    /// Its name in the registry.
    pub name: String,
    /// `guard`, or `quirk` with the versions that have it.
    pub kind: String,
    /// Its room.
    pub room: String,
    /// The invariants that should break, likeliest first.
    pub expected: Vec<String>,
    /// Why no world can show it, if the registry says so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unseen: String,
}

impl Target {
    /// Whether it is a guard.
    #[must_use]
    pub fn is_guard(&self) -> bool {
        self.kind == "guard"
    }
}

/// A run of the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Base {
    /// Which guards and quirks it reached: bits of the program that wrote it.
    pub reached: String,
    /// How it ended.
    #[serde(flatten)]
    pub run: Finished,
}

/// A run that found nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Try {
    /// The target.
    pub target: String,
    /// The seed.
    pub seed: u64,
    /// How it ended.
    pub verdict: Verdict,
    /// Wall seconds.
    pub wall_s: f64,
    /// True: it was not run, for the baseline fails with this seed: that shows nothing about the target.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tainted: bool,
}

/// Who found a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// A profile of the swarm, by chance.
    Swarm,
    /// Only the scenario file that was written for it.
    Scenario,
    /// Nobody.
    #[default]
    Nobody,
}

impl By {
    /// One word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Swarm => "swarm",
            Self::Scenario => "own file",
            Self::Nobody => "no",
        }
    }
}

/// What became of a target.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub target: String,
    /// `guard`, or `quirk` with the versions that have it.
    pub kind: String,
    /// Its room.
    pub room: String,
    /// Whether something broke, by whoever.
    pub found: bool,
    /// Who found it.
    pub by: By,
    /// Seeds that the swarm tried, the one that found it included.
    pub seeds: u64,
    /// Those of them whose run reaches the target: with the others nothing differs.
    #[serde(default)]
    pub runs: u64,
    /// Seconds of work for those, on one core.
    pub seconds: f64,
    /// The scenario file that found it.
    #[serde(default)]
    pub scenario: String,
    /// With which seed.
    #[serde(default)]
    pub seed: u64,
    /// Events until it broke.
    #[serde(default)]
    pub events: u64,
    /// The invariant that broke first.
    #[serde(default)]
    pub invariant: String,
    /// Others that broke in the same event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// Those that should.
    pub expected: Vec<String>,
    /// Whether one that broke is one of them.
    pub as_expected: bool,
    /// Why it failed, in one line.
    #[serde(default)]
    pub reason: String,
    /// The command that shows it.
    #[serde(default)]
    pub repro: String,
    /// Steps of the plan that found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Steps of the smallest plan that fails alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shrunk_steps: Option<u64>,
    /// Whether the guard refused something in the baseline; a quirk: was passed.
    #[serde(default)]
    pub reached: bool,
    /// Why no world can show it, if the registry says so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unseen: String,
}

impl Row {
    /// The row of a target that nothing was found of so far.
    #[must_use]
    pub fn of(target: &Target, tried: Tried) -> Self {
        Self {
            target: target.name.clone(),
            kind: target.kind.clone(),
            room: target.room.clone(),
            expected: target.expected.clone(),
            seeds: tried.seeds,
            runs: tried.runs,
            seconds: tried.seconds,
            ..Self::default()
        }
    }

    /// The same, found by a run.
    #[must_use]
    pub fn found(target: &Target, tried: Tried, by: By, run: &Finished) -> Self {
        Self {
            found: true,
            by,
            scenario: run.scenario.clone(),
            seed: run.seed,
            events: run.events,
            invariant: run.invariant.clone(),
            others: run.others.clone(),
            reason: run.reason.clone(),
            repro: run.repro.clone(),
            ..Self::of(target, tried)
        }
        .judged()
    }

    fn judged(mut self) -> Self {
        self.as_expected =
            self.found && [&self.invariant].into_iter().chain(&self.others).any(|id| self.expected.contains(id));
        self
    }
}

/// How far a target was tried.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Tried {
    /// Seeds: all below this number.
    pub seeds: u64,
    /// Those of them that reached it.
    pub runs: u64,
    /// Seconds of work.
    pub seconds: f64,
}

impl Tried {
    /// One more seed.
    #[must_use]
    pub fn and(self, wall_s: f64) -> Self {
        Self { seeds: self.seeds + 1, runs: self.runs + 1, seconds: self.seconds + wall_s }
    }

    /// One more seed, that does not reach it.
    #[must_use]
    pub const fn same(self) -> Self {
        Self { seeds: self.seeds + 1, ..self }
    }
}

/// What a hunt's files say.
#[derive(Clone, Debug, Default)]
pub struct Hunt {
    head: Option<Head>,
    seeds: u64,
    /// What the last hunt was after: one that goes on with other targets, or fewer, tells of these.
    targets: Vec<Target>,
    planned: u64,
    profiles: Vec<Vec<String>>,
    /// All of the baseline, as lines of a sweep: what an earlier hunt ran besides is known, and not counted.
    baseline: Vec<sweep::Line>,
    bases: BTreeMap<(String, u64), (bool, String)>,
    tried: BTreeMap<String, Vec<Try>>,
    rows: BTreeMap<String, Row>,
}

impl Hunt {
    /// Takes a line of a file.
    pub fn add(&mut self, line: &Line) {
        match line {
            Line::Head(head) => {
                self.baseline.push(sweep::Line::Head(head.clone()));
                self.head.get_or_insert_with(|| head.clone());
            }
            Line::Begun { seeds, targets, baseline, profiles } => {
                self.baseline.push(sweep::Line::Begun { jobs: 1 });
                (self.seeds, self.planned) = (*seeds, *baseline);
                (self.targets, self.profiles) = (targets.clone(), profiles.clone());
            }
            Line::Base(base) => {
                let run = &base.run;
                let said = (is_clean(run.verdict), base.reached.clone());
                self.bases.insert((run.scenario.clone(), run.seed), said);
                self.baseline.push(sweep::Line::Run(Box::new(run.clone())));
            }
            Line::Try(tried) => {
                // A resumed process may have run the last one twice; seeds left out did not reach the target.
                let before = self.tried.entry(tried.target.clone()).or_default();
                if before.last().is_none_or(|last| tried.seed > last.seed) {
                    before.push(tried.clone());
                }
            }
            Line::Row(row) => {
                self.rows.insert(row.target.clone(), (**row).clone());
            }
        }
    }

    /// The baseline of what is hunted now.
    fn totals(&self) -> sweep::Totals {
        let is_part = |run: &Finished| {
            let seed = run.seed as usize;
            let named =
                |list: &Vec<String>| list.get(seed % list.len().max(1)).is_some_and(|file| *file == run.scenario);
            run.seed < self.seeds && (self.profiles.is_empty() || self.profiles.iter().any(named))
        };
        let mut totals = sweep::Totals::default();
        let lines = self.baseline.iter().filter(|line| line.run().is_none_or(is_part));
        lines.for_each(|line| totals.add(line));
        totals
    }

    /// Whether nothing is left to do about a target with so many seeds. What nobody found is looked at again: a file may have
    /// been written for it.
    #[must_use]
    pub fn is_over(&self, target: &str, seeds: u64) -> bool {
        self.rows.get(target).is_some_and(|row| match row.by {
            By::Swarm => row.seeds <= seeds,
            By::Scenario => row.seeds >= seeds,
            By::Nobody => false,
        })
    }

    /// A find of the swarm that was not made smaller.
    #[must_use]
    pub fn large(&self, target: &str) -> Option<&Row> {
        self.rows.get(target).filter(|row| row.by == By::Swarm && row.shrunk_steps.is_none())
    }

    /// How far a target was tried without finding it, of so many seeds.
    #[must_use]
    pub fn tried(&self, target: &str, seeds: u64) -> Tried {
        let all = self.tried.get(target).map_or(&[][..], Vec::as_slice);
        let begun = all.iter().take_while(|tried| tried.seed < seeds);
        let tried = begun.fold(Tried::default(), |sum, tried| Tried { seeds: tried.seed, ..sum }.and(tried.wall_s));
        let beyond = all.last().is_some_and(|last| last.seed >= seeds);
        Tried { seeds: if beyond { seeds } else { tried.seeds }, ..tried }
    }

    /// Whether nothing broke in a run of the baseline, and what it reached; `None`: it was not run yet.
    #[must_use]
    pub fn base(&self, scenario: &str, seed: u64) -> Option<(bool, &str)> {
        self.bases.get(&(scenario.to_owned(), seed)).map(|(clean, reached)| (*clean, &**reached))
    }

    /// Runs of the targets that showed nothing, as the baseline fails with their seed.
    fn tainted(&self) -> u64 {
        let all = self.targets.iter().filter_map(|target| self.tried.get(&target.name)).flatten();
        all.filter(|tried| tried.tainted && tried.seed < self.seeds).count() as u64
    }

    /// The worst verdict of the baseline so far, whatever is missing of it.
    #[must_use]
    pub fn worst(&self) -> Option<Verdict> {
        self.totals().worst()
    }

    /// The summary of what was read.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let mut baseline = self.totals().summary();
        baseline.planned = self.planned;
        // A part of it has not passed, whatever the rest may come to.
        if baseline.runs < baseline.planned {
            baseline.verdict = Some(rows::worst(baseline.verdict.into_iter().chain([Verdict::Unknown])));
        }
        // Each line names what no line before it does: the union over all of them is right.
        let runs = self.baseline.iter().filter_map(sweep::Line::run);
        let reached: BTreeSet<&String> = runs.flat_map(|run| run.hits.iter().chain(&run.passed)).collect();
        let mut rows: Vec<Row> = Vec::new();
        let mut waiting = Vec::new();
        for target in &self.targets {
            let row = self.rows.get(&target.name);
            // One that took more seeds than are asked for now was not found by these.
            let Some(row) = row.filter(|row| row.by != By::Swarm || row.seeds <= self.seeds) else {
                waiting.push(target.name.clone());
                continue;
            };
            let now = (target.expected.clone(), target.unseen.clone());
            let mut row = Row { expected: now.0, unseen: now.1, ..row.clone() }.judged();
            row.reached = reached.contains(&target.name);
            if row.by != By::Swarm && row.seeds > self.seeds {
                let tried = self.tried(&target.name, self.seeds);
                (row.seeds, row.runs, row.seconds) = (self.seeds, tried.runs, tried.seconds);
            }
            rows.push(row);
        }
        let mut seeds: Vec<u64> = rows.iter().filter(|row| row.by == By::Swarm).map(|row| row.seeds).collect();
        let mut seconds: Vec<f64> = rows.iter().filter(|row| row.by == By::Swarm).map(|row| row.seconds).collect();
        seeds.sort_unstable();
        seconds.sort_by(f64::total_cmp);
        let count = |by: By| rows.iter().filter(|row| row.by == by).count() as u64;
        Summary {
            seeds: self.seeds,
            profiles: self.head.iter().flat_map(|head| &head.files).map(|file| file.path.clone()).collect(),
            by_swarm: count(By::Swarm),
            by_scenario: count(By::Scenario),
            by_nobody: count(By::Nobody),
            waiting,
            median_seeds: seeds.get(seeds.len() / 2).copied(),
            median_seconds: seconds.get(seconds.len() / 2).copied(),
            missed: rows.iter().filter(|row| !row.reached).map(|row| row.target.clone()).collect(),
            tainted: self.tainted(),
            baseline_planned: self.planned,
            build: self.head.as_ref().map(|head| head.build.clone()).unwrap_or_default(),
            rows,
            baseline,
        }
    }
}

/// Whether nothing broke in a run: what its scenario demands to be reached is another question.
#[must_use]
pub fn is_clean(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Pass | Verdict::Vacuous | Verdict::Unmet)
}

/// The summary of a hunt: what `--json` prints.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Seeds for each target.
    pub seeds: u64,
    /// The profiles of the swarm.
    pub profiles: Vec<String>,
    /// One row for each target, in order of the registry.
    pub rows: Vec<Row>,
    /// Targets that the swarm found.
    pub by_swarm: u64,
    /// Those that only the scenario file written for them found.
    pub by_scenario: u64,
    /// Those that nobody found.
    pub by_nobody: u64,
    /// Targets that were not hunted to the end yet.
    pub waiting: Vec<String>,
    /// Seeds to the first detection, the median of those that the swarm found.
    pub median_seeds: Option<u64>,
    /// Seconds of work to the first detection, likewise.
    pub median_seconds: Option<f64>,
    /// MISS: guards that refused nothing in the baseline, and quirks whose place no run passed: on and off did not differ.
    pub missed: Vec<String>,
    /// Runs that failed and showed nothing, because the baseline fails with the same seed.
    pub tainted: u64,
    /// Runs that the baseline has, all shards together.
    pub baseline_planned: u64,
    /// What made the binary.
    pub build: Build,
    /// The same seeds with all guards on and no quirk.
    pub baseline: sweep::Summary,
}

impl Summary {
    /// The exit code: that of the baseline, and unknown if it is not complete.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.baseline.verdict.unwrap_or(Verdict::Unknown).exit_code()
    }
}

#[cfg(test)]
#[path = "hunt_tests.rs"]
mod tests;
