//! Saving the hash table while it changes. Each lane has an undo list from the freeze on until the
//! lane is written: its changes in between are undone in a copy. A table that is dropped in between
//! stays too: the records of its key space say whether the drop outlives a loss of power.

use super::run::{self, Packer, RunId};
use super::{HashIndex, join};
use crate::error::Error;
use crate::format::address::Address;
use crate::index::Saved;
use crate::index::survivors::Survivors;
use crate::index::tables::{TablePageName, Tables};
use crate::key_space::{KeySpaceId, TableId};
use crate::lane::entries::{Slot, Table};
use base::Buf;
use base::limits::LANES;
use clock::Class;
use std::collections::BTreeMap;
use std::sync::Arc;

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

impl HashIndex {
    pub(super) fn end_saving(&self) {
        self.lanes.each(|lane| {
            lane.entries.undo = None;
            lane.entries.dropped.clear();
        });
    }

    /// The runs of a lane as they were at the freeze. From this call on, its changes are not
    /// listed.
    fn take_lane(&self, number: usize) -> Vec<(TableId, Vec<(u32, Address)>)> {
        let hash = join((number, 0));
        let mut locked = self.lanes.lock(hash);
        let lane = &mut locked.of(hash).entries;
        let undo = lane.undo.take().unwrap_or_default();
        let dropped = std::mem::take(&mut lane.dropped);
        let mut runs = Vec::new();
        for (id, table) in lane.tables.iter().chain(&dropped) {
            let mut undone: BTreeMap<(u32, Address), i32> = BTreeMap::new();
            for change in undo.iter().filter(|change| change.table == *id) {
                let entry = (change.slot.hash, change.slot.address());
                *undone.entry(entry).or_default() += if change.is_new { -1 } else { 1 };
            }
            let now = table.slots.iter().filter(|slot| slot.used);
            let now = now.map(|slot| (slot.hash, slot.address()));
            let mut then: Vec<_> =
                now.filter(|entry| undone.get(entry).is_none_or(|by| *by >= 0)).collect();
            let gone = undone.iter().filter(|(_, by)| **by > 0).map(|(entry, _)| *entry);
            let kept = then.len();
            then.extend(gone);
            if then.len() > kept {
                then.sort_by_key(|entry| entry.0);
            }
            runs.push((*id, then));
        }
        runs
    }

    pub(super) async fn save_lanes(&self, tables: &Tables) -> Result<Saved, Error> {
        let (mut root, mut saved) = (Root::default(), Saved::default());
        let mut packer = Packer::new(tables.page_bytes_max());
        for lane in 0..LANES {
            for (table, entries) in self.take_lane(lane) {
                let run = RunId { table, lane: u8::try_from(lane).expect("there are 64 lanes") };
                let count = u32::try_from(entries.len()).expect("a lane's entries: 32 bits");
                root.runs.push((run, count));
                saved.entries += u64::from(count);
                packer.push(run, &entries);
            }
            if packer.full() >= 4 * tables.parallelism() {
                write(tables, packer.take_full(), &mut root, &mut saved).await?;
            }
            if tables.gives_way() {
                return Err(Error::CapacityExceeded);
            }
            // A lane of many entries takes the processor for long.
            clock::give_way().await;
        }
        write(tables, packer.finish(), &mut root, &mut saved).await?;
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

/// Writes pages of runs, and notes where they lie.
async fn write(
    tables: &Tables,
    pages: Vec<Buf>,
    root: &mut Root,
    saved: &mut Saved,
) -> Result<(), Error> {
    let pages = pages.into_iter().map(|page| (NAME, page)).collect();
    let pages = tables.write_all(pages).await?;
    saved.extents.extend(pages.iter().map(|page| tables.extent_of(*page)));
    root.pages.extend(pages);
    Ok(())
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
    use crate::index::Index;
    use base::{Key, Rng};

    type Entries = BTreeMap<(TableId, Address), u64>;

    /// Changes a random key's entry in a random table. `next` is an address that is not in use.
    fn change(index: &HashIndex, entries: &mut Entries, rng: &mut Rng, next: Address) {
        let generation = u32::try_from(rng.below(2)).unwrap();
        let table = TableId { space: KeySpaceId(1), generation };
        let known: Vec<_> = entries.iter().filter(|((id, _), _)| *id == table).collect();
        let picked = rng.below(known.len() as u64 + 1);
        let picked = known.get(usize::try_from(picked).unwrap());
        let picked = picked.map(|((_, address), number)| (*address, **number));
        let Some((address, number)) = picked.filter(|_| rng.below(3) > 0) else {
            let number = rng.below(1 << 40);
            let key = Key::new(&number.to_le_bytes()).unwrap();
            index.insert(index.lanes.lock(key.hash()).of(key.hash()), table, (&key).into(), next);
            entries.insert((table, next), number);
            return;
        };
        let key = Key::new(&number.to_le_bytes()).unwrap();
        entries.remove(&(table, address));
        let mut locked = index.lanes.lock(key.hash());
        let lane = locked.of(key.hash());
        if rng.below(2) == 0 {
            index.remove(lane, table, HashedKey::new(&key), address);
        } else {
            index.replace(lane, table, HashedKey::new(&key), address, next);
            entries.insert((table, next), number);
        }
    }

    fn none_is_dropped(index: &HashIndex) -> bool {
        let mut none_is = true;
        index.lanes.each(|lane| none_is &= lane.entries.dropped.is_empty());
        none_is
    }

    #[test]
    fn a_table_that_is_dropped_is_saved_as_it_was_at_the_freeze() {
        let (index, mut rng) = (HashIndex::new(&Arc::default()), Rng::new(1));
        let (mut entries, mut next) = (Entries::new(), 0);
        let mut some_changes = |entries: &mut Entries, count: u64| {
            for _ in 0..count {
                next += 1;
                change(&index, entries, &mut rng, Address::from_bits(next));
            }
        };
        some_changes(&mut entries, 400);
        let table = TableId { space: KeySpaceId(1), generation: 1 };
        index.lanes.lock_each().each(|lane| index.freeze_lane(lane));
        let expected: std::collections::BTreeSet<_> = entries.keys().copied().collect();
        let mut found = std::collections::BTreeSet::new();
        for lane in 0..LANES {
            if lane == 20 {
                some_changes(&mut entries, 50);
                index.drop_table(table);
            }
            for (table, run) in index.take_lane(lane) {
                found.extend(run.into_iter().map(|(_, address)| (table, address)));
            }
        }
        assert_eq!(found, expected);
        assert!(none_is_dropped(&index), "none stays");
        entries.retain(|(id, _), _| *id != table);
        assert_eq!(index.entries(), entries.len() as u64);
        index.lanes.lock_each().each(|lane| index.freeze_lane(lane));
        index.drop_table(TableId { generation: 0, ..table });
        index.end_saving();
        assert!(none_is_dropped(&index), "if it gives way");
        assert_eq!(index.entries(), 0);
    }

    #[test]
    fn what_is_saved_is_what_was_there_at_the_freeze() {
        for seed in 0..40 {
            let (index, mut rng) = (HashIndex::new(&Arc::default()), Rng::new(seed));
            let (mut entries, mut next) = (Entries::new(), 0);
            let mut some_changes = |entries: &mut Entries, rng: &mut Rng, count: u64| {
                for _ in 0..count {
                    next += 1;
                    change(&index, entries, rng, Address::from_bits(next));
                }
            };
            some_changes(&mut entries, &mut rng, 400);
            index.lanes.lock_each().each(|lane| index.freeze_lane(lane));
            let expected: std::collections::BTreeSet<_> = entries.keys().copied().collect();
            let mut found = std::collections::BTreeSet::new();
            for lane in 0..LANES {
                some_changes(&mut entries, &mut rng, 5);
                for (table, run) in index.take_lane(lane) {
                    assert!(run.is_sorted_by_key(|entry| entry.0), "in the order of hashes");
                    found.extend(run.into_iter().map(|(_, address)| (table, address)));
                }
            }
            index.end_saving();
            assert_eq!(found, expected, "seed {seed}");
        }
    }
}
