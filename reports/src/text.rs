//! The printed form of a record: plain text, no colour, at most 120 columns.
//!
//! The order is that of a reader who looks at the end first: what was resolved, what happened, counts, and last the verdict
//! with everything needed to run it again. Only the command to paste and the run folder may be wider: broken over two lines
//! they could not be pasted.

use crate::failovers;
use crate::figures;
use crate::record::{OrderTold, Record, Row, StoryLine, Verdict, Violation};
use crate::rows::{self, figure};
use crate::show::{self, count, number, plural, seconds, wrap};
use std::fmt::Write as _;
use std::path::Path;

/// Story lines printed at most.
pub const STORY_MAX: usize = 50;

/// Answers to orders printed at most.
const ORDERS_MAX: usize = 50;

/// Rows of a matrix that are told in full, because they did not pass.
const FAILED_ROWS_MAX: usize = 10;

/// The whole printed form of a run, or of a matrix. `folder` is the run folder, if one was written.
#[must_use]
pub fn summary(record: &Record, folder: Option<&Path>) -> String {
    let mut out = String::new();
    wrap(&mut out, "", &record.resolved);
    if record.rows.is_empty() {
        story(&mut out, record, folder);
        orders(&mut out, record);
        counts(&mut out, record);
    } else {
        matrix(&mut out, record);
    }
    verdict(&mut out, record);
    last(&mut out, record, folder);
    out
}

/// One line of the story as it is printed while a run goes on.
#[must_use]
pub fn story_line(line: &StoryLine) -> String {
    let mut out = String::new();
    let sign = if line.fault { '!' } else { ' ' };
    wrap(&mut out, &format!("{:>11} s {sign} ", seconds(line.time_ns)), &line.text);
    out
}

fn story(out: &mut String, record: &Record, folder: Option<&Path>) {
    for line in record.story.iter().take(STORY_MAX) {
        out.push_str(&story_line(line));
    }
    let left = record.story.len().saturating_sub(STORY_MAX) as u64 + record.story_omitted;
    if left > 0 {
        // A run that broke leaves its trace by itself.
        let traced = matches!(record.verdict, Verdict::Violation | Verdict::Stall);
        let place = match folder {
            None => "",
            Some(_) if traced => " (all of them are in trace.ndjson)",
            Some(_) => " (--trace writes all of them)",
        };
        let _ = writeln!(out, "… and {} more{place}", count(left));
    }
}

/// Orders that were refused or not answered, and whatever the operators' tool printed.
fn orders(out: &mut String, record: &Record) {
    let told = |told: &&OrderTold| told.exit.is_some() || told.answer != "NONE";
    let all = record.orders.iter().filter(told).count();
    for told in record.orders.iter().filter(told).take(ORDERS_MAX) {
        if let (Some(args), Some(exit)) = (&told.args, told.exit) {
            wrap(out, &format!("{:>11} s $ ", seconds(told.from_ns)), &format!("kafka-cluster-mirrors {args}"));
            // As it is: a broken table is none.
            out.push_str(&told.output);
            out.push_str(&told.stderr);
            if exit != 0 {
                let _ = writeln!(out, "(exit code {exit})");
            }
        } else if told.answer != "NONE" {
            let refused =
                if told.refusals.is_empty() { String::new() } else { format!(": {}", told.refusals.join(", ")) };
            let text = format!("step {} ({}) was answered {}{refused}", told.step, told.order, told.answer);
            wrap(out, &format!("{:>11} s ? ", seconds(told.from_ns)), &text);
        }
    }
    if all > ORDERS_MAX {
        let _ = writeln!(out, "… and {} more orders (summary.json: orders)", count((all - ORDERS_MAX) as u64));
    }
}

fn field(out: &mut String, name: &str, text: &str) {
    wrap(out, &format!("{name:<12}"), text);
}

fn counts(out: &mut String, record: &Record) {
    if !record.marks.is_empty() {
        field(out, "marks", &named_counts(record));
    }
    let simulated = number(record.simulated_s);
    let (events, messages, appends) = (count(record.events), count(record.messages), count(record.appends));
    let text = format!("{events} events, {messages} messages, {appends} appends in {simulated} simulated s");
    field(out, "counts", &text);
    let records =
        [figures::ACKED_RECORDS, figures::MIRRORED_RECORDS, figures::READ_RECORDS].map(|name| figure(record, name));
    field(out, "records", &format!("{} acked, {} mirrored, {} read", records[0], records[1], records[2]));
    let (mb, rate) = (figure(record, figures::MIRRORED_MB), figure(record, figures::MIRRORED_MB_PER_S));
    field(out, "mirrored", &format!("{mb} MB, {rate} MB per simulated second"));
    field(out, "lag", &lag(record));
    failovers(out, record);
    if record.wall_s > 0.0 {
        let memory = number(record.peak_rss_mb);
        field(out, "cost", &format!("{} wall s, {memory} MB peak memory", number(record.wall_s)));
    }
    switches(out, record);
}

/// What stops of mirrored topics cost, and returns.
fn failovers(out: &mut String, record: &Record) {
    for failover in record.failovers.iter().take(failovers::TOLD_MAX) {
        failovers::lines(failover).iter().for_each(|(name, text)| field(out, name, text));
    }
    if record.failovers.len() > failovers::TOLD_MAX {
        let more = record.failovers.len() - failovers::TOLD_MAX;
        field(out, "", &format!("… and {more} more stops and starts (summary.json: failovers)"));
    }
}

/// Guards that were off and quirks that were on: without them a figure means something else.
fn switches(out: &mut String, record: &Record) {
    for (name, list) in [("guards off", &record.guards.off), ("quirks on", &record.guards.quirks)] {
        if !list.is_empty() {
            field(out, name, &list.join(", "));
        }
    }
}

fn named_counts(record: &Record) -> String {
    record.marks.iter().map(|(name, n)| format!("{name} {}", count(*n))).collect::<Vec<_>>().join(", ")
}

fn lag(record: &Record) -> String {
    let end = record
        .figures
        .get(figures::LAG_END)
        .map_or_else(|| "unknown".to_owned(), |lag| format!("{} records", number(*lag)));
    let percentiles = &record.lag;
    let unknown = rows::unknown_samples(record) as u64;
    if percentiles.count + unknown == 0 {
        return "no samples".to_owned();
    }
    let known = if percentiles.count == 0 {
        "P50 unknown, P99 unknown".to_owned()
    } else {
        format!("P50 {}, P99 {}, max {}", number(percentiles.p50), number(percentiles.p99), number(percentiles.max))
    };
    let (samples, s) = (count(percentiles.count), plural(percentiles.count));
    format!("{end} at the end; by partition {known} ({samples} sample{s}, {} more unknown)", count(unknown))
}

fn verdict(out: &mut String, record: &Record) {
    for expectation in record.expectations.iter().filter(|e| !e.met) {
        field(
            out,
            "not met",
            &format!("{}: expected {}, got {}", expectation.what, expectation.expected, expectation.got),
        );
    }
    for excuse in &record.excuses {
        field(out, "excuse", excuse);
    }
    field(out, "verdict", &format!("{}: {}", record.verdict.name(), record.reason));
    record.violations.iter().for_each(|v| violation(out, v));
}

fn violation(out: &mut String, violation: &Violation) {
    field(out, "invariant", &format!("{}: {}", violation.id, violation.says));
    field(out, "  where", &violation.at);
    field(out, "  expected", &violation.expected);
    field(out, "  got", &violation.got);
    field(out, "  whose", &violation.whose);
    field(out, "  step", &format!("{} at {} s", violation.step, seconds(violation.time_ns)));
}

fn last(out: &mut String, record: &Record, folder: Option<&Path>) {
    field(out, "seed", &format!("{}, profile {}", record.seed, record.profile));
    if !record.trace_hash.is_empty() {
        field(out, "trace hash", &record.trace_hash);
    }
    // Not wrapped: these two are pasted.
    if let Some(folder) = folder {
        let _ = writeln!(out, "{:<12}{}", "run folder", show::clean(&folder.display().to_string()));
    }
    if !record.repro.is_empty() {
        let _ = writeln!(out, "{:<12}{}", "again", show::clean(&record.repro));
    }
}

fn matrix(out: &mut String, record: &Record) {
    let table = rows::table(record);
    out.push('\n');
    if fits(&table) {
        for (short, path) in table.keys.iter().filter(|(short, path)| short != path) {
            wrap(out, &format!("{short} = "), path);
        }
        let headers: Vec<&str> = table.keys.iter().map(|(short, _)| short.as_str()).collect();
        columns(out, &headers, &table, |_, cells| cells.to_vec());
    } else {
        numbered(out, record, &table);
    }
    notes(out, &table);
    out.push('\n');
    let failed: Vec<&Row> = record.rows.iter().filter(|r| r.record.verdict != Verdict::Pass).collect();
    failed.iter().take(FAILED_ROWS_MAX).for_each(|row| broken_row(out, row, &table.keys));
    if failed.len() > FAILED_ROWS_MAX {
        let _ = writeln!(out, "… and {} more rows did not pass (summary.json: rows)\n", failed.len() - FAILED_ROWS_MAX);
    }
}

fn notes(out: &mut String, table: &rows::Table) {
    wrap(out, "", "MB are 10^6 bytes, seconds are simulated, lag is in records of one partition; - was not measured or never came");
    if table.partly_known {
        wrap(
            out,
            "",
            "* lag was unknown at some samples (before the first fetch, source silent): they are not counted",
        );
    }
}

/// A table whose keys are too wide for a line: rows get numbers, explained below.
fn numbered(out: &mut String, record: &Record, table: &rows::Table) {
    let keys = table.keys.len();
    columns(out, &["row"], table, |n, cells| {
        std::iter::once((n + 1).to_string()).chain(cells[keys..].iter().cloned()).collect()
    });
    for (n, row) in record.rows.iter().enumerate() {
        wrap(out, &format!("row {}: ", n + 1), &rows::name(row, &full(&table.keys)));
    }
}

fn full(keys: &[(String, String)]) -> Vec<(String, String)> {
    keys.iter().map(|(_, path)| (path.clone(), path.clone())).collect()
}

fn fits(table: &rows::Table) -> bool {
    let column =
        |n: usize, header: usize| table.rows.iter().map(|r| r[n].chars().count()).max().unwrap_or(0).max(header) + 2;
    let keys: usize = table.keys.iter().enumerate().map(|(n, (short, _))| column(n, short.chars().count())).sum();
    let measured = |(n, (header, _)): (usize, &(&str, &str))| column(n + table.keys.len(), narrow(header));
    keys + table.columns.iter().enumerate().map(measured).sum::<usize>() <= show::WIDTH + 2
}

/// Width of a header that may break over two lines before its unit.
fn narrow(header: &str) -> usize {
    let (top, bottom) = split(header);
    top.chars().count().max(bottom.chars().count())
}

fn split(header: &str) -> (&str, &str) {
    header.rsplit_once(' ').unwrap_or(("", header))
}

fn columns(out: &mut String, first: &[&str], table: &rows::Table, cells: impl Fn(usize, &[String]) -> Vec<String>) {
    let plain = first.iter().map(|h| ("", *h));
    let headers: Vec<(&str, &str)> = plain.chain(table.columns.iter().map(|(h, _)| split(h))).collect();
    let body: Vec<Vec<String>> = table.rows.iter().enumerate().map(|(n, row)| cells(n, row)).collect();
    let chars = |text: &str| text.chars().count();
    let widths: Vec<usize> = (0..headers.len())
        .map(|n| body.iter().map(|r| chars(&r[n])).max().unwrap_or(0).max(chars(headers[n].0)).max(chars(headers[n].1)))
        .collect();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        // Numbers end in one column; the verdict, which is last, is a word.
        let pad = |(n, (cell, width)): (usize, (&str, &usize))| match n + 1 == widths.len() {
            true => cell.to_owned(),
            false => format!("{cell:>width$}"),
        };
        let padded: Vec<String> = cells.zip(&widths).enumerate().map(pad).collect();
        out.push_str(padded.join("  ").trim_end());
        out.push('\n');
    };
    line(&mut headers.iter().map(|h| h.0));
    line(&mut headers.iter().map(|h| h.1));
    let rules: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
    line(&mut rules.iter().map(String::as_str));
    body.iter().for_each(|row| line(&mut row.iter().map(String::as_str)));
}

/// What a failing row needs to be run again.
fn broken_row(out: &mut String, row: &Row, keys: &[(String, String)]) {
    field(out, "row", &rows::name(row, keys));
    switches(out, &row.record);
    verdict(out, &row.record);
    last(out, &row.record, None);
    out.push('\n');
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
