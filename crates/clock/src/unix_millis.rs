use base::Nanos;
use serde::{Deserialize, Serialize};

/// Milliseconds since the beginning of 1970, UTC: the unit of an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// The beginning of 2026: the date of a clock whose date was never set.
    pub const START: Self = Self(1_767_225_600_000);
    /// The latest date: never.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the date `time` later, in whole milliseconds.
    #[must_use]
    pub const fn after(self, time: Nanos) -> Self {
        Self(self.0.saturating_add(time.0 / 1_000_000))
    }
}

/// The date of a clock whose date was never set.
impl Default for UnixMillis {
    fn default() -> Self {
        Self::START
    }
}
