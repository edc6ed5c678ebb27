//! Undoing a store, delete or batch that did not land: its keys get their earlier records back.
//!
//! 1. Until a record has landed, the extent of the record that it replaces is pinned: cleaning
//!    skips that record while it is not indexed. The new record's extent is pinned too and counts
//!    it, so a reader of the key waits until it is undone.
//! 2. If the record does not land, its index entry is pointed back under the key's latch.
//! 3. A later store may have replaced the record before that. If the later store lands, there is
//!    nothing to undo. If not, it points the entry back to this record; so this undo waits for the
//!    later store. The waits end, because each undo only waits for later writes.

use crate::format::address::Address;
use crate::format::record::header_len;
use crate::hashed_key::HashedKey;
use crate::key_space::TableId;
use crate::lane::Lane;
use crate::log::{CountedValue, LateWhole, Log, Own, PinOf, State};
use crate::read::look_up::{Found, Look, Visits};
use crate::store::Store;
use clock::{Class, UnixMillis};
use media::ExtentId;
use std::sync::Arc;

/// A record that did not land.
#[derive(Clone, Copy)]
pub(crate) struct Failed<'a> {
    pub(crate) table: TableId,
    pub(crate) key: HashedKey<'a>,
    pub(crate) at: Address,
    /// `None` for a tombstone.
    pub(crate) value: Option<FailedValue>,
}

/// The length and date of a failed value, which determine its footprint.
#[derive(Clone, Copy)]
pub(crate) struct FailedValue {
    pub(crate) len: u32,
    pub(crate) expires: Option<UnixMillis>,
}

/// Keeps a record, and the one that it replaced, in place until the record has landed or is undone.
pub(crate) struct Revocable {
    log: Arc<Own<Log>>,
    pub(crate) extent: ExtentId,
    /// The extent of the replaced record.
    replaced: Option<ExtentId>,
}

impl Revocable {
    /// Keeps extents in place: that of a record that was just appended, and that of the record that
    /// it `replaced`.
    pub(crate) fn new(log: Arc<Own<Log>>, extent: ExtentId, replaced: Option<ExtentId>) -> Self {
        log.pins.add(extent, PinOf::Revocable);
        if let Some(replaced) = replaced {
            log.pins.add(replaced, PinOf::Reader);
        }
        Self { log, extent, replaced }
    }
}

impl Drop for Revocable {
    fn drop(&mut self) {
        self.log.pins.remove(self.extent, PinOf::Revocable);
        if let Some(replaced) = self.replaced {
            self.log.pins.remove(replaced, PinOf::Reader);
        }
        self.log.note_final();
    }
}

impl Store {
    /// Gives the key of a record that did not land its earlier record back. The caller holds the
    /// [`Revocable`] until this returns.
    pub(crate) async fn undo(self: &Arc<Self>, failed: Failed<'_>, before: Option<&Found>) {
        let Failed { table, key, at, .. } = failed;
        loop {
            let seen = self.log.watch_decisions();
            let entry = self.enter(table, key).await;
            if self.lookup(table, key).await.contains(&at) {
                return self.point_back(failed, before);
            }
            drop(entry);
            if self.is_decided(table, key).await {
                return self.uncount_failed_tombstone(&mut self.log.whole(), failed);
            }
            self.log.decision_after(seen).await;
        }
    }

    fn uncount_failed_tombstone(&self, state: &mut State, failed: Failed<'_>) {
        let Failed { key, at, value, .. } = failed;
        if value.is_none() {
            let bytes = self.log.layout.footprint(header_len(key.key.as_bytes().len(), None), 0);
            state.uncount_tombstone(self.log.page_id(at).extent, bytes);
            state.copies.undo_deleting(at);
        }
    }

    /// Points the entry back. The key's latch is held.
    fn point_back(&self, failed: Failed<'_>, before: Option<&Found>) {
        let Failed { table, key, at, value } = failed;
        let mut lanes = self.lanes.lock(key.hash);
        let lane = lanes.of(key.hash);
        let mut state = self.log.whole();
        // A tombstone that has landed is out of the index again.
        let is_needed =
            |found: &&Found| found.is_value() || state.copies.is_deleting(found.address);
        let before = before.filter(is_needed);
        let is_back = match before {
            Some(found) => self.index.replace(lane, table, key, at, found.address),
            None => self.index.remove(lane, table, key, at),
        };
        // Deleting its key space takes no latch, and may have dropped the entry before this.
        if !is_back {
            return self.uncount_failed_tombstone(&mut state, failed);
        }
        if let Some(values) = &mut lane.values {
            values.forget(table, key.hash);
        }
        let (layout, key_len) = (self.log.layout, key.key.as_bytes().len());
        if let Some(FailedValue { len, expires }) = value {
            let bytes = layout.footprint(header_len(key_len, expires), len);
            let extent = self.log.page_id(at).extent;
            state.uncount_value(CountedValue { extent, at, table, key_len, bytes, expires });
        }
        if let Some(found) = before.filter(|found| found.is_value()) {
            let bytes = layout.footprint(found.header.len, found.header.value_len);
            let (extent, at) = (found.extent, found.address);
            let expires = found.header.expires;
            state.count_value(CountedValue { extent, at, table, key_len, bytes, expires });
        }
        self.uncount_failed_tombstone(&mut state, failed);
    }

    /// Returns false while the newest record of the key may have to be undone.
    async fn is_decided(self: &Arc<Self>, table: TableId, key: HashedKey<'_>) -> bool {
        if let Ok(Some(found)) = self.find(table, key).await
            && found.settled(&self.log, self.config.ack).await.is_err()
        {
            return false;
        }
        let unknown = |_: &mut Lane, _: &mut LateWhole<'_>, _| None::<Look<()>>;
        let mut visits = Visits::new();
        self.begin_look_up(table, key, unknown, &mut visits).await;
        for visit in visits {
            if visit.on_its_way.record.is_some() || !self.has_landed(visit.address).await {
                return false;
            }
        }
        true
    }

    /// Returns false for a record of which a page did not land.
    async fn has_landed(self: &Arc<Self>, address: Address) -> bool {
        let at = self.log.page_id(address);
        if self.log.whole().extents.get(at.extent).holes().contains(&at.page) {
            return false;
        }
        let records = self.records_on(at, Class::HostRead).await.unwrap_or_default();
        let record = records.iter().find(|record| record.address == address);
        record.is_none_or(|record| self.is_complete(record))
    }
}
