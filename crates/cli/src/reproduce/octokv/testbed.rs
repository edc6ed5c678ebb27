//! The sizes of `OctoKV`'s testbed.

/// `OctoKV`'s slides: "Server: 6 CPU cores".
pub(super) const CORES: usize = 6;

/// `OctoKV`'s slides: "7 I/O threads issue Put/Get I/Os" (light), 10 (medium) and 12 (heavy).
pub(super) const THREADS: [usize; 3] = [7, 10, 12];

/// The names of these loads.
pub(super) const LOADS: [&str; 3] = ["light", "medium", "heavy"];

pub(super) const SEED: u64 = 1;

/// What a client thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Get,
    Put,
}

impl Operation {
    pub(super) const ALL: [Self; 2] = [Self::Put, Self::Get];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "put",
        }
    }
}
