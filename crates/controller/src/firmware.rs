use crate::link::Link;
use base::Nanos;
use clock::{Class, Group, Rank, Resource, Serve, Stage};

/// One FIFO queue for all requests.
const CLASS: Class = Class::HostRead;

/// Handler times of the firmware's work on the index (MoKE, II.B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirmwareCosts {
    /// For a Retrieve, and for a List.
    pub t_read: Nanos,
    /// For a Store.
    pub t_write: Nanos,
    /// For a Delete.
    pub t_delete: Nanos,
    /// For an Exist.
    pub t_exist: Nanos,
    /// Additional time of a Store that overwrites a value.
    pub t_update: Nanos,
    /// Additional time of each KiB of a Store, proportional for a part.
    pub t_write_kib: Nanos,
    /// Additional time of each KiB of a Retrieve, after the flash read.
    pub t_read_kib: Nanos,
}

impl FirmwareCosts {
    /// Returns the time of a Store of `bytes`.
    pub(crate) fn store(&self, bytes: u32) -> Nanos {
        self.t_write + for_bytes(self.t_write_kib, bytes)
    }

    /// Returns the time to deliver `bytes` of a Retrieve.
    pub(crate) fn deliver(&self, bytes: u32) -> Nanos {
        for_bytes(self.t_read_kib, bytes)
    }
}

/// Returns the time of `bytes` if a KiB takes `kib`.
fn for_bytes(kib: Nanos, bytes: u32) -> Nanos {
    Nanos(kib.0 * u64::from(bytes) / 1_024)
}

/// The request handlers of the firmware.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Firmware {
    pub(crate) costs: FirmwareCosts,
    handlers: Resource,
}

impl Firmware {
    pub(crate) fn new(group: Group, handlers: u32, costs: FirmwareCosts) -> Self {
        Self { costs, handlers: group.resource("a request handler", Rank::Handler, handlers) }
    }

    /// Holds a handler for `cost`, for a command called `work`.
    #[inline]
    pub(crate) fn handle(&self, work: &'static str, cost: Nanos) -> Serve {
        self.handlers.serve(CLASS, Stage::Index, cost).named(work).waiting_in(Stage::Handler)
    }

    /// As [`Self::handle`], for a command whose key does not fit it. The key is fetched first over
    /// `link`, and the handler waits for it.
    pub(crate) async fn handle_long_key(&self, work: &'static str, cost: Nanos, link: &Link) {
        let handler = self.handlers.acquire(CLASS).named(work).waiting_in(Stage::Handler).await;
        link.fetch_key().await;
        clock::sleep(cost, Stage::Index).await;
        drop(handler);
    }

    /// Holds a handler once more for the rest of a command called `work`. `None` if that costs
    /// nothing.
    #[inline]
    pub(crate) fn handle_more(&self, work: &'static str, cost: Nanos) -> Option<Serve> {
        (cost > Nanos::ZERO).then(|| self.handle(work, cost))
    }
}
