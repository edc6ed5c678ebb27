//! Which core of the target has which connection.

use super::testbed::CORES;
use base::{Rng, mix};

/// The connections of a client, and the cores that receive their commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPlacement {
    /// A connection for each thread; connection n belongs to core n mod 6.
    Thread,
    /// A connection for each of so many processors of the client, placed in the same way. A thread
    /// runs on a processor drawn anew for each operation.
    Processor(u64),
    /// As [`Self::Processor`], but a hash of the connection's number places it.
    Hash(u64),
}

impl ConnectionPlacement {
    /// `OctoKV`'s slides: "Client: 20 CPU cores". A host's driver makes a queue for each.
    pub(super) const OF_PAPER: Self = Self::Processor(20);

    /// The same with as many connections on each core.
    pub(super) const EVEN: Self = Self::Processor(18);

    /// Returns the core that receives the next commands of `thread`.
    pub(super) fn core(self, thread: usize, rng: &mut Rng) -> usize {
        let core = |number: u64| usize::try_from(number % CORES as u64).expect("below 6");
        match self {
            Self::Thread => thread % CORES,
            Self::Processor(processors) => core(rng.below(processors)),
            Self::Hash(processors) => core(mix(rng.below(processors))),
        }
    }
}
