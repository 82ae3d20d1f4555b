//! What disks do by themselves: bits that flip, older copies that are put back. Each excuse takes what follows from that, and nothing
//! that follows from something else.

use super::fake::{batch, node, Play, CLIENT, P};
use super::mirrors::{copy, mirroring, sight};
use super::{committed, NOTHING};
use crate::checks::ghost::Stop;
use crate::checks::sight::{MirrorSight, PositionSight, RotSight};
use mirrorlab_model::client::read_hash::ReadHash;
use mirrorlab_model::ids::*;
use mirrorlab_model::states::MirrorState;
use mirrorlab_model::trace::{Origin, Trace};

/// The batch `5..8` rots at a broker.
pub fn rotten(mut play: Play, cluster: u8, broker: i32) -> Play {
    play.world
        .rotten
        .insert((node(cluster, broker), P), vec![RotSight { from: Offset(5), to: Offset(8), holds: Offset(8) }]);
    play.core.rotted(&play.world, node(cluster, broker));
    play
}

/// Its log ends here when it is loaded.
fn loaded(play: &mut Play, broker: i32, end: i64, clean: bool) -> Vec<String> {
    play.shorten(0, broker, end);
    play.world.rotten.clear();
    play.at(node(0, broker), Trace::LogRecovered { partition: P, start: Offset(0), end: Offset(end), clean })
}

fn excuses(play: &Play, id: &str, name: &str) -> usize {
    let mut told = play.core.excuses();
    told.sort();
    told.iter().filter(|line| line.starts_with(&format!("{id}: {name} ("))).count()
}

#[test]
fn s15_excuses_a_log_that_ends_where_bits_flipped_and_nowhere_else() {
    let back = |stop, end, clean, of| {
        let mut play = rotten(committed(2), 0, of);
        play.core.before_stop(&play.world, node(0, 3));
        play.core.on_stop(&play.world, node(0, 3), stop, None);
        let broken = loaded(&mut play, 3, end, clean);
        (broken, excuses(&play, "S15", "bit rot"))
    };
    assert_eq!(back(Stop::Killed, 5, false, 3), (vec![], 1));
    assert_eq!(back(Stop::Clean, 5, true, 3), (vec![], 1));
    assert_eq!(back(Stop::Lossy, 5, false, 3), (vec![], 1));
    // Below what rotted, or at another's rot.
    assert_eq!(back(Stop::Killed, 0, false, 3).0, ["S15"]);
    assert_eq!(back(Stop::Killed, 5, false, 2).0, ["S15"]);
    // A marker that lies is another matter.
    assert_eq!(back(Stop::Killed, 5, true, 3).0, ["S15"]);
    // What rotted was cut off, and written anew: the next loss is no rot's.
    let mut play = rotten(committed(2), 0, 3);
    play.core.on_stop(&play.world, node(0, 3), Stop::Killed, None);
    assert_eq!(loaded(&mut play, 3, 5, false), NOTHING);
    play.append(0, 3, Origin::Replication, &batch(5, 1, 3));
    play.core.on_stop(&play.world, node(0, 3), Stop::Killed, None);
    assert_eq!(loaded(&mut play, 3, 5, false), ["S15"]);
}

#[test]
fn s3_lets_a_rotten_leader_lack_something_only_if_enough_replicas_were_damaged() {
    let elected = |min_isr| {
        let mut play = rotten(committed(min_isr), 0, 2);
        assert_eq!(play.acked(5, 3), NOTHING);
        play.core.on_stop(&play.world, node(0, 2), Stop::Killed, None);
        assert_eq!(loaded(&mut play, 2, 5, false), NOTHING);
        play.change(0, 2, 2, 0b010, 0);
        let broken = play.lead(0, 2, 2);
        (broken, excuses(&play, "S3", "bit rot"))
    };
    assert_eq!(elected(1), (vec![], 1));
    // Another replica holds it all: that one had to be elected.
    assert_eq!(elected(2).0, ["S3"]);
}

#[test]
fn rotten_bytes_that_are_taken_for_good_ones_are_found() {
    let bad = || {
        let mut bytes = batch(5, 1, 3).to_vec();
        *bytes.last_mut().expect("bytes") ^= 1;
        bytes::Bytes::from(bytes)
    };
    // Another replica has them.
    let mut play = rotten(committed(2), 0, 1);
    assert_eq!(play.quiet(), NOTHING);
    play.replica(0, 2).batches[1] = bad();
    assert!(play.quiet().contains(&"S2".to_owned()));
    // A consumer was handed them.
    let mut play = rotten(committed(2), 0, 1);
    let mut hash = ReadHash::default();
    hash.bytes(&bad());
    let read = Trace::Read { partition: P, consumer: 1, base: Offset(5), next: Offset(8), hash: hash.finish() };
    assert_eq!(play.at(CLIENT, read), ["S8"]);
}

#[test]
fn who_stands_before_rot_waits_and_nobody_else() {
    // A consumer, and a follower.
    let stuck = |at: i64| {
        let mut play = rotten(committed(2), 0, 1);
        play.acked(5, 3);
        let (offset, partition) = (Offset(at), P);
        play.world.positions = Some(vec![PositionSight { partition, offset, given_up: false, read_committed: false }]);
        play.shorten(0, 3, at);
        play.core.ghost.clusters[0].partition(P).members[2].end = offset;
        play.left()
    };
    assert_eq!(stuck(5), NOTHING);
    let broken = stuck(0);
    assert!(broken.contains(&"L13".to_owned()) && broken.contains(&"L2".to_owned()), "{broken:?}");
    // A mirror.
    let failed = |rot: bool| {
        let mut play = mirroring();
        copy(&mut play, &batch(0, 1, 5), 0, 5);
        play.world.mirrors.insert((node(1, 1), P), MirrorSight { retries: true, ..sight(MirrorState::Failed) });
        if rot {
            play = rotten(play, 0, 1);
        }
        play.left().contains(&"L11".to_owned())
    };
    assert!(!failed(true) && failed(false));
}

#[test]
fn what_rotted_on_all_replicas_is_counted_as_lost() {
    let mut play = committed(2);
    play.acked(0, 8);
    for broker in 1..=3 {
        play = rotten(play, 0, broker);
    }
    assert_eq!(play.end(), NOTHING);
    assert_eq!(excuses(&play, "S6", "bit rot"), 1);
    assert_eq!(play.core.ghost.clusters[0].partition(P).more().rotten_away, 3);
    // One has it: nothing is lost.
    let mut play = rotten(rotten(committed(2), 0, 1), 0, 2);
    play.acked(0, 8);
    assert_eq!(play.end(), NOTHING);
    assert_eq!(excuses(&play, "S6", "bit rot"), 0);
}

/// All brokers are set back to what they held before `5..8`.
pub fn set_back(of: &[i32]) -> Play {
    let mut play = Play::new(2);
    play.commit(0, 1, &batch(0, 1, 5));
    for broker in 1..=3 {
        play.core.copied(&play.world, node(0, broker));
    }
    play.commit(0, 1, &batch(5, 1, 3));
    assert_eq!(play.acked(5, 3), NOTHING);
    for broker in of {
        play.core.on_stop(&play.world, node(0, *broker), Stop::Restored, None);
    }
    play
}

#[test]
fn an_older_copy_excuses_what_was_written_since_at_enough_replicas() {
    let mut play = set_back(&[1, 2, 3]);
    assert_eq!(loaded(&mut play, 2, 5, false), NOTHING);
    play.change(0, 2, 2, 0b010, 0);
    assert_eq!(play.lead(0, 2, 2), NOTHING);
    assert_eq!(excuses(&play, "S3", "older copy"), 1);
    // One replica alone: the others have it.
    let mut play = set_back(&[2]);
    assert_eq!(loaded(&mut play, 2, 5, false), NOTHING);
    play.change(0, 2, 2, 0b010, 0);
    assert_eq!(play.lead(0, 2, 2), ["S3"]);
    // A log that is neither what it was nor what was copied.
    for end in [0, 8] {
        let mut play = set_back(&[1, 2, 3]);
        assert_eq!(loaded(&mut play, 2, end, false), ["S15"], "{end}");
    }
}

/// A copy holds what had rotted by then, each time that it is put back; and nothing that rotted later.
#[test]
fn what_had_rotted_when_it_was_copied_is_put_back_with_the_copy() {
    let back = |before: bool| {
        let mut play = committed(2);
        if before {
            play = rotten(play, 0, 3);
        }
        play.core.copied(&play.world, node(0, 3));
        if !before {
            play = rotten(play, 0, 3);
        }
        let mut broken = Vec::new();
        for _ in 0..2 {
            play.core.on_stop(&play.world, node(0, 3), Stop::Restored, None);
            broken.extend(loaded(&mut play, 3, 5, false));
        }
        broken
    };
    assert_eq!(back(true), NOTHING);
    assert_eq!(back(false), ["S15", "S15"]);
}
