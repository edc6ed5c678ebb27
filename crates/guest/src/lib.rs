//! A host that uses a device over vfio-user. It runs in this process and needs no virtual machine.
//! Experiments compare its results with those of other transports.
//!
//! # How it works
//! 1. A [`GuestMemory`] is shared with a device, as QEMU shares that of a machine (`memory`).
//! 2. A [`Queue`] is a queue pair in it. The caller says how doorbells are written ([`Doorbells`]).
//! 3. A [`Guest`] attaches the device at a vfio-user socket with a client of another
//!    implementation, enables the controller and creates queues (`guest`).
//!
//! # Guarantees
//! The guest writes doorbells as Linux does: to the page of BAR 0 if the device lets it be mapped,
//! otherwise to shadow doorbells, and by a message if the value passes the event index.
//! It waits 30 seconds for a completion. A wait that ends without it is an error.
//!
//! # Trusts
//! The device. A wrong answer panics.
//!
//! # Not here
//! Interrupts: the guest polls. Guests of tests, which check what a device does (`hostile`, and the
//! tests of `pcie`).

mod guest;
mod memory;
mod queue;

pub use guest::{Guest, GuestDoorbells};
pub use memory::GuestMemory;
pub use queue::{BLOCK_BYTES, Doorbells, Place, Queue};
