//! L18 finds what only an absence shows, and leaves sound runs alone.

use super::*;
use crate::format::Scenario;
use crate::plan::Overrides;
use mirrorlab_model::ids::Offset;

fn judged(text: &str, guard_off: Option<&str>, samples: u32) -> Absence {
    let scenario = Scenario::parse("case.toml", text).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let guards_off = guard_off.map(str::to_owned).into_iter().collect();
    let overrides = Overrides { guards_off, ..Overrides::default() };
    let plan = Plan::resolve_all(&scenario, None, &overrides).unwrap().remove(0).1;
    judge(&Job { path: String::new(), plan }, samples, u64::MAX).unwrap_or_else(|e| panic!("{}", e.0))
}

#[test]
fn a_mutant_that_no_run_without_a_restart_shows_is_found() {
    let text = include_str!("../../lifecycle/second_failover.toml");
    let absence = judged(text, Some("PidResetAppliedOnLoad"), 8);
    assert_eq!(absence.record.verdict, Verdict::Pass, "without an absence nothing breaks");
    let record = absence.judged();
    assert_eq!((record.verdict, &*record.violations[0].id), (Verdict::Stall, ID), "{:?}", record.violations);
    assert!(record.violations[0].got.contains("S17"), "{:?}", record.violations);
}

#[test]
fn absence_is_harmless_where_the_rules_hold() {
    let absence = judged(include_str!("../../lifecycle/pause_resume.toml"), None, 4);
    assert!(absence.tried.len() >= 2 && absence.decisions > 20, "{} of {}", absence.tried.len(), absence.decisions);
    assert!(absence.violations().is_empty(), "{:?}", absence.violations());
    for tried in &absence.tried {
        assert_eq!(
            tried.plan.stage.timeline.len(),
            1 + tried.plan.stage.timeline.iter().filter(|s| !is_kill(s)).count()
        );
        assert!(tried.from_ns < tried.decision.at.0);
    }
}

fn is_kill(step: &Step) -> bool {
    matches!(step.action, Action::Kill { .. })
}

#[test]
fn every_kind_of_difference_is_named() {
    let mut here = Facts::default();
    here.note("west/orders-0 mirror state".to_owned(), "STOPPED");
    here.note("west/orders-1 mirror state".to_owned(), "STOPPED");
    here.position("west/orders-0", Offset(10), Some(Offset(10)));
    assert!(here.differences(&here.clone()).is_empty());
    let mut there = Facts::default();
    there.note("west/orders-0 mirror state".to_owned(), "FAILED");
    there.note("west/more".to_owned(), "1 partitions");
    there.position("west/orders-0", Offset(9), Some(Offset(10)));
    let names: Vec<String> = here.differences(&there).into_iter().map(|(expected, _)| expected).collect();
    assert_eq!(
        names,
        [
            "west/more: none",
            "west/orders-0 mirror state: STOPPED",
            "west/orders-1 mirror state: STOPPED",
            "west/orders-0 mirrored to 10",
        ]
    );
    // The source went on: where the stop came to is a matter of time.
    there.position("west/orders-0", Offset(9), Some(Offset(12)));
    assert_eq!(here.differences(&there).len(), 3);
}
