//! Shorter times: the end of the safety phase, pauses between steps, how long faults last; then less traffic; then rounder
//! numbers, for a reader.

use super::case::{cast, entry_mut, instant, set_phase, spelled, steps, time, with_steps, word};
use super::search::{Control, Search};
use crate::units::{Quantity, Rate};
use toml::{Table, Value};

/// A millisecond: no time of a plan is made shorter.
const LEAST: u64 = 1_000_000;
/// Grains that times are rounded to, in nanoseconds; the coarsest first.
const GRAINS: [u64; 6] = [10_000_000_000, 1_000_000_000, 500_000_000, 100_000_000, 10_000_000, 1_000_000];
/// Steps that stand for the traffic of a generator, at most.
const PRODUCE_STEPS_MAX: usize = 3;

/// Nothing is planned for after what broke: the safety phase ends there.
pub(super) fn cut_the_end(search: &mut Search<'_>) {
    let safety = phase(&search.best, "safety").unwrap_or(0);
    if search.outcome.broke_in_safety() {
        let end = search.outcome.broke_ns.saturating_sub(search.outcome.base_ns);
        let up = |grain: u64| (end / grain + 1) * grain;
        let ends = [up(1_000_000_000), up(100_000_000), up(LEAST)];
        let mut done = false;
        for end in ends.into_iter().filter(|end| *end <= safety).rev() {
            done = done || search.attempt_edit(|case| end_at(case, end));
        }
        return;
    }
    let last = steps(&search.best).iter().filter_map(instant).max().unwrap_or(0);
    for end in [last + LEAST, last + 1_000_000_000, last + (safety.saturating_sub(last)) / 2] {
        if end < safety && search.attempt_edit(|case| end_at(case, end)) {
            break;
        }
    }
}

/// What breaks when the last phase is over is waited for no longer than it takes: a mutant's stall is one if without the mutant
/// everything converges in that time.
pub(super) fn less_to_wait(search: &mut Search<'_>) {
    if !search.outcome.is_stall() || search.control == Control::Nothing {
        return;
    }
    search.control = Control::Converges;
    search.whole_wait = search.best.get("phases").and_then(|phases| phases.get("converge")).cloned();
    for wait in [10_000_000_000, 30_000_000_000, 60_000_000_000] {
        let is_less = phase(&search.best, "converge").is_some_and(|now| wait < now);
        if is_less && search.attempt_edit(|case| set_phase(case, "converge", spelled(wait))) {
            return;
        }
    }
    (search.control, search.whole_wait) = (Control::Differs, None);
}

fn phase(case: &Table, name: &str) -> Option<u64> {
    time(case.get("phases")?.as_table()?, name)
}

/// The safety phase ends there; steps behind it go, and so do ends of clients, which are none any more.
fn end_at(case: &mut Table, end: u64) {
    set_phase(case, "safety", spelled(end));
    let kept = steps(case).iter().filter(|step| instant(step).is_none_or(|at| at < end)).cloned().collect();
    *case = with_steps(case, kept);
    for of in ["producers", "consumers"] {
        let names: Vec<String> = cast(case, of).into_iter().flat_map(|t| t.keys().cloned()).collect();
        for name in names {
            let Some(entry) = entry_mut(case, of, &name) else { continue };
            if time(entry, "stop").is_some_and(|stop| stop >= end) {
                entry.remove("stop");
            }
        }
    }
}

/// Steps come sooner after one another.
pub(super) fn shorter_pauses(search: &mut Search<'_>) {
    let count = steps(&search.best).len();
    for n in 0..count {
        for share in [0, 1, 2, 3] {
            let all = steps(&search.best);
            let Some(at) = all.get(n).and_then(instant) else { break };
            let before = all[..n].iter().filter_map(instant).max().unwrap_or(0);
            let pause = at.saturating_sub(before);
            let less = pause - pause * share / 4;
            if less < LEAST {
                break;
            }
            let sooner =
                all.iter().enumerate().map(|(m, step)| if m >= n { shifted(step, less) } else { step.clone() });
            let candidate = with_steps(&search.best, sooner.collect());
            let end = phase(&candidate, "safety").unwrap_or(0).saturating_sub(less);
            let mut shorter = candidate.clone();
            set_phase(&mut shorter, "safety", spelled(end.max(LEAST)));
            if search.attempt(shorter) || search.attempt(candidate) {
                break;
            }
        }
    }
}

/// A step that comes sooner.
fn shifted(step: &Value, less: u64) -> Value {
    let mut step = step.clone();
    let at = instant(&step);
    if let (Some(at), Some(table)) = (at, step.as_table_mut()) {
        table.insert("at".to_owned(), spelled(at.saturating_sub(less)));
    }
    step
}

/// The keys of a step that are durations.
fn durations(step: &Value) -> Vec<String> {
    let Some(table) = step.as_table() else { return Vec::new() };
    let keys = table.keys().filter(|key| !matches!(key.as_str(), "at" | "within" | "every"));
    keys.filter(|key| time(table, key).is_some()).cloned().collect()
}

/// Faults last shorter, and delay less.
pub(super) fn shorter_faults(search: &mut Search<'_>) {
    for n in 0..steps(&search.best).len() {
        for key in steps(&search.best).get(n).map(durations).unwrap_or_default() {
            while let Some(now) = duration(&search.best, n, &key) {
                let mut tried = [LEAST, now / 10, now / 2].into_iter().filter(|t| *t >= LEAST && *t < now);
                if !tried.any(|t| search.attempt_edit(|case| set_duration(case, n, &key, t))) {
                    break;
                }
            }
        }
    }
}

fn duration(case: &Table, step: usize, key: &str) -> Option<u64> {
    time(steps(case).get(step)?.as_table()?, key)
}

fn set_duration(case: &mut Table, step: usize, key: &str, ns: u64) {
    let steps = case.get_mut("timeline").and_then(Value::as_array_mut);
    if let Some(table) = steps.and_then(|steps| steps.get_mut(step)?.as_table_mut()) {
        table.insert(key.to_owned(), spelled(ns));
    }
}

/// Producers write fewer records, in fewer goes.
pub(super) fn less_traffic(search: &mut Search<'_>) {
    let names: Vec<String> = cast(&search.best, "producers").into_iter().flat_map(|t| t.keys().cloned()).collect();
    for name in names {
        fewer_per_time(search, &name);
        spelled_out(search, &name);
        fewer_in_all(search, &name);
    }
    for n in 0..steps(&search.best).len() {
        while let Some(now) = records_of(&search.best, n).filter(|now| *now > 1) {
            let mut tried = [1, now / 10, now / 2].into_iter().filter(|t| *t >= 1 && *t < now);
            if !tried.any(|t| search.attempt_edit(|case| set_records(case, n, t))) {
                break;
            }
        }
    }
}

fn records_of(case: &Table, step: usize) -> Option<i64> {
    steps(case).get(step)?.as_table()?.get("records")?.as_integer()
}

fn set_records(case: &mut Table, step: usize, records: i64) {
    let steps = case.get_mut("timeline").and_then(Value::as_array_mut);
    if let Some(table) = steps.and_then(|steps| steps.get_mut(step)?.as_table_mut()) {
        table.insert("records".to_owned(), Value::Integer(records));
    }
}

fn rate(search: &Search<'_>, name: &str) -> Option<Rate> {
    Rate::read(word(cast(&search.best, "producers")?.get(name)?.as_table()?, "rate")?).ok()
}

fn fewer_per_time(search: &mut Search<'_>, name: &str) {
    while let Some(now) = rate(search, name).filter(|rate| rate.count > 1) {
        let mut tried = [1, now.count / 10, now.count / 2].into_iter().filter(|n| *n >= 1 && *n < now.count);
        let better = tried.any(|count| {
            let text = Rate { count, per: now.per }.to_string();
            search.attempt_edit(|case| set(case, name, "rate", Some(Value::String(text))))
        });
        if !better {
            return;
        }
    }
}

fn set(case: &mut Table, producer: &str, key: &str, value: Option<Value>) {
    let Some(entry) = entry_mut(case, "producers", producer) else { return };
    match value {
        Some(value) => entry.insert(key.to_owned(), value),
        None => entry.remove(key),
    };
}

/// The generator gives way to a few steps that say when how much is written: at once, or at once and behind each step. Only if
/// less happens then.
fn spelled_out(search: &mut Search<'_>, name: &str) {
    if rate(search, name).is_none() {
        return;
    }
    let mut instants: Vec<u64> = steps(&search.best).iter().filter_map(instant).map(|at| at + 500 * LEAST).collect();
    instants.truncate(PRODUCE_STEPS_MAX - 1);
    instants.insert(0, LEAST);
    for (count, records) in [(1, 1), (1, 10), (1, 100), (PRODUCE_STEPS_MAX, 10)] {
        let produce = |at: &u64| {
            let mut step = Table::new();
            step.insert("at".to_owned(), spelled(*at));
            step.insert("do".to_owned(), Value::String("produce".to_owned()));
            step.insert("producer".to_owned(), Value::String(name.to_owned()));
            step.insert("records".to_owned(), Value::Integer(records));
            Value::Table(step)
        };
        let mut all = steps(&search.best).to_vec();
        all.extend(instants.iter().take(count).map(produce));
        all.sort_by_key(instant);
        let mut candidate = with_steps(&search.best, all);
        ["rate", "records"].into_iter().for_each(|key| set(&mut candidate, name, key, None));
        if search.attempt_if(candidate, |new, old| new.events < old.events / 10 * 9) {
            return;
        }
    }
}

/// It ends after so many records.
fn fewer_in_all(search: &mut Search<'_>, name: &str) {
    if rate(search, name).is_none() {
        return;
    }
    let written = i64::try_from(search.outcome.records).unwrap_or(i64::MAX);
    let mut most = written;
    for records in [1, 10, 100, 1_000] {
        if records < most && search.attempt_edit(|case| set(case, name, "records", Some(Value::Integer(records)))) {
            most = records;
            break;
        }
    }
    while most < written && most > 1 {
        let less = most / 2;
        if !search.attempt_edit(|case| set(case, name, "records", Some(Value::Integer(less)))) {
            return;
        }
        most = less;
    }
}

/// Rounder instants and durations, where that changes nothing.
pub(super) fn rounder_times(search: &mut Search<'_>) {
    for n in 0..steps(&search.best).len() {
        let Some(step) = steps(&search.best).get(n) else { return };
        let mut keys = durations(step);
        keys.extend(instant(step).map(|_| "at".to_owned()));
        for key in keys {
            let Some(now) = duration(&search.best, n, &key) else { continue };
            let round = |grain: &u64| [now / grain * grain, now.div_ceil(*grain) * grain];
            let mut tried = GRAINS.iter().filter(|grain| **grain <= now.max(LEAST)).flat_map(round);
            let _ = tried.any(|t| t == now || search.attempt_edit(|case| set_duration(case, n, &key, t)));
        }
    }
}
