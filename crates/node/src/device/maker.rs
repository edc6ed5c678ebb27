use crate::device::Device;
use crate::device::config::{self, Shared};
use crate::device::error::DeviceError;
use crate::device::log_medium::LogMedium;
use crate::device::namespace::Namespace;
use crate::device::opened::Opened;
use crate::profile::{LogFtl, NamespaceKind, Power, Profile, Stripe, Zoned};
use base::limits::BLOCK_BYTES;
use base::mix;
use clock::{Gate, Group, Part};
use controller::Controller;
use engine::{Recovery, SPARE_EXTENTS_MIN, Store};
use ftl::{AppendFtl, PageFtl, PageFtlConfig, Region, Zones, ZonesRecovery};
use media::{LogOnBlocks, Media};
use nand::{Cells, FaultPlan, Nand};
use std::sync::Arc;

/// Whether the flash has content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flash {
    /// Nothing.
    Blank,
    /// An earlier device has written it.
    Written,
}

/// Builds a device layer by layer.
#[derive(Debug)]
pub(super) struct Maker<'p> {
    pub(super) profile: &'p Profile,
    pub(super) nand: Arc<Nand>,
    pub(super) shared: Shared,
    part: Part,
}

/// A store, the cost of its recovery, and the page-mapped layer below its log, if any.
#[derive(Debug)]
struct Keys {
    store: Arc<Store>,
    recovery: Recovery,
    log: LogMedium,
}

impl<'p> Maker<'p> {
    pub(super) fn new(
        profile: &'p Profile,
        cells: Arc<Cells>,
        seed: u64,
        faults: FaultPlan,
    ) -> Self {
        let part = Part::begin();
        let shared = Shared { group: Group::new(), gate: Arc::new(Gate::new()), seed };
        let nand = Nand::new(cells, config::timing(&profile.nand, seed), faults, shared.group);
        Self { profile, nand: Arc::new(nand), shared, part }
    }

    /// Builds the device on `flash`. Its namespaces of keys are those found there: none if blank.
    pub(super) async fn device(self, flash: Flash) -> Result<(Device, Opened), DeviceError> {
        let start = clock::now();
        let regions = self.profile.regions();
        let mut keys: Option<Keys> = None;
        let mut namespaces = Vec::new();
        let mut lost_pages = 0;
        for (nsid, (namespace, region)) in (1..).zip(self.profile.namespaces.iter().zip(regions)) {
            let size_bytes = namespace.size_bytes;
            namespaces.push(match &namespace.kind {
                NamespaceKind::Kv => {
                    let store = match &keys {
                        Some(keys) => keys.store.clone(),
                        None => keys.insert(self.store(nsid, region, flash).await?).store.clone(),
                    };
                    Namespace::Kv(store)
                }
                NamespaceKind::Block(block) => {
                    let config = config::blocks(block, size_bytes, self.seed(nsid), &self.shared);
                    let layer = self.layer(nsid, region, config, flash).await?;
                    lost_pages += layer.recovery().lost_pages;
                    Namespace::Block(layer)
                }
                NamespaceKind::Zoned(zoned) => {
                    let (zones, recovery) =
                        self.zones(nsid, zoned, size_bytes, region, flash).await?;
                    lost_pages += recovery.lost_pages;
                    zones
                }
            });
        }
        let recovery = keys.as_ref().map(|keys| keys.recovery);
        let log = keys.map(|keys| keys.log);
        let log_layer = log.as_ref().and_then(LogMedium::layer);
        lost_pages += recovery.map_or(0, |recovery| recovery.lost_pages);
        lost_pages += log_layer.map_or(0, |layer| layer.recovery().lost_pages);
        let opened = Opened { recovery, lost_pages, time: clock::now() - start };
        Ok((self.finish(namespaces, log), opened))
    }

    /// Puts a controller in front of all namespaces.
    pub(super) fn finish(self, namespaces: Vec<Namespace>, log: Option<LogMedium>) -> Device {
        let shape = log.as_ref().map(|log| log.media().shape());
        let forgets = config::may_forget(self.profile, shape.as_ref(), self.nand.may_fail());
        let controller = Controller::new(
            namespaces.iter().map(Namespace::of_controller).collect(),
            config::controller(self.profile, &self.shared, forgets),
        );
        let capacitor_pages = self.profile.power.map(Power::pages);
        let part = self.part.end();
        Device { nand: self.nand, controller, log, namespaces, part, capacitor_pages }
    }

    /// The store of all namespaces of keys, of which `nsid` is the first.
    async fn store(&self, nsid: u32, region: Region, flash: Flash) -> Result<Keys, DeviceError> {
        let log = self.profile.log.as_ref().expect("a device of keys and values has a log");
        let log = match log.ftl {
            LogFtl::Append { stripe } => LogMedium::Extents(Arc::new(
                self.extents(region, stripe, flash).await.keeping_spares(),
            )),
            LogFtl::Page => {
                let size_bytes = self.profile.log_layer_bytes().expect("there is such a layer");
                let config = config::log_layer(log, size_bytes, self.seed(nsid), &self.shared);
                let layer = self.layer(nsid, region, config, flash).await?;
                let log = match flash {
                    Flash::Blank => LogOnBlocks::format(layer.clone()),
                    Flash::Written => {
                        LogOnBlocks::open(layer.clone()).await.map_err(engine::Error::from)?
                    }
                };
                LogMedium::Blocks(layer, Arc::new(log))
            }
        };
        let media = log.media();
        self.check_store(nsid, &*media)?;
        let config = config::store(self.profile, &self.shared, &self.nand, &*media);
        let (store, recovery) = match flash {
            Flash::Blank => (Store::format(media, config), Recovery::default()),
            Flash::Written => Store::open(media, config).await?,
        };
        Ok(Keys { store, recovery, log })
    }

    async fn extents(&self, region: Region, stripe: Stripe, flash: Flash) -> AppendFtl {
        let (nand, stripe) = (self.nand.clone(), config::stripe(stripe));
        match flash {
            Flash::Blank => AppendFtl::format(nand, region, stripe),
            Flash::Written => AppendFtl::open(nand, region, stripe).await,
        }
    }

    /// The page-mapped layer of namespace `nsid`, or below its log.
    async fn layer(
        &self,
        nsid: u32,
        region: Region,
        config: PageFtlConfig,
        flash: Flash,
    ) -> Result<Arc<PageFtl>, DeviceError> {
        let room = PageFtl::blocks_max(self.nand.cells(), region);
        // Worn flash still opens, at least for reading, so the size is checked on blank flash only.
        if flash == Flash::Blank && config.blocks > room {
            let bytes = |blocks| blocks * u64::from(BLOCK_BYTES);
            return Err(self.too_many_bad(nsid, bytes(config.blocks), bytes(room)));
        }
        let nand = self.nand.clone();
        Ok(match flash {
            Flash::Blank => PageFtl::format(nand, region, config),
            Flash::Written => PageFtl::open(nand, region, config).await,
        })
    }

    async fn zones(
        &self,
        nsid: u32,
        zoned: &Zoned,
        size_bytes: u64,
        region: Region,
        flash: Flash,
    ) -> Result<(Namespace, ZonesRecovery), DeviceError> {
        let media = Arc::new(self.extents(region, zoned.stripe, flash).await);
        let shape = media.shape();
        let config = config::zones(zoned, size_bytes, shape.extent_bytes());
        let extents = shape.extents.saturating_sub(Zones::SPARE_EXTENTS);
        if config.zones > Some(extents) {
            let room = u64::from(extents) * shape.extent_bytes();
            return Err(self.too_many_bad(nsid, size_bytes, room));
        }
        let (zones, recovery) = match flash {
            Flash::Blank => (Zones::format(media.clone(), config), ZonesRecovery::default()),
            Flash::Written => {
                Zones::open(media.clone(), config).await.map_err(engine::Error::from)?
            }
        };
        Ok((Namespace::Zoned(zones, media), recovery))
    }

    fn check_store(&self, nsid: u32, media: &dyn Media) -> Result<(), DeviceError> {
        let (shape, size_bytes) = (media.shape(), self.profile.kv_bytes());
        let extents = u64::from(shape.extents.saturating_sub(SPARE_EXTENTS_MIN));
        if size_bytes <= extents * shape.extent_bytes() {
            return Ok(());
        }
        Err(DeviceError::TooSmall {
            place: self.profile.place_of_size(nsid),
            extents: shape.extents,
            extent_bytes: shape.extent_bytes(),
            size_bytes,
        })
    }

    fn too_many_bad(&self, nsid: u32, size_bytes: u64, room_bytes: u64) -> DeviceError {
        let place = self.profile.place_of_size(nsid);
        DeviceError::TooManyBad { place, nsid, size_bytes, room_bytes }
    }

    /// Returns the seed of a namespace's random choices.
    pub(super) const fn seed(&self, nsid: u32) -> u64 {
        mix(self.shared.seed ^ nsid as u64)
    }
}
