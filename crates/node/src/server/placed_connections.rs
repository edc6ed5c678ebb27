//! The connections that were placed on each reactor of a server, and how busy each reactor is.

use super::balance::{BalanceConfig, Shared};
use balance::Connections;
use base::Nanos;
use reactor::Remote;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// All reactors of a balanced server. Those that accept connections share it.
#[derive(Debug)]
pub(super) struct PlacedConnections {
    balance: Arc<Shared>,
    reactors: Vec<(Remote, Arc<Counters>)>,
}

/// The connections of a reactor since its start.
#[derive(Debug, Default)]
struct Counters {
    placed: AtomicU64,
    closed: AtomicU64,
}

/// Counts a connection as open in its reactor until it is dropped.
#[derive(Debug)]
pub(super) struct PlacedConnection(Arc<Counters>);

/// Some of the reactors, to which one reactor deals connections.
#[derive(Debug)]
pub(super) struct DealtReactors {
    all: Arc<PlacedConnections>,
    /// Their numbers in the server.
    numbers: Vec<usize>,
}

impl PlacedConnections {
    /// Creates the counters of the reactors under `remotes`, which have no connections yet.
    pub(super) fn new(balance: Arc<Shared>, remotes: &[Remote]) -> Arc<Self> {
        let reactors = remotes.iter().map(|remote| (remote.clone(), Arc::default()));
        Arc::new(Self { balance, reactors: reactors.collect() })
    }

    /// Returns the reactors with these numbers, in this order.
    pub(super) fn among(self: &Arc<Self>, numbers: Vec<usize>) -> DealtReactors {
        let all = self.clone();
        assert!(numbers.iter().all(|&number| number < all.reactors.len()), "{numbers:?}");
        DealtReactors { all, numbers }
    }
}

impl DealtReactors {
    /// Returns how the server is balanced now.
    pub(super) fn config(&self) -> BalanceConfig {
        self.all.balance.config()
    }

    /// Returns the number of these reactors.
    pub(super) fn count(&self) -> usize {
        self.numbers.len()
    }

    /// Returns for how long each was busy since its start.
    pub(super) fn busy(&self) -> Vec<Nanos> {
        self.each().map(|(remote, _)| remote.load().busy).collect()
    }

    /// Returns the connections of each.
    pub(super) fn connections(&self) -> Vec<Connections> {
        self.each().map(|(_, counters)| counters.read()).collect()
    }

    /// Counts a connection that is placed on the one at `index`.
    pub(super) fn place(&self, index: usize) -> PlacedConnection {
        let (_, counters) = &self.all.reactors[self.numbers[index]];
        counters.placed.fetch_add(1, Relaxed);
        PlacedConnection(counters.clone())
    }

    fn each(&self) -> impl Iterator<Item = &(Remote, Arc<Counters>)> {
        self.numbers.iter().map(|&number| &self.all.reactors[number])
    }
}

impl Counters {
    fn read(&self) -> Connections {
        // `closed` first: each connection that this read counts is also in `placed`.
        let closed = self.closed.load(Acquire);
        Connections { placed: self.placed.load(Relaxed), closed }
    }
}

impl Drop for PlacedConnection {
    fn drop(&mut self) {
        self.0.closed.fetch_add(1, Release);
    }
}
