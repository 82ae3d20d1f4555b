use super::*;
use crate::samples;

/// A folder of its own for one test, empty at its beginning.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("mirrorlab-load-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn put(folder: &Path, text: &str) {
    fs::create_dir_all(folder).and_then(|()| fs::write(folder.join(SUMMARY), text)).expect("a temporary folder");
}

fn json(record: &Record) -> String {
    serde_json::to_string_pretty(record).expect("a record is JSON")
}

#[test]
fn what_was_written_is_read_by_folder_and_by_file() {
    let runs = folder("round");
    put(&runs, &json(&samples::matrix()));
    assert_eq!(record(&runs).expect("folder"), samples::matrix());
    assert_eq!(record(&runs.join(SUMMARY)).expect("file"), samples::matrix());
    let _ = fs::remove_dir_all(runs);
}

#[test]
fn errors_say_what_is_wrong_and_what_to_do() {
    let at = folder("errors");
    let said = |at: &Path| {
        record(at).map_err(|e| format!("{e}; {}", e.help()).replace(&at.display().to_string(), "RUN")).err()
    };
    assert!(said(&at).is_some_and(|e| e.starts_with("RUN does not exist; name a run folder")));
    fs::create_dir_all(&at).expect("a temporary folder");
    assert!(said(&at).is_some_and(|e| e.starts_with("RUN holds no summary.json; run a scenario first")));
    put(&at, "not json");
    assert!(said(&at).is_some_and(|e| e.contains("is not JSON: expected ident at line 1 column 2")));
    put(&at, &json(&samples::pass())[..200]);
    assert!(said(&at).is_some_and(|e| e.contains("is cut off: EOF")));
    put(&at, r#"{"groups": []}"#);
    assert!(said(&at).is_some_and(|e| e.contains("missing field `scenario`") && e.contains("of a sweep")));
    put(&at, r#"{"scenario": "x", "trace_hash": ""}"#);
    assert!(said(&at).is_some_and(|e| e.contains("missing field `title`") && e.contains("another version")));
    let _ = fs::remove_dir_all(at);
}

#[test]
fn a_sweep_folder_gives_its_runs_in_order_beside_its_own_summary() {
    let sweep = folder("sweep");
    put(&sweep, r#"{"groups": []}"#);
    for seed in [3, 1] {
        put(&sweep.join(format!("wan_cut/{seed}")), &json(&Record { seed, ..samples::violation() }));
    }
    let got: Vec<u64> = records(&sweep).expect("two runs").iter().map(|r| r.seed).collect();
    assert_eq!(got, [1, 3]);
    let _ = fs::remove_dir_all(sweep);
}

#[test]
fn merged_records_are_rows_and_the_worst_verdict_counts() {
    let stall = Record { verdict: Verdict::Stall, seed: 9, ..samples::pass() };
    let got = merge(vec![samples::pass(), stall, samples::matrix()]).expect("a record");
    assert_eq!((got.rows.len(), got.verdict, got.reason.as_str()), (8, Verdict::Violation, "2 of 8 runs did not pass"));
    assert_eq!(got.rows[1].set["seed"], "9");
    assert_eq!(got.rows[7].set["links.wan.latency"], "75 ms");
    assert!(merge(vec![]).is_none());
    assert_eq!(merge(vec![samples::pass()]), Some(samples::pass()));
}
