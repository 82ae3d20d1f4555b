//! The command line: what was typed, and what it means (design section 3).

use crate::absence;
use crate::again;
use crate::commands::lists;
use crate::commands::named::{plan_file, unreadable};
use crate::folder::{self, Held};
use crate::format::{Diagnostics, Fault, Problem, Scenario};
use crate::hunt;
use crate::plan::{Overrides, Plan};
use crate::recorder::Recorder;
use crate::run::{Job, Run};
use crate::same::same_twice;
use crate::sweep;
use crate::switches::Switches;
use crate::tell::{complain, lost, note, tell};
use clap::{Args, Parser, Subcommand};
use mirrorlab_model::trace::TraceEvent;
use mirrorlab_reports::record::{Record, Row, Verdict};
use mirrorlab_reports::{census, html, load, text, worst};
use mirrorlab_sim::pump::on_fresh_runtime;
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Usage errors end with this code.
const USAGE: u8 = 2;

/// Runs with other draws at each instant, at most.
const RESEEDS_MAX: i64 = 1_000;
/// Decisions that one run has to bear an absence at, at most: each is a run of its own.
pub(crate) const SAMPLES_MAX: i64 = 10_000;

/// Runs mirrored clusters in a deterministic world: one scenario file and one seed give one history.
#[derive(Parser, Debug)]
#[command(name = "mirrorlab", version, arg_required_else_help = true)]
struct Cli {
    /// Log to standard error: error, warn, info (the story as it happens), debug or trace. Simulated time and event number
    /// only.
    #[arg(long, global = true, value_name = "LEVEL")]
    log: Option<tracing::Level>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run scenarios, one after the other, and print what happened and whether everything held. The exit code is that of the
    /// worst verdict.
    Run(RunArgs),
    /// Run a plan.toml, or the one in a run folder, again.
    Replay {
        /// A run folder or a plan.toml.
        path: PathBuf,
        /// Print the summary as JSON and nothing else.
        #[arg(long)]
        json: bool,
        /// Where the run's folder goes.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Make a failing run as small as it can be made: a plan that replays alone, and a scenario file for scenarios/found/. What
    /// is interrupted goes on where it was when it is begun again.
    Shrink {
        /// A run folder or a plan.toml.
        path: PathBuf,
        /// Where the result goes. Default: the folder `shrunk` beside the plan.
        #[arg(long)]
        out: Option<PathBuf>,
        /// Candidates that are run at most.
        #[arg(long, default_value_t = crate::shrink::Budget::default().tries, value_parser = clap::value_parser!(u64).range(1..))]
        tries: u64,
        /// Print the result as JSON and nothing else.
        #[arg(long)]
        json: bool,
    },
    /// Tell why a run broke, on one screen: which messages, timers, crashes and orders led to its first violation, and when that
    /// was decided.
    Why {
        /// A run folder or a plan.toml.
        path: PathBuf,
        /// Runs with other draws from an instant on, for each instant that is tried; 0: none.
        #[arg(long, default_value_t = 4, value_name = "K", value_parser = clap::value_parser!(u32).range(..=RESEEDS_MAX))]
        reseeds: u32,
    },
    /// Run a scenario, and again with a node away when one of its decisions commits: it has to end in the same state (L18).
    Absence {
        /// The scenario file, or a plan.toml.
        scenario: PathBuf,
        /// The seed.
        #[arg(long, allow_negative_numbers = true)] // so that the refusal names the option
        seed: Option<u64>,
        /// Decisions, drawn by the seed.
        #[arg(long, default_value_t = 10, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=SAMPLES_MAX))]
        samples: u32,
        /// What is switched over the file.
        #[command(flatten)]
        switches: Switches,
        /// Print the result as JSON and nothing else.
        #[arg(long)]
        json: bool,
        /// Where plans of absences that do harm go. Default: runs/FOLDER/SCENARIO/SEED.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Run a scenario twice side by side and compare after every event.
    SameTwice {
        /// The scenario file.
        scenario: PathBuf,
        /// The seed.
        #[arg(long, allow_negative_numbers = true)] // so that the refusal names the option
        seed: Option<u64>,
    },
    /// Read scenario files and say what is wrong with them.
    Check {
        /// Files or folders.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// List guards and quirks, explain one, or tell which guards runs have tried.
    Guards {
        /// Its name.
        name: Option<String>,
        /// Run folders, summary.json files, or folders of them: a guard that refused nothing in any of them, so that on and
        /// off did not differ, is a MISS.
        #[arg(long, num_args = 1.., value_name = "PATH", conflicts_with = "name")]
        coverage: Vec<PathBuf>,
        /// Print all of them as a page, with the scenario files in `scenarios/` that prove them: model/GUARDS.md.
        #[arg(long, conflicts_with_all = ["name", "coverage"])]
        markdown: bool,
    },
    /// Add up what happened in runs: faults, orders, elections, changes of mirror states, refusals of guards, what met which
    /// state; with rates, and with what was never reached.
    Census {
        /// Run folders, folders of them, or the folder of a sweep.
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Write a page too.
        #[arg(long)]
        html: Option<PathBuf>,
        /// Print the counts as JSON and nothing else.
        #[arg(long)]
        json: bool,
    },
    /// List invariants, or explain one.
    Checks {
        /// Its id, such as S2 or L8.
        id: Option<String>,
        /// List what excuses a property that does not hold, and whose it is.
        #[arg(long, conflicts_with = "id")]
        excuses: bool,
    },
    /// Print the JSON schema of scenario files, for editors.
    Schema,
    /// Make one HTML page of a run folder; or of a sweep: one summary of all its shards.
    Report {
        /// A run folder, a summary.json, or the folder of a sweep or a hunt.
        path: PathBuf,
        /// Where the page goes. Default: report.html in the folder.
        #[arg(long)]
        html: Option<PathBuf>,
        /// Of a sweep: write JUnit XML.
        #[arg(long, value_name = "FILE")]
        junit: Option<PathBuf>,
        /// Of a sweep: print the summary as JSON and nothing else.
        #[arg(long)]
        json: bool,
    },
    /// Run many seeds of many files in worker processes, and group what fails. Started again it goes on where it ended.
    Sweep(Box<sweep::arguments::SweepArgs>),
    /// Switch each guard off and each quirk on, alone, and sweep until something breaks: how good are the checks? Exits as the
    /// baseline does, the same seeds with everything on.
    Hunt(Box<hunt::HuntArgs>),
    /// A worker of a sweep: tasks on standard input, answers on standard output.
    #[command(hide = true, name = sweep::pool::WORKER)]
    Worker,
}

#[derive(Args, Debug)]
struct RunArgs {
    /// The scenario file, or several.
    #[arg(required = true, value_name = "SCENARIO")]
    scenarios: Vec<PathBuf>,
    /// The seed. Default: the file's, else 0.
    #[arg(long, allow_negative_numbers = true)] // so that the refusal names the option
    seed: Option<u64>,
    #[command(flatten)]
    switches: Switches,
    /// Print the summary as JSON and nothing else.
    #[arg(long)]
    json: bool,
    /// Write trace.ndjson.
    #[arg(long)]
    trace: bool,
    /// Where the run's folder goes. Default: runs/FOLDER/SCENARIO/SEED.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version are no errors, unless nobody gets them.
        Err(said) => {
            note(said.print());
            return ended(u8::try_from(said.exit_code()).unwrap_or(USAGE));
        }
    };
    if let Some(level) = cli.log {
        tracing_subscriber::fmt()
            .without_time()
            .with_target(false)
            .with_max_level(level)
            // A file or a pipe gets plain text.
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(std::io::stderr)
            .init();
    }
    let done = match cli.command {
        Command::Run(args) => run(&args),
        Command::Replay { path, json, out } => replay(&path, json, out.as_deref()),
        Command::Shrink { path, out, tries, json } => {
            let options = crate::commands::shrink::Options { path: &path, out: out.as_deref(), tries, json };
            crate::commands::shrink::shrink(&options)
        }
        Command::Absence { scenario, seed, samples, switches, json, out } => {
            switches.overrides().and_then(|overrides| {
                let (scenario, out) = (scenario.as_path(), out.as_deref());
                let options = crate::commands::absence::Options { scenario, seed, samples, overrides, out, json };
                crate::commands::absence::absence(&options)
            })
        }
        Command::Why { path, reseeds } => crate::commands::why::why(&path, reseeds),
        Command::SameTwice { scenario, seed } => twice(&scenario, seed),
        Command::Check { paths } => crate::commands::check::check(&paths),
        Command::Guards { coverage, .. } if !coverage.is_empty() => lists::coverage(&coverage),
        Command::Guards { markdown: true, .. } => crate::guard_page::page(Path::new("scenarios")).map(|page| {
            tell!("{}", page.trim_end());
            0
        }),
        Command::Guards { name, .. } => lists::guards(name.as_deref()),
        Command::Census { paths, html, json } => crate::commands::census::census(&paths, html.as_deref(), json),
        Command::Checks { excuses: true, .. } => {
            crate::checks::excuses::lines().iter().for_each(|line| tell!("{line}"));
            Ok(0)
        }
        Command::Checks { id, .. } => lists::checks(id.as_deref()),
        Command::Schema => {
            tell!("{}", serde_json::to_string_pretty(&crate::format::schema()).unwrap_or_default());
            Ok(0)
        }
        Command::Report { path, html, junit, json } if sweep::report::is_sweep(&path) => {
            sweep::report::report(&path, &sweep::report::Wanted { html, junit, json, quiet: false })
        }
        Command::Report { junit: Some(_), .. } => {
            let problem = Problem::new(Fault::Command, "conflict", "--junit is for the folder of a sweep");
            Err(Diagnostics::one("command line", problem.help("leave it out, or name such a folder")))
        }
        Command::Report { path, json, .. } if hunt::is_hunt(&path) => hunt::report(&path, json),
        Command::Report { path, html, .. } => report(&path, html.as_deref()),
        Command::Sweep(args) => sweep::main(&args),
        Command::Hunt(args) => hunt::main(&args),
        Command::Worker => sweep::worker::main(),
    };
    match done {
        Ok(code) => ended(code),
        Err(diagnostics) => {
            complain(&diagnostics);
            ExitCode::from(USAGE)
        }
    }
}

/// The exit code: what was to be printed and is lost is no success.
fn ended(code: u8) -> ExitCode {
    let Some(error) = lost() else { return ExitCode::from(code) };
    let problem = Problem::new(Fault::Machine, "unwritable", format!("it cannot be written: {error}"));
    let problem = problem.help("name a file on a disk with room, or none");
    complain(&Diagnostics::one("standard output", problem));
    ExitCode::from(if code == 0 { USAGE } else { code })
}

fn run(args: &RunArgs) -> Result<u8, Diagnostics> {
    let overrides = args.switches.overrides()?;
    let many = args.scenarios.len() > 1;
    for (option, given) in [("--out", args.out.is_some()), ("--json", args.json)] {
        if many && given {
            let message = format!("{option} is for one scenario file, and {} are named", args.scenarios.len());
            let problem = Problem::new(Fault::Command, "conflict", message).help("run them one by one");
            return Err(Diagnostics::one("command line", problem));
        }
    }
    // What is wrong with a later file is told before an earlier one runs.
    let mut resolved = Vec::new();
    for file in &args.scenarios {
        let scenario = Scenario::load(file)?;
        resolved.push((file.display().to_string(), Plan::resolve_all(&scenario, args.seed, &overrides)?));
    }
    let mut verdicts = Vec::new();
    for (nth, (path, plans)) in resolved.into_iter().enumerate() {
        if many {
            tell!("{}scenario    {path}", if nth > 0 { "\n" } else { "" });
        }
        let seed = plans.first().map_or(0, |(_, plan)| plan.seed);
        let repro = again::run(&path, seed, &overrides);
        let home = || plans.first().map_or_else(PathBuf::new, |(_, plan)| folder::home_of(Path::new(&path), plan));
        let folder = args.out.clone().unwrap_or_else(home);
        let told = Told { folder, stays: false, json: args.json, trace: args.trace };
        verdicts.push(execute(path, plans, &told, &repro)?);
    }
    Ok(worst(verdicts).exit_code())
}

fn replay(path: &Path, json: bool, out: Option<&Path>) -> Result<u8, Diagnostics> {
    let file = plan_file(path)?;
    let plan = Plan::load(&file)?;
    if let Some(before) = load::record(path).ok().filter(|_| path.is_dir()) {
        let now = folder::build();
        if before.build != now && !json {
            complain(&format_args!(
                "note: the run was made by commit {} ({}), this is {} ({})",
                before.build.commit, before.build.toolchain, now.commit, now.toolchain
            ));
        }
    }
    let repro = again::replay(&file);
    let folder = match out {
        Some(out) => out.to_path_buf(),
        None if path.is_dir() => path.to_path_buf(),
        None => folder::home_of(&file, &plan),
    };
    // What was made of this very plan stays, and above all the plan.
    let stays = folder::has_plan_of(&folder, &file) || folder::is_inside(&folder, &file);
    let told = Told { stays, folder, json, trace: false };
    execute(file.display().to_string(), vec![(String::new(), plan)], &told, &repro).map(Verdict::exit_code)
}

/// Where a run is told, and how.
struct Told {
    folder: PathBuf,
    /// What was made of the plan that the folder holds stays: it is the same.
    stays: bool,
    json: bool,
    trace: bool,
}

/// Runs plans one after the other, leaves their records and tells them.
fn execute(path: String, plans: Vec<(String, Plan)>, told: &Told, repro: &str) -> Result<Verdict, Diagnostics> {
    let folder = &told.folder;
    let held = Held::take(folder)?;
    folder::clear(folder, told.stays);
    let record = leave(&path, plans, folder, told.trace, repro)?;
    drop(held);
    folder::point_latest(folder);
    if told.json {
        tell!("{}", serde_json::to_string_pretty(&record).unwrap_or_default());
    } else {
        tell!("{}", text::summary(&record, Some(folder)).trim_end());
    }
    Ok(record.verdict)
}

/// Runs plans one after the other and leaves their records in a folder.
pub(crate) fn leave(
    path: &str,
    plans: Vec<(String, Plan)>,
    folder: &Path,
    trace: bool,
    repro: &str,
) -> Result<Record, Diagnostics> {
    let many = plans.len() > 1;
    let mut rows = Vec::new();
    for (label, plan) in plans {
        let own = if many { folder.join(slug(&label)) } else { folder.to_path_buf() };
        // A folder that cannot be written is found out before anything runs.
        folder::write_plan(&own, &plan)?;
        let file = own.join("trace.ndjson");
        // What an earlier run left there is of another history.
        let _ = std::fs::remove_file(&file);
        let mut record = traced(path, &plan, trace.then(|| file.clone()), u64::MAX)?;
        record.repro = repro.to_owned();
        if !trace && matches!(record.verdict, Verdict::Violation | Verdict::Stall) {
            // A failing seed leaves its trace: it is run again for that.
            traced(path, &plan, Some(file), u64::MAX)?;
        }
        folder::write_record(&own, &record)?;
        rows.push((label, record));
    }
    let record = joined(rows, repro);
    if many {
        folder::write_record(folder, &record)?;
    }
    Ok(record)
}

/// The record of one run, or of the rows of a matrix.
pub(crate) fn joined(mut rows: Vec<(String, Record)>, repro: &str) -> Record {
    if rows.len() > 1 {
        return matrix(rows, repro);
    }
    let mut record = rows.remove(0).1;
    record.repro = repro.to_owned();
    record
}

/// Runs plans one after the other, each for so many events at most, and leaves nothing. Those that pass have to bear the absence
/// of a node at so many of their decisions.
pub(crate) fn each(
    path: &str,
    plans: Vec<(String, Plan)>,
    events_max: u64,
    absences: u32,
) -> Result<Vec<(String, Record)>, Diagnostics> {
    let one = |plan: Plan| match absences {
        0 => traced(path, &plan, None, events_max),
        _ => absent(path, plan, events_max, absences),
    };
    plans.into_iter().map(|(label, plan)| Ok((label, one(plan)?))).collect()
}

/// Runs one plan, and again for each of some absences.
fn absent(path: &str, plan: Plan, events_max: u64, samples: u32) -> Result<Record, Diagnostics> {
    let began = now();
    let job = Job { path: path.to_owned(), plan };
    let absence = absence::judge(&job, samples, events_max).map_err(|bad| bad_config(path, bad.0))?;
    Ok(measured(absence.judged(), began))
}

/// Runs one plan.
///
/// # Errors
/// A config entry that the model does not take.
pub fn one(path: &str, plan: &Plan) -> Result<Record, Diagnostics> {
    traced(path, plan, None, u64::MAX)
}

/// Runs one plan for so many events at most, and writes its trace events to a file, if one is named.
fn traced(path: &str, plan: &Plan, trace: Option<PathBuf>, events_max: u64) -> Result<Record, Diagnostics> {
    let job = Job { path: path.to_owned(), plan: plan.clone() };
    let recorder = trace.as_deref().map(Recorder::create).transpose().map_err(|e| untraceable(&e))?;
    let began = now();
    let done = on_fresh_runtime(plan.seed, async move || match Run::new(job) {
        Ok(mut run) => {
            if let Some(recorder) = recorder {
                run.record_trace(recorder);
            }
            run.limit_events(events_max);
            let record = run.to_end().await;
            Ok((record, run.take_recorder()))
        }
        Err(bad) => Err(bad.0),
    });
    let (record, recorder) = done.map_err(|bad| bad_config(path, bad))?;
    if let Some(recorder) = recorder {
        recorder.finish().map_err(|e| untraceable(&e))?;
    }
    Ok(measured(record, began))
}

fn bad_config(path: &str, bad: String) -> Diagnostics {
    Diagnostics::one(path, Problem::new(Fault::File, "bad-config", bad))
}

/// What a run cost, and who ran it.
fn measured(mut record: Record, began: Instant) -> Record {
    record.wall_s = began.elapsed().as_secs_f64();
    record.peak_rss_mb = folder::peak_rss_mb();
    record.build = folder::build();
    if record.wall_s > 0.0 {
        record.figures.insert("messages_per_wall_s".into(), record.messages as f64 / record.wall_s);
    }
    record
}

fn untraceable(error: &std::io::Error) -> Diagnostics {
    let message = format!("trace.ndjson cannot be written: {error}");
    Diagnostics::one(
        "output",
        Problem::new(Fault::Command, "unwritable", message).help("name another folder with --out"),
    )
}

#[expect(clippy::disallowed_methods, reason = "wall time of the whole run, for reports; nothing simulated sees it")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// One record over the rows of a matrix: the worst verdict counts.
pub(crate) fn matrix(rows: Vec<(String, Record)>, repro: &str) -> Record {
    let worst = worst(rows.iter().map(|(_, record)| record.verdict));
    let mut whole = rows[0].1.clone();
    whole.verdict = worst;
    whole.reason = match rows.iter().find(|(_, r)| r.verdict == worst) {
        Some((label, r)) if worst != Verdict::Pass => format!("{label}: {}", r.reason),
        _ => format!("all {} rows passed", rows.len()),
    };
    whole.repro = repro.to_owned();
    whole.wall_s = rows.iter().map(|(_, r)| r.wall_s).sum();
    whole.events = rows.iter().map(|(_, r)| r.events).sum();
    whole.messages = rows.iter().map(|(_, r)| r.messages).sum();
    whole.appends = rows.iter().map(|(_, r)| r.appends).sum();
    whole.census = BTreeMap::new();
    rows.iter().for_each(|(_, record)| census::add(&mut whole.census, &record.census));
    let hits: BTreeSet<&String> = rows.iter().flat_map(|(_, r)| &r.guards.hit).collect();
    whole.guards.hit = hits.into_iter().cloned().collect();
    let passed: BTreeSet<&String> = rows.iter().flat_map(|(_, r)| &r.guards.passed).collect();
    whole.guards.passed = passed.into_iter().cloned().collect();
    whole.violations = rows.iter().flat_map(|(_, r)| r.violations.clone()).collect();
    whole.rows = rows.into_iter().map(|(label, record)| Row { set: keys_of(&label), record }).collect();
    whole
}

/// `links.wan.latency = 25 ms, clusters.west… = 4` as keys and values.
fn keys_of(label: &str) -> BTreeMap<String, String> {
    let pairs = label.split(", ").filter_map(|pair| pair.split_once('='));
    pairs.map(|(k, v)| (k.trim().to_owned(), v.trim().trim_matches('"').to_owned())).collect()
}

fn slug(label: &str) -> String {
    let kept = label.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '_' });
    kept.take(120).collect()
}

fn twice(path: &Path, seed: Option<u64>) -> Result<u8, Diagnostics> {
    let scenario = Scenario::load(path)?;
    for (label, plan) in Plan::resolve_all(&scenario, seed, &Overrides::default())? {
        let seed = plan.seed;
        let job = Job { path: path.display().to_string(), plan };
        let name = if label.is_empty() { path.display().to_string() } else { format!("{} [{label}]", path.display()) };
        match on_fresh_runtime(seed, async move || same_twice(&job)) {
            Ok(hash) => tell!("{name} seed {seed}: the same history twice, trace hash {hash:016x}"),
            Err(parting) => {
                tell!("{name} seed {seed}: two histories part at event {}", parting.step);
                for (n, traced) in parting.traced.iter().enumerate() {
                    tell!("  run {}: at {} ns: {}", n + 1, parting.at[n], traced_in_words(traced));
                }
                return Ok(Verdict::Diverged.exit_code());
            }
        }
    }
    Ok(0)
}

/// What an event traced, as trace.ndjson has it.
fn traced_in_words(traced: &[TraceEvent]) -> String {
    let line = |event: &TraceEvent| format!("node {}: {:?}", event.node.0, event.trace);
    match traced {
        [] => "it traced nothing".to_owned(),
        some => some.iter().map(line).collect::<Vec<_>>().join("; "),
    }
}

fn report(path: &Path, page: Option<&Path>) -> Result<u8, Diagnostics> {
    let record = load::record(path).map_err(|error| unreadable(path, &error))?;
    let target = match page {
        Some(page) => page.to_path_buf(),
        None if path.is_dir() => path.join("report.html"),
        None => path.with_file_name("report.html"),
    };
    folder::is_no_record(&target)?;
    std::fs::write(&target, html::page(&record)).map_err(|e| {
        let message = format!("the page cannot be written to {}: {e}", target.display());
        Diagnostics::one("output", Problem::new(Fault::Command, "unwritable", message))
    })?;
    tell!("{}", target.display());
    Ok(0)
}
