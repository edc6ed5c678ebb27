use crate::page_ftl::block::Block;
use crate::page_ftl::map::Map;
use crate::page_ftl::state::State;
use crate::page_ftl::tickets::Tickets;
use crate::page_ftl::unit::Unit;
use crate::page_ftl::{PageFtl, PageFtlConfig, PageFtlCounts, PageFtlRecovery};
use crate::region::Region;
use base::Rng;
use clock::Class;
use nand::Nand;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;

/// The saved state of an idle page-mapped layer.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedPageFtl {
    map: Map,
    blocks: Vec<Block>,
    units: Vec<SavedUnit>,
    host: u32,
    sequence: u64,
    tickets: u64,
    worth: u32,
    rng: Rng,
    counts: PageFtlCounts,
    live: u64,
    capacity: u64,
    lost_host_pages: u64,
    recovery: PageFtlRecovery,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedUnit {
    free: Vec<u32>,
    /// The block, the taken pages and the class of in-flight programs of each frontier.
    frontiers: [(u32, u32, Class); 2],
    barren: bool,
    died_on_the_way: u64,
    claimed: u32,
    class: Class,
    since_wear: u32,
    unnamed: VecDeque<u32>,
}

impl SavedUnit {
    fn of(unit: &Unit) -> Self {
        let frontiers = [0, 1].map(|at| {
            let frontier = &unit.frontiers[at];
            (frontier.block, frontier.taken, frontier.class)
        });
        Self {
            free: unit.free.clone(),
            frontiers,
            barren: unit.barren,
            died_on_the_way: unit.died_on_the_way,
            claimed: unit.claimed,
            class: unit.class,
            since_wear: unit.since_wear,
            unnamed: unit.unnamed.clone(),
        }
    }

    fn fill(self, unit: &mut Unit) {
        for (frontier, (block, taken, class)) in unit.frontiers.iter_mut().zip(self.frontiers) {
            (frontier.block, frontier.taken, frontier.class) = (block, taken, class);
        }
        unit.free = self.free;
        unit.barren = self.barren;
        unit.died_on_the_way = self.died_on_the_way;
        unit.claimed = self.claimed;
        unit.class = self.class;
        unit.since_wear = self.since_wear;
        unit.unnamed = self.unnamed;
    }
}

impl PageFtl {
    /// Saves the state. `None` while an operation is in progress, or when written data has no place
    /// on the flash.
    pub fn save_state(&self) -> Option<SavedPageFtl> {
        let state = self.state();
        if !state.is_quiet() {
            return None;
        }
        Some(SavedPageFtl {
            map: state.map.clone(),
            blocks: state.blocks.clone(),
            units: state.units.iter().map(SavedUnit::of).collect(),
            host: state.host,
            sequence: state.sequence,
            tickets: state.tickets.last(),
            worth: state.worth,
            rng: state.rng.clone(),
            counts: state.counts,
            live: state.live,
            capacity: state.capacity,
            lost_host_pages: state.lost_host_pages,
            recovery: state.recovery,
        })
    }

    /// Restores the saved layer on a region of an array with the cells saved with it.
    pub fn restore_state(
        nand: Arc<Nand>,
        region: Region,
        config: PageFtlConfig,
        saved: SavedPageFtl,
    ) -> Arc<Self> {
        let ftl = Self::on(nand, region, config);
        {
            let mut state = ftl.state();
            for (unit, saved) in state.units.iter_mut().zip(saved.units) {
                saved.fill(unit);
            }
            state.map = saved.map;
            state.blocks = saved.blocks;
            state.host = saved.host;
            state.sequence = saved.sequence;
            state.tickets = Tickets::restored(saved.tickets);
            state.worth = saved.worth;
            state.rng = saved.rng;
            state.counts = saved.counts;
            state.live = saved.live;
            state.capacity = saved.capacity;
            state.lost_host_pages = saved.lost_host_pages;
            state.recovery = saved.recovery;
        }
        ftl
    }
}

impl State {
    /// True when no task waits and no operation is in progress.
    fn is_quiet(&self) -> bool {
        let is_idle = |unit: &Unit| {
            let is_empty = |at: usize| {
                unit.frontiers[at].open.is_none() && unit.frontiers[at].unlanded.is_empty()
            };
            !unit.cleaning && unit.blocked == 0 && unit.rescues == 0 && is_empty(0) && is_empty(1)
        };
        self.is_still()
            && !self.exhausted
            && self.stranded.is_empty()
            && self.waiters.is_empty()
            && self.host_pages == 0
            && self.tickets.have_landed(self.tickets.last())
            && self.credit.taken() == 0
            && self.units.iter().all(is_idle)
    }
}
