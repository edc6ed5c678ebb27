use crate::indexes::INDEXES;
use base::{MIB, Nanos, parse_size};
use clock::{CodeCosts, Cores, Gate, Group, Monitor};
use controller::{Controller, FirmwareCosts, LinkTiming};
use engine::{Ack, IndexConfig, KeySpaceId, Recovery, SPARE_EXTENTS_MIN, ScrubFinding, Store};
use media::{Blocks, DriveInfo, Durability, Format, FramesOnBlocks, Media, Victims};
use std::num::NonZero;
use std::sync::Arc;

/// Extents beside those that hold pairs: the log's own, and for a checkpoint and the one before.
const SPARE_EXTENTS: u32 = SPARE_EXTENTS_MIN + 2;

/// Fewest extents of a drive: half of it is for pairs.
pub const DISK_DRIVE_EXTENTS_MIN: u32 = 2 * SPARE_EXTENTS;

/// Log that is written at most between two checkpoints, in bytes, unless something else is asked
/// for: about as much as is read again in a second after a crash.
pub const CHECKPOINT_BYTES: u64 = 10_000_000_000;

/// Memory for the headers of records, in bytes: for those of all pairs of 8 KiB, or at most this.
const HEADERS_BYTES_MAX: u64 = 256 * MIB;
const HEADERS_SHARE: u64 = 128;

/// Bytes per second that are read in the background, unless something else is asked for: a
/// hundredth of what a disk of flash reads, and a TB in nine hours.
pub const SCRUB_RATE: u64 = 32 * MIB;

/// How often a drive that answers before it has flushed does so.
const FLUSH_INTERVAL: Nanos = Nanos::from_secs(1);

/// How a drive is to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// When stores are answered.
    pub durability: Durability,
    /// Log between two checkpoints, in bytes.
    pub checkpoint_bytes: u64,
    /// Bytes per second of the drive that are read in the background to see whether they are whole,
    /// at most; 0 for none.
    pub scrub_rate: u64,
    /// Bytes of memory for values that were lately read or written; 0 for none.
    pub cache_bytes: u64,
}

/// Bytes of memory for values that a server takes unless it is told otherwise.
pub const CACHE_BYTES: u64 = 256 << 20;

/// The ways in which a drive answers stores, by name.
pub const DURABILITIES: [(&str, Durability); 3] = [
    ("group", Durability::Group),
    ("everysec", Durability::EverySecond),
    ("capacitor", Durability::Capacitor),
];

/// The durability of this name.
pub fn durability(name: &str) -> Option<Durability> {
    let named = DURABILITIES.iter().find(|(known, _)| *known == name);
    named.map(|(_, durability)| *durability)
}

/// That there is none, in words.
pub fn no_durability(name: &str) -> String {
    let names = DURABILITIES.map(|(name, _)| name).join(", ");
    format!("durability must be one of {names}, not {name:?}")
}

/// The bytes of a cache of values that `text` says: a size, or `off`.
pub fn cache_size(text: &str) -> Result<u64, String> {
    match text {
        "off" => Ok(0),
        size => parse_size(size).map_err(|error| format!("{error}, or say off")),
    }
}

/// The rate of scrubbing, in bytes per second, that `text` says: a size, or `off`.
pub fn scrub_rate(text: &str) -> Result<u64, String> {
    match text {
        "off" => Ok(0),
        size => parse_size(size).map_err(|error| format!("{error}, or say off")),
    }
}

impl Default for DiskOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Group,
            checkpoint_bytes: CHECKPOINT_BYTES,
            scrub_rate: SCRUB_RATE,
            cache_bytes: 0,
        }
    }
}

impl DiskOptions {
    /// How a server uses a drive unless it is told otherwise.
    pub fn of_server() -> Self {
        Self { cache_bytes: CACHE_BYTES, ..Self::default() }
    }
}

/// Why there is no drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// The blocks hold none that can be used.
    #[error(transparent)]
    Medium(#[from] media::OpenError),
    /// What is on it cannot be read, or nothing can be written.
    #[error(transparent)]
    Store(#[from] engine::Error),
}

/// A drive of pairs on the blocks of a disk or a file, without delays of its own. The reactor that
/// opens it cleans and closes it; its fellows may have controllers of it too.
pub struct DiskDrive {
    controller: Arc<Controller>,
    store: Arc<Store>,
    medium: Arc<FramesOnBlocks>,
    /// Inside of which everything is done with the store and the medium.
    monitor: Arc<Monitor>,
    recovery: Recovery,
}

/// What another reactor needs to have a controller of a drive.
#[derive(Clone)]
pub struct DiskDriveShare {
    controller: Arc<Controller>,
    monitor: Arc<Monitor>,
}

impl DiskDrive {
    /// Whether a drive can be made of `blocks`. Nothing is written.
    pub fn check_size(blocks: &dyn Blocks, format: Format) -> Result<(), DiskError> {
        Ok(FramesOnBlocks::check_room(blocks, &format, DISK_DRIVE_EXTENTS_MIN)?)
    }

    /// Makes an empty drive of all of `blocks`, with the key space of namespace 1.
    pub async fn format(blocks: Arc<dyn Blocks>, format: Format) -> Result<DriveInfo, DiskError> {
        Self::check_size(&*blocks, format)?;
        FramesOnBlocks::format(blocks.clone(), format).await?;
        let medium = FramesOnBlocks::open(blocks, Durability::Group).await?;
        let info = medium.info();
        let config = config(&info, DiskOptions::default(), Group::new());
        let store = Store::format(Arc::new(medium), config);
        store.create_key_space(KeySpaceId(1)).await?;
        store.checkpoint().await?;
        store.flush().await?;
        Ok(info)
    }

    /// The drive on `blocks`. Runs inside a reactor that serves them.
    pub async fn open(blocks: Arc<dyn Blocks>, options: DiskOptions) -> Result<Self, DiskError> {
        let monitor = Monitor::new();
        monitor.clone().enter(Self::open_inside(monitor, blocks, options)).await
    }

    async fn open_inside(
        monitor: Arc<Monitor>,
        blocks: Arc<dyn Blocks>,
        options: DiskOptions,
    ) -> Result<Self, DiskError> {
        let start = clock::host_now();
        let medium = Arc::new(FramesOnBlocks::open(blocks, options.durability).await?);
        let group = Group::new();
        let config = config(&medium.info(), options, group);
        let (store, recovery) = Store::open(medium.clone(), config).await?;
        let has_volatile_cache = options.durability == Durability::EverySecond;
        let namespaces = vec![controller::Namespace::Kv(store.clone())];
        let timing = without_delays(group, &monitor, has_volatile_cache);
        let controller = Controller::new(namespaces, timing);
        if has_volatile_cache {
            clock::spawn(flush_forever(medium.clone()));
        }
        let recovery = Recovery { time: clock::host_now() - start, ..recovery };
        Ok(Self { controller, store, medium, monitor, recovery })
    }

    /// What other reactors, fellows of this one, make controllers of.
    pub fn share(&self) -> DiskDriveShare {
        let (controller, monitor) = (self.controller.clone(), self.monitor.clone());
        DiskDriveShare { controller, monitor }
    }

    /// The controller, which makes queue pairs.
    pub const fn controller(&self) -> &Arc<Controller> {
        &self.controller
    }

    /// The store of its pairs. Beside other reactors it is used through a controller alone, which
    /// goes inside the monitor for each poll.
    pub const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Inside of which the store is used.
    pub(crate) const fn monitor(&self) -> &Arc<Monitor> {
        &self.monitor
    }

    /// What the store holds now.
    pub fn usage(&self) -> engine::Usage {
        let _inside = self.monitor.inside();
        self.store.usage()
    }

    /// What the superblock says.
    pub fn info(&self) -> DriveInfo {
        self.medium.info()
    }

    /// What opening it took, with all that the medium was read for.
    pub const fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// What opening it found to be lost, in sentences.
    pub fn losses(&self) -> Vec<String> {
        let outdated = self.medium.outdated().into_iter().map(|extent| {
            format!(
                "extent {} is an old copy or lacks its end: later records cannot be read",
                extent.0
            )
        });
        let pages = self.recovery.lost_pages;
        let lost = (pages > 0).then(|| {
            format!(
                "{pages} pages written since the checkpoint cannot be read: their pairs are lost, \
                 and older values of these keys may be back"
            )
        });
        outdated.chain(lost).collect()
    }

    /// Reads all of the drive in the background from here on, at most so many bytes per second.
    /// `tell` hears of each page that is damaged, and where.
    pub fn scrub(&self, rate: NonZero<u64>, tell: impl Fn(String) + 'static) {
        let medium = self.medium.clone();
        let tell = move |finding: ScrubFinding| {
            let byte = medium.byte_of(finding.at);
            tell(format!("damage at byte {byte}: {finding}"));
        };
        let _inside = self.monitor.inside();
        clock::spawn(self.store.clone().scrub(rate, tell));
    }

    /// Ends its use: writes a checkpoint, from which it opens at once, and flushes. Nothing is
    /// stored from here on.
    pub async fn close(&self) -> Result<(), DiskError> {
        self.monitor.enter(self.close_inside()).await
    }

    async fn close_inside(&self) -> Result<(), DiskError> {
        self.store.end_scrubbing();
        self.store.end_cleaning().await;
        match self.store.checkpoint().await {
            // Without one it opens by its log.
            Ok(_) | Err(engine::Error::CapacityExceeded) => {}
            Err(error) => return Err(error.into()),
        }
        self.store.flush().await?;
        Ok(self.medium.close().await.map_err(engine::Error::from)?)
    }
}

impl DiskDriveShare {
    /// A controller of the drive for the reactor that this is called in.
    pub fn controller(&self) -> Arc<Controller> {
        let has_volatile_cache = self.controller.has_volatile_cache();
        let timing = without_delays(Group::new(), &self.monitor, has_volatile_cache);
        self.controller.beside(timing)
    }
}

/// A controller that takes no time of its own.
fn without_delays(
    group: Group,
    monitor: &Arc<Monitor>,
    has_volatile_cache: bool,
) -> controller::Config {
    controller::Config {
        group,
        link: LinkTiming { bytes_per_second: 0, transfer: Nanos::ZERO },
        handlers: u32::MAX,
        costs: FirmwareCosts::default(),
        cores: Cores::new(group, 1, CodeCosts::default()),
        gate: Arc::new(Gate::new()),
        monitor: Some(monitor.clone()),
        has_volatile_cache,
    }
}

/// What a failed flush means is said by the next command that writes.
async fn flush_forever(medium: Arc<FramesOnBlocks>) {
    while medium.flush().await.is_ok() {
        clock::sleep(FLUSH_INTERVAL, clock::Stage::Queue).await;
    }
}

/// Bytes of pairs that a drive takes, headers and padding included: of the extents that are not
/// spare, seven eighths, so that cleaning finds enough that is dead.
pub const fn capacity_bytes(info: &DriveInfo) -> u64 {
    let extents = info.extents.saturating_sub(SPARE_EXTENTS);
    extents as u64 * info.pages_bytes() / 8 * 7
}

pub(crate) fn config(info: &DriveInfo, options: DiskOptions, group: Group) -> engine::Config {
    let capacity_bytes = capacity_bytes(info);
    engine::Config {
        capacity_bytes,
        ack: Ack::Program,
        victims: Victims::Greedy,
        index: INDEXES[0].1,
        index_config: IndexConfig::default(),
        checkpoint_bytes: options.checkpoint_bytes,
        headers_bytes: (capacity_bytes / HEADERS_SHARE).min(HEADERS_BYTES_MAX),
        cache_bytes: options.cache_bytes,
        saves_buffer: true,
        group,
        seed: 1,
    }
}

impl std::fmt::Debug for DiskDriveShare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DiskDriveShare({:?})", self.controller)
    }
}

impl std::fmt::Debug for DiskDrive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DiskDrive({:?}, {:?})", self.info(), self.store)
    }
}
