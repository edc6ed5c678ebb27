use crate::sync::{Mutex, MutexGuard};
use std::sync::PoisonError;

/// A value that any reactor reads and changes. A caller that has locked it neither waits nor takes
/// another lock, but for a change of a controller's configuration: it locks that first.
#[derive(Debug, Default)]
pub(crate) struct Shared<T>(Mutex<T>);

impl<T> Shared<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, value: T) {
        *self.lock() = value;
    }

    /// Sets a new value and returns the old one.
    pub(crate) fn replace(&self, value: T) -> T {
        std::mem::replace(&mut *self.lock(), value)
    }
}

impl<T: Copy> Shared<T> {
    pub(crate) fn get(&self) -> T {
        *self.lock()
    }
}

impl<T: Default> Shared<T> {
    /// Takes the value and leaves the default.
    pub(crate) fn take(&self) -> T {
        self.replace(T::default())
    }
}
