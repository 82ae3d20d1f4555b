//! What the network is made of: sites, the links between them, the nodes in them, and TCP's settings.
//!
//! All of it is plain data that a plan carries. A link is one direction of one ordered pair of sites. Within a site every
//! node has a port of its own into a switch that never blocks, so the inside link's bandwidth is per sending node.

use mirrorlab_model::ids::{Nanos, NodeId};
use std::collections::BTreeMap;

/// A site (a data centre), by its place in [`Topology::sites`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SiteIx(pub u16);

/// What a node is, for faults that strike one kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Serves partitions.
    Broker,
    /// Keeps the metadata log.
    Controller,
    /// Producer, consumer, operator.
    Client,
}

/// One node and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSpec {
    /// Its id, which is also its address.
    pub node: NodeId,
    /// Where it stands.
    pub site: SiteIx,
    /// What it is.
    pub role: Role,
    /// The cluster it belongs to, by number.
    pub cluster: u16,
}

/// A probability, as a whole number of 2^-32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Chance(u64);

impl Chance {
    /// Never.
    pub const NEVER: Self = Self(0);
    /// Always.
    pub const ALWAYS: Self = Self(1 << 32);

    /// From a ratio; below 0 and not-a-number is never, above 1 is always.
    #[must_use]
    pub fn from_ratio(ratio: f64) -> Self {
        // Multiplication and the saturating cast are exact in IEEE 754: the same on every machine.
        Self(((ratio.clamp(0.0, 1.0)) * 4_294_967_296.0) as u64)
    }
    /// Whether the draw (its upper 32 bits) hits.
    #[must_use]
    pub const fn hits(self, draw: u64) -> bool {
        (draw >> 32) < self.0
    }
    /// True if it can never hit.
    #[must_use]
    pub const fn is_never(self) -> bool {
        self.0 == 0
    }
    /// The chance that none of `times` independent trials hits, in 2^-32.
    pub(super) const fn all_miss(self, mut times: u32) -> u64 {
        let mut base = (1 << 32) - self.0;
        let mut product = 1 << 32;
        while times > 0 {
            if times & 1 == 1 {
                product = ((product as u128 * base as u128) >> 32) as u64;
            }
            base = ((base as u128 * base as u128) >> 32) as u64;
            times >>= 1;
        }
        product
    }
    /// Either of two independent chances.
    pub(super) const fn or(self, other: Self) -> Self {
        let miss = (((1 << 32) - self.0) as u128 * ((1 << 32) - other.0) as u128) >> 32;
        Self((1 << 32) - miss as u64)
    }
}

/// Delay beyond a link's latency, drawn per burst. Never negative: the latency is the least delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Jitter {
    /// None.
    #[default]
    None,
    /// Uniform from 0 to `max`.
    Uniform {
        /// Largest delay.
        max: Nanos,
    },
    /// The absolute value of a normal deviate (a sum of four uniform ones, so never beyond 3.5 sigma).
    HalfNormal {
        /// Standard deviation of the normal deviate.
        sigma: Nanos,
    },
    /// Exponential: mostly small, sometimes several times the mean, never beyond 37 times.
    Exponential {
        /// Mean.
        mean: Nanos,
    },
}

impl Jitter {
    /// The delay in nanoseconds that `bits` (uniform) stand for.
    #[must_use]
    pub fn delay(self, bits: u64) -> u64 {
        match self {
            Self::None => 0,
            Self::Uniform { max } => ((u128::from(bits) * (u128::from(max.0) + 1)) >> 64) as u64,
            Self::HalfNormal { sigma } => {
                let sum = (bits & 0xffff) + ((bits >> 16) & 0xffff) + ((bits >> 32) & 0xffff) + (bits >> 48);
                // Four uniform 16-bit numbers: mean 131,070, standard deviation 65,536 / sqrt(3) = 37,837.
                (u128::from(sum.abs_diff(131_070)) * u128::from(sigma.0) / 37_837) as u64
            }
            Self::Exponential { mean } => {
                let uniform = ((bits >> 11) | 1) as f64 / 9_007_199_254_740_992.0; // 2^53
                (mean.0 as f64 * -libm::log(uniform)) as u64 // libm: the platform's logarithm differs between machines
            }
        }
    }
    /// The largest delay that [`Jitter::delay`] gives.
    #[must_use]
    pub const fn most(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Uniform { max } => max.0,
            Self::HalfNormal { sigma } => sigma.0.saturating_mul(4),
            Self::Exponential { mean } => mean.0.saturating_mul(37),
        }
    }
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// Least one-way delay.
    pub latency: Nanos,
    /// Delay beyond it.
    pub jitter: Jitter,
    /// Loss per packet of 1,448 bytes of payload.
    pub loss: Chance,
    /// Bandwidth in bit/s, at least 1,000 (less counts as that); `u64::MAX` for no limit.
    pub bits_per_second: u64,
    /// Bytes in flight per connection over this link, if not [`Tcp::window`].
    pub window: Option<u32>,
}

impl LinkSpec {
    /// Inside a data centre: 0.1 to 0.25 ms, 10 Gbit/s per node, no loss.
    pub const LAN: Self = Self {
        latency: Nanos::from_micros(100),
        jitter: Jitter::Uniform { max: Nanos::from_micros(150) },
        loss: Chance::NEVER,
        bits_per_second: 10_000_000_000,
        window: None,
    };
    /// Between sites when nothing is said: 40 ms, 1 Gbit/s, no jitter, no loss.
    pub const WAN: Self = Self {
        latency: Nanos::from_millis(40),
        jitter: Jitter::None,
        loss: Chance::NEVER,
        bits_per_second: 1_000_000_000,
        window: None,
    };
}

/// TCP's settings, for all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Bytes in flight per direction: the receiver's socket buffer (64 KiB, spec 4.1).
    pub window: u32,
    /// Segments of 1,448 bytes sent before the first acknowledgement (10, RFC 6928).
    pub initial_segments: u32,
    /// Least retransmission timeout (200 ms, Linux); the timeout is this or two round trips, and doubles.
    pub rto_min: Nanos,
    /// Largest retransmission timeout (120 s, Linux).
    pub rto_max: Nanos,
    /// First retransmission timeout of a handshake (1 s, RFC 6298).
    pub syn_rto: Nanos,
    /// How long an attempt to connect lasts (10 s, Kafka's `socket.connection.setup.timeout.ms`).
    pub connect_timeout: Nanos,
    /// A sender without progress for so long gets a reset (RFC 5482). None: it waits for ever.
    pub user_timeout: Option<Nanos>,
    /// How long a kernel retransmits for a process that closed or died (100 s, about Linux's `tcp_orphan_retries` = 8).
    pub orphan_timeout: Nanos,
    /// Whether the kernel of a paused process completes handshakes (the accept backlog has room). If not, they time out.
    pub accept_while_paused: bool,
}

impl Default for Tcp {
    fn default() -> Self {
        Self {
            window: 65_536,
            initial_segments: 10,
            rto_min: Nanos::from_millis(200),
            rto_max: Nanos::from_secs(120),
            syn_rto: Nanos::from_secs(1),
            connect_timeout: Nanos::from_secs(10),
            user_timeout: None,
            orphan_timeout: Nanos::from_secs(100),
            accept_while_paused: false,
        }
    }
}

/// The whole network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// The inside link of each site.
    pub sites: Vec<LinkSpec>,
    /// Links by (from, to); a pair that is not named has [`Topology::wan`].
    pub links: BTreeMap<(SiteIx, SiteIx), LinkSpec>,
    /// The link between sites of which nothing is said.
    pub wan: LinkSpec,
    /// The nodes; ids need not be dense, but memory goes by the largest.
    pub nodes: Vec<NodeSpec>,
    /// TCP's settings.
    pub tcp: Tcp,
}

impl Topology {
    /// `sites` sites with [`LinkSpec::LAN`] inside and [`LinkSpec::WAN`] between, and no nodes.
    #[must_use]
    pub fn new(sites: usize) -> Self {
        Self {
            sites: vec![LinkSpec::LAN; sites],
            links: BTreeMap::new(),
            wan: LinkSpec::WAN,
            nodes: Vec::new(),
            tcp: Tcp::default(),
        }
    }
    /// The same link both ways.
    pub fn link(&mut self, one: SiteIx, other: SiteIx, spec: LinkSpec) {
        self.links.insert((one, other), spec);
        self.links.insert((other, one), spec);
    }
    /// Adds a node.
    pub fn node(&mut self, node: NodeId, site: SiteIx, role: Role, cluster: u16) {
        self.nodes.push(NodeSpec { node, site, role, cluster });
    }
}
