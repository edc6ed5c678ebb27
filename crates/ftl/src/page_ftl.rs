mod block;
mod block_tag;
mod blocking;
mod clean;
mod config;
mod counts;
mod credit;
mod debt;
mod gates;
mod landing;
mod layout;
mod lookahead;
mod map;
mod open_page;
mod pieces;
mod program;
mod read;
mod recovery;
mod rescue;
mod save;
mod saved;
mod scan;
mod spare;
mod state;
mod tickets;
mod turns;
mod undo;
mod unit;
mod wear;
mod write;

pub use self::config::{Frontier, GcBlocking, PageFtlConfig, WriteAck};
pub use self::counts::PageFtlCounts;
pub use self::recovery::PageFtlRecovery;
pub use self::saved::SavedPageFtl;

use self::gates::Gates;
use self::layout::Layout;
use self::lookahead::READS_MAX;
use self::state::State;
use self::turns::Turns;
use crate::region::Region;
use base::Buf;
use base::limits::BLOCK_BYTES;
use clock::{Class, LocalFuture, Rank, Stage};
use media::{Access, Blocks, BlocksShape, Error, Segments};
use nand::{BlockId, Cells, Nand, TAG_BYTES};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Free blocks of a plane reserved for the collector, so that it can always move one more block.
const RESERVED_BLOCKS: usize = 1;

/// The most pages that the spare bytes of a page name.
const NAMES_MAX: u32 = 4;

/// Maps logical blocks to flash pages at any place.
///
/// # How it works
/// 1. A write joins the open page of the host's frontier and updates the map at once. A full page
///    is closed, and a task programs it. The next page is opened on the next plane in turn that has
///    room: neighbours lie on different channels, dies and planes, in that order.
/// 2. A read of a page that has not landed is served from memory. Neighbours on one page need one
///    flash read; several pages are read side by side.
/// 3. When the free blocks of a plane run low, a task cleans there: it moves live data of a victim
///    to another block of the plane and erases the victim.
/// 4. The spare bytes of a page name its logical blocks and the order in which pages were closed.
///    [`PageFtl::open`] reads them all; the page that was closed last wins.
/// 5. They also hold a checksum of each logical block, and name the content of a few earlier pages:
///    if one of these becomes unreadable, the loss is known.
/// 6. When a program fails, the page's data moves to another page. A failed flash block is marked
///    as bad once it holds no live data. An unreadable logical block is copied as lost.
///
/// # Guarantees
/// - Landed data survives a loss of power until newer data of its block has landed.
/// - Cleaning always has space: [`PageFtl::blocks_max`] reserves it. If failed blocks or losses of
///   power use up the reserve, writes fail with [`Error::ReadOnly`] and reads still work.
/// - A logical block that cannot be read as written fails with [`Error::UnrecoveredBlock`] until it
///   is written or trimmed, also after a start. Others do not.
/// - Memory is 4 bytes for each logical block near one that was written, 4 for each slot and 8 for
///   each page of a block of flash in use, and what has not landed.
///
/// # Trusts
/// - A caller that reads, writes or trims holds nothing with [`GcBlocking::Controller`], and nor
///   does one that reads with [`GcBlocking::Channel`].
/// - A caller that writes or flushes holds nothing.
///
/// # Not here
/// Trims are not durable: after [`PageFtl::open`] a trimmed block that was not cleaned has data
/// again, perhaps an older version.
#[derive(Debug)]
pub struct PageFtl {
    me: Weak<Self>,
    nand: Arc<Nand>,
    layout: Layout,
    config: PageFtlConfig,
    gates: Gates,
    turns: Turns,
    zeros: Buf,
    /// Number of pages that the spare bytes of a page name.
    names: u32,
    state: Mutex<State>,
}

impl PageFtl {
    /// Returns the fewest spare bytes of a page of `page_bytes`, including the block tag.
    pub const fn spare_bytes_min(page_bytes: u32) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "a few bytes for each slot of a page")]
        let bytes = (spare::spare_bytes(page_bytes / BLOCK_BYTES, 1) + TAG_BYTES) as u32;
        bytes
    }

    /// Returns an empty layer, on a region whose good blocks are all erased.
    pub fn format(nand: Arc<Nand>, region: Region, config: PageFtlConfig) -> Arc<Self> {
        let most = Self::blocks_max(nand.cells(), region);
        assert!(
            config.blocks <= most,
            "{} logical blocks leave cleaning no room: this region takes at most {most}",
            config.blocks
        );
        let ftl = Self::on(nand, region, config);
        for block in 0..ftl.layout.all_blocks() {
            let id = ftl.layout.block_id(block);
            assert!(ftl.nand.cells().programmed(id) == 0, "{id} of the region is in use");
        }
        ftl
    }

    /// Reads the layer from the region's flash alone. Takes the time of the reads that it needs.
    /// The layer is read-only if too many of its blocks have failed.
    pub async fn open(nand: Arc<Nand>, region: Region, config: PageFtlConfig) -> Arc<Self> {
        let ftl = Self::on(nand, region, config);
        ftl.scan().await;
        ftl
    }

    /// Returns the most logical blocks that a region of this array takes. Each plane needs a free
    /// block for the collector, a block that the collector fills, and one page without live data in
    /// each other block. Cleaning the block with least live data then always wins space.
    pub fn blocks_max(cells: &Cells, region: Region) -> u64 {
        region.assert_fits(cells.geometry());
        let layout = Layout::new(cells.geometry(), region);
        let live_max = u64::from((layout.pages - 1) * layout.slots);
        let of_unit = |unit| {
            let blocks = layout.blocks_of(unit).map(|block| layout.block_id(block));
            let good = blocks.filter(|block: &BlockId| !cells.is_bad(*block)).count() as u64;
            good.saturating_sub(2) * live_max
        };
        (0..layout.units).map(of_unit).sum()
    }

    fn on(nand: Arc<Nand>, region: Region, config: PageFtlConfig) -> Arc<Self> {
        let cells = nand.cells();
        let geometry = *cells.geometry();
        let most = Self::blocks_max(cells, region);
        let layout = Layout::new(&geometry, region);
        let spare = |names: &u32| spare::spare_bytes(layout.slots, *names) + TAG_BYTES;
        let fits = |names: &u32| spare(names) <= geometry.spare_bytes as usize;
        let names = (1..=NAMES_MAX)
            .take_while(fits)
            .last()
            .unwrap_or_else(|| panic!("the spare area of a page has room for {} bytes", spare(&1)));
        let room = match config.ack {
            WriteAck::Program => None,
            WriteAck::Buffer { bytes } => Some(bytes / u64::from(BLOCK_BYTES)),
        };
        assert!(room.is_none_or(|room| room > 0), "a buffer has room for a logical block");
        let state = State::new(layout, cells, &config, room);
        let gates = Gates::new(geometry.channels);
        let zeros = Buf::copy_from(&[0; BLOCK_BYTES as usize]);
        let mut state = state;
        state.capacity = most;
        let state = Mutex::new(state);
        Arc::new_cyclic(|me| {
            let me = me.clone();
            let turns = Turns::default();
            Self { me, nand, layout, config, gates, turns, zeros, names, state }
        })
    }

    /// Returns the counters of [`Self::open`]; zeros after [`Self::format`].
    pub fn recovery(&self) -> PageFtlRecovery {
        self.state().recovery
    }

    /// Returns the counters since the layer was made.
    pub fn counts(&self) -> PageFtlCounts {
        self.state().counts
    }

    #[inline]
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a handle to this layer for a new task.
    fn me(&self) -> Arc<Self> {
        self.me.upgrade().expect("the caller holds a reference")
    }

    #[inline]
    fn assert_holds(&self, first: u64, count: u64) {
        let blocks = self.config.blocks;
        assert!(
            first.checked_add(count).is_some_and(|end| end <= blocks),
            "{count} blocks from {first} are not of {blocks}"
        );
    }

    #[inline]
    async fn pass_gate(&self) {
        if self.config.blocking == GcBlocking::Controller {
            self.config.gate.pass().await;
        }
    }

    fn forget(&self, first: u64, count: u64) {
        let mut state = self.state();
        let end = first + count;
        let mut at = state.map.skip_unwritten(first);
        while at < end {
            let slot = state.map.clear(number(at));
            if slot != layout::NONE {
                state.counts.trims += 1;
                state.live -= 1;
                self.kill(&mut state, slot, 0);
            }
            at = state.map.skip_unwritten(at + 1);
        }
    }

    /// Closes the hosts' open pages and waits until all host data has landed. Fails when some of it
    /// never will.
    async fn land_all(&self) -> Result<(), Error> {
        let ticket = {
            let mut state = self.state();
            self.close_host_page(&mut state);
            let ticket = state.tickets.last();
            if state.tickets.have_landed(ticket) {
                return Ok(());
            }
            if state.exhausted {
                return Err(Error::ReadOnly);
            }
            state.tickets.wake_when_landed(ticket, clock::current());
            ticket
        };
        clock::park(Rank::Free, Stage::Batch).await;
        let state = self.state();
        let has_landed = state.tickets.have_landed(ticket);
        assert!(has_landed || state.exhausted, "woken when it is so, or never will be");
        if has_landed { Ok(()) } else { Err(Error::ReadOnly) }
    }
}

/// Returns the number of a logical block in the map.
#[inline]
fn number(block: u64) -> u32 {
    u32::try_from(block).expect("there are less than 2^32 logical blocks")
}

impl Blocks for PageFtl {
    fn shape(&self) -> BlocksShape {
        let parallelism = self.layout.units;
        BlocksShape { block_bytes: BLOCK_BYTES, blocks: self.config.blocks, parallelism }
    }

    fn expect(&self, first: u64, access: Access) {
        let mut state = self.state();
        state.map.prefetch(number(first));
        if access == Access::Read && self.nand.senses_at_once() {
            state.lookahead.announce(number(first));
        }
    }

    fn read(
        &self,
        first: u64,
        count: u32,
        class: Class,
    ) -> LocalFuture<'_, Result<Segments, Error>> {
        self.assert_holds(first, count.into());
        Box::pin(async move {
            self.pass_gate().await;
            self.read_blocks(number(first), count, class).await
        })
    }

    fn reads_at_once(&self) -> bool {
        self.config.blocking == GcBlocking::Nothing && self.nand.is_instant()
    }

    fn read_at_once(&self, reads: &[(u64, u32)], contents: &mut Vec<Option<Segments>>) {
        let reads = reads.iter().map(|&(first, count)| {
            self.assert_holds(first, count.into());
            (number(first), count)
        });
        let reads: SmallVec<[(u32, u32); READS_MAX]> = reads.collect();
        self.read_blocks_at_once(&reads, contents);
    }

    /// As the trait says. Pages are programmed in the class of host writes, whatever `class` is:
    /// those of a block must not overtake each other.
    fn write(
        &self,
        first: u64,
        data: Segments,
        _class: Class,
    ) -> LocalFuture<'_, Result<(), Error>> {
        let bytes: u64 = data.iter().map(|part| u64::from(part.len())).sum();
        assert!(bytes.is_multiple_of(BLOCK_BYTES.into()), "{bytes} bytes are not whole blocks");
        let count = bytes / u64::from(BLOCK_BYTES);
        self.assert_holds(first, count);
        Box::pin(async move {
            self.pass_gate().await;
            self.write_blocks(number(first), number(count), data).await
        })
    }

    fn trim(&self, first: u64, count: u64, _class: Class) -> LocalFuture<'_, Result<(), Error>> {
        self.assert_holds(first, count);
        Box::pin(async move {
            self.pass_gate().await;
            self.forget(first, count);
            Ok(())
        })
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(self.land_all())
    }
}
