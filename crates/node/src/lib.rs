//! Puts a device together: from a TOML profile, read and checked, to a controller with its queues
//! and its namespaces of keys and values, of blocks and of zones.
//!
//! # How it works
//! 1. [`Profile::load`] takes the name of a built-in profile or the path of a file; the built-in
//!    ones are files under `profiles/`, compiled in.
//! 2. Each section of the file has a module under [`profile`] that holds its keys, its struct, and
//!    the one function that checks both.
//! 3. [`Device`] builds the layers that a profile asks for, from flash cells up to the controller,
//!    on blank cells or on those of an earlier device. Each namespace of blocks or zones has blocks
//!    of every plane to itself ([`Profile::regions`]), and so has the one log of all keys.
//! 4. Comments are read too: what a profile says to be an assumption is listed by
//!    [`Profile::assumptions`], so that a report can name what its figures rest on.
//!
//! | to follow | read, in this order |
//! |---|---|
//! | a profile | `profile`, `device/config`, `device` |
//! | a connection | `server/reactors`, `server/places`, `server/pace`, `server/connections` |
//! | a command to another reactor | `server/router`, `server/bridge` |
//! | a status request | `server/http`, `server/status_service`, `server/reactor_counters` |
//! | a drive on a disk (the bytes: crate `drive`) | `disk_look`, `disk_drive`, `server/drive` |
//! | a power loss, a saved state | `device/power`, `device/saved`, `state` |
//!
//! # Guarantees
//! - A [`Profile`] that was loaded is one that a device can be built from, unless more blocks are
//!   bad than it counts with: sizes and times are in range, and no two keys contradict each other.
//! - Any text at all gives a profile or a [`ProfileError`]: one sentence that names file and line.
//!
//! # Trusts
//! Nothing that is in a profile. A [`Device`] is built inside a reactor.
//!
//! # Not here
//! What the numbers do: each is used by the crate that the section is named after. What is asked of
//! the device (`workload`, `cli`).

mod device;
mod disk_drive;
mod disk_look;
pub mod faults;
mod indexes;
mod memory_drive;
pub mod profile;
pub mod server;
pub mod state;

pub use device::{Device, DeviceError, Figures, Opened, PowerLoss, SavedDevice};
pub use disk_drive::{
    CACHE_BYTES, CHECKPOINT_BYTES, DISK_DRIVE_EXTENTS_MIN, DURABILITIES, DiskDrive, DiskError,
    DiskOptions, SCRUB_RATE, cache_size, capacity_bytes, durability, no_durability, scrub_rate,
};
pub use disk_look::DiskLook;
pub use indexes::INDEXES;
pub use memory_drive::{MEMORY_DRIVE_BYTES_MIN, MemoryDrive, MemoryKind};
pub use nand::{Fault, FaultCounts, FaultPlan, FaultReport};
pub use profile::{Profile, ProfileError};
