//! What operators do while things break: orders to mirrors and clusters, and mistakes.
//!
//! Orders that mean something whatever the state of things are repeated until they are accepted; those that may well be
//! refused are given once. Each strike takes back what it ordered: what is wanted at the end is what the file says.

use super::{Draw, Move};
use crate::format::action::{Action, Answers, ConfigTarget, NodeRef};
use crate::format::chaos::ChaosKind as Kind;
use crate::format::types::{Config, Topic};
use crate::units::{Chance, Time};

/// Settings of topics that may be edited at any time.
const TOPIC_EDITS: &[(&str, &str)] = &[
    ("segment.bytes", "65536"),
    ("segment.ms", "1000"),
    ("flush.messages", "1"),
    ("max.message.bytes", "900000"),
    ("index.interval.bytes", "512"),
];
/// The same of mirrors.
const MIRROR_EDITS: &[(&str, &str)] = &[
    ("fetch.max.bytes", "65536"),
    ("fetch.wait.max.ms", "50"),
    ("fetch.min.bytes", "4096"),
    ("fetch.response.max.bytes", "131072"),
    ("fetch.backoff.ms", "200"),
];
/// A topic grows by so many partitions at most.
const GROWTH_MAX: u64 = 12;

pub(super) fn moves(d: &Draw<'_>) -> Option<Vec<Move>> {
    match d.kind {
        Kind::MirrorPause => {
            let mirror = d.mirror()?;
            Some(vec![Move::now(pause(&mirror)), Move::at(d.length, resume(&mirror))])
        }
        Kind::MirrorStop => {
            let mirror = d.mirror()?;
            Some(vec![Move::now(stop(&mirror)), Move::at(d.length, start(&mirror))])
        }
        Kind::MirrorDelete => {
            let mirror = d.mirror()?;
            Some(vec![
                Move::now(stop(&mirror)),
                Move::at(d.part(33), Action::DeleteMirror { mirror: mirror.clone() }),
                Move::at(d.length, Action::CreateMirror { mirror }),
            ])
        }
        Kind::MirrorRecover => Some(vec![Move::once(Time(0), recover(&d.mirror()?))]),
        Kind::WrongDirection => {
            let back = d.pick("chaos.reverse", &d.targets.reverses)?.clone();
            Some(vec![
                Move::now(Action::CreateMirror { mirror: back.clone() }),
                Move::at(d.length, stop(&back)),
                Move::at(d.length, Action::DeleteMirror { mirror: back }),
            ])
        }
        Kind::PromoteAll => {
            let mirrors = &d.targets.mirrors;
            let stops = mirrors.iter().map(|m| Move::now(stop(m)));
            let starts = mirrors.iter().map(|m| Move::at(d.length, start(m)));
            (!mirrors.is_empty()).then(|| stops.chain(starts).collect())
        }
        Kind::ScriptRerun => script(d),
        Kind::RepeatedOrders => repeated(d),
        Kind::SourceReplaced => {
            let mirror = d.mirror()?;
            let source = d.stage.mirrors.get(&mirror)?.source.clone();
            let id = d.stage.clusters.get(&source)?.id.clone();
            let (on, another) = (source.clone(), format!("{id}-replaced"));
            Some(vec![
                Move::now(Action::SetClusterId { on, node: None, id: another }),
                Move::at(d.length, Action::SetClusterId { on: source, node: None, id }),
                Move::at(d.length, recover(&mirror)),
            ])
        }
        Kind::ForeignEpochs | Kind::ForeignLeaders | Kind::ForeignMetadata => {
            let on = d.stage.mirrors.get(&d.mirror()?)?.source.clone();
            let answers = match d.kind {
                Kind::ForeignEpochs => Answers::Epochs,
                Kind::ForeignLeaders => Answers::Leaders,
                _ => Answers::Metadata,
            };
            let probability = Chance(500_000_000 + u32::try_from(d.below("chaos.chance", 500_000_000)).ok()?);
            Some(vec![Move::now(Action::Foreign { on, answers, probability, lasting: d.lasting() })])
        }
        Kind::SourceRestored => {
            let on = d.stage.mirrors.get(&d.mirror()?)?.source.clone();
            let restored = Action::RestoreCluster { on: on.clone() };
            Some(vec![Move::now(Action::SnapshotCluster { on }), Move::at(d.length, restored)])
        }
        _ => topic_moves(d),
    }
}

fn topic_moves(d: &Draw<'_>) -> Option<Vec<Move>> {
    match d.kind {
        Kind::TopicRecreated => {
            let (mirror, topic) = mirrored(d)?;
            let deleted = Action::DeleteTopic { on: topic.on.clone(), topic: topic.name.clone() };
            Some(vec![Move::now(deleted), Move::at(d.part(50), created(topic)), Move::once(d.length, recover(&mirror))])
        }
        Kind::CopyDeleted => {
            let (mirror, topic) = mirrored(d)?;
            let on = d.stage.mirrors.get(&mirror)?.on.clone();
            let topics = || vec![topic.name.clone()];
            let deleted = Action::DeleteTopic { on, topic: topic.name.clone() };
            Some(vec![
                Move::now(Action::StopMirror { mirror: mirror.clone(), topics: topics() }),
                Move::at(d.part(50), deleted),
                Move::at(d.length, Action::StartMirror { mirror, topics: topics() }),
            ])
        }
        Kind::PartitionGrowth => {
            let (topic, name, _) = d.partition()?;
            let more = u32::try_from(1 + (d.n / 4).min(GROWTH_MAX)).ok()?;
            let (on, partitions) = (topic.on.clone(), topic.partitions + more);
            Some(vec![Move::once(Time(0), Action::AddPartitions { on, topic: name, partitions })])
        }
        Kind::TopicConfig => {
            let (key, value) = d.pick("chaos.edit", TOPIC_EDITS)?;
            let (topic, name, _) = d.partition()?;
            Some(edited(d, &topic.on, &ConfigTarget::Topic(name), &topic.config, &[(key, value)]))
        }
        Kind::Retention => {
            let (topic, name, _) = d.partition()?;
            let edits = [("retention.ms", "1000"), ("segment.ms", "1000")];
            Some(edited(d, &topic.on, &ConfigTarget::Topic(name), &topic.config, &edits))
        }
        Kind::MirrorConfig => {
            let (key, value) = d.pick("chaos.edit", MIRROR_EDITS)?;
            let name = d.mirror()?;
            let mirror = d.stage.mirrors.get(&name)?;
            Some(edited(d, &mirror.on, &ConfigTarget::Mirror(name.clone()), &mirror.config, &[(key, value)]))
        }
        Kind::DeleteRecords => {
            let (topic, name, partition) = d.partition()?;
            let before = d.below("chaos.before", 1 + expected(d, topic));
            let (on, partition) = (topic.on.clone(), Some(partition));
            Some(vec![Move::once(Time(0), Action::DeleteRecords { on, topic: name, partition, before })])
        }
        _ => None,
    }
}

fn pause(mirror: &str) -> Action {
    Action::PauseMirror { mirror: mirror.to_owned(), topics: Vec::new() }
}
fn resume(mirror: &str) -> Action {
    Action::ResumeMirror { mirror: mirror.to_owned(), topics: Vec::new() }
}
fn stop(mirror: &str) -> Action {
    Action::StopMirror { mirror: mirror.to_owned(), topics: Vec::new() }
}
fn start(mirror: &str) -> Action {
    Action::StartMirror { mirror: mirror.to_owned(), topics: Vec::new() }
}
fn recover(mirror: &str) -> Action {
    Action::RecoverMirror { mirror: mirror.to_owned(), topics: Vec::new(), keep: None }
}

/// A topic that a mirror copies, and the mirror.
fn mirrored<'a>(d: &Draw<'a>) -> Option<(String, &'a Topic)> {
    let (mirror, table) = d.pick("chaos.mirrored", &d.targets.mirrored)?;
    Some((mirror.clone(), d.stage.topics.get(table)?))
}

/// As the file declares it.
fn created(topic: &Topic) -> Action {
    Action::CreateTopic {
        on: topic.on.clone(),
        topic: topic.name.clone(),
        partitions: topic.partitions,
        rf: topic.rf,
        config: topic.config.clone(),
        id_of: None,
    }
}

/// Settings that are changed, and at the end are again what the file says.
fn edited(d: &Draw<'_>, on: &str, target: &ConfigTarget, before: &Config, edits: &[(&str, &str)]) -> Vec<Move> {
    let config = |keep: &dyn Fn(&str) -> Option<String>| -> Config {
        edits.iter().filter_map(|(key, _)| Some(((*key).to_owned(), keep(key)?))).collect()
    };
    let order = |config, remove| Action::SetConfig { on: on.to_owned(), target: target.clone(), config, remove };
    let changed: Config = edits.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let back = config(&|key| before.get(key).cloned());
    let gone = edits.iter().map(|(key, _)| (*key).to_owned()).filter(|key| !before.contains_key(key)).collect();
    vec![Move::now(order(changed, Vec::new())), Move::at(d.length, order(back, gone))]
}

/// About how many records a partition of the topic has by now, if all is well.
fn expected(d: &Draw<'_>, topic: &Topic) -> u64 {
    let writes = d.stage.producers.values().filter(|p| p.on == topic.on && p.topics.contains(&topic.name));
    let rates = writes.filter_map(|p| p.rate.map(|rate| rate.count * 1_000_000_000 / rate.per.0.max(1)));
    rates.sum::<u64>() * (d.at.0 / 1_000_000_000) / u64::from(topic.partitions.max(1))
}

/// A script of orders ends in the middle, because the machine that it runs on goes down; it is run again from its start.
fn script(d: &Draw<'_>) -> Option<Vec<Move>> {
    let mirror = d.mirror()?;
    let on = d.stage.mirrors.get(&mirror)?.on.clone();
    let orders: Vec<Action> = match d.below("chaos.script", 3) {
        0 => vec![stop(&mirror), start(&mirror)],
        1 => vec![pause(&mirror), resume(&mirror)],
        _ => {
            let deleted = Action::DeleteMirror { mirror: mirror.clone() };
            vec![stop(&mirror), deleted, Action::CreateMirror { mirror: mirror.clone() }]
        }
    };
    let crash = 1 + d.below("chaos.crash", orders.len() as u64);
    let gap = Time(d.length.0 / (orders.len() as u64 * 2 + 1));
    let mut moves: Vec<Move> = orders
        .iter()
        .take(crash as usize)
        .zip(0..)
        .map(|(order, n)| Move::at(Time(gap.0 * n), order.clone()))
        .collect();
    // Right behind an order: it may be on its way, carried out, or answered.
    let down = Time(gap.0 * (crash - 1)).plus(d.between("chaos.behind", Time(0), gap));
    let restart_after = Some(Time(gap.0 / 4).max(Time::millis(1)));
    moves.push(Move::at(down, Action::Kill { node: NodeRef::Operator(on, 1), restart_after, inside_task: false }));
    let again = down.plus(Time(gap.0 / 2).max(Time::millis(250)));
    moves.extend(orders.into_iter().zip(0..).map(|(order, n)| Move::at(again.plus(Time(gap.0 * n)), order)));
    Some(moves)
}

/// What is so already is ordered once more, by somebody who does not know.
fn repeated(d: &Draw<'_>) -> Option<Vec<Move>> {
    let mirror = d.mirror()?;
    let order = if d.one_in("chaos.order", 2) { start(&mirror) } else { resume(&mirror) };
    let times = 2 + d.below("chaos.times", 3);
    Some((0..times).map(|n| Move::once(Time(d.length.0 / times * n), order.clone())).collect())
}
