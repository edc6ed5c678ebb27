//! TLS over a simulated network: good ends, bad ones, and files that are not what they should be.
//!
//! Certificates are made by each test, and the other end is rustls too, driven by the same code, or
//! bytes. Other implementations of TLS are met by the black-box tests of `cli`.

mod authority;
mod cut;
mod door;
mod ending;
mod files;
mod garbage;
mod handshake;
mod line;
