use crate::fabrics::discovery::TransportAddress;
use base::limits::VALUE_BYTES_MAX;
use std::collections::{BTreeMap, BTreeSet};

/// What hosts may do with all [`Subsystems`](crate::Subsystems), as whoever serves them decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// What they may have at a time.
    pub limits: Limits,
    /// By the name of a subsystem, the names of the hosts that may connect to it. To one that is
    /// not here any host may.
    pub hosts: BTreeMap<String, BTreeSet<String>>,
    /// Other discovery subsystems that hosts are told of.
    pub referrals: Vec<TransportAddress>,
}

/// What hosts may have at a time. A host keeps what it was granted when it connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Associations of a subsystem. The discovery subsystem takes 256 whatever this is.
    pub associations: u16,
    /// I/O queues of an association.
    pub io_queues: u16,
    /// Entries of a queue, from 32 on, which is what every host may count on for its admin queue
    /// (Base 2.1, Discovery Log Page Entry data structure).
    pub queue_entries: u16,
    /// Bytes of a value that is stored. Where the device takes less, that is what counts.
    pub value_bytes: u32,
}

impl Limits {
    /// Associations of the discovery subsystem.
    pub(crate) const DISCOVERY_ASSOCIATIONS: u16 = 256;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            associations: 256,
            io_queues: 64,
            queue_entries: 1_024,
            value_bytes: VALUE_BYTES_MAX,
        }
    }
}

impl Rules {
    /// Whether `host` may connect to the subsystem of this name.
    pub(crate) fn admit(&self, subsystem: &str, host: &str) -> bool {
        self.hosts.get(subsystem).is_none_or(|hosts| hosts.contains(host))
    }
}
