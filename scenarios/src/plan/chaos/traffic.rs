//! Strikes at the network: what does not arrive, arrives late, or twice.

use super::processes::extra;
use super::{Draw, Move};
use crate::format::action::{Action, NodeRef, Place, Role};
use crate::format::chaos::ChaosKind as Kind;
use crate::units::{Bandwidth, Chance, Time};

/// What a link without a bandwidth is taken to have.
const UNLIMITED: u64 = 1_000_000_000;
/// A collapsed link still passes so many bits a second.
const TRICKLE: u64 = 8_000;

pub(super) fn moves(d: &Draw<'_>) -> Option<Vec<Move>> {
    let lasting = d.lasting();
    let once = |action| Some(vec![Move::now(action)]);
    match d.kind {
        Kind::Partition => once(cut_off(d.node()?, None, false, d.length)),
        Kind::OneWay => once(cut_off(d.node()?, None, true, d.length)),
        Kind::ControllerPartition => once(cut_off(d.voter()?, None, false, d.length)),
        Kind::ControllerCut => once(cut_off(d.node()?, Some(Role::Controller), false, d.length)),
        Kind::CoordinatorCut => {
            let mirror = d.mirror()?;
            let cluster = d.stage.mirrors.get(&mirror)?.on.clone();
            let between = Some([Place::Node(NodeRef::Coordinator(mirror)), Place::Cluster(cluster)]);
            once(Action::Partition { between, node: None, role: Some(Role::Replication), one_way: false, lasting })
        }
        Kind::MirrorCut => once(between_clusters(d, d.one_in("chaos.one_way", 2), d.length)?),
        Kind::LinkDown => {
            let (_, [a, b]) = d.link().filter(|(_, [a, b])| a != b)?;
            let between = Some([Place::Site(a.clone()), Place::Site(b.clone())]);
            once(Action::Partition { between, node: None, role: None, one_way: false, lasting })
        }
        Kind::Flapping => flapping(d),
        Kind::LatencySpike => {
            let (name, _) = d.link()?;
            let latency = d.stage.links.get(name)?.both.latency.plus(extra(d));
            once(Action::Latency { link: name.clone(), latency, jitter: None, toward: None, lasting })
        }
        Kind::Loss => {
            let loss = Chance(u32::try_from(d.below("chaos.loss", 100_000_000)).unwrap_or(0) + 1);
            once(Action::Loss { link: d.link()?.0.clone(), loss, toward: None, lasting })
        }
        Kind::BandwidthCollapse => {
            let (name, _) = d.link()?;
            let whole = d.stage.links.get(name)?.both.bandwidth.map_or(UNLIMITED, |b| b.0);
            // From a hundredth to a millionth, each size as likely as the others.
            let share = 100 << d.below("chaos.share", 14);
            let bandwidth = Bandwidth((whole / share).max(TRICKLE));
            once(Action::Bandwidth { link: name.clone(), bandwidth, toward: None, lasting })
        }
        Kind::Reset => {
            let silent = d.one_in("chaos.silent", 4);
            once(Action::ResetConnections { link: Some(d.link()?.0.clone()), node: None, silent })
        }
        Kind::LateMessages => {
            let kind = d.pick("chaos.message", &d.targets.answers)?.clone();
            let extra = d.between("chaos.late", Time::millis(100), Time::secs(10));
            once(Action::DelayMessages { kind, from: None, to: None, probability: percent(d, 50), extra, lasting })
        }
        Kind::DuplicateMessages => {
            let kind = d.pick("chaos.message", &d.targets.answers)?.clone();
            let extra = d.between("chaos.late", Time::millis(1), Time::secs(1));
            once(Action::Duplicate { kind, from: None, to: None, probability: percent(d, 50), extra, lasting })
        }
        Kind::Reordering => {
            let extra = d.between("chaos.late", Time::millis(1), Time::millis(300));
            let (kind, probability) = ("any".to_owned(), percent(d, 20));
            once(Action::DelayMessages { kind, from: None, to: None, probability, extra, lasting })
        }
        _ => None,
    }
}

pub(super) fn cut_off(node: NodeRef, role: Option<Role>, one_way: bool, length: Time) -> Action {
    Action::Partition { between: None, node: Some(node), role, one_way, lasting: Some(length) }
}

/// A chance of at most so many percent, and not none.
fn percent(d: &Draw<'_>, most: u64) -> Chance {
    Chance(u32::try_from(d.below("chaos.chance", most * 10_000_000)).unwrap_or(0) + 1)
}

/// The brokers of a mirror's two clusters.
fn between_clusters(d: &Draw<'_>, one_way: bool, length: Time) -> Option<Action> {
    let mirror = d.stage.mirrors.get(&d.mirror()?)?;
    let mut ends = [Place::Cluster(mirror.source.clone()), Place::Cluster(mirror.on.clone())];
    if d.one_in("chaos.direction", 2) {
        ends.swap(0, 1);
    }
    let lasting = Some(length);
    Some(Action::Partition { between: Some(ends), node: None, role: Some(Role::Mirror), one_way, lasting })
}

/// Cut, whole, cut, whole: each for half of an equal share of the time.
fn flapping(d: &Draw<'_>) -> Option<Vec<Move>> {
    let times = 3 + d.below("chaos.times", 6);
    let share = Time(d.length.0 / times);
    let cut = Time(share.0 / 2).max(Time::millis(1));
    let action = match between_clusters(d, false, cut) {
        Some(wan) if d.one_in("chaos.wan", 2) => wan,
        _ => cut_off(d.node()?, None, false, cut),
    };
    Some((0..times).map(|n| Move::at(Time(share.0 * n), action.clone())).collect())
}
