use loom::sync::atomic::{self, Ordering, fence};

/// An atomic number whose `SeqCst` loads are in one order with `SeqCst` stores and changes.
///
/// loom takes `SeqCst` of an access for `AcqRel`, which would let a load miss a store that comes
/// first in that order. It knows `SeqCst` fences, and one before each such load restores the order:
/// the mapping that compilers use for Power.
#[derive(Debug)]
pub(crate) struct AtomicU32(atomic::AtomicU32);

impl AtomicU32 {
    pub(crate) fn new(value: u32) -> Self {
        Self(atomic::AtomicU32::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> u32 {
        if order == Ordering::SeqCst {
            fence(Ordering::SeqCst);
        }
        self.0.load(order)
    }

    pub(crate) fn store(&self, value: u32, order: Ordering) {
        self.0.store(value, order);
    }

    pub(crate) fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_add(value, order)
    }

    pub(crate) fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_sub(value, order)
    }

    pub(crate) fn compare_exchange(
        &self,
        before: u32,
        after: u32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u32, u32> {
        self.0.compare_exchange(before, after, success, failure)
    }
}
