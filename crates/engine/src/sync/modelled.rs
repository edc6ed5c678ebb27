use loom::sync::atomic::{self, Ordering, fence};

/// Defines atomics with a `SeqCst` fence before each `SeqCst` load.
///
/// loom takes `SeqCst` of an access for `AcqRel`. Of two threads that each change one atomic and
/// then load the other's, both could miss the other's change. It knows `SeqCst` fences, with which
/// one thread finds it. That is all: stores and changes have no fence, so a model may have orders
/// of them that `SeqCst` excludes. A fence also orders weaker accesses before it, which the load
/// alone does not, so a model cannot show that one of those is too weak.
macro_rules! modelled {
    ($($name:ident of $of:ty),*) => {$(
        #[derive(Debug)]
        pub(crate) struct $name(atomic::$name);

        impl $name {
            pub(crate) fn new(value: $of) -> Self {
                Self(atomic::$name::new(value))
            }

            pub(crate) fn load(&self, order: Ordering) -> $of {
                if order == Ordering::SeqCst {
                    fence(Ordering::SeqCst);
                }
                self.0.load(order)
            }

            pub(crate) fn store(&self, value: $of, order: Ordering) {
                self.0.store(value, order);
            }
        }
    )*};
}

modelled!(AtomicBool of bool, AtomicU32 of u32, AtomicU64 of u64);

impl AtomicBool {
    pub(crate) fn swap(&self, value: bool, order: Ordering) -> bool {
        self.0.swap(value, order)
    }
}

impl AtomicU64 {
    pub(crate) fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_add(value, order)
    }

    pub(crate) fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_sub(value, order)
    }
}

impl Default for AtomicU64 {
    fn default() -> Self {
        Self::new(0)
    }
}

impl AtomicU32 {
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
