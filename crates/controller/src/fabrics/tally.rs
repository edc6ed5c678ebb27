use crate::fabrics::count::{Count, PerReactor};
use crate::fabrics::work::{Work, WorkCount};
use base::Nanos;
use spec::Status;

/// Counters of a subsystem in one reactor, for its SMART / Health Information.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) work: WorkCount,
    media_errors: Count,
    under_way: Count,
    busy_since_ns: Count,
    busy_ns: Count,
}

impl Tally {
    /// Counts the start of an I/O command.
    #[inline]
    pub(crate) fn begin(&self, now: Nanos) {
        if self.under_way.get() == 0 {
            self.busy_since_ns.set(now.0);
        }
        self.under_way.add(1);
    }

    /// Counts the end of a begun I/O command.
    #[inline]
    pub(crate) fn end(&self, now: Nanos) {
        self.under_way.set(self.under_way.get() - 1);
        if self.under_way.get() == 0 {
            self.busy_ns.add(now.0 - self.busy_since_ns.get());
        }
    }

    /// Counts the failure of a command, if it was the medium's.
    #[inline]
    pub(crate) fn count_failure(&self, status: Status) {
        let is_of_media = matches!(
            status,
            Status::UNRECOVERED_ERROR | Status::UNRECOVERED_READ_ERROR | Status::WRITE_FAULT
        );
        self.media_errors.add(u64::from(is_of_media));
    }

    /// Returns the time until `now` with commands in flight. Clocks of reactors start at different
    /// times, and the counters are not read atomically. Hosts get minutes, so the error is small.
    fn busy(&self, now: Nanos) -> Nanos {
        let since = self.busy_since_ns.get();
        let current = if self.under_way.get() > 0 { now.0.saturating_sub(since) } else { 0 };
        Nanos(self.busy_ns.get() + current)
    }
}

impl PerReactor<Tally> {
    /// Returns the work of all reactors.
    pub(crate) fn work(&self) -> Work {
        self.all().iter().fold(Work::default(), |sum, (_, tally)| sum + tally.work.get())
    }

    /// Returns the number of commands that failed because of the medium.
    pub(crate) fn media_errors(&self) -> u64 {
        self.all().iter().map(|(_, tally)| tally.media_errors.get()).sum()
    }

    /// Returns the time until `now` in which the busiest reactor had commands in flight. The union
    /// over all reactors is unknown: it would need synchronization between them.
    pub(crate) fn busy(&self, now: Nanos) -> Nanos {
        let all = self.all().into_iter();
        all.map(|(_, tally)| tally.busy(now)).max().unwrap_or_default()
    }
}
