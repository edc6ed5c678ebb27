//! Blocks that no opening of an extent may write twice.

use clock::{Class, LocalFuture};
use media::{Blocks, BlocksShape, Error, Segments};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// Blocks of a drive that panics when a block of frames is written a second time, unless its extent
/// was marked as free in between: a write that is cut off may take what the block held.
pub(crate) struct Once {
    blocks: Arc<dyn Blocks>,
    extent_bytes: u64,
    written: Mutex<BTreeSet<u64>>,
}

impl Once {
    pub(crate) fn new(blocks: Arc<dyn Blocks>, extent_bytes: u64) -> Self {
        Self { blocks, extent_bytes, written: Mutex::default() }
    }

    /// The extent that byte `start` is of, and where in it that lies.
    fn place(&self, start: u64) -> Option<(u64, u64)> {
        let bytes = self.shape().blocks * u64::from(self.shape().block_bytes);
        let extents = (bytes / 4_096 * 4_096 - 8_192 - 3 * 4_096) / self.extent_bytes;
        let (extent, at) =
            (start.checked_sub(8_192)? / self.extent_bytes, (start - 8_192) % self.extent_bytes);
        (extent < extents).then_some((extent, at))
    }

    fn note(&self, first: u64, count: u64) {
        let block_bytes = u64::from(self.shape().block_bytes);
        let Some((extent, at)) = self.place(first * block_bytes) else { return };
        let mut written = self.written.lock().expect("one thread");
        if at == 0 {
            // The mark before the frames.
            let start = 8_192 + extent * self.extent_bytes;
            let blocks = start / block_bytes..(start + self.extent_bytes) / block_bytes;
            written.retain(|block| !blocks.contains(block));
        } else if at < self.extent_bytes - 8_192 {
            for block in first..first + count {
                assert!(written.insert(block), "block {block} is written twice");
            }
        }
    }
}

impl Blocks for Once {
    fn shape(&self) -> BlocksShape {
        self.blocks.shape()
    }

    fn read(
        &self,
        first: u64,
        count: u32,
        class: Class,
    ) -> LocalFuture<'_, Result<Segments, Error>> {
        self.blocks.read(first, count, class)
    }

    fn write(
        &self,
        first: u64,
        data: Segments,
        class: Class,
    ) -> LocalFuture<'_, Result<(), Error>> {
        let bytes: u64 = data.iter().map(|part| u64::from(part.len())).sum();
        self.note(first, bytes / u64::from(self.shape().block_bytes));
        self.blocks.write(first, data, class)
    }

    fn trim(&self, first: u64, count: u64, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        self.blocks.trim(first, count, class)
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        self.blocks.flush()
    }
}
