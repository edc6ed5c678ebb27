use super::placed_connections::PlacedConnection;
use nvme_tcp::target::Budget;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// Limits of a server's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Maximum number of connections at a time.
    pub most: u32,
    /// Bytes in flight of each connection: [`Budget`].
    pub memory_bytes: u64,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { most: 1_024, memory_bytes: Budget::BYTES }
    }
}

/// The connection slots of all reactors of a server. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct ConnectionLimit(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    most: AtomicUsize,
    memory_bytes: AtomicU64,
    taken: AtomicUsize,
    numbers: AtomicU64,
    refused: AtomicU64,
}

/// The slot of one connection, freed when dropped.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    places: ConnectionLimit,
    /// The connection's number, unique in the server's life.
    pub(super) number: u64,
    /// Bytes that its commands may have in flight.
    pub(super) memory_bytes: u64,
    /// Counts it in its reactor, if the server is balanced.
    placed: Option<PlacedConnection>,
}

impl ConnectionPermit {
    /// Counts the connection in the reactor of `placed`.
    ///
    /// # Panics
    /// If it counts in a reactor.
    pub(super) fn count_in(&mut self, placed: PlacedConnection) {
        let before = self.placed.replace(placed);
        assert!(before.is_none(), "a connection is placed once");
    }

    /// Counts the connection in the reactor of `placed`, to which it moves.
    pub(super) fn move_to(&mut self, placed: PlacedConnection) {
        // Its next reactor counts it before the last one does not.
        self.placed = Some(placed);
    }
}

impl ConnectionLimit {
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        let places = Self(Arc::new(Counters {
            most: AtomicUsize::default(),
            memory_bytes: AtomicU64::default(),
            taken: AtomicUsize::default(),
            numbers: AtomicU64::default(),
            refused: AtomicU64::default(),
        }));
        places.set(limits);
        places
    }

    /// Sets the limits of new connections. Open connections stay.
    pub(super) fn set(&self, limits: ConnectionLimits) {
        self.0.most.store(limits.most as usize, Relaxed);
        self.0.memory_bytes.store(limits.memory_bytes, Relaxed);
    }

    /// Takes a slot. Returns `None` and counts a refused connection if none is free.
    pub(super) fn take(&self) -> Option<ConnectionPermit> {
        let Counters { most, memory_bytes, taken, numbers, refused } = &*self.0;
        let most = most.load(Relaxed);
        let more = |taken| (taken < most).then_some(taken + 1);
        match taken.fetch_update(AcqRel, Acquire, more) {
            Ok(_) => {
                let memory_bytes = memory_bytes.load(Relaxed);
                let number = numbers.fetch_add(1, Relaxed);
                Some(ConnectionPermit { places: self.clone(), number, memory_bytes, placed: None })
            }
            Err(_) => {
                refused.fetch_add(1, Relaxed);
                None
            }
        }
    }

    /// Returns the maximum number of connections.
    pub(super) fn most(&self) -> u32 {
        u32::try_from(self.0.most.load(Relaxed)).unwrap_or(u32::MAX)
    }

    pub(super) fn refused(&self) -> u64 {
        self.0.refused.load(Relaxed)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.places.0.taken.fetch_sub(1, AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_most(most: u32) -> ConnectionLimits {
        ConnectionLimits { most, ..ConnectionLimits::default() }
    }

    #[test]
    fn a_place_is_free_again_when_its_connection_is_gone() {
        let places = ConnectionLimit::new(at_most(2));
        let (first, _second) = (places.take().unwrap(), places.take().unwrap());
        assert!(places.take().is_none());
        drop(first);
        let _third = places.take().unwrap();
        assert!(places.take().is_none());
        assert_eq!(places.refused(), 2);
    }

    #[test]
    fn a_lower_limit_closes_no_connection() {
        let places = ConnectionLimit::new(at_most(2));
        let (first, second) = (places.take().unwrap(), places.take().unwrap());
        places.set(at_most(1));
        drop(first);
        assert!(places.take().is_none(), "one is there, and no more may be");
        drop(second);
        assert!(places.take().is_some());
    }

    #[test]
    fn connections_have_numbers_of_their_own() {
        let places = ConnectionLimit::new(at_most(2));
        let first = places.take().unwrap().number;
        let (second, third) = (places.take().unwrap(), places.take().unwrap());
        assert!(first != second.number && second.number != third.number && third.number != first);
    }

    #[test]
    fn a_connection_keeps_the_memory_that_it_was_given() {
        let places = ConnectionLimit::new(ConnectionLimits { most: 9, memory_bytes: 4 << 20 });
        let before = places.take().unwrap();
        places.set(ConnectionLimits { most: 9, memory_bytes: 2 << 20 });
        assert_eq!((before.memory_bytes, places.take().unwrap().memory_bytes), (4 << 20, 2 << 20));
    }
}
