use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// The connections that all reactors of a server have together, and how many they may be. Clones
/// count the same ones.
#[derive(Clone, Debug)]
pub(super) struct Places(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    most: AtomicUsize,
    taken: AtomicUsize,
    refused: AtomicU64,
}

/// One connection's, until it is dropped.
#[derive(Debug)]
pub(super) struct Place(Places);

impl Places {
    pub(super) fn new(most: u32) -> Self {
        let places = Self(Arc::new(Counters {
            most: AtomicUsize::default(),
            taken: AtomicUsize::default(),
            refused: AtomicU64::default(),
        }));
        places.set_most(most);
        places
    }

    /// How many there may be from here on. Those that are there stay.
    pub(super) fn set_most(&self, most: u32) {
        self.0.most.store(most as usize, Relaxed);
    }

    /// A place for one more. Without one it is counted as refused.
    pub(super) fn take(&self) -> Option<Place> {
        let Counters { most, taken, refused } = &*self.0;
        let most = most.load(Relaxed);
        let more = |taken| (taken < most).then_some(taken + 1);
        match taken.fetch_update(AcqRel, Acquire, more) {
            Ok(_) => Some(Place(self.clone())),
            Err(_) => {
                refused.fetch_add(1, Relaxed);
                None
            }
        }
    }

    pub(super) fn refused(&self) -> u64 {
        self.0.refused.load(Relaxed)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.0.taken.fetch_sub(1, AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_when_its_connection_is_gone() {
        let places = Places::new(2);
        let (first, _second) = (places.take().unwrap(), places.take().unwrap());
        assert!(places.take().is_none());
        drop(first);
        let _third = places.take().unwrap();
        assert!(places.take().is_none());
        assert_eq!(places.refused(), 2);
    }

    #[test]
    fn fewer_places_than_are_taken_turn_nobody_out() {
        let places = Places::new(2);
        let (first, second) = (places.take().unwrap(), places.take().unwrap());
        places.set_most(1);
        drop(first);
        assert!(places.take().is_none(), "one is there, and no more may be");
        drop(second);
        assert!(places.take().is_some());
    }
}
