//! The binary as users meet it: what it prints, how it ends, and that wrong input costs neither time nor memory.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// No refusal takes longer, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// Address space of a refused run: enough for the program, not for what a wrong number asks for.
const MEMORY_KB: u64 = 600_000;

const TWO: &str = "title = \"two\"\n[clusters.east]\nsite = \"dc-east\"\n[clusters.west]\nsite = \"dc-west\"\n\
                   [links.wan]\nbetween = [\"dc-east\", \"dc-west\"]\nlatency = \"40 ms\"\n\
                   [topics.orders]\non = \"east\"\n";

fn mirrorlab(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mirrorlab")).args(arguments).current_dir(folder).output().unwrap()
}

/// The same within bounds of memory.
fn bounded(folder: &Path, arguments: &[&str]) -> Output {
    let limited = format!("ulimit -v {MEMORY_KB} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command
        .args(["-c", &limited, env!("CARGO_BIN_EXE_mirrorlab")])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn scenarios() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[expect(clippy::disallowed_methods, reason = "how long a user waits is what is tested")]
fn now() -> Instant {
    Instant::now()
}

/// Runs a file of these bytes, which must be refused, and gives what was said of it.
fn refused(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.toml"), bytes).unwrap();
    refused_in(folder.path())
}

fn refused_in(folder: &Path) -> String {
    let began = now();
    let out = bounded(folder, &["run", "bad.toml"]);
    let told = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{told}");
    assert!(out.stdout.is_empty(), "{}", text(&out.stdout));
    assert!(began.elapsed() < PATIENCE, "it took {:?}", began.elapsed());
    assert!(told.len() < 20_000, "{} bytes of reproach", told.len());
    assert!(!folder.join("runs").exists(), "a refused run leaves a folder");
    told
}

fn says(bytes: &[u8], parts: &[&str]) {
    let told = refused(bytes);
    for part in parts {
        assert!(told.contains(part), "`{part}` is not in: {told}");
    }
}

fn two(tail: &str, parts: &[&str]) {
    says(format!("{TWO}{tail}").as_bytes(), parts);
}

#[test]
fn files_that_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let told = refused_in(folder.path());
    assert!(told.starts_with("bad.toml: the file cannot be read"), "{told}");
    says(b"", &["bad.toml:1:1: the file is empty"]);
    says(b"title = \"x\"\nwhy = \"\xff\"\n", &["the file is not UTF-8: byte 0xff at line 2, column 8"]);
    says(&vec![b'a'; 20 << 20], &["larger than 16 MiB"]);
    says(&vec![b'a'; 15 << 20], &["bad.toml:1:1: a word of 15728640 letters"]);
}

#[test]
fn keys_and_values_that_are_wrong() {
    says(
        b"title = \"t\"\n[clusters.east]\nbrokres = 3\n",
        &["bad.toml:3:1: unknown key `brokres`", "did you mean `brokers`?"],
    );
    two("[phases]\nsafety = 60\n", &["bad.toml:12:10:", "`safety = \"10 s\"`"]);
    two("[topics.t]\non = \"east\"\npartitions = -8\n", &["bad.toml:13:14:"]);
    two("[topics.t]\non = \"east\"\nrf = 4\n", &["bad.toml:13:6:", "cluster `east` has 3"]);
    says(b"title = \"t\"\n[clusters.east]\nbrokers = 4294967296\n", &["bad.toml:3:11:"]);
    two("[topics.t]\non = \"east\"\npartitions = 100000000\n", &["bad.toml:13:14:"]);
}

#[test]
fn references_to_what_is_not_there() {
    two("[mirrors.m]\non = \"east\"\nsource = \"east\"\ntopics = [\"orders\"]\n", &["bad.toml:13:10:", "itself"]);
    two(
        "[links.lan]\nbetween = [\"dc-east\", \"dc-wets\"]\nlatency = \"1 ms\"\n",
        &["bad.toml:12:23: there is no site `dc-wets`", "did you mean `dc-west`?"],
    );
    two(
        "[[timeline]]\nat = \"1 s\"\ndo = \"kill\"\nnode = \"east/broker-7\"\n",
        &["bad.toml:14:8: there is no node `east/broker-7`", "broker-1 to broker-3"],
    );
}

#[test]
fn options_that_are_wrong() {
    let told = |arguments: &[&str]| {
        let out = mirrorlab(&scenarios(), arguments);
        assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
        text(&out.stderr)
    };
    let near = told(&["run", "replication/short.toml", "--guard-off", "FetchOffsetMatch"]);
    assert!(near.contains("did you mean `FetchOffsetMatches`?"), "{near}");
    let near = told(&["run", "replication/short.toml", "--profile", "prototyp"]);
    assert!(near.contains("did you mean `prototype`? There are corrected, prototype"), "{near}");
    let near = told(&["run", "replication/short.toml", "--quirk", "StopRecomputesPositon"]);
    assert!(near.contains("did you mean `StopRecomputesPosition`?"), "{near}");
    let other = told(&["run", "replication/short.toml", "--guard-off", "StopRecomputesPosition"]);
    assert!(other.contains("it is a quirk: switch it with --quirk or --quirk-off"), "{other}");
    assert!(told(&["run", "replication/short.toml", "--seed", "-1"]).contains("--seed"));
    assert!(told(&["guards", "FetchOfsetMatches"]).contains("did you mean `FetchOffsetMatches`?"));
    assert!(told(&["checks", "S99"]).contains("there is no invariant `S99`"));
    assert!(told(&["replay", "replication/short.toml"]).contains("this is not a plan"));
}

#[test]
fn what_it_explains() {
    let out = |arguments: &[&str]| {
        let out = mirrorlab(&scenarios(), arguments);
        assert!(out.status.success(), "{}", text(&out.stderr));
        text(&out.stdout)
    };
    insta::assert_snapshot!("guards_one", out(&["guards", "FetchOffsetMatches"]));
    insta::assert_snapshot!("checks_one", out(&["checks", "s2"]));
    assert!(out(&["guards"]).lines().count() > 30);
    assert!(out(&["checks"]).lines().count() > 30);
    assert!(out(&["checks", "--excuses"]).contains("\norder waits (operator)\n  The operator's last order waits"));
    let schema: serde_json::Value = serde_json::from_str(&out(&["schema"])).unwrap();
    assert!(schema["properties"]["clusters"].is_object());
    assert!(out(&["check", "replication"]).contains("short.toml: ok"));
}

#[test]
fn a_run_leaves_a_folder_that_replays_to_the_same_history() {
    let folder = tempfile::tempdir().unwrap();
    let file = scenarios().join("replication/short.toml");
    let json = |arguments: &[&str]| {
        let out = mirrorlab(folder.path(), arguments);
        assert!(out.status.success(), "{}{}", text(&out.stdout), text(&out.stderr));
        serde_json::from_slice::<serde_json::Value>(&out.stdout).unwrap()
    };
    let ran = json(&["run", file.to_str().unwrap(), "--seed", "11", "--json"]);
    assert_eq!(ran["verdict"], "pass");
    let runs = folder.path().join("runs/replication/short/11");
    for name in ["plan.toml", "summary.json", "report.html"] {
        assert!(runs.join(name).is_file(), "no {name}");
    }
    assert!(folder.path().join("runs/latest/plan.toml").is_file());
    let again = json(&["replay", "runs/replication/short/11", "--json"]);
    assert_eq!(again["trace_hash"], ran["trace_hash"]);
}

/// Two files of one name in two folders, and one named like the link to the last run.
#[test]
fn runs_of_files_of_one_name_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    let file = |title: &str| format!("title = \"{title}\"\n[clusters.east]\nbrokers = 1\n[phases]\nsafety = \"1 s\"\n");
    for path in ["a/same.toml", "b/same.toml", "latest.toml"] {
        let path = folder.path().join("scenarios").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, file(&path.display().to_string())).unwrap();
        assert!(mirrorlab(folder.path(), &["run", path.to_str().unwrap()]).status.success());
    }
    let title = |run: &str| {
        let record = mirrorlab_reports::load::record(&folder.path().join("runs").join(run)).unwrap();
        record.title.rsplit_once("scenarios/").unwrap().1.to_owned()
    };
    let runs = ["a/same/0", "b/same/0", "latest.toml/0", "latest"];
    assert_eq!(runs.map(title), ["a/same.toml", "b/same.toml", "latest.toml", "latest.toml"]);
    let again = mirrorlab(folder.path(), &["replay", "runs/latest"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
}

/// Files that are called alike, wherever they lie: none takes the place of another, and each finds its own again.
#[test]
fn files_that_are_called_alike_have_folders_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let file = "title = \"t\"\n[clusters.east]\nbrokers = 1\n[phases]\nsafety = \"1 s\"\n\
                [expect]\nmust_reach = [\"elected\"]\n";
    let outside = other.path().join("scenarios/same.toml");
    let below = ["same.toml", "scenarios/same.toml", "one/x/same.toml", "two/x/same.toml", "one/scenarios/same.toml"];
    let all: Vec<PathBuf> = below.iter().map(|path| folder.path().join(path)).chain([outside.clone()]).collect();
    for path in &all {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, file).unwrap();
    }
    let home = |path: &str| {
        let out = mirrorlab(folder.path(), &["run", path]);
        let told = text(&out.stdout);
        assert_eq!(out.status.code(), Some(4), "{told}{}", text(&out.stderr));
        told.lines().find_map(|line| line.strip_prefix("run folder  ")).unwrap_or_else(|| panic!("{told}")).to_owned()
    };
    let run = |_: usize| below.iter().copied().chain([outside.to_str().unwrap()]).map(home).collect::<Vec<String>>();
    let (first, second) = (run(1), run(2));
    assert_eq!(first, second);
    let distinct: std::collections::BTreeSet<&String> = first.iter().collect();
    assert_eq!(distinct.len(), all.len(), "{first:?}");
    assert_eq!((&*first[1], &*first[2]), ("runs/same/0", "runs/one/x/same/0"));
    // In a sweep, too.
    let out = mirrorlab(folder.path(), &["sweep", "one/x", "two/x", "--seeds", "0..1", "--out", "s", "--json"]);
    let summary: mirrorlab_reports::sweep::Summary = serde_json::from_slice(&out.stdout).unwrap();
    let folders: Vec<&str> = summary.groups.iter().map(|group| &*group.folder).collect();
    assert!(folders.len() == 2 && folders[0] != folders[1], "{folders:?}");
    assert!(folders.iter().all(|run| folder.path().join(run).join("plan.toml").is_file()), "{folders:?}");
}

/// A run and a sweep do not share a folder, and a plan that is replayed from its file does not take the place of another.
#[test]
fn no_record_takes_the_place_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let file = "title = \"t\"\n[clusters.east]\nbrokers = 1\n[phases]\nsafety = \"1 s\"\n";
    std::fs::write(folder.path().join("t.toml"), file).unwrap();
    let run = |arguments: &[&str]| {
        let out = mirrorlab(folder.path(), arguments);
        (out.status.code(), text(&out.stderr))
    };
    assert_eq!(run(&["run", "t.toml"]).0, Some(0));
    let own = folder.path().join("runs/t/0");
    let record = std::fs::read(own.join("summary.json")).unwrap();
    for arguments in [
        &["sweep", "t.toml", "--seeds", "0..2", "--out", "runs/t/0"][..],
        &["report", "runs/t/0", "--html", "runs/t/0/summary.json"],
        &["sweep", "t.toml", "--seeds", "0..2", "--junit", "runs/t/0/plan.toml"],
    ] {
        let (code, told) = run(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {told}");
        assert!(told.contains("would be overwritten") || told.contains("it stays as it is"), "{told}");
    }
    assert_eq!(run(&["sweep", "t.toml", "--seeds", "0..1", "--out", "s"]).0, Some(0));
    let (code, told) = run(&["run", "t.toml", "--out", "s"]);
    assert_eq!((code, told.contains("holds the record of a sweep")), (Some(2), true), "{told}");
    // Another plan of the same scenario and seed.
    let plan = std::fs::read_to_string(own.join("plan.toml")).unwrap();
    std::fs::create_dir(own.join("shrunk")).unwrap();
    std::fs::write(own.join("shrunk/plan.toml"), plan.replace("1 s", "2 s")).unwrap();
    assert_eq!(run(&["replay", "runs/t/0/shrunk/plan.toml"]).0, Some(0));
    assert_eq!(std::fs::read(own.join("summary.json")).unwrap(), record);
    assert_eq!(std::fs::read_to_string(own.join("plan.toml")).unwrap(), plan);
    // The same plan keeps what was made of it; another run does not.
    assert_eq!(run(&["replay", "runs/t/0"]).0, Some(0));
    assert!(own.join("shrunk/plan.toml").is_file());
    assert_eq!(run(&["run", "t.toml"]).0, Some(0));
    assert!(!own.join("shrunk").exists());
}

#[test]
fn a_step_that_no_run_carries_out_is_refused() {
    let producer = "[producers.shop]\non = \"east\"\ntopic = \"orders\"\nrate = \"1/s\"\n";
    let step = "[[timeline]]\nat = \"1 s\"\ndo = \"produce\"\nproducer = \"shop\"\nrecords = 1\nrecord = \"1 KiB\"\n";
    let told = refused(format!("{TWO}{producer}{step}").as_bytes());
    assert!(told.starts_with("bad.toml:20:1: this version does not carry out the step `produce`"), "{told}");
}

/// What only the model refuses is told with its place as well, by `check` as by `run`.
#[test]
fn what_the_model_refuses_is_told_with_its_place() {
    says(
        b"title = \"t\"\n[clusters.east]\nconfig = { \"broker.heartbeat.interval.ms\" = 0 }\n",
        &["bad.toml:3:45:", "`broker.heartbeat.interval.ms`", "at least 1"],
    );
    let mirror = |keys: &str| format!("[mirrors.m]\non = \"west\"\nsource = \"east\"\n{keys}\n");
    two(&mirror("topics = [\"or(ders\"]"), &["bad.toml:14:11: `or(ders` in `topics` is not a regular expression"]);
    two(&mirror("topics = [\"orders\"]\nexclude = [\"a\", \"[z-a]\"]"), &["bad.toml:15:17: `[z-a]` in `exclude`"]);
    two(&mirror("topics = [\"orders\"]\nconfig = { \"groups.include\" = [\"((\"] }"), &["bad.toml:15:31:"]);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.toml"), format!("{TWO}{}", mirror("topics = [\"(\"]"))).unwrap();
    let out = mirrorlab(folder.path(), &["check", "bad.toml"]);
    assert_eq!((out.status.code(), text(&out.stderr).contains("bad.toml:14:11:")), (Some(2), true));
}

/// Several files: all are read before the first runs, and the worst verdict counts.
#[test]
fn several_files_run_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let alone = "title = \"t\"\n[clusters.east]\nbrokers = 1\n[topics.t]\non = \"east\"\n[phases]\nsafety = \"1 s\"\n";
    let write = |name: &str, tail: &str| std::fs::write(folder.path().join(name), format!("{alone}{tail}")).unwrap();
    write("good one.toml", "");
    write("vacuous.toml", "[expect]\nmust_reach = [\"elected\"]\n");
    write("unmet.toml", "[expect]\nrecords = { \"east/t\" = 5 }\n");
    write("bad.toml", "brokres = 1\n");
    let run = |names: &[&str]| mirrorlab(folder.path(), &[&["run"], names].concat());
    let out = run(&["good one.toml", "unmet.toml", "vacuous.toml"]);
    let told = text(&out.stdout);
    assert_eq!(out.status.code(), Some(7), "{told}");
    assert!(told.starts_with("scenario    good one.toml\n") && told.contains("\nscenario    vacuous.toml\n"), "{told}");
    assert!(told.contains("\nagain       mirrorlab run 'good one.toml' --seed 0\n"), "{told}");
    assert!(told.contains("`elected` was never reached: the run proved nothing about it"), "{told}");
    let out = run(&["good one.toml", "bad.toml"]);
    assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0));
    let out = run(&["good one.toml", "unmet.toml", "--out", "here"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("--out is for one scenario file, and 2 are named"));
    // A bare run lets steps miss, and expects nothing.
    write("missed.toml", "[[timeline]]\nwhen = \"isr(east/t) == 9\"\ndo = \"resume\"\nnode = \"east/broker-1\"\n");
    assert_eq!(run(&["missed.toml"]).status.code(), Some(7));
    assert_eq!(run(&["missed.toml", "--ignore-expect"]).status.code(), Some(0));
    assert_eq!(mirrorlab(folder.path(), &["replay", "runs/latest"]).status.code(), Some(0));
}

/// A folder that cannot be written is found out before the run; what is logged to a file has no colours.
#[test]
fn outputs_are_looked_at_first_and_plain() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let short = scenarios().join("replication/short.toml");
    let short = short.to_str().unwrap();
    let out = mirrorlab(folder.path(), &["run", short, "--out", "file/below", "--log", "info"]);
    assert_eq!(out.status.code(), Some(2));
    let told = text(&out.stderr);
    assert!(told.starts_with("output: the run's record cannot be written to file/below"), "{told}");
    let out = mirrorlab(folder.path(), &["run", short, "--log", "info"]);
    let told = text(&out.stderr);
    assert!(told.contains("INFO") && !told.contains('\u{1b}'), "{told}");
}

/// A summary or a page that somebody else keeps in a folder stays; a folder of ours is written anew. What has no JUnit form says so.
#[test]
fn the_files_of_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let short = scenarios().join("replication/short.toml");
    let short = short.to_str().unwrap();
    let code = |arguments: &[&str]| mirrorlab(folder.path(), arguments).status.code();
    for name in ["summary.json", "report.html"] {
        let own = folder.path().join(name.replace('.', "-"));
        std::fs::create_dir(&own).unwrap();
        std::fs::write(own.join(name), "mine").unwrap();
        let out = own.to_str().unwrap();
        for arguments in [&["run", short, "--out", out][..], &["sweep", short, "--seeds", "0..1", "--out", out]] {
            let told = mirrorlab(folder.path(), arguments);
            assert_eq!(told.status.code(), Some(2), "{arguments:?}");
            assert!(text(&told.stderr).contains("holds the record of something else"), "{}", text(&told.stderr));
        }
        assert_eq!(std::fs::read_to_string(own.join(name)).unwrap(), "mine");
        assert_eq!(std::fs::read_dir(&own).unwrap().count(), 1);
    }
    // What is torn of a run of ours is no reason.
    assert_eq!(code(&["run", short, "--out", "run"]), Some(0));
    std::fs::write(folder.path().join("run/summary.json"), "{").unwrap();
    assert_eq!(code(&["run", short, "--out", "run"]), Some(0));
    assert_eq!(code(&["report", "run"]), Some(0));
    assert_eq!(code(&["report", "run", "--junit", "x.xml"]), Some(2));
}

/// Names that are near, options that contradict each other, numbers that no run takes: what is wrong, and what to do.
#[test]
fn slips_of_the_command_line_are_told_with_what_was_meant() {
    let folder = tempfile::tempdir().unwrap();
    let file = "title = \"t\"\n[clusters.east]\nbrokers = 1\n[topics.t]\non = \"east\"\n[phases]\nsafety = \"1 s\"\n";
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("tour.toml", file);
    write("seeds.toml", &format!("matrix = {{ seed = [1, 2] }}\n{file}"));
    let out = |arguments: &[&str]| {
        let out = mirrorlab(folder.path(), arguments);
        (out.status.code(), text(&out.stdout) + &text(&out.stderr))
    };
    let refused = |arguments: &[&str], part: &str| {
        let (code, told) = out(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {told}");
        assert!(told.contains(part), "{arguments:?}: {told}");
    };
    refused(&["run", "tuor.toml"], "did you mean `tour.toml`?");
    let guard = "FetchOffsetMatches";
    refused(
        &["run", "tour.toml", "--guard-off", guard, "--guard-on", guard],
        "is switched by --guard-off and by --guard-on",
    );
    let quirk = "StopRecomputesPosition";
    refused(&["run", "tour.toml", "--quirk", quirk, "--quirk-off", quirk], "is switched by --quirk-off and by --quirk");
    refused(&["run", "seeds.toml", "--seed", "7"], "`seed` is a key of this file's matrix");
    refused(&["sweep", "seeds.toml", "--seeds", "0..2"], "`seed` is a key of this file's matrix");
    assert_eq!(out(&["run", "seeds.toml"]).0, Some(0));
    refused(&["absence", "tour.toml", "--samples", "0"], "--samples");
    refused(&["absence", "tour.toml", "--samples", "4000000000"], "1..=10000");
    refused(&["why", "tour.toml", "--reseeds", "4000000000"], "0..=1000");
    let (code, told) = out(&["absence", "tour.toml", "--samples", "3"]);
    assert_eq!(code, Some(4), "{told}");
    assert!(told.contains("0 of 3 samples were tried"), "{told}");
    assert_eq!(out(&["run", "tour.toml"]).0, Some(0));
    refused(
        &["report", "runs"],
        "name one of `runs/seeds/1`, `runs/tour/0`; `mirrorlab census runs` adds all of them up",
    );
}

/// Links that lead back, files that begin with a dot and names that are no text end nothing and are not read twice.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_is_read_once_whatever_links_lead_back() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let file = "title = \"t\"\n[clusters.east]\nbrokers = 1\n";
    std::fs::create_dir(folder.path().join("a")).unwrap();
    for name in ["a/one.toml", "two.toml"] {
        std::fs::write(folder.path().join(name), file).unwrap();
    }
    std::fs::write(folder.path().join(".rustfmt.toml"), "max_width = 120\n").unwrap();
    std::os::unix::fs::symlink("..", folder.path().join("a/back")).unwrap();
    std::os::unix::fs::symlink("a", folder.path().join("again")).unwrap();
    let out = mirrorlab(folder.path(), &["check", "."]);
    assert_eq!((out.status.code(), text(&out.stdout)), (Some(0), "./a/one.toml: ok\n./two.toml: ok\n".to_owned()));
    let odd = folder.path().join(std::ffi::OsStr::from_bytes(b"\xff.toml"));
    std::fs::write(odd, file).unwrap();
    let out = mirrorlab(folder.path(), &["check", "."]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("the name of this file is not UTF-8; rename it"), "{}", text(&out.stderr));
}

/// What was to be printed and is lost is no success; a reader who has enough is none who complains.
#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let short = scenarios().join("replication/short.toml");
    let short = short.to_str().unwrap();
    let full = |arguments: &[&str]| {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_mirrorlab"));
        let out = command.args(arguments).current_dir(folder.path()).stdout(full).output().unwrap();
        (out.status.code(), text(&out.stderr))
    };
    for arguments in [&["run", short, "--json"][..], &["check", short], &["schema"], &["guards"], &["--help"]] {
        let (code, told) = full(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {told}");
        assert!(told.contains("standard output: it cannot be written: "), "{arguments:?}: {told}");
    }
    let script = "\"$0\" guards | head -n 1 >/dev/null; exit ${PIPESTATUS[0]}";
    let piped = Command::new("bash").args(["-c", script, env!("CARGO_BIN_EXE_mirrorlab")]).output().unwrap();
    assert_eq!((piped.status.code(), text(&piped.stderr)), (Some(0), String::new()));
}

/// What a cluster refused of a step's order is part of what is printed.
#[test]
fn a_refused_order_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = "title = \"t\"\n[clusters.east]\nbrokers = 1\n[topics.t]\non = \"east\"\n[phases]\nsafety = \"2 s\"\n\
                [[timeline]]\nat = \"1 s\"\ndo = \"create-topic\"\non = \"east\"\ntopic = \"t\"\npartitions = 2\n";
    std::fs::write(folder.path().join("t.toml"), file).unwrap();
    let told = text(&mirrorlab(folder.path(), &["run", "t.toml"]).stdout);
    assert!(
        told.contains("step 1 (create-topic) was answered TOPIC_ALREADY_EXISTS: t: TOPIC_ALREADY_EXISTS"),
        "{told}"
    );
}

/// A step that never came to strike is an expectation that was not met, whatever its action.
#[test]
fn a_step_that_never_strikes_is_unmet() {
    let alone = "title = \"t\"\n[clusters.east]\n[topics.t]\non = \"east\"\n[phases]\nsafety = \"3 s\"\n";
    let strike = "do = \"resume\"\nnode = \"east/broker-1\"\n";
    for (trigger, why) in [
        ("when = \"isr(east/t) == 9\"\nwithin = \"1 s\"\n", "its condition never held in time"),
        ("when = \"isr(east/t) == 3\"\nafter = \"10 s\"\n", "the safety phase was over before"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.toml"), format!("{alone}[[timeline]]\n{trigger}{strike}")).unwrap();
        let out = mirrorlab(folder.path(), &["run", "t.toml"]);
        let told = text(&out.stdout);
        assert_eq!(out.status.code(), Some(7), "{told}");
        assert!(told.contains(why), "{told}");
    }
}

/// An expected violation does not make up for an answer that the story rests on and that was another one.
#[test]
fn an_answer_that_is_not_the_expected_one_is_unmet_whatever_broke() {
    let story = std::fs::read_to_string(scenarios().join("must_fail/mirror_leader_keeps_source_epochs.toml")).unwrap();
    for (answer, exit, why) in
        [("NONE", 0, "as expected"), ("INVALID_REQUEST", 7, "expected INVALID_REQUEST, got NONE")]
    {
        let folder = tempfile::tempdir().unwrap();
        let file = story.replace("expect_error = \"NONE\"", &format!("expect_error = \"{answer}\""));
        std::fs::write(folder.path().join("t.toml"), file).unwrap();
        let out = mirrorlab(folder.path(), &["run", "t.toml"]);
        let told = text(&out.stdout);
        assert_eq!(out.status.code(), Some(exit), "{told}");
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn a_load_that_no_machine_holds_is_refused() {
    for load in
        ["every = \"1 ns\"", "rate = \"1000000000000/s\"", "rate = \"1000/s\"\nrecord = \"16 MiB\"\ncount = 10000"]
    {
        let file = format!("{TWO}[producers.shop]\non = \"east\"\ntopic = \"orders\"\n{load}\n");
        let told = refused(file.as_bytes());
        assert!(told.contains("a run offers at most"), "{load}: {told}");
    }
    let told = refused(format!("{TWO}[topics.wide]\non = \"east\"\npartitions = 20000\nrf = 1\n").as_bytes());
    assert!(told.contains("at most 10000 partitions at once"), "{told}");
}

#[test]
fn what_is_not_there_or_not_whole_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("two.toml"), format!("{TWO}[phases]\nsafety = \"1 s\"\n")).unwrap();
    let told = |arguments: &[&str], parts: &[&str]| {
        let out = mirrorlab(folder.path(), arguments);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {said}");
        parts.iter().for_each(|part| assert!(said.contains(part), "{arguments:?}: no `{part}` in {said}"));
    };
    for command in ["report", "census", "replay", "why", "shrink"] {
        told(
            &[command, "runs/latest"],
            &["there is no such file or folder", "mirrorlab run FILE", "mirrorlab sweep PATH"],
        );
    }
    let run = mirrorlab(folder.path(), &["run", "two.toml", "--out", "runs/two/0"]);
    let plan = folder.path().join("runs/two/0/plan.toml");
    let whole = std::fs::read_to_string(&plan).unwrap_or_else(|e| panic!("{e}: {}", text(&run.stderr)));
    for command in ["report", "census", "replay"] {
        told(&[command, "runs/tow/0"], &["did you mean `runs/two/0`?"]);
        told(&[command, "runs/two/17"], &["there are `runs/two/0`"]);
    }
    told(&["replay", "runs/two"], &["holds no plan.toml", "`runs/two/0`"]);
    // Cut anywhere, also where what is left is a plan of something else.
    let expect = whole.find("[topics").unwrap();
    for cut in [whole.len() / 2, expect, whole.len() - 2] {
        std::fs::write(&plan, &whole[..cut]).unwrap();
        told(&["replay", "runs/two/0"], &["this plan is cut off", "run the scenario again with its seed"]);
    }
    std::fs::write(&plan, &whole).unwrap();
    assert_ne!(mirrorlab(folder.path(), &["replay", "runs/two/0"]).status.code(), Some(2));
    let summary = folder.path().join("runs/two/0/summary.json");
    let record = std::fs::read(&summary).unwrap();
    for cut in [0, 1, record.len() / 2, record.len() - 1] {
        std::fs::write(&summary, &record[..cut]).unwrap();
        told(&["report", "runs/two/0"], &["is cut off", "mirrorlab replay"]);
        if cut > 0 {
            told(&["census", "runs/two/0"], &["is cut off", "mirrorlab replay"]);
        }
    }
}
