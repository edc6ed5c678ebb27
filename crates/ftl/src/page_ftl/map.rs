use crate::page_ftl::layout::NONE;
use prefetch_index::prefetch_index;
use serde::{Deserialize, Serialize};

/// Entries of a chunk: 64 KiB of map for 64 MiB of data.
const CHUNK: usize = 1 << 14;

/// The slot of each logical block, with memory only where blocks were written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Map {
    chunks: Vec<Option<Box<[u32]>>>,
}

impl Map {
    /// Returns a map of `blocks` logical blocks without slots.
    pub(crate) fn new(blocks: u64) -> Self {
        let blocks = usize::try_from(blocks).expect("asserted to be below 2^32");
        Self { chunks: vec![None; blocks.div_ceil(CHUNK)] }
    }

    /// Returns the slot of `block`, or [`NONE`].
    #[inline]
    pub(crate) fn get(&self, block: u32) -> u32 {
        let at = block as usize;
        self.chunks[at / CHUNK].as_ref().map_or(NONE, |chunk| chunk[at % CHUNK])
    }

    /// Prefetches the entry of `block` into the processor's cache.
    #[inline]
    pub(crate) fn prefetch(&self, block: u32) {
        let at = block as usize;
        if let Some(Some(chunk)) = self.chunks.get(at / CHUNK) {
            prefetch_index(chunk, at % CHUNK);
        }
    }

    /// Puts `block` into `slot` and returns its old slot.
    #[inline]
    pub(crate) fn set(&mut self, block: u32, slot: u32) -> u32 {
        let at = block as usize;
        let chunk = self.chunks[at / CHUNK].get_or_insert_with(|| vec![NONE; CHUNK].into());
        std::mem::replace(&mut chunk[at % CHUNK], slot)
    }

    /// Removes `block` and returns its old slot.
    pub(crate) fn clear(&mut self, block: u32) -> u32 {
        let at = block as usize;
        let chunk = self.chunks[at / CHUNK].as_mut();
        chunk.map_or(NONE, |chunk| std::mem::replace(&mut chunk[at % CHUNK], NONE))
    }

    /// Returns the first block from `block` on that may have an entry; it may be past the end.
    pub(crate) fn skip_unwritten(&self, block: u64) -> u64 {
        let chunk = CHUNK as u64;
        let from = usize::try_from(block / chunk).expect("a chunk of the map");
        let rest = self.chunks[from..].iter();
        let unwritten = rest.take_while(|chunk| chunk.is_none()).count() as u64;
        if unwritten == 0 { block } else { (block / chunk + unwritten) * chunk }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_where_it_was_put_last() {
        let mut map = Map::new(100_000);
        assert_eq!((map.get(99_999), map.clear(99_999)), (NONE, NONE));
        assert_eq!(map.skip_unwritten(5), 7 << 14, "nothing was written");
        assert_eq!(map.set(70_000, 5), NONE);
        assert_eq!(map.set(70_000, 6), 5);
        assert_eq!((map.get(70_000), map.get(69_999)), (6, NONE));
        assert_eq!(map.skip_unwritten(5), 4 << 14);
        assert_eq!(map.skip_unwritten(70_001), 70_001);
        assert_eq!((map.clear(70_000), map.get(70_000)), (6, NONE));
    }
}
