use crate::disk::SimDisk;
use crate::small_drive::RECORDS_ON_PAGE;
use crate::target::Target;
use clock::{LocalFuture, Rank, Stage, TaskId, UnixMillis};
use controller::Controller;
use engine::{Error, Store};
use node::DiskDrive;
use reactor::Places;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// A drive that is open, its disk, and the reactors in which hosts use it.
pub(crate) struct DiskTarget {
    pub(crate) drive: DiskDrive,
    pub(crate) disk: Arc<SimDisk>,
    places: Places,
    /// By reactor. The first one has opened the drive.
    reactors: usize,
}

/// Hosts that are at work, and the task that waits for the last of them.
struct AtWork {
    count: Cell<usize>,
    waiter: TaskId,
}

impl DiskTarget {
    pub(crate) fn new(
        drive: DiskDrive,
        disk: Arc<SimDisk>,
        places: Places,
        reactors: usize,
    ) -> Self {
        Self { drive, disk, places, reactors }
    }
}

/// Records that a read which fails may take: all of a frame.
pub(crate) fn records_lost(disk: &SimDisk) -> usize {
    usize::try_from(disk.counts().failed_reads).expect("a few") * RECORDS_ON_PAGE
}

impl Target for DiskTarget {
    fn controller(&self) -> &Arc<Controller> {
        self.drive.controller()
    }

    fn store(&self) -> &Arc<Store> {
        self.drive.store()
    }

    /// Each in the reactor that is next in turn.
    fn serve_all(&self, hosts: Vec<LocalFuture<'static, ()>>) -> LocalFuture<'_, ()> {
        let count = Cell::new(hosts.len());
        let at_work = Rc::new(AtWork { count, waiter: clock::current() });
        // The same date in all of them, to the millisecond: they share what expires.
        let began = UnixMillis(clock::unix_now().0 - clock::now().0 / 1_000_000);
        for (number, host) in hosts.into_iter().enumerate() {
            let at_work = at_work.clone();
            self.places.spawn(number % self.reactors, async move {
                clock::set_unix_now(began.after(clock::now()));
                host.await;
                at_work.count.set(at_work.count.get() - 1);
                if at_work.count.get() == 0 {
                    clock::wake(at_work.waiter);
                }
            });
        }
        Box::pin(async {
            clock::park(Rank::Free, Stage::Queue).await;
        })
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(self.drive.store().flush())
    }

    fn may_fail_to_flush(&self) -> bool {
        self.disk.counts().failed_changes > 0
    }

    fn records_hit(&self) -> usize {
        records_lost(&self.disk)
    }
}
