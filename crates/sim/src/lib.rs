//! Proof of the device by seeded simulation: whole devices in virtual time, and checkers of what
//! they answer.
//!
//! # How it works
//! 1. [`run`] turns a seed into a small device, a client with 64 operations outstanding on a few
//!    hot keys and many others, and power cuts. The device is nearly full, so it cleans all the
//!    time.
//! 2. The client keeps a [`History`] of each key over all power cuts. [`check`] decides whether
//!    some order of its operations, one at a time, explains every answer; if not, the [`Violation`]
//!    shows the few that contradict each other.
//! 3. [`sweep`] runs many seeds, and prints the command that runs a failing one again.
//! 4. `tests/model.rs` compares the engine with an ordered map, one operation at a time;
//!    `tests/determinism.rs` compares digests of runs.
//!
//! # Guarantees
//! - Equal seeds are equal runs, and a failure is one command away.
//! - `check` is exact: it accepts a history if and only if it is linearizable.
//!
//! # Trusts
//! Nothing that the device says. It runs on the clock of `reactor`, which is part of what is
//! proven.
//!
//! # Not here
//! Loads that are measured (`workload`); closed forms of time (the tests of `nand`, `controller`).

mod client;
mod history;
mod linearizable;
mod scenario;
mod seeds;
mod violation;

pub use history::{Call, Condition, History, Moment, Open, Operation, Outcome, Version};
pub use linearizable::check;
pub use scenario::run;
pub use seeds::{Tally, sweep};
pub use violation::Violation;
