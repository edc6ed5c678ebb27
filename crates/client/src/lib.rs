//! The host's side of NVMe/TCP: connects to a subsystem, and submits commands to it.
//!
//! # How it works
//! 1. [`Uri`] is how a user names a namespace of a subsystem. The caller makes connections (sockets
//!    of `reactor`, the simulated network of `net`) and passes them to this crate as streams.
//! 2. [`Association::connect`] opens a stream as an admin queue: `ICReq`, Connect, properties,
//!    enable, Identify. A task keeps the association alive.
//! 3. [`Association::namespace`] tells what a namespace is. [`Association::io_queue`] opens more
//!    streams as I/O queues for it and combines them into one [`IoQueue`], a `controller::Queue`.
//!    Commands go to each stream in turn; completions come in order of arrival.
//! 4. Each connection has a reading and a writing task. Commands wait in the host while the queue
//!    has its maximum outstanding. All commands submitted before the writer's turn go out in one
//!    write.
//! 5. [`Pairs`] is the Key Value command set as functions, on any `controller::Queue`.
//!
//! # Guarantees
//! - Each submission completes once. When a connection ends, its commands complete with
//!   [`spec::Status::HOST_PATHING_ERROR`], and [`IoQueue::failure`] says why.
//! - A command without a reply within [`Settings::timeout`] ends its connection.
//! - No input from a target panics, or makes the host keep more data than it asked for. The host
//!   sends a termination to a target that breaks the protocol.
//! - Data of at least 16 KiB is sent without a copy. It is also received without one, except for
//!   the part that was read together with other replies.
//!
//! # Trusts
//! Commands of an [`IoQueue`] are of the kind of namespace that it was made for, which determines
//! how much they read ([`Reads`]).
//!
//! # Not here
//! The layout of PDUs (`nvme-tcp`) and of commands (`spec`), sockets and host names (`reactor`).

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
