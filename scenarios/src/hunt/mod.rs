//! The hunt: what would be found if a rule of the protocol were left out. `mirrorlab hunt`.
//!
//! Read in this order: [`profiles`] (what is hunted where), [`chase`] (one target), then this file (all of them, and the
//! baseline). Each guard is switched off and each quirk switched on, alone, and the profiles of the swarm that suit it are run
//! with the seeds from 0 on until something breaks. A seed with which the baseline breaks as well shows nothing, and one with
//! which the baseline does not reach the target is not run again ([`reached`]). What no seed finds may still be found by the
//! scenario file that was written for it: it is told apart.

pub mod chase;
pub mod profiles;
pub mod reached;

use crate::cli::now;
use crate::folder::{self, RUNS};
use crate::format::{Diagnostics, Fault, Problem};
use crate::plan::Overrides;
use crate::sweep::arguments::Common;
use crate::sweep::lines::Lines;
use crate::sweep::pool::{Client, Pool};
use crate::sweep::resume::{self, Headed, Resumed};
use crate::sweep::shard::{Shard, Turn};
use crate::sweep::{self, report};
use crate::tell::{complain, tell};
use chase::{Ground, Known, Told};
use clap::Args;
use indicatif::ProgressBar;
use mirrorlab_model::guards::GuardSet;
use mirrorlab_reports::hunt::{text, By, Hunt, Line, Row, Summary, Tried};
use mirrorlab_reports::record::Verdict;
use mirrorlab_reports::sweep::Head;
use mirrorlab_reports::worst;
use profiles::Quarry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

/// Runs of the baseline of which one is run a second time.
const BATCH: usize = 64;

/// Tries that making one find smaller may take.
const SHRINK_TRIES: u64 = 500;

/// Arguments of a hunt.
#[derive(Args, Debug)]
pub struct HuntArgs {
    /// Hunt this guard. Default: all guards and quirks.
    #[arg(long, value_name = "G")]
    pub guard: Vec<String>,
    /// Hunt this quirk. Default: all guards and quirks.
    #[arg(long, value_name = "Q")]
    pub quirk: Vec<String>,
    /// Seeds for each target, from 0 on. More than last time: the hunt goes on with the new ones.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// The folder of scenario files, with `swarm/`, `must_fail/` and `prototype/`.
    #[arg(long, value_name = "DIR", default_value = "scenarios")]
    pub scenarios: PathBuf,
    /// Shard I of N, counted from 1, as of `sweep`.
    #[arg(long, value_name = "I/N", allow_hyphen_values = true)]
    pub shard: Option<String>,
    /// Make what the swarm finds as small as a few hundred tries can; the smallest plans stay in the folder.
    #[arg(long)]
    pub shrink: bool,
    /// Write the table to FILE.md and its rows to FILE.ndjson.
    #[arg(long, value_name = "FILE")]
    pub write_baseline: Option<PathBuf>,
    /// Workers, bounds and outputs.
    #[command(flatten)]
    pub common: Common,
}

/// What a thread takes from the queue.
enum Work {
    /// A run of the baseline.
    Base(Turn),
    /// A target.
    Chase(Box<Quarry>, Tried),
    /// One that was found, to be made smaller.
    Shrink(Box<Quarry>, Box<Row>),
}

/// A hunt under way.
struct Hunting {
    hunt: Hunt,
    out: Lines,
    /// Guards that lines of this process name.
    named: BTreeSet<String>,
    began: Instant,
    bar: ProgressBar,
    is_told: bool,
    broken: Option<Diagnostics>,
}

/// Hunts.
///
/// # Errors
/// Files and arguments that are wrong; a folder that cannot be used.
pub fn main(args: &HuntArgs) -> Result<u8, Diagnostics> {
    let (shard, _) = Shard::choose(args.shard.as_deref(), |name| std::env::var(name).ok())?;
    let files = swarm(&args.scenarios)?;
    let quarry = profiles::quarry(&args.guard, &args.quirk, &files, &args.scenarios)?;
    let folder = args.common.out.clone().unwrap_or_else(|| Path::new(RUNS).join(Line::KIND));
    let head = head(&files, shard)?;
    let (mut out, mut hunt) = open(&folder, &head)?;
    let pairs = pairs(&quarry, args.seeds);
    let begun = Line::Begun {
        seeds: args.seeds,
        targets: quarry.iter().map(|quarry| quarry.target.clone()).collect(),
        baseline: pairs.len() as u64,
        profiles: lists(&quarry).map(|list| list.iter().map(|n| files[*n].display().to_string()).collect()).collect(),
    };
    out.add(&begun)?;
    hunt.add(&begun);
    let ground = ground(args, &head, &hunt, &folder);
    let work = work(&hunt, &ground, quarry, pairs, shard);
    let is_told = !(args.common.json || args.common.quiet);
    let mut hunting = Hunting {
        hunt,
        out,
        named: BTreeSet::new(),
        began: now(),
        bar: sweep::bar(work.len() as u64, !is_told),
        is_told,
        broken: None,
    };
    let pool = args.common.pool()?;
    hunting.run(&pool, &ground, work);
    hunting.bar.finish_and_clear();
    if let Some(broken) = hunting.broken {
        return Err(broken);
    }
    // What other shards left in this folder is part of the table.
    let summary = all(&folder)?.summary();
    print(&summary, &folder, &args.common);
    if let Some(file) = &args.write_baseline {
        write_baseline(&summary, args, file)?;
    }
    // What other shards have to run of the baseline is theirs.
    let own = if shard.of > 1 { hunting.hunt.worst() } else { hunting.hunt.summary().baseline.verdict };
    let mut verdicts: Vec<Verdict> = own.into_iter().collect();
    if pool.is_signalled() {
        complain(&"note: the hunt was interrupted; the same command goes on with it");
        verdicts.push(Verdict::Unknown);
    }
    Ok(worst(verdicts).exit_code())
}

/// The profiles of the swarm.
fn swarm(scenarios: &Path) -> Result<Vec<PathBuf>, Diagnostics> {
    let folder = scenarios.join("swarm");
    if !folder.is_dir() {
        let message = format!("{} has no folder `swarm`", scenarios.display());
        let problem = Problem::new(Fault::Command, "no-files", message);
        let help = "run it beside the folder `scenarios`, or name that with --scenarios";
        return Err(Diagnostics::one("command line", problem.help(help)));
    }
    sweep::files(&[folder])
}

fn head(files: &[PathBuf], shard: Shard) -> Result<Head, Diagnostics> {
    Ok(Head {
        files: sweep::marks(files, 0, &Overrides::default())?,
        // A hunt goes on with more seeds, and with other targets.
        seeds: (0, 0),
        options: String::new(),
        shard: (shard.index, shard.of),
        build: folder::build(),
        binary: sweep::binary(),
    })
}

/// Opens the file of a shard and reads what is there.
fn open(folder: &Path, head: &Head) -> Result<(Lines, Hunt), Diagnostics> {
    let Resumed { out, lines, anew } = resume::resume::<Line>(folder, head)?;
    if let Some((why, _)) = anew {
        let aside = "what was there is kept as hunt-….ndjson.old";
        complain(&format_args!("note: {why}: the hunt begins anew; {aside}"));
    }
    let mut hunt = Hunt::default();
    lines.iter().for_each(|line| hunt.add(line));
    Ok((out, hunt))
}

/// The lists of profiles that targets have: those with the same run the same.
fn lists(quarry: &[Quarry]) -> impl Iterator<Item = &[usize]> {
    let lists: BTreeSet<&[usize]> = quarry.iter().map(|quarry| &quarry.profiles[..]).collect();
    lists.into_iter()
}

/// Everything that any target may be run with: the baseline, in order of seed.
fn pairs(quarry: &[Quarry], seeds: u64) -> BTreeSet<(u64, usize)> {
    let of = |list: &[usize], seed: u64| (seed, list[(seed % list.len() as u64) as usize]);
    lists(quarry).flat_map(|list| (0..seeds).map(move |seed| of(list, seed))).collect()
}

fn ground(args: &HuntArgs, head: &Head, hunt: &Hunt, folder: &Path) -> Ground {
    let files: Vec<String> = head.files.iter().map(|file| file.path.clone()).collect();
    let known = files.iter().enumerate().flat_map(|(n, file)| {
        (0..args.seeds).filter_map(move |seed| {
            let (clean, reached) = hunt.base(file, seed)?;
            Some(((n, seed), Known { clean, reached: GuardSet::from_hex(reached)? }))
        })
    });
    let known: BTreeMap<(usize, u64), Known> = known.collect();
    Ground {
        seeds: args.seeds,
        events_max: args.common.events,
        shrink: if args.shrink { SHRINK_TRIES } else { 0 },
        folder: folder.to_path_buf(),
        known: Mutex::new(known),
        hashes: head.files.iter().map(|file| (file.path.clone(), file.hash.clone())).collect(),
        files,
    }
}

/// What is left to do of a shard: the baseline first, then the targets.
fn work(hunt: &Hunt, ground: &Ground, quarry: Vec<Quarry>, pairs: BTreeSet<(u64, usize)>, shard: Shard) -> Vec<Work> {
    let own = pairs.into_iter().filter(|(seed, file)| shard.has(*seed, *file as u64));
    let turns = own.enumerate().map(|(n, (seed, file))| Turn { file: file as u32, seed, twice: n % BATCH == 0 });
    let missing = turns.filter(|turn| hunt.base(&ground.files[turn.file as usize], turn.seed).is_none());
    let mut work: Vec<Work> = missing.map(Work::Base).collect();
    for (n, quarry) in quarry.into_iter().enumerate() {
        if shard.has(n as u64, 0) && !hunt.is_over(&quarry.target.name, ground.seeds) {
            let tried = hunt.tried(&quarry.target.name, ground.seeds);
            work.push(Work::Chase(Box::new(quarry), tried));
        } else if let Some(row) =
            hunt.large(&quarry.target.name).filter(|_| shard.has(n as u64, 0) && ground.shrink > 0)
        {
            let row = Box::new(row.clone());
            work.push(Work::Shrink(Box::new(quarry), row));
        }
    }
    work
}

impl Hunting {
    fn run(&mut self, pool: &Pool, ground: &Ground, work: Vec<Work>) {
        if self.is_told {
            let bases = work.iter().filter(|work| matches!(work, Work::Base(_))).count();
            tell!("hunt        {} targets, {} runs of the baseline", work.len() - bases, bases);
        }
        let bar = self.bar.clone();
        let step = |client: &mut Client<'_>, work: Work, tell: &dyn Fn(Told)| {
            match work {
                Work::Base(turn) => ground.base(client, (turn.file as usize, turn.seed), turn.twice, tell),
                Work::Shrink(quarry, row) => ground.shrink(client, &quarry, *row, tell),
                Work::Chase(quarry, tried) => ground.chase(client, &quarry, tried, tell),
            }
            bar.inc(1);
        };
        // The whole baseline first: what it reaches tells which runs the chases can leave out.
        let (bases, chases): (Vec<Work>, Vec<Work>) = work.into_iter().partition(|work| matches!(work, Work::Base(_)));
        for part in [bases, chases] {
            pool.each(part.into_iter(), step, |told| self.hear(pool, told), || {});
        }
    }

    fn hear(&mut self, pool: &Pool, told: Told) {
        let mut line = match told {
            Told::Line(line) => line,
            Told::Refused(text) => {
                pool.close();
                let problem = Problem::new(Fault::File, "refused", text);
                self.broken.get_or_insert(Diagnostics::one("hunt", problem));
                return;
            }
        };
        if let Line::Base(base) = &mut line {
            let run = &mut base.run;
            run.at_s = self.began.elapsed().as_secs_f64();
            run.hits.retain(|guard| self.named.insert(guard.clone()));
            run.passed.retain(|quirk| self.named.insert(quirk.clone()));
        }
        if let Err(broken) = self.out.add(&line) {
            pool.close();
            self.broken.get_or_insert(broken);
            return;
        }
        self.hunt.add(&line);
        if let (Line::Row(row), true) = (&line, self.is_told) {
            let told = match row.by {
                _ if row.shrunk_steps.is_some() => {
                    format!("smaller: {} of {} steps", row.shrunk_steps.unwrap_or(0), row.steps.unwrap_or(0))
                }
                By::Nobody => format!("not found with {} seeds", row.seeds),
                by => format!("{} after {} seeds ({}), {}", row.invariant, row.seeds, by.name(), row.repro),
            };
            self.bar.suspend(|| tell!("{:<36} {told}", row.target));
        }
    }
}

/// Whether a path is the folder of a hunt.
#[must_use]
pub fn is_hunt(path: &Path) -> bool {
    path.is_dir() && !resume::files::<Line>(path).is_empty()
}

/// What the files of all shards say.
fn all(folder: &Path) -> Result<Hunt, Diagnostics> {
    let mut hunt = Hunt::default();
    resume::shards::<Line>(folder)?.iter().flatten().for_each(|line| hunt.add(line));
    Ok(hunt)
}

/// One table of all shards.
///
/// # Errors
/// Files that cannot be read, or are of different hunts.
pub fn report(folder: &Path, json: bool) -> Result<u8, Diagnostics> {
    let summary = all(folder)?.summary();
    let told = if json { as_json(&summary) } else { text::summary(&summary, &folder.display().to_string()) };
    tell!("{}", told.trim_end());
    Ok(summary.exit_code())
}

fn as_json(summary: &Summary) -> String {
    serde_json::to_string_pretty(summary).unwrap_or_default()
}

fn print(summary: &Summary, folder: &Path, common: &Common) {
    let told = if common.json { as_json(summary) } else { text::summary(summary, &folder.display().to_string()) };
    tell!("{}", told.trim_end());
}

fn write_baseline(summary: &Summary, args: &HuntArgs, file: &Path) -> Result<(), Diagnostics> {
    let mut command = format!("mirrorlab hunt --seeds {}", args.seeds);
    for (option, names) in [("guard", &args.guard), ("quirk", &args.quirk)] {
        names.iter().for_each(|name| command.push_str(&format!(" --{option} {name}")));
    }
    let rows = summary.rows.iter().map(|row| serde_json::to_string(row).unwrap_or_default() + "\n");
    report::put(&file.with_extension("md"), &text::markdown(summary, &command))?;
    report::put(&file.with_extension("ndjson"), &rows.collect::<String>())
}
