//! Counts the values that expire in restored extents: a checkpoint does not keep these counts.

use crate::clean::expiring::ExpiringCounts;
use crate::error::Error;
use crate::format::address::Address;
use crate::hashed_key::HashedKey;
use crate::key_space::KeySpaceId;
use crate::recover::listing::{Record, Replay};
use crate::store::Store;
use clock::Class;
use media::{ExtentId, Stream};
use std::sync::Arc;

/// Records that are counted before other tasks have a turn.
const RECORDS_A_TURN: usize = 64;

impl Store {
    /// Returns the counts of the live values of `space` that expire, up to a tick late: 0.1
    /// seconds, or more where there are many dates. Values from before the opening are left out
    /// until [`Self::count_expiring`] has counted them.
    pub fn expiring_in(&self, space: KeySpaceId) -> Result<ExpiringCounts, Error> {
        let table = self.table(space)?;
        Ok(self.log.whole().live.expiring.counts(table))
    }

    /// Returns the number of values that have expired since the store was opened.
    pub fn expired_since_opening(&self) -> u64 {
        self.log.whole().live.expiring.expired()
    }

    /// Counts the values that expire in the next extent that a checkpoint has restored and that may
    /// have any: reads its summary. False when there is no such extent.
    pub async fn count_expiring(self: &Arc<Self>) -> bool {
        let Some(extent) = self.next_uncounted() else { return false };
        let Some(_pin) = self.log.pin_used(extent) else { return true };
        let (records, _) = self.records_from(Replay { extent, from: 0 }, Class::Gc).await;
        for records in records.chunks(RECORDS_A_TURN) {
            self.count_expiring_records(extent, records);
            clock::give_way().await;
        }
        self.log.whole().extents.get(extent).expiring_until = Some(Address::MAX);
        true
    }

    /// Counts those of the next records of an extent that live and expire.
    fn count_expiring_records(&self, extent: ExtentId, records: &[Record]) {
        for record in records {
            let (header, at) = (&record.header, record.address);
            let key = HashedKey::new(&header.key);
            let mut lanes = self.lanes.lock(key.hash);
            let expires = header.expires.filter(|_| {
                let found = self.index.lookup(lanes.of(key.hash), header.table, key);
                header.kind.is_value() && found.at_once().is_some_and(|found| found.contains(&at))
            });
            let mut state = self.log.whole();
            if let Some(date) = expires {
                state.live.expiring.add(header.table, date);
            }
            state.extents.get(extent).expiring_until = Some(at);
        }
    }

    /// Returns the next extent whose values that expire are to be counted. An index that has to
    /// read the medium is not asked for them.
    fn next_uncounted(&self) -> Option<ExtentId> {
        if !self.index.is_by_hash() || self.keeps_tables {
            return None;
        }
        let state = self.log.whole();
        let may_expire = state.extents.iter().filter(|(_, extent)| {
            extent.label.stream != Stream::Index
                && extent.expiring_until.is_none()
                && extent.expires_first.is_some()
                && extent.is_cleanable()
        });
        may_expire.map(|(id, _)| id).next()
    }
}
