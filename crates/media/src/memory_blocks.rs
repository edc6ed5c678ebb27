use crate::blocks::{Access, Blocks, BlocksShape, Segments, cut};
use crate::error::Error;
use base::Buf;
use clock::{Class, LocalFuture};
use prefetch_index::prefetch_index;
use std::future::ready;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Blocks whose places are made together, when the first of them is written.
const SHELF_LEN: usize = 512;
const SHELF_BLOCKS: u64 = SHELF_LEN as u64;

/// How much of the memory that a block keeps in use may be others': what a host wrote is kept
/// without a copy up to this many times a block's size.
const SLACK: usize = 2;

/// Logical blocks in memory that take no time. Each block is read and written in one step. Of a
/// longer span that is being written, another thread may see a part.
#[derive(Debug)]
pub struct MemoryBlocks {
    shape: BlocksShape,
    zeros: Buf,
    shelves: Box<[Mutex<Option<Shelf>>]>,
    /// The blocks announced last, for [`Blocks::expect`].
    announced: [AtomicU64; 2],
}

type Shelf = Box<[Block; SHELF_LEN]>;

/// What a block holds.
#[derive(Clone, Debug, Default)]
enum Block {
    #[default]
    Zeros,
    One(Buf),
    /// Phantoms that do not join.
    Parts(Box<Segments>),
}

impl Block {
    /// The block that `parts` are, one after the other.
    fn of(mut parts: Segments, block_bytes: u32) -> Self {
        let one = match parts.len() {
            1 => parts.pop(),
            _ => Buf::join(&parts),
        };
        match one {
            // Else a block could keep all of a long write in memory, long after the rest of it.
            Some(one) if one.held_bytes() > SLACK * block_bytes as usize => {
                Self::One(Buf::copy_from(one.bytes().unwrap_or_default()))
            }
            Some(one) => Self::One(one),
            None => Self::Parts(Box::new(parts)),
        }
    }

    /// Holds `parts` from here on, in the memory that it has where nobody reads that: to give it
    /// back and take other costs more than a copy of what has just come.
    fn set(&mut self, parts: Segments, block_bytes: u32) {
        if let Self::One(kept) = self
            && kept.overwrite(&parts)
        {
            return;
        }
        *self = Self::of(parts, block_bytes);
    }
}

impl MemoryBlocks {
    /// Blocks of this shape, none of which was written.
    pub fn new(shape: BlocksShape) -> Self {
        let zeros = Buf::copy_from(&vec![0; shape.block_bytes as usize]);
        let shelves = usize::try_from(shape.blocks.div_ceil(SHELF_BLOCKS));
        let shelves = shelves.expect("memory has fewer blocks than addresses");
        let shelves = (0..shelves).map(|_| Mutex::new(None)).collect();
        Self { shape, zeros, shelves, announced: [AtomicU64::new(0), AtomicU64::new(0)] }
    }

    fn shelf(&self, at: usize) -> MutexGuard<'_, Option<Shelf>> {
        self.shelves[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `visit` with each shelf that has some of `blocks`, one after the other: the shelf,
    /// the place of the first of these blocks on it, and their number.
    fn each_shelf(
        &self,
        blocks: Range<u64>,
        mut visit: impl FnMut(&mut Option<Shelf>, usize, usize),
    ) {
        let mut next = blocks.start;
        while next < blocks.end {
            let (shelf, at) = place(next);
            let here = (blocks.end - next).min(SHELF_BLOCKS - next % SHELF_BLOCKS);
            visit(&mut self.shelf(shelf), at, usize::try_from(here).expect("of one shelf"));
            next += here;
        }
    }

    /// Prefetches where the content of a block is found.
    #[inline]
    fn prefetch_place(&self, block: u64) {
        let (shelf, at) = place(block);
        if shelf < self.shelves.len()
            && let Some(shelf) = &*self.shelf(shelf)
        {
            prefetch_index(&shelf[..], at);
        }
    }

    /// Prefetches the content of a block, whose place has arrived.
    #[inline]
    fn prefetch_content(&self, block: u64) {
        let (shelf, at) = place(block);
        if shelf < self.shelves.len()
            && let Some(shelf) = &*self.shelf(shelf)
            && let Block::One(content) = &shelf[at]
        {
            content.prefetch();
        }
    }

    fn content(&self, first: u64, count: u32) -> Segments {
        let mut data = Segments::new();
        self.each_shelf(self.range(first, count.into()), |shelf, at, len| {
            let Some(shelf) = shelf else {
                data.extend((0..len).map(|_| self.zeros.clone()));
                return;
            };
            for block in &shelf[at..at + len] {
                match block {
                    Block::One(content) => data.push(content.clone()),
                    Block::Parts(parts) => data.extend(parts.iter().cloned()),
                    Block::Zeros => data.push(self.zeros.clone()),
                }
            }
        });
        data
    }

    fn range(&self, first: u64, count: u64) -> Range<u64> {
        let blocks = self.shape.blocks;
        let end = first.checked_add(count).filter(|end| *end <= blocks);
        let end = end.unwrap_or_else(|| panic!("{count} blocks from {first} are not of {blocks}"));
        first..end
    }
}

/// The shelf of a block, and its place there.
fn place(block: u64) -> (usize, usize) {
    let index = |number: u64| usize::try_from(number).expect("there is memory for it");
    (index(block / SHELF_BLOCKS), index(block % SHELF_BLOCKS))
}

impl Blocks for MemoryBlocks {
    fn shape(&self) -> BlocksShape {
        self.shape
    }

    fn expect(&self, first: u64, _: Access) {
        self.prefetch_place(first);
        let [last, before] = &self.announced;
        let earlier = before.load(Ordering::Relaxed);
        before.store(last.load(Ordering::Relaxed), Ordering::Relaxed);
        last.store(first, Ordering::Relaxed);
        self.prefetch_content(earlier);
    }

    fn read(&self, first: u64, count: u32, _: Class) -> LocalFuture<'_, Result<Segments, Error>> {
        Box::pin(ready(Ok(self.content(first, count))))
    }

    fn reads_at_once(&self) -> bool {
        true
    }

    fn read_at_once(&self, reads: &[(u64, u32)], contents: &mut Vec<Option<Segments>>) {
        if reads.len() > 1 {
            // What one read touches arrives while the others are prefetched.
            for (first, _) in reads {
                self.prefetch_place(*first);
            }
            for (first, _) in reads {
                self.prefetch_content(*first);
            }
        }
        contents.extend(reads.iter().map(|&(first, count)| Some(self.content(first, count))));
    }

    fn write(&self, first: u64, data: Segments, _: Class) -> LocalFuture<'_, Result<(), Error>> {
        let block_bytes = self.shape.block_bytes;
        let bytes: u32 = data.iter().map(Buf::len).sum();
        assert!(bytes.is_multiple_of(block_bytes), "{bytes} bytes are not whole blocks");
        let mut from = 0;
        self.each_shelf(self.range(first, (bytes / block_bytes).into()), |shelf, at, len| {
            let empty = || Box::new([const { Block::Zeros }; SHELF_LEN]);
            for block in &mut shelf.get_or_insert_with(empty)[at..at + len] {
                let content = cut(&data, from, block_bytes);
                block.set(content.expect("the data is as long as its blocks"), block_bytes);
                from += block_bytes;
            }
        });
        Box::pin(ready(Ok(())))
    }

    fn trim(&self, first: u64, count: u64, _: Class) -> LocalFuture<'_, Result<(), Error>> {
        self.each_shelf(self.range(first, count), |shelf, at, len| {
            if len == SHELF_LEN {
                *shelf = None;
            } else if let Some(shelf) = shelf {
                shelf[at..at + len].fill(Block::Zeros);
            }
        });
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
    fn what_was_trimmed_is_zeros_and_nothing_beside_it() {
        let shape = BlocksShape { block_bytes: 1, blocks: 2_000, parallelism: 1 };
        let blocks = MemoryBlocks::new(shape);
        let all: Vec<u8> = (0..2_000_u32).map(|at| at.to_le_bytes()[0] | 1).collect();
        for (first, count) in [(0, 1), (511, 2), (3, 1_997), (512, 512), (700, 1_000), (0, 2_000)] {
            drop(blocks.write(0, smallvec![Buf::copy_from(&all)], Class::HostWrite));
            drop(blocks.trim(first, count, Class::HostWrite));
            let mut expected = all.clone();
            let at = usize::try_from(first).unwrap();
            expected[at..at + usize::try_from(count).unwrap()].fill(0);
            assert_eq!(read(&blocks, 0, 2_000), expected, "{count} from {first}");
        }
    }

    #[test]
    fn a_block_keeps_no_more_memory_than_its_own() {
        let shape = BlocksShape { block_bytes: 4_096, blocks: 101, parallelism: 1 };
        let blocks = MemoryBlocks::new(shape);
        let held = |first| {
            let future = blocks.read(first, 1, Class::HostRead);
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            let std::task::Poll::Ready(data) = { future }.as_mut().poll(&mut context) else {
                panic!("memory takes no time")
            };
            data.unwrap()[0].held_bytes()
        };
        let long = Buf::copy_from(&vec![7; 100 * 4_096]);
        assert_eq!(long.held_bytes(), 100 * 4_096);
        drop(blocks.write(0, smallvec![long], Class::HostWrite));
        assert_eq!(held(50), 4_096);
        let short = Buf::copy_from(&[8; 4_096]);
        let same = short.bytes().unwrap().as_ptr();
        drop(blocks.write(100, smallvec![short], Class::HostWrite));
        let shelf = blocks.shelf(0);
        let Some(Block::One(kept)) = shelf.as_ref().map(|shelf| &shelf[100]) else {
            panic!("it was written")
        };
        assert_eq!(kept.bytes().unwrap().as_ptr(), same, "what is short is not copied");
    }

    #[test]
    fn what_was_read_stays_as_it_was_and_else_the_memory_is_used_again() {
        let blocks = MemoryBlocks::new(BlocksShape { block_bytes: 4, blocks: 5, parallelism: 1 });
        let write = |text| drop(blocks.write(1, smallvec![Buf::copy_from(text)], Class::HostWrite));
        let kept = || match &blocks.shelf(0).as_ref().unwrap()[1] {
            Block::One(kept) => kept.clone(),
            other => panic!("{other:?}"),
        };
        write(b"abcd");
        let read = kept();
        write(b"efgh");
        assert_eq!(read.bytes(), Some(&b"abcd"[..]));
        let place = kept().bytes().unwrap().as_ptr();
        write(b"ijkl");
        assert_eq!((kept().bytes().unwrap().as_ptr(), kept().bytes()), (place, Some(&b"ijkl"[..])));
    }

    #[test]
    #[should_panic(expected = "2 blocks from 4 are not of 5")]
    fn a_block_beyond_the_last_panics() {
        let blocks = MemoryBlocks::new(BlocksShape { block_bytes: 4, blocks: 5, parallelism: 1 });
        drop(blocks.read(4, 2, Class::HostRead));
    }
}
