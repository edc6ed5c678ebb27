//! Locks and atomic numbers of lanes and of the log: those of std, or under `--cfg loom` those of
//! the model checker.

use std::ops::Deref;

#[cfg(loom)]
mod modelled;

#[cfg(loom)]
pub(crate) use loom::sync::atomic::AtomicU8;
#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(loom)]
pub(crate) use modelled::{AtomicBool, AtomicU32, AtomicU64};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};

/// What one reactor changes often, apart from what others change or read: a processor's cache takes
/// a line from the others as a whole.
// A line is fetched with its neighbour.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

impl<T> Deref for Apart<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}
