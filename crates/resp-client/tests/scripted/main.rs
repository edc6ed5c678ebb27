//! Clients against a server that says what a script says.

mod connection;
mod queue;
mod server;
