use crate::profile::{self, Profile};
use clock::{CodeCosts, Cores, Group};
use controller::{Controller, FirmwareCosts, LinkTiming};
use engine::{Ack, KeySpaceId, Recovery, SPARE_EXTENTS_MIN, Store, Victims};
use ftl::{AppendFtl, Stripe};
use media::Media;
use nand::{Cells, Geometry, Model, Nand, Registers, Timing};
use std::sync::Arc;

/// An emulated KV-SSD: flash, translation layer, store and controller, as a profile has them.
#[derive(Debug)]
pub struct Device {
    nand: Arc<Nand>,
    controller: Arc<Controller>,
}

/// Why a device cannot be put together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// Too little is left for cleaning.
    #[error(
        "{name}: {extents} extents of {extent_bytes} bytes leave less than {SPARE_EXTENTS_MIN} \
         of them beside the {size_bytes} bytes that hosts see; make size_gb smaller, or extents \
         smaller by another stripe"
    )]
    TooSmall {
        /// The profile.
        name: String,
        /// Extents that the good blocks make.
        extents: u32,
        /// Data bytes of each.
        extent_bytes: u64,
        /// The namespace's size in bytes.
        size_bytes: u64,
    },
    /// The store refused, or what the flash holds is damaged.
    #[error("the device cannot be opened: {0}")]
    Store(#[from] engine::Error),
}

/// What a device has done since it was put together. All only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The flash.
    pub nand: nand::Counters,
    /// The store.
    pub store: engine::Counts,
}

impl Device {
    /// The id of the only namespace.
    pub const NAMESPACE: u32 = 1;

    /// Fresh cells for `profile`; `seed` decides which blocks are bad from the factory.
    pub fn manufacture(profile: &Profile, seed: u64) -> Arc<Cells> {
        let nand = &profile.nand;
        let geometry = Geometry {
            channels: nand.channels,
            dies_per_channel: nand.dies_per_channel,
            planes_per_die: nand.planes_per_die,
            blocks_per_plane: nand.blocks_per_plane,
            pages_per_block: nand.pages_per_block,
            page_bytes: nand.page_bytes,
            spare_bytes: nand.spare_bytes,
        };
        Arc::new(Cells::new(geometry, nand.factory_bad_ppm, seed))
    }

    /// A device on blank `cells`, with one empty namespace. Runs inside a reactor.
    pub async fn format(
        profile: &Profile,
        cells: Arc<Cells>,
        seed: u64,
    ) -> Result<Self, DeviceError> {
        let group = Group::new();
        let nand = Arc::new(Nand::new(cells, timing(&profile.nand), group));
        let ftl: Arc<dyn Media> = Arc::new(AppendFtl::format(nand.clone(), stripe(profile)));
        check_size(profile, &*ftl)?;
        let store = Store::format(ftl, store_config(profile, group, seed));
        store.create_key_space(KeySpaceId(1)).await?;
        Ok(Self { controller: controller(profile, group, store), nand })
    }

    /// The device that `cells` hold: all tables are rebuilt from the flash. Runs inside a reactor.
    pub async fn open(
        profile: &Profile,
        cells: Arc<Cells>,
        seed: u64,
    ) -> Result<(Self, Recovery), DeviceError> {
        let group = Group::new();
        let nand = Arc::new(Nand::new(cells, timing(&profile.nand), group));
        let ftl: Arc<dyn Media> = Arc::new(AppendFtl::open(nand.clone(), stripe(profile)).await);
        check_size(profile, &*ftl)?;
        let (store, recovery) = Store::open(ftl, store_config(profile, group, seed)).await?;
        Ok((Self { controller: controller(profile, group, store), nand }, recovery))
    }

    /// The controller, which makes queue pairs.
    pub fn controller(&self) -> &Arc<Controller> {
        &self.controller
    }

    /// The store behind the controller.
    pub fn store(&self) -> &Arc<Store> {
        self.controller.store()
    }

    /// What survives the device.
    pub fn cells(&self) -> &Arc<Cells> {
        self.nand.cells()
    }

    /// What the device has done so far.
    pub fn figures(&self) -> Figures {
        Figures { nand: self.nand.counters(), store: self.store().counters() }
    }
}

fn timing(nand: &profile::Nand) -> Timing {
    Timing {
        model: match nand.model {
            profile::Model::Staged => Model::Staged,
            profile::Model::Scalar => Model::Scalar,
        },
        registers: if nand.registers == 1 { Registers::Single } else { Registers::Double },
        read: nand.read,
        program: nand.program,
        erase: nand.erase,
        channel_bytes_per_second: nand.channel_bytes_per_second,
    }
}

fn stripe(profile: &Profile) -> Stripe {
    match profile.log.stripe {
        profile::Stripe::Die => Stripe::Die,
        profile::Stripe::Channel => Stripe::Channel,
        profile::Stripe::All => Stripe::All,
    }
}

fn check_size(profile: &Profile, media: &dyn Media) -> Result<(), DeviceError> {
    let shape = media.shape();
    let usable = u64::from(shape.extents.saturating_sub(SPARE_EXTENTS_MIN)) * shape.extent_bytes();
    if profile.namespace.size_bytes <= usable {
        return Ok(());
    }
    Err(DeviceError::TooSmall {
        name: profile.name.clone(),
        extents: shape.extents,
        extent_bytes: shape.extent_bytes(),
        size_bytes: profile.namespace.size_bytes,
    })
}

fn store_config(profile: &Profile, group: Group, seed: u64) -> engine::Config {
    engine::Config {
        capacity_bytes: profile.namespace.size_bytes,
        ack: match profile.log.ack {
            profile::Ack::Program => Ack::Program,
            profile::Ack::Buffer { bytes } => Ack::Buffer { bytes },
        },
        victims: match profile.log.gc_victims {
            profile::GcVictims::Greedy => Victims::Greedy,
            profile::GcVictims::CostBenefit => Victims::CostBenefit,
            profile::GcVictims::Random => Victims::Random,
            profile::GcVictims::Fifo => Victims::Fifo,
            profile::GcVictims::DChoices => Victims::DChoices,
        },
        index: profile.index.make,
        group,
        seed,
    }
}

fn controller(profile: &Profile, group: Group, store: Arc<Store>) -> Arc<Controller> {
    let (firmware, core) = (&profile.firmware, &profile.core);
    let costs = CodeCosts { parse: core.parse, probe: core.probe, complete: core.complete };
    let config = controller::Config {
        group,
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
        },
        cores: Cores::new(group, core.count, costs),
    };
    Controller::new(store, config)
}
