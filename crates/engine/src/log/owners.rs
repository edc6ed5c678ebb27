//! Which writer has which extent, and which reactor has which writer.

use crate::sync::{Apart, AtomicU8, AtomicU32, AtomicU64};
use media::ExtentId;
use std::sync::atomic::Ordering;

/// The most writers of a log.
pub(crate) const WRITERS_MAX: u32 = 64;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Owners {
    /// By extent: the writer that has opened it. It is read by those who know that the extent is in
    /// use, so it has been written before.
    extents: Vec<AtomicU8>,
    /// By writer: the reactor that was the first to ask for it, plus 1; 0 for none.
    reactors: Vec<AtomicU32>,
    /// By writer: how many decisions it has counted (see [`super::Log::watch_decisions`]). They
    /// change under the lock of the writer.
    decisions: Vec<Apart<AtomicU64>>,
}

impl Owners {
    pub(crate) fn new(extents: u32) -> Self {
        let extents = (0..extents).map(|_| AtomicU8::new(0)).collect();
        Self { extents, reactors: Vec::new(), decisions: vec![Apart::default()] }
    }

    /// Shares the work among so many writers.
    pub(crate) fn share_among(&mut self, writers: usize) {
        assert!(writers <= WRITERS_MAX as usize, "there are few writers");
        self.reactors = (0..writers).map(|_| AtomicU32::new(0)).collect();
        self.decisions.resize_with(writers, Apart::default);
    }

    /// Returns the writer that has opened `extent`.
    #[inline]
    pub(crate) fn of(&self, extent: ExtentId) -> usize {
        self.extents[extent.0 as usize].load(Ordering::Relaxed).into()
    }

    /// `writer` opens `extent`.
    pub(crate) fn set(&self, extent: ExtentId, writer: usize) {
        let writer = u8::try_from(writer).expect("there are few writers");
        self.extents[extent.0 as usize].store(writer, Ordering::Relaxed);
    }

    /// Returns how many decisions all writers have counted.
    #[inline]
    pub(crate) fn decisions(&self) -> u64 {
        self.decisions.iter().map(|of| of.load(Ordering::Acquire)).sum()
    }

    /// Counts one. The writer is locked.
    #[inline]
    pub(crate) fn count_decision(&self, writer: usize) {
        let of = &self.decisions[writer];
        of.store(of.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Returns the writer of the current task's reactor. Reactors get writers in the order in which
    /// they first ask; if there are more reactors than writers, some share one.
    pub(crate) fn own(&self) -> usize {
        if !clock::is_installed() {
            return 0;
        }
        let reactor = clock::reactor_id() + 1;
        for (number, of) in self.reactors.iter().enumerate() {
            let found = of.load(Ordering::Relaxed);
            if found == reactor {
                return number;
            }
            if found == 0 {
                let took = of.compare_exchange(0, reactor, Ordering::Relaxed, Ordering::Relaxed);
                if took.is_ok() {
                    return number;
                }
            }
        }
        reactor as usize % self.reactors.len()
    }
}
