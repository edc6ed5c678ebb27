//! What reactors share: locks and atomic numbers of std, or under `--cfg loom` those of the model
//! checker.

#[cfg(loom)]
mod modelled;

#[cfg(not(loom))]
pub(crate) use crate::event::Event;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, fence};
#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(loom)]
pub(crate) use modelled::{AtomicBool, Consumer, Event, Producer, PushError, RingBuffer};
#[cfg(not(loom))]
pub(crate) use rtrb::{Consumer, Producer, PushError, RingBuffer};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};
