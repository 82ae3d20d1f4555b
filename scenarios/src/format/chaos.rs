//! `[chaos]`: faults and operator actions by weight, within budgets. The planner draws the strikes; see `plan::chaos`.

use crate::units::{Chance, Time};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// What chaos can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChaosKind {
    /// A broker's process is killed; the page cache stays.
    Crash,
    /// A broker loses power; unflushed data is lost by the rules of the disk.
    PowerLoss,
    /// A broker shuts down in order.
    Shutdown,
    /// A broker stands still.
    Pause,
    /// A broker is cut off from everybody.
    Partition,
    /// A broker hears nothing, but is heard.
    OneWay,
    /// A link between two sites is down.
    LinkDown,
    /// A link is slower by up to a second.
    LatencySpike,
    /// A link loses up to a tenth of its packets.
    Loss,
    /// All connections over a link are reset.
    Reset,
    /// Another in-sync replica is made leader.
    Election,
    /// A broker's disk answers nothing.
    DiskStall,
    /// A broker's disk is full.
    DiskFull,
    /// A broker's wall clock jumps by up to a minute, either way.
    ClockJump,
    /// One lane of a broker is slow.
    SlowLane,
    /// A broker gets metadata late.
    DelayMetadata,
    /// A client stands still.
    ClientPause,
    /// A mirror's topics are paused, then resumed.
    MirrorPause,
    /// A mirror's topics are stopped, then started.
    MirrorStop,
    /// A controller of a quorum is killed; the page cache stays.
    ControllerCrash,
    /// A controller of a quorum loses power.
    ControllerPowerLoss,
    /// A controller of a quorum stands still.
    ControllerPause,
    /// A controller of a quorum is cut off from everybody.
    ControllerPartition,
}

impl ChaosKind {
    /// All, by key.
    pub const NAMED: &'static [(&'static str, Self)] = &[
        ("crash", Self::Crash),
        ("power_loss", Self::PowerLoss),
        ("shutdown", Self::Shutdown),
        ("pause", Self::Pause),
        ("partition", Self::Partition),
        ("one_way", Self::OneWay),
        ("link_down", Self::LinkDown),
        ("latency_spike", Self::LatencySpike),
        ("loss", Self::Loss),
        ("reset", Self::Reset),
        ("election", Self::Election),
        ("disk_stall", Self::DiskStall),
        ("disk_full", Self::DiskFull),
        ("clock_jump", Self::ClockJump),
        ("slow_lane", Self::SlowLane),
        ("delay_metadata", Self::DelayMetadata),
        ("client_pause", Self::ClientPause),
        ("mirror_pause", Self::MirrorPause),
        ("mirror_stop", Self::MirrorStop),
        ("controller_crash", Self::ControllerCrash),
        ("controller_power_loss", Self::ControllerPowerLoss),
        ("controller_pause", Self::ControllerPause),
        ("controller_partition", Self::ControllerPartition),
    ];

    /// Whether it hits a controller; no more than a minority of a quorum is out of service at once.
    #[must_use]
    pub const fn hits_controller(self) -> bool {
        matches!(
            self,
            Self::ControllerCrash | Self::ControllerPowerLoss | Self::ControllerPause | Self::ControllerPartition
        )
    }

    /// Whether it takes a broker out of service, so that `max_down` counts it.
    #[must_use]
    pub const fn takes_down(self) -> bool {
        matches!(
            self,
            Self::Crash
                | Self::PowerLoss
                | Self::Shutdown
                | Self::Pause
                | Self::Partition
                | Self::OneWay
                | Self::DiskStall
                | Self::DiskFull
        ) || self.hits_controller()
    }
}

/// How often, how long, how many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Strike {
    /// Its share among all weights; 0: never. Default 1.
    pub weight: u32,
    /// Shortest. Default 100 ms.
    pub min: Time,
    /// Longest. Default 5 s.
    pub max: Time,
    /// Most strikes of this kind in a run. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// `crash` and `power_loss`: how many of them fall into the middle of the next task that writes to the disk. Default 0.
    #[serde(skip_serializing_if = "is_never")]
    pub inside_task: Chance,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde wants it
fn is_never(chance: &Chance) -> bool {
    chance.0 == 0
}

/// The weights and budgets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Chaos {
    /// Mean time from one strike to the next. Default 5 s.
    pub every: Time,
    /// First instant. Default 5 s.
    pub start: Time,
    /// Last instant. Default: the end of the safety phase.
    pub stop: Time,
    /// Most brokers of one cluster that are out of service at once. Default 1.
    pub max_down: u32,
    /// Most strikes under way at once, over all. Default 4.
    pub max_at_once: u32,
    /// Only these clusters. Default: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<String>,
    /// By kind.
    #[serde(flatten)]
    pub strikes: BTreeMap<ChaosKind, Strike>,
}
