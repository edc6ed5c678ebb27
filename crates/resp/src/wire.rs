//! A connection as others see it, and as they end it.

use crate::numbering::CommandNumber;
use base::Nanos;
use clock::{Rank, Stage, TaskId, current, park, wake};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The addresses of a connection's two ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    peer: String,
    local: String,
}

impl Ends {
    /// The client's, and the one that it came to.
    pub fn new(peer: String, local: String) -> Self {
        Self { peer, local }
    }

    /// The client's.
    pub(crate) fn peer(&self) -> &str {
        known(&self.peer)
    }

    /// The one that it came to.
    pub(crate) fn local(&self) -> &str {
        known(&self.local)
    }
}

/// What Redis calls an address that it does not know.
fn known(address: &str) -> &str {
    if address.is_empty() { "?:0" } else { address }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    pub(crate) ends: Ends,
    /// Commands of it that were executed.
    commands: AtomicU64,
    /// The last one; see [`CommandNumber::code`].
    command: AtomicU16,
    /// Bytes that have come and are no request yet.
    pub(crate) query_bytes: AtomicUsize,
    /// Memory for requests.
    pub(crate) query_memory: AtomicUsize,
    /// Bytes that wait for the client to take them.
    pub(crate) output_bytes: AtomicUsize,
    /// When something last came or went.
    moved: AtomicU64,
    /// Since when too many bytes wait; 0 as long as there are not too many.
    overfull: AtomicU64,
    /// Whether nothing is left to do.
    pub(crate) is_waiting: AtomicBool,
    ending: Mutex<Ending>,
}

#[derive(Debug, Default)]
struct Ending {
    is_asked_for: bool,
    waiter: Option<TaskId>,
}

impl Wire {
    pub(crate) fn new(ends: Ends) -> Self {
        let wire = Self { ends, ..Self::default() };
        wire.touch();
        wire
    }

    pub(crate) fn commands(&self) -> u64 {
        self.commands.load(Relaxed)
    }

    pub(crate) fn count_commands(&self, count: usize) {
        self.commands.fetch_add(count as u64, Relaxed);
    }

    /// Lets others see what it does.
    pub(crate) fn show(&self, command: CommandNumber) {
        self.command.store(command.code(), Relaxed);
    }

    /// What it did last.
    pub(crate) fn command(&self) -> Option<CommandNumber> {
        CommandNumber::of_code(self.command.load(Relaxed))
    }

    /// Something has come or gone.
    pub(crate) fn touch(&self) {
        self.moved.store(clock::now().0, Relaxed);
    }

    /// For how long nothing has come or gone.
    pub(crate) fn idle(&self) -> Nanos {
        Nanos(clock::now().0.saturating_sub(self.moved.load(Relaxed)))
    }

    /// For how long more than `max` bytes wait, if there are more.
    pub(crate) fn overfull(&self, max: usize) -> Option<Nanos> {
        if self.output_bytes.load(Relaxed) <= max {
            self.overfull.store(0, Relaxed);
            return None;
        }
        let now = clock::now().0.max(1);
        let since =
            self.overfull.compare_exchange(0, now, Relaxed, Relaxed).unwrap_or_else(|is| is);
        Some(Nanos(now - if since == 0 { now } else { since }))
    }

    fn ending(&self) -> std::sync::MutexGuard<'_, Ending> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the end of the connection.
    pub(crate) fn end(&self) {
        let mut ending = self.ending();
        ending.is_asked_for = true;
        if let Some(task) = ending.waiter.take() {
            wake(task);
        }
    }

    /// Returns whether [`Self::end`] was called.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending().is_asked_for
    }

    /// Sets `has_left`, and wakes the task that waits in [`Self::ended`] with it. The next reactor
    /// of the connection has a task of its own there.
    pub(crate) fn leave(&self, has_left: &Cell<bool>) {
        has_left.set(true);
        if let Some(task) = self.ending().waiter.take() {
            wake(task);
        }
    }

    /// Returns true once [`Self::end`] was called, and false once `has_left` is true. One task may
    /// wait for that.
    pub(crate) async fn ended(&self, has_left: &Cell<bool>) -> bool {
        loop {
            // After it has left, the waiter may be the task of another reactor.
            if has_left.get() {
                return false;
            }
            {
                let mut ending = self.ending();
                if ending.is_asked_for {
                    return true;
                }
                ending.waiter = Some(current());
            }
            park(Rank::Free, Stage::Queue).await;
        }
    }
}
