//! The whole table as it stands, for the saved state of a device.

use super::{HashIndex, join};
use crate::key_space::TableId;
use crate::lane::entries::{Slot, Table};
use base::limits::LANES;
use serde::{Deserialize, Serialize};

/// A table of a lane. Its slots are given as they stand, so that what is found at one hash is found
/// in the same order, and the table grows when it would have.
#[derive(Debug, Serialize, Deserialize)]
struct SavedTable {
    lane: usize,
    table: TableId,
    buckets: usize,
    slots: usize,
    capacity: usize,
    used: Vec<SavedSlot>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedSlot {
    /// Free slots before it, after the one before.
    gap: usize,
    hash: u32,
    page: u32,
    unit: u16,
}

impl SavedTable {
    fn new(lane: usize, id: TableId, table: &Table) -> Self {
        let mut next = 0;
        let used = table.slots.iter().enumerate().filter(|(_, slot)| slot.used);
        let used = used.map(|(at, &Slot { hash, page, unit, .. })| {
            let gap = at - next;
            next = at + 1;
            SavedSlot { gap, hash, page, unit }
        });
        Self {
            lane,
            table: id,
            used: used.collect(),
            buckets: table.buckets,
            slots: table.slots.len(),
            capacity: table.slots.capacity(),
        }
    }

    /// `None` when there is no such table.
    fn restored(self) -> Option<Table> {
        let len = self.used.len();
        if self.buckets == 0 || self.capacity < self.slots || len > self.slots {
            return None;
        }
        let mut slots = Vec::new();
        slots.try_reserve_exact(self.capacity).ok()?;
        slots.resize(self.slots, Slot::default());
        let mut next = 0;
        for SavedSlot { gap, hash, page, unit } in self.used {
            *slots.get_mut(next + gap)? = Slot { hash, page, unit, used: true };
            next += gap + 1;
        }
        Some(Table { slots, buckets: self.buckets, len })
    }
}

impl HashIndex {
    /// `None` while a checkpoint is being written.
    pub(super) fn save_whole(&self) -> Option<Vec<u8>> {
        let mut tables = Vec::new();
        for number in 0..LANES {
            let hash = join((number, 0));
            let mut locked = self.lanes.lock(hash);
            let lane = &locked.of(hash).entries;
            if lane.undo.is_some() {
                return None;
            }
            tables
                .extend(lane.tables.iter().map(|(id, table)| SavedTable::new(number, *id, table)));
        }
        postcard::to_stdvec(&tables).ok()
    }

    /// Fills the empty index. `None` when the bytes are not those of one.
    pub(super) fn restore_whole(&self, saved: &[u8]) -> Option<()> {
        let tables: Vec<SavedTable> = postcard::from_bytes(saved).ok()?;
        for saved in tables {
            let (lane, id) = (saved.lane, saved.table);
            let hash = (lane < LANES).then(|| join((lane, 0)))?;
            let table = saved.restored()?;
            self.lanes.lock(hash).of(hash).entries.tables.push((id, table));
        }
        Some(())
    }
}
