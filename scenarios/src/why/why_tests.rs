use super::*;
use crate::format::Scenario;
use crate::plan::Overrides;
use crate::shrink::trial::{self, Bounds};

fn plan(guard_off: &str, seed: u64) -> Plan {
    let text = include_str!("../../mirror/chaos_life.toml");
    let scenario = Scenario::parse("case.toml", text).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let overrides = Overrides { guards_off: vec![guard_off.to_owned()], ..Overrides::default() };
    Plan::resolve_all(&scenario, Some(seed), &overrides).unwrap().remove(0).1
}

#[test]
fn a_run_in_which_nothing_breaks_has_no_why() {
    let text = "title = \"t\"\n[clusters.east]\n[phases]\nsafety = \"1 s\"\n";
    let scenario = Scenario::parse("case.toml", text).unwrap();
    let plan = Plan::resolve_all(&scenario, None, &Overrides::default()).unwrap().remove(0).1;
    assert!(why(&plan, 0).unwrap_or_else(|e| panic!("{}", e.0)).is_none());
}

#[test]
fn the_past_fits_a_screen_and_names_what_led_to_it() {
    let why = why(&plan("ReconcileByEpoch", 1), 0).unwrap_or_else(|e| panic!("{}", e.0)).unwrap();
    let text = why.text();
    assert!(text.lines().count() <= SCREEN, "{text}");
    assert!(text.contains("to 0 (divergence from its leader)"), "{text}");
    assert!(text.contains("  with      guard ReconcileByEpoch off"), "{text}");
    let last = why.lines.last().map(|line| line.step);
    assert_eq!(last, Some(why.violation.step), "what broke it is told last: {text}");
    // Replicas are told by the ids of their brokers, not by their places in a list.
    assert!(text.contains("in-sync replicas {") && !text.contains("replicas {0"), "{text}");
    assert!(text.contains("<- FetchResponse of west/broker-") || text.contains("gets FetchResponse of"), "{text}");
    let steps: Vec<u64> = why.lines.iter().map(|line| line.step).collect();
    assert!(steps.is_sorted() && steps.len() > 10, "{steps:?}");
    assert!(steps.iter().all(|step| *step <= why.violation.step));
}

#[test]
fn noting_causes_and_reseeding_at_the_end_change_no_history() {
    let plan = plan("ReconcileByEpoch", 1);
    let plain = trial::run(&plan, Bounds::NONE);
    let job = Job { path: String::new(), plan: plan.clone() };
    let noted = on_fresh_runtime(plan.seed, async move || {
        let mut run = Run::new(job).ok()?;
        run.note_causes();
        run.to_end_within(u64::MAX, Nanos(u64::MAX)).map(|record| record.trace_hash)
    });
    assert_eq!(noted, Some(plain.hash.clone()));
    let late = trial::run_reseeded(&plan, Bounds::NONE, Some((Nanos(plain.broke_ns), 99)));
    assert_eq!((late.hash, late.events), (plain.hash.clone(), plain.events));
    let early = trial::run_reseeded(&plan, Bounds::NONE, Some((Nanos(plain.base_ns), 99)));
    assert_ne!(early.hash, plain.hash);
}

#[test]
fn what_was_decided_lies_before_the_violation() {
    let why = why(&plan("BarrierNeedsPosition", 4), 2).unwrap_or_else(|e| panic!("{}", e.0)).unwrap();
    let decided = why.decided.unwrap();
    assert!(decided.certain_from.0 <= why.violation.time_ns);
    assert!(decided.avoided_at.is_none_or(|at| at < decided.certain_from && at >= why.base));
}
