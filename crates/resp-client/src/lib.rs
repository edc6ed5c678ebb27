//! The client's side of the Redis protocol, for Kvasir's server or any other.
//!
//! # How it works
//! 1. [`Uri`] is how a user names a database of a server. The caller makes connections (sockets of
//!    `reactor`, the simulated network of `net`) and passes them to this crate as streams.
//! 2. [`Connection::open`] authenticates the client and selects the database. [`Connection::begin`]
//!    queues a request. All requests queued before the writer's turn go out in one write, and
//!    answers arrive in the order of the requests. [`Connection::ask`] waits for the answer.
//! 3. [`RespQueue`] presents connections as a `controller::Queue`, so that a Redis server takes the
//!    load of an NVMe namespace: a Store is a SET, a Retrieve a GET.
//!
//! # Guarantees
//! - Each request completes once: with its answer, or with the error that ended the connection.
//! - A client closes the connection to a server that owes an answer and is silent for its timeout.
//! - No input from a server panics, or makes the client keep more than one answer of 1 GiB.
//! - A value of more than 512 bytes is sent without a copy. It is also received without one, except
//!   for the part that was read together with other answers.
//!
//! # Trusts
//! The caller bounds the number of outstanding requests.
//!
//! # Not here
//! RESP3, which offers nothing that this client needs; sockets (`reactor`), the server (`resp`).

mod arg;
mod connection;
mod error;
mod queue;
mod replies;
mod reply;
mod uri;

pub use arg::Arg;
pub use connection::{Connection, Settings};
pub use error::Error;
pub use queue::RespQueue;
pub use replies::{NoReply, Replies};
pub use reply::Reply;
pub use uri::{Tls, Uri, UriError};
