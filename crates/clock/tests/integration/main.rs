//! Locks of one clock for each of several threads.

#[cfg(test)]
mod lock_waits;
