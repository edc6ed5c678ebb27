use base::Nanos;
use clock::{Gate, Group};
use ftl::{Frontier, GcBlocking, PageFtl, PageFtlConfig, Region, WriteAck};
use media::Victims;
use nand::{Cells, FaultPlan, Geometry, Model, Nand, Registers, Timing};
use reactor::Reactor;
use std::sync::Arc;

pub(crate) const READ: Nanos = Nanos::from_micros(45);
pub(crate) const PROGRAM: Nanos = Nanos::from_micros(660);
pub(crate) const ERASE: Nanos = Nanos::from_micros(3_500);
/// A logical block crosses a channel in 4,096 ns.
pub(crate) const CHANNEL_BYTES_PER_SECOND: u64 = 1_000_000_000;

pub(crate) const VICTIMS: [Victims; 5] =
    [Victims::Greedy, Victims::CostBenefit, Victims::Random, Victims::Fifo, Victims::DChoices];
pub(crate) const BLOCKINGS: [GcBlocking; 4] =
    [GcBlocking::Nothing, GcBlocking::Controller, GcBlocking::Channel, GcBlocking::Plane];
pub(crate) const FRONTIERS: [Frontier; 2] = [Frontier::Own, Frontier::Shared];

pub(crate) const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 1,
    planes_per_die: 2,
    blocks_per_plane: 12,
    pages_per_block: 6,
    page_bytes: 16_384,
    spare_bytes: 160,
};

/// One die with one plane.
pub(crate) const fn one_plane(blocks: u32, pages: u32) -> Geometry {
    Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: blocks,
        pages_per_block: pages,
        page_bytes: 4_096,
        spare_bytes: 160,
    }
}

pub(crate) const fn region(geometry: &Geometry) -> Region {
    Region { first: 0, count: geometry.blocks_per_plane }
}

pub(crate) fn cells(geometry: Geometry) -> Arc<Cells> {
    Arc::new(Cells::new(geometry, 0, 0, 0))
}

/// Returns a setup with the most logical blocks, where a write waits for its program.
pub(crate) fn config(cells: &Cells) -> Setup {
    let config = PageFtlConfig {
        blocks: PageFtl::blocks_max(cells, region(cells.geometry())),
        ack: WriteAck::Program,
        victims: Victims::Greedy,
        blocking: GcBlocking::Nothing,
        frontier: Frontier::Own,
        gc_free_blocks: 1,
        wear_gap: 0,
        group: Reactor::new(None).run(async { Group::new() }),
        gate: Arc::new(Gate::new()),
        seed: 1,
    };
    Setup { config, read: READ, shuffle: None, faults: FaultPlan::default() }
}

/// The parameters of a run; each run makes its own group.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) config: PageFtlConfig,
    /// How long a sense takes.
    pub(crate) read: Nanos,
    pub(crate) shuffle: Option<u64>,
    pub(crate) faults: FaultPlan,
}

impl Setup {
    fn nand(&mut self, cells: &Arc<Cells>) -> Arc<Nand> {
        self.config.group = Group::new();
        self.config.gate = Arc::new(Gate::new());
        let timing = Timing::uniform(
            Model::Staged,
            Registers::Double,
            self.read,
            PROGRAM,
            ERASE,
            CHANNEL_BYTES_PER_SECOND,
        );
        Arc::new(Nand::new(cells.clone(), timing, self.faults.clone(), self.config.group))
    }

    /// Runs `body` on erased `cells`.
    pub(crate) fn on_blank<T>(
        mut self,
        cells: &Arc<Cells>,
        body: impl AsyncFnOnce(Arc<PageFtl>, Arc<Nand>) -> T,
    ) -> T {
        Reactor::new(self.shuffle).run(async {
            let nand = self.nand(cells);
            let region = region(cells.geometry());
            body(PageFtl::format(nand.clone(), region, self.config), nand).await
        })
    }

    /// Runs `body` on the content of `cells`.
    pub(crate) fn on_written<T>(
        mut self,
        cells: &Arc<Cells>,
        body: impl AsyncFnOnce(Arc<PageFtl>, Arc<Nand>) -> T,
    ) -> T {
        Reactor::new(self.shuffle).run(async {
            let nand = self.nand(cells);
            let region = region(cells.geometry());
            body(PageFtl::open(nand.clone(), region, self.config).await, nand).await
        })
    }
}
