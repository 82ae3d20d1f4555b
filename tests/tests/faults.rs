//! Faults that a scenario file can ask for act: each is seen to change what happens.

use mirrorlab_reports::record::{Record, Verdict};
use mirrorlab_scenarios::format::Scenario;
use mirrorlab_scenarios::run::{Job, Run};
use mirrorlab_sim::pump::{on_fresh_runtime, Drive};
use std::ops::ControlFlow;

const STAGE: &str = r#"
title = "a mirror under one fault"
why = "a stage"
[clusters.east]
[clusters.west]
first_producer_id = 1000000
config = { "mirror.metadata.refresh.interval.ms" = "2 s", "mirror.state.topic.num.partitions" = 2 }
[links.wan]
between = ["east", "west"]
latency = "10 ms"
[topics.orders]
on = "east"
partitions = 2
config = { "segment.bytes" = "4 KiB", "flush.messages" = 1000000 }
[mirrors.east-to-west]
on = "west"
source = "east"
topics = ["orders"]
[producers.shop]
on = "east"
topic = "orders"
rate = "100/s"
stop = "10 s"
[phases]
safety = "12 s"
converge = "90 s"
"#;

fn scenario(steps: &str) -> Scenario {
    Scenario::parse("fault.toml", &format!("{STAGE}\n{steps}")).unwrap()
}

fn run(steps: &str) -> Record {
    let record = scenario(steps).seed(3).run().unwrap();
    assert_eq!(record.verdict, Verdict::Pass, "{}\n{:#?}", record.reason, record.violations);
    record
}

fn told(record: &Record, start: &str) -> String {
    let line = record.story.iter().find(|line| line.text.starts_with(start));
    line.unwrap_or_else(|| panic!("no line `{start}` in {:#?}", record.story)).text.clone()
}

#[test]
fn connections_over_a_link_are_reset_and_made_again() {
    let record = run("[[timeline]]\nat = \"5 s\"\ndo = \"reset-connections\"\nlink = \"wan\"");
    let line = told(&record, "reset-connections wan");
    assert!(!line.contains("(0 of them"), "{line}");
}

/// A dead connection that nobody was told of: the mirror stands until its own time-out, far longer than after a reset.
#[test]
fn silently_dead_connections_hold_the_mirror_up_longer_than_reset_ones() {
    let lag = |silent: bool| {
        let steps =
            format!("[[timeline]]\nat = \"5 s\"\ndo = \"reset-connections\"\nlink = \"wan\"\nsilent = {silent}");
        run(&steps).lag.max
    };
    let (reset, silent) = (lag(false), lag(true));
    assert!(silent > reset + 100.0, "lag {silent} after silence, {reset} after a reset");
}

/// The source's answers late hold the mirror up; the same rule the other way strikes no message at all.
#[test]
fn messages_are_delayed_from_a_place_to_a_place() {
    let lag = |from: &str, to: &str| {
        let steps = format!(
            "[[timeline]]\nat = \"3 s\"\ndo = \"delay-messages\"\nkind = \"FetchResponse\"\nfrom = \"{from}\"\nto = \"{to}\"\nextra = \"2 s\"\nfor = \"6 s\""
        );
        run(&steps).lag.max
    };
    let (with, against) = (lag("east", "west"), lag("west", "east"));
    assert!(with > against + 50.0, "lag {with} with the data, {against} against it");
}

/// A crash inside a task: after the strike the process goes on until it writes, and ends in the middle of it.
#[test]
fn a_crash_falls_inside_a_task_and_the_log_recovers() {
    let mut cuts = 0;
    for seed in 0..12 {
        for fall in ["kill", "power-loss"] {
            let steps = format!(
                "[[timeline]]\nat = \"4 s\"\ndo = \"{fall}\"\nnode = \"leader(east/orders, 0)\"\ninside_task = true\nrestart_after = \"1 s\"\n\
                 [[timeline]]\nat = \"7 s\"\ndo = \"{fall}\"\nnode = \"leader(west/orders, 1)\"\ninside_task = true\nrestart_after = \"1 s\""
            );
            let plan = scenario(&steps).seed(seed).plan().unwrap();
            let (broken, seen) = on_fresh_runtime(seed, async move || {
                let mut run = Run::new(Job { path: "fault.toml".to_owned(), plan }).map_err(|bad| bad.0).unwrap();
                let mut seen = Vec::new();
                loop {
                    let end = run.step();
                    for node in run.lab().world.nodes().iter().filter(|node| node.cut_inside) {
                        if !seen.contains(&(node.name.clone(), node.incarnation)) {
                            seen.push((node.name.clone(), node.incarnation));
                        }
                    }
                    if let ControlFlow::Break(end) = end {
                        return (end.is_violation().then(|| format!("{end:?}")), seen.len());
                    }
                }
            });
            assert_eq!(broken, None, "seed {seed}, {fall}");
            cuts += seen;
        }
    }
    assert!(cuts >= 24, "{cuts} crashes fell inside a task");
}

/// All replicas lose power at once. With `flush.messages = 1` what was acknowledged is on disks by then; without it, it is the
/// environment's fault that some of it is gone, and the record says so.
#[test]
fn with_flush_messages_an_acknowledged_record_survives_the_loss_of_all_power() {
    let lost = |flush: &str, seed: u64| {
        let text = STAGE.replace("\"flush.messages\" = 1000000", flush).replace("\"4 KiB\"", "\"100 MiB\"");
        let steps = "[[timeline]]\nat = \"5 s\"\ndo = \"power-loss\"\nnode = \"east/*\"\nrestart_after = \"1 s\"";
        let text = format!("{text}\n{steps}");
        let record = Scenario::parse("fault.toml", &text).unwrap().seed(seed).run().unwrap();
        assert_eq!(record.verdict, Verdict::Pass, "{}\n{:#?}", record.reason, record.violations);
        record.excuses.iter().filter(|line| line.starts_with('S')).count()
    };
    let count = |flush: &str| (0..6).map(|seed| lost(flush, seed)).sum::<usize>();
    assert_eq!(count("\"flush.messages\" = 1"), 0);
    assert!(count("\"flush.messages\" = 1000000") > 0);
}

/// `flush.messages = 1`: what was appended is flushed soon; without it, nothing is flushed before a segment is closed or the
/// kernel writes back.
#[test]
fn flush_messages_asks_for_flushes() {
    let durable = |flush: &str| {
        let text = STAGE.replace("\"flush.messages\" = 1000000", flush).replace("\"4 KiB\"", "\"100 MiB\"");
        let plan = Scenario::parse("fault.toml", &text).unwrap().seed(1).plan().unwrap();
        on_fresh_runtime(1, async move || {
            let mut run = Run::new(Job { path: "fault.toml".to_owned(), plan }).map_err(|bad| bad.0).unwrap();
            while run.now().as_secs_f64() < 12.0 && run.step().is_continue() {}
            let lab = run.lab();
            let brokers = lab.setup.clusters[0].brokers.iter().filter_map(|n| lab.world.node(*n).broker());
            let orders = brokers.flat_map(|b| b.replicas.iter().map(|r| (r.log.recovery_point().0, r.log.end().0)));
            orders.filter(|(_, end)| *end > 100).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
        })
    };
    let (never, end) = durable("\"flush.messages\" = 1000000");
    assert!(never == 0 && end > 1000, "{never} of {end}");
    let (each, end) = durable("\"flush.messages\" = 1");
    assert!(each * 10 > end * 9, "{each} of {end}");
    let timed = text_with_scheduler();
    let (timed, end) = durable(&timed);
    assert!(timed > end / 2, "{timed} of {end}");
}

/// `flush.ms` as in Kafka: looked at only if the broker's scheduler runs at all.
fn text_with_scheduler() -> String {
    "\"flush.ms\" = \"500 ms\" }\n[clusters.east.config]\n\"log.flush.scheduler.interval.ms\" = \"200 ms\"\n[topics.unused]\non = \"east\"\nconfig = {".to_owned()
}
