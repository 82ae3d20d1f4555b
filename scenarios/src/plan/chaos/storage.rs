//! Strikes at disks.

use super::{Draw, Move};
use crate::format::action::{Action, DiskCall, NodeRef};
use crate::format::chaos::ChaosKind as Kind;
use crate::units::{Chance, Time};

pub(super) fn moves(d: &Draw<'_>) -> Option<Vec<Move>> {
    let lasting = d.lasting();
    let action = match d.kind {
        Kind::DiskStall => Action::DiskStall { node: d.node()?, call: DiskCall::Any, lasting },
        Kind::DiskFull => Action::DiskFull { node: d.node()?, lasting },
        Kind::DiskError => Action::DiskError { node: d.node()?, call: call(d)?, probability: chance(d), lasting },
        Kind::DiskSlow => {
            let by = d.between("chaos.extra", Time(10_000), Time::millis(50));
            Action::DiskSlow { node: d.node()?, call: call(d)?, by, lasting }
        }
        Kind::BitRot => {
            let (topic, name, partition) = d.partition()?;
            let brokers = u64::from(d.stage.clusters.get(&topic.on)?.brokers);
            let broker = 1 + u32::try_from(d.below("chaos.rotten", brokers)).ok()?;
            let bits = 1 + u32::try_from(d.below("chaos.bits", 3)).ok()?;
            Action::BitRot { node: NodeRef::Broker(topic.on.clone(), broker), topic: name, partition, bits }
        }
        _ => return None,
    };
    Some(vec![Move::now(action)])
}

fn call(d: &Draw<'_>) -> Option<DiskCall> {
    d.pick("chaos.call", DiskCall::NAMED).map(|(_, call)| *call)
}

/// One call in a thousand to all of them, each size as likely as the others.
fn chance(d: &Draw<'_>) -> Chance {
    Chance((1_000_000_u32 << d.below("chaos.chance", 11)).min(1_000_000_000))
}
