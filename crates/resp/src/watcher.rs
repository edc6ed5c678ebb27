//! What can be seen of commands from outside: how many there were and how long they took, which
//! took longest, and which errors there were.
//!
//! The time of a command is that from its beginning to its answer, by the clock of whoever waits
//! for it: what the disk takes is in it, what it waits behind others of its connection is not.

use crate::command::{Command, FAST};
use crate::door::Door;
use crate::latency::Latencies;
use crate::numbering::CommandNumber;
use crate::parameters::{Change, Parameters};
use crate::reply::Reply;
use crate::request::Request;
use crate::slow_log::{SlowCommand, SlowLog, kept};
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
        let Some((place, command)) = Command::placed(request.arg(0)) else { return };
        if command.has_word_of(request) {
            self.tallies.count_rejected(CommandNumber::of(place, command, request));
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

impl Door {
    /// A command of `client` was done, and took so long.
    #[inline]
    pub(crate) fn watch<'a, A: ExactSizeIterator<Item = &'a [u8]>>(
        &self,
        client: u64,
        number: CommandNumber,
        took: Nanos,
        reply: &Reply,
        args: impl FnOnce() -> A,
    ) {
        let watcher = self.watcher();
        watcher.tallies.count(number, took, watcher.count_error(reply));
        if watcher.is_slow(took) {
            self.keep_slow(client, number, took, args());
        }
    }

    /// Keeps a command that [`Watcher::is_slow`].
    #[cold]
    pub(crate) fn keep_slow<'a>(
        &self,
        client: u64,
        number: CommandNumber,
        took: Nanos,
        args: impl ExactSizeIterator<Item = &'a [u8]>,
    ) {
        let (watcher, at) = (self.watcher(), clock::unix_now().0 / 1_000);
        let parameters = watcher.parameters();
        // EXEC is not in the log of Redis: the commands that it does are.
        let is_logged = number.name() != "exec";
        if is_logged && parameters.slower_than().is_some_and(|least| took >= least) {
            let clients = self.clients();
            let client = clients.get(&client);
            let (address, name) = client.map_or_else(Default::default, |client| {
                (client.wire.ends.peer().to_owned(), client.name.clone())
            });
            drop(clients);
            let count = args.len();
            let args = kept(args, count);
            let slow = SlowCommand { id: 0, at, took, args, address, name };
            watcher.slow().add(slow, parameters.slow_log_len());
        }
        if parameters.latency_threshold().is_some_and(|least| took >= least) {
            let event = if number.is_of_fast() { "fast-command" } else { "command" };
            watcher.latencies().add(event, at, took.0 / 1_000_000);
        }
    }
}

impl CommandNumber {
    fn is_of_fast(self) -> bool {
        let name = self.name().split('|').next().unwrap_or_default();
        Command::named(name.as_bytes()).is_some_and(|command| command.is(FAST))
    }
}
