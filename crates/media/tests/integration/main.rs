//! Logs on block devices.

mod frames_on_blocks;
mod log_on_blocks;
