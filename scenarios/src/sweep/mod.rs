//! Many seeds of many files: `mirrorlab sweep`.
//!
//! Read in this order: [`arguments`] (what is typed), [`shard`] (which runs, in which order), [`worker`] (the process that runs
//! them), [`pool`] (workers, and how they die), [`lines`], [`resume`] and [`results`] (the files, and resuming), [`report`] (the summary of all shards).
//!
//! A run is told when it is over, in a line that is written at once. A failing seed leaves a run folder: the fastest of each
//! group are run again for that when the sweep is over. What fails in the same way stands in one group.

pub mod arguments;
pub mod lines;
pub mod pool;
pub mod report;
pub mod results;
pub mod resume;
pub mod shard;
pub mod worker;

use crate::again;
use crate::cli::now;
use crate::commands::check::collect;
use crate::folder::{self, RUNS};
use crate::format::{self, Diagnostics, Fault, Problem, Scenario};
use crate::plan::{Overrides, Plan};
use crate::tell::{complain, tell};
use arguments::SweepArgs;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lines::{Lines, Read};
use mirrorlab_reports::record::Verdict;
use mirrorlab_reports::sweep::{distinct, FileMark, Finished, Head, Line, Totals};
use mirrorlab_reports::worst;
use pool::{Client, Ended, Pool};
use report::Wanted;
use results::Opened;
use shard::{Shard, Turn, Turns};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;
use worker::Task;
use xxhash_rust::xxh3::xxh3_64;

/// A sweep under way.
struct Sweep<'a> {
    args: &'a SweepArgs,
    overrides: Overrides,
    files: Vec<FileMark>,
    folder: PathBuf,
    results: Lines,
    totals: Totals,
    /// Guards that lines of this process name.
    named: BTreeSet<String>,
    began: Instant,
    bar: ProgressBar,
    /// What ended it before its time: a file, the machine.
    broken: Option<Diagnostics>,
    shard: Shard,
    /// Runs of the shard.
    of_shard: u64,
    /// Its time was over before all was run.
    is_late: bool,
}

/// Sweeps.
///
/// # Errors
/// Files and arguments that are wrong; a folder that cannot be used.
pub fn main(args: &SweepArgs) -> Result<u8, Diagnostics> {
    let (head, overrides) = head(args)?;
    let folder = args.common.out.clone().unwrap_or_else(|| Path::new(RUNS).join(name(args, &overrides)));
    if let Some(junit) = &args.junit {
        folder::is_no_record(junit)?;
        // A file that cannot be written is found out before anything runs.
        report::put(junit, "")?;
    }
    let Opened { results, totals, anew, stale } = results::open(&folder, &head)?;
    for (scenario, seed) in stale {
        let _ = std::fs::remove_dir_all(report::run_folder(&folder, &paths(&head.files), &scenario, seed));
    }
    let shard = Shard { index: head.shard.0, of: head.shard.1 };
    let of_shard = shard.runs(head.seeds.1 - head.seeds.0, head.files.len() as u64);
    let mut sweep = Sweep {
        args,
        overrides,
        files: head.files.clone(),
        folder,
        results,
        totals,
        named: BTreeSet::new(),
        began: now(),
        bar: bar(of_shard, args.common.json || args.common.quiet),
        broken: None,
        shard,
        of_shard,
        is_late: false,
    };
    sweep.announce(&head, of_shard, anew.as_deref());
    let pool = args.common.pool()?;
    sweep.results.add(&Line::Begun { jobs: args.common.jobs() })?;
    sweep.totals.add(&Line::Begun { jobs: args.common.jobs() });
    sweep.run(&pool, head.seeds);
    sweep.bar.finish_and_clear();
    if let Some(broken) = sweep.broken {
        return Err(broken);
    }
    pool.open();
    sweep.leave_folders(&pool);
    sweep.end(&pool)
}

/// Everything about a sweep that must be the same when it resumes.
fn head(args: &SweepArgs) -> Result<(Head, Overrides), Diagnostics> {
    let overrides = args.switches.overrides()?;
    let (shard, variable) = Shard::choose(args.shard.as_deref(), |name| std::env::var(name).ok())?;
    if let Some(variable) = variable {
        complain(&format_args!("note: {variable} says that this is shard {} of {}", shard.index, shard.of));
    } else if args.shard.is_none() && std::env::var_os("JOB_COMPLETION_INDEX").is_some() {
        complain(
            &"note: JOB_COMPLETION_INDEX is set; set MIRRORLAB_SHARDS to the job's completions to sweep in shards",
        );
    }
    let files = files(&args.paths)?;
    let marks = marks(&files, args.seeds.0, &overrides)?;
    let head = Head {
        files: marks,
        seeds: args.seeds,
        options: options(args, &overrides),
        shard: (shard.index, shard.of),
        build: folder::build(),
        binary: binary(),
    };
    Ok((head, overrides))
}

/// What the files hold now. What is wrong with one, or with what a first seed makes of it, is told before anything runs.
pub(crate) fn marks(files: &[PathBuf], seed: u64, overrides: &Overrides) -> Result<Vec<FileMark>, Diagnostics> {
    let mark = |file: &PathBuf| {
        let (path, text) = (file.display().to_string(), format::read_text(file)?);
        Plan::resolve_all(&Scenario::parse(&path, &text)?, Some(seed), overrides)?;
        Ok(FileMark { path, hash: hash(&text) })
    };
    files.iter().map(mark).collect()
}

/// What a file is known by: its text.
pub(crate) fn hash(text: &str) -> String {
    format!("{:016x}", xxh3_64(text.as_bytes()))
}

fn paths(files: &[FileMark]) -> Vec<String> {
    files.iter().map(|file| file.path.clone()).collect()
}

/// A hash of this program: a commit says nothing of what was changed on top of it.
pub(crate) fn binary() -> String {
    let bytes = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
    format!("{:016x}", xxh3_64(&bytes))
}

/// The scenario files of paths, each once.
pub(crate) fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Diagnostics> {
    let mut files = Vec::new();
    paths.iter().for_each(|path| collect(path, &mut files));
    let mut seen = BTreeSet::new();
    files.retain(|file| seen.insert(file.clone()));
    if files.is_empty() {
        let named: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let message = format!("no scenario file was found in {}", named.join(", "));
        return Err(Diagnostics::one("command line", Problem::new(Fault::Command, "no-files", message)));
    }
    Ok(files)
}

/// What is switched over the files, as it is pasted.
fn options(args: &SweepArgs, overrides: &Overrides) -> String {
    let mut text = again::options(overrides);
    if args.absence > 0 {
        text.push_str(&format!("{}--absence {}", if text.is_empty() { "" } else { " " }, args.absence));
    }
    text
}

/// The folder's name: the same for the same arguments.
fn name(args: &SweepArgs, overrides: &Overrides) -> String {
    let first = folder::name_of(&args.paths[0]).rsplit('/').next().unwrap_or("scenarios").to_owned();
    let mut name = format!("sweep-{first}-{}-{}", args.seeds.0, args.seeds.1);
    let options = options(args, overrides);
    // Only what stands at the top of `scenarios/`, or here, is told by one word.
    let words = args.paths[0].strip_prefix("scenarios").unwrap_or(&args.paths[0]).components().count();
    if args.paths.len() > 1 || words > 1 || args.paths[0].is_absolute() || !options.is_empty() {
        let all: Vec<String> = args.paths.iter().map(|path| path.display().to_string()).collect();
        let hash = xxh3_64(format!("{}\n{options}", all.join("\n")).as_bytes());
        name.push_str(&format!("-{:08x}", hash >> 32));
    }
    name
}

/// A bar on standard error, if that is a terminal.
pub(crate) fn bar(length: u64, hidden: bool) -> ProgressBar {
    let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {per_sec} {eta} left {msg}");
    ProgressBar::with_draw_target(Some(length), target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

impl Sweep<'_> {
    fn announce(&self, head: &Head, of_shard: u64, anew: Option<&str>) {
        if let Some(why) = anew {
            let aside = "what was there is kept as results-….ndjson.old";
            complain(&format_args!("note: {why}: the sweep begins anew; {aside}"));
        }
        if self.args.common.json || self.args.common.quiet {
            return;
        }
        let (from, to) = head.seeds;
        let shard =
            if head.shard.1 > 1 { format!(", shard {} of {}", head.shard.0, head.shard.1) } else { String::new() };
        let over = self.totals.runs();
        let over = if over > 0 { format!(", {over} of the sweep are over") } else { String::new() };
        tell!(
            "sweep       {} files, seeds {from}..{to}{shard}: {of_shard} runs{over}; {} workers",
            self.files.len(),
            self.args.common.jobs()
        );
    }

    /// Runs what is missing.
    fn run(&mut self, pool: &Pool, seeds: (u64, u64)) {
        let shard = self.shard;
        let over = self.totals.clone();
        let files = self.files.clone();
        let (overrides, events_max) = (self.overrides.clone(), self.args.common.events);
        let absence = self.args.absence;
        let task = |turn: Turn| Task {
            file: files[turn.file as usize].path.clone(),
            hash: Some(files[turn.file as usize].hash.clone()),
            seed: turn.seed,
            overrides: overrides.clone(),
            events_max,
            absence,
            shrink: 0,
            folder: None,
        };
        let turns = Turns::new(shard, seeds, files.len() as u32);
        let missing = turns.filter(|turn| !over.has(&files[turn.file as usize].path, turn.seed));
        self.bar.set_position(self.own());
        self.bar.reset_eta();
        let until = self.args.time.and_then(|time| self.began.checked_add(time));
        let late = Cell::new(false);
        let (work, tick) = (
            |client: &mut Client<'_>, turn: Turn, tell: &dyn Fn(Ended)| tell(run_turn(client, &task(turn), turn.twice)),
            || {
                if until.is_some_and(|until| until <= now()) {
                    late.set(true);
                    pool.close();
                }
            },
        );
        pool.each(
            missing,
            work,
            |ended| match ended {
                Ended::Run(finished) => self.hear(pool, *finished),
                Ended::Refused(text) => {
                    pool.close();
                    let problem = Problem::new(Fault::File, "refused", text);
                    self.broken.get_or_insert(Diagnostics::one("sweep", problem));
                }
                Ended::Shrunk(_) | Ended::Stopped => {}
            },
            tick,
        );
        self.is_late = late.get();
    }

    /// A run is over: its line is written before anything else.
    fn hear(&mut self, pool: &Pool, mut run: Finished) {
        run.at_s = self.began.elapsed().as_secs_f64();
        run.hits.retain(|guard| self.named.insert(guard.clone()));
        run.passed.clear();
        let failed = run.verdict != Verdict::Pass;
        let new = failed && !self.totals.knows(&run);
        let line = Line::Run(Box::new(run));
        if let Err(broken) = self.results.add(&line) {
            pool.close();
            self.broken.get_or_insert(broken);
            return;
        }
        self.totals.add(&line);
        let Line::Run(run) = line else { return };
        if new && !self.args.common.json {
            self.bar.suspend(|| tell!("{} seed {}: {} {}", run.scenario, run.seed, run.verdict.name(), run.reason));
        }
        self.bar.inc(1);
        self.bar.set_message(format!("{} failed", self.totals.failed()));
        if failed && self.args.fail_fast {
            pool.close();
        }
    }

    /// Runs the fastest seeds of each group again, for their folders.
    fn leave_folders(&mut self, pool: &Pool) {
        let mut tasks = Vec::new();
        let paths = paths(&self.files);
        for group in self.totals.summary().groups {
            // What was given up once would be so again.
            if group.verdict == Verdict::Unknown {
                continue;
            }
            for member in group.fastest.iter().take(self.args.keep) {
                let folder = report::run_folder(&self.folder, &paths, &group.scenario, member.seed);
                // A summary is the last that a run leaves; one of another build went with the results.
                if is_left(&folder) {
                    continue;
                }
                tasks.push(Task {
                    file: group.scenario.clone(),
                    hash: self.files.iter().find(|file| file.path == group.scenario).map(|file| file.hash.clone()),
                    seed: member.seed,
                    overrides: self.overrides.clone(),
                    events_max: self.args.common.events,
                    absence: 0,
                    shrink: 0,
                    folder: Some(folder),
                });
            }
        }
        let work = |client: &mut Client<'_>, task: Task, tell: &dyn Fn(Ended)| tell(client.run(&task));
        let hear = |ended| match ended {
            Ended::Refused(text) => complain(&format_args!("note: a failing seed leaves no folder: {text}")),
            Ended::Run(_) | Ended::Shrunk(_) | Ended::Stopped => {}
        };
        pool.each(tasks.into_iter(), work, hear, || {});
    }

    fn end(self, pool: &Pool) -> Result<u8, Diagnostics> {
        let common = &self.args.common;
        let wanted = Wanted { html: None, junit: self.args.junit.clone(), json: common.json, quiet: common.quiet };
        if let Some(junit) = &wanted.junit {
            let read: Read<Line> = lines::read(self.results.path())?;
            let runs = distinct(read.lines.iter().filter_map(Line::run));
            let xml = mirrorlab_reports::sweep::junit::xml(runs).unwrap_or_default();
            report::put(junit, &xml)?;
        }
        let summary = report::leave(&self.folder, &self.totals, None)?;
        report::print(&summary, &self.folder, &wanted);
        let missing = self.of_shard - self.own();
        let why = if pool.is_signalled() {
            "the sweep was interrupted"
        } else if self.is_late {
            "its time is over (--for)"
        } else if self.totals.killed() > 0 {
            "processes were killed from outside"
        } else {
            "it ended early"
        };
        if missing > 0 {
            let (over, all) = (self.own(), self.of_shard);
            complain(&format_args!("note: {why} after {over} of {all} runs; the same command goes on with it"));
        }
        // The runs of this process: what other shards have to do is theirs.
        let mut verdicts: Vec<Verdict> = self.totals.worst().into_iter().collect();
        verdicts.extend((missing > 0).then_some(Verdict::Unknown));
        if self.shard.of > 1 && !common.json {
            let failed = self.totals.failed();
            tell!(
                "shard       {}/{}: {} of {} runs are over; {failed} of all failed",
                self.shard.index,
                self.shard.of,
                self.own(),
                self.of_shard
            );
        }
        Ok(worst(verdicts).exit_code())
    }

    /// Runs of this shard that are over.
    fn own(&self) -> u64 {
        let number = |scenario: &str| self.files.iter().position(|file| file.path == scenario).unwrap_or(0) as u64;
        let (first, shard) = (self.args.seeds.0, self.shard);
        self.totals.over().filter(|(scenario, seed)| shard.has(seed - first, number(scenario))).count() as u64
    }
}

/// Whether a run left its folder, by this build.
fn is_left(folder: &Path) -> bool {
    mirrorlab_reports::load::record(folder).is_ok_and(|record| record.build == folder::build())
}

/// Runs a task, and if so wanted a second time in a new process: one seed, one history.
pub(crate) fn run_turn(client: &mut Client<'_>, task: &Task, twice: bool) -> Ended {
    let first = match client.run(task) {
        Ended::Run(first) if twice && !matches!(first.verdict, Verdict::Panic | Verdict::Unknown) => first,
        other => return other,
    };
    client.renew();
    let second = match client.run(task) {
        Ended::Run(second) if second.killed => return Ended::Run(second),
        // Given up, so there is nothing to compare.
        Ended::Run(second) if second.verdict == Verdict::Unknown => return Ended::Run(first),
        Ended::Run(second) => second,
        other => return other,
    };
    let mut both = compared(*first, &second);
    if both.verdict == Verdict::Diverged {
        let plain = task.overrides == Overrides::default();
        let (file, seed) = (&task.file, task.seed);
        both.repro = if plain { again::same_twice(file, seed) } else { again::run(file, seed, &task.overrides) };
    }
    Ended::Run(Box::new(both))
}

/// The line of a run that was made twice.
fn compared(mut first: Finished, second: &Finished) -> Finished {
    first.twice = true;
    first.wall_s += second.wall_s;
    if first.trace_hash == second.trace_hash && first.verdict == second.verdict {
        return first;
    }
    first.reason = format!(
        "two processes, two histories: {} ({}) and {} ({})",
        first.trace_hash,
        first.verdict.name(),
        second.trace_hash,
        second.verdict.name()
    );
    first.verdict = Verdict::Diverged;
    first.invariant = Verdict::Diverged.name().to_owned();
    first.place = String::new();
    first
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
