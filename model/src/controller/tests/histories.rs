//! Random histories: after every step membership keeps its rules and the indices agree with the image; at the end a start
//! from the disk, with and without snapshots, power lost or not, gives the committed state back (S12, S13).

use super::*;
use crate::controller::state::ReplicaIndex;

const BROKERS: u64 = 5;

fn draw(seed: u64, step: u64, what: u64, below: u64) -> u64 {
    Entropy(seed).below(what, step, below)
}

/// One step of something that happens to a cluster.
fn step(rig: &mut Rig, seed: u64, at: u64) {
    let broker = 1 + draw(seed, at, 1, BROKERS) as i32;
    let known = rig.controller.image().broker(BrokerId(broker)).copied();
    let count = rig.controller.image().partitions().count() as u64;
    let partition = rig.controller.image().partitions().nth(draw(seed, at, 2, count.max(1)) as usize).map(|(ix, _)| ix);
    match (draw(seed, at, 0, 12), known, partition) {
        (0 | 1, None, _) => {
            rig.register_as(broker, u128::from(at), -1);
        }
        (0, Some(known), _) => {
            // Back after a while, with its marker or without.
            rig.pass(9_000);
            let previous = if draw(seed, at, 3, 2) == 0 { known.epoch.0 } else { -1 };
            rig.register_as(broker, u128::from(at), previous);
        }
        (2..=4, Some(_), _) => {
            rig.beat(broker, draw(seed, at, 4, 6) == 0, draw(seed, at, 5, 12) == 0);
        }
        (5 | 6, _, Some(p)) => {
            let (leader, _, isr, _) = rig.short(p);
            if leader >= 0 {
                let replicas = rig.state(p).replicas;
                let wanted: Vec<i32> = replicas
                    .iter()
                    .map(|b| b.0)
                    .filter(|b| *b == leader || (draw(seed, at, 6 + *b as u64, 2) == 0) == isr.contains(b))
                    .collect();
                rig.propose(p, &wanted);
            }
        }
        (7, _, _) => {
            let name = format!("t{}", draw(seed, at, 7, 6));
            let new = NewTopic {
                name: name.as_str().into(),
                partitions: 1 + draw(seed, at, 8, 4) as u32,
                replication_factor: 1 + draw(seed, at, 9, 3) as i16,
                configs: vec![("min.insync.replicas".into(), (1 + draw(seed, at, 10, 3)).to_string().into())],
                ..NewTopic::default()
            };
            rig.ask(CreateTopicsRequest { topics: vec![new] });
        }
        (8, _, _) => {
            let unclean = draw(seed, at, 11, 3) == 0;
            rig.ask(ElectLeadersRequest { unclean, parts: Vec::new() });
        }
        (9, _, _) => {
            let topic = ConfigResource::Topic(format!("t{}", draw(seed, at, 12, 6)).into());
            let value = (1 + draw(seed, at, 13, 3)).to_string();
            rig.set_config(topic, "min.insync.replicas", Some(&value));
        }
        (10, _, Some(p)) => {
            let parts = vec![(p, LeaderEpoch(draw(seed, at, 14, 40) as i32))];
            rig.ask(BumpLeaderEpochsRequest { parts });
        }
        (11, _, _) if draw(seed, at, 15, 4) == 0 => {
            rig.ask(DeleteTopicsRequest { topics: vec![format!("t{}", draw(seed, at, 16, 6)).into()] });
        }
        _ => rig.pass(500),
    }
}

fn check_membership(rig: &Rig, elr_on: bool) {
    let image = rig.controller.image();
    for (_, p) in image.partitions() {
        let s = &p.state;
        let min = (image.topic_config(p.topic).min_insync_replicas as usize).min(s.replicas.len());
        assert!(s.isr.iter().chain(&s.elr).all(|b| s.replicas.contains(b)), "{s:?}");
        assert!(s.isr.iter().all(|b| !s.elr.contains(b)), "{s:?}");
        assert!(s.elr.is_empty() || s.isr.is_empty() || s.isr.len() < min, "{s:?}");
        assert!(s.leader == BrokerId::NONE || s.isr.contains(&s.leader) && image.is_active(s.leader), "{s:?}");
        let in_service = s.isr.iter().all(|b| image.is_active(*b));
        assert!(in_service || !elr_on && s.isr.len() == 1, "{s:?}");
        assert!(elr_on || !s.isr.is_empty(), "{s:?}");
    }
    assert_eq!(rig.controller.state().index(), &ReplicaIndex::of(image));
}

fn run(seed: u64, elr: bool) {
    let every = if seed % 3 == 0 { 500_000 } else { 5 + seed % 40 };
    let mut config = ControllerConfig { records_between_snapshots: every, log_segment_bytes: 1_500, ..config() };
    config.broker.eligible_leader_replicas_enable = elr;
    let mut rig = Rig::new(config.clone());
    let mut epochs: std::collections::BTreeMap<PartitionIx, (i32, i32)> = Default::default();
    for at in 0..150 {
        step(&mut rig, seed, at);
        check_membership(&rig, elr);
        for (ix, p) in rig.controller.image().partitions() {
            let now = (p.state.leader_epoch.0, p.state.leader.0);
            let before = epochs.insert(ix, now).unwrap_or(now);
            assert!(now == before || now.0 > before.0 || now.0 == before.0 && now.1 == before.1, "{before:?} {now:?}");
        }
    }
    assert_eq!(rig.controller.image(), rig.controller.committed_image());
    let mut disk = rig.disk.clone();
    if seed % 2 == 0 {
        disk.crash(seed);
    }
    let again = Rig::on(config, disk, Guards::default(), rig.now);
    let (a, b) = (again.controller.image(), rig.controller.image());
    assert!(a.partitions().eq(b.partitions()) && a.topics().eq(b.topics()) && a.brokers().eq(b.brokers()));
    assert_eq!((a.next_topic(), a.next_partition(), a.end().0), (b.next_topic(), b.next_partition(), b.end().0 + 1));
    check_membership(&again, elr);
}

#[test]
fn random_histories_keep_the_rules_with_elr() {
    (0..60).for_each(|seed| run(seed, true));
}

#[test]
fn random_histories_keep_the_rules_without_elr() {
    (0..60).for_each(|seed| run(seed, false));
}
