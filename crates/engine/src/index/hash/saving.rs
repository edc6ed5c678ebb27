//! Saving the hash table while it changes, and restoring it.
//!
//! All reactors of a pool save it: each piece of the work is a share of the lanes. It packs what
//! these had at the freeze (see [`super::frozen`]) into table pages of its own, and writes them.

use super::frozen::Undo;
use super::run::{self, Packer, RunId, Widths};
use super::{HashIndex, join};
use crate::error::Error;
use crate::format::address::Address;
use crate::index::Saved;
use crate::index::survivors::Survivors;
use crate::index::tables::{TablePageName, Tables};
use crate::key_space::{KeySpaceId, TableId};
use crate::lane::Lanes;
use crate::lane::entries::{Entries, Slot, Table};
use crate::recover::enter::LaneShare;
use crate::work_pool::WorkPool;
use base::Buf;
use base::limits::LANES;
use clock::{Class, Stage};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Entries of a lane that are copied, or packed, before others have a turn. They take some 15 us.
const ENTRIES_OF_A_TURN: usize = 2_048;

/// Changes of a lane that are looked at before others have a turn. They take some 25 us.
const CHANGES_OF_A_TURN: usize = 256;

/// The longest table page where several reactors save: a disk takes pages of up to 2 MiB, whose
/// checksums alone take longer than a turn.
const SHARED_PAGE_BYTES: u32 = 64 << 10;

/// Shares of the lanes for each reactor: one that is late at its first leaves more to others.
const SHARES_EACH: usize = 4;

/// That of all its pages.
const NAME: TablePageName = TablePageName(*b"kvasir hash runs");

/// What the root says of a run.
const RUN_BYTES: usize = 11;
const ADDRESS_BYTES: usize = 6;

/// What a checkpoint needs to find the table: how long each run is, and where its pages lie.
#[derive(Debug, Default)]
struct Root {
    runs: Vec<(RunId, u32)>,
    pages: Vec<Address>,
}

impl Root {
    fn encode(&self) -> Vec<u8> {
        let runs = u32::try_from(self.runs.len()).expect("runs are counted in 32 bits");
        let mut bytes = runs.to_le_bytes().to_vec();
        for (run, entries) in &self.runs {
            bytes.extend_from_slice(&run.table.space.0.to_le_bytes());
            bytes.extend_from_slice(&run.table.generation.to_le_bytes());
            bytes.push(run.lane);
            bytes.extend_from_slice(&entries.to_le_bytes());
        }
        for page in &self.pages {
            bytes.extend_from_slice(&page.to_bits().to_le_bytes()[..ADDRESS_BYTES]);
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (runs, rest) = bytes.split_first_chunk()?;
        let runs_bytes = (u32::from_le_bytes(*runs) as usize).checked_mul(RUN_BYTES)?;
        let (runs, pages) = rest.split_at_checked(runs_bytes)?;
        let run = |bytes: &[u8]| {
            let [s0, s1, g0, g1, g2, g3, lane, n0, n1, n2, n3] = *bytes.first_chunk()?;
            let space = KeySpaceId(u16::from_le_bytes([s0, s1]));
            let table = TableId { space, generation: u32::from_le_bytes([g0, g1, g2, g3]) };
            Some((RunId { table, lane }, u32::from_le_bytes([n0, n1, n2, n3])))
        };
        let page = |bytes: &[u8]| {
            let [a0, a1, a2, a3, a4, a5] = *bytes.first_chunk()?;
            Some(Address::from_bits(u64::from_le_bytes([a0, a1, a2, a3, a4, a5, 0, 0])))
        };
        Some(Self {
            runs: runs.chunks(RUN_BYTES).map(run).collect::<Option<_>>()?,
            pages: pages.chunks(ADDRESS_BYTES).map(page).collect::<Option<_>>()?,
        })
    }
}

/// A table being filled with entries in the order of their hashes.
struct Filling {
    table: Table,
    next: usize,
}

/// What a share of the lanes has in a checkpoint.
#[derive(Default)]
struct Part {
    root: Root,
    /// All but the root's bytes.
    saved: Saved,
}

/// A table in a lane as it was at the freeze: ranges of its entries.
#[derive(Default)]
struct Run {
    ranges: Vec<Vec<(u32, Address)>>,
    widths: Widths,
    entries: usize,
}

/// A reactor's work on a share of the lanes. If it drops before its end, because it has failed or
/// the reactor has ended, the checkpoint gives way: what other reactors would write is in vain.
struct Saving {
    lanes: Arc<Lanes>,
    tables: Arc<Tables>,
    packer: Packer,
    part: Part,
    has_ended: bool,
}

impl Drop for Saving {
    fn drop(&mut self) {
        if !self.has_ended {
            self.tables.give_way();
        }
    }
}

impl Saving {
    async fn save(mut self, share: LaneShare) -> Result<Part, Error> {
        for lane in share.lanes() {
            self.check()?;
            self.pack_lane(lane).await;
            if self.packer.full() >= 4 * self.tables.parallelism() {
                let full = self.packer.take_full();
                self.write(full).await?;
            }
        }
        let rest = self.packer.finish();
        self.write(rest).await?;
        self.has_ended = true;
        Ok(std::mem::take(&mut self.part))
    }

    /// An error when the checkpoint is to give way.
    fn check(&self) -> Result<(), Error> {
        if self.tables.gives_way() { Err(Error::CapacityExceeded) } else { Ok(()) }
    }

    /// Packs the runs of a lane as they were at the freeze. Changes of it are not listed after they
    /// have been copied. Gives way to other tasks between ranges of entries.
    async fn pack_lane(&mut self, lane: usize) {
        let (mut runs, mut undo) = (Vec::new(), Undo::default());
        for table in self.with(lane, |entries| entries.frozen_tables()) {
            runs.push((table, self.copy_run(lane, table, &mut undo).await));
        }
        self.with(lane, Entries::thaw);
        for (table, Run { ranges, widths, entries }) in runs {
            let run = RunId { table, lane: u8::try_from(lane).expect("there are 64 lanes") };
            let count = u32::try_from(entries).expect("a lane's entries: 32 bits");
            self.part.root.runs.push((run, count));
            self.part.saved.entries += u64::from(count);
            self.packer.begin(run, widths);
            for entries in ranges {
                self.packer.push(&entries);
                clock::give_way().await;
            }
        }
    }

    async fn copy_run(&self, lane: usize, table: TableId, undo: &mut Undo) -> Run {
        let (mut run, mut next) = (Run::default(), Some(0));
        while let Some(from) = next {
            let range = self.with(lane, |it| it.copy_range(table, from, ENTRIES_OF_A_TURN));
            for changes in range.changes.chunks(CHANGES_OF_A_TURN) {
                undo.add(changes);
                clock::give_way().await;
            }
            next = range.next;
            let entries = undo.undo(range);
            run.widths.add(&entries);
            run.entries += entries.len();
            run.ranges.push(entries);
            clock::give_way().await;
        }
        run
    }

    fn with<T>(&self, lane: usize, work: impl FnOnce(&mut Entries) -> T) -> T {
        let hash = join((lane, 0));
        work(&mut self.lanes.lock(hash).of(hash).entries)
    }

    /// Writes pages of runs, and notes where they lie. An error when the checkpoint is to give way.
    async fn write(&mut self, pages: Vec<Buf>) -> Result<(), Error> {
        self.check()?;
        let pages = pages.into_iter().map(|page| (NAME, page)).collect();
        let pages = self.tables.write_all(pages).await?;
        let extents = pages.iter().map(|page| self.tables.extent_of(*page));
        self.part.saved.extents.extend(extents);
        self.part.root.pages.extend(pages);
        Ok(())
    }
}

impl HashIndex {
    pub(super) async fn save_lanes(
        &self,
        tables: &Arc<Tables>,
        pool: &WorkPool,
    ) -> Result<Saved, Error> {
        let (reactors, page_bytes) = (pool.tasks(), tables.page_bytes_max());
        let (shares, page_bytes) = match reactors {
            1 => (1, page_bytes),
            _ => (
                (SHARES_EACH * reactors).next_power_of_two().min(LANES),
                page_bytes.min(SHARED_PAGE_BYTES),
            ),
        };
        let pieces = LaneShare::all(shares).map(|share| {
            let saving = Saving {
                lanes: self.lanes.clone(),
                tables: tables.clone(),
                packer: Packer::new(page_bytes),
                part: Part::default(),
                has_ended: false,
            };
            move || saving.save(share)
        });
        let (mut root, mut saved) = (Root::default(), Saved::default());
        let mut parts = pool.run(Stage::Index, pieces.collect()).await?;
        // One that failed made the others give way: what it met is the error.
        let cause = |part: &Result<Part, Error>| {
            part.as_ref().is_err_and(|error| *error != Error::CapacityExceeded)
        };
        if let Some(at) = parts.iter().position(cause) {
            parts.swap(0, at);
        }
        for part in parts {
            let part = part?;
            root.runs.extend(part.root.runs);
            root.pages.extend(part.root.pages);
            saved.extents.extend(part.saved.extents);
            saved.entries += part.saved.entries;
        }
        saved.root = root.encode();
        Ok(saved)
    }

    pub(super) async fn restore_lanes(
        &self,
        tables: &Arc<Tables>,
        root: &[u8],
        survivors: &Survivors,
    ) -> Result<(), Error> {
        let root = Root::decode(root).ok_or(Error::Unrecovered)?;
        let mut fillings: BTreeMap<(u8, TableId), Filling> = BTreeMap::new();
        for (run, entries) in &root.runs {
            fillings.insert((run.lane, run.table), Filling::new(*entries as usize));
        }
        for pages in root.pages.chunks(4 * tables.parallelism()) {
            let reads = pages.iter().map(|page| {
                let (tables, page) = (tables.clone(), *page);
                async move { tables.read(page, Class::Index).await }
            });
            for page in clock::join_all(reads.collect()).await {
                fill(&mut fillings, &page?, survivors).ok_or(Error::Unrecovered)?;
            }
        }
        for ((lane, table), filling) in fillings {
            let hash = join((usize::from(lane) % LANES, 0));
            self.lanes.lock(hash).of(hash).entries.tables.push((table, filling.table));
        }
        Ok(())
    }
}

/// Takes what survives of a page of runs; `None` when it is not one of this table.
fn fill(
    fillings: &mut BTreeMap<(u8, TableId), Filling>,
    page: &Buf,
    survivors: &Survivors,
) -> Option<()> {
    run::read(page.bytes()?, |run, entries| {
        let filling = fillings.get_mut(&(run.lane, run.table))?;
        for (hash, address) in entries.iter().filter(|(_, address)| survivors.has(*address)) {
            filling.push(Slot::new(*hash, *address));
        }
        Some(())
    })
}

impl Filling {
    /// Room for `entries`, four fifths full.
    fn new(entries: usize) -> Self {
        Self { table: Table::new(Table::BUCKETS_MIN.max(entries + entries / 4)), next: 0 }
    }

    fn push(&mut self, slot: Slot) {
        self.next = self.table.append(slot, self.next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashed_key::HashedKey;
    use crate::index::{Index, IndexEntry};
    use base::{Key, Nanos, Rng};
    use media::{ExtentId, Memory, Shape};
    use reactor::{PeerGroup, Places};
    use std::cell::RefCell;
    use std::rc::Rc;

    const TABLE: TableId = TableId { space: KeySpaceId(1), generation: 0 };
    const ENTRIES: u64 = 20_000;

    fn shape(extents: u32) -> Shape {
        Shape {
            page_bytes: 4_096,
            spare_bytes: 64,
            pages_per_extent: 8,
            extents,
            parallelism: 1,
            frames: None,
        }
    }

    fn filled() -> HashIndex {
        let index = HashIndex::new(&Arc::default());
        for number in 0..ENTRIES {
            let key = Key::new(&number.to_le_bytes()).unwrap();
            let key = HashedKey::new(&key);
            let mut lanes = index.lanes.lock(key.hash);
            index.insert(lanes.of(key.hash), TABLE, key, Address::from_bits(number));
        }
        index
    }

    fn entries(index: &HashIndex) -> Vec<IndexEntry> {
        index.entries_from(TABLE, 0, usize::MAX).unwrap().0
    }

    type Ended = Result<Saved, Error>;

    async fn save(index: &HashIndex, tables: &Arc<Tables>, pool: &WorkPool) -> Ended {
        let users = Arc::strong_count(&index.lanes);
        assert!(tables.begin_checkpoint());
        index.lanes.lock_each().each(|lane| index.freeze_lane(lane));
        let saved = Index::save(index, tables, pool).await;
        assert_eq!(Arc::strong_count(&index.lanes), users, "no reactor is at work");
        assert!(saved.is_ok() || tables.gives_way(), "the others know that one has failed");
        index.thaw();
        tables.end_checkpoint();
        saved
    }

    /// Saves an index in the second reactor by all others, and then again. The first time, this
    /// task has it give way after so many stretches, before which others may have turns. Returns
    /// how that ended.
    async fn save_twice(places: Places, reactors: usize, stretches: u64) -> Ended {
        let pool = Arc::<WorkPool>::default();
        for place in (0..reactors).filter(|place| *place != 1) {
            let pool = pool.clone();
            places.spawn(place, async move { drop(pool.join()) });
        }
        let tables = Tables::on(Arc::new(Memory::new(shape(64))), 64);
        let (giving_way, others) = (Arc::downgrade(&tables), pool.clone());
        let first = Rc::new(RefCell::new(None));
        let ended = first.clone();
        places.spawn(1, async move {
            let index = filled();
            clock::sleep(Nanos(1), Stage::Queue).await;
            let first = save(&index, &tables, &pool).await;
            clock::sleep(Nanos(1), Stage::Queue).await;
            let saved = save(&index, &tables, &pool).await.expect("it does not give way");
            assert_eq!(saved.entries, ENTRIES);
            let restored = HashIndex::new(&Arc::default());
            let survivors = Arc::new(Survivors::new((0..64).map(ExtentId), 8));
            restored.restore(&tables, &saved.root, &survivors).await.expect("nothing is damaged");
            assert_eq!(entries(&restored), entries(&index));
            *ended.borrow_mut() = Some(first);
        });
        clock::sleep(Nanos(1), Stage::Queue).await;
        for _ in 0..stretches {
            others.tasks();
        }
        giving_way.upgrade().expect("the index is saved twice").give_way();
        clock::sleep(Nanos(10), Stage::Queue).await;
        first.take().expect("both have ended")
    }

    fn among<F: Future>(reactors: usize, seed: u64, work: impl FnOnce(Places) -> F) -> F::Output {
        let mut group = PeerGroup::new(reactors, seed, Some(seed));
        group.preempt_often(4, 8);
        let places = group.places();
        group.run(work(places))
    }

    #[test]
    fn all_reactors_have_ended_when_saving_gives_way() {
        let mut gave_way = 0;
        for seed in 0..60 {
            let reactors = 2 + usize::try_from(seed % 3).unwrap();
            let stretches = Rng::new(seed).below(50);
            match among(reactors, seed, |places| save_twice(places, reactors, stretches)) {
                Ok(saved) => assert_eq!(saved.entries, ENTRIES),
                Err(error) => {
                    assert_eq!(error, Error::CapacityExceeded, "seed {seed}");
                    gave_way += 1;
                }
            }
        }
        assert!((10..60).contains(&gave_way), "{gave_way} of 60");
    }

    #[test]
    fn saving_gives_way_when_a_reactor_ends_within_its_piece() {
        let mut ended = 0;
        for seed in 0..30 {
            let saved = among(3, seed, |places| async move {
                let pool = Arc::<WorkPool>::default();
                let (of_second, of_third) = (pool.clone(), pool.clone());
                let after = usize::try_from(seed % 4).unwrap();
                places.spawn(1, async move { of_second.join_and_end(after) });
                places.spawn(2, async move { drop(of_third.join()) });
                clock::sleep(Nanos(1), Stage::Queue).await;
                let tables = Tables::on(Arc::new(Memory::new(shape(64))), 64);
                save(&filled(), &tables, &pool).await
            });
            match saved {
                Ok(saved) => assert_eq!(saved.entries, ENTRIES),
                Err(error) => {
                    assert_eq!(error, Error::ReactorEnded, "seed {seed}");
                    ended += 1;
                }
            }
        }
        assert!(ended > 15, "{ended} of 30");
    }

    #[test]
    fn all_reactors_have_ended_when_there_is_no_room() {
        for seed in 0..20 {
            let saved = among(4, seed, |places| async move {
                let pool = Arc::<WorkPool>::default();
                for place in 1..4 {
                    let pool = pool.clone();
                    places.spawn(place, async move { drop(pool.join()) });
                }
                let tables = Tables::on(Arc::new(Memory::new(shape(4))), 4);
                save(&filled(), &tables, &pool).await
            });
            assert_eq!(saved, Err(Error::CapacityExceeded), "seed {seed}");
        }
    }
}
