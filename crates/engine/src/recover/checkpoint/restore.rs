//! Opening by a checkpoint: its state is restored for the extents that still exist.

use super::{ExtentImage, Image};
use crate::hashed_key::HashedKey;
use crate::index::survivors::Survivors;
use crate::key_space::TableId;
use crate::recover::listing::Replay;
use crate::recover::open::Scan;
use crate::store::Store;
use media::{ExtentId, ExtentInfo, Label, Stream};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Store {
    /// Restores the newest complete checkpoint, and returns the extents with records that it does
    /// not know. If there is none, the store must be dropped; the medium has not changed.
    pub(crate) async fn restore(
        self: &Arc<Self>,
        found: &[ExtentInfo],
        scan: &mut Scan,
    ) -> Option<Vec<Replay>> {
        // A scan finds more dead records, which the cleaner needs when no extent is free.
        if !self.index.can_checkpoint() || self.log.free_extents(&self.log.whole()) == 0 {
            return None;
        }
        let (at, root) = self.tables.newest_root(found).await?;
        let mut image = self.tables.read_image(&root, found).await?;
        let labels: BTreeMap<ExtentId, Label> =
            found.iter().map(|info| (info.id, info.label)).collect();
        let is_there = |id: &ExtentId, label: &Label| labels.get(id) == Some(label);
        if !image.tables.iter().all(|(id, label)| is_there(id, label)) {
            return None;
        }
        let kept: BTreeMap<ExtentId, &ExtentImage> = image
            .extents
            .iter()
            .filter(|extent| is_there(&extent.id, &extent.label))
            .map(|extent| (extent.id, extent))
            .collect();
        let survivors = Survivors::new(kept.keys().copied(), self.log.shape.pages_per_extent);
        let gone = entries_gone(&image, &survivors);
        let survivors = Arc::new(survivors.with_gone(gone));
        self.index.restore(&self.tables, &image.index, &survivors).await.ok()?;
        let replays = self.adopt(found, &kept);
        let mut extents: BTreeSet<ExtentId> = image.tables.iter().map(|(id, _)| *id).collect();
        extents.extend(root.pieces.iter().map(|piece| self.tables.extent_of(*piece)));
        extents.insert(self.tables.extent_of(at));
        self.tables.reopen_checkpoint(at, extents);
        let mut unfinished = image.erasing.iter().filter(|(id, label)| is_there(id, label));
        let replays = replays
            .into_iter()
            .filter(|replay| !unfinished.clone().any(|(id, _)| *id == replay.extent))
            .collect();
        for (id, _) in unfinished.by_ref() {
            self.log.whole().forget(*id);
            self.log.erase(*id, clock::Class::HostRead).await;
        }
        self.tables.while_opening(|entered| entered.has_checkpoint = true);
        if self.keeps_tables {
            for id in kept.keys() {
                if self.log.whole().extents.get(*id).summary().is_none() {
                    self.listing(Replay { extent: *id, from: 0 }).await;
                }
            }
        }
        // Another record of the same key may lie where one has been reset.
        image.deleting.retain(|(_, _, address)| survivors.has(*address));
        image.deleted.retain(|(_, _, address)| survivors.has(*address));
        for (table, key, address) in &image.deleting {
            self.log.whole().copies.begin_deleting(*address, *table, key.clone());
        }
        self.bring_back(&image).await;
        self.scrubber.go_on_at(image.scrubbed);
        self.before.restore(image.lifetime);
        scan.begin_at(image);
        Some(replays)
    }

    /// Puts tombstones back into the index that delete copies of older records.
    async fn bring_back(self: &Arc<Self>, image: &Image) {
        for (table, key, address) in &image.deleted {
            let key = HashedKey::new(key);
            let _entry = self.enter(*table, key).await;
            // A later record of the key also hides the copies, and so does an unreadable one.
            if matches!(self.find(*table, key).await, Ok(None)) {
                let mut lanes = self.lanes.lock(key.hash);
                self.index.insert(lanes.of(key.hash), *table, key, *address);
                self.log.whole().copies.begin_deleting(*address, *table, key.key.clone());
            }
        }
    }

    /// Takes over what the checkpoint knows of the extents in `kept`. Returns where there may be
    /// more: in other extents, and in those of `kept` that were not full.
    fn adopt(&self, found: &[ExtentInfo], kept: &BTreeMap<ExtentId, &ExtentImage>) -> Vec<Replay> {
        let mut state = self.log.whole();
        let state = &mut *state;
        let mut replays = Vec::new();
        for info in found.iter().filter(|info| info.label.stream != Stream::Index) {
            let Some(image) = kept.get(&info.id) else {
                replays.push(Replay { extent: info.id, from: 0 });
                continue;
            };
            if info.pages > image.pages {
                replays.push(Replay { extent: info.id, from: image.pages });
            }
            let extent = state.extents.get(info.id);
            extent.restore(image);
            state.live.add_extent(extent);
        }
        replays
    }
}

/// Returns the number of entries that `image` had for records that are gone, by table: live values
/// and tombstones.
fn entries_gone(image: &Image, survivors: &Survivors) -> BTreeMap<TableId, u64> {
    let mut gone: BTreeMap<TableId, u64> = BTreeMap::new();
    for extent in image.extents.iter().filter(|extent| !survivors.has_extent(extent.id)) {
        for (table, live) in &extent.values {
            *gone.entry(*table).or_default() += live.records;
        }
    }
    for (table, _, address) in &image.deleting {
        *gone.entry(*table).or_default() += u64::from(!survivors.has(*address));
    }
    gone
}
