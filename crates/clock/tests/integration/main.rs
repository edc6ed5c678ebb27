//! Locks of one clock for each of several threads, and the time of a thread.

#[cfg(test)]
mod busy_stages;
#[cfg(test)]
mod lock_waits;
