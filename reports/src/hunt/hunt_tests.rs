//! What the lines of a hunt come to.

use super::*;

fn target(name: &str, kind: &str) -> Target {
    Target {
        name: name.into(),
        kind: kind.into(),
        room: "log".into(),
        expected: vec!["S2".into(), "S9".into()],
        unseen: String::new(),
    }
}

fn tried(target: &str, seed: u64) -> Line {
    Line::Try(Try { target: target.into(), seed, verdict: Verdict::Pass, wall_s: 0.5, tainted: false })
}

fn run(seed: u64, verdict: Verdict, invariant: &str) -> Finished {
    let run = Finished::without_record("swarm/default.toml", seed, verdict, "why".into(), "mirrorlab run …".into());
    Finished { invariant: invariant.into(), place: String::new(), ..run }
}

fn begun(seeds: u64) -> Line {
    let targets = ["A", "B", "C"].map(|name| target(name, if name == "C" { "quirk L" } else { "guard" }));
    Line::Begun { seeds, targets: targets.into(), baseline: 2, profiles: Vec::new() }
}

fn base(seed: u64, verdict: Verdict, hits: &[&str]) -> Line {
    let hits = hits.iter().map(|hit| (*hit).to_owned()).collect();
    Line::Base(Box::new(Base { reached: "00".into(), run: Finished { hits, ..run(seed, verdict, "S2") } }))
}

fn hunt(lines: Vec<Line>) -> Hunt {
    let mut hunt = Hunt::default();
    lines.iter().for_each(|line| hunt.add(line));
    hunt
}

fn whole() -> Vec<Line> {
    let found = |name: &str, tried: Tried, by: By, run: &Finished| {
        Line::Row(Box::new(Row::found(&target(name, "guard"), tried, by, run)))
    };
    vec![
        Line::Head(Head::default()),
        begun(10),
        base(0, Verdict::Pass, &["A"]),
        base(1, Verdict::Pass, &[]),
        tried("A", 0),
        tried("A", 1),
        tried("B", 0),
        found("A", Tried { seeds: 3, runs: 3, seconds: 1.5 }, By::Swarm, &run(2, Verdict::Violation, "S9")),
        found("B", Tried { seeds: 10, runs: 9, seconds: 5.0 }, By::Scenario, &run(0, Verdict::Stall, "L8")),
    ]
}

#[test]
fn a_target_is_found_by_an_invariant_that_was_expected_or_by_another() {
    let summary = hunt(whole()).summary();
    let shown: Vec<_> = summary
        .rows
        .iter()
        .map(|row| (&*row.target, row.by, row.seeds, &*row.invariant, row.as_expected, row.reached))
        .collect();
    assert_eq!(shown, [("A", By::Swarm, 3, "S9", true, true), ("B", By::Scenario, 10, "L8", false, false)]);
    assert_eq!((summary.median_seeds, summary.median_seconds), (Some(3), Some(1.5)));
    assert_eq!((summary.missed, summary.waiting), (vec!["B".to_owned()], vec!["C".to_owned()]));
    assert_eq!(summary.baseline.verdict, Some(Verdict::Pass));
}

#[test]
fn the_exit_code_is_the_baselines() {
    let mut lines = whole();
    assert_eq!(hunt(lines.clone()).summary().exit_code(), 0);
    lines[3] = base(1, Verdict::Stall, &[]);
    let stalled = hunt(lines.clone());
    assert_eq!(stalled.summary().exit_code(), 3);
    let known = [0, 1, 2].map(|seed| stalled.base("swarm/default.toml", seed));
    assert_eq!(known, [Some((true, "00")), Some((false, "00")), None]);
    lines.remove(3);
    let part = hunt(lines).summary();
    assert_eq!(
        (part.exit_code(), part.baseline.verdict),
        (6, Some(Verdict::Unknown)),
        "a baseline that is not complete"
    );
    assert!(!text::summary(&part, "runs/hunt").contains("pass:"));
}

#[test]
fn a_hunt_goes_on_where_it_ended_and_with_more_seeds() {
    let mut lines = whole();
    let first = hunt(lines.clone());
    assert_eq!(
        (first.tried("A", 10).seeds, first.tried("B", 10), first.tried("C", 10).seeds),
        (2, Tried { seeds: 1, runs: 1, seconds: 0.5 }, 0)
    );
    assert_eq!(["A", "B", "C"].map(|name| first.is_over(name, 10)), [true, true, false]);
    assert_eq!(["A", "B"].map(|name| first.is_over(name, 2)), [false, true]);
    assert!(!first.is_over("B", 11));
    // A line that came twice counts once; seeds between two lines did not reach the target.
    lines.extend([tried("C", 0), tried("C", 0), tried("C", 5)]);
    assert_eq!(hunt(lines.clone()).tried("C", 10), Tried { seeds: 6, runs: 2, seconds: 1.0 });
    // With fewer seeds it was not found by these.
    lines.push(begun(2));
    assert_eq!(hunt(lines).summary().waiting, ["A", "C"]);
}

/// A second hunt in the same folder that asks for less tells of what it asks for, and of no run besides.
#[test]
fn fewer_targets_or_seeds_than_before_are_told_as_such() {
    let mut lines = whole();
    let other = Finished { scenario: "swarm/wan.toml".into(), ..run(1, Verdict::Stall, "L8") };
    lines.push(Line::Base(Box::new(Base { reached: "00".into(), run: other })));
    lines.extend([tried("C", 0), tried("C", 1), tried("C", 4)]);
    let nobody = Row::of(&target("C", "quirk L"), Tried { seeds: 10, runs: 3, seconds: 1.5 });
    lines.push(Line::Row(Box::new(nobody)));
    assert_eq!(hunt(lines.clone()).summary().baseline.runs, 3);
    let targets = vec![target("C", "quirk L")];
    lines.push(Line::Begun { seeds: 2, targets, baseline: 2, profiles: vec![vec!["swarm/default.toml".into()]] });
    let summary = hunt(lines.clone()).summary();
    let rows: Vec<_> = summary.rows.iter().map(|row| (&*row.target, row.seeds, row.runs, row.seconds)).collect();
    assert_eq!(rows, [("C", 2, 2, 1.0)]);
    assert_eq!((summary.by_nobody, summary.by_swarm + summary.by_scenario, summary.median_seeds), (1, 0, None));
    assert_eq!((summary.baseline.runs, summary.baseline_planned, summary.exit_code()), (2, 2, 0));
    assert_eq!(hunt(lines.clone()).tried("C", 2), Tried { seeds: 2, runs: 2, seconds: 1.0 });
    // And again with all of it.
    lines.push(begun(10));
    let summary = hunt(lines).summary();
    assert_eq!((summary.rows.len(), summary.baseline.runs), (3, 3));
    assert_eq!(summary.rows[2].seeds, 10);
}

#[test]
fn what_is_printed() {
    let summary = hunt(whole()).summary();
    insta::assert_snapshot!(text::summary(&summary, "runs/hunt"));
    insta::assert_snapshot!(text::markdown(&summary, "mirrorlab hunt --seeds 10"));
}
