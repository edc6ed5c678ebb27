use crate::ack::Ack;
use crate::check::scrubber::Scrubber;
use crate::clean::cleaner::{Begins, Cleaner};
use crate::config::Config;
use crate::counters::{Counters, ReactorWork, Usage};
use crate::error::Error;
use crate::extent::{Extents, Live};
use crate::format::address::Candidates;
use crate::format::record::Sequence;
use crate::hashed_key::HashedKey;
use crate::index::tables::Tables;
use crate::index::{Answer, Index, IndexCounts};
use crate::key_space::{KeySpaceId, KeySpaces, TableId};
use crate::lane::Lanes;
use crate::lane::values::{CacheCounts, Values};
use crate::lifetime::{Before, Lifetime};
use crate::log::{Log, SPARE_EXTENTS_MIN};
use crate::read::key_window::KeyWindows;
use crate::work_pool::WorkPool;
use crate::write::pending::durable;
use base::limits::LANES;
use media::{Media, OnDisk, Traffic};
use std::sync::Arc;

/// A key-value store on a medium: one log and an index of where its records lie.
///
/// Everything that changes is behind locks that are never held over an await; all waiting is on the
/// clock. Functions are cancelled only together with their reactor.
// Its fields share no line of the processor's cache with the counts of its `Arc`, which all
// reactors change.
#[repr(align(128))]
pub struct Store {
    pub(crate) log: Arc<Log>,
    pub(crate) index: Box<dyn Index>,
    pub(crate) tables: Arc<Tables>,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) config: Config,
    pub(crate) cleaner: Cleaner,
    pub(crate) counters: Counters,
    pub(crate) before: Before,
    pub(crate) spaces: KeySpaces,
    pub(crate) scrubber: Scrubber,
    /// The reactors that help with opening and other work of the store.
    pub(crate) pool: Arc<WorkPool>,
    /// The index keeps tables on the medium: its entries are loaded before they change.
    pub(crate) keeps_tables: bool,
    /// See [`Self::value_bytes_max`].
    value_bytes_max: u32,
}

impl Store {
    /// Makes an empty store, with no key space, on an empty medium. Starts its cleaner.
    ///
    /// # Panics
    /// When the medium is not empty, or too small for the capacity. The caller checks a device
    /// profile for that before.
    pub fn format(media: Arc<dyn Media>, config: Config) -> Arc<Self> {
        Self::format_among(Arc::default(), media, config)
    }

    /// As [`Self::format`], for a store whose work all reactors of `pool` do.
    ///
    /// # Panics
    /// As [`Self::format`].
    pub fn format_among(pool: Arc<WorkPool>, media: Arc<dyn Media>, config: Config) -> Arc<Self> {
        assert!(media.extents().is_empty(), "a medium is formatted when it is empty");
        let log = Log::new(media, Extents::default(), Sequence::first());
        let store = Self::new(pool, log, config);
        store.start(Begins::AtWork);
        store
    }

    pub(crate) fn new(pool: Arc<WorkPool>, mut log: Log, config: Config) -> Arc<Self> {
        log.answers_early = config.ack != Ack::Program;
        let values_bytes = config.cache_bytes / LANES as u64;
        let values = || (values_bytes > 0).then(|| Values::new(values_bytes, log.lives.clone()));
        let lanes = Arc::new(Lanes::new(config.headers_bytes, values));
        log.lanes = lanes.clone();
        log.windows = KeyWindows::new(config.headers_bytes);
        let index = (config.index)(&config.index_config, &lanes);
        let table_extents = index.table_extents(&log.shape);
        log.whole().space.keep(table_extents);
        let filled = config.capacity_bytes.div_ceil(log.shape.extent_bytes());
        let spare = u64::from(log.shape.extents.saturating_sub(table_extents)).checked_sub(filled);
        let spare = spare.filter(|spare| *spare >= u64::from(SPARE_EXTENTS_MIN));
        let spare = spare.expect("the capacity leaves too little spare space for cleaning");
        let spare = u32::try_from(spare).expect("extents are counted in 32 bits");
        log.prepare(config.capacity_bytes, config.reactors, spare);
        let value_bytes_max = log.layout.value_bytes_max(log.shape.extent_bytes());
        let counters = Counters::new(config.reactors, log.writers());
        let log = log.share();
        let tables = Arc::new(Tables::new(log.clone()));
        index.attach(&tables);
        let store = Arc::new(Self {
            log,
            index,
            tables,
            lanes,
            config,
            cleaner: Cleaner::new(config.seed, config.group),
            counters,
            before: Before::default(),
            spaces: KeySpaces::default(),
            scrubber: Scrubber::default(),
            pool,
            keeps_tables: table_extents > 0,
            value_bytes_max,
        });
        let weak = Arc::downgrade(&store);
        store.tables.find_entries_by(Box::new(move |table, hashes| {
            let store = weak.upgrade();
            Box::pin(async move {
                let store = store.expect("an index reads pages of a store that is there");
                store.entries_of(table, hashes).await
            })
        }));
        store
    }

    /// Starts the background tasks.
    pub(crate) fn start(self: &Arc<Self>, begins: Begins) {
        clock::spawn(self.clone().clean_forever(begins));
        if self.index.can_checkpoint() {
            clock::spawn(self.clone().checkpoint_forever(begins));
        }
    }

    #[inline]
    pub(crate) fn table(&self, space: KeySpaceId) -> Result<TableId, Error> {
        if space == KeySpaceId::STORE {
            return Err(Error::KeySpaceReserved);
        }
        self.spaces.table(space)
    }

    /// Prefetches the index entry of `key` into the processor's cache, for a command that follows.
    #[inline]
    pub fn expect<'a>(&self, space: KeySpaceId, key: impl Into<HashedKey<'a>>) {
        if let Ok(table) = self.table(space) {
            self.index.prefetch(table, key.into());
        }
    }

    /// As [`Self::expect`], and prefetches the header of the key's record, for a write.
    #[inline]
    pub fn expect_write<'a>(&self, space: KeySpaceId, key: impl Into<HashedKey<'a>>) {
        if let Ok(table) = self.table(space) {
            self.expect_write_in(table, key.into());
        }
    }

    pub(crate) fn expect_write_in(&self, table: TableId, key: HashedKey<'_>) {
        self.index.prefetch(table, key);
        self.lanes.prefetch_header(key.hash);
    }

    /// Returns the index's candidates for `key`.
    pub(crate) fn lookup<'a>(
        &'a self,
        table: TableId,
        key: HashedKey<'a>,
    ) -> Answer<'a, Candidates> {
        self.index.lookup(self.lanes.lock(key.hash).of(key.hash), table, key)
    }

    /// Returns the longest value that fits this medium, in bytes: 2 MiB where an extent holds that
    /// with five pages to spare, for the summary and for what a long value adds to it; else half an
    /// extent.
    pub fn value_bytes_max(&self) -> u32 {
        self.value_bytes_max
    }

    /// Returns the capacity in bytes, as configured.
    pub fn capacity_bytes(&self) -> u64 {
        self.config.capacity_bytes
    }

    /// Returns the content of the store in numbers.
    pub fn usage(&self) -> Usage {
        // These lock lanes, which are locked before the log.
        let (index_entries, index_bytes) = (self.index.entries(), self.index.memory_bytes());
        let state = self.log.whole();
        Usage {
            values: state.live.values(),
            tombstones: state.live.tombstones(),
            extents_free: self.log.media.free_extents(),
            index_entries,
            index_bytes,
        }
    }

    /// Returns the counts of the cache of values.
    pub fn cache_counts(&self) -> CacheCounts {
        self.lanes.value_counts()
    }

    /// Returns the store's counters since it was opened.
    pub fn counters(&self) -> crate::counters::Counts {
        let state = self.log.whole();
        self.counters.counts(state.writers().map(|writer| writer.unlanded.padded).sum())
    }

    /// Returns the work of each reactor that has done some since the store was opened. Their sums
    /// are those of [`Self::counters`], but for what those continue from a saved state, and for
    /// the work of reactors that the store was not told of.
    pub fn work_by_reactor(&self) -> Vec<ReactorWork> {
        let mut all = self.counters.by_reactor();
        for (reactor_id, table_pages) in self.tables.written_by() {
            let place = all.iter().position(|work| work.reactor_id == reactor_id);
            let place = place.unwrap_or_else(|| {
                all.push(ReactorWork { reactor_id, ..ReactorWork::default() });
                all.len() - 1
            });
            all[place].table_pages = table_pages;
        }
        all
    }

    /// Returns the index's counters since the store was opened.
    pub fn index_counts(&self) -> IndexCounts {
        self.index.counts()
    }

    /// Returns the live values of each extent in use, for checks: their sum is [`Usage::values`].
    pub fn live_by_extent(&self) -> Vec<(media::ExtentId, Live)> {
        let state = self.log.whole();
        let sum = |extent: &crate::extent::Extent| extent.values().iter().map(|(_, it)| *it).sum();
        state.extents.iter().map(|(id, extent)| (id, sum(extent))).collect()
    }

    /// Returns the bytes that hosts and the medium moved in all lives of the store.
    pub(crate) fn lifetime(&self) -> Lifetime {
        let mut lifetime = self.before.get().unwrap_or_default();
        lifetime.hosts += self.counters.traffic();
        let traffic = self.log.media.as_disk().and_then(OnDisk::traffic);
        lifetime.medium += traffic.unwrap_or_default();
        lifetime
    }

    /// Returns the bytes that hosts moved since the store was opened, over all protocols.
    pub fn host_traffic(&self) -> Traffic {
        self.counters.traffic()
    }

    /// Returns the bytes moved in earlier lives, if the store was opened by a checkpoint.
    pub fn lifetime_before(&self) -> Option<Lifetime> {
        self.before.get()
    }

    /// Programs every page that is still being filled, and waits until all are durable, also where
    /// the medium answers before they are.
    pub async fn flush(&self) -> Result<(), Error> {
        let pages = self.log.close_all();
        durable(&pages).await?;
        self.log.all_sealed().await;
        Ok(self.log.media.flush().await?)
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({:?})", self.usage())
    }
}
