use crate::fabrics::transport_address::TransportAddress;
use base::limits::VALUE_BYTES_MAX;
use std::collections::{BTreeMap, BTreeSet};

/// The operator's rules for hosts of all [`Subsystems`](crate::Subsystems).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Limits of each host at a time.
    pub limits: Limits,
    /// By the name of a subsystem, the names of the hosts that may connect to it. A subsystem that
    /// is absent admits any host.
    pub hosts: BTreeMap<String, BTreeSet<String>>,
    /// Other discovery subsystems in the discovery log.
    pub referrals: Vec<TransportAddress>,
}

/// Limits of a host at a time. A host keeps the limits of its Connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Associations of a subsystem. The discovery subsystem always has 256.
    pub associations: u16,
    /// I/O queues of an association.
    pub io_queues: u16,
    /// Entries of a queue, at least 32, the minimum of an admin queue (Base 2.1, Discovery Log Page
    /// Entry data structure).
    pub queue_entries: u16,
    /// Maximum bytes of a stored value. A lower limit of the device takes precedence.
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
    /// Returns whether `host` may connect to the subsystem with this name.
    pub(crate) fn admit(&self, subsystem: &str, host: &str) -> bool {
        self.hosts.get(subsystem).is_none_or(|hosts| hosts.contains(host))
    }
}
