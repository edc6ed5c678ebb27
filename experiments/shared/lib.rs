//! What several experiments compare themselves with.

pub mod fio;
