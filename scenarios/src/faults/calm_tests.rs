//! Runs of random plans up to the calm phase: what struck, and that nothing of it is left.

use super::left;
use crate::format::chaos::ChaosKind;
use crate::format::Scenario;
use crate::plan::{Overrides, Plan};
use crate::run::{Job, Phase, Run};
use proptest::prelude::*;

/// Two clusters, a mirror, one that would run against it, and short sessions, so that little time is enough.
const WORLD: &str = r#"
title = "t"
[clusters.east]
brokers = 3
controllers = 3
site = "dc-east"
config = { "broker.session.timeout.ms" = "2 s", "broker.heartbeat.interval.ms" = "500 ms", "replica.lag.time.max.ms" = "2 s" }
[clusters.west]
brokers = 3
site = "dc-west"
first_producer_id = 1000000
config = { "mirror.metadata.refresh.interval.ms" = "1 s", "mirror.state.topic.num.partitions" = 2 }
[links.wan]
between = ["dc-east", "dc-west"]
latency = "5 ms"
[topics.orders]
on = "east"
partitions = 2
[topics.quiet]
on = "east"
[mirrors.there]
on = "west"
source = "east"
topics = ["orders", "quiet"]
[mirrors.back]
on = "east"
source = "west"
topics = ["orders"]
later = true
[producers.shop]
on = "east"
topic = "orders"
rate = "50/s"
[consumers.billing]
on = "west"
topic = "orders"
"#;

fn plan(tail: &str, seed: u64) -> Plan {
    let scenario =
        Scenario::parse("x.toml", &format!("{WORLD}{tail}")).unwrap_or_else(|e| panic!("{}", e.render(false)));
    Plan::resolve(&scenario, seed, &Overrides::default())
}

/// A run up to the first instant of the calm phase; `None` if it ended before.
fn run_until_calm(plan: Plan) -> (Run, bool) {
    let mut run = Run::new(Job { path: "x.toml".into(), plan }).unwrap();
    while run.phase() != Phase::Convergence {
        if !run.single_step() {
            return (run, false);
        }
    }
    (run, true)
}

fn every_kind(mode: &str, perturb: bool, every: u64, permitted: impl Fn(ChaosKind) -> bool) -> String {
    let kinds = ChaosKind::NAMED.iter().filter(|(_, kind)| permitted(*kind));
    let kinds: String = kinds.map(|(key, _)| format!("{key} = {{}}\n")).collect();
    format!(
        "[phases]\nsafety = \"15 s\"\n[chaos]\nstart = \"1 s\"\nevery = \"{every} ms\"\nmax_at_once = 8\n\
         mode = \"{mode}\"\nperturb = {perturb}\n{kinds}"
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// Promise 5 of the fault lab: no fault source outlives the calm phase's beginning.
    #[test]
    fn no_fault_outlives_the_safety_phase(seed in any::<u64>(), every in 200u64..1_500, beyond in any::<bool>()) {
        let mode = if beyond { "beyond_tolerance" } else { "within_tolerance" };
        let tail = every_kind(mode, true, every, |kind| beyond || !kind.is_beyond_tolerance());
        let (run, calm) = run_until_calm(plan(&tail, seed));
        if calm {
            prop_assert_eq!(left(run.lab()), Vec::<String>::new());
        }
    }
}

#[test]
fn most_random_runs_come_to_the_calm_phase_and_had_faults_before() {
    let mut calm = 0;
    for seed in 0..8 {
        let tail = every_kind("within_tolerance", true, 800, |kind| !kind.is_beyond_tolerance());
        let (mut run, _) = run_until_calm(plan(&tail, seed));
        let record = run.record(crate::run::End::default());
        assert!(record.bands.len() > 4, "seed {seed}: {} strikes", record.bands.len());
        calm += u32::from(run.phase() == Phase::Convergence);
    }
    assert!(calm >= 4, "{calm} of 8");
}

#[test]
fn every_kind_strikes() {
    for (key, kind) in ChaosKind::NAMED {
        let mode = if kind.is_beyond_tolerance() { "beyond_tolerance" } else { "within_tolerance" };
        let tail = format!(
            "[phases]\nsafety = \"12 s\"\n[chaos]\nstart = \"2 s\"\nevery = \"2 s\"\nmode = \"{mode}\"\n\
             {key} = {{ min = \"500 ms\", max = \"3 s\" }}\n"
        );
        let plan = plan(&tail, 3);
        let steps = plan.stage.timeline.len();
        assert!(steps > 0, "{key} has nothing to strike at");
        let (mut run, _) = run_until_calm(plan);
        let record = run.record(crate::run::End::default());
        let struck = record.bands.iter().filter(|band| !band.label.contains("is left out")).count();
        assert!(struck > 0, "{key}: of {steps} steps none struck: {:?}", record.bands);
    }
}
