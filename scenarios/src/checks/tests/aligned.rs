//! What is to be cut while an alignment is under way, by whom, and what of it may still be seen: each world beside one that is like it
//! but for what is really wrong.

use super::fake::{batch, node, P};
use super::lived::{names, placed, position, reset, Lived, OURS, THEIRS};
use super::mirrors::{copied, copy};
use super::NOTHING;
use bytes::Bytes;
use mirrorlab_model::client::read_hash::ReadHash;
use mirrorlab_model::ids::*;
use mirrorlab_model::states::{DesiredState, MirrorState as M};
use mirrorlab_model::trace::{CutCause, Origin, Trace};

/// A leader that was deposed aligns and does not know of its end; so does broker 3, which follows it.
fn aligned_by_two() -> Lived {
    let mut lived = Lived::copying();
    assert_eq!(lived.play.core.at_quiet_point(&lived.play.world), []); // what is committed by then becomes known by its sum
    lived.stop();
    lived.align();
    lived.depose(&[3]);
    assert_eq!(lived.play.cut(1, 1, 5, CutCause::Alignment), NOTHING);
    assert_eq!(lived.play.cut(1, 3, 5, CutCause::Divergence), NOTHING);
    lived
}

#[test]
fn s04_takes_the_cut_of_who_follows_a_leader_that_aligns_late() {
    let follows = |to: i64, has_heard: bool| {
        let mut lived = Lived::aligning();
        lived.depose(&[3]);
        assert_eq!(lived.play.cut(1, 1, 5, CutCause::Alignment), NOTHING);
        if has_heard {
            lived.play.replica(1, 3).epoch = LeaderEpoch(OURS + 1);
        }
        names(&lived.play.cut(1, 3, to, CutCause::Divergence), "S4")
    };
    assert!(!follows(5, false));
    assert!(follows(0, false), "whom it follows kept more");
    assert!(follows(5, true), "it follows the present leader, which has cut nothing");
    // Nobody aligned before it.
    let mut lived = Lived::aligning();
    lived.depose(&[3]);
    assert!(names(&lived.play.cut(1, 3, 5, CutCause::Divergence), "S4"));
}

#[test]
fn s03_takes_a_leader_that_aligned_before_it_led() {
    let leads = |mut lived: Lived| {
        lived.play.change(1, 3, OURS + 2, 0b111, 0);
        names(&lived.play.lead(1, 3, OURS + 2), "S3")
    };
    assert!(!leads(aligned_by_two()));
    // What was to be kept is another one's.
    let mut lived = aligned_by_two();
    let mut other = batch(0, THEIRS, 5).to_vec();
    other[30] ^= 1;
    lived.play.replica(1, 3).batches[0] = other.into();
    assert!(leads(lived));
    // It lost more than that since.
    let mut lived = aligned_by_two();
    lived.play.shorten(1, 3, 0);
    assert!(leads(lived));
    // It is as short as that and never aligned.
    let mut lived = Lived::aligning();
    lived.depose(&[3]);
    lived.play.shorten(1, 3, 5);
    lived.ghost().members[2].end = Offset(5);
    assert!(leads(lived));
}

fn read(lived: &mut Lived, base: i64, next: i64, bytes: &Bytes) -> Vec<String> {
    let mut hash = ReadHash::default();
    hash.bytes(bytes);
    let (base, next, hash) = (Offset(base), Offset(next), hash.finish());
    lived.play.at(node(1, 3), Trace::Read { partition: P, consumer: 1, base, next, hash })
}

/// The alignment cut its leader's log, and the next leader was not told: it has all of it, until it cuts it too.
#[test]
fn s08_takes_what_an_alignment_cut_and_its_next_leader_shows_again() {
    let mut lived = Lived::aligning();
    lived.play.cut(1, 1, 5, CutCause::Alignment);
    lived.wait();
    let before = batch(6, OURS, 2);
    assert!(names(&read(&mut lived, 6, 8, &before), "S8"), "who leads has cut it");
    lived.play.change(1, 2, OURS + 1, 0b111, 0);
    lived.play.lead(1, 2, OURS + 1);
    assert!(!names(&read(&mut lived, 6, 8, &before), "S8"));
    // It has more, that nobody ever committed, and shows it too.
    let more = batch(8, OURS, 2);
    lived.play.append(1, 2, Origin::Replication, &more);
    lived.ghost().members[1].hw = Offset(10);
    assert!(names(&read(&mut lived, 8, 10, &more), "S8"));
    // No alignment is under way.
    let mut lived = Lived::stopped();
    lived.play.cut(1, 1, 5, CutCause::Alignment);
    lived.wait();
    lived.play.change(1, 2, OURS + 1, 0b111, 0);
    lived.play.lead(1, 2, OURS + 1);
    assert!(names(&read(&mut lived, 6, 8, &before), "S8"));
}

/// The same of a replica that cut it, copied it again from the next leader, and compacts it.
#[test]
fn s51_takes_what_an_alignment_cut_and_its_next_leader_gave_again() {
    let cleans = |gave: i64, to: i64| {
        let mut lived = Lived::aligning();
        lived.ghost().compacts = true;
        lived.play.cut(1, 1, 5, CutCause::Alignment);
        lived.play.change(1, 2, OURS + 1, 0b111, 0);
        lived.play.lead(1, 2, OURS + 1);
        for bytes in [reset(5), batch(6, OURS, 2), batch(8, OURS, 2)] {
            if lived.play.replica(1, 1).end.0 < gave {
                lived.play.append(1, 1, Origin::Replication, &bytes);
            }
        }
        lived.ghost().members[0].hw = Offset(gave.max(8));
        names(&lived.play.at(node(1, 1), Trace::CleaningBegun { partition: P, to: Offset(to), at_ms: 0 }), "S51")
    };
    assert!(!cleans(8, 8));
    assert!(cleans(5, 8), "it does not hold that");
    assert!(cleans(10, 10), "that was committed by nobody");
}

/// A leader was cut, and its source has nothing left of what was there: it begins anew further on, as do its followers.
#[test]
fn s36_takes_who_begins_behind_the_cut_as_its_leader_does() {
    let begins = |leader: &[(i64, Bytes)], follower: &[(i64, Bytes)]| {
        let mut lived = Lived::copying();
        lived.play.cut(1, 1, 0, CutCause::MirrorDivergence);
        for (broker, log) in [(1, leader), (2, &[][..]), (3, follower)] {
            lived.play.shorten(1, broker, 0);
            for (start, bytes) in log {
                lived.play.replica(1, broker).start = Offset(*start);
                lived.play.replica(1, broker).end = Offset(*start);
                if !bytes.is_empty() {
                    lived.play.store(1, broker, bytes);
                }
            }
        }
        names(&lived.play.at(node(1, 1), copied(node(0, 1), 5, 8, 8)), "S36")
    };
    let behind = |bytes: Bytes| [(5, bytes)];
    let rest = batch(5, THEIRS, 3);
    assert!(!begins(&behind(rest.clone()), &behind(rest.clone())));
    assert!(!begins(&behind(rest.clone()), &[]), "it has nothing yet");
    assert!(begins(&behind(rest.clone()), &behind(batch(5, 0, 3))), "it has something else");
    assert!(begins(&[(0, batch(0, THEIRS, 5))], &[(8, Bytes::new())]), "its leader begins at the cut");
}

/// A stop that begins in an alignment copied nothing: who leads has what the alignment cut at its followers, and brings it back.
#[test]
fn s41_takes_followers_that_lack_what_a_stop_in_alignment_did_not_write() {
    let stops = |mut lived: Lived, writes: bool| {
        lived.order(DesiredState::Stopped);
        lived.enter(M::Stopping);
        let end = lived.play.replica(1, 1).end.0;
        if writes {
            lived.play.append(1, 1, Origin::Coordinator, &placed(&reset(end), end, OURS));
        }
        lived.commit(1, &[position(1, Some((THEIRS, 5)))]);
        names(&lived.enter(M::Stopped), "S41")
    };
    let shortened = |mut lived: Lived| {
        lived.play.shorten(1, 3, 5);
        lived
    };
    assert!(!stops(shortened(Lived::aligning()), false));
    assert!(stops(shortened(Lived::aligning()), true), "its own reset is on none of them");
    // One that begins in MIRRORING.
    let mut lived = Lived::copying();
    copy(&mut lived.play, &batch(5, THEIRS, 3), 5, 8);
    assert!(stops(shortened(lived), false));
}

/// A leader that was deposed and does not know it carries out its alignment: what it cuts, its successor has to cut. Found by
/// seed 3038 of swarm/lifecycle.
#[test]
fn s04_takes_an_alignment_of_a_leader_that_does_not_know_of_its_end_while_it_is_under_way() {
    let cut = |states: &[M]| {
        let mut lived = Lived::stopped();
        lived.order(DesiredState::Mirroring);
        for state in states {
            assert_eq!(lived.enter(*state), NOTHING);
        }
        lived.play.change(1, 2, OURS + 2, 0b111, 0);
        lived.play.lead(1, 2, OURS + 2);
        let mut broken = lived.play.cut(1, 1, 5, CutCause::Alignment);
        broken.extend(lived.play.quiet());
        broken.retain(|id| id == "S4");
        broken
    };
    assert_eq!(cut(&[M::LogAlignment]), NOTHING);
    assert_eq!(cut(&[])[..1], ["S4"]);
}

/// An alignment cuts, and a leader is elected that has not heard of it: it shows the old end until it has cut, too. Found by seed
/// 3052 of swarm/lifecycle.
#[test]
fn s22_takes_an_end_from_before_an_ordered_cut_for_what_it_is() {
    let falls = |ends: &[i64]| {
        let mut lived = Lived::stopped();
        let told = |end| Trace::ToldEnd { partition: P, client: 1, end: Offset(end) };
        let end = lived.play.replica(1, 1).end.0;
        assert_eq!(lived.play.at(node(1, 3), told(end)), NOTHING);
        lived.order(DesiredState::Mirroring);
        assert_eq!(lived.enter(M::LogAlignment), NOTHING);
        lived.cut(5, CutCause::Alignment);
        let told: Vec<String> = ends.iter().flat_map(|end| lived.play.at(node(1, 3), told(*end))).collect();
        told
    };
    assert_eq!(falls(&[5, 6, 5, 6, 5]), NOTHING);
    assert_eq!(falls(&[5, 6, 4]), ["S22"]);
}

/// A leader that slept while its successor cut what an alignment had to cut goes by what it was told before. Found by seed 3082
/// of swarm/coordinator.
#[test]
fn s05_lets_a_leader_that_does_not_know_of_its_end_go_by_what_was_cut_since() {
    let wakes = |cuts: bool| {
        let mut lived = Lived::stopped();
        let end = lived.play.replica(1, 1).end;
        lived.order(DesiredState::Mirroring);
        assert_eq!(lived.enter(M::LogAlignment), NOTHING);
        lived.play.change(1, 2, OURS + 2, 0b111, 0);
        lived.play.lead(1, 2, OURS + 2);
        if cuts {
            lived.play.cut(1, 2, 5, CutCause::Alignment);
        } else {
            lived.play.shorten(1, 2, 5);
            let g = lived.play.core.ghost.clusters[1].partition(P);
            (g.members[1].end, g.true_hw) = (Offset(5), Offset(5));
        }
        let own = lived.play.replica(1, 1);
        (own.leads, own.epoch) = (true, LeaderEpoch(OURS + 1));
        let moved = Trace::HighWatermarkMoved { partition: P, from: Offset(5), to: end, leader: true };
        let broken = lived.play.at(node(1, 1), moved);
        (names(&broken, "S5"), lived.ghost().true_hw)
    };
    assert_eq!(wakes(true), (false, Offset(5)), "and it makes nothing of that committed again");
    assert_eq!(wakes(false), (true, Offset(5)));
}
