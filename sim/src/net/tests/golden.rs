//! One busy history, and its hash: the same on every machine, in every build, from a clone, and for ever until the model
//! is changed on purpose.

use super::*;
use xxhash_rust::xxh3::xxh3_64;

fn busy() -> Rig {
    let link = LinkSpec {
        latency: ms(20),
        jitter: Jitter::Exponential { mean: ms(2) },
        loss: Chance::from_ratio(0.003),
        bits_per_second: 50_000_000,
        window: Some(200_000),
    };
    let mut rig = Rig::new(&wan(link), 42);
    let conns = [(A, B), (B, A), (A, C), (C, B)].map(|(from, to)| (from, to, rig.connect(from, to)));
    rig.pass(Nanos::from_secs(1));
    for round in 0..400_u32 {
        for (place, (from, to, conn)) in conns.into_iter().enumerate() {
            let bytes = 100 + (round * 7_919 + place as u32 * 104_729) % 30_000;
            rig.send(conn, from, bytes, round * 2);
            rig.send(conn, to, bytes / 3, round * 2 + 1);
        }
        rig.pass(ms(5));
    }
    rig
}

fn go_on(rig: &mut Rig) -> u64 {
    rig.fault(1, Fault::Cut(Cut::traffic(Only::Controllers)));
    rig.pass(Nanos::from_secs(3));
    rig.down(B, Down::Paused);
    rig.heal(1);
    rig.pass(Nanos::from_secs(3));
    rig.up(B, 1);
    rig.pass(Nanos::from_secs(9));
    rig.down(A, Down::Killed);
    rig.pass(Nanos::from_secs(9));
    let mut bytes = Vec::new();
    for (at, node, conn, got) in &rig.log {
        let (kind, number) = match *got {
            Got::Opened(inbound) => (0, u32::from(inbound)),
            Got::Closed(why) => (1, why as u32),
            Got::Message(number) => (2, number),
        };
        for number in [at.0, u64::from(node.0), conn.0, kind, u64::from(number)] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }
    xxh3_64(&bytes)
}

#[test]
fn the_history_is_the_golden_one_and_a_clone_has_the_same() {
    let mut rig = busy();
    let mut twin = rig.clone();
    let hash = go_on(&mut rig);
    assert_eq!(hash, go_on(&mut twin));
    assert!(rig.log.len() > 3_000, "{}", rig.log.len());
    assert_eq!(hash, GOLDEN, "the model of the network changed; if on purpose, the new hash is {hash:#x}");
}

const GOLDEN: u64 = 0xb9f8_5f81_d3e3_7877;
