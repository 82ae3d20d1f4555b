//! The condition language of `when = "…"` and of `expect.equals`: terms, comparisons, `and`, `or`, parentheses.
//!
//! ```text
//! condition  := all ( "or" all )*
//! all        := one ( "and" one )*
//! one        := "(" condition ")" | term [ operator value ]
//! operator   := "==" | "!=" | ">=" | "<=" | ">" | "<"
//! term       := name "(" argument ( "," argument )* ")"
//! value      := number | word | "quoted text" | term
//! ```
//! This file holds the meaning (names resolved); `condition_syntax.rs` reads the text.

use std::fmt;

/// Comparison of a term with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compare {
    /// `==`
    Equal,
    /// `!=`
    Other,
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `<`
    Below,
}

impl Compare {
    /// All, by sign; longer signs first.
    pub const SIGNS: &'static [(&'static str, Self)] = &[
        ("==", Self::Equal),
        ("!=", Self::Other),
        (">=", Self::AtLeast),
        ("<=", Self::AtMost),
        (">", Self::Above),
        ("<", Self::Below),
    ];

    /// Whether `left` and `right` stand so.
    #[must_use]
    pub fn holds<T: PartialOrd>(self, left: &T, right: &T) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Other => left != right,
            Self::AtLeast => left >= right,
            Self::AtMost => left <= right,
            Self::Above => left > right,
            Self::Below => left < right,
        }
    }
}

impl fmt::Display for Compare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::SIGNS.iter().find(|(_, c)| c == self).map_or("==", |(sign, _)| sign))
    }
}

/// A topic of a cluster or of a mirror; without a partition, all of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Where {
    /// The cluster, or the mirror.
    pub of: String,
    /// The topic.
    pub topic: String,
    /// One partition.
    pub partition: Option<u32>,
}

impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.of, self.topic)?;
        match self.partition {
            Some(partition) => write!(f, ", {partition}"),
            None => Ok(()),
        }
    }
}

/// What can be looked at. Over all partitions of a topic a comparison must hold for each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Term {
    /// `mirror(TOPIC[, P])`: the mirror state, by name.
    Mirror(Where),
    /// `desired(TOPIC)`: the desired state, by name.
    Desired(Where),
    /// `lag(TOPIC[, P])`: records not yet mirrored; never true while unknown.
    Lag(Where),
    /// `leader(TOPIC, P)`: the leader's node, or `none`.
    Leader(Where),
    /// `epoch(TOPIC[, P])`: the leader epoch.
    Epoch(Where),
    /// `isr(TOPIC[, P])`: how many replicas are in sync.
    Isr(Where),
    /// `end(TOPIC[, P])`: the leader's high watermark.
    End(Where),
    /// `start(TOPIC[, P])`: the leader's log start.
    Start(Where),
    /// `stable(TOPIC[, P])`: the leader's last stable offset, where readers of committed records end.
    Stable(Where),
    /// `partitions(CLUSTER/TOPIC)`: how many the topic has; 0 while the cluster does not know it.
    Partitions(Where),
    /// `resets(TOPIC[, P])`: producer resets among the committed records of the leader's log.
    Resets(Where),
    /// `aborts(TOPIC[, P])`: abort markers among them.
    Aborts(Where),
    /// `commits(TOPIC[, P])`: commit markers among them.
    Commits(Where),
    /// `record_epoch(TOPIC, P, OFFSET)`: the leader epoch that the committed record at an offset was written in.
    RecordEpoch(Where, u64),
    /// `position_epoch(TOPIC[, P])`: the epoch of the last mirrored position that the coordinator has committed, -1: none.
    PositionEpoch(Where),
    /// `position_offset(TOPIC[, P])`: its offset, -1: none.
    PositionOffset(Where),
    /// `acked(PRODUCER)`: records acknowledged.
    Acked(String),
    /// `read(CONSUMER)`: records delivered.
    Read(String),
    /// `attempts(TOPIC[, P])`: retries since the last success.
    Attempts(Where),
    /// `term(CLUSTER)`: the epoch in which a controller of the cluster is active; 0 while none is.
    Term(String),
    /// `up(NODE)`: the process runs.
    Up(super::action::NodeRef),
    /// `down(NODE)`: the process has ended, or never ran.
    Down(super::action::NodeRef),
    /// `done(STEP)`: the named step is over (a fault: healed; an order: answered).
    Done(String),
}

/// What kind of value a term has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TermKind {
    /// A whole number.
    Number,
    /// A mirror state.
    State,
    /// A desired state.
    Desired,
    /// A node.
    Node,
    /// Yes or no.
    Truth,
}

impl Term {
    /// All names.
    pub const NAMES: &'static [&'static str] = &[
        "mirror",
        "desired",
        "lag",
        "leader",
        "epoch",
        "isr",
        "end",
        "start",
        "stable",
        "partitions",
        "resets",
        "aborts",
        "commits",
        "record_epoch",
        "position_epoch",
        "position_offset",
        "acked",
        "read",
        "attempts",
        "term",
        "up",
        "down",
        "done",
    ];

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Mirror(_) => "mirror",
            Self::Desired(_) => "desired",
            Self::Lag(_) => "lag",
            Self::Leader(_) => "leader",
            Self::Epoch(_) => "epoch",
            Self::Isr(_) => "isr",
            Self::End(_) => "end",
            Self::Start(_) => "start",
            Self::Stable(_) => "stable",
            Self::Partitions(_) => "partitions",
            Self::Resets(_) => "resets",
            Self::Aborts(_) => "aborts",
            Self::Commits(_) => "commits",
            Self::RecordEpoch(..) => "record_epoch",
            Self::PositionEpoch(_) => "position_epoch",
            Self::PositionOffset(_) => "position_offset",
            Self::Acked(_) => "acked",
            Self::Read(_) => "read",
            Self::Attempts(_) => "attempts",
            Self::Term(_) => "term",
            Self::Up(_) => "up",
            Self::Down(_) => "down",
            Self::Done(_) => "done",
        }
    }

    /// The topic or partition that it looks at.
    #[must_use]
    pub const fn place(&self) -> Option<&Where> {
        match self {
            Self::Mirror(at)
            | Self::Desired(at)
            | Self::Lag(at)
            | Self::Leader(at)
            | Self::Epoch(at)
            | Self::Isr(at)
            | Self::End(at)
            | Self::Start(at)
            | Self::Stable(at)
            | Self::Partitions(at)
            | Self::Resets(at)
            | Self::Aborts(at)
            | Self::Commits(at)
            | Self::RecordEpoch(at, _)
            | Self::PositionEpoch(at)
            | Self::PositionOffset(at)
            | Self::Attempts(at) => Some(at),
            Self::Acked(_) | Self::Read(_) | Self::Term(_) | Self::Up(_) | Self::Down(_) | Self::Done(_) => None,
        }
    }

    /// What kind of value it has.
    #[must_use]
    pub const fn kind(&self) -> TermKind {
        match self {
            Self::Mirror(_) => TermKind::State,
            Self::Desired(_) => TermKind::Desired,
            Self::Leader(_) => TermKind::Node,
            Self::Up(_) | Self::Down(_) | Self::Done(_) => TermKind::Truth,
            _ => TermKind::Number,
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name())?;
        match self {
            Self::RecordEpoch(at, offset) => write!(f, "{at}, {offset}")?,
            Self::Acked(name) | Self::Read(name) | Self::Term(name) | Self::Done(name) => f.write_str(name)?,
            // A node that is itself a call holds a comma, so it stands in quotes.
            Self::Up(node) | Self::Down(node) => write!(f, "\"{node}\"")?,
            _ => self.place().map_or(Ok(()), |at| at.fmt(f))?,
        }
        f.write_str(")")
    }
}

/// A value that a term is compared with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// A whole number.
    Number(i64),
    /// A state, in its newest name.
    State(String),
    /// A node; `None`: no leader.
    Node(Option<super::action::NodeRef>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => n.fmt(f),
            Self::State(name) => f.write_str(name),
            Self::Node(None) => f.write_str("none"),
            Self::Node(Some(node)) => write!(f, "\"{node}\""),
        }
    }
}

/// A condition with every name resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Each of these.
    All(Vec<Condition>),
    /// One of these.
    Any(Vec<Condition>),
    /// A comparison.
    Is(Term, Compare, Value),
    /// Two numbers of the world compared: partition by partition, where both have as many.
    Both(Term, Compare, Term),
    /// A term that is true.
    True(Term),
}

impl Condition {
    /// Every term in it, left to right.
    pub fn terms(&self) -> Vec<&Term> {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::terms).collect(),
            Self::Is(term, ..) | Self::True(term) => vec![term],
            Self::Both(left, _, right) => vec![left, right],
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, inner: bool) -> fmt::Result {
        let (parts, word) = match self {
            Self::All(parts) => (parts, " and "),
            Self::Any(parts) => (parts, " or "),
            Self::Is(term, compare, value) => return write!(f, "{term} {compare} {value}"),
            Self::Both(left, compare, right) => return write!(f, "{left} {compare} {right}"),
            Self::True(term) => return write!(f, "{term}"),
        };
        if inner {
            f.write_str("(")?;
        }
        for (n, part) in parts.iter().enumerate() {
            if n > 0 {
                f.write_str(word)?;
            }
            part.write(f, true)?;
        }
        if inner {
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, false)
    }
}
