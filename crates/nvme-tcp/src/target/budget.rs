use base::MIB;
use base::limits::VALUE_BYTES_MAX;
use std::cell::Cell;

/// Bytes that the commands of a connection may move, of those that move [`super::LARGE`] and more,
/// from their start until their response is sent. Others wait their turn.
#[derive(Debug)]
pub struct Budget {
    most: u64,
    in_flight: Cell<u64>,
}

impl Budget {
    /// The least that there may be: what the largest command moves.
    pub const BYTES_MIN: u64 = VALUE_BYTES_MAX as u64;
    /// What there is unless somebody says otherwise.
    pub const BYTES: u64 = 16 * MIB;

    /// Of `most` bytes.
    ///
    /// # Panics
    /// When that is less than [`Self::BYTES_MIN`].
    pub fn new(most: u64) -> Self {
        assert!(most >= Self::BYTES_MIN, "the largest command has to fit");
        Self { most, in_flight: Cell::new(0) }
    }

    /// Bytes that are moved now.
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

    /// The connection is over, and what it moved is nobody's.
    pub(super) fn clear(&self) {
        self.in_flight.set(0);
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(Self::BYTES)
    }
}
