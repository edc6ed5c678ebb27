use base::{Nanos, Rng};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How long things take on the cores of a [`PeerGroup`](crate::PeerGroup). The seed draws each
/// time, from 1 ns to its bound here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreTimes {
    /// A poll of a task, besides the reads of the wall in it.
    pub poll: Nanos,
    /// A read of the wall.
    pub read: Nanos,
    /// The way of a message through a mailbox. Half of the messages take no time.
    pub message: Nanos,
    /// A stall of a core: it polls nothing, and others do.
    pub stall: Nanos,
    /// One in so many polls is followed by a stall.
    pub stall_one_in: u64,
}

/// A clock that all reactors of a server read alike. In virtual time it is the present of the
/// reactor that reads it, which others are ahead of or behind by a poll or a stall.
#[derive(Clone, Debug)]
pub struct CommonClock(Source);

#[derive(Clone, Debug)]
enum Source {
    Wall(Instant),
    Virtual(Arc<VirtualTime>),
}

impl CommonClock {
    /// The wall clock, from now on.
    pub fn wall() -> Self {
        Self(Source::Wall(Instant::now()))
    }

    pub(crate) fn of(time: Arc<VirtualTime>) -> Self {
        Self(Source::Virtual(time))
    }

    /// Returns the present, since an instant that is the same for all reactors.
    #[inline]
    pub fn now(&self) -> Nanos {
        match &self.0 {
            Source::Wall(epoch) => {
                let nanos = u64::try_from(epoch.elapsed().as_nanos());
                Nanos(nanos.expect("a run is shorter than 500 years"))
            }
            Source::Virtual(time) => time.read(),
        }
    }
}

/// The wall of reactors in virtual time. All of them are on one thread.
#[derive(Debug)]
pub(crate) struct VirtualTime {
    times: CoreTimes,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The present of the reactor that runs.
    now: Nanos,
    rng: Rng,
}

impl VirtualTime {
    pub(crate) fn new(times: CoreTimes, seed: u64) -> Arc<Self> {
        let state = Mutex::new(State { now: Nanos::ZERO, rng: Rng::new(seed) });
        Arc::new(Self { times, state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the present: a reactor has its turn.
    pub(crate) fn begin(&self, now: Nanos) {
        self.state().now = now;
    }

    /// Returns the present of the reactor that runs.
    pub(crate) fn now(&self) -> Nanos {
        self.state().now
    }

    /// Reads the wall, which takes time.
    pub(crate) fn read(&self) -> Nanos {
        self.state().pass(self.times.read)
    }

    /// Ends a poll. Returns the present, and the end of the stall that may follow.
    pub(crate) fn end_poll(&self) -> (Nanos, Nanos) {
        let mut state = self.state();
        let now = state.pass(self.times.poll);
        let stalls = state.rng.below(self.times.stall_one_in) == 0;
        (now, if stalls { now + state.draw(self.times.stall) } else { now })
    }

    /// Returns the end of a stall that begins at `from`.
    pub(crate) fn end_of_stall(&self, from: Nanos) -> Nanos {
        from + self.state().draw(self.times.stall)
    }
}

impl State {
    fn draw(&mut self, most: Nanos) -> Nanos {
        Nanos(1 + self.rng.below(most.0))
    }

    fn pass(&mut self, most: Nanos) -> Nanos {
        let time = self.draw(most);
        self.now += time;
        self.now
    }
}

/// When the messages arrive that are in a mailbox, in virtual time: never before an earlier one.
#[derive(Debug)]
pub(crate) struct Arrivals {
    time: Arc<VirtualTime>,
    due: Mutex<VecDeque<Nanos>>,
}

impl Arrivals {
    pub(crate) fn new(time: Arc<VirtualTime>) -> Self {
        Self { time, due: Mutex::default() }
    }

    fn due(&self) -> MutexGuard<'_, VecDeque<Nanos>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws when the next `count` messages arrive.
    pub(crate) fn send(&self, count: usize) {
        let (mut due, mut state) = (self.due(), self.time.state());
        for _ in 0..count {
            let is_late = state.rng.below(2) == 0;
            let way = if is_late { state.draw(self.time.times.message) } else { Nanos::ZERO };
            let last = due.back().copied().unwrap_or_default();
            let arrival = (state.now + way).max(last);
            due.push_back(arrival);
        }
    }

    /// Returns how many messages have arrived, at most `most`, and takes them.
    pub(crate) fn take(&self, most: usize) -> usize {
        let (now, mut due) = (self.time.now(), self.due());
        let count = due.iter().take(most).take_while(|arrival| **arrival <= now).count();
        due.drain(..count);
        count
    }

    /// Returns when the next message arrives.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.due().front().copied()
    }

    /// Returns whether a message has arrived.
    pub(crate) fn is_due(&self) -> bool {
        let now = self.time.now();
        self.next().is_some_and(|next| next <= now)
    }
}
