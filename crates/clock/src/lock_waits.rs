//! Locks mutexes, and counts those that another thread holds.

use crate::schedule::{with, with_installed};
use crate::sync::{Mutex, MutexGuard};
use base::Nanos;
use std::sync::{PoisonError, TryLockError};

/// How often tasks of a reactor found a [`Lock`](crate::Lock) or a lock of a
/// [`Section`](crate::Section) taken by another thread, and how long they waited for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockWaits {
    /// Number of waits.
    pub count: u64,
    /// Time of all of them by the wall clock. 0 in virtual time, in which no lock is found taken.
    pub time: Nanos,
}

/// Returns the waits of this reactor for locks since its schedule was made.
pub fn lock_waits() -> LockWaits {
    with(|schedule| LockWaits { count: schedule.lock_waits, time: schedule.lock_wait_time })
}

/// Locks `mutex`, and counts a wait for it. A panic of another holder is ignored.
#[inline]
pub(crate) fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::WouldBlock) => wait_for(mutex),
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
    }
}

#[cold]
fn wait_for<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    let mut began = Nanos::ZERO;
    with_installed(|schedule| began = schedule.host_now());
    let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
    with_installed(|schedule| {
        schedule.lock_waits += 1;
        schedule.lock_wait_time += schedule.host_now() - began;
    });
    guard
}
