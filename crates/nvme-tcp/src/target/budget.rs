use base::MIB;
use base::limits::VALUE_BYTES_MAX;
use std::cell::Cell;

/// Maximum bytes in flight of a connection's commands that move [`super::LARGE`] and more, from
/// their start until their response is sent. Further commands wait.
#[derive(Debug)]
pub struct Budget {
    most: u64,
    in_flight: Cell<u64>,
}

impl Budget {
    /// The minimum: the bytes of the largest command.
    pub const BYTES_MIN: u64 = VALUE_BYTES_MAX as u64;
    /// The default.
    pub const BYTES: u64 = 16 * MIB;

    /// Creates a budget of `most` bytes.
    ///
    /// # Panics
    /// If that is less than [`Self::BYTES_MIN`].
    pub fn new(most: u64) -> Self {
        assert!(most >= Self::BYTES_MIN, "the largest command has to fit");
        Self { most, in_flight: Cell::new(0) }
    }

    /// Returns the bytes in flight.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.get()
    }

    #[inline]
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.in_flight.get() + bytes <= self.most
    }

    #[inline]
    pub(super) fn take(&self, bytes: u64) {
        self.in_flight.set(self.in_flight.get() + bytes);
    }

    #[inline]
    pub(super) fn give_back(&self, bytes: u64) {
        self.in_flight.set(self.in_flight.get() - bytes);
    }

    /// Releases all bytes in flight when the connection is over.
    pub(super) fn clear(&self) {
        self.in_flight.set(0);
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(Self::BYTES)
    }
}
