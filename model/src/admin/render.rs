//! What a call prints, and its exit code (spec 9.6, K18): sentences, tables with fixed columns, JSON.
//!
//! What was accepted is printed even if something else was refused (decision 2), and where to see when it is done, because
//! accepted is not done (decision 41). Standard output holds what the older tools print there; remarks go to standard error.

use crate::admin::command::{Action, Call};
use crate::admin::NAMES;
use crate::client::admin::{Outcome, Verdict};
use crate::client::commands::ItemResult;
use crate::client::mirror_orders::Report;
use crate::ids::Offset;
use crate::states::MirrorState;
use crate::wire::messages::{DescribedMirror, DescribedPart, ListedMirror};
use std::fmt::Write as _;
use std::sync::Arc;

/// What a call leaves.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Printed {
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// Exit code: 0, or 1 after any error.
    pub exit: i32,
}

/// Attempts that a table says are the most, where the brokers' setting is not known.
const ATTEMPTS_MAX: u32 = 10;
/// Characters of an error in a table.
const ERROR_WIDTH: usize = 80;

impl Printed {
    /// A call that broke a rule.
    #[must_use]
    pub fn usage(message: &str) -> Self {
        Self { out: String::new(), err: format!("Error: {message}\n"), exit: 1 }
    }
}

/// What a call prints after its order ended. `attempts_max` is `mirror.failed.retry.max.attempts` if it is known.
#[must_use]
pub fn render(call: &Call, outcome: &Outcome, attempts_max: Option<u32>) -> Printed {
    let mut printed = Printed::default();
    let is_accepted = outcome.verdict == Verdict::Accepted;
    match (&call.action, &outcome.report) {
        (Action::List, Some(Report::Mirrors(mirrors))) => list(&mut printed.out, mirrors),
        (Action::Describe { json, failed, .. }, Some(Report::Described(mirrors, silent))) => {
            // A mirror that nobody knows has no table.
            if is_accepted || mirrors.iter().any(|m| !m.parts.is_empty()) {
                let max = attempts_max.unwrap_or(ATTEMPTS_MAX);
                printed.out = match (json, failed) {
                    (false, false) => states(mirrors),
                    (false, true) => failures(mirrors, max),
                    (true, failed) => as_json(mirrors, *failed, max),
                };
            }
            for broker in silent {
                let _ = writeln!(printed.err, "Broker {broker} did not answer: what only it knows is missing.");
            }
        }
        _ => sentence(&mut printed, call, outcome),
    }
    errors(&mut printed, outcome);
    printed
}

// --------------------------------------------------------------------------------------------------------------- sentences

fn sentence(printed: &mut Printed, call: &Call, outcome: &Outcome) {
    let done: Vec<&str> = outcome.items.iter().filter(|i| i.error.is_none()).map(|i| &*i.name).collect();
    let (count, names) = (done.len(), format!("[{}]", done.join(", ")));
    let is_accepted = outcome.verdict == Verdict::Accepted;
    if !is_accepted && done.is_empty() {
        return;
    }
    let mut is_order = true;
    let text = match &call.action {
        Action::Create(mirror, _) => format!("Created mirror {mirror}"),
        Action::Start(mirror, ..) if count == 0 => {
            format!("No matching topics found yet. Patterns saved to mirror {mirror} for auto-discovery.")
        }
        Action::Start(mirror, ..) => format!("Started {count} topic(s) in mirror {mirror}: {names}"),
        Action::Stop(mirror, _) => format!("Stopped {names} topic(s) in mirror {mirror}"),
        Action::Pause(mirror, _) => format!("Paused {count} topic(s) in mirror {mirror}: {names}"),
        Action::Resume(mirror, _) => format!("Resumed {count} topic(s) in mirror {mirror}: {names}"),
        Action::Recover(mirror, _) => format!("Recovered {count} topic(s) in mirror {mirror}: {names}"),
        Action::Delete(mirror) => format!("Deleted mirror {mirror}"),
        Action::List | Action::Describe { .. } => return,
    };
    let _ = writeln!(printed.out, "{text}");
    let mirror = match &call.action {
        Action::Start(mirror, ..)
        | Action::Stop(mirror, _)
        | Action::Pause(mirror, _)
        | Action::Resume(mirror, _)
        | Action::Recover(mirror, _) => mirror.clone(),
        _ => {
            is_order = false;
            Arc::from("")
        }
    };
    if is_order {
        let Call { bootstrap, .. } = call;
        let tool = NAMES[0];
        let _ = writeln!(
            printed.err,
            "Accepted, not yet done; the states: {tool} --bootstrap-server {bootstrap} --describe --mirror {mirror}"
        );
    }
}

fn errors(printed: &mut Printed, outcome: &Outcome) {
    match outcome.verdict {
        Verdict::Accepted => return,
        Verdict::Undecided => printed.err.push_str("Error: no answer in time; it may have been carried out or not\n"),
        Verdict::Refused(first) => {
            let refused: Vec<&ItemResult> = outcome.items.iter().filter(|i| !i.error.is_none()).collect();
            for item in &refused {
                let place = if item.name.is_empty() { String::new() } else { format!("{}: ", item.name) };
                let why = item.message.as_deref().map_or(String::new(), |why| format!(": {why}"));
                let _ = writeln!(printed.err, "Error: {place}{}{why}", item.error.name());
            }
            if refused.is_empty() {
                let _ = writeln!(printed.err, "Error: {}", first.name());
            }
        }
    }
    printed.exit = 1;
}

// ------------------------------------------------------------------------------------------------------------------ tables

/// A long name keeps its end, which is where names differ.
fn cut_left(text: &str, width: usize) -> String {
    let chars = text.chars().count();
    if chars <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(chars - (width - 3)).collect();
    format!("...{kept}")
}

fn cut_right(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width - 3).collect();
    format!("{kept}...")
}

fn row(out: &mut String, cells: &[(&str, usize)]) {
    let mut line = String::new();
    for (at, (cell, width)) in cells.iter().enumerate() {
        let _ = write!(line, "{}{cell:<width$}", if at == 0 { "" } else { " " });
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

fn number(offset: Offset) -> String {
    if offset.0 < 0 {
        "-".to_owned()
    } else {
        offset.to_string()
    }
}

/// Lag is known only while both ends are (decision 19).
fn lag(part: &DescribedPart) -> Option<i64> {
    let known = part.source_offset.0 >= 0 && part.destination_offset.0 >= 0;
    known.then(|| (part.source_offset.0 - part.destination_offset.0).max(0))
}

fn list(out: &mut String, mirrors: &[ListedMirror]) {
    if mirrors.is_empty() {
        out.push_str("No mirrors found\n");
        return;
    }
    let mut sorted: Vec<&ListedMirror> = mirrors.iter().collect();
    sorted.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    row(out, &[("MIRROR", 30), ("TOPICS", 10), ("SOURCE-CLUSTER-ID", 26), ("SOURCE-BOOTSTRAP-SERVER", 50)]);
    for mirror in sorted {
        let (name, topics) = (cut_left(&mirror.name, 30), mirror.mirroring.to_string());
        let (source, bootstrap) = (cut_left(&mirror.source, 26), cut_left(&mirror.bootstrap, 50));
        row(out, &[(&name, 30), (&topics, 10), (&source, 26), (&bootstrap, 50)]);
    }
}

/// Mirror, topic, partition: in that order.
fn rows(mirrors: &[DescribedMirror]) -> Vec<(&DescribedMirror, &DescribedPart)> {
    let mut rows: Vec<_> = mirrors.iter().flat_map(|m| m.parts.iter().map(move |p| (m, p))).collect();
    rows.sort_by(|a, b| (&a.0.name, &a.1.topic, a.1.number).cmp(&(&b.0.name, &b.1.topic, b.1.number)));
    rows
}

fn failed(mirrors: &[DescribedMirror]) -> Vec<(&DescribedMirror, &DescribedPart)> {
    rows(mirrors).into_iter().filter(|(_, part)| part.state == MirrorState::Failed).collect()
}

fn states(mirrors: &[DescribedMirror]) -> String {
    let rows = rows(mirrors);
    if rows.is_empty() {
        return "No mirror partitions found\n".to_owned();
    }
    let mut out = String::new();
    let titles = [
        ("MIRROR", 30),
        ("TOPIC", 40),
        ("PARTITION", 10),
        ("SOURCE-OFFSET", 15),
        ("DESTINATION-OFFSET", 18),
        ("LAG", 10),
        ("STATE", 12),
    ];
    row(&mut out, &titles);
    for (mirror, part) in rows {
        let (name, topic) = (cut_left(&mirror.name, 30), cut_left(&part.topic, 40));
        let (source, here) = (number(part.source_offset), number(part.destination_offset));
        let lag = lag(part).map_or_else(|| "-".to_owned(), |lag| lag.to_string());
        let partition = part.number.to_string();
        let cells = [&*name, &topic, &partition, &source, &here, &lag, part.state.name()];
        let cells: Vec<(&str, usize)> = cells.into_iter().zip(titles.map(|(_, width)| width)).collect();
        row(&mut out, &cells);
    }
    out
}

fn failures(mirrors: &[DescribedMirror], max: u32) -> String {
    let rows = failed(mirrors);
    if rows.is_empty() {
        return "No failed partitions found\n".to_owned();
    }
    let mut out = String::new();
    row(&mut out, &[("MIRROR", 30), ("TOPIC", 40), ("PARTITION", 10), ("RETRY", 7), ("ERROR", ERROR_WIDTH)]);
    for (mirror, part) in rows {
        let (name, topic) = (cut_left(&mirror.name, 30), cut_left(&part.topic, 40));
        let (partition, retry) = (part.number.to_string(), retry(part, max));
        let error = cut_right(part.message.as_deref().unwrap_or_default(), ERROR_WIDTH);
        row(&mut out, &[(&name, 30), (&topic, 40), (&partition, 10), (&retry, 7), (&error, ERROR_WIDTH)]);
    }
    out
}

fn retry(part: &DescribedPart, max: u32) -> String {
    if part.attempt < 0 {
        "NonRetryable".to_owned()
    } else {
        format!("{}/{max}", part.attempt)
    }
}

// -------------------------------------------------------------------------------------------------------------------- JSON

fn as_json(mirrors: &[DescribedMirror], only_failed: bool, max: u32) -> String {
    let rows = if only_failed { failed(mirrors) } else { rows(mirrors) };
    let objects: Vec<String> = rows
        .into_iter()
        .map(|(mirror, part)| {
            let place = format!(
                "\"mirror\":{},\"topic\":{},\"partition\":{}",
                quoted(&mirror.name),
                quoted(&part.topic),
                part.number
            );
            if only_failed {
                let error = part.message.as_deref().map_or_else(|| "null".to_owned(), quoted);
                return format!("{{{place},\"retry\":{},\"error\":{error}}}", quoted(&retry(part, max)));
            }
            let known = |offset: Offset| if offset.0 < 0 { "null".to_owned() } else { offset.to_string() };
            let lag = lag(part).map_or_else(|| "null".to_owned(), |lag| lag.to_string());
            let age = part.source_age_ms.map_or_else(|| "null".to_owned(), |age| age.to_string());
            format!(
                "{{{place},\"sourceOffset\":{},\"destinationOffset\":{},\"lag\":{lag},\"sourceAgeMs\":{age},\"state\":{}}}",
                known(part.source_offset),
                known(part.destination_offset),
                quoted(part.state.name())
            )
        })
        .collect();
    format!("[{}]\n", objects.join(","))
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
