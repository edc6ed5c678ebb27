//! Polls the tasks of a clock: what turns `async fn`s of the device into a run.
//!
//! # How it works
//! 1. A [`Reactor`] owns the futures; the `clock` it installs while it runs owns all else about
//!    them.
//! 2. [`Reactor::run`] polls whichever task the clock names next, until the root future is done.
//!    Tasks that the root spawned and did not wait for stay where they are and go on in the next
//!    run.
//! 3. [`Reactor::run_in_real_time`] does the same with a brake: an event waits until the wall has
//!    reached it. Long waits sleep, the last 100 us are spun. [`Lateness`] says how late the events
//!    were; being late moves none of the later ones.
//! 4. Futures of `clock` need no waker: the clock knows whom it names. There are no others in
//!    virtual time; one that waits for a waker is reported like any task that waits for ever.
//!
//! # Guarantees
//! - Virtual time: no wall clock is read, and equal inputs give equal runs.
//! - Dropping a reactor drops its tasks where they stand, like a power cut.
//!
//! # Trusts
//! Tasks yield; a future that never returns from `poll` hangs the run.
//!
//! # Not here
//! Waiting lists, resources and timers (`clock`); what the tasks do (the device crates).

mod brake;
mod lateness;
mod reactor;

pub use lateness::{LATE, Lateness};
pub use reactor::Reactor;
