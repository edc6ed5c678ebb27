mod content;
mod header;
mod saved;
mod scan;

use crate::blocks::{Blocks, Segments, cut};
use crate::error::Error;
use crate::extent::{ExtentId, ExtentInfo, Label, PageId, Shape, Span};
use crate::medium::{Media, Select};
use crate::page::Page;
use crate::starts::Starts;
use base::Buf;
use clock::{Class, LocalFuture};
use header::{HEADERS_BYTES, Header, PageHeader};
pub use saved::SavedLogOnBlocks;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Data blocks of a page. With the block beside them a page takes eight, a power of two as pages of
/// flash have, and an eighth of the medium stands in for a spare area; fewer would cost more of it,
/// and more would move more for each read, which takes the whole page.
const DATA_BLOCKS: u32 = 7;
const PAGE_BLOCKS: u32 = DATA_BLOCKS + 1;

/// Extents that a medium is cut into, if their pages are within these bounds: enough that a log
/// wastes little of it on open and reserved ones, and not so few pages that summaries weigh.
const EXTENTS: u64 = 256;
const EXTENT_PAGES_MIN: u64 = 32;
const EXTENT_PAGES_MAX: u64 = 256;

/// A medium of extents on logical blocks.
///
/// Each page has a block for what other media keep in a spare area, and then those for its data, of
/// which a short page writes no more than it needs. An extent is there from when its first page has
/// landed until that page's block says that it was reset.
///
/// It relies on blocks that keep what was answered over a loss of power, and each block as a whole.
pub struct LogOnBlocks {
    blocks: Arc<dyn Blocks>,
    shape: Shape,
    block_bytes: u32,
    extents: Mutex<Vec<Extent>>,
    starts: Starts,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Extent {
    /// How often it was opened.
    opening: u32,
    in_use: Option<InUse>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct InUse {
    label: Label,
    pages: u32,
    holes: Vec<u32>,
    /// Pages that have not landed.
    under_way: BTreeSet<u32>,
}

impl LogOnBlocks {
    /// An empty medium on blocks that were never written. Panics where they are too few for one
    /// extent.
    pub fn format(blocks: Arc<dyn Blocks>) -> Self {
        let shape = shape(&*blocks);
        let extents = vec![Extent::default(); shape.extents as usize];
        Self::on(blocks, shape, extents)
    }

    /// The medium that the blocks hold. Takes the time of reading one block for each extent, and
    /// for each page of those in use; and of what may have been cut off in the middle, all blocks.
    /// A page of which a block cannot be read is a hole, or cannot be read later; an extent is
    /// there while one of its pages is.
    pub async fn open(blocks: Arc<dyn Blocks>) -> Result<Self, Error> {
        let shape = shape(&*blocks);
        let empty = Arc::new(Self::on(blocks, shape, Vec::new()));
        let scans = (0..shape.extents).map(|extent| {
            let medium = empty.clone();
            async move { medium.scan(ExtentId(extent)).await }
        });
        let found = clock::join_all(scans.collect()).await;
        let extents = found.into_iter().map(Extent::from).collect();
        Ok(Self::on(empty.blocks.clone(), shape, extents))
    }

    fn on(blocks: Arc<dyn Blocks>, shape: Shape, extents: Vec<Extent>) -> Self {
        let block_bytes = blocks.shape().block_bytes;
        let extents = Mutex::new(extents);
        Self { blocks, shape, block_bytes, extents, starts: Starts::default() }
    }

    fn extents(&self) -> MutexGuard<'_, Vec<Extent>> {
        self.extents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The block beside the data of a page; those of the data follow.
    const fn first_block(&self, at: PageId) -> u64 {
        let page = at.extent.0 as u64 * self.shape.pages_per_extent as u64 + at.page as u64;
        page * PAGE_BLOCKS as u64
    }

    /// The header of a page's place, if there is one that can be read.
    async fn header(&self, at: PageId, class: Class) -> Option<Header> {
        let block = self.blocks.read(self.first_block(at), 1, class).await;
        self.header_of(&block.ok()?)
    }

    fn header_of(&self, blocks: &[Buf]) -> Option<Header> {
        let block = Buf::join(&cut(blocks, 0, self.block_bytes)?)?;
        Header::decode(block.bytes()?)
    }

    async fn blocks_of(&self, at: PageId, class: Class) -> Result<Segments, Error> {
        self.blocks.read(self.first_block(at), PAGE_BLOCKS, class).await
    }

    async fn write(&self, at: PageId, page: &Page, class: Class) -> Result<(), Error> {
        assert!(page.data_bytes() <= self.shape.page_bytes, "the data of {at} fits its page");
        assert!(page.spare().len() <= self.shape.spare_bytes as usize, "{at} fits its spare area");
        self.starts.pass(at).await;
        let header = self.begin_page(at);
        let blocks = content::encode(header, page, self.block_bytes);
        let result = self.blocks.write(self.first_block(at), blocks, class).await;
        if result.is_ok() {
            in_use(&mut self.extents(), at.extent).1.under_way.remove(&at.page);
        }
        if at.page == 0 {
            self.starts.landed(at.extent);
        }
        result
    }

    /// Makes `at` the last page of its extent.
    fn begin_page(&self, at: PageId) -> Header {
        let mut extents = self.extents();
        let (opening, extent) = in_use(&mut extents, at.extent);
        assert!(extent.holes.is_empty(), "{at} lies behind pages that were cut off");
        assert!(extent.pages == at.page, "{at} is appended after {} others", extent.pages);
        assert!(at.page < self.shape.pages_per_extent, "{at} lies within its extent");
        let page = PageHeader {
            page: at.page,
            landed: extent.under_way.first().copied().unwrap_or(at.page),
            label: extent.label,
            data_len: 0,
            first_len: 0,
            spare_len: 0,
            checksum: 0,
        };
        extent.pages += 1;
        extent.under_way.insert(at.page);
        Header { extent: at.extent, opening, page: Some(page) }
    }

    /// Says in the block beside the first page that the extent was reset, and then gives up all
    /// others.
    async fn erase(&self, extent: ExtentId, class: Class) -> Result<(), Error> {
        let (opening, pages) = {
            let mut extents = self.extents();
            let (opening, extent) = in_use(&mut extents, extent);
            (opening, extent.pages)
        };
        if pages > 0 {
            let header = Header { extent, opening, page: None };
            let block = content::encode(header, &Page::new(&[], []), self.block_bytes);
            let first = self.first_block(PageId { extent, page: 0 });
            self.blocks.write(first, block, class).await?;
            let more = u64::from(pages) * u64::from(PAGE_BLOCKS) - 1;
            self.blocks.trim(first + 1, more, class).await?;
        }
        self.extents()[extent.0 as usize].in_use = None;
        Ok(())
    }
}

/// The sizes of a medium on `blocks`.
fn shape(blocks: &dyn Blocks) -> Shape {
    let of_blocks = blocks.shape();
    let pages = of_blocks.blocks / u64::from(PAGE_BLOCKS);
    let wanted = (pages / EXTENTS).max(1).next_power_of_two();
    let pages_per_extent = wanted.clamp(EXTENT_PAGES_MIN, EXTENT_PAGES_MAX);
    let extents = u32::try_from(pages / pages_per_extent).expect("extents are counted in 32 bits");
    assert!(extents > 0, "{} blocks are too few for an extent", of_blocks.blocks);
    let headers_bytes = u32::try_from(HEADERS_BYTES).expect("a header is a few bytes");
    Shape {
        page_bytes: DATA_BLOCKS * of_blocks.block_bytes,
        spare_bytes: of_blocks.block_bytes - headers_bytes,
        pages_per_extent: u32::try_from(pages_per_extent).expect("it is bounded"),
        extents,
        parallelism: of_blocks.parallelism,
        frames: None,
    }
}

/// The number of an extent's opening, and what is known of it.
fn in_use(extents: &mut [Extent], id: ExtentId) -> (u32, &mut InUse) {
    let Extent { opening, in_use } = &mut extents[id.0 as usize];
    (*opening, in_use.as_mut().unwrap_or_else(|| panic!("extent {} is not in use", id.0)))
}

impl Media for LogOnBlocks {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn free_extents(&self) -> u32 {
        let free = self.extents().iter().filter(|extent| extent.in_use.is_none()).count();
        u32::try_from(free).expect("extents are counted in 32 bits")
    }

    fn open(&self, label: Label) -> Result<ExtentId, Error> {
        let mut extents = self.extents();
        let free = (0..).zip(&mut *extents).find(|(_, extent)| extent.in_use.is_none());
        let (id, extent) = free.ok_or(Error::NoFreeExtent)?;
        extent.opening += 1;
        let (holes, under_way) = (Vec::new(), BTreeSet::new());
        extent.in_use = Some(InUse { label, pages: 0, holes, under_way });
        self.starts.open(ExtentId(id));
        Ok(ExtentId(id))
    }

    fn append(&self, at: PageId, page: Page, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.write(at, &page, class).await })
    }

    /// As the trait says, but for `select`: the whole page is read at once, since to look at it
    /// first would take a second read.
    fn read<'a>(
        &'a self,
        span: Span,
        _: Select<'a>,
        class: Class,
    ) -> LocalFuture<'a, Result<Page, Error>> {
        let at = span.at;
        Box::pin(async move {
            let opening = in_use(&mut self.extents(), at.extent).0;
            let blocks = self.blocks_of(at, class).await.map_err(|error| match error {
                Error::UnrecoveredBlock(_) => Error::Unrecovered(at),
                other => other,
            })?;
            let header = self.header_of(&blocks).ok_or(Error::Unrecovered(at))?;
            let header = header.page_at(at, opening).ok_or(Error::Unrecovered(at))?;
            let page = content::decode(header, &blocks, self.block_bytes);
            page.ok_or(Error::Unrecovered(at))
        })
    }

    fn reset(&self, extent: ExtentId, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(self.erase(extent, class))
    }

    /// As the trait says; pages whose writes are under way count as written.
    fn extents(&self) -> Vec<ExtentInfo> {
        let extents = self.extents();
        let used = (0..).zip(&*extents).filter_map(|(id, extent)| {
            let InUse { label, pages, holes, .. } = extent.in_use.clone()?;
            Some(ExtentInfo { id: ExtentId(id), label, pages, holes, summary: None })
        });
        used.collect()
    }
}

impl fmt::Debug for LogOnBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogOnBlocks of {:?}", self.shape)
    }
}
