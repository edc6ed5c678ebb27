//! Tests of records that are more than a key and a value: those of a batch, those that expire, and
//! those whose value the medium lost.

mod batches;
mod begun;
mod crowded;
mod expiry;
mod figures;
mod keys;
mod lost;
mod medium;
mod reactors;
mod refused;
mod rig;
mod turns;
mod versions;
mod victims;
