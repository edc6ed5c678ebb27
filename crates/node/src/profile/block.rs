use crate::profile::error::ProfileError;
use crate::profile::log::{Ack, GcVictims};
use crate::profile::nand::Nand;
use crate::profile::section::Section;
use base::human_bytes;
use base::limits::BLOCK_BYTES;
use ftl::Region;
use serde::Serialize;

/// The keys that only a namespace of blocks has.
pub(super) const KEYS: &[&str] = &[
    "ack",
    "buffer_kib",
    "gc_victims",
    "gc_blocking",
    "gc_frontier",
    "gc_free_blocks",
    "wear_gap",
];

pub(super) const GC_BLOCKINGS: &[(&str, GcBlocking)] = &[
    ("nothing", GcBlocking::Nothing),
    ("controller", GcBlocking::Controller),
    ("channel", GcBlocking::Channel),
    ("plane", GcBlocking::Plane),
];

pub(super) const GC_FRONTIERS: &[(&str, GcFrontier)] =
    &[("own", GcFrontier::Own), ("shared", GcFrontier::Shared)];

/// Spare bytes that the layer uses for each page, and for each logical block on it, as
/// `ftl::PageFtl` asserts.
const SPARE_BYTES: u32 = 52;
const SPARE_BYTES_A_SLOT: u32 = 12;

/// Blocks of each plane that cleaning needs for itself, as `ftl::PageFtl::blocks_max` says.
const CLEANING_BLOCKS: u32 = 2;

/// Data bytes of the flash of a layer, whose logical blocks have numbers of 32 bits.
const LAYER_BYTES_MAX: u64 = (1 << 32) * BLOCK_BYTES as u64 - 1;

/// Default number of free blocks of a plane that cleaning keeps.
pub(crate) const GC_FREE_BLOCKS: u32 = 2;

/// A namespace of logical blocks on a page-mapped translation layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Block {
    /// When a write is acknowledged.
    #[serde(flatten)]
    pub ack: Ack,
    /// Which block of a plane is cleaned next.
    pub gc_victims: GcVictims,
    /// Which host commands wait while a block is cleaned.
    pub gc_blocking: GcBlocking,
    /// Where cleaning writes.
    pub gc_frontier: GcFrontier,
    /// Number of free blocks of a plane below which the plane is cleaned.
    pub gc_free_blocks: u32,
    /// Difference of erase counts in a plane above which cold data moves; 0 for no limit.
    pub wear_gap: u32,
}

/// Which host commands wait while a block is cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GcBlocking {
    /// None: cleaning waits for dies and channels as hosts do.
    Nothing,
    /// All hosts' commands.
    Controller,
    /// Commands on the channel of the plane.
    Channel,
    /// Commands on the plane: pages are copied within it.
    Plane,
}

/// Where cleaning writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GcFrontier {
    /// Into a block of its own.
    Own,
    /// Into the block that hosts write.
    Shared,
}

impl Block {
    pub(super) fn read(section: Section<'_>) -> Result<Self, ProfileError> {
        let blocking = section.optional("gc_blocking").map(|field| field.choice(GC_BLOCKINGS));
        let frontier = section.optional("gc_frontier").map(|field| field.choice(GC_FRONTIERS));
        Ok(Self {
            ack: Ack::read(section, BLOCK_BYTES / 1_024)?,
            gc_victims: GcVictims::read(section)?,
            gc_blocking: blocking.transpose()?.unwrap_or(GcBlocking::Nothing),
            gc_frontier: frontier.transpose()?.unwrap_or(GcFrontier::Own),
            gc_free_blocks: section.whole_or("gc_free_blocks", 1..=1_024, GC_FREE_BLOCKS)?,
            wear_gap: section.whole_or("wear_gap", 0..=1_000_000, 0)?,
        })
    }
}

/// Says what is wrong with flash on which no page-mapped layer of `size_bytes` can be, in `region`.
pub(super) fn layer_problem(size_bytes: u64, nand: &Nand, region: Region) -> Result<(), String> {
    let slots = nand.page_bytes / BLOCK_BYTES;
    let spare = SPARE_BYTES + SPARE_BYTES_A_SLOT * slots;
    if nand.spare_bytes < spare {
        return Err(format!(
            "a page-mapped layer notes {spare} bytes beside each page of {} bytes, but spare_bytes \
             is {}",
            nand.page_bytes, nand.spare_bytes
        ));
    }
    let bytes = u64::from(region.count) * nand.row_bytes();
    if bytes > LAYER_BYTES_MAX {
        return Err(format!(
            "the namespace has {} of flash, but a page-mapped layer has less than {}",
            human_bytes(bytes),
            human_bytes(LAYER_BYTES_MAX)
        ));
    }
    let live_pages = u64::from(nand.pages_per_block - 1);
    let live_blocks = u64::from(region.count.saturating_sub(CLEANING_BLOCKS));
    let room = live_blocks * u64::from(nand.units()) * live_pages * u64::from(nand.page_bytes);
    if size_bytes > room {
        return Err(format!(
            "of {} blocks of every plane cleaning keeps {CLEANING_BLOCKS}, and of each other one a \
             page, which leaves {} for {}",
            region.count,
            human_bytes(room),
            human_bytes(size_bytes)
        ));
    }
    Ok(())
}
