//! The store as its callers use it.

mod cached_hash;
mod checkpoints;
mod records;
mod work_pool;
