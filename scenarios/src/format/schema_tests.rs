//! The schema says of scenario files what the reader says of them: which keys a table may have, and which it must.

use super::*;
use crate::commands::check::collect;
use crate::format::{Problem, Scenario};
use std::collections::BTreeSet;
use std::path::Path;
use toml::{Table, Value as Toml};

/// The files of this crate, and one that uses every key.
fn files() -> Vec<(String, Table)> {
    let mut paths = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    collect(root, &mut paths);
    paths.push(root.join("src/plan/everything.toml"));
    let texts = paths.iter().map(|path| (path.display().to_string(), std::fs::read_to_string(path).unwrap()));
    let tables = texts.map(|(path, text)| (path, toml::from_str::<Table>(&text).unwrap()));
    let files: Vec<_> = tables.filter(|(_, table)| table.contains_key("clusters")).collect();
    assert!(files.len() > 400, "{}", files.len());
    files
}

/// What a schema says of a value: what is wrong with it, and the keys that it knows of those of a table.
#[derive(Default)]
struct Look {
    wrong: Vec<String>,
    keys: BTreeSet<String>,
}

fn is_a(value: &Toml, kind: &str) -> bool {
    match kind {
        "object" => value.is_table(),
        "array" => value.is_array(),
        "string" => value.is_str(),
        "integer" => value.is_integer(),
        "number" => value.is_integer() || value.is_float(),
        "boolean" => value.is_bool(),
        other => panic!("the schema has a type of its own: {other}"),
    }
}

/// A word is not the one that it should be.
const OTHER: &str = "not the word";

/// As much of JSON schema as that of scenario files uses, but for the form of texts and the size of numbers.
fn look(schema: &Value, part: &Value, value: &Toml, at: &str) -> Look {
    let mut found = Look::default();
    let mut wrong = |what: String| found.wrong.push(format!("{at}: {what}"));
    let part = match part.get("$ref").and_then(Value::as_str) {
        Some(target) => schema.pointer(target.trim_start_matches('#')).unwrap(),
        None => part,
    };
    let kinds: Vec<&str> = match part.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        Some(kind) => kind.as_str().into_iter().collect(),
        None => Vec::new(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is_a(value, kind)) {
        wrong(format!("{} is not of type {}", value.type_str(), kinds.join(" or ")));
        return found;
    }
    if part.get("const").is_some_and(|only| only.as_str() != value.as_str()) {
        wrong(format!("{OTHER} {}", part["const"]));
        return found;
    }
    for list in ["oneOf", "anyOf"] {
        let Some(parts) = part.get(list).and_then(Value::as_array) else { continue };
        let (fits, others): (Vec<Look>, Vec<Look>) =
            parts.iter().map(|inner| look(schema, inner, value, at)).partition(|look| look.wrong.is_empty());
        if list == "oneOf" && fits.len() > 1 {
            wrong(format!("{} of `oneOf` fit", fits.len()));
        }
        if fits.is_empty() {
            // Of what is told apart by a word, such as `do`, the one with that word; else whatever is least wrong.
            let is_other = |look: &Look| look.wrong.iter().any(|what| what.contains(OTHER));
            let near = others.into_iter().min_by_key(|look| (is_other(look), look.wrong.len()));
            found.wrong.extend(near.unwrap_or_default().wrong);
            return found;
        }
        fits.into_iter().for_each(|look| found.keys.extend(look.keys));
    }
    if let (Toml::Array(items), Some(inner)) = (value, part.get("items")) {
        items.iter().for_each(|item| found.wrong.extend(look(schema, inner, item, &format!("{at}[]")).wrong));
    }
    let Toml::Table(table) = value else { return found };
    for key in part.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if !table.contains_key(key) {
            found.wrong.push(format!("{at}: `{key}` is missing"));
        }
    }
    if table.len() < part.get("minProperties").and_then(Value::as_u64).unwrap_or(0) as usize {
        found.wrong.push(format!("{at}: too few keys"));
    }
    let (more, mut known) = (part.get("additionalProperties"), std::mem::take(&mut found.keys));
    let is_closed = part.get("unevaluatedProperties") == Some(&Value::Bool(false)) || more == Some(&Value::Bool(false));
    for (key, inner) in table {
        let place = || format!("{at}.{key}");
        if let Some(own) = part.get("properties").and_then(|keys| keys.get(key)) {
            found.wrong.extend(look(schema, own, inner, &place()).wrong);
            known.insert(key.clone());
        } else if let Some(more) = more.filter(|more| more.is_object()) {
            found.wrong.extend(look(schema, more, inner, &place()).wrong);
        } else if is_closed && !known.contains(key) {
            found.wrong.push(format!("{at}: `{key}` is unknown"));
        }
    }
    found.keys = known;
    found
}

fn wrong(schema: &Value, file: &Table) -> Vec<String> {
    look(schema, schema, &Toml::Table(file.clone()), "file").wrong
}

#[test]
fn every_file_fits_the_schema() {
    let schema = schema();
    for (path, file) in files() {
        let wrong = wrong(&schema, &file);
        assert!(wrong.is_empty(), "{path}: {wrong:?}");
    }
}

#[test]
fn the_walker_bites() {
    let schema = schema();
    let text = "title = \"t\"\n[clusters.east]\n";
    let told = |more: &str| wrong(&schema, &toml::from_str(&format!("{text}{more}")).unwrap()).join("; ");
    assert_eq!(told(""), "");
    assert_eq!(told("borkers = 3\n"), "file.clusters.east: `borkers` is unknown");
    assert_eq!(told("brokers = \"3\"\n"), "file.clusters.east.brokers: string is not of type integer");
    let step = |keys: &str| told(&format!("[[timeline]]\n{keys}\n"));
    assert_eq!(step("at = \"1 s\"\ndo = \"kill\"\nnode = \"east/broker-1\"\noperator = 2"), "");
    assert_eq!(step("at = \"1 s\"\ndo = \"kill\""), "file.timeline[]: `node` is missing");
    assert_eq!(step("do = \"kill\"\nnode = \"east/broker-1\""), "file.timeline[]: `at` is missing");
    let unknown = "at = \"1 s\"\ndo = \"kill\"\nnode = \"east/broker-1\"\nlink = \"wan\"";
    assert_eq!(step(unknown), "file.timeline[]: `link` is unknown");
    assert_eq!(told("[chaos]\ncrash = {}\n[chaos.loss]\nwaits = 1"), "file.chaos.loss: `waits` is unknown");
}

/// Tables whose entries files name.
const NAMED: &[&str] = &["clusters", "links", "topics", "mirrors", "producers", "consumers"];

/// Every place of a key in a file, as the steps to its table, and what stands for it in other files.
fn places(value: &Toml, steps: &mut Vec<String>, out: &mut Vec<(Vec<String>, String, String)>) {
    match value {
        Toml::Table(table) => {
            for (key, inner) in table {
                // Of whatever is named by the file, one counts for all; of steps, one of each action.
                let named = steps.len() == 1 && NAMED.contains(&steps[0].as_str());
                let action = table.get("do").and_then(Toml::as_str).unwrap_or_default();
                let is_named = |at: usize| at == 1 && NAMED.contains(&steps[0].as_str());
                let is_number = |step: &String| step.starts_with(|first: char| first.is_ascii_digit());
                let plain = |(at, step): (usize, &String)| {
                    if is_named(at) || is_number(step) {
                        "*".to_owned()
                    } else {
                        step.clone()
                    }
                };
                let parent: Vec<String> = steps.iter().enumerate().map(plain).collect();
                if !named {
                    out.push((steps.clone(), key.clone(), format!("{} {action} {key}", parent.join("."))));
                }
                steps.push(key.clone());
                places(inner, steps, out);
                steps.pop();
            }
        }
        Toml::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                steps.push(at.to_string());
                places(item, steps, out);
                steps.pop();
            }
        }
        _ => {}
    }
}

fn table_at<'a>(file: &'a mut Toml, steps: &[String]) -> &'a mut Table {
    let mut at = file;
    for step in steps {
        at = match at {
            Toml::Array(items) => &mut items[step.parse::<usize>().unwrap()],
            other => &mut other[step.as_str()],
        };
    }
    at.as_table_mut().unwrap()
}

#[test]
fn a_key_is_required_by_the_schema_if_and_only_if_the_reader_misses_it() {
    // What hangs on something else in the file: whether there is one cluster; whether a step drives the producer.
    let hangs = |place: &str| place.ends_with(" on") || place.ends_with(" rate") || place.ends_with(" every");
    let schema = schema();
    let mut seen = BTreeSet::new();
    let mut required = 0;
    for (path, file) in files() {
        let mut found = Vec::new();
        let file = Toml::Table(file);
        places(&file, &mut Vec::new(), &mut found);
        for (steps, key, place) in found {
            // Values of a draw or of a matrix are put in by others; entries of free tables are nobody's to miss.
            let free = ["matrix", "draw", "config", "states", "records", "equals", "files", "toward"];
            if steps.iter().any(|step| free.contains(&step.as_str())) || hangs(&place) || !seen.insert(place.clone()) {
                continue;
            }
            let mut without = file.clone();
            table_at(&mut without, &steps).remove(&key);
            let told = wrong(&schema, without.as_table().unwrap());
            let read = Scenario::parse("x.toml", &toml::to_string(&without).unwrap());
            // Without `do` nobody knows what the other keys are, and that is told in its place.
            let misses = |p: &Problem| {
                p.code == "missing-key"
                    || p.message.contains("does not say who")
                    || (key == "do" && p.code == "unknown-key")
            };
            let missed = read.err().is_some_and(|e| e.problems.iter().any(misses));
            assert_eq!(!told.is_empty(), missed, "{path}: without {place}: {told:?}");
            required += usize::from(missed);
        }
    }
    assert!(required > 60 && seen.len() > 300, "{required} of {}", seen.len());
}
