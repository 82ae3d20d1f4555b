//! A case is the text of a plan as a tree of TOML: what is taken away is a key or an entry, whatever it means, and the reader of
//! scenario files says whether the rest still makes sense. So an action or a table that is new needs nothing here.

use crate::format::Vocabulary;
use crate::plan::Plan;
use crate::units::{Quantity, Time};
use std::sync::Arc;
use toml::{Table, Value};

/// Tables that hold things by name.
pub(super) const CAST: [&str; 6] = ["producers", "consumers", "mirrors", "topics", "links", "clusters"];

/// The tree of a plan.
pub(super) fn of_plan(plan: &Plan) -> Option<Table> {
    plan.to_toml().ok()?.parse().ok()
}

/// The plan of a tree, if it makes sense.
pub(super) fn plan(case: &Table, vocabulary: &Arc<Vocabulary>) -> Option<Plan> {
    Plan::parse("plan.toml", &text(case), vocabulary).ok()
}

/// The text of a tree.
pub(super) fn text(case: &Table) -> String {
    toml::to_string(case).unwrap_or_default()
}

/// The steps of the timeline.
pub(super) fn steps(case: &Table) -> &[Value] {
    case.get("timeline").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The same with other steps.
pub(super) fn with_steps(case: &Table, steps: Vec<Value>) -> Table {
    let mut case = case.clone();
    if steps.is_empty() {
        case.remove("timeline");
    } else {
        case.insert("timeline".to_owned(), Value::Array(steps));
    }
    case
}

/// A table of things by name.
pub(super) fn cast<'a>(case: &'a Table, of: &str) -> Option<&'a Table> {
    case.get(of).and_then(Value::as_table)
}

/// One of them.
pub(super) fn entry_mut<'a>(case: &'a mut Table, of: &str, name: &str) -> Option<&'a mut Table> {
    case.get_mut(of)?.as_table_mut()?.get_mut(name)?.as_table_mut()
}

/// A text by key.
pub(super) fn word<'a>(table: &'a Table, key: &str) -> Option<&'a str> {
    table.get(key).and_then(Value::as_str)
}

/// A number by key.
pub(super) fn number(table: &Table, key: &str) -> Option<i64> {
    table.get(key).and_then(Value::as_integer)
}

/// A duration by key.
pub(super) fn time(table: &Table, key: &str) -> Option<u64> {
    Time::read(word(table, key)?).ok().map(|time| time.0)
}

/// How long a phase lasts.
pub(super) fn set_phase(case: &mut Table, name: &str, value: Value) {
    if let Some(Value::Table(phases)) = case.get_mut("phases") {
        phases.insert(name.to_owned(), value);
    }
}

/// A duration as a text.
pub(super) fn spelled(ns: u64) -> Value {
    Value::String(Time(ns).to_string())
}

/// The instant of a step, if it has one.
pub(super) fn instant(step: &Value) -> Option<u64> {
    time(step.as_table()?, "at")
}

/// Whether a name stands anywhere in a value: as a word of its own, parted by what may stand between names.
pub(super) fn mentions(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => {
            let parts = |c: char| !(c.is_alphanumeric() || c == '-' || c == '_' || c == '.');
            text.split(parts).any(|word| word == name)
        }
        Value::Array(items) => items.iter().any(|item| mentions(item, name)),
        Value::Table(table) => table.values().any(|value| mentions(value, name)),
        _ => false,
    }
}

/// Takes one thing away, and all that speaks of it.
pub(super) fn without(case: &Table, of: &str, name: &str) -> Table {
    let mut case = case.clone();
    if let Some(table) = case.get_mut(of).and_then(Value::as_table_mut) {
        table.remove(name);
        if table.is_empty() {
            case.remove(of);
        }
    }
    match of {
        "clusters" => {
            for (other, keys) in [
                ("topics", &["on"][..]),
                ("mirrors", &["on", "source"]),
                ("producers", &["on"]),
                ("consumers", &["on"]),
            ] {
                retain(&mut case, other, |entry| !keys.iter().any(|key| word(entry, key) == Some(name)));
            }
        }
        "topics" => {
            for other in ["mirrors", "producers", "consumers"] {
                retain(&mut case, other, |entry| {
                    let Some(Value::Array(topics)) = entry.get_mut("topics") else { return true };
                    topics.retain(|topic| !mentions(topic, name));
                    !topics.is_empty()
                });
            }
        }
        _ => {}
    }
    let kept = steps(&case).iter().filter(|step| !mentions(step, name)).cloned().collect();
    with_steps(&case, kept)
}

fn retain(case: &mut Table, of: &str, keep: impl Fn(&mut Table) -> bool) {
    let Some(table) = case.get_mut(of).and_then(Value::as_table_mut) else { return };
    let names: Vec<String> = table.keys().cloned().collect();
    for name in names {
        let kept = table.get_mut(&name).and_then(Value::as_table_mut).is_none_or(&keep);
        if !kept {
            table.remove(&name);
        }
    }
    if table.is_empty() {
        case.remove(of);
    }
}

/// All keys below the tables of the cast, as paths; what a plan cannot be without among them.
pub(super) fn leaves(case: &Table) -> Vec<Vec<String>> {
    let mut out = Vec::new();
    for of in CAST {
        for (name, entry) in cast(case, of).into_iter().flatten() {
            let Some(entry) = entry.as_table() else { continue };
            for (key, value) in entry {
                let path = vec![of.to_owned(), name.clone(), key.clone()];
                match value {
                    Value::Table(inner) if !inner.is_empty() => {
                        out.extend(inner.keys().map(|key| [path.clone(), vec![key.clone()]].concat()));
                        out.push(path);
                    }
                    _ => out.push(path),
                }
            }
        }
    }
    out.push(vec!["wire".to_owned()]);
    out.push(["phases", "boot"].map(str::to_owned).to_vec());
    out.retain(|path| find(case, path).is_some());
    out
}

/// The value at a path.
pub(super) fn find<'a>(case: &'a Table, path: &[String]) -> Option<&'a Value> {
    let (last, up) = path.split_last()?;
    let table = up.iter().try_fold(case, |table, key| table.get(key)?.as_table())?;
    table.get(last)
}

/// The same without the value at a path.
pub(super) fn without_leaf(case: &Table, path: &[String]) -> Option<Table> {
    let mut case = case.clone();
    let (last, up) = path.split_last()?;
    let table = up.iter().try_fold(&mut case, |table, key| table.get_mut(key)?.as_table_mut())?;
    table.remove(last)?;
    Some(case)
}

#[cfg(test)]
#[path = "case_tests.rs"]
mod tests;
