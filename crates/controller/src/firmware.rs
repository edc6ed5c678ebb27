use crate::link::Link;
use base::Nanos;
use clock::{Class, Group, Rank, Resource, Stage};

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

    /// Holds a handler for `cost`, for a command called `work`. A key that does not fit the command
    /// is fetched first over `long_key_link`, and the handler waits for it.
    pub(crate) async fn handle(
        &self,
        work: &'static str,
        cost: Nanos,
        long_key_link: Option<&Link>,
    ) {
        // One FIFO queue for all requests.
        let class = Class::HostRead;
        let Some(link) = long_key_link else {
            let handler = self.handlers.serve(class, Stage::Index, cost).named(work);
            return handler.waiting_in(Stage::Handler).await;
        };
        let handler = self.handlers.acquire(class).named(work).waiting_in(Stage::Handler).await;
        link.fetch_key().await;
        clock::sleep(cost, Stage::Index).await;
        drop(handler);
    }

    /// Holds a handler once more for the rest of a command called `work`, if that costs anything.
    pub(crate) async fn handle_more(&self, work: &'static str, cost: Nanos) {
        if cost > Nanos::ZERO {
            self.handle(work, cost, None).await;
        }
    }
}
