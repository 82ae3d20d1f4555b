//! What a record tells of failovers is what happened: records left behind and dropped are counted against a stage on which both
//! are known beforehand.

use mirrorlab_reports::record::{Failover, FailoverKind, Record, Verdict};
use mirrorlab_reports::text;
use mirrorlab_scenarios::format::Scenario;

/// East is copied to west. From 12 s on the WAN is cut, and 30 records are written that nobody can copy.
const STAGE: &str = r#"
title = "a failover that is counted"
[clusters.east]
config = { "mirror.metadata.refresh.interval.ms" = "2 s", "mirror.state.topic.num.partitions" = 2 }
[clusters.west]
first_producer_id = 1000000
config = { "mirror.metadata.refresh.interval.ms" = "2 s", "mirror.state.topic.num.partitions" = 2 }
[links.wan]
between = ["east", "west"]
latency = "10 ms"
[topics.orders]
on = "east"
partitions = 2
[mirrors.east-to-west]
on = "west"
source = "east"
topics = ["orders"]
[mirrors.west-to-east]
on = "east"
source = "west"
topics = ["orders"]
later = true
[producers.shop]
on = "east"
topic = "orders"
rate = "100/s"
stop = "10 s"
[producers.late]
on = "east"
topic = "orders"
[producers.shop-west]
on = "west"
topic = "orders"
[phases]
safety = "50 s"
converge = "90 s"
[[timeline]]
at = "12 s"
do = "partition"
between = ["east", "west"]
for = "10 s"
[[timeline]]
at = "13 s"
do = "produce"
producer = "late"
records = 30
[[timeline]]
name = "stop"
at = "15 s"
do = "stop-mirror"
mirror = "east-to-west"
topics = ["orders"]
[[timeline]]
when = "mirror(east-to-west/orders) == STOPPED"
do = "produce"
producer = "shop-west"
records = 20
"#;

fn run(more: &str) -> Record {
    let scenario = Scenario::parse("failover.toml", &format!("{STAGE}\n{more}")).unwrap();
    scenario.seed(3).run().unwrap()
}

fn passed(more: &str) -> Record {
    let record = run(more);
    assert_eq!(record.verdict, Verdict::Pass, "{}\n{:#?}", record.reason, record.violations);
    record
}

fn at_most(value: Option<f64>, most: f64) -> bool {
    value.is_some_and(|value| value > 0.0 && value <= most)
}

#[test]
fn what_the_cut_link_kept_back_is_left_behind_and_is_what_a_return_drops() {
    let back = "[[timeline]]\nat = \"30 s\"\ndo = \"create-mirror\"\nmirror = \"west-to-east\"\n";
    let record = passed(back);
    let [stop, start]: &[Failover; 2] = record.failovers.as_slice().try_into().unwrap();
    assert_eq!((stop.kind, stop.done, stop.source_died_ns), (FailoverKind::Stop, 2, None));
    assert_eq!(stop.left_behind, Some(30));
    // Written two seconds before the order.
    assert!(stop.rpo_s.is_some_and(|p| p.max > 1.5 && p.max < 2.5), "{:?}", stop.rpo_s);
    assert!(at_most(stop.done_s.map(|p| p.max), 5.0), "{:?}", stop.done_s);
    assert!(stop.first_write_s.is_some_and(|p| p.count == 2), "{:?}", stop.first_write_s);
    assert_eq!((stop.first_read_s, stop.gap_records), (None, 0));
    assert_eq!((start.kind, start.mirror.as_str(), start.done), (FailoverKind::Start, "west-to-east", 2));
    assert_eq!((start.dropped_records, start.dropped_acked, start.dropped_control), (Some(30), 30, Some(0)));
    assert_eq!(record.figures["left_behind_records"], 30.0);
    assert_eq!(record.figures["dropped_acked_records"], 30.0);
    let said = text::summary(&record, None);
    assert!(said.contains("30 acknowledged records left behind"), "{said}");
    assert!(said.contains("30 records, 30 of them acknowledged, and 0 control records"), "{said}");
}

/// The source loses power at 14 s, a second after the records were written: their age counts to there, not to the stop.
#[test]
fn with_a_dead_source_the_age_counts_from_its_death() {
    let dead = "[[timeline]]\nat = \"14 s\"\ndo = \"power-loss\"\nnode = \"east/*\"\npermanent = true\n";
    let record = passed(dead);
    let stop = &record.failovers[0];
    assert_eq!((stop.source_died_of, stop.left_behind), (2, Some(30)));
    assert!(stop.rpo_s.is_some_and(|p| p.max > 0.5 && p.max < 1.5), "{:?}", stop.rpo_s);
}

#[test]
fn bounds_are_met_or_named() {
    let met = passed(
        "[expect]\nrpo_records = { max = 30 }\nrpo = { max = \"3 s\" }\nrto = { p50 = \"5 s\", max = \"5 s\" }\n",
    );
    assert_eq!(met.expectations.iter().filter(|e| e.met).count(), 4, "{:#?}", met.expectations);
    let unmet = run("[expect]\nrpo_records = { max = 5 }\n");
    assert_eq!((unmet.verdict, unmet.reason.as_str()), (Verdict::Unmet, "rpo_records max: expected at most 5, got 15"));
}
