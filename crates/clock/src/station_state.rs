use crate::class::Class;
use crate::stage::Stage;
use base::Nanos;

/// How long work takes to be suspended and to resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspension {
    /// From the arrival of a read until it may begin.
    pub enter: Nanos,
    /// From when the last read is done until the work resumes.
    pub resume: Nanos,
}

/// A task's request for a station.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) class: Class,
    pub(crate) stage: Stage,
    pub(crate) duration: Nanos,
    pub(crate) together: Option<Together>,
    /// Registers of its plane, if its data moves out of one of them after the work.
    pub(crate) unloads: Option<u32>,
    pub(crate) suspension: Option<Suspension>,
}

/// Work of one kind on different planes can share the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Together {
    pub(crate) kind: u8,
    pub(crate) plane: u32,
}

/// Work whose data is on its way into or out of a plane's register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Announced {
    pub(crate) class: Class,
    pub(crate) together: Together,
}

/// A task that waits for the station.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    pub(crate) task: u32,
    pub(crate) work: Work,
}

/// Work that is done and whose data moves out of a register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) work: Announced,
    /// The number of the group that the work was part of.
    pub(crate) group: u64,
}

/// A task that waits until it may move data into the only register of its plane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loader {
    pub(crate) task: u32,
    pub(crate) announced: Announced,
}

/// Work that holds the station, or is suspended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) task: u32,
    pub(crate) work: Work,
    /// When it is done; while suspended, how much is left.
    pub(crate) end: Nanos,
    /// Distinguishes its timer from the ones before a suspension.
    pub(crate) tie: u64,
}

/// A station's waiters, and the work that holds it.
#[derive(Debug, Default)]
pub(crate) struct StationState {
    pub(crate) queue: usize,
    /// In order of arrival.
    pub(crate) waiters: Vec<Waiter>,
    /// Announced work, whose data moves into a register now.
    pub(crate) incoming: Vec<Announced>,
    /// Work whose data still occupies a register of its plane.
    pub(crate) outgoing: Vec<Outgoing>,
    /// Work whose data may not move yet; empty while no work of its kind holds the station.
    pub(crate) loaders: Vec<Loader>,
    pub(crate) bypassed: u32,
    /// The work that holds the station, of one kind, each on another plane.
    pub(crate) group: Vec<Member>,
    /// The number of groups begun so far.
    pub(crate) groups: u64,
    /// When the group began; `None` after it was suspended, so that nothing joins it.
    pub(crate) began: Option<Nanos>,
    /// The work that held the station before and is suspended.
    pub(crate) suspended: Vec<Member>,
    /// The timer at which the suspension takes effect, and when it did.
    pub(crate) entering: Option<u64>,
    pub(crate) since: Nanos,
    /// How often the work was suspended since it began, and for how many reads.
    pub(crate) suspends: u32,
    pub(crate) passed: u32,
}

impl StationState {
    /// Returns a free station, whose queue has this number.
    pub(crate) fn new(queue: u32) -> Self {
        Self { queue: queue as usize, ..Self::default() }
    }

    /// True when `task` waits for this station, whose queue is number `queue`.
    pub(crate) fn has_waiter(&self, queue: u32, task: u32) -> bool {
        let waits = self.waiters.iter().any(|waiter| waiter.task == task)
            || self.loaders.iter().any(|loader| loader.task == task);
        self.queue == queue as usize && waits
    }

    /// Returns the number of its queue.
    pub(crate) fn index(&self) -> u32 {
        u32::try_from(self.queue).expect("few resources")
    }
}
