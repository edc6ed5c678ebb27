use crate::fabrics::work::{Work, WorkCount};
use crate::io_command::Counted;
use base::Nanos;
use spec::Status;
use std::cell::Cell;

/// What hosts have had a subsystem do, as its SMART / Health Information tells it.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    work: WorkCount,
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
        self.under_way.set(self.under_way.get() - 1);
        if self.under_way.get() == 0 {
            self.busy.set(self.busy.get() + (now - self.busy_since.get()));
        }
        if !status.is_success() {
            let is_of_media = matches!(
                status,
                Status::UNRECOVERED_ERROR | Status::UNRECOVERED_READ_ERROR | Status::WRITE_FAULT
            );
            self.media_errors.set(self.media_errors.get() + u64::from(is_of_media));
        }
        self.work.count(counted, bytes, status);
    }

    /// What its commands have done.
    pub(crate) fn work(&self) -> Work {
        self.work.get()
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
