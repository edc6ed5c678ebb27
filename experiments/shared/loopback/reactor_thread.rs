//! What the kernel counts of the thread of a reactor.

use base::Nanos;
use rustix::thread::gettid;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder for each thread of this process.
const THREADS: &str = "/proc/self/task";

/// The prefix of the names of a server's threads.
const NAME: &str = "kvasir-";

/// A thread that runs a reactor.
pub struct ReactorThread(PathBuf);

/// What the kernel's scheduler has counted of a thread.
#[derive(Clone, Copy)]
pub(super) struct Schedule {
    /// On a core.
    pub(super) ran: Nanos,
    /// Ready to run, while another thread had the core.
    pub(super) waited: Nanos,
    /// On a core: the threads of the kernel that work for the thread's `io_uring`.
    pub(super) helped: Nanos,
}

impl ReactorThread {
    /// Returns the calling thread.
    pub fn current() -> Self {
        Self(Path::new(THREADS).join(gettid().as_raw_nonzero().to_string()))
    }

    /// Calls `start`, and returns its result and the thread of the server that it has started.
    pub(super) fn of<T>(start: impl FnOnce() -> T) -> (T, Self) {
        let before = threads_named(NAME);
        let started = start();
        let mut new = threads_named(NAME).into_iter().filter(|thread| !before.contains(thread));
        let thread = new.next().expect("the server has a thread");
        assert!(new.next().is_none(), "the server has one reactor");
        (started, Self(thread))
    }

    /// Returns its times so far.
    pub(super) fn schedule(&self) -> Schedule {
        let (ran, waited) = times(&self.0).expect("the thread runs");
        let number = self.0.file_name().expect("a folder of a thread").to_string_lossy();
        let helpers = threads_named(&format!("iou-wrk-{number}"));
        // A helper without work ends after some seconds.
        let helped = helpers.iter().filter_map(|helper| times(helper)).map(|(ran, _)| ran.0).sum();
        Schedule { ran, waited, helped: Nanos(helped) }
    }
}

/// Returns how long the thread of this folder ran, and how long it waited for a core.
fn times(thread: &Path) -> Option<(Nanos, Nanos)> {
    let text = fs::read_to_string(thread.join("schedstat")).ok()?;
    let mut numbers = text.split_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok().map(Nanos);
    Some((next()?, next()?))
}

/// Returns the folders in /proc of this process's threads whose names start with `name`.
fn threads_named(name: &str) -> BTreeSet<PathBuf> {
    let threads = fs::read_dir(THREADS).expect("a process has threads");
    let paths = threads.map(|thread| thread.expect("a folder can be listed").path());
    let is_named = |path: &PathBuf| {
        fs::read_to_string(path.join("comm")).is_ok_and(|found| found.starts_with(name))
    };
    paths.filter(is_named).collect()
}
