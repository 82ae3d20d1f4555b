//! Reads `[[timeline]]`: the trigger of each step here, its action in `timeline_actions.rs`.

use super::action::{Action, After, Step, Trigger, ANY_ANSWER};
use super::diagnostics::suggest;
use super::limits;
use super::refs::{Build, TopicFact};
use super::table::{kind_of, At, Table};
use crate::units::{clip, Quantity, Time};
use mirrorlab_model::wire::errors::ErrorCode;
use toml::de::DeValue;

impl Build<'_> {
    /// Looks through the steps for what others may refer to: names of steps, topics that steps create, producers that steps
    /// drive. What is wrong there is reported when the steps themselves are read.
    pub(crate) fn foresee(&mut self, root: &mut Table<'_, '_>) {
        let Some(DeValue::Array(items)) = root.raw("timeline").map(|v| v.get_ref()) else { return };
        for item in items.iter().take(limits::STEPS) {
            let DeValue::Table(map) = item.get_ref() else { continue };
            let text = |key: &str| map.get(key).and_then(|v| v.get_ref().as_str()).map(str::to_owned);
            if let Some(name) = text("name") {
                self.steps.insert(name);
            }
            let operator = map.get("operator").and_then(|v| v.get_ref().as_integer());
            let operator = operator.and_then(|n| u32::from_str_radix(n.as_str(), n.radix()).ok()).unwrap_or(1);
            self.operators = self.operators.max(operator.min(limits::OPERATORS));
            match text("do").as_deref() {
                Some("produce") => self.driven.extend(text("producer")),
                Some("delete-mirror") => self.deleted.extend(text("mirror")),
                Some("create-topic") => {
                    let only =
                        (self.stage.clusters.len() == 1).then(|| self.stage.clusters.keys().next().cloned()).flatten();
                    let Some((on, topic)) = text("on").or(only).zip(text("topic")) else { continue };
                    let number = |key: &str| {
                        let n = map.get(key)?.get_ref().as_integer()?;
                        u32::from_str_radix(n.as_str(), n.radix()).ok()
                    };
                    let rf = self.stage.clusters.get(&on).map_or(1, |c| c.default_rf);
                    let fact = TopicFact {
                        partitions: number("partitions").unwrap_or(1).max(1),
                        rf: number("rf").unwrap_or(rf),
                        family: None,
                    };
                    self.topics.entry((on, topic)).or_insert(fact);
                }
                Some("add-partitions") => {
                    let Some(DeValue::Integer(n)) = map.get("partitions").map(|v| v.get_ref()) else { continue };
                    let Some((more, topic)) = u32::from_str_radix(n.as_str(), n.radix()).ok().zip(text("topic")) else {
                        continue;
                    };
                    for ((_, name), fact) in &mut self.topics {
                        if *name == topic {
                            fact.partitions = fact.partitions.max(more.min(2_000_000));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    pub(crate) fn timeline(&mut self, root: &mut Table<'_, '_>) {
        let Some(items) = root.list(&mut self.cx, "timeline") else { return };
        if items.len() > limits::STEPS {
            let span = root.key_span("timeline");
            let message = format!("{} steps are too many", items.len());
            self.cx.error(
                &span,
                "too-many",
                message,
                format!("the limit is {}; use `every` or [chaos]", limits::STEPS),
            );
        }
        let mut named = std::collections::BTreeSet::new();
        for (n, item) in items.iter().take(limits::STEPS).enumerate() {
            if self.cx.problems.is_hopeless() {
                return;
            }
            let DeValue::Table(map) = item.get_ref() else {
                let message = format!("step {} of the timeline is a table, not {}", n + 1, kind_of(item.get_ref()));
                self.cx.error(
                    &item.span(),
                    "wrong-type",
                    message,
                    "write `[[timeline]]` and its keys below it".to_owned(),
                );
                continue;
            };
            let mut t = Table::new(format!("step {} of the timeline", n + 1), item.span(), map);
            if let Some(step) = self.read_step(&mut t, &mut named) {
                self.stage.timeline.push(step);
            }
            t.finish(&mut self.cx);
        }
        let safety = self.stage.phases.safety;
        let total = self.stage.timeline.iter().fold(0_u64, |n, step| n.saturating_add(step.trigger.times(safety)));
        if total > limits::STEPS as u64 && items.len() <= limits::STEPS {
            let span = root.key_span("timeline");
            let message = format!("the steps repeat to {total} in all");
            self.cx.error(
                &span,
                "too-many",
                message,
                format!("the limit is {}; raise `every`, or set `times`", limits::STEPS),
            );
        }
    }

    fn read_step(&mut self, t: &mut Table<'_, '_>, named: &mut std::collections::BTreeSet<String>) -> Option<Step> {
        let name = t.text(&mut self.cx, "name");
        if let Some(at) = &name {
            self.name(at, "a step");
            if !named.insert(at.value.clone()) {
                let message = format!("two steps are named `{}`", clip(&at.value, 60));
                self.cx.error(&at.span, "duplicate", message, "give each its own name".to_owned());
            }
        }
        let trigger = self.trigger(t);
        if !t.has("do") {
            t.missing(&mut self.cx, "do", "\"power-loss\"");
        }
        let action = t.text(&mut self.cx, "do").and_then(|at| {
            if Action::NAMES.contains(&&*at.value) {
                return self.action(&at, t);
            }
            let message = format!("there is no action `{}`", clip(&at.value, 60));
            let help = suggest(&at.value, "actions", Action::NAMES.iter().copied());
            self.cx.error(&at.span, "unknown-action", message, help);
            // The keys of an unknown action are unknown too: one problem is enough.
            for key in
                ["node", "for", "restart_after", "between", "on", "topic", "partition", "link", "mirror", "by", "role"]
            {
                t.allow(key);
            }
            None
        });
        let permanent = t.boolean(&mut self.cx, "permanent").unwrap_or(false);
        if let Some(action) = &action {
            self.check_carried_out(t, action);
        }
        if let Some(action) = action.as_ref().filter(|_| permanent) {
            self.check_permanent(t, action);
        }
        let within_tolerance = t.boolean(&mut self.cx, "within_tolerance").unwrap_or(false);
        if let Some(action) = action.as_ref().filter(|action| within_tolerance && !action.leans_on_others()) {
            let span = t.key_span("within_tolerance");
            let message = format!("`{}` takes nothing that replicas would have to make good", action.name());
            self.cx.error(&span, "conflict", message, "remove `within_tolerance`".to_owned());
        }
        let expect_error = self.expect_error(t, action.as_ref());
        let operator = self.operator(t, action.as_ref());
        let name = name.map(|at| at.value);
        Some(Step { name, trigger: trigger?, permanent, within_tolerance, expect_error, operator, action: action? })
    }

    /// Which operator of its cluster does it.
    fn operator(&mut self, t: &mut Table<'_, '_>, action: Option<&Action>) -> u32 {
        let operator = t.count32(&mut self.cx, "operator", 1..=limits::OPERATORS);
        if let Some(action) = action.filter(|action| operator.is_some() && !action.is_operators()) {
            let span = t.key_span("operator");
            let message = format!("`{}` is no operator's to do", action.name());
            self.cx.error(&span, "conflict", message, "remove `operator`".to_owned());
        }
        operator.unwrap_or(1)
    }

    /// The name of an error that an order is to be answered with.
    fn expect_error(&mut self, t: &mut Table<'_, '_>, action: Option<&Action>) -> Option<String> {
        let at = t.text(&mut self.cx, "expect_error")?;
        let names: Vec<String> = ErrorCode::ALL.iter().map(|code| code.name()).chain([ANY_ANSWER.to_owned()]).collect();
        if !names.contains(&at.value) {
            self.cx.unknown(&at, "unknown-name", ("error", "errors"), names.iter().map(String::as_str));
        }
        if let Some(action) = action.filter(|action| !action.is_order()) {
            let message = format!("`{}` is no order: nothing answers it", action.name());
            self.cx.error(&at.span, "conflict", message, "remove `expect_error`".to_owned());
        }
        Some(at.value)
    }

    fn check_permanent(&mut self, t: &mut Table<'_, '_>, action: &Action) {
        let span = t.key_span("permanent");
        if !action.can_last() {
            let message = format!("`{}` cannot be permanent: it has no end that could be left out", action.name());
            self.cx.error(&span, "conflict", message, "remove `permanent`".to_owned());
        } else if action.lasting().is_some() {
            let message = "a permanent fault has no end".to_owned();
            self.cx.error(&span, "conflict", message, "remove `permanent`, or `for` and `restart_after`".to_owned());
        }
    }

    fn trigger(&mut self, t: &mut Table<'_, '_>) -> Option<Trigger> {
        t.exclusive(&mut self.cx, "at", "when");
        if t.has("when") {
            return self.condition_trigger(t);
        }
        for key in ["after", "within"] {
            if t.has(key) {
                let span = t.key_span(key);
                let message = format!("`{key}` without `when` in {}", t.what);
                self.cx.error(
                    &span,
                    "conflict",
                    message,
                    "add a condition: `when = \"mirror(orders) == MIRRORING\"`".to_owned(),
                );
            }
        }
        if !t.has("at") {
            let message = format!("{} does not say when", t.what);
            let help = "add `at = \"10 s\"`, or a condition: `when = \"mirror(orders) == MIRRORING\"`".to_owned();
            self.cx.error(&t.span, "missing-key", message, help);
        }
        let at: Option<Time> = t.unit(&mut self.cx, "at");
        let every: Option<Time> = t.duration(&mut self.cx, "every");
        let times = t.count32(&mut self.cx, "times", 1..=100_000);
        if times.is_some() && !t.has("every") {
            let span = t.key_span("times");
            self.cx.error(&span, "conflict", "`times` without `every`".to_owned(), "add `every = \"1 h\"`".to_owned());
        }
        Some(Trigger::At { at: at?, every, times: every.and(times) })
    }

    fn condition_trigger(&mut self, t: &mut Table<'_, '_>) -> Option<Trigger> {
        for key in ["every", "times"] {
            if t.has(key) {
                let span = t.key_span(key);
                let message = format!("`{key}` with `when` in {}", t.what);
                self.cx.error(&span, "conflict", message, "only steps with `at` repeat".to_owned());
            }
        }
        let when = t.text(&mut self.cx, "when");
        let after = t.text(&mut self.cx, "after").and_then(|at| self.after(&at));
        let within: Option<Time> = t.duration(&mut self.cx, "within");
        let when = self.condition(&when?)?;
        Some(Trigger::When { when, after, within })
    }

    fn after(&mut self, at: &At<String>) -> Option<After> {
        let text = at.value.trim();
        let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len()));
        let count = || number.replace('_', "").parse::<u64>().ok().filter(|n| (1..=1_000_000_000_000).contains(n));
        let after = match unit.trim() {
            "batch" | "batches" => count().map(After::Batches),
            "record" | "records" => count().map(After::Records),
            _ => match Time::read(text) {
                Ok(time) => Some(After::Time(time)),
                Err(error) => {
                    let (message, _) = error.explain::<Time>(text);
                    let help =
                        "write a duration (\"2 s\"), batches (\"3 batches\") or records (\"100 records\")".to_owned();
                    self.cx.error(&at.span, "missing-unit", format!("`after`: {message}"), help);
                    return None;
                }
            },
        };
        if after.is_none() {
            let message = format!("`after` cannot be `{}`", clip(text, 40));
            self.cx.error(&at.span, "out-of-range", message, "at least 1 batch or record".to_owned());
        }
        after
    }
}
