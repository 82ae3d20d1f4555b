//! The printed form of a sweep: groups of failures with the command to paste, totals, and last the verdict.

use super::{Group, Summary};
use crate::record::Verdict;
use crate::show::{count, number, plural, wrap};
use std::fmt::Write as _;

/// Groups that are printed.
const GROUPS_MAX: usize = 20;

fn field(out: &mut String, name: &str, text: &str) {
    wrap(out, &format!("{name:<12}"), text);
}

/// The whole printed form. `folder` is the sweep's.
#[must_use]
pub fn summary(sweep: &Summary, folder: &str) -> String {
    let mut out = groups(sweep);
    if sweep.files.len() > 1 {
        files(&mut out, sweep);
    }
    field(&mut out, "counts", &verdicts(sweep));
    let speed = format!(
        "{} runs/s: {} s, {} s of work; {} events, {} messages, {} simulated s; workers up to {} MB",
        number(sweep.runs_per_s),
        number(sweep.wall_s),
        number(sweep.work_s),
        count(sweep.events),
        count(sweep.messages),
        number(sweep.simulated_s),
        number(sweep.rss_mb)
    );
    field(&mut out, "cost", &speed);
    field(&mut out, "guards", &format!("{} refused something", sweep.guards_hit.len()));
    if sweep.runs < sweep.planned {
        let (is, of) = sweep.shards;
        let shards = if is < of { format!("; {is} of {of} shards left results") } else { String::new() };
        let missing = sweep.planned - sweep.runs;
        field(
            &mut out,
            "incomplete",
            &format!("{} of {} runs are missing{shards}", count(missing), count(sweep.planned)),
        );
    }
    field(&mut out, "verdict", &verdict(sweep));
    let _ = writeln!(out, "{:<12}{folder}", "folder");
    out
}

/// Groups of failures, one paragraph each.
#[must_use]
pub fn groups(sweep: &Summary) -> String {
    let mut out = String::new();
    sweep.groups.iter().take(GROUPS_MAX).for_each(|group| told(&mut out, group));
    if sweep.groups.len() > GROUPS_MAX {
        let _ = writeln!(out, "… and {} more groups (summary.json: groups)", sweep.groups.len() - GROUPS_MAX);
    }
    out
}

fn told(out: &mut String, group: &Group) {
    // Where nothing broke, the reason says all.
    let place = match (group.invariant.as_str(), group.place.as_str()) {
        (what, _) if what == group.verdict.name() => String::new(),
        (what, "") => format!("{what}, "),
        (what, place) => format!("{what} at {place}, "),
    };
    let events = if group.events == 0 { String::new() } else { format!(" after {} events", count(group.events)) };
    let runs = format!("{} run{}, fastest seed {}{events}", count(group.runs), plural(group.runs), group.seed);
    field(out, group.verdict.name(), &format!("{place}in {}: {runs}", group.scenario));
    field(out, "", &group.reason);
    // Commands and folders stay on one line, to be pasted.
    for line in [&group.repro, &group.folder].into_iter().filter(|line| !line.is_empty()) {
        let _ = writeln!(out, "{:12}{line}", "");
    }
}

fn files(out: &mut String, sweep: &Summary) {
    for file in &sweep.files {
        let per = |total: f64| number(total / (file.runs.max(1)) as f64);
        let text = format!(
            "{}: {} runs, {} failed, {} events and {} s each",
            file.scenario,
            count(file.runs),
            count(file.failed),
            count(file.events / file.runs.max(1)),
            per(file.wall_s)
        );
        field(out, "file", &text);
    }
}

fn verdicts(sweep: &Summary) -> String {
    let named: Vec<String> = sweep.verdicts.iter().map(|(name, n)| format!("{} {name}", count(*n))).collect();
    let named = if named.is_empty() { "none".to_owned() } else { named.join(", ") };
    format!("{} runs: {named}; {} of them twice, in two processes", count(sweep.runs), count(sweep.twice))
}

/// The verdict in one line.
#[must_use]
pub fn verdict(sweep: &Summary) -> String {
    let failed = sweep.failed();
    match sweep.verdict {
        None => "unknown: nothing was run".to_owned(),
        Some(Verdict::Pass) => format!("pass: {} runs, every check held", count(sweep.runs)),
        Some(Verdict::Unknown) if failed == 0 => {
            let (runs, planned) = (count(sweep.runs), count(sweep.planned));
            format!("unknown: {runs} of {planned} runs are over, and none of these failed")
        }
        Some(worst) => {
            let groups = sweep.groups.len() as u64;
            let name = worst.name();
            format!(
                "{name}: {} of {} runs failed, in {groups} group{}",
                count(failed),
                count(sweep.runs),
                plural(groups)
            )
        }
    }
}
