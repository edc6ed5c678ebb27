//! What is done at once, since nobody has to be waited for.

use crate::accepted::{Accepted, value_record};
use crate::address::Address;
use crate::announced::Announced;
use crate::entry::Entry;
use crate::get::{Content, Seen, known_content, seen};
use crate::index::HashedKey;
use crate::key_space::{KeySpaceId, TableId};
use crate::log::{OnItsWay, OwnedHeader, Unlanded};
use crate::page_view::PageView;
use crate::record::Kind;
use crate::store::{Found, Store};
use base::{Buf, Key};
use std::sync::Arc;

/// It takes a wait to know.
struct NotAtHand;

impl Store {
    /// The value of `key`, if nobody has to be waited for: it is in the cache of values, or on a
    /// medium that is memory. Else it takes [`Self::get`] to know whether there is one.
    pub fn get_at_hand(&self, space: KeySpaceId, key: &Key) -> Option<Buf> {
        let hashed = HashedKey::new(key);
        let table = self.table(space).ok()?;
        for address in self.index.lookup(table, hashed).at_once()? {
            match self.content_at_hand(table, key, address)? {
                Content::Value(found) => {
                    self.counters.count_retrieved_bytes(found.value.len());
                    return Some(found.value);
                }
                Content::Absent => return None,
                Content::OtherKey => {}
            }
        }
        None
    }

    /// As [`Self::content`], for a record that has landed and is in memory as a whole. Nothing
    /// resets its extent meanwhile, since nothing is waited for.
    fn content_at_hand(&self, table: TableId, key: &Key, address: Address) -> Option<Content> {
        if self.log.is_on_its_way(address) {
            return None;
        }
        if let Some(cached) = self.log.values.get_known(table, key, address) {
            return Some(known_content(cached));
        }
        let layout = self.log.layout;
        let page = self.log.media.at_hand(layout.span(address))?;
        self.counters.count_retrieve_read();
        match seen(layout, &page, layout.offset(address), key).ok()? {
            Seen::OtherKey => Some(Content::OtherKey),
            Seen::Begins(first, _) if first.part.len() == first.value_len => {
                self.checked(first.part.clone(), &first).ok().map(Content::Value)
            }
            Seen::Nothing | Seen::Absent | Seen::Begins(..) => None,
        }
    }

    /// As [`Self::put`] without a condition and a date, up to [`Self::put_landed`]: if there is
    /// room, nobody else changes the key, and the header of what it has is in memory. If not, what
    /// was announced is so still.
    pub fn put_at_hand(
        self: &Arc<Self>,
        space: KeySpaceId,
        key: &Key,
        value: &Buf,
        announced: Announced,
    ) -> Result<Accepted, Announced> {
        let Some(accepted) = self.accepted_at_hand(space, HashedKey::new(key), value) else {
            return Err(announced);
        };
        drop(announced);
        self.wake_cleaner_when_low();
        Ok(accepted)
    }

    fn accepted_at_hand(
        &self,
        space: KeySpaceId,
        key: HashedKey<'_>,
        value: &Buf,
    ) -> Option<Accepted> {
        self.log.media.writable().ok()?;
        let has_room = value.len() <= self.value_bytes_max()
            && !self.is_room_awaited()
            && self.log.shortage(self.config.ack, Kind::Value, value.len()).is_none();
        let table = self.table(space).ok().filter(|_| has_room)?;
        let _entry = self.enter_at_hand(table, key)?;
        let found = self.find_at_hand(table, key).ok()?;
        let record = value_record(table, key, value, self.log.value_crc(value), None);
        self.supersede(key, found, &record).ok()?.ok()
    }

    /// As [`Self::enter`].
    fn enter_at_hand(&self, table: TableId, key: HashedKey<'_>) -> Option<Entry<'_>> {
        let permit = self.index.admit(1).at_once()?;
        let latch = self.latches.try_latch(key.hash)?;
        self.index.load(table, key, &permit).at_once()?;
        Some(Entry::new(latch, permit))
    }

    /// As [`Self::find`], where no header has to be read.
    fn find_at_hand(&self, table: TableId, key: HashedKey<'_>) -> Result<Option<Found>, NotAtHand> {
        for address in self.index.lookup(table, key).at_once().ok_or(NotAtHand)? {
            let found = self.header_at_hand(address).ok_or(NotAtHand)?;
            if found.header.key == *key.key {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn header_at_hand(&self, address: Address) -> Option<Found> {
        let OnItsWay { record, batch } = self.log.on_its_way(address);
        if let Some(Unlanded { pages, header, .. }) = record {
            return Some(Found { address, header, pages: Some(pages), batch });
        }
        let header = self.log.headers.get(address).or_else(|| self.header_in_memory(address))?;
        Some(Found { address, header, pages: None, batch })
    }

    /// The header of a record that has landed on a medium that is memory.
    pub(crate) fn header_in_memory(&self, address: Address) -> Option<OwnedHeader> {
        let layout = self.log.layout;
        let page = self.log.media.at_hand(layout.header_span(address))?;
        self.counters.count_lookup_read();
        let header = PageView::new(layout, &page)?.header(layout.offset(address))?;
        Some(OwnedHeader::new(&header))
    }
}
