//! Liveness: each property is shown a world in which it does not hold yet, and the excuses that it knows.

use super::fake::{batch, controller, node, Play, CLIENT, P};
use super::mirrors::{copy, mirroring, sight};
use super::{committed, NOTHING};
use crate::checks::sight::{MirrorSight, PositionSight, ProducerSight};
use mirrorlab_model::ids::*;
use mirrorlab_model::metadata::image::MetadataImage;
use mirrorlab_model::metadata::records::Record;
use mirrorlab_model::ports::Lane;
use mirrorlab_model::states::MirrorState;
use mirrorlab_model::trace::Origin;
use mirrorlab_model::wire::messages::ConfigResource;

fn excuses(play: &mut Play) -> Vec<String> {
    let left = play.core.liveness(&play.world);
    left.excuses.iter().filter_map(|line| line.split(" (").next()).map(str::to_owned).collect()
}

#[test]
fn a_settled_world_has_nothing_left() {
    let mut play = committed(2);
    play.world.producer = Some(ProducerSight { open: 0, idle: true, decided_by: None });
    let position = PositionSight { partition: P, offset: Offset(8), given_up: false, read_committed: false };
    play.world.positions = Some(vec![position]);
    assert_eq!(play.left(), NOTHING);
}

#[test]
fn l1_waits_for_every_verdict() {
    let mut play = committed(2);
    let mut open = ProducerSight { open: 2, idle: false, decided_by: None };
    play.world.producer = Some(open);
    assert_eq!(play.left(), ["L1"]);
    assert_eq!(play.retry_at(), None);
    // What nobody takes is decided when its time is over: worth waiting for, if that is all.
    open.decided_by = Some(Nanos::from_secs(7));
    play.world.producer = Some(open);
    assert_eq!((play.left(), play.retry_at()), (vec!["L1".to_owned()], open.decided_by));
    play.append(0, 1, Origin::Client, &batch(8, 1, 1));
    assert_eq!((play.left(), play.retry_at()), (vec!["L6".to_owned(), "L1".to_owned()], None));
}

#[test]
fn l2_waits_for_every_replica() {
    let mut play = committed(2);
    play.acked(5, 3);
    play.core.ghost.clusters[0].partition(P).members[2].end = Offset(5);
    assert_eq!(play.left(), ["L2"]);
    play.world.down.insert(node(0, 3));
    assert!(excuses(&mut play).contains(&"L2: node down".to_owned()));
}

#[test]
fn l3_waits_for_registrations() {
    let mut play = committed(2);
    let (broker, epoch) = (BrokerId(2), BrokerEpoch(2));
    play.record(0, &Record::BrokerChange { broker, epoch, fenced: true, shutting_down: false });
    assert_eq!(play.left(), ["L3"]);
}

#[test]
fn l4_waits_for_leaders_unless_nobody_may_lead() {
    let mut play = committed(2);
    play.change(0, -1, 2, 0b111, 0);
    assert_eq!(play.left(), ["L4"]);
    play.world.down.extend((1..=3).map(|b| node(0, b)));
    assert_eq!(play.left(), NOTHING);
    assert!(excuses(&mut play).contains(&"L4: no eligible replica".to_owned()));
    // Without its controller nothing is asked of a cluster but what its brokers owe their clients.
    play.world.down = [controller(0), node(0, 2)].into();
    assert_eq!(play.left(), NOTHING);
    assert!(excuses(&mut play).contains(&"L3: no controller".to_owned()));
    play.world.producer = Some(ProducerSight { open: 1, idle: true, decided_by: None });
    assert_eq!(play.left(), ["L1"]);
}

#[test]
fn l5_waits_for_the_whole_isr_and_for_answers() {
    let mut play = committed(2);
    play.change(0, 1, 1, 0b011, 0);
    assert_eq!(play.left(), ["L5"]);
    let mut play = committed(2);
    play.replica(0, 1).in_flight = true;
    assert_eq!(play.left(), ["L5"]);
}

#[test]
fn l6_waits_for_the_watermark_unless_too_few_are_up() {
    let mut play = committed(2);
    play.append(0, 1, Origin::Client, &batch(8, 1, 1));
    assert_eq!(play.left(), ["L6"]);
    play.world.down.extend([node(0, 2), node(0, 3)]);
    assert_eq!(play.left(), NOTHING);
    assert!(excuses(&mut play).contains(&"L6: too few replicas".to_owned()));
}

#[test]
fn l8_waits_for_the_mirror() {
    let mut play = mirroring();
    copy(&mut play, &batch(0, 1, 5), 0, 5);
    assert_eq!(play.left(), ["L8"]);
    copy(&mut play, &batch(5, 1, 3), 5, 8);
    assert_eq!(play.left(), NOTHING);
}

#[test]
fn l8_and_s30_wait_until_the_sources_present_leader_was_heard() {
    let mut play = mirroring();
    copy(&mut play, &batch(0, 1, 5), 0, 5);
    copy(&mut play, &batch(5, 1, 3), 5, 8);
    let stale = MirrorSight { source_epoch: LeaderEpoch(0), ..sight(MirrorState::Mirroring) };
    play.world.mirrors.insert((node(1, 1), P), stale);
    assert_eq!(play.left(), ["L8"]);
    // Whatever the logs hold: nobody has compared them yet.
    let mut other = batch(0, 1, 5).to_vec();
    other[30] ^= 1;
    play.replica(1, 1).batches[0] = other.into();
    assert!(!play.quiet().contains(&"S30".to_owned()));
}

#[test]
fn l11_waits_for_retries_and_excuses_what_needs_an_operator() {
    let mut play = mirroring();
    let failed = sight(MirrorState::Failed);
    play.world.mirrors.insert((node(1, 1), P), MirrorSight { retries: true, ..failed });
    assert_eq!(play.left(), ["L11"]);
    assert_eq!(play.retry_at(), None);
    let retry_at = Some(Nanos::from_secs(9));
    play.world.mirrors.insert((node(1, 1), P), MirrorSight { retries: true, retry_at, ..failed });
    assert_eq!(play.left(), ["L11"]);
    assert_eq!(play.retry_at(), retry_at);
    play.world.mirrors.insert((node(1, 1), P), failed);
    assert_eq!(play.left(), NOTHING);
    assert!(excuses(&mut play).contains(&"L11: failed for good".to_owned()));
}

#[test]
fn l11_excuses_a_source_that_knows_no_mirrors_unless_one_way_is_enough() {
    let mut play = mirroring();
    play.world.mirrors.insert((node(1, 1), P), MirrorSight { retries: true, ..sight(MirrorState::Failed) });
    play.world.old.extend((1..=3).map(|broker| node(0, broker)));
    assert_eq!(play.left(), NOTHING);
    assert!(excuses(&mut play).contains(&"L11: the source refuses".to_owned()));
    let (resource, value) = (ConfigResource::ClusterMirror("m".into()), Some("true".into()));
    play.record(1, &Record::Config { resource, key: "allow.one.way".into(), value });
    assert_eq!(play.left(), ["L11"]);
    // A failure whose cause does not end is no stall either.
    let mut play = mirroring();
    play.world.mirrors.insert((node(1, 1), P), MirrorSight { retries: true, ..sight(MirrorState::Failed) });
    play.world.down.extend((1..=3).map(|broker| node(0, broker)));
    assert!(!play.left().contains(&"L11".to_owned()));
    assert!(excuses(&mut play).contains(&"L11: source down".to_owned()));
}

#[test]
fn l11_excuses_a_partition_without_a_source_if_it_is_older_than_the_mirror() {
    let mut play = mirroring();
    play.world.mirrors.insert((node(1, 1), P), MirrorSight { retries: true, ..sight(MirrorState::Failed) });
    play.record(
        0,
        &mirrorlab_model::metadata::records::Record::RemoveTopic { topic: mirrorlab_model::ids::TopicIx(0) },
    );
    assert_eq!(play.left(), NOTHING);
    assert!(excuses(&mut play).contains(&"L11: no such partition at the source".to_owned()));
    play.core.ghost.clusters[1].partition(P).born_a_copy = true;
    assert_eq!(play.left(), ["L11"]);
}

#[test]
fn l13_waits_for_consumers() {
    let mut play = committed(2);
    let position =
        |offset, given_up| PositionSight { partition: P, offset: Offset(offset), given_up, read_committed: false };
    play.world.positions = Some(vec![position(5, false)]);
    assert_eq!(play.left(), ["L13"]);
    play.world.positions = Some(vec![position(5, true)]);
    assert_eq!(play.left(), NOTHING);
    play.world.down.insert(CLIENT);
}

#[test]
fn l14_waits_for_metadata() {
    let mut play = committed(2);
    play.world.applied.insert(node(0, 2), MetadataImage::default());
    assert_eq!(play.left(), ["L14"]);
}

/// The source grew: what is to be copied grows with the mirror's next look at its metadata.
#[test]
fn l14_waits_for_a_topic_to_grow_with_its_source() {
    let grow = |play: &mut Play, cluster| {
        let state = play.world.images[1].partition(P).expect("a partition").state.clone();
        let (partition, topic) = (PartitionIx(1), TopicIx(0));
        play.record(cluster, &Record::Partition { partition, topic, number: 1, state });
    };
    let mut play = mirroring();
    copy(&mut play, &batch(0, 1, 5), 0, 5);
    copy(&mut play, &batch(5, 1, 3), 5, 8);
    grow(&mut play, 0);
    assert_eq!(play.left(), ["L14"]);
    assert!(!play.quiet().contains(&"S46".to_owned()));
    grow(&mut play, 1);
    assert!(!play.left().contains(&"L14".to_owned()));
    let mut play = mirroring();
    grow(&mut play, 0);
    play.world.down.extend((1..=3).map(|broker| node(0, broker)));
    assert!(excuses(&mut play).contains(&"L14: source down".to_owned()));
}

#[test]
fn l19_names_who_stops_the_clock() {
    let mut play = committed(2);
    play.world.stuck = Some((node(0, 1), Lane(3)));
    assert_eq!(play.left(), ["L19"]);
}
