mod block;
mod block_tag;
mod blocking;
mod clean;
mod credit;
mod landing;
mod layout;
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
mod undo;
mod unit;
mod wear;
mod write;

pub use self::recovery::PageFtlRecovery;
pub use self::saved::SavedPageFtl;

use self::blocking::{Gates, Turns};
use self::layout::Layout;
use self::state::State;
use crate::region::Region;
use base::Buf;
use base::limits::BLOCK_BYTES;
use clock::{Class, Gate, Group, LocalFuture, Rank, Stage};
use media::{Blocks, BlocksShape, Error, Segments, Victims};
use nand::{BlockId, Cells, Nand, TAG_BYTES};
use serde::{Deserialize, Serialize};
use std::ops::Add;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// When a write is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteAck {
    /// When all its pages have landed. A page is programmed, padded if need be, as soon as no write
    /// that is ready at this instant joins it.
    Program,
    /// When it is in a buffer, whose pages are programmed as they get full.
    Buffer {
        /// Room for data that has not landed; at least one logical block.
        bytes: u64,
    },
}

/// What is blocked for hosts while a block is cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcBlocking {
    /// Nothing: the collector waits in line, page by page.
    Nothing,
    /// All commands of the device. One block is cleaned at a time: firmware does one thing at once.
    Controller,
    /// The channel of the block: reads wait, writes go to other channels.
    Channel,
    /// The plane of the block, within which pages are moved by copyback. Writes go to other planes.
    /// A block of which copyback would win nothing, since each of its pages holds something live,
    /// is moved through the channel.
    Plane,
}

/// Where the collector writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frontier {
    /// To blocks of its own.
    Own,
    /// To those of the host, in the order in which either comes.
    Shared,
}

/// What [`PageFtl`] is put together from.
#[derive(Clone, Debug)]
pub struct PageFtlConfig {
    /// Logical blocks; at most [`PageFtl::blocks_max`].
    pub blocks: u64,
    /// When writes are answered.
    pub ack: WriteAck,
    /// Which block is cleaned first.
    pub victims: Victims,
    /// What is blocked for hosts while a block is cleaned.
    pub blocking: GcBlocking,
    /// Where the collector writes.
    pub frontier: Frontier,
    /// Free blocks of a plane at which cleaning starts, above which it ends; at least 1.
    pub gc_free_blocks: u32,
    /// By how many erases a plane's blocks may differ before wear levelling moves data; 0 for
    /// never.
    pub wear_gap: u32,
    /// In which the array is waited for.
    pub group: Group,
    /// Closed while a block is cleaned, with [`GcBlocking::Controller`].
    pub gate: Arc<Gate>,
    /// Draws victims.
    pub seed: u64,
}

/// What a [`PageFtl`] has done since it was put together, in logical blocks unless it says
/// otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageFtlCounts {
    /// Written by hosts.
    pub host_blocks: u64,
    /// Moved by cleaning and wear levelling.
    pub moved_blocks: u64,
    /// Blocks of flash cleaned for space.
    pub victims: u64,
    /// Pages moved without crossing a channel.
    pub copybacks: u64,
    /// Given up by hosts while they held something.
    pub trims: u64,
    /// Blocks of flash moved to even out wear.
    pub wear_moves: u64,
    /// Blocks of flash marked as bad.
    pub retired_blocks: u64,
}

impl Add for PageFtlCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            host_blocks: self.host_blocks + other.host_blocks,
            moved_blocks: self.moved_blocks + other.moved_blocks,
            victims: self.victims + other.victims,
            copybacks: self.copybacks + other.copybacks,
            trims: self.trims + other.trims,
            wear_moves: self.wear_moves + other.wear_moves,
            retired_blocks: self.retired_blocks + other.retired_blocks,
        }
    }
}

/// Free blocks of a plane that only the collector gets, so that it can always move one more.
const RESERVED_BLOCKS: usize = 1;

/// Most pages that a page tells about.
const NAMES_MAX: u32 = 4;

/// Logical blocks on pages of flash, anywhere.
///
/// # How it works
/// 1. A write joins the open page of the host's frontier, and the map names the new place from then
///    on. A full page is closed and programmed by a task of its own; the next page is opened on the
///    next plane in turn that has room: neighbours on different channels, dies and planes, in that
///    order.
/// 2. A read of what has not landed is served from memory. Neighbours on one page are one read of
///    the flash; several pages are read side by side.
/// 3. When the free blocks of a plane run low a task cleans in it: it moves what lives in a victim
///    to another block of the plane and erases it.
/// 4. The spare bytes of a page name its logical blocks and the order in which pages were closed.
///    [`PageFtl::open`] reads them all; what was closed last holds.
/// 5. They also hold a checksum of each logical block, and name what is in a few pages that landed
///    before, so that it is known what is lost with one of these.
/// 6. When a program fails, what the page held goes to another. A block of flash that has failed is
///    marked as bad once nothing lives in it. A logical block that cannot be read is copied as
///    lost.
///
/// # Guarantees
/// - What has landed outlives a loss of power, until what overwrote it has landed.
/// - Space never runs out for good: [`PageFtl::blocks_max`] leaves what cleaning needs. Where too
///   many blocks of flash have failed for that, or losses of power have used up what cleaning
///   needs, writes fail with [`Error::ReadOnly`], and reads go on.
/// - A logical block that can no longer be read as it was written fails with
///   [`Error::UnrecoveredBlock`] until it is written or trimmed, also after a start. Others do not.
/// - Memory is 4 bytes for each logical block near one that was written, 4 for each slot and 8 for
///   each page of a block of flash in use, and what has not landed.
///
/// # Trusts
/// - A caller that reads, writes or trims holds nothing with [`GcBlocking::Controller`], and nor
///   does one that reads with [`GcBlocking::Channel`].
/// - A caller that writes or flushes holds nothing.
///
/// # Not here
/// Trims are not kept: what was trimmed and not cleaned away since is back after
/// [`PageFtl::open`], perhaps in an older version.
#[derive(Debug)]
pub struct PageFtl {
    me: Weak<Self>,
    nand: Arc<Nand>,
    layout: Layout,
    config: PageFtlConfig,
    gates: Gates,
    turns: Turns,
    zeros: Buf,
    /// Pages that a page tells about.
    names: u32,
    state: Mutex<State>,
}

impl PageFtl {
    /// Fewest spare bytes of a page of `page_bytes`, tag of its block included.
    pub const fn spare_bytes_min(page_bytes: u32) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "a few bytes for each slot of a page")]
        let bytes = (spare::spare_bytes(page_bytes / BLOCK_BYTES, 1) + TAG_BYTES) as u32;
        bytes
    }

    /// Nothing, on a region whose good blocks are all erased.
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

    /// What the region holds, from its flash alone. Takes the time of the reads it needs. So many
    /// of its blocks may have failed by now that it can only be read.
    pub async fn open(nand: Arc<Nand>, region: Region, config: PageFtlConfig) -> Arc<Self> {
        let ftl = Self::on(nand, region, config);
        ftl.scan().await;
        ftl
    }

    /// The most logical blocks that a region of this array takes. Each plane needs a block that is
    /// free for the collector, one that the collector is filling, and in each other one page that
    /// is not live: then cleaning the block with least that lives always wins something.
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

    /// What it took to open it; nothing if it was formatted.
    pub fn recovery(&self) -> PageFtlRecovery {
        self.state().recovery
    }

    /// What it has done so far.
    pub fn counts(&self) -> PageFtlCounts {
        self.state().counts
    }

    #[inline]
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This, for a task of its own.
    fn me(&self) -> Arc<Self> {
        self.me.upgrade().expect("whoever calls holds it")
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

    /// Closes what hosts have open and waits until everything they wrote has landed. Fails when
    /// something of it never will.
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

/// A logical block as the map counts them.
#[inline]
fn number(block: u64) -> u32 {
    u32::try_from(block).expect("there are less than 2^32 logical blocks")
}

impl Blocks for PageFtl {
    fn shape(&self) -> BlocksShape {
        let parallelism = self.layout.units;
        BlocksShape { block_bytes: BLOCK_BYTES, blocks: self.config.blocks, parallelism }
    }

    fn expect(&self, first: u64) {
        self.state().map.prefetch(number(first));
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
