//! The host's side of NVMe/TCP: connects to a subsystem, and submits commands to it.
//!
//! # How it works
//! 1. [`Uri`] is how a user names a namespace of a subsystem. Whoever makes connections (sockets of
//!    `reactor`, the simulated network of `net`) gives them to this crate as streams.
//! 2. [`Association::connect`] opens a stream as an admin queue: `ICReq`, Connect, properties,
//!    enable, Identify. A task of its own keeps the association alive.
//! 3. [`Association::namespace`] says what a namespace is. [`Association::io_queue`] opens more
//!    streams as I/O queues for it, and makes of them one [`IoQueue`], which is a
//!    `controller::Queue`: commands go to each stream in turn, and completions come in the order in
//!    which they arrive.
//! 4. Each connection has a task that reads and one that writes. Commands wait in the host while as
//!    many are outstanding as the queue has room for. All that is submitted before the writer's
//!    turn goes out in one write.
//! 5. [`Pairs`] is the Key Value command set as functions, on any `controller::Queue`.
//!
//! # Guarantees
//! - Each submission completes once: when a connection ends, with
//!   [`spec::Status::HOST_PATHING_ERROR`], and [`IoQueue::failure`] says why.
//! - A command that is not answered within [`Settings::patience`] ends its connection.
//! - Nothing that a target sends panics, or makes the host keep more than it asked for. A target
//!   that breaks the protocol is told so by a termination.
//! - Data of 16 KiB and more is not copied on its way out, nor on its way in but for what came
//!   together with other replies.
//!
//! # Trusts
//! Commands of an [`IoQueue`] are of a namespace like the one that it was made for, from which
//! follows how much they read ([`Reads`]).
//!
//! # Not here
//! Bytes of PDUs (`nvme-tcp`) and of commands (`spec`), sockets and names of machines (`reactor`).

mod association;
mod connection;
mod error;
mod io_queue;
mod namespace;
mod pairs;
mod reads;
mod settings;
mod uri;

pub use association::Association;
pub use error::Error;
pub use io_queue::IoQueue;
pub use namespace::Namespace;
pub use pairs::{KEY_LIST_BYTES, Pairs, PairsError};
pub use reads::Reads;
pub use settings::{Host, Settings};
pub use uri::{Uri, UriError};
