use crate::region::Region;
use crate::scan::Found;
use crate::stripe::{Sets, Unit};
use media::{ExtentId, ExtentInfo, Label, PageId, Stream};
use nand::{BlockId, Cells};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The map from extents to blocks, and the table of extents.
///
/// An extent's id is its number in its set times the number of sets, plus its set. Each plane of a
/// die has a list of the blocks that came good. Entry `n` is the block of its set's extent `n`
/// while that extent is in use; otherwise a free block or a failed one. One list is both the map
/// and the free list.
#[derive(Debug)]
pub(crate) struct Blocks {
    sets: Sets,
    pages_per_block: u32,
    lists: Vec<Box<[u16]>>,
    extents: Box<[Option<InUse>]>,
    /// Blocks in each list that have not failed.
    good: Box<[u32]>,
    /// For each set, how many extents can be in use at a time, and how many are.
    capacity: Box<[u32]>,
    used: Box<[u32]>,
    /// Free blocks of each plane that no extent is opened on: they replace one that fails.
    spares: u32,
    /// Blocks that are never free: failed ones, and those reserved to replace a failed one.
    out_of_use: BTreeSet<BlockId>,
    /// Blocks of extents in use that are retired when their extent is reset.
    suspects: BTreeSet<BlockId>,
    /// The number of replacements of a place's block, where not 0.
    replaced: BTreeMap<(ExtentId, u32), u16>,
    /// Pages of extents in use whose content is lost.
    lost_pages: BTreeSet<PageId>,
    /// Extents that take no more pages.
    abandoned: BTreeSet<ExtentId>,
    /// The holes of each extent that was found with any.
    holes: BTreeMap<u32, Vec<u32>>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct InUse {
    epoch: u64,
    pages: u32,
    stream: Stream,
}

/// The saved state of [`Blocks`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedBlocks {
    lists: Vec<Box<[u16]>>,
    extents: Box<[Option<InUse>]>,
    good: Box<[u32]>,
    capacity: Box<[u32]>,
    used: Box<[u32]>,
    spares: u32,
    out_of_use: BTreeSet<BlockId>,
    suspects: BTreeSet<BlockId>,
    replaced: BTreeMap<(ExtentId, u32), u16>,
    lost_pages: BTreeSet<PageId>,
    abandoned: BTreeSet<ExtentId>,
    holes: BTreeMap<u32, Vec<u32>>,
}

const _: () = assert!(size_of::<Option<InUse>>() == 16, "AppendFtl::table_bytes promises it");

impl Blocks {
    /// Returns tables in which every good block that `cells` have in `region` is free.
    pub(crate) fn new(sets: Sets, region: Region, cells: &Cells) -> Self {
        let geometry = cells.geometry();
        assert!(geometry.blocks_per_die() <= 1 << 16, "a die has at most 65,536 blocks");
        let came_good = |unit: Unit| {
            let good = unit.blocks(region, geometry).filter(|block| !cells.came_bad(*block));
            good.map(|block| u16::try_from(block.block).expect("asserted above")).collect()
        };
        let lists: Vec<Box<[u16]>> = sets.units().map(came_good).collect();
        let count = |list: &[u16]| u32::try_from(list.len()).expect("asserted above");
        let good: Box<[u32]> = lists.iter().map(|list| count(list)).collect();
        let capacity: Box<[u32]> = (0..sets.count).map(|set| fewest(sets, set, &good)).collect();
        let ids = capacity.iter().max().expect("there are sets") * sets.count;
        let mut blocks = Self {
            sets,
            pages_per_block: geometry.pages_per_block,
            lists,
            extents: vec![None; ids as usize].into(),
            good,
            used: vec![0; capacity.len()].into(),
            spares: 0,
            capacity,
            out_of_use: BTreeSet::new(),
            suspects: BTreeSet::new(),
            replaced: BTreeMap::new(),
            lost_pages: BTreeSet::new(),
            abandoned: BTreeSet::new(),
            holes: BTreeMap::new(),
        };
        let of_region = sets.units().flat_map(|unit| unit.blocks(region, geometry));
        let retired = of_region.filter(|block| cells.is_bad(*block) && !cells.came_bad(*block));
        retired.for_each(|block| blocks.lose(block));
        blocks
    }

    pub(crate) fn save(&self) -> SavedBlocks {
        SavedBlocks {
            lists: self.lists.clone(),
            extents: self.extents.clone(),
            good: self.good.clone(),
            capacity: self.capacity.clone(),
            used: self.used.clone(),
            spares: self.spares,
            out_of_use: self.out_of_use.clone(),
            suspects: self.suspects.clone(),
            replaced: self.replaced.clone(),
            lost_pages: self.lost_pages.clone(),
            abandoned: self.abandoned.clone(),
            holes: self.holes.clone(),
        }
    }

    pub(crate) fn restored(sets: Sets, pages_per_block: u32, saved: SavedBlocks) -> Self {
        let SavedBlocks { lists, extents, good, capacity, used, spares, .. } = saved;
        let SavedBlocks { out_of_use, suspects, replaced, lost_pages, abandoned, holes, .. } =
            saved;
        Self {
            sets,
            pages_per_block,
            lists,
            extents,
            good,
            capacity,
            used,
            spares,
            out_of_use,
            suspects,
            replaced,
            lost_pages,
            abandoned,
            holes,
        }
    }

    /// Returns how many extents could be in use at a time without failed blocks.
    pub(crate) fn extents_in_all(&self) -> u32 {
        (0..self.sets.count).map(|set| self.numbers(set)).sum()
    }

    pub(crate) fn free_extents(&self) -> u32 {
        (0..self.sets.count).map(|set| self.free_of(set)).sum()
    }

    /// Keeps a block of each plane to replace one that fails.
    pub(crate) fn keep_spares(&mut self) {
        self.spares = 1;
    }

    /// Returns how many extents of a set can be opened.
    fn free_of(&self, set: u32) -> u32 {
        self.capacity[set as usize].saturating_sub(self.used[set as usize] + self.spares)
    }

    /// Marks `block` as failed: it is never free again.
    pub(crate) fn lose(&mut self, block: BlockId) {
        self.out_of_use.insert(block);
        self.lose_one_of(self.sets.unit_of(block));
    }

    fn lose_one_of(&mut self, unit: Unit) {
        self.good[self.sets.index(unit)] -= 1;
        let set = self.sets.set_of(unit);
        self.capacity[set as usize] = fewest(self.sets, set, &self.good);
    }

    /// Takes the least worn free block of a plane for one that has failed, and counts that as
    /// lost.
    pub(crate) fn reserve(&mut self, unit: Unit, cells: &Cells) -> Option<BlockId> {
        let spare = self.least_worn_free(unit, cells)?;
        self.out_of_use.insert(spare);
        self.lose_one_of(unit);
        Some(spare)
    }

    /// Gives a place the block that was reserved for it.
    pub(crate) fn replace(&mut self, id: ExtentId, position: u32, spare: BlockId, replaced: u16) {
        let (_, number) = self.place(id);
        let before = self.block(id, position);
        self.give(number, spare);
        self.out_of_use.remove(&spare);
        self.out_of_use.insert(before);
        self.suspects.remove(&before);
        self.replaced.insert((id, position), replaced);
    }

    /// Returns how often the block of a place was replaced.
    pub(crate) fn replaced(&self, id: ExtentId, position: u32) -> u16 {
        self.replaced.get(&(id, position)).copied().unwrap_or(0)
    }

    /// True when `block` has failed and has no replacement.
    pub(crate) fn is_out_of_use(&self, block: BlockId) -> bool {
        self.out_of_use.contains(&block)
    }

    /// Refuses further pages of an extent.
    pub(crate) fn abandon(&mut self, id: ExtentId) {
        self.abandoned.insert(id);
    }

    pub(crate) fn is_abandoned(&self, id: ExtentId) -> bool {
        self.abandoned.contains(&id)
    }

    /// Marks `block` as suspect: a page of an extent in use could not be read or programmed.
    pub(crate) fn suspect(&mut self, block: BlockId) {
        self.suspects.insert(block);
    }

    /// Notes that the content of a page is lost for good. Later blocks that it lies in are not to
    /// blame.
    pub(crate) fn lose_page(&mut self, at: PageId) {
        self.lost_pages.insert(at);
    }

    /// Marks the block of an unreadable page as suspect, if it is still the block of its place and
    /// the page was not lost before.
    pub(crate) fn unreadable(&mut self, at: PageId, block: BlockId) {
        let is_current = self.block(at.extent, at.page % self.sets.width) == block;
        if is_current && !self.is_hole(at) && !self.lost_pages.contains(&at) {
            self.suspect(block);
        }
    }

    /// True when a page was found missing.
    pub(crate) fn is_hole(&self, at: PageId) -> bool {
        let holes = self.holes.get(&at.extent.0);
        holes.is_some_and(|holes| holes.binary_search(&at.page).is_ok())
    }

    pub(crate) fn label(&self, id: ExtentId) -> Label {
        let InUse { epoch, stream, .. } = *self.extent(id);
        Label { stream, epoch }
    }

    /// Returns the extents in use that have suspect blocks.
    pub(crate) fn suspect_extents(&self) -> Vec<ExtentId> {
        if self.suspects.is_empty() {
            return Vec::new();
        }
        let is_suspect = |id: &ExtentId| {
            let blocks = (0..self.sets.width).map(|position| self.block(*id, position));
            blocks.into_iter().any(|block| self.suspects.contains(&block))
        };
        let ids = (0..).map(ExtentId).zip(&self.extents);
        ids.filter(|(_, extent)| extent.is_some()).map(|(id, _)| id).filter(is_suspect).collect()
    }

    /// Returns the bytes of the tables that grow with the array.
    pub(crate) fn bytes(&self) -> usize {
        let lists: usize = self.lists.iter().map(|list| size_of_val(&**list)).sum();
        lists + size_of_val(&*self.extents)
    }

    /// Opens a free extent in the set that has most, with the least worn free block of each plane.
    pub(crate) fn open(&mut self, label: Label, cells: &Cells) -> Option<ExtentId> {
        let sets = 0..self.sets.count;
        let set = sets.max_by_key(|set| (self.free_of(*set), Reverse(*set)))?;
        if self.free_of(set) == 0 {
            return None;
        }
        let mut numbers = 0..self.numbers(set);
        let number = numbers.find(|number| self.in_use(set, *number).is_none())?;
        for position in 0..self.sets.width {
            let unit = self.sets.unit(set, position);
            let least = self.least_worn_free(unit, cells);
            self.give(
                number,
                least.expect("a set has no more extents than its planes have blocks"),
            );
        }
        let id = self.id(set, number);
        self.take(id, InUse { epoch: label.epoch, pages: 0, stream: label.stream });
        Some(id)
    }

    fn least_worn_free(&self, unit: Unit, cells: &Cells) -> Option<BlockId> {
        let set = self.sets.set_of(unit);
        let entries = (0..).zip(&self.lists[self.sets.index(unit)]);
        let unused = entries.filter(|(entry, _)| self.in_use(set, *entry).is_none());
        let blocks = unused.map(|(_, block)| BlockId { die: unit.die, block: u32::from(*block) });
        let free = blocks.filter(|block| !self.out_of_use.contains(block));
        let least = cells.least_worn(unit.die, free.map(|block| block.block))?;
        Some(BlockId { die: unit.die, block: least })
    }

    /// Makes `block` the one of extent `number` of its set.
    fn give(&mut self, number: u32, block: BlockId) {
        let list = &mut self.lists[self.sets.index(self.sets.unit_of(block))];
        let at = list.iter().position(|good| u32::from(*good) == block.block);
        list.swap(number as usize, at.expect("only good blocks are programmed"));
    }

    /// Enters the blocks that a scan found into tables in which all blocks are free.
    pub(crate) fn adopt(&mut self, found: &[Found]) {
        let mut counts: BTreeMap<ExtentId, (Label, Vec<Filled>)> = BTreeMap::new();
        for found in found {
            let Found { block, tag, .. } = found;
            let (set, number) = self.place(tag.extent);
            assert!(
                tag.position < self.sets.width
                    && self.sets.unit(set, tag.position) == self.sets.unit_of(*block)
                    && number < self.numbers(set),
                "{block} belongs to extent {}, which has no block there with this stripe",
                tag.extent.0
            );
            let blank = || (tag.label, vec![Filled::default(); self.sets.width as usize]);
            let (label, counts) = counts.entry(tag.extent).or_insert_with(blank);
            let count = &mut counts[tag.position as usize];
            assert!(
                *label == tag.label && count.pages == 0,
                "{block} is its extent's only one there"
            );
            *count = Filled { pages: found.pages, readable: found.readable() };
            self.give(number, *block);
            if tag.replaced > 0 {
                self.replaced.insert((tag.extent, tag.position), tag.replaced);
            }
            if found.is_suspect {
                self.suspects.insert(*block);
            }
        }
        for (id, (label, counts)) in counts {
            let (pages, holes) = written(&counts);
            self.take(id, InUse { epoch: label.epoch, pages, stream: label.stream });
            if !holes.is_empty() {
                self.holes.insert(id.0, holes);
            }
        }
        self.give_free_blocks();
    }

    /// Gives found extents a free block where they have none, as far as there are any, so that they
    /// can continue there.
    fn give_free_blocks(&mut self) {
        for unit in self.sets.units() {
            let (set, at) = (self.sets.set_of(unit), self.sets.index(unit));
            for entry in 0..self.lists[at].len() {
                let number = u32::try_from(entry).expect("a die has few blocks");
                let block = BlockId { die: unit.die, block: self.lists[at][entry].into() };
                if self.in_use(set, number).is_none() || !self.out_of_use.contains(&block) {
                    continue;
                }
                let is_free = |at_entry: &usize| {
                    let number = u32::try_from(*at_entry).expect("a die has few blocks");
                    let block = BlockId { die: unit.die, block: self.lists[at][*at_entry].into() };
                    self.in_use(set, number).is_none() && !self.out_of_use.contains(&block)
                };
                if let Some(free) = (0..self.lists[at].len()).find(is_free) {
                    self.lists[at].swap(entry, free);
                }
            }
        }
    }

    /// True when any page of an extent was found missing.
    pub(crate) fn have_holes(&self) -> bool {
        !self.holes.is_empty()
    }

    fn take(&mut self, id: ExtentId, in_use: InUse) {
        let (set, _) = self.place(id);
        self.extents[id.0 as usize] = Some(in_use);
        self.used[set as usize] += 1;
    }

    /// Frees an extent after its blocks are erased.
    pub(crate) fn free(&mut self, id: ExtentId) {
        let (set, _) = self.place(id);
        let before = self.extents[id.0 as usize].take();
        assert!(before.is_some(), "extent {} is reset once", id.0);
        self.used[set as usize] -= 1;
        self.holes.remove(&id.0);
        self.abandoned.remove(&id);
        if !self.replaced.is_empty() {
            self.replaced.retain(|(extent, _), _| *extent != id);
            self.lost_pages.retain(|at| at.extent != id);
        }
    }

    /// Returns the blocks of an extent that may hold pages, each with its suspect mark. Clears the
    /// marks: the caller is about to reset the extent.
    pub(crate) fn written(&mut self, id: ExtentId) -> Vec<(BlockId, bool)> {
        let places = 0..self.extent(id).pages.min(self.sets.width);
        let blocks: Vec<BlockId> = places.map(|position| self.block(id, position)).collect();
        let in_use = blocks.into_iter().filter(|block| !self.out_of_use.contains(block));
        in_use.map(|block| (block, self.suspects.remove(&block))).collect()
    }

    /// Makes `at` the last page of its extent and returns the extent's label.
    pub(crate) fn append(&mut self, at: PageId) -> Label {
        assert!(!self.holes.contains_key(&at.extent.0), "{at} lies behind pages that were cut off");
        assert!(at.page < self.sets.width * self.pages_per_block, "{at} lies within its extent");
        let extent = self.extents[at.extent.0 as usize].as_mut();
        let extent = extent.unwrap_or_else(|| panic!("extent {} is not in use", at.extent.0));
        assert!(
            extent.pages == at.page,
            "{at} is appended in order, after {} others",
            extent.pages
        );
        extent.pages += 1;
        Label { stream: extent.stream, epoch: extent.epoch }
    }

    /// Returns the block of an extent in use at `position` of its stripe.
    #[inline]
    pub(crate) fn block(&self, id: ExtentId, position: u32) -> BlockId {
        let (set, number) = self.place(id);
        let unit = self.sets.unit(set, position);
        let block = self.lists[self.sets.index(unit)][number as usize];
        BlockId { die: unit.die, block: block.into() }
    }

    pub(crate) fn extents(&self) -> Vec<ExtentInfo> {
        let extents = (0..).zip(&self.extents).filter_map(|(id, extent)| {
            let InUse { epoch, pages, stream } = (*extent)?;
            let holes = self.holes.get(&id).cloned().unwrap_or_default();
            let label = Label { stream, epoch };
            Some(ExtentInfo { id: ExtentId(id), label, pages, holes, summary: None })
        });
        extents.collect()
    }

    fn extent(&self, id: ExtentId) -> &InUse {
        let extent = self.extents.get(id.0 as usize).and_then(Option::as_ref);
        extent.unwrap_or_else(|| panic!("extent {} is not in use", id.0))
    }

    /// Returns the extent in use with this number in its set.
    fn in_use(&self, set: u32, number: u32) -> Option<&InUse> {
        self.extents.get(self.id(set, number).0 as usize)?.as_ref()
    }

    /// Returns how many extents a set has, in use or not, without failed blocks.
    fn numbers(&self, set: u32) -> u32 {
        let planes = (0..self.sets.width).map(|position| self.sets.unit(set, position));
        let fewest = planes.map(|unit| self.lists[self.sets.index(unit)].len()).min();
        u32::try_from(fewest.expect("sets have units")).expect("a die has few blocks")
    }

    const fn id(&self, set: u32, number: u32) -> ExtentId {
        ExtentId(number * self.sets.count + set)
    }

    /// Returns the set of an extent and its number there.
    #[inline]
    const fn place(&self, id: ExtentId) -> (u32, u32) {
        (id.0 % self.sets.count, id.0 / self.sets.count)
    }
}

/// How many pages of a block are programmed.
#[derive(Clone, Copy, Debug, Default)]
struct Filled {
    pages: u32,
    /// Pages up to the last readable one.
    readable: u32,
}

/// Returns the number of good blocks in the plane of a set that has fewest.
fn fewest(sets: Sets, set: u32, good: &[u32]) -> u32 {
    let units = (0..sets.width).map(|position| sets.unit(set, position));
    units.map(|unit| good[sets.index(unit)]).min().expect("sets have units")
}

/// Returns the number of pages of an extent up to the last programmed one, and the holes among
/// them.
fn written(blocks: &[Filled]) -> (u32, Vec<u32>) {
    let width = u32::try_from(blocks.len()).expect("a stripe has few units");
    let filled = (0..).zip(blocks).filter(|(_, block)| block.pages > 0);
    let ends = filled.map(|(position, block): (u32, _)| (block.pages - 1) * width + position + 1);
    let pages = ends.max().unwrap_or(0);
    let is_hole = |page: &u32| page / width >= blocks[(page % width) as usize].readable;
    (pages, (0..pages).filter(is_hole).collect())
}

#[cfg(test)]
mod tests {
    use super::{Filled, written};

    /// From pages programmed and pages up to the last that can be read.
    fn of<const N: usize>(blocks: [(u32, u32); N]) -> (u32, Vec<u32>) {
        written(&blocks.map(|(pages, readable)| Filled { pages, readable }))
    }

    #[test]
    fn holes_are_the_pages_that_are_missing_below_the_last() {
        assert_eq!(of([(2, 2), (2, 2), (1, 1)]), (5, vec![]));
        assert_eq!(of([(0, 0), (2, 2), (1, 1)]), (5, vec![0, 3]));
        assert_eq!(of([(1, 1), (0, 0), (0, 0), (3, 3)]), (12, vec![1, 2, 4, 5, 6, 8, 9, 10]));
        assert_eq!(of([(0, 0), (0, 0)]), (0, vec![]));
    }

    #[test]
    fn torn_pages_are_holes_too() {
        assert_eq!(of([(2, 2), (2, 1), (1, 1)]), (5, vec![4]));
        assert_eq!(of([(1, 0), (2, 2)]), (4, vec![0, 2]));
    }
}
