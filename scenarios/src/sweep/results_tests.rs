//! What a sweep finds when it begins again.

use super::*;
use mirrorlab_reports::record::Verdict;
use mirrorlab_reports::sweep::{FileMark, Finished};

fn head(shard: (u32, u32)) -> Head {
    let file = FileMark { path: "a.toml".into(), hash: "1".into() };
    Head { files: vec![file], seeds: (0, 10), shard, ..Head::default() }
}

fn run(seed: u64) -> Line {
    let run = Finished::without_record("a.toml", seed, Verdict::Panic, "a word".into(), String::new());
    Line::Run(Box::new(run))
}

fn open(folder: &Path, head: &Head) -> Opened {
    super::open(folder, head).unwrap()
}

fn read(path: &Path) -> Vec<Line> {
    lines::read(path).unwrap().lines
}

#[test]
fn a_torn_last_line_does_not_count_and_the_next_one_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = open(folder.path(), &head((1, 1)));
    for seed in [3, 4] {
        first.results.add(&run(seed)).unwrap();
    }
    let path = first.results.path().to_path_buf();
    drop(first);
    let text = std::fs::read(&path).unwrap();
    for cut in [1, 2, 20] {
        std::fs::write(&path, &text[..text.len() - cut]).unwrap();
        let mut again = open(folder.path(), &head((1, 1)));
        assert!(again.totals.has("a.toml", 3) && !again.totals.has("a.toml", 4), "{cut} bytes cut");
        assert!(again.anew.is_none());
        again.results.add(&run(5)).unwrap();
        let seeds: Vec<Line> = read(&path).split_off(1);
        assert_eq!(seeds, [run(3), run(5)], "{cut} bytes cut");
    }
}

#[test]
fn a_line_that_is_none_is_told_with_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = open(folder.path(), &head((1, 1))).results.path().to_path_buf();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}nonsense\n")).unwrap();
    let told = super::open(folder.path(), &head((1, 1))).unwrap_err().to_string();
    assert!(told.contains("line 2 is not one of a sweep's"), "{told}");
}

#[test]
fn runs_of_other_shards_count_whatever_the_division() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), &head((2, 4))).results.add(&run(7)).unwrap();
    let whole = open(folder.path(), &head((1, 1)));
    assert!(whole.totals.has("a.toml", 7));
}

#[test]
fn another_build_begins_anew_and_keeps_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), &head((1, 1))).results.add(&run(7)).unwrap();
    let other = Head { binary: "other".into(), ..head((1, 1)) };
    let opened = open(folder.path(), &other);
    assert_eq!(opened.anew.as_deref(), Some("made by another build"));
    assert!(!opened.totals.has("a.toml", 7));
    let aside = read(&folder.path().join("results-1of1.ndjson.old"));
    assert_eq!(aside, [Line::Head(head((1, 1))), run(7)]);
    drop(opened);
    let mut edited = other.clone();
    edited.files[0].hash = "2".into();
    assert_eq!(open(folder.path(), &edited).anew.as_deref(), Some("a.toml has changed"));
}

#[test]
fn the_folder_of_another_sweep_or_of_one_that_runs_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let held = open(folder.path(), &head((1, 1)));
    let told = super::open(folder.path(), &head((1, 1))).unwrap_err().to_string();
    assert!(told.contains("another sweep writes to this file"), "{told}");
    drop(held);
    let other = Head { seeds: (0, 20), ..head((1, 1)) };
    let told = super::open(folder.path(), &other).unwrap_err().to_string();
    assert!(told.contains("the folder holds another sweep: other seeds"), "{told}");
}
