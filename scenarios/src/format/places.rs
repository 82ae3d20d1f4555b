//! Where a step strikes and how long after its condition: nodes, places, delays, each with its text.

use super::condition::Condition;
use crate::units::{as_text, Time};
use std::fmt;

/// Which process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeRef {
    /// `east/broker-1`, counted from 1.
    Broker(String, u32),
    /// `east/controller-1`, counted from 1.
    Controller(String, u32),
    /// `east/controller-*`: all controllers.
    Controllers(String),
    /// `active(east)`: the active controller when the step is due.
    Active(String),
    /// `east/*`, or `east/broker-*`: all brokers.
    Brokers(String),
    /// `east/operator`: where the orders to a cluster are given; `east/operator-2`: by which of its operators.
    Operator(String, u32),
    /// `clients/shop`: a producer or consumer; of `count` alike, all.
    Client(String),
    /// `leader(east/orders, 0)`: who leads it when the step is due.
    Leader(String, String, u32),
    /// `coordinator(east-to-west)`: the broker that coordinates the mirror when the step is due.
    Coordinator(String),
}

impl NodeRef {
    /// Whether it is a process without a disk: a client, or where an operator sits.
    #[must_use]
    pub const fn is_diskless(&self) -> bool {
        matches!(self, Self::Client(_) | Self::Operator(..))
    }
}

impl fmt::Display for NodeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broker(cluster, n) => write!(f, "{cluster}/broker-{n}"),
            Self::Controller(cluster, n) => write!(f, "{cluster}/controller-{n}"),
            Self::Controllers(cluster) => write!(f, "{cluster}/controller-*"),
            Self::Active(cluster) => write!(f, "active({cluster})"),
            Self::Brokers(cluster) => write!(f, "{cluster}/*"),
            Self::Operator(cluster, 1) => write!(f, "{cluster}/operator"),
            Self::Operator(cluster, n) => write!(f, "{cluster}/operator-{n}"),
            Self::Client(name) => write!(f, "clients/{name}"),
            Self::Leader(cluster, topic, partition) => write!(f, "leader({cluster}/{topic}, {partition})"),
            Self::Coordinator(mirror) => write!(f, "coordinator({mirror})"),
        }
    }
}

/// One side of a partition: a site, all of a cluster, or a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// All brokers and controllers of a cluster.
    Cluster(String),
    /// Everything at a site.
    Site(String),
    /// One node.
    Node(NodeRef),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(name) => f.write_str(name),
            // A site may have the name of a cluster; a file may leave the prefix out where it has not.
            Self::Site(name) => write!(f, "site:{name}"),
            Self::Node(node) => node.fmt(f),
        }
    }
}

/// How long after its condition a step comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum After {
    /// So long.
    Time(Time),
    /// So many batches appended to the partitions that the condition names.
    Batches(u64),
    /// So many records appended to them.
    Records(u64),
}

impl fmt::Display for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => time.fmt(f),
            Self::Batches(n) => write!(f, "{n} batches"),
            Self::Records(n) => write!(f, "{n} records"),
        }
    }
}

macro_rules! described {
    ($($name:ident: $says:literal;)*) => { $( as_text!($name, { "type": "string", "description": $says }); )* };
}
described! {
    NodeRef: "east/broker-1, east/controller-1, east/* (all brokers), east/operator, clients/NAME, leader(east/TOPIC, PARTITION), active(east) (the active controller) or coordinator(MIRROR)";
    Place: "a site (also site:NAME), a cluster, or a node";
    After: "a duration (2 s), a number of batches (3 batches) or of records (100 records)";
    Condition: "terms such as mirror(orders) == MIRRORING, lag(orders) == 0, acked(shop) >= 100, joined by and, or and parentheses";
}
