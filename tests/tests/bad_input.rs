//! A scenario file that is wrong is refused with a message that names the place, the fault and the remedy: never a panic, never
//! a hang, never more memory than the file deserves.

use mirrorlab_scenarios::format::{Diagnostics, Fault, Scenario};
use mirrorlab_scenarios::plan::Plan;
use std::io::Write;
use std::path::PathBuf;

/// A folder with one file of these bytes.
fn file(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.toml");
    std::fs::File::create(&path).unwrap().write_all(bytes).unwrap();
    (folder, path)
}

fn refused(bytes: &[u8]) -> Diagnostics {
    let (_folder, path) = file(bytes);
    let error = Scenario::load(&path).unwrap_err();
    let shown = error.render(false);
    assert!(shown.len() < 40_000, "a report of {} bytes", shown.len());
    for problem in &error.problems {
        assert!(problem.help.is_some(), "no remedy: {}", problem.message);
    }
    error
}

/// Code and text of the first problem.
fn says(text: &str) -> (&'static str, String) {
    let error = refused(text.as_bytes());
    (error.problems[0].code, error.to_string())
}

const TWO: &str = r#"title = "two"
[clusters.east]
site = "dc-east"
[clusters.west]
site = "dc-west"
[links.wan]
between = ["dc-east", "dc-west"]
latency = "40 ms"
[topics.orders]
on = "east"
"#;

fn two(tail: &str) -> (&'static str, String) {
    says(&format!("{TWO}{tail}"))
}

#[test]
fn a_missing_file() {
    let error = Scenario::load("no/such/file.toml").unwrap_err();
    assert_eq!((error.problems[0].code, error.problems[0].fault), ("unreadable", Fault::Command));
    assert!(error.to_string().starts_with("no/such/file.toml: the file cannot be read"), "{error}");
}

#[test]
fn a_folder_and_a_device() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Scenario::load(folder.path()).unwrap_err().to_string().contains("this is a folder"));
    if std::path::Path::new("/dev/zero").exists() {
        assert!(Scenario::load("/dev/zero").unwrap_err().to_string().contains("not a regular file"));
    }
}

#[test]
fn an_empty_file() {
    assert_eq!(refused(b"").problems[0].code, "empty");
    assert_eq!(refused(b" \n\n").problems[0].code, "empty");
}

#[test]
fn bytes_that_are_not_text() {
    let error = refused(b"title = \"x\"\nwhy = \"\xff\xfe\"\n");
    assert_eq!(error.problems[0].code, "not-utf-8");
    assert!(error.to_string().contains("byte 0xff at line 2, column 8"), "{error}");
}

#[test]
fn twenty_megabytes_of_one_letter_are_not_even_read() {
    assert_eq!(refused(&vec![b'a'; 20 << 20]).problems[0].code, "too-large");
    assert_eq!(refused(&vec![b'a'; 16 << 20]).problems[0].code, "too-long");
}

#[test]
fn an_unknown_key_names_the_nearest() {
    let (code, text) = two("brokres = 3\n");
    assert_eq!(code, "unknown-key", "{text}");
    let (_, text) = says("title = \"t\"\n[clusters.east]\nbrokres = 3\n");
    assert!(text.contains("bad.toml:3:1: unknown key `brokres` in [clusters.east]; did you mean `brokers`?"), "{text}");
}

#[test]
fn a_missing_unit_and_a_negative_number() {
    let (code, text) = two("[phases]\nsafety = 60\n");
    assert_eq!(code, "missing-unit");
    assert!(text.contains("`safety = \"10 s\"`"), "{text}");
    assert_eq!(two("[phases]\nsafety = \"-60 s\"\n").0, "negative");
    assert_eq!(two("[topics.t]\non = \"east\"\npartitions = -8\n").0, "negative");
}

#[test]
fn impossible_counts() {
    let (code, text) = two("[topics.t]\non = \"east\"\nrf = 4\n");
    assert_eq!(code, "impossible-replication");
    assert!(text.contains("cluster `east` has 3"), "{text}");
    assert_eq!(says("title = \"t\"\n[clusters.east]\nbrokers = 4294967296\n").0, "out-of-range");
    assert_eq!(says("title = \"t\"\n[clusters.east]\nbrokers = 1001\n").0, "out-of-range");
    assert_eq!(two("[topics.t]\non = \"east\"\npartitions = 100000000\n").0, "out-of-range");
    assert_eq!(two("[topics.t]\non = \"east\"\npartitions = 2000000\n").0, "too-many");
    assert_eq!(two("[topics.t]\non = \"east\"\npartitions = 2000000\ncount = 2000000\n").0, "too-many");
    assert_eq!(two(&format!("[topics.t]\non = \"east\"\npartitions = {}\n", "9".repeat(5_000))).0, "too-long");
}

#[test]
fn references_to_nothing() {
    assert_eq!(two("[mirrors.m]\non = \"east\"\nsource = \"east\"\ntopics = [\"orders\"]\n").0, "self-mirror");
    let (code, text) = two("[links.lan]\nbetween = [\"dc-east\", \"dc-wets\"]\nlatency = \"1 ms\"\n");
    assert_eq!(code, "unknown-site");
    assert!(text.contains("did you mean `dc-west`?"), "{text}");
    let (code, text) = two("[[timeline]]\nat = \"1 s\"\ndo = \"kill\"\nnode = \"east/broker-7\"\n");
    assert_eq!(code, "unknown-node");
    assert!(text.contains("broker-1 to broker-3"), "{text}");
    for (list, code) in [("guards_off", "unknown-name"), ("quirks", "unknown-name")] {
        assert_eq!(says(&format!("title = \"t\"\n{list} = [\"NoSuchThing\"]\n[clusters.a]\n")).0, code);
    }
    assert_eq!(two("[expect]\nviolation = [\"S23\"]\n").0, "unknown-name");
}

#[test]
fn several_mistakes_are_told_at_once() {
    let error = refused(format!("{TWO}rf = 9\nrff = 1\n[topics.b]\non = \"north\"\n[phases]\nsafety = 1\n").as_bytes());
    let codes: Vec<_> = error.problems.iter().map(|p| p.code).collect();
    assert_eq!(codes, ["impossible-replication", "unknown-key", "unknown-cluster", "missing-unit"]);
    let lines: Vec<_> = error.problems.iter().map(|p| p.line().unwrap()).collect();
    assert_eq!(lines, [11, 12, 14, 16]);
}

#[test]
fn a_plan_is_checked_like_any_file() {
    let plan = Plan::load("no/such/plan.toml").unwrap_err();
    assert_eq!(plan.problems[0].code, "unreadable");
    let (_folder, path) = file(TWO.as_bytes());
    assert_eq!(Plan::load(&path).unwrap_err().problems[0].code, "not-a-plan");
}

#[test]
fn every_scenario_of_the_repository_reads() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let mut folders = vec![root];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
            if path.is_dir() && name != "src" {
                folders.push(path);
            } else if name.ends_with(".toml") && name != "Cargo.toml" {
                let scenario = Scenario::load(&path).unwrap_or_else(|error| panic!("{}", error.render(false)));
                assert!(scenario.why.is_some(), "{name} does not say why it is there");
                scenario.rows(0).unwrap_or_else(|error| panic!("{}", error.render(false)));
                count += 1;
            }
        }
    }
    assert!(count >= 5, "only {count} scenario files found");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 64, ..Default::default() })]
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..2_000)) {
        let (_folder, path) = file(&bytes);
        let _ = Scenario::load(&path).map_err(|error| error.render(false));
    }
}
