//! A census: counts by key over the runs of a sweep. Adds them up, and shows them as text and as a page: rates per run, and
//! what was never reached of all that is known to be countable.
//!
//! A key's first word says which table it stands in. Tables of two and three words more are matrices: what met a mirrored
//! partition by its state, and what became of its leader by state and step.

use crate::show::{count, number};
use maud::{html, Markup, PreEscaped, DOCTYPE};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Counts by key.
pub type Counts = BTreeMap<String, u64>;

/// The key that counts runs.
pub const RUNS: &str = "runs";
/// Names of unreached cells in one line of text, at most: the page has all of them.
const NAMED_MAX: usize = 400;

/// Adds the counts of a run, or of another sweep.
pub fn add(into: &mut Counts, more: &Counts) {
    for (key, n) in more {
        match into.get_mut(key) {
            Some(sum) => *sum = sum.saturating_add(*n),
            None => {
                into.insert(key.clone(), *n);
            }
        }
    }
}

/// The tables, in the order in which they are shown: the key's first word, and what it is.
const TABLES: [(&str, &str); 8] = [
    ("fault", "Faults"),
    ("order", "Orders and their answers"),
    ("election", "Elections"),
    ("transition", "Changes of mirror states"),
    ("guard", "Guards that refused something"),
    ("point", "Points of perturbation that fired"),
    ("event", "What met a mirrored partition, by its state"),
    ("role", "What became of a mirror leader, by state and step of a stop or an alignment"),
];

/// One table: its rows by name, each with its count; and the names of all that is known and was not reached.
struct Shown<'a> {
    word: &'a str,
    title: &'a str,
    reached: Vec<(&'a str, u64)>,
    missing: Vec<&'a str>,
    known: usize,
}

fn tables<'a>(counts: &'a Counts, known: &'a [String]) -> Vec<Shown<'a>> {
    let under = |key: &'a str, word: &str| key.strip_prefix(word).and_then(|rest| rest.strip_prefix('.'));
    TABLES
        .into_iter()
        .map(|(word, title)| {
            let reached: Vec<(&str, u64)> =
                counts.iter().filter_map(|(key, n)| Some((under(key, word)?, *n))).filter(|(_, n)| *n > 0).collect();
            let names: BTreeSet<&str> = reached.iter().map(|(name, _)| *name).collect();
            let all: Vec<&str> = known.iter().filter_map(|key| under(key, word)).collect();
            let missing = all.iter().copied().filter(|name| !names.contains(name)).collect();
            Shown { word, title, reached, missing, known: all.len() }
        })
        .collect()
}

/// How many runs a census is over.
#[must_use]
pub fn runs(counts: &Counts) -> u64 {
    counts.get(RUNS).copied().unwrap_or(0)
}

fn rate(n: u64, runs: u64) -> String {
    number(n as f64 / runs.max(1) as f64)
}

/// The printed form. `known` are all keys that could be counted.
#[must_use]
pub fn text(counts: &Counts, known: &[String]) -> String {
    let runs = runs(counts);
    let mut out = format!("census      {} run{}\n", count(runs), crate::show::plural(runs));
    for table in tables(counts, known) {
        let reached = table.known - table.missing.len();
        let _ = writeln!(out, "\n{} ({} of {} reached)", table.title, count(reached as u64), table.known);
        match table.word {
            "event" | "role" => matrix_text(&mut out, &table, runs),
            _ => {
                for (name, n) in &table.reached {
                    let _ = writeln!(out, "  {name:<58} {:>12}  {:>10} a run", count(*n), rate(*n, runs));
                }
            }
        }
        if !table.missing.is_empty() {
            let named: Vec<&str> = table.missing.iter().copied().take(NAMED_MAX).collect();
            let rest = table.missing.len() - named.len();
            let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            crate::show::wrap(&mut out, "  never: ", &format!("{}{rest}", named.join(" ")));
        }
    }
    out
}

/// The rows of a matrix: all words but the last are the row.
fn rows<'a>(table: &Shown<'a>) -> BTreeMap<&'a str, Vec<(&'a str, u64)>> {
    let mut rows: BTreeMap<&str, Vec<(&str, u64)>> = BTreeMap::new();
    for (name, n) in &table.reached {
        if let Some((row, column)) = name.rsplit_once('.') {
            rows.entry(row).or_default().push((column, *n));
        }
    }
    rows
}

fn matrix_text(out: &mut String, table: &Shown<'_>, runs: u64) {
    for (row, cells) in rows(table) {
        let cells: Vec<String> =
            cells.iter().map(|(name, n)| format!("{name} {} ({})", count(*n), rate(*n, runs))).collect();
        crate::show::wrap(out, &format!("  {row:<26} "), &cells.join(", "));
    }
}

/// The page.
#[must_use]
pub fn page(counts: &Counts, known: &[String]) -> String {
    let runs = runs(counts);
    let body = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "census of " (count(runs)) " runs" }
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body { main {
                h1 { "Census" }
                p.muted { (count(runs)) " runs; counts, and rates per run in brackets" }
                @for table in tables(counts, known) { (section(&table, runs)) }
            } }
        }
    };
    body.into_string()
}

fn section(table: &Shown<'_>, runs: u64) -> Markup {
    html! {
        h2 { (table.title) }
        p.muted { (table.known - table.missing.len()) " of " (table.known) " reached" }
        @if matches!(table.word, "event" | "role") {
            (matrix(table, runs))
        } @else {
            table {
                @for (name, n) in &table.reached {
                    tr { td { (name) } td { (count(*n)) } td { "(" (rate(*n, runs)) ")" } }
                }
            }
        }
        @if !table.missing.is_empty() {
            details { summary { (table.missing.len()) " never reached" } p { (table.missing.join(" ")) } }
        }
    }
}

/// Every cell that is known, empty ones marked: rows are states (and steps), columns what met them.
fn matrix(table: &Shown<'_>, runs: u64) -> Markup {
    let cells: BTreeMap<&str, u64> = table.reached.iter().copied().collect();
    let all = table.reached.iter().map(|(name, _)| *name).chain(table.missing.iter().copied());
    let split: Vec<(&str, &str)> = all.filter_map(|name| name.rsplit_once('.')).collect();
    let rows: BTreeSet<&str> = split.iter().map(|(row, _)| *row).collect();
    let columns: BTreeSet<&str> = split.iter().map(|(_, column)| *column).collect();
    html! {
        table {
            tr { th { "" } @for row in &rows { th { (row) } } }
            @for column in &columns {
                tr {
                    th { (column) }
                    @for row in &rows {
                        @match cells.get(format!("{row}.{column}").as_str()) {
                            Some(n) => td { (count(*n)) " (" (rate(*n, runs)) ")" },
                            None => td.muted { "–" },
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "census_tests.rs"]
mod tests;
