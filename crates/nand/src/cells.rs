use crate::geometry::{BlockId, DieId, Geometry, Ppa};
use base::Rng;
use media::Page;
use prefetch_index::prefetch_index;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::{Deref, DerefMut, RangeInclusive};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a [`Tag`].
pub const TAG_BYTES: usize = 24;

/// The bytes that the translation layer programs into the spare area of a block's first page.
pub type Tag = [u8; TAG_BYTES];

/// Separates the random draws of blocks' wear from those of bad blocks.
const WEAR: u64 = 0x77_6561_7221;

/// The content of a flash array: everything that a power cut leaves.
pub struct Cells {
    geometry: Geometry,
    dies: Mutex<Vec<Die>>,
    /// The placeholder for an unreadable page.
    blank: Page,
    /// The last announced reads, for [`Self::prefetch`].
    announced: [AtomicU64; 2],
}

/// All dies of locked cells.
pub(crate) struct Dies<'a>(MutexGuard<'a, Vec<Die>>);

/// One die of locked cells.
struct LockedDie<'a> {
    dies: MutexGuard<'a, Vec<Die>>,
    number: usize,
}

/// Aligned: it is one line of the processor's caches.
#[derive(Clone, Serialize, Deserialize)]
#[repr(align(64))]
pub(crate) struct Die {
    blocks: Vec<Block>,
    /// Programmed but unreadable pages, by block and page.
    unreadable: BTreeSet<(u32, u32)>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Block {
    /// The pages programmed since the last erase, in order. One reference each, because an array
    /// has millions.
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
    /// Programs fail until the next erase: one has failed.
    Closed,
    /// Programs and erases fail.
    Broken,
}

/// The result of sensing a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sensed {
    Blank,
    Readable,
    Unreadable,
}

impl Cells {
    /// Returns an erased array. Each block is bad with a chance of `factory_bad_ppm` in a million.
    /// Blocks were erased `worn_cycles` times on average before, each from half to one and a half
    /// times as often.
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
            Die { blocks, unreadable: BTreeSet::new() }
        };
        let dies = Mutex::new((0..geometry.dies()).map(|_| die()).collect());
        let blank = Page::new(&[], []);
        Self { geometry, dies, blank, announced: Default::default() }
    }

    /// Returns the content of a die, for a saved state.
    pub(crate) fn save(&self, die: DieId) -> Die {
        self.die(BlockId { die, block: 0 }).clone()
    }

    /// Restores an array from saved `dies`. `None` when they do not fit the geometry.
    pub(crate) fn restored(geometry: Geometry, dies: Vec<Die>) -> Option<Self> {
        let fits = |die: &Die| {
            let pages = |block: &Block| block.pages.len() <= geometry.pages_per_block as usize;
            die.blocks.len() == geometry.blocks_per_die() as usize && die.blocks.iter().all(pages)
        };
        let fit = dies.len() == geometry.dies() as usize && dies.iter().all(fits);
        let dies = Mutex::new(dies);
        let blank = Page::new(&[], []);
        fit.then(|| Self { geometry, dies, blank, announced: Default::default() })
    }

    /// Returns the sizes of the array.
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Returns the number of pages of `block` programmed since its last erase.
    pub fn programmed(&self, block: BlockId) -> u32 {
        count(&self.die(block).of(block).pages)
    }

    /// True when `block` is marked as bad, by the factory or by a retirement.
    pub fn is_bad(&self, block: BlockId) -> bool {
        let die = self.die(block);
        die.of(block).bad || die.of(block).retired
    }

    /// True when the factory marked `block` as bad.
    pub fn came_bad(&self, block: BlockId) -> bool {
        self.die(block).of(block).bad
    }

    /// Returns the number of retired blocks in the whole array.
    pub fn retired_blocks(&self) -> u32 {
        self.count(|block| block.retired)
    }

    /// True when a block fails programs and erases but is not retired.
    pub(crate) fn has_broken_blocks(&self) -> bool {
        self.count(|block| block.trouble == Trouble::Broken && !block.retired) > 0
    }

    fn count(&self, is_one: impl Fn(&Block) -> bool) -> u32 {
        let dies = self.dies().0;
        let count = dies.iter().map(|die| die.blocks.iter().filter(|block| is_one(block)).count());
        u32::try_from(count.sum::<usize>()).expect("far fewer than 2^32")
    }

    /// Returns the programmed but unreadable pages of `block`, in rising order.
    pub fn unreadable(&self, block: BlockId) -> Vec<u32> {
        let die = self.die(block);
        die.unreadable.range(all_pages(block)).map(|(_, page)| *page).collect()
    }

    /// Returns how often `block` was erased.
    pub fn erase_count(&self, block: BlockId) -> u32 {
        self.die(block).of(block).erases
    }

    /// Returns the least erased of `blocks` on `die`; the first of several.
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

    /// Ends a failed program. All other programs of its block fail until the next erase.
    pub(crate) fn fail_program(&self, ppa: Ppa, tag: Option<Tag>) {
        self.program_unreadable(ppa, tag);
        let mut die = self.die(ppa.block);
        let trouble = &mut die.of_mut(ppa.block).trouble;
        if *trouble == Trouble::None {
            *trouble = Trouble::Closed;
        }
    }

    /// True when a program of `block` has failed since its last erase.
    pub(crate) fn is_closed(&self, block: BlockId) -> bool {
        self.die(block).of(block).trouble == Trouble::Closed
    }

    /// Ends a program that leaves an unreadable page. Later pages still have the tag.
    pub(crate) fn program_unreadable(&self, ppa: Ppa, tag: Option<Tag>) {
        self.program(ppa, self.blank.clone(), tag);
        self.spoil(ppa);
    }

    /// Makes a programmed page unreadable until its block is erased.
    pub(crate) fn spoil(&self, ppa: Ppa) {
        self.die(ppa.block).unreadable.insert((ppa.block.block, ppa.page));
    }

    /// Cuts off a program of `ppa`: the page is torn, if it is the next one of its block.
    pub(crate) fn tear(&self, ppa: Ppa) {
        let mut die = self.die(ppa.block);
        let block = die.of_mut(ppa.block);
        if count(&block.pages) == ppa.page && !block.bad && !block.retired {
            block.pages.push(self.blank.clone());
            die.unreadable.insert((ppa.block.block, ppa.page));
        }
    }

    /// Cuts off an erase of `id`: no page is readable, and none is blank.
    pub(crate) fn half_erase(&self, id: BlockId) {
        let mut die = self.die(id);
        let pages = vec![self.blank.clone(); self.geometry.pages_per_block as usize];
        die.of_mut(id).pages = pages;
        die.unreadable.extend((0..self.geometry.pages_per_block).map(|page| (id.block, page)));
    }

    /// Makes later programs and erases of `block` fail.
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

    /// Prefetches the memory that a read of `ppa` will touch: the pointer to the page at once, the
    /// page itself after two more announcements, when the pointer has arrived.
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

    /// Prefetches the memory that reads of these pages will touch, each of one segment of the data.
    /// For several reads soon: what one touches arrives while the others are prefetched.
    pub fn prefetch_all(&self, reads: &[(Ppa, u32)]) {
        let dies = &*self.dies().0;
        for (ppa, _) in reads {
            prefetch_index(dies, ppa.block.die.0 as usize);
        }
        let block = |ppa: &Ppa| dies[ppa.block.die.0 as usize].of(ppa.block);
        for (ppa, _) in reads {
            prefetch_index(&block(ppa).pages, ppa.page as usize);
        }
        let page = |ppa: &Ppa| block(ppa).pages.get(ppa.page as usize);
        reads.iter().filter_map(|(ppa, _)| page(ppa)).for_each(Page::prefetch);
        for (ppa, segment) in reads {
            if let Some(page) = page(ppa) {
                page.prefetch_content(*segment as usize);
            }
        }
    }

    /// Ends the sense of a read: `None` when the page is unreadable.
    #[inline]
    pub(crate) fn page(&self, ppa: Ppa) -> Option<Page> {
        self.dies().page(ppa).cloned()
    }

    /// True when a programmed page has real bytes, in which a bit can flip.
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

    /// Returns the tag of `block`, which is meaningless while no page is programmed.
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
        // Freeing the pages' memory takes long, so it happens outside of the lock.
        drop(pages);
    }

    /// Locks them.
    #[inline]
    pub(crate) fn dies(&self) -> Dies<'_> {
        Dies(self.dies.lock().unwrap_or_else(PoisonError::into_inner))
    }

    #[inline]
    fn die(&self, block: BlockId) -> LockedDie<'_> {
        self.geometry.assert_holds(block);
        LockedDie { dies: self.dies().0, number: block.die.0 as usize }
    }
}

impl Dies<'_> {
    /// Returns a programmed page. `None` when it is unreadable.
    #[inline]
    pub(crate) fn page(&self, ppa: Ppa) -> Option<&Page> {
        let die = &self.0[ppa.block.die.0 as usize];
        match die.of(ppa.block).pages.get(ppa.page as usize) {
            Some(page) => die.is_readable(ppa).then_some(page),
            None => panic!("{ppa} was never programmed, so it cannot be read"),
        }
    }
}

impl Deref for LockedDie<'_> {
    type Target = Die;

    #[inline]
    fn deref(&self) -> &Die {
        &self.dies[self.number]
    }
}

impl DerefMut for LockedDie<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Die {
        &mut self.dies[self.number]
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

/// Returns the range of a block in [`Die::unreadable`].
const fn all_pages(block: BlockId) -> RangeInclusive<(u32, u32)> {
    (block.block, 0)..=(block.block, u32::MAX)
}

/// Returns an address as one non-zero word.
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
