//! Loads for a key-value drive: which operations, on which keys, how fast, and how it went.
//!
//! # How it works
//! 1. A [`Plan`] names the load. [`Keys`] turns a key's number into its bytes, [`Chooser`] draws
//!    numbers, [`ValueGenerator`] makes the value of a key's version.
//! 2. [`fill`] stores every key once, unmeasured, for the plans that need them there.
//! 3. [`run`] drives a controller's queue with the plan, at a queue depth or at a rate, checks each
//!    value that comes back, and returns an [`Outcome`].
//! 4. [`Report`] is that outcome with the device's own figures, as `kvasir bench --json` prints it.
//!
//! # Guarantees
//! - Equal plans submit equal operations in every build and on every machine: no random hash seed,
//!   no platform math library, no wall clock.
//! - At a rate, latency counts from when an operation was due, so a slow drive cannot hide behind a
//!   late submitter (coordinated omission).
//! - A retrieve is right only if it returns a version that could be current: issued, and not
//!   overwritten by a store that was acknowledged before the retrieve was submitted.
//! - The stages of an operation add up to its latency.
//!
//! # Trusts
//! The queue: nobody else submits to it or takes its completions during a fill or a run.
//! [`Plan::validate`] was called, and is asserted.
//!
//! # Not here
//! Histories checked for linearizability (`sim`), the device under load (`node`), options and
//! tables of the command line (`cli`).

mod chooser;
mod driver;
mod history;
mod keys;
mod outcome;
mod permutation;
mod plan;
mod report;
mod session;
mod value;
mod zipfian;

pub use chooser::{Chooser, Distribution};
pub use driver::{Fill, FillError, fill, run};
pub use keys::{Keys, KeysError};
pub use outcome::{Kind, Outcome, Tally};
pub use permutation::Permutation;
pub use plan::{Load, Operation, Plan, PlanError};
pub use report::{DeviceFigures, FillFigures, LatencyNanos, Report, stages_ns};
pub use value::{Damaged, Payload, ValueGenerator, checksum_of, expected_tag};
