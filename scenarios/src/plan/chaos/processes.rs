//! Strikes at processes, clocks and lanes.

use super::{Draw, Move};
use crate::format::action::{Action, Loses, NodeRef};
use crate::format::chaos::ChaosKind as Kind;
use crate::plan::draw::draw;
use crate::units::{Drift, SignedTime, Time};

/// A clock gains or loses up to a twentieth.
const DRIFT_PPB: u64 = 100_000_000;

pub(super) fn moves(d: &Draw<'_>) -> Option<Vec<Move>> {
    let restart_after = d.lasting();
    let once = |action| Some(vec![Move::now(action)]);
    match d.kind {
        Kind::Crash => once(kill(d.node()?, d.length, d.inside_task())),
        Kind::PowerLoss => once(power_loss(d.node()?, d.length, d.inside_task(), Loses::Drawn)),
        Kind::TornTail => once(power_loss(d.node()?, d.length, false, Loses::Tails)),
        Kind::LostUnflushed => once(power_loss(d.node()?, d.length, false, Loses::Unflushed)),
        Kind::LostNames => once(power_loss(d.node()?, d.length, false, Loses::Names)),
        Kind::PowerLossOfAll => once(power_loss(NodeRef::Brokers(d.broker()?.0), d.length, false, Loses::Drawn)),
        Kind::ControllerCrash => once(kill(d.voter()?, d.length, false)),
        Kind::ControllerPowerLoss => once(power_loss(d.voter()?, d.length, false, Loses::Drawn)),
        Kind::ControllerPause => once(Action::Pause { node: d.voter()?, lasting: d.lasting() }),
        Kind::Shutdown => once(Action::Shutdown { node: d.node()?, restart_after }),
        Kind::Pause => once(Action::Pause { node: d.node()?, lasting: d.lasting() }),
        Kind::Wipe => once(Action::Wipe { node: d.node()?, restart_after }),
        Kind::QuickRestart => once(falls(d, d.node()?, d.length.min(session(d)), d.inside_task())),
        Kind::DoubleBounce => double_bounce(d),
        Kind::CrashAtStart => {
            once(Action::CrashAtStart { node: d.node()?, power: d.one_in("chaos.power", 2), restart_after })
        }
        Kind::RollingRestart => rolling_restart(d),
        Kind::ClientPause => {
            let node = NodeRef::Client(d.pick("chaos.client", &d.targets.clients)?.clone());
            once(Action::Pause { node, lasting: d.lasting() })
        }
        Kind::ClockJump => once(Action::ClockJump { node: d.node()?, by: clock_off(d) }),
        Kind::ClockOffset => {
            let (node, by) = (d.node()?, clock_off(d));
            let back = Action::ClockJump { node: node.clone(), by: SignedTime(-by.0) };
            Some(vec![Move::now(Action::ClockJump { node, by }), Move::at(d.length, back)])
        }
        Kind::ClockDrift => {
            let rate = i64::try_from(d.below("chaos.drift", DRIFT_PPB)).unwrap_or(0) - DRIFT_PPB as i64 / 2;
            once(Action::ClockDrift { node: d.node()?, rate: Drift(rate), lasting: d.lasting() })
        }
        Kind::SlowLane => {
            let lane = d.pick("chaos.lane", &d.targets.lanes)?.clone();
            once(Action::SlowLane { node: d.node()?, lane, by: extra(d), lasting: d.lasting() })
        }
        Kind::DelayMetadata => once(Action::DelayMetadata { node: d.node()?, by: extra(d), lasting: d.lasting() }),
        _ => None,
    }
}

fn kill(node: NodeRef, length: Time, inside_task: bool) -> Action {
    Action::Kill { node, restart_after: Some(length), inside_task }
}

pub(super) fn power_loss(node: NodeRef, length: Time, inside_task: bool, loses: Loses) -> Action {
    Action::PowerLoss { node, restart_after: Some(length), inside_task, loses }
}

/// One time in two it is the power.
fn falls(d: &Draw<'_>, node: NodeRef, length: Time, inside_task: bool) -> Action {
    if d.one_in("chaos.power", 2) {
        power_loss(node, length, inside_task, Loses::Drawn)
    } else {
        kill(node, length, inside_task)
    }
}

/// Half a session: whoever is back by then was not missed.
fn session(d: &Draw<'_>) -> Time {
    let cluster = d.broker().map(|(cluster, _)| cluster).unwrap_or_default();
    let config = d.stage.clusters.get(&cluster).and_then(|c| c.config.get("broker.session.timeout.ms"));
    Time::millis(config.and_then(|text| text.parse().ok()).unwrap_or(9_000) / 2)
}

/// Down, up for a moment, and down again.
fn double_bounce(d: &Draw<'_>) -> Option<Vec<Move>> {
    let first = d.between("chaos.first", Time::millis(1), d.part(40).max(Time::millis(1)));
    let up = d.between("chaos.up", Time::millis(60), Time::secs(2));
    let second = first.plus(up);
    let rest = Time(d.length.0.saturating_sub(second.0)).max(Time::millis(100));
    let node = d.node()?;
    let other = if d.one_in("chaos.second", 2) {
        kill(node.clone(), rest, false)
    } else {
        power_loss(node.clone(), rest, false, Loses::Drawn)
    };
    Some(vec![Move::now(falls(d, node, first, d.inside_task())), Move::at(second, other)])
}

/// Each broker goes down for less than its share of the time.
fn rolling_restart(d: &Draw<'_>) -> Option<Vec<Move>> {
    let (cluster, _) = d.broker()?;
    let brokers = d.stage.clusters.get(&cluster)?.brokers;
    let share = d.length.0 / u64::from(brokers.max(1));
    let one = |n: u32| {
        let action = Action::Shutdown {
            node: NodeRef::Broker(cluster.clone(), n + 1),
            restart_after: Some(Time(share / 3).max(Time::millis(1))),
        };
        Move::at(Time(share * u64::from(n)), action)
    };
    Some((0..brokers).map(one).collect())
}

fn clock_off(d: &Draw<'_>) -> SignedTime {
    let size = d.between("chaos.jump", Time::millis(10), Time::secs(60)).0;
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    SignedTime(if draw(d.seed, "chaos.sign", d.n) & 1 == 0 { size } else { -size })
}

pub(super) fn extra(d: &Draw<'_>) -> Time {
    d.between("chaos.extra", Time::millis(1), Time::secs(1))
}
