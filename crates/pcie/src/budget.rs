use std::cell::Cell;

/// Maximum bytes of data of the commands that a function has fetched and not completed. A host with
/// many long queues could otherwise have the function keep all of its memory at a time.
const BYTES_MAX: u64 = 64 << 20;

/// The data in flight of a function.
#[derive(Debug, Default)]
pub(crate) struct Budget(Cell<u64>);

impl Budget {
    /// Takes bytes for a command. Returns false if too many are taken.
    #[inline]
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let taken = self.0.get() + bytes;
        let fits = taken <= BYTES_MAX;
        if fits {
            self.0.set(taken);
        }
        fits
    }

    #[inline]
    pub(crate) fn give_back(&self, bytes: u64) {
        assert!(bytes <= self.0.get(), "only taken bytes are given back");
        self.0.set(self.0.get() - bytes);
    }
}
