use crate::link::Link;
use base::Nanos;
use clock::{Class, Group, Rank, Resource, Stage};

/// What the firmware's work on the index costs, in time of a request handler (MoKE, II.B).
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
    /// More for a Store that takes the place of a value, once that is known.
    pub t_update: Nanos,
    /// More for each KiB that a Store brings, and the share of it for a part.
    pub t_write_kib: Nanos,
    /// The same for each KiB that a Retrieve gives the host, once it has been read.
    pub t_read_kib: Nanos,
}

impl FirmwareCosts {
    /// For a Store of `bytes`.
    pub(crate) fn store(&self, bytes: u32) -> Nanos {
        self.t_write + for_bytes(self.t_write_kib, bytes)
    }

    /// For `bytes` that a Retrieve gives the host.
    pub(crate) fn deliver(&self, bytes: u32) -> Nanos {
        for_bytes(self.t_read_kib, bytes)
    }
}

/// What `bytes` take where a KiB takes `kib`.
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
        // One queue for all: firmware takes requests as they come.
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
