//! Connections and nodes: handshakes, orderly ends, kills, power losses, pauses.

use super::*;
use CloseReason::{Closed, ConnectTimeout, Refused, Reset};

#[test]
fn handshake_takes_one_round_trip_and_the_first_request_half_of_one_more() {
    let mut rig = Rig::wan();
    let conn = rig.connect(A, B);
    rig.pass(ms(81));
    assert_eq!(rig.got(A), [(80_000, Got::Opened(false))]); // and 66 bytes at 1 Gbit/s: half a microsecond
    assert!(rig.send(conn, A, 1_000, 2));
    rig.pass(ms(100));
    assert_eq!(rig.got(B)[0], (120_001, Got::Opened(true)));
    assert_eq!(rig.got(B)[1], (81_000 + 40_000 + 8, Got::Message(2)));
    assert!(rig.send(conn, B, 1_000, 3));
    rig.pass(ms(100));
    assert_eq!(rig.numbers(A), [3]);
}

#[test]
fn who_answers_a_connect() {
    for (how, at, why) in [
        (Some(Down::Killed), 80, Refused),
        (Some(Down::PowerLoss), 10_000, ConnectTimeout),
        (Some(Down::Paused), 10_000, ConnectTimeout),
        (Some(Down::Frozen), 10_000, ConnectTimeout),
    ] {
        let mut rig = Rig::wan();
        if let Some(how) = how {
            rig.down(B, how);
        }
        rig.connect(A, B);
        rig.pass(Nanos::from_secs(30));
        let got = rig.got(A);
        assert_eq!((got.len(), got[0].0 / 1_000, got[0].1), (1, at, Got::Closed(why)), "{how:?}");
        assert!(rig.got(B).is_empty());
        assert_eq!((rig.net.connections(), rig.pending()), (0, 0));
    }
}

#[test]
fn a_connect_to_itself_or_to_nowhere_is_refused() {
    let mut rig = Rig::wan();
    rig.connect(A, A);
    rig.connect(A, NodeId(77));
    assert_eq!(rig.got(A), [(0, Got::Closed(Refused)), (0, Got::Closed(Refused))]);
}

#[test]
fn the_opening_packet_is_sent_again_after_one_three_and_seven_seconds() {
    let mut rig = Rig::wan();
    rig.fault(1, Fault::Cut(Cut::one_way(Who::Node(A), Who::Node(B))));
    rig.connect(A, B);
    rig.pass(Nanos::from_secs(5));
    rig.heal(1);
    rig.pass(Nanos::from_secs(5));
    assert_eq!(rig.got(A), [(7_080_000, Got::Opened(false))]);
}

#[test]
fn a_lost_answer_to_the_opening_packet_ends_in_a_time_out_and_leaves_nothing() {
    let mut rig = Rig::wan();
    rig.fault(1, Fault::Cut(Cut::one_way(Who::Node(B), Who::Node(A))));
    rig.connect(A, B);
    rig.pass(Nanos::from_secs(60));
    assert_eq!(rig.got(A), [(10_000_000, Got::Closed(ConnectTimeout))]);
    assert!(rig.got(B).is_empty());
    assert_eq!(rig.net.connections(), 0);
}

#[test]
fn an_orderly_end_comes_behind_what_was_sent() {
    let mut rig = Rig::wan();
    let conn = rig.connected(A, B);
    for number in [2, 4, 6] {
        rig.send(conn, A, 100_000, number);
    }
    rig.close(conn, A);
    assert!(!rig.send(conn, A, 10, 8));
    rig.send(conn, B, 10, 3); // meets a closed end
    rig.pass(Nanos::from_secs(5));
    let got: Vec<Got> = rig.got(B).into_iter().map(|row| row.1).collect();
    assert_eq!(got, [Got::Message(2), Got::Message(4), Got::Message(6), Got::Closed(Closed)]);
    assert!(rig.got(A).is_empty());
    assert_eq!((rig.net.connections(), rig.pending()), (0, 0));
}

#[test]
fn a_kill_resets_the_peers_behind_what_had_left() {
    let mut rig = Rig::wan();
    let conn = rig.connected(A, B);
    rig.send(conn, B, 100, 3);
    rig.send(conn, A, 100, 2); // will find nobody
    rig.pass(ms(1));
    rig.down(B, Down::Killed);
    rig.pass(ms(200));
    assert_eq!(rig.got(A).iter().map(|row| row.1).collect::<Vec<_>>(), [Got::Message(3), Got::Closed(Reset)]);
    assert_eq!(rig.got(A)[1].0, 1_041_000);
    assert!(rig.got(B).is_empty());
    assert_eq!(rig.net.connections(), 0);
    rig.up(B, 2);
    assert!(!rig.send(conn, A, 100, 4));
}

#[test]
fn an_exit_in_order_lets_everything_arrive() {
    let mut rig = Rig::wan();
    let conn = rig.connected(A, B);
    for number in [3, 5, 7] {
        rig.send(conn, B, 100_000, number);
    }
    rig.down(B, Down::Exited);
    rig.pass(Nanos::from_secs(5));
    let got: Vec<Got> = rig.got(A).into_iter().map(|row| row.1).collect();
    assert_eq!(got, [Got::Message(3), Got::Message(5), Got::Message(7), Got::Closed(Closed)]);
    assert_eq!(rig.net.connections(), 0);
}

#[test]
fn power_loss_is_silence_until_the_peer_speaks_to_the_next_incarnation() {
    let mut rig = Rig::wan();
    let conn = rig.connected(A, B);
    rig.down(B, Down::PowerLoss);
    rig.pass(Nanos::from_secs(5));
    rig.up(B, 2);
    rig.pass(Nanos::from_secs(50));
    assert!(rig.log.is_empty(), "half-open");
    rig.send(conn, A, 100, 2);
    let sent = rig.now;
    rig.pass(ms(200));
    assert_eq!(rig.log.len(), 1);
    assert_eq!((rig.log[0].0.since(sent).as_millis(), rig.log[0].3), (80, Got::Closed(Reset)));
    assert_eq!(rig.net.connections(), 0);
}

#[test]
fn what_was_sent_to_a_dark_host_is_answered_with_a_reset_once_it_is_back() {
    let mut rig = Rig::wan();
    let conn = rig.connected(A, B);
    rig.down(B, Down::PowerLoss);
    rig.send(conn, A, 100, 2);
    rig.pass(Nanos::from_secs(4));
    assert!(rig.net.view(conn).unwrap().stalled[0]);
    rig.up(B, 2);
    rig.pass(Nanos::from_secs(4));
    // Retransmissions leave 0.2, 0.6, 1.4, 3.0 and 6.2 s after the first packet, which left at 1 s.
    let got = rig.got(A);
    assert_eq!((got.len(), got[0].0 / 1_000, got[0].1), (1, 1_000 + 6_200 + 80, Got::Closed(Reset)));
    assert!(rig.numbers(B).is_empty());
}

#[test]
fn a_power_loss_takes_what_had_not_left_and_lets_arrive_what_had() {
    let mut rig = Rig::wan();
    let conn = rig.connected(A, B);
    for number in 0..40 {
        rig.send(conn, A, 10_000, number * 2);
    }
    rig.pass(ms(1));
    rig.down(A, Down::PowerLoss);
    rig.pass(Nanos::from_secs(5));
    assert_eq!(rig.numbers(B), [0]); // ten segments are 14,480 bytes
    assert_eq!(rig.net.connections(), 1, "B knows nothing");
    rig.close(conn, B);
    assert_eq!(rig.net.connections(), 0);
}

#[test]
fn a_dead_kernel_sends_nothing_again() {
    let mut rig = Rig::wan();
    let conn = rig.connected(A, B);
    rig.send(conn, A, 100, 2);
    rig.pass(ms(1));
    rig.down(A, Down::PowerLoss);
    rig.fault(1, Fault::Cut(Cut::between(Who::Node(A), Who::Node(B))));
    rig.up(A, 2);
    rig.pass(ms(100)); // the packet meets the cut
    rig.heal(1);
    rig.pass(Nanos::from_secs(60));
    assert!(rig.log.is_empty());
    rig.send(conn, B, 100, 3);
    rig.pass(Nanos::from_secs(1));
    assert_eq!(rig.got(B).iter().map(|row| row.1).collect::<Vec<_>>(), [Got::Closed(Reset)]);
}

#[test]
fn a_paused_process_finds_in_order_what_its_kernel_kept_and_no_more_than_a_window() {
    let mut rig = Rig::wan();
    let conn = rig.connected(A, B);
    for number in 0..10 {
        rig.send(conn, A, 1_000, number * 2); // wakes the congestion window
    }
    rig.pass(Nanos::from_secs(1));
    rig.log.clear();
    rig.down(B, Down::Paused);
    for number in 0..100 {
        rig.send(conn, A, 5_000, number * 2);
    }
    rig.pass(Nanos::from_secs(60));
    assert!(rig.log.is_empty());
    let view = rig.net.view(conn).unwrap();
    assert!(view.in_flight[0] <= 65_536 && !view.stalled[0], "{view:?}");
    rig.up(B, 1);
    rig.pass(ms(0));
    assert_eq!(rig.numbers(B), [0, 2]); // kept: ten segments
    rig.pass(Nanos::from_secs(5));
    assert_eq!(rig.numbers(B), (0..100).map(|n| n * 2).collect::<Vec<_>>());
}

#[test]
fn a_frozen_host_goes_on_where_it_was() {
    let mut rig = Rig::wan();
    let conn = rig.connected(A, B);
    rig.down(B, Down::Frozen);
    rig.send(conn, A, 100, 2);
    rig.pass(Nanos::from_secs(2));
    rig.up(B, 1);
    rig.pass(Nanos::from_secs(9));
    rig.send(conn, B, 100, 3);
    rig.pass(Nanos::from_secs(1));
    assert_eq!((rig.numbers(B), rig.numbers(A)), (vec![2], vec![3]));
    assert_eq!(rig.got(B)[0].0 / 1_000, 1_000 + 3_000 + 40, "with the retransmission that leaves at 3 s");
}

#[test]
fn power_loss_of_a_paused_process_loses_what_was_acknowledged_and_unread() {
    let mut rig = Rig::wan();
    let conn = rig.connected(A, B);
    rig.down(B, Down::Paused);
    for number in 0..20 {
        rig.send(conn, A, 5_000, number * 2);
    }
    rig.pass(Nanos::from_secs(2));
    rig.down(B, Down::PowerLoss);
    rig.pass(Nanos::from_secs(2));
    rig.up(B, 2);
    rig.pass(Nanos::from_secs(60));
    assert!(rig.numbers(B).is_empty());
    assert_eq!(rig.got(A).iter().map(|row| row.1).collect::<Vec<_>>(), [Got::Closed(Reset)]);
}

#[test]
fn a_time_out_of_the_sender_leaves_the_other_end_half_open() {
    let mut topology = wan(LinkSpec::WAN);
    topology.tcp.user_timeout = Some(Nanos::from_secs(15));
    let mut rig = Rig::new(&topology, 1);
    let conn = rig.connected(A, B);
    rig.fault(1, Fault::Cut(Cut::between(Who::Site(WEST), Who::Site(EAST))));
    rig.send(conn, A, 100, 2);
    rig.pass(Nanos::from_secs(60));
    assert_eq!(rig.got(A), [(16_040_001, Got::Closed(Reset))]); // found lost at 40 ms, then 15 s
    assert!(rig.got(B).is_empty());
    rig.heal(1);
    assert!(rig.send(conn, B, 100, 3));
    rig.pass(ms(81));
    assert_eq!(rig.got(B)[0].1, Got::Closed(Reset));
    assert_eq!(rig.net.connections(), 0);
}

#[test]
fn a_slot_that_is_used_again_gets_no_events_of_its_past() {
    let mut rig = Rig::wan();
    for round in 0..5 {
        let conn = rig.connect(A, B);
        rig.pass(ms(100));
        rig.send(conn, A, 100, 2);
        rig.down(A, Down::Killed);
        rig.up(A, round + 2);
    }
    let last = rig.connect(A, B);
    rig.pass(Nanos::from_secs(1));
    rig.log.clear();
    rig.send(last, A, 100, 42);
    rig.pass(Nanos::from_secs(1));
    assert_eq!(rig.numbers(B), [42]);
    assert_eq!(rig.net.connections(), 1);
}
