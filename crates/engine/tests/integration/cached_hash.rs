//! What is promised of `cached-hash`: it answers as a map does, keeps to its memory, waits for
//! nobody for ever, and comes back after a loss of power.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod limits;
mod medium;
mod model;
mod opening;
