//! Proof of the device by seeded simulation: whole devices in virtual time, with faults of the
//! flash and losses of power at any instant, and checkers of what they answer.
//!
//! # How it works
//! 1. A [`Scenario`] turns a seed into a small device and hosts: keys and values, batches and
//!    values that expire, logical blocks, or zones. The device is nearly full, so it cleans.
//! 2. The device lives several times on the same cells. Its power is cut inside any operation,
//!    cleaning, checkpoint or opening, often several times in a row; capacitors save what they
//!    can. Half of the seeds have faults: unreadable pages, flipped bits, failed programs and
//!    erases, bad blocks, slow dies. In [`Scenario::Remote`] it is the network that fails: 16 hosts
//!    work on the same keys over NVMe/TCP, their connections are cut at any byte, and they come
//!    back. What was not answered may have been done or not; what was, was done in between. In
//!    [`Scenario::Pcie`] machines have a function each, with queues in their own memory, and reset
//!    their controllers or the whole subsystem. In [`Scenario::PcieBlock`] and
//!    [`Scenario::PcieZoned`] the host of logical blocks or zones uses a PCIe function.
//! 3. Hosts keep a [`History`] of each key, block and group of keys over all that. [`check`]
//!    decides whether some order of its operations, one at a time, explains every answer; if not,
//!    the [`Violation`] shows the few that contradict each other. Zones have a model.
//! 4. [`sweep_scenario`] runs many seeds. Of a failing one it prints the command that runs it again
//!    with a trace, and as few of its faults as it finds to be needed.
//! 5. `tests/sabotage.rs` runs the same on stores that make mistakes on purpose, and demands that
//!    each is found. `tests/integration/model.rs` compares the engine with an ordered map, one
//!    operation at a time; `tests/integration/determinism.rs` compares digests of runs.
//! 6. [`SimDisk`] is a disk whose cache forgets what was not flushed, or writes it in any order,
//!    and that fails. In [`Scenario::Disk`] and [`Scenario::DiskBatches`] the store lives on it;
//!    [`cut_at_change`] cuts it at each write and flush. `tests/integration/drive` does so with
//!    the drive alone.
//!
//! # Guarantees
//! - Equal seeds are equal runs, and a failure is one command away.
//! - `check` is exact: it accepts a history if and only if it is linearizable.
//! - Without a fault that takes data nothing is excused. With one, only as much as the pages that
//!   it reached can hold.
//!
//! # Trusts
//! Nothing that the device says, but what it says to have lost. It runs on the clock of `reactor`,
//! which is part of what is proven.
//!
//! # Not here
//! Loads that are measured (`workload`); closed forms of time (the tests of `nand`, `controller`).

mod batch_host;
mod batches;
mod block;
mod block_host;
mod client;
mod cold_reads;
mod content;
mod disk;
mod disk_driver;
mod disk_plan;
mod disk_scenarios;
mod disk_target;
mod driver;
mod emulated;
mod expiring;
mod faults;
mod flush;
mod history;
mod host_command;
mod host_queue;
mod hosts;
mod kv;
mod ledger;
mod linearizable;
mod load;
mod pcie;
mod pcie_data;
mod pcie_host;
mod pcie_queues;
mod pcie_target;
mod power;
mod put;
mod quiet;
mod remote;
mod remote_host;
mod remote_plan;
mod remote_target;
mod scenario;
mod seeds;
mod shorten;
mod small_drive;
mod sweep;
mod tally;
mod target;
mod trace;
mod violation;
mod zone_host;
mod zone_model;
mod zoned;

pub use cold_reads::read_while_cleaning;
pub use disk::{DiskConditions, DiskCounts, DiskFaults, Left, SimDisk};
pub use disk_scenarios::cut_at_change;
pub use history::{Call, Condition, History, Moment, Open, Operation, Outcome, Version};
pub use linearizable::check;
pub use put::put;
pub use scenario::Scenario;
pub use seeds::{Failure, fails_with, failure, sweep, sweep_scenario};
pub use tally::Tally;
pub use violation::Violation;
