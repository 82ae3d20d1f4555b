//! The lines of the past: gathered, folded, and cut to a screen.

use super::place::Place;
use super::words::{self, Words, CAUSE, HEAVY, MIDDLE, PATH};
use crate::run::Run;
use mirrorlab_model::ids::{Nanos, NodeId, PartitionIx};
use mirrorlab_model::trace::Trace;
use mirrorlab_reports::record::{Record, Violation};
use mirrorlab_sim::causes::{Causes, What};
use std::collections::BTreeMap;

/// Messages back from the violation that are told one by one.
const HOPS_MAX: usize = 5;
/// Events back to the one that a message, a timer or a start began.
const CHAIN_MAX: usize = 16;

/// One line: an event, or several alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// When; of several, the last.
    pub at: Nanos,
    /// The event's number; of several, the last.
    pub step: u64,
    /// Where.
    pub node: String,
    /// What led to it.
    pub via: String,
    /// How many.
    pub count: u32,
    words: Words,
    place: String,
}

impl Line {
    /// In words.
    pub fn text(&self) -> String {
        let span = match self.words.span {
            None => String::new(),
            Some((from, to)) if from == to => format!(" {from}"),
            Some((from, to)) => format!(" {from}..{to}"),
        };
        let place = if self.place.is_empty() { String::new() } else { format!("{}: ", self.place) };
        format!("{place}{}{span}{}", self.words.what, self.words.tail)
    }
}

/// The lines, oldest first, and how many were left out.
pub(super) fn of(run: &Run, record: &Record, violation: &Violation, most: usize) -> (Vec<Line>, usize) {
    let world = &run.lab().world;
    let Some(causes) = world.causes() else { return (Vec::new(), 0) };
    let place = Place::of(&violation.at, world, &run.lab().setup, causes.trace());
    let past = causes.past(violation.step, world.nodes().len());
    let mut lines = traced(run, causes, &place, &past, violation.step);
    lines.extend(strikes(record, violation.step));
    lines.extend(starts(run, causes, &place, &past));
    lines.extend(path(run, causes, &place, violation.step));
    lines.sort_by_key(|line| line.step);
    let mut lines = fold(lines);
    // What became one stands where the last of it was.
    lines.sort_by_key(|line| line.step);
    cut(lines, most)
}

fn name(run: &Run, node: NodeId) -> String {
    run.lab().world.node(node).name.to_string()
}

/// Trace events in the past that touch the place. What the event says that broke it is never cut.
fn traced(run: &Run, causes: &Causes, place: &Place, past: &[u64], broke: u64) -> Vec<Line> {
    let (world, setup) = (&run.lab().world, &run.lab().setup);
    let mut lines = Vec::new();
    for (step, event) in causes.trace() {
        if past.get(usize::from(event.node.0)).is_none_or(|last| step > last) {
            continue;
        }
        // What clients say is said of the cluster that they talk to.
        let cluster = world.node(event.node).cluster.or_else(|| {
            let all = setup.producers.iter().chain(&setup.consumers);
            all.clone().find(|client| client.node == event.node).map(|client| client.cluster)
        });
        let told = cluster.and_then(|cluster| words::of(&event.trace, cluster, place));
        let told = told.or_else(|| words::at_the_end(&event.trace).filter(|_| *step == broke));
        let Some(mut words) = told else { continue };
        if *step == broke {
            words.weight = CAUSE;
        }
        let at = causes.event(*step).map_or(Nanos::ZERO, |noted| noted.at);
        // Every broker is let in before the story begins.
        if matches!(event.trace, Trace::BrokerFenced { .. }) && at < run.base() {
            continue;
        }
        let via = if words.weight >= MIDDLE { via(run, causes, *step, event.node) } else { String::new() };
        let of = words.partition.filter(|_| place.partitions.len() != 1);
        let place = of.zip(cluster).map_or(String::new(), |(partition, cluster)| named(run, cluster, partition));
        lines.push(Line { at, step: *step, node: name(run, event.node), via, count: 1, words, place });
    }
    lines
}

/// `orders-3`; a partition that is gone by its index.
fn named(run: &Run, cluster: u8, partition: PartitionIx) -> String {
    let lab = run.lab();
    let name = lab.setup.image(&lab.world, cluster).and_then(|image| {
        let known = image.partition(partition)?;
        Some(format!("{}-{}", image.topic(known.topic)?.name, known.number))
    });
    name.unwrap_or_else(|| format!("partition {partition}"))
}

/// Faults and orders, by what the story tells: they come from outside, so they have no past of their own.
fn strikes(record: &Record, until: u64) -> Vec<Line> {
    let told = record.story.iter().filter(|line| line.fault && line.step <= until);
    told.map(|line| Line {
        at: Nanos(line.time_ns),
        step: line.step,
        node: "-".to_owned(),
        via: String::new(),
        count: 1,
        words: Words { weight: CAUSE, what: line.text.clone(), partition: None, span: None, tail: String::new() },
        place: String::new(),
    })
    .collect()
}

/// Processes that started again.
fn starts(run: &Run, causes: &Causes, place: &Place, past: &[u64]) -> Vec<Line> {
    let world = &run.lab().world;
    let mut lines = Vec::new();
    for step in 1..=causes.len() as u64 {
        let Some(noted) = causes.event(step) else { break };
        let What::Boot(node) = noted.what else { continue };
        let touched = world.node(node).cluster.is_some_and(|cluster| place.touches(cluster));
        let is_past = past.get(usize::from(node.0)).is_some_and(|last| step <= *last);
        if touched && is_past && noted.at > run.base() && run.base() > Nanos::ZERO {
            let words =
                Words { weight: HEAVY, what: "starts".to_owned(), partition: None, span: None, tail: String::new() };
            lines.push(Line {
                at: noted.at,
                step,
                node: name(run, node),
                via: String::new(),
                count: 1,
                words,
                place: String::new(),
            });
        }
    }
    lines
}

/// What began the work that an event is part of: the message that had arrived, by its sender, or a timer, a start, a script.
fn via(run: &Run, causes: &Causes, step: u64, node: NodeId) -> String {
    let mut at = step;
    let mut through = "";
    for _ in 0..CHAIN_MAX {
        if let Some(message) = causes.deliveries(at).iter().rev().find(|d| d.to == node) {
            let from = message.from.map_or_else(|| "?".to_owned(), |from| name(run, from));
            return format!("{through}{} of {from} (#{})", message.name, message.sent);
        }
        let Some(noted) = causes.event(at) else { return String::new() };
        match noted.what {
            What::Timer(_) => return format!("{through}a timer"),
            What::Boot(_) => return format!("{through}its start"),
            What::Script => return String::new(),
            What::Flushed(_) => through = "a flush, after ",
            What::Net | What::Run(_) | What::WriteBack(_) => {}
        }
        at = noted.cause;
    }
    String::new()
}

/// The messages that led straight to the violation, the last ones.
fn path(run: &Run, causes: &Causes, place: &Place, step: u64) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut at = step;
    let mut node = causes.event(step).and_then(|noted| noted.what.node()).or(place.node);
    for _ in 0..HOPS_MAX * CHAIN_MAX {
        if lines.len() >= HOPS_MAX {
            break;
        }
        let message = causes.deliveries(at).iter().rev().find(|d| node.is_none_or(|node| d.to == node));
        if let Some(message) = message {
            let from = message.from.map_or_else(|| "?".to_owned(), |from| name(run, from));
            let what = format!("gets {} of {from}, sent as #{}", message.name, message.sent);
            let at_ns = causes.event(at).map_or(Nanos::ZERO, |noted| noted.at);
            lines.push(Line {
                at: at_ns,
                step: at,
                node: name(run, message.to),
                via: String::new(),
                count: 1,
                words: Words { weight: PATH, what, partition: None, span: None, tail: String::new() },
                place: String::new(),
            });
            (at, node) = (message.sent, message.from);
            continue;
        }
        let Some(noted) = causes.event(at) else { break };
        at = noted.cause;
    }
    lines
}

/// Lines alike between two that weigh more become one, where the last of them stands.
fn fold(lines: Vec<Line>) -> Vec<Line> {
    let mut out: Vec<Line> = Vec::new();
    let mut open: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    for line in lines {
        let key = (line.node.clone(), line.place.clone(), line.words.what.clone());
        let is_again = out.len().checked_sub(1).is_some_and(|last| open.get(&key) == Some(&last));
        if line.words.weight >= PATH && !is_again {
            open.clear();
        }
        match open.get(&key).and_then(|at| out.get_mut(*at)) {
            Some(same) => {
                same.count += line.count;
                (same.at, same.step) = (line.at, line.step);
                same.words.tail = line.words.tail;
                same.via = line.via;
                if let (Some(span), Some((_, to))) = (&mut same.words.span, line.words.span) {
                    span.1 = to;
                }
            }
            None => {
                open.insert(key, out.len());
                out.push(line);
            }
        }
    }
    out
}

/// Leaves out what weighs least, the oldest first.
fn cut(mut lines: Vec<Line>, most: usize) -> (Vec<Line>, usize) {
    let before = lines.len();
    for weight in [words::LIGHT, MIDDLE, PATH, HEAVY, CAUSE] {
        let mut too_many = lines.len().saturating_sub(most);
        lines.retain(|line| {
            let goes = too_many > 0 && line.words.weight <= weight;
            too_many -= usize::from(goes);
            !goes
        });
    }
    let left_out = before - lines.len();
    (lines, left_out)
}
