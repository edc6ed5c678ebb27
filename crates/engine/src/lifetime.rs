//! The bytes moved since a store was formatted, over all times that it was opened. Checkpoints keep
//! it: a crash loses the counts since the last one.

use media::Traffic;
use std::sync::{Mutex, PoisonError};

/// The bytes that hosts and the medium moved since the store was formatted, or since it was last
/// opened without a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// Bytes of keys and values that hosts stored, and of values that they retrieved.
    pub hosts: Traffic,
    /// Bytes that the medium wrote and read, for whatever reason; zeros where it does not count.
    pub medium: Traffic,
}

/// The counts of earlier lives.
#[derive(Debug, Default)]
pub(crate) struct Before(Mutex<Option<Lifetime>>);

impl Before {
    pub(crate) fn restore(&self, lifetime: Lifetime) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(lifetime);
    }

    pub(crate) fn get(&self) -> Option<Lifetime> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
