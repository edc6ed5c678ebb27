//! Seeded runs of whole devices and drives against models.

mod checkpoints;
mod determinism;
mod disk_store;
mod drive;
mod drives_of_peers;
mod model;
mod opening;
mod scenarios;
mod scrubbing;
mod threads;
