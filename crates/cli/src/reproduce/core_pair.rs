//! Two cores of this machine: one for a host, one for its target.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Pins host and target threads to different cores, since both poll without sleeping. Dropping this
/// restores the cores of this thread.
pub(super) struct CorePair {
    before: CpuSet,
    /// None if the kernel allows only one core.
    pair: Option<[usize; 2]>,
}

impl CorePair {
    /// Chooses among the cores that this thread may use.
    pub(super) fn new() -> Self {
        let before = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| before.is_set(*core));
        let pair = cores.next().zip(cores.next()).map(<[usize; 2]>::from);
        Self { before, pair }
    }

    /// True if there are two cores.
    pub(super) fn is_there(&self) -> bool {
        self.pair.is_some()
    }

    /// Pins this thread to the host's core.
    pub(super) fn be_host(&self) {
        self.be(0);
    }

    /// Runs `act` on the target's core: threads that start there stay on it.
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

/// Ignores errors: if the core has gone offline, the thread stays on its core, and the figures show
/// it.
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
