use crate::page_ftl::block::{Block, Phase};
use crate::page_ftl::credit::Credit;
use crate::page_ftl::debt::Debt;
use crate::page_ftl::layout::Layout;
use crate::page_ftl::lookahead::Lookahead;
use crate::page_ftl::map::Map;
use crate::page_ftl::tickets::Tickets;
use crate::page_ftl::unit::Unit;
use crate::page_ftl::{PageFtlConfig, PageFtlCounts, PageFtlRecovery};
use base::Rng;
use clock::TaskId;
use media::{Candidate, Page};
use nand::Cells;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The mutable state of the layer.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) map: Map,
    pub(crate) lookahead: Lookahead,
    pub(crate) blocks: Vec<Block>,
    pub(crate) units: Vec<Unit>,
    /// The unit that hosts write to.
    pub(crate) host: u32,
    /// The number of pages closed so far.
    pub(crate) sequence: u64,
    pub(crate) tickets: Tickets,
    pub(crate) credit: Credit,
    /// Writes that wait for space.
    pub(crate) waiters: Vec<TaskId>,
    /// Dead slots that make a block worth cleaning ahead of need.
    pub(crate) worth: u32,
    pub(crate) rng: Rng,
    /// Reused to save allocations.
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) counts: PageFtlCounts,
    /// Logical blocks that hold something.
    pub(crate) live: u64,
    /// Logical blocks for which the good blocks of flash have room.
    pub(crate) capacity: u64,
    /// Pages whose program failed and whose data has no other place yet.
    pub(crate) stranded: BTreeMap<u32, Page>,
    /// By in-flight page: failed pages of which it holds newer versions.
    pub(crate) heirs: BTreeMap<u32, Vec<Arc<Debt>>>,
    /// True when no page is left for data of a failed program.
    pub(crate) exhausted: bool,
    /// Number of pages in flight.
    pub(crate) under_way: u32,
    /// Of them those of hosts, how many were lost with the power, and the task that waits for all.
    pub(crate) host_pages: u64,
    pub(crate) lost_host_pages: u64,
    /// In-flight pages of the collector with host data of failed pages. There is no power for
    /// these.
    pub(crate) rescuing_pages: u64,
    pub(crate) saver: Option<TaskId>,
    pub(crate) recovery: PageFtlRecovery,
}

impl State {
    /// Returns a state in which every good block is free.
    pub(crate) fn new(
        layout: Layout,
        cells: &Cells,
        config: &PageFtlConfig,
        room: Option<u64>,
    ) -> Self {
        let block = |number| {
            let id = layout.block_id(number);
            let phase = if cells.is_bad(id) { Phase::Bad } else { Phase::Free };
            Block::new(phase, cells.erase_count(id))
        };
        let blocks: Vec<Block> = (0..layout.all_blocks()).map(block).collect();
        let mut units: Vec<Unit> =
            (0..layout.units).map(|_| Unit::new(layout.block_slots(), config.group)).collect();
        for number in 0..layout.all_blocks() {
            if blocks[number as usize].phase == Phase::Free {
                units[layout.unit_of(number) as usize].free.push(number);
            }
        }
        let free: usize = units.iter().map(|unit| unit.free.len()).sum();
        let slots = free as u64 * u64::from(layout.block_slots());
        Self {
            map: Map::new(config.blocks),
            lookahead: Lookahead::default(),
            blocks,
            units,
            host: layout.units - 1,
            sequence: 0,
            tickets: Tickets::default(),
            credit: Credit::new(room),
            waiters: Vec::new(),
            worth: worth(layout, config.blocks, slots),
            rng: Rng::fork(config.seed, 0x6761_7262_6167_6521),
            candidates: Vec::new(),
            counts: PageFtlCounts::default(),
            live: 0,
            capacity: 0,
            stranded: BTreeMap::new(),
            heirs: BTreeMap::new(),
            exhausted: false,
            under_way: 0,
            host_pages: 0,
            lost_host_pages: 0,
            rescuing_pages: 0,
            saver: None,
            recovery: PageFtlRecovery::default(),
        }
    }

    /// True when `more` additional logical blocks would leave cleaning no room.
    pub(crate) const fn is_full(&self, more: u64) -> bool {
        self.exhausted || self.live + more > self.capacity
    }

    /// Has tasks that wait for space look again when nothing under way will free any.
    pub(crate) fn settle(&mut self) {
        if !self.waiters.is_empty() && self.is_still() {
            self.wake_waiters();
        }
    }

    /// True when no page is in flight and no unit cleans.
    pub(crate) fn is_still(&self) -> bool {
        self.under_way == 0 && !self.units.iter().any(|unit| unit.cleaning)
    }

    /// Has all tasks that wait for space look again.
    pub(crate) fn wake_waiters(&mut self) {
        self.waiters.drain(..).for_each(clock::wake);
    }
}

/// Returns half of the dead slots in an average block of a full layer, and at least a page.
/// Cleaning ahead of need then takes victims nearly as good as those it would find in need.
fn worth(layout: Layout, blocks: u64, slots: u64) -> u32 {
    let spare = slots.saturating_sub(blocks) * u64::from(layout.block_slots());
    let half = spare / (2 * slots).max(1);
    u32::try_from(half).expect("no more than a block has").max(layout.slots)
}
