use crate::indexes::INDEXES;
use base::{MIB, Nanos, parse_size};
use clock::Group;
use controller::Controller;
use drive::{DriveInfo, Durability, Format, Medium};
use engine::{
    Ack, IndexConfig, KeySpaceId, Recovery, SPARE_EXTENTS_MIN, ScrubFinding, Store, WorkPool,
};
use media::{Blocks, Media, OnDisk, Victims};
use std::num::NonZero;
use std::sync::Arc;

/// Extents that hold no pairs: the log's own, the checkpoint and the previous checkpoint.
const SPARE_EXTENTS: u32 = SPARE_EXTENTS_MIN + 2;

/// Fewest extents of a drive: half of it is for pairs.
pub const DISK_DRIVE_EXTENTS_MIN: u32 = 2 * SPARE_EXTENTS;

/// Default bytes of log between two checkpoints: about as much as recovery reads in a second after
/// a crash.
pub const CHECKPOINT_BYTES: u64 = 10_000_000_000;

/// Maximum memory for record headers, in bytes; less on drives whose headers fit into less at 8 KiB
/// a pair.
const HEADERS_BYTES_MAX: u64 = 256 * MIB;
const HEADERS_SHARE: u64 = 128;

/// Default scrub rate in bytes per second: 1/100 of the read rate of an SSD, and a TB in nine
/// hours.
pub const SCRUB_RATE: u64 = 32 * MIB;

/// Interval of flushes on a drive that acknowledges before it flushes.
const FLUSH_INTERVAL: Nanos = Nanos::from_secs(1);

/// Options of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// When stores are acknowledged.
    pub durability: Durability,
    /// Log between two checkpoints, in bytes.
    pub checkpoint_bytes: u64,
    /// Maximum scrub rate in bytes per second; 0 disables scrubbing.
    pub scrub_rate: u64,
    /// Size in bytes of the cache of recently read or written values; 0 disables it.
    pub cache_bytes: u64,
    /// How many reactors use the drive. Each has a log of its own, as far as the drive has extents
    /// for that.
    pub reactors: u32,
}

/// Default size of a server's value cache in bytes.
pub const CACHE_BYTES: u64 = 256 << 20;

/// The durability modes by name.
pub const DURABILITIES: [(&str, Durability); 3] = [
    ("group", Durability::Group),
    ("everysec", Durability::EverySecond),
    ("capacitor", Durability::Capacitor),
];

/// Returns the durability mode with this name.
pub fn durability(name: &str) -> Option<Durability> {
    let named = DURABILITIES.iter().find(|(known, _)| *known == name);
    named.map(|(_, durability)| *durability)
}

/// Returns the error message for an unknown durability mode.
pub fn no_durability(name: &str) -> String {
    let names = DURABILITIES.map(|(name, _)| name).join(", ");
    format!("durability must be one of {names}, not {name:?}")
}

/// Parses the size of the value cache in bytes: a size or `off`.
pub fn cache_size(text: &str) -> Result<u64, String> {
    match text {
        "off" => Ok(0),
        size => parse_size(size).map_err(|error| format!("{error}, or say off")),
    }
}

/// Parses the scrub rate in bytes per second: a size or `off`.
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
            reactors: 1,
        }
    }
}

impl DiskOptions {
    /// Returns a server's default options.
    pub fn of_server() -> Self {
        Self { cache_bytes: CACHE_BYTES, ..Self::default() }
    }
}

/// Why a drive cannot be opened or used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// The blocks hold no usable drive.
    #[error(transparent)]
    Medium(#[from] drive::OpenError),
    /// The drive's content cannot be read, or a write fails.
    #[error(transparent)]
    Store(#[from] engine::Error),
}

/// A drive of pairs on the blocks of a disk or a file, without emulated delays. The reactor that
/// opens it cleans and closes it. Other reactors may have controllers of it too.
pub struct DiskDrive {
    controller: Arc<Controller>,
    store: Arc<Store>,
    medium: Arc<Medium>,
    recovery: Recovery,
}

impl DiskDrive {
    /// Checks that `blocks` are large enough for a drive. Writes nothing.
    pub fn check_size(blocks: &dyn Blocks, format: Format) -> Result<(), DiskError> {
        Ok(Medium::check_room(blocks, &format, DISK_DRIVE_EXTENTS_MIN)?)
    }

    /// Formats all of `blocks` as an empty drive with the key space of namespace 1.
    pub async fn format(blocks: Arc<dyn Blocks>, format: Format) -> Result<DriveInfo, DiskError> {
        Self::check_size(&*blocks, format)?;
        Medium::format(blocks.clone(), format).await?;
        let medium = Medium::open(blocks, Durability::Group).await?;
        let info = medium.info();
        let config = config(&info, DiskOptions::default(), Group::new());
        let store = Store::format(Arc::new(medium), config);
        store.create_key_space(KeySpaceId(1)).await?;
        store.checkpoint().await?;
        store.flush().await?;
        Ok(info)
    }

    /// Opens the drive on `blocks`. Runs inside a reactor that serves them.
    pub async fn open(blocks: Arc<dyn Blocks>, options: DiskOptions) -> Result<Self, DiskError> {
        Self::open_among(Arc::default(), blocks, options).await
    }

    /// As [`Self::open`], by all reactors of `pool`, which serve the blocks too.
    pub async fn open_among(
        pool: Arc<WorkPool>,
        blocks: Arc<dyn Blocks>,
        options: DiskOptions,
    ) -> Result<Self, DiskError> {
        let start = clock::host_now();
        let medium = Arc::new(Medium::open(blocks, options.durability).await?);
        let group = Group::new();
        let config = config(&medium.info(), options, group);
        let (store, recovery) = Store::open_among(pool, medium.clone(), config).await?;
        let has_volatile_cache = options.durability == Durability::EverySecond;
        let namespaces = vec![controller::Namespace::Kv(store.clone())];
        let config = controller::Config { emulation: None, has_volatile_cache };
        let controller = Controller::new(namespaces, config);
        if has_volatile_cache {
            clock::spawn(flush_forever(medium.clone()));
        }
        let recovery = Recovery { time: clock::host_now() - start, ..recovery };
        Ok(Self { controller, store, medium, recovery })
    }

    /// Returns the controller, which creates queue pairs in any reactor.
    pub const fn controller(&self) -> &Arc<Controller> {
        &self.controller
    }

    /// Returns the store of its pairs, which any reactor may use.
    pub const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns the store's use of space.
    pub fn usage(&self) -> engine::Usage {
        self.store.usage()
    }

    /// Returns the content of the superblock.
    pub fn info(&self) -> DriveInfo {
        self.medium.info()
    }

    /// Returns the cost of opening it, including all reads of the medium.
    pub const fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// Returns a sentence for each loss of data that the open found.
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

    /// Starts a background task that reads the whole drive, at `rate` bytes per second at most.
    /// Calls `tell` for each damaged page with its location.
    pub fn scrub(&self, rate: NonZero<u64>, tell: impl Fn(String) + 'static) {
        let medium = self.medium.clone();
        let tell = move |finding: ScrubFinding| {
            let byte = medium.byte_of(finding.at);
            tell(format!("damage at byte {byte}: {finding}"));
        };
        clock::spawn(self.store.clone().scrub(rate, tell));
    }

    /// Closes the drive: writes a checkpoint, so that the next open is fast, and flushes. Callers
    /// store nothing afterwards.
    pub async fn close(&self) -> Result<(), DiskError> {
        self.store.end_scrubbing();
        self.store.end_cleaning().await;
        match self.store.checkpoint().await {
            // Without a checkpoint the next open replays the log.
            Ok(_) | Err(engine::Error::CapacityExceeded | engine::Error::ReactorEnded) => {}
            Err(error) => return Err(error.into()),
        }
        self.store.flush().await?;
        Ok(self.medium.close().await.map_err(engine::Error::from)?)
    }
}

/// Flushes at intervals. The next command that writes reports a failed flush.
async fn flush_forever(medium: Arc<Medium>) {
    clock::name_task("flush");
    while medium.flush().await.is_ok() {
        clock::sleep(FLUSH_INTERVAL, clock::Stage::Queue).await;
    }
}

/// Returns the capacity for pairs in bytes, headers and padding included: 7/8 of the extents that
/// are not spare, so that the cleaner finds enough dead records.
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
        reactors: options.reactors,
        group,
        seed: 1,
    }
}

impl std::fmt::Debug for DiskDrive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DiskDrive({:?}, {:?})", self.info(), self.store)
    }
}
