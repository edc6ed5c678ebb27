//! Streams of bytes between a host and a device.
//!
//! # How it works
//! 1. A [`Stream`] is one end of a connection: a socket of `reactor`, or an [`End`] in a simulated
//!    [`Network`]. What speaks a protocol over it (`nvme-tcp`, `client`) does not know which.
//! 2. A simulated network lives on `clock`. What is written is taken in pieces, each of which
//!    arrives after a delay; a read gets some or all of what has arrived. How long the pieces and
//!    the delays are is drawn from the network's seed, within its [`Conditions`].
//! 3. A target [`Network::listen`]s at an address, hosts [`Network::connect`] to it. A connection
//!    is cut when its drawn life ends or when [`Network::cut`] says so.
//!
//! # Guarantees
//! - Bytes arrive in order, or the stream breaks.
//! - A simulated network never holds more than the bytes its conditions allow, and equal seeds and
//!   equal calls give equal runs.
//!
//! # Trusts
//! One task reads and one writes. Both stop once a call tells them that the stream ended or broke.
//!
//! # Not here
//! Sockets (`reactor`), protocols (`nvme-tcp`).

mod conditions;
mod end;
mod host_port;
mod move_request;
mod network;
mod pipe;
mod stream;
mod wire;

pub use conditions::Conditions;
pub use end::End;
pub use host_port::HostPort;
pub use move_request::MoveRequest;
pub use network::{Listener, Network, Refused};
pub use stream::{Broken, Stream};
