use crate::long_polls::LongPolls;
use crate::sync::{AtomicBool, AtomicU64, Event, Mutex, MutexGuard, fence};
use crate::virtual_time::VirtualTime;
use base::Nanos;
use clock::{BusyStage, BusyTimes};
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::{Arc, PoisonError};

/// What other threads hold of a reactor: they can stop it, send it messages and see how busy it is.
/// Clones are handles of the same reactor.
#[derive(Clone, Debug)]
pub struct Remote(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// True while the reactor sleeps, or is about to: then it looks at nothing until `event` says
    /// so.
    asleep: AtomicBool,
    stopping: AtomicBool,
    event: Event,
    counters: Counters,
    /// Locked by the reactor only after a long poll.
    long_polls: Mutex<Vec<LongPolls>>,
    /// Of a reactor that runs in virtual time.
    virtual_time: Option<Arc<VirtualTime>>,
}

/// In cache lines of their own: the reactor writes them all the time, and others read what is
/// beside them all the time.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counters {
    /// Nanoseconds of each stage.
    busy: [AtomicU64; BusyStage::ALL.len()],
    idle: AtomicU64,
    sleeps: AtomicU64,
}

/// How a reactor has spent its time since it was first served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// With tasks that had something to do, and giving I/O to the kernel.
    pub busy: Nanos,
    /// The same time by stage: the stages add up to `busy`.
    pub busy_times: BusyTimes,
    /// Looking for something to do, and asleep.
    pub idle: Nanos,
    /// How often it went to sleep.
    pub sleeps: u64,
}

impl Remote {
    /// A handle for a reactor that is to be served under it; see [`crate::Reactor::serve`]. Fails
    /// when the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        Self::of(None)
    }

    /// A handle for a reactor that runs in this virtual time, or is to be served.
    pub(crate) fn of(virtual_time: Option<Arc<VirtualTime>>) -> io::Result<Self> {
        Ok(Self(Arc::new(Shared {
            asleep: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            event: Event::new()?,
            counters: Counters::default(),
            long_polls: Mutex::default(),
            virtual_time,
        })))
    }

    /// Wakes all tasks that wait in [`crate::stopped`]. The reactor itself ends when its root task
    /// does. Async-signal-safe.
    pub fn stop(&self) {
        self.0.stopping.store(true, Release);
        self.notify();
    }

    /// True once [`Self::stop`] was called.
    pub fn is_stopping(&self) -> bool {
        self.0.stopping.load(Acquire)
    }

    /// How the reactor has spent its time up to the last time that it looked at the wall.
    pub fn load(&self) -> Load {
        let Counters { busy, idle, sleeps } = &self.0.counters;
        let busy_times = BusyTimes::new(busy.each_ref().map(|time| Nanos(time.load(Relaxed))));
        Load {
            busy: busy_times.total(),
            busy_times,
            idle: Nanos(idle.load(Relaxed)),
            sleeps: sleeps.load(Relaxed),
        }
    }

    /// Returns the polls that took more than [`LONG_POLL`](crate::LONG_POLL) of the thread's CPU
    /// time since the reactor was first served, by the names of their tasks.
    pub fn long_polls(&self) -> Vec<LongPolls> {
        self.locked_long_polls().clone()
    }

    pub(crate) fn count_long_poll(&self, name: &'static str, time: Nanos) {
        LongPolls::add(&mut self.locked_long_polls(), name, time);
    }

    fn locked_long_polls(&self) -> MutexGuard<'_, Vec<LongPolls>> {
        self.0.long_polls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn virtual_time(&self) -> Option<&Arc<VirtualTime>> {
        self.0.virtual_time.as_ref()
    }

    /// True if both are handles of the same reactor.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// After something was published that the reactor looks at: wakes it if it sleeps.
    ///
    /// No wake-up is lost. The publisher writes `news`, fences, reads `asleep`; the reactor writes
    /// `asleep`, fences ([`Self::fall_asleep`]), reads `news`. Both fences are sequentially
    /// consistent, so one comes first. If the publisher's does, the reactor reads the news and does
    /// not sleep; if the reactor's does, the publisher reads that it is asleep and writes to the
    /// event, on which the reactor then sleeps or wakes. The swap lets one of several publishers
    /// write. Being woken for nothing is harmless: the reactor looks and sleeps again.
    #[inline]
    pub(crate) fn notify(&self) {
        fence(SeqCst);
        self.notify_after_fence();
    }

    /// As [`Self::notify`], for a caller that has executed a fence since it published.
    #[inline]
    pub(crate) fn notify_after_fence(&self) {
        if self.0.asleep.load(Relaxed) && self.0.asleep.swap(false, AcqRel) {
            self.0.event.set();
        }
    }

    /// Sleeps by `sleep`, which returns when the event is set. Announces that before, so that
    /// senders set it, and then has `look` poll every inbox once more: it does not sleep if that
    /// finds something, and returns true.
    pub(crate) fn sleep_unless(&self, look: impl FnOnce() -> bool, sleep: impl FnOnce()) -> bool {
        self.fall_asleep();
        let is_news = look();
        if !is_news {
            self.count_sleep();
            sleep();
        }
        self.wake_up();
        is_news
    }

    fn fall_asleep(&self) {
        self.0.asleep.store(true, Relaxed);
        fence(SeqCst);
    }

    fn wake_up(&self) {
        self.0.asleep.store(false, Relaxed);
    }

    pub(crate) fn event(&self) -> RawFd {
        self.0.event.descriptor()
    }

    /// Forgets that the event happened.
    pub(crate) fn clear_event(&self) {
        self.0.event.clear();
    }

    /// Sleeps until the event is set, as a ring does.
    #[cfg(all(test, loom))]
    pub(crate) fn wait_for_event(&self) {
        self.0.event.wait();
    }

    /// Only the reactor itself counts, so that no addition is lost.
    pub(crate) fn count(&self, spent: &BusyTimes, was_busy: bool) {
        let add = |counter: &AtomicU64, time: Nanos| {
            if time > Nanos::ZERO {
                counter.store(counter.load(Relaxed) + time.0, Relaxed);
            }
        };
        let Counters { busy, idle, .. } = &self.0.counters;
        if was_busy {
            BusyStage::ALL.iter().zip(busy).for_each(|(stage, it)| add(it, spent.of(*stage)));
        } else {
            add(idle, spent.total());
        }
    }

    fn count_sleep(&self) {
        let sleeps = &self.0.counters.sleeps;
        sleeps.store(sleeps.load(Relaxed) + 1, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    fn spin_until(reached: &AtomicU32, value: u32) {
        let mut spins = 0;
        while reached.load(Acquire) < value {
            spins += 1;
            if spins % 1_000 == 0 {
                std::thread::yield_now();
            }
        }
    }

    /// Both sides step at once, again and again: the news is seen before the sleep, or wakes it.
    #[test]
    fn no_wake_up_is_lost() {
        const ROUNDS: u32 = 100_000;
        let remote = Remote::new().unwrap();
        let (ready, news, rung) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    ready.fetch_add(1, AcqRel);
                    spin_until(&ready, 2 * round);
                    news.store(round, Relaxed);
                    remote.notify();
                    rung.store(round, Release);
                }
            });
            for round in 1..=ROUNDS {
                ready.fetch_add(1, AcqRel);
                spin_until(&ready, 2 * round);
                remote.fall_asleep();
                let is_seen = news.load(Relaxed) == round;
                spin_until(&rung, round);
                let is_woken = remote.0.event.clear();
                assert!(is_seen || is_woken, "round {round}");
                remote.wake_up();
            }
        });
    }
}
