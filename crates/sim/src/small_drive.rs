use base::Rng;
use engine::SPARE_EXTENTS_MIN;
use media::Shape;
use node::profile::{Ack, GcVictims, Handlers, Index, LogFtl, Model, Power, Stripe};
use node::{INDEXES, Profile};

/// Records that a page of the drive holds, with values of the lengths that are usual here, and a
/// margin.
pub(crate) const RECORDS_ON_PAGE: usize = 24;

/// Pages of its blocks that are usual. Values may have half as many bytes as the pages of a block,
/// and more on longer stripes.
pub(crate) const PAGES_PER_BLOCK: u32 = 16;

/// Bytes that a key takes with its value on average, at least.
const KEY_BYTES_MIN: u64 = 1_000;

/// The profile `moke` made so small that it is full at once and cleans all the time, and with
/// another choice of everything that may matter to order and content. Each index has its turn, with
/// ties broken in both ways.
pub(crate) fn small_drive(seed: u64, pages_per_block: u32, rng: &mut Rng) -> Profile {
    let mut profile = Profile::load("moke").expect("a built-in profile");
    let choice = |bound, rng: &mut Rng| usize::try_from(rng.below(bound)).expect("a few");
    let nand = &mut profile.nand;
    (nand.channels, nand.dies_per_channel) = (2, 2);
    (nand.blocks_per_plane, nand.pages_per_block) = (14, pages_per_block);
    nand.page_bytes = 4_096;
    nand.spare_bytes = [64, 256, 1_024][choice(3, rng)];
    nand.registers = 1 + u32::from(rng.below(2) == 0);
    nand.model = if rng.below(8) == 0 { Model::Scalar } else { Model::Staged };
    profile.firmware.handlers = match rng.below(3) {
        0 => Handlers::Unlimited,
        more => Handlers::Count(u32::try_from(1 + 3 * (more - 1)).expect("1 or 4")),
    };
    let log = profile.log.as_mut().expect("moke has a log");
    let stripe = match rng.below(3) {
        0 => Stripe::Die,
        1 => Stripe::Channel,
        _ => Stripe::All,
    };
    log.ftl = LogFtl::Append { stripe };
    log.ack = if rng.below(5) == 0 { Ack::Buffer { bytes: 64 << 10 } } else { Ack::Program };
    if log.ack != Ack::Program {
        let pages = [None, Some(0), Some(rng.below(20))][choice(3, rng)];
        // As many nanojoules as pages.
        profile.power = pages.map(|capacitor_nj| Power { capacitor_nj, program_nj: 1 });
    }
    log.gc_victims = match rng.below(5) {
        0 => GcVictims::Greedy,
        1 => GcVictims::CostBenefit,
        2 => GcVictims::Random,
        3 => GcVictims::Fifo,
        _ => GcVictims::DChoices,
    };
    let (index, _) = INDEXES[usize::try_from(seed / 2 % INDEXES.len() as u64).expect("a few")];
    let index = Index::named(index).expect("it is registered");
    profile.index = Some(index);
    if index.has_budget() {
        profile.nand.blocks_per_plane *= 2;
    }
    fit(&mut profile, stripe, rng);
    profile
}

/// Makes the namespace as large as the log and the table of its index leave it room, and a quarter
/// less.
fn fit(profile: &mut Profile, stripe: Stripe, rng: &mut Rng) {
    let nand = &profile.nand;
    let extents = stripe.log_extents(nand, nand.blocks_per_plane);
    let shape = Shape {
        page_bytes: nand.page_bytes,
        spare_bytes: nand.spare_bytes,
        pages_per_extent: nand.pages_per_block * stripe.units(nand),
        extents: u32::try_from(extents).expect("a few"),
        parallelism: nand.units(),
        frames: None,
    };
    let all = u64::from(shape.extents - SPARE_EXTENTS_MIN) * shape.extent_bytes();
    let index = profile.index.as_mut().expect("it was just chosen");
    let tables = if index.has_budget() {
        index.keys_max = Some(all / KEY_BYTES_MIN);
        let floor = index.config(all).dram_bytes;
        index.dram_bytes = Some(floor + rng.below(floor));
        index.table_extents(all, &shape)
    } else {
        0
    };
    profile.namespaces[0].size_bytes = (all - u64::from(tables) * shape.extent_bytes()) * 3 / 4;
}

/// Whether stores are answered before they are on the flash.
pub(crate) fn is_buffered(profile: &Profile) -> bool {
    profile.log.as_ref().is_some_and(|log| log.ack != Ack::Program)
}
