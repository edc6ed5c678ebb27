use crate::device::config;
use crate::device::maker::Maker;
use crate::device::{Device, LogMedium, Namespace};
use crate::profile::{LogFtl, NamespaceKind, Profile};
use crate::state::{Origin, Problem, Reader, Writer};
use clock::SavedClock;
use controller::SavedNamespaces;
use engine::{NotSaved, SavedStore, Store};
use ftl::{AppendFtl, PageFtl, Region, SavedAppendFtl, SavedPageFtl, SavedZones, Zones};
use media::{LogOnBlocks, Media, SavedLogOnBlocks};
use nand::{Cells, DieId, FaultPlan, SavedDie, SavedNand};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::sync::Arc;

/// An idle device, read from a saved state and checked.
#[derive(Debug)]
pub struct SavedDevice {
    clock: SavedClock,
    cells: Cells,
    nand: SavedNand,
    keys: Option<SavedKeys>,
    namespaces: Vec<SavedNamespace>,
    features: Features,
    load: Vec<u8>,
    incarnation: u64,
}

/// The store and the medium of its log.
#[derive(Debug, Serialize, Deserialize)]
struct SavedKeys {
    medium: SavedMedium,
    store: SavedStore,
}

#[derive(Debug, Serialize, Deserialize)]
enum SavedMedium {
    Extents(Box<SavedAppendFtl>),
    Blocks(Box<(SavedPageFtl, SavedLogOnBlocks)>),
}

#[derive(Debug, Serialize, Deserialize)]
enum SavedNamespace {
    Kv,
    Block(Box<SavedPageFtl>),
    Zoned(Box<(SavedAppendFtl, SavedZones)>),
}

/// Features set by hosts.
#[derive(Debug, Serialize, Deserialize)]
struct Features {
    delete_reports_missing: bool,
    namespaces: SavedNamespaces,
}

impl Device {
    /// Writes the whole device, its [incarnation](crate::state) and `load`, data of the caller, to
    /// `out`. Callers run it inside the device's reactor, after [a flush](Self::flush) and when no
    /// task of the device runs.
    ///
    /// Fails with [`Problem::Busy`] if an operation is in flight, and with [`Problem::Index`] if
    /// the index is of a kind that cannot be saved.
    pub fn save(
        &self,
        origin: Origin<'_>,
        incarnation: u64,
        load: &[u8],
        out: &mut dyn Write,
    ) -> Result<(), Problem> {
        let keys = self.save_keys(origin.profile)?;
        let namespaces = self.namespaces.iter().map(Namespace::save);
        let namespaces = namespaces.collect::<Option<Vec<_>>>().ok_or(Problem::Busy)?;
        let delete_reports_missing = self.controller.delete_reports_missing();
        let of_controller = self.controller.save_namespaces().ok_or(Problem::Busy)?;
        let features = Features { delete_reports_missing, namespaces: of_controller };
        let mut writer = Writer::begin(origin, incarnation, out)?;
        writer.section("clock", &clock::save(&self.part))?;
        let cells = self.nand.cells();
        for die in 0..cells.geometry().dies() {
            writer.section(&format!("die {die}"), &cells.save_die(DieId(die)))?;
        }
        writer.section("flash", &self.nand.save())?;
        writer.section("keys", &keys)?;
        writer.section("namespaces", &namespaces)?;
        writer.section("features", &features)?;
        writer.section("load", &load)?;
        writer.end()
    }

    fn save_keys(&self, profile: &Profile) -> Result<Option<SavedKeys>, Problem> {
        let (Some(store), Some(log)) = (self.kv(), &self.log) else { return Ok(None) };
        let store = store.save_state().map_err(|reason| match reason {
            NotSaved::Busy => Problem::Busy,
            NotSaved::Index => Problem::Index(profile.index.map_or("", |index| index.kind)),
        })?;
        let medium = match log {
            LogMedium::Extents(extents) => SavedMedium::Extents(Box::new(extents.save_state())),
            LogMedium::Blocks(layer, log) => {
                let layer = layer.save_state().ok_or(Problem::Busy)?;
                SavedMedium::Blocks(Box::new((layer, log.save_state())))
            }
        };
        Ok(Some(SavedKeys { medium, store }))
    }

    /// Restores a saved device. Runs inside a reactor whose clock starts at the time of the save or
    /// later; no command is in flight. Returns `None` if the parts of the state are of different
    /// devices.
    pub fn restore(origin: Origin<'_>, saved: SavedDevice) -> Option<Self> {
        let SavedDevice { clock, cells, nand, keys, namespaces, features, .. } = saved;
        let maker = Maker::new(origin.profile, Arc::new(cells), origin.seed, nand.plan());
        let of_flash = maker.nand.clone();
        let device = maker.restored(keys, namespaces)?;
        of_flash.restore(nand);
        device.controller.set_delete_reports_missing(features.delete_reports_missing);
        device.controller.restore_namespaces(&features.namespaces)?;
        clock::restore(&device.part, clock).then_some(device)
    }
}

impl SavedDevice {
    /// Reads what [`Device::save`] wrote.
    pub fn read(origin: Origin<'_>, input: &mut dyn Read) -> Result<Self, Problem> {
        let mut reader = Reader::begin(origin, input)?;
        let clock = reader.section("clock")?;
        let geometry = config::geometry(&origin.profile.nand);
        let dies = (0..geometry.dies()).map(|die| reader.section(&format!("die {die}")));
        let dies = dies.collect::<Result<Vec<SavedDie>, _>>()?;
        let cells = Cells::of_saved(geometry, dies);
        let saved = Self {
            clock,
            cells: cells.ok_or_else(|| Problem::Damaged("die".to_owned()))?,
            nand: reader.section("flash")?,
            keys: reader.section("keys")?,
            namespaces: reader.section("namespaces")?,
            features: reader.section("features")?,
            load: reader.section("load")?,
            incarnation: reader.incarnation,
        };
        reader.end()?;
        Ok(saved)
    }

    /// Returns the fault plan of its flash.
    pub fn fault_plan(&self) -> FaultPlan {
        self.nand.plan()
    }

    /// Returns how often the content of the device was lost before.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Returns the caller's data that [`Device::save`] stored.
    pub fn load(&self) -> &[u8] {
        &self.load
    }
}

impl Namespace {
    /// Returns `None` while an operation is in flight.
    fn save(&self) -> Option<SavedNamespace> {
        Some(match self {
            Self::Kv(_) => SavedNamespace::Kv,
            Self::Block(layer) => SavedNamespace::Block(Box::new(layer.save_state()?)),
            Self::Zoned(zones, extents) => {
                SavedNamespace::Zoned(Box::new((extents.save_state(), zones.save_state()?)))
            }
        })
    }
}

impl Maker<'_> {
    /// Builds the device from these parts, in the order of [`Self::device`]. Returns `None` if the
    /// profile needs other parts.
    fn restored(self, mut keys: Option<SavedKeys>, saved: Vec<SavedNamespace>) -> Option<Device> {
        let profile = self.profile;
        let regions = profile.regions();
        if saved.len() != profile.namespaces.len() {
            return None;
        }
        let mut store: Option<(Arc<Store>, LogMedium)> = None;
        let mut namespaces = Vec::new();
        let of_profile = profile.namespaces.iter().zip(regions);
        for ((nsid, saved), (namespace, region)) in (1..).zip(saved).zip(of_profile) {
            let size_bytes = namespace.size_bytes;
            namespaces.push(match (&namespace.kind, saved) {
                (NamespaceKind::Kv, SavedNamespace::Kv) => {
                    if store.is_none() {
                        store = Some(self.restored_store(nsid, region, keys.take()?)?);
                    }
                    Namespace::Kv(store.as_ref()?.0.clone())
                }
                (NamespaceKind::Block(block), SavedNamespace::Block(saved)) => {
                    let config = config::blocks(block, size_bytes, self.seed(nsid), &self.shared);
                    let nand = self.nand.clone();
                    Namespace::Block(PageFtl::restore_state(nand, region, config, *saved))
                }
                (NamespaceKind::Zoned(zoned), SavedNamespace::Zoned(saved)) => {
                    let (extents, zones) = *saved;
                    let stripe = config::stripe(zoned.stripe);
                    let nand = self.nand.clone();
                    let extents = AppendFtl::restore_state(nand, region, stripe, extents);
                    let extents = Arc::new(extents);
                    let extent_bytes = extents.shape().extent_bytes();
                    let config = config::zones(zoned, size_bytes, extent_bytes);
                    Namespace::Zoned(Zones::restore_state(extents.clone(), config, zones), extents)
                }
                _ => return None,
            });
        }
        Some(self.finish(namespaces, store.map(|(_, log)| log)))
    }

    fn restored_store(
        &self,
        nsid: u32,
        region: Region,
        saved: SavedKeys,
    ) -> Option<(Arc<Store>, LogMedium)> {
        let nand = self.nand.clone();
        let log = match (self.profile.log.as_ref()?.ftl, saved.medium) {
            (LogFtl::Append { stripe }, SavedMedium::Extents(saved)) => {
                let stripe = config::stripe(stripe);
                let extents = AppendFtl::restore_state(nand, region, stripe, *saved);
                LogMedium::Extents(Arc::new(extents))
            }
            (LogFtl::Page, SavedMedium::Blocks(saved)) => {
                let log = self.profile.log.as_ref()?;
                let size_bytes = self.profile.log_layer_bytes()?;
                let config = config::log_layer(log, size_bytes, self.seed(nsid), &self.shared);
                let (layer, log) = *saved;
                let layer = PageFtl::restore_state(nand, region, config, layer);
                let log = LogOnBlocks::restore_state(layer.clone(), log);
                LogMedium::Blocks(layer, Arc::new(log))
            }
            _ => return None,
        };
        let media = log.media();
        let config = config::store(self.profile, &self.shared, &self.nand, &*media);
        let store = Store::restore_state(media, config, saved.store)?;
        Some((store, log))
    }
}
