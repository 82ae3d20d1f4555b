//! What is well written and beyond every run: steps that are not carried out, topics that no controller creates at once, loads
//! that no machine holds, config values and patterns that the model refuses. Told with its place, like any other slip.

use super::action::Action;
use super::limits;
use super::refs::Build;
use super::table::{At, Table};
use super::types::{Producer, Stage};
use super::vocabulary::ConfigOf;
use crate::units::clip;
use mirrorlab_model::metadata::configs::{BrokerConfig, ConfigError, ConfigFault, MirrorConfig, TopicConfig};
use mirrorlab_model::metadata::patterns::Patterns;
use std::ops::Range;

/// Why the model would not take a config value. What only a cluster refuses, because this project does not support it, is an
/// order like any other.
pub(crate) fn config(of: ConfigOf, key: &str, value: &str) -> Option<ConfigError> {
    let refused = match of {
        ConfigOf::Broker => BrokerConfig::default().set(key, value),
        ConfigOf::Topic => TopicConfig::default().set(key, value),
        ConfigOf::Mirror => MirrorConfig::default().set(key, value),
    };
    refused.err().filter(|error| error.why != ConfigFault::Unsupported)
}

impl Build<'_> {
    /// A pattern has to be a regular expression, or nothing is ever matched.
    pub(crate) fn check_pattern(&mut self, key: &str, at: &At<String>) {
        if Patterns::new(vec![at.value.as_str().into()]).is_err() {
            let message = format!("`{}` in `{key}` is not a regular expression", clip(&at.value, 60));
            let help = "a pattern matches whole names: \"orders-.*\"; is a bracket missing?".to_owned();
            self.cx.error(&at.span, "bad-pattern", message, help);
        }
    }

    /// A controller takes at most so many records at once (decision 16).
    pub(crate) fn check_created(&mut self, partitions: u32, span: &Range<usize>) {
        if partitions > limits::CREATED_AT_ONCE {
            let message = format!("{partitions} partitions of one topic are too many");
            let most = limits::CREATED_AT_ONCE;
            let help = format!("a controller creates at most {most} partitions at once; use `count` for more topics");
            self.cx.error(span, "too-many", message, help);
        }
    }

    /// A step that can be written and not carried out.
    pub(crate) fn check_carried_out(&mut self, t: &Table<'_, '_>, action: &Action) {
        if action.is_carried_out() {
            return;
        }
        let key = if t.key_is_written("record") { "record" } else { "records" };
        let message = format!("this version does not carry out the step `{}` so", action.name());
        let help =
            "it sends no records of a size of their own, and not more than 10,000,000 of them at once".to_owned();
        self.cx.error(&t.key_span(key), "not-carried-out", message, help);
    }

    /// Refuses a load that no run gets through.
    pub(crate) fn check_load(&mut self, root: &mut Table<'_, '_>) {
        let phases = &self.stage.phases;
        if phases.boot.plus(phases.safety).plus(phases.converge) > limits::TIME {
            return; // that is told already
        }
        let (mut records, mut bytes) = (0_u128, 0_u128);
        for (name, t) in root.tables(&mut self.cx, "producers") {
            let Some(plan) = self.stage.producers.get(&name.value) else { continue };
            let offered = offered(&self.stage, plan);
            records += offered;
            bytes += offered * u128::from(plan.record.0);
            if records > limits::RECORDS || bytes > limits::RECORD_BYTES {
                let message = format!("with `{}` it is {records} records of {bytes} bytes", clip(&name.value, 60));
                let (most, most_bytes) = (limits::RECORDS, limits::RECORD_BYTES);
                let help = format!("a run offers at most {most} records and {most_bytes} bytes");
                return self.cx.error(&t.span, "too-many", message, help);
            }
        }
    }
}

/// Records that all producers of a table offer in a run.
fn offered(stage: &Stage, plan: &Producer) -> u128 {
    let end = plan.stop.unwrap_or(stage.phases.safety).0;
    let lasts = u128::from(end.saturating_sub(plan.start.0));
    let widest = stage.topics.values().map(|t| u128::from(t.partitions)).max().unwrap_or(1);
    let topics: u128 = plan.topics.iter().map(|name| u128::from(members(stage, name, &plan.on))).sum();
    let each = match (plan.rate, plan.every) {
        (Some(rate), _) => u128::from(rate.count) * lasts / u128::from(rate.per.0.max(1)),
        (None, Some(every)) => topics * widest * lasts / u128::from(every.0.max(1)),
        (None, None) => 0,
    };
    plan.records.map_or(each, |most| each.min(u128::from(most))) * u128::from(plan.count)
}

/// The topics that a name stands for: a family has many.
fn members(stage: &Stage, name: &str, on: &str) -> u64 {
    let bare = name.strip_prefix(on).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name);
    stage.topics.values().find(|t| t.name == bare && t.on == on).map_or(1, |t| u64::from(t.topics()))
}
