//! Seeded runs of whole devices and drives against models.

mod determinism;
mod disk_store;
mod drive;
mod model;
mod scenarios;
mod threads;
