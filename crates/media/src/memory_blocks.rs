use crate::blocks::{Blocks, BlocksShape, Segments, cut};
use crate::error::Error;
use base::Buf;
use clock::{Class, LocalFuture};
use std::collections::BTreeMap;
use std::future::ready;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Logical blocks in memory that take no time.
#[derive(Debug)]
pub struct MemoryBlocks {
    shape: BlocksShape,
    zeros: Buf,
    written: Mutex<BTreeMap<u64, Segments>>,
}

impl MemoryBlocks {
    /// Blocks of this shape, none of which was written.
    pub fn new(shape: BlocksShape) -> Self {
        let zeros = Buf::copy_from(&vec![0; shape.block_bytes as usize]);
        Self { shape, zeros, written: Mutex::default() }
    }

    fn written(&self) -> MutexGuard<'_, BTreeMap<u64, Segments>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn range(&self, first: u64, count: u64) -> Range<u64> {
        let blocks = self.shape.blocks;
        let end = first.checked_add(count).filter(|end| *end <= blocks);
        let end = end.unwrap_or_else(|| panic!("{count} blocks from {first} are not of {blocks}"));
        first..end
    }
}

impl Blocks for MemoryBlocks {
    fn shape(&self) -> BlocksShape {
        self.shape
    }

    fn read(&self, first: u64, count: u32, _: Class) -> LocalFuture<'_, Result<Segments, Error>> {
        let written = self.written();
        let mut data = Segments::new();
        for block in self.range(first, count.into()) {
            match written.get(&block) {
                Some(segments) => data.extend(segments.iter().cloned()),
                None => data.push(self.zeros.clone()),
            }
        }
        Box::pin(ready(Ok(data)))
    }

    fn write(&self, first: u64, data: Segments, _: Class) -> LocalFuture<'_, Result<(), Error>> {
        let block_bytes = self.shape.block_bytes;
        let bytes: u32 = data.iter().map(Buf::len).sum();
        assert!(bytes.is_multiple_of(block_bytes), "{bytes} bytes are not whole blocks");
        let mut written = self.written();
        for (number, block) in (0..).zip(self.range(first, (bytes / block_bytes).into())) {
            let content = cut(&data, number * block_bytes, block_bytes);
            written.insert(block, content.expect("the data is as long as its blocks"));
        }
        Box::pin(ready(Ok(())))
    }

    fn trim(&self, first: u64, count: u64, _: Class) -> LocalFuture<'_, Result<(), Error>> {
        let range = self.range(first, count);
        self.written().retain(|block, _| !range.contains(block));
        Box::pin(ready(Ok(())))
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    fn read(blocks: &MemoryBlocks, first: u64, count: u32) -> Vec<u8> {
        let future = blocks.read(first, count, Class::HostRead);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let std::task::Poll::Ready(data) = { future }.as_mut().poll(&mut context) else {
            panic!("memory takes no time")
        };
        data.unwrap().iter().flat_map(|part| part.bytes().unwrap().to_vec()).collect()
    }

    #[test]
    fn blocks_hold_what_was_written_last_and_zeros_otherwise() {
        let blocks = MemoryBlocks::new(BlocksShape { block_bytes: 4, blocks: 5, parallelism: 1 });
        let data: Segments = smallvec![Buf::copy_from(b"abcdef"), Buf::copy_from(b"gh")];
        drop(blocks.write(1, data, Class::HostWrite));
        assert_eq!(read(&blocks, 0, 4), b"\0\0\0\0abcdefgh\0\0\0\0");
        drop(blocks.write(2, smallvec![Buf::copy_from(b"ijkl")], Class::HostWrite));
        drop(blocks.trim(0, 2, Class::HostWrite));
        assert_eq!(read(&blocks, 1, 2), b"\0\0\0\0ijkl");
    }

    #[test]
    #[should_panic(expected = "2 blocks from 4 are not of 5")]
    fn a_block_beyond_the_last_panics() {
        let blocks = MemoryBlocks::new(BlocksShape { block_bytes: 4, blocks: 5, parallelism: 1 });
        drop(blocks.read(4, 2, Class::HostRead));
    }
}
