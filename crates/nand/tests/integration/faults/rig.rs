//! A small array without bad blocks.

use base::{Buf, Nanos};
use clock::{Class, Group};
use media::Page;
use nand::{
    BlockId, Cells, DieId, FaultKind, FaultPlan, FaultRule, Geometry, Model, Nand, ProgramError,
    ReadError, Registers, Timing, When,
};
use reactor::Reactor;
use std::sync::Arc;

pub(crate) const GEOMETRY: Geometry = Geometry {
    channels: 1,
    dies_per_channel: 2,
    planes_per_die: 2,
    blocks_per_plane: 50,
    pages_per_block: 4,
    page_bytes: 4_096,
    spare_bytes: 64,
};

pub(crate) const READ: Nanos = Nanos(1_000);
pub(crate) const PROGRAM: Nanos = Nanos(10_000);
pub(crate) const ERASE: Nanos = Nanos(50_000);
/// Of a whole page, at one byte a nanosecond.
pub(crate) const TRANSFER: Nanos = Nanos(4_096);
pub(crate) const MODELS: [Model; 2] = [Model::Staged, Model::Scalar];
pub(crate) const TAG: [u8; 24] = [5; 24];

pub(crate) fn timing(model: Model) -> Timing {
    Timing::uniform(model, Registers::Single, READ, PROGRAM, ERASE, 1_000_000_000)
}

pub(crate) fn cells() -> Arc<Cells> {
    Arc::new(Cells::new(GEOMETRY, 0, 0, 0))
}

pub(crate) fn array(cells: &Arc<Cells>, model: Model, rules: &[FaultRule]) -> Arc<Nand> {
    let plan = FaultPlan { seed: 7, rules: rules.to_vec() };
    Arc::new(Nand::new(cells.clone(), timing(model), plan, Group::new()))
}

/// Runs `body` on an erased array with these faults.
pub(crate) fn on<T>(rules: &[FaultRule], body: impl AsyncFnOnce(Arc<Nand>) -> T) -> T {
    let cells = cells();
    Reactor::new(None).run(async { body(array(&cells, Model::Staged, rules)).await })
}

pub(crate) const fn nth(kind: FaultKind, number: u64) -> FaultRule {
    FaultRule::new(kind, When::Nth(number))
}

pub(crate) const fn block(die: u32, block: u32) -> BlockId {
    BlockId { die: DieId(die), block }
}

pub(crate) const fn ppa(die: u32, number: u32, page: u32) -> nand::Ppa {
    nand::Ppa { block: block(die, number), page }
}

pub(crate) fn page(content: u64) -> Page {
    Page::new(&content.to_le_bytes(), [Buf::phantom(1_000, content)])
}

pub(crate) async fn program(nand: &Nand, at: nand::Ppa, content: u64) -> Result<(), ProgramError> {
    let tag = (at.page == 0).then_some(TAG);
    nand.program(at, page(content), tag, Class::HostWrite).await
}

pub(crate) async fn read(nand: &Nand, at: nand::Ppa) -> Result<u64, ReadError> {
    let page = nand.read(at, &Page::data_bytes, Class::HostRead).await?;
    Ok(page.segments()[0].checksum())
}
