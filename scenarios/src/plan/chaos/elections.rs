//! Strikes that move leaders, raise epochs, or move the coordinator of a mirror.

use super::processes::power_loss;
use super::traffic::cut_off;
use super::{Draw, Move};
use crate::format::action::{Action, DiskCall, Elect, Loses, NodeRef, Role};
use crate::format::chaos::ChaosKind as Kind;
use crate::units::{Chance, Time};
use mirrorlab_model::coordinator::routing::{state_partition, STATE_TOPIC};

/// The controllers' order reaches the brokers within this.
const TOLD: Time = Time::millis(20);

pub(super) fn moves(d: &Draw<'_>) -> Option<Vec<Move>> {
    match d.kind {
        Kind::Election => {
            let (topic, name, partition) = d.partition()?;
            let pick = u32::try_from(d.below("chaos.replica", u64::from(topic.rf))).ok()?;
            Some(vec![Move::now(elect(&topic.on, &name, Some(partition), Elect::Pick(pick)))])
        }
        // The first other one, four times: whoever leads at first, that is there, back, there and back from the second on.
        Kind::AbaLeadership => {
            let (topic, name, partition) = d.partition()?;
            let gap = d.length.0 / 4;
            let one = |n| Move::at(Time(gap * n), elect(&topic.on, &name, Some(partition), Elect::Pick(0)));
            Some((0..4).map(one).collect())
        }
        Kind::ElectionBurst => {
            let idle = d.pick("chaos.idle", &d.targets.idle_topics);
            let topic = d.stage.topics.get(idle.or_else(|| d.pick("chaos.topic", &d.targets.topics))?)?;
            let (name, times) = (d.member(topic), 3 + d.below("chaos.times", 6));
            let gap = d.length.0 / times;
            let one = |n: u64| {
                let pick = Elect::Pick(u32::try_from(n).unwrap_or(0));
                Move::at(Time(gap * n), elect(&topic.on, &name, None, pick))
            };
            Some((0..times).map(one).collect())
        }
        Kind::EpochBump => {
            let (topic, name, partition) = d.partition()?;
            // Above what elections have led to by then, as a rule.
            let min = u32::try_from(d.n * 4 + d.below("chaos.epoch", 4)).unwrap_or(u32::MAX >> 1);
            let partition = Some(partition);
            Some(vec![Move::once(Time(0), Action::BumpEpoch { on: topic.on.clone(), topic: name, partition, min })])
        }
        Kind::UncleanElection => unclean(d),
        Kind::SlowLoad => {
            let (cluster, moved) = another_coordinator(d)?;
            let by = d.between("chaos.extra", Time::millis(10), Time::secs(1));
            let (node, lane) = (NodeRef::Brokers(cluster), "mirror".to_owned());
            Some(vec![Move::now(Action::SlowLane { node, lane, by, lasting: d.lasting() }), Move::at(TOLD, moved)])
        }
        Kind::FailingLoad => {
            let (_, moved) = another_coordinator(d)?;
            let failing = Action::DiskError {
                node: NodeRef::Coordinator(d.mirror()?),
                call: DiskCall::Read,
                probability: Chance(u32::try_from(d.below("chaos.chance", 500_000_000)).unwrap_or(0) + 1),
                lasting: d.lasting(),
            };
            Some(vec![Move::now(moved), Move::at(TOLD, failing)])
        }
        _ => None,
    }
}

fn elect(on: &str, topic: &str, partition: Option<u32>, elect: Elect) -> Action {
    Action::Elect { on: on.to_owned(), topic: topic.to_owned(), partition, elect }
}

/// The partition of the state topic that a mirror is kept in goes to another broker.
fn another_coordinator(d: &Draw<'_>) -> Option<(String, Action)> {
    let mirror = d.mirror()?;
    let on = d.stage.mirrors.get(&mirror)?.on.clone();
    let config = &d.stage.clusters.get(&on)?.config;
    let partitions = config.get("mirror.state.topic.num.partitions").and_then(|n| n.parse().ok()).unwrap_or(50);
    let at = state_partition(&mirror, partitions);
    let pick = u32::try_from(d.below("chaos.replica", 3)).ok()?;
    let moved = elect(&on, STATE_TOPIC, Some(at), Elect::Pick(pick));
    Some((on, moved))
}

/// One broker copies nothing for half of the time and falls out of the ISRs (if `replica.lag.time.max.ms` is short enough);
/// then the others lose power, and it is to lead what it has a replica of.
fn unclean(d: &Draw<'_>) -> Option<Vec<Move>> {
    let (topic, name, partition) = d.partition()?;
    let brokers = d.stage.clusters.get(&topic.on)?.brokers;
    let survivor = 1 + u32::try_from(d.below("chaos.survivor", u64::from(brokers))).ok()?;
    let half = d.part(50);
    let behind = cut_off(NodeRef::Broker(topic.on.clone(), survivor), Some(Role::Replication), false, half);
    let others = (1..=brokers).filter(|n| *n != survivor);
    let lost = others.map(|n| power_loss(NodeRef::Broker(topic.on.clone(), n), half, false, Loses::Drawn));
    let mut moves = vec![Move::now(behind)];
    moves.extend(lost.map(|action| Move::at(half, action)));
    moves.push(Move::at(half.plus(TOLD), elect(&topic.on, &name, Some(partition), Elect::Unclean(true))));
    Some(moves)
}
