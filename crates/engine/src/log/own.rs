//! References to what all reactors share, counted by each of them alone.

use std::ops::Deref;
use std::sync::{Arc, Weak};

/// A reference to what all reactors share. Tasks of one reactor count their `Arc` of this, so that
/// reactors do not take the count from each other's caches each time.
// A line of the processor's cache is fetched with its neighbour.
#[repr(align(128))]
pub(crate) struct Own<T>(Arc<T>);

/// Makes [`Own`] references of one reactor.
pub(crate) struct Owner<T>(Weak<Own<T>>);

impl<T> Default for Owner<T> {
    fn default() -> Self {
        Self(Weak::new())
    }
}

impl<T> Owner<T> {
    /// Returns the reference to `shared`, the same each time. A new one is made when the last task
    /// that had one has dropped it.
    #[inline]
    pub(crate) fn reference(&mut self, shared: &Arc<T>) -> Arc<Own<T>> {
        self.0.upgrade().unwrap_or_else(|| {
            let own = Arc::new(Own(shared.clone()));
            self.0 = Arc::downgrade(&own);
            own
        })
    }
}

impl<T> Deref for Own<T> {
    type Target = Arc<T>;

    #[inline]
    fn deref(&self) -> &Arc<T> {
        &self.0
    }
}
