//! The house stands as designed: arrows between crates and between the rooms of `model/src` run one way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_path_buf()
}

/// Ground floor first: a room uses rooms above it in this list only.
const ROOMS: &[&str] = &[
    "ids",
    "entropy",
    "states",
    "guards",
    "record",
    "wire",
    "trace",
    "ports",
    "testing",
    "metadata",
    "log",
    "coordinator",
    "controller",
    "client",
    "replica",
    "mirror",
    "broker",
    "admin",
];

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Every `crate::room` that a line of code names.
fn rooms_named(text: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for line in text.lines().filter(|l| !l.trim_start().starts_with("//")) {
        for (at, _) in line.match_indices("crate::") {
            let after = &line[at + "crate::".len()..];
            if let Some(grouped) = after.strip_prefix('{') {
                let names = grouped.split(',').map(|n| n.trim_matches(|c: char| !c.is_alphanumeric() && c != '_'));
                named.extend(names.map(|n| n.split("::").next().unwrap_or(n).to_owned()));
            } else {
                named.insert(after.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("").to_owned());
            }
        }
    }
    named
}

#[test]
fn the_rooms_of_the_model_use_only_rooms_below_them() {
    let source = root().join("model/src");
    let rank: BTreeMap<&str, usize> = ROOMS.iter().enumerate().map(|(at, room)| (*room, at)).collect();
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    let mut wrong = Vec::new();
    let mut arrows = 0;
    for file in files {
        let inside = file.strip_prefix(&source).expect("below the source");
        let room = inside.iter().next().expect("a name").to_str().expect("UTF-8").trim_end_matches(".rs");
        if room == "lib" {
            continue;
        }
        let Some(own) = rank.get(room) else { panic!("room {room} is not in the list of rooms") };
        // The registry's macro and the test disk are used by tests of every room.
        let is_test = file.to_str().is_some_and(|f| f.contains("test"));
        for used in rooms_named(&fs::read_to_string(&file).expect("a source file")) {
            let Some(other) = rank.get(used.as_str()) else { continue };
            arrows += 1;
            if other > own && !is_test {
                wrong.push(format!("{} uses {used}, which lies above {room}", inside.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(arrows > 50, "only {arrows} arrows seen: the test does not read what it should");
}

#[test]
fn the_crates_use_only_crates_below_them() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("model", &[][..]),
        ("sim", &["model"][..]),
        ("reports", &[][..]),
        ("scenarios", &["model", "sim", "reports"][..]),
        ("tests", &["model", "sim", "reports", "scenarios"][..]),
    ]);
    for (name, may) in &allowed {
        let manifest = fs::read_to_string(root().join(name).join("Cargo.toml")).expect("a manifest");
        for other in allowed.keys() {
            let uses = manifest.contains(&format!("mirrorlab-{other}.workspace"))
                || manifest.contains(&format!("mirrorlab-{other} ="));
            assert!(!uses || may.contains(other), "{name} must not depend on {other}");
        }
    }
    let workspace = fs::read_to_string(root().join("Cargo.toml")).expect("the workspace manifest");
    assert!(workspace.contains(r#"members = ["model", "sim", "scenarios", "reports", "tests"]"#));
}

#[test]
fn the_model_needs_no_simulator() {
    let manifest = fs::read_to_string(root().join("model/Cargo.toml")).expect("a manifest");
    for banned in ["madsim", "tokio", "rand", "xxhash"] {
        assert!(!manifest.contains(banned), "model depends on {banned}");
    }
}

/// What was not reached makes no difference: a hunt leaves such runs out. So nothing asks whether a guard is on without a note of it.
#[test]
fn the_model_asks_guards_only_where_that_is_noted() {
    let mut files = Vec::new();
    rust_files(&root().join("model/src"), &mut files);
    let guards = root().join("model/src/guards");
    for file in files.iter().filter(|file| !file.starts_with(&guards)) {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(!text.contains("guards.is_on("), "{} asks by `is_on`; ask by `admits` or `quirk`", file.display());
    }
}

#[test]
fn the_top_level_holds_only_the_rooms_of_the_design() {
    let known =
        ["Cargo.toml", "Cargo.lock", "README.md", "model", "sim", "scenarios", "reports", "tests", "target", "runs"];
    for entry in fs::read_dir(root()).expect("the workspace").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(name.starts_with('.') || known.contains(&name.as_str()), "{name} does not belong at the top level");
    }
}

#[test]
fn there_is_exactly_one_binary() {
    let mut binaries = Vec::new();
    for name in ["model", "sim", "scenarios", "reports", "tests"] {
        let manifest = fs::read_to_string(root().join(name).join("Cargo.toml")).expect("a manifest");
        binaries.extend(manifest.match_indices("[[bin]]").map(|_| name));
        let has_main = root().join(name).join("src/main.rs").exists();
        assert!(!has_main || name == "scenarios", "{name} has a main.rs");
    }
    assert_eq!(binaries, ["scenarios"]);
}

/// What a reader finds in the tree is what the registry and the scenario files say.
#[test]
fn the_page_of_guards_is_current() {
    let page = mirrorlab_scenarios::guard_page::page(&root().join("scenarios")).expect("readable scenario files");
    let found = fs::read_to_string(root().join("model/GUARDS.md")).unwrap_or_default();
    let renew = mirrorlab_scenarios::guard_page::COMMAND;
    if let Some((n, (is, said))) = page.lines().zip(found.lines()).enumerate().find(|(_, (is, said))| is != said) {
        panic!(
            "model/GUARDS.md is not current, line {}:\n  it says:   {said}\n  should be: {is}\nrenew it: {renew}",
            n + 1
        );
    }
    assert_eq!(page.trim_end(), found.trim_end(), "model/GUARDS.md is not current: it is cut off; renew it: {renew}");
    assert!(
        page.contains("| FetchOffsetMatches | guard |") && page.contains("must_fail/r16_fetch_offset_matches"),
        "{page}"
    );
}

/// The README shows what its first command prints, and not what it once printed.
/// What users read is told in the names of the field, not as Rust writes a value for its own programmers.
#[test]
fn no_debug_text_is_told_to_users() {
    // What `trace.ndjson` has in each line, and one line of it; a list that only tests read.
    const FREE: &[&str] = &["scenarios/src/recorder.rs", "scenarios/src/cli.rs", "scenarios/src/faults/calm.rs"];
    let mut files = Vec::new();
    ["scenarios/src", "reports/src"].iter().for_each(|room| rust_files(&root().join(room), &mut files));
    let mut found = BTreeSet::new();
    for file in files {
        let name = file.strip_prefix(root()).expect("below the workspace").to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(&file).expect("a source file");
        if !name.contains("test") && text.contains(":?}") {
            found.insert(name);
        }
    }
    assert_eq!(found, FREE.iter().map(|name| (*name).to_owned()).collect());
}

#[test]
fn the_first_screen_of_the_readme_is_what_its_command_prints() {
    let readme = fs::read_to_string(root().join("README.md")).expect("a README");
    let command = readme.lines().find(|line| line.starts_with("cargo run --release -- run ")).expect("the one command");
    assert_eq!(command, "cargo run --release -- run scenarios/tour.toml --seed 7");
    let shown = readme.split("```").nth(3).expect("its output");
    let scenario = mirrorlab_scenarios::format::Scenario::load(root().join("scenarios/tour.toml")).expect("a scenario");
    let printed = mirrorlab_reports::text::summary(&scenario.seed(7).run().expect("a run"), None);
    // Those that tell of the machine and of the program, and those that say that lines are left out.
    let other = |line: &&str| {
        line.is_empty() || ["cost", "run folder", "again", "…"].iter().any(|start| line.starts_with(start))
    };
    let old: Vec<&str> =
        shown.lines().filter(|line| !other(line) && !printed.lines().any(|real| real == *line)).collect();
    assert!(
        old.is_empty(),
        "README.md shows what is printed no more; run its first command and copy:\n{}",
        old.join("\n")
    );
    assert!(shown.contains("trace hash") && shown.lines().count() > 10, "{shown}");
}
