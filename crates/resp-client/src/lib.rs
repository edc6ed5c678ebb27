//! The client's side of the Redis protocol: asks a server, this one's or any other that speaks it.
//!
//! # How it works
//! 1. [`Uri`] is how a user names a database of a server. Whoever makes connections (sockets of
//!    `reactor`, the simulated network of `net`) gives them to this crate as streams.
//! 2. [`Connection::open`] says who it is and selects the database. [`Connection::begin`] queues a
//!    request; all that is queued before the writer's turn goes out in one write, and answers come
//!    in the order of the requests. [`Connection::ask`] waits for the answer.
//! 3. [`RespQueue`] makes of connections a `controller::Queue`, so that a load for NVMe namespaces
//!    can be put on a Redis server: a Store is a SET, a Retrieve a GET.
//!
//! # Guarantees
//! - Each request is answered once: when a connection ends, with the error that ended it.
//! - A server that owes an answer and says nothing for as long as its client is patient is left.
//! - Nothing that a server sends panics, or makes the client keep more than one answer of 1 GiB.
//! - A value of more than 512 bytes is not copied on its way out, nor on its way in but for what
//!   came together with other answers.
//!
//! # Trusts
//! Whoever queues requests bounds how much is outstanding.
//!
//! # Not here
//! RESP3, which brings nothing that is asked for here; sockets (`reactor`), the server (`resp`).

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
