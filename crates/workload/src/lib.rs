//! Loads for a drive: which operations, on which keys or blocks, how fast, and how it went.
//!
//! # How it works
//! 1. A [`Plan`] describes a load to draw: [`Operation`], [`Distribution`], [`ValueSizes`].
//!    [`Keys`] turns a key's number into its bytes, [`Chooser`] draws numbers, [`ValueGenerator`]
//!    makes the value of a key's version. A [`ReplayPlan`] describes a recorded load: a [`Trace`].
//!    In a [`Space`] of blocks or zones, a block is the value of the key with its number.
//! 2. [`fill`] and [`fill_replay`] store the keys that must exist, unmeasured. [`fill_from`] and
//!    [`overwrite`] age a drive; its content is then the same as after [`fill`].
//! 3. [`run`] and [`replay`] drive a controller's queue at a queue depth or by due times. A session
//!    turns each operation into its commands and judges the replies. A scan is a list, then a
//!    retrieve of each key listed; a read-modify-write is a retrieve, then a store.
//! 4. They return an [`Outcome`]: a [`Tally`] of latencies for each [`Kind`], a [`Timeline`] of
//!    completions, errors, a digest. [`Report`] is that with the device's own figures, as
//!    `kvasir bench --json` prints it.
//!
//! | to follow | read, in this order |
//! |---|---|
//! | a measurement | `plan`, `driver`, `session`, `script`, `generated`, `judge`, `outcome` |
//! | a replayed trace | `replay_plan`, `replay`, `script` |
//! | blocks and zones | `space`, `zoning`, `zone_writer` |
//!
//! # Guarantees
//! - Equal plans submit equal operations in every build and on every machine: no random hash seed,
//!   no platform math library, no wall clock.
//! - At a rate, latency counts from when an operation was due, so a slow drive cannot hide behind a
//!   late submitter (coordinated omission).
//! - A retrieve is right only if it returns a version that could be current: issued, and not
//!   overwritten by a store acknowledged before the retrieve was submitted. A missing key is right,
//!   and counted as a miss, only where a possible version is a delete or the trace starts without
//!   the key.
//! - A scan is right only if its list starts with the requested key, has at most the requested
//!   number of different keys, all of the run, and all their values are right.
//! - One command writes a block. In zones it is appended; a zone that was written before is reset
//!   first, when no other command to it is outstanding.
//! - A run reads only keys whose stores, and those of all lower numbers, were acknowledged.
//! - The stages of an operation add up to its latency, as the host sees it: asserted for each.
//!
//! # Trusts
//! No other task submits to the queue or takes its completions during a fill or a run. The caller
//! has called [`Plan::validate`], which is asserted.
//!
//! # Not here
//! Histories checked for linearizability (`sim`), the device under load (`node`), options, tables
//! and plots of the command line (`cli`).

mod acknowledged;
mod aftermath;
mod asked;
mod chooser;
mod driver;
mod generated;
mod history;
mod judge;
mod keys;
mod kind;
mod ledger;
mod mismatch;
mod outcome;
mod permutation;
mod plan;
mod replay;
mod replay_plan;
mod report;
mod script;
mod session;
mod sizer;
mod space;
mod tally;
mod timeline;
mod value;
mod value_sizes;
mod ycsb;
mod zipfian;
mod zone_writer;
mod zoning;

pub use aftermath::{Aftermath, Findings};
pub use chooser::{Chooser, Distribution};
pub use driver::{
    Fill, FillError, fill, fill_from, fill_replay, finish, overwrite, replay, run, run_on,
    run_to_pause, run_until,
};
pub use keys::{Keys, KeysError};
pub use kind::Kind;
pub use mismatch::Mismatch;
pub use outcome::{EarlyEnd, Outcome};
pub use permutation::Permutation;
pub use plan::{Load, Operation, Plan, PlanError, Until};
pub use replay::{Format, FormatError, Pace, PaceError, Replay, Speed, Trace, TraceError};
pub use replay_plan::ReplayPlan;
pub use report::{DeviceFigures, FillFigures, LatencyNanos, LatenessNanos, Report, stages_ns};
pub use session::{Contents, Differs, Finished, Paused};
pub use space::Space;
pub use tally::Tally;
pub use timeline::Timeline;
pub use value::{Damaged, Payload, ValueGenerator, checksum_of, expected_tag, is_generated};
pub use value_sizes::{Share, SizeMix, ValueSizes, ValueSizesError};
pub use ycsb::Ycsb;
pub use zoning::Zoning;
