//! Reads `[phases]`, `[chaos]` and `[expect]`.

use super::chaos::{Chaos, ChaosKind, Mode, Strike};
use super::refs::Build;
use super::table::{kind_of, At, Table};
use super::types::{Bounds, Count, Expect, Phases, Reach, Wanted};
use super::{limits, table::Cx};
use crate::units::{clip, Chance, Time};
use std::collections::BTreeMap;
use toml::de::DeValue;

impl Build<'_> {
    pub(crate) fn phases(&mut self, root: &mut Table<'_, '_>) {
        let Some(mut t) = root.table(&mut self.cx, "phases", "[phases]".to_owned()) else { return };
        let default = Phases::default();
        let phases = Phases {
            boot: t.duration(&mut self.cx, "boot").unwrap_or(default.boot),
            safety: t.duration(&mut self.cx, "safety").unwrap_or(default.safety),
            converge: t.duration(&mut self.cx, "converge").unwrap_or(default.converge),
        };
        let total = phases.boot.plus(phases.safety).plus(phases.converge);
        if total > limits::TIME {
            let message = format!("the phases take {total} together");
            self.cx.error(&t.span, "out-of-range", message, "the limit is 10 years (3652.5 d)".to_owned());
        }
        self.stage.phases = phases;
        t.finish(&mut self.cx);
    }

    pub(crate) fn chaos(&mut self, root: &mut Table<'_, '_>) -> Option<Chaos> {
        let mut t = root.table(&mut self.cx, "chaos", "[chaos]".to_owned())?;
        let safety = self.stage.phases.safety;
        let every = t.duration(&mut self.cx, "every").unwrap_or(Time::secs(5));
        let start = t.unit(&mut self.cx, "start").unwrap_or(Time::secs(5));
        let stop = t.unit(&mut self.cx, "stop").unwrap_or(safety);
        let max_down = t.count32(&mut self.cx, "max_down", 0..=limits::BROKERS).unwrap_or(1);
        let max_at_once = t.count32(&mut self.cx, "max_at_once", 1..=10_000).unwrap_or(4);
        let clusters: Vec<String> = self.stage.clusters.keys().cloned().collect();
        let valid = || clusters.iter().map(String::as_str).collect();
        let on = t.names(&mut self.cx, "on", ("cluster", "clusters"), valid);
        if stop > safety {
            let span = t.key_span("stop");
            let message = format!("chaos stops at {stop}, after the safety phase of {safety}");
            self.cx.error(&span, "out-of-range", message, "lower `stop`, or raise `phases.safety`".to_owned());
        }
        let slots = stop.0.saturating_sub(start.0) / every.0;
        if slots > limits::STEPS as u64 {
            let span = t.key_span("every");
            let message = format!("chaos would strike {slots} times");
            self.cx.error(&span, "too-many", message, format!("the limit is {}: raise `every`", limits::STEPS));
        }
        let mut strikes = BTreeMap::new();
        for (key, kind) in ChaosKind::NAMED {
            if let Some(mut inner) = t.table(&mut self.cx, key, format!("[chaos.{key}]")) {
                strikes.insert(*kind, strike(&mut self.cx, &mut inner, *kind));
                inner.finish(&mut self.cx);
            }
        }
        let mode = t.one_of(&mut self.cx, "mode", Mode::NAMED);
        let perturb = t.boolean(&mut self.cx, "perturb").unwrap_or(false);
        self.check_tolerance(&mut t, mode);
        if strikes.values().all(|s| s.weight == 0) {
            let message = "[chaos] has nothing to draw from".to_owned();
            let help = "add a kind with a weight, such as `power_loss = { weight = 2, max = \"5 s\" }`".to_owned();
            self.cx.error(&t.span, "missing-key", message, help);
        }
        t.finish(&mut self.cx);
        Some(Chaos { every, start, stop, max_down, max_at_once, mode, perturb, on, strikes })
    }

    /// What takes acknowledged records is not drawn by accident.
    fn check_tolerance(&mut self, t: &mut Table<'_, '_>, mode: Option<Mode>) {
        if mode == Some(Mode::BeyondTolerance) {
            return;
        }
        for (key, _) in ChaosKind::NAMED.iter().filter(|(_, kind)| kind.is_beyond_tolerance()) {
            if !t.has(key) {
                continue;
            }
            let message = format!("`{key}` can take acknowledged records, however careful the protocol is");
            let help = "write `mode = \"beyond_tolerance\"` in [chaos], or leave it out".to_owned();
            self.cx.error(&t.key_span(key), "conflict", message, help);
        }
    }

    // ------------------------------------------------------------------------------------------------------------ expect

    pub(crate) fn expect(&mut self, root: &mut Table<'_, '_>) {
        let Some(mut t) = root.table(&mut self.cx, "expect", "[expect]".to_owned()) else { return };
        let vocabulary = self.cx.vocabulary;
        let marks = || -> Vec<&str> { vocabulary.marks.iter().map(|m| &**m).collect() };
        let invariants = || vocabulary.invariants.iter().map(|i| &**i).collect();
        let expect = Expect {
            states: self.states(&mut t),
            records: self.records(&mut t),
            must_reach: reaches(&mut self.cx, &mut t, &marks()),
            never_reach: t.names(&mut self.cx, "never_reach", ("mark", "marks"), marks),
            equals: self.equals(&mut t),
            violation: t.names(&mut self.cx, "violation", ("invariant", "invariants"), invariants),
            rpo_records: bounds(&mut self.cx, &mut t, ("rpo_records", "200"), |cx, t, key| {
                t.count(cx, key, 0..=1 << 62).map(|n| n.value)
            }),
            rpo: bounds(&mut self.cx, &mut t, ("rpo", "\"2 s\""), |cx, t, key| t.unit(cx, key)),
            rto: bounds(&mut self.cx, &mut t, ("rto", "\"10 s\""), |cx, t, key| t.unit(cx, key)),
            steps_may_miss: t.boolean(&mut self.cx, "steps_may_miss").unwrap_or(false),
        };
        for key in ["rpo_records", "rpo", "rto"] {
            if self.stage.mirrors.is_empty() && t.has(key) {
                let message = format!("`expect.{key}` is about stops of mirrored topics, and there is no mirror");
                let help =
                    format!("add a `[mirrors.NAME]` table and a step `do = \"stop-mirror\"`, or leave `{key}` out");
                self.cx.error(&t.key_span(key), "conflict", message, help);
            }
        }
        self.stage.expect = expect;
        t.finish(&mut self.cx);
    }

    fn states(&mut self, t: &mut Table<'_, '_>) -> BTreeMap<String, String> {
        let mut states = BTreeMap::new();
        let Some(inner) = t.table(&mut self.cx, "states", "`expect.states`".to_owned()) else { return states };
        for (key, value) in inner.entries() {
            let topic = self.mirrored(&key);
            let DeValue::String(text) = value.get_ref() else {
                let message =
                    format!("the state of `{}` is a text, not {}", clip(&key.value, 60), kind_of(value.get_ref()));
                self.cx.error(&value.span(), "wrong-type", message, "write it as \"MIRRORING\"".to_owned());
                continue;
            };
            let state = self.state(&At { value: text.to_string(), span: value.span() });
            if let Some(((mirror, topic, _), state)) = topic.zip(state) {
                states.insert(format!("{mirror}/{topic}"), state);
            }
        }
        states
    }

    fn records(&mut self, t: &mut Table<'_, '_>) -> BTreeMap<String, Count> {
        let mut records = BTreeMap::new();
        let Some(inner) = t.table(&mut self.cx, "records", "`expect.records`".to_owned()) else { return records };
        for (key, value) in inner.entries() {
            let topic = self.topic_somewhere(&key);
            let count = match value.get_ref() {
                DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).ok().map(Count::Exactly),
                DeValue::Table(map) => {
                    let mut t = Table::new(format!("`expect.records.{}`", clip(&key.value, 60)), value.span(), map);
                    let at_least = t.count(&mut self.cx, "at_least", 0..=1 << 62).map_or(0, |n| n.value);
                    let at_most = t.count(&mut self.cx, "at_most", at_least..=1 << 62).map(|n| n.value);
                    t.finish(&mut self.cx);
                    Some(Count::Within { at_least, at_most })
                }
                _ => None,
            };
            match count {
                None => {
                    let message = format!("the records of `{}` are not a number from 0", clip(&key.value, 60));
                    let help = "write a number, or `{ at_least = 100, at_most = 200 }`".to_owned();
                    self.cx.error(&value.span(), "wrong-type", message, help);
                }
                Some(count) => {
                    if let Some((cluster, topic, _)) = topic {
                        records.insert(format!("{cluster}/{topic}"), count);
                    }
                }
            }
        }
        records
    }

    fn equals(&mut self, t: &mut Table<'_, '_>) -> Vec<super::types::Equal> {
        let mut equals = Vec::new();
        let Some(inner) = t.table(&mut self.cx, "equals", "`expect.equals`".to_owned()) else { return equals };
        for (key, value) in inner.entries() {
            let wanted = match value.get_ref() {
                DeValue::String(text) => Some(Wanted::Name(text.to_string())),
                DeValue::Boolean(b) => Some(Wanted::Truth(*b)),
                DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok().map(Wanted::Number),
                _ => None,
            };
            let Some(wanted) = wanted else {
                let message = format!("`{}` cannot equal {}", clip(&key.value, 60), kind_of(value.get_ref()));
                self.cx.error(
                    &value.span(),
                    "wrong-type",
                    message,
                    "write a number, a name in quotes, or true".to_owned(),
                );
                continue;
            };
            equals.extend(self.equal(&key, &At { value: wanted, span: value.span() }));
        }
        equals.sort_by(|a: &super::types::Equal, b| a.term.cmp(&b.term));
        equals
    }
}

fn strike(cx: &mut Cx<'_>, t: &mut Table<'_, '_>, kind: ChaosKind) -> Strike {
    let weight = t.count32(cx, "weight", 0..=1_000_000).unwrap_or(1);
    let min = t.duration(cx, "min");
    let max = t.duration(cx, "max");
    let count = t.count32(cx, "count", 0..=100_000);
    if let Some((min, max)) = min.zip(max).filter(|(min, max)| min > max) {
        let span = t.key_span("max");
        let message = format!("the longest is shorter than the shortest in {}: {max} and {min}", t.what);
        cx.error(&span, "conflict", message, "swap `min` and `max`".to_owned());
    }
    let (shortest, longest) = kind.default_length();
    let max = max.unwrap_or_else(|| longest.max(min.unwrap_or_default()));
    let min = min.unwrap_or_else(|| shortest.min(max));
    let inside_task = if kind.can_fall_inside_a_task() { t.chance(cx, "inside_task") } else { None };
    let inside_task = inside_task.unwrap_or(Chance(0));
    Strike { weight, min, max, count, inside_task }
}

/// Marks, each valid and written once: by name, or with how often.
fn reaches(cx: &mut Cx<'_>, t: &mut Table<'_, '_>, marks: &[&str]) -> Vec<Reach> {
    let mut found: Vec<Reach> = Vec::new();
    let Some(value) = t.raw("must_reach") else { return found };
    let DeValue::Array(items) = value.get_ref() else {
        let message = format!("`must_reach` in {} is a list of marks, not {}", t.what, kind_of(value.get_ref()));
        cx.error(&value.span(), "wrong-type", message, "write it as [\"mirrored\"]".to_owned());
        return found;
    };
    for item in items.iter() {
        let (at, counted) = match item.get_ref() {
            DeValue::String(text) => (At { value: text.to_string(), span: item.span() }, None),
            DeValue::Table(map) => {
                let mut inner = Table::new("an entry of `must_reach`".to_owned(), item.span(), map);
                for key in ["mark", "at_least"] {
                    if !inner.has(key) {
                        inner.missing(cx, key, if key == "mark" { "\"aligned\"" } else { "2" });
                    }
                }
                let mark = inner.text(cx, "mark");
                let least = inner.count(cx, "at_least", 1..=1 << 62).map(|n| n.value);
                let most = inner.count(cx, "at_most", least.unwrap_or(1)..=1 << 62).map(|n| n.value);
                inner.finish(cx);
                let Some(mark) = mark else { continue };
                (mark, least.map(|least| (least, most)))
            }
            other => {
                let message = format!("`must_reach` lists marks; this is {}", kind_of(other));
                let help = "write \"aligned\", or { mark = \"aligned\", at_least = 2 }".to_owned();
                cx.error(&item.span(), "wrong-type", message, help);
                continue;
            }
        };
        if !marks.contains(&&*at.value) {
            cx.unknown(&at, "unknown-name", ("mark", "marks"), marks.iter().copied());
        } else if found.iter().any(|reach| reach.mark() == at.value) {
            let message = format!("`{}` stands twice in `must_reach`", at.value);
            cx.error(&at.span, "duplicate", message, "remove one of the two".to_owned());
        } else {
            let mark = at.value;
            found.push(match counted {
                Some((at_least, at_most)) => Reach::Times { mark, at_least, at_most },
                None => Reach::Once(mark),
            });
        }
    }
    found
}

fn bounds<T: PartialOrd>(
    cx: &mut Cx<'_>,
    t: &mut Table<'_, '_>,
    (key, example): (&'static str, &str),
    read: impl Fn(&mut Cx<'_>, &mut Table<'_, '_>, &'static str) -> Option<T>,
) -> Option<Bounds<T>> {
    let mut inner = t.table(cx, key, format!("`expect.{key}`"))?;
    let mut at = |name: &'static str| read(cx, &mut inner, name);
    let bounds = Bounds { p50: at("p50"), p90: at("p90"), p99: at("p99"), p999: at("p999"), max: at("max") };
    let named = [
        ("p50", &bounds.p50),
        ("p90", &bounds.p90),
        ("p99", &bounds.p99),
        ("p999", &bounds.p999),
        ("max", &bounds.max),
    ];
    let given: Vec<(&str, &T)> = named.into_iter().filter_map(|(name, bound)| Some((name, bound.as_ref()?))).collect();
    if given.is_empty() && inner.entries().is_empty() {
        let help = format!("write `{key} = {{ p99 = {example} }}`, or leave it out");
        cx.error(&inner.span, "missing-key", format!("`expect.{key}` bounds nothing"), help);
    }
    // What half of them may not exceed, all of them may not be held to less.
    for pair in given.windows(2).filter(|pair| pair[0].1 > pair[1].1) {
        let (low, high) = (pair[0].0, pair[1].0);
        let message = format!("`expect.{key}` bounds {high} lower than {low}: no run could use the bound of {low}");
        cx.error(&inner.key_span(high), "conflict", message, format!("raise `{high}`, or leave `{low}` out"));
    }
    inner.finish(cx);
    Some(bounds)
}

/// Reads a seed: a whole number, or hexadecimal digits in quotes for those above 2^63.
pub(crate) fn seed(cx: &mut Cx<'_>, t: &mut Table<'_, '_>, key: &'static str) -> Option<u64> {
    if let Some(DeValue::String(text)) = t.raw(key).map(|v| v.get_ref()) {
        if let Some(seed) = text.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
            return Some(seed);
        }
    }
    // TOML knows no larger numbers.
    let large = match t.raw(key).map(|v| (v.get_ref(), v.span())) {
        Some((DeValue::String(text), span)) => Some((text.parse::<u64>(), span)),
        Some((DeValue::Integer(number), span)) if number.radix() == 10 => Some((number.as_str().parse::<u64>(), span)),
        _ => None,
    };
    if let Some((Ok(seed), span)) =
        large.filter(|(seed, _)| seed.as_ref().is_ok_and(|seed| i64::try_from(*seed).is_err()))
    {
        let message = format!("`{key}` in {} is above {}, where the numbers of TOML end", t.what, i64::MAX);
        cx.error(&span, "out-of-range", message, format!("write it as a text: `{key} = \"{seed:#x}\"`"));
        return None;
    }
    t.count(cx, key, 0..=i64::MAX as u64).map(|at| at.value)
}
