//! What several experiments compare themselves with, and by.

pub mod fio;
mod median;

pub use median::median;
