use std::cell::Cell;

/// Where a queue lies in host memory, and a position in it.
#[derive(Debug)]
pub(crate) struct Ring {
    address: u64,
    entry_bytes: usize,
    entries: u16,
    position: Cell<u16>,
}

impl Ring {
    /// # Panics
    /// If the queue has fewer than 2 entries.
    pub(crate) fn new(address: u64, entry_bytes: usize, entries: u16) -> Self {
        assert!(entries >= 2, "a queue with one entry is always empty");
        Self { address, entry_bytes, entries, position: Cell::new(0) }
    }

    pub(crate) fn entries(&self) -> u16 {
        self.entries
    }

    #[inline]
    pub(crate) fn position(&self) -> u16 {
        self.position.get()
    }

    /// Returns the address of the entry at the position.
    #[inline]
    pub(crate) fn address(&self) -> u64 {
        self.address.wrapping_add(u64::from(self.position.get()) * self.entry_bytes as u64)
    }

    /// Returns the position after this one.
    #[inline]
    pub(crate) fn next(&self) -> u16 {
        let next = self.position.get() + 1;
        if next == self.entries { 0 } else { next }
    }

    /// Moves to the next position. Returns true if that is the first one.
    #[inline]
    pub(crate) fn advance(&self) -> bool {
        self.position.set(self.next());
        self.position.get() == 0
    }

    /// Returns how many entries lie before `end`, without passing the last entry of the ring.
    #[inline]
    pub(crate) fn run(&self, end: u16) -> u16 {
        let position = self.position.get();
        if end >= position { end - position } else { self.entries - position }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_wrap_at_the_end() {
        let ring = Ring::new(0x1_0000, 64, 3);
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push((ring.position(), ring.address(), ring.advance()));
        }
        let expected =
            [(0, 0x1_0000, false), (1, 0x1_0040, false), (2, 0x1_0080, true), (0, 0x1_0000, false)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_run_ends_at_the_end_of_the_ring() {
        let ring = Ring::new(0, 64, 4);
        assert_eq!((ring.run(0), ring.run(3)), (0, 3));
        ring.advance();
        ring.advance();
        assert_eq!((ring.run(2), ring.run(3), ring.run(1)), (0, 1, 2));
    }
}
