//! Locks and atomic numbers of lanes and of the log: those of std, or under `--cfg loom` those of
//! the model checker.

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
