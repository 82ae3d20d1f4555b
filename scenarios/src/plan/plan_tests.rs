//! Scenarios and seeds in, plans out, and back from their files.

use super::*;
use crate::format::action::Action;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn every_example() -> Vec<Scenario> {
    [
        ("tour.toml", include_str!("../../tour.toml")),
        ("wan.toml", include_str!("../../throughput/wan.toml")),
        ("hundred_thousand_partitions.toml", include_str!("../../scale/hundred_thousand_partitions.toml")),
        ("chaos_small.toml", include_str!("../../replication/chaos_small.toml")),
        ("m02_epoch_bump_before_append.toml", include_str!("../../must_fail/m02_epoch_bump_before_append.toml")),
        ("everything.toml", EVERYTHING),
    ]
    .into_iter()
    .map(|(name, text)| Scenario::parse(name, text).unwrap_or_else(|e| panic!("{}", e.render(false))))
    .collect()
}

/// Every table, every action, every term.
const EVERYTHING: &str = include_str!("everything.toml");

fn round_trip(plan: &Plan, scenario: &Scenario) {
    let text = plan.to_toml().unwrap();
    let again = Plan::parse("plan.toml", &text, scenario.vocabulary())
        .unwrap_or_else(|e| panic!("{}\n{text}", e.render(false)));
    assert_eq!(*plan, again);
    assert_eq!(text, again.to_toml().unwrap());
}

#[test]
fn every_example_becomes_a_plan_that_reads_back() {
    for scenario in every_example() {
        for (label, plan) in Plan::resolve_all(&scenario, Some(7), &Overrides::default()).unwrap() {
            assert_eq!(plan.plan.row, label);
            round_trip(&plan, &scenario);
        }
    }
}

#[test]
fn everything_has_every_action() {
    let scenario = Scenario::parse("everything.toml", EVERYTHING).unwrap_or_else(|e| panic!("{}", e.render(false)));
    for name in Action::NAMES {
        assert!(
            scenario.stage.timeline.iter().any(|s| s.action.name() == *name),
            "{name} is missing in everything.toml"
        );
    }
}

#[test]
fn repetitions_become_steps_and_stay_within_the_safety_phase() {
    let text = "title = \"t\"\n[clusters.east]\n[phases]\nsafety = \"10 s\"\n[[timeline]]\nname = \"h\"\nat = \"1 s\"\nevery = \"4 s\"\ndo = \"heal\"\n";
    let plan = Plan::resolve(&Scenario::parse("x.toml", text).unwrap(), 0, &Overrides::default());
    let at: Vec<_> = plan.stage.timeline.iter().map(|s| s.trigger.clone()).collect();
    let once = |s| Trigger::At { at: Time::secs(s), every: None, times: None };
    assert_eq!(at, [once(1), once(5), once(9)]);
    assert_eq!(plan.stage.timeline.iter().filter(|s| s.name.is_some()).count(), 1);
}

#[test]
fn a_seed_decides_chaos_and_a_budget_only_takes_away() {
    let text = include_str!("../../replication/chaos_small.toml");
    let scenario = Scenario::parse("x.toml", text).unwrap();
    let of = |seed| Plan::resolve(&scenario, seed, &Overrides::default()).stage.timeline;
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
    assert!(of(1).len() > 5);
    let tighter = Scenario::parse("x.toml", &text.replace("max_down = 1", "max_at_once = 1")).unwrap();
    let fewer = Plan::resolve(&tighter, 1, &Overrides::default()).stage.timeline;
    let all = Scenario::parse("x.toml", &text.replace("max_down = 1", "max_down = 3\nmax_at_once = 10000")).unwrap();
    let all = Plan::resolve(&all, 1, &Overrides::default()).stage.timeline;
    assert!(fewer.iter().all(|step| all.contains(step)));
    assert!(fewer.len() < all.len());
}

#[test]
fn no_more_brokers_are_down_than_the_budget_allows() {
    let scenario = Scenario::parse("x.toml", include_str!("../../replication/chaos_small.toml")).unwrap();
    for seed in 0..200 {
        let plan = Plan::resolve(&scenario, seed, &Overrides::default());
        let mut until = Time::default();
        for step in &plan.stage.timeline {
            let falls = matches!(
                step.action,
                Action::Kill { .. }
                    | Action::PowerLoss { .. }
                    | Action::Pause { .. }
                    | Action::DiskStall { .. }
                    | Action::Partition { .. }
            );
            let Trigger::At { at, .. } = step.trigger else { panic!("chaos has instants") };
            if falls {
                assert!(at >= until, "seed {seed}: two brokers down at {at}");
                until = at.plus(step.action.lasting().unwrap());
            }
        }
    }
}

#[test]
fn chaos_strikes_inside_tasks_as_often_as_it_is_told() {
    let text = include_str!("../../replication/chaos_small.toml");
    let strikes = |crash: &str| {
        let scenario = Scenario::parse("x.toml", &text.replace("crash = {", &format!("crash = {{ {crash}"))).unwrap();
        let steps = (0..40).flat_map(|seed| Plan::resolve(&scenario, seed, &Overrides::default()).stage.timeline);
        let inside = |step: &Step| matches!(step.action, Action::Kill { inside_task: true, .. });
        let kills: Vec<bool> =
            steps.filter(|step| matches!(step.action, Action::Kill { .. })).map(|step| inside(&step)).collect();
        (kills.len(), kills.into_iter().filter(|inside| *inside).count())
    };
    let (all, none) = strikes("");
    assert!(all > 20 && none == 0);
    assert_eq!(strikes("inside_task = 1, "), (all, all));
    let (same, some) = strikes("inside_task = 0.5, ");
    assert!(same == all && some * 4 > all && some * 4 < all * 3, "{some} of {all}");
}

/// Every kind that replicas can stand.
const EVERY_KIND: &str = include_str!("../../faults/every_kind.toml");

#[test]
fn within_tolerance_every_strike_that_may_lose_something_asks_first() {
    let scenario = Scenario::parse("x.toml", EVERY_KIND).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let free = Scenario::parse("x.toml", &EVERY_KIND.replace("mode = \"within_tolerance\"\n", "")).unwrap();
    let mut risks = 0;
    for seed in 0..40 {
        let plan = Plan::resolve(&scenario, seed, &Overrides::default());
        assert!(plan.stage.timeline.iter().all(|step| step.within_tolerance == step.action.leans_on_others()));
        risks += plan.stage.timeline.iter().filter(|step| step.within_tolerance).count();
        round_trip(&plan, &scenario);
        // The mode changes no draw.
        let mut same = Plan::resolve(&free, seed, &Overrides::default()).stage.timeline;
        same.iter_mut().for_each(|step| step.within_tolerance = step.action.leans_on_others());
        assert_eq!(plan.stage.timeline, same);
    }
    assert!(risks > 40);
}

#[test]
fn strikes_that_are_not_drawn_leave_those_before_them_alone() {
    let of = |text: &str, seed| {
        let scenario = Scenario::parse("x.toml", text).unwrap_or_else(|e| panic!("{}", e.render(false)));
        Plan::resolve(&scenario, seed, &Overrides::default()).stage.timeline
    };
    for seed in 0..20 {
        let all = of(EVERY_KIND, seed);
        let few = of(&EVERY_KIND.replace("start = \"3 s\"", "start = \"3 s\"\nstop = \"30 s\""), seed);
        assert!(few.iter().all(|step| all.contains(step)) && few.len() < all.len());
    }
}

#[test]
fn points_of_perturbation_are_armed_one_time_in_four() {
    let scenario = Scenario::parse("x.toml", EVERY_KIND).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let all = scenario.vocabulary().points.len();
    let armed: usize =
        (0..40).map(|seed| Plan::resolve(&scenario, seed, &Overrides::default()).stage.perturb.len()).sum();
    assert!(all >= 20 && (40 * all / 5..40 * all / 3).contains(&armed), "{armed} of {}", 40 * all);
}

#[test]
fn the_command_line_beats_the_file() {
    let scenario =
        Scenario::parse("x.toml", include_str!("../../must_fail/m02_epoch_bump_before_append.toml")).unwrap();
    let id = mirrorlab_model::guards::mirror::EpochBumpBeforeAppend;
    let plan = Plan::resolve(&scenario, 0, &Overrides::default());
    assert!(!plan.guards().is_on(id));
    let on = Overrides { guards_on: vec!["all".into()], ignore_expect: true, ..Overrides::default() };
    let plan = Plan::resolve(&scenario, 0, &on);
    assert!(plan.guards().is_on(id) && plan.stage.expect == Expect::nothing());
    round_trip(&plan, &scenario);
    let wrong = Overrides { guards_off: vec!["EpochBumpBeforeApend".into()], ..Overrides::default() };
    let error = Plan::resolve_all(&scenario, None, &wrong).unwrap_err();
    assert_eq!(error.problems[0].help.as_deref(), Some("did you mean `EpochBumpBeforeAppend`?"));
}

#[test]
fn nodes_and_clients_have_names_in_order() {
    let scenario = Scenario::parse("tour.toml", include_str!("../../tour.toml")).unwrap();
    let plan = Plan::resolve(&scenario, 7, &Overrides::default());
    let names: Vec<_> = plan.nodes().into_iter().map(|n| n.name).collect();
    let expected = [
        "east/controller-1",
        "east/broker-1",
        "east/broker-2",
        "east/broker-3",
        "west/controller-1",
        "west/broker-1",
        "west/broker-2",
        "west/broker-3",
    ];
    assert_eq!(names, expected);
    assert_eq!(plan.clients().len(), 2);
    assert_eq!(plan.expand_topic("west", "orders"), ["orders"]);
}

#[test]
fn a_scenario_is_not_a_plan() {
    let scenario = Scenario::parse("tour.toml", include_str!("../../tour.toml")).unwrap();
    let error = Plan::parse("tour.toml", include_str!("../../tour.toml"), scenario.vocabulary()).unwrap_err();
    assert_eq!(error.problems[0].code, "not-a-plan");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn plans_of_any_seed_read_back(seed in any::<u64>(), every in 1u64..5_000, weight in 0u32..5) {
        let tail = format!(
            "\n[chaos]\nevery = \"{every} ms\"\nstart = \"{every} us\"\nstop = \"20 s\"\nmax_at_once = 100\nmax_down = 2\n\
             crash = {{ weight = {weight} }}\nlink_down = {{}}\nlatency_spike = {{}}\nloss = {{}}\nreset = {{}}\nelection = {{}}\n\
             disk_full = {{}}\nclock_jump = {{}}\nslow_lane = {{}}\ndelay_metadata = {{}}\nclient_pause = {{}}\nmirror_pause = {{}}\n\
             mirror_stop = {{}}\none_way = {{}}\npartition = {{}}\nshutdown = {{}}\n"
        );
        let text = format!("{}{tail}", include_str!("../../tour.toml"));
        let scenario = Scenario::parse("x.toml", &text).unwrap();
        round_trip(&Plan::resolve(&scenario, seed, &Overrides::default()), &scenario);
    }
}

/// What no profile of the swarm draws, and why.
const NOT_DRAWN: &[(&str, &str)] = &[
    ("start", "what goes down comes back by its `restart_after`"),
    ("restart", "a rolling restart is made of `shutdown` and `restart_after`"),
    ("resume", "a pause has its length"),
    ("heal", "a partition has its length"),
    ("cli", "the tool gives the orders that are drawn; what it prints is for files that say what they expect"),
    ("start-client", "each seed draws which clients there are"),
    ("stop-client", "each seed draws which clients there are"),
];

#[test]
fn the_swarm_draws_every_kind_of_chaos_and_every_action() {
    use crate::format::chaos::ChaosKind;
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("swarm");
    let mut paths = Vec::new();
    crate::commands::check::collect(&folder, &mut paths);
    let (mut kinds, mut actions) = (BTreeSet::new(), BTreeSet::new());
    for path in &paths {
        let scenario = Scenario::load(path).unwrap_or_else(|e| panic!("{}", e.render(false)));
        let strikes = &scenario.chaos.as_ref().unwrap().strikes;
        kinds.extend(strikes.iter().filter(|(_, strike)| strike.weight > 0).map(|(kind, _)| *kind));
        for seed in 0..60 {
            let plan = Plan::resolve(&scenario, seed, &Overrides::default());
            actions.extend(plan.stage.timeline.iter().map(|step| step.action.name()));
        }
    }
    let left: Vec<&str> = ChaosKind::NAMED.iter().filter(|(_, kind)| !kinds.contains(kind)).map(|k| k.0).collect();
    assert_eq!(left, [""; 0], "kinds of chaos that no profile has");
    let left: BTreeSet<&str> = Action::NAMES.iter().copied().filter(|name| !actions.contains(name)).collect();
    assert_eq!(left, NOT_DRAWN.iter().map(|(name, _)| *name).collect(), "actions that no profile draws");
}
