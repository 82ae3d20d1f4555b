//! Each check is shown a world in which its property is broken, and one in which it is not.

mod aligned;
mod compacted;
mod compaction;
mod damage;
mod excused;
mod fake;
mod late;
mod lineages;
mod live;
mod lived;
mod lives;
mod mirrors;
mod orders;
mod quorum;
mod recovery;
mod sequences;
mod transactions;

use super::ghost::Stop;
use super::logs;
use super::ranges::Ranges;
use super::{explain, CHECKS};
use fake::{batch, controller, node, Play, CLIENT, P};
use mirrorlab_model::client::read_hash::ReadHash;
use mirrorlab_model::ids::*;
use mirrorlab_model::log::EpochEntry;
use mirrorlab_model::metadata::image::MetadataImage;
use mirrorlab_model::metadata::records::Record;
use mirrorlab_model::trace::{CutCause, ElectionKind, Origin, Trace};
use mirrorlab_model::wire::messages::ConfigResource;

const NOTHING: [&str; 0] = [];

/// A play in which broker 1 of east committed `0..5` and `5..8`.
fn committed(min_isr: u32) -> Play {
    let mut play = Play::new(min_isr);
    play.commit(0, 1, &batch(0, 1, 5));
    play.commit(0, 1, &batch(5, 1, 3));
    play
}

#[test]
fn every_check_has_one_row_and_can_be_explained() {
    for (at, check) in CHECKS.iter().enumerate() {
        assert!(CHECKS[at + 1..].iter().all(|c| c.id != check.id), "{} has two rows", check.id);
        assert!(!check.statement.is_empty() && !check.trips.is_empty() && !check.phases.is_empty());
    }
    assert_eq!(explain("S2").map(|c| c.name), Some("log matching"));
    assert!(explain("S99").is_none());
}

#[test]
fn a_healthy_history_breaks_nothing() {
    let mut play = committed(2);
    assert_eq!(play.acked(0, 5), NOTHING);
    let mut hash = ReadHash::default();
    hash.bytes(&batch(0, 1, 5));
    let read = Trace::Read { partition: P, consumer: 1, base: Offset(0), next: Offset(5), hash: hash.finish() };
    assert_eq!(play.at(CLIENT, read), NOTHING);
    // Broker 1 is killed, broker 2 takes over, broker 1 comes back.
    play.world.down.insert(node(0, 1));
    play.core.on_stop(&play.world, node(0, 1), Stop::Killed, None);
    assert_eq!(play.change(0, 2, 2, 0b110, 0), NOTHING);
    assert_eq!(play.lead(0, 2, 2), NOTHING);
    let next = batch(8, 2, 2);
    assert_eq!(play.append(0, 2, Origin::Client, &next), NOTHING);
    assert_eq!(play.append(0, 3, Origin::Replication, &next), NOTHING);
    assert_eq!(play.watermark(0, 2, 10), NOTHING);
    play.world.down.clear();
    let back = Trace::LogRecovered { partition: P, start: Offset(0), end: Offset(8), clean: false };
    assert_eq!(play.at(node(0, 1), back), NOTHING);
    assert_eq!(play.append(0, 1, Origin::Replication, &next), NOTHING);
    assert_eq!(play.change(0, 2, 2, 0b111, 0), NOTHING);
    assert_eq!(play.quiet(), NOTHING);
    assert_eq!(play.end(), NOTHING);
    assert_eq!(play.core.acked_by(1), 5);
}

#[test]
fn s0_sees_a_process_that_stops_on_its_own_assertion() {
    let mut play = committed(2);
    play.core.on_stop(&play.world, node(0, 1), Stop::Killed, Some("two leaders"));
    assert_eq!(play.at(CLIENT, Trace::ReplicaRemoved { partition: P }), ["S0"]);
}

#[test]
fn s1_sees_gaps_overlaps_and_damaged_bytes() {
    let mut play = committed(2);
    assert_eq!(play.appended(0, 1, Origin::Client, &batch(9, 1, 1)), ["S1"]);
    let mut play = committed(2);
    assert_eq!(play.appended(0, 2, Origin::Replication, &batch(7, 1, 4)), ["S1"]);
    let mut play = committed(2);
    let mut bytes = play.replica(0, 1).batches[1].to_vec();
    *bytes.last_mut().expect("bytes") ^= 1;
    for broker in 1..=3 {
        play.replica(0, broker).batches[1] = bytes.clone().into();
    }
    assert!(play.quiet().contains(&"S1".to_owned()));
}

#[test]
fn s2_sees_another_batch_below_both_watermarks_and_below_a_batch_of_the_same_epoch() {
    let other = |base, epoch| {
        let mut bytes = batch(base, epoch, 3).to_vec();
        bytes[30] ^= 1; // a timestamp: the batch is another one
        bytes::Bytes::from(bytes)
    };
    let mut play = committed(2);
    play.replica(0, 3).batches[1] = other(5, 1);
    assert!(play.quiet().contains(&"S2".to_owned()));
    // Above the watermarks, with the same epoch.
    let mut play = committed(2);
    play.append(0, 1, Origin::Client, &batch(8, 1, 3));
    play.store(0, 3, &other(8, 1));
    assert!(play.quiet().contains(&"S2".to_owned()));
    // Above the watermarks, with different epochs: an unreplicated tail, as after a failover.
    let mut play = committed(2);
    play.append(0, 3, Origin::Replication, &batch(8, 1, 3));
    play.change(0, 2, 2, 0b111, 0);
    play.lead(0, 2, 2);
    play.append(0, 2, Origin::Client, &batch(8, 2, 1));
    assert_eq!(play.quiet(), NOTHING);
}

/// What was walked of a leader's log says nothing of a shorter one, whose owner was elected and does not lead yet: what it lacks is
/// S3's, when it leads.
#[test]
fn s1_walks_no_log_above_its_end() {
    let mut play = committed(2);
    assert_eq!(play.quiet(), NOTHING);
    play.shorten(0, 2, 5);
    play.core.ghost.clusters[0].partition(P).members[1].end = Offset(5);
    play.change(0, 2, 2, 0b010, 0);
    assert!(!play.quiet().contains(&"S1".to_owned()));
    assert!(play.lead(0, 2, 2).contains(&"S3".to_owned()));
    // Its own bytes are walked all the same, from below its end on.
    let mut play = committed(2);
    assert_eq!(play.quiet(), NOTHING);
    play.replica(0, 1).end = Offset(9);
    assert!(play.quiet().contains(&"S1".to_owned()));
}

#[test]
fn s3_sees_a_leader_that_lacks_what_was_committed() {
    let mut play = committed(2);
    play.acked(5, 3);
    play.shorten(0, 2, 5);
    play.core.ghost.clusters[0].partition(P).members[1].end = Offset(5);
    play.change(0, 2, 2, 0b010, 0);
    assert_eq!(play.lead(0, 2, 2), ["S3"]);
}

#[test]
fn s3_sees_a_leader_of_the_right_length_with_other_content() {
    let mut play = committed(2);
    assert_eq!(play.quiet(), NOTHING); // what is committed becomes known by its sum
    let mut bytes = batch(5, 1, 3).to_vec();
    bytes[30] ^= 1;
    play.replica(0, 2).batches[1] = bytes.into();
    play.change(0, 2, 2, 0b010, 0);
    assert!(play.lead(0, 2, 2).contains(&"S3".to_owned()));
}

#[test]
fn s3_is_excused_by_an_unclean_election_and_by_enough_lossy_crashes_only() {
    // An unclean election: a new lineage begins where the new leader's log ends.
    let mut play = committed(2);
    let (resource, value) = (ConfigResource::Topic("t".into()), Some("true".into()));
    play.record(0, &Record::Config { resource, key: "unclean.leader.election.enable".into(), value });
    play.acked(0, 5);
    play.acked(5, 3);
    play.shorten(0, 2, 5);
    play.core.ghost.clusters[0].partition(P).members[1].end = Offset(5);
    let (leader, epoch, kind) = (BrokerId(2), LeaderEpoch(2), ElectionKind::Unclean);
    play.at(controller(0), Trace::Elected { partition: P, leader, epoch, kind });
    play.change(0, 2, 2, 0b010, 0);
    assert_eq!(play.lead(0, 2, 2), NOTHING);
    let g = play.core.ghost.clusters[0].partition(P);
    assert_eq!((g.true_hw, g.lineage, g.acked.count()), (Offset(5), 1, 5));
    assert_eq!(g.more.as_ref().map(|m| m.cuts[0].acked), Some(3));
    assert!(play.core.excuses()[0].contains("unclean election (operator)"));
    // Two lossy crashes with min.insync.replicas 2 are more than was promised for, one is not.
    for (crashes, broken) in [(2, &NOTHING[..]), (1, &["S3"][..])] {
        let mut play = committed(2);
        for broker in 1..=crashes {
            play.core.on_stop(&play.world, node(0, broker), Stop::Lossy, None);
        }
        play.shorten(0, 1, 5);
        let back = Trace::LogRecovered { partition: P, start: Offset(0), end: Offset(5), clean: false };
        assert_eq!(play.at(node(0, 1), back), NOTHING);
        play.change(0, 1, 2, 0b001, 0);
        assert_eq!(play.lead(0, 1, 2), broken);
    }
}

#[test]
fn s4_sees_a_candidate_that_cuts_to_its_watermark() {
    let mut play = committed(2);
    assert_eq!(play.cut(0, 3, 5, CutCause::Divergence), ["S4"]);
    // A replica that is no candidate may.
    let mut play = committed(2);
    play.change(0, 1, 1, 0b011, 0);
    assert_eq!(play.cut(0, 3, 5, CutCause::Divergence), NOTHING);
}

#[test]
fn s4_sees_a_short_candidate_at_an_election() {
    let mut play = committed(2);
    play.shorten(0, 3, 5);
    play.core.ghost.clusters[0].partition(P).members[2].end = Offset(5);
    play.change(0, 2, 2, 0b110, 0);
    assert_eq!(play.lead(0, 2, 2), ["S4"]);
}

#[test]
fn s5_looks_at_real_logs_at_the_maximal_isr_and_at_its_size() {
    let mut play = committed(2);
    play.append(0, 1, Origin::Client, &batch(8, 1, 2));
    play.append(0, 2, Origin::Replication, &batch(8, 1, 2));
    assert_eq!(play.watermark(0, 1, 10), ["S5"]); // broker 3 does not hold it
                                                  // A proposed member counts as one.
    let mut play = committed(2);
    play.change(0, 1, 1, 0b011, 0);
    let epoch = PartitionEpoch(2);
    play.at(node(0, 1), Trace::IsrCommitted { partition: P, isr: 0b011, partition_epoch: epoch });
    play.append(0, 1, Origin::Client, &batch(8, 1, 2));
    play.append(0, 2, Origin::Replication, &batch(8, 1, 2));
    play.at(node(0, 1), Trace::IsrProposed { partition: P, isr: 0b111, partition_epoch: epoch });
    let mut refused = Play { world: play.world.clone(), core: play.core.clone() };
    refused.replica(0, 1).isr = 0b011;
    refused.replica(0, 1).proposed = 0b011;
    assert_eq!(refused.watermark(0, 1, 10), NOTHING);
    play.replica(0, 1).proposed = 0b111;
    assert_eq!(play.watermark(0, 1, 10), ["S5"]);
    // Too small.
    let mut play = committed(2);
    play.change(0, 1, 1, 0b001, 0b010);
    play.at(node(0, 1), Trace::IsrCommitted { partition: P, isr: 0b001, partition_epoch: epoch });
    play.append(0, 1, Origin::Client, &batch(8, 1, 2));
    assert_eq!(play.watermark(0, 1, 10), ["S5"]);
}

#[test]
fn s5_compares_what_a_follower_of_an_older_epoch_really_holds() {
    let mut play = committed(2);
    play.append(0, 3, Origin::Replication, &batch(8, 1, 4)); // an unreplicated tail of epoch 1
    play.change(0, 2, 2, 0b111, 0);
    play.lead(0, 2, 2);
    play.append(0, 2, Origin::Client, &batch(8, 2, 2));
    play.append(0, 1, Origin::Replication, &batch(8, 2, 2));
    assert_eq!(play.watermark(0, 2, 10), ["S5"]); // broker 3 is long enough, with other records
}

/// A follower drops its replica with the topic, and the leader, who has not heard of that, counts what it held.
#[test]
fn s5_asks_nothing_of_a_topic_that_is_deleted() {
    let counts = |deleted: bool| {
        let mut play = committed(2);
        for (broker, origin) in [(1, Origin::Client), (2, Origin::Replication), (3, Origin::Replication)] {
            assert_eq!(play.append(0, broker, origin, &batch(8, 1, 1)), NOTHING);
        }
        if deleted {
            play.record(0, &Record::RemoveTopic { topic: TopicIx(0) });
        }
        play.at(node(0, 2), Trace::ReplicaRemoved { partition: P });
        play.watermark(0, 1, 9)
    };
    assert_eq!(counts(true), NOTHING);
    assert_eq!(counts(false), ["S5"]);
}

#[test]
fn s5_sees_a_position_beyond_the_followers_log_and_a_wrong_isr() {
    let mut play = committed(2);
    let position = |at| Trace::FollowerPosition { partition: P, follower: BrokerId(2), position: Offset(at) };
    assert_eq!(play.at(node(0, 1), position(8)), NOTHING);
    assert_eq!(play.at(node(0, 1), position(9)), ["S5"]);
    let epoch = play.core.ghost.clusters[0].partition(P).partition_epoch;
    assert_eq!(play.at(node(0, 1), Trace::IsrCommitted { partition: P, isr: 0b011, partition_epoch: epoch }), ["S5"]);
}

#[test]
fn s6_sees_that_nobody_holds_what_was_acknowledged() {
    let mut play = committed(2);
    play.acked(5, 3);
    for broker in 1..=3 {
        play.shorten(0, broker, 5);
    }
    assert!(play.end().contains(&"S6".to_owned()));
}

#[test]
fn s7_sees_watermarks_that_fall_or_exceed_the_log() {
    let mut play = committed(2);
    assert_eq!(play.watermark(0, 1, 5), ["S7"]);
    let mut play = committed(2);
    assert_eq!(play.watermark(0, 2, 9), ["S7"]);
    // Of who leads; not of who led before.
    let mut play = committed(2);
    play.change(0, 2, 2, 0b110, 0);
    play.lead(0, 2, 2);
    assert!(!play.watermark(0, 1, 5).contains(&"S7".to_owned()));
    let mut play = committed(2);
    assert_eq!(play.watermark(0, 2, 5), NOTHING); // a follower takes what its leader says
}

#[test]
fn s8_compares_what_was_read_with_the_leader() {
    let mut play = committed(2);
    let read = |next, hash| Trace::Read { partition: P, consumer: 1, base: Offset(0), next: Offset(next), hash };
    assert_eq!(play.at(CLIENT, read(5, 1)), ["S8"]);
    assert_eq!(play.at(CLIENT, read(9, 1)), ["S8"]); // above what is committed
}

/// KIP-320: a lineage ends at 5, of what a consumer had read up to 8; the next one grows past that.
#[test]
fn s8_sees_a_reader_that_passes_a_fork() {
    let read = |play: &mut Play, base: i64, next: i64, batches: &[bytes::Bytes]| {
        let mut hash = ReadHash::default();
        batches.iter().for_each(|batch| hash.bytes(batch));
        let (base, next, hash) = (Offset(base), Offset(next), hash.finish());
        play.at(CLIENT, Trace::Read { partition: P, consumer: 1, base, next, hash })
    };
    let after = |reset: bool, from: i64| {
        let mut play = committed(1);
        let (resource, value) = (ConfigResource::Topic("t".into()), Some("true".into()));
        play.record(0, &Record::Config { resource, key: "unclean.leader.election.enable".into(), value });
        play.core.ghost.clusters[0].partition(P).unclean_allowed = true;
        assert_eq!(read(&mut play, 0, 8, &[batch(0, 1, 5), batch(5, 1, 3)]), NOTHING);
        play.shorten(0, 2, 5);
        play.core.ghost.clusters[0].partition(P).members[1].end = Offset(5);
        let (leader, epoch, kind) = (BrokerId(2), LeaderEpoch(2), ElectionKind::Unclean);
        play.at(controller(0), Trace::Elected { partition: P, leader, epoch, kind });
        play.change(0, 2, 2, 0b010, 0);
        assert_eq!(play.lead(0, 2, 2), NOTHING);
        for broker in [1, 3] {
            play.cut(0, broker, 5, CutCause::Divergence);
        }
        let written = [batch(5, 2, 3), batch(8, 2, 2)];
        written.iter().for_each(|batch| play.commit(0, 2, batch));
        if reset {
            play.at(CLIENT, Trace::PositionReset { partition: P, consumer: 1, from: Offset(8), to: Offset(8) });
        }
        let first = usize::from(from == 8);
        read(&mut play, from, 10, &written[first..])
    };
    assert_eq!(after(false, 8), ["S8"]);
    assert_eq!(after(true, 8), NOTHING);
    assert_eq!(after(false, 5), NOTHING);
}

#[test]
fn s9_sees_falling_epochs_and_a_table_that_is_not_the_logs() {
    let mut play = committed(2);
    assert_eq!(play.append(0, 1, Origin::Client, &batch(8, 0, 1)), ["S9"]);
    for wrong in [
        vec![],
        vec![EpochEntry { epoch: LeaderEpoch(1), start: Offset(5) }],
        vec![
            EpochEntry { epoch: LeaderEpoch(0), start: Offset(0) },
            EpochEntry { epoch: LeaderEpoch(1), start: Offset(5) },
        ],
        vec![
            EpochEntry { epoch: LeaderEpoch(1), start: Offset(0) },
            EpochEntry { epoch: LeaderEpoch(2), start: Offset(5) },
        ],
        vec![
            EpochEntry { epoch: LeaderEpoch(1), start: Offset(0) },
            EpochEntry { epoch: LeaderEpoch(2), start: Offset(12) },
        ],
    ] {
        let mut play = committed(2);
        play.replica(0, 2).epochs = wrong.clone();
        assert!(play.quiet().contains(&"S9".to_owned()), "{wrong:?}");
    }
    // A leader's own epoch at the log end is no lie.
    let mut play = committed(2);
    play.replica(0, 1).epochs.push(EpochEntry { epoch: LeaderEpoch(4), start: Offset(8) });
    assert_eq!(play.quiet(), NOTHING);
}

#[test]
fn s10_sees_two_writers_in_one_epoch_and_one_that_nobody_named() {
    let mut play = committed(2);
    assert_eq!(play.append(0, 2, Origin::Client, &batch(8, 1, 1)), ["S10"]);
    let mut play = committed(2);
    play.change(0, 2, 2, 0b111, 0);
    assert_eq!(play.lead(0, 3, 2), ["S10"]);
}

#[test]
fn s11_sees_an_acknowledgement_of_what_is_not_committed() {
    let mut play = committed(2);
    assert_eq!(play.append(0, 1, Origin::Client, &batch(8, 1, 2)), NOTHING);
    assert_eq!(play.acked(8, 2), ["S11"]);
}

#[test]
fn s12_sees_impossible_memberships() {
    for (leader, isr, elr) in [(1, 0b011, 0b010), (1, 0b1011, 0), (3, 0b011, 0), (1, 0b011, 0b100)] {
        let mut play = committed(2);
        let broken = play.change(0, leader, 1, isr, elr);
        assert!(broken.iter().all(|id| id == "S12") && !broken.is_empty(), "{leader} {isr:b} {elr:b}");
    }
    let mut play = committed(2);
    assert_eq!(play.change(0, 1, 1, 0b011, 0), NOTHING);
    play.at(controller(0), Trace::BrokerFenced { broker: BrokerId(3), fenced: true });
    assert_eq!(play.change(0, 1, 1, 0b111, 0), ["S12"]);
}

#[test]
fn s12_lets_in_who_belongs_there_and_knows_it() {
    let registered = |own: &str| {
        let mut play = Play::new(2);
        play.world.cluster_ids[0] = "east-id".into();
        play.world.strangers.insert(node(0, 3), own.into());
        play.at(node(0, 3), Trace::Registered { broker: BrokerId(3), epoch: 9, clean: true })
    };
    assert_eq!(registered("east-id"), NOTHING);
    assert_eq!(registered("west-id"), ["S12"]);
    // The process of broker 3 has epoch 3 in this world, and so it is registered.
    let let_in = |known: Option<MetadataImage>, epoch: i64| {
        let mut play = Play::new(2);
        let (broker, incarnation) = (BrokerId(3), 7);
        play.record(0, &Record::RegisterBroker { broker, node: node(0, 3), incarnation, epoch: BrokerEpoch(epoch) });
        play.world.applied.extend(known.map(|image| (node(0, 3), image)));
        play.at(controller(0), Trace::BrokerFenced { broker: BrokerId(3), fenced: false })
    };
    assert_eq!(let_in(None, 3), NOTHING);
    assert_eq!(let_in(Some(MetadataImage::default()), 3), ["S12"]);
    assert_eq!(let_in(Some(MetadataImage::default()), 9), NOTHING, "another process asked for that");
}

#[test]
fn s13_compares_what_was_applied_with_what_was_committed() {
    let mut play = Play::new(2);
    play.at(controller(0), Trace::MetadataCommitted { end: 5, hash: 50 });
    assert_eq!(play.at(node(0, 1), Trace::MetadataApplied { end: 5, hash: 50 }), NOTHING);
    assert_eq!(play.at(node(0, 2), Trace::MetadataApplied { end: 5, hash: 51 }), ["S13"]);
    assert_eq!(play.at(node(0, 3), Trace::MetadataApplied { end: 6, hash: 60 }), ["S13"]);
    assert_eq!(play.at(controller(0), Trace::MetadataCommitted { end: 5, hash: 52 }), ["S13"]);
}

#[test]
fn s21_sees_a_log_start_that_falls_or_passes_what_is_committed() {
    let mut play = committed(2);
    play.append(0, 1, Origin::Client, &batch(8, 1, 2));
    let start = |to| Trace::LogStartMoved { partition: P, to: Offset(to) };
    assert_eq!(play.at(node(0, 1), start(5)), NOTHING);
    assert_eq!(play.at(node(0, 1), start(3)), ["S21"]);
    assert_eq!(play.at(node(0, 1), start(9)), ["S21"]);
    // A log that was emptied begins where it begins.
    let mut play = committed(2);
    assert_eq!(play.at(node(0, 1), start(5)), NOTHING);
    play.shorten(0, 1, 2);
    let emptied = Trace::Truncated { partition: P, from: Offset(8), to: Offset(2), cause: CutCause::OutOfRange };
    assert!(!play.at(node(0, 1), emptied).contains(&"S21".to_owned()));
    assert_eq!(play.at(node(0, 1), start(2)), NOTHING);
}

#[test]
fn s22_sees_an_end_that_falls() {
    let mut play = committed(2);
    let told = |end| Trace::ToldEnd { partition: P, client: 1, end: Offset(end) };
    assert_eq!(play.at(CLIENT, told(8)), NOTHING);
    assert_eq!(play.at(CLIENT, told(8)), NOTHING);
    assert_eq!(play.at(CLIENT, told(5)), ["S22"]);
}

#[test]
fn ranges_merge_and_are_cut() {
    let mut ranges = Ranges::default();
    for (from, to) in [(0, 5), (8, 10), (5, 6), (12, 13), (6, 8), (3, 4)] {
        ranges.add(Offset(from), Offset(to));
    }
    let all: Vec<_> = ranges.iter().map(|r| (r.0 .0, r.1 .0)).collect();
    assert_eq!(all, [(0, 10), (12, 13)]);
    assert_eq!((ranges.count(), ranges.end()), (11, Offset(13)));
    assert!(ranges.touches(Offset(9), Offset(11)) && !ranges.touches(Offset(10), Offset(12)));
    assert_eq!(ranges.cut(Offset(7)), 4);
    assert_eq!(ranges.iter().collect::<Vec<_>>(), [(Offset(0), Offset(7))]);
}

#[test]
fn logs_compare_by_sums_and_differ_from_the_first_other_batch_on() {
    let mut play = Play::new(2);
    let mut other = batch(60, 1, 5).to_vec();
    other[30] ^= 1;
    for at in 0..20 {
        let bytes = batch(at * 5, 1, 5);
        play.store(0, 1, &bytes);
        play.store(0, 2, &if at == 12 { other.clone().into() } else { bytes });
    }
    use super::sight::Sight;
    let log = |broker| play.world.replica(node(0, broker), P).expect("a replica").log;
    assert_eq!(logs::first_difference(log(1), log(2), Offset(0)), Offset(60));
    assert_eq!(logs::first_difference(log(1), log(2), Offset(65)), Offset(100));
    assert!(logs::equal(log(1), log(2), Offset(0), Offset(60)));
    assert!(!logs::equal(log(1), log(2), Offset(0), Offset(65)));
    assert!(logs::equal(log(1), log(2), Offset(65), Offset(100)));
    assert_eq!(logs::range_sum(log(1), Offset(0), Offset(3)), None, "not a batch border");
    assert_eq!(logs::epoch_before(log(1), Offset(0)), LeaderEpoch::NONE);
}

#[test]
fn in_a_large_world_a_quiet_point_sees_what_changed_and_the_rest_in_its_turn() {
    let quiet = |play: &mut Play| play.core.at_quiet_point(&play.world).len();
    let damaged = || {
        let mut play = committed(2);
        play.core.ghost.clusters[1].partition(PartitionIx(400));
        assert_eq!(quiet(&mut play), 0);
        play.replica(0, 3).batches[0] = batch(0, 2, 5);
        play
    };
    let mut play = damaged();
    play.core.ghost.clusters[0].partition(P); // an event tells of it
    assert!(quiet(&mut play) > 0);
    let mut play = damaged();
    let turns = (0..100).position(|_| quiet(&mut play) > 0);
    assert!(turns.is_some_and(|turns| turns > 1), "{turns:?}");
    // A small world is swept whole.
    let mut play = committed(2);
    assert_eq!(quiet(&mut play), 0);
    play.replica(0, 3).batches[0] = batch(0, 2, 5);
    assert!(quiet(&mut play) > 0);
}
