//! Where the arrays of lanes are in memory: what they have of a key is prefetched without a lock.

use crate::hashed_key::hash_in_lane;
use prefetch_index::prefetch_index;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Where an array of `T` is whose elements are in the order of the hashes of their keys. The array
/// may have been freed since [`Self::note`], so this serves only to prefetch.
#[derive(Debug)]
pub(crate) struct Location<T> {
    start: AtomicUsize,
    /// Elements over which the hashes are spread.
    homes: AtomicUsize,
    of: PhantomData<fn() -> T>,
}

impl<T> Default for Location<T> {
    fn default() -> Self {
        Self { start: AtomicUsize::new(0), homes: AtomicUsize::new(0), of: PhantomData }
    }
}

impl<T> Location<T> {
    /// Notes the location of an array over whose first `homes` elements the hashes are spread. That
    /// there is none must be noted before another array may lie at the same address. Writes only a
    /// change: all processors read this.
    #[inline]
    pub(crate) fn note(&self, array: &[T], homes: usize) {
        let start = array.as_ptr().addr();
        if self.start.load(Relaxed) != start {
            self.start.store(start, Relaxed);
            self.homes.store(homes, Relaxed);
        }
    }

    /// Returns the address of the [`home`] of a hash, if the array has any.
    #[inline]
    pub(crate) fn home(&self, hash: u64) -> Option<usize> {
        let homes = self.homes.load(Relaxed);
        let at = home(hash_in_lane(hash), homes);
        (homes > 0).then(|| self.start.load(Relaxed).wrapping_add(at * size_of::<T>()))
    }
}

/// Returns the first of `homes` elements to look at for a hash. Monotonic in the hash, which keeps
/// the order when there are more.
#[inline]
pub(crate) fn home(hash: u32, homes: usize) -> usize {
    ((u64::from(hash) * homes as u64) >> 32) as usize
}

/// Prefetches the line of the processor's cache at `address`. That reads nothing, so the memory may
/// be gone.
#[inline]
pub(crate) fn prefetch(address: usize) {
    // The crate has no function of an address.
    let nothing: &[u8] = &[];
    prefetch_index(nothing, address.wrapping_sub(nothing.as_ptr().addr()));
}
