//! Random draws of the network: a hash of the flow's key and an ordinal that the flow counts.
//!
//! A flow's key comes from the run's seed, the connection's id and the direction, so that taking one fault out of a run, or
//! adding one node, leaves every draw of the other connections alone.

/// SplitMix64's finaliser (Steele, Lea, Flood 2014; public domain constants).
const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The key of one direction of one connection.
pub(super) const fn flow_key(seed: u64, conn: u64, direction: usize) -> u64 {
    mix(mix(seed ^ 0x6e65_7477_6f72_6b00).wrapping_add(conn.wrapping_mul(0x9e37_79b9_7f4a_7c15)) ^ direction as u64)
}

/// What a draw decides; draws of different concerns never meet.
#[derive(Clone, Copy)]
#[repr(u64)]
pub(super) enum Concern {
    Jitter = 0x4a49_5454_4552_0000,
    Loss = 0x4c4f_5353_0000_0000,
    Retransmission = 0x5245_5452_414e_0000,
    Handshake = 0x5359_4e00_0000_0000,
    Perturb = 0x5045_5254_5552_4200,
}

/// A 64-bit draw.
pub(super) const fn draw(key: u64, concern: Concern, ordinal: u64) -> u64 {
    mix(mix(key ^ concern as u64).wrapping_add(ordinal.wrapping_mul(0xd1b5_4a32_d192_ed03)))
}
