//! Cuts, worse links, and rules that perturb messages.

use super::*;

#[test]
fn what_a_cut_swallows_comes_in_order_with_the_first_retransmission_after_the_heal() {
    let mut rig = Rig::wan();
    let conn = rig.connected(A, B);
    for number in 0..3 {
        rig.send(conn, A, 100, number * 2);
    }
    rig.fault(1, Fault::Cut(Cut::between(Who::Node(A), Who::Node(B))));
    rig.pass(Nanos::from_secs(2));
    rig.send(conn, A, 100, 6);
    rig.heal(1);
    rig.pass(Nanos::from_secs(3));
    assert_eq!(rig.numbers(B), [0, 2, 4, 6]);
    // 0.2 + 0.4 + 0.8 + 1.6 s after the first packet.
    assert_eq!(rig.got(B)[0].0 / 1_000, 1_000 + 3_000 + 40);
    assert_eq!(rig.net.counters(WEST, EAST).drops, 3);
}

#[test]
fn one_way() {
    let mut rig = Rig::wan();
    let conn = rig.connected(A, B);
    rig.fault(1, Fault::Cut(Cut::one_way(Who::Node(B), Who::Node(A))));
    rig.send(conn, A, 100, 2);
    rig.pass(ms(50));
    rig.send(conn, B, 100, 3);
    rig.pass(Nanos::from_secs(1));
    assert_eq!((rig.numbers(B), rig.numbers(A)), (vec![2], vec![]));
    // Nothing is acknowledged: the sender's window does not move and it falls silent.
    for number in 0..100 {
        rig.send(conn, A, 1_000, 4 + number * 2);
    }
    rig.pass(Nanos::from_secs(10));
    assert_eq!(rig.numbers(B).len(), 1);
    rig.heal(1);
    rig.pass(Nanos::from_secs(30));
    assert_eq!((rig.numbers(B).len(), rig.numbers(A)), (101, vec![3]));
}

#[test]
fn cuts_by_kind_of_traffic() {
    let cases = [
        (Cut::traffic(Only::Everything), [true, true, true]),
        (Cut::traffic(Only::Wan), [true, true, false]),
        (Cut::traffic(Only::Controllers), [false, true, true]),
        (Cut::traffic(Only::InterBroker), [false, false, false]),
        (Cut::traffic(Only::InterCluster), [true, false, false]),
        (Cut::between(Who::Anyone, Who::Members(1, Role::Controller)), [false, true, true]),
        (Cut::between(Who::Cluster(0), Who::Cluster(1)), [true, true, false]),
        (Cut::between(Who::Role(Role::Broker), Who::Role(Role::Broker)), [true, false, false]),
        (Cut::one_way(Who::Site(EAST), Who::Site(WEST)), [false, false, false]),
    ];
    for (cut, expected) in cases {
        let mut rig = Rig::wan();
        rig.fault(1, Fault::Cut(cut));
        assert_eq!([(A, B), (A, C), (B, C)].map(|(from, to)| rig.net.is_cut(from, to)), expected, "{cut:?}");
        if cut.both_ways {
            assert_eq!([(B, A), (C, A), (C, B)].map(|(from, to)| rig.net.is_cut(from, to)), expected, "{cut:?}");
        }
    }
}

#[test]
fn faults_overlap_and_end_one_by_one() {
    let mut rig = Rig::wan();
    let conn = rig.connected(A, B);
    rig.fault(1, Fault::Cut(Cut::traffic(Only::Wan)));
    rig.fault(2, Fault::Cut(Cut::between(Who::Node(A), Who::Anyone)));
    rig.heal(1);
    rig.send(conn, A, 100, 2);
    rig.pass(Nanos::from_secs(1));
    assert!(rig.log.is_empty());
    rig.heal(2);
    assert_eq!(rig.net.faults().count(), 0);
    rig.pass(Nanos::from_secs(1));
    assert_eq!(rig.numbers(B), [2]);
}

#[test]
fn a_worse_link_is_worse_one_way_while_it_lasts() {
    let mut rig = Rig::wan();
    let conn = rig.connected(A, B);
    let worse = Degrade {
        from: WEST,
        to: EAST,
        extra_latency: ms(100),
        jitter: None,
        loss: Chance::NEVER,
        bits_per_second: Some(1_000_000),
    };
    rig.fault(1, Fault::Degrade(worse));
    rig.send(conn, A, 1_182, 2); // 1,248 bytes with headers: 9.984 ms at 1 Mbit/s
    rig.send(conn, B, 1_182, 3);
    rig.pass(ms(200));
    assert_eq!(rig.got(B), [(1_149_984, Got::Message(2))]);
    assert_eq!(rig.got(A), [(1_040_009, Got::Message(3))]);
    rig.heal(1);
    rig.send(conn, A, 1_182, 4);
    rig.pass(ms(50));
    assert_eq!(rig.numbers(B), [2, 4]);
}

#[test]
fn a_rule_delays_and_repeats_only_what_it_names() {
    let mut rig = Rig::wan();
    let conn = rig.connected(A, B);
    rig.fault(
        1,
        Fault::Perturb(Perturb {
            from: Who::Role(Role::Broker),
            to: Who::Cluster(0),
            body: Some("FetchResponse".into()),
            chance: Chance::ALWAYS,
            extra: ms(500),
            duplicate: true,
        }),
    );
    rig.send(conn, B, 100, 2); // a request: not named
    rig.send(conn, B, 100, 3);
    rig.send(conn, A, 100, 5); // the other way: not named
    rig.pass(Nanos::from_secs(1));
    let at: Vec<(u64, Got)> = rig.got(A).iter().map(|row| (row.0 / 1_000, row.1)).collect();
    assert_eq!(at, [(1_040, Got::Message(2)), (1_540, Got::Message(3)), (1_540, Got::Message(3))]);
    assert_eq!(rig.numbers(B), [5]);
}

#[test]
fn a_sender_that_closed_retransmits_for_the_orphan_time_only() {
    let mut rig = Rig::wan();
    let conn = rig.connected(A, B);
    rig.fault(1, Fault::Cut(Cut::between(Who::Node(A), Who::Node(B))));
    rig.send(conn, A, 100, 2);
    rig.pass(Nanos::from_secs(30));
    rig.close(conn, A);
    rig.pass(Nanos::from_secs(300));
    rig.heal(1);
    rig.pass(Nanos::from_secs(300));
    assert!(rig.log.is_empty());
    assert_eq!(rig.pending(), 0);
    rig.send(conn, B, 100, 3);
    rig.pass(Nanos::from_secs(1));
    assert_eq!(rig.got(B)[0].1, Got::Closed(CloseReason::Reset));
}

#[test]
fn a_reset_tells_both_ends_at_once_and_spares_other_connections() {
    let mut rig = Rig::wan();
    let (over, within) = (rig.connected(A, B), rig.connected(B, C));
    rig.send(over, A, 100, 2);
    let many = rig.reset(Who::Site(WEST), Who::Site(EAST), false);
    assert_eq!(many, 1);
    rig.pass(Nanos::from_secs(1));
    assert_eq!([A, B].map(|end| rig.got(end)[0].1), [Got::Closed(CloseReason::Reset); 2]);
    assert_eq!(rig.numbers(B), [0; 0], "what was on its way is gone");
    assert_eq!((rig.net.connections(), rig.pending()), (1, 0));
    rig.send(within, B, 100, 3);
    rig.pass(Nanos::from_secs(1));
    assert_eq!(rig.numbers(C), [3]);
}

#[test]
fn a_silent_reset_tells_nobody_and_kills_no_other_connection() {
    let mut rig = Rig::wan();
    let conn = rig.connected(A, B);
    assert_eq!(rig.reset(Who::Node(A), Who::Anyone, true), 1);
    rig.send(conn, A, 100, 2);
    rig.pass(Nanos::from_secs(3_000));
    assert!(rig.log.is_empty(), "a kernel without a time-out sends again for ever: the process has to lose patience");
    rig.close(conn, A);
    rig.pass(Nanos::from_secs(300));
    assert!(rig.log.is_empty(), "who only listens never learns of it");
    let again = rig.connected(A, B);
    rig.send(again, A, 100, 3);
    rig.pass(Nanos::from_secs(1));
    assert_eq!(rig.numbers(B), [3]);
}
