//! Where the arrays of lanes lie in memory, so that what they have of a key can be prefetched
//! without the lane's lock.

use crate::hashed_key::hash_in_lane;
use prefetch_index::prefetch_index;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Where an array lies whose elements are in the order of the hashes of their keys, as
/// [`Self::note`] was last told. The array may be gone, so this is good for a prefetch only.
#[derive(Debug, Default)]
pub(crate) struct Place {
    start: AtomicUsize,
    /// Elements over which the hashes are spread.
    homes: AtomicUsize,
}

impl Place {
    /// Notes an array over whose first `homes` elements the hashes are spread, if it lies elsewhere
    /// than the one before: processors share the place, so it is written only if it changes.
    #[inline]
    pub(crate) fn note<T>(&self, array: &[T], homes: usize) {
        let start = array.as_ptr().addr();
        if self.start.load(Relaxed) != start {
            self.start.store(start, Relaxed);
            self.homes.store(homes, Relaxed);
        }
    }

    /// Returns the address of the element at which this hash is at home, if the array had any.
    #[inline]
    pub(crate) fn home<T>(&self, hash: u64) -> Option<usize> {
        let homes = self.homes.load(Relaxed);
        let at = home(hash_in_lane(hash), homes);
        (homes > 0).then(|| self.start.load(Relaxed).wrapping_add(at * size_of::<T>()))
    }
}

/// Returns the home of a hash among so many elements: they are in the order of the hashes, also
/// after there are more of them.
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
