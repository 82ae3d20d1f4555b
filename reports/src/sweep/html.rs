//! One page for a sweep: groups of failures, files, and the census of what was reached.

use super::{FileTotals, Group, Summary, Tally};
use crate::html::{frame, word};
use crate::record::Verdict;
use crate::show::{count, number};
use maud::{html, Markup};
use std::collections::BTreeMap;

/// Files that get a column of their own in the census.
const COLUMNS_MAX: usize = 12;

/// Rows of a table that stands open.
const OPEN_MAX: usize = 60;

/// The whole page.
#[must_use]
pub fn page(sweep: &Summary, name: &str) -> String {
    let verdict = sweep.verdict.unwrap_or(Verdict::Unknown);
    let body = html! {
        h1 { "Sweep " (name) }
        p.muted {
            (sweep.files.len()) " files, seeds " (sweep.seeds.0) ".." (sweep.seeds.1)
            @if !sweep.options.is_empty() { " · " span.mono { (sweep.options) } }
        }
        div.verdict { (word(verdict)) span { (super::text::verdict(sweep)) } }
        @if sweep.runs < sweep.planned {
            p.warn { (count(sweep.planned - sweep.runs)) " of " (count(sweep.planned)) " runs are missing" }
        }
        (tiles(sweep))
        @for group in &sweep.groups { (told(group)) }
        (files(&sweep.files))
        (table("Marks", &sweep.marks, &sweep.files, |file| &file.marks))
        (table("Census", &sweep.census, &sweep.files, |file| &file.census))
        h2 { "Guards" }
        details {
            summary { (sweep.guards_hit.len()) " refused something" }
            p { (sweep.guards_hit.iter().map(String::as_str).collect::<Vec<_>>().join(", ")) }
        }
        dl { dt { "commit" } dd.mono { (sweep.build.commit) } dt { "toolchain" } dd.mono { (sweep.build.toolchain) } }
    };
    frame(&format!("Sweep {name} · {}", verdict.name()), &body)
}

fn tiles(sweep: &Summary) -> Markup {
    let tiles = [
        (count(sweep.runs), "runs"),
        (count(sweep.failed()), "failed"),
        (number(sweep.runs_per_s), "runs per second"),
        (number(sweep.wall_s), "s in all"),
        (count(sweep.twice), "run twice, in two processes"),
        (count(sweep.events), "events"),
        (count(sweep.messages), "messages"),
        (number(sweep.simulated_s), "simulated s"),
        (number(sweep.rss_mb), "MB, the largest worker"),
    ];
    html! { div.tiles { @for (value, name) in &tiles { div.tile { b { (value) } span.muted { (name) } } } } }
}

fn told(group: &Group) -> Markup {
    html! {
        section.broken {
            b { (group.invariant) ": " (group.reason) }
            dl {
                dt { "verdict" } dd { (word(group.verdict)) }
                dt { "where" } dd { (group.place) }
                dt { "file" } dd { (group.scenario) }
                dt { "runs" } dd { (count(group.runs)) }
                dt { "fastest" } dd { "seed " (group.seed) ", " (count(group.events)) " events" }
                @if !group.folder.is_empty() { dt { "run folder" } dd.mono { (group.folder) } }
            }
            pre { (group.repro) }
        }
    }
}

fn files(files: &[FileTotals]) -> Markup {
    let per = |total: f64, runs: u64| number(total / runs.max(1) as f64);
    html! {
        h2 { "Files" }
        div.wide { table {
            tr { th { "file" } th.n { "runs" } th.n { "failed" } th.n { "events per run" } th.n { "s per run" } }
            @for file in files {
                tr {
                    td { (file.scenario) } td.n { (count(file.runs)) } td.n { (count(file.failed)) }
                    td.n { (count(file.events / file.runs.max(1))) } td.n { (per(file.wall_s, file.runs)) }
                }
            }
        } }
    }
}

/// How often each was met, per run of all and of each file: a file that reaches nothing is seen.
fn table(
    title: &str,
    all: &BTreeMap<String, Tally>,
    files: &[FileTotals],
    of: fn(&FileTotals) -> &BTreeMap<String, Tally>,
) -> Markup {
    let files = if files.len() <= COLUMNS_MAX { files } else { &[] };
    let rate = |tally: Option<&Tally>, runs: u64| match tally {
        Some(tally) if tally.total > 0 => number(tally.total as f64 / runs.max(1) as f64),
        _ => "0".to_owned(),
    };
    html! {
        @if !all.is_empty() {
            h2 { (title) }
            p.muted { "How often each was met, in how many runs, and how often per run of each file." }
            details open[all.len() <= OPEN_MAX] {
                summary { (all.len()) " were met" }
                div.wide { table {
                    tr { th { "" } th.n { "in all" } th.n { "runs" } @for file in files { th.n { (file.scenario) } } }
                    @for (name, tally) in all {
                        tr {
                            td { (name) } td.n { (count(tally.total)) } td.n { (count(tally.runs)) }
                            @for file in files { td.n { (rate(of(file).get(name), file.runs)) } }
                        }
                    }
                } }
            }
        }
    }
}
