//! `scenarios/PEERS.md` says what is there: each peer case has its id in a name, or a reason why it has not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_path_buf()
}

/// What the page says: all ids, and the rows of its tables by id, with the heading that they stand under.
struct Page {
    ids: BTreeSet<String>,
    rows: BTreeMap<String, (String, String)>,
}

fn page() -> Page {
    let text = fs::read_to_string(root().join("scenarios/PEERS.md")).expect("the page of peer cases");
    let mut page = Page { ids: BTreeSet::new(), rows: BTreeMap::new() };
    let (mut in_list, mut heading) = (false, "");
    for line in text.lines() {
        if line.starts_with("```") {
            in_list = !in_list;
        } else if in_list {
            let mut words = line.split_whitespace();
            let group = words.next().expect("a group");
            page.ids.extend(words.map(|number| format!("{group}-{number}")));
        } else if let Some(title) = line.strip_prefix("## ") {
            heading = title;
        } else if let Some(row) = line.strip_prefix("| ").filter(|row| !row.starts_with("case |")) {
            let cells: Vec<&str> = row.trim_end_matches('|').split('|').map(str::trim).collect();
            let [id, _, why] = cells[..] else { panic!("a row has three cells: {line}") };
            let twice = page.rows.insert(id.to_owned(), (heading.to_owned(), why.to_owned()));
            assert!(twice.is_none(), "{id} stands twice");
        }
    }
    page
}

/// `FOV-04` as it stands in names.
fn in_names(id: &str) -> String {
    format!("{}_", id.to_lowercase().replace('-', "_"))
}

fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, ending, found);
        } else if path.extension().is_some_and(|e| e == ending) {
            found.push(path);
        }
    }
}

/// Names of scenario files in `peer/`, with the cases that they say they are of, and names of tests.
fn named() -> (BTreeMap<String, BTreeSet<String>>, Vec<String>) {
    let (mut scenarios, mut sources) = (Vec::new(), Vec::new());
    files(&root().join("scenarios/peer"), "toml", &mut scenarios);
    files(&root().join("model/src"), "rs", &mut sources);
    let origins = scenarios.iter().map(|path| {
        let text = fs::read_to_string(path).expect("a scenario");
        let origin = text.lines().find_map(|line| line.strip_prefix("origin = ")).unwrap_or_default();
        let cases = origin.trim_matches('"').split(',').map(|id| id.trim().to_owned()).collect();
        (path.file_stem().expect("a name").to_string_lossy().into_owned(), cases)
    });
    let mut tests = Vec::new();
    for path in &sources {
        let text = fs::read_to_string(path).expect("a source file");
        let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("fn "));
        tests.extend(lines.filter_map(|line| line.split('(').next()).map(str::to_owned));
    }
    (origins.collect(), tests)
}

#[test]
fn every_peer_case_has_a_name_or_a_reason() {
    let page = page();
    assert_eq!(page.ids.len(), 134);
    let (scenarios, tests) = named();
    for id in &page.ids {
        let prefix = in_names(id);
        let shown = scenarios.keys().chain(&tests).any(|name| name.starts_with(&prefix));
        let left = page.rows.get(id).is_some_and(|(heading, _)| heading == "Left");
        assert_ne!(shown, left, "{id}: is shown {shown}, said to be left {left}");
    }
    for (id, (_, why)) in &page.rows {
        assert!(page.ids.contains(id), "{id} is none of the cases");
        assert!(why.len() >= 10, "{id} is listed without a reason");
    }
}

/// A file is found by its case, and says which one it is of.
#[test]
fn a_peer_file_is_named_by_its_case() {
    let page = page();
    for (name, cases) in named().0 {
        assert!(cases.iter().any(|id| name.starts_with(&in_names(id))), "{name} says that it is of {cases:?}");
        // Groups that are not on the page come with other features.
        let other = |id: &String| id.starts_with("META-");
        assert!(cases.iter().all(|id| page.ids.contains(id) || other(id)), "{name} says that it is of {cases:?}");
    }
}
