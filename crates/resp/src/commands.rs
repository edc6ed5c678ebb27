//! What commands do, a file for each family of them.

pub(crate) mod acl;
pub(crate) mod client;
mod clients;
pub(crate) mod config;
pub(crate) mod connection;
pub(crate) mod expiry;
pub(crate) mod formal;
pub(crate) mod hashes;
pub(crate) mod info;
pub(crate) mod keys;
mod kill;
mod members;
pub(crate) mod multi;
pub(crate) mod numbers;
pub(crate) mod object;
mod options;
pub(crate) mod ranges;
pub(crate) mod scan;
pub(crate) mod server;
pub(crate) mod slow;
pub(crate) mod sorted_sets;
pub(crate) mod strings;
