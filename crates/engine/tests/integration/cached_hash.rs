//! Tests of `cached-hash`: it answers as a map does, keeps to its memory budget, never waits for
//! ever, and is restored after a loss of power.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod limits;
mod medium;
mod model;
mod opening;
