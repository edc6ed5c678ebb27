//! Logs on block devices.

mod log_on_blocks;
