//! Converts a profile to the configuration of each layer.

use crate::profile::{self, LogFtl, NamespaceKind, Profile};
use base::limits::BLOCK_BYTES;
use clock::{CodeCosts, Cores, Gate, Group};
use controller::{Emulation, FirmwareCosts, LinkTiming};
use engine::{Ack, buffered_pages_max};
use ftl::{Frontier, GcBlocking, PageFtlConfig, Stripe, WriteAck, ZonesConfig};
use media::{Media, Shape, Victims};
use nand::{
    Geometry, Level, Levels, Model, Nand, Order, PageMap, Planes, Registers, Retries, Timing,
};
use std::sync::Arc;

/// The parts that all layers of a device share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) group: Group,
    pub(super) gate: Arc<Gate>,
    pub(super) seed: u64,
}

pub(super) fn geometry(nand: &profile::Nand) -> Geometry {
    Geometry {
        channels: nand.channels,
        dies_per_channel: nand.dies_per_channel,
        planes_per_die: nand.planes_per_die,
        blocks_per_plane: nand.blocks_per_plane,
        pages_per_block: nand.pages_per_block,
        page_bytes: nand.page_bytes,
        spare_bytes: nand.spare_bytes,
    }
}

pub(super) fn timing(nand: &profile::Nand, seed: u64) -> Timing {
    let retries = nand.wear.read_retries;
    Timing {
        model: match nand.model {
            profile::Model::Staged => Model::Staged,
            profile::Model::Scalar => Model::Scalar,
        },
        registers: if nand.registers == 1 { Registers::Single } else { Registers::Double },
        levels: levels(&nand.levels),
        erase: nand.erase,
        channel_bytes_per_second: nand.channel_bytes_per_second,
        transfer_bytes: nand.transfer_bytes,
        cache_busy: nand.cache_busy,
        planes: match nand.multi_plane {
            profile::MultiPlane::None => Planes::Alone,
            profile::MultiPlane::Together => Planes::Together,
            profile::MultiPlane::Independent => Planes::Independent,
        },
        program_suspend: nand.suspend.program,
        erase_suspend: nand.suspend.erase,
        resume: nand.suspend.resume,
        order: if nand.read_priority { Order::Class } else { Order::Arrival },
        variability_ppm: nand.wear.variability_ppm,
        retries: retries.map_or(Retries::default(), |retries| Retries {
            fresh_ppm: retries.fresh_ppm,
            worn_ppm: retries.worn_ppm,
            endurance: retries.endurance_cycles,
        }),
        seed,
    }
}

fn levels(levels: &profile::Levels) -> Levels {
    let pairs = levels.read.iter().zip(&levels.program);
    let times: Vec<Level> = pairs.map(|(&read, &program)| Level { read, program }).collect();
    let map: PageMap = levels.page_map.parse().expect("a profile has a page map that was read");
    Levels::new(&times, map)
}

pub(super) fn stripe(stripe: profile::Stripe) -> Stripe {
    match stripe {
        profile::Stripe::Die => Stripe::Die,
        profile::Stripe::Channel => Stripe::Channel,
        profile::Stripe::All => Stripe::All,
    }
}

fn victims(victims: profile::GcVictims) -> Victims {
    match victims {
        profile::GcVictims::Greedy => Victims::Greedy,
        profile::GcVictims::CostBenefit => Victims::CostBenefit,
        profile::GcVictims::Random => Victims::Random,
        profile::GcVictims::Fifo => Victims::Fifo,
        profile::GcVictims::DChoices => Victims::DChoices,
    }
}

/// Returns the configuration of the store of all namespaces of keys and values, whose log is on
/// `media` on `nand`.
///
/// # Panics
/// If the profile has no such namespace.
pub(super) fn store(
    profile: &Profile,
    shared: &Shared,
    nand: &Nand,
    media: &dyn Media,
) -> engine::Config {
    let log = profile.log.as_ref().expect("a device of keys and values has a log");
    let index = profile.index.expect("a device of keys and values has an index");
    engine::Config {
        capacity_bytes: profile.kv_bytes(),
        ack: match log.ack {
            profile::Ack::Program => Ack::Program,
            profile::Ack::Buffer { bytes } => Ack::Buffer { bytes },
        },
        victims: victims(log.gc_victims),
        index: index.make,
        index_config: index.config(profile.kv_bytes()),
        checkpoint_bytes: log.checkpoint_bytes,
        headers_bytes: 0,
        cache_bytes: 0,
        saves_buffer: saves_buffer(profile, &media.shape(), nand.may_fail()),
        reactors: 1,
        group: shared.group,
        seed: shared.seed,
    }
}

/// Returns whether the capacitors have energy for all buffered pages of the store. False if the
/// number of pages has no bound: a failed program rewrites its block, and a page-mapped layer below
/// the log or other namespaces use the same capacitors.
fn saves_buffer(profile: &Profile, shape: &Shape, may_fail: bool) -> bool {
    let (Some(power), Some(log)) = (profile.power, &profile.log) else { return true };
    let profile::Ack::Buffer { bytes } = log.ack else { return true };
    let is_alone = profile.namespaces.iter().all(|one| one.kind == NamespaceKind::Kv);
    let is_bounded = is_alone && !may_fail && log.ftl != LogFtl::Page;
    is_bounded && power.pages() >= buffered_pages_max(shape, bytes)
}

/// Returns whether a loss of power can lose acknowledged, unflushed data: the energy of the
/// capacitors is limited, and the buffer of a namespace may need more. `log` is the medium of the
/// store, if there is one.
pub(super) fn may_forget(profile: &Profile, log: Option<&Shape>, may_fail: bool) -> bool {
    let forgets = |namespace: &profile::Namespace| match &namespace.kind {
        NamespaceKind::Kv => log.is_some_and(|shape| !saves_buffer(profile, shape, may_fail)),
        // The number of pages that these need has no bound known here.
        NamespaceKind::Block(block) => matches!(block.ack, profile::Ack::Buffer { .. }),
        NamespaceKind::Zoned(_) => true,
    };
    profile.power.is_some() && profile.namespaces.iter().any(forgets)
}

/// Returns the configuration of the page-mapped layer of a namespace of `size_bytes`.
pub(super) fn blocks(
    block: &profile::Block,
    size_bytes: u64,
    seed: u64,
    shared: &Shared,
) -> PageFtlConfig {
    PageFtlConfig {
        blocks: size_bytes / u64::from(BLOCK_BYTES),
        ack: match block.ack {
            profile::Ack::Program => WriteAck::Program,
            profile::Ack::Buffer { bytes } => WriteAck::Buffer { bytes },
        },
        victims: victims(block.gc_victims),
        blocking: match block.gc_blocking {
            profile::GcBlocking::Nothing => GcBlocking::Nothing,
            profile::GcBlocking::Controller => GcBlocking::Controller,
            profile::GcBlocking::Channel => GcBlocking::Channel,
            profile::GcBlocking::Plane => GcBlocking::Plane,
        },
        frontier: match block.gc_frontier {
            profile::GcFrontier::Own => Frontier::Own,
            profile::GcFrontier::Shared => Frontier::Shared,
        },
        gc_free_blocks: block.gc_free_blocks,
        wear_gap: block.wear_gap,
        group: shared.group,
        gate: shared.gate.clone(),
        seed,
    }
}

/// Returns the configuration of the page-mapped layer of `size_bytes` below a log. The layer
/// completes writes after the program only, because the log itself decides when to acknowledge.
pub(super) fn log_layer(
    log: &profile::Log,
    size_bytes: u64,
    seed: u64,
    shared: &Shared,
) -> PageFtlConfig {
    let block = profile::Block {
        ack: profile::Ack::Program,
        gc_victims: log.gc_victims,
        gc_blocking: profile::GcBlocking::Nothing,
        gc_frontier: profile::GcFrontier::Own,
        gc_free_blocks: profile::GC_FREE_BLOCKS,
        wear_gap: 0,
    };
    blocks(&block, size_bytes, seed, shared)
}

/// Returns the configuration of a zoned namespace of `size_bytes`, each zone an extent of
/// `extent_bytes`.
pub(super) fn zones(zoned: &profile::Zoned, size_bytes: u64, extent_bytes: u64) -> ZonesConfig {
    let zones = u32::try_from(size_bytes / extent_bytes).expect("a device has fewer blocks");
    ZonesConfig {
        max_open: zoned.max_open,
        max_active: zoned.max_active,
        buffer_bytes: zoned.buffer_bytes,
        zones: Some(zones),
    }
}

/// Returns the controller's configuration. `has_volatile_cache` is the result of [`may_forget`].
pub(super) fn controller(
    profile: &Profile,
    shared: &Shared,
    has_volatile_cache: bool,
) -> controller::Config {
    let (firmware, core) = (&profile.firmware, &profile.core);
    let costs = CodeCosts { parse: core.parse, probe: core.probe, complete: core.complete };
    let emulation = Emulation {
        group: shared.group,
        gate: shared.gate.clone(),
        link: LinkTiming {
            bytes_per_second: profile.link.bytes_per_second,
            transfer: profile.link.transfer,
        },
        handlers: match firmware.handlers {
            profile::Handlers::Count(handlers) => handlers,
            profile::Handlers::Unlimited => u32::MAX,
        },
        costs: FirmwareCosts {
            t_read: firmware.t_read,
            t_write: firmware.t_write,
            t_delete: firmware.t_delete,
            t_exist: firmware.t_exist,
            t_update: firmware.t_update,
            t_write_kib: firmware.t_write_kib,
            t_read_kib: firmware.t_read_kib,
        },
        cores: Cores::new(shared.group, core.count, costs),
    };
    controller::Config { emulation: Some(emulation), has_volatile_cache }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Namespace, Power};

    #[test]
    fn a_buffer_is_sure_to_be_saved_with_energy_for_all_pages_and_nothing_else_that_takes_it() {
        let shape = Shape {
            page_bytes: 4_096,
            spare_bytes: 64,
            pages_per_extent: 32,
            extents: 16,
            parallelism: 4,
            frames: None,
        };
        let mut profile = Profile::load("moke").expect("a built-in profile");
        let mut with = |pages: Option<u64>, change: &dyn Fn(&mut Profile), may_fail: bool| {
            let log = profile.log.as_mut().expect("it has a log");
            log.ack = profile::Ack::Buffer { bytes: 65_536 };
            profile.power = pages.map(|pages| Power { capacitor_nj: 50 * pages, program_nj: 50 });
            let mut profile = profile.clone();
            change(&mut profile);
            saves_buffer(&profile, &shape, may_fail)
        };
        let nothing = |_: &mut Profile| ();
        let log = |profile: &mut Profile| profile.log.take().expect("it has a log");
        let on_pages = |profile: &mut Profile| {
            profile.log = Some(profile::Log { ftl: LogFtl::Page, ..log(profile) });
        };
        let on_program = |profile: &mut Profile| {
            profile.log = Some(profile::Log { ack: profile::Ack::Program, ..log(profile) });
        };
        let beside_zones = |profile: &mut Profile| {
            let kind = NamespaceKind::Zoned(profile::Zoned {
                stripe: profile::Stripe::All,
                max_open: 1,
                max_active: 1,
                buffer_bytes: 65_536,
            });
            let namespace = Namespace { kind, ..profile.namespaces[0].clone() };
            profile.namespaces.push(namespace);
        };
        let most = buffered_pages_max(&shape, 65_536);
        assert!(with(None, &nothing, true), "there is enough energy");
        assert!(with(Some(most), &nothing, false));
        assert!(!with(Some(most - 1), &nothing, false));
        assert!(with(Some(0), &on_program, true), "nothing is in a buffer");
        for change in [&on_pages as &dyn Fn(&mut Profile), &beside_zones] {
            assert!(!with(Some(1 << 40), change, false));
        }
        assert!(!with(Some(1 << 40), &nothing, true), "a program may fail");
    }

    #[test]
    fn a_device_may_forget_what_it_answers_from_memory_beyond_its_capacitors() {
        let none = Power { capacitor_nj: 0, program_nj: 50 };
        let ample = Power { capacitor_nj: 50 << 40, program_nj: 50 };
        let shape = Shape {
            page_bytes: 16_384,
            spare_bytes: 64,
            pages_per_extent: 32,
            extents: 16,
            parallelism: 4,
            frames: None,
        };
        let forgets = |name: &str, answers: Option<profile::Ack>, power: Option<Power>| {
            let mut profile = Profile::load(name).expect("a built-in profile");
            profile.power = power;
            for namespace in &mut profile.namespaces {
                if let (NamespaceKind::Block(block), Some(ack)) = (&mut namespace.kind, answers) {
                    block.ack = ack;
                }
            }
            if let (Some(log), Some(ack)) = (&mut profile.log, answers) {
                log.ack = ack;
            }
            let log = profile.log.is_some().then_some(&shape);
            may_forget(&profile, log, false)
        };
        let buffer = Some(profile::Ack::Buffer { bytes: 4 << 20 });
        let program = Some(profile::Ack::Program);
        for name in ["moke", "970pro", "zn540"] {
            assert!(!forgets(name, buffer, None), "{name}: all that was answered is saved");
            assert!(forgets(name, buffer, Some(none)), "{name}");
        }
        for name in ["moke", "970pro"] {
            assert!(!forgets(name, program, Some(none)), "{name}: it is on the flash");
        }
        assert!(!forgets("moke", buffer, Some(ample)), "there is enough for the whole buffer");
        assert!(forgets("970pro", buffer, Some(ample)), "how much is enough is unknown");
    }
}
