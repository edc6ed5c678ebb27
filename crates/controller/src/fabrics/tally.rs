use crate::io_command::Counted;
use base::Nanos;
use spec::Status;
use std::cell::Cell;

/// What hosts have had a subsystem do, as its SMART / Health Information tells it.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    reads: Cell<u64>,
    writes: Cell<u64>,
    bytes_read: Cell<u64>,
    bytes_written: Cell<u64>,
    media_errors: Cell<u64>,
    under_way: Cell<u64>,
    busy_since: Cell<Nanos>,
    busy: Cell<Nanos>,
}

impl Tally {
    /// An I/O command begins.
    #[inline]
    pub(crate) fn begin(&self, now: Nanos) {
        if self.under_way.get() == 0 {
            self.busy_since.set(now);
        }
        self.under_way.set(self.under_way.get() + 1);
    }

    /// An I/O command has ended that read or wrote `bytes`.
    #[inline]
    pub(crate) fn end(&self, now: Nanos, counted: Counted, bytes: u64, status: Status) {
        let add = |cell: &Cell<u64>, more: u64| cell.set(cell.get() + more);
        self.under_way.set(self.under_way.get() - 1);
        if self.under_way.get() == 0 {
            self.busy.set(self.busy.get() + (now - self.busy_since.get()));
        }
        if !status.is_success() {
            let is_of_media = matches!(
                status,
                Status::UNRECOVERED_ERROR | Status::UNRECOVERED_READ_ERROR | Status::WRITE_FAULT
            );
            add(&self.media_errors, is_of_media.into());
            return;
        }
        match counted {
            Counted::Read | Counted::ReadInside => {
                add(&self.reads, 1);
                add(&self.bytes_read, bytes);
            }
            Counted::Write | Counted::WriteInside => {
                add(&self.writes, 1);
                add(&self.bytes_written, bytes);
            }
            Counted::Neither => {}
        }
    }

    /// Commands that read data.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.get()
    }

    /// Commands that wrote data.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.get()
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read.get()
    }

    pub(crate) fn bytes_written(&self) -> u64 {
        self.bytes_written.get()
    }

    /// Commands that failed because the medium did not give or take data.
    pub(crate) fn media_errors(&self) -> u64 {
        self.media_errors.get()
    }

    /// The time until `now` in which commands were under way.
    pub(crate) fn busy(&self, now: Nanos) -> Nanos {
        let current =
            if self.under_way.get() > 0 { now - self.busy_since.get() } else { Nanos::ZERO };
        self.busy.get() + current
    }
}
