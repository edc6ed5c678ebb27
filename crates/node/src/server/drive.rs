use super::disk_watch::watch;
use super::error::ServerError;
use crate::memory_drive::{MemoryDrive, MemoryKind};
use crate::state::{Origin, Problem};
use crate::{
    Device, DeviceError, DiskDrive, DiskError, DiskOptions, FaultPlan, Profile, SavedDevice,
};
use controller::{Controller, FlashFigures};
use engine::{CacheCounts, ReactorWork, Scrubbed, WorkPool};
use media::Traffic;
use std::io::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// A served device.
pub(super) enum Drive {
    Emulated(Arc<Emulated>),
    Memory(MemoryDrive),
    Disk(OpenDisk),
}

/// A drive on a disk, and the disk.
pub(super) struct OpenDisk {
    path: PathBuf,
    drive: DiskDrive,
    file: Arc<disk::File>,
}

/// An emulated device and its profile, which the counters of its flash need.
pub(super) struct Emulated {
    device: Device,
    profile: Box<Profile>,
    /// Bytes programmed and read before it was served, subtracted from the counters.
    programmed_before: u64,
    read_before: u64,
}

/// The space of pairs on a drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    /// Bytes of its extents in use.
    pub(super) taken_bytes: u64,
    /// Bytes of live pairs, headers and padding included.
    pub(super) live_bytes: u64,
}

impl Drive {
    /// Creates an emulated drive.
    pub(super) async fn format(profile: Box<Profile>, seed: u64) -> Result<Self, DeviceError> {
        let cells = Device::manufacture(&profile, seed);
        let device = Device::format(&profile, cells, seed, FaultPlan::default()).await?;
        Ok(Self::Emulated(Arc::new(Emulated::new(device, profile))))
    }

    /// Creates a drive in memory of `size_bytes` for hosts, which so many reactors use.
    pub(super) async fn in_memory(
        pool: Arc<WorkPool>,
        kind: MemoryKind,
        size_bytes: u64,
        reactors: u32,
        seed: u64,
    ) -> Result<Self, DeviceError> {
        Ok(Self::Memory(MemoryDrive::format_among(pool, kind, size_bytes, reactors, seed).await?))
    }

    /// Opens the drive on the disk at `path`. Runs inside a reactor of the server. Sends messages
    /// for the operator to `tell`.
    pub(super) async fn on_disk(
        pool: Arc<WorkPool>,
        path: &Path,
        options: DiskOptions,
        tell: &Sender<String>,
    ) -> Result<Self, ServerError> {
        let file = Arc::new(disk::File::open_drive(path, disk::Access::Write)?);
        let opened = DiskDrive::open_among(pool, file.clone(), options).await;
        let drive = opened.map_err(|error| disk_error(path, &file, error))?;
        let (name, tell) = (path.display().to_string(), tell.clone());
        // The receiver is dropped when the server ends.
        let tell = move |sentence: String| drop(tell.send(format!("{name}: {sentence}")));
        drive.losses().into_iter().for_each(&tell);
        clock::spawn(watch(file.clone(), tell.clone()));
        if let Some(rate) = NonZero::new(options.scrub_rate) {
            drive.scrub(rate, tell);
        }
        Ok(Self::Disk(OpenDisk { path: path.to_owned(), drive, file }))
    }

    /// Restores a saved emulated drive. Returns `None` if its parts are of different devices.
    pub(super) fn restore(profile: Box<Profile>, seed: u64, saved: SavedDevice) -> Option<Self> {
        let device = Device::restore(origin(&profile, seed), saved)?;
        Some(Self::Emulated(Arc::new(Emulated::new(device, profile))))
    }

    /// Writes an emulated drive of this incarnation to `out`. Callers flush it first, and no timer
    /// is pending.
    pub(super) fn save(
        &self,
        seed: u64,
        incarnation: u64,
        out: &mut dyn Write,
    ) -> Result<(), Problem> {
        let Self::Emulated(drive) = self else { unreachable!("others are not kept") };
        let Emulated { device, profile, .. } = &**drive;
        // The server adds no load of its own to the state.
        device.save(origin(profile, seed), incarnation, &[], out)
    }

    /// Returns whether its latencies are those of a profile.
    pub(super) const fn is_emulated(&self) -> bool {
        matches!(self, Self::Emulated(_))
    }

    pub(super) fn controller(&self) -> &Arc<Controller> {
        match self {
            Self::Emulated(drive) => drive.device.controller(),
            Self::Memory(drive) => drive.controller(),
            Self::Disk(disk) => disk.drive.controller(),
        }
    }

    /// Returns whether other reactors may use the controller.
    pub(super) const fn is_shared(&self) -> bool {
        !self.is_emulated()
    }

    /// Returns the function that reads the flash counters for hosts.
    pub(super) fn flash(&self) -> Box<dyn Fn() -> FlashFigures + Send + Sync> {
        match self {
            Self::Emulated(drive) => {
                let drive = drive.clone();
                Box::new(move || drive.flash())
            }
            Self::Memory(_) => Box::new(|| FlashFigures::NEW),
            Self::Disk(disk) => {
                let store = disk.drive.store().clone();
                let damaged = move || store.scrubbed().damaged;
                Box::new(move || FlashFigures { damaged_pages: damaged(), ..FlashFigures::NEW })
            }
        }
    }

    /// Returns the bytes programmed, or written to its disk, since the server started.
    pub(super) fn programmed_bytes(&self) -> Option<u64> {
        match self {
            Self::Emulated(drive) => Some(drive.flash().programmed_bytes),
            Self::Memory(_) => None,
            Self::Disk(disk) => Some(disk.file.counters().written_bytes),
        }
    }

    /// Returns the bytes read from the flash or the disk since the server started.
    pub(super) fn read_bytes(&self) -> Option<u64> {
        match self {
            Self::Emulated(drive) => Some(drive.read_bytes()),
            Self::Memory(_) => None,
            Self::Disk(disk) => Some(disk.file.counters().read_bytes),
        }
    }

    /// Returns the bytes of pairs on a disk that hosts moved since the server started.
    pub(super) fn pairs_traffic(&self) -> Option<Traffic> {
        let Self::Disk(disk) = self else { return None };
        Some(disk.drive.store().host_traffic())
    }

    /// Returns the work of each reactor on its pairs.
    pub(super) fn pairs_by_reactor(&self) -> Vec<ReactorWork> {
        self.controller().kv().map_or_else(Vec::new, |store| store.work_by_reactor())
    }

    /// Returns the space of pairs on a disk, if they fill more than an extent.
    pub(super) fn space(&self) -> Option<Space> {
        let Self::Disk(disk) = self else { return None };
        let (usage, info) = (disk.drive.usage(), disk.drive.info());
        let taken_bytes = u64::from(info.extents - usage.extents_free) * info.extent_bytes;
        let live_bytes = usage.values.bytes;
        (live_bytes > info.extent_bytes).then_some(Space { taken_bytes, live_bytes })
    }

    /// Returns the progress of scrubbing.
    pub(super) fn scrubbed(&self) -> Option<Scrubbed> {
        match self {
            Self::Disk(disk) => Some(disk.drive.store().scrubbed()),
            Self::Emulated(_) | Self::Memory(_) => None,
        }
    }

    /// Returns the counters of a disk's value cache.
    pub(super) fn cache_counts(&self) -> Option<CacheCounts> {
        match self {
            Self::Disk(disk) => Some(disk.drive.store().cache_counts()),
            Self::Emulated(_) | Self::Memory(_) => None,
        }
    }

    /// Closes it: flushes acknowledged data to the flash, or writes a checkpoint to a disk.
    pub(super) async fn close(&self) -> Result<(), ServerError> {
        match self {
            Self::Disk(disk) => disk.close().await,
            Self::Emulated(drive) => Ok(drive.device.flush().await.map_err(DeviceError::from)?),
            Self::Memory(drive) => match drive.kv() {
                Some(store) => Ok(store.flush().await.map_err(DeviceError::from)?),
                None => Ok(()),
            },
        }
    }
}

impl OpenDisk {
    /// Writes a checkpoint and flushes. Fails if another program shortened or removed the file.
    async fn close(&self) -> Result<(), ServerError> {
        let Self { path, drive, file } = self;
        // Checked before the checkpoint: that write can restore the length of the file.
        let lost = file.loss();
        let closed = drive.close().await;
        match lost.or_else(|| file.loss()) {
            Some(loss) => Err(ServerError::Lost { path: path.clone(), loss }),
            None => closed.map_err(|error| disk_error(path, file, error)),
        }
    }
}

impl Emulated {
    fn new(device: Device, profile: Box<Profile>) -> Self {
        let programmed_before = programmed(&device, &profile);
        let read_before = device.figures().nand.bytes_read;
        Self { device, profile, programmed_before, read_before }
    }

    fn read_bytes(&self) -> u64 {
        self.device.figures().nand.bytes_read - self.read_before
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
            damaged_pages: 0,
        }
    }
}

/// Returns the origin of the drive's saved state.
pub(super) fn origin(profile: &Profile, seed: u64) -> Origin<'_> {
    Origin { profile, seed, shuffle: false }
}

/// Returns all data bytes programmed so far. A copy within a plane counts as a whole page.
fn programmed(device: &Device, profile: &Profile) -> u64 {
    let counters = device.figures().nand;
    counters.bytes_programmed + counters.copybacks * u64::from(profile.nand.page_bytes)
}

fn percent(part: u64, whole: u64) -> u8 {
    let percent = (part * 100).checked_div(whole).unwrap_or(0);
    u8::try_from(percent).unwrap_or(u8::MAX)
}

/// Returns the server error for `problem` of the drive on `file`, with the disk's error, if any.
fn disk_error(path: &Path, file: &disk::File, problem: DiskError) -> ServerError {
    ServerError::Disk { path: path.to_owned(), problem, failure: file.failure() }
}
