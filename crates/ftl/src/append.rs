use crate::blocks::Blocks;
use crate::region::Region;
use crate::scan::{Found, scan};
use crate::stripe::{Sets, Stripe};
use crate::tag::Tag;
use clock::{Class, LocalFuture, join_all};
use media::{Error, ExtentId, ExtentInfo, Label, Media, Page, PageId, Select, Shape, Starts};
use nand::{BlockId, DieId, Nand, Ppa, TAG_BYTES};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A medium of extents on a region of a flash array.
#[derive(Debug)]
pub struct AppendFtl {
    nand: Arc<Nand>,
    sets: Sets,
    shape: Shape,
    blocks: Mutex<Blocks>,
    starts: Starts,
    unreadable_blocks: u32,
}

impl AppendFtl {
    /// An empty medium on a region whose good blocks are all erased.
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

    /// The medium that the region holds, from its flash alone. Takes the time of the reads it
    /// needs.
    pub async fn open(nand: Arc<Nand>, region: Region, stripe: Stripe) -> Self {
        let geometry = *nand.cells().geometry();
        region.assert_fits(&geometry);
        let sets = Sets::new(stripe, &geometry);
        let scans = sets.units().map(|unit| scan(nand.clone(), region, unit));
        let scans = join_all(scans.collect()).await;
        let mut blocks = Blocks::new(sets, region, nand.cells());
        let unreadable: Vec<u32> = scans.iter().map(|scan| scan.unreadable).collect();
        let found: Vec<_> = scans.into_iter().flat_map(|scan| scan.found).collect();
        let (whole, cut_off): (Vec<Found>, Vec<Found>) = {
            let firsts: BTreeSet<ExtentId> = found
                .iter()
                .filter(|found| found.tag.position == 0)
                .map(|found| found.tag.extent)
                .collect();
            // A first block that cannot be read is lost, which is no sign of a reset.
            let has_first = |found: &Found| {
                let first_unit = blocks.first_unit(found.tag.extent);
                firsts.contains(&found.tag.extent) || unreadable[first_unit] > 0
            };
            found.into_iter().partition(has_first)
        };
        let erases = cut_off.into_iter().map(|found| {
            let nand = nand.clone();
            async move { nand.erase(found.block, Class::HostRead).await }
        });
        join_all(erases.collect()).await;
        blocks.adopt(&whole);
        Self::on(nand, sets, blocks, unreadable.iter().sum())
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
            extents: blocks.capacity(),
            parallelism: geometry.dies() * geometry.planes_per_die,
        };
        Self {
            nand,
            sets,
            shape,
            blocks: Mutex::new(blocks),
            starts: Starts::default(),
            unreadable_blocks,
        }
    }

    /// Blocks that [`Self::open`] erased because their tag could not be read. What they held of an
    /// extent shows as holes in it.
    pub const fn unreadable_blocks(&self) -> u32 {
        self.unreadable_blocks
    }

    /// Memory of the tables: 2 bytes for each good block and 16 for each extent id, so no more than
    /// 4 bytes a block where stripes have 8 planes or more.
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

    async fn program(&self, at: PageId, page: Arc<Page>, class: Class) {
        assert!(page.spare().len() <= self.shape.spare_bytes as usize, "{at} fits its spare area");
        self.starts.pass(at).await;
        let (ppa, label) = {
            let mut blocks = self.blocks();
            let label = blocks.append(at);
            (self.place(&blocks, at), label)
        };
        let tag = Tag { label, extent: at.extent, position: at.page % self.sets.width };
        let tag = (ppa.page == 0).then(|| tag.encode());
        self.nand.program(ppa, page, tag, class).await;
        if at.page == 0 {
            self.starts.landed(at.extent);
        }
    }

    /// Erases an extent's blocks, that of its first page before the others: from then on it is
    /// gone.
    async fn erase(&self, extent: ExtentId, class: Class) {
        let mut written = self.blocks().written(extent).into_iter();
        if let Some(first) = written.next() {
            self.nand.erase(first, class).await;
        }
        let erases = written.map(|block| {
            let nand = self.nand.clone();
            async move { nand.erase(block, class).await }
        });
        join_all(erases.collect()).await;
        self.blocks().free(extent);
    }
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

    fn append(
        &self,
        at: PageId,
        page: Arc<Page>,
        class: Class,
    ) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.program(at, page, class).await;
            Ok(())
        })
    }

    fn read<'a>(
        &'a self,
        at: PageId,
        select: Select<'a>,
        class: Class,
    ) -> LocalFuture<'a, Result<Arc<Page>, Error>> {
        let ppa = self.place(&self.blocks(), at);
        Box::pin(async move { Ok(self.nand.read(ppa, select, class).await) })
    }

    fn reset(&self, extent: ExtentId, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.erase(extent, class).await;
            Ok(())
        })
    }

    /// As the trait says; pages whose programs are under way count as written.
    fn extents(&self) -> Vec<ExtentInfo> {
        self.blocks().extents()
    }
}
