//! Checkpoints: the index, and all that is known of the extents, as they were at one instant.
//!
//! 1. The index is frozen: it saves its entries of that instant. The image of the extents is of the
//!    same instant, with all open pages closed.
//! 2. The index writes its table pages to extents of their own. Stores are accepted while it does.
//! 3. When every page that the image speaks of has landed, the image is written, in pieces, and at
//!    last, when all of that outlives a loss of power, the root, which names them. With the root
//!    the checkpoint is complete.
//! 4. Extents that neither this checkpoint nor the index needs are reset: those of the checkpoint
//!    before.
//!
//! `docs/internals/checkpoints.md` says why a loss of power may come between any two of these.

mod image;
mod restore;
mod root;

use crate::clean::cleaner::Begins;
use crate::error::Error;
use crate::format::address::Address;
use crate::index::tables::{TablePageName, Tables};
use crate::log::{Frontier, Log, Whole};
use crate::sabotage::Sabotage;
use crate::store::Store;
use crate::write::pending::{Pending, durable};
use base::{Buf, Nanos};
use clock::{Class, Rank, Stage};
pub(crate) use image::{ExtentImage, Image};
use media::{ExtentId, ExtentInfo, Stream};
pub(crate) use root::Root;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The size of a checkpoint, and the time that it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checkpointed {
    /// Entries of the index that it holds.
    pub entries: u64,
    /// Pages of the medium that were written for it.
    pub pages: u64,
    /// Time on the device's clock.
    pub time: Nanos,
}

impl Store {
    /// Writes a checkpoint, from which the store can be opened again.
    ///
    /// [`Error::CapacityExceeded`] when there is no room for it, [`Error::NoCheckpoint`] when the
    /// index cannot be saved, [`Error::ReactorEnded`] when a reactor ended within its part. The
    /// checkpoint before, if there is one, stays good then.
    pub async fn checkpoint(self: &Arc<Self>) -> Result<Checkpointed, Error> {
        if !self.index.can_checkpoint() {
            return Err(Error::NoCheckpoint);
        }
        while !self.tables.begin_checkpoint() {
            self.tables.end_of_checkpoint().await;
        }
        let start = clock::now();
        let made = self.make_checkpoint().await;
        self.index.thaw();
        if made.is_err() {
            self.log.close_tables();
        }
        self.reset_tables().await;
        self.tables.end_checkpoint();
        made.map(|made| Checkpointed { time: clock::now() - start, ..made })
    }

    async fn make_checkpoint(self: &Arc<Self>) -> Result<Checkpointed, Error> {
        self.index.freeze().await;
        let written_before = self.tables.traffic().1;
        let (mut image, pages) = if Sabotage::CheckpointByLanes.is_on() {
            self.lanes.each(|lane| self.index.freeze_lane(lane));
            self.image()
        } else {
            let mut lanes = self.lanes.lock_each();
            lanes.each(|lane| self.index.freeze_lane(lane));
            self.image()
        };
        let saved = self.index.save(&self.tables, &self.pool).await?;
        durable(&pages).await?;
        let mut extents = saved.extents;
        image.index = saved.root;
        image.tables = self.log.labels(&extents);
        let bytes = image.encode();
        let pieces = bytes.chunks(self.tables.page_bytes_max() as usize);
        let pieces = pieces.map(|piece| (TablePageName::PIECE, Buf::copy_from(piece))).collect();
        let pieces = self.tables.write_all(pieces).await?;
        extents.extend(pieces.iter().map(|piece| self.tables.extent_of(*piece)));
        let root = Root::new(&bytes, pieces).encode();
        if root.len() > self.tables.page_bytes_max() as usize {
            return Err(Error::CapacityExceeded);
        }
        // The medium may answer before it has flushed. The root must not outlive the pages that it
        // names.
        self.log.media.flush().await?;
        if self.tables.gives_way() {
            return Err(Error::CapacityExceeded);
        }
        let root = vec![(TablePageName::ROOT, Buf::copy_from(&root))];
        let root = self.tables.write_all(root).await?;
        extents.extend(root.iter().map(|root| self.tables.extent_of(*root)));
        self.tables.complete_checkpoint(extents);
        let pages = self.tables.traffic().1 - written_before;
        Ok(Checkpointed { entries: saved.entries, pages, time: Nanos::ZERO })
    }

    /// Returns the image of the store at this instant, and the pages that must land before the
    /// medium matches it. All lanes are locked: no write is between its record and its entry.
    fn image(&self) -> (Image, Vec<Arc<Pending>>) {
        let mut state = self.log.whole();
        self.log.pad_records(&mut state);
        self.log.set_written_since(0);
        let closed = state.writers().flat_map(|writer| writer.unlanded.closed());
        let pages = closed.map(|(_, pending)| pending.clone()).collect();
        let deleting = state.copies.deleting().iter();
        let image = Image {
            extents: state.extent_images(),
            erasing: state.space.erasing().to_vec(),
            tables: Vec::new(),
            deleting: deleting.map(|(at, (table, key))| (*table, key.clone(), *at)).collect(),
            deleted: state.copies.deleted().to_vec(),
            spaces: self.spaces.known(),
            index: Vec::new(),
            scrubbed: self.scrubber.place(),
            lifetime: self.lifetime(),
        };
        (image, pages)
    }

    /// Returns the image of the newest checkpoint of a store with these extents, if it is whole.
    pub(crate) async fn newest_image(&self, found: &[ExtentInfo]) -> Option<Image> {
        let (_, root) = self.tables.newest_root(found).await?;
        self.tables.read_image(&root, found).await
    }

    /// Resets the extents of table pages that neither a checkpoint nor the index needs.
    pub(crate) async fn reset_tables(&self) {
        self.tables.reset_all_but(&self.index.extents_in_use()).await;
    }

    /// Gives up the checkpoint that is being written, or else the last one, to free its extents for
    /// the log. False when that frees none: extents kept for the index stay the index's.
    pub(crate) async fn give_up_checkpoint(&self) -> bool {
        if self.keeps_tables {
            return false;
        }
        let before = self.log.media.free_extents();
        if self.tables.give_way() {
            self.tables.end_of_checkpoint().await;
        }
        if self.log.media.free_extents() <= before && self.tables.begin_checkpoint() {
            self.tables.forget_checkpoint();
            self.log.close_tables();
            self.reset_tables().await;
            self.tables.end_checkpoint();
        }
        self.log.media.free_extents() > before
    }

    /// Notes that the maker of checkpoints rests, if none is due or asked for or it `begins` so.
    fn maker_rests(&self, begins: bool) -> bool {
        // A write that makes a checkpoint due, and wakes the maker, comes before or after this.
        let _state = self.log.whole();
        (begins || !self.checkpoint_is_due(0)) && self.tables.rest(begins)
    }

    /// Runs the background task that makes a checkpoint when one is due or asked for.
    pub(crate) async fn checkpoint_forever(self: Arc<Self>, begins: Begins) {
        clock::name_task("checkpoint");
        self.tables.make_checkpoints();
        let mut rests = begins == Begins::Resting;
        loop {
            while self.maker_rests(std::mem::take(&mut rests)) {
                clock::park(Rank::Free, Stage::Index).await;
            }
            // A caller that asked for the checkpoint checks for room itself.
            let _ = self.checkpoint().await;
        }
    }

    /// Returns true when enough has been written since the last checkpoint, with the page numbers
    /// that a writer has not added.
    #[inline]
    pub(crate) fn checkpoint_is_due(&self, own: u64) -> bool {
        let interval = self.config.checkpoint_bytes;
        let numbers = self.log.written_since() + own;
        let written = numbers * u64::from(self.log.shape.number_bytes());
        interval > 0 && written >= interval
    }
}

impl Whole<'_> {
    /// Returns the extents of records as they are now. While the cleaner copies, the pages that it
    /// wrote since it began to copy count as unknown: the index may still point to the originals.
    fn extent_images(&self) -> Vec<ExtentImage> {
        let images = self.extents.iter().filter(|(_, extent)| extent.label.stream != Stream::Index);
        let images = images.map(|(id, extent)| {
            let mut frontiers = self.writers().flat_map(|writer| writer.frontiers.iter());
            let open = frontiers.find(|frontier| frontier.extent == id).map(Frontier::page);
            let mut image = ExtentImage {
                id,
                label: extent.label,
                pages: open.unwrap_or(extent.pages()),
                summary: extent.summary(),
                holes: extent.holes().to_vec(),
                values: extent.values().to_vec(),
                tombstones: extent.tombstones(),
                needless: extent.needless().to_vec(),
                needless_bytes: extent.needless_bytes(),
                expires_first: extent.first_date(),
                left: extent.left.iter().copied().collect(),
            };
            if let Some(copying) = self.copies.copying() {
                if let Some((_, page)) = copying.open.filter(|(open, _)| *open == id) {
                    (image.pages, image.tombstones) = (page, copying.tombstones);
                } else if extent.label.stream == Stream::Gc
                    && extent.label.epoch == self.copies.since().0
                {
                    (image.pages, image.tombstones) = (0, crate::extent::Live::default());
                }
            }
            image
        });
        images.collect()
    }
}

impl Log {
    /// Returns the labels of extents in use.
    fn labels(&self, extents: &BTreeSet<ExtentId>) -> Vec<(ExtentId, media::Label)> {
        let mut state = self.whole();
        extents.iter().map(|id| (*id, state.extents.get(*id).label)).collect()
    }

    /// Ends the open extent of table pages, without a summary.
    fn close_tables(self: &Arc<Self>) {
        let mut state = self.whole();
        let mut part = state.first();
        // A task of the index may be between two of its pages.
        self.pad(&mut part, Stream::Index);
        if part.writer.frontiers.of(Stream::Index).is_none() {
            return;
        }
        let open = part.writer.frontiers.close(Stream::Index);
        self.unexpect_page(&mut part, open.extent, open.page());
        state.extents.get(open.extent).seal(open.page(), None);
    }

    /// Takes an extent of table pages out of the log. False while it is open, a page of it is being
    /// programmed, or it is pinned.
    pub(crate) fn forget_tables(&self, id: ExtentId) -> bool {
        let mut state = self.whole();
        let extent = state.extents.get(id);
        let is_idle = extent.is_sealed() && extent.has_landed() && !self.pins.has(id);
        if is_idle {
            state.forget(id);
        }
        is_idle
    }
}

impl Tables {
    /// Reads the image of a root's checkpoint, many pages side by side.
    async fn read_image(self: &Arc<Self>, root: &Root, found: &[ExtentInfo]) -> Option<Image> {
        if !root.pieces.iter().all(|piece| self.is_in(found, *piece)) {
            return None;
        }
        let mut bytes = Vec::new();
        for pieces in root.pieces.chunks(4 * self.parallelism()) {
            let reads = pieces.iter().map(|piece| {
                let (tables, piece) = (self.clone(), *piece);
                async move { tables.read(piece, Class::Index).await }
            });
            for piece in clock::join_all(reads.collect()).await {
                bytes.extend_from_slice(piece.ok()?.bytes()?);
            }
        }
        root.is_of(&bytes).then(|| Image::decode(&bytes)).flatten()
    }

    /// Returns true when a page of one of these extents was written at this address, for tables.
    fn is_in(&self, found: &[ExtentInfo], at: Address) -> bool {
        let at = self.log.page_id(at);
        let tables = |info: &&ExtentInfo| info.label.stream == Stream::Index;
        let info = found.iter().filter(tables).find(|info| info.id == at.extent);
        info.is_some_and(|info| at.page < info.pages && !info.holes.contains(&at.page))
    }
}
