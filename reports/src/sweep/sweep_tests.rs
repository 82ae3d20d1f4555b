//! Lines, groups and totals of sweeps.

use super::*;
use crate::record::Violation;
use crate::samples;

fn head(shard: (u32, u32)) -> Line {
    let file = |path: &str| FileMark { path: path.into(), hash: "1".into() };
    Line::Head(Head { files: vec![file("a.toml"), file("b.toml")], seeds: (0, 5), shard, ..Head::default() })
}

fn run(scenario: &str, seed: u64, verdict: Verdict, events: u64) -> Finished {
    let again = format!("mirrorlab run {scenario} --seed {seed}");
    let failed = verdict != Verdict::Pass;
    let words = |text: &str| if failed { text.to_owned() } else { String::new() };
    Finished {
        invariant: words("S2"),
        place: words("west/orders-#"),
        events,
        wall_s: 0.5,
        at_s: 1.0,
        ..Finished::without_record(scenario, seed, verdict, words("S2: logs match"), words(&again))
    }
}

fn totals(lines: impl IntoIterator<Item = Line>) -> Totals {
    let mut totals = Totals::default();
    lines.into_iter().for_each(|line| totals.add(&line));
    totals
}

#[test]
fn failures_that_are_alike_stand_together_and_the_fastest_is_named() {
    let elsewhere = Finished { place: "east/orders-#".into(), ..run("a.toml", 4, Verdict::Violation, 50) };
    let runs = [
        run("a.toml", 0, Verdict::Violation, 900),
        run("a.toml", 1, Verdict::Violation, 300),
        run("a.toml", 2, Verdict::Pass, 10),
        run("a.toml", 3, Verdict::Violation, 300),
        elsewhere,
        run("b.toml", 0, Verdict::Stall, 5),
        run("b.toml", 1, Verdict::Violation, 400),
    ];
    let told = |order: Vec<&Finished>| {
        let lines = order.into_iter().map(|run| Line::Run(Box::new(run.clone())));
        totals([head((1, 1))].into_iter().chain(lines)).summary().groups
    };
    let groups = told(runs.iter().collect());
    let shown: Vec<_> = groups.iter().map(|g| (&*g.scenario, &*g.place, g.runs, g.seed, g.events)).collect();
    // The worst verdict first, then the fastest; of equally fast ones the first seed.
    assert_eq!(
        shown,
        [
            ("a.toml", "east/orders-#", 1, 4, 50),
            ("a.toml", "west/orders-#", 3, 1, 300),
            ("b.toml", "west/orders-#", 1, 1, 400),
            ("b.toml", "west/orders-#", 1, 0, 5),
        ]
    );
    let seeds: Vec<u64> = groups[1].fastest.iter().map(|member| member.seed).collect();
    assert_eq!((seeds, &*groups[1].repro), (vec![1, 3, 0], "mirrorlab run a.toml --seed 1"));
    // Lines of shards come in any order.
    assert_eq!(told(runs.iter().rev().collect()), groups);
}

#[test]
fn a_signature_has_the_invariant_and_the_place_without_numbers() {
    assert_eq!(kind_of("west/orders-13 at west/broker-2"), "west/orders-# at west/broker-#");
    let mut record = samples::pass();
    record.verdict = Verdict::Violation;
    let violation = |id: &str, at: &str| Violation {
        id: id.into(),
        says: "logs match".into(),
        at: at.into(),
        expected: String::new(),
        got: String::new(),
        whose: "system".into(),
        time_ns: 0,
        step: 0,
    };
    record.violations = vec![violation("S2", "west/orders-13"), violation("S3", "east")];
    let line = Finished::of(&record, 1.0);
    assert_eq!((&*line.invariant, &*line.place), ("S2", "west/orders-#"));
    record.violations.clear();
    record.verdict = Verdict::Vacuous;
    record.reason = "`elected` was reached 1 of 20 times: the run proved nothing about it".into();
    let line = Finished::of(&record, 1.0);
    let place = "`elected` was reached # of # times: the run proved nothing about it";
    assert_eq!((&*line.invariant, &*line.place), ("vacuous", place));
    record.verdict = Verdict::Pass;
    let line = Finished::of(&record, 1.0);
    assert_eq!((&*line.invariant, &*line.place, &*line.reason), ("", "", ""));
}

#[test]
fn shards_are_summed_and_a_run_counts_once() {
    let line = |run: Finished| Line::Run(Box::new(run));
    let mut counted = run("a.toml", 2, Verdict::Pass, 10);
    counted.marks = BTreeMap::from([("elected".to_owned(), 3)]);
    counted.census = BTreeMap::from([("fault crash".to_owned(), 2)]);
    counted.hits = vec!["FetchOffsetMatches".into()];
    let begun = Line::Begun { jobs: 1 };
    let first = [head((1, 2)), begun.clone(), line(counted.clone()), line(run("b.toml", 2, Verdict::Pass, 30))];
    // The second shard was killed once: what it took before counts, and a run that both have counts once.
    let second = [
        head((2, 2)),
        begun.clone(),
        line(run("a.toml", 3, Verdict::Pass, 10)),
        begun,
        line(run("b.toml", 3, Verdict::Unmet, 10)),
        line(counted),
    ];
    let summary = totals(first.iter().chain(&second).cloned()).summary();
    assert_eq!((summary.planned, summary.runs, summary.failed(), summary.events), (10, 4, 1, 60));
    assert_eq!((summary.wall_s, summary.runs_per_s), (2.0, 3.0));
    assert_eq!(summary.verdict, Some(Verdict::Unmet));
    assert_eq!(summary.marks["elected"], Tally { runs: 1, total: 3 });
    assert_eq!(summary.files[0].census["fault crash"], Tally { runs: 1, total: 2 });
    assert!(summary.guards_hit.contains("FetchOffsetMatches"));
    assert_eq!((summary.shards, summary.exit_code()), ((2, 2), 7));
    let half = totals(first).summary();
    // What is there has passed; the whole has not.
    assert_eq!((half.shards, half.verdict, half.exit_code()), ((1, 2), Some(Verdict::Unknown), 6));
}

#[test]
fn the_exit_code_is_the_first_of_101_5_1_3_7_4_6() {
    let order = [
        Verdict::Panic,
        Verdict::Diverged,
        Verdict::Violation,
        Verdict::Stall,
        Verdict::Unmet,
        Verdict::Vacuous,
        Verdict::Unknown,
        Verdict::Pass,
    ];
    for (n, worst) in order.iter().enumerate() {
        let lines = order[n..].iter().zip(0..8_u64).collect::<Vec<_>>().into_iter().rev();
        let lines = lines.map(|(verdict, seed)| Line::Run(Box::new(run("a.toml", seed, *verdict, 1))));
        assert_eq!(totals(lines).summary().exit_code(), worst.exit_code());
    }
    assert_eq!(order.map(Verdict::exit_code), [101, 5, 1, 3, 7, 4, 6, 0]);
}

#[test]
fn what_changed_is_told() {
    let Line::Head(head) = head((1, 4)) else { panic!() };
    let mut other = Head { shard: (2, 4), ..head.clone() };
    assert!(head.is_same_sweep(&other) && head.difference(&other).is_none());
    other.binary = "another".into();
    assert_eq!(head.difference(&other).as_deref(), Some("made by another build"));
    other.files[1].hash = "2".into();
    assert_eq!(head.difference(&other).as_deref(), Some("b.toml has changed"));
    assert!(!head.has_other_arguments(&other));
    other.seeds = (0, 6);
    assert_eq!(head.difference(&other).as_deref(), Some("other seeds"));
    assert!(head.has_other_arguments(&other));
}

#[test]
fn what_is_printed_and_shown() {
    let mut lines = vec![head((1, 1)), Line::Begun { jobs: 2 }];
    for seed in 0..3 {
        lines.push(Line::Run(Box::new(run("a.toml", seed, Verdict::Violation, 1_300 - seed))));
        lines.push(Line::Run(Box::new(run("b.toml", seed, Verdict::Pass, 100))));
    }
    let panicked = "index out of bounds at a.rs:7".to_owned();
    let again = "mirrorlab run a.toml --seed 3".to_owned();
    lines.push(Line::Run(Box::new(Finished::without_record("a.toml", 3, Verdict::Panic, panicked, again))));
    let mut summary = totals(lines.clone()).summary();
    summary.groups[1].folder = "runs/sweep-x/a/2".into();
    insta::assert_snapshot!(text::summary(&summary, "runs/sweep-x"));
    let page = html::page(&summary, "sweep-x");
    assert!(page.contains("mirrorlab run a.toml --seed 2") && page.contains("runs/sweep-x/a/2"));
    let xml = junit::xml(lines.iter().filter_map(Line::run)).unwrap();
    assert!(xml.contains(r#"<testsuites name="mirrorlab sweep" tests="7" failures="3" errors="1""#), "{xml}");
    assert!(xml.contains(r#"<failure message="S2: logs match" type="S2">"#), "{xml}");
}

#[test]
fn a_line_reads_back() {
    for line in [head((1, 1)), Line::Begun { jobs: 3 }, Line::Run(Box::new(run("a.toml", u64::MAX, Verdict::Panic, 1)))]
    {
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line);
    }
}

#[test]
fn a_run_whose_process_was_killed_from_outside_is_run_again_once() {
    let lost = |seed| {
        let run = Finished::without_record("a.toml", seed, Verdict::Unknown, "killed".into(), String::new());
        Line::Run(Box::new(Finished { killed: true, ..run }))
    };
    let held = |seed| {
        let run = Finished::without_record("a.toml", seed, Verdict::Pass, String::new(), String::new());
        Line::Run(Box::new(run))
    };
    let totals = |lines: &[Line]| {
        let mut totals = Totals::default();
        let file = FileMark { path: "a.toml".into(), hash: "1".into() };
        totals.add(&Line::Head(Head { files: vec![file], seeds: (0, 1), shard: (1, 1), ..Head::default() }));
        lines.iter().for_each(|line| totals.add(line));
        totals
    };
    let seen = |lines: &[Line]| {
        let totals = totals(lines);
        let summary = totals.summary();
        (totals.has("a.toml", 0), totals.killed(), summary.runs, summary.verdict)
    };
    assert_eq!(seen(&[lost(0)]), (false, 1, 1, Some(Verdict::Unknown)));
    assert_eq!(seen(&[lost(0), held(0)]), (true, 0, 1, Some(Verdict::Pass)));
    assert_eq!(seen(&[held(0), lost(0)]), (true, 0, 1, Some(Verdict::Pass)));
    assert_eq!(seen(&[lost(0), lost(0)]), (true, 0, 1, Some(Verdict::Unknown)));
    let lines = [lost(0), held(1), held(0)];
    let runs = distinct(lines.iter().filter_map(Line::run));
    assert_eq!(
        runs.iter().map(|run| (run.seed, run.verdict)).collect::<Vec<_>>(),
        [(0, Verdict::Pass), (1, Verdict::Pass)]
    );
}
