//! A plan whose violation is known is made as small as it can be.

use super::search::Control;
use super::*;
use crate::format::Scenario;
use crate::plan::Overrides;
use std::collections::BTreeMap;

fn plan(text: &str, seed: u64, guard_off: &str) -> Plan {
    let scenario = Scenario::parse("case.toml", text).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let overrides = Overrides { guards_off: vec![guard_off.to_owned()], ..Overrides::default() };
    Plan::resolve_all(&scenario, Some(seed), &overrides).unwrap().remove(0).1
}

/// Thirty steps and two clusters, and a mutant that needs none of the steps: replicas that trust their own watermark.
fn case() -> Plan {
    plan(include_str!("../../mirror/chaos_life.toml"), 1, "ReconcileByEpoch")
}

/// Remembers, and counts what it ran.
#[derive(Default)]
struct Counted {
    known: BTreeMap<u64, Outcome>,
    ran: usize,
}

impl Memory for Counted {
    fn recall(&mut self, key: u64) -> Option<Outcome> {
        self.known.get(&key).cloned()
    }
    fn note(&mut self, key: u64, outcome: &Outcome) {
        self.ran += 1;
        self.known.insert(key, outcome.clone());
    }
    fn better(&mut self, _: &Plan, _: &Outcome, _: u64) {}
}

#[test]
fn a_plan_that_passes_is_refused() {
    let text = "title = \"t\"\n[clusters.east]\n[phases]\nsafety = \"1 s\"\n";
    assert_eq!(shrink(&plan(text, 0, "ReconcileByEpoch"), Budget::default()).err(), Some(Refused::Passes));
}

#[test]
fn the_smallest_case_fails_in_the_same_way_and_is_a_tenth_of_the_first() {
    let before = trial::run(&case(), Bounds::NONE);
    let shrunk = shrink(&case(), Budget::default()).unwrap();
    assert_eq!(shrunk.outcome.signature, before.signature);
    assert!(shrunk.before.steps >= 20 && shrunk.after.steps * 10 <= shrunk.before.steps, "{:?}", shrunk.after);
    assert!(shrunk.after.events < shrunk.before.events, "{:?}", shrunk.after);
    assert!(!shrunk.finding && shrunk.after.nodes <= shrunk.before.nodes, "{:?}", shrunk.after);
    assert_eq!(shrunk.plan.stage.guards_off, ["ReconcileByEpoch"]);
    assert_eq!((shrunk.after.clients, shrunk.after.partitions, shrunk.after.records), (1, 1, 1));
}

#[test]
fn who_is_interrupted_goes_the_same_way_and_runs_nothing_again() {
    let mut memory = Counted::default();
    let part = shrink_with(&case(), Budget { tries: 12, ..Budget::default() }, &mut memory).unwrap();
    // The last one may be looked at without what is switched as well.
    assert!(part.spent && (12..=13).contains(&memory.ran), "{}", memory.ran);
    let whole = shrink_with(&case(), Budget::default(), &mut memory).unwrap();
    let afresh = shrink(&case(), Budget::default()).unwrap();
    assert_eq!(memory.ran as u64, whole.tries);
    assert_eq!((&whole.plan, &whole.outcome, whole.tries), (&afresh.plan, &afresh.outcome, afresh.tries));
}

#[test]
fn the_scenario_file_expects_what_breaks() {
    let shrunk = shrink(&case(), Budget::default()).unwrap();
    let text = found::scenario(&shrunk, "case seed 1").unwrap();
    let scenario = Scenario::parse("found.toml", &text).unwrap();
    assert_eq!(scenario.stage.expect.violation, std::slice::from_ref(&shrunk.outcome.id));
    assert_eq!(scenario.stage.guards_off, ["ReconcileByEpoch"]);
    let plan = Plan::resolve_all(&scenario, None, &Overrides::default()).unwrap().remove(0).1;
    let again = trial::run(&plan, Bounds::NONE);
    assert_eq!((again.signature, again.hash), (shrunk.outcome.signature, shrunk.outcome.hash));
}

/// The link carries a tenth of what is written, and there is no time to catch up.
const NARROW: &str = r#"
    title = "t"
    clusters = { east = { brokers = 1 }, west = { brokers = 1 } }
    topics.t = { on = "east" }
    mirrors.m = { on = "west", source = "east", topics = ["t"] }
    producers.p = { on = "east", topic = "t", rate = "1000/s", record = "1 KiB" }
    phases = { safety = "2 s", converge = "1 ms" }
    [links.wan]
    between = ["east", "west"]
    latency = "1 ms"
    bandwidth = "1 Mbit/s""#;

#[test]
fn what_breaks_whatever_is_switched_is_a_finding_and_not_the_guards() {
    let shrunk = shrink(&plan(NARROW, 0, "ReconcileByEpoch"), Budget::default()).unwrap();
    assert!(shrunk.finding && shrunk.plan.stage.guards_off.is_empty(), "{:?}", shrunk.outcome);
    let unneeded = Scenario::parse("found.toml", &found::scenario(&shrunk, "t seed 0").unwrap()).unwrap();
    assert!(unneeded.stage.expect.violation.is_empty(), "it passes once the bug is mended");
}

/// A smaller case that is only late in a shorter last phase is another one: it has to stall in the original's as well.
#[test]
fn who_is_late_does_not_stall() {
    let plan = plan(NARROW, 0, "ReconcileByEpoch");
    let original = trial::run(&plan, Bounds::NONE);
    assert!(original.is_stall());
    for (whole_wait, counts) in [(None, true), (Some("1 ms"), true), (Some("5 min"), false)] {
        let mut memory = Forgetful;
        let mut search = Search::new(&plan, &original, Budget::default(), &mut memory).unwrap();
        search.control = Control::Nothing;
        search.whole_wait = whole_wait.map(|wait| toml::Value::String(wait.to_owned()));
        let less = |case: &mut toml::Table| {
            case::entry_mut(case, "producers", "p").unwrap().insert("record".to_owned(), "900 B".into());
        };
        assert_eq!(search.attempt_edit(less), counts, "{whole_wait:?}");
    }
}

/// Files whose mutants were lost on the way: the smallest case failed alike with everything on. Or the world grew, as what the
/// smallest case left out stood for more.
#[test]
fn a_smaller_case_needs_what_is_switched_and_no_larger_world() {
    for text in [
        include_str!("../../must_fail/d03_producer_snapshot_flushed.toml"),
        include_str!("../../must_fail/i18_logs_by_topic_id.toml"),
    ] {
        let scenario = Scenario::parse("case.toml", text).unwrap_or_else(|e| panic!("{}", e.render(false)));
        let plan = Plan::resolve_all(&scenario, None, &Overrides::default()).unwrap().remove(0).1;
        let shrunk = shrink(&plan, Budget { tries: 250, ..Budget::default() }).unwrap();
        assert!(!shrunk.finding && shrunk.after.nodes <= shrunk.before.nodes, "{}: {:?}", plan.title, shrunk.after);
        assert_eq!(shrunk.plan.stage.guards_off, plan.stage.guards_off, "{}", plan.title);
        let mut corrected = shrunk.plan.clone();
        corrected.stage.guards_off.clear();
        let without = trial::run(&corrected, Bounds::NONE).signature;
        assert_ne!(without, shrunk.outcome.signature, "{}", plan.title);
    }
}
