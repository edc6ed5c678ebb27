use std::io::IoSliceMut;

/// Parts that are filled one after the other.
pub(crate) struct Room<'a, 'b> {
    parts: &'a mut [IoSliceMut<'b>],
    part: usize,
    filled: usize,
    /// Bytes that are in them.
    pub(crate) total: usize,
}

impl<'a, 'b> Room<'a, 'b> {
    pub(crate) fn new(parts: &'a mut [IoSliceMut<'b>]) -> Self {
        Self { parts, part: 0, filled: 0, total: 0 }
    }

    /// What is next to be filled. `None`: all is full.
    pub(crate) fn rest(&mut self) -> Option<&mut [u8]> {
        while self.parts.get(self.part)?.len() == self.filled {
            (self.part, self.filled) = (self.part + 1, 0);
        }
        Some(&mut self.parts[self.part][self.filled..])
    }

    pub(crate) fn fill(&mut self, len: usize) {
        self.filled += len;
        self.total += len;
    }

    /// What a read comes to that has ended with nothing more to be had.
    pub(crate) fn read(&self) -> Option<usize> {
        (self.total > 0).then_some(self.total)
    }
}
