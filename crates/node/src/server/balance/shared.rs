//! What the reactors of a server know of each other's load.

use super::BalanceConfig;
use balance::{Load, Route, Router};
use base::Nanos;
use reactor::Remote;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The routes of all balanced reactors, and their loads.
#[derive(Debug)]
pub(crate) struct Shared {
    remotes: Vec<Remote>,
    config: Mutex<BalanceConfig>,
    routes: Mutex<Vec<Route>>,
    /// Grows with each change of the routes.
    version: AtomicU64,
    counters: Vec<Counters>,
}

/// The counters of a reactor, in a cache line of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counters {
    /// Nanoseconds that the key-value stage of its commands took, on any reactor.
    movable: AtomicU64,
    /// Commands that it has diverted. Only the reactor itself counts.
    diverted: AtomicU64,
}

impl Shared {
    pub(super) fn new(config: BalanceConfig, remotes: &[Remote]) -> Self {
        Self {
            remotes: remotes.to_vec(),
            config: Mutex::new(config),
            routes: Mutex::default(),
            version: AtomicU64::new(0),
            counters: remotes.iter().map(|_| Counters::default()).collect(),
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
    pub(super) fn loads(&self) -> Vec<Load> {
        let load = |(remote, counters): (&Remote, &Counters)| Load {
            busy: remote.load().busy,
            movable: Nanos(counters.movable.load(Ordering::Relaxed)),
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

    /// Notes that the key-value stage of commands of `reactor` took this time.
    pub(super) fn add_movable(&self, reactor: usize, time: Nanos) {
        self.counters[reactor].movable.fetch_add(time.0, Ordering::Relaxed);
    }

    pub(super) fn count_diverted(&self, reactor: usize) {
        let diverted = &self.counters[reactor].diverted;
        diverted.store(diverted.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Returns how many commands the reactor of `remote` has diverted: 0 if it is not balanced.
    pub(crate) fn diverted(&self, remote: &Remote) -> u64 {
        let place = self.remotes.iter().position(|it| it.is(remote));
        place.map_or(0, |at| self.counters[at].diverted.load(Ordering::Relaxed))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
