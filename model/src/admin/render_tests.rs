use super::*;
use crate::admin::command::parse;
use crate::client::commands::ItemResult;
use crate::ids::{BrokerId, Nanos};
use crate::wire::errors::ErrorCode;

fn outcome(verdict: Verdict, items: Vec<ItemResult>, report: Option<Report>) -> Outcome {
    Outcome { id: 1, command: "x", begun: Nanos::ZERO, ended: Nanos::ZERO, attempts: 1, verdict, items, report }
}

fn item(name: &str, error: ErrorCode, message: Option<&str>) -> ItemResult {
    ItemResult { name: name.into(), error, message: message.map(Arc::from) }
}

fn run(line: &str, outcome: &Outcome) -> Printed {
    let words: Vec<&str> = line.split_whitespace().collect();
    render(&parse(&words, Some("west")).unwrap(), outcome, None)
}

fn part(topic: &str, number: u32, offsets: (i64, i64), state: MirrorState) -> DescribedPart {
    DescribedPart {
        topic: topic.into(),
        number,
        state,
        source_offset: Offset(offsets.0),
        destination_offset: Offset(offsets.1),
        ..DescribedPart::default()
    }
}

fn described(parts: Vec<DescribedPart>) -> Outcome {
    let mirror = DescribedMirror { name: "east-to-west".into(), parts, ..DescribedMirror::default() };
    outcome(Verdict::Accepted, vec![], Some(Report::Described(vec![mirror], vec![])))
}

#[test]
fn the_sentences_of_accepted_orders() {
    let two = || vec![item("a", ErrorCode::None, None), item("b", ErrorCode::None, None)];
    let said = |line: &str, items| run(line, &outcome(Verdict::Accepted, items, None));
    let create = said("--create --mirror m --mirror-config f", vec![]);
    assert_eq!((&*create.out, &*create.err, create.exit), ("Created mirror m\n", "", 0));
    for (action, expected) in [
        ("start", "Started 2 topic(s) in mirror m: [a, b]\n"),
        ("stop", "Stopped [a, b] topic(s) in mirror m\n"),
        ("pause", "Paused 2 topic(s) in mirror m: [a, b]\n"),
        ("resume", "Resumed 2 topic(s) in mirror m: [a, b]\n"),
        ("recover", "Recovered 2 topic(s) in mirror m: [a, b]\n"),
    ] {
        let printed = said(&format!("--{action} --mirror m --topics .*"), two());
        assert_eq!((&*printed.out, printed.exit), (expected, 0));
        let hint = "Accepted, not yet done; the states: kafka-cluster-mirrors --bootstrap-server west --describe \
                    --mirror m\n";
        assert_eq!(printed.err, hint);
    }
    let none = said("--start --mirror m --topics orders-.*", vec![]);
    assert_eq!(none.out, "No matching topics found yet. Patterns saved to mirror m for auto-discovery.\n");
    assert_eq!(said("--delete --mirror m", vec![]).out, "Deleted mirror m\n");
}

#[test]
fn what_was_accepted_is_said_beside_what_was_refused() {
    let error = ErrorCode::InvalidClusterMirrorStates;
    let items = vec![item("a", ErrorCode::None, None), item("b", error, Some("partition b-0 is FAILED"))];
    let printed = run("--pause --mirror m --topics .*", &outcome(Verdict::Refused(error), items, None));
    assert_eq!(printed.out, "Paused 1 topic(s) in mirror m: [a]\n");
    assert!(printed.err.ends_with("Error: b: INVALID_CLUSTER_MIRROR_STATES: partition b-0 is FAILED\n"));
    assert_eq!(printed.exit, 1);
    let whole = run("--delete --mirror m", &outcome(Verdict::Refused(ErrorCode::UnknownClusterMirror), vec![], None));
    assert_eq!((&*whole.out, &*whole.err, whole.exit), ("", "Error: UNKNOWN_CLUSTER_MIRROR\n", 1));
}

#[test]
fn cli_05_describe_table() {
    use MirrorState as S;
    let table = run(
        "--describe",
        &described(vec![
            part("b", 1, (-1, -1), S::Failed),
            part("b", 0, (0, 0), S::Mirroring),
            part("a", 0, (7, 7), S::Mirroring),
        ]),
    );
    let expected = "\
MIRROR                         TOPIC                                    PARTITION  SOURCE-OFFSET   DESTINATION-OFFSET LAG        STATE
east-to-west                   a                                        0          7               7                  0          MIRRORING
east-to-west                   b                                        0          0               0                  0          MIRRORING
east-to-west                   b                                        1          -               -                  -          FAILED
";
    assert_eq!(table.out, expected);
}

#[test]
fn cli_05_long_names_keep_their_end_and_an_unknown_source_has_no_lag() {
    let name = "a-very-long-topic-name-that-goes-on-and-on-until-here";
    let table = run("--describe", &described(vec![part(name, 12, (-1, 40), MirrorState::LogAlignment)])).out;
    let line = table.lines().nth(1).unwrap();
    let kept: String = name.chars().skip(name.len() - 37).collect();
    assert_eq!(line[31..71], format!("...{kept}"));
    assert!(line.ends_with("-               40                 -          LOG_ALIGNMENT"), "{line}");
}

#[test]
fn cli_07_empty_answers() {
    let listed = run("--list", &outcome(Verdict::Accepted, vec![], Some(Report::Mirrors(vec![]))));
    assert_eq!((&*listed.out, listed.exit), ("No mirrors found\n", 0));
    let nothing = || outcome(Verdict::Accepted, vec![], Some(Report::Described(vec![], vec![])));
    assert_eq!(run("--describe", &nothing()).out, "No mirror partitions found\n");
    assert_eq!(run("--describe --failed", &nothing()).out, "No failed partitions found\n");
    assert_eq!(run("--describe --json", &nothing()).out, "[]\n");
    assert_eq!(run("--describe --json --failed", &nothing()).out, "[]\n");
}

#[test]
fn failed_partitions_with_their_retries() {
    let failed = |number, attempt, message: &str| DescribedPart {
        attempt,
        message: Some(message.into()),
        ..part("t", number, (-1, -1), MirrorState::Failed)
    };
    let long = "x".repeat(90);
    let parts =
        vec![failed(0, 3, "the source is gone"), failed(1, -1, &long), part("u", 0, (1, 1), MirrorState::Paused)];
    let expected = format!(
        "\
MIRROR                         TOPIC                                    PARTITION  RETRY   ERROR
east-to-west                   t                                        0          3/10    the source is gone
east-to-west                   t                                        1          NonRetryable {}...
",
        "x".repeat(77)
    );
    assert_eq!(run("--describe --failed", &described(parts)).out, expected);
}

#[test]
fn json_survives_what_people_write_into_errors() {
    let failed = DescribedPart {
        attempt: 1,
        message: Some("100% \"gone\"\n".into()),
        ..part("t", 0, (-1, -1), MirrorState::Failed)
    };
    let printed = run("--describe --json --failed", &described(vec![failed])).out;
    let expected = r#"[{"mirror":"east-to-west","topic":"t","partition":0,"retry":"1/10","error":"100% \"gone\"\n"}]"#;
    assert_eq!(printed.trim_end(), expected);
    let one = run("--describe --json", &described(vec![part("t", 0, (9, 7), MirrorState::Mirroring)])).out;
    let expected = r#"[{"mirror":"east-to-west","topic":"t","partition":0,"sourceOffset":9,"destinationOffset":7,"lag":2,"sourceAgeMs":null,"state":"MIRRORING"}]"#;
    assert_eq!(one.trim_end(), expected);
}

#[test]
fn a_silent_broker_is_told_of() {
    let report = Report::Described(vec![], vec![BrokerId(2)]);
    let printed = run("--describe", &outcome(Verdict::Accepted, vec![], Some(report)));
    assert_eq!(printed.err, "Broker 2 did not answer: what only it knows is missing.\n");
    assert_eq!(printed.exit, 0);
}

#[test]
fn the_list_of_mirrors() {
    let mirror = |name: &str, mirroring| ListedMirror {
        name: name.into(),
        bootstrap: "1,2".into(),
        source: "east".into(),
        mirroring,
        topics: vec![],
    };
    let report = Report::Mirrors(vec![mirror("b", 0), mirror("a", 2)]);
    let expected = "\
MIRROR                         TOPICS     SOURCE-CLUSTER-ID          SOURCE-BOOTSTRAP-SERVER
a                              2          east                       1,2
b                              0          east                       1,2
";
    assert_eq!(run("--list", &outcome(Verdict::Accepted, vec![], Some(report))).out, expected);
}
