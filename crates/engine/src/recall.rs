//! Headers that were in memory before a store was closed, recalled from summaries.
//!
//! Each record that is replayed is weighed against the one that the index has of its key, whose
//! header would have to be read; and so would that of each key that is overwritten after a start.
//! An extent's summary tells all of its headers by one read.

use crate::address::Address;
use crate::index::HashedKey;
use crate::recover::{LISTED_AT_ONCE, Replay, Seen};
use crate::store::Store;
use crate::summary::read_summary;
use base::Nanos;
use clock::{Class, Stage};
use media::{ExtentId, Label};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Headers of an extent from which on its summary is read for them: a summary of 100 KB takes a
/// disk as long as some such reads of a block.
const WORTH_A_SUMMARY: usize = 8;

/// Headers that are recalled in one go beside the commands of hosts, some tens of microseconds'
/// worth, and the pause after them.
const RECALLED_AT_ONCE: usize = 128;
const PAUSE: Nanos = Nanos::from_micros(100);

impl Store {
    /// Notes the headers of what the index has of the keys in `replays`, as far as there is room
    /// for them. What it had to read page by page it has seen.
    pub(crate) async fn recall(self: &Arc<Self>, replays: &[Replay]) -> Seen {
        let room = self.log.headers.room();
        if room == 0 {
            return Seen::default();
        }
        let (mut wanted, mut seen) = (Vec::new(), Seen::default());
        for replays in replays.chunks(LISTED_AT_ONCE) {
            let listings = self.list_extents(replays, &mut Seen::default()).await;
            for (replay, listing) in replays.iter().zip(listings) {
                for record in &listing.records {
                    let key = HashedKey::new(&record.header.key);
                    wanted.extend(self.index.lookup(record.header.table, key).await);
                }
                if self.log.state().extents.get(replay.extent).summary.is_none() {
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
        seen
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

    /// What cannot be read here is read when it is asked for.
    async fn recall_of(self: &Arc<Self>, id: ExtentId, wanted: &[Address]) {
        let Some(summary) = self.summary_bytes_of(id, Class::HostRead).await else { return };
        read_summary(self.log.layout, &summary, |listed| {
            let address = self.log.address_of(id, &listed);
            if wanted.binary_search(&address).is_ok() {
                self.log.headers.note_found(address, &listed.header);
            }
        });
    }

    /// Notes the headers of all that lives, in the background, if there is room for them.
    pub(crate) async fn recall_live(self: Arc<Self>) {
        let extents: Vec<(ExtentId, Label)> = {
            let state = self.log.state();
            if state.values.records > self.log.headers.room() as u64 {
                return;
            }
            let sealed = state.extents.iter().filter(|(_, extent)| extent.summary.is_some());
            sealed.map(|(id, extent)| (id, extent.label)).collect()
        };
        for (id, label) in extents {
            if self.log.media.writable().is_err() {
                return;
            }
            self.recall_live_of(id, label).await;
        }
    }

    /// Notes the headers of what lives in an extent, unless that was opened again since.
    async fn recall_live_of(self: &Arc<Self>, id: ExtentId, label: Label) {
        let Some(_pin) = self.log.pin_if_there(id, label) else { return };
        let Some(records) = self.summary_of(id, Class::Gc).await else { return };
        for records in records.chunks(RECALLED_AT_ONCE) {
            for record in records {
                let key = HashedKey::new(&record.header.key);
                if self.index.lookup(record.header.table, key).await.contains(&record.address) {
                    self.log.headers.note_found(record.address, &record.header.borrowed());
                }
            }
            clock::sleep(PAUSE, Stage::Gc).await;
        }
    }
}
