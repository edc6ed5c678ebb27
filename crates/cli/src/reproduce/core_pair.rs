//! Two cores of this machine: one for a host, one for the target that it asks.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Cores of which threads are kept apart, so that one that waits is not in the way of the other:
/// both look for news without sleeping. Where this thread was before it is again when this drops.
pub(super) struct CorePair {
    before: CpuSet,
    /// None where the system gives only one.
    pair: Option<[usize; 2]>,
}

impl CorePair {
    /// Of the cores on which this thread may be.
    pub(super) fn new() -> Self {
        let before = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| before.is_set(*core));
        let pair = cores.next().zip(cores.next()).map(<[usize; 2]>::from);
        Self { before, pair }
    }

    /// Whether there are two.
    pub(super) fn is_there(&self) -> bool {
        self.pair.is_some()
    }

    /// From here on this thread is on the core of the host.
    pub(super) fn be_host(&self) {
        self.be(0);
    }

    /// Does `act` on the core of the target: threads that begin there stay on it.
    pub(super) fn as_target<T>(&self, act: impl FnOnce() -> T) -> T {
        self.be(1);
        let done = act();
        self.be_host();
        done
    }

    fn be(&self, place: usize) {
        if let Some(pair) = self.pair {
            let mut only = CpuSet::new();
            only.set(pair[place]);
            set(&only);
        }
    }
}

impl Drop for CorePair {
    fn drop(&mut self) {
        if self.pair.is_some() {
            set(&self.before);
        }
    }
}

/// A core that has gone meanwhile leaves the thread where it is, which figures show.
fn set(cores: &CpuSet) {
    let _ = sched_setaffinity(None, cores);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> CpuSet {
        sched_getaffinity(None).unwrap()
    }

    #[test]
    fn host_and_target_are_apart_and_free_again_in_the_end() {
        let before = allowed();
        let pair = CorePair::new();
        pair.be_host();
        let host = allowed();
        let target = pair.as_target(|| std::thread::spawn(allowed).join().unwrap());
        if pair.is_there() {
            assert_eq!((host.count(), target.count()), (1, 1));
            assert!(host != target && allowed() == host);
        }
        drop(pair);
        assert!(allowed() == before);
    }
}
