use crate::brake::{Brake, SPUN};
use crate::driver::{self, Driver, Installed};
use crate::lateness::Lateness;
use crate::long_polls::PollMeter;
use crate::reactor::Reactor;
use crate::remote::Remote;
use crate::ring::RingError;
use base::Nanos;
use clock::{BusyMeter, BusyStage, Turn};
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a reactor looks for more after it had something to do, before it sleeps. Being woken
/// costs 13 us of a round trip at queue depth 1 (7 us spun, 20 us slept) and nothing from depth 32
/// on, so this is a few round trips: as long as hosts that wait for each answer take to send again.
const SPIN: Nanos = Nanos::from_micros(50);

/// How long it looks once it was woken so soon after it fell asleep that it had better not slept:
/// as long as flash takes to read a page, so that a host of such a device is not woken for each
/// read. A reactor that finds nothing for that long sleeps and starts again at [`SPIN`].
const SPIN_MAX: Nanos = Nanos::from_micros(200);

/// Tasks polled in a row before the outside is looked at although there are more.
const POLLS_MAX: u32 = 64;

/// The stage between two polls: the reactor takes completions and messages, and wakes their tasks.
const BETWEEN_POLLS: BusyStage = BusyStage::Complete;

/// The date of this machine, as the time since the beginning of 1970.
fn today() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl Reactor {
    /// As [`Self::run_in_real_time`], and serves sockets and mailboxes; see [`crate::TcpStream`]
    /// and [`crate::mailbox`]. Without timers it waits for external events without a limit, and
    /// ends when `root` does. The date starts as this machine's and advances with the clock.
    ///
    /// A reactor is always served under the same `remote`, and on one thread.
    pub fn serve<T>(
        &mut self,
        remote: &Remote,
        root: impl Future<Output = T>,
    ) -> Result<(T, Lateness), RingError> {
        let driver = match self.driver.take() {
            Some(driver) => driver,
            None => {
                let mut driver = Driver::new(remote)?;
                if let Some(peer) = self.peer.clone() {
                    assert!(peer.is_under(remote), "a place is for the reactor under its remote");
                    driver.add_inbox(Rc::new(peer));
                }
                Box::new(driver)
            }
        };
        assert!(driver.remote().is(remote), "a reactor is served under one remote");
        let brake = self.set_wall();
        // After the wall: the date is not behind what hosts have read.
        self.set_date(today());
        let mut slot = Some(driver);
        let mut lateness = Lateness::new();
        let output = {
            let _installed = Installed::new(&mut slot);
            let mut outside = IdleLoop::new(brake, remote.clone());
            self.set_busy_meter(outside.busy_meter.clone());
            let output = self.drive(root, |mut finished, spawned| {
                outside.begin_turn();
                let task = loop {
                    match clock::turn_by_the_wall(finished.take(), spawned) {
                        Some(Turn::Ready(task)) => break task,
                        Some(Turn::Due { task, late }) => {
                            lateness.record(late);
                            outside.worked = true;
                            break task;
                        }
                        Some(Turn::Wait(until)) => outside.wait(Some(until)),
                        None => outside.wait(None),
                    }
                };
                outside.end_turn();
                Some(task)
            });
            outside.worked = true;
            outside.count(outside.brake.wall());
            output
        };
        self.driver = slot;
        Ok((output, lateness))
    }
}

/// What a reactor knows while nothing is due.
struct IdleLoop {
    brake: Rc<Brake>,
    remote: Remote,
    /// Tasks polled since the outside was looked at.
    polls: u32,
    /// Whether there was something to do since the wall was read last.
    worked: bool,
    /// Reads that had found something by then.
    reads: u64,
    /// When the wall was read last.
    read_at: Nanos,
    /// And when it was after something had been done.
    worked_at: Nanos,
    spin: Spin,
    meter: PollMeter,
    /// Counts the stages since `read_at`.
    busy_meter: Rc<BusyMeter>,
    /// Whether a poll has ended since the wall was read last.
    has_polled: bool,
    /// How many of the next polls try hot sockets. Those of other tasks may come before: then
    /// `worked` is set already.
    tries: usize,
}

/// How long to look for something to do before a sleep.
#[derive(Debug)]
struct Spin {
    limit: Nanos,
    /// Whether there was a sleep since something was done.
    has_slept: bool,
}

impl Spin {
    const NEW: Self = Self { limit: SPIN, has_slept: false };

    /// Something was done, so long after what was done before.
    #[inline]
    fn work(&mut self, after: Nanos) {
        if std::mem::take(&mut self.has_slept) {
            self.limit = if after <= SPIN_MAX { SPIN_MAX } else { SPIN };
        }
    }
}

impl IdleLoop {
    fn new(brake: Rc<Brake>, remote: Remote) -> Self {
        let now = brake.wall();
        let meter = PollMeter::new(remote.clone(), now);
        Self {
            brake,
            remote,
            polls: 0,
            worked: true,
            reads: driver::reads(),
            read_at: now,
            worked_at: now,
            spin: Spin::NEW,
            meter,
            busy_meter: Rc::new(BusyMeter::new(now)),
            has_polled: false,
            tries: 0,
        }
    }

    /// Ends a poll. Looks outside now and then, however much there is to do.
    #[inline]
    fn begin_turn(&mut self) {
        let wall = self.brake.wall();
        self.meter.end_poll(wall);
        self.busy_meter.switch(BETWEEN_POLLS, wall);
        self.has_polled = true;
        self.polls += 1;
        if self.polls > POLLS_MAX {
            self.polls = 0;
            self.count(wall);
            driver::with(|driver| {
                self.worked = driver.look();
                driver.try_hot();
            });
            // The time of the look is not that of the poll that follows.
            self.brake.wall();
        }
    }

    /// Begins a poll.
    #[inline]
    fn end_turn(&mut self) {
        // A try is work only if it reads something. A task that another task of this reactor has
        // woken is work.
        if self.tries > 0 {
            self.tries -= 1;
        } else {
            self.worked = true;
        }
        let wall = self.brake.latest();
        self.meter.begin_poll(wall);
        self.busy_meter.switch(clock::busy_stage(), wall);
    }

    /// Looks outside while nothing is due before `until`. Returns when that may have changed: after
    /// a sleep if there has been nothing to do for long enough.
    fn wait(&mut self, until: Option<Nanos>) {
        // The wall was just read at the end of a poll, or to compare a timer with it.
        let is_fresh = std::mem::take(&mut self.has_polled) || until.is_some();
        let wall = if is_fresh { self.brake.latest() } else { self.brake.wall() };
        self.meter.end_work(wall);
        if until.is_some_and(|until| until <= wall) {
            return;
        }
        self.count(wall);
        clock::move_on(wall);
        let left = until.map(|until| Duration::from_nanos(until.0 - wall.0));
        let is_long = left.is_none_or(|left| left > SPUN);
        let has_spun = wall.0 - self.worked_at.0 >= self.spin.limit.0;
        driver::with(|driver| {
            self.polls = 0;
            self.worked = driver.look();
            if !self.worked && is_long && has_spun && driver.can_sleep() {
                let is_news = driver.sleep(left.map(|left| left.saturating_sub(SPUN)));
                // What is due by now must not make the sleep look like work.
                let wall = self.brake.wall();
                self.count(wall);
                self.meter.end_sleep(wall);
                self.worked = is_news;
                self.tries = 0;
                self.spin.has_slept = true;
            } else {
                if self.worked {
                    // The time of the look is not that of the poll that follows.
                    self.brake.wall();
                }
                self.tries = driver.try_hot();
                if self.tries == 0 {
                    std::hint::spin_loop();
                }
            }
        });
    }

    /// Counts the time since the wall was read last.
    fn count(&mut self, wall: Nanos) {
        let reads = driver::reads();
        let worked = std::mem::take(&mut self.worked) || reads != self.reads;
        let times = self.busy_meter.take(wall);
        assert_eq!(times.total(), wall - self.read_at, "the stages add up");
        self.remote.count(&times, worked);
        (self.reads, self.read_at) = (reads, wall);
        if worked {
            self.spin.work(wall - self.worked_at);
            self.worked_at = wall;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is looked for next, after waits of so many microseconds.
    fn limits(waits: &[u64]) -> Vec<u64> {
        let mut spin = Spin::NEW;
        let wait = |wait: &u64| {
            let after = Nanos::from_micros(*wait);
            spin.has_slept = after > spin.limit;
            spin.work(after);
            spin.limit.0 / 1_000
        };
        waits.iter().map(wait).collect()
    }

    #[test]
    fn a_sleep_that_was_not_worth_it_is_not_repeated_until_nothing_comes_for_long() {
        assert_eq!(
            limits(&[10, 49, 120, 120, 60, 10, 199, 120]),
            [50, 50, 200, 200, 200, 200, 200, 200]
        );
        assert_eq!(limits(&[120, 201, 49, 5_000, 5_000, 60]), [200, 50, 50, 50, 50, 200]);
    }
}
