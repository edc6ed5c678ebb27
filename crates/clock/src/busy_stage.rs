use base::Nanos;

/// What a thread does while it is busy. Unlike [`Stage`](crate::Stage), which accounts for the
/// latency of a command, this accounts for the time of the thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BusyStage {
    /// Reading, parsing and admitting requests of connections.
    Receive,
    /// Executing commands, those of other reactors included.
    Kv,
    /// Giving I/O to the kernel.
    Submit,
    /// Taking completions and messages, and sending replies.
    Complete,
    /// All other work.
    #[default]
    Background,
}

impl BusyStage {
    /// All stages, in the order of a request.
    pub const ALL: [Self; 5] =
        [Self::Receive, Self::Kv, Self::Submit, Self::Complete, Self::Background];
}

/// Time of each [`BusyStage`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusyTimes([Nanos; BusyStage::ALL.len()]);

impl BusyTimes {
    /// Returns these times, in the order of [`BusyStage::ALL`].
    #[inline]
    pub const fn new(times: [Nanos; BusyStage::ALL.len()]) -> Self {
        Self(times)
    }

    /// Returns the time of `stage`.
    #[inline]
    pub const fn of(&self, stage: BusyStage) -> Nanos {
        self.0[stage as usize]
    }

    /// Returns the time of all stages together.
    #[inline]
    pub fn total(&self) -> Nanos {
        self.0.iter().fold(Nanos::ZERO, |sum, time| sum + *time)
    }
}
