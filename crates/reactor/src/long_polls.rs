use crate::remote::Remote;
use base::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// A poll that takes more of its thread's CPU time than this delays all other tasks noticeably.
pub const LONG_POLL: Nanos = Nanos::from_micros(100);

/// Maximum age of the reading of the CPU clock when a poll begins. A reading is a system call of
/// 200 ns and more, so this costs 0.1 %.
const READING_AGE_MAX: Nanos = Nanos::from_micros(200);

/// The name of the time between polls: timers, and the system calls of the `io_uring`.
const BETWEEN_POLLS: &str = "reactor";

/// Polls of tasks of one name that took more than [`LONG_POLL`] of their thread's CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongPolls {
    /// The name: see [`clock::name_task`]. `reactor` is the reactor's own work between polls.
    pub name: &'static str,
    /// How many there were.
    pub count: u64,
    /// CPU time of the longest.
    pub longest: Nanos,
    /// CPU time of all of them.
    pub total: Nanos,
}

impl LongPolls {
    /// Adds a poll of `name` to `all`, which is in the order of names.
    pub(crate) fn add(all: &mut Vec<Self>, name: &'static str, time: Nanos) {
        let place = all.binary_search_by_key(&name, |it| it.name).unwrap_or_else(|place| {
            let none = Self { name, count: 0, longest: Nanos::ZERO, total: Nanos::ZERO };
            all.insert(place, none);
            place
        });
        let it = &mut all[place];
        it.count += 1;
        it.longest = it.longest.max(time);
        it.total += time;
    }
}

/// Finds the long polls of a reactor.
///
/// Each poll costs a reading of the wall clock. The CPU clock of the thread is read only after a
/// poll that was long by the wall clock, and when the last reading is old. Then the CPU time of a
/// poll is that since the last reading, without the wall time between that reading and the start
/// of the poll. This never exceeds the poll's CPU time. It falls short of it by what the
/// thread was not running in between, which [`READING_AGE_MAX`] bounds.
pub(crate) struct PollMeter {
    remote: Remote,
    /// The wall clock at the last mark.
    at: Nanos,
    reading: Reading,
}

/// A reading of the thread's CPU clock.
#[derive(Clone, Copy, Debug)]
struct Reading {
    cpu: Nanos,
    wall: Nanos,
}

impl PollMeter {
    /// Returns a meter on the thread that it measures, for long polls to be counted in `remote`.
    pub(crate) fn new(remote: Remote, wall: Nanos) -> Self {
        Self { remote, at: wall, reading: Reading { cpu: thread_cpu(), wall } }
    }

    /// Notes that a poll begins.
    #[inline]
    pub(crate) fn begin_poll(&mut self, wall: Nanos) {
        self.end_work(wall);
        if wall - self.reading.wall > READING_AGE_MAX {
            self.read(wall);
        }
    }

    /// Notes that the poll has ended. The schedule still names its task.
    #[inline]
    pub(crate) fn end_poll(&mut self, wall: Nanos) {
        if let Some(time) = self.mark(wall) {
            self.remote.count_long_poll(clock::task_name(), time);
        }
    }

    /// Notes that work between polls has ended.
    #[inline]
    pub(crate) fn end_work(&mut self, wall: Nanos) {
        if let Some(time) = self.mark(wall) {
            self.remote.count_long_poll(BETWEEN_POLLS, time);
        }
    }

    /// Notes that the thread has slept since the last mark.
    pub(crate) fn end_sleep(&mut self, wall: Nanos) {
        self.end_work(wall);
        self.read(wall);
    }

    /// Returns the CPU time since the last mark if that is long.
    #[inline]
    fn mark(&mut self, wall: Nanos) -> Option<Nanos> {
        let took = wall - self.at;
        self.at = wall;
        if took <= LONG_POLL { None } else { self.cpu_time(took, wall) }
    }

    /// Returns the CPU time in the last `took` of the wall clock if that is long.
    #[cold]
    fn cpu_time(&mut self, took: Nanos, wall: Nanos) -> Option<Nanos> {
        let last = self.reading;
        self.read(wall);
        let before = (wall - took).0.saturating_sub(last.wall.0);
        let time = Nanos((self.reading.cpu - last.cpu).0.saturating_sub(before)).min(took);
        (time > LONG_POLL).then_some(time)
    }

    #[cold]
    fn read(&mut self, wall: Nanos) {
        self.reading = Reading { cpu: thread_cpu(), wall };
    }
}

/// Returns the CPU time of this thread.
pub fn thread_cpu() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let part = |part: i64| u64::try_from(part).expect("it counts up from zero");
    Nanos(part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec))
}
