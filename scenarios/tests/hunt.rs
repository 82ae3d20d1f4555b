//! `mirrorlab hunt` as users meet it.

use mirrorlab_model::guards::{self, Kind};
use mirrorlab_reports::hunt::{By, Summary};
use mirrorlab_reports::record::Record;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

fn mirrorlab(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mirrorlab"));
    for variable in ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX", "CI_NODE_INDEX", "CIRCLE_NODE_INDEX"] {
        command.env_remove(variable);
    }
    command.env_remove("BUILDKITE_PARALLEL_JOB").args(arguments).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A folder with a swarm of one profile, in which leaders change, and the proof of one guard.
fn lab() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let scenarios = folder.path().join("scenarios");
    std::fs::create_dir_all(scenarios.join("swarm")).unwrap();
    std::fs::create_dir_all(scenarios.join("must_fail")).unwrap();
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let proof = "must_fail/r16_fetch_offset_matches.toml";
    std::fs::copy(own.join(proof), scenarios.join(proof)).unwrap();
    let profile = "title = \"elections\"\n[clusters.east]\nbrokers = 3\n[topics.t]\non = \"east\"\npartitions = 2\n\
                   [producers.p]\non = \"east\"\ntopic = \"t\"\nrate = \"50/s\"\n[phases]\nsafety = \"8 s\"\n[chaos]\n\
                   every = \"500 ms\"\nmax_down = 1\nelection = { weight = 5 }\ncrash = { weight = 2, max = \"1 s\" }\n";
    std::fs::write(scenarios.join("swarm/default.toml"), profile).unwrap();
    folder
}

fn hunt(folder: &Path, more: &[&str]) -> Summary {
    let out = mirrorlab(folder, &[&["hunt", "--json"], more].concat());
    assert_eq!(out.status.code(), Some(0), "{}{}", text(&out.stdout), text(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

const GUARDS: [&str; 6] =
    ["--guard", "FetchOffsetMatches", "--guard", "ReconcileByEpoch", "--guard", "VoteOncePerEpoch"];

#[test]
fn a_hunt_tells_who_found_what_and_goes_on_where_it_ended() {
    let folder = lab();
    let first = hunt(folder.path(), &[&["--seeds", "6", "--write-baseline", "table"], &GUARDS[..]].concat());
    let shown: Vec<_> = first.rows.iter().map(|row| (&*row.target, row.by, row.as_expected)).collect();
    assert_eq!(
        shown,
        [
            ("FetchOffsetMatches", By::Scenario, true),
            ("ReconcileByEpoch", By::Swarm, true),
            ("VoteOncePerEpoch", By::Nobody, false),
        ]
    );
    let found = &first.rows[1];
    assert!(found.seeds >= 1 && found.seeds <= 6 && found.repro.contains("--guard-off ReconcileByEpoch"), "{found:?}");
    assert_eq!((first.rows[2].seeds, first.rows[2].reached), (6, false));
    assert_eq!((first.baseline.runs, first.baseline_planned), (6, 6));
    assert!(first.missed.contains(&"VoteOncePerEpoch".to_owned()));
    let table = std::fs::read_to_string(folder.path().join("table.md")).unwrap();
    assert!(table.contains("| VoteOncePerEpoch | guard MISS | no | 6 | 0 |"), "{table}");
    assert_eq!(std::fs::read_to_string(folder.path().join("table.ndjson")).unwrap().lines().count(), 3);
    // More seeds: only the new ones are run, and what is known stays.
    let lines = || std::fs::read_to_string(folder.path().join("runs/hunt/hunt-1of1.ndjson")).unwrap();
    let count = |text: &str, what: &str| text.lines().filter(|line| line.contains(what)).count();
    let before = lines();
    let more = hunt(folder.path(), &[&["--seeds", "9"], &GUARDS[..]].concat());
    assert_eq!(more.rows[1], *found);
    assert_eq!((more.rows[2].seeds, more.baseline.runs), (9, 9));
    let after = lines();
    let tries = "\"target\":\"VoteOncePerEpoch\",\"seed\"";
    // With no seed was it reached: with none was it run.
    assert_eq!((count(&before, tries), count(&after, tries)), (0, 0));
    assert_eq!((more.rows[2].runs, more.rows[0].runs > 0), (0, more.rows[0].reached));
    assert_eq!(count(&after, "\"line\":\"base\""), 9);
    // What was found before is made smaller when that is wanted.
    let small = hunt(folder.path(), &[&["--seeds", "9", "--shrink"], &GUARDS[..]].concat());
    let (steps, shrunk) = (small.rows[1].steps.unwrap(), small.rows[1].shrunk_steps.unwrap());
    assert!(shrunk <= steps, "{shrunk} of {steps} steps");
    assert!(folder.path().join("runs/hunt/ReconcileByEpoch/plan.toml").is_file());
    let more = Summary { rows: small.rows, ..more };
    // The table again, without running anything.
    let out = mirrorlab(folder.path(), &["report", "runs/hunt", "--json"]);
    assert_eq!(serde_json::from_slice::<Summary>(&out.stdout).unwrap(), more);
}

#[test]
fn shards_of_a_hunt_make_one_table() {
    let folder = lab();
    for shard in ["1/2", "2/2"] {
        let out = mirrorlab(folder.path(), &[&["hunt", "--seeds", "4", "--shard", shard], &GUARDS[..]].concat());
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stdout));
    }
    let out = mirrorlab(folder.path(), &["report", "runs/hunt", "--json"]);
    let merged: Summary = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((merged.rows.len(), merged.waiting.len(), merged.exit_code()), (3, 0, 0));
    let whole = hunt(folder.path(), &[&["--seeds", "4", "--out", "w"], &GUARDS[..]].concat());
    let shown = |summary: &Summary| -> Vec<(String, By, u64)> {
        summary.rows.iter().map(|row| (row.target.clone(), row.by, row.seeds)).collect()
    };
    assert_eq!(shown(&merged), shown(&whole));
}

#[test]
fn a_baseline_that_fails_is_no_find_and_no_success() {
    let folder = lab();
    let profile = folder.path().join("scenarios/swarm/default.toml");
    let text_of = std::fs::read_to_string(&profile).unwrap();
    // Seed 0 breaks, with everything else on as well.
    std::fs::write(&profile, format!("guards_off = [\"ReconcileByEpoch\"]\n{text_of}")).unwrap();
    let arguments = ["hunt", "--seeds", "1", "--json", "--guard", "AcksAllWaits"];
    let out = mirrorlab(folder.path(), &arguments);
    let summary: Summary = serde_json::from_slice(&out.stdout).unwrap();
    assert!(summary.tainted > 0, "{summary:?}");
    assert_eq!((summary.rows[0].by, out.status.code()), (By::Nobody, Some(1)));
}

/// What lets a hunt leave out runs: a guard that refused nothing, and a quirk whose place was not passed, change nothing.
#[test]
fn a_run_that_does_not_reach_a_guard_is_the_same_without_it() {
    let folder = lab();
    let run = |switch: &[&str]| -> Record {
        let out = mirrorlab(folder.path(), &[&["run", "scenarios/swarm/default.toml", "--json"], switch].concat());
        serde_json::from_slice(&out.stdout).unwrap()
    };
    let whole = run(&[]);
    let reached: BTreeSet<&String> = whole.guards.hit.iter().chain(&whole.guards.passed).collect();
    assert!(reached.contains(&"ReconcileByEpoch".to_owned()), "{reached:?}");
    let idle: Vec<_> = guards::rows().filter(|row| !reached.contains(&row.name.to_owned())).collect();
    assert!(idle.len() > 100);
    for row in idle.iter().step_by(12) {
        let option = if row.kind == Kind::Guard { "--guard-off" } else { "--quirk" };
        assert_eq!(run(&[option, row.name]).trace_hash, whole.trace_hash, "{}", row.name);
    }
    assert_ne!(run(&["--guard-off", "ReconcileByEpoch"]).trace_hash, whole.trace_hash);
}

#[test]
fn arguments_that_are_wrong() {
    let folder = lab();
    let told = |arguments: &[&str]| {
        let out = mirrorlab(folder.path(), &[&["hunt"], arguments].concat());
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {}", text(&out.stdout));
        assert!(!folder.path().join("runs").exists());
        text(&out.stderr)
    };
    assert!(told(&[]).contains("--seeds <N>"));
    assert!(told(&["--seeds", "0"]).contains("--seeds"));
    assert!(told(&["--seeds", "4", "--guard", "FetchOffsetMatch"]).contains("did you mean `FetchOffsetMatches`?"));
    assert!(told(&["--seeds", "4", "--quirk", "FetchOffsetMatches"]).contains("it is a guard: --guard"));
    assert!(told(&["--seeds", "4", "--scenarios", "nowhere"]).contains("nowhere has no folder `swarm`"));
}
