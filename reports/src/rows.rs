//! The table of a matrix: what was varied beside what was measured. Text and page show the same cells.
//!
//! Nothing is smoothed over: a lag without a known sample is `unknown`, a percentile that left out unknown samples carries a
//! `*`, and a figure that was not measured is a dash.

use crate::figures;
use crate::record::{Record, Row, Verdict};
use crate::show;
use std::collections::BTreeSet;

/// What marks a percentile that leaves out unknown samples.
pub(crate) const PARTLY_KNOWN: char = '*';

/// A matrix as a table of strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// What varies: short name and full path.
    pub(crate) keys: Vec<(String, String)>,
    /// What was measured: header and what it means.
    pub(crate) columns: Vec<(&'static str, &'static str)>,
    /// Cells, first of the keys, then of the columns, with the verdict last.
    pub(crate) rows: Vec<Vec<String>>,
    /// Some percentile leaves out unknown samples.
    pub(crate) partly_known: bool,
}

type Cell = fn(&Record) -> String;

struct Column {
    header: &'static str,
    means: &'static str,
    cell: Cell,
    /// Shown only if a row has this figure.
    only_with: Option<&'static str>,
}

const COLUMNS: &[Column] = &[
    Column {
        header: "offered MB/s",
        means: "what producers offered, in MB (10^6 bytes) per simulated second",
        cell: |r| figure(r, figures::OFFERED_MB_PER_S),
        only_with: Some(figures::OFFERED_MB_PER_S),
    },
    Column {
        header: "mirrored MB/s",
        means: "MB (10^6 bytes) appended by mirror leaders per simulated second",
        cell: |r| figure(r, figures::MIRRORED_MB_PER_S),
        only_with: None,
    },
    Column {
        header: "lag P50",
        means: "median lag of a mirrored partition, in records",
        cell: |r| lag(r, r.lag.p50),
        only_with: None,
    },
    Column {
        header: "lag P99",
        means: "99th percentile of the lag of a mirrored partition, in records",
        cell: |r| lag(r, r.lag.p99),
        only_with: None,
    },
    Column {
        header: "catch-up s",
        means: "simulated seconds from the end of traffic and faults until every lag was zero",
        cell: |r| figure(r, figures::CATCH_UP_S),
        only_with: None,
    },
    Column {
        header: "fetch bound MB/s",
        means: "response maximum over round trip, times the fetches in parallel",
        cell: |r| figure(r, figures::FETCH_BOUND_MB_PER_S),
        only_with: None,
    },
    Column {
        header: "link MB/s",
        means: "bandwidth of the link",
        cell: |r| figure(r, figures::LINK_BOUND_MB_PER_S),
        only_with: Some(figures::LINK_BOUND_MB_PER_S),
    },
    Column { header: "verdict", means: "how the row ended", cell: |r| r.verdict.name().to_owned(), only_with: None },
];

/// The table of a matrix record.
pub(crate) fn table(record: &Record) -> Table {
    let shown =
        |c: &&Column| c.only_with.is_none_or(|name| record.rows.iter().any(|r| r.record.figures.contains_key(name)));
    let columns: Vec<&Column> = COLUMNS.iter().filter(shown).collect();
    let keys = keys(&record.rows);
    let cells = |row: &Row| {
        let set =
            keys.iter().map(|(_, path)| row.set.get(path).map_or_else(|| show::NONE.to_owned(), |v| show::clean(v)));
        set.chain(columns.iter().map(|c| (c.cell)(&row.record))).collect()
    };
    Table {
        rows: record.rows.iter().map(cells).collect(),
        partly_known: record.rows.iter().any(|r| r.record.lag.count > 0 && unknown_samples(&r.record) > 0.0),
        columns: columns.iter().map(|c| (c.header, c.means)).collect(),
        keys,
    }
}

/// The values of a row, as `latency 25 ms, fetchers 4`.
pub(crate) fn name(row: &Row, keys: &[(String, String)]) -> String {
    let part = |(short, path): &(String, String)| row.set.get(path).map(|v| format!("{short} {}", show::clean(v)));
    keys.iter().filter_map(part).collect::<Vec<_>>().join(", ")
}

/// Every key of the rows, each with the shortest ending of its path that no other key shares.
pub(crate) fn keys(rows: &[Row]) -> Vec<(String, String)> {
    let paths: BTreeSet<&String> = rows.iter().flat_map(|r| r.set.keys()).collect();
    let ending = |path: &str, parts: usize| {
        let all: Vec<&str> = path.split('.').collect();
        all[all.len().saturating_sub(parts)..].join(".")
    };
    let short = |path: &String| {
        let unique =
            |parts: &usize| paths.iter().filter(|other| ending(other, *parts) == ending(path, *parts)).count() == 1;
        let parts = path.split('.').count();
        show::clean(&ending(path, (1..=parts).find(unique).unwrap_or(parts)))
    };
    paths.iter().map(|path| (short(path), (*path).clone())).collect()
}

/// A figure, or a dash if it was not measured.
pub(crate) fn figure(record: &Record, name: &str) -> String {
    show::number_or_none(record.figures.get(name).copied())
}

/// A percentile of lag, honest about what was not known.
pub(crate) fn lag(record: &Record, value: f64) -> String {
    match (record.lag.count, unknown_samples(record) > 0.0) {
        (0, true) => "unknown".to_owned(),
        (0, false) => show::NONE.to_owned(),
        (_, true) => format!("{}{PARTLY_KNOWN}", show::number(value)),
        (_, false) => show::number(value),
    }
}

/// How many samples of lag were unknown.
pub(crate) fn unknown_samples(record: &Record) -> f64 {
    record.figures.get(figures::LAG_SAMPLES_UNKNOWN).copied().unwrap_or(0.0)
}

/// The worst of verdicts, in the order in which a sweep chooses its exit code: 101, 5, 1, 3, 7, 4, 6.
#[must_use]
pub fn worst(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    verdicts.into_iter().max_by_key(|verdict| rank(*verdict)).unwrap_or(Verdict::Pass)
}

/// How bad a verdict is, beside the others.
pub(crate) fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Pass => 0,
        Verdict::Unknown => 1,
        Verdict::Vacuous => 2,
        Verdict::Unmet => 3,
        Verdict::Stall => 4,
        Verdict::Violation => 5,
        Verdict::Diverged => 6,
        Verdict::Panic => 7,
    }
}
