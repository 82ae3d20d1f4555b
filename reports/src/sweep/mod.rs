//! What a sweep leaves: files of lines, one line a finished run, and the summary over them.
//!
//! A line is written when its run is over, so that a sweep that was killed has lost nothing but what was running. Every shard
//! has a file of its own; their lines in any order give the same summary. Runs that failed alike stand in one group: the same
//! verdict, invariant, file and kind of place.

mod group;
pub mod html;
pub mod junit;
pub mod text;

pub use group::{kind_of, Group, Member};

use crate::record::{Build, Record, Verdict};
use crate::rows;
use group::Groups;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A line of a results file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "lowercase")]
pub enum Line {
    /// The first one: what is swept.
    Head(Head),
    /// A process began to add to the file, be it the first or one that resumed; `at_s` counts from here.
    Begun {
        /// Worker processes.
        jobs: u32,
    },
    /// A run is over.
    Run(Box<Finished>),
}

impl Line {
    /// The run that it tells of.
    #[must_use]
    pub fn run(&self) -> Option<&Finished> {
        match self {
            Self::Run(run) => Some(run),
            Self::Head(_) | Self::Begun { .. } => None,
        }
    }
}

/// What is swept, by what. Files of one sweep have equal heads but for the shard.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Head {
    /// Scenario files in the order of the sweep.
    pub files: Vec<FileMark>,
    /// The first seed, and the one after the last.
    pub seeds: (u64, u64),
    /// What the command line switches over the files, as it is pasted.
    pub options: String,
    /// Which shard this is, from 1, of how many.
    pub shard: (u32, u32),
    /// What made the binary.
    pub build: Build,
    /// A hash of the binary itself: a commit says nothing of changes on top of it.
    pub binary: String,
}

/// A scenario file.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FileMark {
    /// Its path as given.
    pub path: String,
    /// A hash of its text.
    pub hash: String,
}

impl Head {
    /// Runs of the whole sweep, all shards together.
    #[must_use]
    pub fn runs(&self) -> u64 {
        (self.seeds.1.saturating_sub(self.seeds.0)).saturating_mul(self.files.len() as u64)
    }

    /// Whether two files hold parts of one sweep.
    #[must_use]
    pub fn is_same_sweep(&self, other: &Self) -> bool {
        Self { shard: other.shard, ..self.clone() } == *other
    }

    /// What made another sweep of it, for a reader; `None` if it is the same.
    #[must_use]
    pub fn difference(&self, before: &Self) -> Option<String> {
        let arguments = [
            ("seeds", self.seeds != before.seeds),
            ("options", self.options != before.options),
            ("scenario files", self.paths().ne(before.paths())),
        ];
        let named: Vec<&str> = arguments.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect();
        if !named.is_empty() {
            return Some(format!("other {}", named.join(", ")));
        }
        let edited = self.files.iter().zip(&before.files).find(|(now, then)| now.hash != then.hash);
        if let Some((file, _)) = edited {
            return Some(format!("{} has changed", file.path));
        }
        if self.build.commit != before.build.commit {
            return Some(format!("made by commit {}, this is {}", before.build.commit, self.build.commit));
        }
        (self.binary != before.binary || self.build != before.build).then(|| "made by another build".to_owned())
    }

    /// Whether the command line was another one, rather than binary or files changed since.
    #[must_use]
    pub fn has_other_arguments(&self, before: &Self) -> bool {
        self.seeds != before.seeds || self.options != before.options || self.paths().ne(before.paths())
    }

    fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.path.as_str())
    }
}

/// A finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// The scenario's path as given.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// How it ended.
    pub verdict: Verdict,
    /// Why, if it did not pass.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The invariant that broke first, or what else the run failed of.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub invariant: String,
    /// Others that broke in the same event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// Where, numbers taken out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// The command that does it again, if it did not pass.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub repro: String,
    /// The running hash over all trace events, in hexadecimal.
    #[serde(default)]
    pub trace_hash: String,
    /// True if it ran a second time in a new process, and the hashes were compared.
    #[serde(default, skip_serializing_if = "is_false")]
    pub twice: bool,
    /// Events of the world.
    #[serde(default)]
    pub events: u64,
    /// Requests and responses delivered.
    #[serde(default)]
    pub messages: u64,
    /// Batches appended to any replica.
    #[serde(default)]
    pub appends: u64,
    /// Simulated seconds.
    #[serde(default)]
    pub simulated_s: f64,
    /// True: its process was killed from outside, which says nothing about the run. It is run again once.
    #[serde(default, skip_serializing_if = "is_false")]
    pub killed: bool,
    /// Wall seconds of the run.
    #[serde(default)]
    pub wall_s: f64,
    /// Wall seconds from the beginning of the process that wrote it.
    #[serde(default)]
    pub at_s: f64,
    /// Resident memory of the worker after it, MB.
    #[serde(default)]
    pub rss_mb: f64,
    /// How often each mark was reached.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub marks: BTreeMap<String, u64>,
    /// How often each state, transition, fault and order was met.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub census: BTreeMap<String, u64>,
    /// Guards that refused something, those left out that an earlier line of the same process names: the union over the
    /// lines is right, and a line stays short.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hits: Vec<String>,
    /// Quirks whose place was passed; only a hunt wants to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature is serde's
fn is_false(value: &bool) -> bool {
    !value
}

impl Finished {
    /// The line of a record.
    #[must_use]
    pub fn of(record: &Record, rss_mb: f64) -> Self {
        let (invariant, place) = group::signature(record);
        let failed = record.verdict != Verdict::Pass;
        Self {
            scenario: record.scenario.clone(),
            seed: record.seed,
            verdict: record.verdict,
            reason: if failed { record.reason.clone() } else { String::new() },
            others: others(record, &invariant),
            invariant,
            place,
            repro: if failed { record.repro.clone() } else { String::new() },
            trace_hash: record.trace_hash.clone(),
            twice: false,
            killed: false,
            events: record.events,
            messages: record.messages,
            appends: record.appends,
            simulated_s: record.simulated_s,
            wall_s: record.wall_s,
            at_s: 0.0,
            rss_mb,
            marks: record.marks.clone(),
            census: record.census.clone(),
            hits: record.guards.hit.clone(),
            passed: record.guards.passed.clone(),
        }
    }

    /// The line of a run of which no record came.
    #[must_use]
    pub fn without_record(scenario: &str, seed: u64, verdict: Verdict, reason: String, repro: String) -> Self {
        let place = kind_of(&reason);
        Self {
            scenario: scenario.to_owned(),
            seed,
            verdict,
            reason,
            invariant: verdict.name().to_owned(),
            others: Vec::new(),
            place,
            repro,
            trace_hash: String::new(),
            twice: false,
            killed: false,
            events: 0,
            messages: 0,
            appends: 0,
            simulated_s: 0.0,
            wall_s: 0.0,
            at_s: 0.0,
            rss_mb: 0.0,
            marks: BTreeMap::new(),
            census: BTreeMap::new(),
            hits: Vec::new(),
            passed: Vec::new(),
        }
    }
}

/// The runs of a file's lines, each once: of one whose process was killed from outside, what it came to when it was run again.
pub fn distinct<'a>(runs: impl IntoIterator<Item = &'a Finished>) -> Vec<&'a Finished> {
    let mut places = BTreeMap::new();
    let mut all: Vec<&Finished> = Vec::new();
    for run in runs {
        let place = *places.entry((&*run.scenario, run.seed)).or_insert(all.len());
        match all.get_mut(place) {
            None => all.push(run),
            Some(before) if before.killed => *before = run,
            Some(_) => {}
        }
    }
    all
}

fn others(record: &Record, first: &str) -> Vec<String> {
    let others: BTreeSet<&String> = record.violations.iter().map(|v| &v.id).filter(|id| *id != first).collect();
    others.into_iter().filter(|_| record.verdict != Verdict::Pass).cloned().collect()
}

/// How often something was met, and in how many runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Runs that met it.
    pub runs: u64,
    /// All meetings.
    pub total: u64,
}

fn tally(tallies: &mut BTreeMap<String, Tally>, counts: &BTreeMap<String, u64>) {
    for (name, count) in counts {
        let tally = match tallies.get_mut(name) {
            Some(tally) => tally,
            None => tallies.entry(name.clone()).or_default(),
        };
        tally.runs += u64::from(*count > 0);
        tally.total += count;
    }
}

/// What the runs of one scenario file came to.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct FileTotals {
    /// The file.
    pub scenario: String,
    /// Its finished runs.
    pub runs: u64,
    /// Those that did not pass.
    pub failed: u64,
    /// Events of them.
    pub events: u64,
    /// Wall seconds of them.
    pub wall_s: f64,
    /// Marks over them.
    #[serde(default)]
    pub marks: BTreeMap<String, Tally>,
    /// Census over them.
    pub census: BTreeMap<String, Tally>,
}

/// The summary of a sweep: what `--json` prints and `summary.json` holds.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The first seed, and the one after the last.
    pub seeds: (u64, u64),
    /// What the command line switched over the files.
    pub options: String,
    /// The worst verdict, in the order 101, 5, 1, 3, 7, 4, 6; a part that passed, of a whole that is not over, is unknown.
    pub verdict: Option<Verdict>,
    /// Runs of the whole sweep.
    pub planned: u64,
    /// Those that are over.
    pub runs: u64,
    /// The same by verdict.
    pub verdicts: BTreeMap<String, u64>,
    /// Runs that were run a second time in a new process.
    pub twice: u64,
    /// Shards of which there are results, and how many there should be.
    pub shards: (u64, u64),
    /// Failures that are alike, the worst verdict first, then those with the fewest events.
    pub groups: Vec<Group>,
    /// By scenario file.
    pub files: Vec<FileTotals>,
    /// Marks over all.
    #[serde(default)]
    pub marks: BTreeMap<String, Tally>,
    /// Census over all.
    pub census: BTreeMap<String, Tally>,
    /// Guards that refused something in any run; of a hunt's baseline also quirks whose place was passed.
    pub guards_hit: BTreeSet<String>,
    /// Events.
    pub events: u64,
    /// Messages.
    pub messages: u64,
    /// Appends.
    pub appends: u64,
    /// Simulated seconds.
    pub simulated_s: f64,
    /// Wall seconds of the runs, added up.
    pub work_s: f64,
    /// Wall seconds of the sweep: of the shard that took longest.
    pub wall_s: f64,
    /// Runs per wall second: of all shards together.
    pub runs_per_s: f64,
    /// The largest resident memory of a worker after a run, MB.
    pub rss_mb: f64,
    /// What made the binary.
    pub build: Build,
}

/// Reads lines of one sweep and gives its summary.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    head: Option<Head>,
    shards: BTreeSet<u32>,
    of: BTreeSet<u32>,
    seen: BTreeMap<String, BTreeSet<u64>>,
    groups: Groups,
    files: BTreeMap<String, FileTotals>,
    sum: Summary,
    /// Wall seconds of the shards, and runs per second of each.
    clocks: BTreeMap<(u32, u32), Clock>,
    current: (u32, u32),
    /// Runs whose process was killed from outside, and nothing else so far: how often, and their line.
    killed: BTreeMap<(String, u64), (u32, Box<Finished>)>,
}

/// Runs of which the process may be killed from outside before they are given up.
const KILLED_MAX: u32 = 2;

/// The time that a shard took: that of every process that added to its file.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    before_s: f64,
    now_s: f64,
    runs: u64,
}

impl Totals {
    /// Takes a line of a file: its head first. A run that was counted already counts once.
    pub fn add(&mut self, line: &Line) {
        match line {
            Line::Head(head) => {
                self.current = head.shard;
                self.shards.insert(head.shard.0);
                self.of.insert(head.shard.1);
                self.head.get_or_insert_with(|| head.clone());
            }
            Line::Begun { .. } => {
                let clock = self.clocks.entry(self.current).or_default();
                clock.before_s += clock.now_s;
                clock.now_s = 0.0;
            }
            Line::Run(run) => self.run(run),
        }
    }

    /// The scenario files of the sweep, as they are named.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.head.iter().flat_map(Head::paths)
    }

    /// Whether a run is over. One whose process was killed from outside is, if that came twice.
    #[must_use]
    pub fn has(&self, scenario: &str, seed: u64) -> bool {
        self.seen.get(scenario).is_some_and(|seeds| seeds.contains(&seed))
            || self.killed.get(&(scenario.to_owned(), seed)).is_some_and(|(times, _)| *times >= KILLED_MAX)
    }

    /// Those that are over.
    pub fn over(&self) -> impl Iterator<Item = (&str, u64)> {
        let killed = self.killed.iter().filter(|(_, (times, _))| *times >= KILLED_MAX);
        let killed = killed.map(|((scenario, seed), _)| (scenario.as_str(), *seed));
        let all = self.seen.iter().flat_map(|(scenario, seeds)| seeds.iter().map(|seed| (scenario.as_str(), *seed)));
        all.chain(killed)
    }

    /// How many are.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.over().count() as u64
    }

    /// Runs that are to be run again, as their process was killed from outside.
    #[must_use]
    pub fn killed(&self) -> u64 {
        self.killed.values().filter(|(times, _)| *times < KILLED_MAX).count() as u64
    }

    /// The worst verdict so far, whatever is missing.
    #[must_use]
    pub fn worst(&self) -> Option<Verdict> {
        let killed = (!self.killed.is_empty()).then_some(Verdict::Unknown);
        let all = self.sum.verdict.into_iter().chain(killed);
        (self.sum.runs > 0 || killed.is_some()).then(|| rows::worst(all))
    }

    /// Those of them that did not pass.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.files.values().map(|file| file.failed).sum()
    }

    /// Whether a failure like this one was seen before.
    #[must_use]
    pub fn knows(&self, run: &Finished) -> bool {
        self.groups.knows(run)
    }

    fn run(&mut self, run: &Finished) {
        let place = (run.scenario.clone(), run.seed);
        if run.killed && !self.seen.get(&run.scenario).is_some_and(|seeds| seeds.contains(&run.seed)) {
            // What comes of it when it is run again is what counts.
            self.killed.entry(place).or_insert_with(|| (0, Box::new(run.clone()))).0 += 1;
            return;
        }
        self.killed.remove(&place);
        self.count(run);
    }

    fn count(&mut self, run: &Finished) {
        if !self.seen.entry(run.scenario.clone()).or_default().insert(run.seed) {
            return;
        }
        let sum = &mut self.sum;
        sum.runs += 1;
        *sum.verdicts.entry(run.verdict.name().to_owned()).or_default() += 1;
        sum.verdict = Some(rows::worst(sum.verdict.into_iter().chain([run.verdict])));
        sum.twice += u64::from(run.twice);
        sum.events += run.events;
        sum.messages += run.messages;
        sum.appends += run.appends;
        sum.simulated_s += run.simulated_s;
        sum.work_s += run.wall_s;
        sum.rss_mb = sum.rss_mb.max(run.rss_mb);
        sum.guards_hit.extend(run.hits.iter().chain(&run.passed).cloned());
        let file = self
            .files
            .entry(run.scenario.clone())
            .or_insert_with(|| FileTotals { scenario: run.scenario.clone(), ..FileTotals::default() });
        file.runs += 1;
        file.failed += u64::from(run.verdict != Verdict::Pass);
        file.events += run.events;
        file.wall_s += run.wall_s;
        for tallies in [&mut file.marks, &mut sum.marks] {
            tally(tallies, &run.marks);
        }
        for tallies in [&mut file.census, &mut sum.census] {
            tally(tallies, &run.census);
        }
        let clock = self.clocks.entry(self.current).or_default();
        clock.now_s = clock.now_s.max(run.at_s);
        clock.runs += 1;
        self.groups.add(run);
    }

    /// The summary of what was read.
    #[must_use]
    pub fn summary(&self) -> Summary {
        if !self.killed.is_empty() {
            let mut whole = self.clone();
            let killed = std::mem::take(&mut whole.killed);
            killed.into_values().for_each(|(_, run)| whole.count(&run));
            return whole.summary();
        }
        let mut sum = self.sum.clone();
        if let Some(head) = &self.head {
            sum.seeds = head.seeds;
            sum.options.clone_from(&head.options);
            sum.planned = head.runs();
            sum.build = head.build.clone();
        }
        // Shards of another division stand for their part as well: then only runs can be counted.
        let of = self.of.iter().max().copied().unwrap_or(1);
        sum.shards = if self.of.len() > 1 || sum.runs >= sum.planned {
            (u64::from(of), u64::from(of))
        } else {
            (self.shards.len() as u64, u64::from(of))
        };
        // A part of a sweep is not passed, whatever the rest may come to.
        if sum.runs < sum.planned {
            sum.verdict = Some(rows::worst(sum.verdict.into_iter().chain([Verdict::Unknown])));
        }
        sum.groups = self.groups.told();
        sum.files = self.files.values().cloned().collect();
        for clock in self.clocks.values() {
            let seconds = clock.before_s + clock.now_s;
            sum.wall_s = sum.wall_s.max(seconds);
            if seconds > 0.0 {
                sum.runs_per_s += clock.runs as f64 / seconds;
            }
        }
        sum
    }
}

impl Summary {
    /// The exit code: the worst verdict's, and unknown if a part is missing.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.verdict.unwrap_or(Verdict::Unknown).exit_code()
    }

    /// Runs that did not pass.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.runs - self.verdicts.get(Verdict::Pass.name()).copied().unwrap_or(0)
    }
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
