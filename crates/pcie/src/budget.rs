use std::cell::Cell;

/// Maximum bytes of data of the commands that a function has fetched and not completed. A host with
/// many long queues could otherwise have the function keep all of its memory at a time.
const BYTES_MAX: u64 = 64 << 20;

/// The data of commands that run, and lists of where it is. A command that is aborted, or whose
/// queue ended, runs on and keeps its bytes.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    taken: Cell<u64>,
    /// Whether a command did not fit since [`Self::begin_turn`].
    is_short: Cell<bool>,
}

impl Budget {
    /// Takes bytes for a command. Returns false if too many are taken.
    #[inline]
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let taken = self.taken.get() + bytes;
        let fits = taken <= BYTES_MAX;
        if fits {
            self.taken.set(taken);
        } else {
            self.is_short.set(true);
        }
        fits
    }

    #[inline]
    pub(crate) fn give_back(&self, bytes: u64) {
        assert!(bytes <= self.taken.get(), "only taken bytes are given back");
        self.taken.set(self.taken.get() - bytes);
    }

    pub(crate) fn begin_turn(&self) {
        self.is_short.set(false);
    }

    /// Returns whether a command did not fit in this turn: the next one is worth a try after a
    /// completion.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.is_short.get()
    }
}
