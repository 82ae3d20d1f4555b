//! A hunt's table, for a terminal and as a page of the repository.

use super::{By, Row, Summary};
use crate::show::{count, number, wrap};
use crate::sweep;
use std::fmt::Write as _;

fn field(out: &mut String, name: &str, text: &str) {
    wrap(out, &format!("{name:<12}"), text);
}

const COUNT: usize = 9;
const COLUMNS: [&str; COUNT] = ["target", "kind", "found", "seeds", "runs", "s", "first to break", "expected", "steps"];

fn cells(row: &Row) -> [String; COUNT] {
    let first = match (row.found, row.as_expected) {
        (false, _) => "-".to_owned(),
        (true, true) => row.invariant.clone(),
        (true, false) => format!("{} !", row.invariant),
    };
    let steps = match (row.shrunk_steps, row.steps) {
        (Some(shrunk), Some(before)) => format!("{shrunk} of {before}"),
        _ => "-".to_owned(),
    };
    let kind = if !row.reached { format!("{} MISS", row.kind) } else { row.kind.clone() };
    [
        row.target.clone(),
        kind,
        row.by.name().to_owned(),
        count(row.seeds),
        count(row.runs),
        number(row.seconds),
        first,
        row.expected.join(", "),
        steps,
    ]
}

/// What the numbers say, a line each: name and text.
fn totals(hunt: &Summary) -> Vec<(&'static str, String)> {
    let all = hunt.by_swarm + hunt.by_scenario + hunt.by_nobody;
    let share = |part: u64| number((part * 1_000 / all.max(1)) as f64 / 10.0);
    let mut out = vec![(
        "found",
        format!(
            "{} of {} by the swarm ({} %), {} only by their own file, {} not ({} % found in all)",
            count(hunt.by_swarm),
            count(all),
            share(hunt.by_swarm),
            count(hunt.by_scenario),
            count(hunt.by_nobody),
            share(hunt.by_swarm + hunt.by_scenario)
        ),
    )];
    if let (Some(seeds), Some(seconds)) = (hunt.median_seeds, hunt.median_seconds) {
        out.push(("median", format!("{} seeds, {} s of work to the first detection", count(seeds), number(seconds))));
    }
    let unexpected = hunt.rows.iter().filter(|row| row.found && !row.as_expected).count();
    out.push(("unexpected", format!("{unexpected} broke another invariant first than the registry names (!)")));
    if hunt.tainted > 0 {
        let text = format!("{} seeds showed nothing: the baseline fails with them", count(hunt.tainted));
        out.push(("tainted", text));
    }
    for (name, by) in [("not found", By::Nobody), ("own file", By::Scenario)] {
        let rows: Vec<&str> = hunt.rows.iter().filter(|row| row.by == by).map(|row| row.target.as_str()).collect();
        if !rows.is_empty() {
            out.push((name, rows.join(", ")));
        }
    }
    let told = hunt.rows.iter().filter(|row| !row.found && !row.unseen.is_empty());
    told.for_each(|row| out.push(("explained", format!("{}: {}", row.target, row.unseen))));
    if !hunt.missed.is_empty() {
        out.push((
            "MISS",
            format!("not reached in the baseline, so that on and off did not differ: {}", hunt.missed.join(", ")),
        ));
    }
    if !hunt.waiting.is_empty() {
        out.push(("waiting", hunt.waiting.join(", ")));
    }
    let baseline = format!(
        "{} of {} runs with everything on; {}",
        count(hunt.baseline.runs),
        count(hunt.baseline_planned),
        sweep::text::verdict(&hunt.baseline)
    );
    out.push(("baseline", baseline));
    out
}

/// The printed form. `folder` is the hunt's.
#[must_use]
pub fn summary(hunt: &Summary, folder: &str) -> String {
    let rows: Vec<[String; COUNT]> = hunt.rows.iter().map(cells).collect();
    let all: Vec<[String; COUNT]> = [COLUMNS.map(str::to_owned)].into_iter().chain(rows).collect();
    let width = |n: usize| all.iter().map(|row| row[n].chars().count()).max().unwrap_or(0);
    let widths: [usize; COUNT] = std::array::from_fn(width);
    let mut out = String::new();
    if !hunt.rows.is_empty() {
        for row in &all {
            let cells = row.iter().zip(widths).enumerate().map(|(n, (cell, width))| match n {
                3..=5 => format!("{cell:>width$}"),
                _ => format!("{cell:<width$}"),
            });
            let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
        out.push('\n');
    }
    out.push_str(&sweep::text::groups(&hunt.baseline));
    totals(hunt).iter().for_each(|(name, text)| field(&mut out, name, text));
    let _ = writeln!(out, "{:<12}{folder}", "folder");
    out
}

/// The page of the repository.
#[must_use]
pub fn markdown(hunt: &Summary, command: &str) -> String {
    let mut out = String::from("# The last full hunt\n\n");
    let profiles: Vec<&str> = hunt.profiles.iter().map(String::as_str).collect();
    let _ = writeln!(
        out,
        "Each guard was switched off and each quirk switched on, and {} seeds of the swarm profiles that suit it were run until \
         something broke. *seeds* and *s* (seconds of work on one core) count up to the first detection; \
         *runs*: those of the seeds with which the target is reached, with the others its absence changes nothing. *own file*: the swarm did not \
         find it, the file in `scenarios/must_fail/` or `scenarios/prototype/` does. `!`: another invariant broke first than the \
         registry names. MISS: not reached in the baseline. *steps*: of the smallest plan that fails alike, of those drawn.\n\n\
         Made by `{command}` at commit {} ({}), over {}.\n",
        count(hunt.seeds),
        hunt.build.commit,
        hunt.build.toolchain,
        profiles.join(", ")
    );
    for (name, text) in totals(hunt) {
        let _ = writeln!(out, "- **{name}**: {text}");
    }
    let mut room = "";
    for row in &hunt.rows {
        if room != row.room {
            room = &row.room;
            let _ = writeln!(out, "\n## {room}\n\n| {} |", COLUMNS.join(" | "));
            out.push_str("|---|---|---|---:|---:|---:|---|---|---|\n");
        }
        let _ = writeln!(out, "| {} |", cells(row).join(" | "));
    }
    out
}
