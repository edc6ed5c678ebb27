//! Loads and what is kept of them.

mod driver;
mod state;
