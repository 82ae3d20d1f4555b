//! What holds for every history: a receiver sees a prefix of what was sent, never early, and all of it if nobody dies.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    Connect(usize, usize),
    Send { conn: usize, by_opener: bool, bytes: u32, copies: u8 },
    Close { conn: usize, by_opener: bool },
    Down(usize, Down),
    Up(usize),
    Restart(usize),
    Cut(u32, Cut),
    Slow(u32, u64),
    Heal(u32),
    Pass(u64),
}

const NODES: [NodeId; 3] = [A, B, C];

fn who() -> impl Strategy<Value = Who> {
    prop_oneof![
        Just(Who::Anyone),
        (0..3_usize).prop_map(|n| Who::Node(NODES[n])),
        Just(Who::Site(EAST)),
        Just(Who::Role(Role::Controller)),
    ]
}

fn traffic() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..3_usize, 0..3_usize).prop_map(|(from, to)| Step::Connect(from, to)),
        8 => (any::<usize>(), any::<bool>(), 0..200_000_u32, 1..8_u8)
            .prop_map(|(conn, by_opener, bytes, copies)| Step::Send { conn, by_opener, bytes, copies }),
        4 => (0..2_000_000_u64).prop_map(|us| Step::Pass(us * 1_000)),
    ]
}

fn trouble() -> impl Strategy<Value = Step> {
    let how = prop_oneof![
        Just(Down::Killed),
        Just(Down::Exited),
        Just(Down::PowerLoss),
        Just(Down::Paused),
        Just(Down::Frozen)
    ];
    let only = prop_oneof![Just(Only::Everything), Just(Only::Wan), Just(Only::InterCluster)];
    prop_oneof![
        1 => (any::<usize>(), any::<bool>()).prop_map(|(conn, by_opener)| Step::Close { conn, by_opener }),
        2 => (0..3_usize, how).prop_map(|(node, how)| Step::Down(node, how)),
        2 => (0..3_usize).prop_map(Step::Up),
        1 => (0..3_usize).prop_map(Step::Restart),
        3 => (0..3_u32, who(), who(), any::<bool>(), only)
            .prop_map(|(id, from, to, both_ways, only)| Step::Cut(id, Cut { from, to, both_ways, only })),
        1 => (0..3_u32, 1_000..100_000_u64).prop_map(|(id, kbits)| Step::Slow(id, kbits * 1_000)),
        3 => (0..3_u32).prop_map(Step::Heal),
    ]
}

fn link() -> impl Strategy<Value = LinkSpec> {
    let jitter = prop_oneof![Just(Jitter::None), Just(Jitter::Exponential { mean: ms(5) })];
    (0..100_u64, jitter, 0..50_u32, 1_000_000..2_000_000_000_u64, 0..300_000_u32).prop_map(
        |(latency, jitter, loss, bits_per_second, window)| LinkSpec {
            latency: ms(latency),
            jitter,
            loss: Chance::from_ratio(f64::from(loss) / 1_000.0),
            bits_per_second,
            window: Some(window),
        },
    )
}

struct Play {
    rig: Rig,
    latency: Nanos,
    conns: Vec<(ConnId, NodeId, NodeId)>,
    incarnations: [u32; 3],
    number: u32,
    /// What was sent per connection and sender, when, and whether that end's process lived on.
    sent: BTreeMap<(ConnId, NodeId), Vec<(u32, Nanos)>>,
}

impl Play {
    fn new(link: LinkSpec, seed: u64) -> Self {
        let rig = Rig::new(&wan(link), seed);
        let sent = BTreeMap::new();
        let mut play = Self { rig, latency: link.latency, conns: Vec::new(), incarnations: [1; 3], number: 0, sent };
        for (from, to) in [(0, 1), (1, 0), (2, 1)] {
            play.step(Step::Connect(from, to));
        }
        play.rig.pass(Nanos::from_secs(5));
        play
    }

    /// Sends as a process would: on connections that it was told are open and not told are closed.
    fn send(&mut self, conn: usize, by_opener: bool, bytes: u32, copies: u8) {
        if self.conns.is_empty() {
            return;
        }
        let (conn, from, to) = self.conns[conn % self.conns.len()];
        let node = if by_opener { from } else { to };
        let told = self.rig.log.iter().filter(|row| row.1 == node && row.2 == conn);
        let (mut open, mut over) = (false, false);
        for row in told {
            open |= matches!(row.3, Got::Opened(_));
            over |= matches!(row.3, Got::Closed(_));
        }
        if !open || over {
            return;
        }
        for _ in 0..copies {
            if self.rig.send(conn, node, bytes / u32::from(copies), self.number * 2) {
                self.sent.entry((conn, node)).or_default().push((self.number * 2, self.rig.now));
            }
            self.number += 1;
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Connect(from, to) if from != to => {
                let conn = self.rig.connect(NODES[from], NODES[to]);
                self.conns.push((conn, NODES[from], NODES[to]));
            }
            Step::Connect(..) => {}
            Step::Send { conn, by_opener, bytes, copies } => self.send(conn, by_opener, bytes, copies),
            Step::Close { conn, by_opener } => {
                if let Some(&(conn, from, to)) = self.conns.get(conn % self.conns.len().max(1)) {
                    self.rig.close(conn, if by_opener { from } else { to });
                }
            }
            Step::Down(node, how) => self.rig.down(NODES[node], how),
            Step::Up(node) => self.rig.up(NODES[node], self.incarnations[node]),
            Step::Restart(node) => {
                self.incarnations[node] += 1;
                self.rig.up(NODES[node], self.incarnations[node]);
            }
            Step::Cut(id, cut) => self.rig.fault(id, Fault::Cut(cut)),
            Step::Slow(id, bits) => {
                let (extra_latency, loss) = (ms(3), Chance::from_ratio(0.02));
                let bits_per_second = Some(bits);
                self.rig.fault(
                    id,
                    Fault::Degrade(Degrade {
                        from: EAST,
                        to: WEST,
                        extra_latency,
                        jitter: None,
                        loss,
                        bits_per_second,
                    }),
                );
            }
            Step::Heal(id) => self.rig.heal(id),
            Step::Pass(time) => self.rig.pass(Nanos(time)),
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        for &(conn, from, to) in &self.conns {
            for (node, peer) in [(from, to), (to, from)] {
                let got = self.rig.log.iter().filter(|row| row.1 == node && row.2 == conn);
                let sent = self.sent.get(&(conn, peer)).map_or(&[][..], Vec::as_slice);
                let (mut next, mut over, mut opened) = (0, false, false);
                for &(at, _, _, got) in got {
                    prop_assert!(!over, "something after the end");
                    match got {
                        Got::Opened(_) => {
                            prop_assert!(!opened, "opened twice");
                            opened = true;
                        }
                        Got::Closed(_) => over = true,
                        Got::Message(number) => {
                            prop_assert!(opened, "a message before the opening");
                            prop_assert_eq!(Some(number), sent.get(next).map(|row| row.0), "not a prefix");
                            let same_site = (node == A) == (peer == A);
                            let least = if same_site { LinkSpec::LAN.latency } else { self.latency };
                            prop_assert!(at.since(sent[next].1) >= least, "faster than the link");
                            next += 1;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn bandwidth_holds(play: &Play, link: &LinkSpec) -> Result<(), TestCaseError> {
    for (from, to) in [(WEST, EAST), (EAST, WEST)] {
        let counters = play.rig.net.counters(from, to);
        // In bits times seconds; one turn may have been admitted ahead of the clock, twice.
        let most = u128::from(link.bits_per_second) * u128::from(play.rig.now.0) / 8_000_000_000 + 2 * 70_000;
        prop_assert!(u128::from(counters.bytes) <= most, "{counters:?} over {most}");
        prop_assert!(counters.busy <= play.rig.now + Nanos::from_secs(2));
    }
    Ok(())
}

proptest! {
    #[test]
    fn without_deaths_everything_arrives_once_in_order(
        link in link(), seed in any::<u64>(), steps in prop::collection::vec(traffic(), 1..60),
    ) {
        let mut play = Play::new(link, seed);
        for step in steps {
            play.step(step);
            bandwidth_holds(&play, &link)?;
        }
        play.rig.pass(Nanos::from_secs(20_000));
        play.check()?;
        let arrived = play.rig.log.iter().filter(|row| matches!(row.3, Got::Message(_))).count();
        prop_assert_eq!(arrived, play.sent.values().map(Vec::len).sum::<usize>());
        prop_assert_eq!(play.rig.pending(), 0);
    }

    #[test]
    fn whatever_strikes_a_receiver_sees_a_prefix_and_heals(
        link in link(), seed in any::<u64>(), steps in prop::collection::vec(prop_oneof![4 => traffic(), 1 => trouble()], 1..120),
    ) {
        let mut play = Play::new(link, seed);
        for step in steps {
            play.step(step);
        }
        for id in 0..3 {
            play.rig.heal(id);
        }
        for node in 0..3 {
            play.step(Step::Restart(node));
        }
        play.rig.pass(Nanos::from_secs(20_000));
        play.check()?;
        prop_assert_eq!(play.rig.pending(), 0, "the network comes to rest");
        let queued = play.rig.net.links.iter().map(|link| link.queued).sum::<u64>();
        prop_assert_eq!(queued, 0, "and holds nothing back");
        prop_assert_eq!(play.rig.net.connections(), 0, "no process knows any, and none leaks");
        // All processes are new ones by now: a fresh connection works.
        let conn = play.rig.connect(A, B);
        play.rig.pass(Nanos::from_secs(60));
        prop_assert!(play.rig.log.iter().any(|row| row.2 == conn && row.3 == Got::Opened(true)));
    }

    #[test]
    fn all_who_live_through_cuts_and_pauses_get_everything(
        link in link(), seed in any::<u64>(), steps in prop::collection::vec(prop_oneof![3 => traffic(), 1 => trouble()], 1..120),
    ) {
        let mut play = Play::new(link, seed);
        for step in steps {
            match step {
                Step::Down(_, Down::Killed | Down::Exited | Down::PowerLoss) | Step::Restart(_) | Step::Close { .. } => {}
                step => play.step(step),
            }
        }
        for id in 0..3 {
            play.rig.heal(id);
        }
        for node in 0..3 {
            play.step(Step::Up(node));
        }
        play.rig.pass(Nanos::from_secs(20_000));
        play.check()?;
        let arrived = play.rig.log.iter().filter(|row| matches!(row.3, Got::Message(_))).count();
        prop_assert_eq!(arrived, play.sent.values().map(Vec::len).sum::<usize>());
    }
}
