use crate::faults::pages_hit;
use crate::small_drive::RECORDS_ON_PAGE;
use clock::{LocalFuture, join_all};
use controller::Controller;
use engine::{Error, Store};
use node::{Device, FaultPlan};
use std::sync::Arc;

/// What hosts of keys work on: an emulated device, or a drive on a disk.
pub(crate) trait Target {
    /// That of the reactor in which this is called.
    fn controller(&self) -> &Arc<Controller>;

    fn store(&self) -> &Arc<Store>;

    /// Lets `hosts` work side by side, and returns when all have done.
    fn serve_all(&self, hosts: Vec<LocalFuture<'static, ()>>) -> LocalFuture<'_, ()> {
        Box::pin(async { drop(join_all(hosts).await) })
    }

    /// Makes durable what was answered.
    fn flush(&self) -> LocalFuture<'_, Result<(), Error>>;

    /// Whether faults may keep it from that.
    fn may_fail_to_flush(&self) -> bool;

    /// Records that faults may have taken since it was turned on, at most.
    fn records_hit(&self) -> usize;
}

impl Target for Device {
    fn controller(&self) -> &Arc<Controller> {
        Self::controller(self)
    }

    fn store(&self) -> &Arc<Store> {
        Self::store(self)
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(Self::flush(self))
    }

    fn may_fail_to_flush(&self) -> bool {
        self.cells().retired_blocks() > 0
    }

    fn records_hit(&self) -> usize {
        let pages = pages_hit(&FaultPlan::default(), Some(&self.faults()));
        usize::try_from(pages).expect("a few") * RECORDS_ON_PAGE
    }
}
