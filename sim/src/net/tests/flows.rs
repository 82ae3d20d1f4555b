//! Bandwidth, windows, shares, loss.

use super::*;

const MIB: u32 = 1 << 20;

fn fast(bits_per_second: u64, latency: Nanos, window: u32) -> Topology {
    let mut topology = wan(LinkSpec { bits_per_second, latency, window: Some(window), ..LinkSpec::WAN });
    topology.node(NodeId(4), WEST, Role::Broker, 0);
    topology
}

#[test]
fn one_flow_is_bound_by_its_window_per_round_trip() {
    let mut rig = Rig::wan();
    let conn = rig.connected(A, B);
    for number in 0..20 {
        rig.send(conn, A, MIB, number * 2);
    }
    let start = rig.now;
    rig.pass(Nanos::from_secs(100));
    assert_eq!(rig.numbers(B).len(), 20);
    let took = rig.log.last().unwrap().0.since(start).as_secs_f64();
    let bound = 20.0 * f64::from(MIB) / 65_536.0 * 0.08;
    assert!(took > bound * 0.99 && took < bound * 1.05, "{took} s, bound {bound} s");
}

#[test]
fn slow_start_doubles_from_ten_segments_and_starts_again_after_a_pause() {
    let mut rig = Rig::new(&fast(10_000_000_000, ms(50), 1 << 20), 1);
    let conn = rig.connected(A, B);
    // 10 + 20 + 40 segments in three round trips, the 71st in the fourth.
    let first = rig.now;
    rig.send(conn, A, 70 * 1_448, 2);
    rig.send(conn, A, 1, 4);
    rig.pass(ms(900));
    let arrivals: Vec<u64> = rig.log.iter().map(|row| row.0.since(first).as_millis()).collect();
    assert_eq!(arrivals, [250, 350]);
    let again = rig.now;
    rig.pass(Nanos::from_secs(60));
    rig.log.clear();
    rig.send(conn, A, 70 * 1_448, 6);
    rig.pass(ms(900));
    let took = rig.log[0].0.since(again + Nanos::from_secs(60)).as_millis();
    assert_eq!(took, 250, "as slow as the first time");
}

#[test]
fn one_flow_with_a_large_window_fills_the_link_and_not_more() {
    let mut rig = Rig::new(&fast(100_000_000, ms(10), 4 << 20), 1);
    let conn = rig.connected(A, B);
    for number in 0..100 {
        rig.send(conn, A, MIB, number * 2);
    }
    let start = rig.now;
    rig.pass(Nanos::from_secs(60));
    let took = rig.log.last().unwrap().0.since(start).as_secs_f64();
    let least = 100.0 * f64::from(MIB) * (1.0 + 66.0 / 1_448.0) * 8.0 / 1e8;
    assert!(took >= least && took < least * 1.03, "{took} s, least {least} s");
    let counters = rig.net.counters(WEST, EAST);
    assert!(counters.queue_peak > 90 << 20 && counters.drops == 0, "{counters:?}");
    assert!(counters.bytes as f64 > 100.0 * f64::from(MIB) * 1.045);
}

#[test]
fn flows_with_bytes_to_send_share_equally() {
    let mut rig = Rig::new(&fast(100_000_000, ms(10), 4 << 20), 1);
    let pairs = [(A, B), (A, C), (NodeId(4), B)];
    let conns = pairs.map(|(from, to)| rig.connect(from, to));
    rig.pass(Nanos::from_secs(1));
    rig.log.clear();
    for number in 0..4_000 {
        // Different grain: a share is bytes, not messages.
        rig.send(conns[0], A, 10_000, number * 2);
        if number < 40 {
            rig.send(conns[1], A, MIB, number * 2);
        }
        if number < 400 {
            rig.send(conns[2], NodeId(4), 100_000, number * 2);
        }
    }
    rig.pass(Nanos::from_secs(8));
    let size = |conn: ConnId| rig.log.iter().filter(|row| row.2 == conn).count() as f64;
    let bytes = [size(conns[0]) * 10_000.0, size(conns[1]) * f64::from(MIB), size(conns[2]) * 100_000.0];
    let total: f64 = bytes.iter().sum();
    assert!(total * 8.0 < 8.0 * 1e8 && total * 8.0 > 8.0 * 0.9e8, "{total}");
    for share in bytes {
        assert!((share / total - 1.0 / 3.0).abs() < 0.033, "{bytes:?}");
    }
}

#[test]
fn a_small_message_does_not_wait_for_a_large_one_of_another_connection() {
    let mut rig = Rig::new(&fast(100_000_000, ms(10), 4 << 20), 1);
    let (bulk, small) = (rig.connect(A, B), rig.connect(A, C));
    rig.pass(Nanos::from_secs(1));
    for number in 0..50 {
        rig.send(bulk, A, MIB, number * 2);
    }
    rig.pass(Nanos::from_secs(1));
    rig.log.clear();
    let sent = rig.now;
    rig.send(small, A, 100, 2);
    rig.pass(ms(50));
    let took = rig.log.iter().find(|row| row.2 == small).unwrap().0.since(sent);
    assert!(took < ms(10) + ms(4), "two turns of 1 ms and its own: {took:?}");
}

#[test]
fn inside_a_site_every_node_has_its_own_port() {
    let mut topology = Topology::new(1);
    topology.sites[0] = LinkSpec { bits_per_second: 8_000_000, jitter: Jitter::None, ..LinkSpec::LAN };
    for node in [A, B, C] {
        topology.node(node, WEST, Role::Broker, 0);
    }
    let mut rig = Rig::new(&topology, 1);
    let (one, two) = (rig.connect(A, C), rig.connect(B, C));
    rig.pass(Nanos::from_secs(1));
    rig.log.clear();
    rig.send(one, A, 1_382, 2); // 1,448 bytes with headers: 1.448 ms at 8 Mbit/s
    rig.send(two, B, 1_382, 4);
    rig.pass(ms(10));
    assert_eq!(rig.got(C), [(1_001_548, Got::Message(2)), (1_001_548, Got::Message(4))]);
}

#[test]
fn loss_is_delay_and_costs_throughput_but_no_message() {
    let lossy = LinkSpec { loss: Chance::from_ratio(0.01), ..LinkSpec::WAN };
    let mut rig = Rig::new(&wan(lossy), 3);
    let conn = rig.connected(A, B);
    let mut late = 0;
    for number in 0..2_000 {
        let sent = rig.now;
        rig.send(conn, A, 1_000, number * 2);
        rig.pass(ms(5_000));
        let (at, ..) = rig.log[number as usize];
        late += u32::from(at.since(sent) > ms(200));
    }
    assert!((10..=35).contains(&late), "{late} of 2,000 late");
    assert_eq!(rig.numbers(B), (0..2_000).map(|n| n * 2).collect::<Vec<_>>());
    assert_eq!(u64::from(late), rig.net.counters(WEST, EAST).drops);
}

#[test]
fn a_retransmission_in_a_burst_is_fast_and_at_its_end_waits_for_the_timer() {
    let certain = LinkSpec { loss: Chance::from_ratio(0.5), ..LinkSpec::WAN };
    let mut rig = Rig::new(&wan(certain), 5);
    rig.connect(A, B);
    rig.pass(Nanos::from_secs(30));
    assert!(rig.log.iter().any(|row| row.3 == Got::Opened(true)), "gets through with patience: {:?}", rig.log);
}

#[test]
fn draws_have_the_shape_they_are_named_for() {
    let mean = |jitter: Jitter| {
        let draws = (0..100_000).map(|n| jitter.delay(Seed(9).draw(Concern::NetLatency, 9, n)));
        let most = draws.clone().max().unwrap();
        assert!(most <= jitter.most());
        draws.sum::<u64>() / 100_000
    };
    assert!(mean(Jitter::Uniform { max: Nanos(1_000_000) }).abs_diff(500_000) < 5_000);
    assert!(mean(Jitter::Exponential { mean: Nanos(1_000_000) }).abs_diff(1_000_000) < 15_000);
    assert!(mean(Jitter::HalfNormal { sigma: Nanos(1_000_000) }).abs_diff(797_885) < 15_000); // sqrt(2 / pi)
    assert_eq!(mean(Jitter::None), 0);
}

#[test]
fn chances_multiply() {
    assert_eq!(Chance::NEVER.all_miss(100), 1 << 32);
    assert_eq!(Chance::ALWAYS.all_miss(1), 0);
    assert_eq!(Chance::from_ratio(0.5).all_miss(3), 1 << 29);
    assert_eq!(Chance::from_ratio(0.5).or(Chance::from_ratio(0.5)), Chance::from_ratio(0.75));
    assert_eq!(Chance::from_ratio(f64::NAN), Chance::NEVER);
}

#[test]
fn the_hot_structures_are_small() {
    assert!(size_of::<flow::Item>() <= 40, "{}", size_of::<flow::Item>());
    assert!(size_of::<NetEvent>() <= 12, "{}", size_of::<NetEvent>());
    assert!(size_of::<connection::Conn>() <= 448, "{}", size_of::<connection::Conn>());
}
