//! Locks and variables of threads: those of std, or under `--cfg loom` those of the model checker.

#[cfg(loom)]
mod modelled;

#[cfg(loom)]
pub(crate) use modelled::{Local, Mutex, MutexGuard, locals as thread_local};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::thread_local;
