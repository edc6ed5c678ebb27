mod config;
mod error;
mod log_medium;
mod maker;
mod namespace;
mod opened;
mod power;
mod saved;

pub use self::error::DeviceError;
pub use self::opened::Opened;
pub use self::power::PowerLoss;
pub use self::saved::SavedDevice;

use self::log_medium::LogMedium;
use self::maker::{Flash, Maker};
use self::namespace::Namespace;
use crate::profile::Profile;
use clock::Part;
use controller::Controller;
use engine::{KeySpaceId, Store};
use ftl::{PageFtl, PageFtlCounts, Zones};
use media::Blocks;
use nand::{Cells, FaultPlan, FaultReport, Nand};
use reactor::Reactor;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An emulated drive: the flash, translation layers and controller of a profile. A namespace is a
/// store of keys and values, blocks or zones.
#[derive(Debug)]
pub struct Device {
    nand: Arc<Nand>,
    controller: Arc<Controller>,
    /// The medium of the store's log, if the device has a store.
    log: Option<LogMedium>,
    /// In the order of their ids.
    namespaces: Vec<Namespace>,
    /// The device's part of the clock.
    part: Part,
    /// Pages that the capacitors can program; `None` if their energy is unlimited.
    capacitor_pages: Option<u64>,
}

/// Counters of a device since it was built. All only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// The flash.
    pub nand: nand::Counters,
    /// The store; all zero without one.
    pub store: engine::Counts,
    /// Its index; all zero without one. `dram_bytes` and `table_bytes` also shrink.
    pub index: engine::IndexCounts,
    /// The page-mapped layers of all namespaces and of the log.
    pub blocks: PageFtlCounts,
}

impl Device {
    /// The id of the first namespace.
    pub const NAMESPACE: u32 = 1;

    /// Returns new cells for `profile`; `seed` decides which blocks are bad from the factory.
    pub fn manufacture(profile: &Profile, seed: u64) -> Arc<Cells> {
        let nand = &profile.nand;
        let worn = nand.wear.worn_cycles;
        Arc::new(Cells::new(config::geometry(nand), nand.factory_bad_ppm, worn, seed))
    }

    /// Returns why no device of `profile` can be made with `seed`, as [`Self::format`] does: the
    /// seed decides which blocks are bad from the factory. Called outside of any reactor.
    pub fn check(profile: &Profile, seed: u64) -> Result<(), DeviceError> {
        if profile.nand.factory_bad_ppm == 0 {
            // What is left depends on the profile alone, which was checked when it was read.
            return Ok(());
        }
        let cells = Self::manufacture(profile, seed);
        let format = Self::format(profile, cells, seed, FaultPlan::default());
        Reactor::new(None).run(format).map(drop)
    }

    /// Returns a device on blank `cells` with empty namespaces. Its flash has the faults of the
    /// plan, starting now. Runs inside a reactor.
    pub async fn format(
        profile: &Profile,
        cells: Arc<Cells>,
        seed: u64,
        faults: FaultPlan,
    ) -> Result<Self, DeviceError> {
        let maker = Maker::new(profile, cells, seed, faults);
        let (device, _) = maker.device(Flash::Blank).await?;
        for (nsid, namespace) in (1..).zip(&device.namespaces) {
            if let Namespace::Kv(store) = namespace {
                store.create_key_space(KeySpaceId(nsid)).await?;
            }
        }
        Ok(device)
    }

    /// Opens the device on `cells` and rebuilds all tables from the flash. A fault plan applies to
    /// the flash from the first operation. Runs inside a reactor.
    pub async fn open(
        profile: &Profile,
        cells: Arc<Cells>,
        seed: u64,
        faults: FaultPlan,
    ) -> Result<(Self, Opened), DeviceError> {
        Maker::new(profile, cells, seed, faults).device(Flash::Written).await
    }

    /// Returns the controller, which creates queue pairs.
    pub fn controller(&self) -> &Arc<Controller> {
        &self.controller
    }

    /// Returns the store of all namespaces of keys and values.
    ///
    /// # Panics
    /// If the device has none. See [`Self::kv`].
    pub fn store(&self) -> &Arc<Store> {
        self.kv().expect("a device without keys and values has no store")
    }

    /// Returns the store of all namespaces of keys and values, if there are any.
    pub fn kv(&self) -> Option<&Arc<Store>> {
        self.controller.kv()
    }

    /// Returns the page-mapped layer of namespace `nsid`, if that is of blocks.
    pub fn blocks(&self, nsid: u32) -> Option<&Arc<PageFtl>> {
        match self.namespace(nsid)? {
            Namespace::Block(blocks) => Some(blocks),
            _ => None,
        }
    }

    /// Returns the zones of namespace `nsid`, if it is of zones.
    pub fn zones(&self, nsid: u32) -> Option<&Arc<Zones>> {
        match self.namespace(nsid)? {
            Namespace::Zoned(zones, _) => Some(zones),
            _ => None,
        }
    }

    /// Returns the flash cells, which outlive the device.
    pub fn cells(&self) -> &Arc<Cells> {
        self.nand.cells()
    }

    /// Writes all acknowledged data of all namespaces from memory to the flash.
    pub async fn flush(&self) -> Result<(), engine::Error> {
        if let Some(store) = self.kv() {
            store.flush().await?;
        }
        for namespace in &self.namespaces {
            match namespace {
                Namespace::Kv(_) => {}
                Namespace::Block(layer) => layer.flush().await?,
                Namespace::Zoned(zones, _) => zones.flush().await,
            }
        }
        Ok(())
    }

    /// Returns the faults of the flash so far.
    pub fn faults(&self) -> FaultReport {
        self.nand.faults()
    }

    /// Returns the device's counters.
    pub fn figures(&self) -> Figures {
        let layers = self.namespaces.iter().filter_map(|namespace| match namespace {
            Namespace::Block(layer) => Some(layer),
            Namespace::Kv(_) | Namespace::Zoned(..) => None,
        });
        let log_layer = self.log.as_ref().and_then(LogMedium::layer);
        let counts = layers.chain(log_layer).map(|layer| layer.counts());
        let blocks = counts.fold(PageFtlCounts::default(), |sum, counts| sum + counts);
        let store = self.kv().map(|store| store.counters()).unwrap_or_default();
        let index = self.kv().map(|store| store.index_counts()).unwrap_or_default();
        Figures { nand: self.nand.counters(), store, index, blocks }
    }

    fn namespace(&self, nsid: u32) -> Option<&Namespace> {
        self.namespaces.get((nsid as usize).checked_sub(1)?)
    }
}
