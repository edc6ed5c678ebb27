use crate::region::Region;
use crate::scan::Found;
use crate::stripe::{Sets, Unit};
use media::{ExtentId, ExtentInfo, Label, PageId, Stream};
use nand::{BlockId, Cells};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Which block belongs to which extent, and what the extents are.
///
/// An extent's id is its number in its set times the sets, plus its set. Each plane of a die has a
/// list of its good blocks: entry `n` is the block of its set's extent `n` while that is in use,
/// and a free block otherwise. So one list is both the map and the free list.
#[derive(Debug)]
pub(crate) struct Blocks {
    sets: Sets,
    pages_per_block: u32,
    lists: Vec<Box<[u16]>>,
    extents: Box<[Option<InUse>]>,
    /// Extents of each set that can be in use at a time.
    capacity: Box<[u32]>,
    free: Box<[u32]>,
    free_in_all: u32,
    /// Of extents that were found with any.
    holes: BTreeMap<u32, Vec<u32>>,
}

#[derive(Clone, Copy, Debug)]
struct InUse {
    epoch: u64,
    pages: u32,
    stream: Stream,
}

const _: () = assert!(size_of::<Option<InUse>>() == 16, "AppendFtl::table_bytes promises it");

impl Blocks {
    /// Tables in which every good block that `cells` have in `region` is free.
    pub(crate) fn new(sets: Sets, region: Region, cells: &Cells) -> Self {
        let geometry = cells.geometry();
        assert!(geometry.blocks_per_die() <= 1 << 16, "a die has at most 65,536 blocks");
        let good = |unit: Unit| {
            let good = unit.blocks(region, geometry).filter(|block| !cells.is_bad(*block));
            good.map(|block| u16::try_from(block.block).expect("asserted above")).collect()
        };
        let lists: Vec<Box<[u16]>> = sets.units().map(good).collect();
        let fewest_good = |set| {
            let units = (0..sets.width).map(|position| sets.unit(set, position));
            let good = units.map(|unit| lists[sets.index(unit)].len()).min();
            u32::try_from(good.expect("sets have units")).expect("no more than the blocks of a die")
        };
        let capacity: Box<[u32]> = (0..sets.count).map(fewest_good).collect();
        let ids = capacity.iter().max().expect("there are sets") * sets.count;
        Self {
            sets,
            pages_per_block: geometry.pages_per_block,
            lists,
            extents: vec![None; ids as usize].into(),
            free: capacity.clone(),
            free_in_all: capacity.iter().sum(),
            capacity,
            holes: BTreeMap::new(),
        }
    }

    /// Extents that can be in use at a time.
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity.iter().sum()
    }

    pub(crate) const fn free_extents(&self) -> u32 {
        self.free_in_all
    }

    /// Memory of the tables that grow with the array.
    pub(crate) fn bytes(&self) -> usize {
        let lists: usize = self.lists.iter().map(|list| size_of_val(&**list)).sum();
        lists + size_of_val(&*self.extents)
    }

    /// Takes a free extent of the set that has most, with the least worn free block of each plane.
    pub(crate) fn open(&mut self, label: Label, cells: &Cells) -> Option<ExtentId> {
        let sets = 0..self.sets.count;
        let set = sets.max_by_key(|set| (self.free[*set as usize], Reverse(*set)))?;
        let mut numbers = 0..self.capacity[set as usize];
        let number = numbers.find(|number| self.in_use(set, *number).is_none())?;
        for position in 0..self.sets.width {
            self.give_least_worn(set, number, position, cells);
        }
        let id = self.id(set, number);
        self.take(id, InUse { epoch: label.epoch, pages: 0, stream: label.stream });
        Some(id)
    }

    fn give_least_worn(&mut self, set: u32, number: u32, position: u32, cells: &Cells) {
        let unit = self.sets.unit(set, position);
        let entries = (0..).zip(&self.lists[self.sets.index(unit)]);
        let free = entries.filter(|(entry, _)| self.in_use(set, *entry).is_none());
        let least = cells.least_worn(unit.die, free.map(|(_, block)| u32::from(*block)));
        let least = least.expect("a set has no more extents than its planes have blocks");
        self.give(number, BlockId { die: unit.die, block: least });
    }

    /// Makes `block` the one of extent `number` of its set.
    fn give(&mut self, number: u32, block: BlockId) {
        let list = &mut self.lists[self.sets.index(self.sets.unit_of(block))];
        let at = list.iter().position(|good| u32::from(*good) == block.block);
        list.swap(number as usize, at.expect("only good blocks are programmed"));
    }

    /// Takes what a scan found into tables in which all is free.
    pub(crate) fn adopt(&mut self, found: &[Found]) {
        let mut counts: BTreeMap<ExtentId, (Label, Vec<u32>)> = BTreeMap::new();
        for Found { block, tag, pages } in found {
            let (set, number) = self.place(tag.extent);
            assert!(
                tag.position < self.sets.width
                    && self.sets.unit(set, tag.position) == self.sets.unit_of(*block)
                    && number < self.capacity[set as usize],
                "{block} belongs to extent {}, which has no block there with this stripe",
                tag.extent.0
            );
            let blank = || (tag.label, vec![0; self.sets.width as usize]);
            let (label, counts) = counts.entry(tag.extent).or_insert_with(blank);
            let count = &mut counts[tag.position as usize];
            assert!(*label == tag.label && *count == 0, "{block} is its extent's only one there");
            *count = *pages;
            self.give(number, *block);
        }
        for (id, (label, counts)) in counts {
            let (pages, holes) = written(&counts);
            self.take(id, InUse { epoch: label.epoch, pages, stream: label.stream });
            if !holes.is_empty() {
                self.holes.insert(id.0, holes);
            }
        }
    }

    fn take(&mut self, id: ExtentId, in_use: InUse) {
        let (set, _) = self.place(id);
        self.extents[id.0 as usize] = Some(in_use);
        self.free[set as usize] -= 1;
        self.free_in_all -= 1;
    }

    /// Frees an extent whose blocks are erased.
    pub(crate) fn free(&mut self, id: ExtentId) {
        let (set, _) = self.place(id);
        let before = self.extents[id.0 as usize].take();
        assert!(before.is_some(), "extent {} is reset once", id.0);
        self.free[set as usize] += 1;
        self.free_in_all += 1;
        self.holes.remove(&id.0);
    }

    /// The blocks of an extent that may hold pages.
    pub(crate) fn written(&self, id: ExtentId) -> Vec<BlockId> {
        let blocks = 0..self.extent(id).pages.min(self.sets.width);
        blocks.map(|position| self.block(id, position)).collect()
    }

    /// Makes `at` the last page of its extent, whose label it returns.
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

    /// Where an extent begins: the index of the unit.
    pub(crate) fn first_unit(&self, id: ExtentId) -> usize {
        let (set, _) = self.place(id);
        self.sets.index(self.sets.unit(set, 0))
    }

    /// The block of an extent in use at `position` of its stripe.
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
            Some(ExtentInfo { id: ExtentId(id), label, pages, holes })
        });
        extents.collect()
    }

    fn extent(&self, id: ExtentId) -> &InUse {
        let extent = self.extents.get(id.0 as usize).and_then(Option::as_ref);
        extent.unwrap_or_else(|| panic!("extent {} is not in use", id.0))
    }

    /// The extent in use with this number in its set.
    fn in_use(&self, set: u32, number: u32) -> Option<&InUse> {
        self.extents.get(self.id(set, number).0 as usize)?.as_ref()
    }

    const fn id(&self, set: u32, number: u32) -> ExtentId {
        ExtentId(number * self.sets.count + set)
    }

    /// The set of an extent, and its number there.
    #[inline]
    const fn place(&self, id: ExtentId) -> (u32, u32) {
        (id.0 % self.sets.count, id.0 / self.sets.count)
    }
}

/// The pages of an extent up to the last one written, and the holes among them, from the number of
/// pages in each of its blocks.
fn written(counts: &[u32]) -> (u32, Vec<u32>) {
    let width = u32::try_from(counts.len()).expect("a stripe has few units");
    let filled = (0..).zip(counts).filter(|(_, count)| **count > 0);
    let ends = filled.map(|(position, count): (u32, _)| (count - 1) * width + position + 1);
    let pages = ends.max().unwrap_or(0);
    let is_hole = |page: &u32| page / width >= counts[(page % width) as usize];
    (pages, (0..pages).filter(is_hole).collect())
}

#[cfg(test)]
mod tests {
    use super::written;

    #[test]
    fn holes_are_the_pages_that_are_missing_below_the_last() {
        assert_eq!(written(&[2, 2, 1]), (5, vec![]));
        assert_eq!(written(&[0, 2, 1]), (5, vec![0, 3]));
        assert_eq!(written(&[1, 0, 0, 3]), (12, vec![1, 2, 4, 5, 6, 8, 9, 10]));
        assert_eq!(written(&[0, 0]), (0, vec![]));
    }
}
