//! Headers that an opened store does not have in memory, recalled many at a time.
//!
//! Each record that is replayed is weighed against the one that the index has of its key, and so is
//! each that is stored: the other's header would have to be read. Where many such headers lie in
//! one extent, its summary tells them all by one read. Those of a replay are known before it; of
//! the rest, those of an extent are recalled once some of them were read.

use crate::clean::turn::SHARE_OF_A_TURN;
use crate::error::Error;
use crate::extent::Extent;
use crate::format::address::Address;
use crate::format::summary::read_summary;
use crate::hashed_key::HashedKey;
use crate::log::Pin;
use crate::recover::enter::ENTRIES_AHEAD;
use crate::recover::listing::Replay;
use crate::recover::open::{LISTED_AT_ONCE, Seen};
use crate::store::Store;
use clock::Class;
use media::ExtentId;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Headers of an extent from which on its summary is read for them: a summary of 100 KB takes a
/// disk as long as some such reads of a block.
const WORTH_A_SUMMARY: usize = 8;

/// Bytes of listings of full extents that stay in memory between their two uses at an opening. The
/// summaries of further extents are read twice.
const KEPT_BYTES: usize = 64 << 20;

impl Store {
    /// The header of the record at `address`, which a caller has pinned, was not in memory and was
    /// read. If that happens again and again in an extent, and there is room for all headers, those
    /// of all that lives there are recalled in the background, once.
    pub(crate) fn missed_header(self: &Arc<Self>, address: Address) {
        let (id, room) = (self.log.page_id(address).extent, self.lanes.headers_max());
        if room == 0 {
            return;
        }
        let mut writing = self.log.writing();
        let state = writing.part().shared.get();
        let has_room = state.live.values().records <= room as u64;
        let extent = state.extents.get(id);
        extent.headers_read = extent.headers_read.saturating_add(1);
        let is_worth_it = usize::from(extent.headers_read) == WORTH_A_SUMMARY;
        if !(is_worth_it && has_room) {
            return;
        }
        if state.recalls.push(id) {
            clock::spawn(self.clone().recall_one_by_one());
        }
    }

    /// Recalls the requested extents one after the other. After an opening all are requested at
    /// once: side by side they would occupy the processor.
    async fn recall_one_by_one(self: Arc<Self>) {
        clock::name_task("recall");
        while let Some((id, _pin)) = self.next_recall() {
            self.recall_living(id).await;
        }
    }

    /// Returns the next extent, and what keeps its addresses those of its records.
    fn next_recall(&self) -> Option<(ExtentId, Pin<'_>)> {
        let mut state = self.log.whole();
        loop {
            let id = state.recalls.next()?;
            if state.extents.find(id).is_some_and(Extent::is_cleanable) {
                return Some((id, self.log.pin(&mut state, id)));
            }
        }
    }

    /// Notes the headers of the live records in a pinned extent.
    async fn recall_living(self: &Arc<Self>, id: ExtentId) {
        let Some(records) = self.summary_of(id, Class::Gc).await else { return };
        for (at, record) in records.iter().enumerate() {
            if at % SHARE_OF_A_TURN == 0 {
                clock::give_way().await;
            }
            self.expect_entry(records.get(at + ENTRIES_AHEAD));
            let key = HashedKey::new(&record.header.key);
            let living = self.lookup(record.header.table, key).await;
            if living.contains(&record.address) {
                self.note_header(record.address, &record.header.borrowed());
            }
        }
    }

    /// Notes the headers of what the index has of the keys in `replays`, as far as there is room
    /// for them. Returns the listings that are to be used again: all that it had to read page by
    /// page, and some of full extents.
    pub(crate) async fn recall(self: &Arc<Self>, replays: &[Replay]) -> Result<Seen, Error> {
        let room = self.lanes.headers_max();
        if room == 0 {
            return Ok(Seen::default());
        }
        let (mut wanted, mut seen, mut kept) = (Vec::new(), Seen::default(), 0);
        for replays in replays.chunks(LISTED_AT_ONCE) {
            let listings = self.list_extents(replays, &mut Seen::default()).await?;
            for (replay, listing) in replays.iter().zip(listings) {
                for (at, record) in listing.records.iter().enumerate() {
                    self.expect_entry(listing.records.get(at + ENTRIES_AHEAD));
                    let key = HashedKey::new(&record.header.key);
                    wanted.extend(self.lookup(record.header.table, key).await);
                }
                let is_full = self.log.whole().extents.get(replay.extent).summary().is_some();
                let bytes = if is_full { listing.memory_bytes() } else { 0 };
                if kept + bytes <= KEPT_BYTES {
                    kept += bytes;
                    seen.keep(replay.extent, listing);
                }
            }
            if wanted.len() >= room {
                wanted.truncate(room);
                break;
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        self.recall_all(wanted).await;
        Ok(seen)
    }

    /// Notes the headers at these addresses, in order, where many lie in an extent.
    async fn recall_all(self: &Arc<Self>, wanted: Vec<Address>) {
        let extent_of = |address: &Address| self.log.page_id(*address).extent;
        let of_extents: Vec<(ExtentId, Vec<Address>)> = wanted
            .chunk_by(|one, next| extent_of(one) == extent_of(next))
            .filter(|wanted| wanted.len() >= WORTH_A_SUMMARY)
            .map(|wanted| (extent_of(&wanted[0]), wanted.to_vec()))
            .collect();
        let of_extents = Rc::new(RefCell::new(of_extents.into_iter()));
        let workers = (0..self.log.shape.parallelism).map(|_| {
            let (store, of_extents) = (self.clone(), of_extents.clone());
            async move {
                loop {
                    let Some((id, wanted)) = of_extents.borrow_mut().next() else { return };
                    store.recall_of(id, &wanted).await;
                }
            }
        });
        clock::join_all(workers.collect()).await;
    }

    /// Headers that cannot be read here are read when a command asks for them.
    async fn recall_of(self: &Arc<Self>, id: ExtentId, wanted: &[Address]) {
        let Some(summary) = self.summary_bytes_of(id, Class::HostRead).await else { return };
        read_summary(self.log.layout, &summary, |listed| {
            let address = self.log.address_of(id, &listed);
            if wanted.binary_search(&address).is_ok() {
                self.note_header(address, &listed.header);
            }
        });
    }
}
