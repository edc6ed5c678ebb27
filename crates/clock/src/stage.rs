use base::Nanos;
use serde::{Deserialize, Serialize};
use std::ops::{AddAssign, Index};

/// Where an operation's time goes. The stages of an operation add up to its latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Stage {
    /// Transfers over the link to the host.
    Link,
    /// Waiting for a free request handler.
    Handler,
    /// The firmware's work: the profile's `t_read`, `t_write`, `t_delete`, `t_exist`, `t_update`,
    /// and what each KiB takes.
    Index,
    /// Waiting for the link, a register, an array or a channel behind host work.
    Queue,
    /// Waiting for the latch of a key.
    Latch,
    /// Waiting for other values to fill a page, or for another task's program of the page.
    Batch,
    /// Transfers over a NAND channel.
    Channel,
    /// Reads, programs and erases of NAND cells.
    Array,
    /// Waiting behind garbage collection: for space, or for a resource that it holds.
    Gc,
    /// Code on a simulated core, and waiting for the core.
    Core,
    /// In real time only: from the device's completion until the host sees it.
    Late,
}

impl Stage {
    /// How many stages there are.
    pub const COUNT: usize = 11;

    /// All stages, in the order of a report.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Link,
        Self::Handler,
        Self::Index,
        Self::Queue,
        Self::Latch,
        Self::Batch,
        Self::Channel,
        Self::Array,
        Self::Gc,
        Self::Core,
        Self::Late,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Handler => "handler",
            Self::Index => "index",
            Self::Queue => "queue",
            Self::Latch => "latch",
            Self::Batch => "batch",
            Self::Channel => "channel",
            Self::Array => "array",
            Self::Gc => "gc",
            Self::Core => "core",
            Self::Late => "late",
        }
    }
}

/// Time spent in each stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stages([Nanos; Stage::COUNT]);

impl Stages {
    /// Adds `spent` to `stage`.
    #[inline]
    pub fn add(&mut self, stage: Stage, spent: Nanos) {
        self.0[stage as usize] += spent;
    }

    /// The time of all stages together.
    #[inline]
    pub fn total(&self) -> Nanos {
        self.0.iter().copied().sum()
    }
}

impl AddAssign<&Self> for Stages {
    #[inline]
    fn add_assign(&mut self, other: &Self) {
        for (mine, more) in self.0.iter_mut().zip(&other.0) {
            *mine += *more;
        }
    }
}

impl Index<Stage> for Stages {
    type Output = Nanos;
    fn index(&self, stage: Stage) -> &Nanos {
        &self.0[stage as usize]
    }
}
