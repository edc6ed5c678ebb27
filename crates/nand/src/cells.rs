use crate::geometry::{BlockId, DieId, Geometry, Ppa};
use base::Rng;
use media::Page;
use prefetch_index::prefetch_index;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a [`Tag`].
pub const TAG_BYTES: usize = 24;

/// What the translation layer programs into the spare area of a block's first page.
pub type Tag = [u8; TAG_BYTES];

/// Names the draws of blocks' wear, apart from those of bad blocks.
const WEAR: u64 = 0x77_6561_7221;

/// The content of a flash array: all that a power cut leaves.
pub struct Cells {
    geometry: Geometry,
    dies: Vec<Mutex<Die>>,
    /// Stands where a page is that holds nothing readable.
    blank: Page,
    /// The reads announced last, for [`Self::prefetch`].
    announced: [AtomicU64; 2],
}

/// Aligned, so that a read that has locked a die finds in the same line of the cache that none of
/// its pages is unreadable.
#[derive(Clone, Serialize, Deserialize)]
#[repr(align(64))]
pub(crate) struct Die {
    blocks: Vec<Block>,
    /// Pages that are programmed and cannot be read, by block and page.
    unreadable: BTreeSet<(u32, u32)>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Block {
    /// The pages programmed since the last erase, in order. A reference each: an array has
    /// millions.
    pages: Vec<Page>,
    /// Meaningless while no page is programmed.
    tag: Tag,
    erases: u32,
    bad: bool,
    /// Marked as bad since it left the factory.
    retired: bool,
    trouble: Trouble,
}

/// What fails at a block from now on; no layer above knows of it yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Trouble {
    #[default]
    None,
    /// Programs, until it is erased: one has failed.
    Closed,
    /// Programs and erases.
    Broken,
}

/// What a sense finds where a page may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sensed {
    Blank,
    Readable,
    Unreadable,
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
        let mut die = || {
            let blocks = (0..geometry.blocks_per_die()).map(|_| block()).collect();
            Mutex::new(Die { blocks, unreadable: BTreeSet::new() })
        };
        let dies = (0..geometry.dies()).map(|_| die()).collect();
        let blank = Page::new(&[], []);
        Self { geometry, dies, blank, announced: Default::default() }
    }

    /// What a die holds, for a saved state.
    pub(crate) fn save(&self, die: DieId) -> Die {
        self.die(BlockId { die, block: 0 }).clone()
    }

    /// An array of `dies` that were saved. `None` when they are not those of such an array.
    pub(crate) fn restored(geometry: Geometry, dies: Vec<Die>) -> Option<Self> {
        let fits = |die: &Die| {
            let pages = |block: &Block| block.pages.len() <= geometry.pages_per_block as usize;
            die.blocks.len() == geometry.blocks_per_die() as usize && die.blocks.iter().all(pages)
        };
        let fit = dies.len() == geometry.dies() as usize && dies.iter().all(fits);
        let dies = dies.into_iter().map(Mutex::new).collect();
        let blank = Page::new(&[], []);
        fit.then(|| Self { geometry, dies, blank, announced: Default::default() })
    }

    /// The sizes of the array.
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Pages of `block` that were programmed since it was erased.
    pub fn programmed(&self, block: BlockId) -> u32 {
        count(&self.die(block).of(block).pages)
    }

    /// True when `block` is marked as bad: it came so from the factory, or was retired.
    pub fn is_bad(&self, block: BlockId) -> bool {
        let die = self.die(block);
        die.of(block).bad || die.of(block).retired
    }

    /// True when `block` came bad from the factory.
    pub fn came_bad(&self, block: BlockId) -> bool {
        self.die(block).of(block).bad
    }

    /// Blocks of the whole array that were retired.
    pub fn retired_blocks(&self) -> u32 {
        self.count(|block| block.retired)
    }

    /// True when there are blocks whose programs and erases fail, and that are not retired.
    pub(crate) fn has_broken_blocks(&self) -> bool {
        self.count(|block| block.trouble == Trouble::Broken && !block.retired) > 0
    }

    fn count(&self, is_one: impl Fn(&Block) -> bool) -> u32 {
        let dies = self.dies.iter().map(|die| die.lock().unwrap_or_else(PoisonError::into_inner));
        let count = dies.map(|die| die.blocks.iter().filter(|block| is_one(block)).count());
        u32::try_from(count.sum::<usize>()).expect("far fewer than 2^32")
    }

    /// Pages of `block` that are programmed and cannot be read, in rising order.
    pub fn unreadable(&self, block: BlockId) -> Vec<u32> {
        let die = self.die(block);
        die.unreadable.range(all_pages(block)).map(|(_, page)| *page).collect()
    }

    /// How often `block` was erased.
    pub fn erase_count(&self, block: BlockId) -> u32 {
        self.die(block).of(block).erases
    }

    /// The one of `blocks` on `die` that was erased least; the first of several.
    pub fn least_worn(&self, die: DieId, blocks: impl Iterator<Item = u32>) -> Option<u32> {
        let table = self.die(BlockId { die, block: 0 });
        blocks.min_by_key(|block| table.blocks[*block as usize].erases)
    }

    /// Turns over one bit of a programmed page. `which` chooses a data segment or the spare bytes,
    /// in turn, and then the bit in it. Readers that hold the page already keep it as it was.
    pub fn flip_bit(&self, ppa: Ppa, which: u64) {
        let mut die = self.die(ppa.block);
        let page = die.of_mut(ppa.block).pages.get_mut(ppa.page as usize);
        let page = page.unwrap_or_else(|| panic!("{ppa} was never programmed"));
        *page = page.with_flipped_bit(which);
    }

    /// Ends a program.
    #[inline]
    pub(crate) fn program(&self, ppa: Ppa, page: Page, tag: Option<Tag>) {
        let mut die = self.die(ppa.block);
        let block = die.of_mut(ppa.block);
        let next = count(&block.pages);
        assert!(!block.bad, "{ppa} cannot be programmed: the block is bad");
        assert!(!block.retired, "{ppa} cannot be programmed: the block was retired");
        assert!(ppa.page >= next, "{ppa} cannot be programmed again before the block is erased");
        assert!(ppa.page == next, "{ppa} cannot be programmed before page {next}");
        if let Some(tag) = tag {
            block.tag = tag;
            block.pages.reserve_exact(self.geometry.pages_per_block as usize);
        }
        block.pages.push(page);
    }

    /// Ends a program that failed, and with it all others of its block until that is erased.
    pub(crate) fn fail_program(&self, ppa: Ppa, tag: Option<Tag>) {
        self.program_unreadable(ppa, tag);
        let mut die = self.die(ppa.block);
        let trouble = &mut die.of_mut(ppa.block).trouble;
        if *trouble == Trouble::None {
            *trouble = Trouble::Closed;
        }
    }

    /// True when a program of `block` has failed since it was erased.
    pub(crate) fn is_closed(&self, block: BlockId) -> bool {
        self.die(block).of(block).trouble == Trouble::Closed
    }

    /// Ends a program that leaves nothing readable. The tag can still be read from the pages after.
    pub(crate) fn program_unreadable(&self, ppa: Ppa, tag: Option<Tag>) {
        self.program(ppa, self.blank.clone(), tag);
        self.spoil(ppa);
    }

    /// A programmed page cannot be read until its block is erased.
    pub(crate) fn spoil(&self, ppa: Ppa) {
        self.die(ppa.block).unreadable.insert((ppa.block.block, ppa.page));
    }

    /// A program of `ppa` was cut off: the page is torn, if it is the next one of its block.
    pub(crate) fn tear(&self, ppa: Ppa) {
        let mut die = self.die(ppa.block);
        let block = die.of_mut(ppa.block);
        if count(&block.pages) == ppa.page && !block.bad && !block.retired {
            block.pages.push(self.blank.clone());
            die.unreadable.insert((ppa.block.block, ppa.page));
        }
    }

    /// An erase of `id` did not come to its end: no page can be read, and none is blank.
    pub(crate) fn half_erase(&self, id: BlockId) {
        let mut die = self.die(id);
        let pages = vec![self.blank.clone(); self.geometry.pages_per_block as usize];
        die.of_mut(id).pages = pages;
        die.unreadable.extend((0..self.geometry.pages_per_block).map(|page| (id.block, page)));
    }

    /// Programs and erases of `block` fail from now on.
    pub(crate) fn wreck(&self, block: BlockId) {
        self.die(block).of_mut(block).trouble = Trouble::Broken;
    }

    /// True when programs and erases of `block` fail.
    pub(crate) fn is_broken(&self, block: BlockId) -> bool {
        self.die(block).of(block).trouble == Trouble::Broken
    }

    /// Marks `block` as bad.
    pub(crate) fn retire(&self, id: BlockId) {
        let mut die = self.die(id);
        let block = die.of_mut(id);
        assert!(!block.bad && !block.retired, "{id} is bad already");
        block.retired = true;
    }

    /// Asks the processor for what a read of `ppa` will touch, ahead of it: the pointer to the page
    /// at once; the page behind it when two more reads have been announced, by when the pointer is
    /// there.
    #[inline]
    pub(crate) fn prefetch(&self, ppa: Ppa) {
        prefetch_index(&self.die(ppa.block).of(ppa.block).pages, ppa.page as usize);
        let [last, before] = &self.announced;
        let earlier = unpack(before.load(Relaxed));
        before.store(last.load(Relaxed), Relaxed);
        last.store(pack(ppa), Relaxed);
        if let Some(ppa) = earlier {
            let die = self.die(ppa.block);
            if let Some(page) = die.of(ppa.block).pages.get(ppa.page as usize) {
                page.prefetch();
            }
        }
    }

    /// Ends the sense of a read: `None` when the page cannot be read.
    #[inline]
    pub(crate) fn page(&self, ppa: Ppa) -> Option<Page> {
        let die = self.die(ppa.block);
        match die.of(ppa.block).pages.get(ppa.page as usize) {
            Some(page) => die.is_readable(ppa).then(|| page.clone()),
            None => panic!("{ppa} was never programmed, so it cannot be read"),
        }
    }

    /// True when a programmed page has a bit that can flip.
    pub(crate) fn has_bits(&self, ppa: Ppa) -> bool {
        let die = self.die(ppa.block);
        let page = &die.of(ppa.block).pages[ppa.page as usize];
        page.data_bytes() > 0 || !page.spare().is_empty()
    }

    /// Ends a sense that moves no data.
    pub(crate) fn sensed(&self, ppa: Ppa) -> Sensed {
        let die = self.die(ppa.block);
        if ppa.page >= count(&die.of(ppa.block).pages) {
            Sensed::Blank
        } else if die.is_readable(ppa) {
            Sensed::Readable
        } else {
            Sensed::Unreadable
        }
    }

    /// The tag that goes with the pages of `block`. It means nothing while none is programmed.
    pub(crate) fn tag(&self, block: BlockId) -> Tag {
        self.die(block).of(block).tag
    }

    /// Ends an erase.
    pub(crate) fn erase(&self, id: BlockId) {
        let mut die = self.die(id);
        let block = die.of_mut(id);
        assert!(!block.bad && !block.retired, "{id} cannot be erased: it is bad");
        block.erases += 1;
        if block.trouble == Trouble::Closed {
            block.trouble = Trouble::None;
        }
        let pages = std::mem::take(&mut block.pages);
        if !die.unreadable.is_empty() {
            die.unreadable.retain(|(block, _)| *block != id.block);
        }
        drop(die);
        // Freeing the pages' memory takes long enough to keep it out of the lock.
        drop(pages);
    }

    #[inline]
    fn die(&self, block: BlockId) -> MutexGuard<'_, Die> {
        self.geometry.assert_holds(block);
        self.dies[block.die.0 as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Die {
    #[inline]
    fn of(&self, block: BlockId) -> &Block {
        &self.blocks[block.block as usize]
    }

    #[inline]
    fn of_mut(&mut self, block: BlockId) -> &mut Block {
        &mut self.blocks[block.block as usize]
    }

    #[inline]
    fn is_readable(&self, ppa: Ppa) -> bool {
        self.unreadable.is_empty() || !self.unreadable.contains(&(ppa.block.block, ppa.page))
    }
}

/// The range of a block in [`Die::unreadable`].
const fn all_pages(block: BlockId) -> RangeInclusive<(u32, u32)> {
    (block.block, 0)..=(block.block, u32::MAX)
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
fn count(pages: &[Page]) -> u32 {
    u32::try_from(pages.len()).expect("pages of a block are counted in 32 bits")
}
