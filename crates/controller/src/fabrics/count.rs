use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// A number that one reactor changes, which the others may look at.
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

    /// With only one writer nothing is lost between the two halves of this.
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        self.set(self.get() + more);
    }
}

/// What each reactor that executes commands counts for itself, in the reactor of the device.
#[derive(Debug, Default)]
pub(crate) struct PerReactor<T> {
    here: Arc<T>,
    /// By the numbers of tenants.
    elsewhere: RefCell<BTreeMap<u32, Arc<T>>>,
}

impl<T: Default> PerReactor<T> {
    /// That of the tenant of this number, or of this reactor.
    pub(crate) fn of(&self, tenant: Option<u32>) -> Arc<T> {
        match tenant {
            Some(number) => self.elsewhere.borrow_mut().entry(number).or_default().clone(),
            None => self.here.clone(),
        }
    }

    /// Of all reactors, this one first, with the numbers of tenants.
    pub(crate) fn all(&self) -> Vec<(Option<u32>, Arc<T>)> {
        let elsewhere = self.elsewhere.borrow();
        let elsewhere = elsewhere.iter().map(|(&number, it)| (Some(number), it.clone()));
        std::iter::once((None, self.here.clone())).chain(elsewhere).collect()
    }
}
