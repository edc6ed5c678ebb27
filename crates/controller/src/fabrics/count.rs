use crate::shared::Shared;
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

/// The separate counters of all reactors that execute a device's commands, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct PerReactor<T>(Shared<BTreeMap<u32, Arc<T>>>);

impl<T: Default> PerReactor<T> {
    /// Returns the counter of the reactor with this number.
    pub(crate) fn of(&self, reactor: u32) -> Arc<T> {
        self.0.lock().entry(reactor).or_default().clone()
    }

    /// Returns the counters of all reactors with their numbers.
    pub(crate) fn all(&self) -> Vec<(u32, Arc<T>)> {
        self.0.lock().iter().map(|(&number, it)| (number, it.clone())).collect()
    }
}
