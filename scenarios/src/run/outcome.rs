//! What a run leaves: its verdict, what was expected of it, its figures.

use super::{End, Run, Stand, VIOLATIONS_MAX};
use crate::format::action::Trigger;
use crate::losses;
use crate::marks::Mark;
use crate::meter::Meter;
use mirrorlab_model::guards::{self, Guards, Kind};
use mirrorlab_reports::record::{Expectation, GuardUse, Record, Verdict, Violation};
use mirrorlab_sim::pump::Drive;
use std::collections::BTreeMap;

impl Run {
    pub(crate) fn record(&mut self, end: End) -> Record {
        let End { mut violations, excuses } = end;
        let expectations = if violations.is_empty() && !self.over_budget { self.expectations() } else { Vec::new() };
        let (verdict, mut reason) = self.verdict(&violations, &expectations);
        if violations.len() > VIOLATIONS_MAX {
            reason = format!("{reason} ({} places; the first {VIOLATIONS_MAX} are kept)", violations.len());
            violations.truncate(VIOLATIONS_MAX);
        }
        let mut figures = BTreeMap::new();
        self.meter.figures(&mut figures);
        if let Some(lag) =
            Meter::lag_now(&self.lab.world, &self.lab.setup).filter(|_| !self.lab.setup.mirrors.is_empty())
        {
            figures.insert("lag_end".into(), lag as f64);
        }
        self.bounds(&mut figures);
        self.failovers.figures(&mut figures);
        self.strikes_told(&mut figures);
        losses::of(&self.suite.core().ghost).figures(&mut figures);
        let counts = self.lab.world.counts();
        let end = self.now();
        let orders = self.given.told(&self.job.plan.stage, &self.lab);
        let points: Vec<_> = self.lab.world.nodes().iter().map(|node| node.guards.points.clone()).collect();
        let mut refusals = Guards::default();
        self.lab.world.nodes().iter().for_each(|node| refusals.merge_hits(&node.guards));
        Record {
            census: self.census.told(&orders, &refusals, &points),
            scenario: self.job.path.clone(),
            title: self.job.plan.title.clone(),
            seed: self.job.plan.seed,
            profile: self.job.plan.profile.name().to_owned(),
            resolved: self.resolved(),
            verdict,
            reason,
            violations,
            excuses,
            expectations,
            marks: self.marks.reached().map(|(name, n)| (name.to_owned(), n)).collect(),
            guards: self.guard_use(&refusals),
            trace_hash: format!("{:016x}", self.lab.world.trace_hash()),
            events: counts.events,
            messages: counts.messages,
            appends: counts.appends,
            simulated_s: end.as_secs_f64(),
            wall_s: 0.0,
            peak_rss_mb: 0.0,
            figures,
            failovers: self.failovers.told(),
            lag: self.meter.lag_percentiles(),
            curves: self.meter.curves(),
            bands: self.bands.clone(),
            orders,
            story: self.story.lines.clone(),
            story_omitted: self.story.omitted,
            repro: String::new(),
            build: Default::default(),
            rows: Vec::new(),
        }
    }

    /// What bounds mirrored throughput: the fetch bound (response maximum over round trip, for each fetcher that has
    /// partitions), the link, and what producers offer. Only for worlds with one mirror over one link.
    fn bounds(&self, figures: &mut BTreeMap<String, f64>) {
        let stage = &self.job.plan.stage;
        let (Some((name, mirror)), 1) = (stage.mirrors.iter().next(), stage.mirrors.len()) else { return };
        let (Some(from), Some(to)) = (stage.clusters.get(&mirror.source), stage.clusters.get(&mirror.on)) else {
            return;
        };
        let between = |l: &&crate::format::types::Link| l.between.contains(&from.site) && l.between.contains(&to.site);
        let Some(link) = stage.links.values().find(between) else { return };
        let data = link.direction(usize::from(link.between[0] != from.site));
        let back = link.direction(usize::from(link.between[0] == from.site));
        let round_trip = (data.latency.0 + back.latency.0) as f64 / 1e9;
        let setup = self.lab.setup.mirrors.iter().find(|m| *m.name == **name);
        let Some(destination) = setup.map(|m| &self.lab.setup.clusters[usize::from(m.destination)]) else { return };
        let brokers = destination.brokers.iter().filter_map(|n| self.lab.world.node(*n).broker());
        let mut fetchers = 0;
        let mut response_max = 0;
        for broker in brokers {
            fetchers += broker.mirror.busy_fetchers();
            let image = &broker.image;
            let config =
                image.mirror_by_name(name).and_then(|m| image.mirror(m)).map(|m| m.config.fetch_response_max_bytes);
            response_max = response_max.max(config.unwrap_or(0));
        }
        if round_trip > 0.0 && fetchers > 0 {
            let bound = fetchers as f64 * f64::from(response_max) / round_trip / 1e6;
            figures.insert("fetch_bound_mb_per_s".into(), bound);
        }
        if let Some(bandwidth) = data.bandwidth {
            figures.insert("link_bound_mb_per_s".into(), bandwidth.0 as f64 / 8e6);
        }
        let offered = stage.producers.values().filter_map(|p| {
            let rate = p.rate?;
            Some(rate.count as f64 / (rate.per.0 as f64 / 1e9) * p.record.0 as f64 / 1e6 * f64::from(p.count))
        });
        let offered: f64 = offered.sum();
        if offered > 0.0 {
            figures.insert("offered_mb_per_s".into(), offered);
        }
    }

    /// What was left out because replicas could not have stood it, and how often each armed point of perturbation fired.
    fn strikes_told(&self, figures: &mut BTreeMap<String, f64>) {
        if self.job.plan.stage.timeline.iter().any(|step| step.within_tolerance) {
            figures.insert("strikes_left_out".into(), self.striker.left_out as f64);
        }
        if self.lab.world.foreign().wrong() > 0 {
            figures.insert("wrong_answers".into(), self.lab.world.foreign().wrong() as f64);
        }
        let mut fired: BTreeMap<&'static str, u64> = BTreeMap::new();
        for (point, _, times) in self.lab.world.nodes().iter().flat_map(|node| node.guards.points.counts()) {
            *fired.entry(point.name()).or_default() += u64::from(times);
        }
        for name in self.job.plan.stage.perturb.iter().chain(&self.job.plan.stage.perturb_always) {
            figures.insert(format!("fired_{name}"), fired.get(&**name).copied().unwrap_or(0) as f64);
        }
    }

    fn resolved(&self) -> String {
        let stage = &self.job.plan.stage;
        let clusters: Vec<String> = stage
            .clusters
            .iter()
            .map(|(name, c)| format!("{name} {} controller + {} brokers", c.controllers, c.brokers))
            .collect();
        let partitions = self.partitions;
        let mirrors: Vec<String> =
            stage.mirrors.iter().map(|(name, m)| format!("{name} ({} -> {})", m.source, m.on)).collect();
        let drawn = &self.job.plan.plan.drawn;
        let drawn = if drawn.is_empty() { String::new() } else { format!("; drawn: {}", drawn.join("; ")) };
        format!(
            "{}; {} topics with {partitions} partitions; mirrors: {}; {} producers, {} consumers; {} steps{drawn}",
            clusters.join(", "),
            stage.topics.values().map(|t| u64::from(t.topics())).sum::<u64>(),
            if mirrors.is_empty() { "none".to_owned() } else { mirrors.join(", ") },
            stage.producers.len(),
            stage.consumers.len(),
            stage.timeline.len()
        )
    }

    fn guard_use(&self, all: &Guards) -> GuardUse {
        let set = self.job.plan.guards();
        let named = |keep: &dyn Fn(&guards::Row) -> bool| {
            guards::rows().filter(|r| keep(r)).map(|r| r.name.to_owned()).collect()
        };
        GuardUse {
            hit: named(&|r| r.kind == Kind::Guard && all.was_hit(r.id)),
            passed: named(&|r| r.kind != Kind::Guard && all.was_hit(r.id)),
            off: named(&|r| r.kind == Kind::Guard && !set.is_on(r.id)),
            quirks: named(&|r| r.kind != Kind::Guard && set.is_on(r.id)),
        }
    }

    fn expectations(&self) -> Vec<Expectation> {
        let expect = &self.job.plan.stage.expect;
        let eye = self.eye();
        let mut out = Vec::new();
        for (topic, state) in &expect.states {
            let (met, got) = eye.topic_state(topic, state);
            out.push(Expectation { what: format!("state of {topic}"), expected: state.clone(), got, met });
        }
        for (topic, count) in &expect.records {
            let got = eye.records(topic);
            let met = got.is_some_and(|n| count.admits(n));
            let got = got.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
            out.push(Expectation { what: format!("records of {topic}"), expected: count.to_string(), got, met });
        }
        for equal in &expect.equals {
            let (met, got) = eye.equals(&equal.term, &equal.value);
            out.push(Expectation { what: equal.term.to_string(), expected: equal.value.to_string(), got, met });
        }
        for name in &expect.never_reach {
            let n = Mark::named(name).map_or(0, |m| self.marks.count(m));
            out.push(Expectation {
                what: format!("never {name}"),
                expected: "0".into(),
                got: n.to_string(),
                met: n == 0,
            });
        }
        for (name, most) in expect.must_reach.iter().filter_map(|reach| Some((reach.mark(), reach.at_most()?))) {
            let n = Mark::named(name).map_or(0, |m| self.marks.count(m));
            let what = format!("marks of {name}");
            out.push(Expectation { what, expected: format!("at most {most}"), got: n.to_string(), met: n <= most });
        }
        self.failovers.expectations(expect, &mut out);
        self.given.expectations(&self.job.plan.stage, &self.lab, &mut out);
        if !expect.steps_may_miss {
            for (n, got) in self.missed_steps() {
                let what = format!("step {} ({})", n + 1, self.job.plan.stage.timeline[n].action.name());
                out.push(Expectation { what, expected: "struck".into(), got: got.into(), met: false });
            }
        }
        out
    }

    /// Steps of the timeline that did not strike, and why.
    pub(crate) fn missed_steps(&self) -> Vec<(usize, &'static str)> {
        let steps = self.stands.iter().zip(&self.job.plan.stage.timeline).enumerate();
        let missed = steps.filter_map(|(n, (stand, step))| {
            let got = match (stand, &step.trigger) {
                (Stand::Waiting, Trigger::When { .. }) => "its condition never held in time",
                (Stand::Counting { .. }, _) => "the batches that it waits for never came",
                (Stand::Waiting | Stand::Due, _) => "the safety phase was over before",
                _ => return None,
            };
            Some((n, got))
        });
        missed.collect()
    }

    fn verdict(&self, violations: &[Violation], expectations: &[Expectation]) -> (Verdict, String) {
        if self.over_budget {
            return (Verdict::Unknown, format!("given up after {} events, which is the budget", self.events_max));
        }
        let expected = &self.job.plan.stage.expect.violation;
        let wanted = !expected.is_empty();
        if let Some(first) = violations.first() {
            let names = |v: &Violation| expected.contains(&v.id);
            if wanted {
                // What the story rests on has to be so as well: the answers to its orders.
                let wrong = self.given.wrong_answer(&self.job.plan.stage, &self.lab);
                return if let Some(e) = wrong.filter(|_| violations.iter().any(names)) {
                    (
                        Verdict::Unmet,
                        format!("{} broke first, but {}: expected {}, got {}", first.id, e.what, e.expected, e.got),
                    )
                } else if violations.iter().any(names) {
                    (Verdict::Pass, format!("{} broke first, as expected", first.id))
                } else {
                    (Verdict::Unmet, format!("{} broke first, not {}", first.id, expected.join(" or ")))
                };
            }
            let verdict = if first.id.starts_with('L') { Verdict::Stall } else { Verdict::Violation };
            return (verdict, format!("{}: {}", first.id, first.says));
        }
        if wanted {
            return (Verdict::Unmet, format!("nothing broke; {} was expected to", expected.join(" or ")));
        }
        if let Some(missing) = self.missing_mark() {
            return (Verdict::Vacuous, format!("{missing}: the run proved nothing about it"));
        }
        match expectations.iter().find(|e| !e.met) {
            Some(e) => (Verdict::Unmet, format!("{}: expected {}, got {}", e.what, e.expected, e.got)),
            None => (Verdict::Pass, "every check held".to_owned()),
        }
    }

    /// The first mark that the run had to reach and did not: those that the file names, and what any mirror or producer is
    /// there for.
    fn missing_mark(&self) -> Option<String> {
        let stage = &self.job.plan.stage;
        let named = stage.expect.must_reach.iter().filter_map(|r| Some((Mark::named(r.mark())?, r.at_least())));
        let mirrors = (!stage.mirrors.is_empty() && !stage.producers.is_empty()).then_some(Mark::Mirrored);
        let producers =
            stage.producers.values().any(|p| p.acks != crate::format::types::Acks::None).then_some(Mark::Acked);
        let implied = mirrors.into_iter().chain(producers).map(|mark| (mark, 1));
        named.chain(implied).find_map(|(mark, least)| match (self.marks.count(mark), mark.name()) {
            (0, name) => Some(format!("`{name}` was never reached")),
            (count, name) if count < least => Some(format!("`{name}` was reached {count} of {least} times")),
            _ => None,
        })
    }
}
