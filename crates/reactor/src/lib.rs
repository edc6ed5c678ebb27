//! Polls the tasks of a clock: what turns `async fn`s of the device into a run.
//!
//! # How it works
//! 1. A [`Reactor`] owns the futures; the `clock` it installs while it runs owns all else about
//!    them.
//! 2. [`Reactor::run`] polls whichever task the clock names next, until the root future is done.
//!    Tasks that the root spawned and did not wait for stay where they are and go on in the next
//!    run.
//! 3. Futures of `clock` need no waker: the clock knows whom it names. There are no others in
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

mod reactor;

pub use reactor::Reactor;
