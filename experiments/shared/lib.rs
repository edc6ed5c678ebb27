//! What several experiments compare themselves with, and by.

pub mod fio;
pub mod loopback;
mod median;

pub use median::median;
