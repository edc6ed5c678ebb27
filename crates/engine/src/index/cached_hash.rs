//! The `cached-hash` index: sorted runs of hashes on flash, of which as many are in memory as a
//! budget allows.
//!
//! Each table is a tree of one level: a directory in memory and leaves of up to 4,000 bytes, each
//! with the entries of a range of hashes. A requested leaf is read into a frame, clean leaves are
//! evicted to make room, and a background task, the keeper, writes dirty ones.
//! `docs/internals/cached-index.md` argues why no task waits for ever.
//!
//! | file | what |
//! |---|---|
//! | `leaf`, `directory`, `frames` | the three parts, which know nothing of time |
//! | `state` | what an index holds, and each change of it, in one step |
//! | `fetch` | how a leaf comes into memory |
//! | `keeper` | how leaves go to flash, and how their extents are won back |
//! | `saved` | checkpoints |

mod directory;
mod fetch;
mod frames;
mod keeper;
mod leaf;
mod saved;
mod state;
mod whole;

use self::directory::Directory;
use self::frames::FRAME_BYTES;
use self::leaf::{ENTRY_BYTES, Leaf, kept};
use self::state::{Seek, State};
use crate::error::Error;
use crate::format::address::{Address, Candidates};
use crate::hashed_key::HashedKey;
use crate::index::survivors::Survivors;
use crate::index::tables::Tables;
use crate::index::{Answer, Index, IndexConfig, IndexCounts, IndexEntry, Saved};
use crate::key_space::TableId;
use crate::lane::Lane;
use crate::work_pool::WorkPool;
use crate::write::permit::Permit;
use base::Key;
use clock::{LocalFuture, Rank, Stage};
use media::{ExtentId, Shape};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Minimum of frames: two each for seven stores side by side, and two that the keeper can write.
const FRAMES_MIN: u64 = 16;

/// Extra leaves of a directory, for the first leaves of tables with few keys.
const LEAVES_BESIDE: u64 = 64;

/// An index of which only a part is in memory: a directory, and as many leaves as the budget of
/// [`IndexConfig::dram_bytes`] allows. Hosts list keys in the order of (hash, key).
#[derive(Clone, Debug)]
pub struct CachedHashIndex(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The most frames.
    frames_max: usize,
    keys_max: u64,
    tables: OnceLock<Arc<Tables>>,
    state: Mutex<State>,
}

impl CachedHashIndex {
    /// Returns an empty index for `config`. A budget of less than [`Index::dram_bytes_min`] counts
    /// as that.
    pub fn new(config: &IndexConfig) -> Self {
        Self::with_leaves_of(Leaf::ENTRIES_MAX, config)
    }

    /// Makes the same index with leaves of at most `entries`: a test makes many leaves with few
    /// keys.
    pub fn with_leaves_of(entries: usize, config: &IndexConfig) -> Self {
        let left = config.dram_bytes.saturating_sub(directory_bytes_max(config.keys_max));
        let frames = (left / FRAME_BYTES).max(FRAMES_MIN);
        Self(Arc::new(Shared {
            frames_max: usize::try_from(frames).expect("memory is addressed by 64 bits"),
            keys_max: config.keys_max,
            tables: OnceLock::new(),
            state: Mutex::new(State::new(entries.min(Leaf::ENTRIES_MAX))),
        }))
    }

    /// What `keys_max` keys take on flash, in bytes: entries in leaves that are 11 / 16 full.
    /// (Leaves that are split when full, at random hashes, are ln 2 full.)
    pub const fn table_bytes(keys_max: u64) -> u64 {
        keys_max * 16
    }
}

/// Returns the bytes of a directory of leaves that are half full.
const fn directory_bytes_max(keys_max: u64) -> u64 {
    Directory::bytes_max(keys_max.div_ceil(Leaf::ENTRIES_MAX as u64 / 2) + LEAVES_BESIDE)
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a permit for `entries`.
    async fn admitted(&self, entries: u32) {
        let is_admitted = {
            let mut state = self.state();
            let is_admitted = state.try_admit(entries, self.frames_max);
            if !is_admitted {
                state.queue(clock::current(), entries, self.frames_max);
            }
            is_admitted
        };
        if !is_admitted {
            clock::park(Rank::Credit, Stage::Index).await;
        }
    }

    fn tables(&self) -> &Arc<Tables> {
        self.tables.get().expect("an index is given its tables before it is used")
    }
}

impl CachedHashIndex {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state()
    }

    /// Returns the state for a change of entries with this hash, which are loaded.
    fn loaded(&self, table: TableId, hash: u64) -> MutexGuard<'_, State> {
        let state = self.state();
        assert!(state.is_loaded(table, hash), "entries are loaded before they change");
        state
    }
}

impl Index for CachedHashIndex {
    fn lookup<'a>(
        &'a self,
        _: &mut Lane,
        table: TableId,
        key: HashedKey<'a>,
    ) -> Answer<'a, Candidates> {
        let hash = kept(key.hash);
        let mut state = self.state();
        match state.seek(table, hash) {
            Seek::Nothing => Answer::now(Candidates::new()),
            Seek::InMemory(id) => {
                state.count(table, hash, true);
                Answer::now(state.candidates(id, hash))
            }
            Seek::OnFlash(..) => Answer::Later(Box::pin(async move {
                self.state().count(table, hash, false);
                self.lookup_on_flash(table, hash).await
            })),
        }
    }

    /// Does nothing: most lookups read flash.
    fn prefetch(&self, _: TableId, _: HashedKey<'_>) {}

    fn insert(&self, _: &mut Lane, table: TableId, key: HashedKey<'_>, new: Address) {
        let hash = kept(key.hash);
        self.loaded(table, hash).insert(table, hash, new, self.0.frames_max);
    }

    fn replace(
        &self,
        _: &mut Lane,
        table: TableId,
        key: HashedKey<'_>,
        old: Address,
        new: Address,
    ) -> bool {
        let hash = kept(key.hash);
        self.loaded(table, hash).replace(table, hash, old, new)
    }

    fn remove(&self, _: &mut Lane, table: TableId, key: HashedKey<'_>, old: Address) -> bool {
        let hash = kept(key.hash);
        self.loaded(table, hash).remove(table, hash, old)
    }

    fn scan<'a>(
        &'a self,
        table: TableId,
        from: Option<HashedKey<'a>>,
        limit: usize,
    ) -> Answer<'a, Vec<IndexEntry>> {
        let from = from.map(|key| kept(key.hash));
        Answer::Later(Box::pin(self.scan_on_flash(table, from, limit)))
    }

    fn compare(&self, a: &Key, b: &Key) -> Ordering {
        a.hash().cmp(&b.hash()).then_with(|| a.cmp(b))
    }

    fn is_by_hash(&self) -> bool {
        true
    }

    fn drop_table(&self, table: TableId) {
        let mut state = self.state();
        state.drop_table(table, |at| self.0.tables().extent_of(at));
        state.grant(self.0.frames_max);
    }

    fn entries(&self) -> u64 {
        self.state().entries()
    }

    fn memory_bytes(&self) -> u64 {
        self.state().dram_bytes()
    }

    fn attach(&self, tables: &Arc<Tables>) {
        self.0.tables.set(tables.clone()).expect("an index is given its tables once");
        let fits = (tables.page_bytes_max() as usize - leaf::HEAD_BYTES) / ENTRY_BYTES;
        let mut state = self.state();
        state.entries_max = state.entries_max.min(fits);
        drop(state);
        clock::spawn(self.0.clone().keep_forever());
    }

    fn table_extents(&self, shape: &Shape) -> u32 {
        let table = Self::table_bytes(self.0.keys_max);
        let extents = (3 * table).div_ceil(shape.extent_bytes()) + 3;
        u32::try_from(extents).unwrap_or(u32::MAX)
    }

    fn dram_bytes_min(&self) -> u64 {
        directory_bytes_max(self.0.keys_max) + FRAMES_MIN * FRAME_BYTES
    }

    fn permit_max(&self) -> u32 {
        u32::try_from(self.0.frames_max / 2 - 1).unwrap_or(u32::MAX)
    }

    fn has_room(&self, table: TableId, key: HashedKey<'_>) -> bool {
        let mut state = self.state();
        state.keys() < self.0.keys_max && state.has_room(table, kept(key.hash))
    }

    fn admit(&self, entries: u32) -> Answer<'_, Permit<'_>> {
        if self.state().try_admit(entries, self.0.frames_max) {
            return Answer::now(Permit::new(self, entries));
        }
        Answer::Later(Box::pin(async move {
            self.0.admitted(entries).await;
            Permit::new(self, entries)
        }))
    }

    fn load<'a>(
        &'a self,
        table: TableId,
        key: HashedKey<'a>,
        permit: &'a Permit<'_>,
    ) -> Answer<'a, ()> {
        let hash = kept(key.hash);
        let mut state = self.state();
        let seek = state.seek(table, hash);
        if !matches!(seek, Seek::OnFlash(..)) {
            if matches!(seek, Seek::InMemory(_)) {
                state.count(table, hash, true);
            }
            permit.note(state.hold(table, hash));
            return Answer::now(());
        }
        Answer::Later(Box::pin(async move {
            self.state().count(table, hash, false);
            let held = self.0.load(table, hash).await;
            permit.note(held);
        }))
    }

    fn release(&self, entries: u32, noted: &[u64]) {
        self.state().release(entries, noted, self.0.frames_max);
    }

    fn counts(&self) -> IndexCounts {
        self.state().counts()
    }

    fn can_checkpoint(&self) -> bool {
        true
    }

    fn freeze(&self) -> Answer<'_, ()> {
        Answer::Later(Box::pin(self.0.freeze()))
    }

    fn save<'a>(
        &'a self,
        _: &'a Arc<Tables>,
        _: &'a WorkPool,
    ) -> LocalFuture<'a, Result<Saved, Error>> {
        Box::pin(std::future::ready(self.0.saved()))
    }

    fn thaw(&self) {
        self.state().snapshot = None;
    }

    fn restore<'a>(
        &'a self,
        _: &'a Arc<Tables>,
        root: &'a [u8],
        survivors: &'a Arc<Survivors>,
    ) -> LocalFuture<'a, Result<(), Error>> {
        Box::pin(std::future::ready(self.0.restore(root, survivors)))
    }

    fn save_state(&self) -> Option<Vec<u8>> {
        self.state().save_whole()
    }

    fn restore_state(&self, saved: &[u8]) -> bool {
        self.state().restore_whole(saved).is_some()
    }

    fn extents_in_use(&self) -> BTreeSet<ExtentId> {
        self.0.extents_in_use()
    }
}
