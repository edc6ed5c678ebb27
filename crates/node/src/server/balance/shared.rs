//! What the reactors of a server know of each other's load.

use super::BalanceConfig;
use balance::{Load, Route, Router};
use base::Nanos;
use reactor::{CommonClock, Remote};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The routes of all balanced reactors, and their loads.
#[derive(Debug)]
pub struct Shared {
    remotes: Vec<Remote>,
    config: Mutex<BalanceConfig>,
    routes: Mutex<Vec<Route>>,
    /// Grows with each change of the routes.
    version: AtomicU64,
    counters: Vec<Counters>,
    clock: CommonClock,
}

/// The counters of a reactor, in a cache line of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counters {
    /// Nanoseconds that the key-value stage of its commands took, on any reactor.
    movable: AtomicU64,
    /// Nanoseconds that it executed key-value stages, of any reactor's commands.
    executed: OwnCounter,
    /// Its commands with a stage that may move.
    commands: OwnCounter,
    /// Those of them that it has diverted.
    diverted: OwnCounter,
    /// Commands of others that it has executed.
    taken: OwnCounter,
    /// The sum, over its commands, of the commands that it knew and had not answered, each with
    /// itself: those of its batch, one for each ready task, and those that others execute.
    depths: OwnCounter,
    /// With the policy `auto`: when it expects to have executed and answered the commands of its
    /// last batch, in nanoseconds of the clock. So what it wrote loses its meaning with time.
    busy_until: AtomicU64,
    /// Commands that others have sent to it and it has not executed.
    queued: AtomicU64,
}

/// A counter to which only one reactor adds.
#[derive(Debug, Default)]
struct OwnCounter(AtomicU64);

impl OwnCounter {
    #[inline]
    fn add(&self, more: u64) {
        self.0.store(self.get() + more, Ordering::Relaxed);
    }

    #[inline]
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Shared {
    pub(super) fn new(config: BalanceConfig, clock: CommonClock, remotes: &[Remote]) -> Self {
        Self {
            remotes: remotes.to_vec(),
            config: Mutex::new(config),
            routes: Mutex::default(),
            version: AtomicU64::new(0),
            counters: remotes.iter().map(|_| Counters::default()).collect(),
            clock,
        }
    }

    /// Returns how the reactors are balanced now.
    pub(crate) fn config(&self) -> BalanceConfig {
        *lock(&self.config)
    }

    /// Balances by `config` from the next window on.
    pub(crate) fn set_config(&self, config: BalanceConfig) {
        *lock(&self.config) = config;
    }

    /// Returns the number of reactors.
    pub(super) fn reactors(&self) -> usize {
        self.remotes.len()
    }

    /// Returns what each reactor did since its start.
    pub fn loads(&self) -> Vec<Load> {
        let load = |(remote, counters): (&Remote, &Counters)| Load {
            busy: remote.load().busy,
            movable: Nanos(counters.movable.load(Ordering::Relaxed)),
            executed: Nanos(counters.executed.get()),
            commands: counters.commands.get(),
            diverted: counters.diverted.get(),
            taken: counters.taken.get(),
            depths: counters.depths.get(),
        };
        self.remotes.iter().zip(&self.counters).map(load).collect()
    }

    /// Publishes the routes of all reactors.
    pub(super) fn publish(&self, routes: &[Route]) {
        let mut published = lock(&self.routes);
        if *published != routes {
            *published = routes.to_vec();
            self.version.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Gives `router` the route of a reactor, if it has changed since the version `seen`.
    #[inline]
    pub(super) fn update(&self, reactor: usize, seen: &mut u64, router: &mut Router) {
        let version = self.version.load(Ordering::Relaxed);
        if version != *seen {
            *seen = version;
            router.set(&lock(&self.routes)[reactor]);
        }
    }

    /// Notes that reactor `on` executed `count` commands of reactor `of` in this time.
    pub(super) fn count_executed(&self, on: usize, of: usize, (time, count): (Nanos, u64)) {
        self.counters[of].movable.fetch_add(time.0, Ordering::Relaxed);
        self.counters[on].executed.add(time.0);
        if on != of {
            self.counters[on].taken.add(count);
            self.counters[on].queued.fetch_sub(count, Ordering::Relaxed);
        }
    }

    /// Notes that `count` commands of a reactor have arrived together, when `depth` commands were
    /// not answered, these among them.
    #[inline]
    pub(super) fn count_arrived(&self, reactor: usize, count: u64, depth: u64) {
        self.counters[reactor].commands.add(count);
        self.counters[reactor].depths.add(count * depth);
    }

    /// Notes that a reactor sends `count` commands to reactor `to`.
    pub(super) fn count_diverted(&self, reactor: usize, to: usize, count: u64) {
        self.counters[reactor].diverted.add(count);
        self.counters[to].queued.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the present, in nanoseconds since an instant that is the same for all reactors.
    pub(super) fn now(&self) -> u64 {
        self.clock.now().0
    }

    /// Notes that a reactor is busy for this time from `now` on, with what it has received.
    pub(super) fn set_busy(&self, reactor: usize, now: u64, time: Nanos) {
        self.counters[reactor].busy_until.store(now + time.0, Ordering::Relaxed);
    }

    /// Returns how long the commands of others take that a reactor has not executed, if each takes
    /// `movable`.
    pub(super) fn queue(&self, reactor: usize, movable: Nanos) -> Nanos {
        Nanos(self.counters[reactor].queued.load(Ordering::Relaxed) * movable.0)
    }

    /// Writes how long each reactor is busy from `now` on, if a command takes `movable`.
    pub(super) fn read_queues(&self, now: u64, movable: Nanos, queues: &mut [Nanos]) {
        for (reactor, queue) in queues.iter_mut().enumerate() {
            let busy_until = self.counters[reactor].busy_until.load(Ordering::Relaxed);
            *queue = Nanos(busy_until.saturating_sub(now)) + self.queue(reactor, movable);
        }
    }

    /// Returns how many commands the reactor of `remote` has diverted: 0 if it is not balanced.
    pub(crate) fn diverted(&self, remote: &Remote) -> u64 {
        let place = self.remotes.iter().position(|it| it.is(remote));
        place.map_or(0, |at| self.counters[at].diverted.get())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
