//! Every scenario file is a test of its own name.
//!
//! Arguments are those of `cargo test`. The environment widens it:
//! `MIRRORLAB_TIER=fast|slow|full` takes in the files of that tier and of those below it (default `fast`; others count as
//! ignored), `MIRRORLAB_SEEDS=A..B` runs each file for these seeds too (B left out), and `MIRRORLAB_COMMIT=HASH` for a few
//! that follow from that hash, so that every commit tries new ones and a rerun of a commit the same. Files that draw
//! (`swarm/`) run for a few seeds in any case.
//!
//! A file that expects a violation (`must_fail/`, `prototype/`) is held to three verdicts: it passes as it stands, the bare
//! run breaks what it names, and with every guard on and every quirk off nothing breaks.

use libtest_mimic::{Arguments, Failed, Trial};
use mirrorlab_reports::record::{Record, Verdict};
use mirrorlab_reports::text;
use mirrorlab_scenarios::api::Experiment;
use mirrorlab_scenarios::commands::check::collect;
use mirrorlab_scenarios::format::{Profile, Scenario, Tier};
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Seeds that follow from a commit, per file.
const FRESH: u64 = 3;
/// Seeds of each file that draws, in any case.
const DRAWN: u64 = 9;
/// Seeds that `MIRRORLAB_SEEDS` may ask for.
const SEEDS_MAX: u64 = 10_000_000;
/// How many of the slowest tests are named at the end.
const SLOWEST: usize = 5;

/// What the environment asks for.
struct Wanted {
    tier: Tier,
    seeds: Range<u64>,
    commit: Option<String>,
}

fn variable(name: &str) -> Result<Option<String>, String> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(format!("{name} is not UTF-8")),
    }
}

impl Wanted {
    fn from_environment() -> Result<Self, String> {
        let tier = variable("MIRRORLAB_TIER")?.map_or(Ok(Tier::Fast), |text| tier(&text))?;
        let seeds = variable("MIRRORLAB_SEEDS")?.map_or(Ok(0..0), |text| seeds(&text))?;
        let commit = variable("MIRRORLAB_COMMIT")?.map(|text| commit(&text)).transpose()?;
        Ok(Self { tier, seeds, commit })
    }
}

fn tier(text: &str) -> Result<Tier, String> {
    match text {
        "fast" => Ok(Tier::Fast),
        "slow" => Ok(Tier::Slow),
        "full" => Ok(Tier::Full),
        _ => Err(format!("MIRRORLAB_TIER={text}: there is no such tier; it is fast, slow or full")),
    }
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let wrong = |why: &str| format!("MIRRORLAB_SEEDS={text}: {why}; write A..B, such as 0..100 for 0 to 99");
    let (from, to) = text.split_once("..").ok_or_else(|| wrong("this is not a range"))?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong(&format!("`{text}` is not a whole number from 0")));
    let range = number(from)?..number(to)?;
    if range.is_empty() {
        return Err(wrong("the range is empty"));
    }
    if range.end - range.start > SEEDS_MAX {
        return Err(wrong(&format!("more than {SEEDS_MAX} seeds")));
    }
    Ok(range)
}

fn commit(text: &str) -> Result<String, String> {
    let is_hash = (7..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
    if is_hash {
        return Ok(text.to_owned());
    }
    Err(format!("MIRRORLAB_COMMIT={text}: this is not the hash of a commit (7 to 64 hexadecimal digits)"))
}

/// Seeds that a commit gives a file; below 2^32, so that they are easy to type.
fn fresh(commit: &str, name: &str) -> impl Iterator<Item = u64> {
    let text = format!("{commit} {name}");
    (0..FRESH).map(move |n| xxhash_rust::xxh3::xxh3_64_with_seed(text.as_bytes(), n) >> 32)
}

/// Where the files are, from the top of the workspace: so that a repro can be pasted there.
const FILES: &str = "scenarios";

/// `replication/short` for `scenarios/replication/short.toml`.
fn name_of(path: &Path) -> String {
    let inside = path.strip_prefix(FILES).unwrap_or(path).with_extension("");
    inside.components().map(|c| c.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

type Times = Arc<Mutex<Vec<(Duration, String)>>>;

fn trial(name: String, times: &Times, test: impl FnOnce() -> Result<Duration, String> + Send + 'static) -> Trial {
    let times = Arc::clone(times);
    Trial::test(name.clone(), move || {
        let time = test().map_err(Failed::from)?;
        if let Ok(mut times) = times.lock() {
            times.push((time, name));
        }
        Ok(())
    })
}

fn trials(path: &Path, wanted: &Wanted, times: &Times) -> Vec<Trial> {
    let name = name_of(path);
    let scenario = match Scenario::load(path) {
        Ok(scenario) => scenario,
        Err(diagnostics) => return vec![trial(name, times, move || Err(diagnostics.to_string()))],
    };
    let is_left_out = scenario.tier > wanted.tier;
    let bites = !scenario.stage.expect.violation.is_empty();
    let mut all = Vec::new();
    let own = scenario.clone();
    all.push(trial(name.clone(), times, move || if bites { as_named(&own) } else { passes(&own.experiment()) }));
    // A file that draws is another world with each seed.
    let drawn = if scenario.draw.is_empty() { 0..0 } else { 1..DRAWN };
    let more = drawn.filter(|seed| !wanted.seeds.contains(seed)).chain(wanted.seeds.clone());
    let more = more.chain(wanted.commit.iter().flat_map(|commit| fresh(commit, &name)));
    for seed in more {
        let experiment = if bites { corrected(&scenario) } else { scenario.clone().experiment() }.seed(seed);
        all.push(trial(format!("{name} seed {seed}"), times, move || passes(&experiment)));
    }
    all.into_iter().map(|trial| trial.with_ignored_flag(is_left_out)).collect()
}

/// With every guard on and every quirk off, whatever the file says.
fn corrected(scenario: &Scenario) -> Experiment {
    scenario.clone().experiment().profile(Profile::Corrected).guard_on("all").quirk_off("all").ignore_expect()
}

fn run(experiment: &Experiment) -> Result<Record, String> {
    experiment.run().map_err(|diagnostics| diagnostics.to_string())
}

fn told(why: &str, record: &Record) -> String {
    format!("{why}\n{}", text::summary(record, None))
}

fn passes(experiment: &Experiment) -> Result<Duration, String> {
    let record = run(experiment)?;
    if record.verdict == Verdict::Pass {
        return Ok(Duration::from_secs_f64(record.wall_s));
    }
    Err(told(&format!("the verdict is {}", record.verdict.name()), &record))
}

/// A file that names what breaks: see the head of this file.
fn as_named(scenario: &Scenario) -> Result<Duration, String> {
    let mut time = Duration::ZERO;
    time += passes(&scenario.clone().experiment())?;
    let bare = run(&scenario.clone().experiment().ignore_expect())?;
    time += Duration::from_secs_f64(bare.wall_s);
    let is_broken = matches!(bare.verdict, Verdict::Violation | Verdict::Stall);
    let named = &scenario.stage.expect.violation;
    if !is_broken || !bare.violations.iter().any(|v| named.contains(&v.id)) {
        return Err(told(&format!("{} should have broken first", named.join(" or ")), &bare));
    }
    let whole = run(&corrected(scenario))?;
    if whole.verdict != Verdict::Pass {
        return Err(told("it breaks with every guard on and every quirk off as well", &whole));
    }
    Ok(time + Duration::from_secs_f64(whole.wall_s))
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let wanted = match Wanted::from_environment() {
        Ok(wanted) => wanted,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    if std::env::set_current_dir(&top).is_ok() {
        collect(Path::new(FILES), &mut files);
    }
    if files.is_empty() {
        eprintln!("no scenario file was found in {FILES} below {}", top.display());
        return ExitCode::from(2);
    }
    let times = Times::default();
    let mut all = own_tests();
    all.extend(files.iter().flat_map(|file| trials(file, &wanted, &times)));
    let conclusion = libtest_mimic::run(&arguments, all);
    if let Ok(mut times) = times.lock() {
        times.sort();
        for (time, name) in times.iter().rev().take(SLOWEST) {
            println!("{:8.2} s  {name}", time.as_secs_f64());
        }
    }
    conclusion.exit_code()
}

/// What this file itself promises.
fn own_tests() -> Vec<Trial> {
    let holds = |yes: bool, what: &str| if yes { Ok(()) } else { Err(Failed::from(what)) };
    let refused = move |told: Option<String>, part: &str| match told {
        Some(told) => holds(told.contains(part), &format!("`{told}` does not say `{part}`")),
        None => Err(Failed::from(format!("was taken, which should be refused with `{part}`"))),
    };
    vec![
        Trial::test("environment/bad_values_are_refused", move || {
            refused(tier("quick").err(), "fast, slow or full")?;
            refused(seeds("7").err(), "not a range")?;
            refused(seeds("-1..3").err(), "`-1` is not a whole number")?;
            refused(seeds("3..3").err(), "is empty")?;
            refused(seeds("0..18446744073709551615").err(), "more than")?;
            refused(seeds("0..18446744073709551616").err(), "is not a whole number")?;
            refused(commit("main").err(), "not the hash of a commit")
        }),
        Trial::test("environment/fresh_seeds_follow_from_commit_and_file", move || {
            let of = |commit: &str, name: &str| fresh(commit, name).collect::<Vec<_>>();
            holds(of("0123abc", "tour") == of("0123abc", "tour"), "the same twice")?;
            holds(of("0123abc", "tour") != of("0123abd", "tour"), "another commit gives others")?;
            holds(of("0123abc", "tour") != of("0123abc", "tower"), "another file gives others")
        }),
    ]
}
