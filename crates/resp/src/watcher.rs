//! What can be seen of commands from outside: how many there were and how long they took, which
//! took longest, and which errors there were.
//!
//! The time of a command is that from its beginning to its answer, as the client sees it: with the
//! time of the disk, without the wait for earlier commands of its connection. Requests that execute
//! together without waiting (`run`, `pipelined_writes`) have equal shares of their time.

use crate::command::Command;
use crate::latency::Latencies;
use crate::numbering::CommandNumber;
use crate::parameters::{Change, Parameters};
use crate::reply::Reply;
use crate::request::Request;
use crate::slow_log::SlowLog;
use crate::tally::Tallies;
use base::Nanos;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// See the module.
#[derive(Debug)]
pub(crate) struct Watcher {
    parameters: Parameters,
    /// GET and SET.
    pub(crate) plain: [CommandNumber; 2],
    pub(crate) tallies: Tallies,
    /// Nanoseconds of the shortest command of which more is kept than a count.
    slow_ns: AtomicU64,
    slow: Mutex<SlowLog>,
    latencies: Mutex<Latencies>,
    /// By the word that an error begins with.
    errors: Mutex<BTreeMap<String, u64>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watcher {
    pub(crate) fn new(parameters: Parameters) -> Self {
        let watcher = Self {
            parameters,
            plain: ["get", "set"].map(CommandNumber::named),
            tallies: Tallies::new(),
            slow_ns: AtomicU64::default(),
            slow: Mutex::default(),
            latencies: Mutex::default(),
            errors: Mutex::default(),
        };
        watcher.set_slow();
        watcher
    }

    pub(crate) const fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn set_slow(&self) {
        let both = [self.parameters.slower_than(), self.parameters.latency_threshold()];
        let least = both.into_iter().flatten().min().map_or(u64::MAX, |least| least.0);
        self.slow_ns.store(least, Relaxed);
    }

    /// Makes changes of parameters.
    pub(crate) fn change(&self, changes: &[Change]) {
        for change in changes {
            self.parameters.make(*change);
        }
        self.set_slow();
        self.slow().truncate(self.parameters.slow_log_len());
    }

    /// Whether a command that took so long is kept in the slow log or in the latencies.
    #[inline]
    pub(crate) fn is_slow(&self, took: Nanos) -> bool {
        took.0 >= self.slow_ns.load(Relaxed)
    }

    pub(crate) fn slow(&self) -> MutexGuard<'_, SlowLog> {
        lock(&self.slow)
    }

    pub(crate) fn latencies(&self) -> MutexGuard<'_, Latencies> {
        lock(&self.latencies)
    }

    /// How often there was which error.
    pub(crate) fn errors(&self) -> BTreeMap<String, u64> {
        lock(&self.errors).clone()
    }

    /// Counts an answer that is an error.
    pub(crate) fn count_error(&self, reply: &Reply) -> bool {
        let Reply::Error(text) = reply else { return false };
        let word = text.split(|byte| *byte == b' ').next().unwrap_or_default();
        let word = String::from_utf8_lossy(word).into_owned();
        *lock(&self.errors).entry(word).or_default() += 1;
        true
    }

    /// Counts a request that was not done.
    pub(crate) fn reject(&self, request: Request<'_>) {
        let Some(command) = Command::named(request.arg(0)) else { return };
        if command.has_word_of(request) {
            self.tallies.count_rejected(CommandNumber::of(command, request));
        }
    }

    /// Counts anew, but keeps what took long.
    pub(crate) fn reset(&self) {
        self.tallies.reset();
        lock(&self.errors).clear();
    }
}

/// Returns how long ago `began` was, as the waiting client sees it.
#[inline]
pub(crate) fn since(began: Nanos) -> Nanos {
    Nanos(clock::host_now().0.saturating_sub(began.0))
}
