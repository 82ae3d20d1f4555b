//! What is taken away, in this order: steps; clients, mirrors, topics, links and clusters; partitions, replicas and brokers;
//! switches of the registry; and whatever a file need not say.

use super::case::{cast, entry_mut, leaves, mentions, number, steps, with_steps, without, without_leaf, word, CAST};
use super::search::{Control, Search};
use crate::plan::Plan;
use mirrorlab_model::guards::{self, Kind};
use toml::{Table, Value};

/// Fewer steps.
pub(super) fn fewer_steps(search: &mut Search<'_>) {
    let count = steps(&search.best).len();
    search.keep_fewest(count, |base, kept| {
        let steps = steps(base);
        with_steps(base, kept.iter().map(|n| steps[*n].clone()).collect())
    });
}

/// Fewer clients, then mirrors, topics, links and clusters.
pub(super) fn fewer_things(search: &mut Search<'_>) {
    for of in CAST {
        let names: Vec<String> = cast(&search.best, of).into_iter().flat_map(|table| table.keys().cloned()).collect();
        search.keep_fewest(names.len(), |base, kept| {
            let gone = names.iter().enumerate().filter(|(n, _)| !kept.contains(n));
            gone.fold(base.clone(), |case, (_, name)| without(&case, of, name))
        });
        for name in names {
            if cast(&search.best, of).is_some_and(|table| table.contains_key(&name)) {
                search.attempt_under_seeds(without(&search.best, of, &name));
            }
        }
    }
}

/// Smaller numbers: of clients alike, partitions, topics alike, replicas, brokers, controllers.
pub(super) fn smaller_numbers(search: &mut Search<'_>) {
    for of in ["producers", "consumers", "topics"] {
        each(search, of, |search, name| {
            if of == "topics" {
                fewer_partitions(search, name);
            }
            let count = entry(search, of, name).and_then(|entry| number(entry, "count"));
            smaller(search, count, |case, n| {
                if let Some(entry) = entry_mut(case, of, name) {
                    entry.insert("count".to_owned(), Value::Integer(n));
                }
            });
        });
    }
    each(search, "clusters", |search, name| {
        for key in ["controllers", "brokers"] {
            let count = entry(search, "clusters", name).and_then(|entry| number(entry, key));
            smaller(search, count, |case, n| with_nodes(case, name, key, n));
        }
    });
    each(search, "topics", |search, name| {
        let replicas = entry(search, "topics", name).and_then(|entry| number(entry, "rf"));
        smaller(search, replicas, |case, n| with_replicas(case, name, n));
    });
}

fn each(search: &mut Search<'_>, of: &str, mut work: impl FnMut(&mut Search<'_>, &str)) {
    let names: Vec<String> = cast(&search.best, of).into_iter().flat_map(|table| table.keys().cloned()).collect();
    names.iter().for_each(|name| work(search, name));
}

fn entry<'a>(search: &'a Search<'_>, of: &str, name: &str) -> Option<&'a Table> {
    cast(&search.best, of)?.get(name)?.as_table()
}

/// Tries 1, then half, then one less, as long as that helps.
fn smaller(search: &mut Search<'_>, from: Option<i64>, set: impl Fn(&mut Table, i64)) {
    let Some(mut now) = from else { return };
    while now > 1 {
        let tried = [1, now / 2, now - 1];
        let Some(next) = tried.into_iter().find(|n| *n >= 1 && search.attempt_edit(|case| set(case, *n))) else {
            return;
        };
        now = next;
    }
}

/// Fewer partitions; steps that name one that is gone name the first instead, if they cannot go.
fn fewer_partitions(search: &mut Search<'_>, name: &str) {
    let partitions = entry(search, "topics", name).and_then(|entry| number(entry, "partitions"));
    let topic = entry(search, "topics", name).and_then(|entry| word(entry, "name")).unwrap_or(name).to_owned();
    for renumber in [false, true] {
        smaller(search, partitions, |case, n| {
            if let Some(entry) = entry_mut(case, "topics", name) {
                entry.insert("partitions".to_owned(), Value::Integer(n));
            }
            let mut kept = steps(case).to_vec();
            for step in kept.iter_mut().filter_map(Value::as_table_mut) {
                let of_topic = word(step, "topic").is_some_and(|named| named == topic);
                if of_topic && renumber && number(step, "partition").is_some_and(|p| p >= n) {
                    step.insert("partition".to_owned(), Value::Integer(0));
                }
            }
            *case = with_steps(case, kept);
        });
    }
}

/// So many brokers or controllers: replicas and steps have to fit.
fn with_nodes(case: &mut Table, cluster: &str, key: &str, n: i64) {
    let kind = key.trim_end_matches('s');
    let before = entry_mut(case, "clusters", cluster).and_then(|entry| {
        let before = number(entry, key)?;
        entry.insert(key.to_owned(), Value::Integer(n));
        if key == "brokers" {
            clamp(entry, "default_rf", n);
            let rf = number(entry, "default_rf").unwrap_or(n);
            clamp(entry, "min_isr", (rf - 1).max(1));
        }
        Some(before)
    });
    let gone: Vec<String> = (n + 1..=before.unwrap_or(n)).map(|n| format!("{kind}-{n}")).collect();
    let names_gone = |step: &Value| mentions(step, cluster) && gone.iter().any(|node| mentions(step, node));
    let kept = steps(case).iter().filter(|step| !names_gone(step)).cloned().collect();
    *case = with_steps(case, kept);
    if key == "brokers" {
        let topics: Vec<String> = cast(case, "topics").into_iter().flat_map(|t| t.keys().cloned()).collect();
        for topic in topics {
            let on = entry_mut(case, "topics", &topic).is_some_and(|entry| word(entry, "on") == Some(cluster));
            let rf = entry_mut(case, "topics", &topic).and_then(|entry| number(entry, "rf"));
            if on && rf.is_some_and(|rf| rf > n) {
                with_replicas(case, &topic, n);
            }
        }
    }
}

fn with_replicas(case: &mut Table, topic: &str, n: i64) {
    let Some(entry) = entry_mut(case, "topics", topic) else { return };
    entry.insert("rf".to_owned(), Value::Integer(n));
    let Some(Value::Table(config)) = entry.get_mut("config") else { return };
    let min = config.get("min.insync.replicas").and_then(Value::as_str).and_then(|text| text.parse::<i64>().ok());
    if min.is_some_and(|min| min > n) {
        config.insert("min.insync.replicas".to_owned(), Value::String(n.to_string()));
    }
}

fn clamp(entry: &mut Table, key: &str, most: i64) {
    if number(entry, key).is_some_and(|n| n > most) {
        entry.insert(key.to_owned(), Value::Integer(most));
    }
}

/// If the plan fails in the same way with every guard on and every quirk off, what is switched has no part in it, and goes: true.
pub(super) fn without_switches(search: &mut Search<'_>) -> bool {
    let plan = search.plan.clone();
    if search.control == Control::Nothing || !search.fails_without_mutant(&plan) {
        return false;
    }
    search.control = Control::Nothing;
    search.attempt_edit(|case| {
        case.insert("profile".to_owned(), Value::String("corrected".to_owned()));
        ["guards_off", "quirks", "quirks_off"].into_iter().for_each(|key| drop(case.remove(key)));
    });
    true
}

/// Guards that are off and quirks that are on: those that do it alone.
pub(super) fn fewer_switches(search: &mut Search<'_>) {
    // A profile stands for a list of quirks.
    let on = quirks_on(&search.plan);
    if word(&search.best, "profile") != Some("corrected") {
        search.attempt_edit(|case| {
            case.insert("profile".to_owned(), Value::String("corrected".to_owned()));
            case.remove("quirks_off");
            case.insert("quirks".to_owned(), Value::Array(on.into_iter().map(Value::String).collect()));
        });
    }
    for key in ["perturb", "perturb_always", "guards_off", "quirks", "quirks_off"] {
        let count = search.best.get(key).and_then(Value::as_array).map_or(0, Vec::len);
        search.keep_fewest(count, |base, kept| {
            let mut case = base.clone();
            let all = base.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
            let kept: Vec<Value> = kept.iter().map(|n| all[*n].clone()).collect();
            if kept.is_empty() {
                case.remove(key);
            } else {
                case.insert(key.to_owned(), Value::Array(kept));
            }
            case
        });
    }
}

/// The quirks that are on in a plan, whoever switched them on.
pub(super) fn quirks_on(plan: &Plan) -> Vec<String> {
    let set = plan.guards();
    let quirks = guards::rows().filter(|row| row.kind != Kind::Guard && set.is_on(row.id));
    quirks.map(|row| row.name.to_owned()).collect()
}

/// Whatever the file need not say: it says the same without, or fails in the same way with what is usual, if that is no more.
pub(super) fn fewer_words(search: &mut Search<'_>) {
    for path in leaves(&search.best) {
        if let Some(candidate) = without_leaf(&search.best, &path) {
            search.attempt_if(candidate, |new, old| new.records <= old.records);
        }
    }
}
