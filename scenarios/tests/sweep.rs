//! `mirrorlab sweep` as users meet it: killed and started again, in shards, with a worker that dies, with wrong arguments.

use mirrorlab_reports::sweep::{Finished, Line, Summary};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const SMALL: &str = "title = \"small\"\n[clusters.east]\nbrokers = 1\n[topics.t]\non = \"east\"\npartitions = 2\n\
                     [producers.p]\non = \"east\"\ntopic = \"t\"\nrate = \"20/s\"\n[phases]\nsafety = \"2 s\"\n";

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mirrorlab"));
    // The machine that runs this test may itself be one of several.
    for variable in ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX", "CI_NODE_INDEX", "CIRCLE_NODE_INDEX"] {
        command.env_remove(variable);
    }
    command.env_remove("BUILDKITE_PARALLEL_JOB").args(arguments).current_dir(folder);
    command
}

fn mirrorlab(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn code(out: &Output) -> i32 {
    out.status.code().unwrap_or_else(|| panic!("{}{}", text(&out.stdout), text(&out.stderr)))
}

/// A folder with a small scenario of this name and these lines at its end.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, tail) in files {
        std::fs::write(folder.path().join(name), format!("{SMALL}{tail}")).unwrap();
    }
    folder
}

/// Lines of the runs in a results file, whole ones only.
fn runs(path: &Path) -> Vec<Finished> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().map(|line| serde_json::from_str::<Line>(line).unwrap());
    lines.filter_map(|line| line.run().cloned()).collect()
}

/// Waits until a file has so many runs.
#[expect(clippy::disallowed_methods, reason = "it waits for another process")]
fn wait_for(path: &Path, least: usize, child: &mut Child) {
    while runs(path).len() < least {
        assert!(child.try_wait().unwrap().is_none(), "the sweep was over before it had {least} runs");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_sweep_that_was_killed_goes_on_and_runs_nothing_twice() {
    let folder = folder(&[("a.toml", ""), ("b.toml", "")]);
    let arguments = ["sweep", "a.toml", "b.toml", "--seeds", "0..150", "--jobs", "2", "--out", "s", "--quiet"];
    let results = folder.path().join("s/results-1of1.ndjson");
    let mut child = command(folder.path(), &arguments).stdout(Stdio::null()).spawn().unwrap();
    wait_for(&results, 20, &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    let before = runs(&results);
    assert!(before.len() < 300, "it was not killed half way");
    // As if the kill had cut the last line.
    let mut torn = std::fs::read(&results).unwrap();
    torn.extend(b"{\"line\":\"run\",\"scenario\":\"a.to");
    std::fs::write(&results, torn).unwrap();
    let out = mirrorlab(folder.path(), &arguments);
    assert_eq!(code(&out), 0, "{}{}", text(&out.stdout), text(&out.stderr));
    let after = runs(&results);
    assert_eq!(&after[..before.len()], before);
    let distinct: BTreeSet<(String, u64)> = after.iter().map(|run| (run.scenario.clone(), run.seed)).collect();
    assert_eq!((after.len(), distinct.len()), (300, 300));
    // Once more: there is nothing to do.
    let out = mirrorlab(folder.path(), &["sweep", "a.toml", "b.toml", "--seeds", "0..150", "--out", "s", "--json"]);
    let summary: Summary = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((code(&out), summary.runs, runs(&results).len()), (0, 300, 300));
    assert!(summary.twice >= 4, "{} of 300 runs were compared", summary.twice);
    assert!(summary.marks["acked"].runs == 300, "{:?}", summary.marks);
}

#[cfg(unix)]
#[test]
fn an_interrupted_sweep_ends_cleanly_and_keeps_its_results() {
    let folder = folder(&[("a.toml", "")]);
    let arguments = ["sweep", "a.toml", "--seeds", "0..100000", "--jobs", "2", "--out", "s"];
    let results = folder.path().join("s/results-1of1.ndjson");
    let child = command(folder.path(), &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    wait_for(&results, 5, &mut child);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let out = child.wait_with_output().unwrap();
    let told = text(&out.stderr);
    assert_eq!(code(&out), 6, "{told}");
    assert!(told.contains("the same command goes on with it"), "{told}");
    assert!(text(&out.stdout).contains("runs are missing") && !text(&out.stdout).contains("verdict     pass"));
    assert!(runs(&results).iter().all(|run| run.verdict.name() == "pass"), "a run that was ended is told as one");
    let summary = std::fs::read(folder.path().join("s/summary.json")).unwrap();
    let summary: Summary = serde_json::from_slice(&summary).unwrap();
    assert_eq!(summary.runs as usize, runs(&results).len());
}

/// Workers are started again now and then, and read their files again: a summary is of one text.
#[test]
fn a_file_that_is_edited_under_a_sweep_ends_it() {
    let folder = folder(&[("a.toml", "")]);
    let arguments = ["sweep", "a.toml", "--seeds", "0..300", "--jobs", "1", "--out", "s", "--quiet"];
    let results = folder.path().join("s/results-1of1.ndjson");
    let child = command(folder.path(), &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    wait_for(&results, 1, &mut child);
    std::fs::write(folder.path().join("a.toml"), SMALL.replace("20/s", "30/s")).unwrap();
    let out = child.wait_with_output().unwrap();
    let told = text(&out.stderr);
    assert_eq!(code(&out), 2, "{told}");
    assert!(told.contains("the file was changed while it was being run"), "{told}");
    // What was run before is not mixed with what comes now.
    assert!(runs(&results).len() < 300);
    let out = mirrorlab(folder.path(), &arguments);
    assert!(text(&out.stderr).contains("a.toml has changed: the sweep begins anew"), "{}", text(&out.stderr));
    assert_eq!((code(&out), runs(&results).len()), (0, 300));
}

#[test]
fn shards_are_merged_into_one_report() {
    let folder = folder(&[("a.toml", ""), ("b.toml", "[expect]\nmust_reach = [\"elected\"]\n")]);
    let sweep = |shard: &str| {
        let arguments = ["sweep", "a.toml", "b.toml", "--seeds", "3..13", "--shard", shard, "--out", "s", "--quiet"];
        mirrorlab(folder.path(), &arguments)
    };
    let report = |more: &[&str]| mirrorlab(folder.path(), &[&["report", "s", "--json"], more].concat());
    assert_eq!(["1/3", "3/3"].map(|shard| code(&sweep(shard))), [4, 4]);
    let part: Summary = serde_json::from_slice(&report(&[]).stdout).unwrap();
    assert_eq!((part.shards, part.planned), ((2, 3), 20));
    assert!(part.runs < 20);
    assert_eq!(code(&sweep("2/3")), 4);
    let out = report(&["--junit", "all.xml", "--html", "all.html"]);
    let whole: Summary = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((code(&out), whole.runs, whole.failed(), whole.groups.len()), (4, 20, 10, 1));
    let group = &whole.groups[0];
    assert_eq!((&*group.scenario, &*group.invariant, group.runs), ("b.toml", "vacuous", 10));
    assert!(Path::new(&folder.path().join(&group.folder)).join("plan.toml").is_file(), "{}", group.folder);
    assert!(std::fs::read_to_string(folder.path().join("all.xml")).unwrap().contains("tests=\"20\" failures=\"10\""));
    assert!(std::fs::read_to_string(folder.path().join("all.html")).unwrap().contains("mirrorlab run b.toml --seed"));
    // Undivided, in the same folder, there is nothing left to do.
    let arguments = ["sweep", "a.toml", "b.toml", "--seeds", "3..13", "--out", "s", "--quiet"];
    assert_eq!(code(&mirrorlab(folder.path(), &arguments)), 4);
    assert_eq!(runs(&folder.path().join("s/results-1of1.ndjson")), []);
    let passed = mirrorlab(folder.path(), &["sweep", "a.toml", "--seeds", "0..2", "--junit", "own.xml"]);
    assert_eq!(code(&passed), 0);
    assert!(std::fs::read_to_string(folder.path().join("own.xml")).unwrap().contains("tests=\"2\" failures=\"0\""));
    assert!(!folder.path().join("runs/sweep-a-0-2/a").exists(), "a passing run leaves a folder");
}

#[test]
fn a_failing_seed_is_told_with_its_command_and_leaves_a_folder_that_replays() {
    let folder = tempfile::tempdir().unwrap();
    let proof = Path::new(env!("CARGO_MANIFEST_DIR")).join("must_fail/r16_fetch_offset_matches.toml");
    std::fs::copy(proof, folder.path().join("a.toml")).unwrap();
    let arguments = ["sweep", "a.toml", "--seeds", "0..8", "--ignore-expect", "--fail-fast"];
    let out = mirrorlab(folder.path(), &arguments);
    let told = text(&out.stdout);
    assert_eq!(code(&out), 1, "{told}");
    assert!(told.contains("\nviolation   S"), "{told}");
    let command = told.lines().find(|line| line.starts_with("            mirrorlab run a.toml --seed ")).unwrap();
    assert!(command.ends_with("--ignore-expect"), "{command}");
    let run = told.lines().find(|line| line.starts_with("            runs/")).unwrap().trim();
    for file in ["plan.toml", "summary.json", "report.html", "trace.ndjson"] {
        assert!(folder.path().join(run).join(file).is_file(), "no {file}");
    }
    assert_eq!(code(&mirrorlab(folder.path(), &["replay", run])), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_worker_that_is_killed_costs_its_seed_only() {
    let folder = folder(&[("a.toml", "")]);
    let long = SMALL.replace("2 s", "300 s").replace("20/s", "200/s");
    std::fs::write(folder.path().join("a.toml"), long).unwrap();
    let arguments = ["sweep", "a.toml", "--seeds", "0..3", "--jobs", "1", "--out", "s"];
    let child = command(folder.path(), &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    let worker = worker_of(&mut child);
    assert!(Command::new("kill").args(["-KILL", &worker.to_string()]).status().unwrap().success());
    let out = child.wait_with_output().unwrap();
    let told = text(&out.stdout);
    // It says nothing about the program.
    assert_eq!(code(&out), 6, "{told}");
    assert!(told.contains("killed from outside, by signal 9"), "{told}");
    assert!(
        text(&out.stderr).contains("processes were killed from outside after 2 of 3 runs"),
        "{}",
        text(&out.stderr)
    );
    let results = folder.path().join("s/results-1of1.ndjson");
    let verdicts = || runs(&results).iter().map(|run| run.verdict.name()).collect::<Vec<&str>>();
    assert_eq!(verdicts(), ["unknown", "pass", "pass"]);
    // It is run again.
    let out = mirrorlab(folder.path(), &[&arguments[..], &["--junit", "j.xml"]].concat());
    assert_eq!((code(&out), verdicts()), (0, vec!["unknown", "pass", "pass", "pass"]), "{}", text(&out.stdout));
    assert!(std::fs::read_to_string(folder.path().join("j.xml")).unwrap().contains("tests=\"3\" failures=\"0\""));
}

#[cfg(target_os = "linux")]
#[test]
fn a_sweep_that_loses_a_worker_and_is_killed_itself_goes_on() {
    let folder = folder(&[("a.toml", "")]);
    let arguments = ["sweep", "a.toml", "--seeds", "0..400", "--jobs", "2", "--out", "s", "--quiet"];
    let results = folder.path().join("s/results-1of1.ndjson");
    let mut child = command(folder.path(), &arguments).stdout(Stdio::null()).spawn().unwrap();
    wait_for(&results, 10, &mut child);
    let worker = worker_of(&mut child);
    assert!(Command::new("kill").args(["-KILL", &worker.to_string()]).status().unwrap().success());
    let at_kill = runs(&results).len();
    wait_for(&results, at_kill + 20, &mut child);
    let orphans = workers_of(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    let before = runs(&results);
    assert!(before.len() < 400, "it was not killed half way");
    // Nobody asks them anything any more: they come to an end by themselves.
    orphans.into_iter().for_each(wait_for_end);
    assert_eq!(runs(&results), before, "an orphan wrote");
    let out = mirrorlab(folder.path(), &arguments);
    let after = runs(&results);
    assert_eq!(&after[..before.len()], before);
    let distinct: BTreeSet<u64> = after.iter().map(|run| run.seed).collect();
    // The seed that its worker was killed with is told as that, and run again; between two seeds it costs none.
    let lost: Vec<&Finished> = after.iter().filter(|run| run.verdict.name() != "pass").collect();
    assert!(lost.len() <= 1 && lost.iter().all(|run| run.reason.contains("by signal 9")), "{lost:?}");
    assert_eq!((after.len() - lost.len(), distinct.len()), (400, 400));
    assert_eq!(code(&out), 0, "{}", text(&out.stdout));
}

/// The process id of a sweep's worker, once it has one.
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "it waits for another process")]
fn worker_of(child: &mut Child) -> u32 {
    loop {
        assert!(child.try_wait().unwrap().is_none(), "the sweep was over before it had a worker");
        if let Some(worker) = workers_of(child.id()).first() {
            return *worker;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The process ids of a process's children.
#[cfg(target_os = "linux")]
fn workers_of(parent: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok());
    ids.filter(|id| stat_of(*id).is_some_and(|(_, of)| of == parent)).collect()
}

/// State and parent of a process, if there is such a one.
#[cfg(target_os = "linux")]
fn stat_of(id: u32) -> Option<(String, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut after = stat.rsplit(')').next()?.split_whitespace();
    Some((after.next()?.to_owned(), after.next()?.parse().ok()?))
}

/// Waits until a process has ended, be it that nobody asked how.
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "it waits for another process")]
fn wait_for_end(id: u32) {
    while stat_of(id).is_some_and(|(state, _)| state != "Z") {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_run_whose_budget_is_over_is_unknown() {
    let folder = folder(&[("a.toml", "")]);
    let sweep = |more: &[&str]| mirrorlab(folder.path(), &[&["sweep", "a.toml", "--seeds", "0..2"], more].concat());
    let out = sweep(&["--events", "100", "--out", "e"]);
    assert_eq!(code(&out), 6);
    assert!(text(&out.stdout).contains("given up after 100 events, which is the budget"), "{}", text(&out.stdout));
    assert_eq!(runs(&folder.path().join("e/results-1of1.ndjson"))[0].events, 100);
    // One whose time is over has failed of nothing, and has not passed.
    let out = mirrorlab(folder.path(), &["sweep", "a.toml", "--seeds", "0..100000", "--for", "1 ms", "--out", "t"]);
    let told = text(&out.stdout);
    assert_eq!(code(&out), 6, "{told}");
    assert!(
        !told.contains("verdict     pass") && told.contains("of 100,000 runs are over, and none of these failed"),
        "{told}"
    );
    assert!(text(&out.stderr).contains("its time is over (--for) after"), "{}", text(&out.stderr));
    let summary = std::fs::read(folder.path().join("t/summary.json")).unwrap();
    let summary: Summary = serde_json::from_slice(&summary).unwrap();
    assert_eq!(summary.verdict.map(|verdict| verdict.name()), Some("unknown"));
}

#[test]
fn arguments_that_are_wrong_cost_nothing() {
    let folder = folder(&[("a.toml", ""), ("bad.toml", "brokres = 1\n")]);
    let told = |arguments: &[&str]| {
        let out = mirrorlab(folder.path(), &[&["sweep"], arguments].concat());
        assert_eq!(code(&out), 2, "{arguments:?}: {}", text(&out.stdout));
        assert!(!folder.path().join("runs").exists(), "{arguments:?} leave a folder");
        text(&out.stderr)
    };
    assert!(told(&["a.toml"]).contains("--seeds <A..B>"));
    assert!(told(&["--seeds", "0..2"]).contains("<PATH>"));
    for bad in ["7", "2..2", "3..1", "-1..3", "0..=4", "x..y"] {
        assert!(told(&["a.toml", "--seeds", bad]).contains("`0..100` for the seeds 0 to 99"), "{bad}");
    }
    assert!(told(&["a.toml", "--seeds", "0..2", "--shard", "0/2"]).contains("counted from 1"));
    assert!(told(&["a.toml", "--seeds", "0..2", "--for", "30"]).contains("unit"));
    assert!(told(&["a.toml", "--seeds", "0..2", "--jobs", "0"]).contains("--jobs"));
    assert!(told(&["a.toml", "--seeds", "0..2", "--guard-off", "FetchOffsetMatch"]).contains("FetchOffsetMatches"));
    assert!(told(&["none", "--seeds", "0..2"]).contains("cannot be read"));
    assert!(told(&["a.toml", "bad.toml", "--seeds", "0..2"]).contains("unknown key `brokres`"));
    assert!(told(&["a.toml", "--seeds", "0..2", "--junit", "no/such/folder.xml"]).contains("cannot be written"));
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    assert!(told(&["empty", "--seeds", "0..2"]).contains("no scenario file was found in empty"));
}

/// A part of a sweep is done when its own runs are over; the whole has not passed before all parts are there.
#[test]
fn a_shard_that_passed_is_no_sweep_that_passed() {
    let folder = folder(&[("a.toml", "")]);
    let sweep = |shard: &str| {
        let out = mirrorlab(folder.path(), &["sweep", "a.toml", "--seeds", "0..4", "--shard", shard, "--out", "s"]);
        (code(&out), text(&out.stdout))
    };
    let (first, told) = sweep("1/2");
    assert_eq!(first, 0, "{told}");
    assert!(
        told.contains("verdict     unknown: 2 of 4 runs are over") && told.contains("shard       1/2: 2 of 2"),
        "{told}"
    );
    assert_eq!(code(&mirrorlab(folder.path(), &["report", "s"])), 6);
    let (second, told) = sweep("2/2");
    assert_eq!(second, 0, "{told}");
    assert!(told.contains("verdict     pass: 4 runs"), "{told}");
    assert_eq!(code(&mirrorlab(folder.path(), &["report", "s"])), 0);
}
