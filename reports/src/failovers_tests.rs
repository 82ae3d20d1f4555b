use super::*;

fn told(failover: &Failover) -> String {
    lines(failover).iter().map(|(head, text)| format!("{head:<12}{text}\n")).collect()
}

fn by(count: u64, p50: f64, p99: f64, max: f64) -> Option<Percentiles> {
    Some(Percentiles { count, p50, p99, max })
}

fn stop() -> Failover {
    Failover {
        mirror: "east-to-west".to_owned(),
        topic: "orders".to_owned(),
        ordered_ns: 23_500_000_000,
        partitions: 4,
        done: 4,
        done_s: by(4, 0.412, 0.52, 0.52),
        left_behind: Some(12),
        rpo_records: by(4, 3.0, 4.0, 4.0),
        rpo_s: by(4, 0.05, 0.061, 0.061),
        first_write_s: by(2, 0.9, 1.0, 1.0),
        control_added: Some(8),
        ..Failover::default()
    }
}

#[test]
fn a_stop_with_a_source_that_lives() {
    insta::assert_snapshot!(told(&stop()));
}

#[test]
fn what_is_unknown_is_said_to_be() {
    let failover = Failover {
        source_died_ns: Some(20_000_000_000),
        source_died_of: 4,
        left_behind: None,
        left_behind_unknown: 1,
        rpo_records: by(3, 3.0, 4.0, 4.0),
        control_added: None,
        gap_records: 7,
        ..stop()
    };
    insta::assert_snapshot!(told(&failover));
    let never = Failover { partitions: 4, done: 0, done_s: None, rpo_records: None, first_write_s: None, ..failover };
    insta::assert_snapshot!(told(&never));
}

#[test]
fn a_return_tells_what_was_dropped() {
    let failover = Failover {
        kind: FailoverKind::Start,
        dropped_offsets: 43,
        dropped_records: Some(40),
        dropped_control: Some(3),
        dropped_acked: 38,
        ..stop()
    };
    insta::assert_snapshot!(told(&failover));
    let nothing = Failover { dropped_offsets: 0, dropped_records: Some(0), ..failover.clone() };
    assert!(told(&nothing).ends_with("dropped   nothing\n"));
    let late = Failover { sent_ns: 83_500_000_000, ..failover.clone() };
    assert!(told(&late).contains("ordered at 23.500 s, sent at 83.500 s behind earlier orders: "));
    let unknown = Failover { dropped_records: None, ..failover };
    assert!(told(&unknown).contains("at most 43 records, 38 of them acknowledged"));
}
