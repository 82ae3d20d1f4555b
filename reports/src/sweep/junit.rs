//! JUnit XML of a sweep: one suite per scenario file, one test per seed.

use super::Finished;
use crate::record::Verdict;
use crate::{junit, show};
use quick_junit::{Report, TestCase, TestCaseStatus, TestSuite};
use std::collections::BTreeMap;
use std::time::Duration;

/// The report as XML. Times are wall seconds; everything else is the same for the same runs.
///
/// # Errors
/// If the XML cannot be written, which would be a fault of the library.
pub fn xml<'a>(runs: impl IntoIterator<Item = &'a Finished>) -> Result<String, quick_junit::SerializeError> {
    let mut suites: BTreeMap<&str, BTreeMap<u64, TestCase>> = BTreeMap::new();
    for run in runs {
        suites.entry(&run.scenario).or_default().insert(run.seed, case(run));
    }
    let mut report = Report::new("mirrorlab sweep");
    for (scenario, cases) in suites {
        let mut suite = TestSuite::new(show::clean(scenario));
        let time = cases.values().filter_map(|case| case.time).sum();
        suite.add_test_cases(cases.into_values()).set_time(time);
        report.add_test_suite(suite);
    }
    report.to_string()
}

fn case(run: &Finished) -> TestCase {
    let mut case = TestCase::new(format!("seed {}", run.seed), status(run));
    case.set_classname(show::clean(&run.scenario));
    if let Ok(time) = Duration::try_from_secs_f64(run.wall_s) {
        case.set_time(time);
    }
    case
}

fn status(run: &Finished) -> TestCaseStatus {
    let Some(kind) = junit::kind(run.verdict) else { return TestCaseStatus::success() };
    let mut status = TestCaseStatus::non_success(kind);
    let invariant = if run.invariant.is_empty() { Verdict::name(run.verdict) } else { &run.invariant };
    status.set_type(show::clean(invariant)).set_message(show::clean(&run.reason)).set_description(format!(
        "{}\n{}\n",
        show::clean(&run.place),
        run.repro
    ));
    status
}
