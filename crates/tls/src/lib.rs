//! TLS over any stream of bytes: a stream over a stream.
//!
//! # How it works
//! 1. [`Server::load`] and [`Client::load`] read certificates and keys (`pem`), and say what is
//!    wrong with them ([`BadFile`]).
//! 2. A [`TlsStream`] has another stream and a session of rustls, which knows no sockets: it is
//!    given received bytes (`inbound`) and returns bytes to send (`carrier`).
//!    [`TlsStream::handshake`] makes the connection.
//! 3. From there on it is a stream as any other. What the stream below has no room for waits in the
//!    session, at most 64 KiB, and a task sends it.
//!
//! # Guarantees
//! - Nothing is told of what the peer sends before the handshake is over, and then what the peer
//!   has encrypted, in its order, or the stream breaks.
//! - Whatever a peer sends, a connection holds at most 64 KiB that came, 64 KiB of a message of the
//!   handshake, 64 KiB that is to go, and two records between them.
//! - An end that shuts down sends `close_notify`. A peer that leaves without it has broken the
//!   stream: the received data may be truncated.
//! - Each connection has a handshake of its own: nothing is kept for the next one.
//!
//! # Trusts
//! The wall clock, which says whether a certificate is valid. Revocation lists are not
//! read: to lock a client out, change the CA or the user's password.
//!
//! # Not here
//! Sockets (`reactor`), how many connections there may be, and identities beyond the certificate.

mod bad_file;
mod carrier;
mod client;
mod handshake;
mod inbound;
mod pem;
mod room;
mod server;
mod stream;

pub use bad_file::{BadFile, Problem};
pub use client::{Client, ClientFiles, NoName};
pub use handshake::NoHandshake;
pub use server::{Server, ServerFiles};
pub use stream::TlsStream;
