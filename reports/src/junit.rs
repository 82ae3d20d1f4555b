//! JUnit XML: one suite per scenario, one test per seed, or per row of a matrix.
//!
//! What is wrong with the system under test is a `failure`; what is wrong with the run (two histories of one seed, no time
//! left, a panic) is an `error`.

use crate::record::{Record, Verdict};
use crate::{rows, show, text};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::collections::BTreeMap;
use std::time::Duration;

/// The report as XML. Times are wall seconds; everything else is the same for the same records.
///
/// # Errors
/// If the XML cannot be written, which would be a fault of the library.
pub fn xml<'a>(records: impl IntoIterator<Item = &'a Record>) -> Result<String, quick_junit::SerializeError> {
    let mut suites: BTreeMap<&str, Vec<TestCase>> = BTreeMap::new();
    for record in records {
        let cases = suites.entry(&record.scenario).or_default();
        if record.rows.is_empty() {
            cases.push(case(record, &format!("seed {}", record.seed)));
        } else {
            let keys = rows::keys(&record.rows);
            cases.extend(record.rows.iter().map(|row| {
                let name = rows::name(row, &keys);
                case(&row.record, &format!("seed {}, {name}", row.record.seed))
            }));
        }
    }
    let mut report = Report::new("mirrorlab");
    for (scenario, cases) in suites {
        let mut suite = TestSuite::new(show::clean(scenario));
        let time = cases.iter().filter_map(|c| c.time).sum();
        suite.add_test_cases(cases).set_time(time);
        report.add_test_suite(suite);
    }
    report.to_string()
}

fn case(record: &Record, name: &str) -> TestCase {
    let mut case = TestCase::new(show::clean(name), status(record));
    case.set_classname(show::clean(&record.scenario));
    if let Ok(time) = Duration::try_from_secs_f64(record.wall_s) {
        case.set_time(time);
    }
    case
}

/// How JUnit calls a verdict; `None`: a success.
pub(crate) fn kind(verdict: Verdict) -> Option<NonSuccessKind> {
    match verdict {
        Verdict::Pass => None,
        Verdict::Diverged | Verdict::Unknown | Verdict::Panic => Some(NonSuccessKind::Error),
        Verdict::Violation | Verdict::Stall | Verdict::Vacuous | Verdict::Unmet => Some(NonSuccessKind::Failure),
    }
}

fn status(record: &Record) -> TestCaseStatus {
    let Some(kind) = kind(record.verdict) else { return TestCaseStatus::success() };
    let mut status = TestCaseStatus::non_success(kind);
    let invariant = record.violations.first().map_or(record.verdict.name(), |v| v.id.as_str());
    status
        .set_type(show::clean(invariant))
        .set_message(show::clean(&record.reason))
        .set_description(text::summary(record, None));
    status
}

#[cfg(test)]
#[path = "junit_tests.rs"]
mod tests;
