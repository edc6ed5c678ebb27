//! The NVMe side of the device: takes commands, spends what link and firmware cost, asks the store,
//! posts completions.
//!
//! # How it works
//! 1. A host submits a 64-byte command to a [`QueuePair`]; the command becomes a task of its own
//!    and runs to its end whoever waits for it.
//! 2. `kv` decodes it, moves the value over the link, holds a request handler for the profile's
//!    `t_read`, `t_write`, `t_delete` or `t_exist`, and calls `engine::Store`.
//! 3. The completion carries the status, the data and the account of the command's time.
//!
//! # Guarantees
//! - No command panics, whatever its bytes; each gets a status.
//! - A command's stages add up to its latency, to the nanosecond; asserted for each.
//!
//! # Trusts
//! A submission's data buffer is what its command says it is in length; anything else is an Invalid
//! Field.
//!
//! # Not here
//! Admin commands, other namespaces than key-value ones, transports.

mod completion;
mod controller;
mod firmware;
mod kv;
mod link;
mod queue;
mod status;

pub use completion::Completion;
pub use controller::{Config, Controller};
pub use firmware::FirmwareCosts;
pub use link::LinkTiming;
pub use queue::{QueuePair, Submission};
