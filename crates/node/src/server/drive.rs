use crate::memory_drive::{MemoryDrive, MemoryKind};
use crate::state::{Origin, Problem};
use crate::{Device, DeviceError, FaultPlan, Profile, SavedDevice};
use controller::{Controller, FlashFigures};
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;

/// A device that is served.
pub(super) enum Drive {
    Emulated(Rc<Emulated>),
    Memory(MemoryDrive),
}

/// With the profile that it was made from, for what is said of its flash.
pub(super) struct Emulated {
    device: Device,
    profile: Box<Profile>,
    /// What had been programmed before it was served. What hosts write is counted from there on.
    programmed_before: u64,
}

impl Drive {
    /// A new emulated drive.
    pub(super) async fn format(profile: Box<Profile>, seed: u64) -> Result<Self, DeviceError> {
        let cells = Device::manufacture(&profile, seed);
        let device = Device::format(&profile, cells, seed, FaultPlan::default()).await?;
        Ok(Self::Emulated(Rc::new(Emulated::new(device, profile))))
    }

    /// A drive in memory, of which hosts see `size_bytes`.
    pub(super) async fn in_memory(
        kind: MemoryKind,
        size_bytes: u64,
        seed: u64,
    ) -> Result<Self, DeviceError> {
        Ok(Self::Memory(MemoryDrive::format(kind, size_bytes, seed).await?))
    }

    /// The emulated drive that was saved. `None` when its parts are not of one device.
    pub(super) fn restore(profile: Box<Profile>, seed: u64, saved: SavedDevice) -> Option<Self> {
        let device = Device::restore(origin(&profile, seed), saved)?;
        Some(Self::Emulated(Rc::new(Emulated::new(device, profile))))
    }

    /// Writes an emulated drive to `out`, when it was flushed and nothing is left to happen.
    pub(super) fn save(&self, seed: u64, out: &mut dyn Write) -> Result<(), Problem> {
        let Self::Emulated(drive) = self else { unreachable!("a drive in memory is not kept") };
        let Emulated { device, profile, .. } = &**drive;
        // Of its load nobody knows more than the drive itself.
        device.save(origin(profile, seed), &[], out)
    }

    pub(super) fn controller(&self) -> &Arc<Controller> {
        match self {
            Self::Emulated(drive) => drive.device.controller(),
            Self::Memory(drive) => drive.controller(),
        }
    }

    /// What hosts are told of the flash whenever they ask.
    pub(super) fn flash(&self) -> Box<dyn Fn() -> FlashFigures> {
        match self {
            Self::Emulated(drive) => {
                let drive = drive.clone();
                Box::new(move || drive.flash())
            }
            Self::Memory(_) => Box::new(|| FlashFigures::NEW),
        }
    }

    /// Bytes of data that were programmed since it is served, if it has flash.
    pub(super) fn programmed_bytes(&self) -> Option<u64> {
        match self {
            Self::Emulated(drive) => Some(drive.flash().programmed_bytes),
            Self::Memory(_) => None,
        }
    }

    /// Writes to the flash what was answered from memory.
    pub(super) async fn flush(&self) -> Result<(), DeviceError> {
        match self {
            Self::Emulated(drive) => Ok(drive.device.flush().await?),
            Self::Memory(drive) => match drive.kv() {
                Some(store) => Ok(store.flush().await?),
                None => Ok(()),
            },
        }
    }
}

impl Emulated {
    fn new(device: Device, profile: Box<Profile>) -> Self {
        let programmed_before = programmed(&device, &profile);
        Self { device, profile, programmed_before }
    }

    fn flash(&self) -> FlashFigures {
        let nand = &self.profile.nand;
        let counters = self.device.figures().nand;
        let seen: u64 = self.profile.namespaces.iter().map(|namespace| namespace.size_bytes).sum();
        let spares = nand.raw_bytes().saturating_sub(seen) / nand.block_bytes();
        let retired = u64::from(self.device.cells().retired_blocks());
        let blocks = u64::from(nand.dies()) * u64::from(nand.blocks_per_die());
        let cycles = u64::from(nand.wear.worn_cycles) + counters.erases / blocks;
        let endurance = nand.wear.read_retries.map(|retries| u64::from(retries.endurance_cycles));
        FlashFigures {
            reads: counters.reads,
            programs: counters.programs,
            programmed_bytes: programmed(&self.device, &self.profile) - self.programmed_before,
            erases: counters.erases,
            spare_percent: percent(spares.saturating_sub(retired), spares).min(100),
            used_percent: endurance.map_or(0, |endurance| percent(cycles, endurance)),
        }
    }
}

/// What a state of the drive is of.
pub(super) fn origin(profile: &Profile, seed: u64) -> Origin<'_> {
    Origin { profile, seed, shuffle: false }
}

/// Bytes of data that were ever programmed. A copy within a plane moves a whole page.
fn programmed(device: &Device, profile: &Profile) -> u64 {
    let counters = device.figures().nand;
    counters.bytes_programmed + counters.copybacks * u64::from(profile.nand.page_bytes)
}

fn percent(part: u64, whole: u64) -> u8 {
    let percent = (part * 100).checked_div(whole).unwrap_or(0);
    u8::try_from(percent).unwrap_or(u8::MAX)
}
