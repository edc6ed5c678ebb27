use base::Nanos;
use clock::{Class, Group, Rank, Resource, Serve, Stage};

/// What moving data between host and device costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTiming {
    /// Rate of each direction in bytes a second; 0 is no limit.
    pub bytes_per_second: u64,
    /// Cost of each transfer, whatever its length.
    pub transfer: Nanos,
}

/// The link to the host: one resource for each direction, as in PCI Express.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    timing: LinkTiming,
    to_device: Resource,
    to_host: Resource,
}

impl Link {
    pub(crate) fn new(group: Group, timing: LinkTiming) -> Self {
        Self {
            timing,
            to_device: group.resource("the link to the device", Rank::Link, 1),
            to_host: group.resource("the link to the host", Rank::Link, 1),
        }
    }

    /// True when no transfer takes time.
    pub(crate) fn is_free(&self) -> bool {
        self.timing == LinkTiming { bytes_per_second: 0, transfer: Nanos::ZERO }
    }

    /// Moves `bytes` from the host.
    pub(crate) fn fetch(&self, bytes: u32) -> Serve {
        self.to_device.serve(Class::HostWrite, Stage::Link, self.cost(bytes))
    }

    /// Moves a key that does not fit its command. The bytes of commands are not charged, so a key
    /// takes as long whatever its length.
    pub(crate) fn fetch_key(&self) -> Serve {
        self.to_device.serve(Class::HostWrite, Stage::Link, self.timing.transfer)
    }

    /// Moves `bytes` to the host.
    pub(crate) fn deliver(&self, bytes: u32) -> Serve {
        self.to_host.serve(Class::HostRead, Stage::Link, self.cost(bytes))
    }

    fn cost(&self, bytes: u32) -> Nanos {
        self.timing.transfer + Nanos::for_bytes(u64::from(bytes), self.timing.bytes_per_second)
    }
}
