use crate::fabrics::count::{Count, PerReactor};
use crate::fabrics::work::{Work, WorkCount};
use crate::io_command::Counted;
use base::Nanos;
use spec::Status;

/// What hosts have had a subsystem do in a reactor, as its SMART / Health Information tells it.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    work: WorkCount,
    media_errors: Count,
    under_way: Count,
    busy_since_ns: Count,
    busy_ns: Count,
}

impl Tally {
    /// An I/O command begins.
    #[inline]
    pub(crate) fn begin(&self, now: Nanos) {
        if self.under_way.get() == 0 {
            self.busy_since_ns.set(now.0);
        }
        self.under_way.add(1);
    }

    /// An I/O command has ended that read or wrote `bytes`.
    #[inline]
    pub(crate) fn end(&self, now: Nanos, counted: Counted, bytes: u64, status: Status) {
        self.under_way.set(self.under_way.get() - 1);
        if self.under_way.get() == 0 {
            self.busy_ns.add(now.0 - self.busy_since_ns.get());
        }
        if !status.is_success() {
            let is_of_media = matches!(
                status,
                Status::UNRECOVERED_ERROR | Status::UNRECOVERED_READ_ERROR | Status::WRITE_FAULT
            );
            self.media_errors.add(u64::from(is_of_media));
        }
        self.work.count(counted, bytes, status);
    }

    /// What its commands have done.
    pub(crate) fn work(&self) -> Work {
        self.work.get()
    }

    /// The time until `now` in which commands were under way. Another reactor's clock began at
    /// another instant, and its numbers are read one after the other: in the minutes that hosts are
    /// told that is nothing.
    fn busy(&self, now: Nanos) -> Nanos {
        let since = self.busy_since_ns.get();
        let current = if self.under_way.get() > 0 { now.0.saturating_sub(since) } else { 0 };
        Nanos(self.busy_ns.get() + current)
    }
}

impl PerReactor<Tally> {
    /// What the commands of all have done.
    pub(crate) fn work(&self) -> Work {
        self.all().iter().fold(Work::default(), |sum, (_, tally)| sum + tally.work())
    }

    /// Commands that failed because the medium did not give or take data.
    pub(crate) fn media_errors(&self) -> u64 {
        self.all().iter().map(|(_, tally)| tally.media_errors.get()).sum()
    }

    /// The time until `now` in which commands were under way in the reactor that had most to do.
    /// How much of the others' time was the same nobody knows, who does not make them wait for one
    /// another.
    pub(crate) fn busy(&self, now: Nanos) -> Nanos {
        let all = self.all().into_iter();
        all.map(|(_, tally)| tally.busy(now)).max().expect("this reactor is there")
    }
}
