use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// A counter that one reactor writes and others may read.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Adds `more`. A load and a store suffice, because there is only one writer.
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        self.set(self.get() + more);
    }
}

/// The separate counters of all reactors that execute a device's commands.
#[derive(Debug, Default)]
pub(crate) struct PerReactor<T> {
    here: Arc<T>,
    /// Counters of tenants, by their numbers.
    elsewhere: RefCell<BTreeMap<u32, Arc<T>>>,
}

impl<T: Default> PerReactor<T> {
    /// Returns the counter of the tenant with this number, or of this reactor.
    pub(crate) fn of(&self, tenant: Option<u32>) -> Arc<T> {
        match tenant {
            Some(number) => self.elsewhere.borrow_mut().entry(number).or_default().clone(),
            None => self.here.clone(),
        }
    }

    /// Returns the counters of all reactors, this one first, with the numbers of tenants.
    pub(crate) fn all(&self) -> Vec<(Option<u32>, Arc<T>)> {
        let elsewhere = self.elsewhere.borrow();
        let elsewhere = elsewhere.iter().map(|(&number, it)| (Some(number), it.clone()));
        std::iter::once((None, self.here.clone())).chain(elsewhere).collect()
    }
}
