//! Alignments with a mirror's source: a replica that missed one cuts what it did away with, whatever its epochs say.

use crate::ids::{LeaderEpoch, Offset};
use crate::replica::testing::{batch_at, state, Rig, P0};

/// Broker 0 leads, in term 5, a partition that was aligned at offset 10; then the source's records came, of epoch 3. Broker 1
/// took part. Broker 2 was away; it has local records of epoch 3, as many.
fn aligned_without_broker_2() -> Rig {
    let mut rig = Rig::new(3, 1);
    rig.policy(|policy| (policy.mirrored, policy.read_only) = (true, true));
    for at in 0..3 {
        rig.metadata(&[at], &state(at as i32, 4, 4, &[0, 1, 2], &[0, 1]));
        rig.plant(at, &[batch_at(0, 10, 2, 1)]);
    }
    rig.plant(2, &[batch_at(10, 5, 3, 7)]);
    rig.metadata(&[0, 1], &state(0, 5, 5, &[0, 1, 2], &[0, 1]));
    rig.settle();
    let now = rig.now;
    rig.nodes[0].with(|replicas, _, cx| replicas.mark_alignment(now, P0, cx));
    flush_all(&mut rig);
    let source = [batch_at(10, 5, 3, 9), batch_at(15, 5, 3, 9)];
    rig.nodes[0].with(|replicas, _, cx| replicas.append_mirrored(now, P0, &source, cx).unwrap());
    rig.settle_leader(0);
    flush_all(&mut rig);
    rig
}

/// Whatever wants a flush gets one, until nothing moves.
fn flush_all(rig: &mut Rig) {
    for _ in 0..12 {
        for at in 0..rig.nodes.len() {
            rig.flush(at);
            rig.settle_leader(at);
        }
        rig.settle();
        rig.advance(5);
        rig.settle();
    }
    rig.advance(600);
    rig.settle();
}

#[test]
fn who_missed_an_alignment_cuts_to_its_end_though_the_epochs_agree() {
    let mut rig = aligned_without_broker_2();
    assert_eq!(rig.nodes[1].log().aligned(), LeaderEpoch(5));
    assert_eq!((rig.nodes[1].end(), rig.nodes[1].cuts()), (20, vec![]));
    rig.metadata(&[2], &state(0, 5, 5, &[0, 1, 2], &[0, 1]));
    flush_all(&mut rig);
    assert_eq!(rig.nodes[2].cuts(), [(15, 10)]);
    assert_eq!(rig.nodes[2].log().alignments(), rig.nodes[0].log().alignments());
    assert_eq!(rig.nodes[2].bytes(), rig.nodes[0].bytes());
}

#[test]
fn a_leader_that_was_not_aligned_takes_its_followers_back() {
    let mut rig = aligned_without_broker_2();
    // An unclean election: broker 2 leads with what it has.
    rig.metadata(&[0, 1, 2], &state(2, 6, 6, &[0, 1, 2], &[2]));
    flush_all(&mut rig);
    assert_eq!(rig.nodes[1].log().aligned(), LeaderEpoch::NONE);
    assert_eq!(rig.nodes[1].cuts(), [(20, 10)]);
    assert_eq!(rig.nodes[1].bytes(), rig.nodes[2].bytes());
}

#[test]
fn nothing_is_marked_where_nobody_can_have_written() {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0, 1], &state(0, 0, 0, &[0, 1], &[0, 1]));
    let now = rig.now;
    rig.nodes[0].with(|replicas, _, cx| replicas.mark_alignment(now, P0, cx));
    assert!(rig.nodes[0].replicas.take_flush_due().is_empty());
    assert_eq!(rig.nodes[0].log().alignment_after(LeaderEpoch::NONE), None);
    assert_eq!(rig.nodes[0].log().end(), Offset::ZERO);
}
