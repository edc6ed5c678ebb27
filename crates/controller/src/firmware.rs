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
}
