//! A server and its clients over Unix sockets.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod device;
mod ends;
mod flood;
mod independent_client;
mod interrupts;
mod malformed;
mod mapped_doorbells;
mod memory;
mod raw_client;
mod replies;
mod server;
