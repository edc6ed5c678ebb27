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
//! 4. [`Reactor::serve`] does that too, and where nothing is due it looks outside: at messages of
//!    other reactors, at sockets, and at whether it is to stop. When nothing has come for 50 us it
//!    sleeps in an `io_uring` until a socket is ready, another thread rings, or 100 us before the
//!    next timer. Where that was soon it looks for 200 us the next time, until nothing comes for as
//!    long. Bytes go by plain calls that do not block, one for each read and one for each gathered
//!    write; of sockets the ring is asked only which are ready.
//! 5. While a reactor looks, up to four sockets are simply tried again; the others are watched by
//!    the ring, so that they cost nothing until something comes. Asleep, the ring watches all.
//! 6. A [`UnixListener`] accepts [`UnixStream`]s, which carry file descriptors beside their bytes.
//! 7. A [`File`] is read and written by the ring itself: what tasks ask for in a turn goes to the
//!    kernel in calls for several, which also bring what has ended.
//! 8. A [`mailbox`] carries messages one way between two reactors, and threads without a reactor
//!    put up [`notices`]. A [`Remote`] is what other threads hold of a reactor: they stop it and
//!    read its [`Load`]. A sender notifies the receiving reactor, which is a system call only
//!    if that one sleeps (`remote.rs` says why no notification is lost). [`PolledMemory`] is memory
//!    that others write: a reactor that is awake polls it, and asks for notifications before it
//!    sleeps.
//! 9. [`peers`] share a device behind [`clock::Lock`]s and wake one another's tasks; in virtual
//!    time a [`PeerGroup`] is several of them on one thread. With [`CoreTimes`] they also have
//!    mailboxes, polls take time, and cores stall.
//! 10. A served reactor counts the polls that took more than [`LONG_POLL`] of its thread's CPU
//!     time, by the names of their tasks: see [`Remote::long_polls`]. It attributes all of its busy
//!     time to the stages that tasks declare: see [`Load::busy_times`].
//! 11. Futures of `clock` need no waker: the clock knows whom it names. There are no others; one
//!     that waits for a waker is reported like any task that waits for ever.
//!
//! | to follow | read, in this order |
//! |---|---|
//! | virtual time | `reactor` |
//! | real time | `brake`, `lateness` |
//! | a served reactor | `serve`, `driver`, `ring`, `remote`, `long_polls` |
//! | messages | `mailbox`, `notice`, `remote` |
//! | reactors that share a drive | `peers`, `peer_group`, `virtual_cores`, `virtual_time` |
//!
//! # Guarantees
//! - Virtual time: no wall clock is read, and equal inputs give equal runs.
//! - Served: an external event wakes its task at the instant of the wall clock, after everything
//!   that was due before. Nothing wakes a reactor without work.
//! - Served: however much there is to do, the outside is looked at after every 64 polls.
//! - Messages arrive in order, and sending them never waits, so that two reactors cannot stop each
//!   other.
//! - Dropping a reactor drops its tasks where they stand, like a power cut, and ends its
//!   connections. It returns when the kernel is done with what they asked of files.
//!
//! # Trusts
//! Tasks yield; a future that never returns from `poll` hangs the run. A serving
//! reactor needs a kernel with `io_uring`. A task that waits at a socket or a mailbox is never
//! dropped half way (`clock` guarantees that).
//!
//! # Not here
//! Waiting lists, resources and timers (`clock`); what the tasks do (the device crates); protocols
//! over sockets (`nvme-tcp`); which task is on which reactor (`node`).

mod accept;
mod brake;
mod driver;
#[cfg(not(loom))]
mod event;
mod file;
mod lateness;
mod long_polls;
#[cfg(loom)]
mod loom_peers;
#[cfg(test)]
#[cfg(loom)]
mod loom_tests;
mod mailbox;
mod notice;
mod operation;
mod peer_group;
mod peers;
mod processors;
mod reactor;
mod remote;
mod retry_busy;
mod ring;
mod serve;
mod sync;
mod tcp;
mod unix;
mod virtual_cores;
mod virtual_time;

pub use accept::AcceptError;
pub use driver::{PolledMemory, look_outside, poll, stop_polling, stopped};
pub use file::File;
pub use lateness::{LATE, Lateness};
pub use long_polls::{LONG_POLL, LongPolls, thread_cpu};
#[cfg(loom)]
pub use loom_peers::{LoomPeers, check_by_loom};
pub use mailbox::{Inbox, Outbox, ReceiveEnd, SendEnd, mailbox};
pub use notice::{NoticeEnd, NoticeReader, NoticeWriter, notices};
pub use peer_group::{PeerGroup, Places};
pub use peers::{Peer, peers};
pub use processors::{PROCESSORS_MAX, processors, run_on};
pub use reactor::Reactor;
pub use remote::{Load, Remote};
pub use retry_busy::retry_busy;
pub use ring::RingError;
pub use tcp::{ConnectError, TcpListener, TcpStream};
pub use unix::{PassedFds, UnixListener, UnixStream};
pub use virtual_time::{CommonClock, CoreTimes};
