//! The whole index in the saved state of a device.

use super::directory::{Directory, SavedDirectory};
use super::frames::{Frames, SavedFrames};
use super::state::{Old, State, Table};
use crate::index::IndexCounts;
use crate::index::survivors::Survivors;
use crate::key_space::TableId;
use media::ExtentId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Debug, Serialize, Deserialize)]
struct SavedIndex {
    tables: Vec<(TableId, u64, SavedDirectory)>,
    frames: SavedFrames,
    leaves_in: BTreeMap<ExtentId, u32>,
    old: Option<(BTreeSet<ExtentId>, Survivors)>,
    has_failed: bool,
    counted: IndexCounts,
}

impl State {
    /// `None` while a task of the index is running.
    pub(super) fn save_whole(&self) -> Option<Vec<u8>> {
        let is_quiet = self.loading.is_empty()
            && self.idle.is_some()
            && !self.writer.is_taken
            && !self.is_frozen
            && self.snapshot.is_none()
            && !self.has_permits_out();
        if !is_quiet {
            return None;
        }
        let tables = self.tables.iter();
        let old = self.old.as_ref();
        let saved = SavedIndex {
            tables: tables
                .map(|(id, table)| (*id, table.entries, table.directory.save()))
                .collect(),
            frames: self.frames.save(),
            leaves_in: self.leaves_in.clone(),
            old: old.map(|old| (old.extents.clone(), old.survivors.as_ref().clone())),
            has_failed: self.has_failed,
            counted: self.counted,
        };
        postcard::to_stdvec(&saved).ok()
    }

    /// Fills an empty state. `None` when `saved` is of no such index.
    pub(super) fn restore_whole(&mut self, saved: &[u8]) -> Option<()> {
        let saved: SavedIndex = postcard::from_bytes(saved).ok()?;
        let mut tables = BTreeMap::new();
        for (id, entries, directory) in saved.tables {
            let directory = Directory::restored(directory)?;
            tables.insert(id, Table { directory, entries });
        }
        self.tables = tables;
        self.frames = Frames::restored(saved.frames)?;
        self.leaves_in = saved.leaves_in;
        let old = saved.old;
        self.old = old.map(|(extents, of)| Old { extents, survivors: Arc::new(of) });
        (self.has_failed, self.counted) = (saved.has_failed, saved.counted);
        Some(())
    }
}
