use crate::geometry::{BlockId, DieId, Geometry, Ppa};
use base::Rng;
use media::Page;
use prefetch_index::prefetch_index;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a [`Tag`].
pub const TAG_BYTES: usize = 24;

/// What the translation layer programs into the spare area of a block's first page.
pub type Tag = [u8; TAG_BYTES];

/// Names the draws of blocks' wear, apart from those of bad blocks.
const WEAR: u64 = 0x77_6561_7221;

/// The content of a flash array: all that a power cut leaves.
pub struct Cells {
    geometry: Geometry,
    dies: Vec<Mutex<Vec<Block>>>,
    /// The reads announced last, for [`Self::prefetch`].
    announced: [AtomicU64; 2],
}

#[derive(Clone, Default)]
struct Block {
    /// The pages programmed since the last erase, in order. One pointer each: an array has
    /// millions.
    pages: Vec<Arc<Page>>,
    /// Meaningless while no page is programmed.
    tag: Tag,
    erases: u32,
    bad: bool,
}

impl Cells {
    /// An erased array, of whose blocks each is bad with a chance of `factory_bad_ppm` in a
    /// million. The blocks were erased `worn_cycles` times on average before, each from half to
    /// one and a half times as often.
    pub fn new(geometry: Geometry, factory_bad_ppm: u32, worn_cycles: u32, seed: u64) -> Self {
        assert!(
            geometry.bytes() > 0 && geometry.pages_per_block > 0,
            "each size of a flash array is at least 1, not as in {geometry:?}"
        );
        let packs = geometry.dies() <= 1 << 16
            && geometry.blocks_per_die() <= 1 << 24
            && geometry.pages_per_block < 1 << 24;
        assert!(packs, "a flash array has at most 2^16 dies, and 2^24 blocks and pages in each");
        let mut rng = Rng::new(seed);
        let mut wear = Rng::fork(seed, WEAR);
        let (fewest, most) = (worn_cycles / 2, worn_cycles.saturating_add(worn_cycles / 2));
        let mut erases = || {
            let more = wear.below(u64::from(most - fewest) + 1);
            fewest + u32::try_from(more).expect("within a range of 32 bits")
        };
        let mut block = || Block {
            bad: rng.below(1_000_000) < u64::from(factory_bad_ppm),
            erases: erases(),
            ..Block::default()
        };
        let mut die = || (0..geometry.blocks_per_die()).map(|_| block()).collect();
        let dies = (0..geometry.dies()).map(|_| Mutex::new(die())).collect();
        Self { geometry, dies, announced: Default::default() }
    }

    /// The sizes of the array.
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Pages of `block` that were programmed since it was erased.
    pub fn programmed(&self, block: BlockId) -> u32 {
        count(&self.die(block)[block.block as usize].pages)
    }

    /// True when `block` came bad from the factory.
    pub fn is_bad(&self, block: BlockId) -> bool {
        self.die(block)[block.block as usize].bad
    }

    /// How often `block` was erased.
    pub fn erase_count(&self, block: BlockId) -> u32 {
        self.die(block)[block.block as usize].erases
    }

    /// The one of `blocks` on `die` that was erased least; the first of several.
    pub fn least_worn(&self, die: DieId, blocks: impl Iterator<Item = u32>) -> Option<u32> {
        let table = self.die(BlockId { die, block: 0 });
        blocks.min_by_key(|block| table[*block as usize].erases)
    }

    /// Turns over one bit of a programmed page. `which` chooses a data segment or the spare bytes,
    /// in turn, and then the bit in it. Whoever holds the page already keeps it as it was.
    pub fn flip_bit(&self, ppa: Ppa, which: u64) {
        let mut die = self.die(ppa.block);
        let block = &mut die[ppa.block.block as usize];
        let page = block.pages.get_mut(ppa.page as usize);
        let page = page.unwrap_or_else(|| panic!("{ppa} was never programmed"));
        *page = Arc::new(page.with_flipped_bit(which));
    }

    /// Ends a program.
    #[inline]
    pub(crate) fn program(&self, ppa: Ppa, page: Arc<Page>, tag: Option<Tag>) {
        let mut die = self.die(ppa.block);
        let block = &mut die[ppa.block.block as usize];
        let next = count(&block.pages);
        assert!(!block.bad, "{ppa} cannot be programmed: the block is bad");
        assert!(ppa.page >= next, "{ppa} cannot be programmed again before the block is erased");
        assert!(ppa.page == next, "{ppa} cannot be programmed before page {next}");
        if let Some(tag) = tag {
            block.tag = tag;
            block.pages.reserve_exact(self.geometry.pages_per_block as usize);
        }
        block.pages.push(page);
    }

    /// Asks the processor for what a read of `ppa` will touch, ahead of it: the pointer to the page
    /// at once; the page behind it when two more reads have been announced, by when the pointer is
    /// there.
    #[inline]
    pub(crate) fn prefetch(&self, ppa: Ppa) {
        prefetch_index(&self.die(ppa.block)[ppa.block.block as usize].pages, ppa.page as usize);
        let [last, before] = &self.announced;
        let earlier = unpack(before.load(Relaxed));
        before.store(last.load(Relaxed), Relaxed);
        last.store(pack(ppa), Relaxed);
        if let Some(ppa) = earlier {
            let die = self.die(ppa.block);
            if let Some(page) = die[ppa.block.block as usize].pages.get(ppa.page as usize) {
                page.prefetch();
            }
        }
    }

    /// Ends the sense of a read.
    #[inline]
    pub(crate) fn page(&self, ppa: Ppa) -> Arc<Page> {
        let die = self.die(ppa.block);
        match die[ppa.block.block as usize].pages.get(ppa.page as usize) {
            Some(page) => page.clone(),
            None => panic!("{ppa} was never programmed, so it cannot be read"),
        }
    }

    /// The tag of `block`, unless it is erased.
    pub(crate) fn tag(&self, block: BlockId) -> Option<Tag> {
        let die = self.die(block);
        let block = &die[block.block as usize];
        (!block.pages.is_empty()).then_some(block.tag)
    }

    /// Ends an erase.
    pub(crate) fn erase(&self, id: BlockId) {
        let mut die = self.die(id);
        let block = &mut die[id.block as usize];
        assert!(!block.bad, "{id} cannot be erased: it is bad");
        block.erases += 1;
        let pages = std::mem::take(&mut block.pages);
        drop(die);
        // Freeing the pages' memory takes long enough to keep it out of the lock.
        drop(pages);
    }

    #[inline]
    fn die(&self, block: BlockId) -> MutexGuard<'_, Vec<Block>> {
        self.geometry.assert_holds(block);
        self.dies[block.die.0 as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An address in one word that is not 0.
#[inline]
fn pack(ppa: Ppa) -> u64 {
    let Ppa { block: BlockId { die, block }, page } = ppa;
    u64::from(die.0) << 48 | u64::from(block) << 24 | u64::from(page + 1)
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "each part is cut out of the word")]
fn unpack(word: u64) -> Option<Ppa> {
    let page = (word as u32 & 0xFF_FFFF).checked_sub(1)?;
    let block = BlockId { die: DieId((word >> 48) as u32), block: (word >> 24) as u32 & 0xFF_FFFF };
    Some(Ppa { block, page })
}

impl fmt::Debug for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cells of {:?}", self.geometry)
    }
}

#[inline]
fn count(pages: &[Arc<Page>]) -> u32 {
    u32::try_from(pages.len()).expect("pages of a block are counted in 32 bits")
}
