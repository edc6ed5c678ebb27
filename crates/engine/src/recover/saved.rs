//! A whole store in the saved state of a device.

use crate::clean::cleaner::{Begins, SavedCleaner};
use crate::config::Config;
use crate::counters::Counts;
use crate::extent::{Extents, Live};
use crate::format::address::Address;
use crate::format::page_builder::PageBuilder;
use crate::format::record::Sequence;
use crate::format::summary::Summary;
use crate::index::tables::SavedTables;
use crate::key_space::{KeySpaceId, TableId};
use crate::log::{Copies, Log, Whole, Writer};
use crate::store::Store;
use base::Key;
use media::{ExtentId, Label, Media, PageId, Stream};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The streams in the order of a saved state.
const STREAMS: [Stream; Stream::COUNT] = [Stream::Host, Stream::Gc, Stream::Index];

/// An idle store in a saved state.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedStore {
    log: SavedLog,
    tables: SavedTables,
    cleaner: SavedCleaner,
    counts: Counts,
    spaces: Vec<(KeySpaceId, u32)>,
    index: Vec<u8>,
}

/// Why a store cannot be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSaved {
    /// A task of the store is running, or has not finished its work.
    Busy,
    /// Its index cannot be saved.
    Index,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedLog {
    extents: Extents,
    /// Extent, open page and summary of each stream. The open page is empty.
    frontiers: [Option<(ExtentId, u32, Summary)>; Stream::COUNT],
    sequence: Sequence,
    cleaning_since: Sequence,
    values: Live,
    tombstones: Live,
    needless_bytes: u64,
    table_extents_used: u32,
    deleting: BTreeMap<Address, (TableId, Key)>,
    deleted: Vec<(TableId, Key, Address)>,
    erasing: Vec<(ExtentId, Label)>,
    numbers_since: u64,
}

impl Store {
    /// Saves the store, after a [`Self::flush`], when all its tasks are idle.
    pub fn save_state(&self) -> Result<SavedStore, NotSaved> {
        let log = self.log.save().ok_or(NotSaved::Busy)?;
        Ok(SavedStore {
            log,
            tables: self.tables.save().ok_or(NotSaved::Busy)?,
            cleaner: self.cleaner.save().ok_or(NotSaved::Busy)?,
            counts: self.counters(),
            spaces: self.spaces.save(),
            index: self.index.save_state().ok_or(NotSaved::Index)?,
        })
    }

    /// Restores a saved store on the medium that was saved with it. `None` when the saved index is
    /// of another kind than the configured one.
    pub fn restore_state(
        media: Arc<dyn Media>,
        config: Config,
        saved: SavedStore,
    ) -> Option<Arc<Self>> {
        let log = Log::restored(media, saved.log, saved.counts.padded_pages);
        let store = Self::new(Arc::default(), log, config);
        store.tables.restore(saved.tables);
        store.cleaner.restore(saved.cleaner);
        store.counters.restore(&saved.counts);
        store.spaces.restore(&saved.spaces);
        if !store.index.restore_state(&saved.index) {
            return None;
        }
        store.start(Begins::Resting);
        Some(store)
    }
}

impl Log {
    /// `None` while a task of the log is running.
    fn save(&self) -> Option<SavedLog> {
        let state = self.whole();
        if !state.is_quiet() {
            return None;
        }
        // A device that can be saved has one writer.
        let [writer] = &state.writers().collect::<Vec<_>>()[..] else { return None };
        let frontiers = STREAMS.map(|stream| {
            let frontier = writer.frontiers.of(stream)?;
            Some((frontier.extent, frontier.page(), frontier.summary.clone()))
        });
        Some(SavedLog {
            extents: state.extents.clone(),
            frontiers,
            sequence: state.sequence,
            cleaning_since: state.copies.since(),
            values: state.live.values(),
            tombstones: state.live.tombstones(),
            needless_bytes: state.live.needless_bytes(),
            table_extents_used: state.space.tables_used(),
            deleting: state.copies.deleting().clone(),
            deleted: state.copies.deleted().to_vec(),
            erasing: state.space.erasing().to_vec(),
            numbers_since: self.written_since(),
        })
    }

    fn restored(media: Arc<dyn Media>, saved: SavedLog, padded_pages: u64) -> Self {
        let log = Self::new(media, saved.extents, saved.sequence);
        {
            let mut state = log.whole();
            for (stream, frontier) in STREAMS.into_iter().zip(saved.frontiers) {
                let Some((extent, page, summary)) = frontier else { continue };
                // The saved extent counts the open page, and opening the frontier does too.
                state.extents.get(extent).unexpect_page(page);
                let builder = PageBuilder::new(log.layout);
                let at = PageId { extent, page };
                log.open_frontier(&mut state.first(), stream, at, builder, summary);
            }
            let SavedLog { cleaning_since, deleting, deleted, .. } = saved;
            state.copies = Copies::restored(cleaning_since, deleting, deleted);
            state.live.restore(saved.values, saved.tombstones, saved.needless_bytes);
            state.space.restore(saved.erasing, saved.table_extents_used);
            state.first().writer.unlanded.padded = padded_pages;
            log.set_written_since(saved.numbers_since);
        }
        log
    }
}

impl Whole<'_> {
    /// Returns true when the log is idle and all open pages are empty.
    fn is_quiet(&self) -> bool {
        let is_quiet = |writer: &Writer| {
            let mut open = writer.frontiers.iter();
            writer.buffer.is_idle()
                && writer.unlanded.len() == open.clone().count()
                && open.all(|frontier| frontier.builder.is_empty())
        };
        self.copies.copying().is_none()
            && !self.space.owes()
            && self.writers().all(is_quiet)
            && !self.pins.has_any()
    }
}
