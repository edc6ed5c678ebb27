mod repair;
mod repairs;
mod saved;
mod survey;

pub use self::saved::SavedAppendFtl;

use crate::append::repairs::Repairs;
use crate::append::survey::Survey;
use crate::blocks::Blocks;
use crate::region::Region;
use crate::scan::scan;
use crate::stripe::{Sets, Stripe};
use crate::tag::Tag;
use clock::{Class, LocalFuture, join_all};
use media::{Error, ExtentId, ExtentInfo, Label, Media, Page, PageId, Select, Shape, Span, Starts};
use nand::{BlockId, DieId, Nand, Ppa, TAG_BYTES};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A medium of extents on a region of a flash array.
#[derive(Debug)]
pub struct AppendFtl {
    nand: Arc<Nand>,
    sets: Sets,
    shape: Shape,
    blocks: Mutex<Blocks>,
    starts: Starts,
    repairs: Repairs,
    /// Some page of an extent in use was never programmed, though others after it may be.
    has_gaps: AtomicBool,
    unreadable_blocks: u32,
}

/// The class of the work of a start: all hosts of the drive wait for it.
const CLASS: Class = Class::HostRead;

impl AppendFtl {
    /// Returns an empty medium on a region whose good blocks are all erased.
    pub fn format(nand: Arc<Nand>, region: Region, stripe: Stripe) -> Self {
        let cells = nand.cells();
        let geometry = *cells.geometry();
        region.assert_fits(&geometry);
        for die in (0..geometry.dies()).map(DieId) {
            for block in region.blocks_of_die(&geometry).map(|block| BlockId { die, block }) {
                assert!(cells.programmed(block) == 0, "{block} of the array to format is in use");
            }
        }
        let sets = Sets::new(stripe, &geometry);
        let blocks = Blocks::new(sets, region, cells);
        Self::on(nand, sets, blocks, 0)
    }

    /// Reads the medium from the region's flash alone. Takes the time of the reads that it needs.
    pub async fn open(nand: Arc<Nand>, region: Region, stripe: Stripe) -> Self {
        let geometry = *nand.cells().geometry();
        region.assert_fits(&geometry);
        let sets = Sets::new(stripe, &geometry);
        let scans = sets.units().map(|unit| scan(nand.clone(), region, unit));
        let scans = join_all(scans.collect()).await;
        let survey = Survey::new(scans, |extent| sets.unit(extent.0 % sets.count, 0).die);
        let erases = survey.to_erase.into_iter();
        let erases = erases.map(|block| clear(nand.clone(), block, false, CLASS));
        join_all(erases.collect()).await;
        let marks = survey.to_retire.into_iter().map(|block| {
            let nand = nand.clone();
            async move { nand.retire(block, CLASS).await }
        });
        join_all(marks.collect()).await;
        let mut blocks = Blocks::new(sets, region, nand.cells());
        blocks.adopt(&survey.whole);
        Self::on(nand, sets, blocks, survey.unreadable)
    }

    fn on(nand: Arc<Nand>, sets: Sets, blocks: Blocks, unreadable_blocks: u32) -> Self {
        let geometry = nand.cells().geometry();
        let tag_bytes = u32::try_from(TAG_BYTES).expect("a tag is a few bytes");
        let shape = Shape {
            page_bytes: geometry.page_bytes,
            spare_bytes: geometry
                .spare_bytes
                .checked_sub(tag_bytes)
                .expect("the spare area of a page has room for a tag of 24 bytes"),
            pages_per_extent: sets.width * geometry.pages_per_block,
            extents: blocks.extents_in_all(),
            parallelism: geometry.dies() * geometry.planes_per_die,
            frames: None,
        };
        Self {
            nand,
            sets,
            shape,
            has_gaps: AtomicBool::new(blocks.have_holes()),
            blocks: Mutex::new(blocks),
            starts: Starts::default(),
            repairs: Repairs::default(),
            unreadable_blocks,
        }
    }

    /// Keeps [`Self::spare_extents`] fewer extents available, so that each plane has a spare for a
    /// bad block. For a log that must not fail because of one.
    #[must_use]
    pub fn keeping_spares(mut self) -> Self {
        let spares = Self::spare_extents(self.sets.count);
        if spares > 0 {
            self.blocks().keep_spares();
            self.shape.extents = self.shape.extents.saturating_sub(spares);
        }
        self
    }

    /// Returns the extents kept for bad blocks with `stripes` stripe sets. A stripe of all dies
    /// needs only the log's own reserve; of narrower ones each needs its own.
    pub const fn spare_extents(stripes: u32) -> u32 {
        if stripes > 1 { stripes } else { 0 }
    }

    /// Returns the number of blocks that [`Self::open`] erased because their tag was unreadable.
    /// Their pages are holes of their extents.
    pub const fn unreadable_blocks(&self) -> u32 {
        self.unreadable_blocks
    }

    /// Returns the bytes of the tables: 2 for each good block and 16 for each extent id. With
    /// stripes of at least 8 planes that is at most 4 bytes a block.
    pub fn table_bytes(&self) -> usize {
        self.blocks().bytes()
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn place(&self, blocks: &Blocks, at: PageId) -> Ppa {
        let block = blocks.block(at.extent, at.page % self.sets.width);
        Ppa { block, page: at.page / self.sets.width }
    }

    async fn program(&self, at: PageId, page: Page, class: Class) -> Result<(), Error> {
        assert!(page.spare().len() <= self.shape.spare_bytes as usize, "{at} fits its spare area");
        self.starts.pass(at).await;
        let (ppa, tag) = {
            let mut blocks = self.blocks();
            let label = blocks.append(at);
            let ppa = self.place(&blocks, at);
            (ppa, (ppa.page == 0).then(|| self.tag(&blocks, at, label).encode()))
        };
        let result = if self.nand.may_fail() {
            self.program_or_replace(at, ppa, page, tag, class).await
        } else {
            let programmed = self.nand.program(ppa, page, tag, class).await;
            programmed.map_err(|_| Error::PowerLost)
        };
        if at.page == 0 {
            self.starts.landed(at.extent);
        }
        result
    }

    /// Returns the tag for the first page of the block of `at`.
    fn tag(&self, blocks: &Blocks, at: PageId, label: Label) -> Tag {
        let first = blocks.block(at.extent, 0).block;
        let first = u16::try_from(first).expect("a die has at most 65,536 blocks");
        let position = at.page % self.sets.width;
        let replaced = blocks.replaced(at.extent, position);
        Tag { label, extent: at.extent, position, replaced, first }
    }

    /// Returns the tag of a block that replaces the block of `at`.
    fn new_tag(&self, at: PageId, block: BlockId, replaced: u16) -> Tag {
        let blocks = self.blocks();
        let tag = self.tag(&blocks, at, blocks.label(at.extent));
        let number = u16::try_from(block.block).expect("a die has at most 65,536 blocks");
        let first = if tag.position == 0 { number } else { tag.first };
        Tag { replaced, first, ..tag }
    }

    /// True when `ppa` was never programmed for its present extent.
    fn is_missing(&self, ppa: Ppa) -> bool {
        self.blocks().is_out_of_use(ppa.block)
            || ppa.page >= self.nand.cells().programmed(ppa.block)
    }

    /// Notes that the page at `at` is unreadable.
    #[cold]
    fn unrecovered(&self, at: PageId, block: BlockId) -> Error {
        self.blocks().unreadable(at, block);
        Error::Unrecovered(at)
    }

    /// Makes every later append to `extent` fail.
    fn abandon(&self, blocks: &mut Blocks, extent: ExtentId) {
        blocks.abandon(extent);
        self.has_gaps.store(true, Relaxed);
    }

    /// Erases an extent's blocks, starting with that of its first page: without this block the
    /// extent is gone.
    async fn erase(&self, extent: ExtentId, class: Class) {
        let mut written = self.blocks().written(extent).into_iter();
        let mut lost = Vec::new();
        if let Some((first, is_suspect)) = written.next() {
            lost.push(clear(self.nand.clone(), first, is_suspect, class).await);
        }
        let rest = written.map(|(block, suspect)| clear(self.nand.clone(), block, suspect, class));
        lost.extend(join_all(rest.collect()).await);
        let mut blocks = self.blocks();
        lost.into_iter().flatten().for_each(|block| blocks.lose(block));
        blocks.free(extent);
    }
}

/// Erases a block, or retires it if it fails or `is_suspect`. Returns a retired block.
async fn clear(nand: Arc<Nand>, block: BlockId, is_suspect: bool, class: Class) -> Option<BlockId> {
    if nand.erase(block, class).await.is_ok() && !is_suspect {
        return None;
    }
    // No task waits for an erase when the power is gone, so the mark is made or does not matter.
    let _ = nand.retire(block, class).await;
    Some(block)
}

impl Media for AppendFtl {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn free_extents(&self) -> u32 {
        self.blocks().free_extents()
    }

    fn open(&self, label: Label) -> Result<ExtentId, Error> {
        let extent = self.blocks().open(label, self.nand.cells()).ok_or(Error::NoFreeExtent)?;
        self.starts.open(extent);
        Ok(extent)
    }

    fn append(&self, at: PageId, page: Page, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(self.program(at, page, class))
    }

    fn read<'a>(
        &'a self,
        span: Span,
        select: Select<'a>,
        class: Class,
    ) -> LocalFuture<'a, Result<Page, Error>> {
        let at = span.at;
        let ppa = self.place(&self.blocks(), at);
        Box::pin(async move {
            if self.has_gaps.load(Relaxed) && self.is_missing(ppa) {
                return Err(Error::Unrecovered(at));
            }
            let page = self.nand.read(ppa, select, class).await;
            page.map_err(|_| self.unrecovered(at, ppa.block))
        })
    }

    fn reset(&self, extent: ExtentId, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.erase(extent, class).await;
            Ok(())
        })
    }

    fn suspects(&self) -> Vec<ExtentId> {
        self.blocks().suspect_extents()
    }

    /// As the trait says; pages whose programs are under way count as written.
    fn extents(&self) -> Vec<ExtentInfo> {
        self.blocks().extents()
    }
}
