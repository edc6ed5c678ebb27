//! Files and raw block devices as disks.

mod file;
mod probe;
