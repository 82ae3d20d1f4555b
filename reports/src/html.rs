//! One page for a run or a matrix: it stands alone (no script, nothing loaded), in light and dark.
//!
//! The same record gives the same page, byte for byte.

use crate::charts::{self, Bar, Reach};
use crate::failovers;
use crate::figures;
use crate::record::{Curve, Failover, FailoverKind, Record, Row, Verdict, Violation};
use crate::rows::{self, figure};
use crate::show::{self, count, number, seconds};
use maud::{html, Markup, PreEscaped, DOCTYPE};
use std::fmt::Write as _;

/// Rows of a matrix that get charts of their own; more would make a page of many megabytes.
const CHARTED_ROWS_MAX: usize = 64;
/// Rows whose details stand open.
const OPEN_ROWS_MAX: usize = 8;

/// The whole page.
#[must_use]
pub fn page(record: &Record) -> String {
    let title = if record.title.is_empty() { &record.scenario } else { &record.title };
    let body = html! {
        h1 { (title) }
        p.muted { span.mono { (record.scenario) } " · seed " (record.seed) " · profile " (record.profile) }
        (verdict(record))
        p { (record.resolved) }
        @if record.rows.is_empty() { (run(record, &reaches([record]))) } @else { (matrix(record)) }
        (made_by(record))
    };
    frame(&format!("{title} · {}", record.verdict.name()), &body)
}

/// A page that stands alone.
pub(crate) fn frame(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(style())) }
            }
            body { main { (body) } }
        }
    };
    page.into_string()
}

/// The stylesheet, and the dark form of every colour of the charts.
fn style() -> String {
    let mut out = include_str!("style.css").to_owned();
    out.push_str("@media (prefers-color-scheme: dark) {\n");
    for (light, dark) in charts::ROLES {
        let _ =
            writeln!(out, "svg [fill=\"{light}\"] {{ fill: {dark}; }} svg [stroke=\"{light}\"] {{ stroke: {dark}; }}");
    }
    out.push_str("}\nsvg text { font-family: system-ui, sans-serif; }\n");
    out
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "good",
        Verdict::Violation | Verdict::Stall | Verdict::Diverged | Verdict::Panic => "bad",
        Verdict::Vacuous | Verdict::Unknown | Verdict::Unmet => "warn",
    }
}

pub(crate) fn word(verdict: Verdict) -> Markup {
    let sign = if verdict == Verdict::Pass { "✓" } else { "✗" };
    html! { span class={ "word " (class(verdict)) } { (sign) " " (verdict.name()) } }
}

fn verdict(record: &Record) -> Markup {
    html! {
        div.verdict { (word(record.verdict)) span { (record.reason) } }
        (found(record))
    }
}

/// What broke, what was excused, and under which switches.
fn found(record: &Record) -> Markup {
    html! {
        @for violation in &record.violations { (broken(violation)) }
        @for excuse in &record.excuses { p { span.muted { "excuse: " } (excuse) } }
        (switches(record))
    }
}

fn broken(violation: &Violation) -> Markup {
    html! {
        section.broken {
            b { (violation.id) ": " (violation.says) }
            dl {
                dt { "where" } dd { (violation.at) }
                dt { "expected" } dd { (violation.expected) }
                dt { "got" } dd { (violation.got) }
                dt { "whose" } dd { (violation.whose) }
                dt { "step" } dd { (count(violation.step)) " at " (seconds(violation.time_ns)) " s" }
            }
        }
    }
}

/// Guards that were off and quirks that were on stand at the top: without them no figure means what it says.
fn switches(record: &Record) -> Markup {
    html! {
        @for (name, list) in [("guards off", &record.guards.off), ("quirks on", &record.guards.quirks)] {
            @if !list.is_empty() { p.warn { (name) ": " (list.join(", ")) } }
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------- one run

fn run(record: &Record, reaches: &[(String, Reach)]) -> Markup {
    html! {
        (tiles(record))
        (failovers(record))
        @for curve in &record.curves { (chart(record, curve, reaches)) }
        (bands(record))
        (expectations(record))
        (story(record))
        (counts(record))
    }
}

fn tiles(record: &Record) -> Markup {
    let figure = |name| figure(record, name);
    let lag_end = record.figures.get(figures::LAG_END).map_or_else(|| "unknown".to_owned(), |lag| number(*lag));
    let bound = record
        .figures
        .get(figures::FETCH_BOUND_MB_PER_S)
        .map(|b| format!("MB/s, of {} MB/s that fetching can carry", number(*b)));
    let tiles = [
        (figure(figures::MIRRORED_MB_PER_S), bound.unwrap_or_else(|| "mirrored MB per simulated second".to_owned())),
        (figure(figures::MIRRORED_MB), "MB mirrored".to_owned()),
        (rows::lag(record, record.lag.p50), "records of lag of a partition, P50".to_owned()),
        (rows::lag(record, record.lag.p99), "records of lag of a partition, P99".to_owned()),
        (lag_end, "records of lag at the end, in all".to_owned()),
        (figure(figures::CATCH_UP_S), "s to catch up".to_owned()),
        (figure(figures::ACKED_RECORDS), "records acked".to_owned()),
        (figure(figures::MIRRORED_RECORDS), "records mirrored".to_owned()),
        (figure(figures::READ_RECORDS), "records read".to_owned()),
        (number(record.simulated_s), "simulated s".to_owned()),
    ];
    html! {
        div.tiles { @for (value, name) in &tiles { div.tile { b { (value) } span.muted { (name) } } } }
        @let unknown = rows::unknown_samples(record);
        @if unknown > 0.0 {
            p.muted { "* " (number(unknown)) " of " (number(unknown + record.lag.count as f64)) " samples of lag were unknown \
                (before the first fetch, source silent); percentiles leave them out." }
        }
    }
}

fn failovers(record: &Record) -> Markup {
    html! {
        @if !record.failovers.is_empty() {
            h2 { "Failovers and returns" }
            @for failover in &record.failovers {
                div.wide { table {
                    @for (name, text) in failovers::lines(failover) { tr { th { (name.trim()) } td { (text) } } }
                } }
                @if !failover.parts.is_empty() { (parts(failover)) }
            }
        }
    }
}

/// By partition; seconds count from the order.
fn parts(failover: &Failover) -> Markup {
    let stop = failover.kind == FailoverKind::Stop;
    let s = show::number_or_none;
    let unknown = |known: Option<f64>| known.map_or_else(|| "unknown".to_owned(), number);
    html! {
        details {
            summary { "by partition" }
            div.wide { table {
                tr {
                    th.n { "partition" }
                    @if stop {
                        th.n { "left behind" } th.n { "RPO s" } th.n { "writable s" } th.n { "first write s" } th.n { "first read s" }
                    } @else { th.n { "mirroring s" } th.n { "offsets dropped" } th.n { "acknowledged" } }
                }
                @for part in &failover.parts {
                    tr {
                        td.n { (part.partition) }
                        @if stop {
                            td.n { (unknown(part.left_behind.map(|n| n as f64))) } td.n { (unknown(part.rpo_s)) } td.n { (s(part.done_s)) }
                            td.n { (s(part.first_write_s)) } td.n { (s(part.first_read_s)) }
                        } @else {
                            td.n { (s(part.done_s)) } td.n { (count(part.dropped_offsets)) } td.n { (count(part.dropped_acked)) }
                        }
                    }
                }
            } }
        }
    }
}

fn chart(record: &Record, curve: &Curve, reaches: &[(String, Reach)]) -> Markup {
    let own = Reach::of(curve, record.simulated_s);
    let reach = reaches.iter().find(|(name, _)| *name == curve.name).map_or(own, |(_, reach)| *reach);
    let Some(svg) = charts::over_time(curve, &record.bands, reach) else { return html! {} };
    let gaps = curve.values.iter().any(Option::is_none);
    html! {
        figure {
            figcaption {
                b { (curve.name) ", " (curve.unit) } " over simulated time, every " (number(curve.interval_ns as f64 / 1e9)) " s"
                @if gaps { "; gaps with a grey foot: unknown" }
                @if !record.bands.is_empty() { "; bands: faults and operator actions" }
            }
            (PreEscaped(svg))
        }
    }
}

/// The reach of each curve's name over several records, so that their charts compare.
fn reaches<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<(String, Reach)> {
    let mut out: Vec<(String, Reach)> = Vec::new();
    for record in records {
        for curve in &record.curves {
            let reach = Reach::of(curve, record.simulated_s);
            match out.iter_mut().find(|(name, _)| *name == curve.name) {
                Some((_, all)) => *all = all.and(reach),
                None => out.push((curve.name.clone(), reach)),
            }
        }
    }
    out
}

fn bands(record: &Record) -> Markup {
    html! {
        @if !record.bands.is_empty() {
            h2 { "Faults and operator actions" }
            @if record.bands.len() > charts::BANDS_MAX { p.muted { "The charts show the first " (charts::BANDS_MAX) "." } }
            div.wide { table {
                tr { th.n { "from s" } th.n { "to s" } th { "what" } }
                @for band in &record.bands {
                    tr { td.n { (seconds(band.from_ns)) } td.n { (seconds(band.to_ns)) } td { (band.label) } }
                }
            } }
        }
    }
}

fn expectations(record: &Record) -> Markup {
    html! {
        @if !record.expectations.is_empty() {
            h2 { "Expectations" }
            div.wide { table {
                tr { th { "" } th { "what" } th { "expected" } th { "got" } }
                @for e in &record.expectations {
                    tr {
                        td { @if e.met { span.good { "✓ met" } } @else { span.warn { "✗ not met" } } }
                        td { (e.what) } td { (e.expected) } td { (e.got) }
                    }
                }
            } }
        }
    }
}

fn story(record: &Record) -> Markup {
    html! {
        @if !record.story.is_empty() {
            h2 { "Story" }
            div.wide { table {
                tr { th.n { "s" } th.n { "step" } th { "what happened" } }
                @for line in &record.story {
                    tr class=[line.fault.then_some("fault")] {
                        td.n { (seconds(line.time_ns)) } td.n { (count(line.step)) }
                        td { @if line.fault { "! " } (line.text) }
                    }
                }
            } }
            @if record.story_omitted > 0 { p.muted { "… and " (count(record.story_omitted)) " more" } }
        }
    }
}

fn counts(record: &Record) -> Markup {
    let figures = record.figures.iter().map(|(name, value)| (name.as_str(), number(*value)));
    let counted = [("events", record.events), ("messages", record.messages), ("appends", record.appends)];
    html! {
        h2 { "Counts" }
        details {
            summary { "figures" }
            div.wide { table {
                @for (name, value) in counted { tr { td { (name) } td.n { (count(value)) } } }
                @for (name, value) in figures { tr { td { (name) } td.n { (value) } } }
            } }
        }
        details {
            summary { "marks: " (record.marks.len()) " reached" }
            div.wide { table { @for (name, n) in &record.marks { tr { td { (name) } td.n { (count(*n)) } } } } }
        }
        details {
            summary { "guards: " (record.guards.hit.len()) " refused something, " (record.guards.off.len()) " off, "
                (record.guards.quirks.len()) " quirks on" }
            dl {
                dt { "refused" } dd { (listed(&record.guards.hit)) }
                dt { "off" } dd { (listed(&record.guards.off)) }
                dt { "quirks" } dd { (listed(&record.guards.quirks)) }
            }
        }
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

fn made_by(record: &Record) -> Markup {
    html! {
        h2 { "Again" }
        @if !record.repro.is_empty() { pre { (record.repro) } }
        dl {
            dt { "trace hash" } dd.mono { (record.trace_hash) }
            dt { "commit" } dd.mono { (record.build.commit) }
            dt { "toolchain" } dd.mono { (record.build.toolchain) }
            dt { "Cargo.lock" } dd.mono { (record.build.lockfile) }
            @if record.wall_s > 0.0 {
                dt { "cost" } dd { (number(record.wall_s)) " wall s, " (number(record.peak_rss_mb)) " MB peak memory" }
            }
        }
    }
}

// --------------------------------------------------------------------------------------------------------------- a matrix

fn matrix(record: &Record) -> Markup {
    let table = rows::table(record);
    let reaches = reaches(record.rows.iter().map(|r| &r.record));
    html! {
        (matrix_table(record, &table))
        (matrix_bars(record, &table.keys))
        h2 { "Rows" }
        @if record.rows.len() > CHARTED_ROWS_MAX { p.muted { "Charts of the first " (CHARTED_ROWS_MAX) " rows." } }
        p.muted { "Charts of one kind have the same axes in all rows." }
        @for (n, row) in record.rows.iter().enumerate() { (matrix_row(n, row, record.rows.len(), &table.keys, &reaches)) }
    }
}

fn matrix_table(record: &Record, table: &rows::Table) -> Markup {
    let keys = table.keys.len();
    html! {
        div.wide { table {
            tr {
                @for (short, path) in &table.keys { th.n title=(path) { (short) } }
                @for (header, means) in &table.columns { th.n[*header != "verdict"] title=(means) { (header) } }
            }
            @for (n, (cells, row)) in table.rows.iter().zip(&record.rows).enumerate() {
                tr {
                    @for cell in &cells[..cells.len() - 1] { td.n { (cell) } }
                    td { a class=(class(row.record.verdict)) href={ "#row-" (n + 1) } { (cells[cells.len() - 1]) } }
                }
            }
        } }
        @for (short, path) in table.keys.iter().filter(|(short, path)| short != path) {
            p.muted { (short) " = " span.mono { (path) } }
        }
        @for (header, means) in table.columns.iter().filter(|_| keys > 0) { p.muted { b { (header) } ": " (means) } }
        p.muted { (show::NONE) " was not measured or never came."
            @if table.partly_known { " * lag was unknown at some samples (before the first fetch, source silent): they are not counted." } }
    }
}

fn matrix_bars(record: &Record, keys: &[(String, String)]) -> Markup {
    let get = |row: &Row, name: &str| row.record.figures.get(name).copied();
    let bar = |row: &Row| Bar {
        name: rows::name(row, keys),
        value: get(row, figures::MIRRORED_MB_PER_S),
        bound: get(row, figures::FETCH_BOUND_MB_PER_S),
    };
    let bars: Vec<Bar> = record.rows.iter().take(CHARTED_ROWS_MAX).map(bar).collect();
    let bounded = bars.iter().any(|b| b.bound.is_some());
    let Some(svg) = charts::bars(&bars) else { return html! {} };
    html! {
        figure {
            figcaption {
                b { "mirrored MB per simulated second" }
                @if bounded { " of the fetch bound (response maximum over round trip, times the fetches in parallel): the upright \
                    mark, or → where it lies beyond the axis" }
            }
            (PreEscaped(svg))
        }
    }
}

fn matrix_row(n: usize, row: &Row, of: usize, keys: &[(String, String)], reaches: &[(String, Reach)]) -> Markup {
    let record = &row.record;
    let open = of <= OPEN_ROWS_MAX || record.verdict != Verdict::Pass;
    html! {
        details id={ "row-" (n + 1) } open[open] {
            summary { (word(record.verdict)) " " b { (rows::name(row, keys)) } " " (record.reason) }
            (found(record))
            @if n < CHARTED_ROWS_MAX { (run(record, reaches)) } @else { (tiles(record)) }
            dl { dt { "trace hash" } dd.mono { (record.trace_hash) } }
            @if !record.repro.is_empty() { pre { (record.repro) } }
        }
    }
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
